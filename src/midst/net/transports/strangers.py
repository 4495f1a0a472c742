"""Connections whose owner is not known yet: how many are kept, and which of them has to go.

Rules:
- At most `OF_ONE` of one source and `STRANGERS` in all, and never more than half of what this process may open. A
  source is an IPv4 address, or the first 64 bits of an IPv6 one, of which a host has as many as it likes.
- Where there is one too many, one of those that were there goes: of the same source, where it is that source that has
  too many; else of all. Which one is drawn at random, from the operating system. Were it the oldest, whoever connects
  often enough would be sure to push out everybody whose handshake takes a while; were the draw to be foreseen, whoever
  foresees it would choose.
- With P kept, r newcomers a second and a handshake of T seconds, a handshake lives with probability (1 - 1/P)^(rT):
  nine in ten for 256 kept, 250 a second and 120 ms, one in three for 2,500 a second. Who is pushed out dials again.
- What a connection has said so far counts for nothing: the beginning of a handshake can be said by everybody.
"""

from __future__ import annotations

import random
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

from midst.machine import limits

STRANGERS, OF_ONE = 512, 256

_draw = random.SystemRandom()
_One = TypeVar("_One")


class Strangers(Generic[_One]):
    """Who has connected and has not said who it is; see the head of this file.

    Attributes:
        most: kept in all.
        of_one: kept of one source.
    """

    def __init__(self) -> None:
        """Nobody is there yet."""
        may_open, _ = limits("NOFILE")
        self.most = max(2, int(min(STRANGERS, may_open // 2)))
        self.of_one = max(1, min(OF_ONE, self.most // 2))
        self._source: dict[_One, str] = {}
        self._by_source: dict[str, list[_One]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._source)

    def __contains__(self, one: _One) -> bool:
        """Whether it is one of them."""
        return one in self._source

    def add(self, one: _One, host: str) -> _One | None:
        """Take somebody in; gives the one that has to go in its place, if any, who is forgotten."""
        source = source_of(host)
        same = self._by_source.setdefault(source, [])
        leaving: _One | None = None
        if len(same) >= self.of_one:
            leaving = _draw.choice(same)
        elif len(self) >= self.most:
            leaving = _draw.choice(list(self._source))
        if leaving is not None:
            self.discard(leaving)
        self._by_source.setdefault(source, []).append(one)
        self._source[one] = source
        return leaving

    def discard(self, one: _One) -> None:
        """Somebody has said who it is, or has gone."""
        source = self._source.pop(one, None)
        if source is not None:
            self._by_source[source].remove(one)
            if not self._by_source[source]:
                del self._by_source[source]


def source_of(host: str) -> str:
    """What counts as one source: an IPv4 address, or 64 bits of an IPv6 one."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)
