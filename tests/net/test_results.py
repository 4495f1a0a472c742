"""A result as a file: whoever has the charter can check it, and nothing in it can be changed."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from simnet.disk import SimFile

from midst import graphs
from midst.cli import main
from midst.cli.noise import settle_noise
from midst.errors import InputError
from midst.net.answer import Answer
from midst.net.charter import Charter, make_charter
from midst.net.journal import Journal
from midst.net.local import make_party
from midst.net.notary import CertifiedNotary
from midst.net.peer import Peer
from midst.net.results import ResultFile, read_result, result_json, verify_result
from midst.net.session import Session, resume
from midst.net.setup import make_setup
from midst.protocol.noise import JointNoise

VALUES = [31.5, 2.25, 77.0, 40.125]


def play(charter: Charter, identities: Any, values: Any) -> list[Answer]:
    """A session in one memory, with real keys."""
    mail: list[tuple[int, int, bytes]] = []
    peers = []
    for i, (identity, value) in enumerate(zip(identities, values, strict=True)):
        setup = make_setup(charter, identity.name, value, CertifiedNotary(charter, identity))
        journal = Journal(SimFile(Random(0)), identity.name)
        session = resume(setup, journal, Random(i).randbytes)
        assert isinstance(session, Session)
        peers.append(Peer(session, lambda j, f, i=i: mail.append((i, j, f)), 0.0))
    now = 0.0
    while not all(peer.over for peer in peers):
        now += 0.6
        for peer in peers:
            peer.tick(now)
        while mail:
            i, j, frame = mail.pop(0)
            peers[j].hear(i, frame, now)
    found = [peer.ending for peer in peers if isinstance(peer.ending, Answer)]
    assert len(found) == len(peers)
    return found


@pytest.fixture(scope="module")
def made() -> tuple[Charter, dict[str, Any]]:
    """The charter of a session, and what the file of its result holds."""
    with make_party(graphs.ring(4), method="search", bounds=[0, 100], definition="inverted_cdf_high") as party:
        found = play(party.charter, party.identities, VALUES)
        files = {result_json(party.charter, each) for each in found}
        assert len({json.dumps(json.loads(file)["totals"]) for file in files}) == 1
        return party.charter, json.loads(files.pop())


@pytest.fixture(scope="module", params=["lists", "coordinates", "midpoint", "consensus", "maximum"])
def other(request: pytest.FixtureRequest) -> tuple[Charter, dict[str, Any], Any]:
    """Other kinds of session, and the answers they must have."""
    rows = [[1.0, 7.0], [2.0, -3.0], [3.0, 0.5], [9.0, 4.0]]
    kinds: dict[str, tuple[dict[str, Any], Any, Any]] = {
        "lists": ({"method": "search", "pooled": True}, [[1.0, 2.0], [9.0], [4.0, 4.5, 5.0], [8.0]], 4.5),
        "coordinates": ({"method": "search", "coordinates": 2}, rows, [2.0, 0.5]),
        "midpoint": ({"method": "search", "definition": "averaged_inverted_cdf", "resolution": 0.125}, VALUES, 35.8125),
        "consensus": ({"method": "consensus", "bounds": [0, 100]}, VALUES, 31.5),
        "maximum": ({"method": "search", "objective": "maximum"}, VALUES, 77.0),
    }
    settings, values, answer = kinds[request.param]
    with make_party(graphs.complete(4), **settings) as party:
        found = play(party.charter, party.identities, values)[0]
        return party.charter, json.loads(result_json(party.charter, found)), answer


def check(charter: Charter, plain: dict[str, Any]) -> Any:
    result = msgspec.json.decode(json.dumps(plain).encode(), type=ResultFile)
    told = verify_result(charter, result).to_dict()
    return {name: told[name] for name in ("value", "certified", "counts")}


def test_a_result_proves_its_answer(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    told = {"value": 40.125, "certified": True, "counts": [{"below": 2, "above": 1, "total": 4}]}
    assert check(charter, plain) == told
    assert plain["value"] == 40.125


def test_results_of_other_kinds(other: tuple[Charter, dict[str, Any], Any]) -> None:
    charter, plain, answer = other
    assert check(charter, plain)["value"] == answer == plain["value"]


def test_nothing_private_is_in_it(made: tuple[Charter, dict[str, Any]]) -> None:
    _, plain = made
    text = json.dumps(plain)
    assert not any(str(value) in text for value in VALUES if value != 40.125)
    assert set(plain) == set(ResultFile.__struct_fields__)


def test_a_mean_has_no_certificate() -> None:
    with make_party(graphs.ring(3), method="consensus", objective="mean", bounds=[0, 100]) as party:
        found = play(party.charter, party.identities, VALUES[:3])[0]
        with pytest.raises(InputError, match="which nobody signs"):
            result_json(party.charter, found)


# What is changed is refused


def places(entry: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where there is a number or a text in what a file holds."""
    if isinstance(entry, dict):
        return [place for key, inner in entry.items() for place in places(inner, (*path, key))]
    if isinstance(entry, list) and entry:
        return [place for k, inner in enumerate(entry) for place in places(inner, (*path, k))]
    return [path]


