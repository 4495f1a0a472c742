"""One seed: a random charter, run on a perfect network and on a bad one, and what must hold of the two.

What must hold: every participant ends; with the right answer and the trajectory of the perfect network, bit for bit,
or with an abort that names somebody; all answers are the same; nobody sends a neighbour two different frames for one
round, so never a second z(0); nobody hides two answers behind one mask, or signs two statements for one step. (Unless
crashes take journals with them, and all who could have noticed have crashed.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from midst import graphs
from midst.errors import Aborted
from midst.methods import MethodName
from midst.net.answer import Answer
from midst.net.charter import Charter, Deadlines, ParticipantEntry
from midst.net.identity.certificates import fingerprint
from midst.net.setup import make_setup
from midst.simnet.faults import NONE, ROUGH, Faults
from midst.simnet.notary import SimNotary, sim_certificate
from midst.simnet.world import World
from midst.types import Array

_GRAPHS = ("ring", "complete", "star", "path")


@dataclass(frozen=True)
class Trial:
    """What became of a seed.

    Attributes:
        seed: which.
        graph: of the random charter, in words.
        objective: likewise.
        found: how many participants have the answer.
        aborted: the kinds of abort of the others.
        wrong: what does not hold, in words; empty if all does.
        rounds: of the run, where there was an answer.
        seconds: on the simulated clock.
        frames: sent.
        crashes: suffered.
        digest: hash of everything that happened.
    """

    seed: int
    graph: str
    objective: str
    found: int
    aborted: tuple[str, ...]
    wrong: tuple[str, ...]
    rounds: int | None
    seconds: float
    frames: int
    crashes: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return dict(vars(self))


def random_charter(seed: int, method: MethodName = "consensus", verify: bool = False) -> tuple[Charter, list[Array]]:
    """A charter of three to eight participants and the values of each, by a seed."""
    rng = Random(f"charter {method} {seed}")
    n = rng.choice([3, 4, 5, 5, 6, 7, 8])
    kind = rng.choice(_GRAPHS)
    graph = graphs.make(kind, n, rng=np.random.default_rng(seed))
    objective = rng.choice(["median", "median", "median", "quantile", "maximum"])
    if method == "consensus" and rng.random() < 0.1:
        objective = "mean"
    settings = _settings_of_a_search(rng) if method == "search" else {"bounds": (-10.0, 10.0), "tolerance": 1e-3}
    weighted = method == "search" and not settings["pooled"] and rng.random() < 0.2
    names = [f"p{i}" for i in range(n)]
    charter = Charter(
        session=f"seed-{seed}",
        method=method,
        participants=tuple(
            ParticipantEntry(
                name=name,
                fingerprint=fingerprint(sim_certificate(i)),
                address=f"sim:{7000 + i}",
                weight=rng.randint(1, 3) if weighted else 1,
            )
            for i, name in enumerate(names)
        ),
        edges=tuple((names[i], names[j]) for i, j in zip(graph.source, graph.target, strict=True) if i < j),
        objective=objective,  # type: ignore[arg-type]
        quantile=0.25 if objective == "quantile" else None,
        verify=verify and objective != "mean",
        deadlines=Deadlines(start=120.0, wait=60.0, total=3600.0, linger=20.0),
        **settings,
    )
    size = charter.coordinates

    def draw() -> Array:
        count = rng.randint(1, 5) if charter.pooled else size
        return np.array([rng.choice([rng.uniform(-10, 10), rng.randint(-3, 3)]) for _ in range(count)], np.float64)

    return charter, [draw() for _ in names]


def _settings_of_a_search(rng: Random) -> dict[str, Any]:
    pooled = rng.random() < 0.25
    return {
        "bounds": (-10.0, 10.0) if rng.random() < 0.7 else None,
        "resolution": 0.01 if rng.random() < 0.3 else None,
        "arity": rng.choice([1, 2, 3, 3, 7]),
        "spacing": rng.choice(["rank", "rank", "value", "key"]),
        "pooled": pooled,
        "coordinates": 2 if not pooled and rng.random() < 0.2 else 1,
    }


def run_trial(seed: int, faults: Faults = ROUGH, method: MethodName = "consensus", verify: bool = False) -> Trial:
    """Run a seed without and with faults, and compare."""
    charter, values = random_charter(seed, method, verify)
    notaries = [SimNotary(i) for i in range(len(charter.names))]
    setups = [make_setup(charter, *each) for each in zip(charter.names, values, notaries, strict=True)]
    calm = World(setups, seed, NONE)
    calm.run()
    world = World(setups, seed, faults)
    results = world.run()
    wrong = list(_check(charter, values, world, results))
    if not faults.draws_anew:  # who forgets before anybody has met it may draw anew
        wrong += _compare(calm, world)
    rounds = [result.rounds for result in results if isinstance(result, Answer)]
    aborts = tuple(sorted(result.kind for result in results if isinstance(result, Aborted)))
    return Trial(
        seed=seed,
        graph=f"{charter.graph.name or 'graph'} of {charter.graph.n}",
        objective=charter.title,
        found=len(rounds),
        aborted=aborts,
        wrong=tuple(wrong),
        rounds=max(rounds, default=None),
        seconds=round(world.now, 3),
        frames=world.frames,
        crashes=world.crashes,
        digest=world.digest,
    )


def _check(charter: Charter, values: Sequence[Array], world: World, results: list[Answer | Aborted]) -> list[str]:
    wrong = [] if len(results) == len(charter.names) else ["somebody never ended"]
    found = [result for result in results if isinstance(result, Answer)]
    if len({(result.value, result.rounds) for result in found}) > 1:
        wrong.append("two different answers")
    wrong += ["a wrong answer" for result in found if not _right(charter, values, result)]
    wrong += [f"node {i} sent node {j} two different frames of one round" for i, j in sorted(world.twice)]
    wrong += [f"node {i} used a mask twice" for i in sorted(world.masks_twice)]
    return wrong


def _right(charter: Charter, values: Sequence[Array], result: Answer) -> bool:
    """Whether an answer is right, by what only a simulation knows: all values, sorted."""
    if charter.stop == "certified":
        problem = charter.problem([float(own[0]) for own in values])
        return float(problem.distance(np.array(result.value[0]))) <= result.bound
    rules = charter.search_rules([len(own) if charter.pooled else 1 for own in values])
    weights = [one.weight for one in charter.participants]
    for goal, value in zip(rules.goals, result.value, strict=True):
        rows = [own if charter.pooled else own[goal.coordinate : goal.coordinate + 1] for own in values]
        pairs = zip(rows, weights, strict=True)
        line = sorted(rules.keys.key(float(number)) for row, weight in pairs for number in row for _ in range(weight))
        if rules.keys.value(line[goal.ranks[0] - 1]) != value:
            return False
    return True


def _compare(calm: World, world: World) -> list[str]:
    pairs = zip(calm.participants, world.participants, strict=True)
    same = all(one.trajectory.get(t, sent) == sent for plain, one in pairs for t, sent in plain.trajectory.items())
    return [] if same else ["another trajectory than without faults"]
