"""Seals: two ends, and somebody in between who does what it likes."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parties import Memory, Party, make_party

from midst.net.transports import seal as seal_module
from midst.net.transports.seal import OVERHEAD, WINDOW, Opened, Seal, Seals, hello_bytes

NOW = datetime.now(UTC)


@pytest.fixture(scope="module", params=["ed25519", "p256"])
def party(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Party:
    return make_party(tmp_path_factory.mktemp("keys"), [(0, 1), (1, 2), (0, 2)], kind=request.param)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Party:
    return make_party(tmp_path_factory.mktemp("keys"), [(0, 1), (1, 2), (0, 2)])


def ends(party: Party, i: int = 0, j: int = 1) -> tuple[Seal, Seal]:
    return make_end(party, i, j), make_end(party, j, i)


def make_end(party: Party, i: int, j: int) -> Seal:
    return Seal(party.charter, party.identities[i], i, j)


def exchange(a: Seal, b: Seal, *messages: tuple[Seal, bytes | None]) -> list[Opened]:
    """Deliver messages, each to the end named beside it, and then all the replies."""
    done = []
    waiting = [(to, message) for to, message in messages if message is not None]
    while waiting:
        to, message = waiting.pop(0)
        opened = to.open(message, NOW)
        done.append(opened)
        waiting += [(a if to is b else b, reply) for reply in opened.replies]
        assert len(done) < 50, "they answer each other for ever"
    return done


def admitted(saying: Seal, hearing: Seal) -> bytes:
    """A hello of one end that the other looks at: one with its cookie."""
    hello = saying.ask()
    assert hello is not None
    (cookie,) = hearing.open(hello, NOW).replies
    (again,) = saying.open(cookie, NOW).replies
    return again


def is_nothing(opened: Opened) -> bool:
    """Whether nothing came of a message, but perhaps a cookie for whoever may have said it."""
    return (opened.frame, opened.linked) == (None, False) and all(reply[:1] == b"K" for reply in opened.replies)


def linked(party: Party, i: int = 0, j: int = 1) -> tuple[Seal, Seal]:
    a, b = ends(party, i, j)
    exchange(a, b, (b, a.ask()))
    return a, b


def crosses(a: Seal, b: Seal) -> bool:
    """Whether frames go both ways."""
    return all(
        (message := one.seal(b"hello")) is not None and other.open(message, NOW).frame == b"hello"
        for one, other in ((a, b), (b, a))
    )


# What it is for


def test_frames_go_both_ways(party: Party) -> None:
    a, b = ends(party)
    assert a.seal(b"too early") is None
    done = exchange(a, b, (b, a.ask()))
    assert sum(opened.linked for opened in done) == 2
    assert a.linked
    assert b.linked
    assert crosses(a, b)
    assert a.ask() is None


def test_both_may_say_hello_at_once(party: Party) -> None:
    a, b = ends(party)
    done = exchange(a, b, (b, a.ask()), (a, b.ask()))
    assert sum(opened.linked for opened in done) == 2
    assert crosses(a, b)


def test_sizes(party: Party) -> None:
    a, _ = linked(party)
    message = a.seal(bytes(100))
    assert message is not None
    assert len(message) == 100 + OVERHEAD
    hello = make_end(party, 0, 1).ask()
    assert hello is not None
    assert len(hello) <= hello_bytes(party.identities[0])


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), loss=st.floats(0, 0.6))
def test_whatever_is_lost_doubled_or_late_they_link_in_the_end(pair: Party, seed: int, loss: float) -> None:
    """With restarts of either end in between; and every frame that arrives is one that was sent, once."""
    rng = random.Random(seed)
    sides = list(ends(pair))
    flying: list[tuple[int, bytes]] = []
    sent: dict[int, set[bytes]] = {0: set(), 1: set()}
    heard: list[tuple[int, bytes]] = []

    def throw(to: int, message: bytes | None) -> None:
        if message is not None and rng.random() >= loss:
            flying.extend([(to, message)] * rng.choice([1, 1, 1, 2]))

    def turn(k: int) -> None:
        for i in (0, 1):
            throw(1 - i, sides[i].ask())
            frame = f"{i} {k}".encode()
            sent[i].add(frame)
            throw(1 - i, sides[i].seal(frame))
        rng.shuffle(flying)
        for _ in range(len(flying) + rng.randrange(3)):
            if flying:
                to, message = flying.pop()
                opened = sides[to].open(message, NOW)
                if opened.frame is not None:
                    heard.append((to, opened.frame))
                for reply in opened.replies:
                    throw(1 - to, reply)

    for k in range(30):
        if rng.random() < 0.1:
            who = rng.randrange(2)
            sides[who] = make_end(pair, who, 1 - who)
        turn(k)
    loss = 0.0
    for k in range(30, 34):
        turn(k)
    assert crosses(*sides)
    assert len(set(heard)) == len(heard)
    assert all(frame in sent[1 - to] for to, frame in heard)


def test_a_restarted_end_takes_its_place(pair: Party) -> None:
    a, b = linked(pair)
    late = b.seal(b"sent before it went down")
    fresh = make_end(pair, 1, 0)
    stuck = a.seal(b"for the one that is gone")
    assert stuck is not None
    assert late is not None
    assert fresh.open(stuck, NOW) == Opened()
    exchange(a, fresh, (a, fresh.ask()))
    assert crosses(a, fresh)
    assert a.open(late, NOW).frame == b"sent before it went down"


def test_an_end_that_hears_only_a_forgotten_session_asks_again(pair: Party) -> None:
    a, _ = linked(pair)
    b2 = make_end(pair, 1, 0)
    answer, confirmed = a.open(admitted(b2, a), NOW).replies
    b2.open(answer, NOW)  # whose confirmation is lost, so that a stays with the old session
    assert b2.open(confirmed, NOW).linked
    assert b2.ask() is None
    for _ in range(2):
        message = a.seal(b"under the old session")
        assert message is not None
        b2.open(message, NOW)
    exchange(a, b2, (a, b2.ask()))
    assert crosses(a, b2)


def test_keys_are_bound_to_everything_agreed(pair: Party, tmp_path: Path) -> None:
    """With the same ephemeral keys, another charter or another certificate gives another session."""
    a, other = make_end(pair, 0, 1), make_end(pair, 0, 1)
    theirs = make_end(pair, 1, 0)._ephemeral.public
    other._secret, other._ephemeral = a._secret, a._ephemeral
    tags = {a._derive(theirs).tag, other._derive(theirs).tag}
    assert len(tags) == 1
    for name in ("_digest", "_ends"):
        kept = getattr(other, name)
        setattr(other, name, kept[:-1] + bytes([kept[-1] ^ 1]))
        tags.add(other._derive(theirs).tag)
        setattr(other, name, kept)
    assert len(tags) == 3
    assert all(one.fingerprint.encode() in a._ends for one in pair.charter.participants[:2])


# Somebody in between


def test_nonces_are_never_used_twice_under_a_key(pair: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where candidates are thrown away and made again."""
    used: set[tuple[bytes, bytes]] = set()
    plain = seal_module.ChaCha20Poly1305

    class Watched:
        def __init__(self, key: bytes) -> None:
            self.key, self.cipher = key, plain(key)
            self.decrypt = self.cipher.decrypt

        def encrypt(self, nonce: bytes, data: bytes, head: bytes) -> bytes:
            assert (self.key, nonce) not in used
            used.add((self.key, nonce))
            return self.cipher.encrypt(nonce, data, head)

    monkeypatch.setattr(seal_module, "ChaCha20Poly1305", Watched)
    a = make_end(pair, 0, 1)
    hellos = [admitted(make_end(pair, 1, 0), a) for _ in range(7)]
    for hello in hellos * 3:
        a.ask()  # time passes
        assert len(a.open(hello, NOW).replies) == 2
    b = make_end(pair, 1, 0)
    exchange(a, b, (a, b.ask()))
    assert crosses(a, b)
    assert len(used) > 20


