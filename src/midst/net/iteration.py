"""What a participant of the paper's iteration derives from the charter and its own value, and draws.

Rules:
- z(0) is all that hides a value in the iteration. It must not be guessable from the part of it that a neighbour is
  sent, so it comes from the operating system's generator by way of Box and Muller, never from a simulation's.

Where the limits come from. In the space of all z the iteration never moves away from a fixed point z*, so every
|z| ≤ ‖z(0)‖ + 2‖z*‖. There is a fixed point whose entries are at most c|x*| plus what flows over an edge when every
node's slope is carried to the others along a tree, which is at most the sum of all slopes. x follows from z.
An honest run stays far inside; what these limits are for is that no number from outside can overflow the arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from midst.methods import CLOSE
from midst.net.charter import Charter
from midst.net.setup import Entropy, Opening
from midst.net.wire import Limits
from midst.objectives import Mean, built_in
from midst.problems import Problem
from midst.protocol.certificate import slack
from midst.protocol.maxima import Residuals, StopRule
from midst.protocol.node import Node, plain, rows
from midst.protocol.step import make_terms
from midst.system import Parameters, make_node
from midst.types import Array

_FAR = 9.0  # no draw lies further out, in standard deviations: 53 bits reach 8.6


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


def make_iteration(charter: Charter, number: int, own: Array) -> Iteration:
    """The iteration of a participant, with its own value, one number a coordinate."""
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
    """What numbers can be right, in working units; see the head of this module.

    Nothing here depends on a value: of the problem only what is public is looked at. No value is farther than
    `farthest` from 0.
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
