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

import os
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.options import CSV_OPTION, MISSING_OPTION, offer_names, refuse_given
from midst.errors import Aborted, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midst.cli.node_account import NodeAccount
    from midst.cli.node_results import Wanted
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
    from midst.net.transports.transport import Transport

_A_FILE = click.Path(path_type=Path)
_NOT_OF_ARRAYS = (
    *("value_command", "columns", "missing", "dialect", "metrics", "explore"),
    *("save", "despite_ledger", "least"),
)
_LAST_LOOK = 2.0  # seconds for a page to hear how it ended
_EXAMPLES = """\b
Examples:
  midst node --charter pay.toml --name alice --key keys/alice.key --value-file salary.txt
  get-salary | midst node --charter pay.toml --name alice --key keys/alice.key --json"""
_VALUE_FILE = "Holds your value, a table of them, or arrays, readable by you alone. Default: standard input."
_COLUMN = "Of a .csv, .tsv or .parquet file. Default: as the charter names them. Repeat."
_STATE = "Where the journal is kept. Default: $XDG_STATE_HOME/midst, or ~/.local/state/midst."
_CONTRADICTED = "the totals leave no room for your own value: somebody lied about theirs; talk to the others"
_SAVE = "Write your own record of the run, for midst audit; nothing of others is in it."
_OUT = "Write the answer with everybody's signature, or evidence of a lie, for midst verify; of arrays the aggregate."
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
@MISSING_OPTION
@CSV_OPTION
@click.option("--state", type=_A_FILE, metavar="DIR", help=_STATE)
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
    dialect: str | None,
    state: Path | None,
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

    from midst.cli.node_results import Cost, Wanted, show_answer, with_evidence
    from midst.cli.node_status import Status
    from midst.cli.node_value import read_value
    from midst.cli.noise import require_promise
    from midst.cli.values import parse_dialect
    from midst.net.charter import check_identity, split_address
    from midst.net.charter_files import read_charter
    from midst.net.identity.keys import load_identity
    from midst.net.journal import DiskFile, Journal
    from midst.net.notary import CertifiedNotary
    from midst.net.process import forbid_dumps
    from midst.net.session import journal_file
    from midst.net.setup import make_setup
    from midst.net.transports.tls import TlsTransport
    from midst.net.transports.transport import Endpoint

    forbid_dumps()
    charter = read_charter(charter_file)
    require_promise(charter, least)
    identity = load_identity(key_file)
    number = check_identity(charter, name, identity)
    own_address, watched = (None if text is None else split_address(text, to_bind=True) for text in (listen, metrics))
    if charter.arrays:
        from midst.cli.node_arrays import run_round

        refuse_given(_NOT_OF_ARRAYS, "is no option where the charter is about arrays; leave it out")
        kept_in = about_ledger["ledger"], about_ledger["prior"]
        wanted, place = Wanted(out, None, as_json), state or _default_state()
        run_round(charter, name, identity, value_file, place, listen, wanted, *kept_in, Status(log).tell)
        return
    if explore and charter.statistics:
        raise InputError("--explore follows a single answer; leave it out with statistics")
    wanted = Wanted(out, save, as_json)
    wanted.check(charter)
    _check_ledger(**about_ledger)
    status = Status(log)
    folder = state or _default_state()
    kept = journal_file(folder, charter, name)
    before = _answer_before(charter, name, kept)
    if before is not None and _is_entered(charter, about_ledger["ledger"]):
        _show_again(charter, name, before, "your value was not read", charter_file, wanted, status.tell)
        return
    value = read_value(charter, value_file, value_command, columns, missing, parse_dialect(dialect), status.tell)
    setup = make_setup(charter, name, value, CertifiedNotary(charter, identity))
    if before is not None:
        account = _open_account(setup, **about_ledger)
        assert account is not None
        _close_account(account, before, None, status.tell)
        said = "your value was read for the ledger alone"
        _show_again(charter, name, before, said, charter_file, wanted, status.tell)
        return
    _check_dates(identity, status.tell)
    transport = TlsTransport(Endpoint(charter, identity, number, setup.codec.largest(), own_address))
    file = DiskFile(kept)
    try:
        started = time.monotonic()
        journal = Journal(file, str(folder))
        account = _open_account(setup, **about_ledger)
        ending = asyncio.run(_run(setup, journal, transport, status, watched, explore, account, save))
    except Aborted as aborted:  # by what the journal says
        ending = aborted
    finally:
        file.close()
        status.close()
    if isinstance(ending, Aborted):
        raise with_evidence(charter, ending, out or kept.with_suffix(".evidence.json"))
    seconds = round(time.monotonic() - started, 3)
    if ending.contradicted:
        status.tell("contradicted", _CONTRADICTED)
    show_answer(charter, name, ending, Cost(seconds, transport.sent, transport.received), wanted)


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


def _show_again(charter: Charter, name: str, answer: Answer, said: str, file: Path, wanted: Wanted, tell: Tell) -> None:
    """The answer of a session that was over before, and what to do for another."""
    from midst.cli.node_results import show_answer

    if wanted.save is not None:
        from midst.cli.own_record import record_of_answer

        record_of_answer(charter, charter.number(name), answer).save(wanted.save)
    again = f"midst charter new --from {file} --session NAME --out FILE"
    tell("over", f"session {charter.session} is over, and this is its answer; {said}; for another run: {again}")
    show_answer(charter, name, answer, None, wanted)


def _check_ledger(ledger: Path | None, despite_ledger: bool, prior: str | None) -> None:
    """Refuses what is about a ledger where none is kept."""
    if ledger is None and (despite_ledger or prior is not None):
        raise InputError("--despite-ledger and --prior are about --ledger; give one, or leave them out")


def _open_account(setup: Setup, ledger: Path | None, despite_ledger: bool, prior: str | None) -> NodeAccount | None:
    """The session, entered into the ledger; None where none is kept."""
    if ledger is None:
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

    now = datetime.now(UTC)
    problem = check_certificate(identity.certificate, identity.name, identity.fingerprint, now)
    if problem is not None:
        raise InputError(f"your own certificate: {problem.text}")
    if warning := expiry_warning(identity.certificate, now):
        tell("expiry", warning)


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

    from midst.net.answer import Answer
    from midst.net.events import End
    from midst.net.session import resume

    with ExitStack() as stack:
        feed = stack.enter_context(_page(setup, status.tell)) if explore else None
        record = None
        if save is not None:
            from midst.cli.own_record import OwnRecord

            record = OwnRecord(setup)
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
            try:
                record.trace(session, ending).save(save)
            except OSError as full:  # a full disk does not cost the answer
                status.tell("save", f"{save} could not be written: {full.strerror}")
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

    def watch(peer: Peer) -> None:
        if feed is not None:
            feed.publish(moment(peer))
        if record is not None:
            record.see(peer.exchange)

    def linking(j: int, up: bool) -> None:
        if feed is not None:
            feed.publish(Link(session.setup.number, j, up))

    driver = Driver(session, transport, watch=watch, tell=status.tell, linking=linking, report=status.report)
    server = None
    if watched is not None:
        from midst.net.metrics import serve

        server = await serve(driver, *watched)
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
    start = Start(charter.names, edges, charter.title, charter.method, False, setup.number, charter.is_verified)
    feed.publish(start)
    with serve(feed) as address, pointer(address) as (_, shown):
        tell("explore", f"follow this node at {shown}")
        yield feed


def _default_state() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "midst"
