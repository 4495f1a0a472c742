from __future__ import annotations

import struct

import numpy as np
import pytest
from memory_network import MemoryNetwork, charter_of
from simnet.notary import SimNotary, sim_certificate

from midst.errors import Aborted, InputError
from midst.net.exact_finish import ExactFinish
from midst.net.wire import (
    PROTOCOL,
    Done,
    Hello,
    NotYet,
    Refused,
    StepFrame,
    Want,
    Welcome,
    encode_control,
)
from midst.net.withdrawal import Withdrawal, sign_withdrawal
from midst.protocol.statements import Statement, announce, make_body, signed_bytes

VALUES = [1.0, -2.0, 5.0]
METHODS = ["consensus", "search"]


def steps(frame):
    return frame[:1] == b"S"


def told(frame):
    return frame[:1] == b"G"


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({}, 1.0),
        ({"objective": "maximum"}, 5.0),
        ({"objective": "minimum"}, -2.0),
        ({"objective": "quantile", "quantile": 0.9}, 5.0),
        ({"objective": "quantile", "quantile": 0.1}, -2.0),
        ({"resolution": 0.5}, 1.0),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_all_find_the_same_proved_answer(settings, answer, method):
    endings = MemoryNetwork(charter_of(method=method, **settings), VALUES).run()
    assert {ending.value for ending in endings} == {(answer,)}
    assert {ending.proof[0][2] for ending in endings} == {3}
    assert len({ending.rounds for ending in endings}) == 1


def test_a_mean_is_proved_to_the_tolerance():
    endings = MemoryNetwork(charter_of(objective="mean", tolerance=1e-9), VALUES).run()
    assert len({ending.value for ending in endings}) == 1
    found = endings[0]
    assert abs(found.value[0] - np.mean(VALUES)) <= found.bound <= 1e-9 * 5


def test_an_even_median_between_two_values_is_proved_to_the_tolerance():
    endings = MemoryNetwork(charter_of(4, definition="any"), [1.0, 2.0, 3.0, 4.0]).run()
    assert 2.0 <= endings[0].value[0] <= 3.0
    assert endings[0].proof == ()


@pytest.mark.parametrize("method", METHODS)
def test_weights_count(method):
    people = charter_of()
    heavy = charter_of(
        method=method,
        participants=[
            {"name": one.name, "fingerprint": one.fingerprint, "address": one.address, "weight": weight}
            for one, weight in zip(people.participants, (1, 5, 1), strict=True)
        ],
    )
    assert MemoryNetwork(heavy, VALUES).run()[0].value == (-2.0,)


def test_lists_are_pooled():
    lists = [[1.0, 2.0, 9.0], [-2.0], [5.0, 5.0, 5.0, -7.0]]
    endings = MemoryNetwork(charter_of(method="search", pooled=True, objective="quantile", quantile=0.75), lists).run()
    assert {ending.value for ending in endings} == {(5.0,)}
    assert endings[0].proof == ((4, 1, 8),)


def test_the_midpoint_of_an_even_number_of_values():
    settings = {"method": "search", "definition": "averaged_inverted_cdf", "resolution": 0.25}
    endings = MemoryNetwork(charter_of(4, **settings), [1.0, 2.0, 3.5, 4.0]).run()
    assert {ending.value for ending in endings} == {(2.75,)}


def test_a_search_needs_no_bounds():
    values = [1e-300, -2.0, 1.7e308, 5.0, 4.0]
    endings = MemoryNetwork(charter_of(5, method="search", bounds=None), values).run()
    assert {ending.value for ending in endings} == {(4.0,)}


def test_nobody_is_exposed_by_a_search():
    assert not any(ending.exposed for ending in MemoryNetwork(charter_of(method="search"), VALUES).run())


@pytest.mark.parametrize("method", METHODS)
def test_vectors_coordinate_by_coordinate(method):
    rows = [[1.0, 7.0], [2.0, -3.0], [3.0, 0.5]]
    endings = MemoryNetwork(charter_of(coordinates=2, method=method), rows).run()
    assert endings[0].value == (2.0, 0.5)
    assert endings[0].to_dict()["value"] == [2.0, 0.5]


