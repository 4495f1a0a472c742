"""The ledger: what all runs on one datum have revealed together, and a budget for it.

Leakage adds up over repeated runs: on a complete graph the share of exposed nodes grew from 33% to 91% over 100 runs on
the same data. One audit cannot see that. The owner of the datum can, by keeping a ledger of it.

Rules:
- A run that took place is recorded, budget or not. `require` is asked before the next one.
- Where the cost is known beforehand (differential privacy), `add` comes before the run: a crash then costs budget and
  no privacy.
- The file is an SQLite database. A change is one transaction: it waits for other writers, reads the file again, and is
  written as a whole or not at all, whether the process dies or the power fails.
- A file that is damaged, of another format or of another datum is refused and left as it is. A checksum of all content
  finds damage that leaves the database readable. It does not stop a forger.
- On a network, one file is one quantity: `begin` enters a session before anything is sent, and refuses one that is too
  near an earlier one (`sessions.py`); `finish` says what it revealed. Between the two that is unknown.

What is in the file. It does not hold the datum, but what runs revealed of it, which closes in on it over many runs: the
file has mode 0600 and must be kept as private as the datum. Of a search it holds what was published: cells, totals and
the answer. Of an iteration it holds what an eavesdropper on clear z(0) knows of every participant, bounds and exposed
values, since totals reveal more of one value the more is known of the others; but of the datum itself, where it was
exposed, only that fact. The file recognises the datum by its scrypt digest under a random salt of its own. So the
digests of one datum in two ledgers cannot be linked, and no table made beforehand opens one. An attacker with the file
can still try guesses, at about a tenth of a second each: a salary in whole euros falls in hours. A reading that changes
is another datum, with a ledger of its own: what related data reveal of each other is not accounted for.

What is added up.
- Bounds: the intersection of all runs'. Bounds from a run on noised values bound the noised value, and are refused.
- Bits, and the floor of them: what all runs told together, by the functions of the audit (`disclosed.py`), worked out
  anew on every `add`. `Totals.kind` says what that is:
  - "exact", or "upper bound" or "lower bound" as in the audit, where all runs can be joined: searches and iterations
    on clear z(0), with the same values of the same participants.
  - "upper bound", on average over runs, where besides iterations there were noised runs, and no totals. The bits of
    these are added, and given the value its noise depends on nothing else: I(S; O1, O2) ≤ I(S; O1) + I(S; O2).
  - "indication", no bound on either side, where bits are added that do not simply add up: of runs with sealed z(0), on
    other values of the others, or on noised values where others told totals. Given the value, such observations still
    depend on each other, through the others' values: the sum may be too small, and of a run again it is too large.
  There is a floor only where all runs can be joined. A session that was begun and of whose end nothing is known, that
  was aborted, or that had another value cannot be joined; one that was aborted before the value counted told nothing.
- ε: composed by `dp.compose_all` at the budget's δ. A run without differential privacy has no ε, so from the first such
  run on the total is infinite. A session that was aborted before the value counted has told nothing, and costs none.
- Of searches with joint noise, ε and δ are simply added (basic composition), since how they were spent is not in the
  file: ε to the total, δ to be taken off the budget's. Where they come to more than that, the total is infinite. What
  each of them protects, its charter says: one value of a list, or so many together.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Literal, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from midst.dp.joint import Claim, parse_claim, spell_claim
from midst.dp.mechanisms import Mechanism, Offset, check_delta, compose_all
from midst.dp.sessions import KnownSession, State, refuse_near
from midst.errors import InputError
from midst.files import check_writable
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit
from midst.privacy.disclosed import Disclosure, disclose
from midst.privacy.priors import Normal, Prior
from midst.privacy.published import is_search
from midst.privacy.repeats import JointBits, RecordedRun, join_runs
from midst.privacy.views import view
from midst.protocol.noise import JointNoise
from midst.trace import Trace
from midst.types import Array

FORMAT = 5  # of the file, and of the digest's cost; a change of meaning counts up

_APPLICATION = 0x6D696473  # what marks an SQLite file as a ledger
_OF_CONTENT = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)  # of errors, that another try keeps
_OTHER_FORMAT = f"ledger format {{}}, this midst reads {FORMAT} alone; begin a new ledger"
_PATIENCE = 60.0  # seconds for another writer
_NOTHING = JointBits(0.0, "exact", 0.0)
_WORK = 2**15  # scrypt's n: 32 MiB and about 0.1 s a guess
Numbers = tuple[float, ...]
SaltedDigest = tuple[bytes, bytes]


class BudgetError(InputError):
    """A run was refused because it would go past a ledger's budget."""


