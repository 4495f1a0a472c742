"""What several commands do about joint noise: settle it in a charter, and refuse one that does not keep its promise.

Rules:
- Who writes a charter settles the variance; who takes part works out by itself whether that keeps the promise, before
  anything is sent (`dp/joint.py`). The network knows the variance only.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from midst.errors import InputError
from midst.methods import Search
from midst.net.charter import Charter
from midst.protocol.keys import first_bracket, make_keys
from midst.protocol.noisy_search import count_probes

if TYPE_CHECKING:
    from midst.protocol.noise import JointNoise


def settle_noise(promise: JointNoise, bounds: Any, resolution: float | None, arity: int) -> dict[str, Any]:
    """The charter's table for a promise, with the least variance that keeps it.

    Raises:
        InputError: it is not known how many probes there will be, or no noise is enough.
    """
    from midst.dp.joint import least_variance

    if bounds is None or resolution is None:
        raise InputError("noise needs --bounds and --resolution: how many probes there are must be known before")
    low, high = bounds
    if not low < high:
        raise InputError("--bounds must be two numbers, the lower first")
    probes = count_probes(first_bracket(make_keys(resolution), (low, high)), Search(arity).arity)
    return {**asdict(promise), "variance": str(least_variance(promise, probes, arity))}


def require_promise(charter: Charter, least: str | None = None) -> None:
    """Refuse a charter whose noise does not keep its promise, or which promises less than is asked for.

    Raises:
        InputError: it does not, or it does.
    """
    wanted = None
    if least is not None:
        from midst.protocol.noise import parse_joint

        wanted = parse_joint(least)
    if charter.noise is None:
        if wanted is not None:
            raise InputError("--dp: this charter has no noise, and its answers are exact; agree on one with [noise]")
        return
    from midst.dp.joint import check_variance  # here: a charter without noise, as most are, need not wait for SciPy

    promise = charter.noise.promise
    less = None if wanted is None else promise.weaker_than(wanted)
    if less is not None:
        raise InputError(f"--dp: this charter promises less, {promise}: {less}; agree on another charter")
    rules = charter.noisy_rules([1] * len(charter.names))
    try:
        check_variance(promise, rules.variance, rules.probes, rules.most_numbers)
    except InputError as error:
        raise InputError(f"noise: {error}; have the charter written anew by midst charter new") from None


def accuracy(charter: Charter) -> str:
    """How far off an answer with this charter's noise is to be expected, in words."""
    from midst.protocol.noise import count_std, fewest_values

    rules = charter.noisy_rules([1] * len(charter.names))
    places = count_std(rules.added, rules.most_numbers)
    share = f"{places:.3g} places in rank, 1% of {round(100 * places):,} values"
    least = fewest_values(rules.added, rules.most_numbers)
    return f"expect the answer to be off by {share}; with fewer than {least:,} nothing is asked"