def test_a_replayed_hello_does_not_cut_a_live_link(pair: Party) -> None:
    a, b = ends(pair)
    recorded = [a.ask(), b.ask()]
    exchange(a, b, (b, recorded[0]), (a, recorded[1]))
    old_frame = b.seal(b"old")
    old_b, b = b, make_end(pair, 1, 0)
    exchange(a, b, (a, b.ask()))
    assert crosses(a, b)
    for message in (*recorded, old_frame, old_b.seal(b"older")):
        assert message is not None
        for end in (a, b):
            opened = end.open(message, NOW)
            assert not opened.linked
    for hello in recorded:
        assert hello is not None
        done = exchange(a, b, (a, hello), (b, hello))
        assert not any(opened.linked or opened.frame for opened in done)
    assert crosses(a, b)
    assert a.ask() is None


def test_confirmations_that_were_held_back_change_nothing_later(pair: Party) -> None:
    """An end restarts twice; what the first restart sent comes when the second has linked."""
    a, _ = linked(pair)
    first = make_end(pair, 1, 0)
    hello = admitted(first, a)
    answer, _ = a.open(hello, NOW).replies
    (held_back,) = first.open(answer, NOW).replies
    second = make_end(pair, 1, 0)
    exchange(a, second, (a, second.ask()))
    assert not a.open(held_back, NOW).linked
    done = exchange(a, second, (a, hello), (a, held_back))
    assert not any(opened.linked for opened in done)
    assert crosses(a, second)


