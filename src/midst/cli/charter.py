"""`midst charter`: write, check and explain what the participants of a run agree on.

Rules:
- A charter is checked whole before it is written, and no file that exists is written over.
- What a charter tells whom is said in plain words, and nothing is left out because it does not sound well.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midst.cli.options import DEFINITION_HELP, DEFINITIONS, offer_graphs, offer_names, parse_bounds, read_graph
from midst.errors import InputError, closest
from midst.net.identity.certificates import check_name, describe, expiry_warning, read_certificate
from midst.net.identity.keys import load_identity
from midst.rows import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from midst.net.charter import Charter
    from midst.protocol.noise import JointNoise

_A_FILE = click.Path(path_type=Path)
_OF_METHODS = (  # not taken along to the other method
    *("c", "theta", "mu", "sigma", "scale", "tolerance"),
    *("pooled", "statistics", "columns", "disclosure", "noise", "arrays", "aggregates", "trim"),
)
_OBJECTIVES = ("median", "maximum", "minimum", "mean", "trimmed mean", "mean around median")
_ARRAYS = "Search: values are updates of a model; names, shapes and types as in this .npz or .safetensors file."
_DEADLINES = ("start", "wait", "total", "linger")
_ADD = "With --from: one more participant; join it by --add-edge, or give --graph. Repeat."
_REMOVE = "With --from: leaves, with all its edges. Repeat."
_RENEW = "With --from: another certificate, or address, of a participant. Repeat."
_METHOD = "How the answer is found. There is no default: with real data, choose."
_GRAPH = "A kind of graph, or a file of edges, as for midst run."
_TOTALS = (100, 1000, 10_000)  # values in all, of which is said what to expect
_MOST_EXPECTED = 200  # participants up to which it is
_APART = 3  # participants: a run that differs from another by fewer tells about those
_MOST_EDGES = 20  # shown to people
_EXAMPLES = """\b
Examples:
  midst charter new --session pay-2026 --method search --graph ring --bounds 0:500000 --out pay.toml \\
      alice.crt@alice.example.org:7001 bob.crt@bob.example.org:7001 carol.crt
  midst charter new --session pay-2026 --method search --graph ring --pooled --dp eps=1,delta=1e-6,colluders=2 \\
      --bounds 0:500000 --resolution 100 --out pay.toml alice.crt@alice.example.org:7001 bob.crt carol.crt
  midst charter new --from pay.toml --session pay-2027 --out pay-2027.toml
  midst charter new --from pay.toml --session pay-2027 --add dave.crt@dave.example.org:7001 \\
      --add-edge carol-dave --add-edge dave-alice --renew bob.crt --out pay-2027.toml
  midst charter check pay.toml --name alice --key keys/alice.key
  midst charter show pay.toml"""

_STATISTICS = """Search, in place of an objective: median, quartiles, iqr, p95, mean, sum, count, variance, std, mad,
trimmed:0.1, winsorised:0.1, top:3, bottom:3, min, max, histogram:0,10,20, of everybody's lists together."""
_DISCLOSURE = """With fewer participants or values, a larger share of one, or statistics over fewer values (support),
nothing is asked. Default: participants=3,values=5,support=1,share=1,free=2."""
_VERIFY = "Whether everybody proves its votes in a search. Default: up to 50 participants."
_DP = """Search: noise on every total, of which nobody knows the whole, such that all that is told is differentially
private: eps=1,delta=1e-6,colluders=2, and values=N to protect so many of one participant's together."""
_RECORDED = (
    "Who records the network: who talks to whom, when, and how much, but not the numbers; all rounds look alike."
)
UNVERIFIED = "Votes are not proved: one participant that lies can choose which honest value is published"


