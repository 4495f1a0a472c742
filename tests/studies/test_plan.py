"""The plan: figures are those of the audit, and the row to choose is the quickest of those that give away least."""

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
from midst.studies.expectation import Expectation, expect
from midst.studies.plan import Plan, make_plan
from midst.system import streams

PLACE = graphs.rgg(9, rng=1), (0.0, 100.0), Within(Normal(50, 10), 0, 100)


def row(c, bits, rounds, *, exposed=0.0, error=0.1, together=None, repeats=1):
    joint = bits if together is None else together
    return Expectation(
        method="search" if c is None else "consensus",
        c=c,
        rounds=rounds,
        most_rounds=rounds,
        exposed=exposed,
        honest=9,
        bits=bits,
        bits_error=error,
        floor=None,
        excess=None,
        kind="exact",
        repeats=repeats,
        joint_bits=joint,
        joint_excess=None,
        joint_exposed=exposed,
        joint_kind="exact",
        bytes_per_node=1.0,
    )


def test_the_quickest_of_those_that_give_away_least():
    search, low, high, higher = row(None, 0.8, 20), row(1.0, 3.0, 30), row(3.0, 2.1, 40), row(10.0, 2.05, 60)
    plan = Plan((search, low, high, higher))
    assert plan.recommended == search
    assert plan.reason.startswith("search gives away least: 0.80 bits a node, in 20 rounds. With consensus, c = 3 ")
    assert "hardly more than the least, and is quicker: 2.10 bits" in plan.reason
    assert Plan((row(None, 2.5, 20), low, high, higher)).recommended == high
    assert Plan((search, low, row(3.0, 2.2, 40), higher)).reason.count("c = 10 gives away least: 2.05") == 1
    assert Plan((row(None, 0.8, 20), row(3.0, 0.75, 5))).reason == (
        "c = 3 gives away least: 0.75 bits a node, in 5 rounds"
    )


def test_runs_on_the_same_values_are_weighed_together():
    wears, lasts = row(1.0, 1.0, 10, together=3.0, repeats=5), row(2.0, 2.0, 10, together=2.5, repeats=5)
    plan = Plan((row(None, 9.0, 10, repeats=5), wears, lasts))
    assert plan.recommended == lasts
    assert "2.50 bits a node by 5 runs together" in plan.reason


def test_where_there_are_no_bits_who_is_exposed_decides():
    rows = [row(c, None, 10, exposed=exposed, error=None) for c, exposed in ((None, 1.0), (1.0, 0.5), (2.0, 0.9))]
    assert Plan(tuple(rows)).recommended == rows[1]
    assert "6% exposed" in Plan(tuple(rows)).reason


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


def test_every_c_is_on_the_same_values_and_in_the_units_of_the_data():
    graph, bounds, prior = PLACE
    plan = make_plan(graph, bounds, prior, runs=2, cs=(1.0, 10.0), seed=4)
    assert [(each.method, each.c) for each in plan.methods] == [
        ("search", None),
        ("consensus", 1 / 25),  # the bounds are taken as four scales wide
        ("consensus", 10 / 25),
    ]
    assert plan.methods[0] == expect(graph, bounds, prior, methods=(midst.Search(),), runs=2, seed=4)[0]
    assert [each.c for each in make_plan(graph, None, Normal(0, 4), runs=2, cs=(2.0,)).methods] == [None, 0.5]


def test_what_theory_says_comes_out():
    """A larger c exposes fewer nodes, and gives away less."""
    plan = make_plan(*PLACE, adversary=Adversary(), runs=8, cs=(0.3, 3.0))
    low, high = plan.methods[1:]
    assert low.exposed > high.exposed
    assert low.bits > high.bits
    assert low.bits_error > 0
    assert high.most_rounds >= high.rounds
    assert plan == make_plan(*PLACE, adversary=Adversary(), runs=8, cs=(0.3, 3.0))


def test_refusals():
    with pytest.raises(InputError, match="at least 2 runs"):
        make_plan(*PLACE, runs=1)
    with pytest.raises(InputError, match="at least one c"):
        make_plan(*PLACE, cs=())


def test_command():
    args = ["plan", "--graph", "rgg", "--nodes", "7", "--runs", "2"]
    done = CliRunner().invoke(main, [*args, "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert set(report) == {"methods", "recommended", "reason"}
    assert [each["c"] for each in report["methods"]] == [None, 0.3, 1, 3, 10, 30]
    assert report["methods"][0]["exposed"] == 0
    assert report["recommended"] in report["methods"]
    table = CliRunner().invoke(main, args).stdout
    assert table.count("recommended") == 1
    assert report["reason"] in table
    assert "by 1 runs" not in table
    several = CliRunner().invoke(main, [*args, "--repeats", "2"]).stdout
    assert several.count("by 2 runs") == 3  # the table, and twice the reason
    assert "≤: an upper bound" in several
    for bad in (["--adversary", "passive:99"], ["--prior", "cauchy:0,1"], ["--graph", "rngg"], ["--runs", "1"]):
        refused = CliRunner().invoke(main, [*args, *bad])
        assert refused.exit_code == 2
        assert refused.stderr.count("\n") == 1
