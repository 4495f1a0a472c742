"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from midst.errors import InputError
from midst.frames import make_frame
from midst.methods import MethodName, is_searchable
from midst.objectives import Quantile
from midst.protocol.certificate import Certificate
from midst.protocol.noise import JointNoise, expected_in_words
from midst.rows import Report, count_named
from midst.trace import Trace
from midst.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from midst.plots.style import Width
    from midst.privacy.priors import Prior
    from midst.problems import Bounds


ResultPanel = Literal["course", "network"]
_COLUMNS = """
    objective method graph nodes edges coordinate value rounds iterations probes certified exposed error public seed
""".split()


class Standing(NamedTuple):
    """Where an answer stands among all values, in units of weight."""

    below: int
    equal: int
    above: int


@dataclass(frozen=True)
class NoiseKept:
    """What the noise of a search keeps to, and what it costs.

    Attributes:
        promise: what it keeps to.
        variance: of the noise that those who do not collude have added to each number.
        probes: in how many questions.
        rank_error: how far off the answer's rank is to be expected, as a share of all values; from above.
    """

    promise: JointNoise
    variance: Fraction
    probes: int
    rank_error: float

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        told = {"variance": str(self.variance), "probes": self.probes, "rank_error": self.rank_error}
        return {**vars(self.promise), **told}

    def in_words(self) -> str:
        """For people."""
        return f"{self.promise.describe()}; {expected_in_words(self.rank_error)}"