def test_every_message_is_opened_once_in_any_order(pair: Party) -> None:
    a, b = linked(pair)
    messages = [a.seal(str(k).encode()) for k in range(300)]
    order = [*range(300)] * 2
    random.Random(1).shuffle(order)
    heard = [b.open(messages[k] or b"", NOW).frame for k in order]
    assert sorted(int(frame) for frame in heard if frame is not None) == [*range(300)]


def test_a_message_too_late_is_dropped(pair: Party) -> None:
    a, b = linked(pair)
    messages = [a.seal(b"x") or b"" for _ in range(WINDOW + 1)]
    assert b.open(messages[-1], NOW).frame == b"x"
    assert b.open(messages[1], NOW).frame == b"x"
    assert b.open(messages[0], NOW) == Opened()


Mangle = Callable[[random.Random, bytes], bytes]


def flip(rng: random.Random, message: bytes) -> bytes:
    place = rng.randrange(len(message))
    return message[:place] + bytes([message[place] ^ 1 << rng.randrange(8)]) + message[place + 1 :]


def cut(rng: random.Random, message: bytes) -> bytes:
    return message[: rng.randrange(len(message))]


def lengthen(rng: random.Random, message: bytes) -> bytes:
    return message + rng.randbytes(rng.randrange(1, 9))


def swap(rng: random.Random, message: bytes) -> bytes:
    place = rng.randrange(1, len(message))
    return message[place:] + message[:place]


def relabel(rng: random.Random, message: bytes) -> bytes:
    return rng.choice([kind for kind in (b"C", b"R", b"F") if kind != message[:1]]) + message[1:]


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), mangle=st.sampled_from([flip, cut, lengthen, swap, relabel]))
def test_altered_frames_are_dropped(pair: Party, seed: int, mangle: Mangle) -> None:
    rng = random.Random(seed)
    a, b = _lasting(pair)
    message = a.seal(rng.randbytes(rng.randrange(1, 60)))
    assert message is not None
    mangled = mangle(rng, message)
    opened = b.open(mangled, NOW)
    assert is_nothing(opened)
    assert opened.problem is None or mangled[:1] in (b"H", b"A")
    assert b.open(message, NOW).frame is not None, "and the true one is still opened"


_links: dict[int, tuple[Seal, Seal]] = {}


def _lasting(party: Party) -> tuple[Seal, Seal]:
    """One pair of linked ends for all examples of a test."""
    return _links.setdefault(id(party), linked(party))


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), mangle=st.sampled_from([flip, cut, lengthen, swap]))
def test_altered_hellos_link_nobody(pair: Party, seed: int, mangle: Mangle) -> None:
    rng = random.Random(seed)
    a, b = ends(pair)
    hello = admitted(a, b)
    mangled = mangle(rng, hello)
    if mangled[1:] == hello[1:]:  # only the unsigned kind was altered
        return
    assert is_nothing(b.open(mangled, NOW))


