"""A charter as a file: read, and written with the certificates of its participants, so that one file invites everybody.

Rules:
- The certificates stand in a table of their own. They are no part of what is agreed on, which has their fingerprints:
  with them or without, it is the same charter.
- A certificate that is not the one whose fingerprint the charter has is refused, wherever the charter is read; so is
  one of another name: to trust a charter's certificates is to trust its participants alone.
- That a certificate stands in a charter makes nobody trust it. `midst keys trust` does, when its owner says so.
"""

from __future__ import annotations

import ssl
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from midst.errors import InputError
from midst.files import read_at_most
from midst.net.charter import Charter, make_charter
from midst.net.identity.certificates import describe, parse_certificate

_LARGEST = 16 * 2**20  # bytes
_TABLE = "certificates"


class Invitation(NamedTuple):
    """A charter, and the certificates that came with it.

    Attributes:
        charter: what is to be agreed on.
        certificates: in DER, by the names of participants; of as many as were there.
    """

    charter: Charter
    certificates: dict[str, bytes]

    def to_toml(self) -> str:
        """As a file that invites."""
        blocks = [self.charter.to_toml()]
        if self.certificates:
            kept = {name: self.certificates[name] for name in self.charter.names if name in self.certificates}
            texts = [f'"{name}" = """\n{ssl.DER_cert_to_PEM_cert(der)}"""\n' for name, der in kept.items()]
            blocks.append(f"[{_TABLE}]\n{''.join(texts)}")
        return "\n".join(blocks)


def read_charter(path: str | Path) -> Charter:
    """The charter in a file.

    Raises:
        InputError: it cannot be read, or is not a charter that can be run; names the file and the key.
    """
    return read_invitation(path).charter


def read_invitation(path: str | Path) -> Invitation:
    """The charter in a file, and the certificates that stand in it.

    Raises:
        InputError: see `read_charter`; or a certificate is not that of a participant.
    """
    text = read_at_most(path, _LARGEST, f"larger than {_LARGEST // 2**20} MiB; that is no charter")
    try:
        return parse_invitation(text.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text in UTF-8; a charter is a TOML file") from None


def parse_invitation(text: str, where: str) -> Invitation:
    """The charter in a text, and the certificates that stand in it; `where` is what an error calls the text."""
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number or a nesting is too long"
        raise InputError(f"{where}: not TOML: {reason}") from None
    given = plain.pop(_TABLE, {})
    charter = make_charter(plain, where)
    if not isinstance(given, dict):
        raise InputError(f"{where}: {_TABLE}: expected a table, a certificate in PEM for each name")
    return Invitation(charter, _check(charter, given, where))


def _check(charter: Charter, given: Mapping[str, Any], where: str) -> dict[str, bytes]:
    """The certificates of a table, each checked to be the charter's."""
    known = {one.name: one.fingerprint for one in charter.participants}
    found = {}
    for name, text in given.items():
        if name not in known:
            raise InputError(f"{where}: {_TABLE}: there is one that is no participant's; leave it out")
        if not isinstance(text, str):
            raise InputError(f"{where}: {_TABLE}: that of {name} must be a text in PEM")
        der = parse_certificate(text.encode(), f"{where}: {_TABLE}: {name}")
        said = describe(der)
        if said.name != name:
            raise InputError(f"{where}: {_TABLE}: that of {name} is another's")
        if said.fingerprint != known[name]:
            raise InputError(f"{where}: {_TABLE}: that of {name} has another fingerprint than the charter has for it")
        found[name] = der
    return found
