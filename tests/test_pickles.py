"""Pickles of results: no private value in their bytes that neither the answer nor the messages contain.

Rules:
- A value is searched for as binary: its bits as float64, in both byte orders (48 bits of the mantissa, so in any
  power-of-two unit), as float32 and as the key of a search. It is searched for as text: its repr, its first ten digits,
  and its key. The value as rounded to the public resolution is searched for as well.
- Compressed and encoded parts are unpacked first, wherever in the bytes they lie.
- The messages are read from the trace of the same run with record "all"; the values among them are left out.
- The search is tried where it must find every value: in results that were asked to keep them.
"""

from __future__ import annotations

import bz2
import copy
import io
import lzma
import pickle
import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import midst
from midst import After, Certified, Consensus, InputError, Mean, Problem, Quantile, Result, Search, graphs
from midst.describing import describe
from midst.dp import JointNoise, LaplaceNoise
from midst.dp.mechanisms import privatise
from midst.engines.ensemble import NEVER, solve_ensemble
from midst.federated import coordinate_median
from midst.methods import Method
from midst.privacy.priors import Normal
from midst.protocol.keys import Floats, Grid
from midst.robust import Huber, ListMedian
from midst.studies.compare import compare

Floating = NDArray[np.float64]

RNG = np.random.default_rng(29)
VALUES = RNG.normal(500, 150, 15)
ROWS = RNG.normal(500, 150, (15, 3))
LISTS = [RNG.normal(500, 150, size) for size in (3, 1, 4, 2, 5)]
PUBLIC: dict[str, Any] = {"bounds": (-1000, 2000), "resolution": Fraction(1, 10**9)}
GRAPH, SMALL = graphs.rgg(15, rng=3), graphs.ring(5)


# Where a value is found


def traces_of(value: float) -> list[bytes]:
    """The bytes that reveal a value."""
    double, single = struct.pack("<d", value), struct.pack("<f", value)
    keys = [Floats().key(value), Grid(PUBLIC["resolution"]).key(value)]
    texts = [repr(value)[:12], f"{value:.10g}", value.hex()[4:12], *map(str, keys), *(f"{key:x}" for key in keys)]
    binary = [double[:6], single, *(key.to_bytes(9, "little")[:6] for key in keys)]
    return [*binary, *(part[::-1] for part in binary), *(text.encode() for text in texts)]


def parts_of(data: bytes) -> Iterator[bytes]:
    """The bytes, and what is compressed or encoded somewhere in them."""
    yield data
    for found in re.finditer(rb"x[\x01\x5e\x9c\xda]|\x1f\x8b|BZh|\xfd7zXZ|PK\x03\x04", data):
        with suppress(zlib.error, OSError, lzma.LZMAError, EOFError, struct.error, ValueError):
            yield from parts_of(unpacked(found[0], data[found.start() :]))
    for found in re.finditer(rb"[A-Za-z0-9+/]{64,}={0,2}", data):
        with suppress(ValueError):
            yield from parts_of(b64decode(found[0], validate=True))


def unpacked(mark: bytes, data: bytes) -> bytes:
    if mark == b"BZh":
        return bz2.BZ2Decompressor().decompress(data)
    if mark == b"\xfd7zXZ":
        return lzma.LZMADecompressor().decompress(data)
    if mark == b"PK\x03\x04":  # a member of an archive
        method, name, more = struct.unpack("<8xH16xHH", data[:30])
        if not method:
            raise ValueError("it is stored, and in the bytes as it is")
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[30 + name + more :])
    return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data)


def found_in(data: bytes, values: ArrayLike) -> int:
    """The number of the values that the bytes reveal."""
    parts = list(parts_of(data))
    patterns = [re.compile(b"|".join(map(re.escape, traces_of(value))), re.DOTALL) for value in flat(values).tolist()]
    return sum(any(pattern.search(part) for part in parts) for pattern in patterns)


