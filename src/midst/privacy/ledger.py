"""The ledger: what all runs on one datum have given away together, and a budget for it.

Repeated runs compose: on a complete graph the share of exposed nodes grew from 33% to 91% over 100 runs on the same
data. One audit cannot see that; whoever holds the datum can, by keeping a ledger of it.

Rules:
- A run that took place is recorded, budget or not. `require` is asked before the next one.
- Where the cost is known beforehand (differential privacy), `add` before the run: a crash then costs budget and no
  privacy.
- Every change reads the file again under a lock (FILE.lock beside it), writes a new file, syncs it and renames it over
  the old one: a crash leaves the one or the other whole. POSIX only, because of the lock.
- A file that is damaged, of another format or of another datum is refused and left as it is.

What is in the file. The datum is not, but the bounds that others could draw are, and over many runs they close in on
it: the file has mode 0600 and belongs with the datum itself. Of a run that exposed the value only that fact is kept,
since its bounds are the value. The datum is recognised by its scrypt digest under a random salt of the file's own. So
two ledgers of one datum cannot be linked by their digests, and no table made beforehand opens one; but whoever has the
file can try guesses, at about a tenth of a second each: a salary in whole euros falls in hours. A reading that changes
is another datum, with a ledger of its own: what related data tell about each other is not accounted for.

What is added up.
- Bounds: the intersection of all runs'. Bounds from a run on noised values bound the noised value, and are refused.
- Bits: the larger of two figures. One is the sum of the runs' own bits, an indication and no bound: a loose lower and a
  loose upper bound may close to a narrow interval. The other is the bits of the intersection, which whoever knows the
  prior has recomputed on every `add` by passing `measure`; for clear initialisation it is exact. A search that told
  just what an earlier one did counts once: the same values again, by the same thresholds, tell nothing new.
- Floor: the runs' own, one for each different answer; excess: bits − floor. Neither is known where one run's is not.
- ε: composed by `dp.compose_all` at the budget's δ. A run without differential privacy has no ε, so from the first such
  run on the total is infinite.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import ArrayLike

from midst.errors import InputError
from midst.files import check_writable, write_whole
from midst.privacy.dp import Mechanism, Offset, check_delta, compose_all, parse_mechanism

FORMAT = 2  # of the file, and of the digest's cost; a change of meaning counts up
_OLDER = (1,)  # formats that are still read: 1 knew no floor

_WORK = 2**15  # scrypt's n: 32 MiB and about 0.1 s a guess
Numbers = tuple[float, ...]
Seal = tuple[bytes, bytes]
Measure = Callable[[Numbers, Numbers], float]


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

    Bounds and exposure are one figure each, or one a coordinate; they are kept as tuples.

    Attributes:
        lower: the value lies above this, by what was seen; not kept where exposed.
        upper: and below this.
        exposed: whether the value itself was sent.
        bits: what this run alone told; for a noised run `dp.information` says it.
        mechanism: the noise that was put on the value.
        floor: of these bits, those that the answer alone gives away; None where that is not known.
        told: what a search published, in a form that can only be compared; "" for all else.
        answer: the same for the answer.
        joint: bits of all bounds so far together; filled in by `Ledger.add`.
        at: when, in UTC.
    """

    lower: ArrayLike = field(default=-inf, repr=False)
    upper: ArrayLike = field(default=inf, repr=False)
    exposed: ArrayLike = False
    bits: float = 0.0
    mechanism: Mechanism | None = None
    floor: float | None = None
    told: str = ""
    answer: str = ""
    joint: float | None = None
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
        if self.mechanism is not None and (exposed.any() or np.isfinite([lower, upper]).any()):
            raise InputError("bounds of a noised run are those of the noised value, not of the datum; leave them out")
        for name in ("bits", "joint", "floor"):
            _refuse_negative(name, getattr(self, name))
        for name, figures in (("lower", lower), ("upper", upper), ("exposed", exposed)):
            object.__setattr__(self, name, tuple(figures.tolist()))


