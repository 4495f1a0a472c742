"""`midst explore`: a page on which to watch runs.

Rules:
- The address has a token in its fragment: it is for whoever started the command, and goes to stdout. A browser is
  pointed to it through a file that nobody else can read, since other users of the machine see the arguments of a
  command.
- A file is checked before anything is served.
- With --page nothing is served, and nothing that serves is needed.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from midst.cli.options import refuse_given
from midst.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from midst.explorer.gate import Access

_PORT = 8642  # a link to a setting keeps its meaning from one day to the next
_EXAMPLES = """\b
Examples:
  midst explore
  midst run --graph rgg --nodes 15 --seed 7 --save run.npz && midst explore run.npz
  midst explore run.npz --page run.html"""
_PAGE = "Serve nothing: write the page of RUN.npz as one HTML file that anybody can open."
_OF_PAGE = ("show_values", "prior")


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN.npz]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"On 127.0.0.1. Default: {_PORT}, or any that is free.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE.html", help=_PAGE)
@click.option("--show-values", is_flag=True, help="Put the private values into that page.")
@click.option("--prior", default="normal:0,1", show_default=True, metavar="KIND:A,B", help="For bits of that page.")
def command(
    run: Path | None, port: int | None, no_open: bool, page: Path | None, show_values: bool, prior: str
) -> None:
    """Watch runs on a page: who is exposed, when, and what is known of everybody else.

    Serves a page to this machine only, until Ctrl-C. Nothing is loaded from elsewhere.
    """
    if page is not None:
        refuse_given(("port", "no_open"), "is of a page that is served; leave it out with --page")
        _write_page(run, page, show_values, prior)
        return
    refuse_given(_OF_PAGE, "is for --page; give that too")
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


def _write_page(run: Path | None, path: Path, show_values: bool, prior: str) -> None:
    """The page of a saved run as a file."""
    from dataclasses import replace

    from midst.explorer.fields import parse
    from midst.explorer.page import check_page, make_page, save_page
    from midst.explorer.replay import pack_made
    from midst.explorer.simulate import check_room, look_at
    from midst.privacy.priors import parse_prior
    from midst.trace import load

    if run is None:
        raise InputError("--page is of a saved run; give its file, RUN.npz, which midst run --save writes")
    check_page(path)
    believed = parse_prior(prior)
    record = load(run)
    check_room(record.graph)
    made = replace(look_at(record, parse({"source": "file"}, file=True)), prior=believed)
    if show_values and made.values is None:
        raise InputError(f"{run} has no private values, one a node, to show; midst run --keep-values puts them into it")
    save_page(make_page([pack_made(made, run.name)], values=show_values), path)


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