def flat(values: Any) -> Floating:
    return np.concatenate([np.ravel(each) for each in values] if isinstance(values, list) else [np.ravel(values)])


def pickled(thing: object) -> list[bytes]:
    """By every protocol that writes arrays as they are."""
    return [pickle.dumps(thing, protocol) for protocol in range(3, pickle.HIGHEST_PROTOCOL + 1)]


def assert_none_in_pickles(thing: object, hidden: Floating) -> None:
    assert hidden.size
    for data in pickled(thing):
        assert found_in(data, hidden) == 0


def again(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("value", [VALUES[0], -VALUES[0], 1.2345678912e-5])
@pytest.mark.parametrize("pack", [bytes, zlib.compress, bz2.compress, lzma.compress])
def test_a_value_is_found_in_every_form(value: float, pack: Callable[[bytes], bytes]) -> None:
    key = Floats().key(float(value))
    forms = [np.array(value, form).tobytes() for form in ("<f8", ">f8", "<f4", ">f4")]
    forms += [repr(float(value)).encode(), f"{value:.15g}".encode(), pickle.dumps(value / 64)]
    forms += [pickle.dumps(key), str(key).encode(), key.to_bytes(8, "big")]
    for form in forms:
        assert found_in(b"before " + pack(b"x" * 100 + form) + b" after", value), form
    assert not found_in(pack(b"x" * 100), value)


# Results


def hidden_from(told: ArrayLike, values: Any, options: dict[str, Any]) -> Floating:
    """The values, as given and as a search rounds them, of which neither is among what was told."""
    given = flat(values)
    grid = Grid(options["resolution"]) if "resolution" in options else Floats()
    rounded = grid.values(grid.keys(given))
    hidden = ~np.isin(given, told) & ~np.isin(rounded, told)
    return np.unique(np.concatenate([given[hidden], rounded[hidden]]))


SEARCHES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a search": (VALUES, {}),
    "participants": (VALUES, {"engine": "reference"}),
    "weights": (VALUES, {"weights": np.arange(15) + 1}),
    "a midpoint": (VALUES[:14], {"objective": Quantile(0.5, "averaged_inverted_cdf"), **PUBLIC}),
    "rows": (ROWS, {}),
    "rows between bounds": (ROWS, PUBLIC),
    "lists": (LISTS, {"pooled": True}),
    "noise": (LISTS, {"pooled": True, "method": Search(noise=JointNoise(1e4, 0.01)), **PUBLIC}),
}
ITERATIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "exact": (VALUES, {"method": "consensus"}),
    "exact, between bounds": (VALUES, {"method": "consensus", **PUBLIC}),
    "rows, exact": (ROWS, {"method": "consensus"}),
    "certified": (VALUES, {"method": Consensus(stop=Certified())}),
    "some iterations": (VALUES, {"method": Consensus(stop=After(20))}),
    "edges": (VALUES, {"method": "consensus", "engine": "edges"}),
    "a mean": (VALUES, {"method": "consensus", "objective": Mean()}),
    "Huber": (VALUES, {"method": "consensus", "objective": Huber(50.0)}),
    "a list median": (LISTS, {"method": "consensus", "objective": ListMedian(), "pooled": True}),
}
ALL = SEARCHES | ITERATIONS


def solved(name: str, **options: Any) -> Result:
    values, others = ALL[name]
    settings = {"method": "search"} | others | options
    if name in SEARCHES:
        settings["record"] = "auto"
    of_problem = {key: settings.pop(key) for key in tuple(settings) if key in PROBLEM_OPTIONS}
    graph = SMALL if of_problem.get("pooled") else GRAPH if len(values) == 15 else graphs.ring(len(values))
    return midst.solve(Problem(graph, values, **of_problem), rng=5, throw=False, **settings)


PROBLEM_OPTIONS = ("weights", "objective", "bounds", "resolution", "pooled")


