"""Record what midst does, so that a change of its insides cannot change it unseen.

    python tests/goldens/make_goldens.py [PART …]

writes a JSON file a part beside this one. Write a part anew only where the change of behaviour is meant, in a commit of
its own that says so.

| part       | holds                                                                                                  |
|------------|--------------------------------------------------------------------------------------------------------|
| `traces`   | 200 runs over methods, objectives, graphs and engines: answer, rounds, exposed, and hashes of the trace |
| `audits`   | bits, floor, bounds and exposure of some of these, for four adversaries; of several runs together       |
| `figures`  | every number that the claims about the paper's figures rest on                                          |
| `sessions` | simulated sessions on a bad network: a hash of all frames, faults included, and of every journal        |
| `arrays`   | a session of three rounds of arrays: a hash of all frames and journals                                  |
| `wire`     | the bytes of one frame of each kind; the digests of the charters in files/, and what `midst verify`     |
|            | says of the results beside them                                                                         |

Whole numbers and text must stay equal. Numbers that an iteration or an audit works out must stay equal to 1e-9: the
logarithms and cosines from which z(0) is drawn may differ in their last bit between processors. For the same reason
frames are hashed of searches only, whose bytes no floating point decides.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from click.testing import CliRunner

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]
sys.path.insert(0, str(HERE.parent / "net"))

from memory_network import MemoryNetwork, charter_of  # noqa: E402
from simnet.faults import ROUGH  # noqa: E402
from simnet.liars import choose_liars  # noqa: E402
from simnet.trial import make_setups, random_charter  # noqa: E402
from simnet.world import World  # noqa: E402

import midst  # noqa: E402
from midst import graphs  # noqa: E402
from midst.cli import main  # noqa: E402
from midst.net.answer import Answer  # noqa: E402
from midst.net.charter_files import read_charter  # noqa: E402
from midst.net.wire import (  # noqa: E402
    Away,
    Codec,
    Done,
    Hello,
    Limits,
    NotYet,
    Refused,
    Visit,
    Want,
    Welcome,
    encode_control,
)
from midst.privacy.audit import audit_together  # noqa: E402
from midst.protocol.node import Message  # noqa: E402
from midst.protocol.statements import Statement  # noqa: E402

TRACES = 200
AUDITED = range(0, TRACES, 8)  # traces
SEARCHES, VERIFIED, LIED, ITERATED = range(60), range(10), range(20), range(10)  # seeds of sessions
ADVERSARIES = {
    "eavesdropper, clear": midst.Adversary(),
    "eavesdropper, sealed": midst.Adversary(init="sealed"),
    "node 1": midst.Adversary(eavesdrops=False, corrupt=(1,)),
    "node 1 and eavesdropper": midst.Adversary(corrupt=(1,), init="sealed"),
}
OBJECTIVES: dict[str, Any] = {
    "median": midst.Quantile(0.5),
    "middle": midst.Quantile(0.5, "averaged_inverted_cdf"),
    "high median": midst.Quantile(0.5, "inverted_cdf_high"),
    "any median": midst.Quantile(0.5, "any"),
    "lower quartile": midst.Quantile(0.25),
    "ninth decile": midst.Quantile(0.9),
    "maximum": midst.Quantile(1.0),
    "minimum": midst.Quantile(0.0),
    "mean": midst.Mean(),
}


def digest(*parts: object) -> str:
    """Hash what is printed the same on every machine."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def plain(found: Any) -> Any:
    """Turn arrays and tuples into lists, and infinities into text, for JSON."""
    if isinstance(found, np.ndarray | np.generic):
        found = found.tolist()
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, dict):
        return {str(name): plain(each) for name, each in found.items()}
    return str(found) if isinstance(found, float) and not np.isfinite(found) else found


# Traces


def draw_graph(rng: Random) -> Any:
    n, kind = rng.randint(3, 25), rng.choice(["ring", "path", "complete", "star", "grid", "rgg", "er", "regular"])
    if kind == "grid":
        return graphs.grid(rng.randint(2, 4), rng.randint(2, 5))
    n = max(n, 6) if kind == "regular" else n
    return graphs.make(kind, n, rng=rng.randrange(2**32))


