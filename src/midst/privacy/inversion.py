"""Reading nodes that were never heard: what a node sends tells what it was sent.

Eliminate z from the node form (θ = ½; `update.next_sums`). With g_i(t) the subgradient in use and a_i(t) = Σ_j x_j(t)
over the neighbours, S_i = −g_i − c d_i x_i turns S_i(t+1) = P_i(t) − c a_i(t), P_i(t+1) = P_i(t) + ½c(d_i x_i − a_i)(t)
into a line without any z:

    2a_i(t+1) − a_i(t) = d_i (2x_i(t+2) − 2x_i(t+1) + x_i(t)) + (2/c)(g_i(t+2) − g_i(t+1))

The last term vanishes while i keeps its branch. So whoever hears x_i knows a_i but for an error that halves in each
step; and with E the shift by one iteration, L = 2E − 1, knows L a_i exactly. Of several neighbours that are not heard
only the sum is known: which of them can be told apart is linear algebra, over all nodes heard. What is found of a node
at distance two is L x, at distance three L² x, and so on.

A node that stays inside sends the same s again and again, and L s = s: a plateau of Lᵐ x is the value itself.

Rules:
- Nobody sees when a node between changes its branch: such a change makes a jump, and what lies within reach of one is
  no plateau. While a node between is inside, which shows as a plateau of its own, its g is not constant: nothing is
  read through it then. A plateau must begin or end with a jump: x that creeps up on the answer does not count.
- Rounding grows about fivefold a hop. What could be drowned in it is left out.
"""

from __future__ import annotations

import numpy as np

from midst.privacy.observations import Public
from midst.types import Array, Bools

_STEPS = 4  # of equal numbers that make a plateau
_JUMP = 1e4  # times the rounding, by which a plateau differs from what comes before or after it
_ROUNDING = 64 * np.finfo(np.float64).eps
_ZERO = 1e-9  # in a solution of equations whose coefficients are 0 and 1
_WORST = 1e-7  # of the largest number: rounding beyond it hides what is sought


def read_plateaus(public: Public, x: Array) -> dict[int, float]:
    """The values that a coalition reads off nodes it does not hear, as far as they show as plateaus.

    Messages have the shape (t, n), and are NaN of nodes that are not heard.
    """
    if public.theta != 0.5 or public.curvature.any() or public.sigma == 0:
        return {}
    found: dict[int, float] = {}
    for i, (numbers, noise) in invert(public, x).items():
        value = _plateau(numbers, noise)
        if value is not None and public.left[i] + public.right[i] > 0:
            found[i] = value
    return found


def invert(public: Public, x: Array) -> dict[int, tuple[Array, float]]:
    """Of each node that is not heard but can be told apart: Lᵐ x, and how much of it rounding can make.

    True at the iterations in which every node on the way keeps its branch; see the module's docstring.
    """
    near = public.graph.adjacency().toarray().astype(np.float64)
    degree = public.graph.degree
    known = ~np.isnan(x[0])
    # Lᵐ x of every node that is known, all with the same m; where that is right; and the rounding in it
    numbers, wrong, noise = np.where(known, x, 0.0), np.zeros(x.shape, np.bool_), np.where(known, _ROUNDING, 0.0)
    largest = float(np.abs(numbers).max())
    found: dict[int, tuple[Array, float]] = {}
    while not known.all() and len(numbers) > _STEPS + 2:
        sums = degree * (2 * numbers[2:] - 2 * numbers[1:-1] + numbers[:-2])
        inside = np.abs(np.diff(numbers, axis=0)) <= noise * largest
        unsure = inside[1:] | inside[:-1] | wrong[2:] | wrong[1:-1] | wrong[:-2]
        spoilt = 5 * degree * noise + 3 * (near @ noise)
        numbers, noise = 2 * numbers[1:-1] - numbers[:-2], 3 * noise  # now Lᵐ⁺¹ x
        wrong = wrong[1:-1] | wrong[:-2]
        rest = sums - (numbers * known) @ near  # Lᵐ⁺¹ of the sum over the neighbours that are not known
        unsure |= (wrong & known) @ near > 0
        rows, columns = np.flatnonzero(known & (near @ ~known > 0)), np.flatnonzero(~known)
        block = near[np.ix_(rows, columns)]
        solve = np.linalg.pinv(block)
        # row k of pinv·block is that of the identity exactly where unknown k can be told from all others
        apart = np.abs(solve @ block - np.eye(len(columns))).max(axis=1) < _ZERO
        # rounding may add up in the worst way: absolute coefficients
        grown = np.abs(solve) @ spoilt[rows]
        new = [(k, int(i)) for k, i in enumerate(columns) if apart[k] and grown[k] < _WORST]
        if not new:
            break
        for k, i in new:
            used = np.abs(solve[k]) > _ZERO
            numbers[:, i], wrong[:, i] = rest[:, rows] @ solve[k], unsure[:, rows[used]].any(axis=1)
            noise[i], known[i] = grown[k], True
            found[i] = np.where(wrong[:, i], np.nan, numbers[:, i]), float(grown[k]) * largest
    return found


def _plateau(numbers: Array, noise: float) -> float | None:
    """The number that is repeated, if the repetition begins or ends with a jump."""
    steps = np.abs(np.diff(numbers))
    still: Bools = np.concatenate([[False], steps <= noise, [False]])
    edges = np.flatnonzero(np.diff(still.astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():  # numbers[first] … numbers[last] are the same
        jumps = [steps[k] for k in (first - 1, last) if 0 <= k < len(steps)]
        if last - first + 1 >= _STEPS and any(jump > _JUMP * noise for jump in jumps):
            return float(numbers[first])
    return None
