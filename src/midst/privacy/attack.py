"""The attack kit: what an adversary does with its view, message by message.

- Branches and plateaus are read from the raw messages (`tracking.py`).
- Side inference: a q that never moves leaves two hypotheses, always above or always below; `sealed.py` weighs them.
- Totals: a search tells how much weight lies in each cell, and so how probable each cell is for any value; after an
  iteration with clear z(0) the two are taken together (`searched.py`), for other listeners the iteration stands alone.
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
from midst.privacy.sights import Heard, Offset, Sight, Unseen
from midst.privacy.tracking import track
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


def _best(posterior: Posterior) -> float:
    atoms = [piece for piece in posterior.pieces if piece.atom and piece.probability >= 0.5]
    return atoms[0].lower if atoms else posterior.median()


def _how(sight: Sight) -> str:
    if not isinstance(sight, Unseen) and sight.value is not None:
        return "plateau"
    if isinstance(sight, Unseen | Heard):
        return "prior"
    return "side" if isinstance(sight, Offset) and sight.offset is None else "bounds"