@dataclass(frozen=True)
class Budget:
    """How much may be given away in all; None: without limit.

    Attributes:
        max_runs: runs.
        max_bits: bits.
        max_epsilon: ε at `delta`.
        delta: the δ at which ε is added up, in (0, 1).
    """

    max_runs: int | None = None
    max_bits: float | None = None
    max_epsilon: float | None = None
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.max_runs, int | None):
            raise InputError("max_runs must be a whole number")
        for name in ("max_runs", "max_bits", "max_epsilon"):
            _refuse_negative(name, getattr(self, name))
        check_delta(self.delta)


@dataclass(frozen=True)
class Entry:
    """What one run gave away: of the value as it is, or, with a mechanism, of the noised one.

    Bounds and exposure are one figure each, or one a coordinate; they are kept as tuples. `entry_of` makes an entry
    from the record of a run.

    Attributes:
        lower: the value lies above this, by what was seen; not kept where exposed.
        upper: and below this.
        exposed: whether the value itself was sent.
        bits: what this run alone told; for a noised run `dp.information` says it, or `dp.joint.most_bits`.
        mechanism: the noise that was put on the value, or on what was told of all.
        told: what it told of all participants, one a coordinate; none where it cannot be joined with other runs.
        node: which of them is the ledger's.
        among: which values took part, by `Ledger.mark`. Runs that differ in it are not joined; where it is "", runs
            are taken to be of the same values if they do not contradict each other.
        joint: what all runs told together that were known when this was written; filled in by the ledger.
        session: of a network, which; None of a simulated run.
        at: when, in UTC.
    """

    lower: ArrayLike = field(default=-inf, repr=False)
    upper: ArrayLike = field(default=inf, repr=False)
    exposed: ArrayLike = False
    bits: float = 0.0
    mechanism: Claim | None = None
    told: tuple[Disclosure, ...] = ()
    node: int = 0
    among: str = ""
    joint: JointBits | None = None
    session: KnownSession | None = None
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def __post_init__(self) -> None:
        try:
            ends = np.array(self.lower, np.float64), np.array(self.upper, np.float64), np.array(self.exposed, np.bool_)
            lower, upper, exposed = np.atleast_1d(*np.broadcast_arrays(*ends))
        except (TypeError, ValueError):
            raise InputError("bounds and exposure must be one figure each, or one a coordinate") from None
        lower, upper = np.where(exposed, -inf, lower), np.where(exposed, inf, upper)
        if not (lower < upper).all():
            raise InputError("the lower bound of a run must lie below the upper")
        if self.mechanism is not None and (self.told or exposed.any() or np.isfinite([lower, upper]).any()):
            raise InputError("bounds of a noised run are those of the noised value, not of the datum; leave them out")
        if any(self.node not in one.nodes for one in self.told):
            raise InputError(f"node {self.node} is none of those of which the run told")
        _refuse_negative("bits", self.bits)
        for name, figures in (("lower", lower), ("upper", upper), ("exposed", exposed)):
            object.__setattr__(self, name, tuple(figures.tolist()))
        object.__setattr__(self, "told", tuple(one.without_value(self.node) for one in self.told))

    @property
    def is_silent(self) -> bool:
        """Whether it ended before anything was sent that depends on the value."""
        return self.session is not None and self.session.state == "silent"

    def recorded(self, datum: Array) -> RecordedRun:
        """The run as it is joined with others, with the datum put in again where it was exposed."""
        if len(self.told) > 1 and len(self.told) != len(datum):
            raise InputError("this run and the ledger's datum differ in their number of coordinates")
        numbers = np.resize(datum, len(self.told))
        pairs = zip(self.told, numbers.tolist(), strict=True)
        disclosed = tuple(one.with_value(self.node, value) for one, value in pairs)
        return RecordedRun(self.bits, self.mechanism is not None, disclosed, self.node, self.among)


