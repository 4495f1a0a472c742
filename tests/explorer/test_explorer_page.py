"""The page in a real browser: what a person does with it, by mouse, by keyboard, by link."""

from __future__ import annotations

import csv
import re
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from explorer_pages import Opened
from playwright.sync_api import Page, expect

import midst
from midst.engines import ENGINES
from midst.explorer.app import make_explorer
from midst.explorer.fields import parse
from midst.explorer.live import Feed, serve
from midst.explorer.server import serving
from midst.explorer.simulate import Made, prepare
from midst.net.answer import Answer
from midst.net.events import End, Link, Round, Start
from midst.normals import EdgeNormals
from midst.studies.paper.choices import FAR, NEAR, perform_drawn
from midst.studies.paper.runs import StudySettings as Series
from midst.system import assemble, draw_z0, settle, streams

Visit = Callable[..., Opened]
NEAR_START = {"method": "consensus", "n": "5"}
FAR_START = {"method": "consensus", "n": "15", "mu": "-10", "sigma": "1", "c": "1", "seed": "7", "stop": "certified"}
FRAMES = """frames => new Promise(resolve => {
  const drawn = () => Number(document.getElementById("main").dataset.drawn);
  const seen = new Set(), begun = drawn();
  document.querySelector("[aria-label=Play]").click();
  const look = () => {
    seen.add(document.querySelector("output").textContent);
    if (frames-- > 0) requestAnimationFrame(look);
    else resolve({ drawn: drawn() - begun, times: seen.size });
  };
  requestAnimationFrame(look);
})"""

NAME = """e => e.ariaLabel || e.getAttribute("aria-label") || e.textContent.trim()
  || [...(e.labels ?? [])].map(label => label.textContent).join()"""


def link(**settings: str) -> str:
    return "&".join(f"a.{name}={value}" for name, value in settings.items())


def run(**settings: str) -> Made:
    return prepare(parse(settings)).run()


def wait(page: Page, state: str = "done", count: int = 1) -> None:
    expect(page.locator(f".panel[data-state={state}]")).to_have_count(count, timeout=20_000)


def exposed(made: Made, t: int) -> int:
    """How many have sent their own value up to t."""
    return int((made.trace.branch[: t + 1] == 0).any(axis=0).sum())


