"""The planner: the frontier, the choice, and the same numbers for any number of workers."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from midst import Adversary, InputError, Normal, graphs
from midst.cli import main
from midst.privacy.planner import Outcome, Plan, Setting, make_plan

SETTING = Setting(graphs.rgg(9, rng=1), Normal(50, 10), Adversary())
SMALL = {"runs": 3, "cs": (1.0, 10.0), "sigmas": (0.1, 10.0)}


def outcome(bits, rounds, c=1.0):
    return Outcome(c, 0.1, bits, 0.0, 0.1, rounds, rounds)


def test_the_frontier_is_what_nothing_beats():
    slow, quick, bad = outcome(1.0, 100), outcome(3.0, 10), outcome(3.5, 50)
    assert Plan((slow, quick, bad), 60, quick).frontier == (quick, slow)


def test_the_fewest_bits_within_the_budget():
    plan = make_plan(SETTING, 1e6, **SMALL)
    assert plan.recommended.bits == min(each.bits for each in plan.outcomes)
    assert len(plan.outcomes) == 4
    assert "gives away the least" in plan.reason
    tight = make_plan(SETTING, 2, **SMALL)
    assert tight.recommended is None
    assert "no setting fits 2 rounds" in tight.reason


def test_what_theory_says_comes_out():
    """Larger c exposes fewer nodes; a large sigma at small c exposes more."""
    plan = {
        (round(each.c * 10, 9), each.sigma): each  # in units of 1 / the prior's scale
        for each in make_plan(SETTING, 1e6, runs=8, cs=(1.0, 10.0), sigmas=(0.1, 10.0)).outcomes
    }
    assert plan[10.0, 10.0].exposed < plan[1.0, 10.0].exposed
    assert plan[1.0, 0.1].exposed < plan[1.0, 10.0].exposed
    assert plan[1.0, 0.1].rounds < plan[10.0, 0.1].rounds


def test_workers_make_no_difference():
    assert make_plan(SETTING, 100, workers=2, **SMALL) == make_plan(SETTING, 100, workers=1, **SMALL)


def test_sealed():
    sealed = Setting(graphs.complete(5), Normal(0, 1), Adversary(init="sealed"))
    assert all(each.bits > 0 for each in make_plan(sealed, 1e6, **SMALL).outcomes)


@pytest.mark.parametrize(("budget", "runs", "match"), [(0, 5, "budget"), (float("nan"), 5, "budget"), (10, 1, "runs")])
def test_refusals(budget, runs, match):
    with pytest.raises(InputError, match=match):
        make_plan(SETTING, budget, runs=runs)


def test_command(tmp_path):
    picture = tmp_path / "plan.png"
    args = ["plan", "--graph", "rgg", "--nodes", "7", "--rounds-budget", "200", "--runs", "2"]
    done = CliRunner().invoke(main, [*args, "--json", "--plot", str(picture)])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert {"outcomes", "frontier", "budget", "recommended", "reason", "methods"} == set(report)
    assert [each["method"] for each in report["methods"]] == ["search", "consensus"]
    assert report["methods"][0]["exposed"] == 0
    assert picture.stat().st_size > 10_000
    table = CliRunner().invoke(main, args)
    assert "gives away the least" in table.stdout
    for bad in (["--adversary", "passive:99"], ["--prior", "cauchy:0,1"], ["--graph", "rngg"], ["--plot", "x/y.png"]):
        refused = CliRunner().invoke(main, [*args, *bad])
        assert refused.exit_code == 2
        assert refused.stderr.count("\n") == 1


def test_a_run_too_short_for_a_sealed_audit_is_counted_as_if_z0_were_known(monkeypatch):
    from midst.privacy import planner
    from midst.privacy.sealed import TooShort

    real, asked = planner.audit, []

    def sometimes(trace, adversary, prior):
        asked.append(adversary.init)
        if adversary.init == "sealed":
            raise TooShort("two nodes were inside from iteration 1 to the end")
        return real(trace, adversary, prior)

    monkeypatch.setattr(planner, "audit", sometimes)
    setting = planner.Setting(graphs.ring(5), Normal(0, 1), Adversary(init="sealed"))
    plan = make_plan(setting, 100, runs=2, cs=(1,), sigmas=(1,))
    assert plan.recommended.bits > 0
    assert asked == ["sealed", "clear"] * 2
