"""Masks that cancel: what hides a node's answer in the count.

Each edge has a secret that both of its ends know: they send each other a random share with z(0), and HKDF makes a key
of the two. For every candidate and coordinate, ChaCha20 under that key gives two numbers below 2^64, the same at both
ends; the end with the lower number adds them and the other subtracts them. A key is used for one session only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from midst.counting import MODULUS

SHARE_BYTES = 32
_PURPOSE = b"midst count mask v1"


def edge_key(share_of_lower: bytes, share_of_higher: bytes) -> bytes:
    """The key of an edge, from the shares of its two ends."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(share_of_lower + share_of_higher)


def pair(key: bytes, number: int, coordinate: int) -> tuple[int, int]:
    """The two masks of an edge for the number-th candidate of a coordinate."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    nonce = struct.pack("<QQ", coordinate, number)  # ChaCha20's counter starts at the coordinate: one block each
    stream = Cipher(ChaCha20(key, nonce), mode=None).encryptor().update(bytes(16))
    below, above = struct.unpack("<QQ", stream)
    return below, above


def node_mask(keys: Sequence[bytes], signs: Sequence[int], number: int, coordinate: int) -> tuple[int, int]:
    """The two masks of a node: those of its edges, added at the lower end and subtracted at the higher."""
    pairs = [pair(key, number, coordinate) for key in keys]
    below = sum(sign * mask[0] for sign, mask in zip(signs, pairs, strict=True))
    above = sum(sign * mask[1] for sign, mask in zip(signs, pairs, strict=True))
    return below % MODULUS, above % MODULUS
