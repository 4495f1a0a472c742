"""Algorithm 1 of the paper, written out as a plain double loop over dictionaries: slow, and obviously right."""

from __future__ import annotations

import numpy as np


def algorithm_1(graph, s, c, z0, iterations, left=None, right=None, curvature=None, theta=0.5):
    """x(0) … x(iterations − 1) and the three-way branch, from the paper's equations and nothing of midst's."""
    n = len(s)
    left, right, curvature = (
        np.full(n, default) if given is None else given
        for given, default in ((left, 1.0), (right, 1.0), (curvature, 0.0))
    )
    neighbours = {i: [] for i in range(n)}
    z = {}
    for i, j, value in zip(graph.source.tolist(), graph.target.tolist(), z0, strict=True):
        neighbours[i].append(j)
        z[i, j] = value
    A = {(i, j): 1.0 if i < j else -1.0 for i, j in z}
    xs, branches = [], []
    for _ in range(iterations):
        x, branch = np.empty(n), np.empty(n, int)
        for i in range(n):
            d = len(neighbours[i])
            S = sum(A[i, j] * z[i, j] for j in neighbours[i])
            if curvature[i]:  # the mean: the minimiser of ½w(x − s)² + S x + ½cd x²
                x[i], branch[i] = (curvature[i] * s[i] - S) / (curvature[i] + c * d), 0
            elif (-right[i] - S) / (c * d) > s[i]:
                x[i], branch[i] = (-right[i] - S) / (c * d), 1
            elif (left[i] - S) / (c * d) < s[i]:
                x[i], branch[i] = (left[i] - S) / (c * d), -1
            else:
                x[i], branch[i] = s[i], 0
        y = {(i, j): z[i, j] + 2 * c * A[i, j] * x[i] for i, j in z}
        z = {(i, j): (1 - theta) * z[i, j] + theta * y[j, i] for i, j in z}
        xs.append(x)
        branches.append(branch)
    return np.array(xs), np.array(branches)
