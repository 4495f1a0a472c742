"""One hash of several parts, and bytes that follow from a secret."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator


def hash_parts(*parts: bytes) -> bytes:
    """64 bytes; no two lists of parts give the same."""
    return hashlib.blake2b(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def secret_blocks(seed: bytes, label: bytes, context: bytes, answers: Iterable[int]) -> Iterator[bytes]:
    """Blocks of 64 bytes that follow from a secret, and from the step and the answers that they are for."""
    numbers = (each.to_bytes(max(16, -(-each.bit_length() // 8)), "big") for each in answers)
    purpose = hash_parts(label, context, *numbers)
    return (hmac.digest(seed, purpose + k.to_bytes(4, "big"), "sha512") for k in range(2**32))