def go_to(page: Page, t: int) -> None:
    """By keyboard, from the beginning."""
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    for _ in range(t // 10):
        page.keyboard.press("Shift+ArrowRight")
    for _ in range(t % 10):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_contain_text(f"t = {t} of")


# A run


def test_at_first_it_shows_a_search(visit: Visit, address: str) -> None:
    page = visit(address).page
    wait(page)
    result = run(least="-3", most="3").result
    assert result is not None
    rows = dict(result.rows())
    expect(page.locator(".headline strong")).to_have_text("Nobody")
    expect(page.locator(".outcome")).to_have_text(f"The median is {rows['median']}, {rows['proof']}.")
    assert "token" not in page.url
    assert page.title() == "midst explorer"


def test_a_run_from_the_form_is_the_library_s(visit: Visit, address: str) -> None:
    page = visit(address, link(**NEAR_START)).page
    wait(page)
    page.get_by_label("graph", exact=True).select_option("ring")
    page.get_by_label("nodes", exact=True).fill("9")
    page.get_by_label("seed", exact=True).fill("11")
    page.get_by_role("button", name="Run", exact=True).click()
    made = run(method="consensus", graph="ring", n="9", seed="11")
    assert made.result is not None
    below, equal, above = made.result.standing[0]  # type: ignore[index]
    expect(page.locator(".headline")).to_contain_text(f"{len(made.result.exposed)} of 9")
    expect(page.locator(".outcome")).to_contain_text(f"{below} below, {equal} equal, {above} above")
    expect(page.locator(".proof")).to_contain_text("✓")
    wait(page)
    page.wait_for_url("**a.graph=ring**")


def test_scrubbing_shows_who_was_exposed_by_then(visit: Visit, address: str) -> None:
    page = visit(address, link(**FAR_START)).page
    wait(page)
    made = run(**FAR_START)
    leakage = midst.audit(made.trace, made.adversary, made.prior)
    page.get_by_text("All nodes as a table").click()
    rows = page.locator("tbody tr")
    for t in (0, 75, made.trace.iterations - 1):
        go_to(page, t)
        expect(page.locator(".headline strong")).to_have_text(f"{exposed(made, t)} of 15")
        states = rows.locator("td:nth-child(2)").all_inner_texts()
        now = [text.startswith("◆") for text in states]
        ever = [text.startswith(("◆", "■")) for text in states]
        assert now == (made.trace.branch[t] == 0).tolist()
        assert ever == (made.trace.branch[: t + 1] == 0).any(axis=0).tolist()
        sent = [float(text.replace("−", "-")) for text in rows.locator("td:nth-child(3)").all_inner_texts()]
        assert sent == pytest.approx(made.trace.x[t], rel=1e-5)
        bits = np.array([float(text) for text in rows.locator("td:nth-child(6)").all_inner_texts()])
        assert bits[ever] == pytest.approx(leakage.bits[ever], abs=0.006)
        assert (bits <= leakage.bits + 0.006).all()
    assert bits == pytest.approx(leakage.bits, abs=0.006)


def test_dragging_along_a_chart_moves_through_time(visit: Visit, address: str) -> None:
    page = visit(address, link(**FAR_START)).page
    wait(page)
    box = page.locator(".of-curves .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    page.mouse.down()
    expect(page.locator("output")).to_contain_text("t = 0 of")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30, steps=3)
    page.mouse.up()
    expect(page.locator("output")).to_contain_text(re.compile(r"t = 2\d of"))  # half of a logarithmic axis to 833


def test_pointing_at_a_node_everything_follows_it(visit: Visit, address: str) -> None:
    page = visit(address, link(method="consensus", graph="ring", n="8")).page
    wait(page)
    canvas = page.locator(".of-network canvas").last
    box = canvas.bounding_box()
    assert box is not None
    curves = page.locator(".of-curves .u-over canvas")
    before = curves.screenshot()
    chooser = page.get_by_label("Node", exact=True)
    expect(chooser).to_have_value("")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)  # a ring has node 0 at the top
    expect(chooser).to_have_value("0")
    expect(page.locator(".node")).to_contain_text("sends")
    expect(page.locator(".node")).to_contain_text("bits so far")
    assert curves.screenshot() != before
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 30)
    page.mouse.move(5, 5)
    expect(chooser).to_have_value("0")
    known = page.locator(".of-known canvas").bounding_box()
    assert known is not None
    page.mouse.move(known["x"] + known["width"] - 20, known["y"] + 40)
    expect(chooser).to_have_value("7")
    page.mouse.move(5, 5)
    expect(chooser).to_have_value("0")
    page.locator(".of-network canvas").last.focus()
    page.keyboard.press("ArrowDown")
    expect(chooser).to_have_value("1")


def test_own_numbers_are_behind_a_switch(visit: Visit, address: str) -> None:
    page = visit(address, f"{link(n='5')}&node=2").page
    wait(page)
    switch = page.get_by_label("Show own numbers")
    expect(switch).to_be_checked()
    expect(page.locator(".node")).to_contain_text("own number")
    switch.uncheck()
    expect(page.locator(".node")).not_to_contain_text("own number")
    page.wait_for_url("**values=0**")
    page.reload()
    wait(page)
    expect(switch).not_to_be_checked()


# A search

SEARCH = {"n": "9", "method": "search", "least": "-5", "most": "5"}


def cells(page: Page) -> str:
    """What the funnel shows, in words."""
    return page.locator(".of-funnel canvas").get_attribute("aria-label") or ""


