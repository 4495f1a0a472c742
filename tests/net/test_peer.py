from __future__ import annotations

import struct

import numpy as np
import pytest
from table import Table, charter_of

from midst.errors import Aborted, InputError
from midst.net.exact_finish import ExactFinish
from midst.net.wire import (
    PROTOCOL,
    Abort,
    Done,
    Hello,
    NotYet,
    Refused,
    StepFrame,
    Want,
    Welcome,
    decode_control,
    encode_control,
)
from midst.protocol.participant import Statement, announcement_body, signed_bytes
from midst.simnet.notary import SimNotary, sim_certificate

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
    endings = Table(charter_of(method=method, **settings), VALUES).run()
    assert {ending.answer.value for ending in endings} == {(answer,)}
    assert {ending.answer.proof[0][2] for ending in endings} == {3}
    assert len({ending.answer.rounds for ending in endings}) == 1


def test_a_mean_is_proved_to_the_tolerance():
    endings = Table(charter_of(objective="mean", tolerance=1e-9), VALUES).run()
    assert len({ending.answer.value for ending in endings}) == 1
    found = endings[0].answer
    assert abs(found.value[0] - np.mean(VALUES)) <= found.bound <= 1e-9 * 5


def test_an_even_median_between_two_values_is_proved_to_the_tolerance():
    endings = Table(charter_of(4, side="any"), [1.0, 2.0, 3.0, 4.0]).run()
    assert 2.0 <= endings[0].answer.value[0] <= 3.0
    assert endings[0].answer.proof == ()


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
    assert Table(heavy, VALUES).run()[0].answer.value == (-2.0,)


def test_lists_are_pooled():
    lists = [[1.0, 2.0, 9.0], [-2.0], [5.0, 5.0, 5.0, -7.0]]
    endings = Table(charter_of(method="search", pooled=True, objective="quantile", quantile=0.75), lists).run()
    assert {ending.answer.value for ending in endings} == {(5.0,)}
    assert endings[0].answer.proof == ((4, 1, 8),)


def test_the_midpoint_of_an_even_number_of_values():
    settings = {"method": "search", "side": "midpoint", "resolution": 0.25}
    endings = Table(charter_of(4, **settings), [1.0, 2.0, 3.5, 4.0]).run()
    assert {ending.answer.value for ending in endings} == {(2.75,)}


def test_a_search_needs_no_bounds():
    values = [1e-300, -2.0, 1.7e308, 5.0, 4.0]
    endings = Table(charter_of(5, method="search", bounds=None), values).run()
    assert {ending.answer.value for ending in endings} == {(4.0,)}


def test_nobody_is_exposed_by_a_search():
    assert not any(ending.answer.exposed for ending in Table(charter_of(method="search"), VALUES).run())


@pytest.mark.parametrize("method", METHODS)
def test_vectors_coordinate_by_coordinate(method):
    rows = [[1.0, 7.0], [2.0, -3.0], [3.0, 0.5]]
    endings = Table(charter_of(coordinates=2, method=method), rows).run()
    assert endings[0].answer.value == (2.0, 0.5)
    assert endings[0].answer.to_dict()["value"] == [2.0, 0.5]


def test_frames_have_one_size_whatever_the_branch():
    table = Table(charter_of(5), [0.0, 1.0, 2.0, 3.0, 4.0])
    table.run()
    branches = {peer.exchange.state.branch for peer in table.peers}
    assert len({len(frame) for _, _, frame in table.sent if steps(frame)}) == 1
    assert len(branches) > 1


def test_nothing_drawn_leaves_before_the_neighbour_has_our_number_on_disk():
    table = Table(charter_of(2), [1.0, 2.0])
    table.pass_time()
    table.deliver(change=lambda i, j, frame: None if frame[:9] == encode_control(Welcome(b"", 0))[:9] else frame)
    assert not [1 for _, _, frame in table.sent if steps(frame)]


# Resuming


def said_by(table):
    """All that was said of the iteration, and all that was signed."""
    codec = table.setups[0].codec
    iterated = {(i, j, frame) for i, j, frame in table.sent if steps(frame)}
    signed = {one.body for _, _, frame in table.sent if told(frame) for one in codec.decode_all(frame)}
    return iterated, signed