def test_frames_have_one_size_whatever_the_branch():
    net = MemoryNetwork(charter_of(5), [0.0, 1.0, 2.0, 3.0, 4.0])
    net.run()
    branches = {peer.exchange.state.branch for peer in net.peers}
    assert len({len(frame) for _, _, frame in net.sent if steps(frame)}) == 1
    assert len(branches) > 1


def test_nothing_drawn_leaves_before_the_neighbour_has_our_number_on_disk():
    net = MemoryNetwork(charter_of(2), [1.0, 2.0])
    net.pass_time()
    net.deliver(change=lambda i, j, frame: None if frame[:9] == encode_control(Welcome(b"", 0))[:9] else frame)
    assert not [1 for _, _, frame in net.sent if steps(frame)]


# Resuming


def said_by(net):
    """All that was said of the iteration, and all that was signed."""
    codec = net.setups[0].codec
    iterated = {(i, j, frame) for i, j, frame in net.sent if steps(frame)}
    signed = {one.body for _, _, frame in net.sent if told(frame) for one in codec.decode_all(frame)}
    return iterated, signed


@pytest.mark.parametrize("method", METHODS)
def test_a_participant_killed_after_any_frame_goes_on_to_the_same_end(method):
    charter = charter_of(method=method)
    calm = MemoryNetwork(charter, VALUES)
    calm.run()
    for victim in range(3):
        for moment in range(1, len(calm.sent), 7):
            net = MemoryNetwork(charter, VALUES)
            net.pass_time()
            net.deliver(most=moment)
            net.mail.clear()
            net.start(victim)
            endings = net.run()
            assert {ending.value for ending in endings} == {(1.0,)}
            assert said_by(net) == said_by(calm)


@pytest.mark.parametrize("method", METHODS)
def test_who_has_ended_says_so_again_and_needs_nobody(method):
    net = MemoryNetwork(charter_of(method=method), VALUES)
    first = net.run()[0]
    again = net.start(0)
    assert again == first
    assert b"S" not in net.files[0].data[20:21]


@pytest.mark.parametrize("method", METHODS)
def test_after_the_end_no_secret_is_kept(method):
    net = MemoryNetwork(charter_of(method=method), VALUES)
    assert all(peer.opening.secret in file.data for peer, file in zip(net.peers, net.files, strict=True))
    net.run()
    for setup, file, peer in zip(net.setups, net.files, net.peers, strict=True):
        assert not peer.opening.z or peer.opening.z not in file.data
        assert peer.opening.value not in file.data
        assert peer.opening.secret not in file.data
        assert setup.session in file.data


@pytest.mark.parametrize("method", METHODS)
def test_a_lost_journal_is_noticed_and_refused(method):
    net = MemoryNetwork(charter_of(method=method), VALUES)
    net.pass_time()
    net.deliver(most=12)
    net.mail.clear()
    net.files[1].data = b""
    net.start(1, entropy=lambda count: bytes(range(1, 1 + count % 200)) + bytes(max(0, count - count % 200)))
    endings = net.run()
    assert {ending.kind for ending in endings} <= {"journal lost", "refused"}
    assert {ending.about for ending in endings if ending.kind == "journal lost"} == {"ben"}
    with pytest.raises(Aborted, match="start a new one"):
        net.start(0)


def test_a_journal_of_another_value_is_refused():
    net = MemoryNetwork(charter_of(), VALUES)
    with pytest.raises(InputError, match="not the one this session began with") as caught:
        net.start(0, setup=MemoryNetwork(charter_of(), [7.5, 0.0, 0.0]).setups[0])
    assert "7.5" not in str(caught.value)


