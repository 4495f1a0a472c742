"""The result of a run as a file that anybody with the charter can check, anywhere, later, without a network.

Rules:
- It holds what the search made public, everybody's signature on it, and the certificates to check them by, and
  nothing else.
- Checking trusts one's own charter and nothing in the file: the answer is computed anew from the totals, and must be
  the one that all have signed. Every field is checked, and has one spelling: a file that was edited is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from midst.errors import InputError
from midst.files import read_at_most
from midst.net.answer import Answer, Table, one_or_list, read_search
from midst.net.charter import Charter
from midst.net.evidence import EvidenceFile, Hex, Word, check_charter, read_course, spell_course
from midst.net.notary import charter_verifier
from midst.protocol.course import Transcript, verify_transcript
from midst.protocol.statements import INSTANCE_BYTES, Malformed, Statement, announce, make_body

FORMAT = 4
_LARGEST_FILE = 64 * 2**20  # bytes
_bytes = bytes.fromhex


class Signer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One participant: what it announced, and its signature on the answer; bytes in hexadecimal."""

    name: str
    instance: Annotated[Hex, msgspec.Meta(min_length=2 * INSTANCE_BYTES, max_length=2 * INSTANCE_BYTES)]
    key: Annotated[Hex, msgspec.Meta(min_length=64, max_length=64)]
    values: Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
    certificate: Hex
    signature: Hex


class ResultFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in the file; keys of a search are decimal strings, since not every reader of JSON has 64 bits."""

    midst_result: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    session: str
    charter: Hex
    objective: str
    value: float | list[float] | None
    statistics: Table | None
    opening: list[list[Word]]
    totals: list[list[Word]]
    seals: list[Hex]
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
        name = charter.names[said.signer]
        signers.append(Signer(name, instance.hex(), key.hex(), count, certificate.hex(), signature.hex()))
    file = ResultFile(
        midst_result=FORMAT,
        session=charter.session,
        charter=charter.digest.hex(),
        objective=charter.title,
        value=one_or_list(answer.value) if answer.value else None,
        statistics=answer.statistics,
        participants=signers,
        **spell_course(transcript),
    )
    return json.dumps(msgspec.to_builtins(file), indent=1).encode() + b"\n"


def read_result(path: str | Path) -> ResultFile | EvidenceFile:
    """The file of a result, or of evidence, read.

    Raises:
        InputError: there is none, or it is neither; names the field.
    """
    text = read_at_most(path, _LARGEST_FILE, f"larger than {_LARGEST_FILE // 2**20} MiB; that is no result")
    try:
        plain = json.loads(text, object_pairs_hook=_once)
        if isinstance(plain, dict) and "midst_evidence" in plain:
            return msgspec.convert(plain, EvidenceFile)
        return msgspec.convert(plain, ResultFile)
    except msgspec.ValidationError as error:
        reason = ascii(str(error).replace("`", ""))[1:-1]  # fields have any names
    except (ValueError, OverflowError, RecursionError):
        reason = "not JSON"
    raise InputError(f"{path}: not a result that this version of midst wrote with --out: {reason[:200]}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which no field stands twice: readers would take different ones."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise msgspec.ValidationError(f"field {name} is there twice")
    return dict(pairs)


def verify_result(charter: Charter, result: ResultFile) -> Answer:
    """What a file proves.

    Raises:
        InputError: it does not prove what it says; what is wrong, and whose part.
    """
    check_charter(charter, result)
    if tuple(one.name for one in result.participants) != charter.names:
        raise InputError("the names of its participants are not the charter's")
    try:
        transcript = _transcript(result)
        agreement = charter.agreement(transcript.opening)
        search = verify_transcript(transcript, agreement, partial(charter_verifier, charter), charter.names)
    except (ValueError, OverflowError, Malformed) as error:
        reason = error if isinstance(error, Malformed) else "a number or a key in it is damaged"
        raise InputError(f"not certified: {reason}; see its opening, totals, seals and participants") from None
    found = read_search(charter, search)
    value = one_or_list(found.value) if found.value else None
    for name, right in {"objective": charter.title, "value": value, "statistics": found.statistics}.items():
        if json.dumps(getattr(result, name), sort_keys=True) != json.dumps(right, sort_keys=True):
            raise InputError(f"not certified: what all have signed has another {name} than the file")
    return found


def _transcript(result: ResultFile) -> Transcript:
    bodies = [
        make_body(b"A", number, 0, announce(_bytes(one.instance), _bytes(one.key), one.values, _bytes(one.certificate)))
        for number, one in enumerate(result.participants)
    ]
    return Transcript(
        announcements=tuple(bodies),
        signatures=tuple(_bytes(one.signature) for one in result.participants),
        **read_course(result),
    )
