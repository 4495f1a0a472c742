"""`midst node --ledger`: a participant keeps account of what its sessions on one quantity give away.

Rules:
- A session is entered before anything is sent: one that is killed, or of which nothing more is heard, counts.
- What a search told is all that it made public: how much weight lies between any two thresholds, and the answer. That
  is what an audit of a simulated run looks at, and it is weighed by the same functions.
- Of a session that was aborted, this participant knows what was told until then; others may know one answer more. Of an
  iteration, it knows whether it has sent its own value, and what the search at its end told. Neither is joined with
  other sessions: the ledger calls the sum an indication.
- A search with noise costs the (ε, δ) of its charter, from the first question on, whatever becomes of it; and its bits
  are what such noise leaves at most, in the mean.
- A ledger that cannot be written at the end costs nobody the answer: the session is in it, as one that has begun.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from midst.cli.own_record import told_by, trace_of
from midst.dp.joint import most_bits
from midst.dp.ledger import Entry, Ledger, entry_of
from midst.dp.sessions import KnownSession, Member, State
from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.charter import Charter
from midst.net.exchange import Exchange
from midst.net.setup import Setup
from midst.privacy.posterior import single
from midst.privacy.priors import Normal, Prior, Uniform, parse_prior
from midst.privacy.statistics import measure_session
from midst.protocol.noisy_search import AnySearch
from midst.protocol.search import SearchState


@dataclass(frozen=True, eq=False, repr=False)
class NodeAccount:
    """The ledger of a participant's quantity, with the session that is about to run in it.

    Attributes:
        ledger: of the quantity.
        setup: who, and by which charter.
        prior: of every value, for the bits.
        chosen: whether that was asked for, and holds for every column whatever its bounds.
    """

    ledger: Ledger
    setup: Setup
    prior: Prior
    chosen: bool = True

    def close(self, ending: Answer | Aborted, exchange: Exchange | None) -> None:
        """Enter what the session gave away; there is no exchange where it was over already.

        Raises:
            InputError: what was told contradicts earlier sessions, or the prior; or the ledger cannot be written.
            OSError: the ledger is another user's.
        """
        charter = self.setup.charter
        state = _state(self.setup, ending, None if exchange is None else exchange.search)
        if charter.noise is not None:
            planned = planned_entry(charter, self.setup.values.size)
            self.ledger.finish(charter.digest.hex(), planned, state, self.prior)
            return
        exposed = ending.exposed if isinstance(ending, Answer) else exchange is not None and exchange.exposed
        search, sizes = told_by(charter, ending, exchange)
        entry = Entry()
        if search is not None and charter.statistics:
            entry = self._entry_of_statistics(search)
        elif search is not None:
            entry = entry_of(trace_of(charter, search, sizes), self.setup.name, self.prior)
        if charter.method != "search":
            entry = Entry(exposed=exposed, bits=self._bits_of_value() if exposed else entry.bits)
        self.ledger.finish(charter.digest.hex(), entry, state, self.prior)

    def _entry_of_statistics(self, search: SearchState) -> Entry:
        """What a session of statistics told of one's own list: of each value, times their number."""
        charter = self.setup.charter
        plan = charter.plan(search.rules.total)
        own = [None if self.chosen else one.bounds for one in charter.columns] or [None]
        priors = [self.prior if each is None else Uniform(*each) for each in own]
        bits = sum(measure_session(plan, search, k, prior).bits for k, prior in enumerate(priors))
        return Entry(bits=bits * self.setup.values.shape[1], node=self.setup.number)

    def _bits_of_value(self) -> float:
        """What is learnt by who hears the value itself."""
        values, width = self.setup.values.reshape(-1).tolist(), self.prior.scale / 1000
        return sum(single(self.prior, "you", value, value).bits(width) for value in values)


def open_node_account(path: Path, setup: Setup, prior: str | None, despite: bool) -> NodeAccount:
    """The account of a participant, with its session entered as one that begins.

    The prior of every value is in words; uniform between the charter's bounds if not given, or N(0, 1). `despite` says
    that the session is to take place whatever the ledger says.

    Raises:
        InputError: the ledger is damaged, or refuses; or the prior excludes the value.
    """
    if setup.charter.is_masked_sum:
        raise InputError("--ledger cannot judge a mean by search yet; it can where the charter has --statistics mean")
    believed = _default_prior(setup.charter) if prior is None else parse_prior(prior)
    if any(believed.log_density(value) == -math.inf for value in setup.values.reshape(-1).tolist()):
        raise InputError("--prior gives no mass to your value; give a wider one")
    ledger = Ledger.open(path)
    planned = planned_entry(setup.charter, setup.values.size)
    ledger.begin(session_of(setup.charter), setup.values.reshape(-1), despite, believed, planned)
    return NodeAccount(ledger, setup, believed, prior is not None)


def session_of(charter: Charter) -> KnownSession:
    """The session of a charter, as a ledger knows it."""
    members = tuple(Member(one.name, one.fingerprint, one.weight) for one in charter.participants)
    return KnownSession(charter.session, charter.digest.hex(), members)


def planned_entry(charter: Charter, values: int) -> Entry:
    """Return what is known of a session before it starts, for a participant with so many values.

    With noise that is what it costs and tells at most; else nothing.
    """
    if charter.noise is None:
        return Entry()
    rules = charter.noisy_rules([1] * len(charter.names))
    bits = values * most_bits(rules.variance, rules.probes, rules.most_numbers)
    return Entry(bits=bits, mechanism=charter.noise.promise)


def _default_prior(charter: Charter) -> Prior:
    bounds = charter.bounds
    if bounds is None and charter.columns:
        lows, highs = zip(*charter.column_ranges, strict=True)
        bounds = min(lows), max(highs)
    return Normal() if bounds is None or bounds[0] == bounds[1] else Uniform(*bounds)


def _state(setup: Setup, ending: Answer | Aborted, search: AnySearch | None) -> State:
    if isinstance(ending, Answer):
        return "over"
    # in a search nothing is sent that depends on the value before all have announced themselves
    return "silent" if setup.iteration is None and search is None else "aborted"