def test_a_journal_of_another_session_is_refused():
    net = MemoryNetwork(charter_of(), VALUES)
    with pytest.raises(InputError, match="another session"):
        net.start(0, setup=MemoryNetwork(charter_of(session="other"), VALUES).setups[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_full_disk_stops_before_anything_is_sent(method):
    net = MemoryNetwork(charter_of(method=method), VALUES)
    net.pass_time()
    net.deliver(most=14)
    net.files[2].full = True
    before = len(net.sent)
    endings = net.run()
    assert [ending.kind for ending in endings] == ["withdrawn", "withdrawn", "disk"]
    assert {ending.about for ending in endings} == {"cat"}
    own = net.peers[2].exchange.round - (method == "consensus")
    codec = net.setups[0].codec
    later = [codec.decode(frame).message.round for i, _, frame in net.sent[before:] if i == 2 and steps(frame)]
    assert max(later, default=0) <= net.peers[2].exchange.round, "only what it had told before, to who asks"
    signed = [
        one for i, _, frame in net.sent if i == 2 and told(frame) for one in net.setups[0].codec.decode_all(frame)
    ]
    assert all(one.step <= own for one in signed if one.signer == 2)
    net.files[2].full = False
    for i in range(3):
        net.start(i)
    assert {ending.value for ending in net.run()} == {(1.0,)}


def test_the_x_of_a_round_that_is_not_made_is_told_to_nobody():
    """Not even to who asks for it after the iteration is over."""
    for settings in ({}, {"objective": "mean"}):
        net = MemoryNetwork(charter_of(**settings), VALUES)
        net.run()
        codec, part = net.setups[0].codec, net.peers[0].exchange
        rounds = [codec.decode(frame).message.round for _, _, frame in net.sent if steps(frame)]
        for since in range(max(rounds) + 3):
            kept = [codec.decode(frame) for frame in part.frames(1, Want(since))]
            assert max([step.message.round for step in kept if isinstance(step, StepFrame)], default=0) <= max(rounds)


# Distrust


def forge(net, j, **changes):
    """A change to what participant 0 sends to j from round 4 on."""
    codec = net.setups[0].codec

    def change(i, to, frame):
        if (i, to) != (0, j) or not steps(frame):
            return frame
        step = codec.decode(frame)
        if step.message.round < 4:
            return frame
        return changes["make"](codec, step)

    return change


def test_two_frames_for_one_round_are_equivocation():
    net = MemoryNetwork(charter_of(), VALUES)

    def twice(i, j, frame):
        if (i, j) == (0, 1) and steps(frame) and (step := net.setups[0].codec.decode(frame)).message.round == 4:
            message = step.message
            other = type(message)(message.round, message.number + 0.25)
            net.peers[1].hear(0, frame, net.now)
            return net.setups[0].codec.encode_step(other, step.digest, step.maxima)
        return frame

    endings = net.run(change=twice)
    assert (endings[1].kind, endings[1].about, endings[1].evidence) == ("equivocation", "ann", None)
    for other in (endings[0], endings[2]):
        assert (other.kind, other.about) == ("withdrawn", "ben"), "nobody is believed about others"
        assert "ben withdrew (equivocation), and says: ann sent two different frames for round 4" in str(other)


def test_mirrors_that_come_apart_stop_the_run():
    net = MemoryNetwork(charter_of(), VALUES)

    def lie(codec, step):
        message = step.message
        return codec.encode_step(type(message)(message.round, message.number + 0.25), step.digest, step.maxima)

    endings = net.run(change=forge(net, 1, make=lie))
    found = [ending for ending in endings if ending.kind == "diverged"]
    assert found
    assert {ending.about for ending in found} == {"ann and ben"}, "nothing shows which of the two"
    assert {ending.kind for ending in endings} <= {"diverged", "withdrawn"}


def test_frames_that_cannot_be_are_counted_and_then_end_it():
    net = MemoryNetwork(charter_of(), VALUES)
    net.pass_time()
    net.deliver()
    net = MemoryNetwork(charter_of(), VALUES)
    for _ in range(7):
        net.peers[1].hear(0, b"S nonsense", 0.0)
    assert net.peers[1].ending is None
    net.peers[1].hear(0, b"", 0.0)
    assert net.peers[1].ending.kind == "broken protocol"


def test_a_round_far_ahead_is_put_down_to_both_ends():
    net = MemoryNetwork(charter_of(), VALUES)

    def ahead(codec, step):
        message = step.message
        return codec.encode_step(type(message)(message.round + 5, message.number), step.digest, step.maxima)

    endings = net.run(change=forge(net, 1, make=ahead))
    assert (endings[1].kind, endings[1].about) == ("diverged", "ann and ben")


def test_an_iteration_whose_journal_was_put_back_blames_nobody_else():
    """The neighbours are rounds ahead, which cannot be: either its own disk is an old one, or they lie."""
    net = MemoryNetwork(charter_of(5), [*VALUES, -7.0, 9.0])
    net.pass_time()
    old = None
    while net.peers[0].exchange.round < 6:
        net.deliver(most=1)
        old = net.files[0].data if net.peers[0].exchange.round == 2 else old
    assert net.peers[0].exchange.search is None
    net.mail.clear()
    net.files[0].data = old
    net.start(0)
    endings = net.run()
    assert (endings[0].kind, endings[0].evidence) == ("diverged", None)
    assert endings[0].about in ("ann and ben", "ann and eve")
    assert "a journal was put back" in str(endings[0])
    assert {(ending.kind, ending.about) for ending in endings[1:]} == {("withdrawn", "ann")}


def test_statements_that_come_during_the_iteration_cannot_end_it():
    """Kept unread until their signatures can be checked: those that are wrong are dropped, and asked for rightly."""
    net = MemoryNetwork(charter_of(), VALUES)
    net.pass_time()
    net.deliver(most=20)
    peer = net.peers[1]
    assert peer.exchange.search is None
    body = make_body(b"A", 2, 0, announce(bytes(16), bytes(32), 1, sim_certificate(2)))
    early = net.setups[0].codec.encode_all([Statement(body, b"no signature of cat's")])
    peer.hear(0, early, net.now)
    assert peer.neighbours[0].bad == 0
    peer.hear(0, net.setups[0].codec.encode_all([Statement(b"A" + b"\xff" * 4 + bytes(80), b"")]), net.now)
    assert peer.neighbours[0].bad == 1, "what is no statement at all is put down to who tells it"
    assert {ending.value for ending in net.run()} == {(1.0,)}


@pytest.mark.parametrize("far", [0, 1, 30])
def test_what_we_have_signed_and_know_nothing_of_ends_it(far):
    """A neighbour shows our own signature on it: our disk was put back, or we run twice."""
    net = MemoryNetwork(charter_of(method="search"), VALUES)
    net.pass_time()
    net.deliver(most=40)
    peer = net.peers[0]
    body = b"C" + struct.pack("<HH", 0, peer.exchange.round + far) + bytes(32 + 8 * 4)
    shown = Statement(body, SimNotary(0).sign(signed_bytes(net.charter.digest, body)))
    peer.hear(1, net.setups[0].codec.encode_all([shown]), net.now)
    assert (peer.ending.kind, peer.ending.about) == ("journal lost", "ann")
    with pytest.raises(Aborted, match="start a new one"):
        net.start(0)


def test_who_only_says_that_we_have_signed_more_is_waited_for_by_name():
    net = MemoryNetwork(charter_of(method="search", deadlines={"start": 30}), VALUES)

    def boast(i, j, frame):
        if (i, j) != (1, 0) or frame[:9] != encode_control(Welcome(b"", 0))[:9]:
            return frame
        said = net.setups[0].codec.decode(frame)
        return encode_control(Welcome(said.instance, said.wants, 7, b"d" * 16))

    endings = net.run(change=boast)
    assert {(ending.kind, ending.about) for ending in endings[:1]} == {("waited", "ben")}
    net.start(0)  # and nothing keeps it from going on


@pytest.mark.parametrize("step", [1, 3])
def test_a_disk_that_was_put_back_is_noticed_by_what_neighbours_show(step):
    """An old copy of the journal, with the same secrets: nothing else is signed than before, or nothing at all."""
    net = MemoryNetwork(charter_of(method="search"), VALUES)
    old = None
    net.pass_time()
    while net.mail and net.peers[0].ending is None:
        net.deliver(most=1)
        if old is None and net.peers[0].exchange.round == step:
            old = net.files[0].data
        if net.peers[0].exchange.round == step + 2:
            break
    before = said_by(net)[1]
    net.mail.clear()
    net.files[0].data = old
    net.start(0)
    net.run()
    mine = {body for body in said_by(net)[1] - before if body[1:3] == b"\0\0"}
    kept = {(body[3:5]) for body in before if body[1:3] == b"\0\0"}
    assert not any(body[3:5] in kept for body in mine), "no second statement for a step"


# Refusals


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"version": 99}, "version", "you speak 99"),
        ({"sender": "cat"}, "wrong name", "ben's"),
        ({"digest": b"x" * 32, "fields": {}}, "charter", "differs"),
        ({"instance": b"short"}, "journal lost", "lost its journal"),
    ],
)
def test_a_hello_that_is_not_accepted_is_answered_in_words(change, kind, words):
    net = MemoryNetwork(charter_of(2), [1.0, 2.0])
    charter, ann = net.charter, net.peers[0]
    plain = {
        "version": PROTOCOL, "sender": "ben", "receiver": "ann", "digest": charter.digest,
        "fields": charter.field_digests, "instance": bytes(16), "wants": 0,
    }  # fmt: skip
    ann.hear(1, encode_control(Hello(**(plain | change))), 0.0)
    answer = net.setups[0].codec.decode(net.sent[-1][2])
    refused = next(net.setups[0].codec.decode(f) for i, j, f in net.sent if i == 0 and b"refused" in f)
    assert (refused.kind, words in refused.text) == (kind, True), answer