def entry_of(
    trace: Trace,
    node: int | str,
    prior: Prior | None = None,
    resolution: float | None = None,
    *,
    adversary: Adversary | None = None,
    among: str = "",
) -> Entry:
    """What a run gave away about one node's value, as a ledger keeps it.

    Args:
        trace: the record of the run.
        node: whose, by its name: its label, or its number where the graph has no labels.
        prior: as for `audit`.
        resolution: as for `audit`.
        adversary: to whom; an eavesdropper on clear z(0) if not given. For others iterations cannot be joined.
        among: which values took part, by `Ledger.mark`.

    Raises:
        InputError: as `audit` does; or there is no such node, or it is the adversary's.
    """
    adversary = Adversary() if adversary is None else adversary
    own = trace.graph.index(node)
    if own in adversary.check(trace.graph):
        raise InputError(f"node {node} is no honest node of this run")
    which = [None] if trace.x.ndim == 2 else list(range(int(np.prod(trace.x.shape[2:]))))
    leaks = [audit(trace, adversary, prior, resolution, coordinate=k) for k in which]
    apart = is_search(trace) or (adversary.eavesdrops and adversary.init == "clear")
    return Entry(
        [leak.lower[own] for leak in leaks],
        [leak.upper[own] for leak in leaks],
        [leak.exposed[own] for leak in leaks],
        float(sum(leak.bits[own] for leak in leaks)),
        told=tuple(disclose(view(trace, adversary, k)) for k in which) if apart else (),
        node=own,
        among=among,
    )


@dataclass(frozen=True)
class Totals:
    """What all runs gave away together.

    Attributes:
        runs: how many.
        dp_runs: of them with an (ε, δ) claim, or that told nothing.
        exposed_runs: of them such that sent the value itself.
        lower: the value lies above this, for each coordinate, by what the runs that did not expose it show.
        upper: and below this.
        bits: what they told; see the head of this file.
        kind: what that figure is: "exact", "upper bound", "lower bound" or "indication".
        floor: of these, those of the answers alone; None where that is not known.
        epsilon: ε at `delta`; infinite where a run had none.
        delta: the budget's.
    """

    runs: int
    dp_runs: int
    exposed_runs: int
    lower: Numbers = field(repr=False)
    upper: Numbers = field(repr=False)
    bits: float
    kind: str
    floor: float | None
    epsilon: float
    delta: float

    @property
    def excess(self) -> float | None:
        """Bits − floor."""
        return None if self.floor is None else self.bits - self.floor


