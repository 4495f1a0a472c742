"""`midst up`: a whole network on this machine, to see it work.

Rules:
- Real processes, real keys, real TLS, on loopback only; nothing is left behind, and nothing is started that the machine
  cannot hold.
- The values are the user's own, all of them, so their public bounds may be read off them; a network of strangers agrees
  on bounds in its charter.
"""

from __future__ import annotations

import json
import secrets
import signal
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from midst.cli.options import (
    CSV_OPTION,
    MISSING_OPTION,
    check_plot,
    offer_graphs,
    parse_bounds,
    read_graph,
    refuse_given,
)
from midst.errors import InputError
from midst.files import check_writable, write_whole
from midst.progress import on_terminal, phases
from midst.rows import as_text

if TYPE_CHECKING:
    from midst.columns import Missing
    from midst.graphs import Graph
    from midst.methods import MethodName
    from midst.net.answer import Answer
    from midst.net.charter import Charter
    from midst.net.events import End, Event
    from midst.net.local import Party
    from midst.types import Array

_EXAMPLES = """\b
Examples:
  midst up --graph ring --nodes 5
  midst up --graph ring --nodes 5 --out result.json
  midst up --graph rgg --nodes 15 --seed-values 7 --explore
  midst up --graph complete --values values.txt --quantile 0.9 --json
  midst up --graph ring --values-dir sites --column los --statistics median,mean --bounds 0:365 --resolution 1"""
