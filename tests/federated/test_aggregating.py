"""The aggregate of clients' updates, against NumPy; what it costs and gives away; and what is refused."""

from __future__ import annotations

import math
from collections import OrderedDict
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import midst
from midst.errors import InputError
from midst.federated import coordinate_median, coordinate_quantile, mean, mean_around_median, trimmed_mean
from midst.graphs.spanning import spanning_tree

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
    floats = st.floats(allow_nan=False, allow_infinity=False, width=dtype.itemsize * 8 if dtype.kind == "f" else 64)  # type: ignore[arg-type]
    elements = None if dtype.kind == "i" else floats
    return [draw(hnp.arrays(dtype, shape, elements=elements)) for _ in range(count)]


@st.composite
def trees(draw: st.DrawFn) -> list[Any]:
    """Updates of one structure, nested as it comes."""
    count = draw(st.integers(3, 5))
    shapes = draw(
        st.recursive(
            st.tuples(DTYPES, hnp.array_shapes(min_dims=0, max_dims=2, max_side=3)).map(Leaf), nest, max_leaves=5
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return [fill(shapes, rng) for _ in range(count)]


class Leaf(tuple[Any, ...]):
    """A type and a shape."""


def nest(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.text("abc", max_size=3)
    return st.lists(parts, min_size=1, max_size=3) | st.dictionaries(names, parts, min_size=1, max_size=3)


def fill(shapes: Any, rng: np.random.Generator) -> Any:
    if isinstance(shapes, Leaf):
        dtype, shape = shapes
        return (rng.standard_normal(shape) * 20).astype(dtype)
    if isinstance(shapes, list):
        return [fill(part, rng) for part in shapes]
    return {name: fill(part, rng) for name, part in shapes.items()}


def median_of_trees(updates: list[Any]) -> Any:
    first = updates[0]
    if isinstance(first, list):
        return [median_of_trees(list(parts)) for parts in zip(*updates, strict=True)]
    if isinstance(first, dict):
        return {name: median_of_trees([each[name] for each in updates]) for name in first}
    return ranked(updates, (len(updates) - 1) // 2)


def assert_same(one: Any, other: Any) -> None:
    if isinstance(other, list):
        for parts in zip(one, other, strict=True):
            assert_same(*parts)
    elif isinstance(other, dict):
        assert list(one) == list(other)
        for name in other:
            assert_same(one[name], other[name])
    else:
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.array_equal(one, other)


@settings(max_examples=100)
@given(trees())
def test_random_trees_of_arrays(updates):
    found = coordinate_median(updates)
    assert_same(found.value, median_of_trees(updates))


@settings(max_examples=100)
@given(clients_arrays(), st.sampled_from(["low", "high"]))
def test_one_of_the_numbers_to_the_last_bit(updates, side):
    found = coordinate_median(updates, definition={"low": "inverted_cdf", "high": "inverted_cdf_high"}[side])
    count = len(updates)
    expected = ranked(updates, (count - 1) // 2 if side == "low" else count // 2)
    assert found.value.dtype == updates[0].dtype
    assert found.value.shape == updates[0].shape
    assert np.array_equal(found.value, expected)
    assert found.objective == ("median" if count % 2 else f"{side} median")


def test_numpy_takes_the_mean_of_the_two_medians_of_an_even_number():
    updates = normal(6, 50)
    low, high = (coordinate_median(updates, definition=each).value for each in ("inverted_cdf", "inverted_cdf_high"))
    numpy = np.median(np.stack(updates), axis=0)
    assert np.array_equal((low + high) / 2, numpy)
    assert (low < numpy).all()


@pytest.mark.parametrize("q", [0, 0.1, 0.25, 0.9, 1])
def test_quantiles(q):
    updates = normal(10, 30)
    found = coordinate_quantile(updates, q)
    assert np.array_equal(found.value, np.quantile(np.stack(updates), q, axis=0, method="inverted_cdf"))


def test_whole_numbers_are_not_altered():
    updates = [[2**53 + k] for k in (3, 1, 5)]
    assert coordinate_median(updates).value == [2**53 + 3]
    assert coordinate_median([pd.Series(each) for each in updates]).value.tolist() == [2**53 + 3]
    ones = [np.array([float(k)]) for k in range(3)]  # no two weights make up half of all: the last one is needed
    assert coordinate_median(ones, weights=[2**53 + 1, 1.0, 2**53]).value == [0.0]


def test_weights_count_a_client_more_than_once():
    updates = normal(4, 20)
    found = coordinate_median(updates, weights=[1, 5, 1, 2])
    repeated = [update for update, times in zip(updates, (1, 5, 1, 2), strict=True) for _ in range(times)]
    assert np.array_equal(found.value, ranked(repeated, 4))
    steps = [np.round(update * 4) for update in updates]
    weighted = mean([each / 4 for each in steps], weights=[1, 5, 1, 2], bounds=(-5, 5), resolution=0.25)
    assert np.allclose(weighted.value, np.average(steps, axis=0, weights=[1, 5, 1, 2]) / 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_what_is_left(dtype):
    steps = np.random.default_rng(1).integers(-64, 65, (10, 300))
    updates = list((steps / 16).astype(dtype))
    options: Any = {"bounds": (-4, 4), "resolution": 1 / 16}
    assert np.allclose(mean(updates, **options).value, steps.mean(axis=0) / 16)
    trimmed = trimmed_mean(updates, 3, **options)
    assert np.allclose(trimmed.value, stats.trim_mean(steps / 16, 0.3, axis=0))
    assert trimmed.value.dtype == dtype
    median = np.sort(steps, axis=0)[4]
    far = 2 * np.abs(steps - median) - (steps < median)
    nearest = np.take_along_axis(steps, np.argsort(far, axis=0, kind="stable")[:6], axis=0)
    found = mean_around_median(updates, 4, **options)
    assert np.allclose(found.value, nearest.mean(axis=0) / 16)
    assert np.array_equal(coordinate_median(updates, **options).value, (median / 16).astype(dtype))


def test_at_a_resolution_values_are_rounded_half_to_even():
    found = coordinate_median([np.array([0.5, 1.5, 0.49])] * 3, bounds=(0, 3), resolution=1.0)
    assert found.value.tolist() == [0, 2, 0]


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
    found = coordinate_median(updates).value
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
        found = coordinate_median(given_updates).value
        assert found["a"].tolist() == [3, 2]
        assert found["b"] == -3


def test_clients_as_rows_and_arrays_that_are_not_contiguous():
    rows = np.random.default_rng(1).standard_normal((5, 6, 4))
    turned = [np.asfortranarray(row.T).T[::-1] for row in rows]
    assert np.array_equal(coordinate_median(rows).value, np.median(rows, axis=0))
    assert np.array_equal(coordinate_median(turned).value, np.median(rows[:, ::-1], axis=0))


def test_jax_arrays():
    jnp = pytest.importorskip("jax.numpy")
    updates = normal(5, 7, dtype=np.float32)
    tree = [{"dense": {"kernel": jnp.asarray(update)}, "half": jnp.asarray(update, jnp.bfloat16)} for update in updates]
    found = coordinate_median(tree).value
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
    found = coordinate_median([{"fc.weight": Tensor(update)} for update in updates])
    assert np.array_equal(found.value["fc.weight"], ranked(updates, 1))


def test_constants_ties_and_zeros():
    updates = [
        np.array([0.0, 7.0, -1.0, 5e-324, 1e300]),
        np.array([0.0, 7.0, 2.0, 0.0, 1e300]),
        np.array([0.0, 7, 2, 0, 0]),
    ]
    assert coordinate_median(updates).value.tolist() == [0, 7, 2, 0, 1e300]


# What it costs and gives away


def test_chunks_and_threads_change_nothing(monkeypatch):
    updates = [{"a": a, "b": b} for a, b in zip(normal(5, 9, 3), normal(5, 8, seed=2), strict=True)]
    whole = coordinate_median(updates)
    monkeypatch.setattr("midst.protocol.vectors.layout.CHUNK", 4)
    seen: list[tuple[int, int]] = []
    pieces = coordinate_median(updates, workers=3, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(min(k + 4, 35), 35) for k in range(0, 35, 4)]
    assert all(np.array_equal(whole.value[name], pieces.value[name]) for name in "ab")
    assert whole.steps == pieces.steps


def test_what_a_client_sends_does_not_grow_with_the_number_of_clients():
    few, many = (coordinate_median(normal(n, 5000, dtype=np.float32)) for n in (8, 14))
    assert few.sent[1] == 3 * few.vector_bytes  # to its parent, and to two children
    assert many.sent[1] == 3 * many.vector_bytes
    assert 5000 * 4 < few.vector_bytes < 5000 * 10
    ring = coordinate_median(normal(8, 50), graph="ring")
    assert ring.sent[1] == 2 * ring.vector_bytes
    assert ring.rounds == ring.steps * 2 * 4


def test_fewer_probes_at_a_resolution():
    updates = [np.clip(update, -4, 4) for update in normal(9, 3000, dtype=np.float32)]
    exact, coarse = coordinate_median(updates), coordinate_median(updates, bounds=(-4, 4), resolution=2**-13)
    assert coarse.steps <= 17 < exact.steps <= 32
    assert coarse.vector_bytes < 0.7 * exact.vector_bytes
    assert np.abs(coarse.value - exact.value).max() <= 2**-14


def brute_force(values: Any, rank: int, of: Any, prior: Any) -> tuple[float, float]:
    """Bits and floor of one coordinate from the cells that the search leaves, found by walking through it."""
    offsets, n = sorted(int(k) for k in of.offsets(values)), len(values)
    cells, low, width, inside = [], 0, 1 << of.bits, n
    while inside > 1 and width > 1:
        half = width // 2
        here = [k for k in offsets if low <= k < low + width]
        zeros = sum(k < low + half for k in here)
        place = rank - sum(k < low for k in offsets)
        if place <= zeros:
            cells.append((inside - zeros, low + half, low + width - 1))
            inside = zeros
        else:
            cells.append((zeros, low, low + half - 1))
            low, inside = low + half, inside - zeros
        width = half
    at = offsets[rank - 1]
    cells.append((inside, at, at))
    floor = [(rank - 1, 0, at - 1), (1, at, at), (n - rank, at + 1, of.most)]
    ends = [float(end) for end in of.edges(np.array([0, of.most + 1], np.uint64))]
    everything = prior.log_mass(*ends)

    def bits(parts: Any) -> float:
        found = 0.0
        for count, first, last in parts:
            if count:
                low, high = of.edges(np.array([first, min(last, of.most) + 1], np.uint64)).tolist()
                narrow = high - low < 1e-9
                mass = prior.log_density(low) + math.log(high - low) if narrow else prior.log_mass(low, high)
                found += count / n * (math.log2(count / n) - (mass - everything) / math.log(2))
        return found

    return bits(cells), bits(floor)


@pytest.mark.parametrize("resolution", [None, 0.125])
def test_bits_and_floor_against_walking_through_the_search(resolution):
    from midst.protocol.vectors.formats import Format

    prior, bounds = midst.priors.Normal(0, 1), (-4.0, 4.0)
    updates = [np.clip(update, -4, 4) for update in normal(7, 40, dtype=np.float32)]
    for update in updates[:5]:
        update[:10] = np.float32(0.5)  # ties
    found = coordinate_median(updates, prior=prior, bounds=bounds, resolution=resolution).leakage
    assert found is not None
    of = Format("float32", bounds, resolution)
    each = [brute_force(np.stack(updates)[:, k], 4, of, prior) for k in range(40)]
    assert np.allclose((found.bits, found.floor), np.mean(each, axis=0))
    assert found.excess == found.bits - found.floor
    assert (found.looked_at, found.coordinates) == (40, 40)


def test_bits_are_finite_where_two_numbers_are_nearer_than_a_prior_can_tell():
    found = coordinate_median(normal(5, 200, seed=9), prior=midst.priors.Normal(0, 0.1)).leakage
    assert found is not None
    assert np.isfinite([found.bits, found.floor]).all()


def test_bits_are_refused_where_they_are_not_known():
    for call in (lambda **o: trimmed_mean(FINE, 1, **o), lambda **o: coordinate_median(FINE, weights=[1, 2, 3], **o)):
        with pytest.raises(InputError, match="not known in bits"):
            call(prior=midst.priors.Normal(), bounds=(0, 1e6), resolution=0.5)


def test_a_tree_has_few_children_where_the_graph_allows_it():
    for kind in ("complete", "ring", "path", "grid", "rgg"):
        graph = midst.graphs.make(kind, 16, rng=3)
        tree = spanning_tree(graph)
        assert sum(parent == i for i, parent in enumerate(tree.parents)) == 1
        assert all(parent == i or parent in graph.neighbours(i) for i, parent in enumerate(tree.parents))
        if kind != "rgg":
            assert max(map(len, tree.children)) <= 2
    star = spanning_tree(midst.graphs.from_edges(6, [(0, k) for k in range(1, 6)]))
    assert star.depth == 1
    assert spanning_tree(midst.graphs.make("complete", 10)).depth == 3


def test_poisoned_clients_move_the_mean_and_not_the_median():
    honest = normal(8, 40, seed=3)
    poisoned = [np.full(40, 1e6)] * 3
    found = coordinate_median([*honest, *poisoned])
    assert np.array_equal(found.value, np.median([*honest, *poisoned], axis=0))
    assert (found.value <= np.max(honest, axis=0)).all()
    assert (np.mean([*honest, *poisoned], axis=0) > 1e5).all()


def test_repr_shows_no_number():
    updates = [np.full(3, SECRET)] * 3
    assert str(SECRET)[:5] not in repr(coordinate_median(updates))


# What is refused


class Unreadable:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"Got unsupported ScalarType BFloat16 {SECRET}")


FINE = [np.ones(2) * SECRET] * 3
A = {"a": FINE[0]}
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "mapping": ({"a": FINE[0]}, {}, r"list\(updates.values\(\)\)"),
    "iterator": (iter(FINE), {}, "must be a list"),
    "nobody": ([], {}, "at least three"),
    "two": (FINE[:2], {}, "each learns the other's"),
    "empty": ([[], [], []], {}, "the update is empty"),
    "no numbers": ([np.zeros(0)] * 3, {}, "the update is empty"),
    "missing": ([A | {"b": 1.0}, A, A], {}, "client 0 has an array 'b', client 1 has none"),
    "added": ([A, A, A | {"b": 1.0}], {}, "client 2 has an array 'b', client 0 has none"),
    "nested": ([{"a": [1, {"c": 2}]}, {"a": [1, 2]}, A], {}, "client 1 has an array 'a.1', client 0 has none"),
    "one name twice": ([{"a": {"b": 1.0}, "a.b": 1.0}] * 3, {}, "two arrays named 'a.b'"),
    "shape": ([{"w": np.ones((2, 3))}, {"w": np.ones(2)}, {"w": np.ones(2)}], {}, r"client 1: 'w' has shape \(2,\)"),
    "dtype": ([FINE[0], FINE[0], FINE[0].astype(np.float32)], {}, "client 2: the array has dtype float32"),
    "nan": ([FINE[0], FINE[0], np.array([SECRET, np.nan])], {}, "client 2: the array has an entry that is not finite"),
    "infinite": ([{"w": FINE[0]}, {"w": FINE[0] * np.inf}, {"w": FINE[0]}], {}, "client 1: .w. has an entry that"),
    "complex": ([FINE[0] * 1j] * 3, {}, "client 0: the array has dtype complex128"),
    "truth": ([np.array([True])] * 3, {}, "has dtype bool"),
    "words": ([np.array(["31337.4242"])] * 3, {}, "has dtype str"),
    "objects": ([np.array([None])] * 3, {}, "has dtype object"),
    "long": ([np.ones(1, np.longdouble)] * 3, {}, "has dtype"),
    "unreadable": ([Unreadable()] * 3, {}, "client 0: the array cannot be read as a NumPy array"),
    "outside": (FINE, {"bounds": (0, 1)}, "client 0: the array has an entry outside the public bounds"),
    "bounds reversed": (FINE, {"bounds": (1e9, 0)}, "the lower first"),
    "bounds alone": (FINE, {"bounds": 5}, "bounds must be two numbers"),
    "resolution alone": (FINE, {"resolution": 0.1}, "a resolution needs bounds"),
    "resolution": (FINE, {"resolution": -0.1, "bounds": (0, 1e6)}, "resolution must be a positive number"),
    "graph of another size": (FINE, {"graph": midst.graphs.ring(4)}, "3 updates for a graph of 4 nodes"),
    "graph unknown": (FINE, {"graph": "rign"}, "did you mean ring"),
    "no graph": (FINE, {"graph": 5}, "graph must be a midst.Graph"),
    "apart": (normal(4, 2), {"graph": midst.graphs.from_edges(4, [(0, 1), (2, 3)])}, "2 components"),
    "definition": (FINE, {"definition": "any"}, "definition must be inverted_cdf or inverted_cdf_high"),
    "weights": (FINE, {"weights": [1, -1, 1]}, "whole numbers from 0 on"),
    "half a weight": (FINE, {"weights": [1, 0.5, 1]}, "one whole number a client"),
    "masked": (np.ma.array([[1.0, 2.0]] * 3, mask=[[0, 1]] * 3), {}, "client 0: the array has a mask, or names"),
    "names": ([pd.Series([1.0, 2.0], index=["b", "a"])] * 3, {}, "client 0: the array has a mask, or names"),
    "a table": ([{"w": pd.DataFrame({"a": [1.0]})}] * 3, {}, "client 0: 'w' has a mask, or names"),
    "a whole number too large": ([[2**64], [1], [2]], {}, "client 0: '0' has dtype object"),
    "dates": ([np.array([1], "m8[s]")] * 3, {}, "has dtype timedelta64"),
    "masked weights": (FINE, {"weights": np.ma.array([1, 2, 3], mask=[0, 1, 0])}, "without a mask or names"),
    "weights with names": (FINE, {"weights": pd.Series([1, 2, 3], index=[2, 1, 0])}, "without a mask or names"),
    "no weight": (FINE, {"weights": [0, 0, 0]}, "not all of them 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    updates, options, message = REFUSED[name]
    told: list[object] = []
    with pytest.raises(InputError, match=message) as caught:
        coordinate_median(updates, **options, progress=lambda *done: told.append(done))
    assert "31337" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not told


def test_means_need_a_resolution_and_enough_clients():
    for call in (mean, lambda u: trimmed_mean(u, 1), lambda u: mean_around_median(u, 1)):
        with pytest.raises(InputError, match="needs public bounds and a resolution"):
            call(FINE)
    with pytest.raises(InputError, match="leaves none of 3 clients"):
        trimmed_mean(FINE, 2, bounds=(0, 1e6), resolution=1.0)
    with pytest.raises(InputError, match="whole number"):
        trimmed_mean(FINE, 0.1, bounds=(0, 1e6), resolution=1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nonsense"):
        coordinate_median(FINE, nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("q", [1.5, "half"])
def test_no_quantile(q):
    with pytest.raises(InputError, match="quantile must be"):
        coordinate_quantile(FINE, q)
    assert coordinate_quantile(FINE, Fraction(1, 3)).value.tolist() == [SECRET, SECRET]