@pytest.mark.parametrize("method", METHODS)
def test_a_participant_killed_after_any_frame_goes_on_to_the_same_end(method):
    charter = charter_of(method=method)
    calm = Table(charter, VALUES)
    calm.run()
    for victim in range(3):
        for moment in range(1, len(calm.sent), 7):
            table = Table(charter, VALUES)
            table.pass_time()
            table.deliver(most=moment)
            table.mail.clear()
            table.sit(victim)
            endings = table.run()
            assert {ending.answer.value for ending in endings} == {(1.0,)}
            assert said_by(table) == said_by(calm)


@pytest.mark.parametrize("method", METHODS)
def test_who_has_ended_says_so_again_and_needs_nobody(method):
    table = Table(charter_of(method=method), VALUES)
    first = table.run()[0].answer
    again = table.sit(0)
    assert again.over
    assert again.ending.answer == first
    assert b"S" not in table.files[0].data[20:21]


@pytest.mark.parametrize("method", METHODS)
def test_after_the_end_no_secret_is_kept(method):
    table = Table(charter_of(method=method), VALUES)
    assert all(peer.opening.secret in file.data for peer, file in zip(table.peers, table.files, strict=True))
    table.run()
    for setup, file, peer in zip(table.setups, table.files, table.peers, strict=True):
        assert not peer.opening.z or peer.opening.z not in file.data
        assert peer.opening.value not in file.data
        assert peer.opening.secret not in file.data
        assert setup.session in file.data


@pytest.mark.parametrize("method", METHODS)
def test_a_lost_journal_is_noticed_and_refused(method):
    table = Table(charter_of(method=method), VALUES)
    table.pass_time()
    table.deliver(most=12)
    table.mail.clear()
    table.files[1].data = b""
    table.sit(1, entropy=lambda count: bytes(range(1, 1 + count % 200)) + bytes(max(0, count - count % 200)))
    endings = table.run()
    assert {ending.aborted.kind for ending in endings} <= {"journal lost", "refused"}
    assert {ending.aborted.about for ending in endings if ending.aborted.kind == "journal lost"} == {"ben"}
    with pytest.raises(Aborted, match="start a new one"):
        table.sit(0)


def test_a_journal_of_another_value_is_refused():
    table = Table(charter_of(), VALUES)
    with pytest.raises(InputError, match="not the one this session began with") as caught:
        table.sit(0, setup=Table(charter_of(), [7.5, 0.0, 0.0]).setups[0])
    assert "7.5" not in str(caught.value)


