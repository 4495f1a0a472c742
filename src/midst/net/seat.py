"""A seat at the table: everything one participant derives from the charter and its own value before it says a word.

Rules:
- Nothing here is random and nothing is sent. Two participants with the same charter derive the same parameters.
- What is random in a session is drawn once, from the operating system, into an `Opening`: z(0), the shares of the
  edges' secrets, and an instance number by which neighbours notice a journal that was lost.
- z(0) is all that hides a value. It must not be guessable from the part of it that a neighbour is sent, so it comes
  from the operating system's generator by way of Box and Muller, never from a simulation's.

Where the limits come from. In the space of all z the iteration never moves away from a fixed point z*, so every
|z| ≤ ‖z(0)‖ + 2‖z*‖. There is a fixed point whose entries are at most c|x*| plus what flows over an edge when every
node's slope is carried to the others along a tree, which is at most the sum of all slopes. x and y follow from z.
An honest run stays far inside; what these limits are for is that no number from outside can overflow the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.masks import SHARE_BYTES
from midst.net.charter import Charter
from midst.net.tide import Tide, make_tide
from midst.net.wire import Codec, Limits
from midst.node import Node, make_node, rows
from midst.problems import Problem
from midst.system import Parameters, System, assemble

Array = NDArray[np.float64]
Entropy = Callable[[int], bytes]

INSTANCE_BYTES = 16
_FAR = 9.0  # no draw lies further out, in standard deviations: 53 bits reach 8.6


class Opening(msgspec.Struct, frozen=True, array_like=True):
    """What a participant draws at random for a session, and the value it was drawn to hide."""

    digest: bytes
    name: str
    instance: bytes
    value: bytes
    z: bytes
    shares: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"<Opening of {self.name}>"


@dataclass(frozen=True, eq=False, repr=False)
class Seat:
    """One participant of a charter.

    Attributes:
        charter: what all agreed on.
        number: which participant this is.
        node: the state machine, with its value.
        parameters: the paper's, as settled.
        tide: the rules of the residual certificate; None where a count proves the answer.
        codec: the frames of this charter.
        limits: what numbers can be right.
        mu: mean of A_ij z_{i|j}(0), in working units.
        sigma: its standard deviation.
    """

    charter: Charter
    number: int
    node: Node
    parameters: Parameters
    tide: Tide | None
    codec: Codec
    limits: Limits
    mu: Array
    sigma: Array

    @property
    def name(self) -> str:
        """This participant's name."""
        return self.charter.names[self.number]

    @property
    def session(self) -> bytes:
        """What marks the session."""
        return self.charter.digest

    def draw(self, entropy: Entropy) -> Opening:
        """What is random in a session; call it once.

        Args:
            entropy: gives that many random bytes; the operating system's, but in a simulation.
        """
        node = self.node
        shape = (len(node.neighbours), *node.shape)
        z = self.mu * node.signs + self.sigma * normals(entropy, shape)
        return Opening(
            digest=self.session,
            name=self.name,
            instance=entropy(INSTANCE_BYTES),
            value=self.plain_value(),
            z=np.asarray(z, "<f8").tobytes(),
            shares=tuple(entropy(SHARE_BYTES) for _ in node.neighbours),
        )

    def plain_value(self) -> bytes:
        """The value as bytes, by which a journal knows it again."""
        return np.asarray(self.node.terms.s, "<f8").tobytes()

    def z_of(self, opening: Opening) -> list[Array]:
        """z(0) as it was drawn, one a neighbour."""
        return rows(np.frombuffer(opening.z, "<f8").reshape(len(self.node.neighbours), *self.node.shape))

    def in_data_units(self, number: Array) -> Array:
        """A number in the units of the data."""
        return np.asarray(number * self.parameters.unit)


def take_seat(charter: Charter, name: str, value: Array | float) -> Seat:
    """The seat of a participant.

    Args:
        charter: what all agreed on.
        name: who takes it.
        value: its private value, one number or one a coordinate.

    Raises:
        InputError: there is no such participant, or the value is none that the charter allows.
    """
    number = charter.number(name)
    single = charter.coordinates == 1
    shape = () if single else (charter.coordinates,)
    low, high = charter.value_range
    own = np.asarray(value, np.float64).reshape(-1)
    if own.shape != (charter.coordinates,):
        raise InputError(f"{len(own)} numbers for {name}, but the charter is about {charter.coordinates}")
    if not ((own >= low) & (own <= high)).all():
        raise InputError(f"the value of {name} is not a number between the charter's bounds, {low:g} and {high:g}")
    values = charter.problem().values.copy()
    values[number] = own.reshape(shape)
    problem, parameters, rules = charter.problem(values), charter.parameters, charter.rules
    edges = np.zeros((len(problem.graph.source), *shape))
    system = assemble(problem, parameters, edges, rules)
    smooth = system.terms.smooth
    mu, sigma = (part / parameters.unit if smooth else part for part in (parameters.mu, parameters.sigma))
    limits = find_limits(problem, system, mu, sigma, (low / parameters.unit, high / parameters.unit))
    tide = None
    if rules is None:
        tide = make_tide(problem, problem.graph.diameter(), charter.tolerance * parameters.scale / parameters.unit)
    codec = Codec(charter.digest, None if single else charter.coordinates, rules is not None, limits)
    return Seat(charter, number, make_node(system, number), parameters, tide, codec, limits, mu, sigma)


def find_limits(problem: Problem, system: System, mu: Array, sigma: Array, values: tuple[Array, Array]) -> Limits:
    """What numbers can be right in this system; see the head of this module. Nothing here depends on a value."""
    c, total = float(np.min(system.c)), int(problem.counts.sum())
    farthest = float(max(np.abs(values[0]).max(), np.abs(values[1]).max()))
    weight = total * problem.unit_weight
    slopes = 2 * weight * (2 * farthest if system.terms.smooth else 1.0)
    first = float(np.max(np.abs(mu) + _FAR * sigma))
    steep = float(np.max(system.c))
    z = math.sqrt(2 * problem.graph.edges) * (first + 2 * steep * farthest + 2 * slopes)
    x = farthest + (slopes + z) / c
    y = z + 2 * steep * x
    value = (float(np.min(values[0])), float(np.max(values[1])))
    return Limits(problem.graph.n, total, (-first, first), (-x, x), (-y, y), value)


def normals(entropy: Entropy, shape: tuple[int, ...]) -> Array:
    """Independent N(0, 1) numbers from random bytes, by Box and Muller."""
    count = math.prod(shape)
    bits = np.frombuffer(entropy(16 * count), "<u8") >> 11
    u = (bits + 0.5) / 2.0**53
    return np.asarray(np.sqrt(-2.0 * np.log(u[:count])) * np.cos(2.0 * np.pi * u[count:])).reshape(shape)
