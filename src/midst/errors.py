"""What can go wrong, as a tree.

    MidstError
    ├── InputError          the input was refused before anything happened (also a ValueError; exit code 2)
    │   └── TraceError      a trace file that is foreign, damaged or of another format
    ├── NotCertified        the run ended without a proof of its answer (exit code 3); carries the result
    ├── Aborted             a network run ended without an answer, and says because of whom (exit code 4)
    └── MissingExtra        an optional part is not installed; says what brings it from where midst came (exit code 2)

    MidstWarning            what nobody could check, and somebody should; the command says it in one line

Rules:
- A message is one line: what, where, and what to try.
- A private value never appears in one. Say which node, which line, which file; never which number.
- A setting and its choice are words, `record audit`, that hold in Python, in a file and for an option alike. What is
  spelt wrong is answered with what is nearest (`closest`).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from midst.result import Result


class MidstError(Exception):
    """Anything midst raises on purpose."""


class InputError(MidstError, ValueError):
    """The input was refused; nothing was computed, sent or written."""


class TraceError(InputError):
    """A file that cannot be read as a trace."""


class NotCertified(MidstError):  # noqa: N818  (it says what happened, as StopIteration does)
    """The run ended without a certificate.

    Attributes:
        result: what the run reached all the same.
    """

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class Aborted(MidstError):  # noqa: N818
    """A run between real participants ended without an answer.

    Attributes:
        kind: why, in a word or two: "waited", "equivocation", "diverged", "journal lost", "refused", …
        about: the participant it is about, or two of whom one is meant.
        evidence: what shows anybody with the charter that they did it (`protocol/course.py`); None for a mere word.
    """

    def __init__(self, kind: str, about: str, text: str, evidence: Any = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.about = about
        self.evidence = evidence


class MissingExtra(MidstError, ImportError):  # noqa: N818
    """A part that needs an optional dependency was asked for."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; try: {_installing(extra)}")


def load_extra(module: str, extra: str) -> Any:
    """A module of an optional dependency.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(module.partition(".")[0], extra) from None


def _installing(extra: str) -> str:
    """The command that adds an extra to this midst: into this environment, from where this midst came."""
    import shlex
    import shutil
    import sys
    from pathlib import Path

    beside = Path(sys.executable).parent
    found = shutil.which("pip")  # of another environment, if this one was not activated
    pip = "pip" if found and Path(found).parent == beside else f"{shlex.quote(sys.executable)} -m pip"
    return f"{pip} install {_requirement(extra)}"


def _requirement(extra: str) -> str:
    """Where midst was installed from, with an extra, as pip takes it; PEP 610 says where that is written."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        text = distribution("midst").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    if text is None:
        return f"'midst[{extra}]'"
    origin = json.loads(text)
    url = origin["url"]
    if "dir_info" in origin:
        folder = shlex.quote(f"{url2pathname(urlsplit(url).path)}[{extra}]")
        return f"-e {folder}" if origin["dir_info"].get("editable") else folder
    if "vcs_info" in origin:
        version = origin["vcs_info"]
        url = f"{version['vcs']}+{url}@{version.get('requested_revision') or version['commit_id']}"
    if "subdirectory" in origin:
        url += f"#subdirectory={origin['subdirectory']}"
    return shlex.quote(f"midst[{extra}] @ {url}")


class MidstWarning(UserWarning):
    """Something that a person should know, and that stops nothing."""


def closest(word: object, known: Iterable[str]) -> str:
    """What somebody may have meant who wrote a word that is none of those known, as the end of an error; or nothing.

    >>> closest("rign", ["ring", "path"])
    '; did you mean ring?'
    """
    from difflib import get_close_matches

    names = {name.casefold(): name for name in known}
    return "".join(f"; did you mean {names[near]}?" for near in get_close_matches(str(word).casefold(), names, n=1))


def whole_number(name: str, number: int, least: int = 1) -> int:
    """The number, if it is a whole one and large enough.

    Raises:
        InputError: it is not.
    """
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise InputError(f"{name} must be a whole number of at least {least}")
    return int(number)
