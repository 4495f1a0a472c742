"""Who may be where: the posterior of everybody's cell, given only sums over all.

Each of h independent values falls into one of a few cells, with its own prior chances, and adds its weight to that of
the cell. Of all ways in which that can happen, those remain whose sums are acceptable: the totals that a search
published, or an answer of the right rank. Adding up the remaining ways, value by value, from both sides gives each
value's chances given that (the Poisson-multinomial posterior; with weights, over subset sums).

Rules:
- Exact, in logarithms. The number of different partial sums is limited; past it there is no figure, never a wrong one.
- Values that are alike (same prior, same weight) need none of this: see `search_beliefs.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from midst.privacy.posterior import no_mass
from midst.types import Array

MOST_SUMS = 200_000  # partial sums kept, over all values: some seconds

Sums = tuple[int, ...]
Option = tuple[int, float]


def assign(
    log_chances: Array, weights: Sequence[int], most: Sequence[int], accepts: Callable[[Sums], bool] = lambda sums: True
) -> Array | None:
    """The chances of each value's cell, given that the sums of the cells are acceptable; None where they are too many.

    Prior chances are logarithms, shape (values, cells); a factor common to a row does not matter. Weights are positive.
    No cell's sum may exceed the `most` of it. Where these add up to all the weight, they are the sums.

    Raises:
        InputError: no way leads to acceptable sums.
    """
    values, cells = log_chances.shape
    options = [[(c, float(row[c])) for c in range(cells) if row[c] > -math.inf] for row in log_chances]
    layers: list[dict[Sums, float]] = [{(0,) * cells: 0.0}]
    kept = 0
    for own, weight in zip(options, weights, strict=True):
        after: dict[Sums, float] = {}
        for sums, before in layers[-1].items():
            for c, chance in own:
                if (new := _add(sums, c, weight, most)) is not None:
                    after[new] = _log_add(after.get(new, -math.inf), before + chance)
        kept += len(after)
        if kept > MOST_SUMS:
            return None
        layers.append(after)
    onward = {sums: 0.0 for sums in layers[-1] if accepts(sums)}  # by how many ways it goes on to acceptable sums
    if not onward:
        raise no_mass()
    found = np.full((values, cells), -math.inf)
    for v in reversed(range(values)):
        earlier: dict[Sums, float] = {}
        for sums, before in layers[v].items():
            for c, chance in options[v]:
                new = _add(sums, c, weights[v], most)
                if new is not None and new in onward:
                    rest = chance + onward[new]
                    earlier[sums] = _log_add(earlier.get(sums, -math.inf), rest)
                    found[v, c] = _log_add(float(found[v, c]), before + rest)
        onward = earlier
    chances = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _add(sums: Sums, c: int, weight: int, most: Sequence[int]) -> Sums | None:
    total = sums[c] + weight
    return (*sums[:c], total, *sums[c + 1 :]) if total <= most[c] else None


def _log_add(a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))
