"""What the totals of a search, and its answer, tell about each honest value.

Before the search a value has its prior, cut to the public bounds. After it, the value lies in cell c of the final
partition with a chance q_c, and within the cell it has its prior as before. Three numbers say how much that is:

- bits: KL(posterior ‖ prior) over the cells of the audit's resolution;
- floor: the same for the answer alone (`floor.py`), which no way of finding it can avoid;
- excess: bits − floor, by which ways of finding the same answer are compared. It may be negative in a single run; on
  average over runs it is not.

Where all honest values are alike (one prior, one weight), q_c is the cell's share of them: Σ_c q_c log2(q_c / P_c).
Where they are not, every way in which the totals can come about is weighed (`assignments.py`). Where there are too many
ways, the adversary is taken to be told more: how many of each kind of value lie in each cell. By the data-processing
inequality that is an upper bound, on average over runs.

After an iteration, values are no longer alike: what the iteration told of each takes the place of its prior (for an
eavesdropper on clear z(0), of each independently of the others), and the totals come on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np

from midst.errors import InputError
from midst.privacy.assignments import assign
from midst.privacy.floor import floor_posteriors
from midst.privacy.midpoint_floor import midpoint_bits
from midst.privacy.posterior import Piece, Posterior, log_mass, no_mass, widen
from midst.privacy.priors import Prior, Within
from midst.privacy.published import Cell, Published
from midst.types import Array

_PARTS = 512  # of a cell, where two values are known by their sum: one a key, or fewer of many keys each
_UPPER = (
    "upper bound on average over runs: there are too many ways in which the totals can come about, so the adversary is "
    "taken to know how many of each kind (prior, weight, what the iteration told) lie in each cell"
)
_LISTS = (
    "participants brought lists: bits are those of one value times the number of values, a lower bound of what is "
    "learnt of all of them together"
)
_WEIGHTS = "weights differ and are public: totals can tell who is where"


@dataclass(frozen=True, eq=False, repr=False)
class Learnt:
    """What an adversary believes after a search. Participants with no honest value of any weight are left out.

    Attributes:
        believed: of each participant, the posterior of its value, or of any one of its values.
        sides: of each, the chances that the value lies below the answer, is it, or lies above it.
        bits: of each, about all its values, as exact as `kind` says.
    """

    kind: Literal["exact", "upper bound", "lower bound"]
    believed: dict[int, Posterior]
    sides: dict[int, tuple[float, float, float]]
    bits: dict[int, float]
    notes: tuple[str, ...]


def learn(
    seen: Published, priors: list[Prior], resolution: Array, believed: Mapping[int, Posterior] | None = None
) -> Learnt:
    """What totals and answer tell, on top of what an iteration told of each honest participant by itself.

    Raises:
        InputError: the prior gives no mass to what was observed, or there is no theory for what is asked.
    """
    if not len(seen.owner) or not seen.cells:  # nobody to learn about, or nothing that was not public before
        return Learnt("exact", {}, {}, {}, ())
    own = _own_priors(seen, priors)
    exact = _chances(seen, own, resolution, believed)
    chances = _told_by_kind(seen, own, believed) if exact is None else exact
    after: dict[int, Posterior] = {}
    alike: dict[tuple[Prior, bytes], Posterior] = {}
    whom = {i: v for i, v in _one_value_of_each(seen).items() if chances[v].any()}
    for i, v in whom.items():
        if believed is not None:
            after[i] = _cut(seen, believed[i], chances[v], own[v])
        else:
            kind = (own[v], chances[v].tobytes())
            after[i] = alike[kind] = alike.get(kind) or _posterior(seen, own[v], chances[v])
    notes = [_UPPER] * (exact is None) + [_LISTS] * seen.lists + [_WEIGHTS] * (not seen.same_weight)
    return Learnt(
        "upper bound" if exact is None else "lower bound" if seen.lists else "exact",
        after,
        {i: _sides(seen, chances[v]) for i, v in whom.items()},
        _count_bits(seen, after, resolution),
        tuple(notes),
    )


def find_floor(
    seen: Published | None, nodes: Sequence[int], priors: list[Prior], resolution: Array, *, iterated: bool
) -> tuple[dict[int, float], str | None]:
    """Bits of the answer alone, of each of the honest nodes; none and why, where they are not known."""
    if seen is None:
        return {}, "no floor: the run ended without an answer that was proved"
    nothing = dict.fromkeys(nodes, 0.0)
    if not len(seen.owner) or not (iterated or seen.cells):  # nobody is left, or the bounds were the answer
        return nothing, None
    own = _own_priors(seen, priors)
    if len(seen.ranks) > 1 and seen.answer is not None:
        bits = _midpoint_floor(seen, own, resolution)
    else:
        found = floor_posteriors(seen.apart or (seen,), own, float(resolution.min()))
        firsts = _one_value_of_each(seen).items()
        bits = found if isinstance(found, str) else _count_bits(seen, {i: found[v] for i, v in firsts}, resolution)
    return ({}, f"no floor: {bits}") if isinstance(bits, str) else (nothing | bits, None)


def _midpoint_floor(seen: Published, own: list[Prior], resolution: Array) -> dict[int, float] | str:
    if not seen.same_weight or len(set(own)) > 1:
        return "the answer is a midpoint, and values differ in prior or weight"
    number, bits = np.bincount(seen.owner), {}
    for each in {float(resolution[i]) for i in seen.owner.tolist()}:
        found = midpoint_bits(seen, own[0], each)
        if isinstance(found, str):
            return found
        bits[each] = found
    return {i: int(number[i]) * bits[float(resolution[i])] for i in set(seen.owner.tolist())}


def _own_priors(seen: Published, priors: list[Prior]) -> list[Prior]:
    """The prior of every honest value, cut to the public bounds."""
    cut = {prior: Within(prior, *seen.bounds) for prior in {priors[i] for i in seen.owner.tolist()}}
    return [cut[priors[i]] for i in seen.owner.tolist()]


def _one_value_of_each(seen: Published) -> dict[int, int]:
    """Of each participant the place of its first value among the honest ones: its others are believed in alike."""
    return {int(i): int(v) for i, v in zip(*np.unique(seen.owner, return_index=True), strict=True)}


def _count_bits(seen: Published, believed: Mapping[int, Posterior], resolution: Array) -> dict[int, float]:
    number = np.bincount(seen.owner)
    bits = cache(Posterior.grid_bits)  # most participants share one posterior, the same object
    return {i: int(number[i]) * bits(each, float(resolution[i])) for i, each in believed.items()}


def _chances(
    seen: Published, own: list[Prior], resolution: Array, believed: Mapping[int, Posterior] | None
) -> Array | None:
    """The chances of every honest value to lie in each cell; None where there are too many ways."""
    totals = np.array([cell.total for cell in seen.cells])
    held = np.flatnonzero(totals).tolist()
    if believed is None and seen.same_weight and len(set(own)) == 1:
        if any(_log_chance(seen, c, own[0], float(resolution.min())) == -math.inf for c in held):
            raise no_mass()
        return np.tile(totals / totals.sum(), (len(own), 1))
    if seen.pair is not None:
        raise InputError("a midpoint is audited where all honest values have one prior, and no iteration came before")
    log_chances = np.full((len(own), len(held)), -math.inf)
    known: dict[tuple[Prior, int], float] = {}
    for v, i in enumerate(seen.owner.tolist()):
        for k, c in enumerate(held):
            if believed is not None:
                mass = sum(weight for weight, _ in _parts_in(seen, c, believed[i], float(resolution[i])))
                log_chances[v, k] = math.log(mass) if mass > 0 else -math.inf
                continue
            if (own[v], c) not in known:
                known[own[v], c] = _log_chance(seen, c, own[v], float(resolution[i]))
            log_chances[v, k] = known[own[v], c]
    found = assign(log_chances, seen.weight.tolist(), totals[held].tolist())
    if found is None:
        return None
    chances = np.zeros((len(own), len(totals)))
    chances[:, held] = found
    return chances


def _log_chance(seen: Published, c: int, prior: Prior, resolution: float) -> float:
    """The prior's mass of a cell."""
    return log_mass(prior, *widen(seen.cells[c].ends(seen.keys), resolution))


