"""Keys sort as the numbers do, and are those numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from midst import InputError
from midst.protocol.keys import MODULUS, SIGN, Floats, Grid, first_bracket, make_keys

LARGEST = float(np.finfo(np.float64).max)
numbers = st.floats(allow_nan=False, allow_infinity=False)
STEPS = "0.01 0.1 1 1/3 7 0.5 0.125 1e-9 1e-320 5e-324 1e-300 1e300 2e307 1e308".split()


@given(numbers)
@example(-0.0)
@example(5e-324)
@example(-LARGEST)
def test_a_float_is_its_key(value):
    key = Floats().key(value)
    assert 0 < key < MODULUS
    assert np.float64(Floats().value(key)).tobytes() == np.float64(value + 0.0).tobytes()


@given(numbers, numbers)
@example(0.0, 5e-324)
@example(-5e-324, 0.0)
@example(-0.0, 0.0)
def test_floats_sort_as_their_keys(one, two):
    keys = Floats()
    assert (one < two) == (keys.key(one) < keys.key(two))
    assert (one == two) == (keys.key(one) == keys.key(two))


@given(st.integers(first_bracket(Floats(), None)[0] + 1, first_bracket(Floats(), None)[1]))
@example(SIGN)
def test_every_key_of_a_bracket_is_a_float(key):
    value = Floats().value(key)
    assert np.isfinite(value)
    assert Floats().key(value) == key + (key == SIGN - 1)  # that of −0.0, which no value has


def test_neighbours_are_one_apart():
    for value in (0.0, 1.0, -1.0, 5e-324, 1e300, -1e-300):
        assert Floats().key(float(np.nextafter(value, np.inf))) - Floats().key(value) == 1 + (value == -5e-324)


@given(st.lists(numbers, max_size=20))
@example([-0.0, 0.0, 5e-324, -5e-324])
def test_keys_of_many_floats_are_those_of_each(values):
    keys = Floats().keys(np.array(values))
    assert keys.dtype == np.uint64
    assert keys.tolist() == [Floats().key(value) for value in values]
    assert Floats().values(keys).tolist() == values


def test_keys_keep_the_shape():
    values = np.array([[1.0, -0.0], [2.5, -3.0], [0.0, 1e9]])
    for keys in (Floats(), Grid(Fraction(1, 2))):
        found = keys.keys(values)
        assert found.shape == (3, 2)
        np.testing.assert_array_equal(keys.values(found), values)
        np.testing.assert_array_equal(keys.keys(values.T), found.T)


@st.composite
def on_a_grid(draw):
    """A resolution, and numbers about its multiples and about the middles between them."""
    step = Fraction(draw(st.sampled_from(STEPS)))
    values = []
    for _ in range(draw(st.integers(1, 8))):
        far = min(2**60, int(Fraction(LARGEST) / step))
        multiple = draw(st.integers(-far, far) | st.integers(-min(far, 50), min(far, 50)))
        exact = (multiple + Fraction(draw(st.integers(0, 2)), 2)) * step
        value = float(max(-Fraction(LARGEST), min(exact, Fraction(LARGEST))))
        values.append(float(np.nextafter(value, draw(st.sampled_from((value, 0.0, 1.0))))))
    return Grid(step), values


@given(on_a_grid())
@example((Grid(Fraction("0.01")), [0.005, 0.015, 0.025, -0.005, -0.015]))
@example((Grid(Fraction("0.5")), [0.25, 0.75, 1.25, -0.25, -0.75, -0.0]))
def test_grid_rounds_the_exact_quotient_half_to_even(case):
    grid, values = case
    keys = [grid.key(value) for value in values]
    for value, key in zip(values, keys, strict=True):
        exact = Fraction(value) / grid.step
        nearest = key - SIGN
        assert abs(exact - nearest) <= Fraction(1, 2)
        if abs(exact - nearest) == Fraction(1, 2):
            assert nearest % 2 == 0
    assert grid.keys(np.array(values)).tolist() == keys
    found = grid.values(np.array(keys, np.uint64)).tolist()
    assert found == [grid.value(key) for key in keys]


@given(st.sampled_from(STEPS), st.data())
def test_a_multiple_is_the_float_nearest_to_it(step, choose):
    grid = Grid(Fraction(step))
    far = min(2**60, int(Fraction(LARGEST) / grid.step))
    k = choose.draw(st.integers(-far, far))
    assert grid.value(k + SIGN) == float(k * grid.step)
    assert grid.values(np.array([k + SIGN], np.uint64)).tolist() == [float(k * grid.step)]
    assert grid.middle(2 * SIGN + k) == float(k * grid.step / 2)


def test_what_rounds_up_beyond_all_floats_is_the_largest():
    grid = make_keys("1e308")
    assert grid.key(LARGEST) == SIGN + 2
    assert grid.value(SIGN + 2) == LARGEST
    assert grid.values(np.array([SIGN - 2, SIGN + 1], np.uint64)).tolist() == [-LARGEST, 1e308]


@given(st.integers(-(2**61), 2**61 - 2), st.integers(2, 2**61), st.floats(0, 1))
def test_share_of_a_grid_is_near_its_place(low, width, f):
    grid = Grid(Fraction(1))
    a, b = low + SIGN, min(low + width, 2**61) + SIGN
    place = a + 1 + (b - a - 1) * Fraction(f)
    assert abs(grid.split(a, b, f) - place) <= 1 + Fraction(max(abs(a - SIGN), abs(b - SIGN)), 2**50)


def test_share_of_a_bracket_of_floats_is_by_value():
    keys = Floats()
    assert keys.value(keys.split(keys.key(2.0) - 1, keys.key(4.0), 0.25)) == 2.5
    assert keys.value(keys.split(*first_bracket(keys, None), 0.5)) == 0.0
    assert keys.split(*first_bracket(keys, None), -0.5) is None


@pytest.mark.parametrize("wrong", [0, -1, "0", "x", "nan", "inf", "1/0", 1e-400, "1e-400", "1e309", float("inf")])
def test_resolution_must_be_positive(wrong):
    with pytest.raises(InputError, match="resolution"):
        make_keys(wrong)


@pytest.mark.parametrize("given_as", ["0.01", 0.01, Fraction(1, 100)])
def test_resolution_is_the_decimal_as_written(given_as):
    assert make_keys(given_as) == Grid(Fraction(1, 100))


def test_no_resolution_is_all_floats():
    assert make_keys(None) == Floats()


@pytest.mark.parametrize("step", [None, *STEPS])
def test_first_bracket_holds_all_that_can_be_a_value(step):
    keys = make_keys(None if step is None else Fraction(step))
    a, b = first_bracket(keys, None)
    low, high = keys.ends
    assert 0 <= a < keys.key(low) <= keys.key(high) == b < MODULUS
    assert b - SIGN + b - SIGN < MODULUS // 2 or step is None
    assert keys.value(a + 1) <= 0.0 <= keys.value(b)


def test_bounds_are_inside_their_bracket():
    keys = Floats()
    assert first_bracket(keys, (-1.0, 2.0)) == (keys.key(-1.0) - 1, keys.key(2.0))
    assert first_bracket(keys, (3.0, 3.0)) == (keys.key(3.0) - 1, keys.key(3.0))


def test_bounds_too_far_for_the_resolution_are_refused():
    with pytest.raises(InputError, match="too fine"):
        first_bracket(make_keys("1e-9"), (0.0, 1e18))


def test_two_keys_of_any_bracket_add_up_below_the_modulus():
    """As sums are told, from the bracket's lower end; the next floats further out are refused."""
    keys, far = make_keys("1"), 2.0**61
    a, b = first_bracket(keys, (float(np.nextafter(-far, 0)), far))
    assert 2 * (b - a) < MODULUS
    for bounds in ((-far, far), (0.0, float(np.nextafter(far, np.inf)))):
        with pytest.raises(InputError, match="too fine"):
            first_bracket(keys, bounds)
