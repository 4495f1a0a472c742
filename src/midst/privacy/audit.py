"""The audit: what a run gave away to an adversary, as separate facts with separate names.

`exposed` is the paper's criterion, as far as this adversary can be certain of it; `lower` and `upper` are bounds it
can draw; `bits` say how much it learnt, at a stated resolution. Nothing here is computed from more than the
adversary's `View`.

A coalition that does not eavesdrop sees less than one that does: whatever it computes is a function of what the same
coalition with an eavesdropper on sealed z(0) would see. By the data-processing inequality the bits of that one bound
its own from above, on average over runs; the report is then marked "upper bound".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.objectives import Mean
from midst.privacy.adversaries import Adversary
from midst.privacy.exposure import exposure
from midst.privacy.posterior import single
from midst.privacy.priors import Normal, Prior, Priors, prior_of_each
from midst.privacy.sealed import LARGEST, Mixture, sealed_posteriors
from midst.privacy.sights import Branches, Heard, Unseen
from midst.privacy.views import View, view
from midst.trace import Trace
from midst.update import Array

Kind = Literal["exact", "sampled", "upper bound"]

_SIDES = ("below", "at", "above")
_CERTAIN = 1e-9
_RELATIVE_RESOLUTION = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Leakage:
    """What an adversary learnt. Arrays have one entry a node; those of corrupt nodes are NaN (False, −1 or "").

    Attributes:
        adversary: who.
        kind: "exact"; "sampled" (see `bits_error`); or "upper bound", for a coalition that does not eavesdrop.
        exposed: whether the adversary knows the value for certain, or holds it for all but certain (1 − 1e-9).
        exposed_at: the first iteration in which the node is seen to send its value; −1 if none.
        side: "below", "at" or "above": where the value most probably lies, seen from what the node sent last.
        side_probability: how probable that is.
        lower: lower bound of the value.
        upper: upper bound; the same as `lower` if the value is known.
        bits: KL(posterior ‖ prior) at the resolution.
        bits_error: standard error of `bits` by sampling; 0 where nothing was sampled.
        resolution: width of the cells to which values are told apart, one a node.
        share_over_time: the share of honest nodes not yet seen inside, after each iteration.
        notes: what the reader should know besides.
    """

    adversary: Adversary
    kind: Kind
    exposed: NDArray[np.bool_]
    exposed_at: NDArray[np.int64]
    side: NDArray[np.str_]
    side_probability: Array
    lower: Array
    upper: Array
    bits: Array
    bits_error: Array
    resolution: Array
    share_over_time: Array
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"<Leakage to {self.adversary}: {self.exposed_count} of {self.honest} honest nodes exposed, "
            f"{self.mean_bits:.2f} bits a node, {self.kind}>"
        )

    @property
    def honest(self) -> int:
        """How many nodes are honest."""
        return int(np.isfinite(self.bits).sum())

    @property
    def exposed_count(self) -> int:
        """How many of them are exposed."""
        return int(self.exposed.sum())

    @property
    def total_bits(self) -> float:
        """Bits summed over the honest nodes."""
        return float(np.nansum(self.bits))

    @property
    def mean_bits(self) -> float:
        """Bits a node."""
        return float(np.nanmean(self.bits))

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON: infinite bounds and the entries of corrupt nodes are None."""
        nodes = [
            {
                "node": i,
                "corrupt": i in self.adversary.corrupt,
                "exposed": bool(self.exposed[i]),
                "exposed_at": int(self.exposed_at[i]) if self.exposed_at[i] >= 0 else None,
                "side": str(self.side[i]) or None,
                "side_probability": _number(self.side_probability[i]),
                "lower": _number(self.lower[i]),
                "upper": _number(self.upper[i]),
                "bits": _number(self.bits[i]),
                "bits_error": _number(self.bits_error[i]),
            }
            for i in range(len(self.bits))
        ]
        same = bool(np.all(self.resolution == self.resolution[0]))
        return {
            "adversary": {
                "corrupt": list(self.adversary.corrupt),
                "eavesdrops": self.adversary.eavesdrops,
                "init": self.adversary.init,
            },
            "kind": self.kind,
            "nodes": nodes,
            "totals": {
                "honest": self.honest,
                "exposed": self.exposed_count,
                "never_exposed_share": 1 - self.exposed_count / self.honest,
                "bits": self.total_bits,
                "bits_per_node": self.mean_bits,
                "resolution": float(self.resolution[0]) if same else self.resolution.tolist(),
            },
            "notes": list(self.notes),
        }


