"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import doctest
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COMMANDS = runpy.run_path(str(DOCS / "commands.py"))
WRITTEN = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if not {"_build", "figures", "commands"} & set(path.parts)
}
MADE = {f"docs/commands/{name}": text for name, text in COMMANDS["make_pages"]().items()}  # as a build makes them
PAGES = WRITTEN | MADE
DOTS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FENCED = re.compile(r"^(```+|~~~+)(\S*)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    kind: str
    text: str


def blocks(path: str) -> Iterator[Block]:
    for _, kind, text in _FENCED.findall(PAGES[path]):
        yield Block(kind, text)


def prose(path: str) -> str:
    """A page without its blocks."""
    return _FENCED.sub("", PAGES[path])


def pages_with(*kinds: str) -> list[str]:
    return [path for path in PAGES if any(block.kind in kinds for block in blocks(path))]
