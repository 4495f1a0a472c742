"""Frames sealed from end to end, for transports with somebody in between or without connections.

One `Seal` is one end of one link, without I/O: messages in, messages and frames out. It never raises about a message.

The handshake:

    hello, answer    | "H" or "A" | ephemeral X25519 key 32 | length u16 | certificate | signature |
    sealed message   | "C", "R" or "F" | tag 8 | counter u64 | ChaCha20-Poly1305 of the content, 16 longer |

1. Each end makes an ephemeral key and signs it, together with a label, the charter's digest, and who says it to whom.
   It says hello until it hears back; a hello gets an answer, an answer gets none.
2. Whoever holds both ephemeral keys derives the session (HKDF-SHA256 of the shared secret, bound to the charter's
   digest, both fingerprints and both ephemeral keys): a tag, and one key for each direction. It confirms with an empty
   sealed message "C", or refuses with "R" and the reason where the other's certificate is the right one but its time
   is not.
3. The first message under a session that is genuine makes it the current one. Frames "F" travel under the current
   session only. The ephemeral key is then used up: the next handshake gets a new one.

Rules:
- No nonce is used twice under a key: the counter belongs to the ephemeral key, and runs on over every session made of
  it; a restart makes a new ephemeral key.
- A hello alone changes nothing: the session it proposes replaces the current one only when a message under it is
  genuine. Nobody can make such a message from recorded ones, since at least this end's ephemeral key is new.
- What was sealed is opened once, in whatever order it comes, up to `WINDOW` messages late. Frames still on their way
  under the session just replaced are opened too.
- A message that is altered, cut short, reflected, replayed, or meant for somebody else is dropped.

What it does not do:
- It does not hide who talks to whom, when, and how long the frames are; certificates travel in clear.
- Whoever is in between can drop and delay everything, and whoever can inject can make both ends shake hands again
  (about twice a second) when they do not hear from each other otherwise.
- Recorded traffic stays closed to who later steals an identity's key, which then only lets it pretend to be its owner.
  But who steals an *ephemeral* private key out of a running process, together with its hello, can pretend to be that
  end towards that neighbour for as long as the charter is in use: a hello has no date.
- Python does not wipe memory; a used key is forgotten, not erased.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
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

_LABEL = b"midst seal 1"
_HELLO = struct.Struct(">c32sH")
_HEAD = struct.Struct(">c8sQ")
_LARGEST_HELLO = 4096
_LARGEST_SIGNATURE = 72  # of P-256, in DER
_CANDIDATES = 4  # proposed sessions kept beside the current one
_HANDSHAKES = 8  # looked at between two ticks, for each neighbour
_LONGEST_WAIT = 10  # ticks without an answer until a person is told


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

    def ask(self) -> bytes | None:
        """The hello to send now, if one is needed; to be called every `TICK` seconds."""
        needed = self._current is None or (self._strange and not self._heard)
        self._strange = self._heard = False
        if not needed:
            return None
        self._asked = True
        return self._say(b"H", self._ephemeral)

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

    def _say(self, kind: bytes, ephemeral: _Ephemeral) -> bytes:
        certificate = self._identity.certificate
        return _HELLO.pack(kind, ephemeral.public, len(certificate)) + certificate + ephemeral.signature

    def _shake(self, message: bytes, now: datetime) -> Opened:
        if not _HELLO.size < len(message) <= _LARGEST_HELLO:
            return _DROPPED
        kind, theirs, length = _HELLO.unpack_from(message)
        certificate, signature = message[_HELLO.size : _HELLO.size + length], message[_HELLO.size + length :]
        # Said again: our answer was lost. It must hear the key that this session is made of; ours is another by now.
        if self._current is not None and theirs == self._current.theirs:
            session = self._current
        elif kind == b"A" and not self._asked:  # nobody asked: a recorded answer, or one that came late
            return _DROPPED
        elif theirs in self._candidates:
            session = self._candidates[theirs]
        else:
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
                return Opened(replies=(self._say(b"A", session.own), refused), problem=problem)
            self._candidates[theirs] = session
            if len(self._candidates) > _CANDIDATES:
                del self._candidates[next(iter(self._candidates))]
        answers = (self._say(b"A", session.own),) if kind == b"H" else ()
        return Opened(replies=(*answers, session.seal(b"C", b"")))

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
            self._asked = False
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
        self._left = dict.fromkeys(endpoint.neighbours, _HANDSHAKES)
        self._asked = dict.fromkeys(endpoint.neighbours, 0)

    def tick(self) -> None:
        """Say hello where it is needed; to be called every `TICK` seconds."""
        for j, seal in self._seals.items():
            self._left[j] = _HANDSHAKES
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
        if message[:1] in (b"H", b"A"):
            if self._left[j] == 0:
                return
            self._left[j] -= 1
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


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
