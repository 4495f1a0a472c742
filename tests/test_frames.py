"""Frames have a row an observation, the columns that are documented, and no private value that was not there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import midst
from midst import InputError, graphs
from midst.errors import MissingExtra

pd = pytest.importorskip("pandas")

VALUES = np.random.default_rng(3).normal(size=9)


def run(**options: Any) -> midst.Result:
    return midst.median(VALUES, "ring", rng=5, **options)


def documented(method: Any) -> set[str]:
    """Every word between backticks in the part of a docstring that says what the columns are."""
    text = (method.__doc__ or "").partition("Args:")[0].partition("Raises:")[0]
    return {word.strip("`") for word in text.replace("(", " ").split("`")[1::2] if word.isidentifier()}


def test_a_result_is_a_row_to_be_put_under_others() -> None:
    results = [run(method=method) for method in ("consensus", "search")]
    frame = pd.concat([result.to_pandas() for result in results], ignore_index=True)
    assert frame["method"].tolist() == ["consensus", "search"]
    for (_, row), result in zip(frame.iterrows(), results, strict=True):
        assert (row["value"], row["rounds"], row["exposed"]) == (result.value, result.rounds, len(result.exposed))
    assert set(frame) <= documented(midst.Result.to_pandas)


def test_a_vector_is_a_row_a_coordinate() -> None:
    result = midst.median(np.column_stack([VALUES, -VALUES, 2 * VALUES]), "ring", rng=5)
    frame = result.to_pandas()
    assert frame["coordinate"].tolist() == [0, 1, 2]
    assert frame["value"].tolist() == np.asarray(result.value).tolist()


@pytest.mark.parametrize("coordinates", [None, 2])
def test_a_trace_is_a_row_for_what_a_node_sent(coordinates: int | None) -> None:
    values = VALUES if coordinates is None else np.column_stack([VALUES, -VALUES])
    trace = midst.median(values, "ring", method="consensus", rng=5, record="all", keep_values=True).trace
    frame = trace.to_pandas()
    assert set(frame) == documented(midst.Trace.to_pandas) - {"step", "cell", "lowest", "highest", "total"}
    assert len(frame) == trace.x.size
    x = trace.x.reshape(len(trace.t), 9, -1)
    held = values.reshape(9, -1)
    for _, row in frame.sample(50, random_state=1).iterrows():
        assert row["x"] == x[row["t"], row["node"], row["coordinate"]]
        assert row["private_value"] == held[row["node"], row["coordinate"]]
        assert row["inside"] == (row["branch"] == 0)
    assert (frame["x"] == frame["private_value"])[frame["inside"]].all()


def test_no_private_value_unless_the_trace_holds_them() -> None:
    assert "private_value" not in run(method="consensus", record="all").trace.to_pandas()


def test_names_of_nodes() -> None:
    trace = midst.median({"anna": 1.0, "bob": 2.0, "carl": 3.0}, "ring", method="consensus", rng=5).trace
    assert trace.to_pandas()["node"].tolist()[:3] == ["anna", "bob", "carl"]
    assert midst.audit(trace).to_pandas()["node"].tolist() == ["anna", "bob", "carl"]


@pytest.mark.parametrize("options", [{}, {"bounds": (-10, 10)}, {"resolution": 0.01, "bounds": (-10, 10)}])
def test_a_cell_holds_as_many_values_as_it_says(options: dict[str, Any]) -> None:
    result = run(method="search", **options)
    problem = midst.Problem(graphs.ring(9), VALUES, **options)
    rounded = problem.keys.values(problem.value_keys)
    frame = result.trace.to_pandas("probes")
    assert set(frame) <= documented(midst.Trace.to_pandas)
    for _, cell in frame.iterrows():
        assert ((rounded >= cell["lowest"]) & (rounded <= cell["highest"])).sum() == cell["total"]


def test_what_a_trace_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="the record has no iterations; try rows probes"):
        run(method="search").trace.to_pandas()
    with pytest.raises(InputError, match="the record has no probes; try rows iterations"):
        run(method=midst.Consensus(stop=midst.After(3))).trace.to_pandas("probes")
    with pytest.raises(InputError, match=r"did you mean probes\?"):
        run().trace.to_pandas("probe")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_an_ensemble_is_a_row_a_run(method: Any) -> None:
    values = np.random.default_rng(1).normal(size=(7, 20))
    found = midst.solve_ensemble(midst.Problem(graphs.ring(7), values), method, rng=1)
    frame = found.to_pandas()
    assert set(frame) == documented(type(found).to_pandas)
    assert frame["run"].tolist() == list(range(20))
    assert frame["value"].tolist() == np.median(values, axis=0).tolist()
    assert frame["exposed"].tolist() == found.exposed.sum(axis=1).tolist()


def test_a_leakage_is_a_row_a_node() -> None:
    leakage = midst.audit(run(record="audit").trace, midst.Adversary((2,), True))
    frame = leakage.to_pandas()
    assert set(frame) - documented(type(leakage).to_pandas) == set()
    assert frame["corrupt"].tolist() == [i == 2 for i in range(9)]
    assert frame["bits"].sum() == pytest.approx(leakage.total_bits)
    known = frame[frame["exposed"] & ~frame["corrupt"]]
    assert (known["lower"] == known["upper"]).all()


def test_missing_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pandas is not installed; try: .*\[pandas\]"):
        run().to_pandas()
