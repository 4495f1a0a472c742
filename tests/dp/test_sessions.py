"""Sessions on one quantity: which are too near each other, what counts, and what they told together."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searches import search_trace

from midst import InputError
from midst.dp.ledger import Budget, BudgetError, Entry, Ledger, entry_of
from midst.dp.sessions import KnownSession, Member, differences
from midst.privacy.audit import audit
from midst.privacy.priors import Uniform

DATUM = 48_213.75
PRIOR = Uniform(0, 100_000)


def session_of(name, *people, weights=None):
    """A session of people; who has a new certificate is written with an exclamation mark."""
    members = [Member(each.strip("!"), f"print of {each}", (weights or {}).get(each, 1)) for each in people]
    return KnownSession(name, name.encode().hex(), tuple(members))


EVERYBODY = ("ann", "ben", "cat", "dan", "eve")


def begun(path, *sessions, budget=None):
    ledger = Ledger.new(path, budget)
    for each in sessions:
        ledger.begin(each, DATUM)
    return ledger


def refused(path, session, match, datum=DATUM):
    """Refused in one line, and the ledger is as it was; by `require_session` too, which only asks."""
    before = path.read_bytes()
    for action in (Ledger.open(path).begin, Ledger.open(path).require_session):
        with pytest.raises(InputError, match=match) as refusal:
            action(session, datum)
        assert "\n" not in str(refusal.value)
        assert "48213" not in str(refusal.value)
        assert path.read_bytes() == before
    return refusal.value


# Who differs


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_participants_in_one_of_two_sessions_are_counted(one, other):
    here, there = ([Member(f"p{i}", f"print {i}") for i in sorted(each)] for each in (one, other))
    assert differences(here, there) == len(one ^ other) == differences(there, here)


def test_a_renewed_certificate_or_another_name_is_the_same_participant():
    ann, renewed, renamed = Member("ann", "first"), Member("ann", "second"), Member("anna", "first")
    assert differences([ann], [renewed]) == differences([ann], [renamed]) == 0
    assert differences([renewed], [renamed]) == 2


def test_another_weight_is_a_difference():
    """Weight 0 is to stay away by another name."""
    here, there = (session_of("s", *EVERYBODY, weights=each).members for each in ({}, {"ben": 0, "cat": 2}))
    assert differences(here, there) == 2


@pytest.mark.parametrize(
    ("people", "by"),
    [
        (EVERYBODY[:-1], "one participant"),
        ((*EVERYBODY, "fay"), "one participant"),
        ((*EVERYBODY[:-1], "fay"), "2 participants"),
        ((*EVERYBODY, "fay", "gus"), "2 participants"),
        (("ann!", "ben!", "cat!", "dan!"), "one participant"),
    ],
)
def test_a_session_that_differs_by_one_or_two_is_refused(path, people, by):
    begun(path, session_of("may", *EVERYBODY))
    error = refused(path, session_of("june", *people), f"june differs from may .never heard of again. by {by}: both")
    assert str(error).endswith("wait until 3 differ, or give --despite-ledger")


@pytest.mark.parametrize(
    "people", [EVERYBODY, EVERYBODY[::-1], (*EVERYBODY, "fay", "gus", "hal"), EVERYBODY[:2], ("x", "y", "z")]
)
def test_the_same_participants_or_three_others_are_not(path, people):
    ledger = begun(path, session_of("may", *EVERYBODY), session_of("june", *people))
    assert [each.name for each in ledger.sessions] == ["may", "june"]
    assert Ledger.open(path).sessions == ledger.sessions


def test_every_earlier_session_counts_whatever_became_of_it(path):
    far = (*EVERYBODY, "fay", "gus", "hal")
    ledger = begun(path, session_of("may", *EVERYBODY), session_of("june", *far))
    for state in ("silent", "aborted", "over"):
        ledger.finish(session_of("may").digest, Entry(), state)
        refused(path, session_of("july", *EVERYBODY[1:]), "july differs from may")
        refused(path, session_of("july", *far[1:]), "july differs from june")


def test_a_session_that_has_begun_is_not_refused_and_counts_once(path):
    may = session_of("may", *EVERYBODY)
    ledger = begun(path, may, budget=Budget(max_runs=1))
    ledger.begin(may, DATUM)
    Ledger.open(path).require_session(may, DATUM)
    assert ledger.totals().runs == 1
    error = refused(path, session_of("june", *EVERYBODY), "past the budget .runs 2 of 1")
    assert isinstance(error, BudgetError)


def test_overridden_it_is_entered(path):
    ledger = begun(path, session_of("may", *EVERYBODY), budget=Budget(max_runs=1))
    ledger.begin(session_of("june", *EVERYBODY[1:]), DATUM, despite=True)
    assert [each.name for each in Ledger.open(path).sessions] == ["may", "june"]


def test_another_value_is_refused_and_overridden_adds_up(path):
    may = session_of("may", *EVERYBODY)
    ledger = begun(path, may)
    ledger.finish(may.digest, Entry(bits=1.5), "over", PRIOR)
    june = session_of("june", *EVERYBODY)
    refused(path, june, "another value than the one this ledger is kept for", datum=48_000.0)
    other = Ledger.open(path)
    other.begin(june, 48_000.0, despite=True)
    totals = other.finish(june.digest, Entry(lower=47_000, upper=48_100, bits=2.0), "over", PRIOR)
    assert (totals.bits, totals.kind, totals.lower, totals.upper) == (3.5, "indication", (-inf,), (inf,))
    assert b"48000" not in path.read_bytes()
    again = Ledger.open(path)
    again.begin(session_of("july", *EVERYBODY), DATUM)
    assert (again.totals().bits, again.totals().kind) == (3.5, "indication")


def test_an_empty_ledger_takes_any_value_and_asking_leaves_it_so(path):
    ledger = Ledger.new(path)
    ledger.require_session(session_of("may", *EVERYBODY), DATUM)
    assert not Ledger.open(path).sealed
    ledger.begin(session_of("may", *EVERYBODY), DATUM)
    assert Ledger.open(path).sealed


# What they told

VALUES = [DATUM, 20_000.0, 30_000.0, 61_000.0, 77_000.0]


def told(values=VALUES, **more):
    return entry_of(search_trace(values, bounds=(0, 100_000), **more), 0, PRIOR)


def test_sessions_are_joined_as_the_audit_joins_runs(path):
    may, june, july = (session_of(name, *EVERYBODY) for name in ("may", "june", "july"))
    ledger = begun(path, may)
    assert (ledger.totals().bits, ledger.totals().kind, ledger.totals().floor) == (0, "indication", None)
    alone = audit(search_trace(VALUES, bounds=(0, 100_000)), None, PRIOR).bits[0]
    first = ledger.finish(may.digest, told(), "over", PRIOR)
    assert (first.bits, first.kind, first.runs) == (alone, "exact", 1)
    ledger.begin(june, DATUM, prior=PRIOR)
    assert ledger.totals().kind == "indication", "what it tells is not known yet"
    again = ledger.finish(june.digest, told(), "over", PRIOR)
    assert (again.bits, again.kind, again.floor, again.runs) == (first.bits, "exact", first.floor, 2)
    ledger.begin(july, DATUM, prior=PRIOR)
    more = ledger.finish(july.digest, told(q=1.0), "over", PRIOR)
    assert (more.kind, more.runs) == ("exact", 3)
    assert more.bits != again.bits
    assert Ledger.open(path, DATUM).totals() == more


def test_what_is_over_is_not_changed(path):
    may = session_of("may", *EVERYBODY)
    ledger = begun(path, may)
    totals = ledger.finish(may.digest, told(), "over", PRIOR)
    before = path.read_bytes()
    assert ledger.finish(may.digest, Entry(), "silent", PRIOR) == totals
    assert path.read_bytes() == before


def test_one_aborted_before_the_value_counted_tells_nothing(path):
    may, june = session_of("may", *EVERYBODY), session_of("june", *EVERYBODY)
    ledger = begun(path, may, june)
    ledger.finish(may.digest, Entry(), "silent", PRIOR)
    totals = ledger.finish(june.digest, told(), "over", PRIOR)
    assert (totals.kind, totals.runs) == ("exact", 2)


def test_one_aborted_on_the_way_is_added_up(path):
    """Others may know one answer more."""
    may, june = session_of("may", *EVERYBODY), session_of("june", *EVERYBODY)
    ledger = begun(path, may, june)
    ledger.finish(may.digest, told(), "over", PRIOR)
    totals = ledger.finish(june.digest, told(), "aborted", PRIOR)
    assert (totals.kind, totals.bits) == ("indication", pytest.approx(2 * told().bits))


def test_sessions_of_other_participants_are_not_joined(path):
    """As many, and in the same places; and nothing in their totals contradicts."""
    may, june = session_of("may", *EVERYBODY), session_of("june", "ann", "w", "x", "y", "z")
    ledger = begun(path, may, june)
    ledger.finish(may.digest, told(), "over", PRIOR)
    totals = ledger.finish(june.digest, told(), "over", PRIOR)
    assert (totals.kind, totals.bits) == ("indication", pytest.approx(2 * told().bits))


def test_a_session_that_never_began_has_no_end(path):
    ledger = begun(path, session_of("may", *EVERYBODY))
    with pytest.raises(InputError, match="was begun with this ledger"):
        ledger.finish("00" * 32, Entry(), "over")


def test_the_file_does_not_hold_the_value(path):
    ledger = begun(path, session_of("may", *EVERYBODY))
    ledger.finish(session_of("may").digest, told([DATUM, 20_000.0, 48_000.0, 61_000.0, 40_000.5]), "over", PRIOR)
    assert [each.state for each in Ledger.open(path).sessions] == ["over"]
    assert str(DATUM).encode() not in path.read_bytes()
