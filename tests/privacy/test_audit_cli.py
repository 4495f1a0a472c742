"""`midst audit` and `midst attack` as one types them, without the group around them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import midst
from midst import graphs
from midst.cli.attack import command as attack_command
from midst.cli.audit import command as audit_command
from midst.errors import TraceError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.npz"
    problem = midst.Problem(graphs.rgg(9, rng=1), np.random.default_rng(2).normal(size=9))
    trace = midst.solve(
        problem, midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(120)), rng=4, record="all", keep_values=True
    ).trace
    trace.save(path)
    return str(path), trace


def invoke(command, *arguments):
    return CliRunner().invoke(command, list(arguments), catch_exceptions=True)


@pytest.mark.parametrize("init", ["clear", "sealed"])
@pytest.mark.parametrize("who", ["eavesdropper", "passive:3", "both:3,7"])
def test_audit_as_json_is_one_object(saved, who, init):
    result = invoke(audit_command, saved[0], "--adversary", who, "--init", init, "--json")
    assert result.exit_code == 0, result.exception
    told = json.loads(result.output)
    assert len(told["nodes"]) == 9
    assert set(told["nodes"][0]) >= {"exposed", "exposed_at", "side", "lower", "upper", "bits"}
    assert told["totals"]["resolution"] == 0.001
    assert told["kind"] in ("exact" if init == "clear" else "lower bound", "sampled", "upper bound")
    assert any("rounding of floats" in note for note in told["notes"]) == (init == "sealed" or who == "passive:3")


def test_audit_for_people(saved, tmp_path):
    picture = tmp_path / "leak.png"
    result = invoke(audit_command, saved[0], "--init", "sealed", "--resolution", "0.01", "--plot", str(picture))
    assert result.exit_code == 0, result.exception
    assert "resolution 0.01" in result.output
    assert "note: one value is the median" in result.output
    assert picture.stat().st_size > 10_000
    assert "secure" not in result.output
    coalition = invoke(audit_command, saved[0], "--adversary", "both:3")
    assert "corrupt" in coalition.output


def test_attack_against_the_truth(saved):
    result = invoke(attack_command, saved[0], "--json")
    assert result.exit_code == 0, result.exception
    told = json.loads(result.output)
    for node in told["nodes"]:
        if node["known"]:
            assert node["error"] < 1e-9
    assert told["totals"]["known"] > 0
    shown = invoke(attack_command, saved[0], "--init", "sealed", "--adversary", "both:3")
    assert shown.exit_code == 0, shown.exception
    assert "truth" in shown.output


def test_attack_without_the_truth_does_not_show_it(saved, tmp_path):
    _, trace = saved
    problem = midst.Problem(trace.graph, trace.values)
    path = tmp_path / "bare.npz"
    midst.solve(problem, midst.Consensus(stop=midst.After(20)), rng=1, record="audit").trace.save(path)
    told = json.loads(invoke(attack_command, str(path), "--json").output)
    assert "truth" not in told["nodes"][0]
    assert "truth" not in invoke(attack_command, str(path)).output


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--adversary", "passive:99"], "node 99"),
        (["--adversary", "both:0,1,2,3,4,5,6,7,8"], "all nodes"),
        (["--adversary", "spy"], "adversary"),
        (["--prior", "normal:0"], "prior"),
        (["--prior", "uniform:50,60"], "no mass"),
        (["--resolution", "-1"], "resolution"),
        (["--plot", "picture.exe"], "picture"),
        (["--coordinate", "4"], "coordinate"),
    ],
)
def test_refusals_are_input_errors_of_one_line(saved, arguments, match):
    result = invoke(audit_command, saved[0], *arguments)
    assert isinstance(result.exception, midst.InputError)
    assert match in str(result.exception)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""


def test_no_such_file():
    assert isinstance(invoke(audit_command, "missing.npz").exception, TraceError)


def test_nodes_have_their_labels_in_a_saved_run(tmp_path):
    path = str(tmp_path / "run.npz")
    graph = graphs.ring(5).with_labels("12345")
    midst.median([1.0, 2, 3, 4, 5], graph, method="consensus", rng=1, keep_values=True).trace.save(path)
    for command in (audit_command, attack_command):
        told = json.loads(invoke(command, path, "--adversary", "passive:3", "--json").output)
        assert [node["node"] for node in told["nodes"]] == ["1", "2", "3", "4", "5"]
        assert [node["node"] for node in told["nodes"] if node["corrupt"]] == ["3"]
        shown = invoke(command, path, "--adversary", "passive:3").output
        [row] = [line.split() for line in shown.splitlines() if line.split()[1:2] == ["corrupt"]]
        assert row[0] == "3"
        refused = invoke(command, path, "--adversary", "passive:0")
        assert str(refused.exception) == "corrupt node 0 does not exist; the nodes are 1, 2, 3, 4, 5"
