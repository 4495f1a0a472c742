"""A sweep that is done: its table, what matters of every cell, a picture."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from midst.frames import read_frame
from midst.studies.sweep.spec import DEFAULTS, WORDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from midst.plots.style import Width

SweepPanel = Literal["rounds", "exposed", "bits"]

RUNS, PARQUET = "runs.csv", "runs.parquet"
_OF_ITERATION, _OF_SEARCH = ("c", "theta", "mu", "sigma"), ("arity",)
_TYPES = dict.fromkeys(WORDS, "str") | {"arity": "Int64", "certain": "Int64"}


@dataclass(frozen=True)
class CellSummary:
    """What matters of a cell of the grid.

    Attributes:
        cell: its number.
        settings: those that are not the same in all cells, in words; without one that its method has no use for.
        runs: how many.
        certified: of these, how many ended with a proof.
        rounds: of messages, in the median.
        fewest_rounds: one run of ten took no more.
        most_rounds: nine runs of ten took no more.
        exposed: the share of nodes that sent their own value, in the mean.
        error: the largest of all runs.
        bits: a node, in the mean; None where nobody listened.
    """

    cell: int
    settings: Mapping[str, str]
    runs: int
    certified: int
    rounds: float
    fewest_rounds: float
    most_rounds: float
    exposed: float
    error: float
    bits: float | None

    @property
    def name(self) -> str:
        """The cell in words."""
        return self.name_without(None)

    def name_without(self, left_out: str | None) -> str:
        """The cell in words, one setting left out: those that are words by themselves, numbers with what they are."""
        told = {name: value for name, value in self.settings.items() if name != left_out}
        if told.get("adversary") == "none":
            told["adversary"] = "nobody listens"
        return ", ".join(value if name in WORDS else f"{name} {value}" for name, value in told.items()) or "all runs"


@dataclass(frozen=True)
class Sweep:
    """A sweep that is done.

    Attributes:
        folder: where its tables are.
        cells: of the grid.
        computed: of these, now; the others had been done before.
        runs: rows of the table.
        certified: of these, how many ended with a proof.
        tables: the files.
    """

    folder: Path
    cells: int
    computed: int
    runs: int
    certified: int
    tables: tuple[str, ...]

    @cached_property
    def summary(self) -> tuple[CellSummary, ...]:
        """What matters of every cell, in order."""
        with (self.folder / RUNS).open(encoding="utf-8", newline="") as file:
            cells = [list(rows) for _, rows in groupby(csv.DictReader(file), key=lambda row: row["cell"])]
        firsts = [rows[0] for rows in cells]
        varying = [name for name in DEFAULTS if len({row[name] for row in firsts if _has_use(row, name)}) > 1]
        return tuple(_summarise(rows, varying) for rows in cells)

    def to_pandas(self) -> DataFrame:
        """A row a run, of every cell.

        Columns: `cell`, what was set (`graph`, `n`, `method`, `arity`, `c`, `theta`, `mu`, `sigma`, `objective`,
        `prior`, `adversary`), `run`, and what came out (`rounds`, `iterations`, `probes`, `certified`, `error`,
        `exposed` nodes; where somebody listened, `certain`, of how many nodes it knows the value, and `bits` a node).

        Raises:
            MissingExtra: pandas is not installed.
        """
        return read_frame(self.folder / RUNS, _TYPES)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows of the table, ready for JSON."""
        counts = {name: getattr(self, name) for name in ("cells", "computed", "runs", "certified", "tables")}
        return counts | {"summary": [asdict(cell) for cell in self.summary]}

    @overload
    def plot(self, ax: None = None, *, of: SweepPanel | None = None, width: Width | None = None) -> Figure: ...
    @overload
    def plot(self, ax: Axes, *, of: SweepPanel | None = None) -> Axes: ...
    def plot(
        self, ax: Axes | None = None, *, of: SweepPanel | None = None, width: Width | None = None
    ) -> Figure | Axes:
        """Draw rounds, exposed nodes and, where somebody listened, bits of every cell.

        Where the grid has numbers along which all cells lie (n, c …), along these; else a line a cell.

        Args:
            ax: axes of matplotlib to draw one of them into, the rounds if not said otherwise; returned, then.
            of: "rounds", "exposed" or "bits": that alone.
            width: of the figure: "column" or "page" of a journal; for a screen if not given.

        Raises:
            InputError: what is asked for is not there.
            MissingExtra: matplotlib is not installed.
        """
        from midst.plots.sweeps import draw_sweep

        return draw_sweep(self.summary, ax=ax, of=of, width=width)


def _summarise(rows: Sequence[Mapping[str, str]], varying: Sequence[str]) -> CellSummary:
    first = rows[0]
    rounds, exposed, error = (np.array([float(row[name]) for row in rows]) for name in ("rounds", "exposed", "error"))
    bits = [float(row["bits"]) for row in rows if row["bits"]]
    return CellSummary(
        cell=int(first["cell"]),
        settings={name: first[name] or "chosen" for name in varying if _has_use(first, name)},
        runs=len(rows),
        certified=sum(row["certified"] == "True" for row in rows),
        rounds=float(np.median(rounds)),
        fewest_rounds=float(np.quantile(rounds, 0.1, method="inverted_cdf")),
        most_rounds=float(np.quantile(rounds, 0.9, method="inverted_cdf")),
        exposed=float(exposed.mean()) / int(first["n"]),
        error=float(error.max()),
        bits=float(np.mean(bits)) if bits else None,
    )


def _has_use(row: Mapping[str, str], name: str) -> bool:
    """Whether the method of a run has use for a setting."""
    return name not in (_OF_ITERATION if row["method"] == "search" else _OF_SEARCH)