def test_a_different_charter_is_refused_by_what_differs():
    ours, theirs = charter_of(sigma=0.5), charter_of(sigma=0.6, arity=4)
    net, other = MemoryNetwork(ours, VALUES), MemoryNetwork(theirs, VALUES)
    net.peers[1] = other.peers[1]
    other.peers[1]._send = lambda j, frame: net.mail.append((1, j, frame))
    net.run(most=2)
    assert other.peers[1].ending.kind == "refused"
    assert "sigma" in str(other.peers[1].ending)
    assert "arity" in str(other.peers[1].ending)
    assert {peer.ending.about for peer in (net.peers[0], net.peers[2])} == {"ben"}
    for i in range(3):  # nothing has begun: with the right charter it goes on from there
        net.start(i)
    assert {ending.value for ending in net.run()} == {(1.0,)}


@pytest.mark.parametrize(
    ("ours", "theirs", "key"),
    [
        ({"resolution": 0.5}, {"resolution": 0.25}, "resolution"),
        ({"resolution": 0.5}, {}, "resolution"),
        ({}, {"spacing": "key"}, "spacing"),
        ({}, {"pooled": True}, "pooled"),
        ({}, {"method": "consensus"}, "method"),
        ({}, {"bounds": None}, "bounds"),
    ],
)
def test_charters_of_a_search_that_differ_are_refused_by_the_keys_name(ours, theirs, key):
    searching = {"method": "search"}
    net, other = (
        MemoryNetwork(charter_of(**searching | ours), VALUES),
        MemoryNetwork(charter_of(**searching | theirs), VALUES),
    )
    net.peers[1] = other.peers[1]
    other.peers[1]._send = lambda j, frame: net.mail.append((1, j, frame))
    net.run(most=2)
    assert other.peers[1].ending.kind == "refused"
    assert key in str(other.peers[1].ending)
    assert {peer.ending.about for peer in (net.peers[0], net.peers[2])} == {"ben"}
    assert not any(told(frame) for _, _, frame in net.sent)