@click.group(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
def command() -> None:
    """Write, check and explain the charter: what the participants of one run agree on.

    A charter is a TOML file without anything private in it. Everybody has a copy; nodes whose copies differ refuse each
    other and say in what. It names one run: another run needs another session.
    """


@command.command(context_settings={"max_content_width": 100})
@click.argument("certificates", nargs=-1, type=click.Path(), metavar="CERT[@HOST:PORT]...")
@click.option("--out", type=_A_FILE, metavar="FILE", help="A new file. Default: to stdout.")
@click.option("--session", required=True, help="The name of this one run.")
@click.option("--method", type=click.Choice(["search", "consensus", "paper"]), help=_METHOD)
@click.option("--from", "old", type=_A_FILE, metavar="FILE", help="Another charter to start from.")
@click.option("--add", "added", multiple=True, metavar="CERT[@HOST:PORT]", help=_ADD)
@click.option("--remove", "removed", multiple=True, metavar="NAME", help=_REMOVE)
@click.option("--renew", "renewed", multiple=True, metavar="CERT[@HOST:PORT]", help=_RENEW)
@click.option("--add-edge", "more_edges", multiple=True, metavar="A-B", help="With --from: one more edge. Repeat.")
@click.option("--graph", shell_complete=offer_graphs, metavar="KIND|FILE", help=_GRAPH)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of a graph that is drawn.")
@click.option("--edge", "edges", multiple=True, metavar="A-B", help="Two names; A:B where names have a hyphen. Repeat.")
@click.option(
    "--weight", "weights", multiple=True, metavar="NAME=W", help="How much a value counts. Default: 1. Repeat."
)
@click.option("--objective", type=click.Choice(_OBJECTIVES), help="Default: the median.")
@click.option("--quantile", type=float, metavar="Q", help="Find this quantile instead.")
@click.option("--definition", type=click.Choice(DEFINITIONS), help=DEFINITION_HELP)
@click.option("--bounds", metavar="LO:HI", help="Public: where all values lie.")
@click.option("--scale", type=float, help="Public, in place of bounds: about how far values lie from each other.")
@click.option("--resolution", type=float, help="Public: values are told apart to this, as 0.01.")
@click.option("--pooled", is_flag=True, default=None, help="Search: every participant brings a list of values.")
@click.option("--statistics", metavar="NAME,…", help=_STATISTICS)
@click.option("--column", "columns", multiple=True, metavar="NAME[=LO:HI]", help="Of everybody's lists. Repeat.")
@click.option("--disclosure", metavar="NAME=N,…", help=_DISCLOSURE)
@click.option("--arrays", type=_A_FILE, metavar="FILE", help=_ARRAYS)
@click.option("--aggregates", type=int, metavar="N", help="Of arrays: rounds of the session. Default: 1.")
@click.option(
    "--trim", type=int, metavar="K", help="Of arrays: how many a trimmed mean, or one around the median, omits."
)
@click.option("--arity", type=int, metavar="K", help="Search: thresholds a probe, 1 to 7. Default: 3; with --dp 1.")
@click.option("--spacing", metavar="WAY|Q,Q,…", help="Search: rank, value, key, or public quantiles. Default: rank.")
@click.option("--verify/--no-verify", default=None, help=_VERIFY)
@click.option("--dp", metavar="SPEC", help=_DP)
@click.option("--coordinates", type=int, metavar="M", help="How many numbers each value has. Default: 1.")
@click.option("--c", type=float, help="Convergence parameter. Default: chosen from what is public.")
@click.option("--theta", type=float, help="Averaging constant, in (0, 1). Default: 0.5.")
@click.option("--mu", type=float, help="Mean of z(0). Default: chosen from what is public.")
@click.option("--sigma", type=float, help="Standard deviation of z(0). Default: 0.1; see midst plan.")
@click.option("--tolerance", type=float, help="Where no search ends the run, relative to the scale. Default: 1e-6.")
@click.option("--rounds", type=int, metavar="N", help="The most there may be. Default: 100000.")
@click.option("--spread", type=float, help="For what is expected: the values' own. Default: several.")
@click.option("--start", type=float, metavar="S", help="Seconds until every neighbour must be heard. Default: 300.")
@click.option("--wait", type=float, metavar="S", help="Seconds without progress of a neighbour. Default: 60.")
@click.option("--total", type=float, metavar="S", help="Seconds for the whole run. Default: 3600.")
@click.option("--linger", type=float, metavar="S", help="Seconds to stay for neighbours not done. Default: 10.")
def new(
    certificates: tuple[str, ...],
    out: Path | None,
    session: str,
    old: Path | None,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    renewed: tuple[str, ...],
    more_edges: tuple[str, ...],
    graph: str | None,
    seed: int,
    edges: tuple[str, ...],
    weights: tuple[str, ...],
    bounds: str | None,
    spread: float | None,
    **settings: Any,
) -> None:
    """Write a charter for the participants with these certificates.

    CERT is a participant's certificate, with the address at which others reach it; one without an address only dials.
    Their order gives the participants their numbers. With --from, everything is as in that charter except for what is
    given here. The certificates go into the file: whoever gets it has all that is needed, and trusts them with
    midst keys trust FILE.
    """
    import msgspec

    from midst.cli.noise import require_promise
    from midst.files import check_writable, write_whole
    from midst.net.charter import make_charter
    from midst.net.charter_files import Invitation, read_invitation

    if out is not None:
        if out.exists():
            raise InputError(f"{out} exists and is not written over; choose another --out, or remove it first")
        check_writable(out)
    before = None if old is None else read_invitation(old)
    if before is None and (added or removed or renewed or more_edges):
        raise InputError("--add, --remove, --renew and --add-edge change another charter: give it by --from")
    if before is not None and certificates:
        raise InputError("with --from, say whether a certificate is a newcomer's (--add) or a new one (--renew)")
    plain: dict[str, Any] = {} if before is None else msgspec.to_builtins(before.charter)
    if plain.get("session") == session:
        raise InputError(f"{old} has this session already; a session names one run, so give a new one")
    people = _People(plain.get("participants", ()), {} if before is None else before.certificates)
    for name in removed:
        people.remove(name)
    for spec in renewed:
        people.enter(spec, new=False)
    for spec in (*certificates, *added):
        people.enter(spec, new=True)
    plain |= {"session": session, "participants": people.weighted(weights)}
    if graph is not None and (edges or more_edges):
        raise InputError("give --graph or edges, not both")
    if edges and more_edges:
        raise InputError("--edge names all edges; give --edge or --add-edge, not both")
    names = list(people.found)
    if graph is not None:
        plain["edges"] = _edges_of_graph(graph, names, seed)
    elif edges:
        plain["edges"] = [_edge(text, names) for text in edges]
    elif old is None:
        raise InputError("who talks to whom? give --graph, such as --graph ring, or --edge A-B for every edge")
    else:
        left = [list(edge) for edge in plain["edges"] if not set(edge) & set(removed)]
        plain["edges"] = left + [_edge(text, names, "--add-edge") for text in more_edges]
    _settle_on(plain, bounds, settings)
    if "method" not in plain:
        raise InputError("how is the answer to be found? give --method search (exposes nobody) or --method consensus")
    charter = make_charter(plain, "charter")
    require_promise(charter)
    if before is not None and (warning := differencing(before.charter, charter)):
        click.echo(f"midst: {warning}", err=True)
    for line in expectations(charter, spread):
        click.echo(click.wrap_text(line, 120, subsequent_indent="  "), err=True)
    text = Invitation(charter, people.certificates).to_toml()
    if out is None:
        click.echo(text, nl=False)
        return
    write_whole(out, lambda file: file.write(text.encode()), mode=0o644)
    click.echo(f"{out}: charter {charter.digest.hex()}", err=True)
    click.echo(f"give it to all, who run: midst charter show {out.name}; midst keys trust {out.name}", err=True)


@command.command()
@click.argument("file", type=_A_FILE)
@click.option("--name", shell_complete=offer_names, help="Also check that this participant can take part …")
@click.option("--key", type=_A_FILE, metavar="FILE", help="… with this key.")
def check(file: Path, name: str | None, key: Path | None) -> None:
    """Check a charter: exit code 0 and its digest, or 2 and what is wrong."""
    from midst.cli.keys import warn
    from midst.cli.noise import require_promise
    from midst.net.charter import check_identity, strangers
    from midst.net.charter_files import read_charter

    if (name is None) != (key is None):
        raise InputError("give --name and --key together, or neither")
    charter = read_charter(file)
    require_promise(charter)
    if name is not None and key is not None:
        identity = load_identity(key)
        warn(expiry_warning(identity.certificate, datetime.now(UTC)))
        check_identity(charter, name, identity)
        if missing := strangers(charter, name, identity):
            raise InputError(f"{key.parent / 'trusted'} lacks {', '.join(missing)}; add with: midst keys trust {file}")
    click.echo(charter.digest.hex())


@command.command()
@click.argument("file", type=_A_FILE)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout.")
def show(file: Path, as_json: bool) -> None:
    """Explain a charter: who, what is found, with which parameters, and what the run tells whom."""
    from midst.cli.noise import require_promise
    from midst.net.charter_files import read_charter

    charter = read_charter(file)
    require_promise(charter)
    if as_json:
        click.echo(json.dumps(_to_dict(charter)))
        return
    click.echo(as_text(list(_rows(charter))))
    click.echo("\nWhat the run tells whom")
    for line in disclosures(charter):
        click.echo(click.wrap_text(line, 100, initial_indent="- ", subsequent_indent="  "))
    click.echo()
    for line in expectations(charter, None):
        click.echo(click.wrap_text(line, 120, subsequent_indent="  "))


def expectations(charter: Charter, spread: float | None) -> list[str]:
    """Forecast what sessions of this charter take and reveal, in lines; none with noise or arrays."""
    if spread is not None and not 0 < spread < float("inf"):
        raise InputError("--spread must be a positive number")
    if charter.arrays or charter.noise is not None:
        return []
    count = len(charter.names)
    bounded = charter.bounds or (charter.columns and all(one.bounds for one in charter.columns))
    if not bounded or count > _MOST_EXPECTED or charter.stop == "certified":
        limits = f"bounds, at most {_MOST_EXPECTED} participants and an answer that a search finds"
        return [f"What to expect: a forecast of rounds, bytes and bits needs {limits}"]
    lines = []
    for total in sorted({max(charter.disclosure.values, count), *_TOTALS} if charter.has_lists else {count}):
        share, rest = divmod(total, count)
        sizes = [share + (i < rest) for i in range(count)]
        if charter.refusal(sizes) is None:
            of = f"{total:,} values in all: " if charter.has_lists else ""
            lines.append(f"- {of}{_foretell(charter, sizes, spread)}")
    apart = "" if spread is None else f", about {spread:g} apart"
    whom = "bits: to another participant that knew only the bounds"
    return [f"What to expect, whatever the shape of the values{apart} ({whom}):", *lines]


def _foretell(charter: Charter, sizes: Sequence[int], spread: float | None) -> str:
    """Forecast sessions with so many values of each participant, in words."""
    from midst.studies.expectation import forecast

    found = forecast(charter, sizes, spread)

    def span(name: str, form: str = ",.0f") -> str:
        low, high = (format(end, form) for end in found[name])
        return low if low == high else f"{low} to {high}"

    proofs = "included" if charter.is_verified else "left out"
    words = f"{span('probes')} probe{'s' * (found['probes'][1] > 1)}, {span('rounds')} rounds"
    words += f", {span('kB')} kB a node (over TLS, proofs {proofs}), "
    words += f"{span('exposed')} exposed" if found["exposed"][1] else "nobody exposed"
    sign = "≤ " if charter.method == "consensus" else "≈ " if charter.has_lists else ""
    for name in charter.column_names:
        if f"bits of {name}" in found:
            words += f", {sign}{span(f'bits of {name}', '.1f')} bits about {name if charter.columns else 'a value'}"
        if f"floor of {name}" in found:
            words += f" ({span(f'floor of {name}', '.1f')} by the answer alone)"
    return words


def differencing(before: Charter, after: Charter) -> str | None:
    """What a charter with nearly the same participants as another gives away, in words; None where it is the same."""
    changed = sorted({*before.names} ^ {*after.names})
    if not changed or len(changed) >= _APART:
        return None
    return (
        f"the participants are those of {before.session} but for {', '.join(changed)}: if both runs are on the same"
        " values, the two answers together tell more about the difference than either does about anybody. Of one in 16"
        " that is about 2 bits instead of 0.4, and its value itself in 3 runs of 100; of one in 6, in 8 or 9. Who"
        " stays away, or makes a run fail, can bring this about; change three or more at a time, or use other values"
    )


# What was asked for


class _People:
    """The participants of a charter to be, in order, with their certificates.

    Attributes:
        found: by name, as the charter has them.
        certificates: in DER, by name; of as many as are known.
    """

    def __init__(self, before: Sequence[dict[str, Any]], certificates: Mapping[str, bytes]) -> None:
        """Those of an old charter."""
        self.found = {one["name"]: dict(one) for one in before}
        self.certificates = dict(certificates)
        self._given: set[str] = set()

    def remove(self, name: str) -> None:
        """One leaves."""
        if name not in self.found:
            near = closest(name, self.found) or f"; there are {', '.join(self.found)}"
            raise InputError(f"--remove: no participant of that name{near}")
        del self.found[name]
        self.certificates.pop(name, None)

    def enter(self, spec: str, *, new: bool) -> None:
        """One more; or one that has another certificate, or another address."""
        path, address = _split_spec(spec)
        der = read_certificate(path)
        said = describe(der, path)
        name = check_name(said.name, f"{path}: common name")
        if name in self._given:
            raise InputError(f"{path}: {name} is given twice; give each participant once")
        if new and name in self.found:
            raise InputError(f"{path}: {name} takes part already; give its new certificate by --renew")
        if not new and name not in self.found:
            raise InputError(f"{path}: {name} is no participant yet; give a newcomer by --add")
        self._given.add(name)
        one = self.found.setdefault(name, {"name": name})
        one["fingerprint"] = said.fingerprint
        if address is not None:
            one["address"] = address
        self.certificates[name] = der

    def weighted(self, weights: Sequence[str]) -> list[dict[str, Any]]:
        """All of them, counting as is said."""
        for text in weights:
            name, _, weight = text.partition("=")
            if name not in self.found:
                near = closest(name, self.found)
                raise InputError(f"--weight: no participant of that name; write NAME=W, such as alice=2{near}")
            if not (weight.isascii() and weight.isdecimal()) or len(weight) > 16:
                raise InputError(f"--weight of {name} must be a whole number, such as {name}=2")
            self.found[name]["weight"] = int(weight)
        if not self.found:
            raise InputError("who takes part? give a certificate for each, as in alice.crt@alice.example.org:7001")
        return list(self.found.values())


def _split_spec(spec: str) -> tuple[str, str | None]:
    """File and address of FILE@HOST:PORT; a file with an @ in its name needs no address to be found."""
    if Path(spec).exists():
        return spec, None
    path, at, address = spec.rpartition("@")
    return (path, address) if at else (spec, None)


def _edges_of_graph(spec: str, names: list[str], seed: int) -> list[list[str]]:
    """The edges of a kind of graph or of a file, whose nodes are the participants, by name or by number."""
    from midst.graphs import KINDS
    from midst.system import streams

    try:
        network = read_graph(spec, len(names) if spec.partition(":")[0] in KINDS else None, streams(seed).graph)
    except InputError as error:
        raise InputError(f"--graph {spec}, {len(names)} participants: {error}") from None
    if network.n != len(names):
        raise InputError(f"--graph {spec} has {network.n} nodes for {len(names)} participants")
    own = list(network.labels or names)
    if set(own) != set(names):
        strange = min(set(own) - set(names))
        raise InputError(f"--graph {spec}: {strange[:64]!a} is no participant; nodes are named after them, or 0, 1, …")
    ends = zip(network.source.tolist(), network.target.tolist(), strict=True)
    return [[own[a], own[b]] for a, b in ends if a < b]


def _edge(text: str, names: list[str], option: str = "--edge") -> list[str]:
    """The two names of A-B or A:B; names may have hyphens, as long as there is one way to read it."""
    separator = ":" if ":" in text else "-"
    places = [k for k, letter in enumerate(text) if letter == separator]
    found = [[text[:k], text[k + 1 :]] for k in places if text[:k] in names and text[k + 1 :] in names]
    if len(found) != 1:
        problem = "names no two participants" if not found else "can be read in more than one way; write A:B"
        raise InputError(f"{option} {text[:140]!a} {problem}")
    return found[0]


def _settle_on(plain: dict[str, Any], bounds: str | None, settings: dict[str, Any]) -> None:
    """Puts the options given in place of what was there."""
    given = {name: value for name, value in settings.items() if value is not None and value != ()}
    promise = given.pop("dp", None)
    if "arrays" in given:
        given["arrays"] = _arrays_of(given["arrays"])
    _settle_statistics(plain, given)
    if "spacing" in given and given["spacing"] not in ("rank", "value", "key"):
        try:
            given["spacing"] = [float(word) for word in given["spacing"].split(",")]
        except ValueError:
            raise InputError("--spacing must be rank, value, key, or numbers with commas between") from None
    if "method" in given and given["method"] != plain.get("method"):
        for key in _OF_METHODS:
            plain.pop(key, None)
    if "quantile" in given:
        if "objective" in given:
            raise InputError("give --objective or --quantile, not both")
        given["objective"] = "quantile"
    elif "objective" in given:
        plain.pop("quantile", None)
    if bounds is not None and "scale" in given:
        raise InputError("give --bounds or --scale, not both")
    if bounds is not None:
        plain.pop("scale", None)
        given["bounds"] = parse_bounds(bounds)
    elif "scale" in given:
        plain.pop("bounds", None)
    plain["deadlines"] = dict(plain.get("deadlines", {})) | {k: given.pop(k) for k in _DEADLINES if k in given}
    plain |= given
    _settle_noise(plain, given, promise)


def _arrays_of(path: Path) -> list[dict[str, Any]]:
    """Names, shapes and types of the arrays in a file; the numbers in it are not looked at."""
    from midst.federated.array_files import read_arrays
    from midst.federated.updates import specs_of

    specs = specs_of(read_arrays(path))
    return [{"name": one.name, "shape": list(one.shape), "dtype": one.dtype} for one in specs]


def _settle_noise(plain: dict[str, Any], given: dict[str, Any], spec: str | None) -> None:
    """The noise that was asked for; or that of the old charter, settled anew for what may have changed."""
    from midst.cli.noise import settle_noise
    from midst.protocol.noise import JointNoise, parse_joint

    before = plain.get("noise")
    if spec is None and before is None:
        return
    if before is None:  # what an exact search would have is none of this one's
        plain |= {"arity": given.get("arity", 1), "spacing": given.get("spacing", "key")}
    named = {} if before is None else {name: value for name, value in before.items() if name != "variance"}
    promise = JointNoise(**named) if spec is None else parse_joint(spec)
    plain["noise"] = settle_noise(promise, plain.get("bounds"), plain.get("resolution"), plain["arity"])


def _settle_statistics(plain: dict[str, Any], given: dict[str, Any]) -> None:
    """Statistics, columns and rules, as the charter has them; an objective and statistics take each other's place."""
    from midst.statistics import split_names

    if "statistics" in given:
        if "objective" in given or "quantile" in given:
            raise InputError("--statistics says all that is to be found; leave out --objective and --quantile")
        given["statistics"] = split_names(given["statistics"])
        for key in ("objective", "quantile", "definition", "pooled"):
            plain.pop(key, None)
    elif "objective" in given or "quantile" in given:
        for key in ("statistics", "columns", "disclosure"):
            plain.pop(key, None)
    if "columns" in given:
        pairs = (text.partition("=") for text in given["columns"])
        given["columns"] = [{"name": name, "bounds": parse_bounds(ends or None)} for name, _, ends in pairs]
    if "disclosure" in given:
        rules = dict(plain.get("disclosure", {}))
        for text in given["disclosure"].split(","):
            name, _, number = text.partition("=")
            try:
                rules[name.strip()] = float(number) if name.strip() == "share" else int(number)
            except ValueError:
                raise InputError("--disclosure must be names and numbers, such as participants=5,values=100") from None
        given["disclosure"] = rules


# What people see


def _rows(charter: Charter) -> Iterator[tuple[str, str]]:
    from midst.cli.noise import accuracy

    weighted = any(one.weight != 1 for one in charter.participants)
    size = "" if charter.width == 1 or charter.statistics else f" in each of {charter.width} coordinates"
    if charter.layout is not None:
        of, rounds = charter.layout.coordinates, charter.aggregates
        size = f" of {of:,} numbers in {len(charter.arrays)} arrays, {rounds} time{'s' if rounds > 1 else ''},"
    lists = ", of all their values together" if charter.has_lists else ""
    yield "session", charter.session
    yield "finds", f"the {charter.title}{size} of {len(charter.names)} participants{lists}"
    yield "method", charter.method
    for number, one in enumerate(charter.participants):
        weight = f", weight {one.weight}" if weighted else ""
        place = one.address or "only dials"
        yield "participants" if number == 0 else "", f"{number} {one.name}  {place}{weight}  {one.fingerprint}"
    listed = ", ".join(f"{a} - {b}" for a, b in charter.edges[:_MOST_EDGES])
    more = f", and {len(charter.edges) - _MOST_EDGES} more" if len(charter.edges) > _MOST_EDGES else ""
    yield "edges", f"{len(charter.edges)}: {listed}{more}"
    low, high = charter.value_range
    about = "" if charter.scale is None else f", about {charter.scale:g} from each other"
    known = f"all values lie between {low:g} and {high:g}{about}" if charter.bounds or charter.scale else "no bounds"
    finest = "" if charter.resolution is None else f"; values are told apart to {charter.resolution:g}"
    yield "public", known + finest
    for column in charter.columns:
        if column.bounds is not None:
            yield "", f"{column.name} lies between {column.bounds[0]:g} and {column.bounds[1]:g}"
    if charter.statistics:
        yield "refused", ", or ".join(_refused(charter))
    if charter.noise is not None:
        yield "noise", f"{charter.noise.promise.describe()}; of variance {charter.noise.variance}"
        yield "", accuracy(charter)
    yield "parameters", _parameters(charter)
    yield "ends", _ending(charter)
    limits = charter.deadlines
    waits = f"{limits.start:g} s to start, {limits.wait:g} s without progress, {limits.total:g} s in all"
    yield "gives up", f"after {charter.rounds:,} rounds; {waits}"
    yield "digest", charter.digest.hex()


def _refused(charter: Charter) -> Iterator[str]:
    """What the disclosure rules refuse, once everybody has said how many values it has, and before more is said."""
    rule = charter.disclosure
    yield f"with fewer than {rule.participants} participants or {rule.values} values in all"
    if rule.share < 1:
        yield f"where one has more than {rule.share:.0%} of them"
    if rule.support > 1:
        yield f"what is over fewer than {rule.support} values"
    yield f"where fewer than {rule.free} of the values that somebody lacks would stay free in all answers together"


def _parameters(charter: Charter) -> str:
    if charter.layout is not None:
        bits = ", ".join(f"{each.dtype} in at most {each.bits} questions" for each in charter.layout.formats)
        return f"by bits: {bits}; contributions are not proved"
    if charter.method == "search":
        by = charter.spacing if isinstance(charter.spacing, str) else f"{len(charter.spacing)} public quantiles"
        by = by if charter.noise is None else "key"
        votes = "votes are proved" if charter.is_verified else "votes are not proved"
        return f"{charter.arity} thresholds a probe, placed by {by}; {votes}"
    parameters = charter.parameters.to_dict()
    chosen = {name: "" if getattr(charter, name) is not None else " (chosen)" for name in ("c", "mu", "sigma")}
    numbers = {name: _one(parameters[name]) for name in ("c", "mu", "sigma")}
    settled = ", ".join(f"{name} = {numbers[name]:g}{chosen[name]}" for name in numbers)
    return f"theta = {charter.theta:g}, {settled}"


def _ending(charter: Charter) -> str:
    if charter.stop == "certified":
        return f"when all x are certified to lie within {charter.tolerance:g} of the scale of the answer"
    if charter.noise is not None:
        return "when everybody has signed the answer, which with noise no totals prove"
    if charter.method == "search":
        return "when everybody has signed the answer that the totals prove"
    return "by a search once all x are close; when everybody has signed the answer that its totals prove"


def disclosures(charter: Charter) -> list[str]:
    """What a run by this charter tells whom, in plain words."""
    lines = ["Everybody: this charter, and the answer."]
    if charter.arrays:
        return [*lines, *_disclosed_by_arrays(charter)]
    if charter.has_lists:
        lines.append("Everybody: how many values each participant has.")
    if charter.noise is not None:
        return [*lines, *_disclosed_with_noise(charter.noise.promise)]
    if charter.stop == "exact":
        lines.append(
            "Everybody: how much weight lies between public thresholds, in total, a few of them in every probe;"
            " a coalition knows the same of the others together. Nobody's own part, and not whose value the answer is."
        )
    if charter.statistics:
        lines += _disclosed_by_statistics(charter)
    if charter.method != "search":
        lines += _disclosed_by_iteration(charter)
    if charter.method == "search" and len({one.weight for one in charter.participants if one.weight}) > 1:
        lines.append("Weights differ: totals of weights can tell whose value lies where.")
    lines.append(_RECORDED)
    if charter.stop == "exact":
        lines.append(
            f"Everybody proves its votes: {_held_to(charter)}, or the run ends with evidence against one of them, or a"
            " pair that holds one."
            if charter.is_verified
            else f"{UNVERIFIED}; --verify holds everybody to its vote."
        )
    if charter.method != "search":
        lines.append("A neighbour that breaks the rules and sends what it likes can find out more, up to your value.")
    again = "" if charter.method == "search" else "Each further run on the same values tells more. "
    lines.append(
        f"{again}A second run on the same values with a participant more or fewer, or because somebody stayed away:"
        " the difference of the two answers is about that one. Keep account with midst ledger."
    )
    return lines


def _held_to(charter: Charter) -> str:
    """What liars can still do, in words."""
    if charter.statistics:
        return "liars can count and add up their own values as they like within the bounds, and no more of them"
    return f"with k {'values of liars' if charter.has_lists else 'liars'} the answer is within k ranks of the true one"


def _disclosed_by_statistics(charter: Charter) -> Iterator[str]:
    """What statistics tell besides counts."""
    kinds = {each.kind for each in charter.wanted}
    if any(each.needs_sums for each in charter.wanted):
        yield "Everybody: the sums over all values that means and variances follow from."
    if kinds & {"trimmed", "winsorised"}:
        yield "Everybody: the two values at the ends of a trimmed or winsorised mean."
    if "mad" in kinds:
        yield "Everybody: the median, and how many values lie how far from it."


def _disclosed_with_noise(promise: JointNoise) -> list[str]:
    from math import exp

    against = "; everybody knows its own share of the noise, so agree on colluders=1 for those who take part"
    return [
        "Everybody: how many values lie up to public thresholds, in total and with noise of which nobody knows the"
        " whole. Nobody's own part, and whose value lies near the answer neither.",
        f"What is promised: {promise.describe()}{'' if promise.colluders else against}. To see all of it shifts the"
        f" odds between any two values by a factor of {exp(min(promise.epsilon, 700)):.3g} at most, but for a chance of"
        f" {promise.delta:g}, whatever else is known.",
        _RECORDED,
        "Liars: what they add is not noticed, and they can put the answer anywhere. As long as they are no more than"
        " the promise is against, they make nothing less private.",
        "Each further run on the same values costs the same again. Keep account with midst ledger.",
    ]


def _disclosed_by_arrays(charter: Charter) -> Iterator[str]:
    yield "Everybody: the aggregate of every round."
    yield (
        "Everybody: of every number how many participants' begin with the same bits as the aggregate's, bit by bit;"
        " a coalition knows the same of the others together. Nobody's own part, and not whose number it is."
    )
    if charter.objective == "mean around median":
        yield "Everybody: the median, and how many numbers lie how far from it."
    yield _RECORDED
    yield (
        "Who alters a sum on its way is named, alone or with a neighbour. What somebody contributes is not proved: one"
        " that breaks the rules can put the aggregate anywhere, as it could put a mean."
    )
    yield "Each further round tells more about what you train on. Keep account with midst ledger."


def _disclosed_by_iteration(charter: Charter) -> Iterator[str]:
    from midst.net.charter import few

    apart = ", and how far neighbours are from agreement" if charter.stop == "certified" else ""
    yield f"Everybody: every few rounds the largest and the smallest x (not whose){apart}."
    yield "Your neighbours: the start numbers z(0) of your common edge, and your number x in every round."
    if charter.objective == "mean":
        yield (
            "All your neighbours together, should they pool what they know: your value. What hides it from fewer is"
            " z(0) on your edges with the others, of standard deviation sigma."
        )
    else:
        yield (
            "All your neighbours together, should they pool what they know: in every round on which side of your x"
            " your value lies, which closes in on it."
        )
        yield "Your neighbours: in a round in which your value falls inside your interval, x is your value itself."
    if lonely := [name for name in charter.names if len(charter.neighbours(name)) == 1]:
        yield f"One neighbour alone is all the neighbours of: {few(lonely)}. Give them a second one."


def _to_dict(charter: Charter) -> dict[str, Any]:
    import msgspec

    settled: dict[str, Any] = {"arity": charter.arity, "spacing": charter.spacing}
    if charter.method != "search":
        parameters = charter.parameters.to_dict()
        settled |= {name: _one(parameters[name]) for name in ("c", "mu", "sigma", "scale")} | {"theta": charter.theta}
    return {
        "charter": msgspec.to_builtins(charter),
        "finds": charter.title,
        "stop": charter.stop,
        "settled": settled,
        "told": disclosures(charter),
        "digest": charter.digest.hex(),
    }


def _one(number: float | list[float]) -> float:
    """A parameter that is the same in every coordinate."""
    return number[0] if isinstance(number, list) else number
