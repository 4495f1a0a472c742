"""The setup: everything one participant derives from the charter and its own value before it says a word.

Rules:
- Nothing here is random and nothing is sent. Two participants with the same charter derive the same parameters.
- What is random in a session is drawn once, from the operating system, into an `Opening`: z(0), the secret of the
  session key, and an instance number by which others notice a journal that was lost.
- z(0) is all that hides a value in the iteration. It must not be guessable from the part of it that a neighbour is
  sent, so it comes from the operating system's generator by way of Box and Muller, never from a simulation's.

Where the limits come from. In the space of all z the iteration never moves away from a fixed point z*, so every
|z| ≤ ‖z(0)‖ + 2‖z*‖. There is a fixed point whose entries are at most c|x*| plus what flows over an edge when every
node's slope is carried to the others along a tree, which is at most the sum of all slopes. x follows from z.
An honest run stays far inside; what these limits are for is that no number from outside can overflow the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from midst.errors import InputError
from midst.methods import CLOSE
from midst.net.charter import Charter
from midst.net.wire import Codec, Limits
from midst.objectives import Mean, built_in
from midst.problems import Problem
from midst.protocol.certificate import slack
from midst.protocol.masks import SECRET_BYTES
from midst.protocol.maxima import Residuals, StopRule
from midst.protocol.node import Node, plain, rows
from midst.protocol.participant import Holding
from midst.protocol.statements import INSTANCE_BYTES, Agreement, Notary
from midst.protocol.step import make_terms
from midst.system import Parameters, make_node
from midst.types import Array

Entropy = Callable[[int], bytes]

_FAR = 9.0  # no draw lies further out, in standard deviations: 53 bits reach 8.6
_NO_LIMITS = Limits((0.0, 0.0), (0.0, 0.0))


class Opening(msgspec.Struct, frozen=True, array_like=True):
    """What a participant draws at random for a session, and the value it was drawn to hide."""

    digest: bytes
    name: str
    instance: bytes
    value: bytes
    z: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"<Opening of {self.name}>"


@dataclass(frozen=True, eq=False, repr=False)
class Iteration:
    """What one participant needs for the paper's iteration.

    Attributes:
        node: the state machine, with its value.
        parameters: the paper's, as settled.
        stop_rule: the rules by which all stop together.
        limits: what numbers can be right.
        mu: mean of A_ij z_{i|j}(0), in working units.
        sigma: its standard deviation.
    """

    node: Node
    parameters: Parameters
    stop_rule: StopRule
    limits: Limits
    mu: Array
    sigma: Array

    def in_data_units(self, number: Array) -> Array:
        """A number in the units of the data."""
        return np.asarray(number * self.parameters.unit)

    def draw(self, entropy: Entropy) -> bytes:
        """z(0), one row a neighbour."""
        node = self.node
        drawn = normals(entropy, (len(node.neighbours), *node.shape))
        return np.asarray(self.mu * node.sign_column + self.sigma * drawn, "<f8").tobytes()

    def z_of(self, opening: Opening) -> list[Array]:
        """z(0) as it was drawn, one a neighbour."""
        node = self.node
        return rows(np.frombuffer(opening.z, "<f8").reshape(len(node.neighbours), *node.shape))


@dataclass(frozen=True, eq=False, repr=False)
class Setup:
    """One participant of a charter.

    Attributes:
        charter: what all agreed on.
        number: which participant this is.
        notary: signs for it.
        values: its own, a row a coordinate.
        iteration: for the paper's iteration; None where the method is a search from the start.
        codec: the frames of this charter.
    """

    charter: Charter
    number: int
    notary: Notary
    values: Array
    iteration: Iteration | None
    codec: Codec

    @cached_property
    def name(self) -> str:
        """This participant's name."""
        return self.charter.names[self.number]

    @property
    def session(self) -> bytes:
        """What marks the session."""
        return self.charter.digest

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """Their numbers, in ascending order."""
        return self.charter.neighbours(self.name)

    def draw(self, entropy: Entropy) -> Opening:
        """What is random in a session; call it once.

        Args:
            entropy: gives that many random bytes; the operating system's, but in a simulation.
        """
        z = b"" if self.iteration is None else self.iteration.draw(entropy)  # first: a simulation's seed has this order
        return Opening(
            digest=self.session,
            name=self.name,
            instance=entropy(INSTANCE_BYTES),
            value=self.plain_value(),
            z=z,
            secret=entropy(SECRET_BYTES),
        )

    def plain_value(self) -> bytes:
        """The value as bytes, by which a journal knows it again."""
        return np.asarray(self.values, "<f8").tobytes()

    def agreement(self, thresholds: tuple[tuple[int, ...], ...]) -> Agreement:
        """What all agreed on about the search.

        Args:
            thresholds: of the first probe, where an iteration has found them.
        """
        return self.charter.agreement(thresholds)

    def holding(self, opening: Opening) -> Holding:
        """What this participant brings to the search."""
        return Holding(self.number, tuple(self.charter.keys.keys(self.values)), opening.secret, opening.instance)


