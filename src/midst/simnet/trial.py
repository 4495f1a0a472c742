"""One seed: a random charter, run on a perfect network and on a bad one, and what must hold of the two.

What must hold: every participant ends; with the right answer and the trajectory of the perfect network, bit for bit,
or with an abort that names somebody; all answers are the same; nobody sends a neighbour two different frames for one
round, so never a second z(0). (Unless crashes take journals with them, and all who could have noticed have crashed.)
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from midst import graphs
from midst.errors import Aborted
from midst.net.charter import Charter, Deadlines, Participant
from midst.net.finding import Found
from midst.net.seat import take_seat
from midst.simnet.faults import NONE, ROUGH, Faults
from midst.simnet.world import World

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


def random_charter(seed: int, mode: str = "lockstep") -> tuple[Charter, np.ndarray[Any, np.dtype[np.float64]]]:
    """A charter of three to eight participants and their values, by a seed."""
    rng = Random(f"charter {seed}")
    n = rng.choice([3, 4, 5, 5, 6, 7, 8])
    kind = rng.choice(_GRAPHS)
    graph = graphs.make(kind, n, rng=np.random.default_rng(seed))
    objective = rng.choice(["median", "median", "median", "quantile", "maximum"])
    if mode == "lockstep" and rng.random() < 0.1:
        objective = "mean"
    names = [f"p{i}" for i in range(n)]
    charter = Charter(
        session=f"seed-{seed}",
        participants=tuple(
            Participant(name=name, fingerprint=f"sha256:{i:064x}", address=f"sim:{7000 + i}", weight=1)
            for i, name in enumerate(names)
        ),
        edges=tuple((names[i], names[j]) for i, j in zip(graph.source, graph.target, strict=True) if i < j),
        objective=objective,  # type: ignore[arg-type]
        quantile=0.25 if objective == "quantile" else None,
        bounds=(-10.0, 10.0),
        tolerance=1e-3,
        mode=mode,  # type: ignore[arg-type]
        deadlines=Deadlines(start=120.0, wait=60.0, total=3600.0, linger=20.0),
    )
    values = np.array([rng.choice([rng.uniform(-10, 10), rng.randint(-3, 3)]) for _ in names], np.float64)
    return charter, values


def run_trial(seed: int, faults: Faults = ROUGH, mode: str = "lockstep") -> Trial:
    """Run a seed without and with faults, and compare."""
    charter, values = random_charter(seed, mode)
    seats = [take_seat(charter, name, value) for name, value in zip(charter.names, values, strict=True)]
    calm = World(seats, seed, NONE)
    calm.run()
    world = World(seats, seed, faults)
    results = world.run()
    wrong = list(_check(charter, values, world, results))
    if mode == "lockstep" and not faults.forgetful:  # who forgets before anybody has met it may draw anew
        wrong += _compare(calm, world)
    rounds = [result.rounds for result in results if isinstance(result, Found)]
    aborts = tuple(sorted(result.kind for result in results if isinstance(result, Aborted)))
    title = charter.problem().title
    return Trial(
        seed=seed,
        graph=f"{charter.graph.name or 'graph'} of {charter.graph.n}",
        objective=title,
        found=len(rounds),
        aborted=aborts,
        wrong=tuple(wrong),
        rounds=max(rounds, default=None),
        seconds=round(world.now, 3),
        frames=world.frames,
        crashes=world.crashes,
        digest=world.digest,
    )


def _check(charter: Charter, values: Any, world: World, results: list[Found | Aborted]) -> list[str]:
    wrong = [] if len(results) == len(charter.names) else ["somebody never ended"]
    found = [result for result in results if isinstance(result, Found)]
    problem = charter.problem(values)
    if len({(result.value, result.rounds) for result in found}) > 1:
        wrong.append("two different answers")
    wrong += ["a wrong answer" for result in found if float(problem.distance(np.array(result.value[0]))) > result.bound]
    wrong += [f"node {i} sent node {j} two different frames of one round" for i, j in sorted(world.twice)]
    return wrong


def _compare(calm: World, world: World) -> list[str]:
    pairs = zip(calm.participants, world.participants, strict=True)
    same = all(one.trajectory.get(t, sent) == sent for plain, one in pairs for t, sent in plain.trajectory.items())
    return [] if same else ["another trajectory than without faults"]
