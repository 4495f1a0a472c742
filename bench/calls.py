"""What a user waits for: public calls and commands, from the call to the answer.

    python -m bench.calls [--quick] [--only PART …] [--out bench/results]

Prints Markdown, and writes it to calls.md and the rows to calls.json. Every row is the median of seven runs (--quick:
one), each in turn with a plain NumPy operation on numbers of the same size, by the wall clock; beside it the CPU time
of the best run, which other work on the machine changes less, and the ratio of the two medians. Answers are asserted.

- `ensembles`: a million searches among fifteen, `Problem` and `solve_ensemble(…, workers=2)` together; beside them
  `np.sort` of the same values.
- `iterations`: a hundred thousand runs of the paper's iteration among fifteen, to the proof; beside them forty
  iterations of as many runs in plain NumPy, with no end, no proof and no record.
- `large`: ten million nodes: the graph, the `Problem` and `solve(…, "search")`, each by itself, and the command, whole;
  beside them `np.sort` of the values.
- `audits`: `midst.audit` with sealed z(0) of runs of 2,000 iterations among fifteen, the worst of eight traces; and the
  commands, whole, with interpreter and imports; beside them `python -c "import numpy"`.
- `help`: the command and those of its commands that have most to load; beside them `python -c "import click"`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from bench.tables import run_parts
from numpy.typing import NDArray

from midst import Adversary, After, Consensus, Exact, Problem, audit, graphs, solve, solve_ensemble
from midst.graphs import Graph

T = TypeVar("T")
Row = dict[str, Any]
Call = Callable[[], Any]

TIMES = 7
NODES = 15
BOUNDS = (-10.0, 10.0)
SMALL: dict[str, Callable[[], Graph]] = {
    "ring-15": lambda: graphs.ring(NODES),
    "rgg-15": lambda: graphs.rgg(NODES, rng=1),
    "complete-15": lambda: graphs.complete(NODES),
}
KNOWN: dict[str, dict[str, Any]] = {
    "bounds ±10": {"bounds": BOUNDS},
    "no bounds": {},
    "bounds ±10, weights 1 to 15": {"bounds": BOUNDS, "weights": np.arange(1, NODES + 1)},
}


def in_turn(call: Call, reference: Call, quick: bool) -> Row:
    """Seconds of a call and of a plain operation, one after the other, several times."""
    spent: dict[Call, list[tuple[float, float]]] = {call: [], reference: []}
    for _ in range(1 if quick else TIMES):
        for each in (call, reference):
            wall, cpu = time.perf_counter(), _cpu()
            each()
            spent[each].append((time.perf_counter() - wall, _cpu() - cpu))
    seconds, beside = (float(np.median([wall for wall, _ in spent[each]])) for each in (call, reference))
    least = min(cpu for _, cpu in spent[call])
    return {"seconds": seconds, "CPU seconds, least": least, "reference, seconds": beside, "ratio": seconds / beside}


def of_each(kinds: Iterable[T], quick: bool) -> list[T]:
    """The first alone, to be quick."""
    return list(kinds)[: 1 if quick else None]


def _cpu() -> float:
    """CPU time of this process and of those it has waited for."""
    own, waited = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime


def command(*arguments: str) -> Call:
    """A command as it is typed, in a process of its own."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def over_ensembles(quick: bool) -> Iterator[Row]:
    """One row a graph, with bounds, without, and with weights."""
    runs = 20_000 if quick else 1_000_000
    values = np.random.default_rng(1).normal(size=(NODES, runs))
    for family, make in of_each(SMALL.items(), quick):
        graph = make()
        for known, public in KNOWN.items():

            def call(graph: Graph = graph, public: dict[str, Any] = public) -> None:
                found = solve_ensemble(Problem(graph, values, **public), "search", workers=2)
                assert found.certified.all()
                assert not found.error.any()

            spent = in_turn(call, lambda: np.sort(values, axis=0), quick)
            name = f"solve_ensemble(Problem(…), 'search', workers=2), {runs:,} runs"
            yield {"graph": family, "call": name, "public": known, "runs/s": runs / spent["seconds"], **spent}


