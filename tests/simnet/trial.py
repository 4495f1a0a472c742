"""One seed: a random charter, run on a perfect network and on a bad one, and what must hold of the two.

What must hold: every participant ends; with the right answer and the trajectory of the perfect network, bit for bit,
or with an abort that names somebody; all answers are the same; nobody sends a neighbour two different frames for one
round, so never a second z(0); nobody hides two answers behind one mask, or signs two statements for one step. (Unless
crashes take journals with them, and all who could have noticed have crashed.)

Where some lie (`liars.py`), of those who do not: every one ends; all answers are the same, and where votes are verified
within as many ranks of the right one as the liars have votes; no evidence, judged from the charter alone, convicts
honest participants only; and masks as above. Without verification a liar can choose the answer, and nothing is said
about which it is. Nor is it with noise, but that it lies within the bounds; that noise is never drawn a second time is
what the masks above say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np

from midst import graphs
from midst.disclosure import Disclosure
from midst.errors import Aborted
from midst.methods import MethodName
from midst.net.answer import Answer
from midst.net.charter import Charter, Deadlines, NoiseEntry, ParticipantEntry
from midst.net.identity.certificates import fingerprint
from midst.net.setup import Setup, make_setup
from midst.protocol.course import judge
from midst.protocol.masks import split
from midst.protocol.search import Goal, OwnValues, SearchState, contribution, widths
from midst.types import Array

from .faults import NONE, ROUGH, Faults
from .liars import choose_liars
from .notary import SimNotary, sim_certificate
from .world import World

TWO_ANSWERS, HONEST_NAMED, MASK_TWICE = "two different answers", "only honest ones convicted", "a mask used twice"
Results = Mapping[int, Answer | Aborted]  # of those who are honest, by number
_PATIENCE = 20.0  # seconds to wait where somebody may never answer; partitions and crashes are over by then
_ORDERED = ("median", "p95", "min", "max", "mean", "sum")  # statistics that rise with every value
_STATISTICS = (*_ORDERED, "std", "trimmed:0.2", "winsorised:0.1", "mad", "top:2", "histogram:-5,0,5")
_OFTEN = 9  # of so many seeds of a search one has noise; so little that three values are enough
_OF_NOISE: dict[str, Any] = {
    "noise": NoiseEntry(epsilon=1.0, delta=1e-3, variance="1/16"),
    **{"pooled": True, "coordinates": 1, "bounds": (-10.0, 10.0), "resolution": 0.01},
    **{"arity": 1, "spacing": "key"},
}
_GRAPHS = ("ring", "complete", "star", "path")


@dataclass(frozen=True)
class Trial:
    """What became of a seed.

    Attributes:
        seed: which.
        liars: who lies, and how.
        graph: of the random charter, in words.
        objective: likewise.
        found: how many participants have the answer.
        aborted: the kinds of abort of the others.
        convicted: whom evidence convicts.
        wrong: what does not hold, in words; empty if all does.
        rounds: of the run, where there was an answer.
        seconds: on the simulated clock.
        frames: sent.
        crashes: suffered.
        digest: hash of everything that happened.
    """

    seed: int
    liars: dict[str, str]
    graph: str
    objective: str
    found: int
    aborted: tuple[str, ...]
    convicted: tuple[str, ...]
    wrong: tuple[str, ...]
    rounds: int | None
    seconds: float
    frames: int
    crashes: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return dict(vars(self))


def summarise(trials: Sequence[Trial]) -> dict[str, int]:
    """How many of them had an answer for everybody honest, ended without, or went wrong, and how."""

    def count(what: str) -> int:
        return sum(any(each.startswith(what) for each in trial.wrong) for trial in trials)

    return {
        "runs": len(trials),
        "answers": sum(not trial.aborted for trial in trials),
        "ended": sum(bool(trial.aborted) for trial in trials),
        "wrong": sum(bool(trial.wrong) for trial in trials),
        "two_answers": count(TWO_ANSWERS),
        "honest_named": count(HONEST_NAMED),
        "masks_twice": count(MASK_TWICE),
    }


def random_charter(
    seed: int, method: MethodName = "search", verify: bool = False, wait: float = 60.0
) -> tuple[Charter, list[Array]]:
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
    statistics = _settings_of_statistics(seed) if method == "search" else {}
    if statistics:
        objective, weighted, settings = "median", False, settings | statistics
    elif method == "search" and not verify and seed % _OFTEN == _OFTEN - 1:
        weighted, settings = False, settings | _OF_NOISE
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
        deadlines=Deadlines(start=2 * wait, wait=wait, total=3600.0, linger=20.0),
        **settings,
    )
    size = charter.coordinates

    def draw() -> Array:
        count = rng.randint(1, 5) if charter.has_lists else size
        return np.array([rng.choice([rng.uniform(-10, 10), rng.randint(-3, 3)]) for _ in range(count)], np.float64)

    return charter, [draw() for _ in names]


def make_setups(charter: Charter, values: Sequence[Array]) -> list[Setup]:
    """Of everybody, with the simulator's signatures."""
    people = enumerate(zip(charter.names, values, strict=True))
    return [make_setup(charter, name, value, SimNotary(i)) for i, (name, value) in people]


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