def test_a_search_closes_in_step_by_step_and_nobody_is_lit(visit: Visit, address: str) -> None:
    page = visit(address, f"{link(method='consensus', n='9', least='-5', most='5')}&t=0&node=3").page
    wait(page)
    page.get_by_label("by", exact=True).select_option("search")
    expect(page.get_by_label("c", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".headline strong")).to_have_text("Nobody")
    wait(page)
    made = run(**SEARCH)
    result = made.result
    assert result is not None
    expect(page.locator(".of-curves")).to_be_hidden()
    expect(page.locator(".of-error")).to_be_hidden()
    expect(page.locator(".outcome")).to_contain_text(f"by the totals of {result.probes} probes")
    expect(page.locator(".course")).to_contain_text(f"{result.rounds} rounds")
    page.keyboard.press("Home")
    expect(page.locator("output")).to_have_text(f"probe 0 of {result.probes}")
    assert "Nothing is known yet" in cells(page)
    for step, probe in enumerate(made.trace.probes, start=1):
        page.keyboard.press("ArrowRight")
        expect(page.locator(".headline")).to_contain_text(f"probe {step} of {result.probes}")
        assert f"probe {step}: {', '.join(map(str, probe.totals))}" in cells(page)
        assert f"probe {step + 1}:" not in cells(page)
        assert "The median is" not in cells(page)
    page.keyboard.press("End")
    expect(page.locator(".headline")).to_contain_text(f"round {result.rounds} of {result.rounds}")
    assert "The median is" in cells(page)
    marks = page.locator(".of-network canvas").last.get_attribute("aria-label") or ""
    assert "9 not exposed so far, 0 sends its own number now, 0 exposed" in marks


def test_of_a_node_a_search_tells_the_others_bits_and_their_floor(visit: Visit, address: str) -> None:
    page = visit(address, f"{link(**SEARCH)}&node=3").page
    wait(page)
    made = run(**SEARCH)
    leakage = midst.audit(made.trace, made.adversary, made.prior)
    about = page.locator(".node")
    expect(about).to_contain_text(f"others learn {leakage.bits[3]:.2f} bits")
    expect(about).to_contain_text(f"by the answer alone {leakage.floor[3]:.2f} bits")
    expect(about).to_contain_text(f"by the totals besides {leakage.excess[3]:.2f} bits")
    expect(page.locator(".of-known")).to_contain_text("whoever hears the totals")
    page.get_by_text("All nodes as a table").click()
    expect(page.locator("thead")).to_have_text(re.compile("bits.*floor.*excess.*own number"))
    told = page.locator("tbody tr").nth(3).locator("td").all_inner_texts()
    assert told[1:4] == [f"{part[3]:.2f}" for part in (leakage.bits, leakage.floor, leakage.excess)]


def test_own_numbers_in_a_search_are_behind_the_switch(visit: Visit, address: str) -> None:
    page = visit(address, link(**SEARCH)).page
    wait(page)
    funnel = page.locator(".of-funnel canvas")
    before = funnel.screenshot()
    page.get_by_label("Show own numbers").uncheck()
    page.wait_for_url("**values=0**")
    assert funnel.screenshot() != before
    made = run(**SEARCH)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV", exact=True).click()
    rows = list(csv.DictReader(Path(waiting.value.path()).read_text().splitlines()))
    assert [int(row["total"]) for row in rows] == [total for probe in made.trace.probes for total in probe.totals]
    assert float(rows[0]["up_to"]) == made.trace.probes[0].thresholds[0]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG", exact=True).click()
    words = [each.text for each in ET.fromstring(Path(waiting.value.path()).read_text()).iter() if each.text]
    assert "probe 1" in words
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG", exact=True).click()
    assert Path(waiting.value.path()).read_bytes().startswith(b"\x89PNG")


def test_a_file_of_a_search_is_shown(visit: Visit, saved: Path) -> None:
    result = midst.median(streams(7).values.standard_normal(9), "ring", method="search", bounds=(-5, 5))
    result.trace.save(saved)
    with serving(lambda keys: make_explorer(keys, saved)) as address:
        page = visit(address).page
        wait(page)
        expect(page.locator("output")).to_have_text(f"probe {result.probes} of {result.probes}")
        expect(page.locator(".headline strong")).to_have_text("Nobody")
        expect(page.get_by_label("Show own numbers")).to_be_disabled()
        page.close()


