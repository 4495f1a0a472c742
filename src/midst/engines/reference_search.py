"""Participants joined by an in-memory link: the very `Participant` of a network, with its masks and signatures.

In a round everybody tells its neighbours what it has heard since the last one; who holds everybody's statements of a
step goes on to the next. So a statement takes as many rounds as it has hops to go, and rounds are counted, not assumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from secrets import token_bytes

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from midst.engines.searching import Searched
from midst.problems import Problem
from midst.protocol.masks import SECRET_BYTES
from midst.protocol.noise import DrawBytes
from midst.protocol.noisy_search import AnyRules, begin_search
from midst.protocol.participant import Holding, Participant
from midst.protocol.search import SearchStep
from midst.protocol.statements import INSTANCE_BYTES, Agreement, Statement, Verifier


class KeyNotary:
    """Signs with an Ed25519 key. Its certificate is the public key, and everybody knows everybody's."""

    def __init__(self, key: Ed25519PrivateKey, certificates: Sequence[bytes]) -> None:
        """A notary of one participant, which knows everybody's public key."""
        self._key, self._certificates = key, certificates
        self.certificate = key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """A signature by the key."""
        return self._key.sign(data)

    def verifier(self, number: int, certificate: bytes) -> Verifier | None:
        """How to check a participant's signatures; None if the key is not the one that all know."""
        if certificate != self._certificates[number]:
            return None
        key = Ed25519PublicKey.from_public_bytes(certificate)

        def verify(data: bytes, signature: bytes) -> bool:
            try:
                key.verify(signature, data)
            except InvalidSignature:
                return False
            return True

        return verify


Overhear = Callable[[int, int, Statement], None]  # called with every statement: from whom, to whom, what


def search_problem(
    problem: Problem, rules: AnyRules, overhear: Overhear | None = None, draw: DrawBytes = token_bytes
) -> Searched:
    """The search of a problem's values, participant by participant and statement by statement."""
    participants = make_participants(problem, rules, draw=draw)
    neighbours = [problem.graph.neighbours(i).tolist() for i in range(problem.graph.n)]
    news = [list(each.own) for each in participants]
    rounds = 0
    while not all(each.certified for each in participants):
        if overhear is not None:
            _tell(overhear, news, neighbours)
        heard = [[statement for j in near for statement in news[j]] for near in neighbours]
        news = [listen(each, said) for each, said in zip(participants, heard, strict=True)]
        rounds += 1
    first, *others = participants
    assert all(each.own[-1].context == first.own[-1].context for each in others), "all signed the same"
    return _play(rules, first.totals, rounds)


def _tell(overhear: Overhear, news: list[list[Statement]], neighbours: list[list[int]]) -> None:
    for j, said in enumerate(news):
        for i in neighbours[j]:
            for statement in said:
                overhear(j, i, statement)


def make_participants(
    problem: Problem, rules: AnyRules, verify: bool = False, draw: DrawBytes = token_bytes
) -> list[Participant]:
    """The participants of a problem, each with its own values, keys and secrets; noise derives from the secrets."""
    count = problem.graph.n
    signing = [Ed25519PrivateKey.from_private_bytes(draw(SECRET_BYTES)) for _ in range(count)]
    certificates = [key.public_key().public_bytes_raw() for key in signing]
    digest = hashlib.sha256(repr((rules, certificates)).encode()).digest()  # of what would be the charter
    pooled = problem.owners is not None
    weights = tuple((problem.whole_weights if pooled else problem.search_weights).tolist())
    agreement = Agreement(digest, weights, pooled, lambda list_sizes: rules, verify)
    keys = problem.value_keys.reshape(len(problem.values), -1)
    parts = []
    for i in range(count):
        own = keys[[i]] if problem.owners is None else keys[problem.owners == i]
        holding = Holding(i, tuple(own.T), draw(SECRET_BYTES), draw(INSTANCE_BYTES))
        parts.append(Participant(agreement, holding, KeyNotary(signing[i], certificates)))
    return parts


def listen(participant: Participant, said: Iterable[Statement]) -> list[Statement]:
    """Take in what the neighbours said, go on as far as that leads; what is to be told on."""
    news = [statement for statement in said if participant.take(statement)]
    while (statements := participant.ready()) is not None:
        known = len(participant.own)
        participant.advance(statements)
        news += participant.own[known:]
    return news


def _play(rules: AnyRules, totals: Sequence[tuple[int, ...]], rounds: int) -> Searched:
    """The search again, from the totals that all have added up."""
    search, steps = begin_search(rules), []
    for numbers in totals:
        assert search.question is not None
        steps.append(SearchStep(search.question, numbers))
        search = search.fold(numbers)
    return Searched(search, tuple(steps), rounds)
