"""The audit: what a run gave away to an adversary, as separate facts with separate names.

`exposed` is the paper's criterion, as far as this adversary can be certain of it; `lower` and `upper` are bounds it
can draw; `bits` say how much it learnt, at a stated resolution; `floor` how much of that the answer alone tells,
however it was found; `excess` the rest, by which ways of finding it are compared. Nothing here is computed from more
than the adversary's `View`, but for what is marked as an upper bound.

A run is an iteration, a search, or an iteration that ends in a search. Of a search everybody learns totals and the
answer (`search_beliefs.py`), whoever hears what. Of both, an eavesdropper on clear z(0) believes in each node by itself
after the iteration, and what the totals say comes on top; for all others that one is an upper bound.

A coalition that does not eavesdrop, but has a member beside every honest node, hears every x all the same, and its
report is as good as an eavesdropper's on sealed z(0). Any other sees less than that one: whatever it computes is a
function of what that one sees. By the data-processing inequality the bits of that one bound its own from above, on
average over runs; the report is then marked "upper bound", and `at_least` says what the best attack here makes of what
the coalition did hear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.frames import make_frame
from midst.graphs import Graph
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.attack import best_beliefs
from midst.privacy.disclosed import see_together
from midst.privacy.exposure import exposure
from midst.privacy.observations import Heard, Shifted, Unseen
from midst.privacy.posterior import Posterior
from midst.privacy.priors import Normal, Prior, Priors, prior_of_each
from midst.privacy.published import is_search
from midst.privacy.sealed import LARGEST, Mixture, posteriors
from midst.privacy.search_beliefs import find_floor, learn
from midst.privacy.views import SHORTEST, View, are_apart, has_totals, hears_everybody, view
from midst.rows import Report, count_named
from midst.trace import Trace
from midst.types import Array, Bools, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from midst.plots.style import Width

LeakagePanel = Literal["bounds", "bits", "share"]
FigureKind = Literal["exact", "sampled", "upper bound", "lower bound"]

_SIDES = ("below", "at", "above")
_NUMBERS = "side_probability lower upper bits at_least floor excess bits_error".split()
_OF_NODES = """
    exposed exposed_at side side_probability lower upper bits bits_error at_least floor excess resolution