class Ledger:
    """The ledger of one datum, kept in a file; see the head of this file for what it protects and what it does not.

    Attributes:
        path: the file.
        budget: the budget it was made with.
        entries: the runs so far.
    """

    def __init__(self, path: Path, budget: Budget, datum: Array | None, seal: SaltedDigest | None = None) -> None:
        """Not to be called; use `new` or `open`."""
        self.path, self.budget = path, budget
        self.entries: tuple[Entry, ...] = ()
        self._seal = seal
        self._datum = datum  # in memory only: what is known where it was exposed

    def __repr__(self) -> str:
        return f"<Ledger: {len(self.entries)} runs in {self.path}>"

    @classmethod
    def new(cls, path: str | Path, budget: Budget | None = None, datum: ArrayLike | None = None) -> Self:
        """Make a ledger file; it becomes that of the first datum it is opened with, unless one is given here.

        Raises:
            InputError: the file exists already, or cannot be written.
        """
        file = check_writable(Path(path).resolve())
        numbers = None if datum is None else _numbers(datum)
        ledger = cls(file, budget or Budget(), numbers, None if numbers is None else _digest(numbers))
        try:
            file.touch(0o600, exist_ok=False)
        except FileExistsError:
            raise InputError(f"{path} exists already; a ledger is never overwritten") from None
        try:
            with _transaction(file) as store:
                store.execute(f"PRAGMA application_id = {_APPLICATION}")
                store.execute(f"PRAGMA user_version = {FORMAT}")
                store.execute("CREATE TABLE ledger (salt BLOB, digest BLOB, budget TEXT, checksum TEXT)")
                store.execute("CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT)")
                ledger._save(store, ())
        except BaseException:
            file.unlink()
            raise
        return ledger

    @classmethod
    def open(cls, path: str | Path, datum: ArrayLike | None = None) -> Self:
        """Open a ledger: of this datum, or only to be read.

        Raises:
            InputError: there is no such file, it is damaged, or it is another datum's.
        """
        numbers = None if datum is None else _numbers(datum)
        ledger = cls(Path(path).resolve(), Budget(), numbers)
        with _transaction(ledger.path, "DEFERRED" if numbers is None else "IMMEDIATE") as store:
            ledger._load(store)
            if numbers is not None and not ledger.sealed:
                ledger._seal = _digest(numbers)
                ledger._save(store, ledger.entries)
            elif numbers is not None:
                ledger.require_datum(numbers)
        return ledger

    @property
    def sessions(self) -> tuple[KnownSession, ...]:
        """Those of a network that were begun, whatever became of them."""
        return tuple(entry.session for entry in self.entries if entry.session is not None)

    @property
    def sealed(self) -> bool:
        """Whether it was given or opened with a datum, and is that one's ledger since."""
        return self._seal is not None

    def totals(self) -> Totals:
        """What all runs so far gave away together."""
        return _add_up(self.entries, self.budget.delta)

    def require_datum(self, datum: ArrayLike) -> None:
        """Refuse any datum but the one this ledger is kept for; a ledger not yet used accepts every one.

        Raises:
            InputError: it is another datum's.
        """
        if not self._is_of(datum):
            raise InputError(f"{self.path}: the ledger of another datum; give each its own")

    def mark(self, values: ArrayLike) -> str:
        """Which values take part in a run, in a form that can only be compared, and only within this ledger.

        Raises:
            InputError: the ledger has no datum yet, or these are no finite numbers.
        """
        if self._seal is None:
            raise InputError(f"{self.path}: no datum yet; open the ledger with it")
        return _digest(values, self._seal[0])[1].hex()

    def would_exceed(self, entry: Entry, budget: Budget | None = None) -> tuple[str, ...]:
        """Where the totals would lie past the budget with one more run, such as "bits 9.1 of 8"; empty: nowhere."""
        budget = budget or self.budget
        after = _add_up((*self.entries, entry), budget.delta)
        limits = (("runs", budget.max_runs), ("bits", budget.max_bits), ("epsilon", budget.max_epsilon))
        spent = [(name, getattr(after, name), most) for name, most in limits if most is not None]
        return tuple(f"{name} {figure:.6g} of {most:.6g}" for name, figure, most in spent if figure > most)

    def require(self, budget: Budget | None = None, entry: Entry | None = None) -> None:
        """Refuse the run to come if it would go past the budget; who is told to run all the same does not ask.

        Args:
            budget: instead of the ledger's own.
            entry: what is known of the run beforehand; if not given, a run without noise whose leak nobody knows yet.

        Raises:
            BudgetError: it would.
        """
        if exceeded := self.would_exceed(entry or Entry(), budget):
            raise BudgetError(f"{self.path}: one more run would go past the budget ({', '.join(exceeded)})")

    def add(self, entry: Entry, prior: Prior | None = None, resolution: float | None = None) -> Totals:
        """Record a run.

        Args:
            entry: what it gave away.
            prior: of every value, for what all runs told together; N(0, 1) if not given.
            resolution: to which values are told apart; a thousandth of the prior's scale if not given.

        Raises:
            InputError: the ledger was opened without its datum or replaced meanwhile, or the bounds contradict earlier
                ones; the file is as it was.
        """
        if self._datum is None:
            raise InputError(f"{self.path}: opened without its datum, so only to be read")
        with _transaction(self.path) as store:
            self._load(store)
            self._keep(store, (*self.entries, entry), prior, resolution)
        return self.totals()

    def begin(
        self,
        session: KnownSession,
        datum: ArrayLike,
        despite: bool = False,
        prior: Prior | None = None,
        planned: Entry | None = None,
    ) -> None:
        """Enter a session before anything of it is sent; one that is in the ledger already, and told something, stays.

        Args:
            session: which, and with whom.
            datum: the value that this participant brings.
            despite: enter it whatever the ledger says.
            prior: as for `add`.
            planned: what is known of it beforehand: the noise that was agreed on.

        Raises:
            InputError: it has another value than the ledger's, or is too near an earlier session.
            BudgetError: one more run would go past the budget.
        """
        numbers = _numbers(datum)
        with _transaction(self.path) as store:
            self._load(store)
            self._seal = self._seal or _digest(numbers)
            if not despite:
                self.require_session(session, numbers, planned)
            own = self._is_of(numbers)
            self._datum = numbers if own else None
            session = replace(session, value="" if own else self.mark(numbers))
            # taken up again, one that told nothing may tell all
            others = [each for each in self.entries if each.session != replace(session, state="silent")]
            known = {(each.session.digest, each.session.value) for each in others if each.session is not None}
            if (session.digest, session.value) not in known:
                self._keep(store, (*others, replace(planned or Entry(), session=session)), prior)

    def require_session(self, session: KnownSession, datum: ArrayLike, planned: Entry | None = None) -> None:
        """Refuse a session to come as `begin` would; nothing is written, and one that has begun is not refused.

        Raises:
            InputError: it has another value than the ledger's, or is too near an earlier session.
            BudgetError: one more run would go past the budget.
        """
        if not self._is_of(datum):
            text = "another value than the one this ledger is kept for: two answers tell what has changed"
            raise InputError(f"{self.path}: {text}; of another quantity keep another, or give --despite-ledger")
        if session.digest not in {each.digest for each in self.sessions}:
            refuse_near(session, self.sessions, str(self.path))
            self.require(entry=planned)

    def _is_of(self, datum: ArrayLike) -> bool:
        """Whether this is the ledger's datum; any, as long as it has none."""
        return self._seal is None or hmac.compare_digest(self._seal[1], _digest(datum, self._seal[0])[1])

    def finish(self, digest: str, entry: Entry, state: State, prior: Prior | None = None) -> Totals:
        """Say what a session told that was begun with this ledger; of one that is over nothing is changed.

        Args:
            digest: of its charter.
            entry: what it gave away; it is joined with others where the session is over.
            state: what became of it.
            prior: as for `add`.

        Raises:
            InputError: it was never begun, or the bounds contradict earlier ones; the file is as it was.
        """
        with _transaction(self.path) as store:
            self._load(store)
            old = next((each for each in self.entries[::-1] if each.session and each.session.digest == digest), Entry())
            if old.session is None:
                raise InputError(f"{self.path}: no session {digest[:12]} was begun with this ledger")
            if old.session.state == "over":
                return self.totals()
            session = replace(old.session, state=state)
            entry = replace(
                entry,
                lower=-inf if session.value else entry.lower,
                upper=inf if session.value else entry.upper,
                told=entry.told if state == "over" and not session.value else (),
                among=session.among,
                session=session,
                at=old.at,
            )
            self._keep(store, (*(each for each in self.entries if each is not old), entry), prior)
        return self.totals()

    def _keep(
        self,
        store: sqlite3.Connection,
        entries: tuple[Entry, ...],
        prior: Prior | None,
        resolution: float | None = None,
    ) -> None:
        """Save entries, of which the last is new, with what all of them told together."""
        _add_up(entries, self.budget.delta)
        if self._datum is None:  # a session with another value: it is not known what the earlier ones told
            joint = JointBits(_join(self.entries).bits + entries[-1].bits, "indication", None)
        else:
            runs = [each.recorded(self._datum) for each in entries if not each.is_silent]
            prior = Normal() if prior is None else prior
            joint = join_runs(runs, prior, resolution, self._datum) if runs else _NOTHING
        self._save(store, (*entries[:-1], replace(entries[-1], joint=joint)))

    def _load(self, store: sqlite3.Connection) -> None:
        """Take over what the file says now."""
        application, version = store.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
        if application != _APPLICATION:
            raise InputError(f"{self.path}: not a midst ledger")
        if version != FORMAT:
            raise InputError(f"{self.path}: {_OTHER_FORMAT.format(version)}")
        try:
            [(*head, checksum)] = store.execute("SELECT salt, digest, budget, checksum FROM ledger")
            texts = [text for (text,) in store.execute("SELECT content FROM entry ORDER BY number")]
            if checksum != _checksum(head, texts):
                raise ValueError("checksum")
            seal = None if head[0] is None else (bytes(head[0]), bytes(head[1]))
            budget, entries = Budget(**json.loads(head[2])), tuple(map(_decode, texts))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{self.path}: damaged ledger; take it from a backup") from None
        if self._seal not in (None, seal):
            raise InputError(f"{self.path}: replaced by another ledger since it was opened")
        self._seal, self.budget, self.entries = seal, budget, entries

    def _save(self, store: sqlite3.Connection, entries: tuple[Entry, ...]) -> None:
        """Put these entries in the place of the old ones, on disk on return."""
        self.path.chmod(0o600)
        head = (*(self._seal or (None, None)), json.dumps(asdict(self.budget)))
        texts = [_encode(entry) for entry in entries]
        store.execute("DELETE FROM ledger")
        store.execute("DELETE FROM entry")
        store.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (*head, _checksum(head, texts)))
        store.executemany("INSERT INTO entry (content) VALUES (?)", [(text,) for text in texts])
        store.commit()
        self.entries = entries


