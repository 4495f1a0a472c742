"""Who is kept of those that nobody knows yet."""

from __future__ import annotations

import random
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst.net.transports.strangers import OF_ONE, STRANGERS, Strangers, source_of


@given(seed=st.integers(0, 2**32), sources=st.integers(1, 8), most=st.integers(2, 40))
def test_there_are_never_too_many_and_nobody_goes_without_need(seed: int, sources: int, most: int) -> None:
    rng = random.Random(seed)
    strangers: Strangers[int] = Strangers()
    strangers.most, strangers.of_one = most, max(1, most // 2)
    kept: dict[int, str] = {}
    for k in range(200):
        if kept and rng.random() < 0.2:
            gone = rng.choice(list(kept))
            strangers.discard(gone)
            strangers.discard(gone)
            del kept[gone]
        host = f"10.0.0.{rng.randrange(sources)}"
        same = [one for one, where in kept.items() if where == host]
        leaving = strangers.add(k, host)
        if len(same) == strangers.of_one:
            assert leaving in same
        elif len(kept) == most:
            assert leaving in kept
        else:
            assert leaving is None
        kept.pop(-1 if leaving is None else leaving, None)
        kept[k] = host
        assert len(strangers) == len(kept)
        assert all(one in strangers for one in kept)
    for one in kept:
        strangers.discard(one)
    assert len(strangers) == 0
    assert not strangers._by_source


def test_one_source_cannot_push_out_another() -> None:
    strangers: Strangers[int] = Strangers()
    strangers.add(-1, "10.0.0.1")
    for k in range(10 * STRANGERS):
        strangers.add(k, "10.0.0.2")
    assert -1 in strangers
    assert len(strangers) == 1 + OF_ONE


def test_a_handshake_lives_as_long_as_it_says() -> None:
    """(1 - 1/P)^(rT): from the flood's own address, 250 a second for 120 ms; the oldest would always be gone by 256."""
    lived = []
    for arrivals in (30, 256):
        count = 0
        for _ in range(400):
            strangers: Strangers[int] = Strangers()
            strangers.of_one = 64
            for k in range(-64, arrivals // 4):  # a quarter of everything, to be quicker
                if k == 0:
                    strangers.add(10**6, "10.0.0.1")
                strangers.add(k, "10.0.0.1")
            count += 10**6 in strangers
        lived.append(count / 400)
    assert lived[0] == pytest.approx((1 - 1 / 64) ** 7, abs=0.08)
    assert lived[1] == pytest.approx((1 - 1 / 64) ** 64, abs=0.1)


def test_what_is_one_source() -> None:
    assert source_of("192.0.2.1") != source_of("192.0.2.2")
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:1") == source_of("2001:db8::1%eth0")
    assert source_of("2001:db8:0:1::1") != source_of("2001:db8:0:2::1")
    assert source_of("::ffff:192.0.2.1") == source_of("192.0.2.1")
    assert source_of("an unknown address") == "an unknown address"


def test_they_leave_room_for_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    strangers: Strangers[int] = Strangers()
    assert (strangers.most, strangers.of_one) == (128, 64)
