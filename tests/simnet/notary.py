"""Signatures in the simulator: cheap, the same in every replay, and forged by nobody who is simulated."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from midst.protocol.statements import Verifier


@dataclass(frozen=True)
class SimNotary:
    """Signs for a simulated participant; a certificate is its name, and a signature a keyed hash.

    Attributes:
        number: the participant's.
    """

    number: int

    @property
    def certificate(self) -> bytes:
        """Of this participant."""
        return sim_certificate(self.number)

    def sign(self, data: bytes) -> bytes:
        """A keyed hash."""
        return hashlib.blake2b(data, key=self.certificate, digest_size=64).digest()

    def verifier(self, number: int, certificate: bytes) -> Verifier | None:
        """How to check a participant's signatures; None if the certificate is another's."""
        if certificate != sim_certificate(number):
            return None
        return lambda data, signature: SimNotary(number).sign(data) == signature


def sim_certificate(number: int) -> bytes:
    """What stands for a participant's certificate."""
    return f"simulated certificate of p{number}".encode()
