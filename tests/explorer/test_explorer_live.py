"""A feed: bounded, safe from any thread, and never more than its owner may see."""

from __future__ import annotations

import json
import math
import threading
from itertools import pairwise
from sys import float_info
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from midst.explorer.gate import TOKEN
from midst.explorer.live import MOST_COORDINATES, Feed, serve
from midst.net.answer import Answer
from midst.net.events import End, Link, Round, Searching, Start

SECRET = 31337.4242
ALL = Start(("a", "b", "c"), [[0, 1], [1, 2]], "median", "consensus", all=True, own=None)
ONE = replace(ALL, all=False, own=1)


def say(node: int, t: int, x: float = 0.5, branch: int = 1) -> Round:
    return Round(node, t, [x], [branch])


def end(node: int, value: float = 1.0) -> End:
    return End(node, Answer((value,), ((3, 4, 9),), 0.0, rounds=9, exposed=False))


def everything(feed: Feed) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"start": [], "rounds": [], "first": [], "links": [], "ends": []}
    place = 0
    while True:
        place, news = feed.since(place)
        if not news:
            return found
        for name, part in news.items():
            found[name] += part if isinstance(part, list) else [part]


def test_what_is_published_is_told_once_and_in_order() -> None:
    feed = Feed()
    assert feed.since(0) == (0, {})
    feed.publish(ALL)
    feed.publish(say(0, 0))
    place, news = feed.since(0)
    about = {"objective": "median", "method": "consensus", "all": True, "self": None, "verified": False}
    assert json.loads(json.dumps(news["start"])) == {"names": ["a", "b", "c"], "edges": [[0, 1], [1, 2]], **about}
    assert news["rounds"] == [(0, 0, [0.5], [1])]
    feed.publish(say(1, 0, branch=0))
    feed.publish(Link(0, 1, up=False))
    feed.publish(end(2))
    place, news = feed.since(place)
    assert news["rounds"] == [(1, 0, [0.5], [0])]
    assert news["first"] == [[1, 0]]
    assert news["links"] == [[0, 1, False]]
    words = "3 below, 4 above, of 9; votes were not proved"
    assert news["ends"] == [{"node": 2, "value": [1.0], "rounds": 9, "exposed": False, "proved": True, "text": words}]
    assert feed.since(place)[1] == {}


def test_memory_is_bounded_and_the_first_plateau_is_not_forgotten() -> None:
    feed = Feed(most=100)
    feed.publish(ALL)
    for t in range(10_000):
        for node in range(3):
            feed.publish(say(node, t, float(t), 0 if (node, t) == (2, 777) else 1))
    found = everything(feed)
    times = sorted({t for _, t, _, _ in found["rounds"]})
    assert len(found["rounds"]) <= 100
    assert times[0] == 0
    assert times[-1] > 9000
    assert len({b - a for a, b in pairwise(times)}) == 1
    assert found["first"] == [[2, 777]]


def look(node: int, step: int, low: float, high: float, *waiting: int) -> Round:
    return Round(node, step, [], [], Searching(step, [(low, high, 9 - step)], list(waiting)))


def test_a_search_is_told_by_its_brackets() -> None:
    feed = Feed()
    feed.publish(replace(ALL, method="search"))
    feed.publish(look(0, 0, -math.inf, float_info.max, 1, 2))
    feed.publish(look(1, 0, -math.inf, float_info.max, 2))
    feed.publish(look(0, 0, -math.inf, float_info.max, 2))
    place, news = feed.since(0)
    assert news["start"]["method"] == "search"
    assert "rounds" not in news  # nothing was sent that has a curve
    assert "first" not in news  # and nobody is lit
    assert news["search"]["waiting"] == [2]
    feed.publish(look(2, 1, -1.5, 2.5, 0))
    place, news = feed.since(place)
    first, second = news["search"]["rows"]
    assert (first["ends"], first["totals"]) == ((-float_info.max, float_info.max), (9,))
    assert (second["ends"], second["totals"], second["opens"]) == ((-1.5, 2.5), (8,), (0, 0))
    assert first["left"] < second["left"] < second["right"] < first["right"]
    assert feed.since(place)[1] == {}
    json.dumps(news, allow_nan=False)


def test_of_a_search_that_follows_the_iteration_both_are_told() -> None:
    feed = Feed()
    feed.publish(ALL)
    feed.publish(replace(look(0, 1, 0.0, 1.0, 1), t=7, x=[0.25], branch=[0]))
    news = feed.since(0)[1]
    assert news["rounds"] == [(0, 7, [0.25], [0])]
    assert news["first"] == [[0, 7]]
    assert news["search"]["rows"][0]["step"] == 1


