"""`midst node`: take part in a run as one participant.

Rules:
- The value comes from a file, from the output of a command, or from standard input: never from an argument or the
  environment, which other users of the machine can read. It is not repeated anywhere.
- A file with the value is refused if others can read it, as a key is; the process leaves no core dump.
- Everything is checked before the first byte is sent: files, charter, whether its noise keeps its promise, key,
  certificate, value, journal, address, and the ledger, into which the session is entered.
- z(0) is drawn from the operating system. There is no seed here: whoever knows it would know what hides the value.
- The answer goes to stdout, what happens on the way to stderr: lines for people, or JSON with --log json. The address
  of the page, with its token, is shown on a terminal only; a log says in which file it is, which nobody else can read.
- A session that is over is not begun again: its answer is shown once more, which is said, and the value is not read.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from midst.cli.options import offer_names
from midst.errors import Aborted, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midst.cli.node_account import NodeAccount
    from midst.cli.node_status import Status
    from midst.cli.own_record import OwnRecord
    from midst.columns import Missing
    from midst.explorer.live import Feed
    from midst.net.answer import Answer
    from midst.net.charter import Charter
    from midst.net.driver import Tell
    from midst.net.identity.keys import Identity
    from midst.net.journal import Journal
    from midst.net.peer import Peer
    from midst.net.session import Session
    from midst.net.setup import Setup
    from midst.net.transports.making import TransportName
    from midst.net.transports.transport import Transport
    from midst.types import Array

_A_FILE = click.Path(path_type=Path)
_LONGEST_COMMAND = 60.0  # seconds
_LAST_LOOK = 2.0  # seconds for a page to hear how it ended
_EXAMPLES = """\b
Examples:
  midst node --charter pay.toml --name alice --key keys/alice.key --value-file salary.txt
  get-salary | midst node --charter pay.toml --name alice --key keys/alice.key --json"""
_VALUE_FILE = "Holds your value, or a table of them, readable by you alone. Default: standard input."
_COLUMN = "Of a .csv, .tsv or .parquet file. Default: as the charter names them. Repeat."
_MISSING = "Of rows with a missing value: refuse the file, or drop them."
_TABLES = (".csv", ".tsv", ".parquet")
_STATE = "Where the journal is kept. Default: $XDG_STATE_HOME/midst, or ~/.local/state/midst."
_TRANSPORT = "How to reach the neighbours; udp for a search. Default: tls."
_CONTRADICTED = "the totals leave no room for your own value: somebody lied about theirs; talk to the others"
_SAVE = "Write your own record of the run, for midst audit; nothing of others is in it."
_OUT = "Write the answer with everybody's signature, or evidence of a lie, for midst verify."
_LEDGER = "Keep account of this quantity; refuses a session too near an earlier one. See midst ledger."
_DP = "Refuse a charter whose noise promises less than this, such as eps=1,delta=1e-6,colluders=2."
_PRIOR = "For the ledger's bits. Default: uniform between the charter's bounds, or normal:0,1."


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--charter", "charter_file", type=_A_FILE, required=True, metavar="FILE", help="What all agreed on.")
@click.option("--name", shell_complete=offer_names, required=True, help="Your participant in it.")
@click.option("--key", "key_file", type=_A_FILE, required=True, metavar="FILE", help="Your key, as in keys/NAME.key.")
@click.option("--value-file", type=_A_FILE, metavar="FILE", help=_VALUE_FILE)
@click.option("--value-command", metavar="CMD", help="Prints your value; run without a shell.")
@click.option("--column", "columns", multiple=True, metavar="NAME", help=_COLUMN)
@click.option("--missing", type=click.Choice(["refuse", "drop"]), default="refuse", show_default=True, help=_MISSING)
@click.option("--state", type=_A_FILE, metavar="DIR", help=_STATE)
@click.option("--transport", type=click.Choice(["tls", "zenoh", "udp"]), help=_TRANSPORT)
@click.option("--router", "routers", multiple=True, metavar="ENDPOINT", help="Of zenoh: tcp/host:port. Repeat.")
@click.option("--listen", metavar="HOST:PORT", help="Bind here, where that is not the charter's address.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics and /healthz there.")
@click.option("--explore", is_flag=True, help="Serve a page on this machine that follows this node.")
@click.option("--out", type=_A_FILE, metavar="FILE", help=_OUT)
@click.option("--save", type=_A_FILE, metavar="FILE.npz", help=_SAVE)
@click.option("--ledger", type=_A_FILE, metavar="FILE", help=_LEDGER)
@click.option("--despite-ledger", is_flag=True, help="Take part though the ledger refuses.")
@click.option("--prior", metavar="KIND:A,B", help=_PRIOR)
@click.option("--dp", "least", metavar="SPEC", help=_DP)
@click.option("--log", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of the report.")
def command(
    charter_file: Path,
    name: str,
    key_file: Path,
    value_file: Path | None,
    value_command: str | None,
    columns: tuple[str, ...],
    missing: Missing,
    state: Path | None,
    transport: TransportName | None,
    routers: tuple[str, ...],
    listen: str | None,
    metrics: str | None,
    explore: bool,
    out: Path | None,
    save: Path | None,
    least: str | None,
    log: str,
    as_json: bool,
    **about_ledger: Any,
) -> None:
    """Take part in a run as one participant.

    The journal makes it safe to kill and to start again: the same command goes on where it was. Exit code 4 means that
    the run was aborted, and the message says because of whom.
    """
    import asyncio

    from midst.cli.node_status import Status
    from midst.cli.noise import require_promise
    from midst.net.charter import check_identity, split_address
    from midst.net.charter_files import read_charter
    from midst.net.identity.keys import load_identity
    from midst.net.journal import DiskFile, Journal
    from midst.net.notary import CertifiedNotary
    from midst.net.process import forbid_dumps
    from midst.net.setup import make_setup
    from midst.net.transports.making import largest_frame, make_transport
    from midst.net.transports.transport import Endpoint

    forbid_dumps()
    charter = read_charter(charter_file)
    require_promise(charter, least)
    identity = load_identity(key_file)
    number = check_identity(charter, name, identity)
    own_address, watched = (None if text is None else split_address(text, to_bind=True) for text in (listen, metrics))
    kind = _choose_transport(charter, transport)
    if explore and charter.statistics:
        raise InputError("--explore follows a single answer; leave it out with statistics")
    if out is not None:
        check_out(charter, out)
    if save is not None:
        _check_save(charter, save)
    status = Status(log)
    folder = state or _default_state()
    kept = folder / f"{charter.session}.{charter.digest.hex()[:12]}.{name}.journal"
    before = _answer_before(charter, name, kept)
    if before is not None and _is_entered(charter, about_ledger["ledger"]):
        _show_again(charter, name, before, "your value was not read", charter_file, save, out, as_json, status)
        return
    value = _read_value(charter, value_file, value_command, columns, missing, status.tell)
    setup = make_setup(charter, name, value, CertifiedNotary(charter, identity))
    if before is not None:
        account = _open_account(setup, **about_ledger)
        assert account is not None
        _close_account(account, before, None, status.tell)
        said = "your value was read for the ledger alone"
        _show_again(charter, name, before, said, charter_file, save, out, as_json, status)
        return
    _check_dates(identity, status.tell)
    endpoint = Endpoint(charter, identity, number, largest_frame(setup, kind), own_address)
    carrier = make_transport(kind, endpoint, routers)
    file = DiskFile(kept)
    try:
        started = time.monotonic()
        journal = Journal(file, str(folder))
        account = _open_account(setup, **about_ledger)
        ending = asyncio.run(_run(setup, journal, carrier, status, watched, explore, account, save))
    except Aborted as aborted:  # by what the journal says
        ending = aborted
    finally:
        file.close()
        status.close()
    if isinstance(ending, Aborted):
        raise _with_evidence(charter, ending, out or kept.with_suffix(".evidence.json"))
    seconds = round(time.monotonic() - started, 3)
    if ending.contradicted:
        status.tell("contradicted", _CONTRADICTED)
    _finish(charter, name, ending, _Cost(seconds, carrier.sent, carrier.received), out, as_json)


class _Cost(NamedTuple):
    """What a run took: seconds, and bytes sent and received."""

    seconds: float
    sent: int
    received: int


def _answer_before(charter: Charter, name: str, kept: Path) -> Answer | None:
    """The answer of a session that was over before, as the journal has it."""
    from midst.net.journal import DiskFile, Journal
    from midst.net.session import answer_of

    if not kept.exists():
        return None
    file = DiskFile(kept)
    try:
        return answer_of(Journal(file, str(kept.parent)), charter, name)
    finally:
        file.close()


def _is_entered(charter: Charter, ledger: Path | None) -> bool:
    """Whether a ledger, where one is kept, has what a session told that is over."""
    if ledger is None:
        return True
    from midst.dp.ledger import Ledger

    return (charter.digest.hex(), "over") in {(one.digest, one.state) for one in Ledger.open(ledger).sessions}


def _show_again(
    charter: Charter,
    name: str,
    answer: Answer,
    said: str,
    file: Path,
    save: Path | None,
    out: Path | None,
    as_json: bool,
    status: Status,
) -> None:
    """The answer of a session that was over before, and what to do for another."""
    if save is not None:
        from midst.cli.own_record import record_of_answer

        record_of_answer(charter, charter.number(name), answer).save(save)
    again = f"midst charter new --from {file} --session NAME --out FILE"
    status.tell("over", f"session {charter.session} is over, and this is its answer; {said}; for another run: {again}")
    _finish(charter, name, answer, None, out, as_json)


def _check_save(charter: Charter, path: Path) -> None:
    """Refuses to record what `midst audit` has no eye for, or where it cannot be written."""
    from midst.files import check_writable

    if charter.statistics or charter.noise is not None:
        what = "statistics" if charter.statistics else "a search with noise"
        raise InputError(f"--save is for midst audit, which knows nothing of {what}; keep a --ledger")
    check_writable(path)


def _open_account(setup: Setup, ledger: Path | None, despite_ledger: bool, prior: str | None) -> NodeAccount | None:
    """The session, entered into the ledger; None where none is kept."""
    if ledger is None:
        if despite_ledger or prior is not None:
            raise InputError("--despite-ledger and --prior are about --ledger; give one, or leave them out")
        return None
    from midst.cli.node_account import open_node_account

    return open_node_account(ledger, setup, prior, despite_ledger)


def _close_account(account: NodeAccount, ending: Answer | Aborted, session: Session | None, tell: Tell) -> None:
    """What the session told, entered into the ledger; where that fails it stays there as one that has begun."""
    exchange = None if session is None else session.exchange
    try:
        account.close(ending, exchange)
    except (InputError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        tell("ledger", f"the ledger does not have what this session told, only that it began: {reason}")


def _check_dates(identity: Identity, tell: Tell) -> None:
    """Refuses a certificate of one's own that is of another time, and warns of one that soon will be."""
    from midst.net.identity.certificates import check_certificate, expiry_warning

    problem = check_certificate(identity.certificate, identity.name, identity.fingerprint, _now())
    if problem is not None:
        raise InputError(f"your own certificate: {problem.text}")
    if warning := expiry_warning(identity.certificate, _now()):
        tell("expiry", warning)