def _parts_in(seen: Published, c: int, believed: Posterior, resolution: float | None) -> list[tuple[float, Piece]]:
    """The pieces of a posterior as far as they lie in a cell, and their masses there.

    A single float has the mass of the cell of the resolution; without one, all that a piece around it has.
    """
    low, high = seen.cells[c].ends(seen.keys)
    found: list[tuple[float, Piece]] = []
    for piece in believed.pieces:
        if piece.atom:
            if seen.cells[c].a < seen.keys.key(piece.lower) <= seen.cells[c].b:
                found.append((piece.probability, piece))
            continue
        if low == high and not piece.lower <= low <= piece.upper:
            continue  # near it, but not it: what the iteration told rules this very number out
        if low == high and resolution is None:
            found.append((piece.probability, Piece(1.0, low, high)))
            continue
        lower, upper = (low, high) if resolution is None else widen((low, high), resolution)
        part = Piece(1.0, max(lower, piece.lower), min(upper, piece.upper))
        if part.lower < part.upper:
            whole = log_mass(believed.prior, piece.lower, piece.upper)
            mass = log_mass(believed.prior, part.lower, part.upper) - whole
            found.append((piece.probability * math.exp(min(mass, 0.0)), part))
    return found


def _told_by_kind(seen: Published, own: list[Prior], believed: Mapping[int, Posterior] | None) -> Array:
    """As if told how many of each kind of value lie in each cell; after an iteration each is of its own kind.

    Values of which not even that is known are kinds of their own, and have no chances.
    """
    if seen.hidden is None:
        raise InputError("there are too many ways in which these totals can come about; give one prior for all")
    whose = seen.owner.tolist() if believed is not None else [0] * len(own)
    kinds: dict[tuple[Prior, int, int], list[int]] = {}
    for v, kind in enumerate(zip(own, seen.weight.tolist(), whose, strict=True)):
        if seen.hidden[v] >= 0:
            kinds.setdefault(kind, []).append(v)
    chances = np.zeros((len(own), len(seen.cells)))
    for members in kinds.values():
        chances[members] = np.bincount(seen.hidden[members], minlength=len(seen.cells)) / len(members)
    return chances


