"""One's own numbers and graph on the page, presets, and the tour: what a first visitor does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from explorer_pages import Opened, parts
from playwright.sync_api import Page, expect

import midst
from midst.explorer.fields import FIELDS, parse
from midst.explorer.presets import presets
from midst.explorer.simulate import Made, prepare
from midst.plots.style import tidy_power
from midst.system import streams

Visit = Callable[..., Opened]
OWN = {"data": "own", "numbers": "3.5\n4.5\n1.5\n8.25", "graph": "own", "edges": "ann bob\nbob cy\ncy dora"}
FIVE = {"method": "consensus", "n": "5", "seed": "3"}
SHOWN = "a.method=consensus&a.n=5&a.seed=3"


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
    page = visit(address, "a.n=5&a.method=consensus").page
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
    made = run(**OWN, method="consensus")
    assert made.result is not None
    expect(page.locator(".headline strong")).to_have_text(f"{len(made.result.exposed)} of 4")
    expect(page.locator(".outcome")).to_contain_text("The low median is 3.5, exact, by")
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


# Numbers unlike those of every preset

PASTED = {
    "salaries": [52100, 65400, 40900, 84300, 71300],
    "skewed, even": [41000, 43000, 44500, 47000, 52000, 250000],
    "tiny": [1e-6, 2.5e-6, 3e-6],
    "negative": [-250000.5, -41000, -39999.25, -1, -12],
    "heavy ties": [7] * 9 + [8] * 2,
    "all the same": [3.5] * 4,
    "far apart": [1e-9, 1, 1e9, 1e12, 3],
    "close together": [50010.001, 50010.002, 50010.0015, 50010.003],
    "sixty": [round(float(wage), 2) for wage in np.random.default_rng(5).lognormal(11, 0.4, 60)],
}


def paste(page: Page, numbers: list[float]) -> None:
    """As a visitor does: chooses own numbers, and puts them in place of what is there."""
    page.get_by_label("numbers", exact=True).select_option("own")
    page.get_by_label("my numbers").fill("\n".join(map(repr, numbers)))
    press_run(page)


@pytest.mark.parametrize("numbers", PASTED.values(), ids=PASTED)
def test_after_any_preset_own_numbers_give_the_answer_that_the_command_gives(
    visit: Visit, address: str, numbers: list[float]
) -> None:
    page = visit(address).page
    low_median = sorted(numbers)[(len(numbers) - 1) // 2]
    for name in ("Far away, with noise", "Shorter intervals", "Nobody exposed"):
        [preset] = [each for each in presets() if each.name == name]
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("#status")).to_have_text(preset.text, timeout=20_000)
        paste(page, numbers)
        expect(page.locator("#status")).to_have_text("Done.", timeout=20_000)
        method = preset.a.get("method", "search")
        graph = midst.graphs.make("rgg", len(numbers), rng=streams(int(preset.a.get("seed", "7"))).graph)
        result = midst.median(numbers, graph, method=method, rng=int(preset.a.get("seed", "7")))
        assert result.value == low_median
        rows = dict(result.rows())
        told = f"The {result.objective} is {tidy_power(rows[result.objective])}, {rows['proof']}."
        expect(page.locator(".outcome")).to_contain_text(told)
        expect(page.locator(".headline strong")).to_have_text(
            "Nobody" if method == "search" else f"{len(result.exposed)} of {len(numbers)}"
        )
        for field in FIELDS:
            if field.group in ("iteration", "defence"):
                assert page.locator(f"#a-{field.name}").input_value() == field.default


def test_numbers_in_place_of_moved_ones_are_not_run_by_what_fitted_those(visit: Visit, address: str) -> None:
    page = visit(address).page
    page.get_by_role("button", name="Started far away: three caught").click()
    expect(page.locator("#status")).to_contain_text("Fig. 2", timeout=20_000)
    drawn = page.locator(".outcome").inner_text()
    handle = page.get_by_role("slider", name="own number of node 1")
    handle.focus()
    page.keyboard.press("PageUp")
    expect(page.get_by_label("numbers", exact=True)).to_have_value("own")
    expect(page.get_by_label("μ", exact=True)).to_have_value("-10")  # the same start, one number moved
    wait(page)
    page.get_by_label("Compare").check()
    wait(page, count=2)
    for side in ("a", "b"):  # neither here, nor in what was copied from here
        panel = page.get_by_role("region", name=f"Run {side.upper()}")
        panel.locator("details.settings").evaluate("each => { each.open = true; }")
        panel.get_by_label("my numbers").fill("52100 65400 40900 84300 71300")
        panel.get_by_label("my numbers").press("Control+Enter")
        expect(panel.locator(".outcome")).to_contain_text("The median is 65400, exact", timeout=20_000)
    page.get_by_label("Compare").uncheck()
    page.get_by_role("button", name="Started far away: three caught").click()
    wait(page)
    handle.focus()
    page.keyboard.press("PageUp")
    expect(page.get_by_label("numbers", exact=True)).to_have_value("own")
    wait(page)
    page.wait_for_url("**a.n=5**")
    page.reload()  # no link has moved numbers; it leads to those that were drawn
    wait(page)
    expect(page.locator(".outcome")).to_have_text(drawn)


def test_what_is_not_proved_is_not_called_the_answer(visit: Visit, address: str, tmp_path: Path) -> None:
    page = visit(address, "a.method=consensus&a.stop=iterations&a.iterations=5&b.n=5&compare=1").page
    wait(page, count=2)
    first = page.get_by_role("region", name="Run A")
    first.locator("details.settings").evaluate("each => { each.open = true; }")
    first.get_by_label("numbers", exact=True).select_option("own")
    first.get_by_label("my numbers").fill("52100 65400 40900 84300 71300")
    first.get_by_label("stop when").select_option("iterations")
    first.get_by_label("iterations", exact=True).fill("5")
    first.get_by_role("button", name="Run", exact=True).click()
    not_yet = "No answer yet: all x lie between 6"
    expect(first.locator(".outcome")).to_contain_text(not_yet)
    expect(page.locator(".outcome").last).to_contain_text("The median is")
    wait(page, count=2)
    page.get_by_label("Show own numbers").uncheck()
    with page.expect_download() as waiting:
        first.get_by_role("button", name="Page", exact=True).click()
    file = tmp_path / "run.html"
    waiting.value.save_as(file)
    saved = visit(file.as_uri(), offline=True).page
    wait(saved, count=2)
    told = saved.get_by_role("region", name="Run A")
    expect(told.locator(".outcome")).to_contain_text(not_yet)
    expect(told.locator(".of-error figcaption")).to_have_text("How far apart the nodes are")
    expect(told.locator(".of-curves .key .answer")).to_be_hidden()  # there is no line of an answer
    plain = visit(file.as_uri(), java_script_enabled=False).page
    expect(plain.locator(".facts")).to_contain_text("no answer yet: all x lie between 6")


# Dragging


def test_an_own_number_is_dragged_and_moved_by_keys(visit: Visit, address: str) -> None:
    page = visit(address, f"{SHOWN}&t=2&node=1").page
    wait(page)
    before = run(**FIVE).values
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
    made = run(**FIVE, data="own", numbers="\n".join(map(repr, moved)), prior_a="0", prior_b="1")
    assert made.result is not None
    expect(page.locator(".headline")).to_contain_text(f"t = {min(2, made.result.iterations - 1)}")
    expect(page.locator(".outcome")).to_contain_text(f"The median is {made.result.value:.10g}".replace("-", "−"))
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
    page = visit(address, f"{SHOWN}&node=1", **phone).page
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
    assert made.result.exposed == ()  # as its name says
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
    result = run(**presets()[0].a).result
    assert result is not None
    told = []
    for step in range(1, 6):
        expect(tour).to_contain_text(f"{step} of 5")
        told.append(tour.locator("p").inner_text())
        expect(page.locator("figure.told")).to_have_count(1)
        if step == 2:
            expect(page.locator("output")).to_have_text(f"probe 1 of {result.probes}")
            expect(tour).to_contain_text(", ".join(map(str, result.trace.probes[0].totals)))
        if step == 5:
            expect(tour).to_contain_text(f"The median is {result.value:.10g}, {dict(result.rows())['proof']}.")
            expect(tour).to_contain_text("Nobody was exposed")
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
    expect(page.get_by_role("region", name="Tour")).to_contain_text("15 nodes")
    expect(page.locator(".headline")).to_contain_text("Nobody exposed")
