"""A page that was opened in a test."""

from __future__ import annotations

from dataclasses import dataclass, field

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
