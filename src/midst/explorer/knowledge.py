"""What an adversary knows of each node, over the iterations.

`view` says what is visible of a whole run; here the same is said of its beginning, up to each t:

| observation | bounds up to t                                                                          |
|-------------|-----------------------------------------------------------------------------------------|
| `Branches`  | greatest x sent below s, least x sent above it                                          |
| `Shifted`   | the same from t = 1 on, once a change of branch has told them; nothing before           |
| others      | none                                                                                    |

Whoever has been seen inside, or was counted, has its value for both bounds from then on. (With z(0) sealed, a node that
was inside at t = 0 is only found out by a later plateau at the same number: from then on it is exposed.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from midst.errors import InputError
from midst.objectives import Mean
from midst.privacy.adversaries import Adversary
from midst.privacy.observations import Branches, Observation, Shifted, Unseen
from midst.privacy.views import View, view
from midst.trace import Trace
from midst.types import Array, Branch, Ints


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known, and since when.

    Attributes:
        spans: rows (node, start, stop): the iterations in which a node is seen to send its value.
        first: of each node the first iteration from which its value is known; −1 if none.
        lower: lower bound of each value at each iteration kept, shape (len(t), n).
        upper: upper bound.
    """

    spans: Ints
    first: Ints
    lower: Array
    upper: Array


def look(trace: Trace, adversary: Adversary, coordinate: int) -> tuple[View, str]:
    """What the adversary sees, or the nearest to it that can be told; and a note where it is not quite the former.

    Raises:
        InputError: not even that can be told: the record of the run is too short.
    """
    everything = replace(adversary, eavesdrops=True, init="clear")
    note = ""
    if isinstance(trace.objective, Mean) and not adversary.eavesdrops:  # the audit, too, says no more than that
        adversary, note = everything, "shown is what an eavesdropper on clear z(0) sees, which is more"
    try:
        return view(trace, adversary, coordinate), note
    except InputError as error:
        refusal = str(error)
    return view(trace, everything, coordinate), f"{refusal}; shown is what an eavesdropper on clear z(0) sees"


def follow(seen: View, t: Ints, x: Array, branch: Branch) -> Knowledge:
    """What is known up to each of the iterations t.

    Args:
        seen: what is visible of the whole run.
        t: the iterations kept, ascending.
        x: what was sent in them, shape (len(t), n).
        branch: the branches, likewise.
    """
    lower, upper = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
    first = np.full(x.shape[1], -1)
    rows: list[tuple[int, int, int]] = []
    for observation in seen.observations:
        i = observation.node
        lower[:, i], upper[:, i] = _bounds(observation, t, x[:, i], branch[:, i])
        if isinstance(observation, Unseen):
            continue
        rows += [(i, start, stop) for start, stop in observation.inside]
        if observation.inside:
            first[i] = observation.inside[0][0]
        if observation.value is not None:
            place = np.searchsorted(t, observation.inside[0][0])
            lower[place:, i] = upper[place:, i] = observation.value
    return Knowledge(np.array(rows, np.int64).reshape(-1, 3), first, lower, upper)


def _bounds(observation: Observation, t: Ints, x: Array, branch: Branch) -> tuple[Array, Array]:
    nothing = np.full(len(t), -np.inf), np.full(len(t), np.inf)
    if not isinstance(observation, Branches | Shifted):
        return nothing
    below, above = branch < 0, branch > 0
    if isinstance(observation, Shifted):
        later = t >= 1
        below, above = below & later, above & later
    lower = np.maximum.accumulate(np.where(below, x, -np.inf))
    upper = np.minimum.accumulate(np.where(above, x, np.inf))
    # what the whole run does not tell (a node of weight 0), its beginning does not either
    lower, upper = np.minimum(lower, observation.lower), np.maximum(upper, observation.upper)
    lower[-1], upper[-1] = observation.lower, observation.upper  # an extreme may lie between the iterations kept
    if isinstance(observation, Shifted):
        start = int(np.searchsorted(t, 1))
        changed = np.flatnonzero(branch[start:] != branch[start : start + 1])
        since = start + int(changed[0]) if len(changed) else len(t) - 1
        lower[:since], upper[:since] = -np.inf, np.inf
    return lower, upper
