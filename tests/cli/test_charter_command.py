"""`midst charter`: what it writes, says and refuses."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificates_made import certify
from click.testing import CliRunner, Result

from midst.cli import main
from midst.net.charter import Charter
from midst.net.charter_files import parse_invitation, read_charter, read_invitation
from midst.net.identity import certificates, keys

SECRET = "31337.4242"
BY_RING = ("--method", "consensus", "--graph", "ring")
PEOPLE = ("alice.crt@alice.example.org:7001", "bob.crt@bob.example.org:7001", "carol.crt")
NEW = ("new", "--session", "s-1", "--method", "consensus", "--bounds", "0:100")
SEARCH = ("new", "--session", "s-1", "--method", "search")
CHANGED = ("new", "--from", "old.toml", "--session", "s-2")


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["charter", *map(str, arguments)])


def write(*arguments: str, people: tuple[str, ...] = PEOPLE) -> Charter:
    """The charter that `new` puts on stdout."""
    done = invoke(*NEW, *arguments, *people)
    assert done.exit_code == 0, done.stderr
    assert "error" not in done.stderr
    return parse_invitation(done.stdout, "stdout").charter


@pytest.fixture(autouse=True, scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Keys and certificates, made once."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("alice", "bob", "carol", "a-b", "b-a"):
        keys.make_identity(name, folder)
    board = certify("board", authority=True)
    (folder / "board.crt").write_text(ssl.DER_cert_to_PEM_cert(board))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def folder(made: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder to work in, with everybody's certificates, alice's keys, and a charter in it."""
    monkeypatch.chdir(tmp_path)
    for name, content in made.items():
        if name.endswith(".crt"):
            Path(name).write_bytes(content)
    Path("keys").mkdir()
    Path("keys/alice.key").touch(0o600)
    Path("keys/alice.key").write_bytes(made["alice.key"])
    Path("keys/alice.crt").write_bytes(made["alice.crt"])
    Path("old.toml").write_text(invoke(*NEW, "--graph", "ring", *PEOPLE).stdout)
    return tmp_path


# new


def test_new_writes_what_was_asked_for() -> None:
    charter = write("--graph", "ring")
    assert charter.names == ("alice", "bob", "carol")
    assert charter.edges == (("alice", "bob"), ("alice", "carol"), ("bob", "carol"))
    assert [one.address for one in charter.participants] == ["alice.example.org:7001", "bob.example.org:7001", None]
    assert charter.participants[0].fingerprint == certificates.fingerprint(certificates.read_certificate("alice.crt"))
    assert (charter.session, charter.bounds, charter.objective) == ("s-1", (0.0, 100.0), "median")


def test_new_into_a_file() -> None:
    done = invoke(*NEW, "--graph", "complete", "--out", "new.toml", *PEOPLE)
    assert (done.exit_code, done.stdout) == (0, "")
    assert read_charter("new.toml").digest.hex() in done.stderr


def test_every_option_reaches_the_charter() -> None:
    options: dict[str, Any] = {
        "definition": "inverted_cdf_high", "coordinates": 2, "c": 0.5, "theta": 0.4, "mu": 1.5,
        "sigma": 0.25, "tolerance": 1e-5, "rounds": 77, "resolution": 0.5, "arity": 5, "spacing": "key",
    }  # fmt: skip
    waits = {"start": 10.0, "wait": 11.0, "total": 12.0, "linger": 13.0}
    given = [word for name, value in (options | waits).items() for word in (f"--{name}", str(value))]
    charter = write("--graph", "path", "--quantile", "0.75", "--weight", "bob=3", *given)
    assert {name: getattr(charter, name) for name in options} == options
    assert {name: getattr(charter.deadlines, name) for name in waits} == waits
    assert (charter.objective, charter.quantile) == ("quantile", 0.75)
    assert [one.weight for one in charter.participants] == [1, 3, 1]
    left = {
        "session",
        "method",
        "participants",
        "edges",
        "midst",
        "objective",
        "quantile",
        "bounds",
        "scale",
        "pooled",
        "statistics",
        "columns",
        "disclosure",
        "verify",
        "noise",
        "arrays",
        "aggregates",
        "trim",
        "deadlines",
    }
    assert set(Charter.__struct_fields__) == left | set(options)