def _refuse_negative(name: str, figure: float | None) -> None:
    if figure is not None and not 0 <= figure < inf:
        raise InputError(f"{name} must be a finite number, 0 or more")


def _add_up(entries: tuple[Entry, ...], delta: float) -> Totals:
    try:
        lower, upper = (
            np.broadcast_arrays(*(np.array(getattr(entry, end)) for entry in entries), np.array([start]))
            for end, start in (("lower", -inf), ("upper", inf))
        )
    except ValueError:
        raise InputError("bounds of this run and of earlier ones differ in their number of coordinates") from None
    lowest, highest = np.max(lower, axis=0), np.min(upper, axis=0)
    if not (lowest < highest).all():
        raise InputError("bounds of this run contradict earlier ones; one of them is of another value")
    claims: Counter[Claim] = Counter(
        entry.mechanism for entry in entries if not isinstance(entry.mechanism, Offset | None) and not entry.is_silent
    )
    private = claims.total() + sum(entry.is_silent for entry in entries)
    joint = _join(entries)
    return Totals(
        runs=len(entries),
        dp_runs=private,
        exposed_runs=sum(bool(np.any(entry.exposed)) for entry in entries),
        lower=tuple(lowest.tolist()),
        upper=tuple(highest.tolist()),
        bits=joint.bits,
        kind=joint.kind,
        floor=joint.floor,
        epsilon=_compose(claims, delta) if private == len(entries) else inf,
        delta=delta,
    )