def at(entry: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        entry = entry[key]
    return entry


@given(st.data())
@settings(max_examples=250, deadline=None)
def test_any_entry_changed_is_refused(made: tuple[Charter, dict[str, Any]], data: st.DataObject) -> None:
    charter, true = made
    plain = copy.deepcopy(true)
    place = data.draw(st.sampled_from(places(plain)))
    holder, old = at(plain, place[:-1]), at(plain, place)
    if isinstance(old, str):
        k = data.draw(st.integers(0, len(old) - 1))
        letter = data.draw(st.sampled_from("0123456789abcdefABCDEF+/=_ x-é"))
        new = data.draw(st.sampled_from([old[:k] + letter + old[k + 1 :], old[:k] + old[k + 1 :], old + letter, ""]))
        if new == old:
            return
    elif isinstance(old, list):
        new = data.draw(st.sampled_from([["1"], [["1"]], [[]]]))
    else:
        new = data.draw(st.integers(-5, 2**66) | st.floats(-1e9, 1e9))
        if new == old:
            return
    holder[place[-1]] = new
    try:
        check(charter, plain)
    except (InputError, msgspec.ValidationError) as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017
        return
    raise AssertionError(f"{place}: {old!r} became {new!r}")


NOISE = settle_noise(JointNoise(1, 1e-6, 1), (0, 100), 0.5, 1)
WHOLE = {"bounds": [-9, 9], "resolution": 1}
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "median": ({"bounds": [0, 100]}, VALUES),
    "unverified": ({"bounds": [0, 100], "verify": False}, VALUES),
    "consensus": ({"method": "consensus", "bounds": [0, 100]}, VALUES),
    "quantile of coordinates": (
        {"objective": "quantile", "quantile": 0.25, "coordinates": 2},
        [[1.0, 7.0], [2.0, -3.0], [3.0, 0.5], [9.0, 4.0]],
    ),
    "maximum": ({"objective": "maximum", "bounds": [0, 100], "resolution": 0.125}, VALUES),
    "midpoint": ({"definition": "averaged_inverted_cdf", "bounds": [0, 100], "resolution": 0.125}, VALUES),
    "mean": ({"objective": "mean", "bounds": [0, 100], "resolution": 0.5}, VALUES),
    "lists": ({"pooled": True, **WHOLE}, [[1.0, 2.0], [9.0], [4.0, 4.5, 5.0], [8.0]]),
    "noise": (
        {"bounds": [0, 100], "resolution": 0.5, "pooled": True, "arity": 1, "noise": NOISE},
        [list(range(90))] * 4,
    ),
    "statistics": (
        {"statistics": ["quartiles", "mean", "mad", "histogram:0,3,9"], **WHOLE},
        [[1.0, 2.0, 0.0], [9.0, 0.0, 3.0], [4.0, 4.0, 5.0], [8.0, 7.0]],
    ),
    "columns": (
        {"statistics": ["median", "top:2"], "columns": [{"name": "los"}, {"name": "cost"}], **WHOLE},
        [[[1.0, 7.0], [2.0, -3.0]], [[3.0, 0.0], [4.0, 0.0]], [[9.0, 4.0]], [[0.0, 2.0], [5.0, 5.0]]],
    ),
}


def edits(entry: Any) -> list[Any]:
    """What somebody may write in place of a field or an item."""
    if isinstance(entry, str):
        other = "1" if entry[-1:] != "1" else "2"
        texts = ["", entry[:-1] + other, other + entry[1:], f"{entry}00", f"0{entry}", f" {entry}", f"{entry}\n"]
        return [*texts, entry[:-2], entry.upper(), entry + "é", f"+{entry}", "9" * 5000, 1, None, [entry]]
    if isinstance(entry, dict):
        fewer = [{key: entry[key] for key in entry if key != left} for left in entry]
        return [*fewer, {**entry, "added": 1}, {**entry, "an\nother": None}, {}, [], None]
    if isinstance(entry, list):
        fewer = [entry[:k] + entry[k + 1 :] for k in range(len(entry))]
        return [*fewer, [*entry, *(entry[-1:] or ["1"])], entry[::-1], [["1"]], None, {}]
    if entry is None:
        return [0.0, [], {}, "null"]
    return [entry + 1, entry - 1, -entry, entry + 0.5, str(entry), None, [entry], 10**400, True]