def _settings_of_statistics(seed: int) -> dict[str, Any]:
    """Of one seed in six: some statistics, in place of an objective; nothing of the others."""
    rng = Random(f"statistics {seed}")
    if rng.random() > 1 / 6:
        return {}
    rules = Disclosure() if rng.random() < 0.3 else Disclosure(values=3, free=1)
    names = tuple(rng.sample(_STATISTICS, rng.randint(1, 3)))
    return {
        **{"statistics": names, "disclosure": rules, "pooled": False, "coordinates": 1},
        **{"bounds": (-10.0, 10.0), "resolution": 0.01},
    }


def run_trial(
    seed: int, faults: Faults = ROUGH, method: MethodName = "search", verify: bool = False, liars: int = 0
) -> Trial:
    """Run a seed with faults, and compare with what holds without; or with liars, and see what they brought about."""
    charter, values = random_charter(seed, method, verify, _PATIENCE if liars else 60.0)
    setups = make_setups(charter, values)
    lies = choose_liars(setups, liars, Random(f"liars {method} {seed}"))
    world = World(setups, seed, faults, {i: liar for i, (_, liar) in lies.items()})
    world.run()
    results = {i: one.result for i, one in enumerate(world.participants) if i not in lies and one.result is not None}
    convicted = {i: _convicted(charter, result) for i, result in results.items()}
    wrong = list(_check(charter, values, world, results, frozenset(lies)))
    wrong += [HONEST_NAMED for accused in convicted.values() if accused and not lies.keys() & set(accused)]
    if not faults.draws_anew and not lies:  # who forgets before anybody has met it may draw anew
        calm = World(setups, seed, NONE)
        calm.run()
        wrong += _compare(calm, world)
    rounds = [result.rounds for result in results.values() if isinstance(result, Answer)]
    return Trial(
        seed=seed,
        liars={charter.names[i]: name for i, (name, _) in lies.items()},
        graph=f"{charter.graph.name or 'graph'} of {charter.graph.n}",
        objective=charter.title,
        found=len(rounds),
        aborted=tuple(sorted(result.kind for result in results.values() if isinstance(result, Aborted))),
        convicted=tuple(sorted({charter.names[i] for accused in convicted.values() for i in accused})),
        wrong=tuple(wrong),
        rounds=max(rounds, default=None),
        seconds=round(world.now, 3),
        frames=world.frames,
        crashes=world.crashes,
        digest=world.digest,
    )


def _convicted(charter: Charter, result: Answer | Aborted) -> tuple[int, ...]:
    """Whom somebody's evidence convicts, judged by the charter alone; nobody, where it has none."""
    if isinstance(result, Answer) or result.evidence is None:
        return ()
    agreement = charter.agreement(result.evidence.opening)
    return judge(result.evidence, agreement, SimNotary(0).verifier).accused