def test_options_of_a_search_reach_the_charter() -> None:
    done = invoke(*SEARCH, "--graph", "ring", "--pooled", "--arity", "2", "--spacing", "0,10.5,20", *PEOPLE)
    charter = parse_invitation(done.stdout, "stdout").charter
    assert (charter.method, charter.bounds, charter.pooled) == ("search", None, True)
    assert (charter.arity, charter.spacing) == (2, (0.0, 10.5, 20.0))
    done = invoke(*SEARCH, "--graph", "ring", "--definition", "averaged_inverted_cdf", "--resolution", "0.01", *PEOPLE)
    charter = parse_invitation(done.stdout, "stdout").charter
    assert (charter.definition, charter.resolution, charter.spacing) == ("averaged_inverted_cdf", 0.01, "rank")


@pytest.mark.parametrize(
    ("options", "edges"),
    [
        (("--graph", "star"), {"alice-bob", "alice-carol"}),
        (("--edge", "carol-alice", "--edge", "bob:alice"), {"carol-alice", "bob-alice"}),
        (("--graph", "names.txt"), {"carol-bob", "bob-alice"}),
        (("--graph", "numbers.txt"), {"bob-carol", "alice-bob"}),
    ],
)
def test_edges(options: tuple[str, ...], edges: set[str]) -> None:
    Path("names.txt").write_text("carol bob\nbob alice\n")
    Path("numbers.txt").write_text("2 1\n0 1\n")
    charter = write(*options)
    assert {frozenset(edge) for edge in charter.edges} == {frozenset(edge.split("-")) for edge in edges}


def test_a_graph_that_is_drawn_can_be_drawn_again() -> None:
    people = (*PEOPLE[:2], "carol.crt@carol.example.org:7001", "a-b.crt@d.example.org:1", "b-a.crt@e.example.org:1")
    drawn = [write("--graph", "er:p=0.6", "--seed", seed, people=people).edges for seed in ("1", "1", "2", "3", "4")]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1


def test_names_with_hyphens() -> None:
    people = ("alice.crt@a.example.org:1", "a-b.crt@b.example.org:1", "b-a.crt@c.example.org:1")
    charter = write("--edge", "alice-a-b", "--edge", "a-b-b-a", people=people)
    assert charter.edges == (("alice", "a-b"), ("a-b", "b-a"))


def test_an_at_sign_in_a_file_name() -> None:
    Path("bob.crt").rename("bob@home.crt")
    charter = write("--graph", "star", people=(PEOPLE[0], "bob@home.crt", PEOPLE[2]))
    assert charter.names == ("alice", "bob", "carol")
    assert charter.participants[1].address is None


# new --from


def test_from_an_old_charter_only_the_session_differs() -> None:
    done = invoke("new", "--from", "old.toml", "--session", "s-2")
    new, old = parse_invitation(done.stdout, "stdout").charter, read_charter("old.toml")
    assert new.session == "s-2"
    assert new.digest != old.digest
    digests = old.field_digests
    assert [key for key, digest in new.field_digests.items() if digests[key] != digest] == ["session"]


def test_from_an_old_charter_with_changes() -> None:
    renewed = keys.make_identity("bob", "renewed")
    options = ("--objective", "mean", "--scale", "3", "--wait", "7", "--weight", "alice=2", "--edge", "bob-carol")
    done = invoke(
        "new", "--from", "old.toml", "--session", "s-2", *options, "--edge", "alice-bob", "--edge", "a-b:alice",
        "--renew", renewed.certificate_file, "--add", "a-b.crt@d.example.org:1",
    )  # fmt: skip
    new = parse_invitation(done.stdout, "stdout").charter
    assert new.names == ("alice", "bob", "carol", "a-b")
    assert new.participants[1].fingerprint == renewed.fingerprint
    assert new.participants[1].address == "bob.example.org:7001"
    assert (new.objective, new.scale, new.bounds, new.deadlines.wait, new.deadlines.start) == (
        "mean",
        3.0,
        None,
        7,
        300,
    )
    assert new.participants[0].weight == 2


def test_who_leaves_takes_its_edges_along_and_who_comes_brings_some() -> None:
    more = ("--add", "a-b.crt@d.example.org:1", "--add", "b-a.crt", "--add-edge", "a-b:alice", "--add-edge", "a-b:b-a")
    Path("more.toml").write_text(invoke(*CHANGED, *more, "--remove", "carol").stdout)
    new, found = read_invitation("more.toml")
    assert new.names == ("alice", "bob", "a-b", "b-a")
    assert set(new.edges) == {("alice", "bob"), ("a-b", "alice"), ("a-b", "b-a")}
    assert {name: certificates.fingerprint(der) for name, der in found.items()} == {
        one.name: one.fingerprint for one in new.participants
    }
    back = invoke("new", "--from", "more.toml", "--session", "s-3", "--remove", "a-b", "--graph", "path")
    assert parse_invitation(back.stdout, "stdout").charter.names == ("alice", "bob", "b-a")


