from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_network import charter_of, setup_of
from simnet.faults import NONE
from simnet.trial import random_charter
from simnet.world import World

from midst.errors import InputError
from midst.net.iteration import normals


def test_draws_are_standard_normal_and_never_further_out_than_the_limits_allow():
    drawn = normals(Random(1).randbytes, (200_000,))
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 1) < 0.01
    assert abs((drawn**4).mean() - 3) < 0.1
    worst = normals(lambda count: bytes(count), (4,)), normals(lambda count: b"\xff" * count, (4,))
    assert np.abs(worst).max() < 9


def test_z0_has_the_charters_mean_and_deviation():
    setup = setup_of(charter_of(7, [(3, j) for j in (0, 1, 2, 4, 5, 6)], mu=0.7, sigma=0.2), "dan", 1.0)
    rng = Random(2)
    z = np.array([setup.iteration.z_of(setup.draw(rng.randbytes)) for _ in range(4000)])
    sign = setup.iteration.node.sign
    assert (z * sign).mean() == pytest.approx(0.7, abs=0.01)
    assert z.std(axis=0) == pytest.approx(0.2, abs=0.01)
    assert np.abs(np.corrcoef((z * sign).T) - np.eye(6)).max() < 0.06


def test_two_draws_have_nothing_in_common():
    setup = setup_of(charter_of(), "ann", 1.0)
    one, other = setup.draw(os.urandom), setup.draw(os.urandom)
    for name in ("instance", "z", "secret"):
        assert getattr(one, name) != getattr(other, name)


@pytest.mark.parametrize("value", [10.5, -11.0, float("nan"), float("inf"), [1.0, 2.0], []])
def test_a_value_the_charter_does_not_allow_is_refused_without_being_repeated(value):
    with pytest.raises(InputError) as caught:
        setup_of(charter_of(), "ann", value)
    assert "10.5" not in str(caught.value)
    assert "ann" in str(caught.value)


def test_a_stranger_has_no_seat():
    with pytest.raises(InputError, match="no participant"):
        setup_of(charter_of(), "zoe", 1.0)


def test_a_seat_shows_nothing_of_its_value():
    setup = setup_of(charter_of(), "ann", 1.2345678)
    opening = setup.draw(Random(0).randbytes)
    shown = "".join(map(repr, (setup, setup.iteration, setup.iteration.node, setup.iteration.node.terms, opening)))
    assert "1.23" not in shown
    assert repr(opening.z)[2:-1] not in shown


@given(st.integers(0, 2**32))
def test_an_honest_run_stays_far_inside_the_limits(seed):
    """No frame of a fault-free run is refused, and x keeps a wide margin."""
    charter, values = random_charter(seed, "consensus")
    setups = [setup_of(charter, name, value) for name, value in zip(charter.names, values, strict=True)]
    world = World(setups, seed, NONE)
    world.run()
    largest = max(abs(np.frombuffer(x)[0]) for one in world.participants for x in one.trajectory.values())
    assert largest * 2 < setups[0].iteration.limits.x[1]


def test_limits_depend_on_the_charter_alone():
    limits = {setup_of(charter_of(), name, value).iteration.limits for name, value in (("ann", 1.0), ("ben", -9.0))}
    assert len(limits) == 1


def test_a_seat_of_a_search_has_no_iteration_and_takes_lists():
    setup = setup_of(charter_of(method="search", pooled=True), "ben", [3.0, -1.0, 2.0])
    assert setup.iteration is None
    opening = setup.draw(Random(0).randbytes)
    assert opening.z == b""
    keys = setup.charter.keys
    (own,) = setup.holding(opening).keys
    assert own.tolist() == [keys.key(value) for value in (3.0, -1.0, 2.0)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0, float("nan")], "not a number between"),
        ([], "no value for ben; a list needs at least one number"),
        ([1.0, 31.337], "not a number between the charter's bounds, -10 and 10"),
    ],
)
def test_a_list_that_cannot_be_is_refused_without_being_repeated(value, words):
    with pytest.raises(InputError, match=words) as caught:
        setup_of(charter_of(method="search", pooled=True), "ben", value)
    assert "31.337" not in str(caught.value)
