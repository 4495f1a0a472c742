"""The attack kit: what an adversary does with its view, message by message.

- Branch tracking: running the public recursion over the messages gives q_i(t). With z(0) it is the subgradient
  g_i(t), and its ends are the branches. Without, it is g_i(t) up to a constant, and a jump of left + right tells the
  constant.
- Plateau detection: between the ends, the node is inside and its message is its value.
- Side inference: a q that never moves leaves two hypotheses, always above or always below; `sealed.py` weighs them.
- Totals: a search tells how much weight lies in each cell, and so how probable each cell is for any value; after an
  iteration with clear z(0) the two are taken together (`searched.py`), for other listeners the iteration stands alone.

`track` does the reading from raw messages, and so from rounded numbers: it takes what lies within 1e-8 of an end for
the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.privacy.audit import are_apart, posteriors, searched
from midst.privacy.posterior import Posterior, single
from midst.privacy.priors import Normal, Prior, Priors, prior_of_each
from midst.privacy.searched import learn
from midst.privacy.sights import Branches, Heard, Offset, Sight, Spans, Unseen, offsets
from midst.privacy.views import View
from midst.update import Array

_CLOSE = 1e-8  # to an end, relative to left + right
_RELATIVE_TOLERANCE = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """An adversary's best estimate of every honest node's value. Entries of corrupt nodes are NaN or "".

    Attributes:
        estimate: the value where it is known, a point of probability ½ or more if there is one, else the median of what
            is believed.
        certainty: the probability that the value lies within `tolerance` of the estimate.
        known: whether the value is known for certain.
        how: "plateau" (the value was sent), "bounds" (all branches are seen), "side" (hypotheses were weighed),
            "totals" (a search), "prior" (nothing was learnt).
        tolerance: one a node.
    """

    estimate: Array
    certainty: Array
    known: NDArray[np.bool_]
    how: NDArray[np.str_]
    tolerance: Array

    def __repr__(self) -> str:
        honest = np.isfinite(self.estimate)
        return (
            f"<Reconstruction: {int(self.known.sum())} of {int(honest.sum())} values known, mean certainty "
            f"{float(np.nanmean(self.certainty)):.2f}>"
        )


def reconstruct(view: View, prior: Priors | None = None, tolerance: float | None = None) -> Reconstruction:
    """The best estimate of every honest node's value that a view allows.

    Args:
        view: what the adversary sees.
        prior: what it believed before: one for all nodes, or one a node; N(0, 1) if not given.
        tolerance: what counts as close in `certainty`; a tenth of each prior's scale if not given.

    Raises:
        InputError: the prior gives no mass to what was observed.
    """
    count = view.public.graph.n
    priors = prior_of_each(Normal() if prior is None else prior, count)
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise InputError("tolerance must be a positive number")
    close = np.array([_RELATIVE_TOLERANCE * each.scale if tolerance is None else tolerance for each in priors])
    tracked = replace(view, sights=track(view))
    believed = {node: mixture.posterior for node, mixture in posteriors(tracked, priors).items()}
    told = _totals(tracked, priors, close, believed)
    estimate, certainty = np.full(count, np.nan), np.full(count, np.nan)
    known, how = np.zeros(count, np.bool_), np.full(count, "", "<U7")
    for sight in tracked.sights:
        i = sight.node
        value = None if isinstance(sight, Unseen) else sight.value
        ends = (-math.inf, math.inf) if value is None else (value, value)
        before = believed[i] if i in believed else single(priors[i], i, *ends)
        posterior = told.get(i, before)
        known[i] = posterior.value is not None
        estimate[i] = _best(posterior)
        certainty[i] = posterior.probability(
            math.nextafter(estimate[i] - close[i], -math.inf), math.nextafter(estimate[i] + close[i], math.inf)
        )
        how[i] = "totals" if i in told and before.value is None else _how(sight)
    return Reconstruction(estimate, np.minimum(certainty, 1.0), known, how, close)


def _totals(view: View, priors: list[Prior], close: Array, believed: dict[int, Posterior]) -> dict[int, Posterior]:
    """What is believed once a search has told its totals, of whom they tell anything."""
    if view.published is None or not searched(view) or (view.public.iterations and not are_apart(view)):
        return {}
    return learn(view.published, priors, close, believed if view.public.iterations else None).believed


def track(view: View) -> tuple[Sight, ...]:
    """The sights of a view, read from the raw messages where the view has them."""
    if view.messages is None or view.sums is None or view.public.curvature.any():
        return view.sights
    q = offsets(view.public, view.messages, *view.sums)
    found: list[Sight] = []
    for sight in view.sights:
        i = sight.node
        left, right = float(view.public.left[i]), float(view.public.right[i])
        if left + right == 0 or isinstance(sight, Heard | Unseen):
            found.append(sight)
        elif isinstance(sight, Branches):
            found.append(_track_branches(i, view.messages[:, i], q[:, i], left, right))
        else:
            found.append(_track_offset(i, view.messages[:, i], q[:, i], left, right))
    return tuple(found)


def _track_branches(node: int, x: Array, g: Array, left: float, right: float) -> Branches:
    near = _CLOSE * (left + right)
    above, below = g > right - near, g < near - left
    inside = ~(above | below)
    return Branches(node, float(x[-1]), *_ends(x, above, below), _value(x, inside), _spans(inside, 0))


def _track_offset(node: int, x: Array, q: Array, left: float, right: float) -> Offset:
    near = _CLOSE * (left + right)
    later, moved = x[1:], q[1:]
    seen = Offset(node, float(x[0]), float(x[-1]), float(q[0]), float(q[1]), float(later.min()), float(later.max()))
    top, bottom = float(moved.max()), float(moved.min())
    if top - bottom < near:
        return seen
    if seen.low == seen.high:
        everywhere = np.ones(len(later), np.bool_)
        return replace(seen, value=seen.low, held=(top - right, bottom + left), inside=_spans(everywhere, 1))
    for offset in (top - right, bottom + left):
        above, below = moved > offset + right - near, moved < offset - left + near
        inside = ~(above | below)
        lower, upper = _ends(later, above, below)
        value = _value(later, inside)
        if (value is None or np.ptp(later[inside]) == 0) and lower <= (lower if value is None else value) <= upper:
            break
    return replace(seen, offset=offset, lower=lower, upper=upper, value=value, inside=_spans(inside, 1))


def _ends(x: Array, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> tuple[float, float]:
    return float(x[below].max(initial=-math.inf)), float(x[above].min(initial=math.inf))


def _value(x: Array, inside: NDArray[np.bool_]) -> float | None:
    return float(x[inside][0]) if inside.any() else None


def _spans(inside: NDArray[np.bool_], start: int) -> Spans:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8))) + start
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _best(posterior: Posterior) -> float:
    atoms = [piece for piece in posterior.pieces if piece.atom and piece.probability >= 0.5]
    return atoms[0].lower if atoms else posterior.median()


def _how(sight: Sight) -> str:
    if not isinstance(sight, Unseen) and sight.value is not None:
        return "plateau"
    if isinstance(sight, Unseen | Heard):
        return "prior"
    return "side" if isinstance(sight, Offset) and sight.offset is None else "bounds"
