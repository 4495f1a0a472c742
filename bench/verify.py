"""What it costs to hold everybody to its vote: seconds of CPU time and bytes a participant, with proofs and without.

    python -m bench.verify [--quick] [--out bench/results]

A whole search, keys and signatures included, of N(0, 1) values with public bounds ±10 and three thresholds a probe, by
participants in one process; alternating, medians of five (of 50 participants, one). Bytes are those of the statements
that a participant makes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from bench.tables import run_parts

from midst import Problem, Search, graphs
from midst.engines.reference_search import listen, make_participants
from midst.methods import rules_of

SIZES = (5, 15, 50)


def cost(n: int, seed: int, verify: bool) -> tuple[float, int, int]:
    """Seconds and bytes a participant, and probes."""
    values = np.random.default_rng(seed).normal(size=n)
    problem = Problem(graphs.complete(n), values, bounds=(-10, 10))
    start = time.process_time()
    participants = make_participants(problem, rules_of(problem, Search()), verify)
    news = [list(each.own) for each in participants]
    while not all(each.certified for each in participants):
        told = [statement for said in news for statement in said]
        news = [listen(each, [one for one in told if one not in each.own]) for each in participants]
    seconds = (time.process_time() - start) / n
    assert {each.search and each.search.value(0) for each in participants} == {float(np.sort(values)[(n - 1) // 2])}
    return seconds, sum(len(each.body) for each in participants[0].own), len(participants[0].totals)


def sizes(quick: bool) -> Iterator[dict[str, Any]]:
    for n in SIZES[:1] if quick else SIZES:
        repeats = 1 if quick or n > 20 else 5
        runs = [[cost(n, seed, verify) for verify in (False, True)] for seed in range(repeats)]
        plain, proved = ([run[k] for run in runs] for k in (0, 1))
        yield {
            "participants": n,
            "probes": median(probes for *_, probes in proved),
            "CPU s a participant, proved": median(seconds for seconds, *_ in proved),
            "not proved": median(seconds for seconds, *_ in plain),
            "bytes, proved": median(size for _, size, _ in proved),
            "bytes, not proved": median(size for _, size, _ in plain),
        }


if __name__ == "__main__":
    run_parts("verify", {"sizes": sizes})
