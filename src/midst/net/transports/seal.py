"""Frames sealed from end to end, for transports with somebody in between or without connections.

One `Seal` is one end of one link, without I/O: messages in, messages and frames out. It never raises about a message.

The handshake:

    hello, answer    | "H" or "A" | ephemeral X25519 key 32 | token 16 | length u16 | certificate | signature |
    cookie           | "K" | token 16 | cookie 16 |
    sealed message   | "C", "R" or "F" | tag 8 | counter u64 | ChaCha20-Poly1305 of the content, 16 longer |

1. Each end makes an ephemeral key and signs it, together with a label, the charter's digest, and who says it to whom.
   It says hello until it hears back; a hello gets an answer, an answer gets none.
2. A hello that does not bring a cookie as its token gets one, and nothing else is done about it: a keyed hash of the
   hello's ephemeral key, whose own key is new every minute, sent to where the neighbour is, never to where the hello
   came from. The hello is then said again with it. Cookies and answers bring back the first 16 bytes of the ephemeral
   key of the hello they are for. So who does not see what these two say to each other can cause no signature to be
   checked, and nothing to be sent that is longer than what it sends itself.
3. Whoever holds both ephemeral keys derives the session (HKDF-SHA256 of the shared secret, bound to the charter's
   digest, both fingerprints and both ephemeral keys): a tag, and one key for each direction. It confirms with an empty
   sealed message "C", or refuses with "R" and the reason where the other's certificate is the right one but its time
   is not.
4. The first message under a session that is genuine makes it the current one. Frames "F" travel under the current
   session only. The ephemeral key is then used up: the next handshake gets a new one.

Rules:
- No nonce is used twice under a key: the counter belongs to the ephemeral key, and runs on over every session made of
  it; a restart makes a new ephemeral key.
- A hello alone changes nothing: the session it proposes replaces the current one only when a message under it is
  genuine. Nobody can make such a message from recorded ones, since at least this end's ephemeral key is new.
- What was sealed is opened once, in whatever order it comes, up to `WINDOW` messages late. Frames still on their way
  under the session just replaced are opened too.
- A message that is altered, cut short, reflected, replayed, or meant for somebody else is dropped.
- Between two ticks, about `_CHECKS` signatures are checked for a neighbour, and `_ANSWERS` answers sent. Where more ask
  to be checked, a draw says which are: whoever can see and inject can make a neighbour's hello wait for the next draw,
  but cannot use all of a budget before it comes. Only what was found genuine is charged to the answers.

What it does not do:
- It does not hide who talks to whom, when, and how long the frames are; certificates travel in clear.
- Whoever is in between can drop and delay everything, and whoever can inject can make both ends shake hands again
  (about twice a second) when they do not hear from each other otherwise. Over UDP that is who is on the way between two
  addresses; over zenoh, where a message has no address that it came from, everybody whom a router lets subscribe.
- Recorded traffic stays closed to who later steals an identity's key, which then only lets it pretend to be its owner.
  But who steals an *ephemeral* private key out of a running process, together with its hello, can pretend to be that
  end towards that neighbour for as long as the charter is in use: a hello has no date.
- Python does not wipe memory; a used key is forgotten, not erased.
"""

from __future__ import annotations

import hmac
import os
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from midst.errors import InputError
from midst.net.charter import Charter
from midst.net.identity.certificates import check_certificate, fingerprint, verify
from midst.net.identity.keys import Identity
from midst.net.transports.transport import Endpoint, Listener, Notices, read_refusal, refusal

OVERHEAD = 33  # bytes that sealing adds to a frame
WINDOW = 1024  # messages
TICK = 0.5  # seconds

_LABEL = b"midst seal 2"
_HELLO = struct.Struct(">c32s16sH")
_COOKIE = struct.Struct(">c16s16s")
_TOKEN = 16  # bytes of a cookie, and of what shows that a hello was seen
_NO_TOKEN = bytes(_TOKEN)
_HEAD = struct.Struct(">c8sQ")
_LARGEST_HELLO = 4096
_LARGEST_SIGNATURE = 72  # of P-256, in DER
_CANDIDATES = 4  # proposed sessions kept beside the current one
_CHECKS = 32  # signatures between two ticks, for each neighbour
_ANSWERS = 8  # between two ticks, to each neighbour
_COOKIE_TICKS = 120  # ticks until cookies are made with another key; those of the last one are still taken
_LONGEST_WAIT = 10  # ticks without an answer until a person is told

