"""The figures by name, and as files.

Rules:
- A figure is rendered in memory, all of its files, before the first of them is put in place; each is put there whole.
- `claims.json` has an entry for every figure that was ever made in its folder, with the runs and the seed it was made
  from; making a figure again replaces its entry.
"""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from midst.errors import InputError
from midst.files import check_writable, write_whole
from midst.plots.picture import journal_fonts
from midst.plots.style import show_number
from midst.studies.paper import beyond, fig1, fig2, fig3, fig4
from midst.studies.paper.claims import Case, Claim
from midst.studies.paper.drawing import Figure
from midst.studies.paper.runs import StudySettings
from midst.types import Row

CLAIMS = "claims.json"


class Chapter(Protocol):
    """A module that makes a figure."""

    def run(self, settings: StudySettings) -> Any:
        """The numbers."""

    def claims(self, data: Any) -> list[Claim]:
        """What they say."""

    def draw(self, data: Any) -> Figure:
        """The picture."""

    def rows(self, data: Any) -> list[Row]:
        """The table."""


FIGURES: dict[str, Chapter] = {"fig1": fig1, "fig2": fig2, "fig3": fig3, "fig4": fig4, "beyond": beyond}


@dataclass(frozen=True, eq=False)
class Plate:
    """A figure, made.

    Attributes:
        name: of the figure.
        settings: how it was made.
        claims: what it says.
        files: its files by name, `claims.json` apart.
    """

    name: str
    settings: StudySettings
    claims: list[Claim]
    files: dict[str, bytes]

    def entry(self) -> dict[str, Any]:
        """Its entry in `claims.json`."""
        return {
            "title": (FIGURES[self.name].__doc__ or "").partition("\n")[0],
            "runs": self.settings.runs,
            "runs_in_range": self.settings.runs_in_range,
            "seed": self.settings.seed,
            "claims": [asdict(claim) for claim in self.claims],
        }


def make(name: str, settings: StudySettings) -> Plate:
    """Compute, judge and draw a figure; nothing is written."""
    figure = FIGURES[name]
    data = figure.run(settings)
    claims = figure.claims(data)
    picture = figure.draw(data)
    files = {f"{name}.{kind}": _picture(picture, kind) for kind in ("png", "pdf")}
    files[f"{name}.csv"] = _table(figure.rows(data)).encode()
    files[f"{name}.claims.txt"] = tabulate(claims).encode()
    return Plate(name, settings, claims, files)


def check_folder(folder: Path) -> dict[str, Any]:
    """The claims of the figures that are in a folder already; none if it is still to be made.

    Raises:
        InputError: figures cannot be written there.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the figures")
    check_writable(folder / CLAIMS if folder.is_dir() else folder)
    try:
        found = json.loads((folder / CLAIMS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{folder / CLAIMS} is not a file of claims; move it away, or give another folder")
    return found


def publish(plate: Plate, folder: Path) -> None:
    """Put the files of a figure into a folder, which is made if need be.

    Raises:
        InputError: they cannot be written there.
    """
    entries = check_folder(folder) | {plate.name: plate.entry()}
    ordered = {name: entries[name] for name in [*FIGURES, *entries] if name in entries}
    claims = json.dumps(ordered, indent=1, ensure_ascii=False).encode()
    folder.mkdir(exist_ok=True)
    for name, content in (plate.files | {CLAIMS: claims}).items():
        write_whole(folder / name, partial(_write, content), mode=0o644)


def tabulate(claims: list[Claim]) -> str:
    """A table of claims, each followed over its range, in Markdown."""
    lines = ["| | measured | 95% interval | holds |", "|---|---|---|---|"]
    for claim in claims:
        lines.append(_line(f"**{claim.text}**", claim))
        lines += [_line(case.at, case) for case in claim.cases]
    return "\n".join(lines) + "\n"


def show_measured(found: Claim | Case) -> tuple[str, str]:
    """Its value and its interval, to the three digits they bear at most; no interval where nothing was sampled."""
    value, low, high = (show_number(number, ".3g") for number in (found.value, found.low, found.high))
    return value, "" if found.low == found.high else f"{low} to {high}"


def _write(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def _line(what: str, found: Claim | Case) -> str:
    value, interval = show_measured(found)
    return f"| {what} | {value} | {interval} | {'yes' if found.holds else '**no**'} |"


def _picture(figure: Figure, kind: str) -> bytes:
    buffer = BytesIO()
    undated = {"CreationDate": None} if kind == "pdf" else {}  # the same numbers give the same file
    with journal_fonts():
        figure.savefig(buffer, format=kind, dpi=160, metadata=undated)
    return buffer.getvalue()


def _table(rows: list[Row]) -> str:
    buffer = StringIO(newline="")
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
