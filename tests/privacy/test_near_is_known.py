"""A message near s is a message about s: why no node of midst steps aside from its value instead of sending it."""

from __future__ import annotations

import numpy as np
import pytest

NEAR = 0.01
NODES = 2_000
AMPLITUDE, DECAY = 0.5, 0.9  # the first offset at most, and the factor between one and the next


@pytest.mark.parametrize(("times", "share"), [(10, 0.4), (30, 0.95)])
def test_shrinking_offsets_tell_the_value(times, share):
    """Nobody sends s. Whoever takes the middle of what the messages leave open is within 0.01 of it all the same.

    A node that is inside `times` times sends s + side · u · AMPLITUDE · DECAY^k, u uniform in [½, 1] and the side a
    coin's; they must shrink so that the answer stays exact. So s lies within AMPLITUDE · DECAY^k of each message, and
    whoever hears them cuts these intervals with each other.
    """
    rng = np.random.default_rng(1)
    s = rng.normal(size=NODES)
    most = AMPLITUDE * DECAY ** np.arange(times)
    offset = rng.choice([-1, 1], (NODES, times)) * rng.uniform(0.5, 1, (NODES, times)) * most
    sent = s[:, None] + offset
    assert (sent != s[:, None]).all()
    lower, upper = (sent - most).max(axis=1), (sent + most).min(axis=1)
    guess = (lower + upper) / 2
    assert (np.abs(guess - s) <= NEAR).mean() > share
