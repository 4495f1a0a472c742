"""Participants that lie, by real keys over real TLS: what they cannot bring about, and the one thing they still can.

Rules:
- Everybody is the node that an operator runs. A liar is the same node with its statements, or what leaves it, changed
  and signed anew with its own key: it can do what its key can, and nothing that needs another's.
- Honest participants never hold certificates of different answers. A run that a liar spoils ends naming it, by what it
  signed, or by who is waited for; or it says that the totals cannot be, and names nobody.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from processes import Network, network
from simnet.liars import CATALOGUE, Liar

from midst import graphs
from midst.errors import Aborted
from midst.net.answer import Answer
from midst.net.driver import Driver
from midst.net.evidence import EvidenceFile, evidence_json, verify_evidence
from midst.net.gossip import Gossip, pack_bits
from midst.net.identity.keys import load_identity
from midst.net.journal import DiskFile, Journal
from midst.net.peer import Peer
from midst.net.results import read_result
from midst.net.session import Session, resume
from midst.net.setup import Setup
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint, Listener
from midst.net.wire import Want, encode_control
from midst.protocol.course import Evidence
from midst.protocol.keys import MODULUS
from midst.protocol.participant import Participant
from midst.protocol.statements import Statement, announce, make_body, signed_bytes

pytestmark = pytest.mark.timeout(120)

VALUES = (31.5, 2.25, 77.0, 40.125, 58.5)
LIAR = 0
QUICK = {"start": 60, "wait": 4, "total": 100, "linger": 1}
PATIENT = {"start": 60, "wait": 60, "total": 100, "linger": 2}
Change = Callable[[int, bytes], Iterable[bytes]]


class Wire:
    """A transport of which somebody changes what leaves, and keeps a copy of it."""

    def __init__(self, inner: TlsTransport, change: Change | None = None) -> None:
        self._inner, self._change = inner, change
        self.left: list[tuple[int, bytes]] = []

    @property
    def sent(self) -> int:
        return self._inner.sent

    @property
    def received(self) -> int:
        return self._inner.received

    async def open(self, listener: Listener) -> None:
        await self._inner.open(listener)

    def send(self, j: int, frame: bytes) -> None:
        for out in [frame] if self._change is None else self._change(j, frame):
            self.left.append((j, out))
            self._inner.send(j, out)

    async def close(self) -> None:
        await self._inner.close()


def ring_of(folder: Path, values: Any = VALUES, **settings: Any) -> Any:
    graph = graphs.make("ring", len(values), rng=np.random.default_rng(0))
    return network(folder, graph, values, **{"method": "search", "deadlines": PATIENT} | settings)


def play(
    net: Network,
    change: Change | None = None,
    patch: Callable[[Participant], None] | None = None,
    patch_peer: Callable[[Peer], None] | None = None,
    wrap: Callable[[TlsTransport], Any] | None = None,
) -> tuple[list[Answer | Aborted], list[Wire]]:
    """A session; what leaves the liar is changed, or its participant is."""

    async def everybody() -> list[Answer | Aborted]:
        drivers = []
        for i, setup in enumerate(net.setups()):
            inner = TlsTransport(Endpoint(net.charter, load_identity(net.key(setup.name)), i, setup.codec.largest()))
            wires.append(wrap(inner) if wrap and i == LIAR else Wire(inner, change if i == LIAR else None))
            files.append(DiskFile(net.journal(setup.name)))

            def seen(peer: Peer, i: int = i) -> None:
                if i == LIAR and patch:
                    patch(inside(peer))
                if i == LIAR and patch_peer:
                    patch_peer(peer)

            session = resume(setup, Journal(files[-1], setup.name), os.urandom)
            assert isinstance(session, Session)
            drivers.append(Driver(session, wires[-1], watch=seen))
        return list(await asyncio.gather(*(driver.run() for driver in drivers)))

    wires: list[Wire] = []
    files: list[DiskFile] = []
    try:
        return asyncio.run(everybody()), wires
    finally:
        for file in files:
            file.close()


def inside(peer: Peer) -> Participant:
    assert isinstance(peer.exchange, Gossip)
    return peer.exchange._participant


def signed(setup: Setup, body: bytes) -> Statement:
    return Statement(body, setup.notary.sign(signed_bytes(setup.session, body)))


def statements(setup: Setup, frame: bytes) -> tuple[Statement, ...]:
    return setup.codec.decode_all(frame) if frame[:1] == b"G" else ()


def silent_about_itself(frame: bytes) -> bool:
    """A liar does not say that it has been found out."""
    return frame[:1] == b"W"


def rewriting(setup: Setup, rewrite: Callable[[int, Statement], Statement | None]) -> Change:
    """Changes the liar's own statements, by neighbour; None withholds one."""

    def change(j: int, frame: bytes) -> Iterable[bytes]:
        if silent_about_itself(frame):
            return []
        if frame[:1] != b"G":
            return [frame]
        said = [rewrite(j, one) if one.signer == LIAR else one for one in statements(setup, frame)]
        return setup.codec.encode([one for one in said if one is not None])

    return change