# Deadlines


@pytest.mark.parametrize("method", METHODS)
def test_whoever_never_comes_is_named(method):
    net = MemoryNetwork(charter_of(method=method, deadlines={"start": 30}), VALUES)
    net.peers[2] = None
    endings = net.run()
    assert {(ending.kind, ending.about) for ending in endings[:2]} == {("waited", "cat")}
    assert "30 s" in str(endings[0]) or "31 s" in str(endings[0])


@pytest.mark.parametrize("method", METHODS)
def test_whoever_falls_silent_is_named_by_all_although_most_do_not_see_it(method):
    net = MemoryNetwork(charter_of(7, method=method, deadlines={"wait": 20}), [float(k) for k in range(7)])
    net.pass_time()
    net.deliver(most=120)
    net.peers[3] = None
    endings = net.run()
    aborts = [ending for i, ending in enumerate(endings) if i != 3]
    assert {abort.kind for abort in aborts} <= {"waited", "withdrawn"}
    assert {abort.about for abort in aborts if abort.kind == "waited"} == {"dan"}
    assert all("for dan" in str(abort) for abort in aborts)


def test_the_whole_run_has_a_deadline():
    net = MemoryNetwork(charter_of(deadlines={"wait": 1000, "total": 50}), VALUES)
    endings = net.run(change=lambda i, j, frame: None if steps(frame) and {i, j} == {0, 1} else frame)
    assert {ending.kind for ending in endings} == {"waited"}


