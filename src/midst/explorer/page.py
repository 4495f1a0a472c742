"""A run as one HTML file that anybody can open: the page with its code, its style and the run in it.

Rules:
- It is the page that the server serves, made of the same files: `index.html` with everything it names written into it.
  `api.js` finds the run in it, and asks no server.
- It can ask nobody for anything: its policy allows the script and the styles that are in it, by their hashes, and
  nothing else.
- Private values are in it only where they are asked for, and the right answer, which is one of them, only where it was
  found. What was sent is in it in any case, the number of an exposed node among it.
- Until it is drawn, and where it cannot be, it says in plain HTML what came out.
- The same run gives the same bytes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath
from zlib import compress

import numpy as np

from midst._version import __version__
from midst.errors import InputError
from midst.explorer.packing import Arrays, Facts, Parts, pack, unpack
from midst.files import check_writable, write_whole
from midst.rows import Rows, as_html

STATIC = Path(__file__).parent / "static"
PRIVATE = ("values", "held", "dots")  # arrays of private values, or of where they lie
MOST_RUNS = 2  # side by side

_SIDES = ("a", "b")
_IMPORT = re.compile(r"""^import ([^;]+?) from ["'](\.[^"']+)["'];$""", re.MULTILINE)
_EXPORTS = re.compile(r"^export \{([^}]+)\};$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?function|class|const)", re.MULTILINE)
_LEFT = re.compile(r"^(import|export)\b.*", re.MULTILINE)
_UNTIL_DRAWN = (
    "This page draws a run with JavaScript, all of which is in this file, and asks no other address. If nothing is "
    "drawn, the browser runs no scripts, or not all of the file is here. What came out:"
)


def make_page(runs: Sequence[Parts], *, values: bool = False) -> str:
    """The page of a run, or of two side by side.

    Args:
        runs: one or two.
        values: put the private values into it.
    """
    told = [part.run if values else _without_values(part.run) for part in runs]
    facts = [unpack(part) for part in told]
    has_values = any("values" in arrays for _, arrays in facts)
    hello = {"page": "saved", "version": __version__, "runs": len(runs), "values": has_values}
    blocks = [f'<script type="application/json" id="hello">{json.dumps(hello)}</script>']
    for side, run, part in zip(_SIDES, told, runs, strict=False):
        blocks += [_block(f"{side}.run", run), _block(f"{side}.audit", part.audit)]
    first = facts[0][0]
    title = f"The {first['title']} of {first['graph']['n']:,} nodes"
    return _write_into(title, [_rows(*each) for each in facts], blocks)


def check_page(path: str | Path) -> Path:
    """The path, if a page can be written there.

    Raises:
        InputError: the ending is not that of a page, or no file can be written there.
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise InputError(f"{target}: a page ends in .html")
    return check_writable(target)


def save_page(page: str, path: str | Path) -> None:
    """Write a page, whole or not at all.

    Raises:
        InputError: the path is not one for a page; see `check_page`.
    """
    write_whole(check_page(path), lambda file: file.write(page.encode()), mode=0o644)


# The run


def _without_values(packed: bytes) -> bytes:
    """The same without the private values; what is right, which is one of them, becomes what was found and proved."""
    facts, arrays = unpack(packed)
    kept = {name: array for name, array in arrays.items() if name not in PRIVATE}
    facts["answer"] = dict.fromkeys(("low", "high"), facts["found"]) if facts["proof"] else None
    if kept.pop("error", None) is not None and facts["proof"]:
        kept["error"] = np.linalg.norm(arrays["x"] - facts["found"], axis=1)
    return pack(facts, kept)


