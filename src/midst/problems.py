"""A problem: who talks to whom, what each holds, what is to be found, and what everybody knows about the data.

Rules:
- All validation of values, weights and public knowledge is here, and happens before anything else does.
- Numbers are read by `columns.as_numbers`: nothing is guessed, and no digit is lost in silence.
- Errors name the node, never the number.
- `scale` and `centre` are public. The parameter c has the unit 1/data (median), so it is chosen relative to the scale;
  the iteration starts near the centre, because z(0) ~ N(−c·centre·A_ij, σ²) makes x(0) ≈ centre.
- In a simulation that says nothing about the data, both are read off the data, and the problem says so (`public` is
  "estimated"). A network of real parties cannot do that: it has to agree on a scale or on bounds. A search needs
  neither: it begins with the public bounds, or with all floats, and never with anything read off the data.
- At a public resolution the right answer is that of the values rounded to it. `values` stays as given.
- Lists (`pooled`) are laid end to end; `owners` says whose each value is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from copy import copy
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from midst.columns import Read, as_numbers
from midst.errors import InputError
from midst.graphs import Graph
from midst.objectives import Mean, Objective, OwnObjective, Quantile, built_in, title_of, total_subgradients
from midst.protocol.keys import Floats, Grid, SumGrid, Words, exact_grid, first_bracket, make_keys
from midst.protocol.step import OwnTerms, Terms, make_terms
from midst.types import Array, Bools, Ints

Bounds = tuple[Array, Array]
Name = Callable[[int], str]  # of a node, in an error
# n numbers, n rows of m, or n lists; in the order of the nodes, or by their names
Values = ArrayLike | Sequence[ArrayLike] | Mapping[Any, ArrayLike]

_WIDTHS_PER_SCALE = 4  # public bounds are taken as four scales wide: N(0, 1) data between −2 and 2
_SMALLEST, _LARGEST = 1e-300, 1e300  # the range of scales: beyond it 1/scale is not a normal number
_DOUBLINGS = 64  # of where an answer is looked for, until it is there
_EASY = 20  # powers of two: scales from 1e-6 to 1e6 are worked with as they are
_HEAVIEST = 2**50  # the largest total weight in units: exact as a float, and room for sums in int64


class Problem:
    """A graph, a value a node, and an objective. Not to be changed once made; its arrays are read-only.

    Attributes:
        graph: who talks to whom; connected.
        values: shape (n,), or (n, m) for m coordinates, each solved by itself; all values in one array where pooled.
        owners: whose each value is, where lists are pooled; None where each node has one.
        objective: what is to be found.
        whole_weights: each node's weight as a whole number of `unit_weight`.
        unit_weight: the public unit of the weights.
        bounds: public: a lower and an upper bound, each one number or one a coordinate; None where not given.
        public: "given", or "estimated" where scale and centre were read off the values, as only a simulation can.
        keys: how a search orders numbers: every float by itself, or multiples of the public resolution.
    """

    def __init__(
        self,
        graph: Graph,
        values: Values,
        *,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        weight_unit: float | None = None,
        objective: Objective | None = None,
        scale: ArrayLike | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        resolution: float | str | Fraction | None = None,
        pooled: bool = False,
    ) -> None:
        """Check everything and make a problem of it.

        Args:
            graph: a connected graph.
            values: n numbers, or n rows of m numbers; or n lists, where they are pooled. In the order of the nodes, or
                by their names: {"anna": 3.0, …}, or a pandas Series or frame whose index holds the names. Decimals and
                fractions become the nearest float, or are rounded exactly, to the resolution.
            weights: likewise n non-negative numbers, not all zero; 1 each if not given. A node of weight 0 only relays.
            weight_unit: the public unit of which all weights are multiples. Not given: 1 if they are whole numbers,
                else
                the largest of 0.1, 0.01, … 1e-9 that divides them, else they are rounded to 30 bits of the largest.
            objective: the median if not given; of an even number of values, the low one. Any `OwnObjective` will do.
            scale: public knowledge: about how far values lie from each other.
            bounds: public knowledge: a lower and an upper bound; gives scale and centre.
            resolution: public: a number, or a decimal as a string; an exact answer is that of the values rounded to it.
            pooled: each node brings a list of values; what is to be found is that of all of them together.

        Raises:
            InputError: anything is not as it must be.
        """
        if not isinstance(graph, Graph):
            raise InputError("graph must be a midst.Graph; try midst.graphs.ring(n) or midst.graphs.from_networkx(G)")
        _check_objective(objective, pooled)
        if pooled and weights is not None:
            raise InputError("lists count by their lengths; weights cannot be given with them")
        self.graph = graph
        values, self.keys = in_order(values, graph, "value"), make_keys(resolution)
        self.owners: Ints | None = None
        if pooled:
            self.values, self.owners = check_lists(values, graph.n, self.keys.nearest, graph.label)
        else:
            self.values = check_values(values, graph.n, self.keys.nearest, graph.label)
        if isinstance(objective, OwnObjective) and objective.lists and self.values.ndim > 1:
            raise InputError(f"a {objective.name} needs lists of numbers, and no rows in them")
        graph.require_connected()
        self.objective: Objective = Quantile(0.5) if objective is None else objective
        checked = None if weights is None else _check_weights(in_order(weights, graph, "weight"), graph.n, graph.label)
        self.whole_weights, self.unit_weight = _find_whole_weights(checked, weight_unit, graph.n)
        self._exact_weights = checked if weight_unit is None else None
        self.bounds = None if bounds is None else _check_bounds(bounds, self.values.shape[1:])
        self._refuse_far_values()
        known = _public_knowledge(self.values.shape[1:], scale, self.bounds)
        self.public = "estimated" if known is None else "given"
        self._known = _Known(known, self.values, self.objective)
        for held in (self.values, self.owners, self.whole_weights, *(self.bounds or ())):
            if held is not None:
                held.setflags(write=False)

    def __repr__(self) -> str:
        weighted = "" if np.all(self.whole_weights == 1) else ", weighted"
        coordinates = "" if self.values.ndim == 1 else f", {self.values.shape[1]} coordinates"
        lists = "" if self.owners is None else f", {len(self.values):,} values in lists"
        return f"<Problem: {self.title} over {self.graph!r}{weighted}{coordinates}{lists}>"

    @cached_property
    def scale(self) -> Array:
        """Public, positive: about how far values lie from each other; one number, or one a coordinate."""
        return self._known.both[0]

    @cached_property
    def centre(self) -> Array:
        """Public: about where the values lie; like `scale`."""
        return self._known.both[1]

    @property
    def total(self) -> int:
        """The weight of all values of a coordinate, in units."""
        return int(self.value_weights.sum())

    @property
    def mean_weight(self) -> float:
        """Of what a node holds: its value, or its list."""
        return self.unit_weight * (self.total / self.graph.n)

    @property
    def mean_degree(self) -> float:
        """How many neighbours a node has in the mean."""
        return 2 * self.graph.edges / self.graph.n

    @property
    def estimated(self) -> bool:
        """Whether scale and centre are estimated from the values, for want of public ones."""
        return self.public == "estimated"

    @property
    def value_weights(self) -> Ints:
        """The weight of each value, in units."""
        return self.whole_weights if self.owners is None else np.asarray(self.whole_weights[self.owners])

    @cached_property
    def search_weights(self) -> NDArray[Any]:
        """The weight of each value as a search counts it, a whole number.

        For a mean without a public unit, weights are exact: whole numbers, of any size, of a power of two.
        """
        if not isinstance(self.objective, Mean) or self._exact_weights is None:
            return self.value_weights
        grid, _ = exact_grid(self._exact_weights, float(self._exact_weights.max()))
        return np.array([key - grid.zero for key in grid.keys(self._exact_weights).tolist()], object)

    @property
    def brackets(self) -> tuple[tuple[int, int], ...]:
        """Where a search begins, of each coordinate: the public bounds, or all that there is; as keys."""
        if self.bounds is None:
            return (first_bracket(self.keys, None),) * (1 if self.values.ndim == 1 else self.values.shape[1])
        ends = zip(*(np.atleast_1d(end).tolist() for end in self.bounds), strict=True)
        return tuple(first_bracket(self.keys, each) for each in ends)

    @property
    def sum_grid(self) -> tuple[SumGrid, list[tuple[int, int]]]:
        """The grid of exact sums, and the ends of each coordinate on it.

        The grid is the public resolution. Without one, which only a simulation can do, it is the coarsest power of two
        that holds every value.
        """
        if isinstance(self.keys, Grid):
            return self.keys, [(a + 1, b) for a, b in self.brackets]
        largest = max(float(np.max(np.abs(end))) for end in self.bounds or (self.values,))
        grid, ends = exact_grid(self.values, largest)
        return grid, [ends] * len(self.brackets)

    @property
    def value_keys(self) -> Words:
        """The key of every value."""
        return self.keys.keys(self.values)

    @property
    def has_one_value(self) -> bool:
        """Whether the answer is one of the values."""
        return isinstance(self.objective, Quantile) and self.objective.is_one_value(self.total)

    @property
    def title(self) -> str:
        """What is to be found, in words; where there are two answers, which of them."""
        return title_of(self.objective, self.total)

    def with_values(self, values: Values, *, bounded: bool = True) -> Problem:
        """The same problem with other values; what is public stays as it is.

        Args:
            values: as this problem has them, or by the names of the nodes.
            bounded: whether they keep to the public bounds; with noise on them they do not, and are then in none.
        """
        other, values = copy(self), in_order(values, self.graph, "value")
        if not bounded:
            other.bounds = None
        if self.owners is None:
            other.values = check_values(values, self.graph.n, self.keys.nearest, self.graph.label)
            if other.values.shape != self.values.shape:
                raise InputError(f"values have shape {other.values.shape}, expected {self.values.shape}")
        else:
            other.values, owners = check_lists(values, self.graph.n, self.keys.nearest, self.graph.label)
            owners.setflags(write=False)
            other.owners = owners
        other.values.setflags(write=False)
        other._refuse_far_values()
        other.__dict__.pop("answer", None)
        return other

    def seeking(self, objective: Quantile) -> Problem:
        """The same problem with another quantile of the same level."""
        other = copy(self)
        other.objective = objective
        other.__dict__.pop("answer", None)
        return other

    @cached_property
    def answer(self) -> tuple[Array, Array]:
        """The lowest and highest right answer, by sorting all values: what only a simulation can know."""
        if isinstance(self.objective, Mean):
            mean = self._exact_mean()
            return mean, mean
        if not isinstance(self.objective, Quantile):
            return self._minimisers(self.objective)
        # keys are in the order of the values, so that two of them are all that is asked for
        low, high = map(self.keys.keys, self.objective.answer(self.values, self.value_weights))
        if self.has_one_value or self.objective.definition == "any":
            return self.keys.values(low), self.keys.values(high)
        if isinstance(self.keys, Floats):  # no search can find it
            return (middle := np.asarray(self.keys.values(low) / 2 + self.keys.values(high) / 2)), middle
        pairs = zip(np.atleast_1d(low).tolist(), np.atleast_1d(high).tolist(), strict=True)
        middle = np.array([self.keys.middle(one + other) for one, other in pairs]).reshape(low.shape)
        return middle, middle

    def _exact_mean(self) -> Array:
        """The float nearest to the mean, of each coordinate."""
        (grid, _), weights = self.sum_grid, self.search_weights.tolist()
        columns = self.values.reshape(len(self.values), -1).T
        sums = [sum(map(mul, weights, grid.keys(column).tolist())) for column in columns]
        means = [float((Fraction(each, sum(weights)) - grid.zero) * grid.step) for each in sums]
        return np.array(means).reshape(self.values.shape[1:])

    def _minimisers(self, objective: OwnObjective) -> tuple[Array, Array]:
        """The lowest and the highest x that minimise Σ f_i, to the last bit, by halving.

        x is at or above the lowest where the greatest subgradients add up to 0 or more, and at or below the highest
        where the least ones add up to no more than 0. Where a sum jumps past 0 between two floats, both are given.

        Raises:
            InputError: there is none, or no last one: Σ f_i does not rise on both sides.
        """
        held, ends = self.held(), (self.values.min(axis=0) - self.scale, self.values.max(axis=0) + self.scale)

        def total(x: Array) -> tuple[Array, Array]:
            return total_subgradients(objective, *held, x)

        try:
            lowest = _cross(lambda x: total(x)[1] >= 0, *ends)[1]
            highest = _cross(lambda x: total(x)[0] > 0, *ends)[0]
        except ArithmeticError:
            raise InputError(f"there is no {objective.name} of these values: it must rise on both sides") from None
        return np.minimum(lowest, highest), np.maximum(lowest, highest)

    def distance(self, x: float | Array) -> Array:
        """How far x lies from the nearest right answer; 0 between the lowest and the highest."""
        low, high = self.answer
        return np.asarray(np.maximum(np.maximum(low - x, x - high), 0.0))

    def _refuse_far_values(self) -> None:
        """Refuse values outside the public bounds, or too far from zero for the public resolution."""
        low, high = self.keys.ends if self.bounds is None else self.bounds
        first_bracket(self.keys, (float(np.min(low)), float(np.max(high))))  # raises where the resolution does not fit
        if (self.values.min(axis=0) >= low).all() and (self.values.max(axis=0) <= high).all():
            return
        outside = np.flatnonzero(((self.values < low) | (self.values > high)).reshape(len(self.values), -1).any(axis=1))
        if len(outside):
            node = outside[0] if self.owners is None else self.owners[outside[0]]
            why = "lies outside the public bounds" if self.bounds else "is too far from zero for so fine a resolution"
            raise InputError(f"value of node {self.graph.label(node)} {why}")

    def terms(self, unit: Array, c: Array) -> Terms:
        """All nodes' local objectives for the step, in working units.

        Args:
            unit: the power of two by which values are divided.
            c: the convergence parameter in working units.
        """
        objective = built_in(self.objective)
        slopes = (part[self._column] for part in objective.slopes(self.whole_weights, self.unit_weight))
        s = self.values / unit
        return make_terms(slopes, s, c * self.graph.degree[self._column], isinstance(objective, Mean))

    def own_terms(self, objective: OwnObjective, c: Array) -> OwnTerms:
        """The same for this problem's objective, where it is somebody's own, in the units of the data."""
        return OwnTerms(objective, *self.held(), c * self.graph.degree[self._column])

    def held(self) -> tuple[Array, Array]:
        """What every node holds, and its weight, as an `OwnObjective` takes them."""
        weights = np.asarray(self.whole_weights[self._column] * self.unit_weight, np.float64)
        if self.owners is None:
            return self.values, weights
        lengths = np.bincount(self.owners)
        lists = np.full((self.graph.n, lengths.max()), np.nan)
        lists[np.arange(lengths.max()) < lengths[:, None]] = self.values
        return lists, weights

    @property
    def _column(self) -> tuple[slice | None, ...]:
        """To stand a number a node beside values."""
        return (slice(None),) + (None,) * (self.values.ndim - 1)


class _Known:
    """Scale and centre: as given, or read off the values of the problem that was made first, once they are asked for.

    Problems that are copied from each other share it: what is public stays as it is.
    """

    def __init__(self, known: tuple[Array, Array] | None, values: Array, objective: Objective) -> None:
        self._given, self._values, self._objective = known, values, objective

    @cached_property
    def both(self) -> tuple[Array, Array]:
        found = self._given or _estimate(self._values, self._objective)
        for each in found:
            each.setflags(write=False)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """The public state alone: the values may be those from before noise was added."""
        return {"both": self.both}


def _cross(is_beyond: Callable[[Array], Bools], low: Array, high: Array) -> tuple[Array, Array]:
    """Two floats next to each other, of each coordinate, the higher of which is beyond something and the lower not.

    Raises:
        ArithmeticError: all are, or none is, as far as was looked.
    """
    width = np.asarray(high - low)
    for _ in range(_DOUBLINGS):
        too_high, too_low = is_beyond(low), ~is_beyond(high)
        if not (too_high | too_low).any():
            break
        low, high = np.where(too_high, low - width, low), np.where(too_low, high + width, high)
        width = 2 * width
    else:
        raise ArithmeticError
    floats = Floats()
    below, above = floats.keys(low), floats.keys(high)
    while (above - below > 1).any():
        middle = below + (above - below) // 2
        beyond = is_beyond(floats.values(middle))
        below, above = np.where(beyond, below, middle), np.where(beyond, middle, above)
    return floats.values(below), floats.values(above)


def binary_unit(scale: Array) -> Array:
    """The power of two that brings the scale into the range in which nothing overflows; 1 where it is there already.

    Dividing by it loses no bit, but for values so small beside the scale that they become subnormal.
    """
    power = np.round(np.log2(scale))
    return np.asarray(np.exp2(power - np.clip(power, -_EASY, _EASY)))


def _check_objective(objective: object, pooled: bool) -> None:
    """Refuse what is no objective, or not for lists.

    Raises:
        InputError: it is.
    """
    if isinstance(objective, Quantile | Mean | None):
        return
    if isinstance(objective, type) or not isinstance(objective, OwnObjective):
        raise InputError("objective must be a midst.Quantile, a midst.Mean, or have the members of an OwnObjective")
    if pooled != objective.lists:
        needed = "a list of numbers for every node, pooled" if objective.lists else "one value a node, and no list"
        raise InputError(f"a {objective.name} needs {needed}")


def in_order(given: Any, graph: Graph, what: str) -> Any:
    """What is given by the names of the nodes, in their order; anything else as it is."""
    if isinstance(given, Mapping):
        return graph.in_order(given, what)
    index = names_of(given)
    counted = index is None or index == [*range(len(index))]  # as pandas does, for want of names
    if index is None or (counted and graph.labels is None):
        return given
    names, rows = [graph.label(i) for i in range(graph.n)], {str(name): row for row, name in enumerate(index)}
    if len(index) == len(rows) and rows.keys() == set(names):
        return given.iloc[[rows[name] for name in names]]
    if not counted:
        raise InputError(f"the {what}s' index has other names than the nodes; rename it, or give to_numpy() in order")
    return given


def names_of(given: Any) -> list[Any] | None:
    """The names by which something is given: the keys of a mapping, the index of a pandas Series or frame, or none."""
    if isinstance(given, Mapping):
        return list(given)
    return list(given.index) if hasattr(given, "iloc") else None


def check_values(values: Any, nodes: int | None = None, read: Read = float, name: Name = str) -> Array:
    """The values as a finite float64 array of shape (n,) or (n, m), or an error that names the node.

    Raises:
        InputError: not numbers, not finite, too few, of the wrong shape, or not one a node.
    """
    if not isinstance(values, np.ndarray) and _are_lists(values) and len(set(map(len, values))) > 1:
        raise InputError("values must be numbers: n of them, or n rows of m; lists of any length must be pooled")
    array = as_numbers(values, "values", lambda i: f"node {name(i)}", read)
    if array.size == 0:
        raise InputError(f"values must have shape (n,) or (n, m) and not be empty, got {array.shape}")
    if len(array) < 2:
        raise InputError("one value alone has nobody to hide it from; at least two nodes are needed")
    if nodes is not None and len(array) != nodes:
        raise InputError(f"{len(array)} values for {nodes} nodes; give one value a node")
    _refuse_non_finite(array, "value", name)
    return array


def check_lists(lists: Any, nodes: int | None = None, read: Read = float, name: Name = str) -> tuple[Array, Ints]:
    """All values of a list a node in one finite float64 array, and whose each is; or an error that names the node.

    Raises:
        InputError: not lists, one of them empty, not numbers, not finite, or not one list a node.
    """
    if not _are_lists(lists):
        raise InputError("pooled values must be a list of numbers for every node")
    parts = [_check_list(name(i), part, read) for i, part in enumerate(lists)]
    if len(parts) < 2:
        raise InputError("one list alone has nobody to hide it from; at least two nodes are needed")
    if nodes is not None and len(parts) != nodes:
        raise InputError(f"{len(parts)} lists for {nodes} nodes; give one list a node")
    if len({part.shape[1:] for part in parts}) > 1:
        raise InputError("the rows of all lists must have as many numbers")
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _check_list(node: str, part: Any, read: Read) -> Array:
    array = as_numbers(part, f"the list of node {node}", "row {} (counting from 0)".format, read)
    if array.size == 0:
        raise InputError(f"the list of node {node} is empty; every node needs at least one value")
    if not np.isfinite(array).all():
        raise InputError(f"a value of node {node} is missing or not a finite number")
    return array


def _are_lists(values: Any) -> bool:
    if not _is_list(values) or hasattr(values, "columns"):  # it is not said whether a frame has its lists by columns
        return False
    return len(values) > 0 and all(map(_is_list, values))


def _is_list(part: Any) -> bool:
    return (
        hasattr(part, "__len__") and getattr(part, "ndim", 1) > 0 and not isinstance(part, str | bytes | Mapping | Set)
    )


def _refuse_non_finite(array: Array, what: str, name: Name) -> None:
    if np.isfinite(array.min()) and np.isfinite(array.max()):  # neither is a number where one of all is none
        return
    bad = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
    if len(bad):
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise InputError(f"{what} of node {name(bad[0])}{more} is missing or not a finite number")


def _check_weights(weights: Any, nodes: int, name: Name) -> Array:
    array = as_numbers(weights, "weights", lambda i: f"node {name(i)}")
    if array.shape != (nodes,):
        raise InputError(f"weights have shape {array.shape}; give one a node, ({nodes},)")
    _refuse_non_finite(array, "weight", name)
    negative = np.flatnonzero(array < 0)
    if len(negative):
        raise InputError(f"weight of node {name(negative[0])} is negative")
    if not array.any():
        raise InputError("all weights are zero; at least one node must count")
    return array


def _find_whole_weights(array: Array | None, unit: float | None, nodes: int) -> tuple[Ints, float]:
    """The weights as whole numbers of a public unit."""
    if array is None:
        return np.ones(nodes, np.int64), 1.0
    if unit is None:
        unit = _find_unit(array)
    elif not (np.isfinite(unit) and unit > 0):
        raise InputError("weight_unit must be a positive number")
    elif not _divides(unit, array):
        raise InputError(f"a weight is not a multiple of weight_unit {unit:g}")
    if array.sum() / unit > _HEAVIEST:
        raise InputError(f"the weights add up to more than 2^50 units of {unit:g}; give a coarser weight_unit")
    return np.rint(array / unit).astype(np.int64), float(unit)


def _divides(unit: float, weights: Array) -> bool:
    multiple = weights / unit
    return bool(np.all(np.abs(multiple - np.rint(multiple)) <= 1e-9 * np.maximum(multiple, 1)))


def _find_unit(weights: Array) -> float:
    for digits in range(10):
        if _divides(10.0**-digits, weights) and (weights[weights > 0] >= 0.5 * 10.0**-digits).all():
            return float(10.0**-digits)
    return float(np.exp2(np.ceil(np.log2(weights.max())) - 30))


def _check_bounds(bounds: tuple[ArrayLike, ArrayLike], shape: tuple[int, ...]) -> Bounds:
    """The public bounds, each one number or one a coordinate."""
    try:
        lower, upper = (np.broadcast_to(np.array(end, dtype=np.float64), shape).copy() for end in bounds)
    except (TypeError, ValueError):
        raise InputError("bounds must be two numbers, (lower, upper)") from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise InputError("bounds must be finite and the lower below the upper")
    return lower, upper


def _public_knowledge(
    shape: tuple[int, ...], scale: ArrayLike | None, bounds: Bounds | None
) -> tuple[Array, Array] | None:
    """Scale and centre as given, each one number or one a coordinate; None where nothing was given."""
    centre = np.zeros(shape)
    if bounds is not None:
        lower, upper = bounds
        centre = lower / 2 + upper / 2
        if scale is None:
            scale = upper / _WIDTHS_PER_SCALE - lower / _WIDTHS_PER_SCALE
    if scale is None:
        return None
    try:
        scales = np.broadcast_to(np.array(scale, dtype=np.float64), shape).copy()
    except (TypeError, ValueError):
        raise InputError("scale must be a positive number, or one a coordinate") from None
    if not ((scales >= _SMALLEST) & (scales <= _LARGEST)).all():
        raise InputError(f"scale must be between {_SMALLEST:g} and {_LARGEST:g}")
    return scales, np.array(centre)


def _estimate(values: Array, objective: Objective) -> tuple[Array, Array]:
    """A stand-in for public knowledge: the spread of the half of the data around the quantile, to a power of two.

    Robust, because one outlier should not set c for everybody; rounded, because nobody would know it better than that.
    """
    q = float(objective.q) if isinstance(objective, Quantile) else 0.5
    last = len(values) - 1
    ends = int(np.floor(max(q - 0.25, 0) * last)), int(np.ceil(min(q + 0.25, 1) * last))
    low, high = np.partition(values, ends, axis=0)[list(ends)]
    width = 2 * np.minimum(high / 2 - low / 2, _LARGEST)
    magnitude = np.maximum(np.abs(low), np.abs(high))
    scales = np.where(width > 1e-12 * magnitude, width, magnitude)
    scales = np.clip(np.where(scales > 0, scales, 1.0), _SMALLEST, _LARGEST)
    scales = np.clip(np.exp2(np.round(np.log2(scales))), _SMALLEST, _LARGEST)
    centre = np.rint((low / 2 + high / 2) / scales) * scales
    return np.asarray(scales), np.asarray(centre)
