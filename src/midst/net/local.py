"""A whole network on this machine: throw-away keys, real processes, real TLS on loopback, and nothing left behind.

Rules:
- Every participant is a process of its own with its own key, journal and value; they share nothing but the charter.
- Processes are forked from one that has loaded everything, so a hundred of them start in a second and share memory.
  All listen before the first of them starts: nobody dials a neighbour in vain and tries again later.
- Where there is no fork, as on Windows, each loads everything by itself, reads its own key, and listens when it is
  ready. Its value comes to it through a pipe.
- Keys and journals are in a temporary folder that goes when it is over.
- What the machine cannot hold is refused before anything is made or started (`process.py`).
- Whoever is told to end while it starts others starts no more of them; and all go before any is waited for.
- A participant whose starter is gone, killed with SIGKILL as well, removes the folder and ends: it holds one end of a
  pipe whose other end the starter alone has.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import math
import multiprocessing
import os
import random
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import cast

from midst.errors import Aborted, InputError, MidstError, MidstWarning
from midst.graphs import Graph
from midst.machine import ENDS, FORKS, SHARES_PORTS, heed_again, holding_back, watch_end
from midst.net.answer import Answer
from midst.net.charter import Charter, make_charter, split_address
from midst.net.driver import Driver
from midst.net.events import End, Event, moment
from midst.net.identity.certificates import check_name, signature_checker
from midst.net.identity.keys import Identity, load_identity, make_identity
from midst.net.journal import DiskFile, Journal
from midst.net.notary import CertifiedNotary
from midst.net.peer import Peer
from midst.net.process import forbid_dumps, make_room
from midst.net.session import resume
from midst.net.setup import Setup, make_setup
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint, cannot_bind
from midst.protocol.masks import SECRET_BYTES, public_key
from midst.types import Array

_PORTS = range(20_000, 32_000)  # below those that the system hands out to whoever dials
_ENDS = ENDS | {signal.SIGINT}
_DYING = threading.Lock()
_GRACE = 5.0  # seconds for a process to go by itself
_LAST_WORDS = 15.0  # seconds for the others to end, once somebody has failed


@dataclass(frozen=True)
class Party:
    """What a network of this machine is made of."""

    charter: Charter
    identities: tuple[Identity, ...]
    folder: Path


@contextmanager
def make_party(graph: Graph, **settings: object) -> Iterator[Party]:
    """Throw-away keys and a charter for a graph, in a folder that is removed afterwards.

    `settings` are further keys of the charter, which checks them.

    Raises:
        InputError: this machine cannot hold so many, or the charter is none.
    """
    make_room(graph.n, len(_PORTS))
    with hold_ports(graph.n) as ports, _passing_folder() as folder:
        own = graph.labels or [f"node{i}" for i in range(graph.n)]
        names = [check_name(name, f"the name of node {name!a:.70}") for name in own]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MidstWarning)  # these keys are nobody's, and gone when it is over
            made = [make_identity(name, folder / name, days=1) for name in names]
        participants = [
            {"name": one.name, "fingerprint": one.fingerprint, "address": f"127.0.0.1:{port}"}
            for one, port in zip(made, ports, strict=True)
        ]
        edges = [[names[i], names[j]] for i, j in zip(graph.source, graph.target, strict=True) if i < j]
        plain = {"session": f"up-{secrets.token_hex(8)}", "participants": participants, "edges": edges, **settings}
        charter = make_charter(plain, "midst up")
        trusting = tuple(
            replace(one, trusted=tuple(made[j].certificate_file for j in charter.neighbours(one.name))) for one in made
        )
        yield Party(charter, trusting, folder)


@contextmanager
def _passing_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="midst-"))
    try:
        yield folder
    finally:
        for each in (folder, _as_gone(folder)):
            shutil.rmtree(each, ignore_errors=True)


@contextmanager
def hold_ports(count: int) -> Iterator[list[int]]:
    """Ports on loopback that nobody uses, held meanwhile: whoever starts beside us takes others.

    A socket that may share its address and does not listen leaves it to one that does, which a node's transport makes.
    Where that is not so they are only looked for, and who comes too late is told that its port is taken.
    """
    with ExitStack() as held:
        ports: list[int] = []
        first = random.randrange(len(_PORTS))
        for port in (*_PORTS[first:], *_PORTS[:first]):
            if len(ports) == count:
                break
            with suppress(OSError):
                _bind(port, shared=False).close()  # first alone, since two that share would not notice each other
                if SHARES_PORTS:
                    held.enter_context(_bind(port, shared=True))
                ports.append(port)
        if len(ports) < count:
            raise InputError(f"{count} free ports are needed, and there are {len(ports)}; try fewer nodes")
        yield ports


def _bind(port: int, *, shared: bool) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
    try:
        sock.bind(("127.0.0.1", port))
    except OSError:
        sock.close()
        raise
    return sock


def run_party(
    party: Party,
    values: Sequence[Array | float] | Array,
    follow: Callable[[Event], None] = lambda event: None,
    *,
    every: float = 0.05,
) -> list[End]:
    """Run every participant in a process of its own, until all have ended: how, in their order.

    `follow` is told about ends, and about rounds of a participant `every` so many seconds; 0 for all of them.

    Raises:
        InputError: a value is none that the charter allows; nothing was started.
    """
    charter = party.charter
    notaries = [CertifiedNotary(charter, identity) for identity in party.identities]
    setups = [make_setup(charter, *each) for each in zip(charter.names, values, notaries, strict=True)]
    for needed in ("midst.net.exact_finish", "cryptography.hazmat.primitives.kdf.hkdf"):
        importlib.import_module(needed)  # once here, and not in every process
    public_key(bytes(SECRET_BYTES))  # which loads OpenSSL's bindings
    for identity in party.identities:
        signature_checker(identity.certificate)  # which remembers the key
    pipes: dict[Connection, int] = {}
    processes: list[BaseProcess] = []
    lifeline, end_of_it = multiprocessing.Pipe(duplex=False)  # it ends with this process, whatever that dies of
    listening: list[socket.socket] = []
    try:
        if FORKS:
            listening.extend(map(_listen, setups))
        gc.collect()
        gc.freeze()  # who is forked shares what is here already, as long as it does not write to it
        try:
            with holding_back(_ENDS) as is_told:  # what is raised inside a fork is lost
                for i, setup in enumerate(setups):
                    if is_told():
                        break  # it is raised as soon as nothing is held back
                    ours, theirs = multiprocessing.Pipe(duplex=False)
                    ties = _Ties(theirs, lifeline, (*pipes, ours, end_of_it), listening)
                    process = _make_process(party, setup, values[i], every, ties)
                    process.start()
                    theirs.close()
                    pipes[ours] = setup.number
                    processes.append(process)
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise InputError(f"only {len(processes)} processes could be started: {reason}; try fewer nodes") from None
        _close_all(listening)  # each process has its own: who dials one that has died is refused
        return _hear_out(pipes, follow)
    finally:
        for end in (lifeline, end_of_it):  # first: of hundreds of busy processes, this one is slow to reach each
            end.close()
        _close_all(listening)
        gc.unfreeze()
        _end_all(processes, 0.0 if pipes else _GRACE)


def _make_process(party: Party, setup: Setup, value: Array | float, every: float, ties: _Ties) -> BaseProcess:
    """A participant's process, not yet started."""
    identity = party.identities[setup.number]
    if FORKS:
        forked = (party.folder, identity, setup, every, ties)
        return multiprocessing.get_context("fork").Process(target=_live, args=forked, daemon=True)
    alone = _Ties(ties.pipe, ties.lifeline)  # it has nothing of the starter's but what it is given
    apart = (party.charter, party.folder, identity.key_file, identity.trusted, value, every, alone)
    return multiprocessing.get_context("spawn").Process(target=_live_apart, args=apart, daemon=True)