def test_the_certificates_are_in_the_file_and_in_no_digest() -> None:
    text = Path("old.toml").read_text()
    assert text.count("BEGIN CERTIFICATE") == 3
    bare = text[: text.index("[certificates]")]
    assert parse_invitation(bare, "bare").charter.digest == read_charter("old.toml").digest
    Path("bare.toml").write_text(bare)
    done = invoke("new", "--from", "bare.toml", "--session", "s-2", "--renew", "bob.crt")
    assert list(read_invitation(_file(done.stdout)).certificates) == ["bob"], "of as many as are known"


def _file(text: str) -> Path:
    Path("written.toml").write_text(text)
    return Path("written.toml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"bob" =', '"dave" ='), "no participant's"),
        (lambda text: text[: text.index("[certificates]")] + "[certificates]\nbob = 3\n", "must be a text in PEM"),
        (lambda text: "certificates = 3\n" + text[: text.index("[certificates]")], "expected a table"),
        (lambda text: text.replace('"bob" =', '"x" =').replace('"alice" =', '"bob" =').replace('"x" =', '"alice" ='),
         "that of bob is another's"),
        (lambda text: re.sub("sha256:.{64}", f"sha256:{'0' * 64}", text, count=1), "alice has another fingerprint"),
        (lambda text: text.replace("BEGIN CERT", "BEGIN"), "expected one certificate in PEM"),
    ],
)  # fmt: skip
def test_certificates_that_are_not_those_of_the_charter(change: Callable[[str], str], said: str) -> None:
    path = _file(change(Path("old.toml").read_text()))
    for command in (("show", path), ("check", path), ("new", "--from", path, "--session", "s-2")):
        done = invoke(*command)
        assert done.exit_code == 2
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("other", ["bob", "an authority"])
def test_a_charter_brings_no_certificate_but_those_of_its_participants(other: str) -> None:
    """Who writes a charter could give a participant the certificate of another, or of an authority of its own."""
    text = Path("old.toml").read_text()
    own, theirs = (certificates.read_certificate(f"{name}.crt") for name in ("carol", "bob"))
    if other != "bob":
        theirs = certify("carol", authority=True)
    swapped = text.replace(certificates.fingerprint(own), certificates.fingerprint(theirs))
    swapped = swapped.replace(ssl.DER_cert_to_PEM_cert(own), ssl.DER_cert_to_PEM_cert(theirs))
    assert swapped.count("BEGIN CERTIFICATE") == 3
    if other == "bob":  # once each
        swapped = swapped.replace(f'"{certificates.fingerprint(theirs)}"', f'"sha256:{"0" * 64}"', 1)
        swapped = swapped.replace(f'"bob" = """\n{ssl.DER_cert_to_PEM_cert(theirs)}"""\n', "", 1)
    done = invoke("check", _file(swapped))
    assert done.exit_code == 2
    assert ("that of carol is another's" if other == "bob" else "make one with: midst keys init") in done.stderr


def test_from_a_quantile_to_a_median_and_back() -> None:
    Path("q.toml").write_text(invoke("new", "--from", "old.toml", "--session", "s-2", "--quantile", "0.9").stdout)
    assert (read_charter("q.toml").objective, read_charter("q.toml").quantile) == ("quantile", 0.9)
    done = invoke("new", "--from", "q.toml", "--session", "s-3", "--objective", "median", "--bounds", "-1:1")
    again = parse_invitation(done.stdout, "stdout").charter
    assert (again.objective, again.quantile, again.bounds) == ("median", None, (-1.0, 1.0))


def test_from_one_method_to_the_other() -> None:
    """What only the old method uses is left behind."""
    options = ("--sigma", "0.3", "--c", "2", "--arity", "2", "--tolerance", "1e-5")
    Path("c.toml").write_text(invoke("new", "--from", "old.toml", "--session", "s-2", *options).stdout)
    done = invoke("new", "--from", "c.toml", "--session", "s-3", "--method", "search", "--pooled")
    found = parse_invitation(done.stdout, "stdout").charter
    assert (found.method, found.arity, found.sigma, found.c, found.tolerance) == ("search", 2, None, None, 1e-6)
    Path("s.toml").write_text(done.stdout)
    back = parse_invitation(
        invoke("new", "--from", "s.toml", "--session", "s-4", "--method", "consensus").stdout, "stdout"
    ).charter
    assert (back.method, back.pooled, back.bounds) == ("consensus", False, (0.0, 100.0))


# check


def test_check_says_the_digest() -> None:
    done = invoke("check", "old.toml")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{read_charter('old.toml').digest.hex()}\n", "")


