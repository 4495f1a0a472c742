"""One table for consensus, search, secret sharing, noise and sketches: what each costs and gives away.

Rules:
- All methods find the median of the same values, which lie on a public grid between public bounds. What each draws at
  random comes from the same seed (but for MPyC, OpenDP and KLL sketches, which draw by themselves).
- Who listens is `midst.Adversary()`: it hears every message that is not encrypted for one receiver. Of each value it
  has the same prior, at the same resolution, whatever the method.
- Every figure is measured, or derived from what was sent; or it is missing, and `why` says why. MPyC's bits alone rest
  on its authors' proof: that different values leave nothing but the answer behind.
- Whoever is farthest off counts: the error is that of the worst participant.
- A round is one message each way on every link. Where messages have no rounds (ADMM, MPyC) as many make one.
- Bytes are those of frames, without TLS and handshakes; of MPyC, those of its messages.
- Seconds are of one process that plays all participants; of MPyC, of one a party, from connected to answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from midst.baselines.secret_sharing import PartyFailed
from midst.errors import InputError
from midst.frames import as_csv
from midst.privacy.priors import Prior
from midst.problems import Problem
from midst.studies.contenders import METHODS, NOBODY, Case, Contender, check_methods, make_case
from midst.system import RNG, streams
from midst.workers import TaskProgress, run_in_parallel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Row:
    """What one method costs and gives away on one kind of graph; means over all problems of that kind and size.

    Attributes:
        method: its name.
        graph: the kind of graph.
        nodes: how many take part.
        error: how far the worst participant's answer is from the median, in units of the public scale.
        rounds: of messages.
        bytes_per_node: that a participant sends.
        seconds: on this machine.
        exposed: participants whose very value was sent, or follows from what was.
        bits: learnt of a value.
        floor: that the answer alone gives away, however it was found.
        excess: bits − floor; below 0 where noise hides more than the answer would tell.
        trust: whom a participant has to trust with its value.
        why: a figure is missing; None where none is.
    """

    method: str
    graph: str
    nodes: int
    error: float | None
    rounds: float | None
    bytes_per_node: float | None
    seconds: float | None
    exposed: float | None
    bits: float | None
    floor: float | None
    excess: float | None
    trust: str
    why: str | None


COLUMNS = tuple(each.name for each in fields(Row))
_FIGURES = COLUMNS[3:11]  # those that are measured


@dataclass(frozen=True)
class Comparison:
    """The table, and what to make of it.

    Attributes:
        rows: one a method, kind of graph and size.
    """

    rows: tuple[Row, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows, ready for JSON."""
        return [asdict(row) for row in self.rows]

    def to_json(self) -> str:
        """The rows as a JSON list."""
        return json.dumps(self.to_dicts(), indent=1)

    def to_csv(self) -> str:
        """The rows as CSV; what is missing is empty."""
        return as_csv(self.to_dicts())

    def to_markdown(self) -> str:
        """The rows as a Markdown table, figures short."""
        lines = [list(COLUMNS), ["---"] * len(COLUMNS), *(list(show_row(row).values()) for row in self.rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def in_words(self) -> str:
        """What the rows say, in a paragraph."""
        return describe_rows(self.rows)

    def plot(self) -> Figure:
        """Bits against rounds, with the floor.

        Raises:
            MissingExtra: matplotlib is not installed.
            InputError: no row has both.
        """
        from midst.plots.comparison import draw_comparison

        return draw_comparison(self.rows)


def compare(
    problems: Problem | Iterable[Problem],
    methods: Sequence[str] | None = None,
    *,
    prior: Prior | None = None,
    rng: RNG = 0,
    workers: int = 1,
    progress: TaskProgress | None = None,
) -> Comparison:
    """What each method costs and gives away on the same problems.

    Args:
        problems: medians to find, with public bounds and a resolution; those of one kind of graph and size make a row.
        methods: names of `midst.studies.contenders.METHODS`; all if not given.
        prior: of every value; about the middle of the bounds, a tenth of their width apart, if not given.
        rng: a seed or a generator, of what methods draw.
        workers: processes; no figure but seconds depends on them.
        progress: told how many problems of how many are done.

    Raises:
        InputError: there is no such method, or a problem is not for all of them; nothing was run.
    """
    names = check_methods(methods)
    several = [problems] if isinstance(problems, Problem) else list(problems)
    if not several:
        raise InputError("there is nothing to compare methods on; give at least one problem")
    seeds = streams(rng).z0.integers(2**63, size=len(several)).tolist()
    cases = [make_case(problem, prior, seed) for problem, seed in zip(several, seeds, strict=True)]
    measured = run_in_parallel(partial(_measure_all, names), cases, workers, progress)
    alike: dict[tuple[str, int, str], list[Row]] = {}
    for row in chain.from_iterable(measured):
        alike.setdefault((row.graph, row.nodes, row.method), []).append(row)
    return Comparison(tuple(map(_summarise, alike.values())))


def _measure_all(names: Sequence[str], case: Case) -> list[Row]:
    """All methods on one case."""
    return [_measure(name, METHODS[name], case) for name in names]


def _measure(name: str, contender: Contender, case: Case) -> Row:
    """One method on one case; the floor alone, and the reason, where it cannot be run."""
    graph = case.problem.graph
    figures: dict[str, float | None] = dict.fromkeys(_FIGURES) | {"floor": case.floor}
    why = contender.refusal(graph.n)
    try:
        found = contender.run(case) if why is None else None
    except InputError as error:
        found, why = None, str(error)
    except PartyFailed:  # whose text may be that of somebody else's program
        found, why = None, "a process of a party failed, or took too long"
    if found is not None:
        figures |= {
            "error": float(np.max(case.problem.distance(np.asarray(found.answers)))) / float(case.problem.scale),
            "rounds": float(found.rounds),
            "bytes_per_node": float(found.bytes_per_node),
            "seconds": found.seconds,
            "exposed": float(found.exposed),
            "bits": found.bits,
            "excess": None if found.bits is None else found.bits - case.floor,
        }
        why = found.why
    return Row(name, graph.name, graph.n, **figures, trust=contender.trust, why=why)


def _summarise(runs: Sequence[Row]) -> Row:
    """Means over runs; a figure that one of them lacks is missing."""
    means: dict[str, Any] = {}
    for column in _FIGURES:
        known = [getattr(run, column) for run in runs]
        means[column] = None if None in known else float(np.mean(np.array(known, np.float64)))
    return replace(runs[0], **means, why=next((run.why for run in runs if run.why is not None), None))


# For people


def show_row(row: Row) -> dict[str, str]:
    """A row in words, by column."""
    return {name: _show(name, part) for name, part in asdict(row).items()}


def _show(column: str, part: object) -> str:
    if part is None:
        return ""
    if not isinstance(part, float):
        return f"{part:,}" if isinstance(part, int) else str(part)
    if column in ("bits", "floor", "excess"):
        return f"{part:.3f}".replace("-", "−")
    if column in ("error", "seconds"):
        return f"{part:.2g}" if part else "0"
    return f"{part:,.0f}" if part == round(part) or part >= 100 else f"{part:.1f}"


def describe_rows(rows: Sequence[Row]) -> str:
    """What rows say, in a paragraph: who is exact, who gives away least, who exposes whom, what is missing."""
    names = list(dict.fromkeys(row.method for row in rows))
    by = {name: [row for row in rows if row.method == name and row.error is not None] for name in names}
    ran = [name for name in names if by[name]]
    exact = [name for name in ran if all(row.error == 0 for row in by[name])]
    everybody = [name for name in ran if all(row.exposed == row.nodes for row in by[name])]
    nobody = [name for name in ran if all(row.exposed == 0 for row in by[name])]
    trusting = [f"{name} ({by[name][0].trust})" for name in nobody if by[name][0].trust != NOBODY]
    off = max(((row.error, name) for name in ran for row in by[name] if row.error), default=None)
    missing = [name for name in names if not by[name]]
    told = [f"Always exact: {_list(exact)}."] * bool(exact) + _describe_bits(exact, by)
    told += [f"Who listens hears everybody's value by {_list(everybody)}."] * bool(everybody)
    told += [f"Who listens hears nobody's value by {_list(nobody)}."] * bool(nobody)
    told += [f"Trust is needed by {_list(trusting)}."] * bool(trusting)
    told += [] if off is None else [f"Farthest off, by {off[0]:.2g} of the public scale, was {off[1]}."]
    told += [f"Not run: {_list(missing)}; the table says why."] * bool(missing)
    sizes, graphs = sorted({row.nodes for row in rows}), sorted({row.graph for row in rows})
    many = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return f"{many} participants on {_list(graphs)} graphs. {' '.join(told)}"


def _describe_bits(exact: Sequence[str], by: dict[str, list[Row]]) -> list[str]:
    """Which of the exact methods gave away least, of those measured most often; which no more than the floor."""
    excess = {name: [row.excess for row in by[name] if row.excess is not None] for name in exact}
    most = max(map(len, excess.values()), default=0)
    if not most:
        return []
    means = {name: float(np.mean(known)) for name, known in excess.items() if len(known) == most}
    least = min(means, key=lambda name: means[name])
    floor = float(np.mean([row.floor for row in by[least] if row.floor is not None and row.excess is not None]))
    told = [
        f"Of those measured everywhere {least} gave away the least: {floor + means[least]:.2f} bits of a value in the "
        f"mean, where the answer alone gives {floor:.2f}."
    ]
    bare = [name for name, known in excess.items() if len(known) < most and known and not any(known)]
    return told + [f"No more than the answer, where it ran: {_list(bare)}."] * bool(bare)


def _list(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
