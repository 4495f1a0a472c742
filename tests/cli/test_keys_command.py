"""`midst keys`: what it makes, shows and refuses."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from midst.cli import main
from midst.cli.keys import in_groups
from midst.net.identity import certificates, keys

SECRET = "31337.4242"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["keys", *map(str, arguments)])


def done_well(*arguments: str | Path) -> Result:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder to work in, with alice's keys and bob's certificate in it."""
    monkeypatch.chdir(tmp_path)
    keys.make_identity("alice", "keys")
    bob = keys.make_identity("bob", "elsewhere")
    Path("bob.crt").write_bytes(bob.certificate_file.read_bytes())
    return tmp_path


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_init_makes_a_key_and_shows_its_fingerprint() -> None:
    done = done_well("init", "carol", "--days", "20")
    made = keys.load_identity("keys/carol.key")
    assert done.stdout == f"carol  {made.fingerprint}\n"
    assert "keys/carol.key: the private key, readable by you alone" in done.stderr
    assert "PRIVATE" not in done.output
    assert stat.S_IMODE(made.key_file.stat().st_mode) == 0o600


def test_trust_shows_what_to_compare() -> None:
    done = done_well("trust", "bob.crt")
    fingerprint = certificates.fingerprint(certificates.read_certificate("bob.crt"))
    assert done.stdout == f"bob  {in_groups(fingerprint)}\n"
    assert done.stdout.replace(" ", "")[3:-1] == fingerprint.removeprefix("sha256:")
    assert "by telephone" in done.stderr
    assert Path("keys/trusted/bob.crt").exists()
    done_well("trust", "bob.crt")  # again: nothing changes