def shifted(setup: Setup, one: Statement, by: Iterable[int]) -> Statement:
    """A contribution with something added to its numbers."""
    numbers = [(number + more) % MODULUS for number, more in zip(one.numbers, by, strict=True)]
    return signed(setup, one.body[: 5 + 32] + struct.pack(f"<{len(numbers)}Q", *numbers))


def check_ends(net: Network, endings: list[Answer | Aborted], kinds: set[str]) -> list[Any]:
    """What must hold of those who are honest: never two answers, and an end that names somebody; the aborts."""
    honest = [ending for i, ending in enumerate(endings) if i != LIAR]
    found = {ending.value for ending in honest if isinstance(ending, Answer)}
    assert len(found) <= 1
    aborts = [ending for ending in honest if isinstance(ending, Aborted)]
    assert {each.kind for each in aborts} <= kinds
    liar = net.charter.names[LIAR]
    for each in aborts:
        if each.kind == "equivocation":
            assert each.about == liar
        else:
            assert each.about in (*net.charter.names, "somebody")
    return aborts


# The first attack: asking again


def test_a_step_is_answered_once_whatever_a_neighbour_asks(tmp_path: Path) -> None:
    """The liar asks its neighbours for every step again and again, in words of its own, and shows other histories."""
    with ring_of(tmp_path) as net:
        setup, rng = net.setups()[LIAR], Random(1)
        opening = setup.draw(rng.randbytes)
        strange = Participant(setup.agreement(()), setup.holding(opening), setup.notary).own[0]
        count = [0]

        def pester(j: int, frame: bytes) -> Iterable[bytes]:
            count[0] += 1
            yield frame
            if frame[:1] == b"G":
                yield encode_control(Want(rng.randrange(12), pack_bits([j], 5)))
                yield encode_control(Want(rng.randrange(12), rng.randbytes(1)))
                yield encode_control(Want(-rng.randrange(3)))
                context = rng.randbytes(32)
                for step in range(40, 44):  # about questions that nobody has asked: never due
                    numbers = struct.pack("<4Q", *(rng.getrandbits(64) for _ in range(4)))
                    body = b"C" + struct.pack("<HH", LIAR, step) + context + numbers
                    yield from setup.codec.encode([signed(setup, body)])

        endings, wires = play(net, pester)
        assert {ending.value for ending in endings if isinstance(ending, Answer)} == {(40.125,)}
        assert count[0] > 10
        for i, wire in enumerate(wires):
            own: dict[int, set[bytes]] = {}
            for _, frame in wire.left:
                for one in statements(setup, frame):
                    if one.signer == i != LIAR:
                        own.setdefault(one.step, set()).add(one.body)
            assert all(len(bodies) == 1 for bodies in own.values()), "one statement a step, ever"
        assert strange.signer == LIAR