def private(name: str) -> Floating:
    """The values that neither the answer nor a message contains."""
    values, options = ALL[name]
    full = solved(name, record="all")
    return hidden_from([*np.ravel(full.value), *np.ravel(full.trace.x)], values, options)


@pytest.mark.parametrize("name", ALL)
def test_no_private_value_in_a_pickle_of_a_result_or_a_trace(name: str, tmp_path: Path) -> None:
    hidden = private(name)
    for record in ("none", "audit", "all") if name in ITERATIONS else ("auto",):
        result = solved(name, record=record)
        assert_none_in_pickles(result, hidden)
        assert_none_in_pickles(result.trace, hidden)
        if isinstance(result.trace.objective, Quantile | Mean):
            result.trace.save(tmp_path / "run.npz")
            assert found_in((tmp_path / "run.npz").read_bytes(), hidden) == 0


@pytest.mark.parametrize("name", ["certified", "some iterations", "exact"])
def test_iterations_hide_some_values_and_expose_others(name: str) -> None:
    """Otherwise the test above looks for nothing, or messages contain nothing."""
    assert 0 < len(private(name)) < len(VALUES)


@pytest.mark.parametrize("name", ALL)
def test_values_that_were_to_be_kept_are_kept_and_found(name: str, tmp_path: Path) -> None:
    values, _ = ALL[name]
    result = solved(name, keep_values=True)
    for thing in (result, result.trace):
        for data in pickled(thing):
            assert found_in(data, flat(values)) == flat(values).size
    if isinstance(result.trace.objective, Quantile | Mean):
        result.trace.save(tmp_path / "run.npz")
        assert found_in((tmp_path / "run.npz").read_bytes(), flat(values)) == flat(values).size


# After unpickling


def as_png(figure: Any) -> bytes:
    figure.savefig(file := io.BytesIO(), format="png", dpi=40)
    return file.getvalue()


@pytest.mark.parametrize("copied", [again, copy.deepcopy])
@pytest.mark.parametrize("name", ["a search", "rows", "lists", "exact", "exact, between bounds", "a mean", "noise"])
def test_an_unpickled_result_does_all_that_needs_no_values(name: str, copied: Callable[[Result], Result]) -> None:
    pandas = pytest.importorskip("pandas")
    result = solved(name, record="all")
    other = copied(result)
    assert repr(other) == repr(result)
    assert other.rows() == result.rows()
    assert other.to_dict() == result.to_dict()
    assert other.exposed == result.exposed
    assert other.trace.rows() == result.trace.rows()
    pandas.testing.assert_frame_equal(other.to_pandas(), result.to_pandas())
    if name != "noise":
        assert as_png(other.plot()) == as_png(result.plot())
        assert other.page() == result.page()
    if name not in ("noise", "a mean"):  # the audit on the page computes every value that a mean's messages reveal
        assert found_in(other.page().encode(), private(name)) == 0


@pytest.mark.parametrize("name", ["a search", "rows", "exact"])
@pytest.mark.parametrize("show", [Result.plot, Result.page])
def test_an_unpickled_result_refuses_what_needs_values(name: str, show: Callable[..., object]) -> None:
    result = solved(name, record="all")
    assert show(result, values=True)
    with pytest.raises(InputError, match=r"^this copy of a result has no private values; .*keep_values$"):
        show(again(result), values=True)
    kept = again(solved(name, record="all", keep_values=True))
    if show is Result.page:
        assert show(kept, values=True) == show(result, values=True)
        assert found_in(kept.page(values=True).encode(), flat(ALL[name][0]).reshape(15, -1)[:, 0]) == 15
    else:
        assert as_png(show(kept, values=True)) == as_png(show(result, values=True))


def test_nothing_is_written_where_values_are_missing(tmp_path: Path) -> None:
    other = again(solved("a search"))
    with pytest.raises(InputError, match="no private values"):
        other.page(tmp_path / "run.html", values=True)
    assert list(tmp_path.iterdir()) == []


# What is made of several runs