@pytest.mark.parametrize("method", METHODS)
def test_no_proof_within_the_rounds_is_an_abort(method):
    endings = MemoryNetwork(charter_of(method=method, rounds=3), VALUES).run()
    assert "no proof" in {ending.kind for ending in endings} <= {"no proof", "withdrawn"}


@pytest.mark.parametrize("method", METHODS)
def test_stopping_tells_the_others(method):
    net = MemoryNetwork(charter_of(method=method), VALUES)
    net.pass_time()
    net.deliver(most=14)
    net.peers[0].stop()
    endings = net.run()
    assert {ending.about for ending in endings} == {"ann"}
    assert [ending.kind for ending in endings] == ["stopped", "withdrawn", "withdrawn"]


@pytest.mark.parametrize("method", METHODS)
def test_a_pause_is_waited_for_and_gone_on_from(method):
    net = MemoryNetwork(charter_of(method=method, deadlines={"wait": 60}), VALUES)
    net.pass_time()
    net.deliver(most=14)
    net.peers[0].pause()
    paused = net.peers[0]
    assert paused.over
    assert (paused.ending.kind, paused.ending.about) == ("paused", "ann")
    net.deliver()
    net.peers[0] = None
    for _ in range(20):
        net.pass_time()
        net.deliver()
    assert net.peers[1].ending is None
    net.start(0)
    assert {ending.value for ending in net.run()} == {(1.0,)}


@pytest.mark.parametrize("method", METHODS)
def test_who_said_that_it_would_be_back_and_is_not_is_named_with_that(method):
    net = MemoryNetwork(charter_of(method=method, deadlines={"start": 10, "wait": 10}), VALUES)
    net.pass_time()
    net.deliver(most=14)
    net.peers[0].pause()
    net.deliver()
    net.peers[0] = None
    endings = net.run()[1:]
    assert ("waited", "ann") in {(ending.kind, ending.about) for ending in endings}
    assert all("said that it would be back" in str(ending) for ending in endings)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("talk", [Want(0), NotYet(1, ("cat",)), Done(heard=True), Welcome(bytes(16), 0)], ids=type)
def test_talk_is_no_progress(method, talk):
    """A neighbour that answers everything but what it is asked for is waited for as long as a silent one."""
    net = MemoryNetwork(
        charter_of(method=method, deadlines={"start": 10, "wait": 10, "total": 1000, "linger": 1}), VALUES
    )
    net.pass_time()
    net.deliver(most=14)
    net.mail.clear()
    net.peers[1].hear, began = (lambda *_: None), net.now  # it says only this from now on
    instance = net.peers[0].neighbours[1].instance
    talk = Welcome(instance, 0) if isinstance(talk, Welcome) else talk
    while net.peers[0].ending is None and net.now < began + 100:
        net.pass_time()
        for j in (0, 2):
            net.peers[j].hear(1, encode_control(talk), net.now)
        net.deliver(change=lambda i, j, frame: None if i == 1 else frame)
    assert net.now - began < 15
    ending = net.peers[0].ending
    assert ending.kind in ("waited", "withdrawn")
    assert "for ben" in str(ending)