def test_a_second_session_on_the_same_values_has_other_masks(tmp_path: Path) -> None:
    """So two contributions of a victim to the very same question tell nothing together."""
    seen: list[dict[int, tuple[int, ...]]] = []
    for k in range(2):
        with ring_of(tmp_path / str(k), session=f"s{k}") as net:
            setup = net.setups()[LIAR]
            _, wires = play(net)
            seen.append(
                {
                    one.step: one.numbers
                    for _, frame in wires[1].left
                    for one in statements(setup, frame)
                    if one.signer == 1 and one.kind == b"C"
                }
            )
    first, second = seen
    assert first.keys() == second.keys()
    for step, numbers in first.items():
        assert all(abs(a - b) > 10 for a, b in zip(numbers, second[step], strict=True))


# The second: leading two honest ones to different answers


def other_announcement(net: Network) -> Change:
    setup = net.setups()[LIAR]
    instance, key, count, certificate = (
        Participant(setup.agreement(()), setup.holding(setup.draw(Random(5).randbytes)), setup.notary)
        .own[0]
        .announced()
    )
    other = signed(setup, make_body(b"A", LIAR, 0, announce(instance, key, count, certificate)))
    return rewriting(setup, lambda j, one: other if one.step == 0 and j == 1 else one)


def other_contribution(step: int, by: tuple[int, ...]) -> Callable[[Network], Change]:
    def make(net: Network) -> Change:
        setup = net.setups()[LIAR]

        def rewrite(j: int, one: Statement) -> Statement:
            if one.kind == b"C" and one.step == step and j == 1:
                padded = (*by, *(0,) * len(one.numbers))[: len(one.numbers)]
                return shifted(setup, one, padded)
            return one

        return rewriting(setup, rewrite)

    return make


def other_final(net: Network) -> Change:
    setup = net.setups()[LIAR]
    return rewriting(
        setup, lambda j, one: signed(setup, one.body[:5] + bytes(32)) if one.kind == b"F" and j == 1 else one
    )


@pytest.mark.parametrize(
    ("lie", "kinds"),
    [
        (other_announcement, {"equivocation"}),
        (other_contribution(1, (1, -1)), {"equivocation", "impossible"}),
        (other_contribution(1, (-1, 1)), {"equivocation", "impossible"}),
        (other_contribution(2, (1, -1)), {"equivocation", "impossible"}),
        (other_contribution(1, (12345,)), {"equivocation", "impossible"}),
        (other_final, {"equivocation", "waited"}),
    ],
    ids=["announcement", "up", "down", "later", "garbage", "final"],
)
@pytest.mark.parametrize("verify", [False, True])
def test_two_faces_lead_nobody_to_another_answer(
    tmp_path: Path, lie: Callable[[Network], Change], kinds: set[str], verify: bool
) -> None:
    with ring_of(tmp_path, deadlines=QUICK, verify=verify) as net:
        endings, _ = play(net, lie(net))
        aborts = check_ends(net, endings, kinds | {"broken protocol"} if verify else kinds)
        assert any(each.about == net.charter.names[LIAR] for each in aborts), "somebody has found it out"


# The third: withholding


def test_what_is_withheld_from_some_comes_by_others(tmp_path: Path) -> None:
    with ring_of(tmp_path) as net:
        withhold = rewriting(net.setups()[LIAR], lambda j, one: None if j == 1 else one)
        endings, _ = play(net, withhold)
    assert {ending.value for ending in endings if isinstance(ending, Answer)} == {(40.125,)}
    assert all(isinstance(ending, Answer) for ending in endings)


@pytest.mark.parametrize("step", [0, 1, 2])
def test_what_is_withheld_from_all_is_waited_for_by_name(tmp_path: Path, step: int) -> None:
    with ring_of(tmp_path, deadlines=QUICK | {"start": 8}) as net:
        withhold = rewriting(net.setups()[LIAR], lambda j, one: None if one.step == step else one)
        endings, _ = play(net, withhold)
        aborts = check_ends(net, endings, {"waited"})
    assert len(aborts) == 4
    assert {each.about for each in aborts} == {net.charter.names[LIAR]}


def test_who_withholds_its_signature_leaves_an_answer_that_is_known_and_not_certified(tmp_path: Path) -> None:
    with ring_of(tmp_path, deadlines=QUICK) as net:
        withhold = rewriting(net.setups()[LIAR], lambda j, one: None if one.kind == b"F" else one)
        endings, _ = play(net, withhold)
        aborts = check_ends(net, endings, {"waited"})
    assert {each.about for each in aborts} == {net.charter.names[LIAR]}
    assert any("the answer is known, 40.125, but not certified by all" in str(each) for each in aborts)


