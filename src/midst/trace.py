"""The record of a run: what happened, and nothing about what it means.

Rules:
- A trace is frozen. What was observed in a step is recorded and never read back by the run.
- x and branch are kept for the iterations in `t`; the segments tell every branch of every iteration, run-length coded,
  with the least and greatest x of each run: what an audit needs, in memory that does not grow with the iterations.
- z(0) and the private values are in it only where they were asked for.
- A saved trace is an npz file with a JSON manifest; it is written whole or not at all. A graph whose edges are not in
  memory is saved without them.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from midst._version import __version__
from midst.errors import InputError, TraceError, closest
from midst.files import write_whole
from midst.frames import make_frame
from midst.graphs import Graph
from midst.objectives import Mean, Objective, Quantile, title_of
from midst.protocol.keys import Floats, Grid, Keys, Words
from midst.protocol.search import Cells, SearchStep
from midst.protocol.step import UNKNOWN
from midst.rows import Report
from midst.types import Array, Bools, Branch, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from midst.plots.style import Width

FORMAT = 2  # of the file; a change of meaning counts up
_SEGMENT = "segment_"  # before the names of their arrays in a file
_SHOWN = 4  # answers, of many coordinates

_OPTIONAL = ("z0", "values", "places", "owners")  # arrays

TraceRows = Literal["iterations", "probes"]
TRACE_ROWS: tuple[TraceRows, ...] = get_args(TraceRows)


@dataclass(frozen=True, eq=False)
class Segments:
    """Maximal runs of iterations in which a node stayed on one branch, in order of (node, coordinate, start).

    Attributes:
        node: whose.
        coordinate: of which coordinate (0 for scalars).
        start: first iteration.
        stop: one past the last.
        branch: −1 (x < s), 0 (inside: x = s was sent) or +1 (x > s).
        low: least x sent in the run, in the units of the data.
        high: greatest.
    """

    node: Ints
    coordinate: Ints
    start: Ints
    stop: Ints
    branch: Branch
    low: Array = field(repr=False)
    high: Array = field(repr=False)


@dataclass(frozen=True)
class Probe:
    """What a search made public of one bracket: how much weight lies in each of its cells.

    A probe unpacks into (thresholds, totals), K thresholds and K + 1 totals.

    Attributes:
        step: in which step of the search, from 0 on.
        coordinate: of which coordinate (0 for scalars).
        keys: what the edges are keys of.
        edges: the bracket's lower end, the thresholds and its upper end, as keys: cell k is (edges[k], edges[k + 1]].
        totals: the weight in each cell, in units.
    """

    step: int
    coordinate: int
    keys: Keys
    edges: tuple[int, ...]
    totals: tuple[int, ...]

    @property
    def thresholds(self) -> tuple[float, ...]:
        """In the units of the data."""
        return tuple(self.keys.value(edge) for edge in self.edges[1:-1])

    def __iter__(self) -> Iterator[tuple[float, ...] | tuple[int, ...]]:
        return iter((self.thresholds, self.totals))


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Report):
    """What happened in a run.

    Attributes:
        graph: who talked to whom.
        objective: what was sought.
        whole_weights: weights as whole numbers of `unit_weight`.
        unit_weight: the public unit of the weights.
        parameters: c, theta, mu, sigma and scale, each a number or a list with one a coordinate; of a search, its arity
            and spacing, and where there was noise, what it keeps to and its variance.
        iterations: how many were run: t = 0 … iterations − 1; 0 of a search.
        t: the iterations whose x and branch are kept.
        x: shape (len(t), n) or (len(t), n, m), in the units of the data.
        branch: the same shape; 2 where nobody has worked out what x tells, of an objective of somebody's own.
        segments: every branch of every iteration; None where recording was "none".
        probes: everything that a search made public, in order, but for the answer; of one with noise, which is not
            audited, none.
        answer: what a search found, one number a coordinate; None where there was none.
        places: where each value lies, as only a simulation knows: the number of edges, of all probes of its coordinate
            and of the answer's own cell, that are below it. Of the shape of the values.
        owners: whose each value is, where participants have brought lists; None where each has one.
        own: the participant whose record this is, who knows of no iteration but its own; None of a simulation's.
        seed: what z(0) was drawn from, where that was a number.
        z0: z_{source|target}(0), where asked for.
        values: the private values, where asked for.
        versions: of midst and numpy.
    """

    graph: Graph
    objective: Objective
    whole_weights: Ints
    unit_weight: float
    parameters: dict[str, Any]
    iterations: int
    t: Ints
    x: Array
    branch: Branch
    segments: Segments | None = None
    probes: tuple[Probe, ...] = ()
    answer: tuple[float, ...] | None = None
    places: Ints | None = None
    owners: Ints | None = None
    own: int | None = None
    seed: int | None = None
    z0: Array | None = None
    values: Array | None = None
    versions: dict[str, str] = field(default_factory=lambda: {"midst": __version__, "numpy": np.__version__})

    def __repr__(self) -> str:
        searched = f", {len(self.probes)} probes" if self.probes else ""
        run = (
            f"{self.iterations} iterations, {len(self.t)} kept{searched}" if self.iterations else f"a search{searched}"
        )
        return f"<Trace: {self.objective.name} over {self.graph!r}, {run}>"

    @property
    def tells(self) -> bool:
        """Whether it is known what x tells: always, but for some objectives of people's own."""
        return not np.equal(self.branch, UNKNOWN).any()

    @property
    def total(self) -> int:
        """The weight of all values of a coordinate, in units."""
        return int((self.whole_weights if self.owners is None else self.whole_weights[self.owners]).sum())

    @property
    def title(self) -> str:
        """What was sought, in words; where there are two answers, which of them."""
        return title_of(self.objective, self.total)

    def rows(self) -> list[tuple[str, str]]:
        """The record as lines for people: (what, how much)."""
        graph = self.graph
        rows = [("sought", self.title), ("graph", f"{graph.name}, {graph.n:,} nodes, {graph.edges:,} edges")]
        if self.iterations:
            rows.append(("iterations", f"{self.iterations:,}, of which x of {len(self.t):,} is kept"))
        if self.probes:
            rows.append(("probes", f"{len(self.probes):,}"))
        if self.answer is not None:
            more = " …" if len(self.answer) > _SHOWN else ""
            rows.append(("found", ", ".join(f"{each:.10g}" for each in self.answer[:_SHOWN]) + more))
        rows += [(name, _show_parameter(value)) for name, value in self.parameters.items()]
        if self.seed is not None:
            rows.append(("seed", str(self.seed)))
        kept = [name for name, held in (("the private values", self.values), ("z(0)", self.z0)) if held is not None]
        return [*rows, ("kept besides", " and ".join(kept) or "nothing")]

    @overload
    def plot(self, ax: None = None, *, values: bool = False, width: Width | None = None) -> Figure: ...
    @overload
    def plot(self, ax: Axes, *, values: bool = False) -> Axes: ...
    def plot(self, ax: Axes | None = None, *, values: bool = False, width: Width | None = None) -> Figure | Axes:
        """Draw x_i(t), plateaus marked where a node sent its value; of a search, how it closed in.

        Args:
            ax: axes of matplotlib to draw into; returned, then.
            values: draw the private values too, where the record holds them.
            width: of the figure: "column" or "page" of a journal; for a screen if not given.

        Raises:
            InputError: there is nothing to draw, or the record does not hold the values.
            MissingExtra: matplotlib is not installed.
        """
        from midst.plots.results import draw_trace

        if values and self.values is None:
            raise InputError("the record does not hold the private values; keep_values puts them there")
        return draw_trace(self, self.values if values else None, ax=ax, width=width)

    def to_pandas(self, rows: TraceRows = "iterations") -> DataFrame:
        """What happened, as a tidy frame.

        Of iterations a row is what a node sent in one: `t`, `node`, `coordinate`, `x`, `branch` (−1, 0, 1) and
        `inside`, whether x was its own value; and `private_value`, where the record holds the values. Of probes a row
        is a cell: `step`, `coordinate`, `cell`, the `lowest` and the `highest` number in it, and `total`, the weight of
        the values that lie there.

        Args:
            rows: "iterations", those whose x was kept; or "probes", of a search.

        Raises:
            InputError: the record has none of these.
            MissingExtra: pandas is not installed.
        """
        if rows not in TRACE_ROWS:
            raise InputError(f"rows must be {' or '.join(TRACE_ROWS)}{closest(rows, TRACE_ROWS)}")
        there = {"iterations": len(self.t), "probes": len(self.probes)}
        if not there[rows]:
            other = next((f"; try rows {name}" for name, count in there.items() if count), "")
            raise InputError(f"the record has no {rows}{other}")
        return make_frame(_probe_columns(self.probes) if rows == "probes" else _iteration_columns(self))

    @property
    def inside(self) -> Bools:
        """Whether s_i was inside its interval, so that x_i = s_i was sent; the shape of x."""
        return np.equal(self.branch, 0)

    def save(self, path: str | Path) -> None:
        """Write the trace to an npz file, whole or not at all.

        Raises:
            InputError: the folder does not exist or cannot be written, or the objective is somebody's own, which no
                file can hold.
        """
        if not isinstance(self.objective, Quantile | Mean):
            raise InputError(f"no file can hold what was sought, a {self.objective.name}; keep what you need of it")
        arrays: dict[str, Any] = {"counts": self.whole_weights, "t": self.t, "x": self.x, "branch": self.branch}
        if self.graph.ends is not None:  # else it is complete, and its edges are not in memory
            arrays |= {"source": self.graph.ends[0], "target": self.graph.ends[1]}
        optional = {name: getattr(self, name) for name in _OPTIONAL} | {"positions": self.graph.positions}
        arrays |= {name: array for name, array in optional.items() if array is not None}
        if self.segments is not None:
            arrays |= {f"{_SEGMENT}{name}": array for name, array in vars(self.segments).items()}
        manifest = {
            "format": "midst-trace",
            "format_version": FORMAT,
            "versions": self.versions,
            "graph": {name: getattr(self.graph, name) for name in ("name", "n", "labels")}
            | {"listed": self.graph.ends is not None},
            "objective": _describe(self.objective),
            "unit_weight": self.unit_weight,
            "parameters": self.parameters,
            "iterations": self.iterations,
            "own": self.own,
            "seed": self.seed,
            "resolution": next((str(probe.keys.step) for probe in self.probes if isinstance(probe.keys, Grid)), None),
            "probes": [[probe.step, probe.coordinate, probe.edges, probe.totals] for probe in self.probes],
            "answer": self.answer,
        }
        arrays["manifest"] = np.array(json.dumps(manifest))
        write_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def _iteration_columns(trace: Trace) -> dict[str, Any]:
    """Of every kept iteration, node and coordinate, in this order."""
    shape = (*trace.x.shape, 1)[:3]
    t, node, coordinate = (index.reshape(-1) for index in np.indices(shape))
    names = np.array(trace.graph.names(range(trace.graph.n)))
    columns = {
        "t": trace.t[t],
        "node": names[node],
        "coordinate": coordinate,
        "x": trace.x.reshape(-1),
        "branch": trace.branch.reshape(-1),
        "inside": trace.inside.reshape(-1),
    }
    if trace.values is not None and trace.owners is None:
        columns["private_value"] = np.broadcast_to(trace.values.reshape(shape[1:]), shape).reshape(-1)
    return columns


