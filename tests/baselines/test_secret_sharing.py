"""MPyC, run for real."""

from __future__ import annotations

from fractions import Fraction

import pytest

from midst import Problem, graphs
from midst.baselines import secret_sharing
from midst.baselines.secret_sharing import run_secret_sharing

CENT = Fraction(1, 100)


@pytest.mark.parametrize("grouped", [9, 2])
def test_three_parties_find_the_median(grouped, monkeypatch):
    pytest.importorskip("mpyc")
    monkeypatch.setattr(secret_sharing, "_MOST_GROUPED", grouped)
    problem = Problem(graphs.ring(3), [12.34, 99.99, 0.01], bounds=(0, 100))
    outcome = run_secret_sharing(problem, CENT, 0.5)
    assert outcome.answers == 12.34
    assert (outcome.exposed, outcome.bits, outcome.why) == (0, 0.5, None)
    assert min(outcome.rounds, outcome.bytes_per_node, outcome.seconds) > 0


def test_ties_are_not_covered_by_its_promise(monkeypatch):
    pytest.importorskip("mpyc")
    run = {"value": 12.34, "messages": 70, "sent": 4000, "seconds": 0.3}
    monkeypatch.setattr(secret_sharing, "until_done", lambda work, values: run)
    outcome = run_secret_sharing(Problem(graphs.ring(3), [12.34, 12.34, 0.01], bounds=(0, 100)), CENT, 0.5)
    assert outcome.bits is None
    assert "equal" in outcome.why


def test_nothing_of_a_value_is_in_an_argument(monkeypatch):
    seen = {}
    monkeypatch.setattr(secret_sharing, "ask_all", lambda python, commands, values, folder: seen.update(c=commands))
    secret_sharing.run_parties("python", ("integers", 16), 100.0, (), lambda folder: None, [12.34, 56.78, 99.99])
    assert len(seen["c"]) == 3
    assert not any(word in " ".join(command) for command in seen["c"] for word in ("12.34", "1234", "56.78", "99.99"))
