"""The page for everybody: what axe-core finds, a whole session without a mouse, and no motion for who wants none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from explorer_pages import Opened
from playwright.sync_api import Page, expect
from test_explorer_page import drive

from midst.explorer.fields import parse
from midst.explorer.live import Feed, serve
from midst.explorer.simulate import prepare

Visit = Callable[..., Opened]
LIGHT, DARK = ({"color_scheme": scheme} for scheme in ("light", "dark"))
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def wait(page: Page, state: str = "done", count: int = 1) -> None:
    expect(page.locator(f".panel[data-state={state}]")).to_have_count(count, timeout=20_000)


def findings(page: Page) -> list[str]:
    """What axe-core has to say of the page as it is now."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core; pip install '.[test]'")
    found = axe.Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found for node in each["nodes"]]


# axe-core


def test_axe_finds_what_is_wrong(visit: Visit, address: str) -> None:
    page = visit(address, "a.n=5").page
    wait(page)
    page.evaluate("document.querySelector('#slider').removeAttribute('aria-label')")
    assert any("#slider" in each for each in findings(page))


@pytest.mark.parametrize(
    "look", [{"color_scheme": "light"}, {"color_scheme": "dark"}, {"color_scheme": "dark", **PHONE}]
)
def test_axe_finds_nothing_on_the_explorer(visit: Visit, address: str, look: dict[str, object]) -> None:
    page = visit(address, **look).page
    wait(page)
    page.get_by_text("All nodes as a table").click()
    assert findings(page) == []
    page.get_by_role("button", name="Show me").click()
    page.get_by_role("button", name="Next").click()
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.get_by_label("numbers", exact=True).evaluate("e => { e.closest('details').open = true; e.value = 'own'; }")
    page.get_by_role("button", name="Run", exact=True).click()
    wait(page, "refused")
    assert findings(page) == []


@pytest.mark.parametrize("look", [LIGHT, DARK | PHONE])
def test_axe_finds_nothing_where_two_are_compared(visit: Visit, address: str, look: dict[str, object]) -> None:
    page = visit(address, "a.n=7&a.method=consensus&b.n=7&compare=1&node=2", **look).page
    wait(page, count=2)
    assert findings(page) == []


@pytest.mark.parametrize("everything", [True, False])
def test_axe_finds_nothing_on_a_live_page(visit: Visit, everything: bool) -> None:
    feed = Feed()
    drive(feed, everything=everything, node=None if everything else 2)
    with serve(feed) as address:
        page = visit(address).page
        expect(page.locator(".outcome")).to_contain_text("known to")
        assert findings(page) == []
        page.close()


# By keyboard


def tab_to(page: Page, selector: str, back: bool = False) -> None:
    """As somebody without a mouse gets there."""
    for _ in range(90):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the tabulator key does not lead to {selector}")


def test_a_whole_session_without_a_mouse(visit: Visit, address: str) -> None:
    page = visit(address).page
    wait(page)
    tab_to(page, "#offer button:nth-of-type(2)")
    page.keyboard.press("Enter")
    expect(page.locator("#offer")).to_be_hidden()
    tab_to(page, ".presets button:nth-of-type(3)")
    page.keyboard.press("Enter")
    expect(page.locator(".headline strong")).to_have_text("1 of 5")
    wait(page)
    tab_to(page, "#a-data")
    page.keyboard.press("ArrowDown")
    tab_to(page, "#a-numbers")
    for line in ("3", "1", "4", "1", "6"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".outcome")).to_contain_text("The median is 3")
    wait(page)
    tab_to(page, ".of-network canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Node", exact=True)).to_have_value("1")
    tab_to(page, ".handle")
    page.keyboard.press("PageUp")
    expect(page.get_by_label("my numbers")).to_have_value("3\n2\n4\n1\n6")
    wait(page)
    tab_to(page, ".table summary")
    page.keyboard.press("Enter")
    expect(page.locator("tr.chosen th")).to_have_text("1")
    tab_to(page, ".downloads button:nth-of-type(2)")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert Path(waiting.value.path()).stat().st_size > 1000
    tab_to(page, "#slider")
    page.keyboard.press("Home")
    expect(page.locator("output")).to_contain_text("t = 0 of")
    tab_to(page, ".tools input", back=True)  # the last of the switches: logarithmic time
    page.keyboard.press("Space")
    page.wait_for_url("**axis=linear**")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    wait(page, count=2)


# Without motion


def test_nothing_moves_for_who_wants_no_motion(visit: Visit, address: str) -> None:
    page = visit(address, "a.n=70&a.graph=ba&a.method=consensus&a.stop=certified", reduced_motion="no-preference").page
    wait(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()  # it plays unasked
    page = visit(address, "a.n=70&a.graph=ba&a.method=consensus&a.stop=certified").page
    wait(page)
    page.get_by_role("button", name="Run", exact=True).click()
    last = (
        prepare(parse({"n": "70", "graph": "ba", "method": "consensus", "stop": "certified"})).run().trace.iterations
        - 1
    )
    expect(page.locator("#status")).to_have_text("Done.")
    wait(page)
    expect(page.locator("output")).to_have_text(f"t = {last:,} of {last:,}")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    before = page.locator(".of-network").screenshot()
    page.wait_for_timeout(150)
    assert page.locator(".of-network").screenshot() == before
    moving = "[...document.querySelectorAll('*')].flatMap(e => e.getAnimations()).length"
    assert page.evaluate(moving) == 0