def test_many_probes_scroll_by(visit: Visit, address: str) -> None:
    page = visit(address, link(n="9", method="search", arity="1", resolution="1e-9")).page
    wait(page)
    result = run(n="9", method="search", arity="1", resolution="1e-9").result
    assert result is not None
    assert result.probes > 8
    assert cells(page).count("probe") >= result.probes - 1
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 1280


def test_consensus_beside_search_in_one_click(visit: Visit, address: str) -> None:
    page = visit(address, link(n="5")).page
    wait(page)
    page.get_by_role("button", name="Consensus | search", exact=True).click()
    wait(page, count=2)
    one, other = page.locator(".panel").all()
    made = run(method="consensus", least="-3", most="3")
    assert made.result is not None
    page.keyboard.press("End")
    expect(one.locator(".headline strong")).to_have_text(f"{len(made.result.exposed)} of 15")
    expect(other.locator(".headline strong")).to_have_text("Nobody")
    found = [panel.locator(".outcome").inner_text().split(",")[0] for panel in (one, other)]
    assert found[0] == found[1]
    expect(other.locator(".of-funnel")).to_be_visible()
    expect(one.locator(".of-funnel")).to_be_hidden()
    page.wait_for_url("**a.method=consensus**")
    page.reload()
    wait(page, count=2)
    expect(page.locator(".headline strong").last).to_have_text("Nobody")


# Two runs


def test_figure_1_beside_figure_2_in_one_click(visit: Visit, address: str) -> None:
    page = visit(address).page
    wait(page)
    page.get_by_role("button", name="Near | far", exact=True).click()
    wait(page, count=2)
    found = [perform_drawn(experiment, Series()).result for experiment in (NEAR, FAR)]
    for panel, result in zip(page.locator(".panel").all(), found, strict=True):
        expect(panel.locator(".headline strong")).to_have_text(f"{len(result.exposed)} of 5")
    go_to(page, 5)
    for panel in page.locator(".panel").all():
        expect(panel.locator(".headline")).to_contain_text("t = 5")
    page.get_by_label("Compare").uncheck()
    expect(page.locator(".panel")).to_have_count(1)
    page.get_by_label("Compare").check()
    expect(page.locator(".panel")).to_have_count(2)


def test_comparing_starts_from_the_same_settings(visit: Visit, address: str) -> None:
    page = visit(address, link(method="consensus", graph="ring", n="7")).page
    wait(page)
    page.get_by_label("Compare").check()
    wait(page, count=2)
    second = page.locator(".panel").nth(1)
    second.get_by_text("Settings").click()
    expect(second.get_by_label("graph", exact=True)).to_have_value("ring")
    second.get_by_label("c", exact=True).fill("3")
    second.get_by_role("button", name="Run", exact=True).click()
    made = run(method="consensus", graph="ring", n="7", c="3")
    expect(second.locator(".outcome")).to_contain_text(f"after {made.trace.iterations} iterations")


def test_presets_say_what_is_to_be_seen(visit: Visit, address: str) -> None:
    page = visit(address, link(n="5")).page
    wait(page)
    for name in ("Far away, with noise", "z(0) heard | sealed", "Started near the answer"):
        button = page.get_by_role("button", name=name, exact=True)
        button.click()
        expect(page.locator("#status")).to_have_text(button.get_attribute("title") or "", timeout=20_000)
        wait(page, count=2 if "|" in name else 1)


# Links, files, downloads


def test_a_link_gives_the_same_page(visit: Visit, address: str) -> None:
    page = visit(address, link(**FAR_START)).page
    wait(page)
    go_to(page, 80)
    page.get_by_label("Node", exact=True).select_option("3")
    page.wait_for_url(re.compile("t=80.*node=3"))
    texts = [page.locator(part).inner_text() for part in (".headline", ".outcome", ".node", ".proof")]
    fragment = urlsplit(page.url).fragment
    assert "token" not in fragment
    page.reload()
    for opened in (page, visit(address, fragment).page):
        wait(opened)
        expect(opened.locator("output")).to_contain_text("t = 80 of")
        expect(opened.locator(".node")).to_contain_text("sends")
        assert [opened.locator(part).inner_text() for part in (".headline", ".outcome", ".node", ".proof")] == texts
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_contain_text("link")


