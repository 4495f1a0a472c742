"""A run as facts and arrays that a page can draw: first what happened, then what the audit says of it.

Rules:
- Nothing is decided on the page. It draws these numbers, and picks those of one iteration or one node.
- Private values are in the arrays only where the run was simulated here, or the file has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from midst.dp.mechanisms import Mechanism
from midst.errors import InputError
from midst.explorer.fields import MOST_CELLS
from midst.explorer.knowledge import follow, look
from midst.explorer.packing import Arrays, Facts, Parts, pack
from midst.explorer.simulate import Made, check_room, proof_that_ended
from midst.graphs.neighbour_sums import sum_over_neighbours
from midst.methods import Certified
from midst.objectives import Mean, built_in
from midst.plots.funnel import count_steps, find_places, make_rows
from midst.plots.style import log_spaced, tidy_power
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import Leakage, audit
from midst.privacy.observations import Branches
from midst.privacy.priors import Normal, Prior, Uniform
from midst.privacy.trace_reader import TraceReader
from midst.privacy.views import View
from midst.problems import Bounds, Problem
from midst.protocol.certificate import weights_needed
from midst.protocol.step import next_sums
from midst.result import Result
from midst.trace import Trace, refuse_sum
from midst.types import Array, Branch, Ints

_MOST_INTERVALS = 500_000  # nodes times iterations of which the intervals are told
_MOST_STEPS = 20_000  # iterations of these
_MOMENTS = 100  # iterations at which bits are told, where they can be


@dataclass(frozen=True, eq=False)
class Replay:
    """What happened, kept for the audit that comes after.

    Attributes:
        made: the run.
        seen: what the adversary sees; None of a search.
        facts: for the page.
        arrays: for the page.
    """

    made: Made
    seen: View | None
    facts: Facts
    arrays: Arrays


def pack_result(
    result: Result,
    values: Array | None,
    bounds: Bounds | None,
    prior: Prior | None = None,
    noise: tuple[Mechanism, Array] | None = None,
) -> Parts:
    """A result as a page has it: its first coordinate, the private values, and what an eavesdropper learns.

    Args:
        result: of a run.
        values: the private ones, before there was noise on them; None where they are not known.
        bounds: the public ones, likewise.
        prior: what is believed of a value before; uniform between the public bounds if not given, normal about the
            result where there are none, as wide as the public scale, or else as the result is large.
        noise: on the values, and the values with it.

    Raises:
        InputError: the record does not have what is to be shown, or there was noise on the totals.
    """
    if prior is None and bounds is not None:
        prior = Uniform(*(float(np.ravel(end)[0]) for end in bounds))
    elif prior is None:  # by nothing that the page does not tell anyway
        middle = float(np.ravel(result.value)[0])
        prior = Normal(middle, _one(result.trace.parameters.get("scale", abs(middle) or 1.0), 0))

    def first(held: Array | None) -> Array | None:
        return None if held is None or result.trace.owners is not None else held.reshape(result.nodes, -1)[:, 0]

    told = f"bits are what is learnt by who believed before: {prior!r}"
    stopped = proof_that_ended(result)
    made = Made(result.trace, Adversary(), prior, values=first(values), result=result, stopped=stopped, notes=(told,))
    return pack_made(made if noise is None else made.with_noise(noise[0], first(noise[1])))


def pack_made(made: Made, name: str | None = None) -> Parts:
    """A run as a page has it, with the audit.

    Args:
        made: the run.
        name: of the file it came from.
    """
    return Parts(*pack_each(made, name))


def pack_each(made: Made, name: str | None) -> Iterator[bytes]:
    """The run, packed, before the audit is made; then the audit; see `pack_made`."""
    story = replay(made, name)
    yield pack(to_json(story.facts), story.arrays)
    facts, arrays = audited(story)
    yield pack(to_json(facts), arrays)


def check_shown(run: Problem | Trace, values: bool) -> None:
    """Refuse what a page cannot show.

    Args:
        run: what is to be run, or its record.
        values: whether its private values are to be shown.

    Raises:
        InputError: it is too large, its nodes have more than a number each, or its objective is somebody's own.
    """
    check_room(run.graph)
    built_in(run.objective)
    if values and run.owners is not None:
        raise InputError("the page shows one number a node, and these have lists; leave the private values out of it")


def replay(made: Made, name: str | None = None) -> Replay:
    """A run, ready to be drawn.

    Args:
        made: the run.
        name: of the file it came from.

    Raises:
        InputError: the record does not have what is to be shown, or there was noise on the totals.
    """
    trace, k = made.trace, made.coordinate
    if not trace.iterations:
        return _replay_search(made, name)
    t, x, branch, few = _frames(trace, k)
    seen, note = look(trace, made.adversary, k)
    known = follow(seen, t, x, branch)
    held = made.known_values
    facts, arrays = _plainly(made, name)
    facts |= {"iterations": trace.iterations, "kept": len(t), "notes": [*made.notes, *filter(None, (few, note))]}
    arrays |= {"t": t, "x": x, "lower": known.lower, "upper": known.upper, "spans": known.spans, "first": known.first}
    arrays |= {"spread": np.ptp(x, axis=1)} | _intervals(trace, k, t, x)
    weighed = _weigh(trace, x, branch, held)
    met = False
    if weighed is not None:
        below, above = weights_needed(built_in(trace.objective), trace.whole_weights)
        facts["needed"] = {"below": below, "above": above, "total": int(trace.whole_weights.sum())}
        arrays |= {"at_or_below": weighed[0], "at_or_above": weighed[1]}
        met = weighed[0][-1] >= below and weighed[1][-1] >= above
    facts["proof"], facts["found"] = _proof(made, x[-1], met)
    short, all_digits = ([_show(end, digits) for end in (x[-1].min(), x[-1].max())] for digits in (10, 17))
    facts |= {"shown": _show(facts["found"]), "between": short if short[0] != short[1] else all_digits}
    low, high = (facts["found"],) * 2 if held is None else _answer(trace, held)
    if low is not None and high is not None:
        facts["answer"] = {"low": low, "high": high}
        arrays["error"] = np.linalg.norm(np.maximum(np.maximum(low - x, x - high), 0.0), axis=1)
    return Replay(made, seen, facts, arrays)


def _replay_search(made: Made, name: str | None) -> Replay:
    """A search: nobody is lit. Time counts its steps: 0 before the first total is known, and the answer in the end."""
    trace, k, result = made.trace, made.coordinate, made.result
    if "noise" in trace.parameters:
        raise InputError("a search with noise is not shown: its totals say nothing for certain")
    refuse_sum(trace)
    steps = count_steps(trace) if result is None else result.probes
    hops = trace.graph.diameter()
    facts, arrays = _plainly(made, name)
    found = None if trace.answer is None else trace.answer[k]
    facts |= {
        "iterations": steps + 1,
        "kept": steps + 1,
        "answer": {"low": found, "high": found},
        "found": found,
        "shown": _show(found),
        "proof": _proof(made, trace.x, met=False)[0],
        "notes": list(made.notes),
        "search": {
            "rows": [asdict(row) for row in make_rows(trace, k)],
            # keys before the first step, and signatures after the last, take a diameter of rounds each
            "rounds": [hops * (step + 1) for step in range(steps)] + [hops * (steps + 2)],
        },
    }
    arrays |= {"t": np.arange(steps + 1), "x": np.zeros((0, 0))}
    arrays |= {"spans": np.zeros((0, 3), np.int64), "first": np.full(trace.graph.n, -1)}
    if (held := made.known_values) is not None:
        arrays["dots"] = np.array(find_places(trace, held, k), np.float64).reshape(-1, 3)
    return Replay(made, None, facts, arrays)


def _plainly(made: Made, name: str | None) -> tuple[Facts, Arrays]:
    """What is told of every run, however it went."""
    trace, graph = made.trace, made.trace.graph
    facts: Facts = {
        "file": name,
        "method": "consensus" if trace.iterations else "search",
        "title": trace.title + " of the noised numbers" * (made.held is not None),
        "graph": {"name": graph.name, "n": graph.n, "edges": graph.edges, "labels": graph.labels},
        "result": _result(made),
        "stopped": made.stopped,
        "parameters": {name: _one(value, made.coordinate) for name, value in trace.parameters.items()},
        "mean": isinstance(trace.objective, Mean),
        "coordinates": int(np.prod(trace.x.shape[2:])),
        "adversary": str(made.adversary),
        "corrupt": made.adversary.check(graph),
        "seed": trace.seed,
    }
    once = graph.source < graph.target
    arrays: Arrays = {"edges": np.column_stack([graph.source[once], graph.target[once]])}
    optional = {"positions": graph.positions, "values": made.values, "held": made.held}
    return facts, arrays | {name: array for name, array in optional.items() if array is not None}


def audited(story: Replay) -> tuple[Facts, Arrays]:
    """What the audit says of a run: the report, and bits over the iterations where they can be told.

    An audit that is refused is a fact too: {"refused": why}.
    """
    made = story.made
    try:
        leakage = audit(made.trace, made.adversary, made.prior, coordinate=made.coordinate, seen=story.seen)
    except InputError as error:
        return {"refused": str(error)}, {}
    return {"audit": leakage.to_dict(), "audience": leakage.audience}, _bits_over_time(story, leakage)


def _bits_over_time(story: Replay, leakage: Leakage) -> Arrays:
    """−log2 of the prior's mass between the bounds, up to a choice of iterations; the audit's figure once exposed."""
    seen = story.seen
    plain = seen is not None and all(isinstance(observation, Branches) for observation in seen.observations)
    if seen is None or not plain or leakage.kind != "exact" or story.facts["mean"]:
        return {}
    t, lower, upper, first = (story.arrays[name] for name in ("t", "lower", "upper", "first"))
    moments = log_spaced(len(t), _MOMENTS)
    bits = np.zeros((len(moments), len(first)))
    for i in seen.honest.tolist():
        before, worth = (-math.inf, math.inf), 0.0
        for row, at in enumerate(moments.tolist()):
            bounds = (float(lower[at, i]), float(upper[at, i]))
            if 0 <= first[i] <= t[at]:
                bits[row:, i] = leakage.bits[i]
                break
            if bounds != before:
                before, worth = bounds, -story.made.prior.log_mass(*bounds) / math.log(2)
            bits[row, i] = worth
    if story.made.trace.probes:  # the search that ends it comes on top
        bits[-1, seen.honest] = leakage.bits[seen.honest]
    return {"moments": t[moments], "bits": bits}


# What was sent


def _frames(trace: Trace, k: int) -> tuple[Ints, Array, Branch, str]:
    """The iterations that can be shown: all, if they were kept or can be worked out again; else a note of how many."""
    n, note = trace.graph.n, ""
    t, x = trace.t, trace.x.reshape(len(trace.t), n, -1)[:, :, k]
    branch = trace.branch.reshape(len(trace.t), n, -1)[:, :, k]
    if len(t) < trace.iterations and trace.iterations * n <= MOST_CELLS:
        try:
            x = TraceReader(trace, k).messages()
            t = np.arange(trace.iterations)
            branch = _branches(trace, k)
        except InputError:
            pass
    if x.size > MOST_CELLS:
        some = log_spaced(len(t), MOST_CELLS // n)
        t, x, branch = t[some], x[some], branch[some]
    if len(t) < trace.iterations:
        note = f"{len(t):,} of {trace.iterations:,} iterations are shown; the file has no more, or too many"
    return t, x, branch, note


def _branches(trace: Trace, k: int) -> Branch:
    """Every branch of every iteration, from the segments."""
    segments = trace.segments
    assert segments is not None  # or the messages could not have been worked out
    mine = segments.coordinate == k
    lengths = segments.stop[mine] - segments.start[mine]
    return np.repeat(segments.branch[mine], lengths).reshape(trace.graph.n, trace.iterations).T


def _intervals(trace: Trace, k: int, t: Ints, x: Array) -> Arrays:
    """The interval to which each number was clipped: its lower end over t, and its width; of `protocol.step`.

    None where z(0) is not known, x has gaps, the page would have too much to hold, or there is nothing to be clipped
    to: the mean's has no width.
    """
    if len(t) < trace.iterations or isinstance(trace.objective, Mean) or trace.own is not None:
        return {}
    if len(t) > _MOST_STEPS or x.size > _MOST_INTERVALS:
        return {}
    reader = TraceReader(trace, k)
    if reader.z0 is None:
        return {}
    public = reader.public
    S, R = reader.sums(np.ones(len(trace.graph.source), np.bool_))
    neighbour_sum, c = sum_over_neighbours(trace.graph), np.array(public.c)
    low = np.empty(x.shape)
    for row, now in zip(low, x, strict=True):
        np.divide(-public.right - S, public.cd, out=row)
        S, R = next_sums(S, R, now, neighbour_sum(now), public.cd, c, public.theta)
    return {"interval": low, "width": (public.left + public.right) / public.cd}


# What it came to


def _answer(trace: Trace, held: Array) -> tuple[float, float]:
    """The right answers, lowest and highest, as only a simulation knows them."""
    objective, weights = built_in(trace.objective), trace.whole_weights
    if isinstance(objective, Mean):
        return (float(np.average(held, weights=weights)),) * 2
    low, high = objective.answer(held, weights)
    return float(low), float(high)


def _proof(made: Made, x: Array, met: bool) -> tuple[str | None, float | None]:
    """Find the proof of the answer, in the words of a result, and the answer; None where nothing is proved.

    Args:
        made: the run.
        x: the last one.
        met: whether enough weight is on either side of it. Of a file it is not known to what tolerance it was made.
    """
    trace, result, spread = made.trace, made.result, float(np.ptp(x)) if x.size else 0.0
    if trace.answer is not None:
        words = f"exact, by the totals of {count_steps(trace)} probes"
        return words if result is None else dict(result.rows())["proof"], trace.answer[made.coordinate]
    middle = float(x.min() / 2 + x.max() / 2)
    if result is not None:
        return (dict(result.rows())["proof"], middle) if result.certified else (None, None)
    tolerance = Certified().tolerance * _one(trace.parameters.get("scale", 1.0), made.coordinate)
    return (f"certified to within {spread:.3g}", middle) if met and spread <= tolerance else (None, None)


def _show(found: float | None, digits: int = 10) -> str:
    return "" if found is None else tidy_power(f"{found:.{digits}g}")


def _result(made: Made) -> Facts | None:
    """What only the run itself knows; a file does not say."""
    result = made.result
    if result is None:
        return None
    certificate, standing, told = result.certificate, result.standing, dict(result.rows())
    return {
        "rows": {what: told[what] for what in ("method", "exposed")},
        "rounds": result.rounds,
        "tolerance": None if certificate is None else certificate.tolerance,
        "proof": None if standing is None else {**standing[made.coordinate]._asdict(), "probes": result.probes},
    }


def _weigh(trace: Trace, x: Array, branch: Branch, held: Array | None) -> tuple[Ints, Ints] | None:
    """The weight with s_i ≤ x_i, and with s_i ≥ x_i, over t; None where it cannot be told."""
    if isinstance(trace.objective, Mean):
        return None
    if held is not None:
        return (held <= x) @ trace.whole_weights, (held >= x) @ trace.whole_weights
    return (branch >= 0) @ trace.whole_weights, (branch <= 0) @ trace.whole_weights


def _one(value: Any, k: int) -> Any:
    return value[k] if isinstance(value, list) else value


def to_json(facts: Mapping[str, Any]) -> Facts:
    """The facts with None for what JSON cannot say."""
    return {name: _plain(value) for name, value in facts.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