def trust(folder: str) -> None:
    keys.trust([(name, certificates.read_certificate(name)) for name in ("bob.crt", "carol.crt")], folder)


def test_check_of_a_participant() -> None:
    check = ("check", "old.toml", "--name", "alice", "--key", "keys/alice.key")
    done = invoke(*check)
    assert done.exit_code == 2
    assert "keys/trusted lacks bob, carol; add with: midst keys trust" in done.stderr
    trust("keys")
    done = invoke(*check)
    assert (done.exit_code, done.stdout) == (0, f"{read_charter('old.toml').digest.hex()}\n")


def test_check_warns_about_expiry() -> None:
    soon = keys.make_identity("alice", "soon", days=3)
    Path("s.toml").write_text(
        invoke("new", "--from", "old.toml", "--session", "s-2", "--renew", soon.certificate_file).stdout
    )
    trust("soon")
    done = invoke("check", "s.toml", "--name", "alice", "--key", soon.key_file)
    assert done.exit_code == 0
    assert done.stderr.startswith("midst: warning: the certificate of alice expires in 2 days")


# show


def rows(text: str) -> dict[str, str]:
    lines = text.partition("\n\n")[0].splitlines()
    return {line[:12].strip(): line[14:] for line in lines if line[:12].strip()}


def test_show_for_people() -> None:
    charter = read_charter("old.toml")
    done = invoke("show", "old.toml")
    assert (done.exit_code, done.stderr) == (0, "")
    said = rows(done.stdout)
    assert said["finds"] == "the median of 3 participants"
    assert said["edges"] == "3: alice - bob, alice - carol, bob - carol"
    assert said["parameters"].startswith("theta = 0.5, c = 0.04 (chosen), mu = -2 (chosen), sigma = 0.1 (chosen)")
    assert said["method"] == "consensus"
    assert said["ends"].startswith("by a search once all x are close; when everybody has signed")
    assert said["digest"] == charter.digest.hex()
    for one in charter.participants:
        assert f"{one.name}  {one.address or 'only dials'}  {one.fingerprint}" in done.stdout
    for word in ("private", "secure", "safe"):  # never said of a run as a whole
        assert word not in done.stdout


def test_show_as_json() -> None:
    charter = read_charter("old.toml")
    found = json.loads(invoke("show", "old.toml", "--json").stdout)
    assert found["digest"] == charter.digest.hex()
    assert found["stop"] == "exact"
    assert found["settled"] == {
        "c": 0.04, "mu": -2.0, "sigma": 0.1, "scale": 25.0, "theta": 0.5, "arity": 3, "spacing": "rank",
    }  # fmt: skip
    assert found["charter"]["session"] == "s-1"
    assert any("not whose value the answer is" in line for line in found["told"])
    Path("search.toml").write_text(invoke(*SEARCH, "--graph", "ring", *PEOPLE).stdout)
    found = json.loads(invoke("show", "search.toml", "--json").stdout)
    assert found["settled"] == {"arity": 3, "spacing": "rank"}
    assert found["charter"]["method"] == "search"


@pytest.mark.parametrize(
    ("options", "told", "untold"),
    [
        (
            (),
            ["between public thresholds", "x is your value itself", "which closes in on it", "within k ranks"],
            ["Give them a second", "Weights differ"],
        ),
        (
            ("--objective", "mean"),
            ["pool what they know: your value", "the largest and the smallest x"],
            ["between public thresholds", "can choose which honest"],
        ),
        (
            ("--method", "search"),
            [
                "between public thresholds",
                "not whose value the answer is",
                "with k liars the answer is within k ranks of the true one",
            ],
            ["z(0)", "x is your value", "how many values each", "Each further run", "can choose which honest"],
        ),
        (("--method", "search", "--no-verify"), ["can choose which honest value is published"], ["within k ranks"]),
        (("--method", "search", "--pooled"), ["how many values each participant has"], ["z(0)"]),
        (("--method", "search", "--weight", "bob=2"), ["totals of weights can tell whose value lies where"], []),
        (("--edge", "alice-bob", "--edge", "bob-carol"), ["all the neighbours of: alice, carol"], []),
    ],
)
def test_what_is_told_to_whom(options: tuple[str, ...], told: list[str], untold: list[str]) -> None:
    Path("new.toml").write_text(invoke("new", "--from", "old.toml", "--session", "s-2", *options).stdout)
    text = " ".join(invoke("show", "new.toml").stdout.split())
    for part in told:
        assert part in text
    for part in untold:
        assert part not in text


