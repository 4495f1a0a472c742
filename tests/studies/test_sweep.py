"""Sweeps: checked whole before they start, the same numbers from anybody, and nothing lost or done twice."""

from __future__ import annotations

import builtins
import csv
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from midst import InputError, Problem, graphs, solve, workers
from midst.errors import MissingExtra
from midst.methods import Certified, Consensus
from midst.studies.sweep import read_spec, run_sweep
from midst.studies.sweep.cells import Task, compute
from midst.studies.sweep.spec import check_memory, parse_spec
from midst.system import streams

GRID = {"graph": ["ring", {"kind": "rgg", "radius": 0.8}], "n": [5, 7], "c": [1.0, 4.0], "sigma": 0.1}
SMALL = {"runs": 4, "seed": 3, "stop": "certified", "tolerance": 1e-3, "grid": GRID}


def rows(folder):
    with open(Path(folder) / "runs.csv") as file:
        return list(csv.DictReader(file))


def test_a_cell_is_its_runs(tmp_path):
    """Run k of cell j is `solve` with child (j, k) of the seed, which also gives the values and the graph."""
    report = run_sweep(parse_spec(SMALL), tmp_path / "out")
    assert (report.cells, report.computed, report.runs, report.certified) == (8, 8, 32, 32)
    table = rows(tmp_path / "out")
    assert [(int(row["cell"]), int(row["run"])) for row in table] == [(j, k) for j in range(8) for k in range(4)]
    for row in table:
        key = int(row["cell"]), int(row["run"])
        children = [np.random.default_rng(np.random.SeedSequence(3, spawn_key=key)) for _ in range(2)]
        drawn = streams(children[0])
        kind, *options = row["graph"].split()
        options = {"radius": 0.8} if options else {}
        graph = graphs.make(kind, int(row["n"]), rng=drawn.graph, **options)
        problem = Problem(graph, drawn.values.normal(size=graph.n))
        run = solve(problem, Consensus(c=float(row["c"]), sigma=0.1, stop=Certified(1e-3)), rng=children[1])
        assert int(row["iterations"]) == run.iterations
        assert int(row["exposed"]) == len(run.exposed)
        assert float(row["error"]) == pytest.approx(run.error, abs=1e-12)


def test_methods_are_swept_over_what_they_use(tmp_path):
    """A search has no c and an iteration no arity; both give the sorted data's answer, and a search exposes nobody."""
    grid = {"graph": "ring", "n": 7, "method": ["consensus", "search"], "arity": [1, 3], "c": [1.0, 4.0]}
    report = run_sweep(parse_spec({"runs": 3, "grid": grid}), tmp_path / "out")
    assert (report.cells, report.certified) == (4, 12)
    table = rows(tmp_path / "out")
    assert {(row["method"], row["arity"], row["c"]) for row in table} == {
        ("consensus", "", "1.0"),
        ("consensus", "", "4.0"),
        ("search", "1", ""),
        ("search", "3", ""),
    }
    for row in table:
        assert float(row["error"]) == 0
        searched = row["method"] == "search"
        assert (int(row["iterations"]) == 0) == searched
        assert int(row["exposed"]) == 0 or not searched
        assert int(row["rounds"]) == int(row["iterations"]) + (not searched) + (int(row["probes"]) + 2) * 3


def test_objectives_priors_and_adversaries(tmp_path):
    """An adversary's cells are audited; those without one leave these columns empty."""
    grid = {"n": 5, "graph": ["complete", "tree"], "objective": ["median", 0.75], "adversary": ["none", "eavesdropper"]}
    spec = parse_spec({"runs": 2, "grid": grid | {"prior": "uniform:0,10"}})
    run_sweep(spec, tmp_path / "out")
    for row in rows(tmp_path / "out"):
        assert row["certified"] == "True"
        assert (row["bits"] == "") == (row["certain"] == "") == (row["adversary"] == "none")
        if row["bits"]:
            assert float(row["bits"]) > 0


def test_mean_and_many_groups(monkeypatch):
    """Runs of large graphs are taken a few at a time; the numbers stay."""
    (cell,) = parse_spec({"grid": {"objective": "mean", "graph": "tree", "n": 6}}).cells
    task = Task(cell, 5, 1, {})
    expected = compute(task)
    monkeypatch.setattr("midst.studies.sweep.cells._AT_ONCE", 12)
    assert [row["iterations"] for row in compute(task)[1]] == [row["iterations"] for row in expected[1]]


@pytest.mark.parametrize("number", [1, 2])
def test_any_number_of_workers(tmp_path, number):
    """The tables are the same, byte for byte."""
    run_sweep(parse_spec(SMALL), tmp_path / "one")
    seen = []
    run_sweep(parse_spec(SMALL), tmp_path / "more", workers=number, progress=lambda *done: seen.append(done))
    assert (tmp_path / "one" / "runs.csv").read_bytes() == (tmp_path / "more" / "runs.csv").read_bytes()
    assert seen == [(k, 8) for k in range(1, 9)]


