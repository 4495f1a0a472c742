"""Statistics of all values together, simulated: data of every participant in, a description out.

Rules:
- Order statistics are exact to the last bit of the values as given, or of the values rounded to the public resolution.
- Sums are exact, on a grid: the public resolution. Without one, which only a simulation can do, the grid is the
  coarsest power of two that holds every value.
- By consensus, as the authors' sequel has it, every rank is found by an iteration of its own, with one value a node;
  what is summed up follows by masked sums.
- What disclosure control would refuse on a network is said here, and computed nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from midst import graphs
from midst.columns import Columns, Missing, as_columns, split_by_site
from midst.disclosure import Disclosure, Shown
from midst.engines import SEARCHES
from midst.errors import InputError, closest
from midst.graphs import Graph
from midst.methods import Consensus, Method, MethodName, Paper, Search, make_method, require_participants
from midst.objectives import Quantile
from midst.privacy.priors import Prior, Uniform
from midst.privacy.published import Cell
from midst.privacy.statistics import SessionLeakage, measure_session
from midst.problems import Problem, in_order, names_of
from midst.protocol.keys import Grid, first_bracket, make_keys
from midst.protocol.search import Rules, SearchState
from midst.result import Result
from midst.rows import Report
from midst.solving import MethodLike, as_graph, make_graph, solve
from midst.statistics import Found, Plan, Statistic, parse_statistics, read_statistics
from midst.system import RNG, streams

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USUAL = ("count", "mean", "std", "quartiles", "p95")


@dataclass(frozen=True, eq=False, repr=False)
class Description(Report):
    """The statistics of all values together, and what it took to find them.

    Attributes:
        found: the statistics of every column, by name.
        columns: their names; ("value",) where the data has none.
        graph: who talked to whom.
        method: how ranks were found: "search" or "consensus".
        sizes: how many values each participant has.
        rounds: how many rounds of messages it took.
        probes: questions of the search.
        exposed: the nodes whose value itself was sent; nobody's, by search.
        resolution: to which values are rounded before they are summed; None where they are not.
        warnings: what disclosure control would refuse on a network.
        runs: by consensus, the run of every rank.
        dropped: rows that were left out because a value was missing.
        disclosure: the rules; small counts of a histogram are not shown to people.
    """

    found: tuple[Mapping[str, Found], ...]
    columns: tuple[str, ...]
    graph: Graph
    method: MethodName
    sizes: tuple[int, ...]
    rounds: int
    probes: int
    exposed: tuple[int | str, ...]
    resolution: Fraction | None
    warnings: tuple[str, ...] = ()
    runs: Mapping[int, Result] = field(default_factory=dict)
    dropped: int = 0
    disclosure: Disclosure = Disclosure()  # noqa: RUF009  (frozen)
    _: KW_ONLY
    _plan: Plan
    _search: SearchState

    def __getitem__(self, name: str | tuple[str, str]) -> Found:
        """A statistic by its name; of several columns, by the column's and its own."""
        column, statistic = name if isinstance(name, tuple) else ("", name)
        if not column and len(self.columns) > 1:
            raise KeyError(f"which of the columns {', '.join(self.columns)}? try [{self.columns[0]!r}, {statistic!r}]")
        if column and column not in self.columns:
            raise KeyError(f"there is no column {column!r}; there are {', '.join(self.columns)}")
        found = self.found[self.columns.index(column) if column else 0]
        if statistic not in found:
            raise KeyError(f"{statistic!r} was not asked for; there are {', '.join(found)}")
        return found[statistic]

    def table(self) -> list[dict[str, Any]]:
        """A row a column and statistic, ready for a data frame."""
        return [
            {"column": column, "statistic": name, "value": value}
            for column, found in zip(self.columns, self.found, strict=True)
            for name, value in found.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain Python values ready for JSON."""
        plain = [{name: _plain(value) for name, value in found.items()} for found in self.found]
        return {
            "statistics": plain[0] if len(plain) == 1 else dict(zip(self.columns, plain, strict=True)),
            "columns": list(self.columns),
            "values": sum(self.sizes),
            "sizes": list(self.sizes),
            "dropped": self.dropped,
            "method": self.method,
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "rounds": self.rounds,
            "probes": self.probes,
            "exposed": list(self.exposed),
            "resolution": None if self.resolution is None else str(self.resolution),
            "warnings": list(self.warnings),
        }

    def leakage(self, prior: Prior | None = None, resolution: float | None = None) -> dict[str, SessionLeakage]:
        """What the session told, to whoever hears its totals, about one value of each column.

        By consensus, what the iterations told comes on top: `audit` reads the traces of `runs`.

        Args:
            prior: what is believed of a value beforehand; uniform between the public bounds if not given.
            resolution: to which values are told apart, where there is no public one.

        Raises:
            InputError: the prior gives no mass to what was observed; or there is none, and no bounds either.
        """
        return {
            name: measure_session(self._plan, self._search, k, prior or self._between(k), resolution)
            for k, name in enumerate(self.columns)
        }

    def _between(self, column: int) -> Prior:
        rules = self._search.rules
        a, b = rules.brackets[column]
        if (a, b) == first_bracket(rules.keys, None):
            raise InputError("what is believed of a value beforehand? give a prior, or public bounds")
        return Uniform(*Cell(a, b, 0).ends(rules.keys))

    def plot(self) -> Figure:
        """Draw a box and a histogram a column, from the answers alone.

        Raises:
            MissingExtra: matplotlib is not installed.
            InputError: nothing that was asked for can be drawn.
        """
        from midst.plots.description import draw_description

        return draw_description([self.disclosure.without_small_counts(each) for each in self.found], self.columns)

    def rows(self) -> list[tuple[str, str]]:
        """The description as lines for people: (what, how much)."""
        several = len(self.columns) > 1
        rows = [
            (f"{column} {name}" if several else name, show_found(value))
            for column, found in zip(self.columns, self.found, strict=True)
            for name, value in self.disclosure.without_small_counts(found).items()
        ]
        dropped = f"; {self.dropped:,} rows with a missing one were left out" if self.dropped else ""
        exposed = f"{len(self.exposed)} of {self.graph.n} nodes" if self.exposed else "nobody"
        rows += [
            ("values", f"{sum(self.sizes):,} of {len(self.sizes):,} participants{dropped}"),
            ("rounds", f"{self.rounds:,}"),
            ("exposed", exposed),
        ]
        if self._plan.sums:
            rounded = "" if self.resolution is None else f", of values rounded to {show_resolution(self.resolution)}"
            rows.append(("sums", f"exact{rounded}"))
        return [*rows, *(("would be refused", warning) for warning in self.warnings)]


def describe(
    values: Any,
    graph: Any = "ring",
    statistics: Sequence[str] = USUAL,
    *,
    columns: Sequence[str] = (),
    site: str | None = None,
    missing: Missing = "refuse",
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    resolution: float | str | Fraction | None = None,
    method: MethodLike = "search",
    engine: str = "arrays",
    rng: RNG = None,
    disclosure: Disclosure | None = None,
) -> Description:
    """Statistics of all values that the nodes of a graph hold.

    Args:
        values: of every node a number, a list of numbers or of rows, or a column or table of pandas, polars or Arrow;
            in the order of the nodes, or by their names: {"anna": table, …}. Or, with `site`, one table for all.
        graph: a `Graph`, the name of a kind ("ring", "complete", "rgg" …), a networkx graph or a SciPy sparse matrix.
        statistics: by name: median, quartiles, iqr, p95, mean, sum, count, variance, std, mad, trimmed:0.1,
            winsorised:0.1, top:3, bottom:3, min, max, histogram:0,10,20,50.
        columns: which of a table's, by name; or their names, where they have none.
        site: the column of one table for all that holds the name of each row's node.
        missing: whether missing values are to "refuse" the data or to "drop" their rows, which are counted.
        bounds: public: a lower and an upper bound, each one number or one a column.
        resolution: public: values are rounded to it.
        method: `Search(…)`; or `Consensus(…)`, with one value a node, by an iteration for every rank.
        engine: "arrays" or "reference" (participants, with masks).
        rng: a seed or a generator, for the graph and for z(0).
        disclosure: the rules by which a network would refuse; the usual ones if not given.

    Raises:
        InputError: the input is refused; nothing was run.

    >>> import midst
    >>> midst.describe([[1, 2], [3, 4], [5, 6]], graph="complete", statistics=["median", "mean"])["mean"]
    3.5
    """
    wanted, chosen, read = parse_statistics(statistics), make_method(method), make_keys(resolution).nearest
    if site is not None:
        values = split_by_site(values, site)
    elif hasattr(values, "columns") or not hasattr(values, "__iter__"):
        raise InputError('give data a node; or one table for all, and name the column that holds the nodes: site="…"')
    values = list(values) if names_of(values) is None else values
    graph = make_graph(graph, len(values), names_of(values), rng) if isinstance(graph, str) else as_graph(graph)
    if len(values := in_order(values, graph, "table")) != graph.n:
        raise InputError(f"{len(values)} tables for {graph.n} nodes; give one a node")
    parts = [
        as_columns(each, columns, missing=missing, what=f"node {graph.label(i)}", read=read)
        for i, each in enumerate(values)
    ]
    public: dict[str, Any] = {"bounds": bounds, "resolution": resolution, "disclosure": disclosure}
    return describe_columns(parts, graph, wanted, chosen, engine=engine, rng=rng, **public)


def describe_columns(
    parts: Sequence[Columns],
    graph: Any,
    wanted: tuple[Statistic, ...],
    method: Method,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    resolution: float | str | Fraction | None = None,
    engine: str = "arrays",
    rng: RNG = None,
    disclosure: Disclosure | None = None,
) -> Description:
    """The same, of columns that are read already; see `describe`."""
    widths = {part.values.shape[1] for part in parts}
    if len(widths) > 1:
        raise InputError(f"rows of {' and '.join(map(str, sorted(widths)))} numbers; every node needs the same columns")
    if isinstance(graph, str):
        graph = graphs.make(graph, len(parts), rng=streams(rng).graph)
    count = widths.pop() if widths else 0
    rows = [part.values[:, 0] if count == 1 else part.values for part in parts]
    problem = Problem(as_graph(graph), rows, bounds=bounds, resolution=resolution, pooled=True)
    sizes = tuple(len(part) for part in rows)
    plan = Plan(wanted, sum(sizes), count)
    if engine not in SEARCHES:
        near = closest(engine, SEARCHES)
        raise InputError(f"there is no engine {engine!r} for a search; try one of {', '.join(SEARCHES)}{near}")
    if isinstance(method, Paper):
        raise InputError("the paper's algorithm finds no statistics; try method search")
    how = method if isinstance(method, Search) else Search()
    if isinstance(method, Search):
        require_participants(problem.graph.n)
    rules = plan.rules(how, problem.keys, problem.brackets, *(problem.sum_grid if plan.sums else ()))
    runs = {} if isinstance(method, Search) else _iterate(problem, plan, method, rng)
    if runs:
        rules = replace(rules, opening=_opening(rules, runs))
    searched = SEARCHES[engine](problem, rules, token_bytes)
    assert isinstance(searched.search, SearchState)
    return Description(
        found=tuple(read_statistics(plan, searched.search)),
        columns=next((part.names for part in parts if part.names), _unnamed(count)),
        graph=problem.graph,
        method="consensus" if runs else "search",
        sizes=sizes,
        rounds=searched.rounds + sum(run.rounds for run in runs.values()),
        probes=len(searched.steps),
        exposed=tuple(sorted({one for run in runs.values() for one in run.exposed}, key=problem.graph.index)),
        resolution=rules.grid.step if rules.grid is not None and rules.grid == problem.keys else None,
        warnings=tuple((disclosure or Disclosure()).refusals(wanted, sizes)),
        disclosure=disclosure or Disclosure(),
        _plan=plan,
        _search=searched.search,
        runs=runs,
        dropped=sum(part.dropped for part in parts),
    )


def _unnamed(count: int) -> tuple[str, ...]:
    return ("value",) if count == 1 else tuple(f"column {k + 1}" for k in range(count))


# By consensus


def _iterate(problem: Problem, plan: Plan, method: Consensus, rng: RNG) -> dict[int, Result]:
    """A run of the iteration, with its exact finish, for every rank."""
    if plan.total != problem.graph.n or problem.values.ndim > 1:
        raise InputError("the iteration takes one value a node; try method search")
    if plan.has_mad:
        raise InputError("the iteration has no mad; try method search")
    step = problem.keys.step if isinstance(problem.keys, Grid) else None
    runs = {}
    for rank in plan.ranks:
        sought = Quantile(Fraction(2 * rank - 1, 2 * plan.total))
        alone = Problem(problem.graph, problem.values, objective=sought, bounds=problem.bounds, resolution=step)
        runs[rank] = solve(alone, method, rng=rng, record="audit")
    return runs


def _opening(rules: Rules, runs: Mapping[int, Result]) -> tuple[tuple[int, ...], ...]:
    """Thresholds about the answers of the iterations, so that one probe counts where they are."""
    found = [rules.keys.key(float(run.value)) for run in runs.values()]
    return (tuple(sorted({edge for key in found for edge in (key - 1, key)})),)


# For people


def show_found(value: Shown) -> str:
    """An answer for people."""
    if isinstance(value, float):
        return f"{value:.10g}"
    return ", ".join("not shown" if one is None else f"{one:.10g}" for one in value)


def show_resolution(step: Fraction) -> str:
    """A resolution for people: as a decimal, or as the power of two that it is."""
    if step.numerator == 1 and step.denominator & (step.denominator - 1) == 0 and step.denominator > 2**20:
        return f"2^-{step.denominator.bit_length() - 1}"
    return f"{float(step):g}"


def _plain(value: Found) -> float | list[float]:
    return value if isinstance(value, float) else value.tolist()
