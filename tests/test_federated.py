"""The coordinate-wise median of clients' updates, against sorting, against NumPy, and against `solve`."""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import midst
from midst import Certified, Consensus, Search
from midst.errors import InputError, NotCertified
from midst.federated import Aggregate, coordinate_median, coordinate_quantile

SECRET = 31337.4242


def normal(clients: int, *shape: int, seed: int = 1, dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(clients)]


def ranked(updates: list[Any], k: int) -> Any:
    return np.sort(np.stack(updates), axis=0)[k]


# Against NumPy

DTYPES = st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int32, np.int64])


@st.composite
def clients_arrays(draw: st.DrawFn) -> list[Any]:
    count = draw(st.integers(3, 7))
    dtype = np.dtype(draw(DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))
    floats = st.floats(-1e3, 1e3, width=dtype.itemsize * 8 if dtype.kind == "f" else 64)  # type: ignore[arg-type]
    # numbers near 1e-308 lose bits when they are divided by a scale, in float64 alone
    elements = st.integers(-100, 100) if dtype.kind == "i" else floats.filter(lambda x: x == 0 or abs(x) > 1e-290)
    return [draw(hnp.arrays(dtype, shape, elements=elements)) for _ in range(count)]


@settings(max_examples=100)
@given(clients_arrays(), st.sampled_from(["complete", "ring", "rgg"]), st.sampled_from(["low", "high"]))
def test_one_of_the_numbers_to_the_last_bit(updates, kind, side):
    found = coordinate_median(updates, kind, side=side, rng=3)
    count = len(updates)
    expected = ranked(updates, (count - 1) // 2 if side == "low" else count // 2)
    assert found.certified
    assert found.value.dtype == updates[0].dtype
    assert found.value.shape == updates[0].shape
    assert np.array_equal(found.value, expected)
    if count % 2:
        assert np.array_equal(found.value, np.median(np.stack(updates).astype(np.float64), axis=0))
    assert found.objective == ("median" if count % 2 else f"{side} median")


def test_numpy_takes_the_mean_of_the_two_medians_of_an_even_number():
    updates = normal(6, 50)
    low, high = (coordinate_median(updates, "complete", side=side, rng=1).value for side in ("low", "high"))
    numpy = np.median(np.stack(updates), axis=0)
    assert np.array_equal((low + high) / 2, numpy)
    assert (low < numpy).all()


@pytest.mark.parametrize("tau", [0, 0.1, 0.25, 0.9, 1])
def test_quantiles(tau):
    updates = normal(10, 30)
    found = coordinate_quantile(updates, tau, "rgg", rng=1)
    assert np.array_equal(found.value, np.quantile(np.stack(updates), tau, axis=0, method="inverted_cdf"))


def test_weights_count_a_client_more_than_once():
    updates = normal(4, 20)
    found = coordinate_median(updates, "ring", weights=[1, 5, 1, 2], rng=1)
    repeated = [update for update, times in zip(updates, (1, 5, 1, 2), strict=True) for _ in range(times)]
    assert np.array_equal(found.value, ranked(repeated, 4))


# What an update may be


def test_structures_come_back_as_they_were():
    rng = np.random.default_rng(1)

    def update() -> Any:
        return OrderedDict(
            layers=[
                {"w": rng.standard_normal((2, 3)).astype(np.float32), "b": rng.standard_normal(3)},
                (rng.random(),),
            ],
            steps=np.int64(rng.integers(100)),
            empty=np.zeros((0, 4)),
        )

    updates = [update() for _ in range(5)]
    found = coordinate_median(updates, "ring", rng=1).value
    assert list(found) == ["layers", "steps", "empty"]
    layer, rest = found["layers"]
    assert isinstance(rest, tuple)
    assert (layer["w"].dtype, layer["b"].dtype, found["steps"].dtype) == (np.float32, np.float64, np.int64)
    assert np.array_equal(layer["w"], ranked([each["layers"][0]["w"] for each in updates], 2))
    assert np.array_equal(layer["b"], ranked([each["layers"][0]["b"] for each in updates], 2))
    assert rest[0] == sorted(each["layers"][1][0] for each in updates)[2]
    assert found["steps"] == sorted(each["steps"] for each in updates)[2]
    assert found["empty"].shape == (0, 4)


def test_the_order_of_keys_does_not_matter():
    updates = [{"a": np.array([k, 2.0]), "b": np.array(-k)} for k in (1.0, 5.0, 3.0)]
    turned = [dict(reversed(update.items())) if k else update for k, update in enumerate(updates)]
    for given_updates in (updates, turned):
        found = coordinate_median(given_updates, "complete", rng=1).value
        assert found["a"].tolist() == [3, 2]
        assert found["b"] == -3


def test_clients_as_rows_and_arrays_that_are_not_contiguous():
    rows = np.random.default_rng(1).standard_normal((5, 6, 4))
    turned = [np.asfortranarray(row.T).T[::-1] for row in rows]
    assert np.array_equal(coordinate_median(rows, "ring", rng=1).value, np.median(rows, axis=0))
    assert np.array_equal(coordinate_median(turned, "ring", rng=1).value, np.median(rows[:, ::-1], axis=0))


def test_mixed_dtypes_meet_in_numpys_common_one():
    updates = [np.array([1, 2], np.float32), np.array([3, 4], np.int32), np.array([2, 9], np.float16)]
    found = coordinate_median(updates, "complete", rng=1).value
    assert found.dtype == np.float64
    assert found.tolist() == [2, 4]


def test_jax_arrays():
    jnp = pytest.importorskip("jax.numpy")
    updates = normal(5, 7, dtype=np.float32)
    tree = [{"dense": {"kernel": jnp.asarray(update)}, "half": jnp.asarray(update, jnp.bfloat16)} for update in updates]
    found = coordinate_median(tree, "ring", rng=1).value
    assert np.array_equal(found["dense"]["kernel"], ranked(updates, 2))
    halves = [np.asarray(each["half"]) for each in tree]
    assert found["half"].dtype == halves[0].dtype
    assert np.array_equal(found["half"].astype(np.float64), ranked([half.astype(np.float64) for half in halves], 2))


class Tensor:
    """What a torch tensor does to NumPy: refuses while it needs a gradient, or is on a device."""

    def __init__(self, array: Any, grad: bool = True, device: bool = True) -> None:
        self.array, self.grad, self.device = array, grad, device

    def detach(self) -> Tensor:
        return Tensor(self.array, False, self.device)

    def cpu(self) -> Tensor:
        return Tensor(self.array, self.grad, False)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        return self.array


def test_tensors_in_training_and_on_a_device():
    updates = normal(3, 4, dtype=np.float32)
    found = coordinate_median([{"fc.weight": Tensor(update)} for update in updates], "ring", rng=1)
    assert np.array_equal(found.value["fc.weight"], ranked(updates, 1))


def test_constants_ties_and_zeros():
    updates = [
        np.array([0.0, 7.0, -1.0, 5e-324, 1e300]),
        np.array([0.0, 7.0, 2.0, 0.0, 1e300]),
        np.array([0, 7, 2, 0, 0]),
    ]
    assert coordinate_median(updates, "ring", rng=1).value.tolist() == [0, 7, 2, 0, 1e300]


# What comes with the answer


def test_a_coordinate_is_a_run_of_solve():
    updates = normal(9, 12)
    graph = midst.graphs.rgg(9, rng=4)
    found = coordinate_median(updates, graph, rng=5)
    values = np.stack(updates)
    alone = [midst.median(values[:, k], graph, rng=5, run=k) for k in range(12)]
    assert found.value.tolist() == [result.value for result in alone]
    assert found.rounds == max(result.rounds for result in alone)
    assert found.exposed == sum(len(result.exposed) for result in alone)
    assert found.exposed_by_client.tolist() == [sum(i in result.exposed for result in alone) for i in range(9)]
    assert found.exposed_share == found.exposed / (9 * 12)
    assert found.exposed_by_client.sum() > 0


@pytest.mark.parametrize("method", ["search", Search(7, "value"), Search(1, (-1.0, 0.0, 1.0))])
def test_by_a_search_nobody_is_exposed(method):
    updates = [{"w": w, "steps": k} for k, w in enumerate(normal(8, 4, 3))]
    graph = midst.graphs.rgg(8, rng=4)
    found = coordinate_median(updates, graph, method, bounds=(-10, 10), memory=20_000)
    assert np.array_equal(found.value["w"], ranked([update["w"] for update in updates], 3))
    assert found.value["steps"] == 3
    assert found.certified
    assert (found.exposed, found.exposed_share, found.exposed_by_client.tolist()) == (0, 0, [0] * 8)
    assert len(found.chunks) > 1
    columns = np.stack([np.append(update["w"].ravel(), update["steps"]) for update in updates])
    alone = [midst.median(column, graph, method=method, bounds=(-10, 10)) for column in columns.T]
    assert found.rounds == max(result.rounds for result in alone)


def test_chunks_change_nothing():
    updates = [{"a": a, "b": b} for a, b in zip(normal(5, 9, 3), normal(5, 8, seed=2), strict=True)]
    whole = coordinate_median(updates, "complete", rng=1)
    seen: list[tuple[int, int]] = []
    pieces = coordinate_median(
        updates, "complete", rng=1, memory=40_000, progress=lambda done, total: seen.append((done, total))
    )
    assert [(chunk.start, chunk.stop) for chunk in whole.chunks] == [(0, 35)]
    assert len(pieces.chunks) > 3
    assert [chunk.stop for chunk in pieces.chunks] == [done for done, _ in seen]
    assert [chunk.start for chunk in pieces.chunks] == [0, *(done for done, _ in seen[:-1])]
    assert seen[-1] == (35, 35)
    assert all(np.array_equal(whole.value[name], pieces.value[name]) for name in "ab")
    assert np.array_equal(whole.exposed_by_client, pieces.exposed_by_client)
    assert (whole.rounds, whole.exposed, whole.certified) == (pieces.rounds, pieces.exposed, True)


@pytest.mark.parametrize("method", ["consensus", "search"])
@pytest.mark.parametrize("clients", [5, 40])
def test_working_memory_stays_below_what_is_allowed(method, clients):
    updates = normal(clients, 2_000, dtype=np.float32)
    graph = midst.graphs.make("complete" if clients == 5 else "ring", clients)
    coordinate_median([update[:10] for update in updates], graph, method, rng=1)
    tracemalloc.start()
    found = coordinate_median(updates, graph, method, rng=1, memory=2**21)
    peak = tracemalloc.get_traced_memory()[1] - found.value.nbytes
    tracemalloc.stop()
    assert found.certified
    assert peak <= 2**21
    assert 1 < len(found.chunks) <= 25


@pytest.mark.parametrize(
    "known",
    [
        {"scale": 1.0},
        {"bounds": (-10, 10)},
        {"scale": {"w": np.array([1.0, 10.0, 1.0]), "b": 0.1}},
        {"bounds": ({"w": -50, "b": -1.0}, {"w": np.array([10, 50, 10]), "b": 1.0})},
    ],
    ids=["scale", "bounds", "scales", "several bounds"],
)
def test_public_knowledge(known):
    updates = [{"w": w, "b": 0.05 * b} for w, b in zip(normal(7, 4, 3), normal(7, 2, seed=2), strict=True)]
    found = coordinate_median(updates, "ring", rng=1, **known)
    assert found.public == "given"
    assert np.array_equal(found.value["w"], ranked([each["w"] for each in updates], 3))
    assert coordinate_median(updates, "ring", rng=1).public == "estimated"


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_who_clips_to_the_bounds_is_within_them(dtype):
    updates = [np.clip(update, -0.3, 0.3) for update in normal(5, 20, dtype=dtype)]
    assert max(float(update.max()) for update in updates) != 0.3  # as a float64 the bound is another number
    assert coordinate_median(updates, "ring", rng=1, bounds=(-0.3, 0.3)).certified


def test_a_scale_for_each_parameter_is_that_parameters():
    updates = [{"w": w, "b": 1000 * b} for w, b in zip(normal(5, 6), normal(5, 6, seed=2), strict=True)]
    each = coordinate_median(updates, "ring", rng=1, scale={"w": 1.0, "b": 1000.0})
    for name, scale, start in (("w", 1.0, 0), ("b", 1000.0, 6)):
        values = np.stack([update[name] for update in updates])
        children = np.random.default_rng(1).spawn(12)[start : start + 6]
        runs = [midst.median(values[:, k], "ring", rng=children[k], scale=scale) for k in range(6)]
        assert each.value[name].tolist() == [run.value for run in runs]
    assert each.rounds < coordinate_median(updates, "ring", rng=1, scale=1.0).rounds


def test_no_proof():
    method = Consensus(limit=3)
    with pytest.raises(NotCertified, match=r"1 of 1 chunks .* not proved within the limit") as caught:
        coordinate_median(normal(9, 4), "ring", method, rng=1)
    assert isinstance(caught.value.result, Aggregate)
    found = coordinate_median(normal(9, 4), "ring", method, rng=1, throw=False)
    assert not found.certified
    assert found.rounds == 3


def test_poisoned_clients_move_the_mean_and_not_the_median():
    honest = normal(8, 40, seed=3)
    poisoned = [np.full(40, 1e6)] * 3
    found = coordinate_median([*honest, *poisoned], "complete", rng=1)
    assert np.array_equal(found.value, np.median([*honest, *poisoned], axis=0))
    assert (found.value <= np.max(honest, axis=0)).all()
    assert (np.mean([*honest, *poisoned], axis=0) > 1e5).all()


def test_repr_shows_no_number():
    updates = [np.full(3, SECRET)] * 3
    assert str(SECRET)[:5] not in repr(coordinate_median(updates, "ring", rng=1))


# What is refused


class Unreadable:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"Got unsupported ScalarType BFloat16 {SECRET}")


