"""The planner: the frontier, the choice, and the same numbers for any number of workers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import midst
from midst import Adversary, InputError, graphs
from midst.cli import main
from midst.privacy.audit import audit, audit_together
from midst.privacy.priors import Normal, Within
from midst.studies.expectation import expect
from midst.studies.plan import Choice, Plan, Setting, make_plan
from midst.system import streams

SETTING = Setting(graphs.rgg(9, rng=1), Normal(50, 10), Adversary())
SMALL = {"runs": 3, "cs": (1.0, 10.0), "sigmas": (0.1, 10.0)}


def outcome(bits, rounds, together=None):
    joint = bits if together is None else together
    figures = {"floor": None, "excess": None, "kind": "exact"}
    return Choice(
        1.0,
        0.1,
        bits,
        0.0,
        0.1,
        rounds,
        rounds,
        **figures,
        joint_bits=joint,
        joint_bits_error=0.0,
        joint_exposed=0.1,
        joint_kind="exact",
    )


def test_the_frontier_is_what_nothing_beats():
    slow, quick, bad = outcome(1.0, 100), outcome(3.0, 10), outcome(3.5, 50)
    assert Plan((slow, quick, bad), 60, quick).frontier == (quick, slow)
    wears, lasts = outcome(1.0, 100, together=3.0), outcome(2.0, 100, together=2.5)
    assert Plan((wears, lasts), 200, lasts, repeats=5).frontier == (lasts,)


@pytest.mark.parametrize("adversary", [Adversary(), Adversary(init="sealed"), Adversary((0, 3), eavesdrops=False)])
def test_figures_are_those_of_the_audit(adversary):
    """One run and three of them, by both methods, each figure worked out again here."""
    graph, prior, bounds = graphs.rgg(7, rng=1), Within(Normal(50, 10), 0, 100), (0.0, 100.0)
    found = expect(graph, bounds, prior, adversary=adversary, runs=2, repeats=3, seed=4)
    for one, method in zip(found, (midst.Search(), midst.Consensus()), strict=True):
        reports = []
        for k in range(2):
            drawn = streams(np.random.default_rng(np.random.SeedSequence(4, spawn_key=(k,))))
            values = [prior.quantile(level) for level in drawn.values.uniform(1e-12, 1, 7)]
            problem = midst.Problem(graph, values, objective=midst.Quantile(0.5), bounds=bounds)
            traces = [midst.solve(problem, method, rng=drawn.z0, record="audit").trace for _ in range(3)]
            reports.append((audit(traces[0], adversary, prior), audit_together(traces, adversary, prior)))
        once, together = zip(*reports, strict=True)
        assert one.bits == np.mean([leak.mean_bits for leak in once])
        assert one.floor == np.mean([leak.mean_floor for leak in once])
        assert one.excess == pytest.approx(np.mean([leak.mean_excess for leak in once]))
        assert one.exposed == np.mean([leak.exposed_count for leak in once])
        assert one.joint_bits == np.mean([leak.mean_bits for leak in together])
        assert one.joint_excess == pytest.approx(np.mean([leak.mean_excess for leak in together]))
        assert one.joint_exposed == np.mean([leak.exposed_count for leak in together])
        assert (one.kind, one.joint_kind) == (once[0].kind, together[0].kind)
        assert (one.honest, one.repeats) == (7 - len(adversary.corrupt), 3)
    search, consensus = found
    assert search.joint_bits == search.bits  # the same search again tells nothing new
    assert consensus.joint_bits > consensus.bits
    assert consensus.kind == ("exact" if adversary == Adversary() else "upper bound")


def test_what_is_too_large_to_audit_is_still_counted():
    found = expect(graphs.complete(70), (-9, 9), Normal(), runs=1, repeats=2)
    assert [one.bits for one in found] == [one.joint_bits for one in found] == [None, None]
    assert [one.kind for one in found] == [None, None]
    assert found[0].exposed == 0 < found[1].exposed
    with pytest.raises(InputError, match="repeats must be a whole number"):
        expect(graphs.complete(3), (-9, 9), Normal(), repeats=0)


def test_repeats_of_every_choice():
    once, often = (make_plan(SETTING, 1e6, repeats=repeats, **SMALL) for repeats in (1, 3))
    for one, same in zip(once.outcomes, often.outcomes, strict=True):
        assert (one.bits, one.exposed, one.rounds) == (same.bits, same.exposed, same.rounds)
        assert one.joint_bits == one.bits
        assert same.joint_exposed >= same.exposed
        assert (one.excess, one.kind) == (pytest.approx(one.bits - one.floor), "exact")
    assert sum(each.joint_bits for each in often.outcomes) > sum(each.bits for each in often.outcomes)
    assert "3 runs together" in often.reason
    assert often.recommended.joint_bits == min(each.joint_bits for each in often.outcomes)


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
    assert {"outcomes", "frontier", "budget", "repeats", "recommended", "reason", "methods"} == set(report)
    assert [each["method"] for each in report["methods"]] == ["search", "consensus"]
    assert report["methods"][0]["exposed"] == 0
    assert picture.stat().st_size > 10_000
    table = CliRunner().invoke(main, args)
    assert "gives away the least" in table.stdout
    assert "by 1 runs" not in table.stdout
    several = CliRunner().invoke(main, [*args, "--repeats", "2"]).stdout
    assert several.count("by 2 runs") == 3  # both tables, and the reason
    assert "≤: an upper bound" in several
    for bad in (["--adversary", "passive:99"], ["--prior", "cauchy:0,1"], ["--graph", "rngg"], ["--plot", "x/y.png"]):
        refused = CliRunner().invoke(main, [*args, *bad])
        assert refused.exit_code == 2
        assert refused.stderr.count("\n") == 1


def test_a_run_too_short_for_a_sealed_audit_is_counted_as_if_z0_were_known(monkeypatch):
    from midst.privacy.sealed import TooShort
    from midst.studies import plan as planner

    real, asked = planner.audit, []

    def sometimes(trace, adversary, prior, **options):
        asked.append(adversary.init)
        if adversary.init == "sealed":
            raise TooShort("two nodes were inside from iteration 1 to the end")
        return real(trace, adversary, prior, **options)

    monkeypatch.setattr(planner, "audit", sometimes)
    setting = planner.Setting(graphs.ring(5), Normal(0, 1), Adversary(init="sealed"))
    plan = make_plan(setting, 100, runs=2, cs=(1,), sigmas=(1,))
    assert plan.recommended.bits > 0
    assert plan.recommended.kind == "upper bound"
    assert asked == ["sealed", "clear"] * 2