def _listen(setup: Setup) -> socket.socket:
    """A socket that listens where the charter says; its port is held by one that does not."""
    host, port = split_address(setup.charter.participants[setup.number].address or "")
    try:
        sock = _bind(port, shared=SHARES_PORTS)
        sock.listen()
    except OSError as error:
        raise cannot_bind(setup.name, host, port, error) from None
    return sock


def _close_all(sockets: Iterable[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def _end_all(processes: Sequence[BaseProcess], grace: float) -> None:
    """Wait for processes to go by themselves, for so many seconds in all, and then no longer."""
    until = time.monotonic() + grace
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    for process in processes:
        process.kill()
    for process in processes:
        process.join()


def _hear_out(pipes: dict[Connection, int], follow: Callable[[Event], None]) -> list[End]:
    """Pass on what the processes tell, until each has closed its pipe; or one has failed, and the others do not end."""
    ends = {i: End(i, None, "its process died") for i in pipes.values()}
    failed: End | None = None
    until = math.inf
    while pipes and time.monotonic() < until:
        for ready in wait(list(pipes), None if failed is None else max(0.0, until - time.monotonic())):
            pipe = cast(Connection, ready)
            try:
                event = pipe.recv()
            except (EOFError, ConnectionError):  # the second where it was killed, on Windows
                event = ends[pipes.pop(pipe)]
            else:
                follow(event)
            if isinstance(event, End):
                ends[event.node] = event
                if failed is None and event.answer is None:
                    failed, until = event, time.monotonic() + _LAST_WORDS
    left = {} if failed is None else {i: End(i, None, failed.error) for i in pipes.values()}
    return [left.get(i, ends[i]) for i in sorted(ends)]


@dataclass(frozen=True)
class _Ties:
    """What joins a participant's process to the one that started it.

    Attributes:
        pipe: where events go.
        lifeline: where nothing is ever read but the end.
        foreign: the starter's ends of both, and of others' pipes, in a fork; copies of them would keep whoever is at
            the other end waiting after it is gone.
        listening: everybody's sockets, by number; none where each process makes its own.
    """

    pipe: Connection
    lifeline: Connection
    foreign: tuple[Connection, ...] = ()
    listening: Sequence[socket.socket] = ()

    def cut_loose(self, number: int) -> None:
        """Close what is not this participant's."""
        for pipe in self.foreign:
            pipe.close()
        _close_all(sock for i, sock in enumerate(self.listening) if i != number)


def _live_apart(
    charter: Charter,
    folder: Path,
    key_file: Path,
    trusted: tuple[Path, ...],
    value: Array | float,
    every: float,
    ties: _Ties,
) -> None:
    """A participant's process that was not forked."""
    warnings.simplefilter("ignore", MidstWarning)
    try:
        identity = replace(load_identity(key_file), trusted=trusted)
    except InputError:
        os._exit(1)  # the folder is gone, and so is who made it
    setup = make_setup(charter, identity.name, value, CertifiedNotary(charter, identity))
    _live(folder, identity, setup, every, ties)


def _live(folder: Path, identity: Identity, setup: Setup, every: float, ties: _Ties) -> None:
    """A participant's process."""
    forbid_dumps()
    ties.cut_loose(setup.number)
    heed_again(_ENDS)
    try:
        file = DiskFile(folder / f"{setup.name}.journal")
        end = asyncio.run(_participate(folder, identity, setup, file, every, ties))
    except MidstError as error:
        end = End(setup.number, None, str(error))
    except BaseException as error:
        end = End(setup.number, None, f"unexpected {type(error).__name__}")
    try:
        ties.pipe.send(end)
    except OSError:
        _follow_into_death(folder)
    ties.pipe.close()
    os._exit(0)  # what the parent had open is the parent's to close


async def _participate(
    folder: Path, identity: Identity, setup: Setup, file: DiskFile, every: float, ties: _Ties
) -> End:
    watch_end(ties.lifeline, partial(_follow_into_death, folder, file))
    i, started, last, first, answered = setup.number, time.monotonic(), 0.0, 0.0, 0.0
    own = ties.listening[i] if ties.listening else None
    transport = TlsTransport(Endpoint(setup.charter, identity, i, setup.codec.largest(), listening=own))

    def watch(peer: Peer) -> None:
        nonlocal last, first, answered
        now = time.monotonic()
        if peer.exchange.round > 0 and not first:
            first = now - started
        if peer.exchange.answer is not None:
            answered = now - started
        if now - last >= every or answered:
            last = now
            ties.pipe.send(moment(peer))

    session = resume(setup, Journal(file, setup.name), os.urandom)
    ending = session if isinstance(session, Answer) else await Driver(session, transport, watch=watch).run()
    answer, error = (ending, "") if isinstance(ending, Answer) else (None, str(ending))
    return End(i, answer, error, transport.sent, transport.received, first, answered)


def _follow_into_death(folder: Path, file: DiskFile | None = None) -> None:
    """Whoever started this process is gone: nobody else will remove what it has made.

    The first of all participants does so, for all; by its old name nobody finds the folder then, to write there again.
    Where a folder with open files cannot be renamed each removes what nobody has open, and the last one the rest.
    """
    _DYING.acquire()  # whoever comes second in this process waits for its end
    try:
        folder.rename(_as_gone(folder))
    except OSError:
        if file is not None:
            file.close()
        shutil.rmtree(folder, ignore_errors=True)
    else:
        shutil.rmtree(_as_gone(folder), ignore_errors=True)
    os._exit(1)


def _as_gone(folder: Path) -> Path:
    """What a folder is called while a participant removes it."""
    return folder.with_name(f"{folder.name}-gone")


def unanimous(ends: Sequence[End]) -> Answer:
    """The answer that all have found.

    Raises:
        Aborted: somebody has none.
    """
    answers = []
    for end in ends:
        if end.answer is None:
            raise Aborted("aborted", f"node{end.node}", end.error)
        answers.append(end.answer)
    assert len({answer.value for answer in answers}) == 1, "participants proved different answers"
    return answers[0]