def _compose(claims: Counter[Claim], delta: float) -> float:
    """The ε of all runs together: that of joint noise, with its δ, is added to what the others come to."""
    added, composed = Fraction(0), Counter[Mechanism]()
    rest = Fraction(repr(delta))  # the decimals that were written: 3 times 1e-6 is 3e-6
    for claim, count in claims.items():
        if isinstance(claim, JointNoise):
            added, rest = added + count * Fraction(claim.epsilon), rest - count * Fraction(repr(claim.delta))
        else:
            composed[claim] = count
    if rest < 0 or (rest == 0 and composed):
        return inf
    return float(added) + (compose_all(composed, float(rest)) if composed else 0.0)


def _join(entries: tuple[Entry, ...]) -> JointBits:
    """What the last entry says of all; of one that is only planned, its own bits come on top."""
    planned = entries[-1].bits if entries and entries[-1].joint is None else 0.0
    known = [entry.joint for entry in entries if entry.joint is not None]
    last = known[-1] if known else _NOTHING
    return JointBits(last.bits + planned, "indication", None) if planned else last


def _numbers(datum: ArrayLike) -> Array:
    try:
        numbers = np.array(datum, dtype="<f8").ravel() + 0.0  # −0 is 0
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise InputError("the datum must be a finite number, or a row of them")
    return numbers