def _posterior(seen: Published, prior: Prior, chances: Array) -> Posterior:
    """The prior, cut to the cells and weighed."""
    pieces: list[Piece] = []
    for c in np.flatnonzero(chances).tolist():
        if seen.pair is not None and c in seen.pair.cells:
            pieces += _pair_pieces(seen, c, prior, float(chances[c]))
        else:
            pieces.append(Piece(float(chances[c]), *seen.cells[c].ends(seen.keys)))
    return Posterior(prior, tuple(pieces))


def _cut(seen: Published, believed: Posterior, chances: Array, prior: Prior) -> Posterior:
    """What an iteration told, cut to the cells and weighed again."""
    pieces: list[Piece] = []
    for c in np.flatnonzero(chances).tolist():
        parts = _parts_in(seen, c, believed, None)
        total = sum(weight for weight, _ in parts)
        if not total > 0:
            raise no_mass()
        pieces += [Piece(float(chances[c]) * weight / total, each.lower, each.upper) for weight, each in parts]
    return Posterior(prior, tuple(pieces))


def _pair_pieces(seen: Published, c: int, prior: Prior, chance: float) -> list[Piece]:
    """The keys k of a cell, each as likely as it and what the sum then leaves for the other: P(k)·P(sum − k)."""
    assert seen.pair is not None
    other = seen.cells[sum(seen.pair.cells) - c]
    here, twice = seen.cells[c], seen.pair.twice
    first, last = max(here.a + 1, twice - other.b), min(here.b, twice - other.a - 1)
    if first > last:
        raise InputError("the answer and the totals of this trace do not agree")
    count = last + 1 - first
    edges = [first - 1 + count * k // min(count, _PARTS) for k in range(min(count, _PARTS) + 1)]
    parts = [(Cell(a, b, 0), Cell(twice - b - 1, twice - a - 1, 0)) for a, b in pairwise(edges)]
    # Σ P(k)·P(sum − k) over the m keys of a part, the prior taken as even in it: P(part)·P(mirror image) / m
    masses = [[log_mass(prior, *each.ends(seen.keys)) for each in part] for part in parts]
    logs = np.array([sum(each) - math.log(here.b - here.a) for each, (here, _) in zip(masses, parts, strict=True)])
    if logs.max() == -math.inf:
        raise no_mass()
    weights = np.exp(logs - logs.max())
    weights *= chance / weights.sum()
    return [Piece(float(w), *here.ends(seen.keys)) for w, (here, _) in zip(weights, parts, strict=True) if w > 0]


def _sides(seen: Published, chances: Array) -> tuple[float, float, float]:
    """The chances to lie below, at and above the answer; of a midpoint, the lower of two cells is below."""
    # without a rank all cells are "at"; of two middle cells the lower is below the midpoint and the upper above
    low, high = (seen.reference[0], seen.reference[-1]) if seen.reference else (0, len(chances))
    apart = int(low < high)
    return (
        float(chances[: low + apart].sum()),
        float(chances[low + apart : high + 1 - apart].sum()),
        float(chances[high + 1 - apart :].sum()),
    )