HUGE = [np.broadcast_to(np.float32(1), (10**9,))] * 70
FINE = [np.ones(2) * SECRET] * 3
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "too many": (HUGE, {}, r"70 clients with 1,000,000,000 coordinates are 7e\+10 pairs.*97.2 hours.*3.7 GiB"),
    "a small limit": (FINE, {"most": 5}, "3 clients with 2 coordinates are 6 pairs, more than most=5"),
    "no memory": (FINE, {"memory": 1000}, r"one coordinate over .* takes about 3.3 KiB"),
    "large graph": (FINE, {"graph": midst.graphs.complete(700), "memory": 2**20}, "takes about 13,654.7 KiB"),
    "mapping": ({"a": FINE[0]}, {}, r"list\(updates.values\(\)\)"),
    "iterator": (iter(FINE), {}, "must be a list"),
    "nobody": ([], {}, "at least two clients"),
    "one": (FINE[:1], {}, "at least two clients"),
    "empty": ([[], [], []], {}, "the updates are empty"),
    "no numbers": ([np.zeros(0)] * 3, {}, "the updates are empty"),
    "missing": ([{"a": FINE[0], "b": 1}, {"a": FINE[0]}], {}, "client 0 has a parameter 'b', client 1 has none"),
    "added": ([{"a": 1}, {"a": 1}, {"a": 1, "b": 1}], {}, "client 2 has a parameter 'b', client 0 has none"),
    "nested": ([{"a": [1, {"c": 2}]}, {"a": [1, 2]}], {}, "client 1 has a parameter 'a.1', client 0 has none"),
    "shape": ([{"w": np.ones((2, 3))}, {"w": np.ones(2)}], {}, r"client 1: 'w' has shape \(2,\), client 0's \(2, 3\)"),
    "nan": ([FINE[0], FINE[0], np.array([SECRET, np.nan])], {}, "client 2: the array has an entry that is not finite"),
    "infinite": ([{"w": FINE[0]}, {"w": FINE[0] * np.inf}], {"graph": "path"}, "client 1: .w. has an entry that"),
    "complex": ([FINE[0] * 1j] * 3, {}, "client 0: the array has dtype complex128"),
    "truth": ([np.array([True])] * 3, {}, "has dtype bool"),
    "words": ([np.array(["31337.4242"])] * 3, {}, "has dtype <U10"),
    "objects": ([np.array([None])] * 3, {}, "has dtype object"),
    "long": ([np.ones(1, np.longdouble)] * 3, {}, "has dtype float128"),
    "unreadable": ([Unreadable()] * 3, {}, "client 0: the array cannot be read as a NumPy array"),
    "whole numbers": ([np.array([2**53 + 1])] * 3, {}, r"2\^53 or more"),
    "outside": (FINE, {"bounds": (0, 1)}, "client 0: the array has an entry outside the public bounds"),
    "bounds reversed": (FINE, {"bounds": (1e9, 0)}, "outside the public bounds"),
    "bounds alone": (FINE, {"bounds": 5}, "bounds must be a tuple"),
    "scale zero": (FINE, {"scale": 0}, "scale must be between"),
    "scale of another shape": (FINE, {"scale": np.ones(5)}, "scale must have a number, or an array of its shape"),
    "scale of another structure": (FINE, {"scale": {"w": 1}}, "scale must be one number, or have the structure"),
    "graph of another size": (FINE, {"graph": midst.graphs.ring(4)}, "3 values for 4 nodes"),
    "graph unknown": (FINE, {"graph": "rign"}, "did you mean ring"),
    "no graph": (FINE, {"graph": None}, "graph must be a midst.Graph"),
    "apart": (normal(4, 2), {"graph": midst.graphs.from_edges(4, [(0, 1), (2, 3)])}, "2 components"),
    "side": (FINE, {"side": "any"}, "side must be 'low' or 'high'"),
    "rng": (FINE, {"rng": -1, "graph": midst.graphs.ring(3)}, "rng must be"),
    "weights": (FINE, {"weights": [1, -1, 1]}, "weight of node 1 is negative"),
    "c": (FINE, {"method": Consensus(c=0)}, "c must be positive"),
    "method": (FINE, {"method": "count"}, "method must be 'consensus' or 'search'"),
    "stop": (FINE, {"method": Consensus(stop=Certified())}, "one of the clients' numbers; leave stop out"),
    "too many to search": (HUGE, {"method": "search"}, r"70 clients .* 7e\+10 pairs.*hours"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    updates, options, message = REFUSED[name]
    told: list[object] = []
    with pytest.raises(InputError, match=message) as caught:
        coordinate_median(updates, **({"graph": "ring"} | options), progress=lambda *done: told.append(done))
    assert "31337" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not told


def test_a_late_entry_is_refused_before_the_first_run():
    updates = normal(3, 5_000)
    updates[1][-1] = np.nan
    told: list[object] = []
    with pytest.raises(InputError, match="client 1"):
        coordinate_median(updates, "ring", rng=1, progress=lambda *done: told.append(done))
    assert not told


@pytest.mark.parametrize("tau", [1.5, "half"])
def test_no_quantile(tau):
    with pytest.raises(InputError, match="quantile must be"):
        coordinate_quantile(FINE, tau, "ring")
    assert coordinate_quantile(FINE, Fraction(1, 3), "ring", rng=1).certified
