"""A run as facts and arrays: what the page gets is what happened."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array

import midst
from midst.explorer import worker
from midst.explorer.fields import FieldError, parse
from midst.explorer.packing import pack
from midst.explorer.replay import Replay, audited, replay, to_json
from midst.explorer.simulate import Made, open_file, prepare
from midst.privacy.views import View, view
from midst.system import streams


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """What api.js does."""
    (length,) = struct.unpack_from("<I", data)
    facts = json.loads(data[4 : 4 + length])
    found = {}
    for name, each in facts.pop("arrays").items():
        form = {"f64": "<f8", "i32": "<i4"}[each["type"]]
        assert (4 + length + each["at"]) % 8 == 0
        flat = np.frombuffer(data, form, math.prod(each["shape"]), 4 + length + each["at"])
        found[name] = flat.reshape(each["shape"])
    return facts, found


def story(**settings: str) -> Replay:
    return replay(prepare(parse(settings)).run())


@given(
    any_array(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 3))),
    any_array(np.int32, st.integers(0, 5)),
    st.dictionaries(st.text(max_size=4).filter(lambda name: name != "arrays"), st.text(max_size=9), max_size=3),
)
def test_packing_keeps_every_bit(x: Any, t: Any, facts: dict[str, str]) -> None:
    found, columns = unpack(pack(facts, {"x": x, "t": t, "flags": t > 0}))
    assert found == facts
    assert columns["x"].tobytes() == x.tobytes()
    assert columns["x"].shape == x.shape
    assert np.array_equal(columns["t"], t)
    assert np.array_equal(columns["flags"], t > 0)


def test_a_simulated_run_is_told_in_full() -> None:
    made = prepare(parse({"method": "consensus", "n": "9"})).run()
    told = replay(made)
    facts, arrays = unpack(pack(to_json(told.facts), told.arrays))
    trace, result = made.trace, made.result
    assert result is not None
    assert np.array_equal(arrays["x"], trace.x)
    assert np.array_equal(arrays["t"], np.arange(trace.iterations))
    assert np.array_equal(arrays["spread"], np.ptp(trace.x, axis=1))
    middle = np.median(made.values)  # type: ignore[arg-type]
    assert arrays["error"] == pytest.approx(np.linalg.norm(trace.x - middle, axis=1))
    assert facts["found"] == result.value == facts["answer"]["low"] == facts["answer"]["high"]
    assert facts["result"]["proof"] == {**result.standing[0]._asdict(), "probes": result.probes}  # type: ignore[index]
    assert facts["method"] == "consensus"
    assert len(arrays["edges"]) == trace.graph.edges
    exposed = {int(node) for node in arrays["spans"][:, 0]}
    assert exposed == set(result.exposed)


def test_the_certificate_can_be_followed() -> None:
    told = story(method="consensus", stop="certified", n="9")
    needed, arrays, trace = told.facts["needed"], told.arrays, told.made.trace
    assert needed == {"below": 5, "above": 5, "total": 9}
    values = told.made.values
    assert values is not None
    assert np.array_equal(arrays["at_or_below"], (values <= trace.x).sum(axis=1))
    holds = (arrays["spread"] <= told.facts["result"]["tolerance"]) & (arrays["at_or_below"] >= 5)
    holds &= arrays["at_or_above"] >= 5
    assert np.flatnonzero(holds).tolist() == [trace.iterations - 1]


SEARCH = {"method": "search", "n": "9", "least": "-5", "most": "5"}


def test_a_search_is_told_step_by_step() -> None:
    made = prepare(parse(SEARCH)).run()
    told = replay(made)
    facts, arrays = unpack(pack(to_json(told.facts), told.arrays))
    trace, result = made.trace, made.result
    assert result is not None
    assert facts["iterations"] == result.probes + 1
    assert [row["totals"] for row in facts["search"]["rows"]] == [list(probe.totals) for probe in trace.probes]
    assert [row["ends"][1:-1] for row in facts["search"]["rows"]] == [list(probe.thresholds) for probe in trace.probes]
    diameter = trace.graph.diameter()
    assert facts["search"]["rounds"][0] == diameter
    assert facts["search"]["rounds"][-1] == (result.probes + 2) * diameter == result.rounds
    assert len(facts["search"]["rounds"]) == facts["iterations"]
    assert facts["answer"]["low"] == result.value == facts["found"]
    assert float(facts["shown"].replace("−", "-")) == pytest.approx(result.value)
    assert facts["result"]["proof"]["probes"] == result.probes
    # nobody is lit, ever
    assert arrays["first"].tolist() == [-1] * 9
    assert arrays["spans"].size == 0
    # what is in the facts says nothing of who is where
    values = made.values
    assert values is not None
    others = [f"{value:.6g}" for value in values if value != result.value]
    assert not any(each in json.dumps(facts) for each in others)
    for row, node, place in arrays["dots"]:
        row_of = facts["search"]["rows"][int(row)]
        cell = int(place * len(row_of["totals"]))
        assert row_of["ends"][cell] <= values[int(node)] <= row_of["ends"][cell + 1]


def test_a_search_is_audited_with_the_floor_beside() -> None:
    made = prepare(parse(SEARCH | {"adversary": "passive", "corrupt": "2"})).run()
    facts, arrays = audited(replay(made))
    leakage = midst.audit(made.trace, made.adversary, made.prior)
    assert facts["audit"] == leakage.to_dict()
    assert facts["audience"] == "corrupt 2"
    assert facts["audit"]["nodes"][0]["floor"] + facts["audit"]["nodes"][0]["excess"] == pytest.approx(leakage.bits[0])
    assert facts["audit"]["nodes"][2]["bits"] is None
    assert arrays == {}


@pytest.mark.parametrize("coordinates", [1, 2])
def test_a_file_of_a_search_is_shown(saved: Path, coordinates: int) -> None:
    values = streams(3).values.standard_normal((7, coordinates))
    result = midst.median(values, "ring", method="search", bounds=(-9, 9))
    result.trace.save(saved)
    told = replay(
        open_file(saved, parse({"source": "file", "coordinate": str(coordinates - 1)}, file=True)), saved.name
    )
    assert told.facts["iterations"] == result.probes + 1
    assert told.facts["search"]["rounds"][-1] == result.rounds
    assert told.facts["answer"]["low"] == np.median(values[:, -1])
    assert told.facts["result"] is None
    assert "dots" not in told.arrays
    assert "values" not in told.arrays


def test_with_noise_the_curve_goes_to_the_noised_answer_and_not_to_the_true_one() -> None:
    told = story(method="consensus", dp="offset", offset="1", stop="certified")
    values = told.made.values
    assert values is not None
    assert told.arrays["error"][-1] < 1e-4
    assert abs(told.facts["found"] - np.median(values)) > 1e-3
    assert told.facts["title"] == "median of the noised numbers"


@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.sampled_from([3.0, 4.0]), min_size=3, max_size=9),
    power=st.sampled_from([1e-9, 1.0, 1e9]),
    iterations=st.integers(1, 60),
    of_file=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_an_answer_is_told_only_where_it_is_proved(
    values: list[float], power: float, iterations: int, of_file: bool
) -> None:
    numbers = " ".join(repr(value * power) for value in values)
    made = prepare(
        parse(
            {
                "method": "consensus",
                "graph": "complete",
                "data": "own",
                "numbers": numbers,
                "stop": "iterations",
                "iterations": str(iterations),
            }
        )
    ).run()
    result = made.result
    assert result is not None
    told = replay(replace(made, values=None, result=None) if of_file else made).facts
    x = made.trace.x[-1]
    assert (told["proof"] is None) == (told["found"] is None) == (not result.certified)
    if result.certified:
        assert told["found"] == result.value
        assert abs(told["found"] - sorted(made.values)[(len(values) - 1) // 2]) <= result.certificate.tolerance  # type: ignore[union-attr, arg-type]
    else:
        assert ("answer" in told) == (not of_file)
        assert [float(end.replace("−", "-")) for end in told["between"]] == pytest.approx([x.min(), x.max()], rel=1e-9)


@pytest.mark.parametrize("stop", [None, midst.Certified(), midst.After(3)])
def test_a_file_says_what_it_proves(saved: Path, stop: Any) -> None:
    values = streams(7).values.standard_normal(9)
    result = midst.median(values, "ring", method=midst.Consensus(stop=stop), rng=7, record="all")
    result.trace.save(saved)
    facts = replay(open_file(saved, parse({"source": "file"}, file=True)), saved.name).facts
    if stop is None:
        assert facts["proof"] == f"exact, by the totals of {result.probes} probes"
    elif result.certified:
        spread = np.ptp(result.trace.x[-1])
        assert facts["proof"] == f"certified to within {spread:.3g}"
    assert facts["found"] == (result.value if result.certified else None)


@pytest.mark.parametrize("record", ["audit", "auto", 7])
def test_what_a_file_left_out_is_worked_out_again(saved: Path, record: Any) -> None:
    drawn = streams(7)
    problem = midst.Problem(midst.graphs.make("rgg", 15, rng=drawn.graph), drawn.values.standard_normal(15))
    whole = midst.solve(problem, midst.Consensus(stop=midst.Certified()), rng=7, record="all").trace
    midst.solve(problem, midst.Consensus(stop=midst.Certified()), rng=7, record=record).trace.save(saved)
    told = replay(open_file(saved, parse({"source": "file"}, file=True)), saved.name)
    assert told.facts["file"] == "run.npz"
    assert told.facts["result"] is None
    assert told.facts["notes"] == []
    assert "values" not in told.arrays
    assert told.arrays["x"] == pytest.approx(whole.x, abs=1e-9)
    original = replay(Made(whole, midst.Adversary(), midst.priors.Normal()))
    assert np.array_equal(told.arrays["spans"], original.arrays["spans"])
    assert np.array_equal(told.arrays["at_or_below"], original.arrays["at_or_below"])


def test_what_cannot_be_worked_out_is_shown_as_far_as_it_was_kept() -> None:
    problem = midst.Problem(midst.graphs.ring(7), streams(3).values.standard_normal(7))
    whole = midst.solve(
        problem, midst.Consensus(stop=midst.After(100)), rng=np.random.default_rng(3), record="all"
    ).trace
    thin = midst.solve(problem, midst.Consensus(stop=midst.After(100)), rng=np.random.default_rng(3), record=10).trace
    told = replay(Made(thin, midst.Adversary(), midst.priors.Normal()))
    assert told.arrays["t"].tolist() == [*range(0, 100, 10), 99]
    assert "11 of 100 iterations" in told.facts["notes"][0]
    full = replay(Made(whole, midst.Adversary(), midst.priors.Normal()))
    assert np.array_equal(told.arrays["lower"][-1], full.arrays["lower"][-1])
    assert (told.arrays["lower"] <= full.arrays["lower"][told.arrays["t"]]).all()
    assert np.array_equal(told.arrays["first"], full.arrays["first"])


def test_a_long_file_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midst.explorer.replay.MOST_CELLS", 500)
    told = story(method="consensus", stop="iterations", iterations="200", n="10")
    assert 30 < len(told.arrays["t"]) <= 50
    assert told.arrays["t"][[0, -1]].tolist() == [0, 199]


def test_vectors_are_shown_a_coordinate_at_a_time(saved: Path) -> None:
    rows = np.arange(14.0).reshape(7, 2)[::-1]
    midst.median(rows, graph="ring", rng=1, method="consensus", record="all").trace.save(saved)
    for k in (0, 1):
        told = replay(open_file(saved, parse({"source": "file", "coordinate": str(k)}, file=True)))
        assert told.facts["coordinates"] == 2
        assert told.facts["answer"]["low"] == np.median(rows[:, k])


def test_an_even_number_has_two_right_answers_only_where_any_will_do() -> None:
    low = story(n="6", graph="ring").facts
    assert low["title"] == "low median"
    assert low["answer"]["low"] == low["answer"]["high"]


# The process in which runs are made


def talk(*asked: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    incoming = BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in asked))
    outgoing = BytesIO()
    worker.serve(incoming, outgoing)
    data, frames, at = outgoing.getvalue(), [], 0
    while at < len(data):
        letter, length = worker.HEAD.unpack_from(data, at)
        frames.append((letter, data[at + worker.HEAD.size : at + worker.HEAD.size + length]))
        at += worker.HEAD.size + length
    return frames


def test_a_worker_makes_one_run_after_the_other() -> None:
    frames = talk(
        {"settings": {"n": "5"}, "file": None},
        {"settings": {"n": "x"}, "file": None},
        {"settings": {"method": "consensus", "n": "5", "stop": "iterations", "iterations": "9"}, "file": None},
    )
    kinds = [json.loads(body)["kind"] if letter == b"J" else letter.decode() for letter, body in frames]
    run = ["started", "R", "auditing", "A", "done"]
    assert kinds == [*run, "refused", *run]
    facts, columns = unpack(frames[-4][1])
    assert (facts["iterations"], columns["x"].shape) == (9, (9, 5))


def test_a_worker_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midst.solving._BETWEEN_REPORTS", 0.0)
    frames = talk(
        {"settings": {"method": "consensus", "n": "5", "stop": "iterations", "iterations": "9"}, "file": None}
    )
    messages = [json.loads(body) for letter, body in frames if letter == b"J"]
    assert [message["t"] for message in messages if message["kind"] == "progress"] == list(range(8))
    assert messages[0]["most"] == 9


def test_a_worker_reads_a_file(saved: Path) -> None:
    midst.median([3.0, 1.0, 2.0], rng=1).trace.save(saved)
    frames = talk({"settings": {"source": "file"}, "file": str(saved)})
    assert unpack(frames[1][1])[0]["file"] == "run.npz"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("31337"), "out of memory"),
        (ValueError("31337"), "unexpected ValueError"),
        (midst.InputError("plain"), "plain"),
        (FieldError({"n": "no"}), "no"),
    ],
)
def test_a_worker_survives_and_says_no_more_than_it_must(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.delenv("MIDST_DEBUG", raising=False)
    monkeypatch.setattr(worker, "pack_each", fail)
    frames = talk({"settings": {"n": "5"}, "file": None}, {"settings": {"n": "x"}, "file": None})
    last = [json.loads(body) for _, body in frames]
    assert [message["kind"] for message in last] == ["started", "refused", "refused"]
    assert words in json.dumps(last[1])
    assert "31337" not in json.dumps(last)


@pytest.mark.parametrize(
    ("settings", "views"),
    [({}, 1), ({"init": "sealed", "stop": "certified"}, 1), ({"adversary": "passive", "corrupt": "3"}, 3)],
)
def test_what_is_seen_is_worked_out_once_and_anew_for_another_adversary_only(
    settings: dict[str, str], views: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare(parse({"method": "consensus", "n": "9", **settings})).run()
    expected = midst.audit(made.trace, made.adversary, made.prior).to_dict()
    seen = []

    def count(*arguments: Any) -> View:
        seen.append(arguments)
        return view(*arguments)

    monkeypatch.setattr("midst.explorer.knowledge.view", count)
    monkeypatch.setattr("midst.privacy.audit.view", count)
    assert audited(replay(made))[0]["audit"] == expected
    assert len(seen) == views


@pytest.mark.parametrize(
    "settings", [{"objective": "quantile", "q": "0.75"}, {"mu": "-8", "graph": "ring"}, {"dp": "offset"}]
)
def test_what_is_sent_is_the_number_clipped_to_the_interval(settings: dict[str, str]) -> None:
    told = story(method="consensus", n="7", seed="4", stop="iterations", iterations="60", **settings)
    low, width = told.arrays["interval"], told.arrays["width"]
    held = told.arrays.get("held", told.arrays["values"])
    assert np.clip(held, low, low + width) == pytest.approx(told.arrays["x"], abs=1e-9)
    assert ((low <= held) & (held <= low + width) == (told.made.trace.branch == 0)).all()


def test_no_interval_is_told_where_there_is_none(saved: Path) -> None:
    assert "interval" not in story(method="consensus", n="5", objective="mean").arrays
    assert "interval" not in story(n="5", method="search").arrays
    assert (
        "interval" not in story(method="consensus", n="1000", graph="path", stop="iterations", iterations="600").arrays
    )  # too many
    midst.median(
        np.arange(5.0), graph="ring", rng=np.random.default_rng(1), method="consensus", record="auto"
    ).trace.save(saved)
    made = open_file(saved, parse({"source": "file"}, file=True))
    assert "interval" not in replay(made).arrays
