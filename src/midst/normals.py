"""The random numbers of z(0), by their place: those of an edge follow from a key, the run, and the edge's ends.

Rules:
- Threefry-2x64-20 (Salmon, Moraes, Dror and Shaw 2011) makes 128 bits of a key and a counter, without a state. So any
  edges of any runs may be drawn, in any order, by any number of threads or on a device: the numbers are the same.
- The counter of the edge {i, j}, i < j, in run r is (i·2^32 + j, r). Its bits make two normal numbers, after Box and
  Muller: the first is that of i's end, the second that of j's.
- Arrays are NumPy's, or those of a library that they name themselves (JAX's). A logarithm or a cosine may differ in its
  last bit between libraries, and between processors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from midst.protocol.keys import Words
from midst.types import Array, Ints

_ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)
_PARITY = 0x1BD11BDAA9FC1A22
_ROUNDS = 20
_TURN = 2 * np.pi * 2.0**-53
FARTHEST = 8.6  # no number is farther from 0: the square root of 2·53·log(2) is smaller
_NUMBERS = 16_000  # in an array at a time, so that all stay in the cache


class EdgeNormals(NamedTuple):
    """Standard normal numbers on the edges of one run, or of several.

    Attributes:
        key: two words, of all runs; or two rows of words, one a run.
        runs: the number of the run, or an array of them.
    """

    key: Words
    runs: Words

    @classmethod
    def drawn(cls, rng: np.random.Generator, first: int = 0, shape: tuple[int, ...] = ()) -> EdgeNormals:
        """With a key from a generator, of one run or of so many, from the first on."""
        key = rng.integers(0, 2**64, 2, np.uint64)
        return cls(key, np.uint64(first) + np.arange(np.prod(shape, dtype=int), dtype=np.uint64).reshape(shape))

    def some(self, which: Ints) -> EdgeNormals:
        """Of some of the runs."""
        return EdgeNormals(self.key if self.key.ndim == 1 else self.key[:, which], self.runs[which])

    def at(self, low: Ints, high: Ints) -> tuple[Array, Array]:
        """Of the lower ends of edges and of the higher ones, (edges,) or (edges, runs)."""
        column = (slice(None),) + (None,) * self.runs.ndim
        places = edge_words(low, high)[column]
        lower, upper = (np.empty((len(low), *self.runs.shape)) for _ in range(2))
        for block in _blocks(len(low), self.runs.size):
            lower[block], upper[block] = normal_pairs(self.key, places[block], self.runs)
        return lower, upper

    def on(self, low: Ints, high: Ints) -> tuple[Array, Array]:
        """The same of one edge in each of the runs."""
        places = edge_words(low, high)
        lower, upper = np.empty(len(low)), np.empty(len(low))
        for block in _blocks(len(low), 1):
            key = self.key if self.key.ndim == 1 else self.key[:, block]
            lower[block], upper[block] = normal_pairs(key, places[block], self.runs[block])
        return lower, upper


def _blocks(edges: int, runs: int) -> list[slice]:
    step = max(1, _NUMBERS // max(1, runs))
    return [slice(k, k + step) for k in range(0, edges, step)]


def edge_words(low: Any, high: Any) -> Any:
    """The first word of the counter of each edge."""
    return (low.astype(np.uint64) << np.uint64(32)) | high.astype(np.uint64)


def normal_pairs(key: Any, places: Any, runs: Any) -> tuple[Any, Any]:
    """Two normal numbers each, of a key, of the places of edges (`edge_words`) and of runs, which broadcast."""
    first, second = threefry(key, (places, runs))
    xp = np if isinstance(first, np.ndarray) else first.__array_namespace__()
    shift = np.uint64(11)
    radius = xp.sqrt(-2.0 * xp.log(1.0 - (first >> shift).astype(np.float64) * 2.0**-53))
    angle = (second >> shift).astype(np.float64) * _TURN
    return radius * xp.cos(angle), radius * xp.sin(angle)


def threefry(key: Any, counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two words of a key and a counter of two words each: arrays that broadcast, not all of them single numbers."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint64(_PARITY))
    nothing = (counter[0] & np.uint64(0)) ^ (counter[1] & np.uint64(0))  # of the shape of both
    first, second = nothing + counter[0] + keys[0], nothing + counter[1] + keys[1]
    for k in range(_ROUNDS):
        first += second
        turn = _ROTATIONS[k % 8]
        right = second >> np.uint64(64 - turn)
        second <<= np.uint64(turn)
        second |= right
        second ^= first
        if k % 4 == 3:
            done = k // 4 + 1
            first += keys[done % 3]
            second += keys[(done + 1) % 3]
            second += np.uint64(done)
    return first, second