def over_iterations(quick: bool) -> Iterator[Row]:
    """One row a graph: the paper's iteration to the proof, beside forty bare iterations of all runs at once."""
    runs = 5_000 if quick else 100_000
    values = np.random.default_rng(1).normal(size=(NODES, runs))
    for family, make in of_each(SMALL.items(), quick):
        graph = make()
        adjacency, cd = graph.adjacency().toarray(), graph.degree[:, None] / 5.0

        def call(graph: Graph = graph) -> None:
            found = solve_ensemble(Problem(graph, values, bounds=BOUNDS), Consensus(stop=Exact()), rng=1, workers=2)
            assert found.certified.all()
            assert not found.error.any()

        def bare(adjacency: NDArray[np.float64] = adjacency, cd: NDArray[np.float64] = cd) -> None:
            S, R = np.zeros_like(values), np.zeros_like(values)
            for _ in range(40):
                x = np.clip(values, (-1 - S) / cd, (1 - S) / cd)
                S, R = 0.5 * (S - R) - adjacency @ x / 5.0, 0.5 * (R - S) - cd * x

        spent = in_turn(call, bare, quick)
        name = f"solve_ensemble(Problem(…), Consensus(stop=Exact()), rng=1, workers=2), {runs:,} runs"
        yield {"graph": family, "call": name, "runs/s": runs / spent["seconds"], **spent}


def over_large(quick: bool) -> Iterator[Row]:
    """One row a graph and step."""
    n = 100_000 if quick else 10_000_000
    values = np.random.default_rng(1).normal(size=n)
    for kind in of_each(("ring", "grid"), quick):
        graph = graphs.make(kind, n)
        problem = Problem(graph, values)
        calls: dict[str, Call] = {
            f"graphs.make({kind!r}, {n:,})": partial(graphs.make, kind, n),
            "Problem(graph, values)": partial(first_problem, graph, values),
            "solve(problem, 'search')": partial(solve, problem, "search"),
        }
        for name, call in calls.items():
            yield {"graph": kind, "call": name, **in_turn(call, lambda: np.sort(values), quick)}
        typed = ("-m", "midst", "run", "--graph", kind, "--nodes", str(n), "--method", "search", "--seed", "1")
        whole = in_turn(command(*typed), lambda: np.sort(values), quick)
        yield {"graph": kind, "call": f"midst {' '.join(typed[2:])}", **whole}


def first_problem(graph: Graph, values: NDArray[np.float64]) -> Problem:
    """On a graph that nobody has walked yet."""
    return Problem(replace(graph), values)


def over_audits(quick: bool) -> Iterator[Row]:
    """One row a graph, and the commands."""
    imports = command("-c", "import numpy")
    sealed = Adversary(init="sealed")
    with tempfile.TemporaryDirectory() as folder:
        for family, make in of_each(SMALL.items(), quick):
            traces = []
            for seed in range(1 if quick else 8):
                problem = Problem(make(), np.random.default_rng(seed).normal(size=NODES))
                traces.append(solve(problem, Consensus(stop=After(2_000)), rng=seed, record="audit").trace)
            rows = [in_turn(partial(audit, trace, sealed), imports, quick) for trace in traces]
            worst = max(rows, key=lambda row: row["CPU seconds, least"])
            yield {"graph": family, "call": "audit(trace, Adversary(init='sealed')), 2,000 iterations", **worst}
            saved = Path(folder) / f"{family}.npz"
            traces[0].save(saved)
            whole = in_turn(command("-m", "midst", "audit", str(saved), "--init", "sealed"), imports, quick)
            yield {"graph": family, "call": "midst audit run.npz --init sealed", **whole}
    typed = ("plan", "--graph", "complete", "--nodes", str(NODES), "--bounds", "0:100")
    whole = in_turn(command("-m", "midst", *typed, "--runs", "2" if quick else "20"), imports, quick)
    yield {"graph": "complete-15", "call": f"midst {' '.join(typed)}", **whole}


def over_help(quick: bool) -> Iterator[Row]:
    """One row a command."""
    names = ((), ("run",), ("audit",), ("plan",), ("paper",), ("node",), ("charter", "new"))
    for name in of_each(names, quick):
        spent = in_turn(command("-m", "midst", *name, "--help"), command("-c", "import click"), quick)
        yield {"call": " ".join(("midst", *name, "--help")), **spent}


PARTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "ensembles": over_ensembles,
    "iterations": over_iterations,
    "large": over_large,
    "audits": over_audits,
    "help": over_help,
}


if __name__ == "__main__":
    run_parts("calls", PARTS)