def draw_method(rng: Random, objective: str) -> Any:
    kinds = ["search", "search", "consensus", "consensus", "certified", "after"]
    kinds = {
        "mean": ["search", "certified", "after"],
        "middle": ["search", "consensus"],
        "any median": ["paper", "certified", "after"],
    }.get(objective, kinds)
    c = rng.choice([None, None, 0.7, 3.0])
    theta = 1.0 if objective == "mean" and rng.random() < 0.3 else rng.choice([0.5, 0.5, 0.3, 0.8])
    match rng.choice(kinds):
        case "search":
            return midst.Search(rng.choice([1, 2, 3, 3, 7]), rng.choice(["rank", "rank", "value", "key"]))
        case "paper":
            return midst.Paper(c=c, stop=rng.choice([midst.Certified(1e-4), midst.After(40)]))
        case "consensus":
            return midst.Consensus(c=c, theta=theta)
        case "certified":
            return midst.Consensus(c=c, theta=theta, stop=midst.Certified(1e-4))
        case _:
            return midst.Consensus(c=c, theta=theta, stop=midst.After(rng.randint(1, 60)))


def draw_run(k: int) -> tuple[str, Any, dict[str, Any]]:
    """Draw the k-th setting: what it is called, its problem, and the rest of the arguments of `solve`."""
    rng = Random(f"trace {k}")
    graph, objective = draw_graph(rng), rng.choice([*OBJECTIVES, "median", "median"])
    method, draw = draw_method(rng, objective), np.random.default_rng(k)
    search, n = isinstance(method, midst.Search), graph.n
    paper = isinstance(method, midst.Paper)
    resolution = rng.choice([None, None, "0.01", "1"]) if search else None
    if objective == "middle" or (search and objective == "mean"):
        resolution = "0.01"
    settings: dict[str, Any] = {"bounds": (-40, 40) if rng.random() < 0.5 else None, "resolution": resolution}
    values: Any = np.rint(draw.integers(-20, 20, n) if rng.random() < 0.3 else draw.normal(0, 8, n) * 1000) / 1000
    if rng.random() < 0.25 and not paper:
        values = np.column_stack([values, draw.integers(-9, 9, n)])
    elif search and rng.random() < 0.25:
        settings["pooled"], values = True, [draw.integers(-30, 30, rng.randint(1, 6)).tolist() for _ in range(n)]
    if "pooled" not in settings and not paper and rng.random() < 0.25:
        settings["weights"] = draw.integers(1, 5, n)
    problem = midst.Problem(graph, values, objective=OBJECTIVES[objective], **settings)
    engine = rng.choice(["arrays", "arrays", "reference"] if search else ["arrays", "arrays", "edges", "reference"])
    name = f"{graph.name} of {n}, {objective}, {type(method).__name__}, {engine}"
    return name, problem, {"method": method, "engine": engine, "rng": k, "record": "audit", "throw": False}


def solve_run(k: int) -> tuple[str, Any]:
    name, problem, rest = draw_run(k)
    if not isinstance(rest["method"], midst.Search):
        rest["method"] = type(rest["method"])(**vars(rest["method"]) | {"limit": 3000})
    return name, midst.solve(problem, **rest)


def record_trace(k: int) -> dict[str, Any]:
    name, result = solve_run(k)
    trace = result.trace
    probes = [(each.step, each.coordinate, each.edges, each.totals) for each in trace.probes]
    found = {"run": name, "value": result.value, "rounds": result.rounds, "iterations": trace.iterations}
    found |= {"certified": bool(result.certified), "exposed": list(result.exposed), "questions": digest(probes)}
    found["answer"] = digest(trace.answer)
    if trace.segments is not None and trace.iterations:
        of = trace.segments
        columns = (of.node, of.coordinate, of.start, of.stop, of.branch)
        found["branches"] = digest(*(each.tolist() for each in columns))
        weight = np.cos(np.arange(len(of.low)))
        found["x"] = [float(weight @ of.low), float(weight @ of.high)]
    return found


def traces() -> Iterator[dict[str, Any]]:
    yield from map(record_trace, range(TRACES))


