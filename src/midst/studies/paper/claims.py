"""Claims: a sentence, what was measured for it, and whether that bears it out.

Rules:
- A claim is the paper's, quoted with its place, or ours, without one: only the paper's words can fail in its name.
- The value of a claim is what was measured as the paper does: one draw of the data, one graph, z(0) new in every run.
  Beside it stand the mean and the standard deviation over other draws, and in how many of them the claim holds.
- The cases follow it over a range that is ours, each judged by the same rule. Where there is no rule it is a finding.
- A claim holds where its whole interval bears it out, and fails where not even the value does; else it is left open.
- low and high are the ends of a 95% confidence interval over the runs; they equal the value where nothing was sampled.
- Runs that all agree prove nothing of the next one: an interval of what has bounds has a width also then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from midst.studies.paper.runs import Experiment

Measured = TypeVar("Measured")

_LEVEL = 0.95
_Z = 1.959963984540054  # of the normal distribution, at that level

AS_DRAWN = "as drawn"  # the case that is the paper's own setting


class Interval(NamedTuple):
    """A number that was measured, and how surely."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Case:
    """A claim at one point of its range.

    Attributes:
        at: which point.
        value: what was measured on the draw that is shown.
        low: lower end of its confidence interval.
        high: upper end.
        holds: whether the claim does, there; None where the interval leaves it open, or there is no rule.
        draws: the values on other draws of data and graph.
        held: in how many of these the claim holds; None where there is no rule.
    """

    at: str
    value: float
    low: float
    high: float
    holds: bool | None
    draws: tuple[float, ...] = ()
    held: int | None = None


@dataclass(frozen=True)
class Claim(Case):
    """A claim at the paper's own setting, and elsewhere.

    Attributes:
        text: the claim and what its value is, in one sentence.
        place: where the paper says so; empty if it does not.
        cases: the same over a range of what the paper leaves open.
    """

    text: str = ""
    place: str = ""
    cases: tuple[Case, ...] = ()

    @property
    def failing(self) -> tuple[str, ...]:
        """Where in the range the claim does not hold."""
        return tuple(case.at for case in self.cases if case.holds is False)


def judge(
    text: str,
    measured: Mapping[str, Sequence[Interval]],
    rule: Callable[[Interval], bool] | None = None,
    *,
    place: str = "",
) -> Claim:
    """A claim from what was measured.

    Args:
        text: the claim.
        measured: at the paper's own setting first, then over the range; the draw that is shown first, then others.
        rule: by which an interval bears the claim out; none for a finding.
        place: where the paper says so.
    """
    cases = []
    for at, found in measured.items():
        holds, *others = (_verdict(rule, each) for each in found)
        draws = tuple(each.value for each in found[1:])
        cases.append(Case(at, *found[0], holds, draws, None if rule is None else others.count(True)))
    return Claim(**vars(cases[0]), text=text, place=place, cases=tuple(cases[1:]))


def _verdict(rule: Callable[[Interval], bool] | None, found: Interval) -> bool | None:
    """By the interval; open where that does not bear the claim out, and its middle would."""
    if rule is None or (not rule(found) and rule(exactly(found.value))):
        return None
    return bool(rule(found))


def over(
    measured: Mapping[Experiment, Sequence[Measured]], statistic: Callable[[Measured], Interval]
) -> dict[str, list[Interval]]:
    """A statistic of every experiment on each draw; each named by what sets it apart from the first."""
    base = next(iter(measured))
    return {each.apart_from(base) or AS_DRAWN: list(map(statistic, found)) for each, found in measured.items()}


# Rules


def is_everywhere(share: Interval) -> bool:
    """Whether all trials hit."""
    return share.value == 1.0


def is_positive(gain: Interval) -> bool:
    """Whether a gain is surely above zero."""
    return gain.low > 0


# Intervals


def exactly(value: float) -> Interval:
    """A number that was not sampled."""
    return Interval(float(value), float(value), float(value))


def mean_of(samples: ArrayLike, within: tuple[float, float] | None = None) -> Interval:
    """The mean of what independent runs gave, by Student's t.

    That has no width where all n runs agree. Then anything else has a chance of q = 1 − 0.05^(1/n) at most, at this
    level, and the mean lies within q of the way to either bound. What has no bounds is taken not to agree by chance.

    Args:
        samples: one number a run.
        within: least and greatest possible number.
    """
    array = np.asarray(samples, np.float64)
    mean = float(array.mean())
    if within is not None and np.ptp(array) == 0:
        # the q with (1 − q)ⁿ = 0.05: were it larger, n runs without it would be too much of a coincidence
        unseen = -np.expm1(np.log1p(-_LEVEL) / array.size)
        return Interval(mean, *(float(mean + unseen * (end - mean)) for end in within))
    reach = float(stdtrit(array.size - 1, (1 + _LEVEL) / 2) * array.std(ddof=1) / np.sqrt(array.size))
    return Interval(mean, mean - reach, mean + reach)


def geometric_mean_of(ratios: ArrayLike) -> Interval:
    """The same for ratios, whose logarithms are averaged."""
    return Interval(*(float(end) for end in np.exp(mean_of(np.log(ratios)))))


def mean_share_of(samples: ArrayLike) -> Interval:
    """The mean of shares, which lie between 0 and 1.

    Near an end, where the rare run that lies far from the others is easily missed, Student's t is much too sure. Two
    more runs at either end are taken in there, as Agresti and Coull do for hits; towards the middle, ever fewer.
    """
    array = np.asarray(samples, np.float64)
    mean = float(array.mean())
    # two where the mean is at an end of [0, 1], none where it is in the middle
    more = 2 * (1 - 2 * mean) ** 2
    size = array.size + 2 * more
    middle = (float(array.sum()) + more) / size
    squares = float(((array - middle) ** 2).sum()) + more * (middle**2 + (1 - middle) ** 2)
    reach = float(stdtrit(size - 1, (1 + _LEVEL) / 2) * np.sqrt(squares / (size - 1) / size))
    least = mean_of(array, within=(0, 1)) if np.ptp(array) == 0 else exactly(mean)
    return Interval(mean, max(0.0, min(least.low, middle - reach)), min(1.0, max(least.high, middle + reach)))


def share_of(hits: ArrayLike) -> Interval:
    """The share of independent trials that hit, by Wilson's score: an interval also where all or none did."""
    array = np.asarray(hits, np.bool_)
    n, share = array.size, float(array.mean())
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    # Wilson: the shares whose own normal interval would reach the one that was measured
    reach = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Interval(share, float(max(0.0, min(middle - reach, share))), float(min(1.0, max(middle + reach, share))))
