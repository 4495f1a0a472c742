"""Evidence of a lie as a file that anybody with the charter can check, anywhere, later, without a network.

Rules:
- It holds what the accused signed, and the course in which they did: all of it was told to every participant.
- Checking trusts one's own charter and nothing in the file. Whom it accuses is found anew, by the functions by which
  every participant judges.
"""

from __future__ import annotations

import json
import struct
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from midst.errors import InputError
from midst.net.charter import Charter
from midst.net.notary import charter_verifier
from midst.protocol.course import Evidence, Transcript, judge
from midst.protocol.statements import Malformed

if TYPE_CHECKING:
    from midst.net.results import ResultFile

FORMAT = 2
Hex = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{2})*\Z")]
Word = Annotated[str, msgspec.Meta(pattern=r"\A(0|[1-9][0-9]{0,19})\Z")]


class Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement and its signature, in hexadecimal."""

    statement: Hex
    signature: Hex


class EvidenceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the file: bytes in hexadecimal, keys of a search as decimal strings."""

    midst_evidence: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    session: str
    charter: Hex
    about: list[str]
    statements: list[Signed]
    certificates: list[Hex]
    tags: list[Hex]
    opening: list[list[Word]]
    totals: list[list[Word]]
    seals: list[Hex]


def evidence_json(charter: Charter, evidence: Evidence) -> bytes:
    """The file of evidence that was judged here."""
    accused = judge(evidence, charter.agreement(evidence.opening), partial(charter_verifier, charter)).accused
    file = EvidenceFile(
        midst_evidence=FORMAT,
        session=charter.session,
        charter=charter.digest.hex(),
        about=[charter.names[i] for i in accused],
        statements=[Signed(body.hex(), signature.hex()) for body, signature in evidence.statements],
        certificates=[each.hex() for each in evidence.certificates],
        tags=[each.hex() for each in evidence.tags],
        **spell_course(evidence),
    )
    return json.dumps(msgspec.to_builtins(file), indent=1).encode() + b"\n"


def verify_evidence(charter: Charter, file: EvidenceFile) -> tuple[tuple[str, ...], str]:
    """Whom a file convicts, one participant or two of whom at least one lied, and of what.

    Raises:
        InputError: it shows nothing; says what is wrong with it.
    """
    check_charter(charter, file)
    try:
        evidence = _read(file)
        verdict = judge(evidence, charter.agreement(evidence.opening), partial(charter_verifier, charter))
    except (ValueError, OverflowError, struct.error, Malformed) as error:
        reason = error if isinstance(error, Malformed) else "a number or a key in it is damaged"
        raise InputError(f"no evidence: {reason}") from None
    names = tuple(charter.names[i] for i in verdict.accused)
    if tuple(file.about) != names:
        raise InputError("no evidence: about is not whom its statements convict")
    return names, verdict.text


def check_charter(charter: Charter, file: ResultFile | EvidenceFile) -> None:
    """Refuse a file of another charter or session than one's own."""
    if file.charter != charter.digest.hex():
        raise InputError(f"it is of charter {file.charter[:64]}, and yours is {charter.digest.hex()}; compare both")
    if file.session != charter.session:
        raise InputError(f"its session is not the charter's, {charter.session}")


def spell_course(course: Transcript | Evidence) -> dict[str, Any]:
    """What everybody was told in a search, as a file has it."""
    return {
        "opening": [list(map(str, keys)) for keys in course.opening],
        "totals": [list(map(str, totals)) for totals in course.totals],
        "seals": [each.hex() for each in course.seals],
    }


def read_course(file: ResultFile | EvidenceFile) -> dict[str, Any]:
    """Inverse of `spell_course`."""
    return {
        "opening": tuple(tuple(map(int, keys)) for keys in file.opening),
        "totals": tuple(tuple(map(int, totals)) for totals in file.totals),
        "seals": tuple(map(bytes.fromhex, file.seals)),
    }


def _read(file: EvidenceFile) -> Evidence:
    return Evidence(
        statements=tuple((bytes.fromhex(one.statement), bytes.fromhex(one.signature)) for one in file.statements),
        certificates=tuple(map(bytes.fromhex, file.certificates)),
        tags=tuple(map(bytes.fromhex, file.tags)),
        **read_course(file),
    )