@dataclass(frozen=True)
class Totals:
    """What all runs gave away together.

    Attributes:
        runs: how many.
        dp_runs: of them with an (ε, δ) claim.
        exposed_runs: of them such that sent the value itself.
        lower: the value lies above this, for each coordinate, by what the runs that did not expose it show.
        upper: and below this.
        bits: see the head of this file.
        floor: of these, those of the answers alone; None where that is not known of some run.
        epsilon: ε at `delta`; infinite where a run had none.
        delta: the budget's.
    """

    runs: int
    dp_runs: int
    exposed_runs: int
    lower: Numbers = field(repr=False)
    upper: Numbers = field(repr=False)
    bits: float
    floor: float | None
    epsilon: float
    delta: float

    @property
    def excess(self) -> float | None:
        """Bits − floor."""
        return None if self.floor is None else self.bits - self.floor


@dataclass(frozen=True)
class _Book:
    """The content of the file: salt and digest of the datum (None until a datum was given), budget and entries."""

    seal: Seal | None
    budget: Budget
    entries: tuple[Entry, ...]


class Ledger:
    """The ledger of one datum, kept in a file; see the head of this file for what it protects and what it does not."""

    def __init__(self, path: Path, book: _Book, *, writable: bool) -> None:
        """Not to be called; use `new` or `open`."""
        self.path = path
        self._book = book
        self._writable = writable

    def __repr__(self) -> str:
        return f"<Ledger: {len(self.entries)} runs in {self.path}>"

    @classmethod
    def new(cls, path: str | Path, budget: Budget | None = None, datum: ArrayLike | None = None) -> Self:
        """Make a ledger file; it becomes that of the first datum it is opened with, unless one is given here.

        Raises:
            InputError: the file exists already, or cannot be written.
        """
        file = Path(path).resolve()
        book = _Book(None if datum is None else _seal(datum), budget or Budget(), ())
        with _locked(file):
            if file.exists():
                raise InputError(f"{path} exists already; a ledger is never overwritten")
            _write(file, book)
        return cls(file, book, writable=datum is not None)

    @classmethod
    def open(cls, path: str | Path, datum: ArrayLike | None = None) -> Self:
        """Open a ledger: of this datum, or only to be read.

        Raises:
            InputError: there is no such file, it is damaged, or it is another datum's.
        """
        file = Path(path).resolve()
        ledger = cls(file, _read(file), writable=datum is not None)
        if datum is None:
            return ledger
        with _locked(file):
            ledger._book = _read(file)
            if ledger._book.seal is None:
                ledger._book = replace(ledger._book, seal=_seal(datum))
                _write(file, ledger._book)
        ledger.require_datum(datum)
        return ledger

    @property
    def budget(self) -> Budget:
        """The budget it was made with."""
        return self._book.budget

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The runs so far."""
        return self._book.entries

    @property
    def sealed(self) -> bool:
        """Whether it was given or opened with a datum, and is that one's ledger since."""
        return self._book.seal is not None

    def totals(self) -> Totals:
        """What all runs so far gave away together."""
        return _add_up(self.entries, self.budget.delta)

    def require_datum(self, datum: ArrayLike) -> None:
        """Refuse any datum but the one this ledger is kept for; a ledger not yet used accepts every one.

        Raises:
            InputError: it is another datum's.
        """
        seal = self._book.seal
        if seal is not None and not hmac.compare_digest(seal[1], _seal(datum, seal[0])[1]):
            raise InputError(f"{self.path}: the ledger of another datum; give each its own")

    def would_exceed(self, entry: Entry, budget: Budget | None = None) -> tuple[str, ...]:
        """Where the totals would lie past the budget with one more run, such as "bits 9.1 of 8"; empty: nowhere."""
        budget = budget or self.budget
        after = _add_up((*self.entries, entry), budget.delta)
        spent = {"runs": after.runs, "bits": after.bits, "epsilon": after.epsilon}
        limits = {name: getattr(budget, f"max_{name}") for name in spent}
        return tuple(
            f"{name} {spent[name]:.6g} of {most:.6g}"
            for name, most in limits.items()
            if most is not None and spent[name] > most
        )

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

    def add(self, entry: Entry, measure: Measure | None = None) -> Totals:
        """Record a run.

        Args:
            entry: what it gave away.
            measure: given lower and upper of all runs together, their bits under the prior: −log2 P(lower < S < upper).

        Raises:
            InputError: the ledger was opened without its datum or replaced meanwhile, or the bounds contradict earlier
                ones; the file is as it was.
        """
        if not self._writable:
            raise InputError(f"{self.path}: opened without its datum, so only to be read")
        with _locked(self.path):
            book = _read(self.path)
            if book.seal != self._book.seal:
                raise InputError(f"{self.path}: replaced by another ledger since it was opened")
            after = _add_up((*book.entries, entry), book.budget.delta)
            if measure is not None:
                entry = replace(entry, joint=float(measure(after.lower, after.upper)))
            book = replace(book, entries=(*book.entries, entry))
            _write(self.path, book)
            self._book = book
        return self.totals()


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
    claims: Counter[Mechanism] = Counter(
        entry.mechanism for entry in entries if not isinstance(entry.mechanism, Offset | None)
    )
    joint = max((entry.joint for entry in entries if entry.joint is not None), default=0.0)
    return Totals(
        runs=len(entries),
        dp_runs=claims.total(),
        exposed_runs=sum(bool(np.any(entry.exposed)) for entry in entries),
        lower=tuple(lowest.tolist()),
        upper=tuple(highest.tolist()),
        bits=max(sum(entry.bits for entry in _different(entries, "told")), joint),
        floor=_add_floors(_different(entries, "answer")),
        epsilon=compose_all(claims, delta) if claims.total() == len(entries) else inf,
        delta=delta,
    )


