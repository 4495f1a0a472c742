"""How somebody is told where a page is, whose address has a token: not by arguments of a command, and not by a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def pointer(address: str) -> Iterator[tuple[Path, str]]:
    """A file that leads a browser to an address, in a folder that nobody else can read, while the context lasts.

    Args:
        address: with its token.

    Yields:
        The file; and what may be shown on stderr: the address if that is a terminal, else where the file is.
    """
    with TemporaryDirectory(prefix="midst-") as folder:
        file = Path(folder) / "explore.html"
        file.touch(mode=0o600)
        target = escape(address, quote=True)
        file.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={target}"><a href="{target}">midst</a>'
        )
        yield file, address if sys.stderr.isatty() else file.as_uri()
