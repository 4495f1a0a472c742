"""What an adversary may believe about one value after a run.

The value's posterior is always a mixture of pieces: the prior cut to an interval, or a single point (an atom). With
every branch visible there is one piece. Three facts about it, with three names:

- bounds: the ends of its support;
- sides: the probabilities that s lies below, at or above what the node sent last;
- bits: KL(posterior ‖ prior) at a public resolution r. One interval I has −log2 P(I), one point −log2 P(its cell); a
  cell is what rounds to the same multiple of r. In a mixture the divergence is taken over the partition that has the
  cells of the atoms whole and is as fine as one likes elsewhere, where the posterior has a density; it is never less
  than the divergence over all cells of width r, and exceeds it by no more than the intervals' ends falling within
  cells can make. `grid_bits` is the divergence over all cells of width r, for posteriors that may be narrower than one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from midst.errors import InputError
from midst.privacy.priors import Prior, bisect_floats

_MOST_CELLS = 2.0**52  # from zero: beyond them cells are narrower than floats are apart
_ROUNDING = 1e-7  # of a cell: an interval's end so near a cell's is meant to be it


@dataclass(frozen=True, repr=False)
class Piece:
    """A part of a posterior: the prior cut to (lower, upper), or the point lower = upper."""

    probability: float
    lower: float
    upper: float

    @property
    def atom(self) -> bool:
        """Whether it is a point."""
        return self.lower == self.upper


@dataclass(frozen=True, repr=False)
class Posterior:
    """What is believed about one node's value.

    Attributes:
        prior: what was believed before.
        pieces: what it is a mixture of; their probabilities add up to 1. One of probability 0 still widens the
            bounds: a sampler that never met a possibility has not excluded it.
    """

    prior: Prior
    pieces: tuple[Piece, ...]

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the support."""
        return min(piece.lower for piece in self.pieces), max(piece.upper for piece in self.pieces)

    @property
    def value(self) -> float | None:
        """The value, where it is known for certain."""
        lower, upper = self.bounds
        return lower if lower == upper else None

    def probability(self, lower: float, upper: float) -> float:
        """P(lower < S < upper), atoms at the ends left out."""
        return self._mass(lower, upper, lambda atom: lower < atom < upper)

    def mass_of_cell(self, low: float, high: float) -> float:
        """P(low ≤ S < high)."""
        return self._mass(low, high, lambda atom: low <= atom < high)

    def sides(self, x: float) -> tuple[float, float, float]:
        """The probabilities that s lies below, at and above x."""
        return self.probability(-math.inf, x), self._at(x), self.probability(x, math.inf)

    def bits(self, resolution: float) -> float:
        """KL(posterior ‖ prior) in bits; see the module's docstring."""
        cells = sorted({cell(piece.lower, resolution) for piece in self.pieces if piece.atom})
        edges = {end for piece in self.pieces if not piece.atom for end in (piece.lower, piece.upper)}
        edges = {edge for edge in edges if not any(low < edge < high for low, high in cells)}
        edges |= {-math.inf, math.inf, *(end for ends in cells for end in ends)}
        total = 0.0
        for low, high in pairwise(sorted(edges)):
            after = self.mass_of_cell(low, high) if (low, high) in cells else self._mass(low, high, lambda atom: False)
            if after > 0:
                total += after * (math.log(after) - self.prior.log_mass(low, high))
        return max(total, 0.0) / math.log(2)

    def grid_bits(self, resolution: float) -> float:
        """KL(posterior ‖ prior) over all cells of the resolution, in bits.

        Where posterior and prior are in proportion, cells may be taken together: only those in which an interval ends,
        or a point lies, are looked at by themselves.
        """
        edges = {-math.inf, math.inf}
        for end in {end for piece in self.pieces for end in (piece.lower, piece.upper) if math.isfinite(end)}:
            edges |= _grid_edges(end, resolution)
        edges |= {end for piece in self.pieces if piece.atom for end in cell(piece.lower, resolution)}
        total = 0.0
        for low, high in pairwise(sorted(edges)):
            after = self.mass_of_cell(low, high)
            if after > 0:
                before = log_mass(self.prior, low, high)
                if before > -math.inf or after > _ROUNDING:
                    total += after * (math.log(after) - before)
        return max(total, 0.0) / math.log(2)

    def median(self) -> float:
        """The point below which half of the posterior lies."""
        return bisect_floats(lambda x: self.probability(-math.inf, x) + self._at(x) < 0.5, *self._bracket())

    def _at(self, x: float) -> float:
        return sum(piece.probability for piece in self.pieces if piece.atom and piece.lower == x)

    def _mass(self, low: float, high: float, holds: Callable[[float], bool]) -> float:
        """The mass between two numbers, with those of the atoms that count."""
        total = 0.0
        for piece in self.pieces:
            total += piece.probability * (holds(piece.lower) if piece.atom else self._share(piece, low, high))
        return total

    def _share(self, piece: Piece, lower: float, upper: float) -> float:
        low, high = max(lower, piece.lower), min(upper, piece.upper)
        if not low < high or piece.probability == 0:
            return 0.0
        if (low, high) == (piece.lower, piece.upper):
            return 1.0
        whole = self.prior.log_mass(piece.lower, piece.upper)
        if whole == -math.inf:  # too narrow for its ends to be told apart: the prior is even in it
            return (high - low) / (piece.upper - piece.lower)
        return math.exp(self.prior.log_mass(low, high) - whole)

    def _bracket(self) -> tuple[float, float]:
        low, high = self.bounds
        step = self.prior.scale
        anchor = high if math.isfinite(high) else low if math.isfinite(low) else self.prior.quantile(0.5)
        while math.isinf(low) and self.probability(-math.inf, anchor - step) > 0.25:
            step *= 2
        low = anchor - step if math.isinf(low) else low
        step = self.prior.scale
        while math.isinf(high) and self.probability(anchor + step, math.inf) > 0.25:
            step *= 2
        return low, (anchor + step if math.isinf(high) else high)


