"""A million runs by consensus and a million by search, each answer held against the order statistic itself.

    python -m bench.million_runs [--runs N] [--first K] [--engine cpu|gpu] [--method consensus search] [--graphs G]
                                 [--seed S] [--workers W] [--piece P] [--out bench/results]

Rules:
- The right answer is found here, by sorting and adding up weights, and by nothing of midst. A run is *wrong* if it
  says that its answer is proved and it is another number; it is *without proof* if it says that it has none.
- Run r is run r // G of setting r % G. A setting is a graph with 3 to 101 nodes, all sizes in turn, of every family in
  turn, with weights in every third, and a quantile. Its runs take all shapes of data in turn. Everything of a run is
  drawn from (seed, setting, number of the run): the same whichever runs are made, in which pieces, by how many workers.
- After each piece what is known is written to million_runs.json and .md. A command that is given again goes on where
  it was, and one with another --first adds to it.
- On a GPU the iteration is the device's; the search that ends it, and the search by itself, are the CPU's. A program is
  compiled for every graph, and that takes longer than its runs: with 100 graphs there is one of every size, and with
  large pieces few calls. For a million each: --engine gpu --graphs 100 --piece 500000.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from bench.tables import table
from numpy.typing import NDArray

from midst import Consensus, Graph, Problem, Quantile, Search, graphs, solve_ensemble
from midst.methods import MethodName
from midst.workers import cores, run_in_parallel

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Definition = Literal["inverted_cdf", "inverted_cdf_high"]
Device = Literal["cpu", "gpu"]

PIECE = 100_000  # runs after which what is known is written
LARGEST = 101
METHODS: tuple[MethodName, ...] = ("consensus", "search")
_TINY = 5e-324  # the smallest float above zero
_NAMED = 20  # wrong runs that are named; the others are counted

SHAPES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "normal, in order of the nodes": lambda rng, n: np.sort(rng.normal(size=n)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "two clusters, a gap between": lambda rng, n: np.where(rng.random(n) < 0.5, -9.0, 9.0) + 0.01 * rng.normal(size=n),
    "two halves, in order of the nodes": lambda rng, n: np.where(np.arange(n) < n // 2, -1.0, 1.0),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "constant but for one": lambda rng, n: np.where(np.arange(n) == rng.integers(n), 1e6, 1.0),
    "whole numbers, with ties": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "tenths": lambda rng, n: np.round(rng.normal(size=n), 1),
    "tiny spread on a large offset": lambda rng, n: 1e9 + 1e-6 * rng.normal(size=n),
    "neighbouring floats": lambda rng, n: 1.0 + 2.0**-52 * rng.integers(0, 2 * n, n).astype(float),
    "subnormal": lambda rng, n: _TINY * rng.integers(-50, 51, n).astype(float),
    "zeros of both signs, and next to it": lambda rng, n: rng.choice([0.0, -0.0, _TINY, -_TINY], n),
    "huge": lambda rng, n: rng.uniform(-1.0, 1.0, n) * 1.7e308,
    "all magnitudes": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
    "exponential": lambda rng, n: np.exp(5.0 * rng.normal(size=n)),
}
FAMILIES = ("ring", "path", "star", "complete", "grid", "tree", "rgg", "er", "ws", "ba", "regular")
_LEAST = {"ring": 3, "ws": 6, "ba": 4, "regular": 6}  # nodes; with fewer the graph is complete
QUANTILES: tuple[tuple[Fraction, Definition], ...] = (
    (Fraction(1, 2), "inverted_cdf"),
    (Fraction(1, 2), "inverted_cdf_high"),
    (Fraction(9, 10), "inverted_cdf"),
    (Fraction(1, 2), "inverted_cdf"),
    (Fraction(1, 4), "inverted_cdf_high"),
    (Fraction(1), "inverted_cdf"),
    (Fraction(0), "inverted_cdf_high"),
)


def stream(seed: int, *which: int) -> np.random.Generator:
    """A stream of its own: of a setting its graph (0), the values of run k (1, k), and all z(0) (2)."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=which))


