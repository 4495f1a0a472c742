"""Seeds with liars among crashes, loss and partitions: what they bring about, and what they cannot."""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random

import pytest

from midst.errors import Aborted
from simnet.__main__ import main
from simnet.faults import NONE, ROUGH, Faults
from simnet.liars import CATALOGUE, choose_liars
from simnet.trial import make_setups, random_charter, run_trial, summarise
from simnet.world import World

BLOCKS = [("search", False, k, 25) for k in range(32)] + [("consensus", False, k, 25) for k in range(4)]
VERIFIED = [("search", True, k, 5) for k in range(20)]


@pytest.mark.parametrize(("method", "verify", "block", "size"), BLOCKS + VERIFIED)
def test_liars_bring_about_nothing_that_is_ruled_out(method, verify, block, size):
    """A thousand seeds, a hundred of them verified; every fifth on a good network, every tenth with two liars."""
    trials = []
    for seed in range(block * size, (block + 1) * size):
        faults, liars = (NONE if seed % 5 == 0 else ROUGH), (2 if seed % 10 == 9 else 1)
        trials.append(run_trial(seed, faults, method, verify, liars))
    assert [each for each in trials if each.wrong] == []
    assert summarise(trials)["runs"] == size


def test_every_lie_of_the_catalogue_is_told():
    told = Counter()
    for method in ("search", "consensus"):
        for seed in range(60):
            charter, values = random_charter(seed, method)
            setups = make_setups(charter, values)
            told.update(name for name, _ in choose_liars(setups, 2, Random(seed)).values())
    assert set(told) == set(CATALOGUE)


def test_a_seed_replays_its_lies_too():
    for seed in range(6):
        assert run_trial(seed, liars=1).digest == run_trial(seed, liars=1).digest


SIGNED = ["uses wrong masks", "sends odd points", "speaks out of turn", "appears in a bracket", "equivocates"]


@pytest.mark.parametrize("name", SIGNED)
def test_liars_are_convicted_where_they_signed_what_nobody_honest_signs(name):
    """By everybody, on a network that does not fail; or the lie was none, and the answer is there."""
    found = []
    for seed in range(4):
        charter, values = random_charter(seed, verify=True)
        setups = make_setups(charter, values)
        world = World(setups, seed, NONE, {1: CATALOGUE[name](setups[1], Random(seed))})
        world.run()
        ends = [one.result for i, one in enumerate(world.participants) if i != 1]
        named = {end.about for end in ends if isinstance(end, Aborted) and end.evidence is not None}
        assert named <= {"p1"}
        found += named
    assert found


def test_the_command_counts_what_liars_brought_about(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--seeds", "0:12", "--liars", "1", "--json"])
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 12 == told["answers"] + told["ended"]
    assert (told["wrong"], told["two_answers"], told["honest_named"], told["masks_twice"]) == (0, 0, 0, 0)


@pytest.mark.torture
@pytest.mark.parametrize("block", range(10))
def test_more_seeds_with_liars(block):
    """A hundred thousand, by `make torture` as it is."""
    runs = int(os.environ.get("MIDST_RUNS", "2"))
    for seed in range(10**6 + block * runs, 10**6 + (block + 1) * runs):
        method = "consensus" if seed % 10 == 0 else "search"
        faults = ROUGH if seed % 3 else Faults(loss=0.5, duplicates=0.3, delay=1.0, crashes=5, partitions=3)
        ended = run_trial(seed, faults, method, verify=seed % 20 == 1, liars=1 + seed % 2)
        assert not ended.wrong, ended