@given(st.binary(max_size=600))
def test_noise_is_dropped(pair: Party, noise: bytes) -> None:
    _, b = _lasting(pair)
    for kind in (b"", b"H", b"A", b"C", b"R", b"F"):
        assert is_nothing(b.open(kind + noise, NOW))


def test_reflected_messages_are_dropped(pair: Party) -> None:
    a, b = ends(pair)
    hello = admitted(a, b)
    assert is_nothing(a.open(hello, NOW))
    exchange(a, b, (b, hello))
    message = a.seal(b"mine")
    assert message is not None
    assert a.open(message, NOW) == Opened()


def test_messages_for_another_are_dropped(pair: Party) -> None:
    """Carol gets what Alice sent to Bob, and Bob gets it as if it were Carol's."""
    a, _ = linked(pair)
    frame = a.seal(b"for bob")
    assert frame is not None
    for end in (make_end(pair, 2, 0), make_end(pair, 1, 2)):  # carol's for alice, and bob's for carol
        assert end.open(admitted(make_end(pair, 0, 1), end), NOW).replies == ()
        assert end.open(frame, NOW) == Opened()


def test_another_charter_is_another_link(pair: Party, tmp_path: Path) -> None:
    ports = [int(one.address.rpartition(":")[2]) for one in pair.charter.participants if one.address]
    edges = [(0, 1), (1, 2), (0, 2)]
    other = make_party(tmp_path, edges, identities=pair.identities, ports=ports, session="s2")
    b = make_end(pair, 1, 0)
    opened = b.open(admitted(make_end(other, 0, 1), b), NOW)
    assert opened.replies == ()
    assert opened.problem is not None
    assert opened.problem[0] == "forged"
    assert "digest" in opened.problem[1]


def test_a_key_without_a_secret_is_dropped(pair: Party) -> None:
    """A hello signed by the right one, but over a point that makes every secret zero."""
    identity = pair.identities[0]
    a, b = ends(pair)
    a._ephemeral.public = bytes(32)
    a._ephemeral.signature = identity.sign(a._signed(0, 1) + bytes(32))
    opened = b.open(admitted(a, b), NOW)
    assert opened.replies == ()
    assert opened.problem is not None


def test_a_stranger_is_refused_and_told_nothing(pair: Party, tmp_path: Path) -> None:
    stranger = make_party(tmp_path)
    impostor = Seal(pair.charter, stranger.identities[0], 0, 1)  # also called alice
    b = make_end(pair, 1, 0)
    opened = b.open(admitted(impostor, b), NOW)
    assert opened.replies == ()
    assert opened.problem is not None
    assert opened.problem[0] == "unknown"


@pytest.mark.parametrize(("days", "kind"), [(400, "expired"), (-400, "not yet valid")])
def test_a_certificate_out_of_time_is_refused_in_words_for_both(party: Party, days: int, kind: str) -> None:
    a, b = ends(party)
    opened = b.open(admitted(a, b), NOW + timedelta(days=days))
    assert opened.problem is not None
    assert opened.problem[0] == kind
    told = [a.open(reply, NOW).problem for reply in opened.replies]
    assert [problem[0] for problem in told if problem is not None] == [kind]
    assert not a.linked
    assert not b.linked


# All the neighbours of one


def test_seals_join_ears_and_wire(pair: Party) -> None:
    memories = [Memory() for _ in range(3)]
    flying: list[tuple[int, int, bytes]] = []

    def put(i: int) -> Callable[[int, bytes], None]:
        return lambda j, message: flying.append((i, j, message))

    every = [Seals(pair.endpoint(i, 100), memories[i], put(i)) for i in range(3)]

    def deliver() -> None:
        while flying:
            i, j, message = flying.pop(0)
            every[j].take(i, message)

    for seals in every:
        seals.tick()
    deliver()
    assert [sorted(memory.links) for memory in memories] == [[1, 2], [0, 2], [0, 1]]
    every[0].send(1, b"x" * 100)
    every[0].send(2, b"x" * 101)
    deliver()
    assert memories[1].frames == [(0, b"x" * 100)]
    assert memories[2].frames == []
    every[0].take(9, b"from nobody")
    assert [memory.troubles for memory in memories] == [[], [], []]


