"""A page that was opened in a test, or saved as a file."""

from __future__ import annotations

import zlib
from base64 import b64decode
from dataclasses import dataclass, field
from html.parser import HTMLParser

from playwright.sync_api import Page


@dataclass
class Opened:
    """A page, and what it did besides being looked at.

    Attributes:
        page: the page.
        complaints: what was written to the console, and errors nobody caught.
        asked: every address it asked for anything, without its fragment.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)


class Blocks(HTMLParser):
    """The scripts and styles of a page, and those of them that are data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.inside: str | None = None
        self.code: list[str] = []
        self.data: dict[str, str] = {}
        self.policy = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in ("script", "style"):
            self.inside = found.get("id") or ""
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.data[self.inside] = data
        elif self.inside == "":
            self.code.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = None


def parts(page: str) -> dict[str, bytes]:
    """What api.js reads."""
    return {name: zlib.decompress(b64decode(text)) for name, text in Blocks(page).data.items() if name != "hello"}