def _block(name: str, data: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{b64encode(compress(data)).decode()}</script>'


def _rows(facts: Facts, arrays: Arrays) -> Rows:
    """What came out, in plain words: (what, how much)."""
    graph, result = facts["graph"], facts["result"] or {}
    searched, told = facts["method"] == "search", result.get("rows", {})
    exposed = int((arrays["first"] >= 0).sum())
    between = " and ".join(facts.get("between", ()))
    rows = [
        (facts["title"], facts["shown"] if facts["proof"] else f"no answer yet: all x lie between {between}"),
        ("method", told.get("method", facts["method"])),
        ("proof", facts["proof"] or "none"),
        ("iterations", "" if searched else f"{facts['iterations']:,}"),
        ("rounds", f"{result['rounds']:,}" if result else ""),
        ("graph", f"{graph['name']}, {graph['n']:,} nodes, {graph['edges']:,} edges"),
        ("exposed", told.get("exposed", "nobody" if searched else f"{exposed} of {graph['n']} nodes")),
        ("seed", "" if facts["seed"] is None else str(facts["seed"])),
        ("made with", f"midst {__version__}"),
    ]
    return [(what, text) for what, text in rows if text]


# The page


def _write_into(title: str, tables: Sequence[Rows], blocks: Sequence[str]) -> str:
    """`index.html` with everything that it names written into it."""
    hashes: dict[str, list[str]] = {"script": [], "style": []}

    def inline(tag: str, text: str, more: str = "") -> str:
        hashes[tag].append(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'")
        return f"<{tag}{more}>{text}</{tag}>"

    icon = f"data:image/svg+xml;base64,{b64encode((STATIC / 'icon.svg').read_bytes()).decode()}"
    facts = f'<div class="facts"><p>{_UNTIL_DRAWN}</p>{"".join(map(as_html, tables))}</div>'
    page = _read("index.html")
    page = _swap(page, r"<title>.*</title>", lambda _: f"<title>{escape(title)} · midst</title>")
    page = _swap(page, r'href="/static/icon.svg"', lambda _: f'href="{icon}"')
    for name in ("vendor/uPlot.min.css", "style.css"):
        style = inline("style", _read(name))
        page = _swap(page, rf'<link rel="stylesheet" href="/static/{name}">', lambda _, style=style: style)  # type: ignore[misc]
    page = _swap(page, r'<script type="module" src="/static/main.js"></script>\n', lambda _: "")
    page = _swap(page, r"<noscript>.*</noscript>\n", lambda _: "")
    page = _swap(page, r"<main\b[^>]*>", lambda found: found[0] + facts)
    script = inline("script", bundle("main.js"), ' type="module"')  # last: until it is here, the facts are shown
    page = _swap(page, r"</body>", lambda found: "\n".join([*blocks, script, found[0]]))
    sources = f"script-src {' '.join(hashes['script'])}; style-src {' '.join(hashes['style'])}; img-src data:"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return _swap(page, r'<meta charset="utf-8">', lambda found: f"{found[0]}\n{meta}")


def _swap(page: str, pattern: str, new: Callable[[re.Match[str]], str]) -> str:
    page, count = re.subn(pattern, new, page, flags=re.DOTALL)
    assert count == 1, f"index.html has {pattern} {count} times"
    return page


def _read(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def bundle(entry: str) -> str:
    """A module and all that it imports, as one script: each becomes a function, which gives what others import from it.

    Args:
        entry: its name, below `STATIC`.
    """
    order: list[str] = []
    wanted: dict[str, set[str]] = defaultdict(set)

    def visit(name: str) -> None:
        for clause, path in _IMPORT.findall(_read(name)):
            other = _beside(name, path)
            wanted[other] |= {own for own, _ in _names(clause)}
            if other not in order:
                visit(other)
        order.append(name)

    visit(entry)
    return "\n".join(["const modules = {};", *(_as_function(name, sorted(wanted[name])) for name in order)])


def _as_function(name: str, wanted: Sequence[str]) -> str:
    def bind(found: re.Match[str]) -> str:
        pairs = ", ".join(f"{own}: {here}" for own, here in _names(found[1]))
        return f'const {{ {pairs} }} = modules["{_beside(name, found[2])}"];'

    text = _read(name)
    renamed = {out: own for clause in _EXPORTS.findall(text) for own, out in _names(f"{{{clause}}}")}
    text = _EXPORT.sub("", _EXPORTS.sub("", _IMPORT.sub(bind, text)))
    assert not _LEFT.search(text), f"{name}: {_LEFT.search(text)} is not understood"
    gives = ", ".join(f"{each}: {renamed.get(each, each)}" for each in wanted)
    return f'{_licence(name)}modules["{name}"] = (() => {{\n{text}\nreturn {{ {gives} }};\n}})();'


def _beside(name: str, path: str) -> str:
    return normpath(join(dirname(name), path))


def _names(clause: str) -> list[tuple[str, str]]:
    """What is imported or exported, and as what."""
    if not clause.startswith("{"):
        assert clause.isidentifier(), f"import {clause} is not understood"
        return [("default", clause)]
    pairs = (each.split(" as ") for each in clause.strip("{} \n").split(",") if each.strip())
    return [(pair[0].strip(), pair[-1].strip()) for pair in pairs]


def _licence(name: str) -> str:
    if not name.startswith("vendor/"):
        return ""
    package = name.removeprefix("vendor/").split(".")[0]
    return f"/*! {package}\n{_read(f'vendor/{package}.LICENSE').strip()}\n*/\n"
