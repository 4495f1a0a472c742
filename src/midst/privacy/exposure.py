"""Theorem 1, the paper's criterion: a node is exposed when it is inside at some t.

Its message is then x_i(t) = s_i. This is a fact of its own, beside bounds and bits: a node that is not exposed still
tells on which side of its messages it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from midst.privacy.observations import Shifted, Spans, Unseen
from midst.privacy.views import View
from midst.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Exposure:
    """Which nodes the adversary sees inside, and when.

    Attributes:
        exposed: one a node; False for corrupt ones.
        first: the first iteration inside, −1 if none.
        spans: all iterations inside, as (start, stop).
        view: in which they are seen.
    """

    exposed: Bools
    first: Ints
    spans: tuple[Spans, ...]
    view: View

    def share_over_time(self) -> Array:
        """The share of honest nodes not yet inside, after each iteration."""
        first = self.first[self.view.honest]
        arrivals = np.bincount(first[first >= 0], minlength=self.view.public.iterations)
        return np.asarray(1 - np.cumsum(arrivals) / len(first))


def exposure(view: View) -> Exposure:
    """Who was inside as far as the view tells for certain."""
    spans: list[Spans] = [()] * view.public.graph.n
    for seen in view.observations:
        if isinstance(seen, Unseen):
            continue
        spans[seen.node] = seen.inside
        if isinstance(seen, Shifted) and seen.value is not None and seen.value == seen.first:
            # t = 0 too, which a message equal to the value gives away
            (start, stop), *rest = seen.inside
            spans[seen.node] = ((0, stop), *rest) if start == 1 else ((0, 1), *seen.inside)
    first = np.array([each[0][0] if each else -1 for each in spans], np.int64)
    return Exposure(first >= 0, first, tuple(spans), view)