def test_a_link_to_two_runs_gives_both(visit: Visit, address: str) -> None:
    page = visit(address, "a.n=5&a.method=consensus&b.n=7&b.graph=ring&b.method=consensus&compare=1&t=3").page
    wait(page, count=2)
    expect(page.locator(".headline strong").nth(1)).to_contain_text("of 7")
    expect(page.locator("output")).to_contain_text("t = 3 of")


def test_downloads_are_what_is_shown(visit: Visit, address: str) -> None:
    page = visit(address, link(**NEAR_START, seed="3")).page
    wait(page)
    made = run(**NEAR_START, seed="3")

    def download(kind: str) -> bytes:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind, exact=True).click()
        assert waiting.value.suggested_filename.endswith(f".{kind.lower()}")
        return Path(waiting.value.path()).read_bytes()

    rows = list(csv.DictReader(download("CSV").decode().splitlines()))
    assert np.array([[float(row[f"x_{i}"]) for i in range(5)] for row in rows]).tolist() == made.trace.x.tolist()
    inside = [[row[f"sends_own_{i}"] == "1" for i in range(5)] for row in rows]
    assert inside == (made.trace.branch == 0).tolist()
    assert download("PNG").startswith(b"\x89PNG")
    picture = ET.fromstring(download("SVG"))
    shapes = [each.tag.split("}")[1] for each in picture.iter()]
    assert shapes.count("circle") + shapes.count("polygon") >= 5
    assert "path" in shapes


def test_a_file_without_values_has_none_to_show(visit: Visit, saved: Path) -> None:
    drawn = streams(7)
    problem = midst.Problem(midst.graphs.make("rgg", 9, rng=drawn.graph), drawn.values.standard_normal(9))
    result = midst.solve(problem, "consensus", rng=7, record="audit")
    result.trace.save(saved)
    with serving(lambda keys: make_explorer(keys, saved)) as address:
        page = visit(address).page
        wait(page)
        switch = page.get_by_label("Show own numbers")
        expect(switch).not_to_be_checked()
        expect(switch).to_be_disabled()
        expect(page.locator(".headline strong")).to_have_text(f"{len(result.exposed)} of 9")
        expect(page.locator("output")).to_contain_text(f"of {result.iterations - 1}")
        page.get_by_label("z(0) travels").select_option("sealed")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator(".of-known")).to_contain_text("z(0) sealed")
        wait(page)
        page.close()  # while there is a server: a browser asks for the icon again when the address changes


# What is wrong