def test_trust_of_another_certificate_must_be_said() -> None:
    done_well("trust", "bob.crt")
    renewed = keys.make_identity("bob", "renewed").certificate_file
    before = Path("keys/trusted/bob.crt").read_bytes()
    done = invoke("trust", renewed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "if bob has a new one, add --replace" in done.stderr
    assert Path("keys/trusted/bob.crt").read_bytes() == before
    done_well("trust", renewed, "--replace")
    assert certificates.read_certificate("keys/trusted/bob.crt") == certificates.read_certificate(renewed)


def charter(*people: Path) -> str:
    """A charter of these certificates, with them in it."""
    given = [f"{path}@h{k}.example.org:1" for k, path in enumerate(people)]
    line = ["charter", "new", "--session", "s", "--method", "search", "--graph", "ring", "--out", "pay.toml", *given]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.stderr
    return "pay.toml"


def test_one_file_brings_everybodys_certificates(folder: Path) -> None:
    carol = keys.make_identity("carol", "elsewhere")
    pay = charter(Path("keys/alice.crt"), Path("bob.crt"), carol.certificate_file)
    done = done_well("trust", "bob.crt")
    done = done_well("trust", pay)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["bob", "carol"], "and not one's own"
    assert "(as before)" in done.stdout.splitlines()[0]
    assert "compare the fingerprints of carol with their owners" in done.stderr
    assert sorted(path.name for path in Path("keys/trusted").iterdir()) == ["bob.crt", "carol.crt"]
    assert "compare" not in done_well("trust", pay).stderr, "nothing is new"


def test_parties_that_share_a_folder_trust_each_other() -> None:
    for name in ("carol", "dave"):
        keys.make_identity(name, "keys")
    pay = charter(*(Path(f"keys/{name}.crt") for name in ("alice", "carol", "dave")), Path("bob.crt"))
    done = done_well("trust", pay)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["alice", "carol", "dave", "bob"]
    assert "compare the fingerprints of bob with their owners" in done.stderr, "nobody telephones itself"
    for name in ("alice", "carol", "dave"):
        trusted = {path.stem for path in keys.load_identity(f"keys/{name}.key").trusted}
        assert trusted == {"alice", "bob", "carol", "dave"}
    again = done_well("trust", pay)
    assert (again.stdout.count("(as before)"), again.stderr) == (4, "")


def test_a_key_may_have_another_file_name() -> None:
    carol = keys.make_identity("carol", "elsewhere")
    pay = charter(Path("keys/alice.crt"), Path("bob.crt"), carol.certificate_file)
    for kind in ("crt", "key"):
        Path(f"keys/alice.{kind}").rename(f"keys/mine.{kind}")
    done = done_well("trust", pay)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["bob", "carol"]


@pytest.mark.parametrize("place", ["keys", "empty", "none"])
def test_a_charter_in_which_ones_key_takes_no_part_is_refused(folder: Path, place: str) -> None:
    """Nodes with keys elsewhere would trust nobody, and wait."""
    others = [keys.make_identity(name, "elsewhere").certificate_file for name in ("carol", "dave")]
    pay = charter(Path("bob.crt"), *others)
    Path("empty").mkdir()
    before = everything(folder)
    done = invoke("trust", pay, "--folder", place)
    assert (done.exit_code, done.stdout) == (2, "")
    told = f"no key in {place} is a participant's; give the folder of yours with --folder"
    assert done.stderr == f"midst: error: pay.toml: {told}\n"
    assert everything(folder) == before


def test_a_charter_with_some_certificates_says_whose_it_lacks() -> None:
    carol = keys.make_identity("carol", "elsewhere")
    pay = Path(charter(Path("keys/alice.crt"), Path("bob.crt"), carol.certificate_file))
    head, carols = pay.read_text().split('"carol" = """')
    pay.write_text(head)
    done = done_well("trust", pay)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["bob"]
    assert "pay.toml: no certificate of carol in it" in done.stderr
    pay.write_text(head.split('"bob" = """')[0] + '"carol" = """' + carols)
    assert "no certificate of bob in it" in done_well("trust", pay).stderr
    pay.write_text(head.split('"bob" = """')[0])
    done = invoke("trust", pay)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no certificates of others in this charter; give them as files" in done.stderr


def test_a_charter_with_another_certificate_of_ones_own_is_refused(folder: Path) -> None:
    other, carol = keys.make_identity("alice", "other"), keys.make_identity("carol", "elsewhere")
    pay = charter(other.certificate_file, Path("bob.crt"), carol.certificate_file)
    before = everything(folder)
    done = invoke("trust", pay)
    assert done.exit_code == 2
    assert "not your own certificate of alice" in done.stderr
    assert everything(folder) == before


def test_a_charter_without_certificates_brings_none(folder: Path) -> None:
    carol = keys.make_identity("carol", "elsewhere")
    pay = Path(charter(Path("keys/alice.crt"), Path("bob.crt"), carol.certificate_file))
    pay.write_text(pay.read_text().partition("[certificates]")[0])
    done = invoke("trust", pay)
    assert done.exit_code == 2
    assert "no certificates of others in this charter" in done.stderr


def test_a_renewed_key_is_another_and_the_old_one_is_kept(folder: Path) -> None:
    old = keys.make_identity("carol", "keys")
    done_well("trust", "bob.crt")
    done = done_well("renew", "keys/carol.key", "--days", "30")
    new = keys.load_identity("keys/carol.key")
    assert done.stdout == f"carol  {new.fingerprint}\n"
    assert new.fingerprint != old.fingerprint
    [kept] = Path("keys").glob("carol.*.key")
    assert str(kept) in done.stderr
    assert stat.S_IMODE(kept.stat().st_mode) == stat.S_IMODE(new.key_file.stat().st_mode) == 0o600
    still = keys.load_identity(kept)
    assert (still.name, still.fingerprint, still.trusted) == ("carol", old.fingerprint, new.trusted)
    done_well("renew", "keys/carol.key")
    assert len(list(Path("keys").glob("carol.*.key"))) == 2


def test_a_renewal_takes_nobodys_place(folder: Path) -> None:
    """Participants may have dots in their names."""
    old = keys.load_identity("keys/alice.key")
    short = old.fingerprint.removeprefix("sha256:")[:16]
    others = [keys.make_identity(name, "keys") for name in ("alice.new", f"alice.{short}")]
    before = everything(folder)
    done = invoke("renew", "keys/alice.key")
    assert done.exit_code == 2
    assert "is another key, where the old one is to be kept" in done.stderr
    assert everything(folder) == before
    others[1].key_file.unlink()
    others[1].certificate_file.unlink()
    done_well("renew", "keys/alice.key")
    assert keys.load_identity("keys/alice.new.key").fingerprint == others[0].fingerprint


def test_a_renewal_cut_short_can_be_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = keys.load_identity("keys/alice.key")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for broken in ("write_whole", "_write_key"):
        with monkeypatch.context() as patch:
            patch.setattr(keys, broken, full)
            assert invoke("renew", "keys/alice.key").exit_code == 1
        assert keys.load_identity("keys/alice.key").fingerprint == old.fingerprint
    assert keys.load_identity("keys/alice.key").key_file.exists()
    done_well("renew", "keys/alice.key")
    assert keys.load_identity("keys/alice.key").fingerprint != old.fingerprint


def test_show() -> None:
    done_well("trust", "bob.crt")
    done = done_well("show")
    assert [line.split("  ")[0] for line in done.stdout.splitlines()[::2]] == ["alice", "bob"]
    assert "    valid until" in done.stdout
    assert done.stderr == ""
    rows = json.loads(done_well("show", "--json").stdout)
    assert [row["name"] for row in rows] == ["alice", "bob"]
    assert rows[0]["fingerprint"] == keys.load_identity("keys/alice.key").fingerprint
    assert rows == json.loads(done_well("show", "keys", "--json").stdout)
    assert rows[:1] == json.loads(done_well("show", "keys/alice.key", "--json").stdout)


def test_expiry_is_warned_about_by_all_that_load_an_identity() -> None:
    done_well("init", "carol", "--days", "20")
    warning = "midst: warning: the certificate of carol expires in 19 days"
    done = done_well("show", "keys/carol.crt")
    assert done.stderr.startswith(warning)
    assert json.loads(done_well("show", "keys/carol.crt", "--json").stdout)[0]["warning"].startswith("the certificate")
    assert "warning: the certificate of carol" in done_well("trust", "keys/carol.crt").stderr


def test_help_says_where_keys_are() -> None:
    assert "./keys" in invoke("--help").stdout
    for name in ("init", "trust", "renew", "show"):
        assert invoke(name, "--help").exit_code == 0


# What is refused


def file(name: str, text: str = SECRET) -> Callable[[], object]:
    return lambda: Path(name).write_text(text)


def nothing() -> None:
    pass


DAMAGED = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
REFUSALS: dict[str, tuple[Callable[[], object], tuple[str, ...], str]] = {
    "no command": (nothing, ("walk",), "No such command 'walk'"),
    # init
    "no name": (nothing, ("init",), "Missing argument 'NAME'"),
    "two names": (nothing, ("init", "carol", "dave"), "unexpected extra argument"),
    "capital": (nothing, ("init", "Carol"), "name must be 1 to 64"),
    "blank": (nothing, ("init", "ca rol"), "name must be 1 to 64"),
    "path": (nothing, ("init", "../carol"), "name must be 1 to 64"),
    "dots": (nothing, ("init", ".."), "name must be 1 to 64"),
    "long": (nothing, ("init", "c" * 65), "name must be 1 to 64"),
    "empty": (nothing, ("init", ""), "name must be 1 to 64"),
    "no days": (nothing, ("init", "carol", "--days", "0"), "days must be a whole number from 1"),
    "negative days": (nothing, ("init", "carol", "--days", "-5"), "days must be a whole number from 1"),
    "half days": (nothing, ("init", "carol", "--days", "1.5"), "'1.5' is not a valid integer"),
    "for ever": (nothing, ("init", "carol", "--days", "99999"), "days must be a whole number from 1"),
    "again": (nothing, ("init", "alice"), "keys/alice.key exists"),
    "certificate there": (file("keys/carol.crt"), ("init", "carol"), "keys/carol.crt exists"),
    "folder is a file": (file("thing"), ("init", "carol", "--folder", "thing"), "thing: cannot be made"),
    # renew
    "no key": (nothing, ("renew",), "Missing argument 'KEY'"),
    "key open to all": (lambda: Path("keys/alice.key").chmod(0o644), ("renew", "keys/alice.key"), "chmod 600"),
    "key without certificate": (lambda: Path("keys/alice.crt").unlink(), ("renew", "keys/alice.key"), "No such file"),
    "renew nothing": (nothing, ("renew", "keys/none.key"), "keys/none.key: No such file"),
    "renew a certificate": (nothing, ("renew", "bob.crt"), "a key file ends in .key"),
    "renew for no time": (nothing, ("renew", "keys/alice.key", "--days", "0"), "days must be a whole number"),
    # trust
    "trust nobody": (nothing, ("trust",), "Missing argument"),
    "trust nothing": (nothing, ("trust", "none.crt"), "none.crt: No such file"),
    "trust a text": (file("x.crt"), ("trust", "bob.crt", "x.crt"), "x.crt: expected one certificate"),
    "trust a key": (nothing, ("trust", "bob.crt", "keys/alice.key"), "found a private key"),
    "trust a folder": (nothing, ("trust", "keys"), "keys: Is a directory"),
    "trust from nowhere": (nothing, ("trust", "bob.crt", "--folder", "none"), "first make your own key"),
    "trusted is a file": (file("keys/trusted"), ("trust", "bob.crt"), "keys/trusted: cannot be made"),
    # show
    "show nothing": (nothing, ("show", "none.crt"), "none.crt: No such file"),
    "show an empty folder": (lambda: Path("empty").mkdir(), ("show", "empty"), "empty: no certificate in this folder"),
    "show a text": (file("x.crt"), ("show", "x.crt"), "x.crt: expected one certificate"),
    "show a damaged one": (file("keys/z.crt", DAMAGED), ("show",), "keys/z.crt: the certificate is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, folder: Path) -> None:
    prepare, arguments, message = REFUSALS[case]
    prepare()
    before = everything(folder)
    done = invoke(*arguments)
    assert message in done.stderr
    assert done.stderr.startswith("midst: error: ")
    assert len(done.stderr.splitlines()) == 1
    assert (done.exit_code, done.stdout) == (2, "")
    assert SECRET not in done.output
    assert everything(folder) == before
