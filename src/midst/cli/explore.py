"""`midst explore`: a page on which to watch runs.

Rules:
- The address has a token in its fragment: it is for whoever started the command, and goes to stdout. A browser is
  pointed to it through a file that nobody else can read, since other users of the machine see the arguments of a
  command.
- A file is checked before anything is served.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from midst.explorer.gate import Access

_PORT = 8642  # a link to a setting keeps its meaning from one day to the next
_EXAMPLES = """\b
Examples:
  midst explore
  midst run --graph rgg --nodes 15 --seed 7 --save run.npz && midst explore run.npz"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN.npz]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"On 127.0.0.1. Default: {_PORT}, or any that is free.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
def command(run: Path | None, port: int | None, no_open: bool) -> None:
    """Watch runs on a page: who is exposed, when, and what is known of everybody else.

    Serves a page to this machine only, until Ctrl-C. Nothing is loaded from elsewhere.
    """
    from midst.explorer.server import serving

    if run is not None:
        from midst.trace import load

        load(run)

    def make(keys: Access) -> ASGIApp:
        from midst.explorer.app import make_explorer

        return make_explorer(keys, run)

    with serving(make, _PORT if port is None else port, any_port=port is None) as address:
        click.echo(address)
        click.echo("midst: the page is at this address, for you alone; Ctrl-C ends it", err=True)
        with _pointing_to(address, not no_open):
            try:
                Event().wait()
            except KeyboardInterrupt:
                click.echo("midst: ended", err=True)


@contextmanager
def _pointing_to(address: str, wanted: bool) -> Iterator[None]:
    """Opens a browser, if wanted, by a file in a folder of its own."""
    if not wanted:
        yield
        return
    from midst.cli.pointer import pointer

    with pointer(address) as (file, _):
        webbrowser.open(file.as_uri())
        yield