def audit(
    trace: Trace,
    adversary: Adversary | None = None,
    prior: Priors | None = None,
    resolution: float | None = None,
    *,
    coordinate: int | None = None,
) -> Leakage:
    """What a run gave away.

    Args:
        trace: the record of the run.
        adversary: to whom; an eavesdropper on clear z(0) if not given.
        prior: what it believed before: one for all nodes, or one a node; N(0, 1) if not given.
        resolution: the width of the cells to which values are told apart; a thousandth of each prior's scale if not
            given.
        coordinate: which coordinate, where the values are vectors: a vector is audited a coordinate at a time.

    Raises:
        InputError: the trace lacks what is needed (the message says which `record` brings it), the prior gives no
            mass to what was observed, the adversary does not fit the graph, or there is no theory for what is asked.
    """
    adversary = Adversary() if adversary is None else adversary
    stronger = _stronger(trace, adversary)
    leakage = measure(view(trace, stronger, coordinate), prior, resolution)
    if stronger == adversary:
        return leakage
    note = f"upper bound on average over runs: as if the adversary were an eavesdropper, z(0) {stronger.init}"
    return replace(leakage, adversary=adversary, kind="upper bound", notes=(note, *leakage.notes))


def _stronger(trace: Trace, adversary: Adversary) -> Adversary:
    """The adversary itself where its leakage can be computed, else the weakest one known to see all that it sees."""
    if adversary.eavesdrops:
        return adversary
    adversary.check(trace.graph)
    sealed = not isinstance(trace.objective, Mean) and trace.parameters["theta"] == 0.5
    sealed = sealed and trace.iterations >= 4 and trace.graph.n <= LARGEST
    return replace(adversary, eavesdrops=True, init="sealed" if sealed else "clear")


def measure(view: View, prior: Priors | None = None, resolution: float | None = None) -> Leakage:
    """What an eavesdropping adversary learns from its view; see `audit`.

    Raises:
        InputError: the prior gives no mass to what was observed, or the view is of an adversary that hears too little.
    """
    public = view.public
    count = public.graph.n
    priors = prior_of_each(Normal() if prior is None else prior, count)
    cells = _resolutions(resolution, priors)
    mixtures = posteriors(view, priors)
    seen = exposure(view)
    exposed = np.zeros(count, np.bool_)
    side = np.full(count, "", "<U5")
    numbers = {name: np.full(count, np.nan) for name in ("probability", "lower", "upper", "bits", "error")}
    for sight in view.sights:
        if isinstance(sight, Unseen | Heard):
            raise InputError("leakage is measured for an adversary that eavesdrops; audit() bounds that of others")
        i, mixture = sight.node, mixtures[sight.node]
        posterior = mixture.posterior
        exposed[i] = max((piece.probability for piece in posterior.pieces if piece.atom), default=0.0) > 1 - _CERTAIN
        numbers["lower"][i], numbers["upper"][i] = posterior.bounds
        chances = posterior.sides(sight.last)
        side[i] = _SIDES[int(np.argmax(chances))]
        numbers["probability"][i] = min(max(chances), 1.0)
        numbers["bits"][i] = posterior.bits(cells[i])
        numbers["error"][i] = _jackknife([each.bits(cells[i]) for each in mixture.repeats])
    sampled = any(mixture.sampled for mixture in mixtures.values())
    return Leakage(
        view.adversary,
        "sampled" if sampled else "exact",
        exposed,
        np.where(exposed, np.maximum(seen.first, 0), -1),  # an atom without a plateau is one of t = 0
        side,
        numbers["probability"],
        numbers["lower"],
        numbers["upper"],
        numbers["bits"],
        numbers["error"],
        cells,
        seen.share_over_time(),
        _notes(view),
    )


def posteriors(view: View, priors: list[Prior], method: str = "auto") -> dict[int, Mixture]:
    """The posterior of every honest node of which the view tells branches or offsets."""
    found = sealed_posteriors(view, priors, method)
    for sight in view.sights:
        if isinstance(sight, Branches):
            ends = (sight.lower, sight.upper) if sight.value is None else (sight.value, sight.value)
            found[sight.node] = Mixture(single(priors[sight.node], sight.node, *ends))
    return found


def _notes(view: View) -> tuple[str, ...]:
    notes = []
    if view.public.unique:
        notes.append(f"one value is the {view.public.title}: its holder is always exposed once the run has converged")
    if view.adversary.eavesdrops and view.adversary.init == "sealed" and view.public.sigma == 0:
        notes.append("sigma is 0: z(0) is public, and sealing it hides nothing")
    return tuple(notes)


def _resolutions(resolution: float | None, priors: list[Prior]) -> Array:
    if resolution is None:
        return np.array([prior.scale * _RELATIVE_RESOLUTION for prior in priors])
    if not (isinstance(resolution, Real) and math.isfinite(resolution) and resolution > 0):
        raise InputError("resolution must be a positive number")
    return np.full(len(priors), float(resolution))


def _jackknife(left_out: list[float]) -> float:
    if not left_out:
        return 0.0
    count = len(left_out)
    return math.sqrt((count - 1) / count * sum((each - sum(left_out) / count) ** 2 for each in left_out))


def _number(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
