"""One client of a session about vectors, on a real network: an update in, the aggregate out, round after round.

Rules:
- The network runs in a thread of its own while the caller trains. `aggregate` waits; nothing else does.
- Everything that must not be forgotten is in the journal, in the state folder: keys are agreed on once, and a process
  that is started again, or a new one for every round, goes on where the last one stopped. A round that is over is not
  begun again: asked for it by its number, its aggregate is given once more. A round that has begun goes on with the
  update that it began with, whatever has been trained since: the others have been told of that one.
- An update is refused before anything is sent where it does not fit the charter; errors never repeat a number.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from midst.dp.ledger import Entry, Ledger
from midst.errors import Aborted, InputError, MidstWarning
from midst.federated.updates import Leaf, Update, fit, flatten, rebuild
from midst.net.answer import Answer
from midst.net.charter import Charter, check_identity, split_address
from midst.net.charter_files import read_charter
from midst.net.driver import Driver, Tell
from midst.net.identity.keys import Identity, load_identity
from midst.net.journal import DiskFile, Journal
from midst.net.notary import CertifiedNotary
from midst.net.session import Session, journal_file, resume
from midst.net.setup import make_setup
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint
from midst.net.tree_sums import Finished, TreeSums
from midst.privacy.priors import Prior
from midst.privacy.vectors import LeakageCount, VectorLeakage, add_up_leakage, check_leakage
from midst.protocol.vectors.search import Numbers, VectorSearch

_LAST_WORDS = 30.0  # seconds for the network to end, after it was told to


@dataclass(frozen=True, eq=False)
class Round:
    """What came of a round.

    Attributes:
        value: the aggregate, in the structure of the update; the same at every client.
        round: which, from 0 on.
        steps: questions that the longest chunk took.
        digest: the hash of all that was agreed and told in this session so far; the same at every client.
        sent: bytes that this client has sent since it was opened.
        received: bytes that it has received.
        leakage: what the round gave away, where a prior was given.
    """

    value: Update = field(repr=False)
    round: int
    steps: int
    digest: bytes
    sent: int
    received: int
    leakage: VectorLeakage | None = None


class Client:
    """One client of a session about vectors; to be closed, or used in a `with` block."""

    def __init__(
        self,
        charter: Charter | str | Path,
        name: str,
        key: Identity | str | Path,
        *,
        state: str | Path,
        listen: str | None = None,
        prior: Prior | None = None,
        ledger: str | Path | None = None,
        tell: Tell = lambda kind, text: None,
    ) -> None:
        """Join the session, or go on with it: the network is begun, and nobody is waited for.

        Args:
            charter: what all agreed on, or its file; it lists the arrays of an update.
            name: which participant this is.
            key: its key, or the file.
            state: a folder for the journal, of this client alone.
            listen: "host:port" to bind, where that is not the charter's address.
            prior: what is known of a number beforehand, for the leakage in bits.
            ledger: keeps account of all rounds that this client takes part in; it needs a prior, and its budget is
                looked at before every round.
            tell: told what a person should know: a kind and one line.

        Raises:
            InputError: the charter, the key or the journal is none for this; nothing was sent.
            Aborted: the journal says that the session cannot go on.
        """
        self.charter = charter if isinstance(charter, Charter) else read_charter(Path(charter))
        if self.charter.layout is None:
            raise InputError("the charter is about numbers; one about arrays is needed: midst charter new --arrays")
        self._layout = self.charter.layout
        identity = key if isinstance(key, Identity) else load_identity(Path(key))
        number = check_identity(self.charter, name, identity)
        if prior is not None:
            check_leakage(self.charter.vector_goal)
        elif ledger is not None:
            raise InputError("a ledger adds up bits, which need a prior: what is known of a number beforehand")
        self._ledger = None if ledger is None else Ledger.open(ledger, _mark(identity))
        self.name, self._prior = name, prior
        setup = make_setup(self.charter, name, 0.0, CertifiedNotary(self.charter, identity))
        bind = None if listen is None else split_address(listen, to_bind=True)
        self._transport = TlsTransport(Endpoint(self.charter, identity, number, setup.codec.largest(), bind))
        self._file = DiskFile(journal_file(Path(state), self.charter, name))
        self._ending: Answer | Aborted | Exception | None = None
        self._counts: dict[int, LeakageCount] = {}
        self._leakage: VectorLeakage | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        try:
            session = resume(setup, Journal(self._file, str(state)), os.urandom)
        except BaseException:
            self._file.close()
            raise
        self._finished: Finished | None = None
        if isinstance(session, Session):
            self._begin(session, tell)
        else:
            self._file.close()
            assert session.update is not None
            arrays = self._layout.from_bytes(session.update)
            self._finished = Finished(self.charter.aggregates - 1, arrays, session.probes, session.digest)

    def _begin(self, session: Session, tell: Tell) -> None:
        vectors = session.exchange.vectors
        assert vectors is not None
        self._vectors: TreeSums = vectors
        self._finished = vectors.finished
        if self._prior is not None:
            vectors.watched = self._watch_totals
        self._driver = Driver(session, self._transport, watch=lambda peer: self._look(), tell=tell)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name=f"midst {self.name}", daemon=True)
        self._thread.start()

    # What a caller does

    @property
    def rounds_done(self) -> int:
        """How many rounds of the session are over."""
        return 0 if self._finished is None else self._finished.round + 1

    def aggregate(self, update: Update, round: int | None = None, *, timeout: float | None = None) -> Round:
        """Take part in a round, and wait until its aggregate is certified by all.

        All clients have the same one. That no client lied about its counts is not proved.

        Args:
            update: an array, or dictionaries, lists or tuples of arrays, as the charter lists them. A round that had
                begun before this client was started again goes on with the update of then, and a warning says so.
            round: which, from 0 on; the next if not given. The last one that is over gives its aggregate once more.
            timeout: seconds after which to give up waiting; the round goes on, and can be asked for again.

        Raises:
            InputError: the update does not fit the charter, or the session or the round is another.
            Aborted: the session has ended without it, and says because of whom.
            TimeoutError: it is not over yet.
        """
        arrays = fit(flatten(update, self.name), self._layout, self.name, "the charter")
        wanted = self.rounds_done if round is None else round
        if wanted == self.rounds_done - 1 and round is not None:
            return self._result(update)
        if wanted != self.rounds_done or wanted >= self.charter.aggregates:
            raise InputError(
                f"round {wanted} of a session of {self.charter.aggregates}, of which {self.rounds_done} are over; "
                "ask for the next, or agree on a new charter: midst charter new --from"
            )
        if self._ledger is not None:
            self._ledger.require()
        self._offer(arrays)
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self.rounds_done <= wanted:
                if isinstance(self._ending, Exception):
                    raise self._ending
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"round {wanted} is not over; ask for it again")
                self._changed.wait(left)
        if self._ledger is not None and self._leakage is not None:
            self._ledger.add(Entry(bits=self._leakage.bits * self._leakage.coordinates), self._prior)
        return self._result(update)

    def last_arrays(self) -> dict[str, Leaf]:
        """The aggregate of the last round that is over, by the names of its arrays.

        Raises:
            InputError: there is none.
        """
        if self._finished is None:
            raise InputError("no round is over yet; take part in one")
        return dict(zip((one.name for one in self._layout.arrays), self._finished.arrays, strict=True))

    def close(self) -> None:
        """Leave, to come back: neighbours are told, and wait; after the last round, stay as long as they need it."""
        if self._thread is None:
            return
        over = self.rounds_done >= self.charter.aggregates
        if not over and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._driver.leave)
        self._thread.join(self.charter.deadlines.linger + _LAST_WORDS)
        self._thread = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self.name}: {self.rounds_done} of {self.charter.aggregates} rounds are over>"

    # Parts

    def _offer(self, arrays: list[Leaf]) -> None:
        """Hand the update to the network's thread, and wait until it has it, or has another one for this round."""
        taken: list[bool] = []

        def offer() -> None:
            new = True
            try:
                self._vectors.offer(arrays)
            except ValueError:
                new = False
            with self._changed:
                taken.append(new)
                self._changed.notify_all()
            self._driver.wake()

        with self._changed:
            if self._ending is None:
                self._loop.call_soon_threadsafe(offer)
            while not taken and self._ending is None:
                self._changed.wait()
        if taken and not taken[0]:
            said = f"this round had begun with another update of {self.name}, and goes on with that one"
            warnings.warn(said, MidstWarning, stacklevel=3)

    def _result(self, update: Update) -> Round:
        order, over = self.last_arrays(), self._finished
        assert over is not None
        value = rebuild(update, iter([order[name] for name in flatten(update, self.name)]))
        sent, received = self._transport.sent, self._transport.received
        return Round(value, over.round, over.steps, over.digest, sent, received, self._leakage)

    # In the network's thread

    def _live(self) -> None:
        ending: Answer | Aborted | Exception
        try:
            ending = self._loop.run_until_complete(self._driver.run())
        except Exception as error:
            ending = error
        finally:
            self._loop.close()
            self._file.close()
        with self._changed:
            self._ending = ending
            self._changed.notify_all()

    def _look(self) -> None:
        """After every step: whether a round is over."""
        over = self._vectors.finished
        if over is not None and over is not self._finished:
            with self._changed:
                self._leakage = self._add_up(over)
                self._finished = over
                self._changed.notify_all()

    def _watch_totals(self, k: int, search: VectorSearch, totals: Numbers) -> None:
        assert self._prior is not None
        if k not in self._counts:
            chunk, goal = self._layout.chunks[k], self.charter.vector_goal
            of = self._layout.formats[chunk.segment]
            self._counts[k] = LeakageCount(self._prior, of, goal, chunk.stop - chunk.start)
        self._counts[k].see(search, totals)

    def _add_up(self, over: Finished) -> VectorLeakage | None:
        """What a round gave away; nothing is said of one that another process began."""
        layout, found = self._layout, []
        if len(self._counts) < len(layout.chunks):
            return None
        for k, chunk in enumerate(layout.chunks):
            answer: Any = layout.formats[chunk.segment].offsets(layout.gather(over.arrays, chunk))
            found.append(self._counts[k].result(answer))
        self._counts = {}
        return add_up_leakage(found)


def _mark(identity: Identity) -> list[float]:
    """What a ledger knows a client by: training data have no one number that could be its datum."""
    digest = bytes.fromhex(identity.fingerprint.removeprefix("sha256:"))
    return [float(byte) for byte in digest]
