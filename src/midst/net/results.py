"""The result of a run as a file that anybody with the charter can check, anywhere, later, without a network.

Rules:
- It holds what the search made public, everybody's signature on it, and the certificates to check them by, and
  nothing else.
- Checking trusts one's own charter and nothing in the file: the answer is computed anew from the totals, and must be
  the one that all have signed.
"""

from __future__ import annotations

import base64
import json
import struct
from functools import partial
from pathlib import Path

import msgspec

from midst._version import __version__
from midst.errors import InputError
from midst.net.answer import Answer, Found, Table, one_or_list, read_search
from midst.net.charter import Charter
from midst.net.evidence import EvidenceFile, check_digest
from midst.net.notary import charter_verifier
from midst.protocol.course import Transcript, verify_transcript
from midst.protocol.statements import Malformed, Statement, announce, make_body

FORMAT = 3
_LARGEST_FILE = 64 * 2**20  # bytes


class Signer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One participant: what it announced, and its signature on the answer; bytes in hexadecimal, DER in base64."""

    name: str
    instance: str
    key: str
    values: int
    certificate: str
    signature: str


class ResultFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the file; keys of a search are decimal strings, since not every reader of JSON has 64 bits."""

    midst_result: int
    midst: str
    session: str
    charter: str
    objective: str
    value: float | list[float] | None
    statistics: Table | None
    opening: list[list[str]]
    totals: list[list[str]]
    seals: list[str]
    participants: list[Signer]


def result_json(charter: Charter, answer: Answer) -> bytes:
    """The file of a result.

    Raises:
        InputError: nobody signed it: residuals proved it.
    """
    transcript = answer.transcript
    if transcript is None:
        raise InputError("this run ends by residuals, which nobody signs; there is no certificate to write")
    signers = []
    for body, signature in zip(transcript.announcements, transcript.signatures, strict=True):
        said = Statement(body, b"")
        instance, key, count, certificate = said.announced()
        shown = base64.b64encode(certificate).decode()
        name = charter.names[said.signer]
        signers.append(Signer(name, instance.hex(), key.hex(), count, shown, signature.hex()))
    file = ResultFile(
        midst_result=FORMAT,
        midst=__version__,
        session=charter.session,
        charter=charter.digest.hex(),
        objective=charter.title,
        value=one_or_list(answer.value) if answer.value else None,
        statistics=answer.statistics,
        opening=[list(map(str, keys)) for keys in transcript.opening],
        totals=[list(map(str, totals)) for totals in transcript.totals],
        seals=[each.hex() for each in transcript.seals],
        participants=signers,
    )
    return json.dumps(msgspec.to_builtins(file), indent=1).encode() + b"\n"


def read_result(path: str | Path) -> ResultFile | EvidenceFile:
    """The file of a result, or of evidence, read.

    Raises:
        InputError: there is none, or it is neither.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise InputError(f"{path}: larger than {_LARGEST_FILE // 2**20} MiB; that is no result")
        plain = msgspec.json.decode(text)
        if isinstance(plain, dict) and "midst_evidence" in plain:
            return msgspec.convert(plain, EvidenceFile)
        return msgspec.convert(plain, ResultFile)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{path}: not a result that midst node or midst up wrote with --out") from None


def verify_result(charter: Charter, result: ResultFile) -> Found:
    """What a file proves.

    Raises:
        InputError: it does not prove what it says; what is wrong, and whose part.
    """
    if result.midst_result != FORMAT:
        raise InputError(f"a result of format {result.midst_result}; this midst reads {FORMAT}")
    check_digest(charter, result.charter)
    if tuple(one.name for one in result.participants) != charter.names:
        raise InputError("its participants are not the charter's")
    try:
        transcript = _transcript(result)
        agreement = charter.agreement(transcript.opening)
        search = verify_transcript(transcript, agreement, partial(charter_verifier, charter), charter.names)
    except (ValueError, OverflowError, struct.error, Malformed) as error:
        reason = error if isinstance(error, Malformed) else "a number or a key in it is damaged"
        raise InputError(f"not certified: {reason}") from None
    found = read_search(charter, search)
    if (one_or_list(found.values) if found.values else None) != result.value or found.statistics != result.statistics:
        raise InputError("not certified: the totals that all have signed give another answer than the file says")
    return found


def _transcript(result: ResultFile) -> Transcript:
    bodies = [
        make_body(
            b"A",
            number,
            0,
            announce(
                bytes.fromhex(one.instance),
                bytes.fromhex(one.key),
                one.values,
                base64.b64decode(one.certificate, validate=True),
            ),
        )
        for number, one in enumerate(result.participants)
    ]
    return Transcript(
        announcements=tuple(bodies),
        opening=tuple(tuple(map(int, keys)) for keys in result.opening),
        totals=tuple(tuple(map(int, totals)) for totals in result.totals),
        signatures=tuple(bytes.fromhex(one.signature) for one in result.participants),
        seals=tuple(map(bytes.fromhex, result.seals)),
    )