""".split()
_IN_JSON = {"at_least": "bits_at_least"}
_CERTAIN = 1e-9
_RELATIVE_RESOLUTION = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Leakage(Report):
    """What an adversary learnt. Arrays have one entry a node; those of corrupt nodes are NaN (False, −1 or "").

    So are those of the others where the trace is one participant's own record.

    Attributes:
        adversary: who.
        kind: "exact"; "sampled" (see `bits_error`); "upper bound", of a stronger adversary; or "lower bound", of lists,
            and of a sealed z(0), where the rounding of floats may tell more (see `notes`).
        exposed: whether the adversary knows the value for certain, or holds it for all but certain (1 − 1e-9).
        exposed_at: the first iteration in which the node is seen to send its value; −1 if none.
        side: "below", "at" or "above": where the value most probably lies, seen from what the node sent last; after a
            search, seen from the answer.
        side_probability: how probable that is.
        lower: lower bound of the value.
        upper: upper bound; the same as `lower` if the value is known.
        bits: KL(posterior ‖ prior) at the resolution.
        bits_error: standard error of `bits` by sampling; 0 where nothing was sampled.
        at_least: bits that the best attack here achieves (`attack.py`): the same as `bits` but for an upper bound. What
            was learnt lies between the two, on average over runs.
        resolution: width of the cells to which values are told apart, one a node.
        floor: bits that the answer alone gives away, however it was found; NaN where that is not known (see `notes`).
        excess: bits − floor.
        share_over_time: the share of honest nodes not yet seen inside, after each iteration; of a search without any,
            whose value is not certain, after each step.
        searched: whether the answer was searched for, without any iteration.
        notes: what the reader should know besides.
        graph: of the run; it has the names of the nodes.
    """

    adversary: Adversary
    kind: FigureKind
    exposed: Bools
    exposed_at: Ints
    side: NDArray[np.str_]
    side_probability: Array
    lower: Array
    upper: Array
    bits: Array
    bits_error: Array
    at_least: Array
    resolution: Array
    floor: Array
    excess: Array
    share_over_time: Array
    notes: tuple[str, ...]
    graph: Graph
    searched: bool = False

    def __repr__(self) -> str:
        return (
            f"<Leakage to {self.audience}: {self.exposed_count} of {self.honest} honest nodes exposed, "
            f"{self.mean_bits:.2f} bits a node{self.split}, {self.kind}>"
        )

    @property
    def audience(self) -> str:
        """To whom, in words: a search has no z(0), and whoever hears anything hears its totals."""
        if not self.searched:
            return str(self.adversary)
        return str(replace(self.adversary, eavesdrops=False)) if self.adversary.corrupt else "whoever hears the totals"

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

    @property
    def mean_at_least(self) -> float:
        """Bits a node that the best attack here achieves."""
        return _mean(self.at_least)

    @property
    def mean_floor(self) -> float:
        """Of these the answer's own, a node; NaN where that is not known."""
        return _mean(self.floor)

    @property
    def mean_excess(self) -> float:
        """And the rest."""
        return self.mean_bits - self.mean_floor

    @property
    def split(self) -> str:
        """Floor and excess, in words; nothing where they are not known."""
        return "" if math.isnan(self.mean_floor) else f" ({self.mean_floor:.2f} floor, {self.mean_excess:.2f} excess)"

    def rows(self) -> list[tuple[str, str]]:
        """The report as lines for people: (what, how much)."""
        error = float(np.nanmax(self.bits_error))
        bits = f"{self.mean_bits:.2f} in the mean{self.split}, {np.nanmax(self.bits):.2f} at most"
        exposed = np.flatnonzero(self.exposed).tolist()
        lower = f"{self.mean_at_least:.2f}, by the best attack here"
        return [
            ("told to", self.audience),
            ("exposed", count_named(map(self.graph.label, exposed), self.honest, "honest nodes")),
            ("bits a node", f"{bits}; {self.kind}" + (f", ± {2 * error:.2g}" if error else "")),
            *([("at least", lower)] if self.kind == "upper bound" and np.isfinite(self.at_least).any() else []),
            *(("note", note) for note in self.notes),
        ]

    @overload
    def plot(self, ax: None = None, *, of: LeakagePanel | None = None, width: Width | None = None) -> Figure: ...
    @overload
    def plot(self, ax: Axes, *, of: LeakagePanel | None = None) -> Axes: ...
    def plot(
        self, ax: Axes | None = None, *, of: LeakagePanel | None = None, width: Width | None = None
    ) -> Figure | Axes:
        """Draw bounds and bits of every node, and the share not yet exposed: what the adversary knows.

        Args:
            ax: axes of matplotlib to draw one of the three into, the bits if not said otherwise; returned, then.
            of: "bounds", "bits" or "share": that alone.
            width: of the figure: "column" or "page" of a journal; for a screen if not given.

        Raises:
            InputError: what is asked for is not there.
            MissingExtra: matplotlib is not installed.
        """
        from midst.plots.leakage import draw_leakage

        return draw_leakage(self, ax=ax, of=of, width=width)

    def to_pandas(self) -> DataFrame:
        """A row a node, corrupt ones included, as the adversary sees it.

        Columns: `node`, `corrupt`, and the attributes that have an entry a node: `exposed`, `exposed_at`, `side`,
        `side_probability`, `lower`, `upper`, `bits`, `bits_error`, `at_least`, `floor`, `excess`, `resolution`. Where
        the adversary knows a value, that is what `lower` and `upper` are.

        Raises:
            MissingExtra: pandas is not installed.
        """
        node = range(len(self.bits))
        columns = {"node": self.graph.names(node), "corrupt": np.isin(node, self.adversary.check(self.graph))}
        return make_frame(columns | {name: getattr(self, name) for name in _OF_NODES})

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON: infinite bounds and the entries of corrupt nodes are None.

        Nodes of which the trace has no record are left out.
        """
        corrupt = self.adversary.check(self.graph)
        nodes = [
            {
                "node": node,
                "corrupt": i in corrupt,
                "exposed": bool(self.exposed[i]),
                "exposed_at": int(self.exposed_at[i]) if self.exposed_at[i] >= 0 else None,
                "side": str(self.side[i]) or None,
                **{_IN_JSON.get(name, name): _number(getattr(self, name)[i]) for name in _NUMBERS},
            }
            for i, node in enumerate(self.graph.names(range(len(self.bits))))
            if i in corrupt or math.isfinite(self.bits[i])
        ]
        same = bool(np.all(self.resolution == self.resolution[0]))
        return {
            "adversary": {
                "corrupt": list(self.graph.names(corrupt)),
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
                "bits_at_least_per_node": _number(self.mean_at_least),
                "floor_per_node": _number(self.mean_floor),
                "excess_per_node": _number(self.mean_excess),
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
    attacks: bool = True,
    seen: View | None = None,
) -> Leakage:
    """What a run gave away.

    Args:
        trace: the record of the run.
        adversary: to whom; an eavesdropper on clear z(0) if not given.
        prior: what it believed before: one for all nodes, or one a node; N(0, 1) if not given.
        resolution: the width of the cells to which values are told apart; a thousandth of each prior's scale if not
            given.
        coordinate: which coordinate, where the values are vectors: a vector is audited a coordinate at a time.
        attacks: whether to attack where bits are an upper bound, for `at_least`; not a number where not.
        seen: what `view` has made of this trace and coordinate before; spares making it again where it is of the
            adversary that is measured.

    Raises:
        InputError: the trace lacks what is needed (the message says which `record` brings it), the prior gives no
            mass to what was observed, the adversary does not fit the graph, or there is no theory for what is asked.
    """
    adversary = Adversary() if adversary is None else adversary
    if trace.own is not None:
        return _audit_own(trace, trace.own, adversary, prior, resolution, coordinate)
    stronger = _stronger(trace, adversary)
    if seen is None or seen.adversary != stronger:
        seen = view(trace, stronger, coordinate)
    leakage = measure(seen, prior, resolution)
    if stronger == adversary:
        return leakage
    return _as_bound(leakage, adversary, trace, coordinate, prior, attacks)


def _audit_own(
    trace: Trace, own: int, adversary: Adversary, prior: Priors | None, resolution: float | None, coordinate: int | None
) -> Leakage:
    """What one participant's own record shows of itself; nothing is said of others.

    Raises:
        InputError: it is asked of one who hears less of this participant's iteration than all.
    """
    searched = is_search(trace)
    if not (searched or (adversary.eavesdrops and adversary.init == "clear")) or own in adversary.check(trace.graph):
        raise InputError(
            "one participant's record shows what it told an eavesdropper, z(0) in the clear; for others simulate a run"
        )
    leakage = measure(view(trace, adversary, coordinate), prior, resolution)
    others = np.arange(trace.graph.n) != own
    leakage.exposed[others], leakage.exposed_at[others], leakage.side[others] = False, -1, ""
    for name in _NUMBERS:
        getattr(leakage, name)[others] = np.nan
    when = np.arange(len(leakage.share_over_time))
    exposed = leakage.exposed[own] & (when >= leakage.exposed_at[own])
    leakage = replace(leakage, share_over_time=1.0 - exposed)
    if searched or not trace.probes:
        return leakage
    note = "who hears others too knows more of them, and so may make more of the totals"
    return replace(leakage, kind="lower bound", notes=(note, *leakage.notes))


def _as_bound(
    leakage: Leakage, adversary: Adversary, trace: Trace, coordinate: int | None, prior: Priors | None, attacks: bool
) -> Leakage:
    """The report on a stronger adversary as a bound on what this one learns."""
    cells = leakage.resolution
    achieved = _achieve(trace, adversary, coordinate, prior, cells) if attacks else np.full(len(cells), np.nan)
    init = leakage.adversary.init
    note = f"upper bound on average over runs: as if the adversary were an eavesdropper, z(0) {init}"
    return replace(leakage, adversary=adversary, kind="upper bound", at_least=achieved, notes=(note, *leakage.notes))


def _achieve(trace: Trace, adversary: Adversary, coordinate: int | None, prior: Priors | None, cells: Array) -> Array:
    """Bits that the best attack achieves on what this adversary sees itself; NaN for corrupt nodes."""
    priors = prior_of_each(Normal() if prior is None else prior, trace.graph.n)
    bits = np.where(np.isin(range(trace.graph.n), adversary.check(trace.graph)), np.nan, 0.0)
    try:
        beliefs = best_beliefs(view(trace, adversary, coordinate), priors, cells)
    except InputError:  # too short a run, or another theta: nothing is known to be achieved
        return bits
    for i, belief in beliefs.items():
        bits[i] = belief.posterior.grid_bits(float(cells[i]))
    return bits


def audit_together(
    traces: Sequence[Trace],
    adversary: Adversary | None = None,
    prior: Priors | None = None,
    resolution: float | None = None,
    *,
    coordinate: int | None = None,
    attacks: bool = True,
) -> Leakage:
    """What several runs gave away together, of the same values of the same participants; see `audit`.

    Each total counts once, whichever search told it: the same search again tells nothing new. Iterations draw z(0)
    anew, and what they tell an eavesdropper on clear z(0) of a node is the intersection of its bounds. For others that
    one is an upper bound, as soon as one of the runs is an iteration, and `at_least` is what the best attack achieves
    on the first run alone. `exposed_at` and `share_over_time` count the iterations of all runs, end to end. The floor
    is that of all answers together; of some questions it is not known.

    Raises:
        InputError: as `audit` does; or the runs are not of the same values.
    """
    if not traces:
        raise InputError("there is nothing to audit together; give at least one trace")
    adversary = Adversary() if adversary is None else adversary
    if len(traces) == 1:
        return audit(traces[0], adversary, prior, resolution, coordinate=coordinate, attacks=attacks)
    heard = adversary if all(map(is_search, traces)) else replace(adversary, eavesdrops=True, init="clear")
    leakage = measure(see_together([view(trace, heard, coordinate) for trace in traces]), prior, resolution)
    if heard == adversary:
        return leakage
    return _as_bound(leakage, adversary, traces[0], coordinate, prior, attacks)


def _stronger(trace: Trace, adversary: Adversary) -> Adversary:
    """The adversary itself where its leakage can be computed, else the weakest one known to see all that it sees."""
    if is_search(trace):
        return adversary
    adversary.check(trace.graph)
    if trace.probes:  # with sealed z(0) nodes are not believed in one by one, and totals do not simply come on top
        return replace(adversary, eavesdrops=True, init="clear")
    kinked = isinstance(trace.objective, Quantile)
    if hears_everybody(trace, adversary) and (kinked or adversary.eavesdrops):
        return adversary
    sealed = kinked and trace.parameters["theta"] == 0.5
    sealed = sealed and trace.iterations >= SHORTEST and trace.graph.n <= LARGEST
    return replace(adversary, eavesdrops=True, init="sealed" if sealed else "clear")


def measure(view: View, prior: Priors | None = None, resolution: float | None = None) -> Leakage:
    """What an eavesdropping adversary learns from its view; see `audit`.

    Raises:
        InputError: the prior gives no mass to what was observed, or the view is of an adversary that hears too little.
    """
    priors = prior_of_each(Normal() if prior is None else prior, view.public.graph.n)
    leakage, believed = _know_nothing(view, priors, resolutions(resolution, priors)), None
    if view.public.iterations:
        mixtures = posteriors(view, priors)
        leakage = _with_iteration(leakage, view, mixtures)
        believed = {node: mixture.posterior for node, mixture in mixtures.items()}
        if has_totals(view) and not are_apart(view):
            raise InputError(
                "a search after an iteration is measured for z(0) in the clear; audit() bounds others by that"
            )
    return _with_search(leakage, view, priors, believed) if has_totals(view) else leakage


def _know_nothing(view: View, priors: list[Prior], cells: Array) -> Leakage:
    """The report before anything was heard; its arrays are for those to write in who know what was."""
    count = len(priors)
    honest = np.isin(np.arange(count), view.honest)
    ones = np.where(honest, 1.0, np.nan)
    bits, floor = 0 * ones, np.full(count, np.nan)
    found, why = find_floor(view.published, view.honest.tolist(), priors, cells, iterated=view.public.iterations > 0)
    floor[list(found)] = list(found.values())
    steps = 0 if view.published is None else view.published.steps
    return Leakage(
        view.adversary,
        "exact",
        np.zeros(count, np.bool_),
        np.full(count, -1),
        np.where(honest, "at", "").astype("<U5"),
        ones,
        -np.inf * ones,
        np.inf * ones,
        bits,
        0 * ones,
        bits,
        cells,
        floor,
        bits - floor,
        np.ones(max(steps, 1)),
        (*_notes(view), *([] if why is None else [why])),
        graph=view.public.graph,
        searched=not view.public.iterations,
    )


def _with_iteration(leakage: Leakage, view: View, mixtures: dict[int, Mixture]) -> Leakage:
    """The report with what an iteration told written in."""
    for observation in view.observations:
        if isinstance(observation, Unseen | Heard):
            raise InputError("leakage is measured for an adversary that eavesdrops; audit() bounds that of others")
        i, mixture = observation.node, mixtures[observation.node]
        posterior, cell = mixture.posterior, float(leakage.resolution[i])
        atoms = (piece.probability for piece in posterior.pieces if piece.atom)
        leakage.exposed[i] = max(atoms, default=0.0) > 1 - _CERTAIN
        _write(leakage, i, posterior, posterior.sides(observation.last), posterior.bits(cell))
        leakage.bits_error[i] = _jackknife([each.bits(cell) for each in mixture.repeats])
    seen = exposure(view)
    sampled = any(mixture.sampled for mixture in mixtures.values())
    return replace(
        leakage,
        kind="sampled" if sampled else "lower bound" if _hides_sums(view) else "exact",
        exposed_at=np.where(leakage.exposed, np.maximum(seen.first, 0), -1),  # an atom without a plateau is of t = 0
        excess=leakage.bits - leakage.floor,
        share_over_time=seen.share_over_time(),
    )


def _with_search(leakage: Leakage, view: View, priors: list[Prior], believed: dict[int, Posterior] | None) -> Leakage:
    """The report with what a search told written in, on top of what was believed before it."""
    assert view.published is not None
    learnt = learn(view.published, priors, leakage.resolution, believed)
    for i, posterior in learnt.believed.items():
        leakage.exposed[i] |= _is_certain(posterior, float(leakage.resolution[i]))
        _write(leakage, i, posterior, learnt.sides[i], learnt.bits[i])
    if believed is None:
        leakage.share_over_time[-1] = 1 - leakage.exposed_count / leakage.honest
    kind = leakage.kind if learnt.kind == "exact" else learnt.kind
    notes = (*leakage.notes, *learnt.notes)
    return replace(leakage, kind=kind, excess=leakage.bits - leakage.floor, at_least=leakage.bits, notes=notes)


def _write(leakage: Leakage, i: int, posterior: Posterior, chances: Sequence[float], bits: float) -> None:
    """Write in what is believed of a node in the end."""
    leakage.lower[i], leakage.upper[i] = posterior.bounds
    leakage.side[i], leakage.side_probability[i] = _SIDES[int(np.argmax(chances))], min(max(chances), 1.0)
    leakage.bits[i] = bits


def _is_certain(posterior: Posterior, resolution: float) -> bool:
    """Whether the value is known at a resolution, or all but."""
    width = resolution * (1 + _CERTAIN)
    lower, upper = posterior.bounds
    narrow = (piece.probability for piece in posterior.pieces if piece.upper - piece.lower <= width)
    return upper - lower <= width or max(narrow, default=0.0) > 1 - _CERTAIN


def _notes(view: View) -> tuple[str, ...]:
    notes = []
    if view.public.unique and (view.published is None or not view.published.cells):
        notes.append(f"one value is the {view.public.title}: its holder is always exposed once the run has converged")
    if view.adversary.eavesdrops and view.adversary.init == "sealed" and view.public.sigma == 0:
        notes.append("sigma is 0: z(0) is public, and sealing it hides nothing")
    if _hides_sums(view):
        notes.append("z(0) is sealed: figures are for real numbers; the rounding of floats can tell sides besides")
    return tuple(notes)


def _hides_sums(view: View) -> bool:
    """Say if z(0) is sealed: it hides sums of real numbers, but not how floats were rounded."""
    return any(isinstance(observation, Shifted) for observation in view.observations)


def resolutions(resolution: float | None, priors: list[Prior]) -> Array:
    """One a node: a thousandth of its prior's scale, if none is given."""
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


def _mean(figures: Array) -> float:
    """Return the mean of the figures that are known; NaN if none is."""
    return float(np.nanmean(figures)) if np.isfinite(figures).any() else math.nan


def _number(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
