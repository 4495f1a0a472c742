"""Every state of a search among three, with one crash and one liar: all that must hold, holds in each of them."""

from __future__ import annotations

import os

import pytest

from simnet.states import BEHAVING, NAMES, Alphabet, Model

MOVED = ((-1, 1), (1, 0))  # what leads the search elsewhere, and what fits in there
HIDDEN = ((1, -1), (0, 1))  # what leads it to the same question, with other totals
PLAIN = {
    "two keys": Alphabet(2, MOVED[:1]),
    "other statements": Alphabet(1, HIDDEN[:1], kinds=True),
}
VERIFIED = Alphabet(1, proofs=True, masks=True)
TORTURE = "MIDST_RUNS" in os.environ
ALL_PLAIN = Alphabet(2, MOVED + HIDDEN, kinds=True, elsewhere=True, longer=True)
ALL_VERIFIED = Alphabet(2, kinds=True, elsewhere=True, longer=True, values=(4.0, 1.0), proofs=True, masks=True)


@pytest.mark.parametrize("verify", [False, True])
def test_with_a_liar_that_behaves_every_state_leads_to_the_right_answer(verify):
    model = Model(BEHAVING, verify)
    paths = model.explore()
    assert model.check(paths) == {}
    wrong, ends = model.check_ends(paths)
    assert wrong == {}
    assert set(ends) == {("answer", "answer"), ("waits", "waits")}
    assert {state[3] for state in paths} == {False, True}
    for state in paths:
        for stand in model.complete(state):
            assert stand.answer is not None, model.story(state, paths)
            assert (stand.answer.value, stand.answer.probes) == ((2.0,), 2)


def hold_everywhere(model):
    """All that must hold in every state: how many there are, how it ends, and which answers can be certified."""
    paths = model.explore()
    assert model.check(paths) == {}
    wrong, ends = model.check_ends(paths)
    assert wrong == {}
    answers = {stand.answer.value[0] for stand in model.stands if stand.answer}
    return len(paths), {kind for kinds in ends for kind in kinds}, answers


@pytest.mark.parametrize("name", PLAIN)
def test_with_any_liar_nobody_is_led_apart_or_left_waiting(name):
    states, ends, answers = hold_everywhere(Model(PLAIN[name]))
    assert ends >= {"answer", "equivocation", "impossible", "waits"}
    assert answers > {2.0} or name == "two keys", "a liar may choose another answer, so it could try to have two"
    assert states > 20_000


def test_with_verified_votes_a_liar_has_one_vote():
    """Totals are never impossible, and whatever it signs besides its vote moves no answer."""
    states, ends, answers = hold_everywhere(Model(VERIFIED, verify=True))
    assert ends == {"answer", "equivocation", "broken protocol", "false masks", "waits"}
    assert answers == {2.0}
    assert states > 15_000


@pytest.mark.torture
def test_with_all_that_a_liar_may_sign():
    states, _, _ = hold_everywhere(Model(ALL_PLAIN if TORTURE else Alphabet(2, kinds=True, longer=True)))
    assert states > (200_000 if TORTURE else 5_000)


@pytest.mark.torture
def test_with_all_that_a_liar_may_sign_where_votes_are_verified():
    states, ends, answers = hold_everywhere(Model(ALL_VERIFIED if TORTURE else Alphabet(1, values=(4.0, 1.0)), True))
    assert "impossible" not in ends
    assert answers == {1.0, 2.0, 3.0}
    assert states > (100_000 if TORTURE else 2_000)


def test_a_state_says_how_it_came_about():
    model = Model(BEHAVING)
    paths = model.explore()
    last = model.story(list(paths)[-1], paths).splitlines()
    assert all(name in line for line in last for name in NAMES[:2])
    assert "step 0" in last[0]
    assert "crashed" in last[-1]