@pytest.fixture(scope="module", params=KINDS)
def kept(request: pytest.FixtureRequest) -> tuple[Charter, dict[str, Any]]:
    """A session of every kind, and what the file of its result holds."""
    settings, values = KINDS[request.param]
    with make_party(graphs.complete(4), **{"method": "search", **settings}) as party:
        found = play(party.charter, party.identities, values)[0]
        return party.charter, json.loads(result_json(party.charter, found))


def test_every_field_is_checked(kept: tuple[Charter, dict[str, Any]], tmp_path: Path) -> None:
    """Whatever is edited, added or left out, anywhere in the file: it is refused in a line that names the field."""
    charter, plain = kept
    path = tmp_path / "r.json"
    path.write_text(json.dumps(plain))
    found = verify_result(charter, read_result(path))
    assert found.statistics or found.rank_error or found.standing(verified=True)[1]
    met = set()
    for place in nodes(plain):
        shape = tuple(step if isinstance(step, str) else 0 for step in place)
        wrong = edits(at(plain, place))[:: 3 if shape in met else 1]  # fewer for the second of a kind
        met.add(shape)
        for new in wrong:
            if repr(new) == repr(at(plain, place)):
                continue
            changed = copy.deepcopy(plain)
            if place:
                at(changed, place[:-1])[place[-1]] = new
            else:
                changed = new
            path.write_text(json.dumps(changed))
            with pytest.raises(InputError) as refused:
                verify_result(charter, read_result(path))
            told = str(refused.value)
            assert len(told.splitlines()) == 1, told
            assert not place or place[0] in told, (place, new, told)


def test_a_field_added_left_out_or_there_twice_is_named(kept: tuple[Charter, dict[str, Any]], tmp_path: Path) -> None:
    charter, plain = kept
    Path(tmp_path / "c.toml").write_text(charter.to_toml())
    text = json.dumps(plain)
    cases = [(name, {key: plain[key] for key in plain if key != name}) for name in plain]
    texts = [(name, json.dumps(changed)) for name, changed in cases]
    texts += [(name, f'{{"{name}": 1, {text[1:]}') for name in (*plain, "midst", "added")]
    for name, changed in texts:
        (tmp_path / "r.json").write_text(changed)
        done = verify(str(tmp_path / "r.json"), "--charter", str(tmp_path / "c.toml"))
        refused(done, name, str(tmp_path / "r.json"))


