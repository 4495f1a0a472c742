"""The charter: what is read is what was written, what is the same has one digest, and what cannot be run is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from midst import Mean, Quantile
from midst.cli import main
from midst.errors import InputError
from midst.net import charter_files
from midst.net.charter import (
    Charter,
    Deadlines,
    ParticipantEntry,
    check_identity,
    differing,
    make_charter,
    split_address,
    strangers,
)
from midst.net.charter_files import parse_invitation, read_charter
from midst.net.identity import keys
from midst.protocol.keys import Grid
from midst.protocol.search import Goal


def participant(k: int, name: str, **others: Any) -> dict[str, Any]:
    return {"name": name, "fingerprint": f"sha256:{k:064x}", "address": f"127.0.0.1:{7001 + k}"} | others


def plain(**others: Any) -> dict[str, Any]:
    """A charter of three on a path, as plain values; None leaves a key out."""
    three = [participant(k, name) for k, name in enumerate(("alice", "bob", "carol"))]
    edges = [["alice", "bob"], ["bob", "carol"]]
    whole = {"session": "s-1", "method": "consensus", "participants": three, "edges": edges, "bounds": [0.0, 100.0]}
    return whole | others


def make(**others: Any) -> Charter:
    return make_charter(plain(**others), "charter.toml")


def as_search(text: str) -> str:
    return text.replace('"consensus"', '"search"')


def searching(**others: Any) -> Charter:
    return make(method="search", **others)


# Charters of all kinds

names = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,9}", fullmatch=True)
hosts = st.one_of(
    st.from_regex(r"[a-z][a-z0-9-]{0,8}(\.[a-z]{2,5}){0,2}", fullmatch=True),
    st.ip_addresses(v=4).filter(lambda one: not (one.is_unspecified or one.is_multicast)).map(str),
    st.ip_addresses(v=6).filter(lambda one: not (one.is_unspecified or one.is_multicast)).map(lambda one: f"[{one}]"),
)
positive = st.floats(1e-3, 1e3)


spacings = st.sampled_from(["rank", "value", "key"]) | st.lists(
    st.integers(-1000, 1000), min_size=2, max_size=5, unique=True
).map(lambda numbers: tuple(float(number) for number in sorted(numbers)))

HIGH = "inverted_cdf_high"


@st.composite
def charters(draw: st.DrawFn) -> Charter:
    method = draw(st.sampled_from(["consensus", "search"]))
    called = draw(st.lists(names, min_size=3 if method == "search" else 2, max_size=6, unique=True))
    n = len(called)
    kinds = ["median", "maximum", "minimum", "quantile"] + (["mean"] if method == "consensus" else [])
    objective = draw(st.sampled_from(kinds))
    chosen = st.sampled_from(["inverted_cdf", "inverted_cdf_high"])
    definition = draw(chosen) if objective in ("median", "quantile") else "inverted_cdf"
    dialling = set(draw(st.sets(st.integers(1, n - 1), max_size=1)))
    ports = draw(st.lists(st.integers(1, 65535), min_size=n, max_size=n, unique=True))
    tree = {(draw(st.integers(0, k - 1)) if k not in dialling else 0, k) for k in range(1, n)}
    tree = {(a if a not in dialling else 0, b) for a, b in tree}
    more = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=5))
    pairs = tree | {(a, b) for a, b in more if a < b and not {a, b} & dialling}
    low = draw(st.floats(-1e6, 1e6))
    bounds = st.fixed_dictionaries({"bounds": st.tuples(st.just(low), positive.map(lambda width: low + 1 + width))})
    instead = st.just({}) if method == "search" else st.fixed_dictionaries({"scale": positive})
    of_method: dict[str, st.SearchStrategy[Any]] = {
        "c": positive,
        "theta": st.floats(0.01, 0.99),
        "mu": st.floats(-1e3, 1e3),
        "sigma": st.floats(0, 1e3),
        "tolerance": st.floats(1e-12, 1),
        "coordinates": st.integers(1, 3),
    }
    if method == "search":
        of_method = draw(st.sampled_from([{"pooled": st.just(True)}, {"coordinates": st.integers(1, 3)}]))
    if objective != "mean":
        of_method |= {"resolution": st.sampled_from([0.01, 0.1, 1.0, 25.0])}
    optional = st.fixed_dictionaries(
        {},
        optional={
            "arity": st.integers(1, 7),
            "spacing": spacings,
            "rounds": st.integers(1, 10**9),
            "deadlines": st.builds(Deadlines, start=positive, wait=positive, total=positive, linger=positive),
            **of_method,
        },
    )
    return Charter(
        session=draw(names),
        method=method,
        participants=tuple(
            ParticipantEntry(
                name=name,
                fingerprint=f"sha256:{k:064x}",
                address=None if k in dialling else f"{draw(hosts)}:{ports[k]}",
                weight=draw(st.integers(1, 2**40)),
            )
            for k, name in enumerate(called)
        ),
        edges=tuple((called[a], called[b]) for a, b in draw(st.permutations(sorted(pairs)))),
        objective=objective,
        quantile=draw(st.floats(0, 1)) if objective == "quantile" else None,
        definition=definition,
        **draw(st.one_of(bounds, instead)),
        **draw(optional),
    )


@given(charters())
@settings(max_examples=150)
def test_what_is_written_is_read(charter: Charter) -> None:
    again = parse_invitation(charter.to_toml(), "charter.toml").charter
    assert again == charter
    assert again.digest == charter.digest
    assert again.field_digests == charter.field_digests
    assert again.to_toml() == charter.to_toml()


@given(charters(), st.data())
@settings(max_examples=60)
def test_the_digest_is_of_what_was_settled(charter: Charter, data: st.DataObject) -> None:
    """Other orders, other spellings, and what was chosen written out: the same run."""
    written: dict[str, Any] = msgspec.to_builtins(charter)
    if charter.method == "consensus":
        parameters = charter.parameters
        written |= {name: float(getattr(parameters, name).flat[0]) for name in ("c", "mu", "sigma")}
    written["edges"] = [list(edge)[:: data.draw(st.sampled_from([1, -1]))] for edge in reversed(written["edges"])]
    shuffled = {key: written[key] for key in data.draw(st.permutations(sorted(written))) if written[key] is not None}
    again = make_charter(shuffled, "charter.toml")
    assert again.digest == charter.digest
    assert differing(charter.field_digests, again.field_digests) == []


def test_formatting_changes_nothing() -> None:
    text = make().to_toml()
    tables = text.split("\n\n")
    other = "# agreed\n" + "\n\n".join([tables[0], *tables[2:], tables[1]]).replace(" = ", "=").replace("0.0,", "0,")
    assert other != text
    assert parse_invitation(other, "other.toml").charter.digest == make().digest
    short = re.sub(
        r"^(midst|objective|definition|coordinates|pooled|arity|spacing|theta|tolerance|rounds) = .*\n",
        "",
        text,
        flags=re.M,
    )
    assert parse_invitation(short.replace(tables[1], ""), "short.toml").charter.digest == make().digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"mu": 0.0}, {"mu": -0.0}),
        ({"c": 1}, {"c": 1.0}),
        ({"bounds": [-0.0, 100]}, {}),
        ({"resolution": 1}, {"resolution": 1.0}),
    ],
)
def test_equal_numbers_are_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert make(**one).digest == make(**other).digest


def test_a_charter_made_in_python_is_the_one_in_the_file() -> None:
    three = tuple(ParticipantEntry(**one) for one in plain()["participants"])
    edges = (("alice", "bob"), ("bob", "carol"))
    made = Charter(session="s-1", method="consensus", participants=three, edges=edges, bounds=(0, 100))
    assert made.digest == make().digest
    with pytest.raises(InputError, match="theta must be in"):
        msgspec.structs.replace(made, theta=2.0)


CHANGES: dict[str, Any] = {
    "session": "s-2",
    "participants": [participant(k, name) for k, name in enumerate(("bob", "alice", "carol"))],
    "edges": [["alice", "bob"], ["bob", "carol"], ["alice", "carol"]],
    "objective": "maximum",
    "definition": "inverted_cdf_high",
    "bounds": [0.0, 101.0],
    "resolution": 0.5,
    "arity": 4,
    "spacing": "value",
    "coordinates": 2,
    "c": 0.5,
    "theta": 0.4,
    "mu": 0.25,
    "sigma": 0.2,
    "tolerance": 1e-7,
    "rounds": 7,
    "deadlines": {"wait": 61.0},
}


@pytest.mark.parametrize("key", CHANGES)
def test_what_differs_is_named(key: str) -> None:
    own, other = make(), make(**{key: CHANGES[key]})
    assert own.digest != other.digest
    found = differing(own.field_digests, other.field_digests)
    follows = {"bounds": {"c", "mu"}, "c": {"mu"}, "participants": {"edges"}}.get(key, set())
    assert key in found
    assert set(found) - {key} <= follows


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bounds", None),
        ("resolution", 0.1),
        ("pooled", True),
        ("arity", 1),
        ("verify", False),
        ("spacing", [0.0, 1.0, 50.0]),
    ],
)
def test_what_differs_between_two_searches_is_named(key: str, value: Any) -> None:
    own, other = searching(resolution=0.01), searching(**{"resolution": 0.01} | {key: value})
    assert differing(own.field_digests, other.field_digests) == [key]


def test_the_method_is_the_first_thing_to_agree_on() -> None:
    assert "method" in differing(make().field_digests, searching().field_digests)


OF_ARRAYS = ("arrays", "aggregates", "trim")
OF_STATISTICS = ("statistics", "columns", "disclosure")


def test_every_key_has_its_digest() -> None:
    digests = make().field_digests
    assert digests.keys() == set(Charter.__struct_fields__)
    assert {len(digest) for digest in digests.values()} == {8}
    others = {"midst", "method", "quantile", "scale", "pooled", "verify", "noise", *OF_STATISTICS, *OF_ARRAYS}
    assert set(CHANGES) | others == digests.keys()
    assert len(make().digest) == 32


def test_keys_of_another_version_are_not_repeated() -> None:
    own = make().field_digests
    other = {key: digest for key, digest in own.items() if key != "theta"} | {"\x1b[2J": b"12345678"}
    assert differing(own, other) == ["theta", "keys unknown to this version of midst"]


# What it means


def test_numbers_neighbours_and_graph() -> None:
    charter = make()
    assert charter.names == ("alice", "bob", "carol")
    assert [charter.number(name) for name in charter.names] == [0, 1, 2]
    assert [charter.neighbours(name) for name in charter.names] == [(1,), (0, 2), (1,)]
    assert charter.graph.labels == charter.names
    with pytest.raises(InputError, match="dave is no participant; the charter has alice, bob, carol"):
        charter.number("dave")


@pytest.mark.parametrize(
    ("others", "goal", "stop"),
    [
        ({}, Quantile(0.5), "exact"),
        ({"definition": "any"}, Quantile(0.5, "any"), "exact"),
        ({"definition": "any", "participants": [participant(0, "alice", weight=2), *plain()["participants"][1:]]},
         Quantile(0.5, "any"), "certified"),
        ({"objective": "maximum"}, Quantile(1), "exact"),
        ({"objective": "minimum"}, Quantile(0), "exact"),
        ({"objective": "mean"}, Mean(), "certified"),
        ({"objective": "quantile", "quantile": 0.9, "definition": HIGH}, Quantile(0.9, HIGH), "exact"),
    ],
)  # fmt: skip
def test_goals(others: dict[str, Any], goal: Quantile | Mean, stop: str) -> None:
    charter = make(**others)
    assert (charter.goal, charter.stop) == (goal, stop)


def test_parameters_are_the_simulators() -> None:
    charter = make(coordinates=2, sigma=0.3)
    assert charter.problem().values.shape == (3, 2)
    np.testing.assert_allclose(charter.parameters.c, [1 / 25] * 2)
    np.testing.assert_allclose(charter.parameters.mu, [-2] * 2)
    np.testing.assert_allclose(charter.parameters.sigma, [0.3] * 2)


def test_the_rules_of_a_search() -> None:
    weights = (2, 0, 2)
    people = [one | {"weight": weight} for one, weight in zip(plain()["participants"], weights, strict=True)]
    rules = searching(participants=people, pooled=True, resolution=0.5, arity=2).search_rules([3, 4, 5])
    assert (rules.total, rules.unit, rules.arity, rules.spacing) == (16, 2, 2, "rank")
    assert rules.keys == Grid(Fraction(1, 2))
    assert rules.brackets == ((2**63 - 1, 2**63 + 200),)
    assert rules.goals == (Goal(0, (8,)),)
    assert make().search_rules([1, 1, 1], ((5, 6),)).opening == ((5, 6),)
    assert searching(coordinates=3).search_rules([1, 1, 1]).goals == tuple(Goal(k, (2,)) for k in range(3))
    assert searching(spacing=[1, 2, 3]).search_rules([1, 1, 1]).quantiles == (1.0, 2.0, 3.0)


def test_a_search_may_have_an_even_median_s_midpoint() -> None:
    heavy = [participant(0, "alice", weight=2), *plain()["participants"][1:]]
    rules = searching(participants=heavy, definition="averaged_inverted_cdf", resolution=0.01).search_rules([1, 1, 1])
    assert rules.goals == (Goal(0, (2, 3)),)


def test_values_range() -> None:
    assert searching(bounds=None).value_range == (-1.7976931348623157e308, 1.7976931348623157e308)
    assert make().value_range == (0, 100)
    assert make(bounds=None, scale=2.0).value_range == (-2000, 2000)
    with pytest.raises(InputError, match="value of node bob lies outside"):
        make().problem([1, 101, 3])


def test_who_may_sit_where(tmp_path: Path) -> None:
    people = {name: keys.make_identity(name, tmp_path / name) for name in ("alice", "bob", "carol")}
    three = [participant(k, name, fingerprint=one.fingerprint) for k, (name, one) in enumerate(people.items())]
    charter = make(participants=three)
    assert check_identity(charter, "bob", people["bob"]) == 1
    with pytest.raises(InputError, match="is the key of bob, not of alice"):
        check_identity(charter, "alice", people["bob"])
    with pytest.raises(InputError, match="dave is no participant"):
        check_identity(charter, "dave", people["bob"])
    with pytest.raises(InputError, match="but the charter has"):
        check_identity(charter, "bob", keys.make_identity("bob", tmp_path / "other"))
    assert strangers(charter, "bob", people["bob"]) == ("alice", "carol")
    keys.trust([("file", people["carol"].certificate)], tmp_path / "bob")
    assert strangers(charter, "bob", keys.load_identity(people["bob"].key_file)) == ("alice",)
    keys.trust([("file", people["alice"].certificate)], tmp_path / "bob")
    assert strangers(charter, "bob", keys.load_identity(people["bob"].key_file)) == ()


# Addresses


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("alice.example.org:7001", ("alice.example.org", 7001)),
        ("Alice.Example.org:7001", ("alice.example.org", 7001)),
        ("localhost:1", ("localhost", 1)),
        ("node_1:65535", ("node_1", 65535)),
        ("10.0.0.1:80", ("10.0.0.1", 80)),
        ("[::1]:7001", ("::1", 7001)),
        ("[0:0::0:1]:07001", ("::1", 7001)),
    ],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address",
    [
        "", ":", "alice", "alice:", ":7001", "alice:0", "alice:65536", "alice:99999999999", "alice:-1", "alice:٣",
        "alice:70 01", "al ice:7001", "alice\n:7001", "-alice:7001", "alice..org:7001", ".alice:7001", "::1:7001",
        "[alice]:7001", "[10.0.0.1]:7001", "[::1:7001", "0.0.0.0:7001", "[::]:7001", "224.0.0.1:7001", "1.2.3:7001",
        "256.1.1.1:7001", "http://alice:7001", "alice:7001/x", "a" * 300 + ":7001", "alice@host:7001", '"alice":7001',
    ],
)  # fmt: skip
def test_bad_addresses(address: str) -> None:
    with pytest.raises(InputError, match="address"):
        split_address(address)
    with pytest.raises(InputError, match=r"^charter.toml: participants\[0\]: address"):
        make(participants=[participant(0, "alice", address=address), *plain()["participants"][1:]])


@pytest.mark.parametrize(("address", "host"), [("0.0.0.0:7001", "0.0.0.0"), ("[::]:7001", "::")])
def test_all_addresses_of_a_host_can_be_bound_and_not_dialled(address: str, host: str) -> None:
    assert split_address(address, to_bind=True) == (host, 7001)
    with pytest.raises(InputError, match="nobody can dial"):
        split_address(address)
    with pytest.raises(InputError, match="nobody can dial"):
        split_address("224.0.0.1:7001", to_bind=True)


# What is refused

Change = Callable[[str], str]


def put(old: str, new: str) -> Change:
    """The text with something else in one place, which must be there."""

    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def add(line: str) -> Change:
    return lambda text: f"{line}\n{text}"


BIG = "9" * 400
REFUSED: dict[str, tuple[Change, str]] = {
    # the file
    "nothing": (lambda _: "", "missing required field method"),
    "a number": (lambda _: "31337.4242\n", "not TOML"),
    "not toml": (lambda _: "{", "not TOML"),
    "cut": (lambda text: text[:-40], "not TOML"),
    "key twice": (add('session = "s-2"'), "not TOML"),
    "deep": (lambda _: "a = " + "[" * 100_000, "not TOML"),
    "huge number": (add(f"c = {'9' * 5000}"), "not TOML"),
    "nul": (lambda text: text + "\0", "not TOML"),
    "unknown key": (add("salary = 1"), "unknown field salary"),
    "unknown key of a participant": (put("weight = 1", "wieght = 1"), "participants[0]: Object contains unknown field"),
    "unknown deadline": (put("[deadlines]", "[deadlines]\nend = 1"), "deadlines: Object contains unknown field"),
    # the format
    "future": (put("midst = 2", "midst = 3"), "this midst reads 2"),
    "past": (put("midst = 2", "midst = 1"), "this midst reads 2"),
    "format as text": (put("midst = 2", 'midst = "2"'), "midst: Expected int"),
    # the method
    "method missing": (put('method = "consensus"\n', ""), "missing required field method"),
    "method unknown": (put('"consensus"', '"guess"'), "method: Invalid enum value 'guess'"),
    "method a number": (put('"consensus"', "2"), "method: Expected str"),
    "a mean by search": (lambda text: text.replace('"consensus"', '"search"').replace('"median"', '"mean"'),
                         "bounds, resolution: a mean by search needs both"),
    "c of a search": (lambda text: "c = 1.0\n" + as_search(text), 'c is for method = "consensus"'),
    "theta of a search": (lambda text: text.replace('"consensus"', '"search"').replace("theta = 0.5", "theta = 0.4"),
                          'theta is for method = "consensus"'),
    "mu of a search": (lambda text: "mu = 0.0\n" + text.replace('"consensus"', '"search"'), 'mu is for method'),
    "sigma of a search": (lambda text: "sigma = 0.1\n" + as_search(text), "sigma is for method"),
    "scale of a search": (
        lambda text: text.replace('"consensus"', '"search"').replace("bounds = [0.0, 100.0]", "scale = 2.0"),
        'scale is for method = "consensus"',
    ),
    "tolerance of a search": (
        lambda text: text.replace('"consensus"', '"search"').replace("tolerance = 1e-06", "tolerance = 1e-7"),
        'tolerance is for method = "consensus"',
    ),
    "lists in an iteration": (put("pooled = false", "pooled = true"), 'pooled is for method = "search"'),
    "lists of vectors": (
        lambda text: text.replace('"consensus"', '"search"')
        .replace("pooled = false", "pooled = true")
        .replace("coordinates = 1", "coordinates = 2"),
        "pooled: lists of values have one coordinate",
    ),
    # a search
    "no thresholds": (put("arity = 3", "arity = 0"), "arity, spacing: arity must be a whole number"),
    "a histogram": (put("arity = 3", "arity = 8"), "arity, spacing: arity must be from 1 to 7"),
    "half a threshold": (put("arity = 3", "arity = 2.5"), "arity: Expected int"),
    "spacing unknown": (put('"rank"', '"random"'), "spacing"),
    "spacing by one": (put('"rank"', "[1.0]"), "spacing by quantiles needs at least two"),
    "spacing reversed": (put('"rank"', "[2.0, 1.0]"), "in increasing order"),
    "spacing nan": (put('"rank"', "[1.0, nan]"), "spacing by quantiles"),
    "resolution zero": (add("resolution = 0.0"), "resolution must be a positive"),
    "resolution negative": (add("resolution = -0.01"), "resolution must be a positive"),
    "resolution nan": (add("resolution = nan"), "resolution must be a positive"),
    "resolution infinite": (add("resolution = inf"), "resolution must be a positive"),
    "resolution as text": (add('resolution = "0.01"'), "resolution: Expected"),
    "resolution too fine": (add("resolution = 1e-300"), "resolution: the resolution is too fine for these bounds"),
    "resolution of a mean": (
        lambda text: text.replace('"median"', '"mean"').replace("pooled", "resolution = 0.01\npooled", 1),
        "resolution is for a search",
    ),
    "midpoint of an iteration": (put('"inverted_cdf"', '"averaged_inverted_cdf"'), "definition: the midpoint of two"),
    "midpoint without resolution": (
        lambda text: text.replace('"consensus"', '"search"').replace('"inverted_cdf"', '"averaged_inverted_cdf"'),
        'definition: the midpoint of two values needs method = "search" and a public resolution',
    ),
    "lossy mode": (add('mode = "lossy"'), "unknown field mode"),
    "patience": (add("patience = 9"), "unknown field patience"),
    # the session
    "session missing": (put('session = "s-1"\n', ""), "session"),
    "session empty": (put('"s-1"', '""'), "session must be 1 to 64"),
    "session with a slash": (put('"s-1"', '"../s"'), "session must be 1 to 64"),
    "session with capitals": (put('"s-1"', '"S"'), "session must be 1 to 64"),
    "session too long": (put('"s-1"', f'"{"s" * 65}"'), "session must be 1 to 64"),
    "session a number": (put('"s-1"', "1"), "session: Expected str"),
    "session a date": (put('"s-1"', "2026-01-01"), "session: Expected str"),
    # participants
    "no participants": (lambda text: text.partition("[[")[0] + "participants = []", "unknown field participants"),
    "name missing": (put('name = "alice"\n', ""), "participants[0]: Object missing required field name"),
    "name empty": (put('name = "alice"', 'name = ""'), "participants[0]: name must be"),
    "name with a blank": (put('name = "alice"', 'name = "al ice"'), "participants[0]: name must be"),
    "name a path": (put('name = "alice"', 'name = "../alice"'), "participants[0]: name must be"),
    "name with a capital": (put('name = "alice"', 'name = "Alice"'), "participants[0]: name must be"),
    "name too long": (put('name = "alice"', f'name = "{"a" * 65}"'), "participants[0]: name must be"),
    "name with a line": (put('name = "alice"', r'name = "a\nb"'), "participants[0]: name must be"),
    "name an option": (put('name = "alice"', 'name = "-rf"'), "participants[0]: name must be"),
    "name twice": (put('name = "bob"', 'name = "alice"'), "alice and alice have the same name"),
    "fingerprint missing": (lambda text: re.sub("fingerprint.*\n", "", text, count=1), "field fingerprint"),
    "fingerprint short": (put("00000000", ""), "participants[0]: fingerprint of alice"),
    "fingerprint md5": (put("sha256:", "md5:"), "participants[0]: fingerprint of alice"),
    "fingerprint capitals": (put("sha256:0", "sha256:A"), "participants[0]: fingerprint of alice"),
    "fingerprint twice": (put("0001", "0000"), "alice and bob have the same fingerprint"),
    "address twice": (put("7002", "7001"), "alice and bob have the same address"),
    "address twice otherwise": (put("127.0.0.1:7002", "127.0.0.1:07001"), "alice and bob have the same address"),
    "address a number": (put('"127.0.0.1:7001"', "7001"), "participants[0].address: Expected str"),
    "weight negative": (put("weight = 1", "weight = -1"), "participants[0]: weight of alice"),
    "weight a fraction": (put("weight = 1", "weight = 1.5"), "participants[0].weight: Expected int"),
    "weight huge": (put("weight = 1", f"weight = {2**50 + 1}"), "participants[0]: weight of alice"),
    "weight beyond": (put("weight = 1", f"weight = {BIG}"), "participants[0]"),
    "weights together": (lambda text: text.replace("weight = 1", f"weight = {2**49}"), "more than 2^50"),
    "weights zero": (lambda text: text.replace("weight = 1", "weight = 0"), "all weights are zero"),
    "weight true": (put("weight = 1", "weight = true"), "participants[0].weight: Expected int"),
    # edges
    "edges missing": (lambda text: re.sub(r"edges = \[.*?\n\]\n", "", text, flags=re.S), "field edges"),
    "no edge": (lambda text: re.sub(r"edges = \[.*?\n\]\n", "edges = []\n", text, flags=re.S), "edges: graph has 3"),
    "edge to nobody": (put('["alice", "bob"]', '["alice", "dave"]'), "dave is no participant"),
    "edge to something odd": (put('["alice", "bob"]', r'["alice", "\u001b[2J"]'), r"'\x1b[2J' is no participant"),
    "edge to itself": (put('["alice", "bob"]', '["alice", "alice"]'), "joins a participant to itself"),
    "edge twice": (put('["alice", "bob"]', '["carol", "bob"]'), "is given twice"),
    "edge backwards": (put('["alice", "bob"]', '["bob", "carol"]'), "is given twice"),
    "edge of three": (put('["alice", "bob"]', '["alice", "bob", "carol"]'), "edges[0]: Expected array of length 2"),
    "edge of one": (put('["alice", "bob"]', '["alice"]'), "edges[0]: Expected array of length 2"),
    "edge as text": (put('["alice", "bob"]', '"alice-bob"'), "edges[0]: Expected array"),
    "edges of numbers": (put('["alice", "bob"]', "[0, 1]"), "edges[0][0]: Expected str"),
    "falls apart": (put('["alice", "bob"],\n', ""), "edges: graph has 2 components ({alice} and {bob, carol})"),
    "nobody to dial": (
        lambda text: text.replace('address = "127.0.0.1:7001"\n', "").replace('address = "127.0.0.1:7002"\n', ""),
        "edges: alice - bob: neither has an address",
    ),
    # what is found
    "unknown objective": (put('"median"', '"mode"'), "objective: Invalid enum value 'mode'"),
    "quantile alone": (add("quantile = 0.9"), "quantile: give it with"),
    "quantile missing": (put('"median"', '"quantile"'), "quantile: give it with"),
    "quantile too large": (put('"median"', '"quantile"\nquantile = 1.1'), "quantile must be in [0, 1]"),
    "quantile negative": (put('"median"', '"quantile"\nquantile = -0.1'), "quantile must be in [0, 1]"),
    "quantile nan": (put('"median"', '"quantile"\nquantile = nan'), "quantile must be a number"),
    "quantile as text": (put('"median"', '"quantile"\nquantile = "0.9"'), "quantile: Expected float"),
    "unknown side": (put('"inverted_cdf"', '"middle"'), "definition: Invalid enum value"),
    "definition of a maximum": (
        lambda text: text.replace('"median"', '"maximum"').replace('"inverted_cdf"', '"any"'), "only one max"
    ),
    "definition of a mean": (
        lambda text: text.replace('"median"', '"mean"').replace('"inverted_cdf"', '"any"'), "only one mean"
    ),
    # what is public
    "nothing public": (put("bounds = [0.0, 100.0]\n", ""), "give exactly one of the two"),
    "both": (add("scale = 1.0"), "bounds, scale: give one of the two"),
    "bounds reversed": (put("[0.0, 100.0]", "[100.0, 0.0]"), "bounds must be two finite"),
    "bounds equal": (put("[0.0, 100.0]", "[1.0, 1.0]"), "bounds must be two finite"),
    "bounds infinite": (put("[0.0, 100.0]", "[0.0, inf]"), "bounds must be two finite"),
    "bounds nan": (put("[0.0, 100.0]", "[nan, 1.0]"), "bounds must be two finite"),
    "bounds too wide": (put("[0.0, 100.0]", "[-1e308, 1e308]"), "scale must be between"),
    "bounds too narrow": (put("[0.0, 100.0]", "[0.0, 1e-308]"), "scale must be between"),
    "three bounds": (put("[0.0, 100.0]", "[0.0, 1.0, 2.0]"), "bounds: Expected array of length 2"),
    "bounds as text": (put("[0.0, 100.0]", '"0:100"'), "bounds: Expected array"),
    "bounds beyond": (put("[0.0, 100.0]", f"[0.0, {BIG}]"), "bounds"),
    "scale zero": (put("bounds = [0.0, 100.0]", "scale = 0.0"), "scale must be between"),
    "scale negative": (put("bounds = [0.0, 100.0]", "scale = -1.0"), "scale must be between"),
    "scale infinite": (put("bounds = [0.0, 100.0]", "scale = inf"), "scale must be between"),
    "scale nan": (put("bounds = [0.0, 100.0]", "scale = nan"), "scale must be between"),
    "no coordinates": (put("coordinates = 1", "coordinates = 0"), "coordinates must be at least 1"),
    "too many coordinates": (put("coordinates = 1", "coordinates = 10000000"), "coordinates must be at least 1"),
    "half a coordinate": (put("coordinates = 1", "coordinates = 1.5"), "coordinates: Expected int"),
    # parameters
    "c zero": (add("c = 0.0"), "c must be positive"),
    "c negative": (add("c = -1"), "c must be positive"),
    "c infinite": (add("c = inf"), "c must be finite"),
    "c nan": (add("c = nan"), "c must be finite"),
    "c as text": (add('c = "1"'), "c: Expected float"),
    "c true": (add("c = true"), "c: Expected float"),
    "c tiny": (add("c = 1e-320"), "c is out of range"),
    "c beyond": (add(f"c = {BIG}"), "c"),
    "theta zero": (put("theta = 0.5", "theta = 0.0"), "theta must be in (0, 1]"),
    "theta one": (put("theta = 0.5", "theta = 1.0"), "theta = 1 does not converge"),
    "theta beyond": (put("theta = 0.5", "theta = 1.5"), "theta must be in (0, 1]"),
    "theta nan": (put("theta = 0.5", "theta = nan"), "theta must be in (0, 1]"),
    "mu nan": (add("mu = nan"), "mu must be finite"),
    "mu infinite": (add("mu = inf"), "mu must be finite"),
    "sigma negative": (add("sigma = -1.0"), "sigma must not be negative"),
    "sigma infinite": (add("sigma = inf"), "sigma must be finite"),
    "sigma huge": (add("sigma = 1e308"), "c is out of range"),
    "tolerance zero": (put("tolerance = 1e-06", "tolerance = 0.0"), "tolerance must be a positive"),
    "tolerance nan": (put("tolerance = 1e-06", "tolerance = nan"), "tolerance must be a positive"),
    "tolerance infinite": (put("tolerance = 1e-06", "tolerance = inf"), "tolerance must be a positive"),
    # how
    "no rounds": (put("rounds = 100000", "rounds = 0"), "rounds must be from 1"),
    "too many rounds": (put("rounds = 100000", "rounds = 1000000001"), "rounds must be from 1"),
    "no start": (put("start = 300.0", "start = 0.0"), "deadlines: start must be a positive"),
    "wait negative": (put("wait = 60.0", "wait = -1.0"), "deadlines: wait must be a positive"),
    "endless": (put("total = 3600.0", "total = inf"), "deadlines: total must be a positive"),
    "linger nan": (put("linger = 10.0", "linger = nan"), "deadlines: linger must be a positive"),
    "deadline as text": (put("wait = 60.0", 'wait = "60 s"'), "deadlines.wait: Expected float"),
    "deadlines a number": (lambda text: re.sub(r"\[deadlines\].*?\n\n", "", "deadlines = 5\n" + text, flags=re.S),
                           "deadlines: Expected object"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str, tmp_path: Path) -> None:
    change, message = REFUSED[case]
    path = tmp_path / "charter.toml"
    path.write_text(change(make().to_toml()))
    with pytest.raises(InputError) as refused:
        read_charter(path)
    said = str(refused.value)
    assert message in said
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    assert len(said) < 400
    assert "31337" not in said
    for command in (["check", str(path)], ["show", str(path)], ["new", "--from", str(path), "--session", "s-2"]):
        done = CliRunner().invoke(main, ["charter", *command])
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"midst: error: {said}\n")


def test_two_participants_of_a_search() -> None:
    two, edges = plain()["participants"][:2], plain()["edges"][:1]
    with pytest.raises(InputError, match="participants: a search needs at least three"):
        searching(participants=two, edges=edges)
    assert make(participants=two, edges=edges).stop == "exact"


def test_a_search_of_more_than_a_frame_can_tell_is_refused() -> None:
    with pytest.raises(InputError, match="coordinates, arity: all participants together"):
        searching(coordinates=1_000_000)
    crowd = [participant(k, f"p{k}", address=f"h{k}:1") for k in range(8_001)]
    edges = [["p0", one["name"]] for one in crowd[1:]]
    with pytest.raises(InputError, match="participants: a search has at most 8,000"):
        searching(participants=crowd, edges=edges)
    assert len(searching(participants=crowd[:8000], edges=edges[:7999]).names) == 8000


def test_one_participant_alone() -> None:
    with pytest.raises(InputError, match="at least two are needed"):
        make(participants=plain()["participants"][:1], edges=[])


def test_files_that_are_no_charters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_charter(tmp_path / "none.toml")
    with pytest.raises(InputError, match="directory"):
        read_charter(tmp_path)
    path = tmp_path / "charter.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text in UTF-8"):
        read_charter(path)
    monkeypatch.setattr(charter_files, "_LARGEST", 10)
    path.write_text(make().to_toml())
    with pytest.raises(InputError, match="larger than"):
        read_charter(path)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_invitation(text, "charter.toml")
    assert len(" ".join(str(refused.value).split()).splitlines()) == 1


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*Charter.__struct_fields__]), anything, st.sampled_from(["consensus", "search"]))
@settings(max_examples=400)
def test_any_value_of_a_key_is_accepted_or_refused(key: str, value: Any, method: str) -> None:
    """No value brings anything but an InputError, and what is accepted can be written and read."""
    try:
        charter = make(**{"method": method, key: value})
    except InputError as refused:
        assert str(refused).startswith("charter.toml: ")  # noqa: PT017
        return
    assert parse_invitation(charter.to_toml(), "again.toml").charter.digest == charter.digest


@given(
    st.fixed_dictionaries(
        {},
        optional={name: st.floats() | st.sampled_from([1e308, 1e-308]) for name in ("c", "theta", "mu", "sigma")}
        | {"bounds": st.tuples(st.floats(), st.floats()), "resolution": st.floats()},
    ),
    st.sampled_from(["consensus", "search"]),
)
@settings(max_examples=300)
def test_numbers_at_the_end_of_the_range(numbers: dict[str, Any], method: str) -> None:
    try:
        make(**numbers, method=method)
    except InputError as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017