def test_show_of_other_kinds() -> None:
    options = ("--coordinates", "3", "--weight", "bob=2", "--quantile", "0.3", "--definition", "inverted_cdf_high")
    moved = ("--renew", "carol.crt@carol.example.org:7001")
    done = invoke("new", "--from", "old.toml", "--session", "s-2", *options, *moved)
    Path("new.toml").write_text(done.stdout)
    said = rows(invoke("show", "new.toml").stdout)
    assert said["finds"] == "the quantile 0.3 in each of 3 coordinates of 3 participants"
    assert ", weight 1" in said["participants"]
    Path("scale.toml").write_text(invoke("new", "--from", "old.toml", "--session", "s-2", "--scale", "2").stdout)
    said = rows(invoke("show", "scale.toml").stdout)
    assert said["public"] == "all values lie between -2000 and 2000, about 2 from each other"
    options = ("--pooled", "--resolution", "0.5", "--spacing", "1,2,3")
    Path("lists.toml").write_text(invoke(*SEARCH, "--graph", "ring", *options, *PEOPLE).stdout)
    said = rows(invoke("show", "lists.toml").stdout)
    assert said["finds"] == "the median of 3 participants, of all their values together"
    assert said["public"] == "no bounds; values are told apart to 0.5"
    assert said["parameters"] == "3 thresholds a probe, placed by 3 public quantiles; votes are proved"
    assert said["ends"] == "when everybody has signed the answer that the totals prove"


# What is refused


def file(name: str, text: str = SECRET) -> Callable[[], object]:
    return lambda: Path(name).write_text(text)


def nothing() -> None:
    pass


