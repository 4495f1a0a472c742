"""Seeds of a bad network, by both methods: what the perfect one would have told, or an abort; never a wrong answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest

from midst.engines.reference import iterate
from midst.engines.searching import search_values
from midst.net.answer import Answer
from midst.system import assemble
from simnet import __main__ as program
from simnet.__main__ import main
from simnet.faults import NONE, ROUGH, Faults
from simnet.trial import make_setups, random_charter, run_trial
from simnet.world import World

BLOCKS = {"consensus": 8, "search": 40}
SEEDS = {"consensus": 200, "search": 1000}
CALM = {"withdrawn", "withheld"}  # ends that others, or the charter's rules, bring about


@pytest.mark.parametrize(("method", "block"), [(method, k) for method, blocks in BLOCKS.items() for k in range(blocks)])
def test_a_bad_network_changes_nothing_but_the_time_it_takes(method, block):
    size = SEEDS[method] // BLOCKS[method]
    trials = [run_trial(seed, ROUGH, method) for seed in range(block * size, (block + 1) * size)]
    assert [each for each in trials if each.wrong] == []
    assert {kind for each in trials for kind in each.aborted} <= {"waited", *CALM}
    assert sum(set(each.aborted) <= {"withheld"} for each in trials) >= 0.9 * size  # it does not only give up
    assert sum(each.crashes for each in trials) > size


@pytest.mark.parametrize(
    ("faults", "kinds"),
    [
        (Faults(loss=0.1, delay=0.2, crashes=1, forgetful=True), {"journal lost", "refused", "waited", "equivocation"}),
        (Faults(loss=0.1, delay=0.2, full_disks=2), {"disk", "waited"}),
        (Faults(loss=0.7, duplicates=0.5, delay=1.0, crashes=6, partitions=4), {"waited"}),
    ],
    ids=["forgetful", "full disks", "worse"],
)
@pytest.mark.parametrize("method", ["consensus", "search"])
def test_worse_ends_in_the_answer_or_an_abort_that_says_why(faults, kinds, method):
    trials = [run_trial(seed, faults, method) for seed in range(40 if method == "search" else 8)]
    assert [each for each in trials if each.wrong] == []
    assert {kind for each in trials for kind in each.aborted} <= kinds | CALM
    if faults.forgetful:
        assert any(each.aborted for each in trials)


ROLLED_BACK = {"disk", "waited", "journal lost", "diverged"}


@pytest.mark.parametrize(
    ("faults", "kinds"),
    [
        (Faults(loss=0.1, delay=0.2, bit_flips=3), {"disk", "waited"}),
        (Faults(loss=0.1, delay=0.2, truncations=3), ROLLED_BACK),
        (Faults(loss=0.1, delay=0.2, lost_syncs=4), ROLLED_BACK),
        (Faults(loss=0.2, crashes=2, bit_flips=2, truncations=2, lost_syncs=2, full_disks=1), ROLLED_BACK),
    ],
    ids=["bit flips", "truncations", "lost syncs", "all"],
)
@pytest.mark.parametrize("method", ["consensus", "search"])
def test_a_bad_disk_costs_the_answer_at_most(faults, kinds, method):
    """A turned bit is refused by its owner. Of what is gone without a trace neighbours know, and never hear another."""
    trials = [run_trial(seed, faults, method) for seed in range(20)]
    assert [each for each in trials if each.wrong] == []
    seen = {kind for each in trials for kind in each.aborted}
    assert seen <= kinds | CALM
    assert "disk" in seen, "some are refused"
    assert sum(each.crashes for each in trials) > len(trials)


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_nearly_every_turned_bit_is_noticed_by_its_owner(method):
    """All but those in the last mark, of eight bytes, which costs nothing."""
    trials = [run_trial(seed, Faults(loss=0.1, delay=0.2, bit_flips=5), method) for seed in range(12)]
    turned, refused = sum(each.crashes for each in trials), sum(each.aborted.count("disk") for each in trials)
    assert turned >= 20
    assert refused >= 0.9 * turned


@pytest.mark.parametrize("seed", range(8))
def test_on_a_perfect_network_a_search_makes_public_what_the_engine_does(seed):
    charter, values = random_charter(seed, "search")
    results = World(make_setups(charter, values), seed, NONE).run()
    counts = [len(own) if charter.pooled else 1 for own in values]
    rows = np.concatenate([own.reshape(-1, 1) if charter.pooled else own.reshape(1, -1) for own in values])
    weights = np.repeat([one.weight for one in charter.participants], counts)
    search, steps = search_values(charter.search_rules(counts), charter.keys.keys(rows), weights)
    for found in results:
        assert found.transcript.totals == tuple(step.totals for step in steps)
        assert found.value == tuple(search.value(goal) for goal in range(charter.coordinates))


def test_bad_networks_tell_the_same_totals():
    for seed in range(6):
        charter, values = random_charter(seed, "search")
        calm, bad = (World(make_setups(charter, values), seed, faults).run() for faults in (NONE, ROUGH))
        told = {found.transcript.totals for found in (*calm, *bad) if isinstance(found, Answer)}
        assert len(told) == 1


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_a_seed_replays_byte_for_byte_and_another_does_not(method):
    assert run_trial(7, method=method).digest == run_trial(7, method=method).digest
    assert run_trial(7, method=method).digest != run_trial(8, method=method).digest


@pytest.mark.parametrize("seed", range(12))
def test_the_perfect_network_is_the_reference_engine_to_the_last_bit(seed):
    charter, values = random_charter(seed, "consensus")
    setups = make_setups(charter, values)
    world = World(setups, seed, NONE)
    world.run()
    openings = [setup.draw(Random(f"{seed}/{setup.name}/0").randbytes) for setup in setups]
    problem = charter.problem([float(own[0]) for own in values])
    z0 = np.concatenate([setup.iteration.z_of(opening) for setup, opening in zip(setups, openings, strict=True)])
    smooth = charter.objective == "mean"
    system = assemble(problem, charter.parameters, z0 * charter.parameters.unit if smooth else z0)
    last = min(len(one.trajectory) for one in world.participants)
    for t, (x, _) in zip(range(last), iterate(system), strict=False):
        for i, one in enumerate(world.participants):
            assert one.trajectory[t] == x[i].tobytes(), (t, i)
    assert last > 2


def test_the_command_takes_a_method(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--seeds", "3:6", "--method", "search"])
    assert not ended.value.code
    assert "3 seeds: 3 ended with the answer" in capsys.readouterr().out


def test_the_command_reports_and_replays(capsys):
    def told(*words):
        with pytest.raises(SystemExit) as ended:
            main(["--method", "consensus", *words])
        assert not ended.value.code
        return capsys.readouterr().out

    first = json.loads(told("--seeds", "3", "--json"))
    assert first["trials"][0]["wrong"] == []
    assert first == json.loads(told("--seeds", "3:4", "--workers", "2", "--json"))
    both = json.loads(told("--seeds", "3:5", "--workers", "2", "--json"))
    assert both == {
        "runs": 2, "answers": 2, "ended": 0, "wrong": 0, "two_answers": 0, "honest_named": 0, "masks_twice": 0,
        "trials": [],
    }  # fmt: skip
    assert "2 seeds: 2 ended with the answer" in told("--seeds", "3:5")


@pytest.mark.parametrize("seeds", ["x", "3:", "5:3", "3:3", "-1", "1:2:3", "4.5", str(2**62)])
def test_seeds_that_are_none_are_refused(seeds, capsys):
    with pytest.raises(SystemExit) as ended:
        main([f"--seeds={seeds}"])
    assert ended.value.code == 2
    assert "try 17, or 0:200" in capsys.readouterr().err


REFUSED = [
    ("no seed", [], "Missing option '--seeds'"),
    ("a negative seed", ["--seeds", "-1"], "--seeds"),
    ("a seed of words", ["--seeds", "seven"], "--seeds"),
    ("a seed too large", ["--seeds", str(2**63)], "--seeds"),
    ("no runs", ["--seeds", "1:1"], "--seeds"),
    ("an unknown method", ["--seeds", "1", "--method", "calm"], "--method"),
    ("all frames lost", ["--seeds", "1", "--loss", "1"], "--loss"),
    ("fewer than no duplicates", ["--seeds", "1", "--duplicates", "-0.1"], "--duplicates"),
    ("no delay", ["--seeds", "1", "--delay", "0"], "--delay"),
    ("a delay that is no number", ["--seeds", "1", "--delay", "nan"], "not a number"),
    ("a loss that is no number", ["--seeds", "1", "--loss", "nan"], "not a number"),
    ("fewer than no crashes", ["--seeds", "1", "--crashes", "-1"], "--crashes"),
    ("fewer than no partitions", ["--seeds", "1", "--partitions", "-1"], "--partitions"),
    ("too many full disks", ["--seeds", "1", "--full-disks", "5000"], "--full-disks"),
    ("too many liars", ["--seeds", "1", "--liars", "3"], "--liars"),
    ("no workers", ["--seeds", "1", "--workers", "0"], "--workers"),
    ("an argument", ["--seeds", "1", "again"], "unexpected extra argument"),
]


@pytest.mark.parametrize(("words", "text"), [pytest.param(*rest, id=name) for name, *rest in REFUSED])
def test_bad_input_is_refused_in_one_line(words, text, capsys, monkeypatch):
    monkeypatch.setattr(program, "run_trial", lambda *_, **__: pytest.fail("it went on"))
    with pytest.raises(SystemExit) as ended:
        main(words)
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert told.err.startswith("midst: error: ")
    assert len(told.err.splitlines()) == 1
    assert text in told.err


def test_it_runs_as_a_module_of_the_checkout():
    """As `make simnet` starts it, with workers that have to find it too."""
    line = [sys.executable, "-m", "tests.simnet", "--seeds", "0:4", "--liars", "1", "--workers", "2"]
    done = subprocess.run(line, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 seeds: ")


def test_the_command_says_what_went_wrong_and_how_to_see_it_again(capsys, monkeypatch):
    wrong = partial(replace, wrong=("a wrong answer",))
    monkeypatch.setattr(program, "run_trial", lambda seed, **how: wrong(run_trial(seed, **how)))
    with pytest.raises(SystemExit) as ended:
        main(["--seeds", "3"])
    assert ended.value.code == 1
    assert "python -m tests.simnet --seeds 3" in capsys.readouterr().err


@pytest.mark.torture
def test_more_seeds():
    for seed in range(10**6, 10**6 + int(os.environ.get("MIDST_RUNS", "20"))):
        for method in ("consensus", "search"):
            ended = run_trial(seed, ROUGH, method)
            assert not ended.wrong, f"replay with: python -m tests.simnet --seeds {seed} --method {method}"