def test_who_does_not_answer_is_told_once(pair: Party) -> None:
    memory = Memory()
    seals = Seals(pair.endpoint(0, 100), memory, lambda j, message: None)
    for _ in range(30):
        seals.tick()
    assert sorted(j for j, _, _ in memory.troubles if j is not None) == [1, 2]
    assert memory.kinds() == {"unreachable"}


# Floods


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The signatures that were checked."""
    checked: list[bytes] = []
    verify = seal_module.verify

    def watched(certificate: bytes, signature: bytes, data: bytes) -> None:
        checked.append(signature)
        verify(certificate, signature, data)

    monkeypatch.setattr(seal_module, "verify", watched)
    return checked


@pytest.mark.parametrize("kind", [b"H", b"A"])
def test_who_has_not_seen_them_talk_has_no_signature_checked(pair: Party, checks: list[bytes], kind: bytes) -> None:
    """Nor answer at length; and the neighbour is let in as if nothing were, whatever the flood."""
    rng = random.Random(5)
    a, b = ends(pair)
    b.ask()
    certificate = pair.identities[0].certificate
    for _ in range(500):
        signed = len(certificate).to_bytes(2, "big") + certificate + rng.randbytes(64)
        forged = kind + rng.randbytes(32) + rng.choice([bytes(16), rng.randbytes(16)]) + signed
        opened = b.open(forged, NOW)
        assert is_nothing(opened)
        assert sum(map(len, opened.replies)) < len(forged) / 10
        assert a.open(b"K" + rng.randbytes(32), NOW) == Opened()
    assert checks == []
    exchange(a, b, (b, a.ask()))
    assert crosses(a, b)
    assert len(checks) <= 4


def test_a_cookie_is_for_one_ephemeral_key_of_one_neighbour_and_gets_old(pair: Party, checks: list[bytes]) -> None:
    a, b = ends(pair)
    hello = admitted(a, b)
    other = make_end(pair, 0, 1).ask()
    assert other is not None
    assert is_nothing(b.open(other[:33] + hello[33:49] + other[49:], NOW))
    assert is_nothing(make_end(pair, 2, 0).open(hello, NOW))
    assert checks == []
    for _ in range(seal_module._COOKIE_TICKS):
        b.ask()
    assert len(b.open(hello, NOW).replies) == 2, "it lasts for a while"
    for _ in range(seal_module._COOKIE_TICKS):
        b.ask()
    assert is_nothing(b.open(hello, NOW)), "and no longer"
    exchange(a, b, (b, a.ask()))
    assert crosses(a, b)


def test_who_listens_in_and_forges_has_no_more_than_its_share(pair: Party, checks: list[bytes]) -> None:
    """With the cookie of a true hello, 100 forged ones to each true one, these first: it still gets through."""
    rng = random.Random(9)
    a, b = ends(pair)
    hello = admitted(a, b)
    for _ in range(100):  # that it is never looked at in all of these has a chance of one in ten to the seventeenth
        before = len(checks)
        for _ in range(100):
            b.open(hello[:-64] + rng.randbytes(64), NOW)
        exchange(a, b, (b, hello))
        assert len(checks) - before <= 2 * seal_module._CHECKS + 1
        if b.linked:
            break
        b.ask()
    assert crosses(a, b)


def test_answers_are_few(pair: Party) -> None:
    a, b = ends(pair)
    hello = admitted(a, b)
    assert sum(len(b.open(hello, NOW).replies) for _ in range(100)) == 2 * seal_module._ANSWERS
    b.ask()
    assert len(b.open(hello, NOW).replies) == 2
