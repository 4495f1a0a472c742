"""Rounds about vectors over a network in memory: the aggregate, whatever is lost and whoever dies; and liars, named."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from liar import answer_towards
from memory_network import MemoryNetwork, charter_of

from midst.errors import Aborted, InputError
from midst.net import charter as charters
from midst.net.answer import Answer
from midst.net.gossip import pack_bits
from midst.net.notes import about, content
from midst.net.tree_sums import WINDOW
from midst.net.wire import CONTROL_BYTES, Statements, VectorFrame, Want, encode_control
from midst.protocol.statements import Malformed, Statement
from midst.protocol.vectors import layout
from midst.protocol.vectors.chunk import ChunkSearch

SIZE, TREE = 60, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 4)]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(layout, "CHUNK", 9)


def charter(n=5, aggregates=1, **settings):
    arrays = [{"name": "w", "shape": [SIZE - 3], "dtype": "float32"}, {"name": "b", "shape": [3], "dtype": "int16"}]
    plain = {"method": "search", "bounds": None, "arrays": arrays, "aggregates": aggregates} | settings
    return charter_of(n, [edge for edge in TREE if max(edge) < n], **plain)


def updates(n=5, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n, SIZE - 3)).round(1).astype(np.float32)
    return [[w, b] for w, b in zip(weights, rng.integers(-5, 5, (n, 3)).astype(np.int16), strict=True)]


def expected(given, rank):
    return [np.sort(np.stack(parts), axis=0)[rank - 1] for parts in zip(*given, strict=True)]


class Rounds(MemoryNetwork):
    """Clients that have an update for every round."""

    def __init__(self, agreed, given):
        self.given = given
        self.found = {}
        super().__init__(agreed, [0.0] * len(agreed.names))

    def start(self, i, setup=None, entropy=None):
        peer = super().start(i, setup, entropy)
        self.offer(i)
        return peer

    def offer(self, i):
        peer = self.peers[i]
        if peer is None:
            return
        vectors = peer.exchange.vectors
        done = vectors.rounds_done
        if vectors.finished is not None:
            self.found[i, done - 1] = vectors.finished
        if done < len(self.given):
            vectors.offer(self.given[done][i])

    def pass_time(self, seconds=0.6):
        for i in range(len(self.peers)):
            self.offer(i)
        super().pass_time(seconds)

    def check(self, rank):
        for k, given in enumerate(self.given):
            wanted = expected(given, rank)
            for i in range(len(self.peers)):
                for got, right in zip(self.found[i, k].arrays, wanted, strict=True):
                    assert got.dtype == right.dtype
                    assert np.array_equal(got, right)
            assert len({self.found[i, k].digest for i in range(len(self.peers))}) == 1


def run(network, change=lambda i, j, frame: frame, most=400):
    ends = network.run(change, most)
    for i in range(len(network.peers)):
        network.offer(i)
    return ends


@pytest.mark.parametrize("n", [3, 5])
def test_round_after_round(n):
    network = Rounds(charter(n, 3), [updates(n, seed) for seed in range(3)])
    ends = run(network)
    assert all(isinstance(end, Answer) for end in ends), ends
    network.check((n + 1) // 2)
    assert len({end.digest for end in ends}) == 1


def test_means():
    settings = {"objective": "trimmed mean", "trim": 1, "bounds": [-10, 10], "resolution": 0.1}
    given = updates()
    network = Rounds(charter(**settings), [given])
    assert all(isinstance(end, Answer) for end in run(network))
    weights = np.sort([w for w, _ in given], axis=0)[1:-1].mean(axis=0, dtype=np.float64)
    assert np.allclose(network.found[0, 0].arrays[0], weights, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_frames_are_lost_and_clients_die_at_any_time(seed):
    rng = Random(seed)
    network = Rounds(charter(5, 2), [updates(5, seed), updates(5, seed + 100)])
    deaths = 6

    def fate(i, j, frame):
        nonlocal deaths
        if deaths and rng.random() < 0.01:
            deaths -= 1
            network.files[j].cut_power()
            network.start(j)
            return None
        return None if rng.random() < 0.03 else frame

    ends = run(network, fate, most=2000)
    assert all(isinstance(end, Answer) for end in ends), ends
    for k, given in enumerate(network.given):
        for i in range(5):
            if (i, k) in network.found:
                assert np.array_equal(network.found[i, k].arrays[0], expected(given, 3)[0])
    assert len({end.digest for end in ends}) == 1
    assert deaths < 6


def test_another_update_for_a_round_that_has_begun_is_refused():
    network = Rounds(charter(), [updates()])
    vectors = network.peers[3].exchange.vectors
    while vectors._own is None:
        network.pass_time()
        network.deliver(most=10)
    with pytest.raises(ValueError, match="begun with another"):
        vectors.offer(updates(seed=9)[3])
    vectors.offer(updates()[3])  # the same one is welcome


def test_nobody_can_tell_that_an_update_is_the_same_as_before():
    """A client that did not train, or had trained to the end, has the same twice; that is its own business."""
    network = Rounds(charter(3, 2), [updates(3), updates(3)])
    codec, begun = network.setups[0].codec, set()

    def listen(i, j, frame):
        said = codec.decode(frame) if frame[:1] == b"G" else None
        notes = said.statements if isinstance(said, Statements) else ()
        begun.update((note.signer, content(note)) for note in notes if note.kind == b"B")
        return frame

    ends = run(network, listen)
    assert all(isinstance(end, Answer) for end in ends), ends
    assert len(begun) == 3 * 2


def test_the_journal_does_not_grow_with_the_rounds():
    sizes = []
    for rounds in (2, 6):
        network = Rounds(charter(3, rounds + 1), [updates(3, seed) for seed in range(rounds)])
        for _ in range(60):
            network.pass_time()
            network.deliver()
        assert network.peers[0].exchange.vectors.rounds_done == rounds
        sizes.append(len(network.files[0].read()))
    assert sizes[1] < 1.2 * sizes[0]


def test_what_nobody_could_have_sent_harms_nobody():
    """Notes that are cut off, vectors of a wrong length or about nothing, before they are due and after."""
    network = Rounds(charter(), [updates()])
    codec, rng = network.setups[0].codec, Random(1)
    nonsense = [
        *(
            codec.encode([Statement(body, b"signed")])[0]
            for body in (b"", b"A", b"A\0\0", b"B\1\0\0\0", b"K" + bytes(40))
        ),
        *(codec.encode_vector(True, 0, k, 0, bytes(16), bytes(size)) for k in (0, 3, 10**9) for size in (0, 1, 500)),
        codec.encode_vector(False, 7, 0, 65535, bytes(16), b""),
        b"V",
    ]
    sent = 0

    def beside(i, j, frame):
        nonlocal sent
        if i == 4 and sent < 7:  # one fewer than is taken for a broken neighbour
            sent += 1
            network.mail.appendleft((4, j, rng.choice(nonsense)))
        return frame

    ends = run(network, beside, most=200)
    assert sent == 7
    assert not any(isinstance(end, Exception) and not isinstance(end, Aborted) for end in ends)
    if all(isinstance(end, Answer) for end in ends):
        network.check(3)
    else:  # a vector of the right form in the wrong context is a matter between two
        assert all("eve" in str(end) for end in ends), ends


@pytest.mark.parametrize("raw", [b"", b"A", b"A\0\0", b"A\0\0\0\0short", b"B\1\0\0\0", b"Z" * 50])
def test_notes_that_are_none(raw):
    with pytest.raises(Malformed):
        about(Statement(raw, b""))


def test_who_leaves_in_the_middle_is_named():
    network = Rounds(charter(), [updates()])
    network.pass_time()
    network.deliver(most=60)
    network.peers[2].stop()
    ends = run(network)
    assert all(isinstance(end, Aborted) and "cat" in str(end) for end in ends), ends


def test_who_is_silent_is_named_and_nobody_hangs():
    network = Rounds(charter(deadlines={"start": 20, "wait": 5, "total": 60, "linger": 2}), [updates()])
    ends = run(network, lambda i, j, frame: None if frame[:1] == b"V" and i == 4 else frame)
    assert all(isinstance(end, Aborted) for end in ends), ends
    assert all("for eve" in str(end) for end in ends[:4]), ends  # by who waits for it, or for who says that it does


def test_what_is_asked_for_many_times_is_sent_once():
    """A question of a few bytes would else be answered by hundreds of vectors."""
    network = Rounds(charter(), [updates()])
    child = network.peers[1].exchange
    for _ in range(10):  # its parent has its sums, and tells it no totals
        network.pass_time()
        network.deliver(change=lambda i, j, frame: None if i == 0 and frame[:1] == b"V" else frame)
    asked = tuple((k, each.search.step) for k, each in child._chunks.items() if each.sent is not None)
    assert asked
    assert len(child.frames(0, Want(0, b"", asked * 100))) == len(asked)
    assert child.frames(0, Want(1, b"", asked)) == child.frames(3, Want(0, b"", asked)) == []


def test_what_is_asked_for_fits_into_a_frame():
    lacks = pack_bits(range(charters._MOST_CLIENTS), charters._MOST_CLIENTS)
    asked = Want(charters._MOST_AGGREGATES, lacks, tuple((2**31 - k, 1000) for k in range(WINDOW)))
    assert len(encode_control(asked)) < CONTROL_BYTES


def test_who_keeps_the_notes_of_others_to_itself_holds_up_nobody():
    """Whoever waits asks all its neighbours; the notes of 3 come by 2, which is not next to it in the tree."""
    network, kept = Rounds(charter(), [updates()]), 0
    codec = network.setups[0].codec

    def keep(i, j, frame):
        nonlocal kept
        if i != 1 or frame[:1] != b"G":
            return frame
        notes = codec.decode(frame).statements
        told = [note for note in notes if note.signer != 3]
        kept += len(told) < len(notes)
        return frame if len(told) == len(notes) else codec.encode(told)[0] if told else None

    ends = run(network, keep)
    assert kept > 10
    assert all(isinstance(end, Answer) for end in ends), ends
    network.check(3)


# Liars: one alters what passes through it, or says different things to different neighbours


def lie(network, about, change):
    """Vectors that `about` sends are changed: up or down, and to whom."""
    codec = network.setups[0].codec

    def altered(i, j, frame):
        if i != about or frame[:1] != b"V":
            return frame
        said = codec.decode(frame)
        assert isinstance(said, VectorFrame)
        vector = change(j, said)
        return codec.encode_vector(said.up, said.round, said.chunk, said.step, said.context, vector)

    return altered


def flip(vector, place=0):
    return vector[:place] + bytes([vector[place] ^ 1]) + vector[place + 1 :]


@pytest.mark.parametrize("step", [0, 2, 5])
def test_a_relay_that_alters_a_sum_is_named_with_its_neighbour(step):
    """Also where no values have the totals that come of it: that is looked at last."""
    network = Rounds(charter(), [updates()])
    ends = run(
        network, lie(network, 1, lambda j, said: flip(said.vector) if said.up and said.step == step else said.vector)
    )
    assert all(isinstance(end, Aborted) for end in ends), ends
    assert {(end.kind, end.about) for end in ends if end.kind != "withdrawn"} == {("tampered", "ann and ben")}


def test_who_contributes_what_no_values_are_is_not_known_and_nobody_is_named(monkeypatch):
    from midst.protocol.vectors import chunk

    honest = chunk.hide

    def heavy(numbers, number, *rest):
        return honest([each + each.dtype.type(9) for each in numbers] if number == 4 else numbers, number, *rest)

    monkeypatch.setattr(chunk, "hide", heavy)
    ends = run(Rounds(charter(), [updates()]))
    assert all(isinstance(end, Aborted) for end in ends), ends
    assert {end.kind for end in ends} <= {"impossible", "withdrawn"}
    assert "impossible" in {end.kind for end in ends}


def test_who_adds_to_its_counts_puts_a_coordinate_anywhere_beyond_the_others(monkeypatch):
    """A leaf, which sees no totals beforehand: all it has to know is that nobody else has so large a number.

    The others' numbers begin as its own does, so it knows what they answer until the bits of the wish are others; and
    from there on nobody answers but itself.
    """
    wish, given = 1e30, [[np.abs(w) % np.float32(1) + np.float32(0.5), b] for w, b in updates()]
    ask, liars = ChunkSearch._ask, []

    def dishonest(self):
        if self._number == 4 and not liars:  # its first chunk
            liars.append(self)
            truth = self.search.answers
            self.search.answers = lambda own: lie_about(truth(own), own, self.search.bracket)
        ask(self)

    def lie_about(told, own, bracket):
        if len(bracket.lanes) and bracket.lanes[0] == 0:
            mine, left, counted = int(own[0]), bracket.left, bracket.counted[0]
            among = counted and mine >> left == bracket.prefix[0]
            others = 4 * (mine >> (left - 1) & 1 == 0) if among else 0
            part = told[0 if counted else -1]
            part[0] = (answer_towards(wish, left, int(bracket.rank[0]), counted) - others) % 2 ** (8 * part.itemsize)
        return told

    monkeypatch.setattr(ChunkSearch, "_ask", dishonest)
    network = Rounds(charter(), [given])
    ends = run(network)
    assert all(isinstance(end, Answer) for end in ends), ends
    right = expected(given, 3)
    right[0][0] = wish
    for i in range(5):
        assert all(np.array_equal(*each) for each in zip(network.found[i, 0].arrays, right, strict=True))


def test_totals_told_differently_to_one_child_stop_the_run():
    network = Rounds(charter(), [updates()])
    ends = run(
        network, lie(network, 0, lambda j, said: flip(said.vector) if j == 2 and said.step == 1 else said.vector)
    )
    assert all(isinstance(end, Aborted) for end in ends), ends
    assert any(end.kind in ("diverged", "impossible") for end in ends)


def test_a_relay_that_alters_sums_and_its_own_words_is_named_alone(monkeypatch):
    """It commits to what it sent, so that its parent finds nothing: then the random sums name it."""
    from midst.protocol.vectors import chunk

    network = Rounds(charter(), [updates()])
    honest, lies = chunk.ChunkSearch.sum_up, []

    def dishonest(self, children):
        found = honest(self, children)
        bracket = self.search.bracket
        if self._number == 1 and not lies and not bracket.counted.any():
            lies.append(self)  # the rest of an answer: any will do, so that no total is impossible
            return flip(found)
        return found

    monkeypatch.setattr(chunk.ChunkSearch, "sum_up", dishonest)
    ends = run(network)
    assert lies
    assert all(isinstance(end, Aborted) for end in ends), ends
    assert {end.about for end in ends if end.kind == "tampered"} == {"ben"}


def test_a_disk_that_was_put_back_hides_no_second_update_behind_the_same_masks():
    """Else the difference of two updates could be read from two vectors: what was drawn is the same in both runs."""
    contexts = []
    for other in (0, 5):
        given = updates()
        given[3] = updates(seed=other)[3]
        network = Rounds(charter(), [given])
        vectors = network.peers[3].exchange.vectors
        while not vectors._chunks:
            network.pass_time()
            network.deliver(most=10)
        contexts.append({each.search.context for each in vectors._chunks.values()})
        assert vectors._opening.secret == network.peers[3].opening.secret
    assert not contexts[0] & contexts[1]


def test_a_disk_that_was_put_back_is_noticed():
    network = Rounds(charter(), [updates()])
    before = b""
    while network.peers[3].exchange.vectors._own is None:
        before = network.files[3].read()
        network.pass_time()
        network.deliver(most=10)
    for _ in range(3):
        network.pass_time()
        network.deliver(most=40)
    network.files[3].data = before
    network.given[0][3] = updates(seed=5)[3]
    network.start(3)
    ends = run(network, most=60)
    assert not any(isinstance(end, Answer) for end in ends)
    assert any(isinstance(end, Aborted) and "dan" in str(end) for end in ends), ends


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"verify": True}, "verify"),
        ({"coordinates": 3}, "coordinates"),
        ({"definition": "averaged_inverted_cdf"}, "definition"),
        ({"trim": 1}, "trim is for a trimmed mean"),
        ({"objective": "trimmed mean", "trim": 1}, "needs public bounds and a resolution"),
        ({"objective": "trimmed mean", "trim": 3, "bounds": [0, 1], "resolution": 0.1}, "leaves none"),
        ({"aggregates": 0}, "aggregates must be"),
        ({"arrays": [{"name": "a", "shape": [2], "dtype": "complex64"}]}, "dtype of a"),
        ({"arrays": [{"name": "a", "shape": [0]}]}, "empty"),
        ({"arrays": [{"name": "a", "shape": [2]}, {"name": "a", "shape": [2]}]}, "its own name"),
        ({"arrays": [], "aggregates": 1, "objective": "trimmed mean"}, "these are of arrays"),
    ],
)
def test_charters_that_cannot_be(settings, words):
    with pytest.raises(InputError, match=words):
        charter(**settings)
