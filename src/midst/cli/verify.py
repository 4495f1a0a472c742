"""`midst verify`: check the result of a run, without a network."""

from __future__ import annotations

from pathlib import Path

import click

_A_FILE = click.Path(path_type=Path)
_EXAMPLES = """\b
Examples:
  midst verify result.json --charter pay.toml"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("file", type=_A_FILE)
@click.option("--charter", "charter_file", type=_A_FILE, required=True, metavar="FILE", help="What all agreed on.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of the report.")
def command(file: Path, charter_file: Path, as_json: bool) -> None:
    """Check a result that midst node or midst up wrote with --out.

    The answer is computed anew from the totals in the file, and every participant's signature on it is checked by the
    certificates that the charter names. Exit code 0 if all have signed this answer, 2 if not, with what is wrong.
    """
    import json

    from midst.errors import InputError
    from midst.net.answer import counts_in_words, named_counts, one_or_list
    from midst.net.charter import read_charter
    from midst.net.results import read_result, verify_result

    charter, result = read_charter(charter_file), read_result(file)
    try:
        values, proofs = verify_result(charter, result)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if as_json:
        about = {"session": charter.session, "objective": charter.title, "value": one_or_list(values)}
        click.echo(json.dumps({**about, "certified": True, "counts": named_counts(proofs)}))
        return
    rows = [
        (charter.title, ", ".join(map(repr, values))),
        ("proof", counts_in_words(proofs)),
        ("certified", f"by all {len(charter.names)}: {', '.join(charter.names)}"),
        ("session", f"{charter.session}, charter {charter.digest.hex()}"),
    ]
    width = max(len(head) for head, _ in rows)
    click.echo("\n".join(f"{head:>{width}}  {text}" for head, text in rows))