def test_a_journal_of_another_session_is_refused():
    table = Table(charter_of(), VALUES)
    with pytest.raises(InputError, match="another session"):
        table.sit(0, setup=Table(charter_of(session="other"), VALUES).setups[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_full_disk_stops_before_anything_is_sent(method):
    table = Table(charter_of(method=method), VALUES)
    table.pass_time()
    table.deliver(most=14)
    table.files[2].full = True
    before = len(table.sent)
    endings = table.run()
    assert {ending.aborted.kind for ending in endings} == {"disk"}
    assert {ending.aborted.about for ending in endings} == {"cat"}
    own = table.peers[2].exchange.round - (method == "consensus")
    assert not [1 for i, _, frame in table.sent[before:] if i == 2 and steps(frame)]
    signed = [
        one for i, _, frame in table.sent if i == 2 and told(frame) for one in table.setups[0].codec.decode_all(frame)
    ]
    assert all(one.step <= own for one in signed if one.signer == 2)
    table.files[2].full = False
    for i in range(3):
        table.sit(i)
    assert {ending.answer.value for ending in table.run()} == {(1.0,)}


def test_the_x_of_a_round_that_is_not_made_is_told_to_nobody():
    """Not even to who asks for it after the iteration is over."""
    for settings in ({}, {"objective": "mean"}):
        table = Table(charter_of(**settings), VALUES)
        table.run()
        codec, part = table.setups[0].codec, table.peers[0].exchange
        rounds = [codec.decode(frame).message.round for _, _, frame in table.sent if steps(frame)]
        for since in range(max(rounds) + 3):
            kept = [codec.decode(frame) for frame in part.frames(1, since)]
            assert max([step.message.round for step in kept if isinstance(step, StepFrame)], default=0) <= max(rounds)


# Distrust


def forge(table, j, **changes):
    """A change to what participant 0 sends to j from round 4 on."""
    codec = table.setups[0].codec

    def change(i, to, frame):
        if (i, to) != (0, j) or not steps(frame):
            return frame
        step = codec.decode(frame)
        if step.message.round < 4:
            return frame
        return changes["make"](codec, step)

    return change


def test_two_frames_for_one_round_are_equivocation():
    table = Table(charter_of(), VALUES)

    def twice(i, j, frame):
        if (i, j) == (0, 1) and steps(frame) and (step := table.setups[0].codec.decode(frame)).message.round == 4:
            message = step.message
            other = type(message)(message.round, message.number + 0.25)
            table.peers[1].hear(0, frame, table.now)
            return table.setups[0].codec.encode_step(other, step.digest, step.maxima)
        return frame

    endings = table.run(change=twice)
    assert {(ending.aborted.kind, ending.aborted.about) for ending in endings} == {("equivocation", "ann")}


def test_mirrors_that_come_apart_stop_the_run():
    table = Table(charter_of(), VALUES)

    def lie(codec, step):
        message = step.message
        return codec.encode_step(type(message)(message.round, message.number + 0.25), step.digest, step.maxima)

    endings = table.run(change=forge(table, 1, make=lie))
    assert {ending.aborted.kind for ending in endings} == {"diverged"}
    assert {ending.aborted.about for ending in endings} <= {"ann", "ben"}


def test_frames_that_cannot_be_are_counted_and_then_end_it():
    table = Table(charter_of(), VALUES)
    table.pass_time()
    table.deliver()
    table = Table(charter_of(), VALUES)
    for _ in range(7):
        table.peers[1].hear(0, b"S nonsense", 0.0)
    assert table.peers[1].ending is None
    table.peers[1].hear(0, b"", 0.0)
    assert table.peers[1].ending.aborted.kind == "broken protocol"


def test_a_round_far_ahead_is_a_broken_protocol():
    table = Table(charter_of(), VALUES)

    def ahead(codec, step):
        message = step.message
        return codec.encode_step(type(message)(message.round + 5, message.number), step.digest, step.maxima)

    endings = table.run(change=forge(table, 1, make=ahead))
    assert {(ending.aborted.kind, ending.aborted.about) for ending in endings} == {("broken protocol", "ann")}


def test_statements_that_come_during_the_iteration_cannot_end_it():
    """Kept unread until their signatures can be checked: those that are wrong are dropped, and asked for rightly."""
    table = Table(charter_of(), VALUES)
    table.pass_time()
    table.deliver(most=20)
    peer = table.peers[1]
    assert peer.exchange.search is None
    body = announcement_body(2, bytes(16), bytes(32), 1, sim_certificate(2))
    early = table.setups[0].codec.encode_all([Statement(body, b"no signature of cat's")])
    peer.hear(0, early, table.now)
    assert peer.neighbours[0].bad == 0
    peer.hear(0, table.setups[0].codec.encode_all([Statement(b"A" + b"\xff" * 4 + bytes(80), b"")]), table.now)
    assert peer.neighbours[0].bad == 1, "what is no statement at all is put down to who tells it"
    assert {ending.answer.value for ending in table.run()} == {(1.0,)}


@pytest.mark.parametrize("far", [0, 1, 30])
def test_what_we_have_signed_and_know_nothing_of_ends_it(far):
    """A neighbour shows our own signature on it: our disk was put back, or we run twice."""
    table = Table(charter_of(method="search"), VALUES)
    table.pass_time()
    table.deliver(most=40)
    peer = table.peers[0]
    body = b"C" + struct.pack("<HH", 0, peer.exchange.round + far) + bytes(32 + 8 * 4)
    shown = Statement(body, SimNotary(0).sign(signed_bytes(table.charter.digest, body)))
    peer.hear(1, table.setups[0].codec.encode_all([shown]), table.now)
    assert (peer.ending.aborted.kind, peer.ending.aborted.about) == ("journal lost", "ann")
    with pytest.raises(Aborted, match="start a new one"):
        table.sit(0)


def test_who_only_says_that_we_have_signed_more_is_waited_for_by_name():
    table = Table(charter_of(method="search", deadlines={"start": 30}), VALUES)

    def boast(i, j, frame):
        if (i, j) != (1, 0) or frame[:9] != encode_control(Welcome(b"", 0))[:9]:
            return frame
        said = table.setups[0].codec.decode(frame)
        return encode_control(Welcome(said.instance, said.wants, 7, b"d" * 16))

    endings = table.run(change=boast)
    assert {(ending.aborted.kind, ending.aborted.about) for ending in endings[:1]} == {("waited", "ben")}
    table.sit(0)  # and nothing keeps it from going on


@pytest.mark.parametrize("step", [1, 3])
def test_a_disk_that_was_put_back_is_noticed_by_what_neighbours_show(step):
    """An old copy of the journal, with the same secrets: nothing else is signed than before, or nothing at all."""
    table = Table(charter_of(method="search"), VALUES)
    old = None
    table.pass_time()
    while table.mail and table.peers[0].ending is None:
        table.deliver(most=1)
        if old is None and table.peers[0].exchange.round == step:
            old = table.files[0].data
        if table.peers[0].exchange.round == step + 2:
            break
    before = said_by(table)[1]
    table.mail.clear()
    table.files[0].data = old
    table.sit(0)
    table.run()
    mine = {body for body in said_by(table)[1] - before if body[1:3] == b"\0\0"}
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
    table = Table(charter_of(2), [1.0, 2.0])
    charter, ann = table.charter, table.peers[0]
    plain = {
        "version": PROTOCOL, "sender": "ben", "receiver": "ann", "digest": charter.digest,
        "fields": charter.field_digests(), "instance": bytes(16), "wants": 0,
    }  # fmt: skip
    ann.hear(1, encode_control(Hello(**(plain | change))), 0.0)
    answer = table.setups[0].codec.decode(table.sent[-1][2])
    refused = next(table.setups[0].codec.decode(f) for i, j, f in table.sent if i == 0 and b"refused" in f)
    assert (refused.kind, words in refused.text) == (kind, True), answer


def test_a_different_charter_is_refused_by_what_differs():
    ours, theirs = charter_of(sigma=0.5), charter_of(sigma=0.6, arity=4)
    table, other = Table(ours, VALUES), Table(theirs, VALUES)
    table.peers[1] = other.peers[1]
    other.peers[1]._send = lambda j, frame: table.mail.append((1, j, frame))
    table.run(most=2)
    assert other.peers[1].ending.aborted.kind == "refused"
    assert "sigma" in str(other.peers[1].ending.aborted)
    assert "arity" in str(other.peers[1].ending.aborted)
    assert {peer.ending.aborted.about for peer in (table.peers[0], table.peers[2])} == {"ben"}
    for i in range(3):  # nothing has begun: with the right charter it goes on from there
        table.sit(i)
    assert {ending.answer.value for ending in table.run()} == {(1.0,)}


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
    table, other = Table(charter_of(**searching | ours), VALUES), Table(charter_of(**searching | theirs), VALUES)
    table.peers[1] = other.peers[1]
    other.peers[1]._send = lambda j, frame: table.mail.append((1, j, frame))
    table.run(most=2)
    assert other.peers[1].ending.aborted.kind == "refused"
    assert key in str(other.peers[1].ending.aborted)
    assert {peer.ending.aborted.about for peer in (table.peers[0], table.peers[2])} == {"ben"}
    assert not any(told(frame) for _, _, frame in table.sent)


# Deadlines


@pytest.mark.parametrize("method", METHODS)
def test_whoever_never_comes_is_named(method):
    table = Table(charter_of(method=method, deadlines={"start": 30}), VALUES)
    table.peers[2] = None
    endings = table.run()
    assert {(ending.aborted.kind, ending.aborted.about) for ending in endings[:2]} == {("waited", "cat")}
    assert "30 s" in str(endings[0].aborted) or "31 s" in str(endings[0].aborted)


@pytest.mark.parametrize("method", METHODS)
def test_whoever_falls_silent_is_named_by_all_although_most_do_not_see_it(method):
    table = Table(charter_of(7, method=method, deadlines={"wait": 20}), [float(k) for k in range(7)])
    table.pass_time()
    table.deliver(most=120)
    table.peers[3] = None
    endings = table.run()
    aborts = [ending.aborted for i, ending in enumerate(endings) if i != 3]
    assert {(abort.kind, abort.about) for abort in aborts} == {("waited", "dan")}


def test_the_whole_run_has_a_deadline():
    table = Table(charter_of(deadlines={"wait": 1000, "total": 50}), VALUES)
    endings = table.run(change=lambda i, j, frame: None if steps(frame) and {i, j} == {0, 1} else frame)
    assert {ending.aborted.kind for ending in endings} == {"waited"}


@pytest.mark.parametrize("method", METHODS)
def test_no_proof_within_the_rounds_is_an_abort(method):
    endings = Table(charter_of(method=method, rounds=3), VALUES).run()
    assert {ending.aborted.kind for ending in endings} == {"no proof"}


@pytest.mark.parametrize("method", METHODS)
def test_stopping_tells_the_others(method):
    table = Table(charter_of(method=method), VALUES)
    table.pass_time()
    table.deliver(most=14)
    table.peers[0].stop("stopped", "was stopped by its operator")
    assert {ending.aborted.about for ending in table.run()} == {"ann"}


# Talk


def test_asking_twice_is_answered_twice_and_answers_are_not_answered():
    """While a round is missing, and when the answer is there but for one who has not said so."""
    table = Table(charter_of(), VALUES)
    table.pass_time()
    table.deliver(most=14)
    peer = table.peers[0]
    check_answers(table, Want(10**6), NotYet(peer.exchange.round, tuple(peer.waiting_for)))
    table.run(lambda i, j, frame: None if (i, j) == (2, 0) and b"done" in frame else frame, most=2)
    assert peer.ending is not None
    assert not peer.over
    check_answers(table, Done(heard=False), Done(heard=True))


def check_answers(table, asked, answer):
    for talk, answers in ((asked, 1), (asked, 1), (answer, 0)):
        table.sent.clear()
        table.peers[0].hear(1, encode_control(talk), table.now)
        assert table.sent == [(0, 1, encode_control(answer))] * answers


def test_an_abort_about_nobody_known_is_put_down_to_whoever_said_it():
    table = Table(charter_of(), VALUES)
    table.peers[0].hear(1, encode_control(Abort("waited\x07", "nobody\n", "x", "so\nwhat")), 0.0)
    aborted = table.peers[0].ending.aborted
    assert (aborted.about, aborted.kind, str(aborted)) == ("ben", "waited ", "so what")


ESCAPES = "one\x1b[2J\nmidst: aborted: two\x07"


def test_words_of_others_are_fit_to_print():
    """Whoever refuses or aborts says it in its own words: none of them may end a line or clear a screen."""
    table = Table(charter_of(), VALUES)
    table.pass_time()
    table.deliver(most=14)
    table.sent.clear()
    table.peers[0].hear(1, encode_control(Abort(ESCAPES, "ben", ESCAPES, ESCAPES)), table.now)
    aborted = table.peers[0].ending.aborted
    passed_on = decode_control(table.sent[-1][2])
    for words in (aborted.kind, str(aborted), passed_on.kind, passed_on.origin, passed_on.text):
        assert words.isprintable()
    table.peers[2].hear(1, encode_control(Refused(ESCAPES, ESCAPES)), table.now)
    refused = table.peers[2].ending.aborted
    assert refused.kind == "refused"
    assert str(refused).isprintable()
    assert "two" in str(refused)


@pytest.mark.parametrize("searching", [False, True])
def test_step_and_replay_are_the_same_code(searching):
    """In the middle of the iteration, and of the search after it."""
    table = Table(charter_of(), VALUES)
    table.pass_time()
    table.deliver(most=40)
    while searching and table.peers[0].exchange.search is None:
        table.deliver(most=1)
    peer = table.peers[0]
    assert isinstance(peer.exchange, ExactFinish)
    again = table.sit(0)
    assert again.exchange.round == peer.exchange.round > 1
    assert again.exchange.state.z == peer.exchange.state.z
    assert again.exchange.search == peer.exchange.search
    assert (peer.exchange.search is not None) == searching
    assert again.exchange.frames(1, 0)[:2] == peer.exchange.frames(1, 0)[:2]
    assert isinstance(table.setups[0].codec.decode(again.exchange.frames(1, 0)[0]), StepFrame)
