"""What a participant has in hand when a session is over: the answer and its proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from midst.disclosure import Disclosure, Shown
from midst.methods import answers_of
from midst.net.charter import Charter
from midst.protocol.course import Transcript
from midst.protocol.noisy_search import AnySearch, NoisySearchState

Table = dict[str, dict[str, float | list[float]]]
Count = tuple[int, int, int]  # weight below and above an answer, and of all


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The answer and its proof.

    Attributes:
        value: in the units of the data, one number a coordinate.
        proof: weight below and above the value, and the total weight, one a coordinate; empty where residuals proved
            it, and where noise lets nobody prove anything.
        bound: proved bound on the distance from a right answer; 0 where the totals of a search prove it; none with
            noise.
        rounds: message rounds it took; of a search, a diameter for each of its steps.
        exposed: whether this participant sent its own value, in any coordinate.
        probes: questions of the search; 0 where there was none.
        contradicted: whether the totals leave no room for this participant's own values, so that somebody lied; for its
            owner alone.
        transcript: what the search made public, with everybody's signature.
        statistics: where these were wanted, by the names of columns and their own.
        rank_error: where there was noise, how far off the answer's rank is to be expected, as a share of all values.
        update: where vectors are aggregated, the last round's aggregate, its arrays one after the other as bytes.
        digest: and the hash of all that was agreed and told, the same at everybody.
    """

    value: tuple[float, ...]
    proof: tuple[Count, ...]
    bound: float | None
    rounds: int
    exposed: bool
    probes: int = 0
    contradicted: bool = False
    transcript: Transcript | None = None
    statistics: Table | None = None
    rank_error: float | None = None
    update: bytes | None = None
    digest: bytes = b""

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values, but for the transcript."""
        rest = {"rounds": self.rounds, "probes": self.probes, "exposed": self.exposed}
        if self.update is not None:
            return {"digest": self.digest.hex(), "certified": True, **rest}
        if self.statistics is not None:
            return {"statistics": one_or_all(self.statistics), "certified": True, **rest}
        proved = {"value": one_or_list(self.value), "certified": self.rank_error is None, "bound": self.bound}
        if self.rank_error is not None:
            return {**proved, "rank_error": self.rank_error, **rest}
        counts = [dict(zip(("below", "above", "total"), count, strict=True)) for count in self.proof]
        return {**proved, "counts": counts, **rest}

    def standing(self, verified: bool) -> tuple[str, str]:
        """What stands for it, in a word and in words: a proof only where nobody could vote for another than itself."""
        if self.update is not None:
            return "sums", "no sum was altered on its way; what everybody contributed was not proved"
        if self.rank_error is not None:
            from midst.protocol.noise import expected_in_words

            return "noise", f"nothing proves it; {expected_in_words(self.rank_error)}"
        if not self.proof and self.bound:
            return "bound", f"within {self.bound:.3g} by residuals, if nobody lied"
        words = "; ".join(f"{below} below, {above} above, of {total}" for below, above, total in self.proof)
        proved = words
        if not self.proof:  # of statistics, and of a mean by search
            words = "every count and sum is of all values together"
            proved = f"{words}; nobody counted more than it announced"
        return ("proof", proved) if verified else ("counts", f"{words}; votes were not proved")


def read_search(charter: Charter, search: AnySearch) -> Answer:
    """What a search by this charter has found, once it is over; whoever took part adds what it alone knows."""
    if isinstance(search, NoisySearchState):
        from midst.protocol.noise import rank_error

        rules, values = search.rules, tuple(map(search.value, range(len(search.answers))))
        error = rank_error(rules.added, rules.most_numbers, rules.total)
        return Answer(values, (), None, 0, False, search.steps, rank_error=error)
    if charter.statistics:
        return Answer((), (), 0.0, 0, False, search.steps, statistics=charter.table(search))
    proofs = tuple(map(search.proof, range(len(search.answers))))
    return Answer(answers_of(search), proofs, 0.0, 0, False, search.steps)


def one_or_list(values: Sequence[float]) -> float | list[float]:
    """An answer as JSON has it: a number, or a list of one a coordinate."""
    return values[0] if len(values) == 1 else list(values)


def one_or_all(table: Table) -> dict[str, Any]:
    """Statistics as JSON has them: by name, or by column and name where there are several."""
    return next(iter(table.values())) if len(table) == 1 else table


def statistics_rows(table: Table, rules: Disclosure) -> list[tuple[str, str]]:
    """And as people read them."""
    return [
        (name if len(table) == 1 else f"{column} {name}", shown(value))
        for column, found in table.items()
        for name, value in rules.without_small_counts(found).items()
    ]


def shown(value: Shown) -> str:
    """One number or several, with all their digits."""
    if isinstance(value, float):
        return repr(value)
    return ", ".join("not shown" if each is None else repr(each) for each in value)