def check_out(charter: Charter, path: Path) -> None:
    """Refuses to write a result where nobody signs one, or where it cannot be written."""
    from midst.files import check_writable

    if charter.stop != "exact":
        raise InputError(f"--out: a {charter.title} is proved by residuals, which nobody signs; leave it out")
    check_writable(path)


def write_out(charter: Charter, answer: Answer, path: Path) -> None:
    """Writes a result, whole or not at all."""
    from midst.files import write_whole
    from midst.net.results import result_json

    text = result_json(charter, answer)
    write_whole(path, lambda file: file.write(text), mode=0o644)


def _with_evidence(charter: Charter, aborted: Aborted, path: Path) -> Aborted:
    """An abort that says where the evidence is, which is written now; as it is, where there is none."""
    from midst.files import write_whole
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


async def _run(
    setup: Setup,
    journal: Journal,
    transport: Transport,
    status: Status,
    watched: tuple[str, int] | None,
    explore: bool,
    account: NodeAccount | None,
    save: Path | None,
) -> Answer | Aborted:
    from asyncio import sleep

    from midst.cli.own_record import OwnRecord
    from midst.net.answer import Answer
    from midst.net.events import End
    from midst.net.session import resume

    with ExitStack() as stack:
        feed = stack.enter_context(_page(setup, status.tell)) if explore else None
        record = None if save is None else OwnRecord(setup)
        try:
            session = resume(setup, journal, os.urandom, None if record is None else record.see)
        except Aborted as aborted:
            if account is not None and aborted.kind == "withheld":  # as the journal has it: nothing was asked
                _close_account(account, aborted, None, status.tell)
            raise
        if isinstance(session, Answer):  # since it was looked at, another process has ended it
            return session
        ending = await _drive(session, transport, status, watched, feed, record)
        if account is not None:
            _close_account(account, ending, session, status.tell)
        if save is not None and record is not None:
            record.trace(session, ending).save(save)
        if feed is not None:
            answer, error = (ending, "") if isinstance(ending, Answer) else (None, str(ending))
            feed.publish(End(setup.number, answer, error))
            await sleep(_LAST_LOOK)
        return ending


