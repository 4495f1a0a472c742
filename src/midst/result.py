"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from midst.certificate import Certificate
from midst.counting import Proof
from midst.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from midst.problems import Problem


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The answer, whether it is proved, and who gave their value away on the way.

    Attributes:
        value: the answer: a number, or an array with one a coordinate.
        objective: what it is: "median", "low median", "quantile 0.9", "mean" …
        iterations: how many were run.
        certified: whether the answer is proved: by a count, to the last bit, or by the certificate, to its tolerance.
        certificate: what the last x proves.
        proofs: the counts that proved the answer, one a coordinate; None where the run did not end by a count.
        exposed: the nodes whose branch was ever inside, so that their value itself was sent (Theorem 1). For the mean:
            all nodes, since whoever knows z(0) can compute every value.
        error: distance of the value from the nearest right answer, which only a simulation knows.
        trace: the record of the run.
    """

    value: float | NDArray[np.float64]
    objective: str
    iterations: int
    certified: bool
    certificate: Certificate
    proofs: tuple[Proof, ...] | None
    exposed: tuple[int, ...]
    error: float
    trace: Trace
    _problem: Problem = field(repr=False)

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
            "graph": self.trace.graph.name,
            "nodes": self.nodes,
            "edges": self.edges,
            "coordinates": self.trace.x.shape[2] if vector else None,
            "iterations": self.iterations,
            "certified": self.certified,
            "certificate": vars(self.certificate),
            "proofs": None if self.proofs is None else [proof.to_dict() for proof in self.proofs],
            "exposed": list(self.exposed),
            "error": self.error,
            "parameters": self.trace.parameters,
            "public": self._problem.public,
            "seed": self.trace.seed,
            "versions": self.trace.versions,
        }

    def plot(self, *, values: bool = False) -> Figure:
        """Draw the network and x_i(t), plateaus marked where a node sent its value.

        Args:
            values: draw the private values too; they are not shown unless asked for.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from midst.plots import draw_result

        return draw_result(self, self._problem.values if values else None)

    def rows(self) -> list[tuple[str, str]]:
        """The result as lines for people: (what, how much)."""
        who = ", ".join(map(self.trace.graph.label, self.exposed[:12])) + (" …" if len(self.exposed) > 12 else "")
        mean = self.objective == "mean"
        exposure = "every node, to whoever knows z(0)" if mean else f"{len(self.exposed)} of {self.nodes} nodes"
        return [
            (self.objective, _show(self.value)),
            ("proof", self._proof_in_words()),
            ("iterations", f"{self.iterations:,}"),
            ("graph", f"{self.trace.graph.name}, {self.nodes:,} nodes, {self.edges:,} edges"),
            ("exposed", exposure + (f": {who}" if self.exposed and not mean else "")),
            ("error", f"{self.error:.3g} (known in simulation only)"),
        ]

    def _proof_in_words(self) -> str:
        if self.proofs is not None:
            first = self.proofs[0]
            count = f"{first.below} below, {first.ties} equal, {first.above} above"
            where = "" if len(self.proofs) == 1 else " in the first coordinate"
            tries = sum(proof.proposals for proof in self.proofs)
            return f"exact, by count: {count}{where} ({tries} proposal{'s' * (tries != 1)})"
        state = self.certificate
        if state.holds:
            return f"certified to within {state.tolerance:.3g}"
        return f"NOT certified (spread {state.spread:.3g}, tolerance {state.tolerance:.3g})"

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:>{width}}  {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self.rows())
        return f"<table>{cells}</table>"


def _show(value: float | NDArray[np.float64]) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return np.array2string(value, precision=6, threshold=8, separator=", ")
