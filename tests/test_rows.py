"""What a notebook shows of a result, a trace, a leakage and an aggregate: facts, and no private value."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import midst
from midst.federated import coordinate_median
from midst.rows import as_html, as_text

VALUES = np.random.default_rng(3).normal(size=9)


def cells(html: str) -> dict[str, str]:
    """The rows of a table, by their heads; it is well formed."""
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_data = found.append  # type: ignore[method-assign]
    parser.feed(html)
    assert re.fullmatch(r"<table>(<tr><th>[^<]*</th><td>[^<]*</td></tr>)+</table>", html)
    return dict(zip(found[::2], found[1::2], strict=True))


def test_what_is_special_to_html_is_shown() -> None:
    assert cells(as_html([("a<b", "x & y")])) == {"a<b": "x & y"}
    assert as_text([("a", "1"), ("long", "2")]) == "   a  1\nlong  2"


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_a_trace(method: midst.Result) -> None:
    result = midst.median(VALUES, "ring", rng=5, method=method, keep_values=True, record="audit")
    shown = cells(result.trace._repr_html_())
    assert shown["sought"] == "median"
    assert shown["graph"] == "ring, 9 nodes, 9 edges"
    assert shown["kept besides"].startswith("the private values")
    assert ("iterations" in shown) == (result.method == "consensus")
    others = [value for value in VALUES if value != result.value]
    assert not any(f"{value:.6g}" in result.trace._repr_html_() for value in others)


def test_a_trace_that_keeps_nothing_says_so() -> None:
    assert cells(midst.median(VALUES, "ring").trace._repr_html_())["kept besides"] == "nothing"
    vectors = midst.median(np.column_stack([VALUES] * 6), "ring", method="consensus", rng=5).trace._repr_html_()
    assert cells(vectors)["found"].endswith(" …")
    assert cells(vectors)["c"] == "6, one a coordinate"


def test_a_leakage() -> None:
    trace = midst.median(VALUES, "ring", method="consensus", rng=5, record="audit").trace
    leakage = midst.audit(trace, midst.Adversary((2,), eavesdrops=False))
    shown = cells(leakage._repr_html_())
    assert shown["exposed"].startswith(f"{leakage.exposed_count} of 8 honest nodes")
    assert f"{leakage.mean_bits:.2f} in the mean" in shown["bits a node"]
    assert "upper bound" in shown["bits a node"]
    assert shown["note"].startswith("upper bound on average over runs")


def test_an_aggregate() -> None:
    updates = [{"w": np.array([k, 2.0 * k]), "b": 3.0 - k} for k in range(5)]
    found = coordinate_median(updates, graph="ring", prior=midst.priors.Normal(0, 5))
    shown = cells(found._repr_html_())
    assert shown["found"] == "the median of 3 coordinates, over 5 clients"
    assert shown["questions"] == f"{found.steps} , in {found.rounds} rounds".replace(" ,", ",")
    assert "floor" in shown["gave away"]
    assert shown.keys() == {"found", "questions", "sent", "gave away"}
