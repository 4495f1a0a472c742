"""`midst node` where the charter is about arrays: one round of a session, from an update in a file to the aggregate.

Rules:
- The file with the update is refused if others can read it, as a key is.
- A session has as many rounds as its charter says; each call takes part in the next, and the journal knows which that
  is. After the last one, its aggregate is given once more, and no update is read.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midst.cli.node_results import Wanted
from midst.errors import InputError

if TYPE_CHECKING:
    from midst.federated.client import Round
    from midst.net.charter import Charter
    from midst.net.driver import Tell
    from midst.net.identity.keys import Identity


def run_round(
    charter: Charter,
    name: str,
    identity: Identity,
    update_file: Path | None,
    state: Path,
    listen: str | None,
    wanted: Wanted,
    ledger: Path | None,
    prior: str | None,
    tell: Tell,
) -> None:
    """Take part in the next round, and write its aggregate."""
    from midst.federated.array_files import check_kind, read_arrays, write_arrays
    from midst.federated.client import Client
    from midst.files import check_writable
    from midst.privacy.priors import parse_prior

    if wanted.out is None:
        raise InputError("the charter is about arrays: give --out a file for the aggregate, such as aggregate.npz")
    check_kind(wanted.out)
    check_writable(wanted.out)
    believed = None if prior is None else parse_prior(prior)
    started = time.monotonic()
    with Client(
        charter, name, identity, state=state, listen=listen, prior=believed, ledger=ledger, tell=tell
    ) as client:
        if client.rounds_done == charter.aggregates:
            tell("over", f"session {charter.session} is over, and this is its last aggregate; no update was read")
            found, arrays = None, client.last_arrays()
        else:
            if update_file is None:
                raise InputError("no update: give --value-file, an .npz or .safetensors file that you alone can read")
            found = client.aggregate(read_arrays(update_file, alone=True))
            arrays = found.value
        write_arrays(wanted.out, arrays)
        done = client.rounds_done
    _show(charter, name, found, done, round(time.monotonic() - started, 3), wanted)


def _show(charter: Charter, name: str, found: Round | None, done: int, seconds: float, wanted: Wanted) -> None:
    about = {
        "name": name,
        "session": charter.session,
        "objective": charter.title,
        "over_before": found is None,
        "round": done - 1,
        "rounds": charter.aggregates,
        "out": str(wanted.out),
        "seconds": seconds,
    }
    if found is not None:
        about |= {"steps": found.steps, "digest": found.digest.hex(), "sent": found.sent, "received": found.received}
        if (leak := found.leakage) is not None:
            about |= {"bits": leak.bits, "floor": leak.floor, "excess": leak.excess}
    if wanted.as_json:
        click.echo(json.dumps(about))
        return
    click.echo(f"{charter.title} of round {done} of {charter.aggregates}: {wanted.out}, {seconds:.1f} s")
    if found is not None:
        click.echo(f"{found.steps} questions; {found.sent:,} bytes sent, {found.received:,} received")
        if (leak := found.leakage) is not None:
            words = f"{leak.bits:.3g} bits a number of yours, of which the aggregate alone tells {leak.floor:.3g}"
            click.echo(f"{words}; looked at {leak.looked_at:,} of {leak.coordinates:,} numbers")