def test_bad_input_is_said_beside_the_field(visit: Visit, address: str) -> None:
    page = visit(address, link(**NEAR_START)).page
    wait(page)
    page.get_by_label("c", exact=True).fill("-1")
    page.get_by_role("button", name="Run", exact=True).click()
    wait(page, "refused")
    field = page.get_by_label("c", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_be_focused()
    expect(page.locator("#a-c-error")).to_have_text("c must be positive")
    expect(page.locator(".headline strong")).to_contain_text("of 5")  # what was there stays
    field.fill("2")
    page.keyboard.press("Enter")
    wait(page)
    expect(field).to_have_attribute("aria-invalid", "false")


@pytest.mark.parametrize(
    ("fragment", "field", "words"),
    [
        ("a.n=many", "#a-n-error", "whole number"),
        ("a.graph=blob", "#a-graph-error", "one of rgg"),
        ("a.n=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "#a-n-error", "whole number"),
        ("a.colour=red", ".settings .buttons .error", "colour: there is no such setting"),
    ],
)
def test_a_bad_link_is_said_beside_the_field(visit: Visit, address: str, fragment: str, field: str, words: str) -> None:
    page = visit(address, fragment).page
    wait(page, "refused")
    expect(page.locator(field)).to_contain_text(words)


def test_a_link_to_a_time_or_node_that_does_not_exist_is_no_harm(visit: Visit, address: str) -> None:
    page = visit(address, f"{link(**NEAR_START)}&t=999999&node=77&axis=sideways&%00=%ff").page
    wait(page)
    last = run(**NEAR_START).trace.iterations - 1
    expect(page.locator("output")).to_have_text(f"t = {last} of {last}")
    expect(page.get_by_label("Node", exact=True)).to_have_value("")


def test_a_run_can_be_cancelled(visit: Visit, address: str) -> None:
    page = visit(address, link(method="consensus", n="400", init="sealed")).page
    expect(page.locator("#status")).to_contain_text("Auditing", timeout=20_000)
    page.get_by_role("button", name="Cancel").click()
    wait(page, "cancelled")
    expect(page.locator(".headline strong")).to_contain_text("of 400")
    page.get_by_label("nodes", exact=True).fill("5")
    page.keyboard.press("Enter")
    expect(page.locator(".headline strong")).to_contain_text("of 5", timeout=20_000)


def test_without_its_token_the_page_says_where_to_find_it(visit: Visit, address: str) -> None:
    opened = visit(address.partition("#")[0])
    expect(opened.page.locator("#status")).to_contain_text("open the address that midst printed")
    assert len(opened.complaints) == 1  # the browser's own note of the refusal
    assert "401" in opened.complaints.pop()


# By keyboard, on a telephone, in the dark


def test_everything_can_be_done_by_keyboard(visit: Visit, address: str) -> None:
    page = visit(address, link(**NEAR_START)).page
    wait(page)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "a-n":
            break
    page.keyboard.press("Control+A")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(page.locator(".headline strong")).to_contain_text("of 7")
    wait(page)
    page.locator("main").focus()
    page.keyboard.press("Home")
    expect(page.locator("output")).to_contain_text("t = 0 of")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("output")).to_contain_text("t = 1 of")
    page.keyboard.press("End")
    last = run(**NEAR_START | {"n": "7"}).trace.iterations - 1
    expect(page.locator("output")).to_have_text(f"t = {last} of {last}")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_what_is_drawn_is_said_in_words_too(visit: Visit, address: str) -> None:
    page = visit(address, link(**NEAR_START)).page
    wait(page)
    label = page.locator(".of-network canvas").last.get_attribute("aria-label") or ""
    assert re.search(r"Network of 5 nodes at iteration \d+: \d not exposed so far", label)
    for control in page.locator("input, select, button, canvas[role]").all():
        name = control.evaluate(NAME)
        assert name, control.evaluate("e => e.outerHTML")
    expect(page.locator("#status")).to_have_attribute("aria-live", "polite")
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone(visit: Visit, address: str, scheme: str) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme, "has_touch": True, "is_mobile": True}
    page = visit(address, "a.n=15&a.method=consensus&b.n=15&compare=1", **phone).page
    wait(page, count=2)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    size = page.locator(".outcome").first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
    assert size >= 13
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", background)[:3])) > 3 * 128
    assert light == (scheme == "light")