def test_links_that_come_and_go_do_not_pile_up() -> None:
    feed = Feed()
    feed.publish(ALL)
    for k in range(10_001):
        feed.publish(Link(0, 1, up=k % 2 == 1))
    assert everything(feed)["links"] == [[0, 1, False]]


def test_a_long_history_is_told_in_pieces() -> None:
    feed = Feed()
    feed.publish(ALL)
    for t in range(30_000):
        feed.publish(say(0, t))
    place, news = feed.since(0)
    assert len(news["rounds"]) == 20_000
    assert len(feed.since(place)[1]["rounds"]) == 10_000


@given(
    st.lists(
        st.builds(say, st.integers(-2, 5), st.integers(0, 9), st.just(SECRET), st.sampled_from([-1, 0, 1]))
        | st.builds(end, st.integers(-2, 5), st.just(SECRET))
        | st.builds(Link, st.integers(-2, 5), st.integers(-2, 5), st.booleans()),
        max_size=30,
    )
)
def test_of_a_real_node_s_neighbours_nothing_is_kept(published: list[Round | End | Link]) -> None:
    feed = Feed()
    feed.publish(ONE)
    for event in published:
        feed.publish(event)
    found = everything(feed)
    assert {node for node, *_ in found["rounds"]} <= {1}
    assert {each["node"] for each in found["ends"]} <= {1}
    assert {node for node, *_ in found["first"]} <= {1}
    assert {node for node, *_ in found["links"]} <= {1}
    others = Feed()
    others.publish(ONE)
    for event in published:
        if event.node != 1:
            others.publish(event)
    assert str(SECRET) not in json.dumps(everything(others))
    assert str(SECRET) not in repr(vars(others))


def test_nothing_is_kept_that_was_said_before_the_start_or_is_of_nobody() -> None:
    feed = Feed()
    feed.publish(say(0, 0))
    feed.publish(end(0))
    feed.publish(ALL)
    feed.publish(say(3, 0))
    feed.publish(Link(0, 3, up=True))
    assert set(feed.since(0)[1]) == {"start"}


def test_numbers_that_json_cannot_say_and_long_vectors_are_cut() -> None:
    feed = Feed()
    feed.publish(ALL)
    feed.publish(Round(0, 0, [float("nan")] * 100, [1] * 100))
    feed.publish(End(0, None, "waited" * 100))
    found = everything(feed)
    assert found["rounds"][0][2] == [None] * MOST_COORDINATES
    assert found["ends"] == [
        {"node": 0, "value": None, "rounds": 0, "exposed": None, "proved": False, "text": ("waited" * 100)[:500]}
    ]
    json.dumps(found, allow_nan=False)


def test_a_new_start_forgets_what_was() -> None:
    feed = Feed()
    feed.publish(ALL)
    feed.publish(say(0, 0))
    place, _ = feed.since(0)
    feed.publish(ONE)
    assert set(feed.since(place)[1]) == {"start"}
    assert everything(feed)["rounds"] == []


def test_many_threads_may_publish() -> None:
    feed = Feed()
    feed.publish(replace(ALL, names=tuple(map(str, range(8)))))
    threads = [
        threading.Thread(target=lambda i=i: [feed.publish(say(i, t)) for t in range(500)])  # type: ignore[misc]
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rounds = everything(feed)["rounds"]
    assert len(rounds) == 4000
    for i in range(8):
        assert [t for node, t, _, _ in rounds if node == i] == list(range(500))


def test_it_is_served_while_the_context_lasts() -> None:
    feed = Feed()
    feed.publish(ONE)
    feed.publish(say(1, 0, 0.25))
    feed.publish(say(2, 0, SECRET))
    with serve(feed) as address:
        parts = urlsplit(address)
        base, headers = f"http://{parts.netloc}", {TOKEN: parts.fragment.removeprefix("token=")}
        assert httpx.get(f"{base}/api/hello", headers=headers).json()["page"] == "live"
        assert httpx.get(f"{base}/api/live").status_code == 401
        assert httpx.post(f"{base}/api/runs", headers={**headers, "origin": base}, json={}).status_code == 404
        with httpx.stream("GET", f"{base}/api/live", headers=headers, timeout=20) as answer:
            lines = answer.iter_lines()
            news = json.loads(next(lines)[6:])
            assert news["rounds"] == [[1, 0, [0.25], [1]]]
            assert str(SECRET) not in json.dumps(news)
            feed.publish(say(1, 1, 0.5))
            assert json.loads(next(line for line in lines if line)[6:])["rounds"] == [[1, 1, [0.5], [1]]]
            feed.close()
            assert [line for line in lines if line] == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(base)