# Leaving


def withdrawal_of(net, signer, last=-1, kind="waited", about=(), text="has had enough", by=None, digest=None):
    said = Withdrawal(signer, last, kind, about, text)
    notary = SimNotary(signer if by is None else by)
    signed = sign_withdrawal(said, net.charter.digest if digest is None else digest, notary)
    return net.setups[0].codec.encode_withdrawal(signed)


def under_way(n=5, **settings):
    net = MemoryNetwork(charter_of(n, **{"method": "search"} | settings), [float(k) for k in range(n)])
    net.pass_time()
    net.deliver(most=60)
    return net


def test_an_accusation_is_its_signers_word_and_ends_nobody_who_needs_nothing_more_from_it():
    net = under_way()
    peer = net.peers[0]
    net.peers[0].hear(1, withdrawal_of(net, 1, peer.exchange.round, "equivocation", (2,), "cat lies"), net.now)
    assert peer.ending is None, "what ben has told is enough for this round"
    net.run()
    assert (peer.ending.kind, peer.ending.about, peer.ending.evidence) == ("withdrawn", "ben", None)
    assert str(peer.ending) == "ben withdrew (equivocation), and says: cat lies"
    net.start(0)  # and it is no reason not to go on


@pytest.mark.parametrize("method", METHODS)
def test_a_withdrawal_reaches_everybody_and_each_believes_it_of_its_signer(method):
    net = under_way(7, method=method)
    net.peers[3].stop()
    endings = net.run()
    assert {ending.about for ending in endings} == {"dan"}


@pytest.mark.parametrize(
    "forged",
    [
        {"signer": 2, "by": 1},  # ben signs for cat
        {"signer": 2, "digest": bytes(32)},  # of another session
        {"signer": 9, "by": 2},
        {"signer": 2, "about": (9,)},
        {"signer": 2, "about": (0, 1, 2)},
        {"signer": 2, "text": "x" * 257},
        {"signer": 2, "kind": "x" * 33},
    ],
    ids=str,
)
def test_nobody_can_withdraw_for_another(forged):
    net = under_way()
    net.peers[0].hear(1, withdrawal_of(net, **forged), net.now)
    assert net.peers[0].ending is None
    assert net.peers[0].neighbours[1].bad == 1
    assert {ending.value for ending in net.run()} == {(2.0,)}


def test_of_two_withdrawals_the_first_counts_and_is_told_on_once():
    net = under_way()
    peer = net.peers[0]
    far = peer.exchange.round + 100
    net.sent.clear()
    for last in (far, -1, far, 0):
        peer.hear(1, withdrawal_of(net, 2, last), net.now)
    assert peer.ending is None
    assert [frame for i, _, frame in net.sent if i == 0 and frame[:1] == b"W"] == [withdrawal_of(net, 2, far)]


def test_who_has_withdrawn_still_tells_what_it_had_told():
    """Its part of the round may not have reached everybody; and it signs nothing more."""
    net = under_way()
    codec, ben = net.setups[0].codec, net.peers[1]
    net.peers[1].stop()
    net.mail.clear()  # nobody has heard of it
    last = ben.exchange.round
    net.sent.clear()
    net.run()
    told_by_ben = [one for i, _, frame in net.sent if i == 1 and told(frame) for one in codec.decode_all(frame)]
    own = [one.step for one in told_by_ben if one.signer == 1]
    assert own, "it answers who asks"
    assert max(own) <= last
    assert all("ben" in str(peer.ending) for peer in net.peers)


def last_signatures_lost(net, j):
    """Everybody's last signature reaches everybody but j."""
    codec = net.setups[0].codec

    def change(i, to, frame):
        if to != j or not told(frame):
            return frame
        kept = [one for one in codec.decode_all(frame) if one.kind != b"F"]
        return codec.encode_all(kept) if kept else None

    return change