async def _drive(
    session: Session,
    transport: Transport,
    status: Status,
    watched: tuple[str, int] | None,
    feed: Feed | None,
    record: OwnRecord | None,
) -> Answer | Aborted:
    from midst.net.driver import Driver
    from midst.net.events import Link, moment
    from midst.net.metrics import serve

    def watch(peer: Peer) -> None:
        if feed is not None:
            feed.publish(moment(peer))
        if record is not None:
            record.see(peer.exchange)

    def linking(j: int, up: bool) -> None:
        if feed is not None:
            feed.publish(Link(session.setup.number, j, up))

    driver = Driver(session, transport, watch=watch, tell=status.tell, linking=linking, report=status.report)
    server = await serve(driver, *watched) if watched is not None else None
    try:
        return await driver.run()
    finally:
        if server is not None:
            server.close()


@contextmanager
def _page(setup: Setup, tell: Tell) -> Iterator[Feed]:
    """A page that shows this node, and nothing of any other."""
    from midst.cli.pointer import pointer
    from midst.explorer.live import Feed, serve
    from midst.net.events import Start

    charter, feed = setup.charter, Feed()
    edges = [[setup.number, j] for j in setup.neighbours]
    feed.publish(Start(charter.names, edges, charter.title, charter.method, all=False, own=setup.number))
    with serve(feed) as address, pointer(address) as (_, shown):
        tell("explore", f"follow this node at {shown}")
        yield feed


