"""A thousand seeds of a bad network: the trajectory of the perfect one, or an abort; never a wrong answer."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from midst.cli import main
from midst.engines.reference import iterate
from midst.net.seat import take_seat
from midst.simnet import trial
from midst.simnet.faults import NONE, ROUGH, Faults
from midst.simnet.trial import random_charter, run_trial
from midst.simnet.world import World
from midst.system import assemble

BLOCKS = 20
SEEDS = 1000


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_bad_network_changes_nothing_but_the_time_it_takes(block):
    size = SEEDS // BLOCKS
    trials = [run_trial(seed) for seed in range(block * size, (block + 1) * size)]
    assert [each for each in trials if each.wrong] == []
    assert sum(not each.aborted for each in trials) >= 0.9 * size  # it does not only give up
    assert sum(each.crashes for each in trials) > size


@pytest.mark.parametrize(
    ("faults", "kinds"),
    [
        (Faults(loss=0.1, delay=0.2, crashes=1, forgetful=True), {"journal lost", "refused", "waited"}),
        (Faults(loss=0.1, delay=0.2, full_disks=2), {"disk", "waited"}),
        (Faults(loss=0.7, duplicates=0.5, delay=1.0, crashes=6, partitions=4), {"waited"}),
    ],
)
@pytest.mark.parametrize("mode", ["lockstep", "lossy"])
def test_worse_ends_in_the_answer_or_an_abort_that_says_why(faults, kinds, mode):
    trials = [run_trial(seed, faults, mode) for seed in range(8)]
    assert [each for each in trials if each.wrong] == []
    assert {kind for each in trials for kind in each.aborted} <= kinds


def test_lossy_mode_finds_the_answer_on_a_bad_network():
    trials = [run_trial(seed, ROUGH, "lossy") for seed in range(20)]
    assert [each for each in trials if each.wrong] == []
    assert sum(not each.aborted for each in trials) >= 18


def test_a_seed_replays_byte_for_byte_and_another_does_not():
    assert run_trial(7).digest == run_trial(7).digest
    assert run_trial(7).digest != run_trial(8).digest


@pytest.mark.parametrize("seed", range(12))
def test_the_perfect_network_is_the_reference_engine_to_the_last_bit(seed):
    charter, values = random_charter(seed)
    seats = [take_seat(charter, name, value) for name, value in zip(charter.names, values, strict=True)]
    world = World(seats, seed, NONE)
    world.run()
    openings = [seat.draw(Random(f"{seed}/{seat.name}/0").randbytes) for seat in seats]
    problem = charter.problem(values)
    z0 = np.concatenate([seat.z_of(opening) for seat, opening in zip(seats, openings, strict=True)])
    smooth = charter.objective == "mean"
    system = assemble(problem, charter.parameters, z0 * charter.parameters.unit if smooth else z0)
    last = min(len(one.trajectory) for one in world.participants)
    for t, (x, _) in zip(range(last), iterate(system), strict=False):
        for i, one in enumerate(world.participants):
            assert one.trajectory[t] == x[i].tobytes(), (t, i)
    assert last > 5


def test_the_command_reports_and_replays(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["simnet", "--seed", "3", "--json"])
    first = json.loads(capsys.readouterr().out)
    assert not ended.value.code
    assert first["wrong"] == []
    with pytest.raises(SystemExit):
        main(["simnet", "--seed", "3", "--runs", "2", "--workers", "2", "--json"])
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == first
    with pytest.raises(SystemExit):
        main(["simnet", "--seed", "3", "--runs", "2"])
    assert "2 seeds: 2 ended with the answer" in capsys.readouterr().out


def test_the_command_says_what_went_wrong_and_how_to_see_it_again(capsys, monkeypatch):
    real = trial.run_trial
    monkeypatch.setattr(trial, "run_trial", lambda seed, **how: replace(real(seed, **how), wrong=("a wrong answer",)))
    monkeypatch.setattr(
        "midst.workers.spread", lambda function, tasks, workers, bar: [trial.run_trial(s) for s in tasks]
    )
    with pytest.raises(SystemExit) as ended:
        main(["simnet", "--seed", "3"])
    assert ended.value.code == 1
    assert "midst simnet --seed 3" in capsys.readouterr().err


@pytest.mark.torture
def test_more_seeds():
    for seed in range(10**6, 10**6 + int(os.environ.get("MIDST_RUNS", "20"))):
        ended = run_trial(seed)
        assert not ended.wrong, f"replay with: midst simnet --seed {seed}"
