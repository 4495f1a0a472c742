"""A thread that serves an application on 127.0.0.1, and on nothing else."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING

from midst.errors import InputError, MissingExtra
from midst.machine import SHARES_PORTS

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from midst.explorer.gate import Access

_LOOK = 0.01  # seconds between two looks at whether the server is up
_LONGEST_WAIT = 5.0  # seconds for the thread to end


@contextmanager
def serving(make_app: Callable[[Access], ASGIApp], port: int = 0, *, any_port: bool = False) -> Iterator[str]:
    """Serves while the context lasts, and gives the address to open, with a fresh token in its fragment.

    Args:
        make_app: the application for these keys.
        port: which; 0 for any that is free.
        any_port: take any free one where this one is taken.

    Raises:
        InputError: the port cannot be had.
        MissingExtra: Starlette or uvicorn is not installed.
    """
    try:
        import uvicorn

        from midst.explorer.gate import Access
    except ImportError:
        raise MissingExtra("the explorer's web server", "explore") from None
    with _bind(port, any_port) as listener:
        keys = Access(listener.getsockname()[1], secrets.token_urlsafe(32))
        config = uvicorn.Config(
            make_app(keys),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            lifespan="on",
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True, name="midst explorer")
        thread.start()
        while not server.started and thread.is_alive():
            sleep(_LOOK)
        try:
            yield keys.address
        finally:
            server.should_exit = True
            thread.join(_LONGEST_WAIT)


def _bind(port: int, any_port: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, SHARES_PORTS)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # so that nobody else can bind it before the server does
    except (OSError, OverflowError):
        if any_port:
            listener.close()
            return _bind(0, False)
        listener.close()
        raise InputError(f"port {port} cannot be had on 127.0.0.1; try another, or 0 for any that is free") from None
    return listener