@dataclass(frozen=True, eq=False, repr=False)
class Result(Report):
    """The answer, whether it is proved, and who gave their value away on the way.

    A pickle or a copy of it holds no private value, unless the trace holds them.

    Attributes:
        value: the answer: a number, or an array with one a coordinate.
        objective: what it is: "median", "low median", "quantile 0.9", "mean" …
        method: how it was found: "search", "consensus" or "paper".
        iterations: how many updates of x were made; 0 for a search.
        rounds: how many rounds of messages it took, whatever the method.
        probes: questions of a search, the sum that ends it included; 0 where there was none.
        certified: whether the answer is proved: by the totals of a search, to the last bit, or by the certificate, to
            its tolerance.
        certificate: what the last x proves; None where a search was to prove the answer.
        standing: where a search proved the answer, how much weight lies below it, at it and above it, one a coordinate.
        error: distance of the value from the nearest right answer, which only a simulation knows.
        trace: the record of the run.
        noise: where a search was asked for with noise, what that keeps to; nothing then proves the answer.
    """

    value: float | Array
    objective: str
    method: MethodName
    iterations: int
    rounds: int
    probes: int
    certified: bool
    certificate: Certificate | None
    standing: tuple[Standing, ...] | None
    error: float
    trace: Trace
    _exposed: tuple[int, ...]
    _public: str
    _bounds: Bounds | None
    _values: Array | None
    noise: NoiseKept | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_values": self.trace.values}

    @property
    def exposed(self) -> tuple[int | str, ...]:
        """The nodes whose branch was ever inside, so that their value itself was sent (Theorem 1). By a search: nobody.

        They have their names: labels, or numbers where the graph has no labels.

        For the mean by the iteration: all nodes, since an observer of z(0) can compute every value. For a Huber
        location: the nodes whose value such an observer can compute.

        Raises:
            InputError: of this objective, which is somebody's own, nobody has worked out what x tells.
        """
        if not self.trace.tells:
            raise InputError(f"who was exposed is not known: nobody has worked out what x tells of a {self.objective}")
        return self.trace.graph.names(self._exposed)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.trace.graph.n

    @property
    def edges(self) -> int:
        """The number of undirected edges."""
        return self.trace.graph.edges

    def to_dict(self) -> dict[str, Any]:
        """Everything but the trace, as plain Python values ready for JSON."""
        vector = isinstance(self.value, np.ndarray)
        return {
            "value": self.value.tolist() if isinstance(self.value, np.ndarray) else self.value,
            "objective": self.objective,
            "method": self.method,
            "graph": self.trace.graph.name,
            "nodes": self.nodes,
            "edges": self.edges,
            "coordinates": self.trace.x.shape[2] if vector else None,
            "rounds": self.rounds,
            "iterations": self.iterations,
            "probes": self.probes,
            "certified": self.certified,
            "certificate": None if self.certificate is None else vars(self.certificate),
            "standing": None if self.standing is None else [each._asdict() for each in self.standing],
            "exposed": list(self.exposed) if self.trace.tells else None,
            "error": self.error,
            "noise": None if self.noise is None else self.noise.to_dict(),
            "parameters": self.trace.parameters,
            "public": self._public,
            "seed": self.trace.seed,
            "versions": self.trace.versions,
        }

    @overload
    def plot(
        self, ax: None = None, *, values: bool = False, of: ResultPanel | None = None, width: Width | None = None
    ) -> Figure: ...
    @overload
    def plot(self, ax: Axes, *, values: bool = False, of: ResultPanel | None = None) -> Axes: ...
    def plot(
        self, ax: Axes | None = None, *, values: bool = False, of: ResultPanel | None = None, width: Width | None = None
    ) -> Figure | Axes:
        """Draw the network and x_i(t), plateaus marked where a node sent its value; of a search, how it closed in.

        Args:
            ax: axes of matplotlib to draw one of the two into, the course if not said otherwise; returned, then.
            values: draw the private values too; they are not shown unless asked for.
            of: "course" or "network": that alone.
            width: of the figure: "column" or "page" of a journal; for a screen if not given.

        Raises:
            InputError: there is nothing to draw, or what is asked for is not there, as are values in a copy.
            MissingExtra: matplotlib is not installed.
        """
        from midst.plots.results import draw_result

        self._check_values(values)
        return draw_result(self, self._values if values else None, ax=ax, of=of, width=width)

    def to_pandas(self) -> DataFrame:
        """The run as a row, to be put under others; of vectors a row a coordinate.

        Columns: `objective`, `method`, `graph`, `nodes`, `edges`, `coordinate`, `value`, `rounds`, `iterations`,
        `probes`, `certified`, `exposed` (how many nodes), `error` (of the worst coordinate), `public` and `seed`.

        Raises:
            MissingExtra: pandas is not installed.
        """
        values = np.ravel(self.value)
        own = {"coordinate": np.arange(len(values)), "value": values, "exposed": len(self.exposed)}
        told = self.to_dict() | own
        return make_frame({name: told[name] for name in _COLUMNS})

    @overload
    def page(self, path: None = None, *, values: bool = ..., prior: Prior | None = ...) -> str: ...
    @overload
    def page(self, path: str | Path, *, values: bool = ..., prior: Prior | None = ...) -> None: ...
    def page(self, path: str | Path | None = None, *, values: bool = False, prior: Prior | None = None) -> str | None:
        """Make the explorer's page of this run: one HTML file, to be opened anywhere, that asks no other address.

        Of vectors it shows the first coordinate.

        Args:
            path: where to write it; it is returned, as text, if not given.
            values: put the private values into it; they are not there unless asked for.
            prior: for bits: what is believed of a value beforehand; uniform between the public bounds if not given,
                normal about the result where there are none.

        Raises:
            InputError: there is more than a page holds, the record or this copy does not have what is to be shown,
                there was noise on the totals, or no page can be written there.
        """
        from midst.explorer.page import check_page, make_page, save_page
        from midst.explorer.replay import check_shown, pack_result

        check_shown(self.trace, values)
        self._check_values(values)
        if path is not None:
            check_page(path)
        page = make_page([pack_result(self, self._values, self._bounds, prior)], values=values)
        if path is None:
            return page
        save_page(page, path)
        return None

    def _check_values(self, wanted: bool) -> None:
        if wanted and self._values is None:
            raise InputError("this copy of a result has no private values; try solve with keep_values")

    def rows(self) -> list[tuple[str, str]]:
        """The result as lines for people: (what, how much)."""
        graph = self.trace.graph
        rows = [
            (self.objective, _show(self.value)),
            ("method", self._method_in_words()),
            ("proof", self._proof_in_words()),
        ]
        if self.noise is not None:
            rows.append(("noise", self.noise.in_words()))
        if self.iterations:
            rows.append(("iterations", f"{self.iterations:,}"))
        return [
            *rows,
            ("rounds", f"{self.rounds:,}"),
            ("graph", f"{graph.name}, {self.nodes:,} nodes, {self.edges:,} edges"),
            ("exposed", self._exposed_in_words()),
            ("error", f"{self.error:.3g} (known in simulation only)"),
        ]

    def _method_in_words(self) -> str:
        if self.method != "consensus" or is_searchable(self.trace.objective, self.trace.total):
            return self.method
        return f"{self.method}: no search finds a {self.objective}"

    def _exposed_in_words(self) -> str:
        if self.method == "search":
            return "nobody"
        if self.objective == "mean":
            return "every node, to an observer of z(0)"
        if not self.trace.tells:
            return "not known: nobody has worked out what x tells"
        own = not isinstance(self.trace.objective, Quantile)
        known = "nodes, to whoever knows z(0)" if own and self.exposed else "nodes"
        return count_named(map(str, self.exposed), self.nodes, known)

    def _proof_in_words(self) -> str:
        if self.standing is not None:
            probes, first, sought = self.probes, self.standing[0], self.trace.objective
            one_value = isinstance(sought, Quantile) and sought.is_one_value(self.trace.total)
            between = "equal" if one_value else "in the middle"
            counts = f"{first.below} below, {first.equal} {between}, {first.above} above"
            where = "" if len(self.standing) == 1 else " in the first coordinate"
            return f"exact, by the totals of {probes} probe{'s' * (probes != 1)}: {counts}{where}"
        if self.method == "search" and self.noise is None:
            return "exact, by one masked sum of all values"
        if self.noise is not None:
            return f"none: every total of {self.probes} probe{'s' * (self.probes != 1)} had noise on it"
        state = self.certificate
        if state is None:
            return "NOT certified (x did not come close enough for a search)"
        if state.holds:
            return f"certified to within {state.tolerance:.3g}"
        return f"NOT certified (spread {state.spread:.3g}, tolerance {state.tolerance:.3g})"


def _show(value: float | Array) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return np.array2string(value, precision=6, threshold=8, separator=", ")