def _read_value(
    charter: Charter,
    file: Path | None,
    shell: str | None,
    columns: tuple[str, ...],
    missing: Missing,
    tell: Tell,
) -> Array:
    """The private value; of a table, the columns that the charter names, or those asked for in their place."""
    from midst.columns import read_columns

    if file is None or file.suffix.lower() not in _TABLES:
        if columns or missing != "refuse":
            raise InputError("--column and --missing are of a .csv, .tsv or .parquet file; give one as --value-file")
        value = read_value(file, shell)
        return value if charter.columns else value.reshape(-1)
    if shell is not None:
        raise InputError("give --value-file or --value-command, not both")
    if not charter.has_lists:
        raise InputError(f"{file}: the charter is about one value of each; give a file with your own alone")
    wanted = columns or tuple(one.name for one in charter.columns)
    found = read_columns(str(file), wanted, missing=missing, alone=True)
    if found.dropped:
        tell("dropped", f"{found.dropped:,} of your rows have a missing value and were left out")
    return found.values


def read_value(file: Path | None, shell: str | None) -> Array:
    """The private value, from where it may come from; errors never repeat it.

    Raises:
        InputError: it is not there, or not numbers.
    """
    from midst.cli.values import parse_numbers, read_numbers

    if file is not None and shell is not None:
        raise InputError("give --value-file or --value-command, not both")
    if shell is not None:
        return parse_numbers(_output(shell).splitlines(), "--value-command")
    if file is None and sys.stdin.isatty():
        raise InputError("no value: give --value-file or --value-command, or pipe it in; never as an argument")
    return read_numbers("-" if file is None else str(file), alone=True)


def _output(shell: str) -> str:
    try:
        words = shlex.split(shell)
        done = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=_LONGEST_COMMAND)
        text = done.stdout.decode()
    except ValueError:
        raise InputError("--value-command: quotes do not match, or its output is not text") from None
    except (OSError, IndexError):
        raise InputError("--value-command: cannot be run; give a program and its arguments") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"--value-command: no end after {_LONGEST_COMMAND:.0f} s") from None
    if done.returncode != 0:
        raise InputError(f"--value-command: ended with code {done.returncode}")
    return text


def _choose_transport(charter: Charter, asked: TransportName | None) -> TransportName:
    if asked == "udp" and charter.method != "search":
        raise InputError('--transport udp is for method = "search", which repeats what was lost; use tls')
    return asked or "tls"


def _default_state() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "midst"


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def answer_rows(charter: Charter, answer: Answer) -> list[tuple[str, str]]:
    """The answer, or all statistics, as lines for people."""
    from midst.net.answer import statistics_rows

    if answer.statistics is not None:
        return statistics_rows(answer.statistics, charter.disclosure)
    return [(charter.title, str(answer.to_dict()["value"]))]


def _finish(charter: Charter, name: str, answer: Answer, cost: _Cost | None, out: Path | None, as_json: bool) -> None:
    """Write the answer where it was asked for, and show it; without a cost where it was found before."""
    if out is not None:
        write_out(charter, answer, out)
    if as_json:
        about = {"name": name, "session": charter.session, "objective": charter.title, "over_before": cost is None}
        click.echo(json.dumps(about | answer.to_dict() | ({} if cost is None else cost._asdict())))
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
    width = max(len(head) for head, _ in rows)
    click.echo("\n".join(f"{head:>{width}}  {text}" for head, text in rows))