def test_a_certificate_beats_a_withdrawal():
    """Who waited in vain for the last signatures has the answer when those who have them hear that it left."""
    net = MemoryNetwork(charter_of(5, method="search", deadlines={"wait": 5, "linger": 60}), [0.0, 1.0, 2.0, 3.0, 4.0])
    lose, waited = last_signatures_lost(net, 0), False
    for _ in range(60):
        net.pass_time()
        gone = net.peers[0].ending is not None
        waited = waited or gone
        net.deliver(change=(lambda i, j, frame: frame) if gone else lose)
    assert waited
    assert {peer.ending.value for peer in net.peers} == {(2.0,)}


def test_who_has_the_answer_keeps_what_somebody_who_withdrew_may_come_back_for():
    net = MemoryNetwork(charter_of(5, method="search", deadlines={"wait": 5, "linger": 5}), [0.0, 1.0, 2.0, 3.0, 4.0])
    net.run(change=last_signatures_lost(net, 0))
    assert net.peers[0].ending.kind == "waited"
    assert {net.peers[j].ending.value for j in range(1, 5)} == {(2.0,)}
    for i in range(5):
        net.start(i)
    assert {ending.value for ending in net.run()} == {(2.0,)}


# Talk


def test_asking_twice_is_answered_twice_and_answers_are_not_answered():
    """While a round is missing, and when the answer is there but for one who has not said so."""
    net = MemoryNetwork(charter_of(), VALUES)
    net.pass_time()
    net.deliver(most=14)
    peer = net.peers[0]
    check_answers(net, Want(10**6), NotYet(peer.exchange.round, tuple(peer.waiting_for)))
    net.run(lambda i, j, frame: None if (i, j) == (2, 0) and b"done" in frame else frame, most=2)
    assert peer.ending is not None
    assert not peer.over
    check_answers(net, Done(heard=False), Done(heard=True))


def check_answers(net, asked, answer):
    for talk, answers in ((asked, 1), (asked, 1), (answer, 0)):
        net.sent.clear()
        net.peers[0].hear(1, encode_control(talk), net.now)
        assert net.sent == [(0, 1, encode_control(answer))] * answers


ESCAPES = "one\x1b[2J\nmidst: aborted: two\x07"


def test_words_of_others_are_fit_to_print():
    """Whoever refuses or aborts says it in its own words: none of them may end a line or clear a screen."""
    net = MemoryNetwork(charter_of(), VALUES)
    net.pass_time()
    net.deliver(most=14)
    net.sent.clear()
    leaving = withdrawal_of(net, 1, last=-1, kind=ESCAPES[:20], text=ESCAPES)
    net.peers[0].hear(1, leaving, net.now)
    aborted = net.peers[0].ending
    assert "ben withdrew" in str(aborted)
    assert str(aborted).isprintable()
    net.peers[2].hear(1, encode_control(Refused(ESCAPES, ESCAPES)), net.now)
    refused = net.peers[2].ending
    assert refused.kind == "refused"
    assert str(refused).isprintable()
    assert "two" in str(refused)


@pytest.mark.parametrize("searching", [False, True])
def test_step_and_replay_are_the_same_code(searching):
    """In the middle of the iteration, and of the search after it."""
    net = MemoryNetwork(charter_of(), VALUES)
    net.pass_time()
    net.deliver(most=40)
    while searching and net.peers[0].exchange.search is None:
        net.deliver(most=1)
    peer = net.peers[0]
    assert isinstance(peer.exchange, ExactFinish)
    again = net.start(0)
    assert again.exchange.round == peer.exchange.round > 1
    assert again.exchange.state.z == peer.exchange.state.z
    assert again.exchange.search == peer.exchange.search
    assert (peer.exchange.search is not None) == searching
    assert again.exchange.frames(1, Want(0))[:2] == peer.exchange.frames(1, Want(0))[:2]
    assert isinstance(net.setups[0].codec.decode(again.exchange.frames(1, Want(0))[0]), StepFrame)
