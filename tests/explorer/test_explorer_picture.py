"""Pictures that are taken away, and runs of many nodes: what can be read in them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from explorer_pages import Opened
from PIL import Image
from playwright.sync_api import Page, expect

from midst.explorer.fields import parse
from midst.explorer.simulate import prepare

Visit = Callable[..., Opened]


def wait(page: Page) -> None:
    expect(page.locator(".panel[data-state=done]")).to_have_count(1, timeout=30_000)


def download(page: Page, kind: str) -> bytes:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=kind, exact=True).click()
    return Path(waiting.value.path()).read_bytes()


def words_of(picture: bytes) -> list[str]:
    return [each.text for each in ET.fromstring(picture).iter() if each.text]


def test_a_saved_picture_has_titles_axes_legend_and_the_time(visit: Visit, address: str) -> None:
    page = visit(address, "a.method=consensus&a.n=7&a.mu=-6&a.c=1&a.stop=certified&node=2&t=20").page
    wait(page)
    picture = download(page, "SVG")
    words = words_of(picture)
    assert words[0].startswith(page.locator(".headline").inner_text())  # what a screen reader says of it
    assert page.locator(".outcome").inner_text() in words
    for title in page.locator("figcaption").all():
        assert not title.is_visible() or title.inner_text() in words
    assert words.count("iteration t") == words.count("t = 20") == 2
    assert {"x", "error", "bits"} <= set(words)
    legend = page.locator(".key > span").all()
    told = {span.inner_text().lstrip("●◆■") for span in legend if span.is_visible()}
    assert len(told) >= 12
    assert told <= set(words)
    page.keyboard.press("End")
    expect(page.locator("output")).not_to_contain_text("t = 20 of")
    assert "t = 20" not in words_of(download(page, "SVG"))
    image = np.asarray(Image.open(BytesIO(download(page, "PNG"))).convert("L"))
    assert image.shape[1] > 1500
    assert image.std() > 10  # something is drawn in it


def test_two_thousand_nodes_can_be_read(visit: Visit, address: str) -> None:
    page = visit(address, "a.method=consensus&a.n=2000&a.stop=iterations&a.iterations=60&t=40").page
    wait(page)
    made = prepare(parse({"method": "consensus", "n": "2000", "stop": "iterations", "iterations": "60"})).run()
    expect(page.locator(".of-network .marks")).to_contain_text("shaded by how many cross")
    picture = download(page, "SVG").decode()
    assert len(picture) < 4_000_000  # 41,000 edges one by one would be more
    assert any(text.startswith("2,000 nodes") for text in words_of(picture.encode()))
    box = page.locator(".of-known canvas").bounding_box()
    assert box is not None
    chooser = page.get_by_label("Node", exact=True)
    branch = made.trace.branch[:41]
    for place, side in ((0.2, 1), (0.9, -1)):  # in the order of what is known of them: first who can only be lower
        page.mouse.move(box["x"] + 46 + place * (box["width"] - 54), box["y"] + 40)
        expect(chooser).not_to_have_value("")
        assert (branch[:, int(chooser.input_value())] == side).all()
    inked = page.locator(".of-network canvas").first.evaluate(
        """canvas => {
          const { width, height } = canvas, seen = new Set();
          const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
          for (let k = 3; k < data.length; k += 4) if (data[k]) seen.add(Math.floor(((k >> 2) % width) / 8));
          return seen.size / Math.floor(width / 8);
        }"""
    )
    assert inked > 0.9  # from the left to the right


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            "",
            r"The median is \S+, exact, by the totals of \d+ probes: 2 below, 1 equal, 2 above\. "
            r"Stopped after \d+ iterations: all x were close enough for a search\.",
        ),
        (
            "&a.stop=certified",
            r"The median is \S+, certified to within 2e-06\. Stopped after \d+ iterations: all x were close enough\.",
        ),
        (
            "&a.stop=iterations&a.iterations=3",
            r"No answer yet: all x lie between \S+ and \S+\. Stopped after 3 iterations, as was asked\.",
        ),
    ],
)
def test_why_a_run_stopped_stands_beside_its_answer(visit: Visit, address: str, settings: str, words: str) -> None:
    page = visit(address, f"a.method=consensus&a.n=5{settings}").page
    wait(page)
    expect(page.locator(".outcome")).to_have_text(re.compile(words))


def test_nodes_have_their_names(visit: Visit, address: str) -> None:
    edges = "anna bob\nbob carl\ncarl dora-of-the-hospital\ndora-of-the-hospital anna\n1000 anna"
    settings = {"graph": "own", "edges": edges, "method": "consensus", "adversary": "both", "corrupt": "carl, 1000"}
    page = visit(address, "&".join(f"a.{name}={quote(words)}" for name, words in settings.items())).page
    wait(page)
    words = words_of(download(page, "SVG"))
    for name, times in (("anna", 2), ("bob", 2), ("carl", 2), ("1000", 2), ("dora-of-t…ital", 1), ("dor…ital", 1)):
        assert words.count(name) == times
    page.get_by_text("All nodes as a table").click()
    rows = {row.locator("th").inner_text(): row.inner_text() for row in page.locator("tbody tr").all()}
    assert list(rows) == ["anna", "bob", "carl", "dora-of-the-hospital", "1000"]
    assert {name for name, row in rows.items() if "corrupt" in row} == {"carl", "1000"}
