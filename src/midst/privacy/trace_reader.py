"""Reading a trace: from what was recorded to what is visible of each node.

What is missing may be worked out again: z(0) from the seed it was drawn with, and all messages from z(0) and the
branches. Both are checked against the messages that were kept.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.graphs.neighbour_sums import sum_over_neighbours
from midst.normals import EdgeNormals
from midst.objectives import AuditedObjective, Mean, Objective, Quantile, title_of
from midst.privacy.observations import (
    Branches,
    Heard,
    Public,
    Shifted,
    Spans,
    bounds_of,
    shifted_subgradients,
    spans_of,
    value_inside,
)
from midst.protocol.step import next_sums
from midst.system import noise_on_edges, streams
from midst.trace import Segments, Trace
from midst.types import Array, Bools


class TraceReader:
    """One coordinate of a trace."""

    def __init__(self, trace: Trace, coordinate: int) -> None:
        if not len(trace.t):
            raise InputError("no iteration of this run was recorded; run with record audit")
        self._trace = trace
        self._coordinate = coordinate
        objective, total = trace.objective, int(trace.whole_weights.sum())
        self.smooth = not isinstance(objective, Quantile)
        self.public = Public(
            trace.graph,
            title_of(objective, total),
            isinstance(objective, Quantile) and (objective.exact_q(total) * total).denominator != 1,
            *_slopes(objective, trace),
            trace.whole_weights,
            trace.unit_weight * int(np.gcd.reduce(trace.whole_weights)),
            self._parameter("c"),
            self._parameter("theta"),
            self._parameter("mu"),
            self._parameter("sigma"),
            trace.iterations,
        )
        x = trace.x.reshape(len(trace.t), trace.graph.n, -1)[:, :, coordinate]
        self._last = x[-1]
        self._kept = dict(zip(trace.t.tolist(), x, strict=True))
        self.frames = x if len(trace.t) == trace.iterations else None
        self.z0 = self._find_z0()
        self._subgradients: Array | None = None

    def _parameter(self, name: str) -> float:
        each = np.reshape(self._trace.parameters[name], -1)
        return float(each[self._coordinate if len(each) > 1 else 0])

    def branches(self, node: int) -> Branches:
        """What the branches of a node tell."""
        if (silent := self._silent(node)) is not None:
            return silent
        part = self._segments(node)
        below, above, inside = (part.branch == b for b in (-1, 1, 0))
        lower, upper = float(part.high[below].max(initial=-math.inf)), float(part.low[above].min(initial=math.inf))
        value = value_inside(part.low, inside)
        return Branches(node, float(self._last[node]), lower, upper, value, _spans(part, inside))

    def clearly(self, node: int, sums: tuple[Array, Array] | None) -> Branches:
        """What the messages of a node tell whoever knows z(0)."""
        objective = self._trace.objective
        if isinstance(objective, Quantile):
            return self.branches(node)
        if isinstance(objective, Mean):
            return self._mean_value(node, sums)
        assert isinstance(objective, AuditedObjective), "others were refused"
        return self._own_value(node, objective, sums)

    def _own_value(self, node: int, objective: AuditedObjective, sums: tuple[Array, Array] | None) -> Branches:
        """What every message of a node tells by itself, taken together: see `AuditedObjective`."""
        if sums is None or self.frames is None:
            raise InputError(f"auditing a {objective.name} needs every x and z(0); run with record all")
        if (silent := self._silent(node)) is not None:
            return silent
        if self._subgradients is None:
            self._subgradients = shifted_subgradients(self.public, self.frames, *sums)
        weight = np.array(self._trace.whole_weights[node] * self._trace.unit_weight)
        branch = self._branch(node)
        ends = objective.values_behind(weight, self.frames[:, node], self._subgradients[:, node], branch)
        value = value_inside(ends[0], branch == 0)
        lower, upper = float(ends[0].max()), float(ends[1].min())
        return Branches(node, float(self._last[node]), lower, upper, value, spans_of(branch == 0))

    def _mean_value(self, node: int, sums: tuple[Array, Array] | None) -> Branches:
        """The mean's x update solved for s: every message tells it to whoever knows S."""
        if (silent := self._silent(node)) is not None:
            return silent
        if sums is None or 0 not in self._kept:
            raise InputError("auditing a mean needs z(0), which this trace has not; run with record audit")
        w, cd, x = self.public.curvature[node], self.public.cd[node], self._kept[0][node]
        value = float(((w + cd) * x + sums[0][node]) / w)
        return Branches(node, float(self._last[node]), value=value, inside=((0, self.public.iterations),))

    def heard(self, node: int) -> Heard:
        """Plateaus of a node of which only x is heard; without noise x can repeat by chance, and tells nothing."""
        last = float(self._last[node])
        if self._weightless(node) or self.public.sigma == 0:
            return Heard(node, last)
        part = self._segments(node)
        inside = (part.branch == 0) & (part.stop - part.start >= 2)
        return Heard(node, last, value_inside(part.low, inside), _spans(part, inside))

    def shifted(self, node: int, x: Array, q: Array) -> Shifted:
        """What q tells of a node, in general position (a continuous prior, σ > 0): see `sealed.py`."""
        later, seen = x[1:], Shifted.of(node, x, q)
        left, right = float(self.public.left[node]), float(self.public.right[node])
        if self._weightless(node):
            return replace(seen, shift=float(q[1]))
        branch = self._branch(node)[1:]
        inside = branch == 0
        if not inside.any() and (branch == branch[0]).all():
            return seen  # q is constant: the side is not seen
        seen = replace(seen, value=value_inside(later, inside), inside=spans_of(inside, 1))
        if inside.all():
            return replace(seen, held=(float(q[1:].max()) - right, float(q[1:].min()) + left))
        outside = int(np.argmax(~inside))
        shift = float(q[1 + outside]) - (right if branch[outside] > 0 else -left)
        lower, upper = bounds_of(later, branch > 0, branch < 0)
        return replace(seen, shift=shift, lower=lower, upper=upper)

    def sums(self, known: Bools) -> tuple[Array, Array]:
        """S_i(0) and R_i(0) over the edges whose z(0) is known."""
        graph = self._trace.graph
        if not known.any():
            return np.zeros(graph.n), np.zeros(graph.n)
        if self.z0 is None:
            raise InputError("this adversary knows some of z(0), which this trace has not; run with record audit")
        signed = np.where(known, graph.sign * self.z0, 0.0)
        return tuple(  # type: ignore[return-value]
            np.bincount(graph.source, weights, graph.n) for weights in (signed, signed[graph.reverse])
        )

    @property
    def has_messages(self) -> bool:
        """Whether every x and z(0) are there, or can be worked out."""
        return self.z0 is not None and (self.frames is not None or self._trace.segments is not None)

    def messages(self) -> Array:
        """x(t) of every t: as kept, or worked out again from z(0) and the branches."""
        if self.frames is not None:
            return self.frames
        if self.z0 is None or self._trace.segments is None:
            raise InputError("a sealed audit needs every x or z(0), which this trace has not; run with record audit")
        x = self._replay()
        scale = max(float(np.abs(x).max()), 1.0 / self.public.c)
        if any(np.abs(x[t] - kept).max() > 1e-9 * scale for t, kept in self._kept.items()):
            raise InputError("z(0) and the branches of this trace do not make its messages; run with record audit")
        return x

    def _replay(self) -> Array:
        public = self.public
        S, R = self.sums(np.ones(len(public.graph.source), np.bool_))
        neighbour_sum = sum_over_neighbours(public.graph)
        branch = np.array([self._branch(i) for i in range(public.graph.n)]).T
        value = np.array([self.branches(i).value or 0.0 for i in range(public.graph.n)])
        pull = -np.where(branch > 0, public.right, -public.left)
        x, inside, cd, c = np.empty(branch.shape), branch == 0, public.cd, np.array(public.c)
        for now, at_value, g in zip(x, inside, pull, strict=True):
            np.divide(g - S, cd, out=now)
            np.copyto(now, value, where=at_value)
            S, R = next_sums(S, R, now, neighbour_sum(now), cd, c, public.theta)
        return x

    def _find_z0(self) -> Array | None:
        trace = self._trace
        if trace.z0 is not None:
            return np.asarray(trace.z0.reshape(len(trace.graph.source), -1)[:, self._coordinate])
        if trace.seed is None or trace.graph.ends is None:  # without edges, z(0) was drawn as sums
            return None
        if self.smooth or trace.segments is None or 0 not in self._kept:
            return None
        noise = noise_on_edges(trace.graph, EdgeNormals.drawn(streams(trace.seed).z0, shape=trace.x.shape[2:]))
        column = noise.reshape(len(noise), -1)[:, self._coordinate]
        z0 = np.asarray(self.public.mu * trace.graph.sign + self.public.sigma * column)
        return z0 if self._explains_first(z0) else None

    def _explains_first(self, z0: Array) -> bool:
        """Whether z(0) makes the first message of every node that was outside."""
        public, x = self.public, self._kept[0]
        branch = np.array([self._branch(i)[0] for i in range(public.graph.n)])
        S = np.bincount(public.graph.source, public.graph.sign * z0, public.graph.n)
        expected = (np.where(branch > 0, -public.right, public.left) - S) / public.cd
        near = np.abs(x - expected) <= 1e-9 * np.maximum(np.abs(x), 1 / public.cd)
        return bool((near | (branch == 0)).all())

    def _silent(self, node: int) -> Branches | None:
        """A node that sends nothing about its value, or of which another participant's record has nothing."""
        if self._trace.own not in (None, node):
            return Branches(node, 0.0)
        return Branches(node, float(self._last[node])) if self._weightless(node) else None

    def _weightless(self, node: int) -> bool:
        return int(self._trace.whole_weights[node]) == 0

    def _segments(self, node: int) -> Segments:
        segments = self._trace.segments
        if segments is None:
            raise InputError("this trace has no segments; run with record audit")
        start, stop = np.searchsorted(segments.node, (node, node + 1))
        rows = start + np.flatnonzero(segments.coordinate[start:stop] == self._coordinate)
        return Segments(**{name: column[rows] for name, column in vars(segments).items()})

    def _branch(self, node: int) -> NDArray[np.int8]:
        part = self._segments(node)
        return np.repeat(part.branch, part.stop - part.start)


def _slopes(objective: Objective, trace: Trace) -> tuple[Array, Array, Array]:
    """Left and right slope and curvature, one a node; not numbers where the objective is somebody's own.

    Raises:
        InputError: it is, and nobody has worked out what it tells.
    """
    if isinstance(objective, Quantile | Mean):
        return objective.slopes(trace.whole_weights, trace.unit_weight)
    if not isinstance(objective, AuditedObjective):
        raise InputError(f"what messages about a {objective.name} tell is not worked out, so there is no audit of them")
    return (np.full(trace.graph.n, np.nan),) * 3


def _spans(part: Segments, inside: Bools) -> Spans:
    return tuple(zip(part.start[inside].tolist(), part.stop[inside].tolist(), strict=True))