_VALUES = "One number (or row of numbers) a line. Default: N(0, 1), drawn."
_VERIFY = "Whether everybody proves its votes in a search. Default: up to 50 nodes."
_DP = "Search: noise on every total, such that all that is told is differentially private: eps=1,delta=1e-6."
_OUT = "Write the answer with everybody's signature; with its charter beside it, for midst verify."
_LAST_LOOK = 600.0  # seconds the page stays after the end, unless interrupted


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--graph", required=True, shell_complete=offer_graphs, metavar="KIND|FILE", help="As for midst run.")
@click.option("--nodes", type=int, metavar="N", help="How many; not needed with --values or a graph from a file.")
@click.option("--values", type=click.Path(), metavar="FILE|-", help=_VALUES)
@click.option("--values-dir", type=click.Path(), metavar="FOLDER", help="One file a node, for --statistics.")
@click.option("--column", "columns", multiple=True, metavar="NAME", help="Of a CSV or Parquet file. Repeat.")
@MISSING_OPTION
@CSV_OPTION
@click.option("--statistics", metavar="NAME,…", help="Find these of all values together, by search: median,p95,mean …")
@click.option("--seed-values", type=click.IntRange(min=0), metavar="S", help="Repeats the drawn values and graph.")
@click.option("--objective", type=click.Choice(["median", "maximum", "minimum", "mean"]), help="Default: the median.")
@click.option("--quantile", type=float, metavar="Q", help="Find this quantile instead.")
@click.option("--bounds", metavar="LO:HI", help="Public: where all values lie. Default: read off the values.")
@click.option("--method", type=click.Choice(["search", "consensus", "paper"]), default="search", show_default=True)
@click.option("--arity", type=int, help="Search: thresholds a probe, from 1 to 7. Default: 3; with --dp 1.")
@click.option("--resolution", type=float, help="Public: values are told apart to this, as 0.01.")
@click.option("--pooled", is_flag=True, help="Search: a line of --values is a participant's list, of any length.")
@click.option("--verify/--no-verify", default=None, help=_VERIFY)
@click.option("--dp", metavar="SPEC", help=_DP)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help=_OUT)
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", help="Draw the statistics.")
@click.option("--deadline", type=click.FloatRange(1, 86_400), default=600.0, show_default=True, help="Seconds, in all.")
@click.option("--explore", is_flag=True, help="Open a page that follows the network.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of the report.")
def command(
    graph: str,
    nodes: int | None,
    values: str | None,
    values_dir: str | None,
    columns: tuple[str, ...],
    missing: Missing,
    dialect: str | None,
    statistics: str | None,
    seed_values: int | None,
    objective: str | None,
    quantile: float | None,
    bounds: str | None,
    method: MethodName,
    arity: int | None,
    resolution: float | None,
    pooled: bool,
    verify: bool | None,
    dp: str | None,
    out: Path | None,
    plot: Path | None,
    deadline: float,
    explore: bool,
    as_json: bool,
) -> None:
    """Start a whole network on this machine: real processes, throw-away keys, mutual TLS on loopback."""
    import numpy as np

    from midst.cli.node_results import check_out, write_out
    from midst.cli.noise import require_promise, settle_noise
    from midst.cli.values import parse_dialect, read_parties, read_values, tell_dropped
    from midst.net.local import make_party, unanimous
    from midst.protocol.noise import parse_joint
    from midst.statistics import split_names

    seed = secrets.randbits(32) if seed_values is None else seed_values
    rng = np.random.default_rng(seed)
    asked: dict[str, Any] = {}
    reading: dict[str, Any] = {"columns": columns, "missing": missing, "dialect": parse_dialect(dialect)}
    numbers: Array | list[Array]
    if statistics is not None:
        if objective is not None or quantile is not None:
            raise InputError("--statistics says all that is to be found; leave out --objective and --quantile")
        if method != "search":
            raise InputError("--statistics are found by search; leave --method out")
        parts = read_parties(values, values_dir, pooled, nodes, **reading)
        tell_dropped(sum(part.dropped for part in parts))
        names = next((part.names for part in parts if part.names), ())
        if not names and parts[0].values.shape[1] > 1:
            raise InputError("statistics are of columns with names; give a .csv or .parquet file and --column")
        network, numbers = read_graph(graph, len(parts), rng), [part.values for part in parts]
        asked = {"columns": [{"name": name} for name in names], "statistics": split_names(statistics)}
        pooled = False
        if explore:
            raise InputError("--explore follows a single answer; leave it out with --statistics")
        check_plot(plot)
    elif values_dir is not None or plot is not None:
        which = "--plot" if values_dir is None else "--values-dir"
        raise InputError(f"{which} is for --statistics, such as --statistics median,mean")
    else:
        given = read_values(values, pooled, nodes, **reading)
        network = read_graph(graph, nodes if given is None else len(given), rng)
        numbers = rng.standard_normal(network.n) if given is None else given
        if len(numbers) != network.n:
            raise InputError(f"{len(numbers)} values for {network.n} nodes; give one value a node")
    if objective is not None and quantile is not None:
        raise InputError("give --objective or --quantile, not both")
    if pooled and method != "search":
        raise InputError("--pooled is for --method search: lists are searched together; leave it out, or choose that")
    if method != "search":
        refuse_given(("arity", "verify"), f"is no option of --method {method}; leave it out, or choose --method search")
    known = parse_bounds(bounds)
    if objective == "mean" and method == "search" and (known is None or resolution is None):
        raise InputError("a mean by search needs --bounds and --resolution, such as --bounds=-3:3 --resolution 0.01")
    if known is None and method != "search" and not isinstance(numbers, list):
        known = _read_off(network, numbers)
    arity = arity if arity is not None else 3 if dp is None else 1
    if dp is not None:
        if method != "search":
            raise InputError("--dp is noise on the totals of a search; give --method search")
        asked["noise"] = settle_noise(parse_joint(dp), known, resolution, arity)
    making = make_party(
        network,
        method=method,
        objective="quantile" if quantile is not None else objective or "median",
        bounds=known,
        quantile=quantile,
        resolution=resolution,
        arity=arity,
        verify=verify,
        pooled=pooled,
        coordinates=1 if isinstance(numbers, list) or np.ndim(numbers) == 1 else np.shape(numbers)[1],
        deadlines={"start": deadline, "wait": deadline, "total": deadline, "linger": min(5.0, deadline)},
        **asked,
    )
    with _ending_well(), ExitStack() as made:
        with phases() as say:
            say(f"making {network.n} keys")
            party = made.enter_context(making)
        require_promise(party.charter)
        if out is not None:
            check_out(party.charter, out)
            check_writable(_charter_beside(out))
        with _page(party.charter) if explore else nullcontext() as page:
            ends, seconds = _run(party, numbers, page)
            answer = unanimous(ends)
            if out is not None:
                write_out(party.charter, answer, out)
                text = party.charter.to_toml().encode()
                write_whole(_charter_beside(out), lambda file: file.write(text), mode=0o644)
            if plot is not None:
                _draw(party.charter, answer, plot)
            drawn = values is None and values_dir is None
            _report(party.charter, answer, ends, seconds, seed if drawn else None, as_json)
            if explore:
                _stay()


def _run(party: Party, numbers: Array | list[Array], page: Callable[[Event], None] | None) -> tuple[list[End], float]:
    """How it ended for each, and after how many seconds; all rounds are told where a page follows them."""
    from midst.net.local import run_party

    def follow(event: Event) -> None:
        for follower in filter(None, (page, bar)):
            follower(event)

    with _progress(len(party.charter.names)) as bar:
        began = time.monotonic()
        ends = run_party(party, numbers, follow, every=0.05 if page is None else 0.0)
        return ends, time.monotonic() - began


