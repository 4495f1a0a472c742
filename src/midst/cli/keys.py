"""`midst keys`: a participant's key and certificate, and whom it trusts.

Rules:
- Everything is checked before the first byte is written, and no file that exists is written over.
- Fingerprints go to stdout, in groups where people are to compare them; what else there is to say goes to stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from midst.net.identity.certificates import Kind
    from midst.net.identity.keys import Identity

_FOLDER = Path("keys")
_A_FILE = click.Path(path_type=Path)
_FOLDER_HELP = "Where your key is."
_EXAMPLES = """\b
Each participant, on its own host:
  midst keys init alice                      makes keys/alice.key and keys/alice.crt
  midst keys trust pay.toml                  the certificates in a charter, or in files such as bob.crt
  midst keys renew keys/alice.key            a new key and certificate, before the old one expires
With an authority, so that nobody has to collect certificates:
  midst keys init board --authority          the authority; gives board.crt to everybody
  midst keys request keys/alice.key          alice; gives keys/alice.csr to the authority
  midst keys sign alice.csr --key keys/board.key --out alice.crt
                                             the authority; alice puts it in place of keys/alice.crt
  midst keys trust board.crt                 everybody"""


@click.group(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
def command() -> None:
    """Make keys and certificates, and say whom you trust.

    Keys are kept in the folder ./keys unless you say otherwise: NAME.key (yours alone; it never leaves this host),
    NAME.crt (for everybody) and trusted/ (the certificates of others).
    """


@command.command()
@click.argument("name")
@click.option("--folder", type=_A_FILE, default=_FOLDER, show_default=True, help="Where to put them; made if need be.")
@click.option("--kind", type=click.Choice(["ed25519", "p256"]), default="ed25519", show_default=True)
@click.option("--days", type=int, default=365, show_default=True, help="How long the certificate is valid.")
@click.option("--authority", is_flag=True, help="It signs the certificates of others, and takes part in no run.")
def init(name: str, folder: Path, kind: Kind, days: int, authority: bool) -> None:
    """Make a key and its certificate for NAME."""
    from midst.net.identity.keys import make_identity

    made = make_identity(name, folder, kind, days, authority=authority)
    click.echo(f"{made.name}  {made.fingerprint}")
    click.echo(f"{made.key_file}: the private key, readable by you alone; it never leaves this host", err=True)
    click.echo(f"{made.certificate_file}: the certificate, until {made.expires:%Y-%m-%d}; give it to others", err=True)


@command.command()
@click.argument("key", type=_A_FILE)
@click.option("--out", type=_A_FILE, metavar="FILE", help="Default: NAME.csr beside the key.")
def request(key: Path, out: Path | None) -> None:
    """Ask an authority to sign the certificate of an existing KEY."""
    from midst.net.identity.keys import make_request, read_request

    identity = load_and_warn(key)
    target = check_new(key.with_suffix(".csr") if out is None else out)
    _write(target, make_request(identity))
    asked = read_request(target)
    click.echo(f"{asked.name}  {in_groups(asked.fingerprint)}")
    click.echo(f"{target}: give it to the authority, and compare the fingerprint by telephone", err=True)


@command.command()
@click.argument("request", type=_A_FILE, metavar="CSR")
@click.option("--key", type=_A_FILE, required=True, metavar="FILE", help="The authority's.")
@click.option("--out", type=_A_FILE, required=True, metavar="FILE", help="Where to put the certificate.")
@click.option("--days", type=int, default=365, show_default=True, help="No longer than the authority's own.")
def sign(request: Path, key: Path, out: Path, days: int) -> None:
    """Sign what a request asks for, as an authority."""
    from midst.net.identity.certificates import describe, read_certificate
    from midst.net.identity.keys import read_request, sign_request

    asked = read_request(request)
    text = sign_request(asked, load_and_warn(key), days)
    target = check_new(out)
    _write(target, text)
    signed = describe(read_certificate(target))
    click.echo(f"request of {asked.name}  {in_groups(asked.fingerprint)}")
    click.echo(f"certificate  {signed.fingerprint}")
    click.echo(
        f"compare the request's fingerprint with {asked.name} by telephone before you hand {target} out", err=True
    )
    click.echo(f"{asked.name} puts it beside the key, in place of {asked.name}.crt", err=True)


@command.command()
@click.argument("key", type=_A_FILE)
@click.option("--days", type=int, default=365, show_default=True, help="How long the certificate is valid.")
def renew(key: Path, days: int) -> None:
    """Make a new key and certificate in place of KEY; the old ones are kept beside them.

    A session that has begun goes on with the old key. For the next one, who writes its charter gives the new
    certificate by --renew, and the others trust it with --replace.
    """
    from midst.net.identity.keys import renew_identity

    made, kept = renew_identity(key, days)
    click.echo(f"{made.name}  {made.fingerprint}")
    click.echo(f"{made.key_file}: the new private key; the old one is {kept}, for sessions that have begun", err=True)
    click.echo(
        f"{made.certificate_file}: its certificate, until {made.expires:%Y-%m-%d}; give it to whoever writes the next"
        " charter (midst charter new --from … --renew CERT)",
        err=True,
    )


@command.command()
@click.argument("files", type=_A_FILE, nargs=-1, required=True, metavar="CERT|CHARTER...")
@click.option("--folder", type=_A_FILE, default=_FOLDER, show_default=True, help=_FOLDER_HELP)
@click.option("--replace", is_flag=True, help="Also in place of another certificate of the same name.")
def trust(files: tuple[Path, ...], folder: Path, replace: bool) -> None:
    """Trust certificates of others, of an authority, or all those in a charter; they are put into trusted/."""
    from datetime import UTC, datetime

    from midst.net.identity import keys
    from midst.net.identity.certificates import describe, expiry_warning

    given = [one for path in files for one in _certificates_of(path, folder)]
    trusted = keys.trust(given, folder, replace=replace)
    for one in trusted:
        said = describe(one.certificate)
        known = {"nothing": "", "the same": "  (as before)", "another": "  (in place of another)"}[one.was]
        click.echo(f"{one.name}  {in_groups(said.fingerprint)}{known}")
        _warn(expiry_warning(one.certificate, datetime.now(UTC)))
        if said.authority:
            click.echo(
                f"{one.name} is an authority: whoever it signs is listened to, if the charter names it", err=True
            )
    if news := [one.name for one in trusted if one.was != "the same" and not (folder / f"{one.name}.key").exists()]:
        click.echo(f"compare the fingerprints of {', '.join(news)} with their owners by telephone", err=True)


def _certificates_of(path: Path, folder: Path) -> list[tuple[str, bytes]]:
    """The certificate in a file, or those in a charter, each with what to call it: of all others than one's own.

    Where several participants' keys are in the folder, all of them: each is another to the rest.
    """
    from midst.errors import InputError
    from midst.net.charter_files import read_invitation
    from midst.net.identity.certificates import read_certificate

    if path.suffix != ".toml":
        return [(str(path), read_certificate(path))]
    charter, found = read_invitation(path)
    named = [name for name in found if (folder / f"{name}.key").exists()]
    for name in named:
        if read_certificate(folder / f"{name}.crt") != found[name]:
            raise InputError(f"{path}: not your own certificate of {name}, {folder / f'{name}.crt'}; have it renewed")
    mine = [read_certificate(each) for each in folder.glob("*.crt") if each.with_suffix(".key").exists()]
    own = {*named, *(name for name, der in found.items() if der in mine)}
    others = [name for name in found if len(own) > 1 or name not in own]
    if not others:
        raise InputError(f"{path}: no certificates of others in this charter; give them as files")
    if not own:
        raise InputError(f"{path}: no key in {folder} is a participant's; give the folder of yours with --folder")
    if missing := [name for name in charter.names if name not in found]:
        _warn(f"{path}: no certificate of {', '.join(missing)} in it; trust theirs, or their authority's, from a file")
    return [(f"{path}: {name}", found[name]) for name in others]


@command.command()
@click.argument("paths", type=_A_FILE, nargs=-1, metavar="[PATH...]")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON list to stdout.")
def show(paths: tuple[Path, ...], as_json: bool) -> None:
    """Show certificates: of files, of keys, or of folders (default: ./keys)."""
    import json

    rows = [_row(path) for path in _certificates(paths or (_FOLDER,))]
    if as_json:
        click.echo(json.dumps(rows))
        return
    for row in rows:
        role = ", an authority" if row["authority"] else ""
        click.echo(f"{row['name']}  {row['fingerprint']}")
        click.echo(f"    {row['kind']}{role}, valid until {row['expires'][:10]}, in {row['file']}")
        _warn(row["warning"])


def load_and_warn(key_file: Path) -> Identity:
    """The identity of a key file; a certificate that has expired, or soon will, is warned about on stderr.

    Raises:
        InputError: see `midst.net.identity.keys.load_identity`.
    """
    from datetime import UTC, datetime

    from midst.net.identity.certificates import expiry_warning
    from midst.net.identity.keys import load_identity

    identity = load_identity(key_file)
    _warn(expiry_warning(identity.certificate, datetime.now(UTC)))
    return identity


def check_new(path: Path) -> Path:
    """The path, if a new file can be written there.

    Raises:
        InputError: there is a file already, or no folder for one.
    """
    from midst.errors import InputError
    from midst.files import check_writable

    if path.exists():
        raise InputError(f"{path} exists and is not written over; choose another --out, or remove it first")
    return check_writable(path)


def in_groups(fingerprint: str) -> str:
    """A fingerprint as people read it to each other: eight groups of eight digits."""
    digits = fingerprint.removeprefix("sha256:")
    return " ".join(digits[k : k + 8] for k in range(0, len(digits), 8))


def _warn(line: str | None) -> None:
    if line is not None:
        click.echo(f"midst: warning: {line}", err=True)


def _write(path: Path, text: bytes) -> None:
    from midst.files import write_whole

    write_whole(path, lambda file: file.write(text), mode=0o644)


def _certificates(paths: tuple[Path, ...]) -> list[Path]:
    """The certificate files that are meant."""
    from midst.errors import InputError
    from midst.net.identity.keys import load_identity

    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [*sorted(path.glob("*.crt")), *sorted((path / "trusted").glob("*.crt"))]
            if not inside:
                raise InputError(f"{path}: no certificate in this folder; make one with: midst keys init NAME")
            found += inside
        else:
            found.append(load_identity(path).certificate_file if path.suffix == ".key" else path)
    return found


def _row(path: Path) -> dict[str, Any]:
    from datetime import UTC, datetime

    from midst.net.identity.certificates import check_name, describe, expiry_warning, read_certificate

    der = read_certificate(path)
    said = describe(der, str(path))
    return {
        "name": check_name(said.name, f"{path}: common name"),
        "kind": said.kind or "a kind that midst does not use",
        "fingerprint": said.fingerprint,
        "begins": said.begins.isoformat(),
        "expires": said.expires.isoformat(),
        "authority": said.authority,
        "warning": expiry_warning(der, datetime.now(UTC)),
        "file": str(path),
    }