# Audits


def record_audit(leakage: Any) -> dict[str, Any]:
    found = {"kind": leakage.kind, "exposed": leakage.exposed, "bits": leakage.bits, "floor": leakage.floor}
    return found | {"lower": leakage.lower, "upper": leakage.upper, "resolution": leakage.resolution}


def audits() -> Iterator[dict[str, Any]]:
    prior = midst.priors.Normal(0, 8)
    for k in AUDITED:
        name, result = solve_run(k)
        for title, adversary in ADVERSARIES.items():
            try:
                found = record_audit(midst.audit(result.trace, adversary, prior, 0.1))
            except midst.InputError as error:
                found = {"refused": type(error).__name__}
            yield {"run": name, "adversary": title, **found}
    for method in (midst.Search(), midst.Consensus(), midst.Consensus(stop=midst.Certified(1e-4))):
        problem = midst.Problem(graphs.complete(7), [3.1, 0.2, 7.4, 5.0, 1.8, 6.1, 4.4], bounds=(0, 10))
        runs = [midst.solve(problem, method, rng=k, record="audit").trace for k in range(3)]
        together = audit_together(runs, prior=midst.priors.Uniform(0, 10), resolution=0.1)
        yield {"run": f"three runs by {method.name}", **record_audit(together)}
    sites = [[4.0, 5.0, 9.0], [7.0, 1.0, 2.0, 2.0], [3.0, 8.0, 8.0], [6.0, 5.0, 1.0]]
    for names in (["median"], ["quartiles", "mean", "std"], ["trimmed:0.1", "top:2", "histogram:0,3,6,10"]):
        found = midst.describe(sites, "ring", names, bounds=(0, 10), resolution=1)
        table = {name: found[name] for name in names}
        yield {"run": ",".join(names), "found": table, "bits": str(found.leakage(midst.priors.Uniform(0, 10))["value"])}


# Figures


def figures() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["paper", "fig1", "fig2", "fig3", "fig4", "--runs", "2", "--seed", "1", "--workers", "1", "--json"]
        done = CliRunner().invoke(main, [*words, "--out", folder])
    assert done.exit_code == 0, done.output
    for figure, claims in json.loads(done.stdout).items():
        for place, numbers in enumerate(find_numbers(claims)):
            yield {"figure": figure, "place": place, "numbers": numbers}


def find_numbers(claims: Any) -> Iterator[list[float]]:
    """Collect the numbers of every claim and of its cases, in order, and none of the words."""
    if isinstance(claims, dict):
        own = [each for each in claims.values() if isinstance(each, float | int)]
        lists = [each for each in claims.values() if isinstance(each, list) and each and isinstance(each[0], float)]
        yield from [numbers for numbers in (own, *lists) if numbers]
        for each in claims.values():
            yield from find_numbers(each)
    elif isinstance(claims, list):
        for each in claims:
            yield from find_numbers(each)


# Sessions


def record_session(seed: int, method: Any = "search", verify: bool = False, liars: int = 0) -> dict[str, Any]:
    charter, values = random_charter(seed, method, verify)
    setups = make_setups(charter, values)
    lies = choose_liars(setups, liars, Random(f"liars {method} {seed}"))
    world = World(setups, seed, ROUGH, {i: liar for i, (_, liar) in lies.items()})
    world.run()
    ends = []
    for i, one in enumerate(world.participants):
        if i in lies:
            ends.append("lied")
        elif isinstance(one.result, Answer):
            ends.append([one.result.value, one.result.rounds, one.result.statistics])
        else:
            ends.append(one.result.kind)
    found = {"session": f"{method} {seed}{', verified' * verify}{f', {liars} liar' if liars else ''}", "ends": ends}
    found["frames"] = world.frames
    if method == "search":
        found["all"] = world.digest
        found["journals"] = digest(*(one.disk.data for one in world.participants))
    return found


def sessions() -> Iterator[dict[str, Any]]:
    for seed in SEARCHES:
        yield record_session(seed)
    for seed in VERIFIED:
        yield record_session(seed, verify=True)
    for seed in LIED:
        yield record_session(seed, verify=bool(seed % 2), liars=1)
    for seed in ITERATED:
        yield record_session(seed, "consensus")