def make_setup(charter: Charter, name: str, value: Array | float, notary: Notary) -> Setup:
    """The setup of a participant.

    Args:
        charter: what all agreed on.
        name: whose.
        value: its private value: one number, one a coordinate, or as many as it has where lists are pooled; none where
            a charter is about vectors, of which there is one a round.
        notary: signs for it.

    Raises:
        InputError: there is no such participant, or the value is none that the charter allows.
    """
    number = charter.number(name)
    own = np.zeros(0) if charter.arrays else _own_values(charter, name, np.array(value, np.float64))
    iteration = None if charter.method == "search" else _iteration(charter, number, own.reshape(-1))
    single = None if charter.width == 1 else charter.width
    maxima_each, limits = (0, _NO_LIMITS) if iteration is None else (iteration.stop_rule.maxima_each, iteration.limits)
    codec = Codec(charter.digest, single, maxima_each, limits, charter.longest_statement, charter.longest_vector)
    return Setup(charter, number, notary, own, iteration, codec)


def _own_values(charter: Charter, name: str, given: Array) -> Array:
    """A participant's values as the charter wants them, a row a coordinate; errors never repeat them."""
    width = charter.width
    if charter.has_lists:
        if given.size == 0:
            raise InputError(f"no value for {name}; a list needs at least one number")
        rows = given.reshape(-1, 1) if width == 1 else np.atleast_2d(given)
        if rows.shape[1] != width:
            raise InputError(f"the rows of {name} have not {width} numbers each: {', '.join(charter.column_names)}")
        own = np.ascontiguousarray(rows.T)
    else:
        own = given.reshape(-1, 1)
        if len(own) != width:
            hint = "; lists of values need pooled = true" if width == 1 else ""
            raise InputError(f"{len(own)} numbers for {name}, but the charter is about {width}{hint}")
    for k, (low, high) in enumerate(charter.column_ranges):
        if not ((own[k] >= low) & (own[k] <= high)).all():
            between = f"between the charter's bounds, {low:g} and {high:g}" if charter.bounds else "that is finite"
            what = f"{charter.columns[k].name} of {name}" if charter.columns else f"the value of {name}"
            raise InputError(f"{what} is not a number {between}")
    return own


def _iteration(charter: Charter, number: int, own: Array) -> Iteration:
    public, parameters, graph = charter.problem(), charter.parameters, charter.graph  # of others' values it knows none
    unit, smooth = parameters.unit, isinstance(charter.goal, Mean)
    c = parameters.working_c(smooth)
    slopes = (part[number] for part in charter.goal.slopes(public.whole_weights, public.unit_weight))
    terms = make_terms(slopes, own.reshape(unit.shape) / unit, c * graph.degree[number], smooth)
    mu, sigma = (part / unit if smooth else part for part in (parameters.mu, parameters.sigma))
    farthest = float(max(np.abs(end / unit).max() for end in charter.value_range))
    limits = find_limits(public, c, mu, sigma, farthest)
    diameter, scale = graph.diameter(), plain(parameters.scale / unit)
    if charter.stop == "exact":
        stop_rule = StopRule(diameter, CLOSE * scale)
    else:
        stop_rule = residual_rule(public, diameter, charter.tolerance * scale)
    node = make_node(number, graph, terms, c, parameters.theta)
    return Iteration(node, parameters, stop_rule, limits, mu, sigma)


def find_limits(problem: Problem, c: Array, mu: Array, sigma: Array, farthest: float) -> Limits:
    """What numbers can be right; see the head of this module. Nothing here depends on a value.

    Args:
        problem: of which only what is public is looked at.
        c: convergence parameter, in working units like all that follows.
        mu: mean of A_ij z_{i|j}(0).
        sigma: its standard deviation.
        farthest: how far from 0 a value may lie.
    """
    weight = int(problem.whole_weights.sum()) * problem.unit_weight
    slopes = 2 * weight * (2 * farthest if isinstance(problem.objective, Mean) else 1.0)
    first = float(np.max(np.abs(mu) + _FAR * sigma))
    z = math.sqrt(2 * problem.graph.edges) * (first + 2 * float(np.max(c)) * farthest + 2 * slopes)
    x = farthest + (slopes + z) / float(np.min(c))
    return Limits((-first, first), (-x, x))


def normals(entropy: Entropy, shape: tuple[int, ...]) -> Array:
    """Independent N(0, 1) numbers from random bytes, by Box and Muller."""
    count = math.prod(shape)
    bits = np.frombuffer(entropy(16 * count), "<u8") >> 11
    u = (bits + 0.5) / 2.0**53
    return np.asarray(np.sqrt(-2.0 * np.log(u[:count])) * np.cos(2.0 * np.pi * u[count:])).reshape(shape)


def residual_rule(problem: Problem, diameter: int, tolerance: Array) -> StopRule:
    """The rules by which residuals prove an answer; nothing here looks at a value."""
    weight = float(problem.whole_weights.sum()) * problem.unit_weight
    objective = built_in(problem.objective)
    room = slack(objective, problem.whole_weights, problem.unit_weight)
    return StopRule(
        diameter, tolerance, Residuals(problem.graph.edges, room, weight, smooth=isinstance(objective, Mean))
    )