RING = (*NEW, "--graph", "ring")
HIGH, MIDPOINT = ("--definition", "inverted_cdf_high"), ("--definition", "averaged_inverted_cdf")
CHECK = ("check", "old.toml", "--name", "alice", "--key")
REFUSALS: dict[str, tuple[Callable[[], object], tuple[str, ...], str]] = {
    "no command": (nothing, ("walk",), "No such command 'walk'"),
    # who
    "nobody": (nothing, RING, "who takes part?"),
    "one alone": (nothing, (*NEW, "--edge", "alice-alice", "alice.crt@h:1"), "at least two are needed"),
    "no certificate": (nothing, (*RING, *PEOPLE, "none.crt"), "none.crt: No such file"),
    "no certificate at": (nothing, (*RING, *PEOPLE, "none.crt@h:1"), "none.crt: No such file"),
    "a text": (file("x.crt"), (*RING, *PEOPLE, "x.crt"), "x.crt: expected one certificate"),
    "a key": (nothing, (*RING, *PEOPLE, "keys/alice.key"), "found a private key"),
    "an authority": (nothing, (*RING, *PEOPLE, "board.crt@h:1"), "board.crt: the certificate is not one of"),
    "somebody twice": (nothing, (*RING, *PEOPLE, "alice.crt@h:1"), "alice is given twice"),
    "an address twice": (nothing, (*RING, "alice.crt@h:1", "bob.crt@h:1", "carol.crt"), "bob have the same address"),
    "no port": (nothing, (*RING, "alice.crt@h", *PEOPLE[1:]), "participants[0]: address must be host:port"),
    "port too large": (nothing, (*RING, "alice.crt@h:99999", *PEOPLE[1:]), "address must be host:port"),
    "host odd": (nothing, (*RING, "alice.crt@h h:1", *PEOPLE[1:]), "the host must be a name"),
    "any host": (nothing, (*RING, "alice.crt@0.0.0.0:1", *PEOPLE[1:]), "nobody can dial 0.0.0.0"),
    "nobody to dial": (nothing, (*RING, "alice.crt", "bob.crt", "carol.crt@h:1"), "neither has an address"),
    "weight of nobody": (nothing, (*RING, *PEOPLE, "--weight", "dave=1"), "no participant of that name"),
    "weight of nothing": (nothing, (*RING, *PEOPLE, "--weight", "alice"), "--weight of alice must be a whole number"),
    "weight negative": (nothing, (*RING, *PEOPLE, "--weight", "alice=-1"), "--weight of alice must be a whole number"),
    "weight a fraction": (nothing, (*RING, *PEOPLE, "--weight", "alice=1.5"), "--weight of alice must be"),
    "weight huge": (nothing, (*RING, *PEOPLE, "--weight", "alice=9999999999999999"), "weight of alice must be"),
    # edges
    "no edges": (nothing, (*NEW, *PEOPLE), "who talks to whom?"),
    "graph and edges": (nothing, (*RING, "--edge", "alice-bob", *PEOPLE), "give --graph or edges, not both"),
    "unknown graph": (nothing, (*NEW, "--graph", "donut", *PEOPLE), "donut"),
    "graph file missing": (nothing, (*NEW, "--graph", "none.txt", *PEOPLE), "none.txt: No such file"),
    "graph of others": (file("g.txt", "alice bob\nbob dave"), (*NEW, "--graph", "g.txt", *PEOPLE), "'dave' is no part"),
    "graph too small": (file("g.txt", "alice bob\n"), (*NEW, "--graph", "g.txt", *PEOPLE), "has 2 nodes for 3"),
    "too few for a ring": (nothing, (*RING, *PEOPLE[:2]), "--graph ring, 2 participants: n must be at least 3"),
    "edge to nobody": (nothing, (*NEW, "--edge", "alice-dave", *PEOPLE), "names no two participants"),
    "edge of one": (nothing, (*NEW, "--edge", "alice", *PEOPLE), "names no two participants"),
    "edge odd": (nothing, (*NEW, "--edge", "alice-\x1b[2J", *PEOPLE), r"'alice-\x1b[2J' names no two participants"),
    "edge to itself": (nothing, (*NEW, "--edge", "alice-alice", *PEOPLE), "joins a participant to itself"),
    "edge twice": (nothing, (*NEW, "--edge", "alice-bob", "--edge", "bob-alice", *PEOPLE), "is given twice"),
    "falls apart": (nothing, (*NEW, "--edge", "alice-bob", *PEOPLE), "graph has 2 components"),
    # what
    "no session": (nothing, ("new", "--graph", "ring", *PEOPLE), "Missing option '--session'"),
    "session odd": (nothing, ("new", "--session", "A b", *BY_RING, "--scale", "1", *PEOPLE), "session must"),
    "nothing public": (
        nothing, ("new", "--session", "s", "--method", "consensus", "--graph", "ring", *PEOPLE), "give exactly one"),
    "both public": (nothing, (*RING, "--scale", "1", *PEOPLE), "give --bounds or --scale, not both"),
    "bounds of one": (nothing, (*RING, "--bounds", "5", *PEOPLE), "--bounds must be two numbers"),
    "bounds of words": (nothing, (*RING, "--bounds", f"a:{SECRET}", *PEOPLE), "--bounds must be two numbers"),
    "bounds reversed": (nothing, (*RING, "--bounds", "5:1", *PEOPLE), "bounds must be two finite numbers"),
    "scale zero": (nothing, ("new", "--session", "s", *BY_RING, "--scale", "0", *PEOPLE), "scale must be"),
    "unknown objective": (nothing, (*RING, "--objective", "mode", *PEOPLE), "'mode' is not one of"),
    "two objectives": (nothing, (*RING, "--objective", "mean", "--quantile", "0.5", *PEOPLE), "not both"),
    "quantile too large": (nothing, (*RING, "--quantile", "1.5", *PEOPLE), "quantile must be in [0, 1]"),
    "definition of a mean": (nothing, (*RING, "--objective", "mean", *HIGH, *PEOPLE), "there is only one mean"),
    # how
    "no method": (nothing, ("new", "--session", "s", "--graph", "ring", "--bounds", "0:1", *PEOPLE), "give --method"),
    "unknown method": (nothing, (*RING, "--method", "guess", *PEOPLE), "'guess' is not one of"),
    "a mean by search": (
        nothing,
        (*RING, "--method", "search", "--objective", "mean", *PEOPLE),
        "a mean by search needs both",
    ),
    "sigma of a search": (nothing, (*SEARCH, "--graph", "ring", "--sigma", "1", *PEOPLE), "sigma is for method"),
    "scale of a search": (nothing, (*SEARCH, "--graph", "ring", "--scale", "1", *PEOPLE), "scale is for method"),
    "lists in an iteration": (nothing, (*RING, "--pooled", *PEOPLE), "pooled is for method"),
    "midpoint of an iteration": (nothing, (*RING, *MIDPOINT, *PEOPLE), "definition: the midpoint"),
    "midpoint of floats": (nothing, (*SEARCH, "--graph", "ring", *MIDPOINT, *PEOPLE), "a public resolution"),
    "two of a search": (nothing, (*SEARCH, "--graph", "path", *PEOPLE[:2]), "a search needs at least three"),
    "a histogram": (nothing, (*RING, "--arity", "8", *PEOPLE), "arity must be from 1 to 7"),
    "spacing a word": (nothing, (*RING, "--spacing", "random", *PEOPLE), "--spacing must be rank, value, key"),
    "spacing one number": (nothing, (*RING, "--spacing", "3", *PEOPLE), "spacing by quantiles needs"),
    "resolution zero": (nothing, (*RING, "--resolution", "0", *PEOPLE), "resolution must be a positive"),
    "resolution too fine": (nothing, (*RING, "--resolution", "1e-300", *PEOPLE), "resolution is too fine"),
    "c zero": (nothing, (*RING, "--c", "0", *PEOPLE), "c must be positive"),
    "c a word": (nothing, (*RING, "--c", "small", *PEOPLE), "'small' is not a valid float"),
    "theta one": (nothing, (*RING, "--theta", "1", *PEOPLE), "theta = 1 does not converge"),
    "sigma negative": (nothing, (*RING, "--sigma", "-1", *PEOPLE), "sigma must not be negative"),
    "mu nan": (nothing, (*RING, "--mu", "nan", *PEOPLE), "mu must be finite"),
    "no coordinates": (nothing, (*RING, "--coordinates", "0", *PEOPLE), "coordinates must be at least 1"),
    "no rounds": (nothing, (*RING, "--rounds", "0", *PEOPLE), "rounds must be from 1"),
    "no time": (nothing, (*RING, "--total", "0", *PEOPLE), "deadlines: total must be a positive"),
    "seed negative": (nothing, (*RING, "--seed", "-1", *PEOPLE), "'--seed'"),
    # files
    "out exists": (nothing, (*RING, "--out", "old.toml", *PEOPLE), "old.toml exists and is not written over"),
    "out over a key": (nothing, (*RING, "--out", "keys/alice.key", *PEOPLE), "is not written over"),
    "out into nowhere": (nothing, (*RING, "--out", "none/new.toml", *PEOPLE), "folder none does not exist"),
    "from nothing": (nothing, ("new", "--from", "none.toml", "--session", "s-2"), "none.toml: No such file"),
    "from a text": (file("x.toml"), ("new", "--from", "x.toml", "--session", "s-2"), "x.toml: not TOML"),
    "from the same session": (nothing, ("new", "--from", "old.toml", "--session", "s-1"), "has this session already"),
    "a newcomer without edges": (nothing, (*CHANGED, "--add", "a-b.crt@h:1"), "compon"),
    "a certificate, and what of it": (nothing, (*CHANGED, "bob.crt"), "--renew"),
    "one more of nothing": (nothing, (*RING, *PEOPLE, "--add", "a-b.crt@h:1"), "give it by --from"),
    "one more who is there": (nothing, (*CHANGED, "--add", "bob.crt"), "bob takes part already"),
    "a newcomer renewed": (nothing, (*CHANGED, "--renew", "a-b.crt@h:1"), "a-b is no participant yet"),
    "renewed twice": (nothing, (*CHANGED, "--renew", "bob.crt", "--renew", "bob.crt"), "bob is given twice"),
    "who is not there leaves": (nothing, (*CHANGED, "--remove", "dave"), "there are alice, bob, carol"),
    "nobody is left": (nothing, (*CHANGED, "--remove", "bob", "--remove", "carol"), "at least two are needed"),
    "an edge of nobody": (nothing, (*CHANGED, "--add-edge", "bob-dave"), "--add-edge 'bob-dave' names no two"),
    "an edge that is there": (nothing, (*CHANGED, "--add-edge", "bob-alice"), "is given twice"),
    "all edges and one more": (nothing, (*CHANGED, "--edge", "alice-bob", "--add-edge", "bob-carol"), "not both"),
    "a graph and an edge": (nothing, (*CHANGED, "--graph", "ring", "--add-edge", "bob-carol"), "not both"),
    # check and show
    "check nothing": (nothing, ("check", "none.toml"), "none.toml: No such file"),
    "check a folder": (nothing, ("check", "keys"), "keys: Is a directory"),
    "check a text": (file("x.toml"), ("check", "x.toml"), "x.toml: not TOML"),
    "check name alone": (nothing, ("check", "old.toml", "--name", "alice"), "give --name and --key together"),
    "check key alone": (nothing, ("check", "old.toml", "--key", "keys/alice.key"), "give --name and --key together"),
    "check nobody": (nothing, ("check", "old.toml", "--name", "dave", "--key", "keys/alice.key"), "dave is no part"),
    "check another": (nothing, ("check", "old.toml", "--name", "bob", "--key", "keys/alice.key"), "not of bob"),
    "check no key": (nothing, (*CHECK, "none.key"), "none.key: No such file"),
    "check an open key": (lambda: Path("keys/alice.key").chmod(0o640), (*CHECK, "keys/alice.key"), "chmod 600"),
    "check a renewed key": (lambda: keys.make_identity("alice", "new"), (*CHECK, "new/alice.key"), "the charter has"),
    "show nothing": (nothing, ("show", "none.toml"), "none.toml: No such file"),
    "show a key": (nothing, ("show", "keys/alice.key"), "keys/alice.key: not TOML"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, folder: Path) -> None:
    prepare, arguments, message = REFUSALS[case]
    prepare()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    out = () if "--out" in arguments or arguments[0] != "new" else ("--out", "new.toml")
    done = invoke(*arguments, *out)
    assert message in done.stderr
    assert done.stderr.startswith("midst: error: ")
    assert len(done.stderr.splitlines()) == 1
    assert (done.exit_code, done.stdout) == (2, "")
    assert SECRET not in done.output
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_an_edge_that_can_be_read_in_two_ways() -> None:
    for name in ("a", "b"):
        Path(f"{name}.crt").write_bytes(keys.make_identity(name, "more").certificate_file.read_bytes())
    people = ("a.crt@h:1", "b.crt@h:2", "a-b.crt@h:3", "b-a.crt@h:4")
    done = invoke(*NEW, "--edge", "a-b-a", *people)
    assert done.exit_code == 2
    assert "'a-b-a' can be read in more than one way; write A:B" in done.stderr
    edges = ("--edge", "a:b-a", "--edge", "a-b:a", "--edge", "a:b")
    assert invoke(*NEW, *edges, *people).exit_code == 0


def test_what_to_expect_is_said_in_ranges_before_anybody_agrees() -> None:
    given = ("--session", "s", "--graph", "ring", "--bounds", "0:60", "--spread", "1.5", "--out", "five.toml")
    done = invoke("new", *given, "--method", "search", *PEOPLE)
    assert done.exit_code == 0
    head, told = " ".join(done.stderr.split()).split(": - ")
    assert head.startswith("What to expect, whatever the shape of the values, about 1.5 apart (bits")
    taken = "# to # probes, # to # rounds, # to # kB a node (over TLS, proofs included), nobody exposed, "
    bits = "# to # bits about a value (# to # by the answer alone) five.toml: "
    assert re.sub(r"[\d.,]*\d", "#", told).startswith(taken + bits)
    shown = invoke("show", "five.toml").stdout.partition("\n\nWhat to expect, whatever the shape of the values (bits")
    assert "kB a node" in shown[2]
    assert invoke("new", *given[:-1], "six.toml", *PEOPLE).exit_code == 2, "with real data there is no default"
    assert invoke("new", *given[:-1], "six.toml", "--method", "search", "--spread", "0", *PEOPLE).exit_code == 2
    done = invoke("new", *given[:-1], "seven.toml", "--method", "consensus", "--no-verify", *PEOPLE)
    assert "≤ " in done.stderr
    assert "nobody exposed" not in done.stderr
    assert "(over TLS, proofs left out)" in done.stderr


EXPECTED = {
    "without bounds": (("--method", "search"), "a forecast of rounds, bytes and bits needs bounds"),
    "noise": (("--method", "search", *"--dp eps=1,delta=0.1 --pooled --bounds 0:9 --resolution 1".split()), ""),
    "lists": (("--method", "search", "--pooled", "--bounds", "0:9"), "- 1,000 values in all: "),
    "mean": (("--method", "search", *"--objective mean --bounds 0:9 --resolution 1".split()), "- 1 probe, 3 rounds, "),
    "an iterated mean": (("--method", "consensus", "--objective", "mean", "--bounds", "0:9"), "that a search finds"),
    "two coordinates": (("--method", "search", "--coordinates", "2", "--bounds", "0:9"), "nobody exposed, "),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPECTED)
def test_what_cannot_be_foretold_is_left_out(case: str) -> None:
    options, words = EXPECTED[case]
    done = invoke("new", "--session", "s", "--graph", "ring", *options, *PEOPLE)
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert words in said
    assert ("What to expect" in said) == bool(words)
    assert " nan" not in said


def test_a_charter_with_one_more_is_warned_about() -> None:
    first = ("--session", "s", "--method", "consensus", "--edge", "alice-bob", "--scale", "1", "--out", "two.toml")
    assert invoke("new", *first, *PEOPLE[:2]).exit_code == 0
    more = invoke(
        "new", "--from", "two.toml", "--session", "t", "--graph", "ring", "--add", PEOPLE[2], "--out", "more.toml"
    )
    assert more.exit_code == 0
    assert "those of s but for carol" in more.stderr
    same = invoke("new", "--from", "two.toml", "--session", "t", "--out", "same.toml")
    assert "but for" not in same.stderr
