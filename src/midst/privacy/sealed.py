"""The posterior when z(0) is a secret between honest neighbours (θ = ½), for messages that are real numbers.

Messages are floats, and how they were rounded depends on the branches: to an adversary that works out the last bits it
can tell sides which the posterior here leaves open.

**Offsets.** Write ζ_ij = A_ij z_{i|j}(0) ~ N(μ, σ²), independent, and split each edge between honest nodes into p_ij
= ½(ζ_ij − ζ_ji) and r_ij = ½(ζ_ij + ζ_ji): independent, each of variance ½σ². The z update keeps p and multiplies r
by 1 − 2θ = 0, so with U_i = Σ_j p_ij and V_i = Σ_j r_ij over the honest neighbours the adversary, who runs the public
recursion with all unknown terms zero (`observations.shifted_subgradients`), has

    g_i(0) = q_i(0) − U_i − V_i          g_i(t) = q_i(t) − U_i, t ≥ 1

where g_i(t) = +right_i if x_i(t) > s_i, −left_i if x_i(t) < s_i, and is strictly between if the node is inside,
x_i(t) = s_i. On a connected set of honest nodes with Laplacian L and signless Laplacian Q, h_i honest neighbours
each:

    U ~ N(0, ½σ² L),  Σ U_i = 0              V ~ N(μ h, ½σ² Q),  Σ ε_i V_i = 0 if the set is bipartite, ε = ±1 its sides

**Hypotheses of one node** (general position: a continuous prior, σ > 0, at least three iterations t ≥ 1; what has
probability zero is left out). q over t ≥ 1 shows one of:

- it is constant: the node was always above, U = q − right and s < min x, or always below, U = q + left and s > max x.
  Inside it was not, as x then were constant too, which it is not;
- it has two values left + right apart, or is not constant where x is not: all branches for t ≥ 1 and U are told. (Were
  q at its least where we think it inside, then x would have to be constant where we think it above.)
- it moves while x stays: always inside, s = x, and U is only known to lie within (max q − right, min q + left).

Each goes with up to three for t = 0: above (s < x(0), V = q(0) − U − right), below (s > x(0), V = q(0) − U + left),
inside (s = x(0), V in the interval between those two).

**Weight of a joint hypothesis**: the density of what was observed, under it. Observed are x(0), x(1) (and the point
of each plateau); all later x follow. An outside x is −(g + U + V + known)/(c d) at t = 0 and −(g + U + known)/(c d)
at t = 1, an inside x is s. Changing variables from what is observed to (s, U, V), a node has

    t = 0 outside:   P(s in its interval) · c d · c d · density of (U_i, V_i)
    t = 0 inside:    density of s at x(0)       · c d · density of U_i, V_i integrated over its interval

so relative to each other a point for V_i weighs c d times its density and an interval weighs its probability (one
factor c d stands for U_i and is common). The values are independent of each other and of U and V, hence

    weight = Π_i prior_i · Π_{points} c d_i · density(U) · density(V_points) · P(V_intervals | V_points)

with density(U) taken on Σ U = 0: sign patterns that break the sum have weight zero. On a bipartite set V lies on a
hyperplane. Hypotheses with no one inside at t = 0 then have one observed number fewer than the others: if the
alternating sum fits one of them (it would by chance with probability zero), one of them is the truth, and else none
of them is.

Given the joint hypothesis, values are independent: a node's posterior is the mixture of its own hypotheses' pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csgraph

from midst.errors import InputError
from midst.privacy.enumeration import (
    Component,
    Marginals,
    enumerate_hypotheses,
    integrate_hypotheses,
    is_closed,
    is_short,
)
from midst.privacy.observations import Branches, Public, Shifted
from midst.privacy.particles import sample_hypotheses
from midst.privacy.posterior import Piece, Posterior, no_mass, single
from midst.privacy.priors import Prior
from midst.privacy.views import View
from midst.types import Array

_NEGLIGIBLE = 1e-12  # an enumerated hypothesis below this probability is no part of the support
LARGEST = 400  # nodes of a connected honest set; time and memory grow with its square
_FAR = 9.0  # standard deviations: z(0) makes an offset beyond them with probability below 1e-18


class TooShort(InputError):  # noqa: N818
    """The run ended before a sealed audit can tell two nodes apart."""


@dataclass(frozen=True, repr=False)
class Hypotheses:
    """What may have happened at one node: one entry each.

    Attributes:
        held: the interval in which U_i is only known to lie; None where it is known.
        u: U_i; NaN where it is not known.
        low: the least U_i + V_i.
        high: the greatest; a point if the same.
        log_weight: prior mass or density, times c d_i for a point.
        lower: of the piece of the posterior.
        upper: likewise.
    """

    held: tuple[float, float] | None
    u: Array
    low: Array
    high: Array
    log_weight: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, repr=False)
class Mixture:
    """A node's posterior and how it was summed.

    If a sampler was needed, `repeats` has the posterior with each of its repetitions left out, for an error bar.
    """

    posterior: Posterior
    sampled: bool = False
    repeats: tuple[Posterior, ...] = ()


def posteriors(view: View, priors: list[Prior], method: str = "auto") -> dict[int, Mixture]:
    """The posterior of every honest node of which an iteration told branches or offsets.

    Offsets are summed over by the method: "exact" (every hypothesis), "sampled" (by particles), or "auto": exact where
    the sum is short enough.

    Raises:
        InputError: a prior gives no mass to what was observed, or there is no theory for what was.
    """
    observations = {each.node: each for each in view.observations if isinstance(each, Shifted)}
    public = view.public
    found: dict[int, Mixture] = {}
    for nodes in _honest_components(public, sorted(observations)):
        if len(nodes) > LARGEST:
            raise InputError(f"{len(nodes)} honest nodes hang together; a sealed audit takes up to {LARGEST}")
        every = [hypotheses(public, observations[i], priors[i]) for i in nodes]
        component = assemble(public, nodes, every)
        if method == "exact" or (method == "auto" and is_short(component) and is_closed(component)):
            marginals = enumerate_hypotheses(component)
        elif method == "auto" and is_short(component):
            marginals = integrate_hypotheses(component)
        else:
            marginals = sample_hypotheses(component)
        for k, i in enumerate(nodes):
            found[i] = _mixture(priors[i], every[k], marginals, k)
    for each in view.observations:
        if isinstance(each, Branches):
            found[each.node] = Mixture(between(view, priors, each.node, *each.ends))
    return found


def between(view: View, priors: list[Prior], node: int, lower: float, upper: float) -> Posterior:
    """The posterior of a node whose value lies between two numbers, or is one; refused if the prior excludes that."""
    return single(priors[node], f"node {view.public.graph.label(node)}", lower, upper)


def hypotheses(public: Public, observation: Shifted, prior: Prior) -> Hypotheses:
    """The hypotheses about one node; see the module's docstring.

    Raises:
        InputError: the prior gives no mass to any.
    """
    i = observation.node
    left, right = float(public.left[i]), float(public.right[i])
    above, below = observation.q0 - right, observation.q0 + left  # U + V if x(0) > s and if x(0) < s
    log_cd = math.log(public.cd[i])
    rows: list[tuple[float, ...]] = []

    def add(u: float, low: float, high: float, lower: float, upper: float) -> None:
        # an x(0) sent from outside pins V to a point, and changing variables from x(0) to V costs the Jacobian c·d; one
        # sent from inside is s itself, and V stays free in its interval
        mass = prior.log_density(lower) if lower == upper else prior.log_mass(lower, upper)
        if mass > -math.inf:
            rows.append((u, low, high, mass + (log_cd if low == high else 0.0), lower, upper))

    # what happened from t = 1 on goes with up to three ways to have begun: each cuts s once more, at x(0)
    def add_first(u: float, lower: float, upper: float) -> None:
        x = observation.first
        add(u, above, above, lower, min(upper, x))
        add(u, below, below, max(lower, x), upper)
        if lower < x < upper:
            add(u, above, below, x, x)

    u = math.nan if observation.shift is None else observation.shift
    # of no weight: g is always 0, so q tells U, and nothing is told of s
    if left + right == 0:
        add(u, above, below, -math.inf, math.inf)
    elif observation.value is not None:
        s = observation.value
        add(u, below if s > observation.first else above, above if s < observation.first else below, s, s)
    elif observation.shift is not None:
        add_first(u, observation.lower, observation.upper)
    else:
        # q never changed: from above or from below? That is all the secret there is, and only the sums over all nodes,
        # and the size that z(0) gives to U, weigh the one against the other
        add_first(observation.q1 - right, -math.inf, observation.low)
        add_first(observation.q1 + left, observation.high, math.inf)
    if not rows:
        raise no_mass(f"node {public.graph.label(i)}")
    return Hypotheses(observation.held, *np.array(rows).T)


def assemble(public: Public, nodes: list[int], every: list[Hypotheses]) -> Component:
    """The nodes of one connected honest set, with what may be left out left out.

    Hypotheses that want |U_i| or |V_i − μ h_i| beyond nine standard deviations are dropped unless a node would be
    left with none: z(0) makes such a thing with probability below 1e-18 a node, which is how much of the posterior is
    lost on average over runs.
    """
    adjacency = public.graph.adjacency()[nodes][:, nodes].toarray().astype(np.float64)
    degree = adjacency.sum(axis=1)
    # an edge adds p to U_i and −p to U_j but r to both V: hence Laplacian and signless Laplacian, see cov_u and cov_v
    half = 0.5 * public.sigma**2
    std = np.sqrt(half * degree)
    magnitude = max(float(np.nanmax(np.abs([h.u, h.low, h.high]))) for h in every)
    # U of a node takes values left + right = 2·w_i apart, so Σ U moves on a lattice of 2·unit. Whether it vanishes is
    # asked up to rounding, which must stay far below that step or two sign patterns could not be told apart
    tolerance = 1e-9 * public.unit + 256 * np.finfo(float).eps * magnitude * len(nodes)
    if tolerance > 1e-3 * public.unit:
        raise InputError("the weights are too fine, or the values too far from 0, for a sealed audit at this precision")
    # Σ U = 0 gives one unknown U away, but not two
    if sum(h.held is not None for h in every) > 1:
        raise TooShort("two nodes were inside from iteration 1 to the end; a sealed audit needs a longer run")
    kept = []
    for k, h in enumerate(every):
        with np.errstate(invalid="ignore"):
            far = np.abs(h.u) > _FAR * std[k]
            centre = public.mu * degree[k] + h.u
            far |= (h.low - centre > _FAR * std[k]) | (h.high - centre < -_FAR * std[k])
        kept.append(np.flatnonzero(~far | far.all()))
    names = ("u", "low", "high", "log_weight")
    columns = {name: [getattr(h, name)[keep] for h, keep in zip(every, kept, strict=True)] for name in names}
    return Component(
        **columns,
        kept=kept,
        held=next(((k, h.held) for k, h in enumerate(every) if h.held is not None), None),
        cov_u=half * (np.diag(degree) - adjacency),
        cov_v=half * (np.diag(degree) + adjacency),
        mean_v=public.mu * degree,
        sides=_two_sides(adjacency),
        lattice=2 * public.unit,
        tolerance=tolerance,
    )


def _mixture(prior: Prior, all_of_node: Hypotheses, marginals: Marginals, k: int) -> Mixture:
    lower, upper = (ends[marginals.kept[k]].tolist() for ends in (all_of_node.lower, all_of_node.upper))

    def posterior(probability: Array) -> Posterior:
        every = zip(probability.tolist(), lower, upper, strict=True)
        pieces = [piece for piece in every if marginals.sampled or piece[0] > _NEGLIGIBLE]
        total = sum(p for p, _, _ in pieces)
        return Posterior(prior, tuple(Piece(p / total, *ends) for p, *ends in pieces))

    repeats = tuple(posterior(row) for row in marginals.repeats[k])
    return Mixture(posterior(marginals.probability[k]), marginals.sampled, repeats)


def _honest_components(public: Public, nodes: list[int]) -> list[list[int]]:
    if not nodes:
        return []
    graph = public.graph.adjacency()[nodes][:, nodes]
    count, component = csgraph.connected_components(graph, directed=False)
    return [[nodes[k] for k in np.flatnonzero(component == which)] for which in range(count)]


def _two_sides(adjacency: Array) -> Array | None:
    """±1 a node such that neighbours differ, if the (connected) set is bipartite."""
    hops = csgraph.shortest_path(adjacency, unweighted=True, indices=0)
    sides = np.where(hops % 2 == 0, 1.0, -1.0)
    return sides if not (adjacency * (np.outer(sides, sides) > 0)).any() else None
