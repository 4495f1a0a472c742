"""What the exact finish gives away against running on until 1e-6: bits of all nodes together, same seeds.

RGG-15, ring-15 and complete-15, N(0, 1) data, c = 1, sigma = 0.1; an eavesdropper, z(0) clear and sealed.

    python -m bench.leakage [--quick] [--out bench/results]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bench.rounds import plain_rounds, problem
from bench.tables import Row, run_parts

from midst import Adversary, After, Consensus, InputError, audit, solve
from midst.privacy.adversaries import Init
from midst.privacy.priors import Normal

RUNS = 30
FAMILIES = ("ring-15", "rgg-15", "complete-15")


def over_graphs(quick: bool) -> Iterator[Row]:
    """One row a kind of graph and initialisation."""
    runs = 2 if quick else RUNS
    for family in FAMILIES:
        seen: dict[Init, list[tuple[float, float]]] = {"clear": [], "sealed": []}
        for seed in range(runs):
            one = problem(family, seed)
            exact = solve(one, Consensus(c=1.0), rng=seed, record="all")
            plain = solve(one, Consensus(c=1.0, stop=After(plain_rounds(one, seed))), rng=seed, record="all")
            for init, pairs in seen.items():
                try:
                    leaks = [audit(run.trace, Adversary(init=init), Normal(0, 1)) for run in (exact, plain)]
                except InputError:  # sealed, and two nodes were inside from iteration 1 to the end of a short run
                    continue
                pairs.append((leaks[0].total_bits, leaks[1].total_bits))
        for init, pairs in seen.items():
            ours, theirs = np.array(pairs).T
            saved = theirs - ours
            yield {
                "graph": family,
                "init": init,
                "bits by the exact finish": round(float(ours.mean()), 2),
                "bits of the plain run": round(float(theirs.mean()), 2),
                "saved": f"{saved.mean():.2f} ± {saved.std(ddof=1) / np.sqrt(len(saved)):.2f}",
                "audited": f"{len(saved)} of {runs}",
            }


if __name__ == "__main__":
    run_parts("leakage", {"leakage": over_graphs})
