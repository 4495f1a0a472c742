"""MPyC, run for real."""

from __future__ import annotations

import subprocess
from fractions import Fraction

import pytest

from midst import Problem, graphs
from midst.baselines import secret_sharing
from midst.baselines.secret_sharing import PartyFailed, run_secret_sharing

CENT = Fraction(1, 100)
ANSWER = '{"value": 12.34, "messages": 70, "bytes": 4000, "up": 1.0, "answered": 1.3}'


@pytest.fixture
def asked(monkeypatch):
    """The commands by which parties would be started, which all print the same."""
    pytest.importorskip("mpyc")
    commands = []

    def run(command, **how):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, ANSWER)

    monkeypatch.setattr(secret_sharing.subprocess, "run", run)
    return commands


@pytest.mark.parametrize("grouped", [9, 2])
def test_three_parties_find_the_median(grouped, monkeypatch):
    pytest.importorskip("mpyc")
    monkeypatch.setattr(secret_sharing, "_MOST_GROUPED", grouped)
    problem = Problem(graphs.ring(3), [12.34, 99.99, 0.01], bounds=(0, 100))
    outcome = run_secret_sharing(problem, CENT, 0.5)
    assert outcome.answers == 12.34
    assert (outcome.exposed, outcome.bits, outcome.why) == (0, 0.5, None)
    assert min(outcome.rounds, outcome.bytes_per_node, outcome.seconds) > 0
    head = 12  # bytes of a message before what it says
    assert outcome.bytes_per_node > head * 2 * outcome.rounds, "to two others"


def test_ties_are_not_covered_by_its_promise(asked):
    outcome = run_secret_sharing(Problem(graphs.ring(3), [12.34, 12.34, 0.01], bounds=(0, 100)), CENT, 0.5)
    assert outcome.bits is None
    assert "equal" in outcome.why


def test_nothing_of_a_value_is_in_an_argument(asked):
    run_secret_sharing(Problem(graphs.ring(3), [12.34, 56.78, 99.99], bounds=(0, 100)), CENT, 0.5)
    assert len(asked) == 3
    assert not any(word in " ".join(command) for command in asked for word in ("12.34", "1234", "56.78", "99.99"))


@pytest.mark.parametrize("program", ["import sys; sys.exit(f'own {input()}')", "print(3.0, 'own')", "while True: pass"])
def test_a_party_that_fails_or_takes_too_long(program, tmp_path, monkeypatch, capfd):
    pytest.importorskip("mpyc")
    (tmp_path / "party.py").write_text(program)
    monkeypatch.setattr(secret_sharing, "PARTY", tmp_path / "party.py")
    monkeypatch.setattr(secret_sharing, "_PATIENCE", 1)
    with pytest.raises(PartyFailed) as failed:
        run_secret_sharing(Problem(graphs.ring(3), [12.34, 56.78, 99.99], bounds=(0, 100)), CENT, 0.5)
    assert str(failed.value) == "a party's process failed, or took too long"
    assert failed.value.__suppress_context__
    assert capfd.readouterr() == ("", "")
