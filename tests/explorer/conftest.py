"""One server for all tests of the page, and one browser a module."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import pytest
from explorer_pages import Opened
from playwright.sync_api import Browser, sync_playwright

from midst.explorer.app import make_explorer
from midst.explorer.server import serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT = 20_000  # milliseconds; a machine with other work to do is slow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser without a window. While it is there, so is an event loop, which other modules' tests cannot have."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine; Debian's package is called chromium")
    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the explorer is, token and all."""
    with serving(make_explorer) as found:
        yield found


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Opened]]:
    """Opens an address; in the end nothing may have been complained of, and nobody else asked."""
    opened: list[tuple[Opened, str]] = []
    contexts = []

    def visit(address: str, link: str = "", **options: object) -> Opened:
        settings = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce", **options}
        context = chromium.new_context(**settings)  # type: ignore[arg-type]
        context.set_default_timeout(WAIT)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda said: found.complaints.append(f"{said.text} ({said.location['url']})"))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.asked.add(urldefrag(request.url).url))
        found.page.goto(f"{address}&{link}" if link else address)
        opened.append((found, address))
        return found

    yield visit
    for context in contexts:
        context.close()
    for found, address in opened:
        # a run that comes before the last one has ended is refused with 409, and the page asks again
        assert [said for said in found.complaints if "409 (Conflict)" not in said] == []
        made = {each for each in found.asked if each.startswith(("data:", "blob:"))}  # by the page itself
        if address.startswith("file:"):
            assert found.asked - made == {urldefrag(address).url}
        else:
            assert {urlsplit(each).netloc for each in found.asked - made} <= {urlsplit(address).netloc}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Where a run may be saved."""
    return tmp_path / "run.npz"