def test_a_real_cluster(tmp_path):
    """Two worker processes of a Dask cluster, reached by its address, give the same table."""
    distributed = pytest.importorskip("distributed")
    run_sweep(parse_spec(SMALL), tmp_path / "here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster:
            report = run_sweep(parse_spec(SMALL), tmp_path / "there", cluster=cluster.scheduler_address)
            assert report.computed == 8
            assert (tmp_path / "here" / "runs.csv").read_bytes() == (tmp_path / "there" / "runs.csv").read_bytes()
            cluster.scale(0)
            while cluster.scheduler.workers:
                time.sleep(0.05)
            with pytest.raises(InputError, match="has no workers"):
                run_sweep(parse_spec(SMALL), tmp_path / "nobody", cluster=cluster.scheduler_address)
    assert not (tmp_path / "nobody").exists()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_a_cluster_that_does_not_answer(tmp_path, monkeypatch, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "DEADLINE", 0.3)
    with pytest.raises(InputError, match=r"no Dask cluster answers at .* within 0.3 s"):
        run_sweep(parse_spec(SMALL), tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_killed_and_resumed(tmp_path):
    """Killed without warning after some cells: what was done is kept, what was not is done, and all is as if not."""
    spec = 'runs = 60\nseed = 3\nstop = "certified"\n[grid]\ngraph = ["ring", "rgg"]\nn = [9, 11, 13]\nc = [1.0, 3.0]\n'
    (tmp_path / "spec.toml").write_text(spec)
    out = tmp_path / "out"
    program = (
        "import sys; from midst.studies.sweep import read_spec, run_sweep; "
        "run_sweep(read_spec(sys.argv[1]), sys.argv[2])"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "spec.toml"), str(out)])
    while len(list(out.glob("cells/*.csv"))) < 3 and process.poll() is None:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in out.glob("cells/*.csv")}
    assert 3 <= len(before) < 12
    assert not (out / "runs.csv").exists()
    sweep = read_spec(tmp_path / "spec.toml")
    report = run_sweep(sweep, out, resume=True)
    assert report.computed == 12 - len(before)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    run_sweep(sweep, tmp_path / "whole")
    assert (out / "runs.csv").read_bytes() == (tmp_path / "whole" / "runs.csv").read_bytes()


def test_a_folder_with_something_else(tmp_path):
    """Another sweep, this one, or anything: nothing is mixed, nothing is overwritten."""
    spec = parse_spec(SMALL | {"runs": 1})
    out = tmp_path / "out"
    out.mkdir()
    run_sweep(spec, out)
    with pytest.raises(InputError, match="holds this sweep already; add --resume"):
        run_sweep(spec, out)
    assert run_sweep(spec, out, resume=True).computed == 0
    for other in (SMALL | {"runs": 2}, SMALL | {"runs": 1, "seed": 4}, SMALL | {"runs": 1, "tolerance": 0.1}):
        with pytest.raises(InputError, match="holds another sweep"):
            run_sweep(parse_spec(other), out, resume=True)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "manifest.json").write_text("[]")
    for name, words in (
        ("letters", "holds no sweep"),
        ("letters/manifest.json", "is a file"),
        ("a/b", "make it first"),
    ):
        with pytest.raises(InputError, match=words):
            run_sweep(spec, tmp_path / name)


def test_manifest_and_tables(tmp_path):
    out = tmp_path / "out"
    report = run_sweep(parse_spec(SMALL), out)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seed"] == 3
    assert len(manifest["cells"]) == 8
    assert manifest["cells"][4]["graph"] == "rgg radius=0.8"
    parquet = pytest.importorskip("pyarrow.parquet")
    assert report.tables == ("runs.csv", "runs.parquet")
    table = parquet.read_table(out / "runs.parquet").to_pylist()
    assert [row["iterations"] for row in table] == [int(row["iterations"]) for row in rows(out)]
    assert table[0]["bits"] is None


def test_missing_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[cluster\]'$"):
        run_sweep(parse_spec(SMALL), tmp_path / "out", cluster="tcp://127.0.0.1:1")