class Setting(NamedTuple):
    """What runs have in common.

    Attributes:
        number: which.
        family: of the graph.
        graph: who talks to whom.
        weights: whole numbers or tenths, some of them 0; None: all count alike.
        q: which quantile.
        definition: which one, where there are two.
    """

    number: int
    family: str
    graph: Graph
    weights: Array | None
    q: Fraction
    definition: Definition

    @classmethod
    def make(cls, seed: int, number: int) -> Setting:
        """The setting of a number."""
        rng, n = stream(seed, number, 0), 3 + number % (LARGEST - 2)  # of two, no search is made
        family = FAMILIES[(number + number // (LARGEST - 2)) % len(FAMILIES)]
        family = family if n >= _LEAST.get(family, 2) and (family != "grid" or not _is_prime(n)) else "complete"
        weights = None
        if number % 3 == 2:
            weights = rng.integers(0, 6, n).astype(float) * (1.0 if number % 2 else 0.1)
            weights[rng.integers(n)] = 1.0  # somebody counts
        return cls(number, family, graphs.make(family, n, rng=rng), weights, *QUANTILES[number % len(QUANTILES)])

    def draw(self, seed: int, which: Iterable[int]) -> Array:
        """The values of some of its runs, (n, runs)."""
        shapes = list(SHAPES.values())
        drawn = (shapes[k % len(shapes)](stream(seed, self.number, 1, k), self.graph.n) for k in which)
        return np.column_stack(list(drawn))


class Share(NamedTuple):
    """Some runs of a setting, for a worker: those from `first` on, before `stop`."""

    seed: int
    number: int
    first: int
    stop: int


class Outcome(NamedTuple):
    """What came of them; an entry a run.

    Attributes:
        share: which runs.
        family: of their graph.
        right: whether the answer is the order statistic.
        certified: whether it is said to be proved.
        rounds: of messages.
    """

    share: Share
    family: str
    right: NDArray[np.bool_]
    certified: NDArray[np.bool_]
    rounds: Ints


def find_right(values: Array, weights: Array | None, q: Fraction, definition: Definition) -> Array:
    """The quantile of each column, by sorting it: the first value at which the weight up to it is enough."""
    order = np.argsort(values, axis=0, kind="stable")
    tenths = np.full(len(values), 10) if weights is None else np.rint(10 * weights).astype(np.int64)
    heaped, wanted = np.cumsum(tenths[order], axis=0), q * int(tenths.sum())
    enough = heaped >= max(math.ceil(wanted), 1) if definition == "inverted_cdf" else heaped > math.floor(wanted)
    place = np.argmax(enough, axis=0)
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place[None], axis=0), axis=0)[0])


def check_runs(share: Share, method: MethodName, device: Device | None = None) -> Outcome:
    """Some runs of a setting, held against what is right; on a device, if that is asked for, through JAX."""
    setting = Setting.make(share.seed, share.number)
    values = setting.draw(share.seed, range(share.first, share.stop))
    problem = Problem(setting.graph, values, weights=setting.weights, objective=Quantile(setting.q, setting.definition))
    how: Consensus | Search = Consensus()
    if method == "search":
        how = Search(1 + share.number % 7, ("rank", "value", "key")[share.number % 3])
    found = solve_ensemble(
        problem,
        how,
        rng=stream(share.seed, share.number, 2),
        first=share.first,
        bounds=False,
        workers=1,
        device=device,
    )
    right = found.value == find_right(values, setting.weights, setting.q, setting.definition)
    return Outcome(share, setting.family, right, found.certified, found.rounds)


