"""Reading raw messages: which branch each message came from, as far as an adversary can tell.

Running the public recursion over the messages gives q_i(t). With z(0) it is the subgradient g_i(t), and its ends are
the branches. Without, it is g_i(t) up to a constant, and a jump of left + right tells the constant. Of a node whose
neighbours are not all heard there is no q, but a message that is sent twice in a row is a plateau.

Numbers are rounded: what lies within 1e-8 of an end is taken for the end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from midst.privacy.observations import (
    Branches,
    Heard,
    Observation,
    Shifted,
    Unseen,
    bounds_of,
    shifted_subgradients,
    spans_of,
    value_inside,
)
from midst.privacy.views import View
from midst.types import Array

_CLOSE = 1e-8  # to an end, relative to left + right


def track(view: View) -> tuple[Observation, ...]:
    """The observations of a view, read from the raw messages where the view has them."""
    q = read_subgradients(view)
    if q is None or view.messages is None:
        return view.observations
    found: list[Observation] = []
    for observation in view.observations:
        i = observation.node
        left, right = float(view.public.left[i]), float(view.public.right[i])
        x, last = view.messages[:, i], float(view.messages[-1, i])
        if left + right == 0 or isinstance(observation, Unseen):
            found.append(observation)
        elif isinstance(observation, Shifted):
            found.append(track_offset(i, x, q[:, i], left, right))
        elif isinstance(observation, Branches):
            near = _CLOSE * (left + right)
            above, below = q[:, i] > right - near, q[:, i] < near - left
            inside = ~(above | below)
            found.append(Branches(i, last, *bounds_of(x, above, below), value_inside(x, inside), spans_of(inside)))
        elif view.public.sigma > 0:
            same = np.concatenate([[False], x[1:] == x[:-1], [False]])
            inside = same[:-1] | same[1:]  # twice the same in a row is the value
            found.append(Heard(i, last, value_inside(x, inside), spans_of(inside)))
        else:
            found.append(observation)
    return tuple(found)


def read_subgradients(view: View) -> Array | None:
    """What the recursion over the messages makes, where the view has them and subgradients are of quantiles."""
    if view.messages is None or view.sums is None or view.public.curvature.any():
        return None
    return shifted_subgradients(view.public, view.messages, *view.sums)


def track_offset(node: int, x: Array, q: Array, left: float, right: float) -> Shifted:
    """What a subgradient that is known up to a constant tells, from t = 1 on."""
    near = _CLOSE * (left + right)
    later, moved = x[1:], q[1:]
    seen = Shifted.of(node, x, q)
    top, bottom = float(moved.max()), float(moved.min())
    if top - bottom < near:
        return seen
    if seen.low == seen.high:
        return replace(seen, value=seen.low, held=(top - right, bottom + left), inside=((1, len(x)),))
    for shift in (top - right, bottom + left):
        above, below = moved > shift + right - near, moved < shift - left + near
        inside = ~(above | below)
        lower, upper = bounds_of(later, above, below)
        value = value_inside(later, inside)
        if (value is None or np.ptp(later[inside]) == 0) and lower <= (lower if value is None else value) <= upper:
            break
    return replace(seen, shift=shift, lower=lower, upper=upper, value=value, inside=spans_of(inside, 1))