@pytest.mark.parametrize("public", [{}, PUBLIC])
@pytest.mark.parametrize("names", [["median"], ["quartiles", "p95", "mean", "std", "mad", "trimmed:0.2", "top:2"]])
def test_no_private_value_in_a_pickle_of_a_description(names: list[str], public: dict[str, Any]) -> None:
    found = describe(LISTS, SMALL, names, method="search", **public)
    search = found._search  # a trimmed mean makes both ends known, a mad the median
    told = [search.value(goal) for goal in range(len(search.rules.goals))]
    assert_none_in_pickles(found, hidden_from([*told, *flat(list(found.found[0].values()))], LISTS, public))
    other = again(found)
    assert (repr(other), other.to_dict()) == (repr(found), found.to_dict())
    assert other.leakage(Normal(500, 150)) == found.leakage(Normal(500, 150))
    assert other.plot() is not None


def test_no_private_value_in_a_pickle_of_a_description_by_consensus() -> None:
    found = describe(VALUES, GRAPH, ["quartiles", "p95"], method="consensus", rng=5)
    told = [each.value for each in found.runs.values()]
    for run in found.runs.values():
        problem = Problem(GRAPH, VALUES, objective=run.trace.objective)
        told.extend(np.ravel(midst.solve(problem, "consensus", rng=5, record="all").trace.x))
    assert_none_in_pickles(found, hidden_from(told, VALUES, {}))


@pytest.mark.parametrize("method", [Search(), Consensus(), Consensus(stop=Certified())])
def test_no_private_value_in_a_pickle_of_an_ensemble(method: Method) -> None:
    pytest.importorskip("pandas")
    values = np.random.default_rng(7).normal(500, 150, (4, 15))
    found = solve_ensemble([Problem(GRAPH, each) for each in values], method, rng=5)
    assert_none_in_pickles(found, values[~np.isin(values, found.value) & (found.first_inside == NEVER)])
    assert again(found).to_pandas().equals(found.to_pandas())
    assert as_png(again(found).plot()) == as_png(found.plot())


def test_no_private_value_in_a_pickle_of_mutual_information() -> None:
    values = np.random.default_rng(7).normal(500, 150, (15, 4))
    for problem, runs in ((Problem(GRAPH, values), None), (Problem(GRAPH, VALUES), 4)):
        found = midst.information(problem, "paper", prior=Normal(500, 150), runs=runs, rng=5)
        assert_none_in_pickles(found, problem.values)
        assert repr(again(found)) == repr(found)


def test_no_private_value_in_a_pickle_of_a_comparison() -> None:
    public = PUBLIC | {"resolution": Fraction(1, 100)}
    names = ["consensus-exact", "search-3", "curator", "local-noise", "subgradient"]
    found = compare(Problem(SMALL, VALUES[:5], **public), names, rng=5)
    assert_none_in_pickles(found, hidden_from([], VALUES[:5], public))
    assert again(found) == found


def test_no_private_value_in_a_pickle_of_an_audit_or_an_aggregate() -> None:
    leakage = midst.audit(solved("a search").trace, prior=Normal(500, 150))
    assert_none_in_pickles(leakage, private("a search"))
    aggregate = coordinate_median([{"w": row} for row in ROWS])
    assert_none_in_pickles(aggregate, hidden_from(aggregate.value["w"], ROWS, {}))


# Problems, which travel to other processes with their values


def test_a_problem_travels_with_its_values_and_not_with_those_before_noise() -> None:
    for options in ({}, {"scale": 10.0}):
        problem = Problem(GRAPH, VALUES, **options)
        noised = privatise(problem, LaplaceNoise(1.0, (0.0, 1000.0)), 5)
        assert_none_in_pickles(noised, VALUES)
        assert found_in(pickle.dumps(noised), noised.values) == len(VALUES)
        solve = partial(midst.solve, method="consensus", rng=5)
        assert solve(again(noised)).to_dict() == solve(noised).to_dict()