class Rounds(MemoryNetwork):
    """Clients with an update for every round."""

    def __init__(self, agreed: Any, given: list[list[list[Any]]]) -> None:
        self.given = given
        self.found: dict[tuple[int, int], Any] = {}
        super().__init__(agreed, [0.0] * len(agreed.names))

    def pass_time(self, seconds: float = 0.6) -> None:
        for i, peer in enumerate(self.peers):
            vectors = peer.exchange.vectors
            if vectors.finished is not None:
                self.found[i, vectors.rounds_done - 1] = vectors.finished
            if vectors.rounds_done < len(self.given):
                vectors.offer(self.given[vectors.rounds_done][i])
        super().pass_time(seconds)


def arrays() -> Iterator[dict[str, Any]]:
    shapes = [{"name": "w", "shape": [57], "dtype": "float32"}, {"name": "b", "shape": [3], "dtype": "int16"}]
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 4)]
    for settings in ({}, {"objective": "trimmed mean", "trim": 1, "bounds": [-4, 4], "resolution": 0.125}):
        entries = shapes if not settings else shapes[:1]
        charter = charter_of(
            5, edges, method="search", **{"bounds": None, "arrays": entries, "aggregates": 3} | settings
        )
        rng = np.random.default_rng(7)
        given = [
            [
                [rng.integers(-40, 40, 57).astype(np.float32) / 16, rng.integers(-5, 5, 3).astype(np.int16)][
                    : len(entries)
                ]
                for _ in range(5)
            ]
            for _ in range(3)
        ]
        network = Rounds(charter, given)
        network.run()
        yield {
            "session": charter.title,
            "frames": len(network.sent),
            "all": digest(*network.sent),
            "journals": digest(*(file.data for file in network.files)),
            "found": digest(*((key, [a.tolist() for a in each.arrays]) for key, each in sorted(network.found.items()))),
        }


# Wire


def wire() -> Iterator[dict[str, Any]]:
    limits = Limits(z=(-2.0, 2.0), x=(-100.0, 100.0))
    maxima = tuple(np.array([k + 0.5, -k]) for k in range(3))
    for levels in (2, 3):
        codec = Codec(b"d" * 32, 2, levels, limits, 4)
        frame = codec.encode_step(Message(7, np.array([1.5, -0.25])), b"e" * 16, maxima[:levels])
        yield {"frame": f"step, {levels} levels", "bytes": frame.hex()}
    codec = Codec(b"d" * 32, None, 2, limits, 4)
    statements = [Statement(b"A statement", b"s" * 64), Statement(b"Another", b"t" * 64)]
    yield {"frame": "statements", "bytes": codec.encode_all(statements).hex()}
    for up in (True, False):
        yield {"frame": f"vector, {up}", "bytes": codec.encode_vector(up, 3, 2, 1, b"c" * 16, b"numbers").hex()}
    for control in CONTROL:
        yield {"frame": type(control).__name__.lower(), "bytes": encode_control(control).hex()}
    for path in sorted((HERE / "files").glob("*.toml")):
        yield {"charter": path.name, "digest": read_charter(path).digest.hex()}
    for path in sorted((HERE / "files").glob("*.json")):
        words = ["verify", str(path), "--charter", str(path.with_suffix(".toml")), "--json"]
        yield {"result": path.name, "verified": json.loads(CliRunner().invoke(main, words).stdout)}


CONTROL = (
    Hello(7, "ann", "ben", b"d" * 32, {"bounds": b"b" * 8}, b"i" * 16, 0),
    Welcome(b"i" * 16, 3, 2, b"g" * 16),
    Want(4, b"\x05", ((0, 1), (2, 3))),
    NotYet(4, ("ben", "cat")),
    Away(),
    Visit(),
    Done(True),
    Refused("charter", "another charter"),
)

PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    each.__name__: each for each in (traces, audits, figures, sessions, arrays, wire)
}


def write(part: str) -> None:
    rows = [json.dumps(plain(row), ensure_ascii=False) for row in PARTS[part]()]
    (HERE / f"{part}.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        write(part)
