"""What a node leaves: the answer, for people, programs and `midst verify`; or evidence of a lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import click

from midst.errors import Aborted, InputError
from midst.files import check_writable, write_whole
from midst.net.answer import Answer, statistics_rows
from midst.net.charter import Charter
from midst.rows import as_text


class Cost(NamedTuple):
    """What a run took: seconds, and bytes sent and received."""

    seconds: float
    sent: int
    received: int


class Wanted(NamedTuple):
    """What a node is to leave.

    Attributes:
        out: where the answer goes with everybody's signature, or evidence of a lie.
        save: where its own record goes.
        as_json: whether the answer is shown to a program.
    """

    out: Path | None
    save: Path | None
    as_json: bool

    def check(self, charter: Charter) -> None:
        """Refuses what could not be left.

        Raises:
            InputError: nobody signs such an answer, no audit knows such a run, or there is no place for it.
        """
        if self.out is not None:
            check_out(charter, self.out)
        if self.save is None:
            return
        if charter.is_masked_sum:
            raise InputError("--save is for midst audit, which cannot judge a masked sum yet; leave it out")
        if charter.statistics or charter.noise is not None:
            what = "statistics" if charter.statistics else "a search with noise"
            raise InputError(f"--save is for midst audit, which knows nothing of {what}; keep a --ledger")
        check_writable(self.save)


def check_out(charter: Charter, path: Path) -> None:
    """Refuses to write a result where nobody signs one, or where it cannot be written."""
    if charter.stop != "exact":
        raise InputError(f"--out: a {charter.title} is proved by residuals, which nobody signs; leave it out")
    check_writable(path)


def write_out(charter: Charter, answer: Answer, path: Path) -> None:
    """Writes a result, whole or not at all."""
    from midst.net.results import result_json

    text = result_json(charter, answer)
    write_whole(path, lambda file: file.write(text), mode=0o644)


def with_evidence(charter: Charter, aborted: Aborted, path: Path) -> Aborted:
    """An abort that says where the evidence is, which is written now; as it is, where there is none."""
    from midst.net.evidence import evidence_json

    if aborted.evidence is None:
        return aborted
    text = evidence_json(charter, aborted.evidence)
    try:
        write_whole(path, lambda file: file.write(text), mode=0o644)
    except OSError as error:
        said = f"; its evidence could not be written to {path}: {error.strerror}"
    else:
        said = f"; the evidence is in {path}, for midst verify"
    return Aborted(aborted.kind, aborted.about, f"{aborted}{said}", aborted.evidence)


def answer_rows(charter: Charter, answer: Answer) -> list[tuple[str, str]]:
    """The answer, or all statistics, as lines for people."""
    if answer.statistics is not None:
        return statistics_rows(answer.statistics, charter.disclosure)
    return [(charter.title, str(answer.to_dict()["value"]))]


def show_answer(charter: Charter, name: str, answer: Answer, cost: Cost | None, wanted: Wanted) -> None:
    """Write the answer where it was asked for, and show it; without a cost where it was found before."""
    if wanted.out is not None:
        write_out(charter, answer, wanted.out)
    if wanted.as_json:
        about = {"name": name, "session": charter.session, "objective": charter.title, "over_before": cost is None}
        click.echo(json.dumps(about | answer.to_dict() | (cost or Cost(0.0, 0, 0))._asdict()))
        return
    took = "" if cost is None else f" in {cost.seconds:.1f} s"
    rows = [
        *answer_rows(charter, answer),
        answer.standing(charter.is_verified),
        ("exposed", "yes: this node sent its own value" if answer.exposed else "no"),
        ("rounds", f"{answer.rounds}{took}{f', {answer.probes} probes' if answer.probes else ''}"),
    ]
    if cost is not None:
        rows.append(("bytes", f"{cost.sent:,} sent, {cost.received:,} received"))
    click.echo(as_text(rows))