def _probe_columns(probes: Sequence[Probe]) -> dict[str, Any]:
    """Of every cell of every probe."""
    cells = [
        (probe.step, probe.coordinate, cell, probe.keys.value(below + 1), probe.keys.value(highest), total)
        for probe in probes
        for cell, ((below, highest), total) in enumerate(zip(pairwise(probe.edges), probe.totals, strict=True))
    ]
    return dict(
        zip(("step", "coordinate", "cell", "lowest", "highest", "total"), zip(*cells, strict=True), strict=True)
    )


def _show_parameter(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)}, one a coordinate"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def load(path: str | Path) -> Trace:
    """Read a trace that `Trace.save` wrote.

    Raises:
        TraceError: there is no such file, it is not a trace, it is damaged, or it is of a newer format.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            manifest = json.loads(str(archive["manifest"]))
            arrays = {name: archive[name] for name in archive.files if name != "manifest"}
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or 'not a trace file'}") from None
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, AttributeError, TypeError):
        raise TraceError(f"{path}: not a midst trace, or a damaged one") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "midst-trace":
        raise TraceError(f"{path}: not a midst trace")
    if manifest.get("format_version") != FORMAT:
        found = manifest.get("format_version")
        raise TraceError(f"{path}: trace format {found}, this midst reads {FORMAT}; made by {manifest.get('versions')}")
    try:
        return _assemble(manifest, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path}: damaged trace ({type(error).__name__})") from None


def _describe(objective: Quantile | Mean) -> dict[str, str]:
    if isinstance(objective, Quantile):
        return {"kind": "quantile", "q": str(objective.q), "definition": objective.definition}
    return {"kind": "mean"}


def _assemble(manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Trace:
    described = manifest["objective"]
    objective: Quantile | Mean = (
        Quantile(Fraction(described["q"]), described["definition"]) if described["kind"] == "quantile" else Mean()
    )
    about = manifest["graph"]
    graph = Graph(
        about["n"],
        (arrays["source"], arrays["target"]) if about.get("listed", True) else None,
        about["name"],
        None if about["labels"] is None else tuple(about["labels"]),
        arrays.get("positions"),
    )
    segments = {name[len(_SEGMENT) :]: array for name, array in arrays.items() if name.startswith(_SEGMENT)}
    keys = Floats() if manifest["resolution"] is None else Grid(Fraction(manifest["resolution"]))
    trace = Trace(
        graph=graph,
        objective=objective,
        whole_weights=arrays["counts"],
        unit_weight=float(manifest["unit_weight"]),
        parameters=manifest["parameters"],
        iterations=int(manifest["iterations"]),
        t=arrays["t"],
        x=arrays["x"],
        branch=arrays["branch"],
        segments=Segments(**segments) if segments else None,
        probes=tuple(
            Probe(step, k, keys, tuple(edges), tuple(totals)) for step, k, edges, totals in manifest["probes"]
        ),
        answer=None if manifest["answer"] is None else tuple(map(float, manifest["answer"])),
        own=manifest.get("own"),
        seed=manifest["seed"],
        versions=manifest["versions"],
        **{name: arrays.get(name) for name in _OPTIONAL},
    )
    kept = (len(trace.t), graph.n)
    if trace.x.shape[:2] != kept or trace.branch.shape != trace.x.shape or len(trace.whole_weights) != graph.n:
        raise ValueError("shapes disagree")
    return trace


def refuse_sum(trace: Trace) -> None:
    """Refuse a mean that a search found: its one masked sum has no probes to draw, and no audit yet.

    Raises:
        InputError: the trace is of one.
    """
    if isinstance(trace.objective, Mean) and not trace.iterations:
        raise InputError(
            "a mean by search is one masked sum: there is no audit or picture of it yet; midst.describe(values, graph, "
            "['mean']).leakage() tells its bits"
        )


# What a search made public


def probes_of(keys: Keys, steps: Sequence[SearchStep]) -> tuple[Probe, ...]:
    """What a search made public, but for the answer: the totals of the cells of every bracket asked about."""
    return tuple(
        Probe(number, part.coordinate, keys, part.edges, totals)
        for number, step in enumerate(steps)
        for part, totals in step.parts()
        if isinstance(part, Cells)
    )


def places_of(probes: Sequence[Probe], answers: Sequence[int], keys: Words) -> Ints:
    """Where each value lies among all that was made public; see `Trace.places`.

    An edge that several probes share counts once.

    Args:
        probes: of the search.
        answers: of each coordinate, the key of what was found.
        keys: of the values, (N, m), or (N,) of one coordinate.
    """
    places = np.empty(keys.shape, np.int64)
    for k, (own, found) in enumerate(zip(_columns(keys), _columns(places), strict=True)):
        edges = {edge for probe in probes if probe.coordinate == k for edge in probe.edges}
        edges.update((answers[k] - 1, answers[k]))
        found[:] = np.searchsorted(np.array(sorted(edges), np.uint64), own, "left")
    return places


def _columns(array: NDArray[Any]) -> list[NDArray[Any]]:
    return [array] if array.ndim == 1 else list(array.T)
