"""The figures by name, and as files.

Rules:
- A figure is rendered in memory, all of its files, before the first of them is put in place; each is put there whole.
- `claims.json` has an entry for every figure that was ever made in its folder, with the runs and the seed it was made
  from; making a figure again replaces its entry.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from textwrap import fill
from types import ModuleType
from typing import Any

import numpy as np

from midst.errors import InputError
from midst.files import check_writable, write_bytes
from midst.frames import as_csv
from midst.methods import After
from midst.plots.style import GREY, show_number
from midst.studies.paper import beyond, fig1, fig2, fig3, fig4
from midst.studies.paper.choices import FAR, FIFTEEN, NEAR
from midst.studies.paper.claims import Case, Claim
from midst.studies.paper.drawing import Figure
from midst.studies.paper.runs import StudySettings, perform

CLAIMS = "claims.json"


FIGURES: dict[str, ModuleType] = {"fig1": fig1, "fig2": fig2, "fig3": fig3, "fig4": fig4, "beyond": beyond}

BASES = {"fig1": NEAR, "fig2": FAR, "fig3": FIFTEEN, "fig4": FIFTEEN}


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
            "caption": write_caption(self.name, self.settings),
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
    caption = write_caption(name, settings)
    picture = figure.draw(data)
    picture.supxlabel(fill(caption, int(13 * picture.get_figwidth())), fontsize=8, color=GREY)
    files = {f"{name}.{kind}": _picture(picture, kind) for kind in ("png", "pdf")}
    files[f"{name}.csv"] = as_csv(figure.rows(data), "\r\n").encode()
    files[f"{name}.claims.txt"] = f"{caption}\n\n{tabulate(claims)}".encode()
    return Plate(name, settings, claims, files)


def check_figure(name: str, settings: StudySettings) -> None:
    """Refuse a setting of one's own that cannot be run, by one iteration of it."""
    for fixed in [{"graph": each} for each in fig3.TOPOLOGIES] if name == "fig3" else [{}]:
        perform(replace(BASES.get(name, FIFTEEN), **settings.own | fixed), settings.seed, 0, stop=After(1))


def write_caption(name: str, settings: StudySettings) -> str:
    """How many runs on how many draws; one's own setting in front."""
    few, many = settings.runs_in_range, settings.runs
    if name == "beyond":
        return f"{few} runs at every point, {many} in (e); each draws the data, the graph and z(0)."
    redrawn = replace(BASES[name], **settings.own).redrawn
    first = "Shown: the first run. Claims: " if name in ("fig1", "fig2") else ""
    runs = f"{many} runs{'' if settings.own else f' ({few} at other settings)'} on one draw of the data and one graph"
    beside = f" Beside it {settings.draws} draws of {redrawn}: mean ± standard deviation." if redrawn else ""
    return f"{settings.setting}{first}{runs}, as in the paper: only z(0) is new in each.{beside}"


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
        write_bytes(folder / name, content)


def tabulate(claims: list[Claim]) -> str:
    """Tables of the paper's claims and of ours, each followed over its range, in Markdown."""
    lines = []
    for heading, group in sort_claims(claims).items():
        draws = len(group[0].draws)
        columns = ["", "one draw", "95% interval", "holds", f"{draws} draws", "holds in"]
        columns = columns if draws else ["", "measured", "95% interval", "holds"]
        lines += [f"**{heading.capitalize()}**", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for claim in group:
            place = f" ({claim.place})" if claim.place else ""
            lines.append(_line(f"**{claim.text}**{place}", claim))
            lines += [_line(case.at, case) for case in claim.cases]
        lines.append("")
    return "\n".join(lines)


def sort_claims(claims: list[Claim]) -> dict[str, list[Claim]]:
    """The paper's claims and ours, under their headings; without those that have none."""
    ours, quoted = ([claim for claim in claims if bool(claim.place) is has_place] for has_place in (False, True))
    return {name: group for name, group in (("the paper's claims", quoted), ("beyond the paper", ours)) if group}


def show_measured(found: Case) -> tuple[str, str, str, str, str]:
    """Verdict; value, interval, mean and spread over draws, to three digits at most; in how many of these it holds."""
    numbers = [found.value, found.low, found.high]
    numbers += [float(np.mean(found.draws)), float(np.std(found.draws, ddof=1))] if found.draws else []
    value, low, high, *spread = (show_number(round(number, 12) + 0.0, ".3g") for number in numbers)
    interval = "" if found.low == found.high else f"{low} to {high}"
    held = "" if found.held is None or not found.draws else f"{found.held} of {len(found.draws)}"
    verdict = "" if found.held is None else {True: "yes", False: "no", None: "unsure"}[found.holds]
    return verdict, value, interval, " ± ".join(spread), held


def _line(what: str, found: Case) -> str:
    verdict, value, interval, *draws = show_measured(found)
    columns = [what, value, interval, verdict.replace("no", "**no**"), *(draws if found.draws else ())]
    return f"| {' | '.join(columns)} |"


def _picture(figure: Figure, kind: str) -> bytes:
    buffer = BytesIO()
    undated = {"CreationDate": None} if kind == "pdf" else {}  # the same numbers give the same file
    figure.savefig(buffer, format=kind, dpi=160, metadata=undated)
    return buffer.getvalue()
