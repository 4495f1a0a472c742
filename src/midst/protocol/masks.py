"""Masks between all pairs: what one adds, the other subtracts, so that only totals over everybody can be read.

Rules:
- Every participant announces an X25519 key for the session. The key of a pair is derived from the shared secret and
  from everything that tells the pair apart: the charter, both numbers, instances and public keys, the lower first. A
  copied public key therefore gives other masks, and harms nobody but the copier.
- The mask of a step is a pseudo-random function of the pair's key over the step's context: a hash of the charter, of
  all announcements, of all earlier totals and of what is asked now. Nothing can be asked twice under one mask, and
  those who were told different things have masks that do not cancel.
- Whole numbers modulo 2^64; those that may be larger, modulo a power of it, as several words, the lowest first. The
  participant with the lower number adds.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from midst.protocol.keys import MODULUS

SECRET_BYTES = 32
_LABEL = b"midst pair key v2"
_PERSON = b"midst mask v2"
_SEED_LABEL = b"midst seed v1"
_BLOCK = 8  # numbers that one hash gives


def public_key(secret: bytes) -> bytes:
    """The X25519 public key of a secret of 32 random bytes."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def hides(key: bytes) -> bool:
    """Whether a public key is none of those with which any secret gives the same shared one."""
    try:
        _exchange(bytes([8]) + bytes(30) + bytes([64]), key)
    except ValueError:
        return False
    return True


def pair_key(secret: bytes, theirs: bytes, charter: bytes, lower: bytes, higher: bytes) -> bytes:
    """The key that two participants share and nobody else knows.

    Args:
        secret: one's own.
        theirs: the other's public key, one that `hides`.
        charter: its digest.
        lower: number, instance and public key of the one with the lower number, as bytes of fixed length.
        higher: likewise of the other.
    """
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    shared = _exchange(secret, theirs)
    return HKDF(SHA256(), 32, salt=charter, info=_LABEL + lower + higher).derive(shared)


def _exchange(secret: bytes, theirs: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(theirs))


def derive_seed(secret: bytes) -> bytes:
    """What the randomness of proofs derives from, so that nothing new is drawn by who is started again."""
    return hashlib.blake2b(_SEED_LABEL, key=secret).digest()


def pair_mask(key: bytes, context: bytes, count: int) -> tuple[int, ...]:
    """The numbers of a pair for a step, the same at both ends.

    Args:
        key: the pair's.
        context: what was agreed and what is asked; see `transcript` in `participant.py`.
        count: how many numbers the step has.
    """
    # The label and the counter keep apart what else one key might be used for, and the blocks of one step.
    blocks = [
        hashlib.blake2b(context + struct.pack("<I", k), key=key, person=_PERSON).digest()
        for k in range(-(-count // _BLOCK))
    ]
    return struct.unpack(f"<{count}Q", b"".join(blocks)[: 8 * count])


def join(words: Sequence[int], widths: Sequence[int]) -> list[int]:
    """Numbers from their words."""
    if len(words) == len(widths):  # of one word each
        return list(words)
    rest = iter(words)
    return [sum(word << 64 * k for k, word in enumerate(islice(rest, width))) for width in widths]


def split(numbers: Iterable[int], widths: Sequence[int]) -> tuple[int, ...]:
    """The words of numbers; what is too large for them is left out."""
    each = zip(numbers, widths, strict=True)
    return tuple((number >> 64 * k) % MODULUS for number, width in each for k in range(width))


def add_up(contributions: Iterable[Sequence[int]], widths: Sequence[int]) -> tuple[int, ...]:
    """The words of what everybody's words add up to."""
    return split(map(sum, zip(*(join(words, widths) for words in contributions), strict=True)), widths)


def hide(
    numbers: Sequence[int], number: int, keys: Mapping[int, bytes], context: bytes, widths: Sequence[int]
) -> tuple[int, ...]:
    """The words of one participant's answers, behind its masks with all the others.

    Args:
        numbers: its answers.
        number: its own.
        keys: of its pairs, by the other's number.
        context: of the step.
        widths: how many words each answer has.
    """
    # In the sum over everybody a pair's mask is there once with each sign and is gone. Modulo 2^64 a number behind even
    # one mask that is not known is uniform, so those who do not have all of its keys learn nothing of it.
    hidden = list(numbers)
    for other, key in keys.items():
        sign = 1 if number < other else -1
        for k, mask in enumerate(join(pair_mask(key, context, sum(widths)), widths)):
            hidden[k] += sign * mask
    return split(hidden, widths)
