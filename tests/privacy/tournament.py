"""Attacks against the audit, by log score: `python -m tests.privacy.tournament 50000`.

A setting is drawn at random, values are drawn from the prior, a run is made, and every attack says what it believes of
every honest value. Its score is log2 of what it gives the cell that holds the value, over what the prior gives it: the
bits it has won. Three things must hold, whatever the attack, and each can fail:

- Where the audit is exact it believes something itself, and nothing can be expected to score better: were the audit's
  posterior A right, an attack's Q would have E[Q/A] ≤ 1, so that a stake put on Q at A's odds does not grow. `stake` is
  that bet, over all settings; by Ville's inequality it ever reaches 1/p with probability p at most.
- Where it is an upper bound, scores stay below its bits, on average.
- An attack's own bits are what it scores, on average: its posterior is calibrated. (Not asked of guesses.)
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import midst
from midst import Adversary, After, Consensus, Exact, Problem, Quantile, Search, graphs
from midst.errors import InputError
from midst.privacy.attack import ATTACKS, Attack, best_beliefs, read_messages
from midst.privacy.audit import audit
from midst.privacy.posterior import Piece, Posterior, cell, log_mass
from midst.privacy.priors import Laplace, Normal, Prior, Uniform
from midst.privacy.views import View, view
from midst.trace import Trace
from midst.workers import run_in_parallel

RELATIVE = 0.01  # the resolution, of the prior's scale
ROUNDING = 0.01  # bits: what cells at the ends of an interval can make
KINDS = ("ring", "path", "star", "complete", "rgg")


@dataclass(frozen=True)
class Setting:
    """What is played: a run, who listens, and what it knew before."""

    trace: Trace
    adversary: Adversary
    prior: Prior
    values: np.ndarray
    name: str


def draw_setting(seed: int) -> Setting:
    """A run of three to seven nodes."""
    rng = np.random.default_rng([seed, 13])
    n = int(rng.integers(3, 8))
    graph = graphs.make(str(rng.choice(KINDS)), n, rng=rng)
    prior: Prior = [Normal(0, 1), Laplace(0, 1), Uniform(-2, 2)][rng.integers(3)]
    values = np.array([prior.quantile(level) for level in rng.uniform(1e-9, 1 - 1e-9, n)])
    weights = rng.integers(1, 4, n) if rng.random() < 0.2 else None
    objective = Quantile(float(rng.choice([0.5, 0.5, 0.25, 0.8])), "inverted_cdf")
    bounds = (-30.0, 30.0) if not isinstance(prior, Uniform) else (-2.0, 2.0)
    problem = Problem(graph, values, weights=weights, objective=objective, scale=1.0, bounds=bounds)
    way = ("search", "exact", "after")[rng.choice(3, p=[0.3, 0.2, 0.5])]
    if way == "search":
        method: Search | Consensus = Search(arity=int(rng.choice([1, 3, 7])))
    else:
        stop = Exact() if way == "exact" else After(int(rng.choice([6, 30, 100])))
        method = Consensus(float(rng.choice([0.3, 1, 3])), mu=0.0, sigma=float(rng.choice([0.1, 1, 3])), stop=stop)
    trace = midst.solve(
        problem, method, rng=int(rng.integers(2**31)), record="all" if isinstance(method, midst.Consensus) else "audit"
    ).trace
    corrupt = rng.choice(n, int(rng.integers(1, n)), replace=False).tolist() if rng.random() < 0.6 else []
    heard = not corrupt or rng.random() < 0.3
    adversary = Adversary(corrupt, bool(heard), str(rng.choice(["clear", "sealed"])))  # type: ignore[arg-type]
    return Setting(trace, adversary, prior, values, f"{way}, {'passive' if not heard else adversary.init}")


# Guesses: attacks that claim no calibration


def by_silence(seen: View, priors: list[Prior], cells: np.ndarray) -> dict[int, Posterior]:
    """Who was heard to pass over a range without ever staying in it is taken to lie outside."""
    found = {}
    if seen.messages is not None:
        for observation in seen.observations:
            x = seen.messages[:, observation.node]
            if np.isfinite(x).all() and getattr(observation, "value", None) is None:
                ends = ((-math.inf, float(x.min())), (float(x.min()), float(x.max())), (float(x.max()), math.inf))
                found[observation.node] = _mix(priors[observation.node], ends, (0.45, 0.1, 0.45))
    return found


def by_timing(seen: View, priors: list[Prior], cells: np.ndarray) -> dict[int, Posterior]:
    """A run that ended soon had its values close to where it ended."""
    if seen.published is None or seen.published.answer is None:
        return {}
    steps = seen.public.iterations or 5 * seen.published.steps
    answer, width = seen.published.answer, 0.05 * (1 + steps)
    ends = ((-math.inf, answer - width), (answer - width, answer + width), (answer + width, math.inf))
    return {
        observation.node: _mix(priors[observation.node], ends, (0.2, 0.6, 0.2)) for observation in seen.observations
    }


def by_last_message(seen: View, priors: list[Prior], cells: np.ndarray) -> dict[int, Posterior]:
    """Whoever was heard last at some x lies near it."""
    found = {}
    for observation in seen.observations:
        x = getattr(observation, "last", None)
        if x is not None:
            ends = ((-math.inf, x - 0.1), (x - 0.1, x + 0.1), (x + 0.1, math.inf))
            found[observation.node] = _mix(priors[observation.node], ends, (0.35, 0.3, 0.35))
    return found


def _mix(prior: Prior, ends: tuple[tuple[float, float], ...], weights: tuple[float, ...]) -> Posterior:
    """A guess, which keeps a tenth of the prior: so no score is ever minus infinity."""
    pairs = [(w, *end) for w, end in zip(weights, ends, strict=True) if end[0] < end[1] and prior.log_mass(*end) > -300]
    total = sum(w for w, *_ in pairs)
    pieces = [Piece(0.9 * w / total, low, high) for w, low, high in pairs] if pairs else []
    return Posterior(prior, (*pieces, Piece(0.1 if pieces else 1.0, -math.inf, math.inf)))


GUESSES: dict[str, Attack] = {"silence": by_silence, "timing": by_timing, "last message": by_last_message}


# The game


@dataclass
class Score:
    """What one attack has won so far, of one kind of audit."""

    stake: float = 0.0  # the logarithm of it
    margins: list[float] = field(default_factory=list)  # upper bound − score
    surplus: list[float] = field(default_factory=list)  # score − own bits


Board = dict[tuple[str, str], Score]


def play(seed: int) -> list[tuple[str, str, str, float, float, float]]:
    """One setting: of each attack (attack, way, kind, mean score, odds against the audit, own bits), over its nodes."""
    setting = draw_setting(seed)
    n = setting.trace.graph.n
    priors, cells = [setting.prior] * n, np.full(n, RELATIVE * setting.prior.scale)
    try:
        leak = audit(setting.trace, setting.adversary, setting.prior, float(cells[0]))
        seen = read_messages(view(setting.trace, setting.adversary))
        allowed = best_beliefs(seen, priors, cells)
    except InputError:  # too short for a sealed audit, or weights that no audit weighs
        return []
    exact = leak.kind != "upper bound"
    rows = []
    for name, attack in {**ATTACKS, **GUESSES}.items():
        beliefs = {i: each.posterior for i, each in allowed.items() if each.attack == name == "sides"}
        beliefs = beliefs or attack(seen, priors, cells)  # sides take a while: weighed once
        if not beliefs:
            continue
        scores, odds, own = [], [], []
        for i, belief in beliefs.items():
            ends = cell(float(setting.values[i]), float(cells[i]))
            won = _log2(belief, ends) - log_mass(setting.prior, *ends) / math.log(2)
            scores.append(won)
            own.append(belief.grid_bits(float(cells[i])))
            best = (
                allowed[i].posterior if i in allowed else Posterior(setting.prior, (Piece(1.0, -math.inf, math.inf),))
            )
            limit = _log2(best, ends) if exact else leak.bits[i] + log_mass(setting.prior, *ends) / math.log(2)
            odds.append(_log2(belief, ends) - limit)
        mean_odds = float(np.mean(np.exp2(odds)) if exact else np.mean(odds))
        rows.append(
            (name, setting.name, "exact" if exact else "bound", float(np.mean(scores)), mean_odds, float(np.mean(own)))
        )
    return rows


def _log2(posterior: Posterior, ends: tuple[float, float]) -> float:
    mass = posterior.mass_of_cell(*ends)
    return math.log2(mass) if mass > 0 else -math.inf


def tally(results: list[list[tuple[str, str, str, float, float, float]]]) -> Board:
    """All settings together."""
    board: Board = defaultdict(Score)
    for name, way, kind, score, odds, own in (row for rows in results for row in rows):
        here = board[name, f"{way}, {kind}"]
        if kind == "exact":
            here.stake += math.log(0.5 + 0.5 * odds)
        else:
            here.margins.append(-odds)
        here.surplus.append(score - own)
    return board


def lost(board: Board, p: float = 1e-6) -> list[str]:
    """What does not hold, in words."""
    wrong = []
    for (name, about), score in sorted(board.items()):
        if score.stake > math.log(1 / p):
            wrong.append(f"{name} beats an exact audit ({about}): a stake of 1 has become {math.exp(score.stake):.3g}")
        if score.margins and not _is_at_least_zero(score.margins):
            wrong.append(f"{name} beats an upper bound ({about}) by {-np.mean(score.margins):.3g} bits")
        if name not in GUESSES and not (
            _is_at_least_zero(score.surplus) and _is_at_least_zero([-s for s in score.surplus])
        ):
            wrong.append(
                f"{name} is not calibrated ({about}): it scores {np.mean(score.surplus):+.3g} bits beside its own"
            )
    return wrong


def _is_at_least_zero(numbers: list[float], deviations: float = 5.0) -> bool:
    if not np.isfinite(numbers).all():
        return False
    if len(numbers) < 30:  # too few to tell from chance
        return True
    return float(np.mean(numbers)) >= -deviations * float(np.std(numbers)) / math.sqrt(len(numbers)) - ROUNDING


def main(count: int, workers: int = 2, show: Callable[[str], None] = print) -> int:
    """Play so many settings; the number of things that do not hold."""
    board = tally(run_in_parallel(play, list(range(count)), workers))
    for (name, about), score in sorted(board.items()):
        margin = f", margin {np.mean(score.margins):.2f} bits" if score.margins else ""
        show(
            f"{name:>14}  {about:<24} {len(score.surplus):>6} runs, stake {math.exp(min(score.stake, 50)):.3g}{margin}"
            f", score beside its own bits {np.mean(score.surplus):+.3f}"
        )
    wrong = lost(board)
    for line in wrong:
        show(f"FAILS  {line}")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000), 1))
