"""Masks leave totals as they are and hide everything else."""

from __future__ import annotations

import hashlib
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from search_strategies import cases, own_values, play

from midst.protocol.keys import MODULUS
from midst.protocol.masks import hide, hides, pair_key, pair_mask, public_key
from midst.protocol.search import contribution, widths

CHARTER = b"c" * 32
CONTEXT = b"t" * 32


def secret_of(number):
    return hashlib.sha256(f"secret {number}".encode()).digest()


def identity(number, instance=0, public=None):
    """Number, instance and public key, as bytes of fixed length."""
    return bytes([number]) + bytes([instance]) * 16 + (public_key(secret_of(number)) if public is None else public)


def keys_of_all(n):
    """Each participant's pair keys, by the other's number, as each derives them alone."""
    everybody = range(n)
    return [
        {
            j: pair_key(secret_of(i), public_key(secret_of(j)), CHARTER, identity(min(i, j)), identity(max(i, j)))
            for j in everybody
            if j != i
        }
        for i in everybody
    ]


def random_keys(n, rng):
    """Pair keys of nobody in particular."""
    drawn = {pair: rng.bytes(32) for pair in combinations(range(n), 2)}
    return [{j: drawn[min(i, j), max(i, j)] for j in range(n) if j != i} for i in range(n)]


def total_of(contributions):
    return tuple(sum(column) % MODULUS for column in zip(*contributions, strict=True))


def test_both_ends_of_a_pair_have_one_key():
    keys = keys_of_all(4)
    for i, j in combinations(range(4), 2):
        assert keys[i][j] == keys[j][i]
    assert len({keys[i][j] for i, j in combinations(range(4), 2)}) == 6


@given(st.integers(2, 8), st.integers(1, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_contributions_add_up_to_the_plain_total(n, count, seed):
    rng = np.random.default_rng(seed)
    keys = random_keys(n, rng)
    answers = rng.integers(0, 2**63, (n, count), np.uint64).tolist()
    hidden = [hide(answers[i], i, keys[i], CONTEXT, [1] * len(answers[i])) for i in range(n)]
    assert all(0 <= number < MODULUS for each in hidden for number in each)
    assert total_of(hidden) == total_of(answers)


@given(cases(most=6, coordinates=2, goals=2))
@settings(max_examples=25)
def test_search_behind_masks_is_the_search(case):
    keys = random_keys(len(case.participants), np.random.default_rng(1))
    for step, (question, totals) in enumerate(play(case)[1]):
        context = hashlib.sha256(bytes([step])).digest()
        hidden = [
            hide(contribution(question, own_values(each.keys), each.weight), i, keys[i], context, widths(question))
            for i, each in enumerate(case.participants)
        ]
        assert total_of(hidden) == totals


def test_those_who_were_told_different_things_do_not_cancel():
    keys = keys_of_all(3)
    contexts = [CONTEXT, CONTEXT, b"u" * 32]
    totals = total_of(hide([1] * 40, i, keys[i], contexts[i], [1] * 40) for i in range(3))
    assert len(set(totals)) == 40
    assert min(totals) > 2**40  # noise: a chance of 1 in 400,000 that one of these is small


def test_mask_is_the_same_for_the_same_step_and_longer_ones_begin_with_shorter():
    key = keys_of_all(2)[0][1]
    long = pair_mask(key, CONTEXT, 100)
    assert len(set(long)) == 100
    for count in (1, 7, 8, 9, 16):
        assert pair_mask(key, CONTEXT, count) == long[:count]
    assert not set(long) & set(pair_mask(key, b"u" * 32, 100))


def test_pair_key_tells_apart_all_that_pairs_are_told_apart_by():
    other, charter = public_key(secret_of(2)), b"d" * 32
    plain = identity(1), identity(2)
    variants = [
        (CHARTER, *plain),
        (charter, *plain),
        (CHARTER, identity(0, public=public_key(secret_of(1))), plain[1]),
        (CHARTER, plain[0], identity(3, public=other)),
        (CHARTER, identity(1, instance=1), plain[1]),
        (CHARTER, plain[0], identity(2, instance=1)),
        (CHARTER, identity(1, public=public_key(secret_of(9))), plain[1]),
    ]
    derived = [pair_key(secret_of(1), other, *variant) for variant in variants]
    assert len(set(derived)) == len(derived)
    assert all(len(key) == 32 for key in derived)


def test_copied_public_key_gives_other_masks():
    """Participant 2 announces the key of 1: at 0, their masks must not be the same, of opposite signs or not."""
    copied = public_key(secret_of(1))
    honest = pair_key(secret_of(0), copied, CHARTER, identity(0), identity(1))
    copy = pair_key(secret_of(0), copied, CHARTER, identity(0), identity(2, public=copied))
    masks = np.array([pair_mask(key, CONTEXT, 8) for key in (honest, copy)], np.uint64)
    assert (masks[0] != masks[1]).all()
    assert (masks[0] + masks[1] != 0).all()


@pytest.mark.parametrize(
    "point",
    [
        bytes(32),
        (1).to_bytes(32, "little"),
        bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
        (2**255 - 20).to_bytes(32, "little"),
        (2**255 - 19).to_bytes(32, "little"),
        (2**255 - 18).to_bytes(32, "little"),
    ],
)
def test_key_of_low_order_is_refused(point):
    assert not hides(point)
    assert hides(public_key(secret_of(0)))


@pytest.mark.parametrize("split", [(3, 5), (8, 0), (2**40, 2**64 + 8 - 2**40)])
def test_coalition_sees_the_honest_total_and_nothing_of_who_has_what(split):
    """Of four, 2 and 3 know all masks but the one between 0 and 1.

    What is left of the contribution of 0 is then as good as drawn at random, whatever it answered, and that of 1 is
    the honest total less it.
    """
    rng = np.random.default_rng(5)
    left = []
    for _ in range(4000):
        keys = random_keys(4, rng)
        seen = []
        for i in (0, 1):
            (hidden,) = hide([split[i]], i, keys[i], CONTEXT, [1])
            known = sum(pair_mask(keys[i][j], CONTEXT, 1)[0] for j in (2, 3))  # both have higher numbers: i adds them
            seen.append((hidden - known) % MODULUS)
        assert sum(seen) % MODULUS == 8
        left.append(seen[0])
    for shift in (0, 30, 59):
        assert chisquare(np.bincount([(number >> shift) % 32 for number in left], minlength=32)).pvalue > 1e-4


def test_same_contributions_are_explained_by_any_split_of_the_honest_total(monkeypatch):
    """For every other split there is one mask between the two with which they contribute the very same."""
    keys = random_keys(4, np.random.default_rng(6))

    def contribute(split):
        return [hide([answer], i, {1 - i: keys[i][1 - i]}, CONTEXT, [1]) for i, answer in enumerate(split)]

    mask = pair_mask(keys[0][1], CONTEXT, 1)[0]
    seen = contribute((3, 5))
    for first in range(9):
        monkeypatch.setattr("midst.protocol.masks.pair_mask", lambda *_, by=first: ((mask + 3 - by) % MODULUS,))
        assert contribute((first, 8 - first)) == seen
        assert contribute((first, 9 - first)) != seen


def test_lower_number_adds():
    keys = keys_of_all(2)
    mask = pair_mask(keys[0][1], CONTEXT, 3)
    assert hide([0, 0, 0], 0, keys[0], CONTEXT, [1] * 3) == mask
    assert hide([0, 0, 0], 1, keys[1], CONTEXT, [1] * 3) == tuple(-number % MODULUS for number in mask)
    assert all(one != two for one, two in pairwise(mask))