# The whole catalogue


class Lying:
    """A liar of the catalogue between a node and its links."""

    def __init__(self, inner: TlsTransport, liar: Liar) -> None:
        self._inner, self._liar, self.left = inner, liar, []
        self.sent = self.received = 0

    async def open(self, listener: Any) -> None:
        hear = listener.hear

        def overhear(j: int, frame: bytes) -> None:
            self._liar.hear(frame)
            hear(j, frame)

        listener.hear = overhear
        await self._inner.open(listener)
        self._talking = asyncio.create_task(self._talk())

    async def _talk(self) -> None:
        while True:
            for j, frame in self._liar.talk():
                self._inner.send(j, frame)
            await asyncio.sleep(0.2)

    def send(self, j: int, frame: bytes) -> None:
        for out in self._liar.frames(j, frame):
            self._inner.send(j, out)

    async def close(self) -> None:
        self._talking.cancel()
        await self._inner.close()


SIGNED = {"uses wrong masks", "appears in a bracket", "sends odd points", "equivocates", "speaks out of turn"}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in ("sends false steps", "has an old disk")])
def test_every_lie_ends_with_the_answer_or_with_the_liar(tmp_path: Path, name: str, seed: int) -> None:
    """Verified, as is the default: an answer within one rank, evidence against the liar, or its name."""
    with ring_of(tmp_path, deadlines=QUICK | {"start": 4}) as net:
        liar = CATALOGUE[name](net.setups()[LIAR], Random(seed))
        endings, _ = play(net, patch_peer=liar.watch, wrap=lambda inner: Lying(inner, liar))
        honest = [ending for i, ending in enumerate(endings) if i != LIAR]
        near = sorted(VALUES[1:])[1:3]
        assert len({ending.value for ending in honest if isinstance(ending, Answer)}) <= 1
        convicted = set()
        for ending in honest:
            if isinstance(ending, Answer):
                assert near[0] <= ending.value[0] <= near[1]
            elif ending.evidence is not None:
                names, _ = verify_evidence(net.charter, read_evidence(tmp_path, net.charter, ending.evidence))
                assert net.charter.names[LIAR] in names
                convicted.add(names)
            else:
                assert net.charter.names[LIAR] in str(ending), ending
        if name in SIGNED and not convicted:
            assert all(isinstance(ending, Answer) for ending in honest) or {e.kind for e in honest} <= {"waited"}


def read_evidence(folder: Path, charter: Any, evidence: Evidence) -> EvidenceFile:
    """By way of the file."""
    path = folder / "evidence.json"
    path.write_bytes(evidence_json(charter, evidence))
    found = read_result(path)
    assert isinstance(found, EvidenceFile)
    return found


# What one liar still can do


def test_without_proofs_one_liar_can_choose(tmp_path: Path) -> None:
    """Known, and said in the docs: a vote of (-2, +2) moves the answer by two ranks, and everybody certifies that."""
    honest = (10.0, 20.0, 30.0, 35.0, 40.0, 45.0)
    values = (90.0, *honest)

    def vote_for_three(participant: Participant) -> None:
        if getattr(participant, "lies", False):
            return
        participant.lies = True  # type: ignore[attr-defined]
        state, setup = participant._state, net.setups()[LIAR]

        def lie(kind: bytes, says: bytes) -> None:
            state(kind, says)
            own = participant.own[-1]
            if own.kind == b"C" and own.step == 1:
                participant.own[-1] = shifted(setup, own, (-2, *(0,) * (len(own.numbers) - 2), 2))

        participant._state = lie  # type: ignore[method-assign]

    with ring_of(tmp_path, values, verify=False) as net:
        endings, _ = play(net, patch=vote_for_three)
    assert sorted(values)[3] == 35.0
    assert {ending.value for ending in endings if isinstance(ending, Answer)} == {(45.0,)}
    assert all(isinstance(ending, Answer) for ending in endings), "all have signed it, the honest ones too"
