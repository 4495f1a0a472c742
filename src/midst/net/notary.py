"""Who signs a participant's statements, and how others' signatures are checked: by the certificates in the charter."""

from __future__ import annotations

from dataclasses import dataclass

from midst.errors import InputError
from midst.net.charter import Charter
from midst.net.identity.certificates import fingerprint, signature_checker
from midst.net.identity.keys import Identity
from midst.protocol.statements import Verifier


@dataclass(frozen=True, repr=False)
class CertifiedNotary:
    """Signs with a participant's key; trusts the charter's fingerprints, and nothing else, not even a clock.

    Attributes:
        charter: whose participants sign.
        identity: of the one that signs here.
    """

    charter: Charter
    identity: Identity

    @property
    def certificate(self) -> bytes:
        """Of this participant, in DER."""
        return self.identity.certificate

    def sign(self, data: bytes) -> bytes:
        """A signature by the certificate's key."""
        return self.identity.sign(data)

    def verifier(self, number: int, certificate: bytes) -> Verifier | None:
        """How to check a participant's signatures; None if the certificate is not the one in the charter."""
        return charter_verifier(self.charter, number, certificate)


def charter_verifier(charter: Charter, number: int, certificate: bytes) -> Verifier | None:
    """How to check a participant's signatures; None if the certificate is not the one in the charter."""
    if fingerprint(certificate) != charter.participants[number].fingerprint:
        return None
    try:
        return signature_checker(certificate)
    except InputError:
        return None
