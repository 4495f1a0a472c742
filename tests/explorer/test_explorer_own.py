"""One's own numbers and graph on the page, presets, and the tour: what a first visitor does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from explorer_pages import Opened, parts
from playwright.sync_api import Page, expect

from midst.explorer.fields import parse
from midst.explorer.presets import presets
from midst.explorer.simulate import Made, prepare

Visit = Callable[..., Opened]
OWN = {"data": "own", "numbers": "3.5\n4.5\n1.5\n8.25", "graph": "own", "edges": "ann bob\nbob cy\ncy dora"}


def wait(page: Page, state: str = "done", count: int = 1) -> None:
    expect(page.locator(f".panel[data-state={state}]")).to_have_count(count, timeout=20_000)


def run(**settings: str) -> Made:
    return prepare(parse(settings)).run()


def press_run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def typed(page: Page) -> list[float]:
    return [float(line) for line in page.get_by_label("my numbers").input_value().splitlines()]


# Own numbers, own graph


def test_own_numbers_and_an_own_graph_are_run_and_stay_out_of_the_address(visit: Visit, address: str) -> None:
    page = visit(address, "a.n=5").page
    wait(page)
    page.get_by_label("graph", exact=True).select_option("own")
    page.get_by_label("edges", exact=True).fill("ann bob\ncy dora")
    page.get_by_label("numbers", exact=True).select_option("own")
    expect(page.get_by_label("nodes", exact=True)).to_be_hidden()
    numbers = page.get_by_label("my numbers")
    expect(page.locator("#a-numbers-help")).to_contain_text("in no link")
    numbers.fill("3.5\n8.25x")
    press_run(page)
    wait(page, "refused")
    expect(page.locator("#a-numbers-error")).to_have_text("my numbers, line 2: not a number")
    expect(page.locator("#a-edges-error")).to_contain_text("2 components ({ann, bob} and {cy, dora})")
    numbers.fill("3.5\n4.5 1.5")
    page.get_by_label("edges", exact=True).fill(OWN["edges"])
    press_run(page)
    expect(page.locator("#a-numbers-error")).to_contain_text("3 numbers for the 4 nodes")
    wait(page, "refused")
    numbers.fill(OWN["numbers"])
    press_run(page)
    wait(page)
    made = run(**OWN)
    assert made.result is not None
    expect(page.locator(".headline strong")).to_have_text(f"{len(made.result.exposed)} of 4")
    expect(page.locator(".outcome")).to_contain_text("The low median is 3.5, exact.")
    expect(page.get_by_label("Node", exact=True)).to_contain_text("node dora")
    page.wait_for_url("**a.data=own**")
    assert "ann" in page.url
    assert "8.25" not in page.url
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_contain_text("your own numbers are not in it")
    page.get_by_label("Show own numbers").uncheck()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Page", exact=True).click()
    told = parts(Path(waiting.value.path()).read_text())
    assert b'"values"' not in told["a.run"]
    assert b'"dots"' not in told["a.run"]
    page.reload()
    wait(page, "refused")
    expect(page.locator("#a-numbers-error")).to_contain_text("no link has them")


# Dragging


def test_an_own_number_is_dragged_and_moved_by_keys(visit: Visit, address: str) -> None:
    page = visit(address, "a.n=5&a.seed=3&t=2&node=1").page
    wait(page)
    before = run(n="5", seed="3").values
    assert before is not None
    handle = page.get_by_role("slider", name="own number of node 1")
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 40, steps=3)
    expect(page.get_by_label("numbers", exact=True)).to_have_value("drawn")  # nothing happens before it is let go
    page.mouse.up()
    expect(page.get_by_label("numbers", exact=True)).to_have_value("own")
    wait(page)
    moved = typed(page)
    assert moved[1] < before[1] - 0.1
    assert [moved[i] for i in (0, 2, 3, 4)] == [before[i] for i in (0, 2, 3, 4)]
    made = run(n="5", seed="3", data="own", numbers="\n".join(map(repr, moved)), prior_a="0", prior_b="1")
    assert made.result is not None
    expect(page.locator(".headline")).to_contain_text(f"t = {min(2, made.result.iterations - 1)}")
    expect(page.locator(".outcome")).to_contain_text(f"The median is {made.result.value:.6g}".replace("-", "−"))
    expect(handle).to_be_focused()  # the run has been made again, and the hand is where it was
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    page.wait_for_function(
        "before => document.querySelector('#a-numbers').value.split('\\n')[1] !== before", arg=str(moved[1])
    )
    assert typed(page)[1] > moved[1]
    wait(page)
    expect(handle).to_be_focused()
    page.get_by_label("Show own numbers").uncheck()
    expect(handle).to_be_hidden()


def test_own_numbers_are_dragged_by_touch(visit: Visit, address: str) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = visit(address, "a.n=5&a.seed=3&node=1", **phone).page
    wait(page)
    handle = page.get_by_role("slider", name="own number of node 1")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + 10, box["y"] + 10
    hand = page.context.new_cdp_session(page)
    for kind, points in (("Start", [{"x": x, "y": y}]), ("Move", [{"x": x, "y": y + 30}]), ("End", [])):
        hand.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    expect(page.locator("#a-data")).to_have_value("own")
    wait(page)


# Presets


def test_the_preset_that_is_shown_is_lit(visit: Visit, address: str) -> None:
    page = visit(address).page
    wait(page)
    lit = page.locator(".presets [aria-pressed=true]")
    expect(lit).to_have_text(presets()[0].name)
    made = run(**presets()[0].a)
    assert made.result is not None
    assert len(made.result.exposed) == 3  # as its name says
    page.get_by_label("seed", exact=True).fill("2")
    page.keyboard.press("Tab")
    expect(lit).to_have_count(0)
    page.get_by_role("button", name="Consensus | search").click()
    expect(lit).to_have_text("Consensus | search")
    wait(page, count=2)
    page.get_by_label("Compare").uncheck()
    expect(lit).to_have_count(0)


# The tour


def test_a_first_visitor_is_offered_a_tour_and_can_take_it_by_keyboard(visit: Visit, address: str) -> None:
    page = visit(address).page
    wait(page)
    offer = page.locator("#offer")
    page.get_by_role("button", name="Show me").press("Enter")
    expect(offer).to_be_hidden()
    tour = page.get_by_role("region", name="Tour")
    made = run(**presets()[0].a)
    inside = made.trace.branch == 0
    first = int(inside.argmax(axis=0)[inside.any(axis=0)].min())
    told = []
    for step in range(1, 6):
        expect(tour).to_contain_text(f"{step} of 5")
        told.append(tour.locator("p").inner_text())
        expect(page.locator("figure.told")).to_have_count(1)
        if step == 3:
            expect(page.locator("output")).to_contain_text(f"t = {first} of")
            expect(page.locator(".node")).to_contain_text("sends its own number now")
        if step == 5:
            expect(tour).to_contain_text("3 of 5 were exposed")
        page.keyboard.press("Enter" if step % 2 else "ArrowRight")
    assert len(set(told)) == 5
    expect(tour).to_be_hidden()
    expect(page.get_by_role("button", name="Tour")).to_be_focused()
    page.keyboard.press("Enter")
    expect(tour).to_contain_text("1 of 5")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(tour).to_contain_text("1 of 5")
    page.keyboard.press("Escape")
    expect(tour).to_be_hidden()
    page.goto("about:blank")
    page.goto(address)  # as on the first visit, but for what the page remembers
    wait(page)
    expect(offer).to_be_hidden()


def test_the_tour_begins_with_its_own_run_and_is_not_offered_to_who_follows_a_link(visit: Visit, address: str) -> None:
    page = visit(address, "a.n=9&a.graph=ring").page
    wait(page)
    expect(page.locator("#offer")).to_be_hidden()
    page.get_by_role("button", name="Tour").click()
    expect(page.get_by_role("region", name="Tour")).to_contain_text("5 nodes")
    expect(page.locator(".headline strong")).to_have_text(re.compile("of 5"))
