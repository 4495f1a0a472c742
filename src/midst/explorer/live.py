"""Events of a running network, for a page that follows it.

Rules:
- Whoever runs nodes calls `Feed.publish` with the events of `net/events.py`, from any thread. It never blocks on a
  reader, and keeps a bounded number of rounds: when there are too many, every second one goes, and so on.
- Who was inside, and when first, is kept however many rounds go.
- Of a search every bracket is kept, a step each: all know them. Somebody is waited for if all others wait for it.
- On the feed of one real node (`all` is False) what others sent is dropped before it is stored: it cannot be served.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from operator import attrgetter
from sys import float_info
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from midst.net.events import End, Event, Link, Round, Searching, Start
from midst.plots.funnel import nest

MOST_ROUNDS = 200_000  # kept, of all nodes together
MOST_COORDINATES = 8  # kept of a vector
_LARGEST = float_info.max
_MOST_AT_ONCE = 20_000  # rounds told in one piece


class _Round(NamedTuple):
    number: int
    node: int
    t: int
    x: list[float | None]
    branch: list[int]


class Feed:
    """What a running network has said so far; bounded, and safe to use from any thread."""

    def __init__(self, most: int = MOST_ROUNDS) -> None:
        """Start with nothing said.

        Args:
            most: rounds kept.
        """
        self._lock = Lock()
        self._most = most
        self._number = 0
        self.closed = False
        self._begin(Start((), [], "", "", all=True, own=None))

    def publish(self, event: Event) -> None:
        """Take note of an event; one that is not to be shown is dropped."""
        with self._lock:
            match event:
                case Start():
                    self._next()
                    self._begin(event)
                case Round() if self._shown(event.node):
                    self._round(event)
                case Link(node, neighbour, up) if self._shown(node) and 0 <= neighbour < len(self._start[1].names):
                    self._links[node, neighbour] = self._next(), up
                case End() if self._shown(event.node):
                    self._ends[event.node] = self._next(), _told(event, self._start[1].verified)

    def since(self, place: int) -> tuple[int, dict[str, Any]]:
        """What is new since a place, 0 at first, and the place after it; empty if nothing is."""
        with self._lock:
            news: dict[str, Any] = {}
            begin = bisect_right(self._rounds, place, key=attrgetter("number"))
            rounds = self._rounds[begin : begin + _MOST_AT_ONCE]
            more = begin + _MOST_AT_ONCE < len(self._rounds)
            after = rounds[-1].number if more else self._number
            if self._start[0] > place:
                news["start"] = msgspec.to_builtins(self._start[1])
            if place < self._searched <= after:
                brackets = [self._brackets[step] for step in sorted(self._brackets)]
                news["search"] = {"rows": [asdict(row) for row in nest(brackets)], "waiting": self._waited_for()}
            if rounds:
                news["rounds"] = [each[1:] for each in rounds]
            lists: dict[str, list[Any]] = {
                "first": [[node, t] for node, (number, t) in self._first.items() if place < number <= after],
                "links": [[*ends, up] for ends, (number, up) in self._links.items() if place < number <= after],
                "ends": [end for number, end in self._ends.values() if place < number <= after],
            }
            return after, news | {name: each for name, each in lists.items() if each}

    def close(self) -> None:
        """Tell whoever follows that nothing more will come."""
        self.closed = True

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _shown(self, node: int) -> bool:
        """Whether what this node sends may be shown."""
        about = self._start[1]
        return 0 <= node < len(about.names) and (about.all or node == about.own)

    def _begin(self, start: Start) -> None:
        """Forget what was, and note by its number what begins."""
        self._start = self._number, start
        self._every = 1
        self._rounds: list[_Round] = []
        self._first: dict[int, tuple[int, int]] = {}
        self._links: dict[tuple[int, int], tuple[int, bool]] = {}
        self._ends: dict[int, tuple[int, dict[str, Any]]] = {}
        self._brackets: dict[int, tuple[int, float, float, int | None]] = {}
        self._waiting: dict[int, set[int]] = {}
        self._searched = 0

    def _round(self, event: Round) -> None:
        node, t = event.node, event.t
        if 0 in event.branch[:MOST_COORDINATES] and node not in self._first:
            self._first[node] = self._next(), t
        if event.search is not None:
            self._search(node, event.search)
        if not event.x or t % self._every:
            return
        x = [_finite(each) for each in event.x[:MOST_COORDINATES]]
        self._rounds.append(_Round(self._next(), node, t, x, event.branch[:MOST_COORDINATES]))
        while len(self._rounds) > self._most:
            self._every *= 2
            self._rounds = [each for each in self._rounds if each.t % self._every == 0]

    def _search(self, node: int, search: Searching) -> None:
        low, high, inside = search.brackets[0]
        least, most = (min(max(end, -_LARGEST), _LARGEST) for end in (low, high))
        self._brackets.setdefault(search.step, (search.step, least, most, inside))
        self._waiting[node] = set(search.waiting)
        self._searched = self._next()

    def _waited_for(self) -> list[int]:
        """Those without whom nobody else can go on."""
        everybody = range(len(self._start[1].names))
        others = {node: [lack for i, lack in self._waiting.items() if i != node] for node in everybody}
        return [node for node, lacks in others.items() if lacks and all(node in lack for lack in lacks)]


@contextmanager
def serve(feed: Feed) -> Iterator[str]:
    """Serves a page that follows the feed while the context lasts; gives the address to open.

    Args:
        feed: what is followed; closed at the end.

    Raises:
        InputError: the port cannot be had.
        MissingExtra: Starlette or uvicorn is not installed.
    """
    from midst.explorer.server import serving

    def make(keys: Any) -> Any:
        from midst.explorer.app import make_live

        return make_live(keys, feed)

    with serving(make, 0) as address:
        try:
            yield address
        finally:
            feed.close()


def _told(end: End, verified: bool) -> dict[str, Any]:
    """How it ended, for the page."""
    answer = end.answer
    found = "" if answer is None else answer.standing(verified)[1]
    return {
        "node": end.node,
        "value": None if answer is None else [_finite(each) for each in answer.value[:MOST_COORDINATES]],
        "rounds": 0 if answer is None else answer.rounds,
        "exposed": None if answer is None else answer.exposed,
        "proved": answer is not None and answer.rank_error is None,
        "text": (end.error or found)[:500],
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
