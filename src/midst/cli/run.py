"""`midst run`: simulate the parties of a graph until their answer is proved.

Rules:
- Everything is checked before the first iteration and before the first byte is written.
- One seed gives the graph, the values and z(0), each from its own stream; without --seed one is drawn and reported.
- Private values are in a file only with --keep-values, and in a picture or a page only with --show-values.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from midst.cli.options import (
    CSV_OPTION,
    DEFINITION_HELP,
    DEFINITIONS,
    GRAPH_HELP,
    MISSING_OPTION,
    WIDTH_HELP,
    WIDTH_NAMES,
    check_plot,
    is_given,
    offer_graphs,
    parse_bounds,
    read_graph,
    refuse_given,
)
from midst.errors import InputError, NotCertified
from midst.files import check_writable
from midst.progress import phases, tell
from midst.rows import as_text

if TYPE_CHECKING:
    from midst.columns import Missing
    from midst.dp.joint import Claim
    from midst.methods import Method, MethodName, StopName
    from midst.objectives import Definition, Objective
    from midst.plots.style import Width
    from midst.privacy.priors import Prior
    from midst.problems import Problem
    from midst.protocol.noise import JointNoise
    from midst.result import Result
    from midst.types import Array

# What options offer, as the modules that mean it do, which take time to load (`tests/cli/test_run.py` compares them).
OBJECTIVES = ("median", "maximum", "minimum", "mean")
METHODS: tuple[MethodName, ...] = ("search", "consensus", "paper")
BOTH: tuple[MethodName, ...] = ("search", "consensus")
SPACINGS = ("rank", "value", "key")
ENGINES = ("arrays", "edges", "reference")

_METHOD = """A search by masked sums, which exposes nobody; the paper's iteration, which exposes the nodes that send
their own value: consensus, or paper, Algorithm 1 as written, which no search ends; or both, search and consensus, to
compare. Default: search."""
_STOP = """Of the iteration: when x are close enough for a search to find the exact answer, or when it is certified to
within the tolerance. Default: exact where one value is the answer, else certified."""
_DP = """Noise on every value first: gaussian:eps=1,delta=1e-5,bounds=0:100 or laplace:eps=1,bounds=0:100, or the
paper's offset:sigma=0.1; or of a search on every total, of which nobody knows the whole: joint:eps=1,delta=1e-6."""
_VALUES = "One number (or row of numbers) a line. Default: N(0, 1), drawn."
_VALUES_DIR = "One file a participant, for --statistics: numbers, a CSV or a Parquet file; see --column."
_STATISTICS = """Find these of all values together, in one session: median, quartiles, iqr, p95, mean, sum, count,
variance, std, mad, trimmed:0.1, winsorised:0.1, top:3, bottom:3, min, max, histogram:0,10,20."""
_PRIOR = "For bits: of the ledger, of statistics, or of a page. Of these two by default: uniform between --bounds."
_PAGE = "Write the run as one HTML file that anybody can open: the explorer's page, with the run in it."
_LEDGER = "Keep account of what is given away about one node's value."
_RECORD = "Which iterations to keep; K: every K-th."
_EXAMPLES = """\b
Examples:
  midst run --graph rgg --nodes 15 --seed 7 --plot run.png
  midst run --graph rgg --nodes 15 --seed 7 --plot run.pdf --width column
  midst run --graph rgg --nodes 15 --seed 7 --method both --bounds -3:3 --page run.html
  midst run --graph ring --values values.txt --quantile 0.9 --json
  midst run --graph ring --values values.txt --method search --bounds 0:100
  midst run --graph ring --values values.txt --method both --plot both.png
  midst run --graph ring --values lists.txt --pooled --method search --dp joint:eps=1,delta=1e-6 \\
      --bounds 0:100 --resolution 1
  midst run --graph ring --values-dir sites --column los --statistics median,p95,mean --bounds 0:365"""
