"""Random searches, and one played by participants who each know their own values only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from midst.protocol.keys import Floats, first_bracket, make_keys
from midst.protocol.search import Cells, Goal, OwnValues, Rules, SearchState, contribution

SPACINGS = ("rank", "value", "key")
KINDS = ("normal", "cauchy", "ties", "constant", "near", "wide", "subnormal", "integers", "zeros", "tenths", "gap")
RESOLUTIONS = {"0.01": 1e6, "0.1": 1e6, "1": 1e6, "1/3": 1e6, "1e-9": 1e3, "25": 1e6, "1e290": 1e300}


def data(kind, n, seed):
    """Numbers of every nasty shape."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=n)
    return {
        "normal": normal,
        "cauchy": rng.standard_cauchy(n),
        "ties": rng.integers(0, 3, n) * 1.0,
        "constant": np.full(n, normal[0]),
        "near": 1000 + normal * 1e-12,
        "wide": np.sign(normal) * 10.0 ** rng.uniform(-300, 300, n),
        "subnormal": rng.integers(-30, 30, n) * 5e-324,
        "integers": rng.integers(-5, 6, n) * 1.0,
        "zeros": np.where(normal > 0, 0.0, -0.0),
        "tenths": rng.integers(-30, 30, n) / 10,
        "gap": np.where(normal > 0, 1e5, -1e5) + normal,
    }[kind]


@dataclass(frozen=True)
class Participant:
    """One that has lists of keys, one a coordinate, each value of the same weight."""

    keys: tuple[tuple[int, ...], ...]
    weight: int


@dataclass(frozen=True)
class Case:
    """A search and those who take part in it."""

    rules: Rules
    participants: tuple[Participant, ...]

    def ordered(self, coordinate):
        """All keys of a coordinate, each as often as it weighs."""
        return sorted(key for each in self.participants for key in each.keys[coordinate] for _ in range(each.weight))

    def answers(self):
        """Of each goal, the sum of the keys at its ranks."""
        return tuple(sum(self.ordered(goal.coordinate)[rank - 1] for rank in goal.ranks) for goal in self.rules.goals)

    def values(self):
        """Of each goal, the answer as a number, by fractions alone where there is a resolution."""
        keys = self.rules.keys
        if isinstance(keys, Floats):
            return tuple(keys.value(answer) for answer in self.answers())
        return tuple(
            float(Fraction(answer - len(goal.ranks) * 2**63) * keys.step / len(goal.ranks))
            for goal, answer in zip(self.rules.goals, self.answers(), strict=True)
        )


def rules_of(keys, columns, weights, bounds, **rest):
    """The rules for values that are at hand; columns are one a coordinate."""
    positive = {int(weight) for weight in weights if weight}
    return Rules(
        keys=keys,
        brackets=tuple(first_bracket(keys, bounds) for _ in columns),
        total=int(sum(weights)),
        unit=positive.pop() if len(positive) == 1 else None,
        **rest,
    )


@st.composite
def cases(draw, most=200, coordinates=3, goals=3, midpoint=True):
    """Any rules, and participants with lists of any lengths."""
    n = draw(st.integers(2, 12) | st.integers(2, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(1, 5, n) if draw(st.booleans()) else np.ones(n, np.int64)
    weight = {
        "one": np.ones(n, np.int64),
        "two": np.full(n, 2),
        "some": rng.integers(0, 2, n),
        "any": rng.integers(0, 6, n),
    }[draw(st.sampled_from(("one", "two", "some", "any")))]
    weight[rng.integers(n)] = max(1, weight.max())
    weights = np.repeat(weight, lengths)
    resolution = draw(st.none() | st.sampled_from(tuple(RESOLUTIONS)))
    keys = make_keys(None if resolution is None else Fraction(resolution))
    columns = [
        data(draw(st.sampled_from(KINDS)), len(weights), draw(st.integers(0, 2**32 - 1)))
        for _ in range(draw(st.integers(1, coordinates)))
    ]
    if resolution is not None:
        columns = [np.clip(column, -RESOLUTIONS[resolution], RESOLUTIONS[resolution]) for column in columns]
    slack = draw(st.sampled_from((0.0, 1.0, 1e3)))
    least, greatest = float(np.min(columns)), float(np.max(columns))
    bounds = (least - slack, greatest + slack) if draw(st.booleans()) else None
    total = int(weights.sum())
    wanted = []
    for _ in range(draw(st.integers(1, goals))):
        ranks = (draw(st.integers(1, total)),)
        if midpoint and resolution is not None and total > 1 and draw(st.booleans()):
            first = draw(st.integers(1, total - 1))
            ranks = (first, first + 1)
        wanted.append(Goal(draw(st.integers(0, len(columns) - 1)), ranks))
    public = np.sort(data(draw(st.sampled_from(KINDS)), draw(st.integers(2, 30)), draw(st.integers(0, 99))))
    asked = [tuple(rng.choice(column, draw(st.integers(0, 4)))) for column in columns]
    rules = rules_of(
        keys,
        columns,
        weights,
        bounds,
        goals=tuple(wanted),
        arity=draw(st.integers(1, 7)),
        spacing=draw(st.sampled_from(SPACINGS)),
        quantiles=tuple(public.tolist()) if draw(st.booleans()) else (),
        opening=tuple(tuple(keys.key(float(x)) for x in each) for each in asked) if draw(st.booleans()) else (),
    )
    lists = [np.split(keys.keys(column), np.cumsum(lengths)[:-1]) for column in columns]
    participants = tuple(
        Participant(tuple(tuple(sorted(lists[c][i].tolist())) for c in range(len(columns))), int(weight[i]))
        for i in range(n)
    )
    return Case(rules, participants)


def own_values(keys):
    """A participant's, from its keys in order."""
    return OwnValues(tuple(np.array(each, np.uint64) for each in keys))


def play(case):
    """The search, from what each participant answers alone; checks every question on the way."""
    search, steps = SearchState.begin(case.rules), []
    while search.question is not None:
        for part in search.question:
            check(case, part)
        answers = [contribution(search.question, own_values(each.keys), each.weight) for each in case.participants]
        totals = tuple(map(sum, zip(*answers, strict=True)))
        steps.append((search.question, totals))
        search = search.fold(totals)
        assert search.steps == len(steps) <= case.rules.most_probes
    return search, tuple(steps)


def check(case, part):
    """Cells cut one bracket; a sum is only of what may be told."""
    assert part.numbers > 0
    if isinstance(part, Cells):
        assert len(part.edges) >= 3
        assert list(part.edges) == sorted(set(part.edges))
        return
    ends = list(zip(part.edges[::2], part.edges[1::2], strict=True))
    counted = [
        key
        for each in case.participants
        if each.weight
        for key in each.keys[part.coordinate]
        if any(a < key <= b for a, b in ends)
    ]
    most = max(len(goal.ranks) for goal in case.rules.goals if goal.coordinate == part.coordinate)
    assert 1 <= len(counted) <= most
    assert len(ends) <= len(counted)