def _digest(datum: ArrayLike, salt: bytes | None = None) -> SaltedDigest:
    """A salt, fresh if not given, and the datum's digest under it."""
    salt = salt or secrets.token_bytes(32)
    return salt, hashlib.scrypt(_numbers(datum).tobytes(), salt=salt, n=_WORK, r=8, p=1, maxmem=2**28, dklen=32)


@contextmanager
def _transaction(path: Path, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """A transaction on a ledger's file: to write, which keeps other writers out, or only to read.

    Raises:
        InputError: there is no such file, it is no database, or it cannot be written.
    """
    uri = f"{path.as_uri()}?mode=rw"  # a file that is not there is not made
    if kind == "IMMEDIATE" and path.is_file():
        check_writable(path)
    try:
        with closing(sqlite3.connect(uri, timeout=_PATIENCE, isolation_level=None, uri=True)) as store:
            # the folder is synced too: until the end of the rollback journal is on disk, a power cut undoes the change
            store.execute("PRAGMA synchronous = EXTRA")
            store.execute(f"BEGIN {kind}")
            with store:
                yield store
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where an error names a damaged part
        raise _refusal(path, error) from None


def _refusal(path: Path, error: Exception) -> InputError:
    """The reason why a file cannot be used as a ledger, from what SQLite says."""
    try:
        with path.open("rb") as file:
            old = re.match(rb'\{\s*"format": "midst-ledger",\s*"format_version": (\d+)', file.read(99))
    except OSError as reason:
        return InputError(f"{path}: {reason.strerror}; midst ledger new makes a ledger")
    if old is not None:
        return InputError(f"{path}: {_OTHER_FORMAT.format(int(old[1]))}")
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _OF_CONTENT:
        return InputError(f"{path}: not a midst ledger, or a damaged one")
    return InputError(f"{path}: {error}; nothing was written, try again")


def _checksum(head: Sequence[object], texts: Sequence[str]) -> str:
    """Tells an accident, not a forger."""
    return hashlib.sha256(repr((*head, *texts)).encode()).hexdigest()


def _encode(entry: Entry) -> str:
    told = [one.to_dict() for one in entry.told]
    record = vars(entry) | {"told": told, "mechanism": entry.mechanism and spell_claim(entry.mechanism)}
    return json.dumps(msgspec.to_builtins(record))


def _decode(text: str) -> Entry:
    record = json.loads(text)
    made = {
        "told": tuple(map(Disclosure.from_dict, record["told"])),
        "joint": msgspec.convert(record["joint"], JointBits | None),
        "session": msgspec.convert(record["session"], KnownSession | None),
        "mechanism": record["mechanism"] and parse_claim(record["mechanism"]),
    }
    return Entry(**record | made)