def nodes(entry: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All that a file holds: fields and items, at every depth."""
    inner = entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ()
    return [path, *(place for key, each in inner for place in nodes(each, (*path, key)))]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_entry_left_out_or_doubled_is_refused(made: tuple[Charter, dict[str, Any]], data: st.DataObject) -> None:
    charter, true = made
    plain = copy.deepcopy(true)
    lists = [plain["totals"], *plain["totals"], plain["participants"]]
    chosen = data.draw(st.sampled_from(lists))
    k = data.draw(st.integers(0, len(chosen) - 1))
    if data.draw(st.booleans()):
        del chosen[k]
    else:
        chosen.insert(data.draw(st.integers(0, len(chosen))), copy.deepcopy(chosen[k]))
    with pytest.raises(InputError):
        check(charter, plain)


def test_participants_in_another_order_are_refused(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    with pytest.raises(InputError, match="the names of its participants are not the charter's"):
        check(charter, plain | {"participants": plain["participants"][::-1]})


def test_another_charter_is_refused(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    changed = make_charter(msgspec.to_builtins(charter) | {"arity": 2}, "charter")
    with pytest.raises(InputError, match="yours is"):
        check(changed, plain)
    with pytest.raises(InputError, match="not certified"):
        check(changed, plain | {"charter": changed.digest.hex()})


def test_a_result_of_another_format_is_refused(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    with pytest.raises(msgspec.ValidationError, match="midst_result"):
        check(charter, plain | {"midst_result": 3})


# Files


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"midst_result": 1}', b"[" * 10**6, b'{"value": 1e999}'],
    ids=["empty", "cut", "a list", "null", "bytes", "little", "deep", "huge"],
)
def test_what_is_no_result_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "r.json").write_bytes(data)
    with pytest.raises(InputError, match="not a result that this version of midst wrote"):
        read_result(tmp_path / "r.json")


def test_a_file_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midst.net.results._LARGEST_FILE", 100)
    (tmp_path / "r.json").write_bytes(b" " * 101)
    with pytest.raises(InputError, match="larger than"):
        read_result(tmp_path / "r.json")


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_result(path)
    assert len(str(refused.value).splitlines()) == 1


# The command


@pytest.fixture
def folder(made: tuple[Charter, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    charter, plain = made
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(charter.to_toml())
    Path("r.json").write_text(json.dumps(plain))
    return tmp_path


def verify(*words: str) -> Result:
    return CliRunner().invoke(main, ["verify", *words])


@pytest.mark.usefixtures("folder")
def test_the_command_for_people_and_for_programs(made: tuple[Charter, dict[str, Any]]) -> None:
    done = verify("r.json", "--charter", "c.toml")
    assert (done.exit_code, done.stderr) == (0, "")
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert rows["proof"] == "2 below, 1 above, of 4"
    assert rows["certified"] == "by all 4: node0, node1, node2, node3"
    assert made[0].digest.hex() in rows["session"]
    assert "40.125" in done.stdout
    found = json.loads(verify("r.json", "--charter", "c.toml", "--json").stdout)
    assert (found["value"], found["certified"], found["session"]) == (40.125, True, made[0].session)


def change_value(plain: dict[str, Any]) -> None:
    plain["value"] = 31.5


def change_total(plain: dict[str, Any]) -> None:
    a, b, *rest = plain["totals"][0]
    plain["totals"][0] = [str(int(a) + 1), str(int(b) - 1), *rest] if b != "0" else [str(int(a) - 1), "1", *rest]


def change_signature(plain: dict[str, Any]) -> None:
    signature = plain["participants"][2]["signature"]
    plain["participants"][2]["signature"] = ("0" if signature[0] != "0" else "1") + signature[1:]


def change_signer(plain: dict[str, Any]) -> None:
    one, two = plain["participants"][:2]
    one["signature"], two["signature"] = two["signature"], one["signature"]


def change_certificate(plain: dict[str, Any]) -> None:
    plain["participants"][1]["certificate"] = plain["participants"][2]["certificate"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_value, "has another value than the file"),
        (change_total, "not certified"),
        (change_signature, "the signature of node2 is not on this answer"),
        (change_signer, "the signature of node0 is not on this answer"),
        (change_certificate, "node1 shows another certificate than the charter's"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_command_refuses_what_was_changed(made: tuple[Charter, dict[str, Any]], change: Any, words: str) -> None:
    plain = copy.deepcopy(made[1])
    change(plain)
    Path("changed.json").write_text(json.dumps(plain))
    refused(verify("changed.json", "--charter", "c.toml"), words, "changed.json")


@pytest.mark.usefixtures("folder")
def test_the_command_refuses_other_files(made: tuple[Charter, dict[str, Any]]) -> None:
    Path("text.json").write_text("a shopping list")
    elsewhere = make_charter(msgspec.to_builtins(made[0]) | {"session": "another"}, "charter")
    Path("other.toml").write_text(elsewhere.to_toml())
    refused(verify("none.json", "--charter", "c.toml"), "No such file", "none.json")
    refused(verify(".", "--charter", "c.toml"), "directory", ".")
    refused(verify("text.json", "--charter", "c.toml"), "not a result", "text.json")
    refused(verify("c.toml", "--charter", "c.toml"), "not a result", "c.toml")
    refused(verify("r.json", "--charter", "none.toml"), "No such file", "none.toml")
    refused(verify("r.json", "--charter", "r.json"), "not TOML", "r.json")
    refused(verify("r.json", "--charter", "other.toml"), "compare both", "r.json")
    refused(verify("r.json"), "Missing option '--charter'", "")
    refused(verify("--charter", "c.toml"), "Missing argument", "")


def refused(done: Result, words: str, file: str) -> None:
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"midst: error: {file}")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_up_writes_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.txt").write_text("\n".join(map(str, VALUES[:3])))
    line = ["up", "--graph", "ring", "--values", "v.txt", "--method", "search", "--out", "r.json", "--json"]
    done = subprocess.run([sys.executable, "-m", "midst", *line], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(verify("r.json", "--charter", "r.toml", "--json").stdout)
    assert found["value"] == json.loads(done.stdout)["value"] == np.median(VALUES[:3])
