"""`midst keys`: a participant's key and certificate, and whom it trusts.

Rules:
- Everything is checked before the first byte is written, and no file that exists is written over.
- Fingerprints go to stdout, in groups where people are to compare them; what else there is to say goes to stderr.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from midst.errors import InputError
from midst.net.identity import keys
from midst.net.identity.certificates import check_name, describe, expiry_warning, read_certificate

_FOLDER = Path("keys")
_A_FILE = click.Path(path_type=Path)
_FOLDER_HELP = "Where your key is."
_EXAMPLES = """\b
Each participant, on its own host:
  midst keys init alice                      makes keys/alice.key and keys/alice.crt
  midst keys trust pay.toml                  the certificates in a charter, or in files such as bob.crt
  midst keys renew keys/alice.key            a new key and certificate, before the old one expires"""


@click.group(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
def command() -> None:
    """Make keys and certificates, and say whom you trust.

    Keys are kept in the folder ./keys unless you say otherwise: NAME.key (yours alone; it never leaves this host),
    NAME.crt (for everybody) and trusted/ (the certificates of others).
    """


@command.command()
@click.argument("name")
@click.option("--folder", type=_A_FILE, default=_FOLDER, show_default=True, help="Where to put them; made if need be.")
@click.option("--days", type=int, default=365, show_default=True, help="How long the certificate is valid.")
def init(name: str, folder: Path, days: int) -> None:
    """Make a key and its certificate for NAME."""
    made = keys.make_identity(name, folder, days)
    click.echo(f"{made.name}  {made.fingerprint}")
    click.echo(f"{made.key_file}: the private key, readable by you alone; it never leaves this host", err=True)
    click.echo(f"{made.certificate_file}: the certificate, until {made.expires:%Y-%m-%d}; give it to others", err=True)


@command.command()
@click.argument("key", type=_A_FILE)
@click.option("--days", type=int, default=365, show_default=True, help="How long the certificate is valid.")
def renew(key: Path, days: int) -> None:
    """Make a new key and certificate in place of KEY; the old ones are kept beside them.

    A session that has begun goes on with the old key. For the next one, who writes its charter gives the new
    certificate by --renew, and the others trust it with --replace.
    """
    made, kept = keys.renew_identity(key, days)
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
    """Trust certificates of others, or all those in a charter; they are put into trusted/."""
    given = [one for path in files for one in _certificates_of(path, folder)]
    trusted = keys.trust(given, folder, replace=replace)
    for one in trusted:
        said = describe(one.certificate)
        known = {"nothing": "", "the same": "  (as before)", "another": "  (in place of another)"}[one.was]
        click.echo(f"{one.name}  {in_groups(said.fingerprint)}{known}")
        warn(expiry_warning(one.certificate, datetime.now(UTC)))
    if news := [one.name for one in trusted if one.was != "the same" and not (folder / f"{one.name}.key").exists()]:
        click.echo(f"compare the fingerprints of {', '.join(news)} with their owners by telephone", err=True)


def _certificates_of(path: Path, folder: Path) -> list[tuple[str, bytes]]:
    """The certificate in a file, or those in a charter, each with what to call it: of all others than one's own.

    Where several participants' keys are in the folder, all of them: each is another to the rest.
    """
    from midst.net.charter_files import read_invitation

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
        warn(f"{path}: no certificate of {', '.join(missing)} in it; trust theirs from a file")
    return [(f"{path}: {name}", found[name]) for name in others]


@command.command()
@click.argument("paths", type=_A_FILE, nargs=-1, metavar="[PATH...]")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON list to stdout.")
def show(paths: tuple[Path, ...], as_json: bool) -> None:
    """Show certificates: of files, of keys, or of folders (default: ./keys)."""
    rows = [_row(path) for path in _certificates(paths or (_FOLDER,))]
    if as_json:
        click.echo(json.dumps(rows))
        return
    for row in rows:
        click.echo(f"{row['name']}  {row['fingerprint']}")
        click.echo(f"    valid until {row['expires'][:10]}, in {row['file']}")
        warn(row["warning"])


def in_groups(fingerprint: str) -> str:
    """A fingerprint as people read it to each other: eight groups of eight digits."""
    digits = fingerprint.removeprefix("sha256:")
    return " ".join(digits[k : k + 8] for k in range(0, len(digits), 8))


def warn(line: str | None) -> None:
    """Write a warning, if there is one, to stderr."""
    if line is not None:
        click.echo(f"midst: warning: {line}", err=True)


def _certificates(paths: tuple[Path, ...]) -> list[Path]:
    """The certificate files that are meant."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [*sorted(path.glob("*.crt")), *sorted((path / "trusted").glob("*.crt"))]
            if not inside:
                raise InputError(f"{path}: no certificate in this folder; make one with: midst keys init NAME")
            found += inside
        else:
            found.append(keys.load_identity(path).certificate_file if path.suffix == ".key" else path)
    return found


def _row(path: Path) -> dict[str, Any]:
    der = read_certificate(path)
    said = describe(der, str(path))
    return {
        "name": check_name(said.name, f"{path}: common name"),
        "fingerprint": said.fingerprint,
        "begins": said.begins.isoformat(),
        "expires": said.expires.isoformat(),
        "warning": expiry_warning(der, datetime.now(UTC)),
        "file": str(path),
    }
