"""No attack wins more than the audit says there is to win; see `tournament.py`."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
import tournament
from tournament import GUESSES, RELATIVE, draw_setting, lost, play, tally

from midst.errors import InputError
from midst.privacy.attack import ATTACKS
from midst.privacy.audit import audit
from midst.privacy.posterior import Piece, Posterior

BLOCKS = 8
SETTINGS = 1_000


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_attack_beats_the_audit(block):
    """A thousand settings, in blocks: each must hold by itself, at one in 10⁷ a block and attack."""
    each = SETTINGS // BLOCKS
    board = tally([play(seed) for seed in range(block * each, (block + 1) * each)])
    assert lost(board, p=1e-7) == []
    rare = {"jumps", "inversion"}
    assert {name for name, _ in board} >= (set(ATTACKS) | set(GUESSES)) - rare


@pytest.mark.torture
@pytest.mark.parametrize("block", range(50))
def test_no_attack_beats_the_audit_in_the_long_run(block):
    each = int(os.environ.get("MIDST_RUNS", "20")) * 5 // 50
    start = SETTINGS + block * each
    assert lost(tally([play(seed) for seed in range(start, start + each)]), p=1e-7) == []


def by_cheating(seen, priors, cells):
    """What only a simulation knows: the value, but for the audit's resolution."""
    values = by_cheating.values
    found = {}
    for observation in seen.observations:
        s, width = float(values[observation.node]), float(cells[observation.node])
        pieces = (Piece(0.5, s - width, s + width), Piece(0.5, -math.inf, math.inf))
        found[observation.node] = Posterior(priors[observation.node], pieces)
    return found


def test_an_attack_that_knows_more_wins(monkeypatch):
    """The game can be lost: who is told more than the audit counts beats it, exact or bound."""
    monkeypatch.setitem(tournament.GUESSES, "cheating", by_cheating)
    results = []
    for seed in range(60):
        by_cheating.values = draw_setting(seed).values
        results.append(play(seed))
    wrong = [line for line in lost(tally(results)) if line.startswith("cheating")]
    assert any("beats an exact audit" in line for line in wrong)


def test_a_posterior_that_is_too_sure_is_found_out(monkeypatch):
    def too_sure(seen, priors, cells):
        beliefs = ATTACKS["totals"](seen, priors, cells)
        return {i: Posterior(each.prior, _sharpened(each)) for i, each in beliefs.items()}

    monkeypatch.setitem(tournament.ATTACKS, "too sure", too_sure)
    searches = [seed for seed in range(400) if draw_setting(seed).name.startswith("search")]
    wrong = lost(tally(list(map(play, searches))))
    assert any(line.startswith("too sure is not calibrated") for line in wrong)
    assert not any(line.startswith("totals") for line in wrong)


def _sharpened(posterior):
    raised = np.array([piece.probability**12 for piece in posterior.pieces])
    pairs = zip(raised / raised.sum(), posterior.pieces, strict=True)
    return tuple(Piece(float(p), piece.lower, piece.upper) for p, piece in pairs)


def test_bounds_hold_the_values():
    """What an exact report says of where a value lies is true."""
    told = 0
    for seed in range(150):
        setting = draw_setting(seed)
        try:
            leak = audit(setting.trace, setting.adversary, setting.prior, RELATIVE)
        except InputError:  # too short a run for a sealed audit
            continue
        honest = np.isfinite(leak.bits)
        assert (leak.lower[honest] <= setting.values[honest] + 1e-12).all()
        assert (leak.upper[honest] >= setting.values[honest] - 1e-12).all()
        told += int(honest.sum())
    assert told > 300
