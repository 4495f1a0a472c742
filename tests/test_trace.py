"""The record: modes, files, and what damaged files say."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import problems

from midst import InputError, Mean, Problem, graphs, recorder, solve
from midst.errors import TraceError
from midst.methods import After, Consensus
from midst.trace import load as load_trace

VALUES = np.random.default_rng(5).normal(size=15)
PROBLEM = Problem(graphs.rgg(15, rng=3), VALUES)


def run(**options):
    return solve(PROBLEM, Consensus(c=1.0, mu=-5.0, stop=After(101)), rng=1, **options).trace


def test_all_keeps_every_iteration_and_z0():
    trace = run(record="all")
    assert trace.x.shape == trace.inside.shape == trace.branch.shape == (101, 15)
    assert trace.t.tolist() == list(range(101))
    assert trace.z0 is not None
    assert trace.values is None


@pytest.mark.parametrize(
    ("record", "kept"),
    [(10, [*range(0, 101, 10)]), (7, [*range(0, 101, 7), 100]), ("audit", [0, 1, 100]), ("none", [100])],
)
def test_thinner_records(record, kept):
    trace = run(record=record)
    assert trace.t.tolist() == kept
    np.testing.assert_array_equal(trace.x, run(record="all").x[kept])
    assert (trace.z0 is not None) == (record == "audit")
    assert (trace.segments is None) == (record == "none")


def test_auto_halves_when_full(monkeypatch):
    monkeypatch.setattr(recorder, "_BUDGET", 8 * 15 * 20)
    trace = run(record="auto")
    assert trace.t.tolist() == [*range(0, 101, 8), 100]
    np.testing.assert_array_equal(trace.x, run(record="all").x[trace.t])


@settings(max_examples=40)
@given(problems(max_nodes=20), st.integers(1, 60))
def test_segments_tell_every_branch(problem, iterations):
    """Run-length coding loses no branch, and brackets x by its least and greatest in the run."""
    trace = solve(problem, Consensus(stop=After(iterations)), rng=1, record="all").trace
    rebuilt = np.full((iterations, problem.graph.n), 9)
    s = trace.segments
    for k in range(len(s.node)):
        rows = slice(s.start[k], s.stop[k])
        rebuilt[rows, s.node[k]] = s.branch[k]
        x = trace.x[rows, s.node[k]]
        assert (s.low[k], s.high[k]) == (x.min(), x.max())
    np.testing.assert_array_equal(rebuilt, trace.branch)
    assert (np.diff(s.node) >= 0).all()


def test_segments_of_coordinates():
    values = np.random.default_rng(1).normal(size=(15, 3))
    trace = solve(Problem(PROBLEM.graph, values, scale=(1, 2, 3)), Consensus(stop=After(50)), rng=1, record="all").trace
    s = trace.segments
    for k in range(len(s.node)):
        x = trace.x[s.start[k] : s.stop[k], s.node[k], s.coordinate[k]]
        assert (s.low[k], s.high[k]) == (x.min(), x.max())


@pytest.mark.parametrize("record", ["all", "audit", "none", 9])
@pytest.mark.parametrize("objective", [None, Mean()])
def test_round_trip(tmp_path, record, objective):
    problem = Problem(PROBLEM.graph, VALUES, objective=objective, weights=np.arange(1, 16))
    trace = solve(problem, Consensus(stop=After(30)), rng=1, record=record, keep_values=True).trace
    trace.save(tmp_path / "run.npz")
    again = load_trace(tmp_path / "run.npz")
    assert [f.name for f in tmp_path.iterdir()] == ["run.npz"]
    for name in ("t", "x", "branch", "whole_weights", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trace, name))
    for name in ("objective", "parameters", "iterations", "seed", "versions", "unit_weight"):
        assert getattr(again, name) == getattr(trace, name)
    assert (again.z0 is None) == (record not in ("all", "audit"))
    if trace.segments is not None:
        for name, array in vars(trace.segments).items():
            np.testing.assert_array_equal(getattr(again.segments, name), array)
    np.testing.assert_array_equal(again.graph.positions, trace.graph.positions)
    assert repr(again) == repr(trace)


@pytest.mark.parametrize("method", ["consensus", "search"])
@pytest.mark.parametrize("resolution", [None, "0.1"])
def test_a_search_survives(tmp_path, method, resolution):
    problem = Problem(PROBLEM.graph, VALUES, resolution=resolution)
    trace = solve(problem, method, rng=1).trace
    trace.save(tmp_path / "run.npz")
    again = load_trace(tmp_path / "run.npz")
    assert again.probes == trace.probes
    assert again.answer == trace.answer
    np.testing.assert_array_equal(again.places, trace.places)
    assert again.x.shape == trace.x.shape
    assert repr(again) == repr(trace)


def test_lists_survive(tmp_path):
    trace = solve(Problem(graphs.ring(3), [[1, 2], [3], [4, 5, 6]], pooled=True), "search", keep_values=True).trace
    trace.save(tmp_path / "run.npz")
    again = load_trace(tmp_path / "run.npz")
    assert again.owners.tolist() == [0, 0, 1, 2, 2, 2]
    assert again.values.tolist() == [1, 2, 3, 4, 5, 6]


def test_labels_survive(tmp_path):
    graph = graphs.from_edges(3, [(0, 1), (1, 2)], labels=["a", "b", "c"])
    trace = solve(Problem(graph, [1, 2, 3]), rng=1).trace
    trace.save(tmp_path / "run.npz")
    assert load_trace(tmp_path / "run.npz").graph.labels == ("a", "b", "c")


def test_values_and_z0_stay_out_unless_asked_for(tmp_path):
    run().save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        assert not {"values", "z0"} & set(file.files)


def rewrite(path, change):
    with np.load(path) as file:
        arrays = dict(file)
    manifest = json.loads(str(arrays["manifest"]))
    change(manifest, arrays)
    arrays["manifest"] = np.array(json.dumps(manifest))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m, a: m.update(format_version=99), "trace format 99, this midst reads 2"),
        (lambda m, a: m.update(format="other"), "not a midst trace"),
        (lambda m, a: m.pop("objective"), "damaged trace"),
        (lambda m, a: m["graph"].update(n="many"), "damaged trace"),
        (lambda m, a: a.pop("x"), "damaged trace"),
        (lambda m, a: a.update(x=a["x"][:, :3]), "damaged trace"),
        (lambda m, a: a.update(counts=a["counts"][:3]), "damaged trace"),
    ],
)
def test_foreign_and_damaged_files(tmp_path, change, match):
    path = tmp_path / "run.npz"
    run().save(path)
    rewrite(path, change)
    with pytest.raises(TraceError, match=match) as caught:
        load_trace(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.999])
def test_truncated_file(tmp_path, keep):
    path = tmp_path / "run.npz"
    run().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(len(whole) * keep)])
    with pytest.raises(TraceError, match=r"run\.npz"):
        load_trace(path)


def test_flipped_byte(tmp_path):
    path = tmp_path / "run.npz"
    run().save(path)
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        whole[archive.getinfo("x.npy").header_offset + 60] ^= 0xFF
    path.write_bytes(bytes(whole))
    with pytest.raises(TraceError, match=r"run\.npz"):
        load_trace(path)


def test_not_a_trace_at_all(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("text.npz", "other.npz", "array.npy", "missing.npz", "."):
        with pytest.raises(TraceError):
            load_trace(tmp_path / name)


def test_unwritable_places(tmp_path):
    trace = run()
    (tmp_path / "file").write_text("")
    for path, match in (
        (tmp_path / "nowhere" / "run.npz", "does not exist"),
        (tmp_path / "file" / "run.npz", "does not exist"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(InputError, match=match):
            trace.save(path)


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    run().save(path)
    before = path.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="No space"):
        run().save(path)
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("record", ["most", 0, -1, True, 2.5, None])
def test_bad_record(record):
    with pytest.raises(InputError, match="record must be"):
        run(record=record)
