"""The setup: everything one participant derives from the charter and its own value before it says a word.

Rules:
- Nothing here is random and nothing is sent. Two participants with the same charter derive the same parameters.
- What is random in a session is drawn once, from the operating system, into an `Opening`: z(0), the secret of the
  session key, and an instance number by which others notice a journal that was lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from midst.errors import InputError
from midst.net.charter import Charter
from midst.net.wire import Codec, Limits
from midst.protocol.masks import SECRET_BYTES
from midst.protocol.participant import Holding
from midst.protocol.statements import INSTANCE_BYTES, Agreement, Notary
from midst.types import Array

if TYPE_CHECKING:
    from midst.net.iteration import Iteration

Entropy = Callable[[int], bytes]

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
        """What is random in a session; call it once. Entropy is the operating system's, but in a simulation."""
        z = b"" if self.iteration is None else self.iteration.draw(entropy)  # first: a simulation's seed has this order
        instance, secret = entropy(INSTANCE_BYTES), entropy(SECRET_BYTES)
        return Opening(self.session, self.name, instance, self.plain_value(), z, secret)

    def plain_value(self) -> bytes:
        """The value as bytes, by which a journal knows it again."""
        return np.asarray(self.values, "<f8").tobytes()

    def agreement(self, thresholds: tuple[tuple[int, ...], ...]) -> Agreement:
        """What all agreed on about the search; an iteration gives the thresholds of the first probe."""
        return self.charter.agreement(thresholds)

    def holding(self, opening: Opening) -> Holding:
        """What this participant brings to the search."""
        return Holding(self.number, tuple(self.charter.keys.keys(self.values)), opening.secret, opening.instance)


def make_setup(charter: Charter, name: str, value: Array | float, notary: Notary) -> Setup:
    """The setup of a participant.

    Its value is one number, one a coordinate, or as many as it has where lists are pooled; none is looked at where a
    charter is about vectors, of which there is one a round.

    Raises:
        InputError: there is no such participant, or the value is none that the charter allows.
    """
    number = charter.number(name)
    own = np.zeros(0) if charter.arrays else _own_values(charter, name, np.array(value, np.float64))
    single = None if charter.width == 1 else charter.width
    iteration, maxima_each, limits = None, 0, _NO_LIMITS
    if charter.method != "search":
        from midst.net.iteration import make_iteration

        iteration = make_iteration(charter, number, own.reshape(-1))
        maxima_each, limits = iteration.stop_rule.maxima_each, iteration.limits
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