def run_piece(
    runs: range, method: MethodName, *, settings: int, seed: int, device: Device | None, workers: int
) -> dict[str, Any]:
    """Some of all runs: how many are wrong or without proof, by shape of data and by family of graph."""
    started = time.perf_counter()
    shares = [
        Share(seed, number, -((number - runs.start) // settings), -((number - runs.stop) // settings))
        for number in range(settings)
    ]
    shares = [share for share in shares if share.first < share.stop]
    outcomes: Iterable[Outcome]
    if device is None or method == "search":
        outcomes = run_in_parallel(partial(check_runs, method=method), shares, workers)
    else:  # one device for all; what is compiled meanwhile takes a core each
        with ThreadPoolExecutor(workers) as pool:
            outcomes = list(pool.map(partial(check_runs, method=method, device=device), shares))
    by: dict[str, dict[str, Counter[str]]] = {"data": {}, "graph": {}}
    named: list[int] = []
    names = list(SHAPES)
    for share, family, right, certified, rounds in outcomes:
        wrong = certified & ~right
        named += [settings * (share.first + int(k)) + share.number for k in np.flatnonzero(wrong)]
        shape = np.arange(share.first, share.stop) % len(names)
        for name, those in [(family, shape >= 0), *((names[k], shape == k) for k in np.unique(shape).tolist())]:
            counts = by["graph" if name == family else "data"].setdefault(name, Counter())
            counts.update(runs=int(those.sum()), wrong=int(wrong[those].sum()), rounds=int(rounds[those].sum()))
            counts.update({"without proof": int((~certified[those]).sum())})
    seconds = time.perf_counter() - started
    return {
        "method": method,
        "first": runs.start,
        "stop": runs.stop,
        "seconds": seconds,
        "wrong runs": sorted(named)[:_NAMED],
        **{name: {each: dict(counts) for each, counts in rows.items()} for name, rows in by.items()},
    }


# What is known


def add_up(pieces: Sequence[dict[str, Any]], by: str) -> list[dict[str, object]]:
    """A row a method and a shape of data, or a family of graphs."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for piece in pieces:
        for name, counts in piece[by].items():
            rows.setdefault((piece["method"], name), Counter()).update(counts)
    return [
        {
            "method": method,
            by: name,
            "runs": counts["runs"],
            "wrong": counts["wrong"],
            "without proof": counts["without proof"],
            "rounds, mean": counts["rounds"] / counts["runs"],
        }
        for (method, name), counts in rows.items()
    ]


def totals(pieces: Sequence[dict[str, Any]]) -> list[dict[str, object]]:
    """A row a method."""
    rows: dict[str, dict[str, object]] = {}
    for method in dict.fromkeys(piece["method"] for piece in pieces):
        own = [piece for piece in pieces if piece["method"] == method]
        each = [counts for piece in own for counts in piece["graph"].values()]
        rows[method] = {
            "method": method,
            "runs": sum(counts["runs"] for counts in each),
            "wrong": sum(counts["wrong"] for counts in each),
            "without proof": sum(counts["without proof"] for counts in each),
            "seconds": sum(piece["seconds"] for piece in own),
        }
    return list(rows.values())


def write(out: Path, about: dict[str, Any], pieces: Sequence[dict[str, Any]]) -> str:
    """What is known so far, as JSON and as the page that is returned."""
    out.mkdir(parents=True, exist_ok=True)
    parts = ("all", totals(pieces)), ("by data", add_up(pieces, "data")), ("by graph", add_up(pieces, "graph"))
    page = "\n".join([f"{about}\n", *(f"## {title}\n\n{table(rows)}\n" for title, rows in parts)])
    (out / "million_runs.json").write_text(json.dumps({"about": about, "pieces": list(pieces)}, indent=1))
    (out / "million_runs.md").write_text(page)
    return page


def read(out: Path, about: dict[str, Any]) -> list[dict[str, Any]]:
    """The pieces that are done.

    Raises:
        SystemExit: the folder holds those of other runs.
    """
    path = out / "million_runs.json"
    if not path.exists():
        return []
    known = json.loads(path.read_text())
    if {name: known["about"].get(name) for name in ("seed", "graphs")} != {n: about[n] for n in ("seed", "graphs")}:
        sys.exit(f"{path} is of another --seed or --graphs; give another --out")
    return list(known["pieces"])


def cut(first: int, runs: int, done: Sequence[range], size: int = PIECE) -> list[range]:
    """What is left of some runs, in pieces."""
    last = first + runs
    edges = {first, last, *range(first, last, size), *(end for other in done for end in (other.start, other.stop))}
    pieces = [range(a, b) for a, b in pairwise(sorted(edges)) if first <= a and b <= last]
    return [piece for piece in pieces if not any(piece.start in other for other in done)]


def _is_prime(n: int) -> bool:
    return all(n % k for k in range(2, math.isqrt(n) + 1))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1_000_000, help="by each method")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--graphs", type=int, default=1_100, help="settings; on a GPU each takes seconds to compile")
    parser.add_argument("--piece", type=int, default=PIECE, help="runs after which what is known is written")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    device: Device | None = "gpu" if options.engine == "gpu" else None
    about = {"seed": options.seed, "graphs": options.graphs, "engine": options.engine, "workers": options.workers}
    about |= {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
    pieces = read(options.out, about)
    for method in options.method:
        done = [range(piece["first"], piece["stop"]) for piece in pieces if piece["method"] == method]
        for runs in cut(options.first, options.runs, done, options.piece):
            how = {"settings": options.graphs, "seed": options.seed, "device": device, "workers": options.workers}
            piece = run_piece(runs, method, **how)
            pieces.append(piece | {"engine": options.engine if method == "consensus" else "cpu"})
            write(options.out, about, pieces)
            print(f"{method}: runs {runs.start:,} to {runs.stop:,}, {piece['seconds']:.1f} s", flush=True)
    print(write(options.out, about, pieces))
    sys.exit(any(row["wrong"] for row in totals(pieces)))


if __name__ == "__main__":
    main()
