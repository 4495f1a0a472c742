"""A session as the journal has it: begun, taken up again by playing its records, or over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.charter import Charter
from midst.net.exchange import Exchange, make_exchange
from midst.net.journal import Journal
from midst.net.records import Began, Broken, Ended, Inputs, Met, Record, decode_record, encode_record
from midst.net.setup import Entropy, Opening, Setup
from midst.protocol.course import Withheld
from midst.protocol.participant import Distrust
from midst.protocol.search import Impossible

_ANOTHER = "the journal is of another session or participant; give --state another folder"
SOMEBODY = "somebody"  # whom an abort is about where nothing says who it was


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """What a participant goes on from.

    Attributes:
        setup: who, and by which charter.
        journal: its records.
        opening: what was drawn for the session.
        exchange: how it goes on, where the journal left it.
        instances: by neighbour, the instance number of those met before.
    """

    setup: Setup
    journal: Journal
    opening: Opening
    exchange: Exchange
    instances: dict[int, bytes]


def resume(
    setup: Setup, journal: Journal, entropy: Entropy, watch: Callable[[Exchange], None] | None = None
) -> Session | Answer:
    """The session where the journal left it, or a new one; the answer alone where it is over for everybody.

    `watch` is called after every step that is played again.

    Raises:
        InputError: the journal is of another session, another participant or another value.
        Aborted: the journal says that this session cannot be resumed.
        OSError: the journal cannot be written.
    """
    records = [decode_record(raw, setup.name) for raw in journal.records]
    journal.records = []
    if records:
        begun = _check(setup, records)
    else:
        begun = setup.draw(entropy)
        journal.append(encode_record(Began(begun)))
    if isinstance(begun, Ended):
        return begun.answer
    settled = records[0].settled if records and isinstance(records[0], Began) else b""
    session = Session(setup, journal, begun, make_exchange(setup, begun, settled), {})
    for record in records:
        match record:
            case Met(j, instance):
                session.instances[j] = instance
            case Inputs(frames):
                _step(session, frames)
                if watch is not None:
                    watch(session.exchange)
    # A crash came before a round that is over was settled. The next record must not stand behind that round's: it would
    # go when this is written, and with it an update that others may have been told of.
    settle(session.exchange, begun, journal)
    return session


def settle(exchange: Exchange, opening: Opening, journal: Journal) -> None:
    """After a round about vectors, write the journal anew with what is needed of it.

    Raises:
        OSError: it cannot be written.
    """
    kept = None if exchange.vectors is None else exchange.vectors.settled()
    if kept is not None:
        journal.forget(encode_record(Began(opening, kept)))


def journal_file(folder: Path, charter: Charter, name: str) -> Path:
    """Where a participant's journal of a session is kept."""
    return folder / f"{charter.session}.{charter.digest.hex()[:12]}.{name}.journal"


def answer_of(journal: Journal, charter: Charter, name: str) -> Answer | None:
    """The answer of a session that is over for everybody, as its journal has it; None where there is more to do.

    Raises:
        InputError: the journal is of another session or participant, or of another version.
    """
    if not journal.records:
        return None
    first = decode_record(journal.records[0], name)
    if not isinstance(first, Ended):
        return None
    if (first.digest, first.name) != (charter.digest, name):
        raise InputError(_ANOTHER)
    return first.answer


def name_together(setup: Setup, about: tuple[int, ...]) -> str:
    """Those whom an end is about, as people read it."""
    return " and ".join(setup.charter.names[i] for i in about) or SOMEBODY


def _step(session: Session, frames: bytes) -> None:
    """A step played again; one that ended the session, before it could be written that it did, ends it now."""
    try:
        session.exchange.step(session.exchange.unpack(frames))
    except Distrust as error:
        about = name_together(session.setup, error.about)
        broken = Broken(error.kind, about, f"{about} {error}", error.evidence)
    except Impossible as error:
        broken = Broken("impossible", SOMEBODY, f"the totals cannot be ({error})")
    except Withheld as error:
        broken = Broken("withheld", SOMEBODY, f"nothing was asked: {error}")
    else:
        return
    session.journal.append(encode_record(broken))
    raise _over(broken)


def _over(broken: Broken) -> Aborted:
    text = f"{broken.text}; this session is over, start a new one with: midst charter new --from"
    return Aborted(broken.kind, broken.about, text, broken.evidence)


def _check(setup: Setup, records: list[Record]) -> Opening | Ended:
    """What the journal begins with, if it is of this session and nothing speaks against going on."""
    first = records[0]
    begun = first.opening if isinstance(first, Began) else first
    if isinstance(begun, Met | Inputs | Broken) or begun.digest != setup.session or begun.name != setup.name:
        raise InputError(_ANOTHER)
    if isinstance(begun, Opening) and begun.value != setup.plain_value():
        raise InputError(f"the value of {setup.name} is not the one this session began with; start a new session")
    broken = [record for record in records if isinstance(record, Broken)]
    if broken:
        raise _over(broken[-1])  # with evidence, where that came later
    return begun