_RANDOM = random.SystemRandom()  # whoever could foresee the draw would choose


@dataclass(frozen=True)
class Opened:
    """What came of a message.

    Attributes:
        frame: what was sealed in it for the peer above.
        replies: messages to be sent back.
        linked: whether a session is new with it.
        problem: kind and text of something a person should know.
    """

    frame: bytes | None = field(default=None, repr=False)
    replies: tuple[bytes, ...] = field(default=(), repr=False)
    linked: bool = False
    problem: tuple[str, str] | None = None


_DROPPED = Opened()


@dataclass(eq=False)
class _Ephemeral:
    """The public half of a key for one handshake, signed; and the counter of all that is sealed with its help."""

    public: bytes
    signature: bytes
    counter: int = 0


@dataclass(eq=False, repr=False)
class _Session:
    """The keys made of two ephemeral keys; and what has been opened: the latest, and a bit for each one before it."""

    tag: bytes
    sealing: ChaCha20Poly1305
    opening: ChaCha20Poly1305
    own: _Ephemeral
    theirs: bytes
    latest: int = -1
    seen: int = 0

    def seal(self, kind: bytes, content: bytes) -> bytes:
        number = self.own.counter
        self.own.counter += 1
        head = _HEAD.pack(kind, self.tag, number)
        return head + self.sealing.encrypt(_nonce(number), content, head)

    def open(self, number: int, message: bytes) -> bytes | None:
        late = self.latest - number
        if late >= WINDOW or (late >= 0 and self.seen >> late & 1):
            return None
        try:
            content = self.opening.decrypt(_nonce(number), message[_HEAD.size :], message[: _HEAD.size])
        except InvalidTag:
            return None
        if late >= 0:
            self.seen |= 1 << late
        else:
            self.seen = (self.seen << min(-late, WINDOW) | 1) & (1 << WINDOW) - 1
            self.latest = number
        return content