def cell(value: float, resolution: float) -> tuple[float, float]:
    """The interval of numbers that round to the same multiple of the resolution as `value`.

    Where floats are further apart than that, the interval is up to the next ones.
    """
    if not abs(value) < resolution * _MOST_CELLS:
        return math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    index = math.floor(value / resolution + 0.5)
    return (index - 0.5) * resolution, (index + 0.5) * resolution


def widen(ends: tuple[float, float], resolution: float) -> tuple[float, float]:
    """The ends of an interval; of a single float, those of its cell: values are told apart no finer."""
    return cell(ends[0], resolution) if ends[0] == ends[1] else ends


def log_mass(prior: Prior, lower: float, upper: float) -> float:
    """The logarithm of P(lower ≤ S ≤ upper), also where rounding leaves nothing between the two.

    Of a single point it is that of the density, which will do where only ratios matter.
    """
    if lower == upper:
        return prior.log_density(lower)
    mass = prior.log_mass(lower, upper)
    if mass == -math.inf and math.isfinite(upper - lower):
        mass = prior.log_density(lower / 2 + upper / 2) + math.log(upper - lower)
    return mass


def _grid_edges(end: float, resolution: float) -> set[float]:
    """The ends of the cell in which a number lies; one of them where the number is just that, but for rounding."""
    low, high = cell(end, resolution)
    return {low, high} - {far for near, far in ((low, high), (high, low)) if abs(end - near) < _ROUNDING * resolution}


def single(prior: Prior, who: str, lower: float, upper: float) -> Posterior:
    """The posterior of one piece.

    Raises:
        InputError: the prior gives it no mass.
    """
    mass = prior.log_density(lower) if lower == upper else prior.log_mass(lower, upper)
    if mass == -math.inf:
        raise no_mass(who)
    return Posterior(prior, (Piece(1.0, lower, upper),))


def no_mass(who: str | None = None) -> InputError:
    """The prior excludes what was observed."""
    of_whom = "" if who is None else f" of {who}"
    return InputError(f"the prior gives no mass to what was observed{of_whom}; give a wider prior")
