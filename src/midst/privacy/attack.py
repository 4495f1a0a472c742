"""The attack kit: what an adversary does with its view, message by message.

An attack is a function: of a view, the priors and the resolutions, to what it believes of the nodes it has anything to
say about. `ATTACKS` lists them; a new one is one function, and the tests then hold it against what the audit allows.

| attack         | what it reads                                                                                       |
|----------------|-----------------------------------------------------------------------------------------------------|
| branches       | every branch, where z(0) is known: bounds, or the value                                             |
| sides          | a subgradient up to a constant, where x of all is heard and z(0) is sealed: hypotheses are weighed  |
| plateaus       | a message that is sent twice in a row                                                               |
| jumps          | the same subgradient of one node whose neighbours are all heard, once it has jumped                 |
| inversion      | plateaus of nodes that are not heard, off what those between send (`inversion.py`)                  |
| first message  | x(0) of a node and the z(0) it was sent                                                             |
| totals         | how much weight a search found in each cell                                                         |

What is certain goes before what is probable, and more before less: `best_beliefs`. Each belief is a posterior given a
part of the view, so that its bits are achieved, on average over runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.privacy.inversion import read_plateaus
from midst.privacy.observations import Branches, Heard, Shifted, Unseen
from midst.privacy.posterior import Piece, Posterior, single
from midst.privacy.priors import Normal, Prior, Priors, log_normal_mass, prior_of_each
from midst.privacy.sealed import between, posteriors
from midst.privacy.search_beliefs import learn
from midst.privacy.tracking import read_subgradients, track, track_offset
from midst.privacy.views import View, are_apart, has_totals
from midst.types import Array, Bools

Beliefs = dict[int, Posterior]
Attack = Callable[[View, list[Prior], Array], Beliefs]

_RELATIVE_TOLERANCE = 0.1


def by_branches(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """Bounds, or the value, of nodes all of whose z are known."""
    return _believe(view, priors, Branches)


def by_sides(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """The hypotheses of sealed z(0), weighed."""
    return _believe(view, priors, Shifted)


def by_plateaus(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """The value of a node that was heard twice in a row with the same message."""
    heard = ((each.node, each.value) for each in view.observations if isinstance(each, Heard))
    return {i: between(view, priors, i, value, value) for i, value in heard if value is not None}


def by_jumps(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """Bounds, or the value, of a node that is heard with all its neighbours and has changed its branch."""
    q = read_subgradients(view)
    if q is None or view.messages is None or view.public.theta != 0.5:
        return {}
    found: Beliefs = {}
    for observation in view.observations:
        i = observation.node
        left, right = float(view.public.left[i]), float(view.public.right[i])
        if isinstance(observation, Heard) and left + right > 0 and len(q) > 2 and np.isfinite(q[-1, i]):
            seen = track_offset(i, view.messages[:, i], q[:, i], left, right)
            if seen.shift is not None or seen.value is not None:
                ends = (seen.lower, seen.upper) if seen.value is None else (seen.value, seen.value)
                found[i] = between(view, priors, i, *ends)
    return found


def by_inversion(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """The value of a node that was not heard, off what its neighbours were sent."""
    if view.messages is None or all(not isinstance(observation, Unseen) for observation in view.observations):
        return {}
    values = read_plateaus(view.public, view.messages)
    return {i: between(view, priors, i, value, value) for i, value in values.items()}


def by_first_message(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """On which side of x(0) the value lies: S_i(0) is normal about what is known of it, and tells the branch."""
    public = view.public
    if view.messages is None or view.sums is None or public.curvature.any() or public.sigma == 0:
        return {}
    graph = public.graph
    corrupt = np.isin(np.arange(graph.n), view.adversary.check(graph))
    honest = np.bincount(graph.source[~corrupt[graph.target]], minlength=graph.n)
    found: Beliefs = {}
    for observation in view.observations:
        i = observation.node
        if not isinstance(observation, Heard) or public.left[i] + public.right[i] == 0:
            continue
        x, cd, prior = float(view.messages[0, i]), float(public.cd[i]), priors[i]
        mean, spread = float(view.sums[0][i]) + public.mu * honest[i], public.sigma * math.sqrt(honest[i])
        low, high = ((end - cd * x - mean) / spread for end in (-float(public.right[i]), float(public.left[i])))
        scale = math.log(cd / spread) - math.log(2 * math.pi) / 2  # of a density of S beside a density of s
        logs = np.array(
            [
                prior.log_mass(-math.inf, x) + scale - low * low / 2,
                prior.log_density(x) + float(log_normal_mass(np.array(low), np.array(high))),
                prior.log_mass(x, math.inf) + scale - high * high / 2,
            ]
        )
        weights = np.exp(logs - logs.max())
        ends = ((-math.inf, x), (x, x), (x, math.inf))
        pieces = (Piece(float(w), *end) for w, end in zip(weights / weights.sum(), ends, strict=True) if w > 0)
        found[i] = Posterior(prior, tuple(pieces))
    return found


def by_totals(view: View, priors: list[Prior], cells: Array) -> Beliefs:
    """What the totals of a search leave, whatever came before it."""
    if view.published is None or not has_totals(view):
        return {}
    return learn(view.published, priors, cells).believed


ATTACKS: dict[str, Attack] = {
    "branches": by_branches,
    "sides": by_sides,
    "plateaus": by_plateaus,
    "jumps": by_jumps,
    "inversion": by_inversion,
    "first message": by_first_message,
    "totals": by_totals,
}


@dataclass(frozen=True, repr=False)
class Belief:
    """What is believed of a node, and by which attack."""

    posterior: Posterior
    attack: str


def best_beliefs(view: View, priors: list[Prior], cells: Array) -> dict[int, Belief]:
    """Of each node the belief that tells most, by the raw messages; a node of which nothing is learnt has none."""
    view, found = read_messages(view), dict[int, Belief]()
    if has_totals(view) and are_apart(view) and view.published is not None:
        before = by_branches(view, priors, cells)
        learnt = learn(view.published, priors, cells, before).believed
        found = {i: Belief(each, "totals") for i, each in learnt.items() if before[i].value is None}
    for name in ("branches", "sides", "plateaus", "jumps", "inversion", "totals", "first message"):
        if missing := {observation.node for observation in view.observations} - set(found):
            beliefs = ATTACKS[name](view, priors, cells)
            found |= {i: Belief(each, name) for i, each in beliefs.items() if i in missing}
    return found


def read_messages(view: View) -> View:
    """The same view with its observations read from the raw messages, where it has them."""
    return replace(view, observations=track(view))


def _believe(view: View, priors: list[Prior], kind: type[Branches | Shifted]) -> Beliefs:
    some = tuple(observation for observation in view.observations if isinstance(observation, kind))
    return {i: mixture.posterior for i, mixture in posteriors(replace(view, observations=some), priors).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """An adversary's best estimate of every honest node's value. Entries of corrupt nodes are NaN or "".

    Attributes:
        estimate: the value where it is known, a point of probability ½ or more if there is one, else the median of what
            is believed.
        certainty: the probability that the value lies within `tolerance` of the estimate.
        known: whether the value is known for certain.
        how: "plateau" (the value was sent), "inversion" (the value shows in what others send), "bounds" (branches are
            seen), "side" (hypotheses were weighed), "totals" (a search), "prior" (nothing was learnt).
        tolerance: one a node.
    """

    estimate: Array
    certainty: Array
    known: Bools
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
    beliefs = best_beliefs(view, priors, close)
    estimate, certainty = np.full((2, count), np.nan)
    known, how = np.zeros(count, np.bool_), np.full(count, "", "<U9")
    for i in (observation.node for observation in view.observations):
        belief = beliefs.get(i) or Belief(single(priors[i], "", -math.inf, math.inf), "prior")
        posterior = belief.posterior
        known[i] = posterior.value is not None
        likely = [piece.lower for piece in posterior.pieces if piece.atom and piece.probability >= 0.5]
        estimate[i] = likely[0] if likely else posterior.median()
        certainty[i] = posterior.probability(
            math.nextafter(estimate[i] - close[i], -math.inf), math.nextafter(estimate[i] + close[i], math.inf)
        )
        how[i] = _how(belief)
    return Reconstruction(estimate, np.minimum(certainty, 1.0), known, how, close)


def _how(belief: Belief) -> str:
    if belief.attack in ("totals", "prior", "inversion"):
        return belief.attack
    if belief.posterior.value is not None:
        return "plateau"
    return "side" if belief.attack in ("sides", "first message") and len(belief.posterior.pieces) > 1 else "bounds"
