"""What several runs told together, about the same values of the same participants.

Rules:
- Whoever knows z(0) learns from an iteration an interval in which each value lies, or the value itself, whatever the
  others are. Every run draws its own z(0), so several tell the intersection.
- Searches tell totals, and each counts once, whichever search told it (`join_published`). Totals come on top of the
  intervals (`search_beliefs.learn`).
- The audit of several runs joins them here, and so does the ledger, which keeps what runs told in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

import msgspec
import numpy as np

from midst.errors import InputError
from midst.privacy.observations import Branches
from midst.privacy.posterior import single
from midst.privacy.priors import Prior
from midst.privacy.published import Published, join_published
from midst.privacy.search_beliefs import Learnt, learn
from midst.privacy.views import View
from midst.protocol.keys import make_keys
from midst.types import Array, Ints

Ends = tuple[float, float]

_ROUNDING = 1e-9  # of the largest bound: values worked out from messages of different runs may differ by so much


@dataclass(frozen=True, eq=False, repr=False)
class Disclosure:
    """What a run told of the honest values, in the form in which runs are joined.

    Attributes:
        nodes: the honest ones.
        bounds: of each of them, between which numbers the iteration shows its value to lie; the same twice where it
            shows the value itself. None where there was no iteration.
        published: totals and answer; None where there are neither.
    """

    nodes: tuple[int, ...]
    bounds: Mapping[int, Ends] | None
    published: Published | None

    def __repr__(self) -> str:
        parts = ["bounds"] * (self.bounds is not None) + ["totals"] * (self.published is not None)
        return f"<Disclosure: {' and '.join(parts) or 'nothing'} of {len(self.nodes)} nodes>"

    def without_value(self, node: int) -> Disclosure:
        """The same without the bounds of one node where they are its value; `with_value` puts them in again."""
        if self.bounds is None or node not in self.bounds or self.bounds[node][0] < self.bounds[node][1]:
            return self
        return replace(self, bounds={i: ends for i, ends in self.bounds.items() if i != node})

    def with_value(self, node: int, value: float) -> Disclosure:
        """The same with the value of one node where its bounds were left out."""
        if self.bounds is None or node in self.bounds:
            return self
        return replace(self, bounds={**self.bounds, node: (value, value)})

    def to_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`: what was public, and which weight the coalition has brought on which side."""
        seen = self.published
        if seen is not None:
            own = None if seen.own is None else replace(seen.own, values=None)
            seen = replace(seen, own=own, hidden=None, apart=())
        record: dict[str, Any] = msgspec.to_builtins(replace(self, published=seen), enc_hook=_plain)
        return record

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Disclosure:
        """Inverse of `to_dict`."""
        nodes = msgspec.convert(record["nodes"], tuple[int, ...])
        bounds = msgspec.convert(record["bounds"], dict[int, Ends] | None, str_keys=True)
        seen = record["published"]
        if seen is None:
            return cls(nodes, bounds, None)
        kinds = get_type_hints(Published)
        del kinds["keys"], kinds["apart"]
        parts = {name: msgspec.convert(seen[name], kind, dec_hook=_array) for name, kind in kinds.items()}
        return cls(nodes, bounds, Published(make_keys(seen["keys"].get("step")), **parts))


def _plain(given: object) -> Any:
    """An array or a grid's step, for JSON."""
    return given.tolist() if isinstance(given, np.ndarray) else str(given)


def _array(kind: object, given: list[int]) -> Ints:
    return np.array(given, np.int64)


def disclose(view: View) -> Disclosure:
    """What a run told, as an adversary sees it.

    Raises:
        InputError: what the iteration told of a node depends on the others.
    """
    nodes = tuple(view.honest.tolist())
    if not view.public.iterations:
        return Disclosure(nodes, None, view.published)
    bounds = {}
    for observation in view.observations:
        if not isinstance(observation, Branches):
            raise InputError("runs are joined for an eavesdropper on clear z(0), which bounds what others learn")
        bounds[observation.node] = observation.ends
    return Disclosure(nodes, bounds, view.published)


def join_disclosures(
    several: Sequence[Disclosure], name: Callable[[int], str] = lambda node: "a participant"
) -> Disclosure:
    """What runs told together. The answers are known where those of all are.

    Raises:
        InputError: they are not of the same values of the same participants.
    """
    nodes = several[0].nodes
    if any(one.nodes != nodes for one in several):
        raise InputError("runs are audited together where the participants are the same")
    bounds = [one.bounds for one in several if one.bounds is not None]
    searched = [one.published for one in several if one.published is not None]
    seen = join_published(searched) if searched else None
    if seen is not None and (len(searched) < len(several) or any(each.answer is None for each in searched)):
        seen = replace(seen, answer=None, apart=())
    return Disclosure(nodes, _intersect(bounds, name) if bounds else None, seen)


def see_together(views: Sequence[View]) -> View:
    """Several runs as one: their iterations end to end, with all that any of them told."""
    joined = join_disclosures([disclose(each) for each in views], lambda i: f"node {views[0].public.graph.label(i)}")
    iterated = [each for each in views if each.public.iterations]
    if joined.bounds is None:
        return replace(views[0], published=joined.published)
    starts = np.cumsum([0, *(each.public.iterations for each in iterated)]).tolist()
    observations = []
    for k, observation in enumerate(iterated[-1].observations):
        assert isinstance(observation, Branches)
        each = zip(starts, (one.observations[k] for one in iterated), strict=False)
        inside = tuple(
            (start + a, start + b) for start, one in each if isinstance(one, Branches) for a, b in one.inside
        )
        low, high = joined.bounds[observation.node]
        value = low if low == high else None
        observations.append(Branches(observation.node, observation.last, low, high, value, inside))
    public = replace(iterated[0].public, iterations=starts[-1])
    return View(views[0].adversary, public, tuple(observations), published=joined.published)


def weigh(disclosure: Disclosure, priors: list[Prior], resolution: Array) -> Learnt:
    """What runs told, as beliefs and bits of each node.

    Raises:
        InputError: the prior gives no mass to what was observed, or there is no theory for what is asked.
    """
    before = {i: single(priors[i], "a participant", *ends) for i, ends in (disclosure.bounds or {}).items()}
    bits = {i: posterior.bits(float(resolution[i])) for i, posterior in before.items()}
    if disclosure.published is None:
        return Learnt("exact", before, {}, bits, ())
    learnt = learn(disclosure.published, priors, resolution, None if disclosure.bounds is None else before)
    return replace(learnt, believed=before | learnt.believed, bits=bits | learnt.bits)


def _intersect(several: Sequence[Mapping[int, Ends]], name: Callable[[int], str]) -> dict[int, Ends]:
    ends = np.array([list(each.values()) for each in several])
    slack = _ROUNDING * float(np.abs(ends, where=np.isfinite(ends), out=np.zeros_like(ends)).max(initial=0.0))
    return {node: _cut(name(node), [each[node] for each in several], slack) for node in several[0]}


def _cut(who: str, several: Sequence[Ends], slack: float) -> Ends:
    """Where a value lies by all bounds; itself, where any of them are that."""
    lower, upper = max(low for low, _ in several), min(high for _, high in several)
    known = [low for low, high in several if low == high]
    if known and lower - slack <= known[0] <= upper + slack:
        return known[0], known[0]
    if known or not lower < upper:
        raise InputError(f"these runs contradict each other about {who}; they are of different values")
    return lower, upper