def _different(entries: tuple[Entry, ...], name: str) -> list[Entry]:
    """The entries, less those of which an attribute says the same as that of an earlier one."""
    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(getattr(entry, name), entry)
    return [entry for entry in entries if not (mark := getattr(entry, name)) or first[mark] is entry]


def _add_floors(entries: list[Entry]) -> float | None:
    floors = [entry.floor for entry in entries]
    return None if None in floors else float(sum(floor for floor in floors if floor is not None))


def _seal(datum: ArrayLike, salt: bytes | None = None) -> Seal:
    """A salt, fresh if not given, and the datum's digest under it."""
    salt = salt or secrets.token_bytes(32)
    try:
        numbers = np.array(datum, dtype="<f8").ravel() + 0.0  # −0 is 0
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise InputError("the datum must be a finite number, or a row of them")
    return salt, hashlib.scrypt(numbers.tobytes(), salt=salt, n=_WORK, r=8, p=1, maxmem=2**28, dklen=32)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no one else changes the file, and keep others out meanwhile."""
    check_writable(path)
    handle = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(path: Path, book: _Book) -> None:
    """Put a new file in the place of the old one, and both it and its name on the disk."""
    content = {
        "format": "midst-ledger",
        "format_version": FORMAT,
        "seal": book.seal and [part.hex() for part in book.seal],
        "budget": asdict(book.budget),
        "entries": [_encode(entry) for entry in book.entries],
    }
    text = json.dumps(content | {"checksum": _checksum(content)}, indent=1, allow_nan=False)

    def put(file: BinaryIO) -> None:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())

    write_whole(path, put, mode=0o600)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(path: Path) -> _Book:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; midst ledger new makes a ledger") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not a midst ledger, or a damaged one") from None
    if not isinstance(content, dict) or content.get("format") != "midst-ledger":
        raise InputError(f"{path}: not a midst ledger")
    if content.get("format_version") not in (FORMAT, *_OLDER):
        raise InputError(f"{path}: ledger format {content.get('format_version')!r}, this midst reads {FORMAT}")
    try:
        if content.pop("checksum") != _checksum(content):
            raise ValueError("checksum")
        salt, digest = content["seal"] or ("", "")
        seal = bytes.fromhex(salt), bytes.fromhex(digest)
        return _Book(seal if salt else None, Budget(**content["budget"]), tuple(map(_decode, content["entries"])))
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: damaged ledger; take it from a backup") from None


def _checksum(content: dict[str, Any]) -> str:
    """Tells an accident, not a forger."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _encode(entry: Entry) -> dict[str, Any]:
    """An entry for JSON, which knows no infinity: null stands for it."""
    record = {name: getattr(entry, name) for name in ("at", "exposed", "bits", "floor", "told", "answer", "joint")}
    record |= {end: [x if isfinite(x) else None for x in getattr(entry, end)] for end in ("lower", "upper")}
    return record | {"mechanism": entry.mechanism and str(entry.mechanism)}


def _decode(record: dict[str, Any]) -> Entry:
    ends = {end: [start if x is None else x for x in record[end]] for end, start in (("lower", -inf), ("upper", inf))}
    return Entry(**record | ends | {"mechanism": record["mechanism"] and parse_mechanism(record["mechanism"])})