def _draw(charter: Charter, answer: Answer, path: Path) -> None:
    """The picture of the statistics, from the answers alone."""
    from midst.plots.description import draw_description
    from midst.plots.results import save_figure

    assert answer.statistics is not None, "checked with the options"
    found = [charter.disclosure.without_small_counts(each) for each in answer.statistics.values()]
    save_figure(draw_description(found, charter.column_names), path)


def _charter_beside(out: Path) -> Path:
    """The file of the charter by which a result is checked: that of a network of this machine is thrown away."""
    return out.with_suffix(".toml")


@contextmanager
def _ending_well() -> Iterator[None]:
    """Whoever is told to end, and not only by Ctrl-C, leaves nothing behind; nor a core dump, whatever it dies of."""
    from midst.machine import ENDS
    from midst.net.process import forbid_dumps

    forbid_dumps()

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read_off(graph: Graph, numbers: Array) -> tuple[float, float]:
    """Bounds about the values, as only somebody who has them all can choose."""
    from midst.problems import Problem

    problem = Problem(graph, numbers)
    low, high = problem.centre - 2 * problem.scale, problem.centre + 2 * problem.scale
    return float(min(low.min(), numbers.min())), float(max(high.max(), numbers.max()))


@contextmanager
def _page(charter: Charter) -> Iterator[Callable[[Event], None]]:
    """A page that follows the network."""
    from midst.cli.pointer import pointer
    from midst.explorer.live import Feed, serve
    from midst.net.events import Start

    feed = Feed()
    edges = [[charter.number(a), charter.number(b)] for a, b in charter.edges]
    start = Start(charter.names, edges, charter.title, charter.method, True, None, charter.is_verified)
    feed.publish(start)
    with serve(feed) as address, pointer(address) as (file, shown):
        click.echo(f"midst: follow the network at {shown}", err=True)
        if sys.stderr.isatty():
            webbrowser.open(file.as_uri())
        yield feed.publish


def _stay() -> None:
    click.echo("midst: the page stays until you press Ctrl-C", err=True)
    try:
        time.sleep(_LAST_LOOK)
    except KeyboardInterrupt:
        click.echo("", err=True)


@contextmanager
def _progress(nodes: int) -> Iterator[Callable[[Event], None] | None]:
    """A line on stderr that follows the network, on a terminal; nothing is left of it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    from midst.net.events import Round

    columns = (
        SpinnerColumn(),
        TextColumn(f"{nodes} processes, round {{task.fields[round]:,}}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} have the answer"),
        TimeElapsedColumn(),
    )
    with on_terminal(*columns, total=nodes, round=0) as update:
        yield lambda event: update(round=event.t + 1) if isinstance(event, Round) else update(advance=1)


def _report(charter: Charter, answer: Answer, ends: list[End], seconds: float, seed: int | None, as_json: bool) -> None:
    names = charter.names
    told = answer.to_dict()
    traffic = round(sum(end.sent + end.received for end in ends) / len(ends))
    exposed = [names[end.node] for end in ends if end.answer is not None and end.answer.exposed]
    if as_json:
        result = {
            **({"value": told["value"]} if "value" in told else {"statistics": told["statistics"]}),
            "certified": told["certified"],
            "method": charter.method,
            "rounds": answer.rounds,
            "probes": answer.probes,
            "seconds": round(seconds, 3),
            "bytes_per_node": traffic,
            "exposed": exposed,
            "nodes": len(names),
            "first_round": round(max(end.first for end in ends), 3),
            "answered": round(max(end.answered for end in ends), 3),
            "seed_values": seed,
        }
        click.echo(json.dumps(result))
        return
    from midst.cli.node_results import answer_rows

    what, standing = answer.standing(charter.is_verified)
    rows = [
        *answer_rows(charter, answer),
        (what, f"{standing}, told by every node" if what == "proof" else standing),
        ("nodes", f"{len(names)} processes, {len(charter.edges)} links"),
        ("rounds", f"{answer.rounds} in {seconds:.2f} s" + (f", {answer.probes} probes" if answer.probes else "")),
        ("bytes", f"{traffic:,} a node, sent and received"),
        ("exposed", f"{len(exposed)} of {len(names)}: {', '.join(exposed) or 'none'}"),
    ]
    if seed is not None:
        rows.append(("seed", f"{seed} (values and graph; z(0) is never repeated)"))
    click.echo(as_text(rows))
    if charter.method == "consensus" and charter.stop == "exact":
        click.echo(f"{len(exposed)} of {len(names)} exposed; --method search exposes nobody")
