"""Random numbers by their place: a published generator, the normal law, whatever way they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from midst import graphs, normals
from midst.normals import FARTHEST, EdgeNormals, edge_words, normal_pairs, threefry
from midst.system import noise_on_edges

ALL = 2**64 - 1
KNOWN = [  # of the authors of Random123, for threefry2x64 with 20 rounds: key, counter, words
    ((0, 0), (0, 0), (0xC2B6E3A8C2C69865, 0x6F81ED42F350084D)),
    ((ALL, ALL), (ALL, ALL), (0xE02CB7C4D95D277A, 0xD06633D0893B8B68)),
    (
        (0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x243F6A8885A308D3, 0x13198A2E03707344),
        (0x263C7D30BB0F0AF1, 0x56BE8361D3311526),
    ),
]


def words(*numbers):
    return np.array(numbers, np.uint64)


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_known_answers(key, counter, expected):
    found = threefry(words(*key), (words(counter[0]), words(counter[1])))
    assert [int(word[0]) for word in found] == list(expected)


def test_the_law():
    """Both ends of an edge, over edges and over runs: normal, of mean 0 and variance 1, and independent."""
    drawn = EdgeNormals.drawn(np.random.default_rng(1), shape=(400,))
    edges = np.arange(500)
    low, high = drawn.at(edges, edges + 1 + edges % 7)
    for numbers in (low, high):
        assert stats.kstest(numbers.ravel(), "norm").pvalue > 1e-3
        assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.01
        assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(low.ravel(), high.ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(low.ravel() ** 2, high.ravel() ** 2)[0, 1]) < 0.01


def test_no_number_is_farther():
    """Where the first word is largest, the radius is."""
    assert np.sqrt(-2 * np.log(2.0**-53)) < FARTHEST < np.sqrt(-2 * np.log(2.0**-54))


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 3))
def test_blocks_runs_and_edges_change_nothing(seed, size, first):
    """Some runs, some edges, or one edge in each run: what all at once gives, whatever the size of a block."""
    drawn = EdgeNormals.drawn(np.random.default_rng(seed), first, (7,))
    low = np.array([0, 0, 3, 9, 2**31])
    high = np.array([1, 5, 4, 12, 2**32 - 1])
    whole = drawn.at(low, high)
    before, normals._NUMBERS = normals._NUMBERS, size
    try:
        for expected, found in zip(whole, drawn.at(low, high), strict=True):
            np.testing.assert_array_equal(found, expected)
        for expected, found in zip(whole, drawn.some(np.array([6, 2])).at(low[1:3], high[1:3]), strict=True):
            np.testing.assert_array_equal(found, expected[1:3][:, [6, 2]])
        for expected, found in zip(whole, drawn.some(np.array([5, 1])).on(low[:2], high[:2]), strict=True):
            np.testing.assert_array_equal(found, expected[[0, 1], [5, 1]])
    finally:
        normals._NUMBERS = before
    alone = EdgeNormals.drawn(np.random.default_rng(seed), first + 3)
    for expected, found in zip(whole, alone.at(low, high), strict=True):
        np.testing.assert_array_equal(found, expected[:, 3])


def test_a_key_a_run():
    each = [EdgeNormals.drawn(np.random.default_rng(k)) for k in range(3)]
    together = EdgeNormals(np.column_stack([one.key for one in each]), np.zeros(3, np.uint64))
    ends = np.arange(4), np.arange(4) + 2
    for k, one in enumerate(each):
        np.testing.assert_array_equal(together.at(*ends)[0][:, k], one.at(*ends)[0])
    np.testing.assert_array_equal(
        together.on(np.zeros(3, int), np.ones(3, int))[1][2], each[2].at(*map(np.atleast_1d, (0, 1)))[1][0]
    )


def test_every_end_of_every_edge_has_its_own():
    """In the order of the graph's edges, and the same for the same pair of nodes in another graph."""
    drawn = EdgeNormals.drawn(np.random.default_rng(1))
    graph, larger = graphs.ring(9), graphs.complete(9)
    noise, more = noise_on_edges(graph, drawn), noise_on_edges(larger, drawn)
    assert len(np.unique(noise)) == 18
    place = {pair: k for k, pair in enumerate(zip(larger.source.tolist(), larger.target.tolist(), strict=True))}
    for k, pair in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True)):
        assert noise[k] == more[place[pair]]


def test_a_device_draws_the_same():
    """The words to the last bit; the numbers, by way of its own logarithm and cosine, but for that bit."""
    jax = pytest.importorskip("jax")
    drawn = EdgeNormals.drawn(np.random.default_rng(4), shape=(50,))
    places = edge_words(np.arange(30), np.arange(30) + 1)[:, None]
    expected = threefry(drawn.key, (places, drawn.runs)), normal_pairs(drawn.key, places, drawn.runs)
    with jax.enable_x64(True):
        there = [jax.numpy.asarray(part) for part in (drawn.key, places, drawn.runs)]
        found = threefry(there[0], tuple(there[1:])), normal_pairs(*there)
    for one, other in zip(expected[0], found[0], strict=True):
        np.testing.assert_array_equal(np.asarray(other), one)
    for one, other in zip(expected[1], found[1], strict=True):
        np.testing.assert_allclose(np.asarray(other), one, rtol=1e-14, atol=1e-15)
