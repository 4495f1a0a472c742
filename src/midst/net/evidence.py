"""Evidence of a lie as a file that anybody with the charter can check, anywhere, later, without a network.

Rules:
- It holds what the accused signed, and the course in which they did: all of it was told to every participant.
- Checking trusts one's own charter and nothing in the file. Whom it accuses is found anew, by the functions by which
  every participant judges.
"""

from __future__ import annotations

import base64
import json
import struct
from functools import partial

import msgspec

from midst._version import __version__
from midst.errors import InputError
from midst.net.charter import Charter
from midst.net.notary import charter_verifier
from midst.protocol.course import Evidence, judge
from midst.protocol.statements import Malformed

FORMAT = 1


class Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement and its signature, in hexadecimal."""

    statement: str
    signature: str


class EvidenceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the file: bytes in hexadecimal, DER in base64, keys of a search as decimal strings."""

    midst_evidence: int
    midst: str
    session: str
    charter: str
    about: list[str]
    statements: list[Signed]
    certificates: list[str]
    tags: list[str]
    opening: list[list[str]]
    totals: list[list[str]]
    seals: list[str]


def evidence_json(charter: Charter, evidence: Evidence) -> bytes:
    """The file of evidence that was judged here."""
    accused = judge(evidence, charter.agreement(evidence.opening), partial(charter_verifier, charter)).accused
    file = EvidenceFile(
        midst_evidence=FORMAT,
        midst=__version__,
        session=charter.session,
        charter=charter.digest.hex(),
        about=[charter.names[i] for i in accused],
        statements=[Signed(body.hex(), signature.hex()) for body, signature in evidence.statements],
        certificates=[base64.b64encode(each).decode() for each in evidence.certificates],
        tags=[each.hex() for each in evidence.tags],
        opening=[list(map(str, keys)) for keys in evidence.opening],
        totals=[list(map(str, totals)) for totals in evidence.totals],
        seals=[each.hex() for each in evidence.seals],
    )
    return json.dumps(msgspec.to_builtins(file), indent=1).encode() + b"\n"


def verify_evidence(charter: Charter, file: EvidenceFile) -> tuple[tuple[str, ...], str]:
    """Whom a file convicts, one participant or two of whom at least one lied, and of what.

    Raises:
        InputError: it shows nothing; says what is wrong with it.
    """
    if file.midst_evidence != FORMAT:
        raise InputError(f"evidence of format {file.midst_evidence}; this midst reads {FORMAT}")
    check_digest(charter, file.charter)
    try:
        evidence = _read(file)
        verdict = judge(evidence, charter.agreement(evidence.opening), partial(charter_verifier, charter))
    except (ValueError, OverflowError, struct.error, Malformed) as error:
        reason = error if isinstance(error, Malformed) else "a number or a key in it is damaged"
        raise InputError(f"no evidence: {reason}") from None
    return tuple(charter.names[i] for i in verdict.accused), verdict.text


def check_digest(charter: Charter, said: str) -> None:
    """Refuses a file of another charter than one's own, by the digest that stands in it."""
    if said != charter.digest.hex():
        raise InputError(f"it is of charter {said[:64]}, and yours is {charter.digest.hex()}; compare both")


def _read(file: EvidenceFile) -> Evidence:
    return Evidence(
        statements=tuple((bytes.fromhex(one.statement), bytes.fromhex(one.signature)) for one in file.statements),
        certificates=tuple(base64.b64decode(each, validate=True) for each in file.certificates),
        tags=tuple(map(bytes.fromhex, file.tags)),
        opening=tuple(tuple(map(int, keys)) for keys in file.opening),
        totals=tuple(tuple(map(int, totals)) for totals in file.totals),
        seals=tuple(map(bytes.fromhex, file.seals)),
    )
