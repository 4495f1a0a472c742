"""`midst verify`: check the result of a run, or evidence of a lie in it, without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.errors import InputError
from midst.rows import as_text

if TYPE_CHECKING:
    from midst.net.charter import Charter
    from midst.net.evidence import EvidenceFile
    from midst.net.results import ResultFile

_A_FILE = click.Path(path_type=Path)
_PROVED = ("value", "statistics", "certified", "rank_error", "counts")  # an answer's other facts are in no file
_EXAMPLES = """\b
Examples:
  midst verify result.json --charter pay.toml
  midst verify pay-2026.evidence.json --charter pay.toml"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("file", type=_A_FILE)
@click.option("--charter", "charter_file", type=_A_FILE, required=True, metavar="FILE", help="What all agreed on.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of the report.")
def command(file: Path, charter_file: Path, as_json: bool) -> None:
    """Check a result, or evidence, that midst node or midst up wrote.

    Of a result the answer is computed anew from the totals in the file, and every participant's signature on it is
    checked by the certificates that the charter names: exit code 0 if all have signed this answer. Of evidence it is
    found anew who signed what nobody honest signs: exit code 0 if it shows that. Else 2, with what is wrong.
    """
    from midst.net.charter_files import read_charter
    from midst.net.evidence import EvidenceFile
    from midst.net.results import read_result

    charter, found = read_charter(charter_file), read_result(file)
    try:
        told, rows = _judge(charter, found) if isinstance(found, EvidenceFile) else _check(charter, found)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if as_json:
        click.echo(json.dumps({"session": charter.session, "objective": charter.title, **told}))
        return
    rows.append(("session", f"{charter.session}, charter {charter.digest.hex()}"))
    click.echo(as_text(rows))


def _check(charter: Charter, result: ResultFile) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What is told of a result."""
    from midst.net.answer import statistics_rows
    from midst.net.results import verify_result

    answer = verify_result(charter, result)
    told = {name: value for name, value in answer.to_dict().items() if name in _PROVED}
    rows = [(charter.title, ", ".join(map(repr, answer.value)))]
    if answer.statistics is not None:
        rows = statistics_rows(answer.statistics, charter.disclosure)
    signed = "certified" if answer.rank_error is None else "signed"  # with noise all have signed what nothing proves
    by_all = f"by all {len(charter.names)}: {', '.join(charter.names)}"
    return told, [*rows, answer.standing(charter.is_verified), (signed, by_all)]


def _judge(charter: Charter, evidence: EvidenceFile) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What is told of evidence."""
    from midst.net.evidence import verify_evidence

    names, text = verify_evidence(charter, evidence)
    return {"accused": list(names), "did": text}, [("evidence", f"{' and '.join(names)} {text}")]