def test_text_stands_out_in_light_and_dark(visit: Visit, address: str) -> None:
    """Contrast of all text against its card, by WCAG: at least 4.5 to 1."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for scheme in ("light", "dark"):
        page = visit(address, link(n="5"), color_scheme=scheme).page
        names = ["card", "page", "text", "faint", "error", "exposed", "hidden", "value", "accent"]
        read = "names => names.map(n => getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim())"
        card, back, *texts = page.evaluate(read, names)
        for colour in texts:
            for behind in (card, back):
                bright, dim = sorted((luminance(colour), luminance(behind)), reverse=True)
                assert (bright + 0.05) / (dim + 0.05) >= 4.5, (scheme, colour, behind)


# Speed


def test_two_hundred_nodes_and_five_thousand_iterations_play_frame_by_frame(visit: Visit, address: str) -> None:
    settings = {"method": "consensus", "n": "200", "stop": "iterations", "iterations": "5000"}
    page = visit(address, f"{link(**settings)}&t=0&axis=linear").page
    wait(page)
    page.get_by_label("Speed").select_option("0.25")
    seen = page.evaluate(FRAMES, 60)
    assert seen["drawn"] >= 58  # every frame of the screen has its own picture
    assert seen["times"] >= 50  # and its own time


# Live


def drive(feed: Feed, *, everything: bool, node: int | None = None) -> float:
    """Publishes a run of the reference engine, as a network of nodes would; the answer."""
    drawn = streams(7)
    graph = midst.graphs.make("rgg", 9, rng=drawn.graph)
    problem = midst.Problem(graph, drawn.values.standard_normal(9), objective=midst.Quantile(0.5))
    parameters = settle(problem, c=1.0, mu=-6.0, sigma=1.0)
    system = assemble(problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(drawn.z0)))
    once = graph.source < graph.target
    edges = np.column_stack([graph.source[once], graph.target[once]]).tolist()
    names = tuple(f"party-{i}" for i in range(9))
    feed.publish(Start(names, edges, "median", "consensus", all=everything, own=node))
    for i, j in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        feed.publish(Link(i, j, up=True))
    for t, (x, branch) in zip(range(40), ENGINES["reference"](system), strict=False):
        for i in range(9):
            sent = [float(x[i] * parameters.unit)]
            feed.publish(Round(i, t, sent, [int(branch[i])]))
    value = float(np.median(problem.values))
    for i in range(9):
        feed.publish(End(i, Answer((value,), (), 0.0, rounds=t + 1, exposed=False)))
    return value


def test_a_running_network_is_followed(visit: Visit) -> None:
    feed = Feed()
    with serve(feed) as address:
        page = visit(address).page
        expect(page.locator("#status")).to_contain_text("Waiting")
        answers: list[float] = []
        network = threading.Thread(target=lambda: answers.append(drive(feed, everything=True)))
        network.start()
        expect(page.locator(".outcome")).to_contain_text("known to 9 of 9 nodes", timeout=20_000)
        network.join()
        expect(page.locator(".outcome")).to_contain_text(f"The median is {answers[0]:.10g}".replace("-", "−"))
        expect(page.locator(".headline strong")).to_have_text(re.compile(r"[1-9] of 9"))
        page.get_by_text("All nodes as a table").click()
        expect(page.locator("tbody tr")).to_have_count(9)
        expect(page.locator("tbody")).to_contain_text("◆")
        page.keyboard.press("Home")
        expect(page.locator("output")).to_contain_text("t = 0 of")
        expect(page.locator("form")).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("ended")


def test_an_answer_with_noise_is_not_called_the_median(visit: Visit) -> None:
    feed = Feed()
    feed.publish(Start(("ann", "ben", "cat"), [[0, 1], [1, 2]], "median", "search", all=True, own=None))
    for i in range(3):
        feed.publish(End(i, Answer((4.5,), (), None, rounds=9, exposed=False, rank_error=0.25)))
    with serve(feed) as address:
        page = visit(address).page
        expect(page.locator(".outcome")).to_contain_text("With noise, 4.5 was found; nothing proves it")
        expect(page.locator(".outcome")).not_to_contain_text("median")
        expect(page.locator(".of-funnel canvas")).not_to_have_attribute("aria-label", re.compile("The median is"))


def test_a_real_node_s_page_shows_that_node_only(visit: Visit) -> None:
    feed = Feed()
    drive(feed, everything=False, node=2)
    with serve(feed) as address:
        page = visit(address).page
        expect(page.locator(".headline")).to_contain_text("party-2")
        expect(page.locator(".outcome")).to_contain_text("known to party-2")
        page.get_by_text("All nodes as a table").click()
        sent = page.locator("tbody td:nth-child(3)").all_inner_texts()
        assert [bool(text) for text in sent] == [i == 2 for i in range(9)]
        states = page.locator("tbody td:nth-child(2)").all_inner_texts()
        assert [text for i, text in enumerate(states) if i != 2] == ["○ another party: not shown"] * 8
