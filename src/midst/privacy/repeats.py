"""What the runs of a ledger told together about one node's value; the head of `ledger.py` says what the figure is.

Rules:
- What can be joined is joined by `disclosed.py`, as the audit does it; what cannot is added up, and the figure says so.
- Without totals the others do not matter: an iteration tells of each node by itself.
- A run that took place is never refused here. Runs that contradict each other are of other values of the others, and
  runs that cannot be weighed count with their own bits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from midst.errors import InputError
from midst.privacy.audit import resolutions
from midst.privacy.disclosed import Disclosure, join_disclosures, weigh
from midst.privacy.priors import Prior
from midst.privacy.published import Published
from midst.privacy.search_beliefs import find_floor
from midst.types import Array

FIGURE_KINDS = ("exact", "upper bound", "lower bound", "indication")


@dataclass(frozen=True)
class JointBits:
    """What runs told together.

    Attributes:
        bits: of the node's value.
        kind: what that figure is, one of `FIGURE_KINDS`.
        floor: of these, those of the answers alone; None where that is not known.
    """

    bits: float
    kind: str
    floor: float | None

    def __post_init__(self) -> None:
        if self.kind not in FIGURE_KINDS or not all(0 <= x < np.inf for x in (self.bits, self.floor or 0.0)):
            raise InputError("joint bits must be finite, 0 or more, and of a known kind")


@dataclass(frozen=True, eq=False, repr=False)
class RecordedRun:
    """One run.

    Attributes:
        bits: what it told by itself.
        noised: whether it was on a noised value.
        disclosed: what it told of all, one a coordinate; none where it cannot be joined.
        node: whose value is meant.
        among: which values took part.
    """

    bits: float
    noised: bool
    disclosed: tuple[Disclosure, ...]
    node: int
    among: str

    def by_itself(self) -> RecordedRun:
        """What it told of this node, without the others."""
        own = (None if one.bounds is None else {0: one.bounds[self.node]} for one in self.disclosed)
        return replace(self, disclosed=tuple(Disclosure((0,), ends, None) for ends in own), node=0, among="")


def join_runs(runs: Sequence[RecordedRun], prior: Prior, resolution: float | None, datum: Array) -> JointBits:
    """What all runs told together, of which there is at least one.

    The value itself, `datum`, serves upper bounds, where there are too many ways in which totals can come about.
    """
    joinable = [run for run in runs if run.disclosed]
    added = [run for run in runs if not run.disclosed]
    totals = any(one.published is not None and one.published.cells for run in joinable for one in run.disclosed)
    groups = _group(joinable)
    if not totals and len(groups) > 1:
        groups = _group([run.by_itself() for run in joinable])
    parts = [_weigh(group, prior, resolution, datum) for group in groups]
    if len(parts) == 1 and not added:
        return parts[0]
    bits = sum(part.bits for part in parts) + sum(run.bits for run in added)
    bound = not totals and len(parts) <= 1 and all(part.kind == "exact" for part in parts)
    return JointBits(bits, "upper bound" if bound and all(run.noised for run in added) else "indication", None)


def _group(runs: Sequence[RecordedRun]) -> list[list[RecordedRun]]:
    """Runs that can be of the same values of the same participants, together."""
    if _fit(runs):
        return [list(runs)] if runs else []
    groups: list[list[RecordedRun]] = []
    for run in runs:
        for group in groups:
            if _fit([*group, run]):
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def _fit(runs: Sequence[RecordedRun]) -> bool:
    if len({(run.node, run.among, len(run.disclosed)) for run in runs}) > 1:
        return False
    try:
        _join(runs)
    except InputError:
        return False
    return True


def _join(runs: Sequence[RecordedRun]) -> list[Disclosure]:
    """What they told, a coordinate at a time."""
    return [join_disclosures(each) for each in zip(*(run.disclosed for run in runs), strict=True)]


def _weigh(runs: Sequence[RecordedRun], prior: Prior, resolution: float | None, datum: Array) -> JointBits:
    """What runs on the same values told together."""
    disclosures, node, found = _join(runs), runs[0].node, []
    priors = [prior] * (1 + max(disclosures[0].nodes))
    try:
        cells = resolutions(resolution, priors)
        for k, each in enumerate(disclosures):
            numbers = datum if len(disclosures) == 1 else datum[k : k + 1]
            seen = None if each.published is None else _place(each.published, node, numbers)
            learnt, iterated = weigh(replace(each, published=seen), priors, cells), each.bounds is not None
            floor, _ = find_floor(seen, each.nodes, priors, cells, iterated=iterated)
            found.append(JointBits(learnt.bits.get(node, 0.0), learnt.kind, floor.get(node)))
    except InputError:
        return JointBits(sum(run.bits for run in runs), "indication", None)
    floors = [each.floor for each in found if each.floor is not None]
    kind = max((each.kind for each in found), key=FIGURE_KINDS.index)
    return JointBits(sum(each.bits for each in found), kind, sum(floors) if len(floors) == len(found) else None)


def _place(seen: Published, node: int, numbers: Array) -> Published:
    """With the cells of the node's own values, and of no others: for upper bounds only."""
    hidden, own = np.full(len(seen.owner), -1), np.flatnonzero(seen.owner == node)
    if len(own) == len(numbers) and seen.cells:
        ends = [cell.b for cell in seen.cells[:-1]]
        hidden[own] = [bisect_left(ends, seen.keys.key(number)) for number in numbers.tolist()]
    return replace(seen, hidden=hidden)