class Seal:
    """One end of a sealed link."""

    def __init__(self, charter: Charter, identity: Identity, number: int, other: int) -> None:
        self._identity = identity
        self._number = number
        self._other = other
        self._expected = charter.participants[other]
        self._digest = charter.digest
        ends = sorted((number, other))
        self._ends = struct.pack(">II", *ends) + "".join(charter.participants[i].fingerprint for i in ends).encode()
        self._secret, self._ephemeral = self._draw()
        self._candidates: dict[bytes, _Session] = {}
        self._current: _Session | None = None
        self._previous: _Session | None = None
        self._asked = False
        self._strange = False  # something came under a session that this end does not have
        self._heard = False  # something genuine came
        self._cookie_keys = os.urandom(32), os.urandom(32)  # of now, and of before
        self._token = _NO_TOKEN  # the cookie that the other end gave us for our ephemeral key
        self._ticks = self._wanted = self._checked = self._answered = 0
        self._chance = 1.0  # with which a signature is checked

    def ask(self) -> bytes | None:
        """The hello to send now, if one is needed; to be called every `TICK` seconds."""
        self._begin_tick()
        needed = self._current is None or (self._strange and not self._heard)
        self._strange = self._heard = False
        if not needed:
            return None
        self._asked = True
        return self._say(b"H", self._ephemeral, self._token)

    @property
    def linked(self) -> bool:
        """Whether there is a session."""
        return self._current is not None

    def seal(self, frame: bytes) -> bytes | None:
        """The message to send for a frame; None while there is no session."""
        return None if self._current is None else self._current.seal(b"F", frame)

    def open(self, message: bytes, now: datetime) -> Opened:
        """What a message is, whoever it may come from.

        Args:
            message: as received.
            now: an aware time, by which certificates are judged.
        """
        match message[:1]:
            case b"H" | b"A":
                return self._shake(message, now)
            case b"K" if len(message) == _COOKIE.size:
                return self._take_cookie(message)
            case b"C" | b"R" | b"F":
                return self._unseal(message)
            case _:
                return _DROPPED

    # The handshake

    def _draw(self) -> tuple[X25519PrivateKey, _Ephemeral]:
        secret = X25519PrivateKey.generate()
        public = secret.public_key().public_bytes_raw()
        return secret, _Ephemeral(public, self._identity.sign(self._signed(self._number, self._other) + public))

    def _signed(self, sender: int, receiver: int) -> bytes:
        return _LABEL + self._digest + struct.pack(">II", sender, receiver)

    def _say(self, kind: bytes, ephemeral: _Ephemeral, token: bytes) -> bytes:
        certificate = self._identity.certificate
        return _HELLO.pack(kind, ephemeral.public, token, len(certificate)) + certificate + ephemeral.signature

    def _shake(self, message: bytes, now: datetime) -> Opened:
        if not _HELLO.size < len(message) <= _LARGEST_HELLO:
            return _DROPPED
        kind, theirs, token, length = _HELLO.unpack_from(message)
        if kind == b"H" and not self._gave(token, theirs):
            return Opened(replies=(_COOKIE.pack(b"K", theirs[:_TOKEN], _cookie(self._cookie_keys[0], theirs)),))
        # Said again: our answer was lost. It must hear the key that this session is made of; ours is another by now.
        if self._current is not None and theirs == self._current.theirs:
            session = self._current
        elif kind == b"A" and not (self._asked and token == self._ephemeral.public[:_TOKEN]):
            return _DROPPED  # nobody asked: a recorded answer, one that came late, or a stranger's
        elif theirs in self._candidates:
            session = self._candidates[theirs]
        elif not self._may_check():
            return _DROPPED
        else:
            certificate, signature = message[_HELLO.size : _HELLO.size + length], message[_HELLO.size + length :]
            made = self._propose(theirs, certificate, signature, now)
            if isinstance(made, Opened):
                return made
            session = made
        return self._answer(kind, session, session.seal(b"C", b""))

    def _propose(self, theirs: bytes, certificate: bytes, signature: bytes, now: datetime) -> _Session | Opened:
        """The session with a neighbour's ephemeral key, if it is the neighbour's; else what comes of it."""
        name, expected = self._expected.name, self._expected.fingerprint
        problem = check_certificate(certificate, name, expected, now)
        if problem is not None and fingerprint(certificate) != expected:
            return Opened(problem=problem)
        try:
            verify(certificate, signature, self._signed(self._other, self._number) + theirs)
            session = self._derive(theirs)
        except (InputError, ValueError):  # ValueError: a key that gives no secret
            text = f"a handshake in the name of {name} is not for this charter; compare its digest with {name}'s"
            return Opened(problem=("forged", text))
        if problem is not None:
            refused = session.seal(b"R", refusal(problem.kind, problem.text))
            return replace(self._answer(b"H", session, refused), problem=problem)
        self._candidates[theirs] = session
        if len(self._candidates) > _CANDIDATES:
            del self._candidates[next(iter(self._candidates))]
        return session

    def _answer(self, kind: bytes, session: _Session, last: bytes) -> Opened:
        """What a genuine hello or answer is answered by."""
        if self._answered == _ANSWERS:
            return _DROPPED
        self._answered += 1
        if kind == b"A":
            return Opened(replies=(last,))
        return Opened(replies=(self._say(b"A", session.own, session.theirs[:_TOKEN]), last))

    # What handshakes may cost

    def _begin_tick(self) -> None:
        self._ticks += 1
        if self._ticks % _COOKIE_TICKS == 0:
            self._cookie_keys = os.urandom(32), self._cookie_keys[0]
        self._chance = min(1.0, _CHECKS / max(self._wanted, 1))
        self._wanted = self._checked = self._answered = 0

    def _may_check(self) -> bool:
        self._wanted += 1
        if self._checked >= 2 * _CHECKS or _RANDOM.random() >= self._chance:
            return False
        self._checked += 1
        return True

    def _gave(self, token: bytes, theirs: bytes) -> bool:
        """Whether this is the cookie that this end gave for an ephemeral key."""
        return any(hmac.compare_digest(token, _cookie(key, theirs)) for key in self._cookie_keys)

    def _take_cookie(self, message: bytes) -> Opened:
        _, seen, cookie = _COOKIE.unpack(message)
        if not self._asked or seen != self._ephemeral.public[:_TOKEN] or cookie == self._token:
            return _DROPPED
        if self._answered == _ANSWERS:
            return _DROPPED
        self._answered += 1
        self._token = cookie
        return Opened(replies=(self._say(b"H", self._ephemeral, cookie),))

    def _derive(self, theirs: bytes) -> _Session:
        own = self._ephemeral
        secret = self._secret.exchange(X25519PublicKey.from_public_bytes(theirs))
        first = self._number < self._other  # both ends must put the keys in one order, and seal with different ones
        info = _LABEL + self._ends + (own.public + theirs if first else theirs + own.public)
        made = HKDF(SHA256(), 72, self._digest, info).derive(secret)
        up, down = ChaCha20Poly1305(made[:32]), ChaCha20Poly1305(made[32:64])
        return _Session(made[64:], up if first else down, down if first else up, own, theirs)

    # Sealed messages

    def _unseal(self, message: bytes) -> Opened:
        if len(message) < OVERHEAD:
            return _DROPPED
        kind, tag, number = _HEAD.unpack_from(message)
        session = next((s for s in (self._current, self._previous) if s is not None and s.tag == tag), None)
        known = session is not None
        session = session or next((s for s in self._candidates.values() if s.tag == tag), None)
        if session is None:
            self._strange = True
            return _DROPPED
        content = session.open(number, message)
        if content is None:
            return _DROPPED
        if kind == b"R":
            kind_of, text = read_refusal(content) or ("refused", "no reason given")
            return Opened(problem=(kind_of, f"{self._expected.name} refuses: {text}"))
        # Only a genuine message makes a proposed session count. The other proposals were made with the same ephemeral
        # key of ours, which is used up now, so they go.
        if not known:
            self._previous, self._current = self._current, session
            self._candidates.clear()
            self._secret, self._ephemeral = self._draw()
            self._asked, self._token = False, _NO_TOKEN
        self._heard = self._heard or session is self._current
        return Opened(frame=content if kind == b"F" else None, linked=not known)