def _check(
    charter: Charter, values: Sequence[Array], world: World, results: Results, liars: frozenset[int]
) -> list[str]:
    wrong = [] if len(results) + len(liars) == len(charter.names) else ["somebody never ended"]
    found = [result for result in results.values() if isinstance(result, Answer)]
    if len({(result.value, str(result.statistics), result.rounds) for result in found}) > 1:
        wrong.append(TWO_ANSWERS)
    refused = charter.refusal([own.size for own in values]) is not None
    withheld = any(isinstance(result, Aborted) and result.kind == "withheld" for result in results.values())
    if not liars and ((refused and found) or (withheld and not refused)):
        wrong.append("statistics are found though refused, or withheld though not")
    right = partial(_near, liars=liars) if liars else _right
    if charter.is_verified or not liars:
        wrong += ["a wrong answer" for result in found if not right(charter, values, result)]
    wrong += [f"node {i} sent node {j} two different frames of one round" for i, j in sorted(world.twice)]
    wrong += [f"{MASK_TWICE} by node {i}" for i in sorted(world.masks_twice)]
    return wrong


def _near(charter: Charter, values: Sequence[Array], result: Answer, liars: frozenset[int]) -> bool:
    """Whether an answer lies between the ranks that liars can move it to: by their votes, wherever they put them."""
    if result.statistics is not None:
        return _near_statistics(charter, values, result.statistics["value"], liars)
    lines = _lines(charter, values, result)
    for goal, key, line in lines:
        honest = sorted(each for each, i in line if i not in liars)
        rank = goal.ranks[0] - 1
        low, high = rank - (len(line) - len(honest)), rank
        if (low >= 0 and key < honest[low]) or (high < len(honest) and key > honest[high]):
            return False
    return True


def _right(charter: Charter, values: Sequence[Array], result: Answer) -> bool:
    """Whether an answer is right, by what only a simulation knows: all values, sorted."""
    if result.statistics is not None:
        return result.statistics == _table(charter, values)
    if charter.noise is not None:
        return charter.value_range[0] <= result.value[0] <= charter.value_range[1]
    if charter.stop == "certified":
        problem = charter.problem([float(own[0]) for own in values])
        assert result.bound is not None
        return float(problem.distance(np.array(result.value[0]))) <= result.bound
    return all(
        sorted(each for each, _ in line)[goal.ranks[0] - 1] == key
        for goal, key, line in _lines(charter, values, result)
    )


def _table(charter: Charter, values: Sequence[Array]) -> dict[str, dict[str, float | list[float]]]:
    """The statistics that one who had all values would find."""
    rules = charter.search_rules([len(own) for own in values])
    own, search = OwnValues.of(rules, [charter.keys.keys(np.concatenate(values))]), SearchState.begin(rules)
    while search.question is not None:
        search = search.fold(split(contribution(search.question, search.own_values(own), 1), widths(search.question)))
    return charter.table(search)


def _near_statistics(charter: Charter, values: Sequence[Array], found: dict[str, Any], liars: frozenset[int]) -> bool:
    """Whether every statistic is one that holds for some values of the liars, of those that say so by themselves."""
    near = []
    for end in charter.value_range:
        moved = [np.full_like(own, end) if i in liars else own for i, own in enumerate(values)]
        near.append(_table(charter, moved)["value"])
    told = [name for name in found if name in _ORDERED]
    return all(near[0][name] <= found[name] <= near[1][name] for name in told)


def _lines(charter: Charter, values: Sequence[Array], result: Answer) -> list[tuple[Goal, int, list[tuple[int, int]]]]:
    """Of every answer its goal, its key, and the keys of all values, as often as they count, with whose they are."""
    rules = charter.search_rules([len(own) if charter.has_lists else 1 for own in values])
    weights = [one.weight for one in charter.participants]
    lines = []
    for goal, value in zip(rules.goals, result.value, strict=True):
        rows = [own if charter.has_lists else own[goal.coordinate : goal.coordinate + 1] for own in values]
        pairs = enumerate(zip(rows, weights, strict=True))
        line = [(rules.keys.key(float(each)), i) for i, (row, weight) in pairs for each in row for _ in range(weight)]
        lines.append((goal, rules.keys.key(value), line))
    return lines


def _compare(calm: World, world: World) -> list[str]:
    pairs = zip(calm.participants, world.participants, strict=True)
    same = all(one.trajectory.get(t, sent) == sent for plain, one in pairs for t, sent in plain.trajectory.items())
    return [] if same else ["another trajectory than without faults"]
