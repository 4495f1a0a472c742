"""A transport by its name, and the largest frame that it must carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from midst.errors import InputError
from midst.net.setup import Setup
from midst.net.transports.transport import Endpoint, Transport

TransportName = Literal["tls", "zenoh", "udp"]


def make_transport(name: TransportName, endpoint: Endpoint, routers: Sequence[str] = ()) -> Transport:
    """A transport by its name, imported when it is asked for.

    Raises:
        InputError: routers are given to one that has none.
        MissingExtra: it is not installed.
    """
    if name == "zenoh":
        from midst.net.transports.zenoh import ZenohTransport

        return ZenohTransport(endpoint, routers=routers)
    if routers:
        raise InputError("--router is for --transport zenoh")
    if name == "tls":
        from midst.net.transports.tls import TlsTransport

        return TlsTransport(endpoint)
    from midst.net.transports.udp import UdpTransport

    return UdpTransport(endpoint)


def largest_frame(setup: Setup, transport: TransportName) -> int:
    """Bytes of the largest frame: over UDP, of those that this participant sends itself."""
    return setup.codec.largest(setup.notary.certificate if transport == "udp" else None)