class Seals:
    """The seals of one participant, between its listener and whatever carries the messages."""

    def __init__(self, endpoint: Endpoint, listener: Listener, put: Callable[[int, bytes], None]) -> None:
        """One seal for each neighbour.

        Args:
            endpoint: whose.
            listener: who listens.
            put: sends a message to a neighbour, if it can.
        """
        self.notices = Notices(listener)
        self._participants = endpoint.charter.participants
        self._largest = endpoint.largest
        self._listener = listener
        self._put = put
        self._seals = {j: Seal(endpoint.charter, endpoint.identity, endpoint.number, j) for j in endpoint.neighbours}
        self._asked = dict.fromkeys(endpoint.neighbours, 0)

    def tick(self) -> None:
        """Say hello where it is needed; to be called every `TICK` seconds."""
        for j, seal in self._seals.items():
            hello = seal.ask()
            if hello is None:
                self._asked[j] = 0
                continue
            self._put(j, hello)
            self._asked[j] += 1
            if self._asked[j] == _LONGEST_WAIT:
                name, address = self._participants[j].name, self._participants[j].address or "its router"
                self.notices.tell(
                    j, "unreachable", f"{name} has not answered; is its node up, with this charter, at {address}?"
                )

    def linked(self, j: int) -> bool:
        """Whether frames can be sent to a neighbour."""
        return self._seals[j].linked

    def send(self, j: int, frame: bytes) -> None:
        """Send a frame under seal; dropped while there is no session, or if it is too large."""
        if len(frame) <= self._largest and (message := self._seals[j].seal(frame)) is not None:
            self._put(j, message)

    def take(self, j: int, message: bytes) -> None:
        """A message that claims to be from participant j."""
        if j not in self._seals:
            return
        opened = self._seals[j].open(message, datetime.now(UTC))
        for reply in opened.replies:
            self._put(j, reply)
        if opened.problem is not None:
            self.notices.tell(j, *opened.problem)
        if opened.linked:
            self.notices.forget(j)
            self._listener.linked(j)
        if opened.frame is not None and len(opened.frame) <= self._largest:
            self._listener.hear(j, opened.frame)


def hello_bytes(identity: Identity) -> int:
    """How long this identity's hello is, at most."""
    return _HELLO.size + len(identity.certificate) + _LARGEST_SIGNATURE


def _cookie(key: bytes, theirs: bytes) -> bytes:
    return hmac.digest(key, theirs, "sha256")[:_TOKEN]


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