_OF_SEARCH = ("arity", "spacing")
_OF_CONSENSUS = ("theta", "force", "stop")  # and not of the paper's algorithm
_A_FILE = click.Path(path_type=Path)


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.option("--graph", required=True, shell_complete=offer_graphs, metavar="KIND|FILE", help=GRAPH_HELP)
@click.option("--nodes", type=int, metavar="N", help="How many; not needed with --values or a graph from a file.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Repeats a run; drawn and reported if not given.")
@click.option("--values", type=click.Path(), metavar="FILE|-", help=_VALUES)
@click.option("--pooled", is_flag=True, help="A line of --values is a node's list, of any length; by search.")
@click.option("--values-dir", type=click.Path(), metavar="FOLDER", help=_VALUES_DIR)
@click.option("--column", "columns", multiple=True, metavar="NAME", help="Of a CSV or Parquet file. Repeat.")
@MISSING_OPTION
@CSV_OPTION
@click.option("--statistics", metavar="NAME,…", help=_STATISTICS)
@click.option("--weights", type=click.Path(), metavar="FILE|-", help="One number a line. Default: 1 each.")
@click.option("--objective", type=click.Choice(OBJECTIVES), help="What to find. Default: the median.")
@click.option("--quantile", type=float, metavar="Q", help="Find this quantile instead.")
@click.option("--definition", type=click.Choice(DEFINITIONS), help=DEFINITION_HELP)
@click.option("--scale", type=float, help="Public: about how far the values lie from each other.")
@click.option("--bounds", metavar="LO:HI", help="Public: where all values lie.")
@click.option("--resolution", metavar="R", help="Public: exact answers are those of the values rounded to it.")
@click.option("--method", type=click.Choice([*METHODS, "both"]), help=_METHOD)
@click.option("--arity", type=int, metavar="K", help="Thresholds a probe of a search, from 1 to 7. Default: 3.")
@click.option("--spacing", type=click.Choice(SPACINGS), help="Where a search places them. Default: rank.")
@click.option("--c", type=float, help="Convergence parameter. Default: by the public scale, and the degree.")
@click.option("--theta", type=float, default=0.5, show_default=True, help="Averaging constant, in (0, 1).")
@click.option("--mu", type=float, help="Mean of z(0). Default: such that x(0) is near the public centre.")
@click.option("--sigma", type=float, help="Standard deviation of z(0). Default: 0.1.")
@click.option("--force", is_flag=True, help="Allow --theta 1 where it does not converge.")
@click.option("--iterations", type=int, metavar="N", help="Run exactly so many, proved or not.")
@click.option("--stop", type=click.Choice(["exact", "certified"]), help=_STOP)
@click.option("--dp", metavar="SPEC", help=_DP)
@click.option("--ledger", type=click.Path(), metavar="FILE", help=_LEDGER)
@click.option("--ledger-node", metavar="NODE", help="Whose, by the name of the node. Default: the first node.")
@click.option("--prior", default="normal:0,1", show_default=True, metavar="KIND:A,B", help=_PRIOR)
@click.option("--over-budget", is_flag=True, help="Run even past the ledger's budget.")
@click.option("--tolerance", type=float, default=1e-6, show_default=True, help="Of the answer, relative to the scale.")
@click.option("--limit", type=int, default=1_000_000, show_default=True, help="Give up after so many iterations.")
@click.option("--engine", type=click.Choice(ENGINES), default="arrays", show_default=True)
@click.option("--record", default="auto", show_default=True, metavar="all|auto|audit|none|K", help=_RECORD)
@click.option("--save", type=_A_FILE, metavar="FILE.npz", help="Write the record of the run.")
@click.option("--keep-values", is_flag=True, help="Put the private values into that record.")
@click.option("--plot", type=_A_FILE, metavar="FILE.png", help="Draw the run (.png, .pdf, .svg).")
@click.option("--width", type=click.Choice(WIDTH_NAMES), help=WIDTH_HELP)
@click.option("--page", type=_A_FILE, metavar="FILE.html", help=_PAGE)
@click.option("--show-values", is_flag=True, help="Put the private values into that picture, or page.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of the report.")
def command(
    graph: str,
    nodes: int | None,
    seed: int | None,
    values: str | None,
    pooled: bool,
    values_dir: str | None,
    columns: tuple[str, ...],
    missing: Missing,
    dialect: str | None,
    statistics: str | None,
    weights: str | None,
    objective: str | None,
    quantile: float | None,
    definition: Definition | None,
    scale: float | None,
    bounds: str | None,
    resolution: str | None,
    method: MethodName | Literal["both"] | None,
    dp: str | None,
    ledger: str | None,
    ledger_node: str | None,
    prior: str,
    over_budget: bool,
    engine: str,
    record: str,
    save: Path | None,
    keep_values: bool,
    plot: Path | None,
    width: Width | None,
    page: Path | None,
    show_values: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Find a median, a quantile, a mean, or many statistics at once, over a graph."""
    from midst.cli.values import parse_dialect, read_numbers, read_parties, read_values
    from midst.problems import Problem
    from midst.protocol.noise import JointNoise
    from midst.system import streams

    reading: dict[str, Any] = {"columns": columns, "missing": missing, "dialect": parse_dialect(dialect)}
    if statistics is not None:
        from midst.cli.describing import describe_parties

        parties = read_parties(values, values_dir, pooled, nodes, **reading)
        describe_parties(parties)
        return
    if values_dir is not None:
        raise InputError("--values-dir is for --statistics, such as --statistics median,mean")
    if ledger is None:
        refuse_given(("ledger_node", "over_budget"), "is of the account that --ledger keeps; give that too")
        if page is None:
            refuse_given(("prior",), "is for bits; give --ledger or --page too")
    check_plot(plot, width)
    _check_files(save, keep_values, plot, page, show_values, record, inputs=(graph, values, weights))
    sought, known = _objective(objective, quantile, definition), parse_bounds(bounds)
    public: dict[str, Any] = {"scale": scale, "bounds": known, "resolution": resolution, "pooled": pooled}
    seed = secrets.randbits(32) if seed is None else seed
    drawn = streams(seed)
    with phases(show="-" not in (values, weights)) as say:
        say("reading")
        numbers = read_values(values, pooled, nodes, **reading)
        say("making the graph")
        network = read_graph(graph, nodes if numbers is None else len(numbers), drawn.graph)
        say("setting up")
        numbers = drawn.values.standard_normal(network.n) if numbers is None else numbers
        weighed = None if weights is None else read_numbers(weights)
        noiseless = Problem(network, numbers, objective=sought, weights=weighed, **public)
    names = BOTH if method == "both" else (method or _default_method(noiseless),)
    if method == "paper":
        from midst.methods import Paper

        noiseless = Paper().of(noiseless)
    mechanism = _noise(dp, names, drawn=plot is not None or page is not None)
    noise = mechanism if isinstance(mechanism, JointNoise) else None
    problem = noiseless
    if not isinstance(mechanism, JointNoise | None):
        from midst.dp.mechanisms import privatise

        problem = privatise(noiseless, mechanism, seed)
    if len(names) > 1 and (save is not None or ledger is not None):
        raise InputError("--save and --ledger are of one run; leave them out, or choose one --method")
    believed = None
    if page is not None:
        from midst.explorer.replay import check_shown
        from midst.objectives import Mean
        from midst.privacy.priors import parse_prior

        check_shown(problem, show_values)
        if isinstance(sought, Mean) and "search" not in names and record not in ("all", "audit"):
            raise InputError(f"--page of a mean shows what --record {record} leaves out; try --record all")
        normal = values is None and known is None  # they are drawn from N(0, 1)
        believed = parse_prior(prior) if is_given("prior") or normal else None
    if objective == "mean" and "search" in names:
        why = "cannot judge a masked sum yet; leave it out, or choose --method consensus"
        refuse_given(("plot", "page", "ledger"), why)
    if ledger is not None and record == "none":
        raise InputError("--ledger needs what --record none leaves out; try --record audit")
    methods = {name: _method(name, problem, parameters, noise, alone=len(names) == 1) for name in names}
    account = None
    if ledger is not None:
        from midst.cli.account import open_account
        from midst.privacy.priors import parse_prior

        whose = problem.graph.label(0) if ledger_node is None else ledger_node
        account = open_account(ledger, noiseless, whose, parse_prior(prior), mechanism, over_budget)
    kept: Any = int(record) if record.isdecimal() else record
    with phases() as say:
        results, failure = _solve(problem, methods, engine, seed, kept, keep_values, say)
    # with noise on the values, what the answer is off by includes what the noise costs
    results = {n: replace(r, error=float(noiseless.distance(r.value).max())) for n, r in results.items()}
    try:
        with phases() as say:
            if account is not None:
                say("keeping account")
                account.book(results[names[0]])
            if save is not None:
                say("writing the record")
                results[names[0]].trace.save(save)
            if plot is not None:
                say("drawing the picture")
                _draw(results, problem.values if show_values else None, width, plot)
            if page is not None:
                say("auditing, for the page")
                noised = None if problem is noiseless else (mechanism, problem.values)
                _write_page(results, noiseless, believed, noised, show_values, page)
    finally:  # a full disk does not cost the answer
        _report({name: results[name] for name in names}, seed, as_json, hint=problem.has_one_value)
    if failure is not None:
        raise failure


# What was asked for


def _check_files(
    save: Path | None,
    keep_values: bool,
    plot: Path | None,
    page: Path | None,
    show_values: bool,
    record: str,
    inputs: tuple[str | None, ...],
) -> None:
    """Refuses what could not be written, or would be written over something that is read."""
    if keep_values and save is None:
        raise InputError("--keep-values needs --save: without it there is no record to put them into")
    if show_values and plot is None and page is None:
        raise InputError("--show-values needs --plot or --page: without one there is nothing to put them into")
    if inputs.count("-") > 1:
        raise InputError("standard input can be read once; give --values or --weights a file")
    if plot is not None and record in ("audit", "none"):
        raise InputError(f"--plot draws what --record {record} leaves out; try --record auto")
    if page is not None:
        from midst.explorer.page import check_page

        check_page(page)
        if record == "none":
            raise InputError("--page shows what --record none leaves out; try --record auto")
    outputs = [check_writable(path).resolve() for path in (save, plot, page) if path is not None]
    paths = [*outputs, *(Path(name).resolve() for name in inputs if name is not None)]
    for path in outputs:
        if paths.count(path) > 1:
            raise InputError(f"{path} is given twice; each file needs its own name")


def _objective(name: str | None, quantile: float | None, definition: Definition | None) -> Objective:
    from midst.objectives import LEVELS, Mean, Quantile

    if name is not None and quantile is not None:
        raise InputError("give --objective or --quantile, not both")
    if definition is not None and name in ("mean", "maximum", "minimum"):
        raise InputError(f"--definition chooses between two answers; there is only one {name}")
    if name == "mean":
        return Mean()
    return Quantile(LEVELS[name or "median"] if quantile is None else quantile, definition or "inverted_cdf")


def _default_method(problem: Problem) -> MethodName:
    from midst.methods import Search, choose_method

    return "search" if isinstance(choose_method(None, [problem]), Search) else "consensus"


def _noise(spec: str | None, names: tuple[MethodName, ...], drawn: bool) -> Claim | None:
    """The noise that is asked for."""
    if spec is None:
        return None
    from midst.dp.joint import parse_claim
    from midst.protocol.noise import JointNoise

    claim = parse_claim(spec)
    if isinstance(claim, JointNoise):
        if names != ("search",):
            raise InputError("--dp joint:… is noise on the totals of a search; give --method search")
        if drawn:
            raise InputError(
                "--plot and --page draw totals, and with noise these say nothing for certain; leave them out"
            )
    return claim


def _method(
    name: MethodName, problem: Problem, parameters: dict[str, Any], noise: JointNoise | None, alone: bool
) -> Method:
    """The method with its parameters; where it is alone, those of the other one must not be given."""
    from midst.methods import Consensus, Exact, Paper, Search, make_stop

    others = [each for each in parameters if (each in _OF_SEARCH) != (name == "search")]
    if name == "paper":
        refuse_given(_OF_CONSENSUS, "is an option of --method consensus; choose that method, or leave it out")
        others += _OF_CONSENSUS
    if alone:
        other = "consensus" if name == "search" else "search"
        refuse_given(others, f"is an option of --method {other}; choose that method, or leave it out")
    own = {each: value for each, value in parameters.items() if each not in others and value is not None}
    if name == "search":
        return Search(**own, noise=noise)
    named: StopName | None = "certified" if name == "paper" else own.pop("stop", None)
    stop = make_stop(problem, named, *(own.pop(each, None) for each in ("tolerance", "iterations")))
    if parameters["iterations"] is not None:
        refuse_given(("stop", "tolerance", "limit"), "says when to end, and so does --iterations; give one of them")
    if isinstance(stop, Exact):
        refuse_given(("tolerance",), "is of --stop certified; an exact answer has none")
    return Paper(**own, stop=stop) if name == "paper" else Consensus(**own, stop=stop)


def _solve(
    problem: Problem,
    methods: dict[MethodName, Method],
    engine: str,
    seed: int,
    record: Any,
    keep_values: bool,
    say: Callable[[str], None],
) -> tuple[dict[MethodName, Result], NotCertified | None]:
    """A result by each method, and what failed."""
    from midst.solving import solve

    results, failure = {}, None
    for name, how in methods.items():  # the search first: it refuses before anything is run
        try:
            say("searching" if name == "search" else "iterating")
            results[name] = solve(
                problem,
                how,
                engine=engine,
                rng=seed,
                record="auto" if name == "search" and len(methods) > 1 else record,
                keep_values=keep_values,
                progress=partial(tell, say),
            )
        except NotCertified as error:
            results[name], failure = error.result, error
    return results, failure


# What people see


def _draw(results: dict[MethodName, Result], values: Array | None, width: Width | None, path: Path) -> None:
    """The picture of a run, or of two side by side."""
    from midst.plots.results import draw_both, save_figure

    [first, *others] = _in_order(results)
    shown = values is not None  # they are those that the result holds
    save_figure(draw_both(first, others[0], values, width) if others else first.plot(values=shown, width=width), path)


def _in_order(results: dict[MethodName, Result]) -> list[Result]:
    """Those that there are, the iteration before the search."""
    return [results[name] for name in reversed(METHODS) if name in results]


def _write_page(
    results: dict[MethodName, Result],
    problem: Problem,
    prior: Prior | None,
    noise: tuple[Any, Array] | None,
    show_values: bool,
    path: Path,
) -> None:
    """The page of a run, or of two side by side."""
    from midst.explorer.page import make_page, save_page
    from midst.explorer.replay import pack_result

    runs = [pack_result(result, problem.values, problem.bounds, prior, noise) for result in _in_order(results)]
    save_page(make_page(runs, values=show_values), path)


def _report(results: dict[MethodName, Result], seed: int, as_json: bool, hint: bool) -> None:
    """What came out on stdout: one JSON object, or a table each; and what another method would have spared."""
    if as_json:
        told = {name: result.to_dict() | {"seed": seed} for name, result in results.items()}
        click.echo(json.dumps(told if len(told) > 1 else next(iter(told.values()))))
        return
    for result in results.values():
        _print_rows(result, [*result.rows(), ("seed", str(seed))])
    if hint and tuple(results) == ("consensus",):
        [result] = results.values()
        click.echo(f"{len(result.exposed)} of {result.nodes} exposed; --method search exposes nobody")


def _print_rows(result: Result, rows: list[tuple[str, str]]) -> None:
    """A table on a terminal, or plain lines."""
    if not sys.stdout.isatty():
        click.echo(as_text(rows))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ROUNDED, show_header=False, border_style="dim")
    table.add_column(justify="right", style="cyan")
    table.add_column(overflow="fold")
    styles = {result.objective: "bold", "proof": "green" if result.certified else "bold red", "exposed": "yellow"}
    for name, text in rows:
        table.add_row(name, Text(text, styles.get(name, "")))
    Console().print(table)