def test_without_pyarrow(tmp_path, monkeypatch):
    real = builtins.__import__
    monkeypatch.setattr(
        builtins, "__import__", lambda name, *rest: real("no_" + name if "pyarrow" in name else name, *rest)
    )
    assert run_sweep(parse_spec(SMALL | {"runs": 1}), tmp_path / "out").tables == ("runs.csv",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rnus": 3}, "unknown key rnus; the keys are .*; did you mean runs"),
        ({"grid": {"gamma": 1}}, "unknown key grid.gamma"),
        ({"grid": {"thet": 1}}, "did you mean theta"),
        ({"grid": {}}, "grid is empty"),
        ({"grid": 3}, "grid is empty"),
        ({"grid": {"c": []}}, "grid.c is an empty list"),
        ({"grid": {"c": "1"}}, "grid.c must be numbers"),
        ({"grid": {"c": -1}}, "c must be positive"),
        ({"grid": {"theta": 1}}, "theta = 1 does not converge"),
        ({"grid": {"n": 1}}, "grid.n must be a whole number of at least 2"),
        ({"grid": {"n": 1.5}}, "grid.n must be a whole number"),
        ({"grid": {"graph": "rign"}}, "did you mean ring"),
        ({"grid": {"graph": 3}}, "grid.graph must be kinds"),
        ({"grid": {"graph": {"kind": "ring", "n": 3}}}, "keys of their own"),
        ({"grid": {"graph": {"kind": "rgg", "radius": "wide"}}}, "radius must be a number"),
        ({"grid": {"graph": {"kind": "rgg", "radios": 1}}}, "no option 'radios'"),
        ({"grid": {"graph": {"kind": "regular", "k": "many"}}}, "k must be a whole number"),
        ({"grid": {"graph": {"kind": "er", "p": "often"}}}, "p must be a probability"),
        ({"grid": {"graph": {"kind": "complete", "listed": "yes"}}}, "listed must be True, False or None"),
        ({"grid": {"graph": "regular", "n": [5], "c": 1}}, None),
        ({"grid": {"graph": {"kind": "regular", "k": 3}, "n": 5}}, "must be even"),
        ({"grid": {"objective": "medain"}}, "did you mean median"),
        ({"grid": {"objective": 1.5}}, r"quantile must be in \[0, 1\]"),
        ({"grid": {"prior": "normal"}}, "two numbers are needed"),
        ({"grid": {"prior": 1}}, "must be words"),
        ({"grid": {"adversary": "ear"}}, "adversary must be"),
        ({"grid": {"adversary": "eavesdropper open"}}, "init must be"),
        ({"grid": {"adversary": "passive:99"}}, "99"),
        ({"runs": 0}, "runs must be"),
        ({"seed": -1}, "seed must be"),
        ({"stop": "error"}, "stop must be"),
        ({"stop": "exact", "grid": {"objective": "mean"}}, "no one value to search for"),
        ({"grid": {"method": "serach"}}, "did you mean search"),
        ({"grid": {"method": "search", "objective": "mean"}}, None),
        ({"grid": {"method": "search", "objective": "mean", "adversary": "passive:1"}}, "no audit judges a mean"),
        ({"grid": {"method": "search", "arity": 8}}, "arity must be from 1 to 7"),
        ({"grid": {"method": "search", "arity": "many"}}, "grid.arity must be a whole number"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"limit": 0}, "limit must be"),
    ],
)
def test_bad_specs(change, words):
    if words is None:
        parse_spec(SMALL | change)
        return
    with pytest.raises(InputError, match=words):
        parse_spec(SMALL | change)


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("runs = = 3")
    with pytest.raises(InputError, match="not TOML"):
        read_spec(tmp_path / "bad.toml")


@pytest.mark.parametrize("kind", sorted(graphs.KINDS))
def test_absurd_sizes(tmp_path, kind):
    """Refused with the estimate, and nothing is allocated or written."""
    spec = parse_spec({"grid": {"graph": kind, "n": 10**12}})
    with pytest.raises(InputError, match=r"about .* [TPE]iB of memory, and there are"):
        run_sweep(spec, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_large_complete_graph_takes_little():
    """Its edges are not in memory, and so not in the estimate either, unless they are asked for."""
    grid = {"graph": "complete", "n": 10**6, "c": 1e-5}
    check_memory(parse_spec({"runs": 10, "grid": grid}), 1, 2**30)
    listed = {"kind": "complete", "listed": True}
    with pytest.raises(InputError, match=r"about .* TiB of memory"):
        check_memory(parse_spec({"runs": 10, "grid": grid | {"graph": listed}}), 1, 2**30)
    (cell,) = parse_spec({"grid": {"graph": "complete", "n": 6_000, "c": 1e-3}}).cells
    _, rows = compute(Task(cell, 3, 1, {}))
    assert [row["certified"] for row in rows] == [True] * 3
    assert [row["error"] for row in rows] == [0] * 3


def test_memory_is_of_those_at_once():
    spec = parse_spec({"grid": {"graph": "complete", "n": 1000}})
    check_memory(spec, 1, 200 * 2**20)
    with pytest.raises(InputError, match="try fewer nodes or workers"):
        check_memory(spec, 3, 200 * 2**20)


@pytest.mark.parametrize("number", [0, 1.5, True])
def test_bad_workers(tmp_path, number):
    with pytest.raises(InputError, match="workers must be"):
        run_sweep(parse_spec(SMALL), tmp_path / "out", workers=number)
