"""What can be set, and what is refused.

Rules:
- `Settings` is the only list. `FIELDS` are made of it: the page draws its form from them, and `parse` reads what comes
  back by them.
- A setting travels as text, as people type it; an empty one is the default, which may be "chosen".
- What is wrong is said beside the field: `FieldError` maps fields to one line each.
- A field that is not in use is not read.
- Sizes are capped here: nodes, edges, iterations, and nodes times iterations.
- Numbers and graphs of one's own are read by the readers of `midst run --values` and `--graph`. Numbers are private:
  no refusal and no repr repeats one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from dataclasses import field as attribute
from dataclasses import fields as attributes
from re import search
from typing import Any, Literal

from midst.columns import parse_rows
from midst.errors import InputError
from midst.graphs import Graph
from midst.graphs.reading import parse_edges
from midst.privacy.adversaries import split_names

MOST_NODES = 2_000
MOST_CELLS = 2_000_000  # nodes times iterations of a run
MOST_ITERATIONS = 100_000
MOST_EDGES = 200_000
MOST_LETTERS = 100_000  # of a text of many lines
_LONGEST = 200  # characters of any other setting

FieldKind = Literal["choice", "number", "whole", "nodes", "numbers", "edges"]
_KINDS: dict[str, FieldKind] = {  # by the type of the setting
    "str": "choice",
    **dict.fromkeys(("float", "float | None"), "number"),
    **dict.fromkeys(("int", "int | None"), "whole"),
    "tuple[str, ...]": "nodes",
    "tuple[float, ...]": "numbers",
    "Graph | None": "edges",
}


class FieldError(InputError):
    """Settings that cannot be run.

    Attributes:
        fields: what is wrong, by field.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = dict(fields)


@dataclass(frozen=True)
class Field:
    """One thing that can be set.

    Attributes:
        name: of the setting.
        label: for people.
        group: under which heading.
        kind: what may be written in it.
        default: as text; empty where it is chosen, or may be left out.
        choices: of a choice, with words for people.
        when: the fields, and their values, that put this one in use.
        hint: shown where nothing is written.
        help: one sentence.
    """

    name: str
    label: str
    group: str
    kind: FieldKind
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hint: str = ""
    help: str = ""


_OF_FILE, _SIMULATED = ("source", ("file",)), ("source", ("simulated",))
_ITERATES = ("method", ("consensus", "paper"))
_BY_CONSENSUS = ("method", ("consensus",))
_MINE, _SEARCHES = ("graph", ("own",)), ("method", ("search",))
_DRAWN, _OWN, _BOUNDED = ("data", ("drawn",)), ("data", ("own",)), ("dp", ("gaussian", "laplace"))


def _look(label: str, group: str, *when: tuple[str, tuple[str, ...]], repr: bool = True, **more: Any) -> Any:
    """A setting of a look at a run, with the rest of its `Field`."""
    return attribute(repr=repr, metadata={"label": label, "group": group, "when": when} | more)


def _run(label: str, group: str, *when: tuple[str, tuple[str, ...]], **more: Any) -> Any:
    """A setting of a run that is made here."""
    return _look(label, group, _SIMULATED, *when, **more)


def _words(*pairs: str) -> tuple[tuple[str, str], ...]:
    """Values, each with its words for people, which are its own name if none are given."""
    return tuple((value, words or value) for value, _, words in (pair.partition(" ") for pair in pairs))


_SOURCES = _words("simulated", "file from the file")
_GRAPHS = _words("rgg random geometric", "ring", "complete", "path", "star", "tree", "grid", "er Erdős–Rényi")
_GRAPHS += _words("ws small world", "ba scale-free", "regular", "own my own")
_GENERATED = ("graph", tuple(kind for kind, _ in _GRAPHS[:-1]))
_OBJECTIVES = _words("median the median", "quantile a quantile", "maximum the maximum", "minimum the minimum")
_OBJECTIVES += _words("mean the mean")
_PRIORS = _words("normal", "uniform", "laplace Laplace")
_WHO = _words("eavesdropper an eavesdropper", "passive corrupt nodes", "both both of them")
_METHODS = _words("search", "consensus", "paper the paper, as written")
_STOPS = _words("exact exact, by a search", "certified", "iterations after so many")
_NOISE = _words("none", "offset an offset", "gaussian Gaussian", "laplace Laplace")
_TWO_EDGES, _EDGES = "alice bob\nbob carol", "Two names a line; one for a node without edges."
_NUMBERS = "One a node, in the order of the nodes. They stay on this machine, and are in no link."
_PRIOR = "What numbers are drawn from; of your own, what an adversary believes before it listens. Empty: 0 and 1, or "
_PRIOR += "what is public about your own."


@dataclass(frozen=True)
class Settings:
    """What to run and to look at; a field that is not in use has its default.

    A number that is chosen, or left out, is None. `n` is that of one's own numbers or graph, where they are given.
    """

    source: str = _look("run", "network", default="simulated", choices=_SOURCES)
    coordinate: int = _look("coordinate", "network", _OF_FILE, default="0")
    graph: str = _run("graph", "network", default="rgg", choices=_GRAPHS)
    edges: Graph | None = _run("edges", "network", _MINE, hint=_TWO_EDGES, help=_EDGES)  # noqa: RUF009  (it is a field)
    n: int = _run("nodes", "network", _GENERATED, _DRAWN, default="15", help=f"At most {MOST_NODES:,}.")
    radius: float | None = _run("radius", "network", ("graph", ("rgg",)), hint="auto")
    p: float | None = _run("probability p", "network", ("graph", ("er", "ws")), hint="auto")
    k: int | None = _run("neighbours k", "network", ("graph", ("ws", "regular")), hint="4")
    m: int | None = _run("edges m", "network", ("graph", ("ba",)), hint="2")
    seed: int = _run("seed", "network", default="7", help="The same seed draws the same run.")
    draw: int | None = _run("paper's run", "network", hint="none", help="Its k-th run under this seed.")
    data: str = _run("numbers", "data", default="drawn", choices=_words("drawn", "own my own"))
    numbers: tuple[float, ...] = _run("my numbers", "data", _OWN, hint="3.1\n4.7\n2.5", help=_NUMBERS, repr=False)
    prior: str = _run("shape", "data", default="normal", choices=_PRIORS, help=_PRIOR)
    prior_a: float | None = _run("mean | low", "data", hint="auto", help=_PRIOR)
    prior_b: float | None = _run("spread | high", "data", hint="auto", help=_PRIOR)
    least: float | None = _run("bounds: low", "data", hint="none", help="Public: where all values lie.")
    most: float | None = _run("high", "data", hint="none")
    objective: str = _run("find", "data", default="median", choices=_OBJECTIVES)
    q: float = _run("quantile", "data", ("objective", ("quantile",)), default="0.9")
    method: str = _run("by", "method", default="search", choices=_METHODS)
    arity: int = _run("thresholds", "method", _SEARCHES, default="3", help="Of a probe, from 1 to 7.")
    resolution: float | None = _run(
        "resolution", "method", _SEARCHES, hint="none", help="Public: values are rounded to it."
    )
    c: float | None = _run(
        "c", "iteration", _ITERATES, hint="auto", help="Larger: fewer are exposed, often in more time."
    )
    theta: float = _run("θ", "iteration", _BY_CONSENSUS, default="0.5", help="Averaging constant, in (0, 1).")
    mu: float | None = _run(
        "μ", "iteration", _ITERATES, hint="auto", help="Mean of z(0): far from 0 starts far from the median."
    )
    sigma: float | None = _run("σ", "iteration", _ITERATES, hint="0.1", help="Standard deviation of z(0).")
    stop: str = _run("stop when", "iteration", _BY_CONSENSUS, default="exact", choices=_STOPS)
    iterations: int = _run("iterations", "iteration", _BY_CONSENSUS, ("stop", ("iterations",)), default="200")
    tolerance: float = _run("tolerance", "iteration", _BY_CONSENSUS, ("stop", ("certified",)), default="1e-6")
    adversary: str = _look("adversary", "adversary", default="eavesdropper", choices=_WHO)
    corrupt: tuple[str, ...] = _look("corrupt nodes", "adversary", ("adversary", ("passive", "both")), hint="3, 7")
    init: str = _look("z(0) travels", "adversary", default="clear", choices=_words("clear in the clear", "sealed"))
    believes: str = _look("believes", "adversary", _OF_FILE, default="normal", choices=_PRIORS)
    believes_a: float = _look("mean | low", "adversary", _OF_FILE, default="0")
    believes_b: float = _look("spread | high", "adversary", _OF_FILE, default="1")
    dp: str = _run("noise on the values", "defence", default="none", choices=_NOISE)
    offset: float | None = _run("std of the offset", "defence", ("dp", ("offset",)), hint="auto")
    epsilon: float = _run("ε", "defence", _BOUNDED, default="1")
    delta: float = _run("δ", "defence", ("dp", ("gaussian",)), default="1e-5")
    low: float | None = _run("clipped from", "defence", _BOUNDED, hint="bounds")
    high: float | None = _run("to", "defence", _BOUNDED, hint="bounds")

    @property
    def limit(self) -> int:
        """How many iterations fit."""
        return most_iterations(self.n)


FIELDS = tuple(Field(each.name, kind=_KINDS[str(each.type)], **each.metadata) for each in attributes(Settings))
_BY_NAME = {field.name: field for field in FIELDS}


def most_iterations(n: int) -> int:
    """How many iterations of so many nodes a page holds."""
    return min(MOST_ITERATIONS, MOST_CELLS // n)


def describe() -> list[dict[str, Any]]:
    """The fields, ready for JSON."""
    return [asdict(field) for field in FIELDS]


def parse(given: Mapping[str, Any], *, file: bool = False) -> Settings:
    """The settings of a form, or of a link.

    Args:
        given: text by the name of the field.
        file: whether there is a file to look at.

    Raises:
        FieldError: a setting is unknown, is not of its kind, or out of its range.
    """
    wrong: dict[str, str] = {}
    unknown = [str(name)[:_LONGEST] for name in given if name not in _BY_NAME]
    wrong |= dict.fromkeys(unknown, "there is no such setting")
    read: dict[str, Any] = {}
    for field in FIELDS:
        used = all(str(given.get(name) or _BY_NAME[name].default) in values for name, values in field.when)
        text = given.get(field.name, "") if used else ""
        try:
            read[field.name] = _read(field, text, used)
        except InputError as error:
            wrong[field.name] = str(error)
    if "source" not in wrong and read["source"] == "file" and not file:
        wrong["source"] = "no file was opened; start midst explore with a run.npz"
    own = [len(read["numbers"])] if read.get("numbers") else []
    own += [read["edges"].n] if read.get("edges") else []
    read |= {"n": own[0]} if own else {}
    wrong |= {name: text for name, text in _ranges(read) if name not in wrong}
    if wrong:
        raise FieldError(wrong)
    return Settings(**read)


@contextmanager
def blame(first: str, *others: str) -> Iterator[None]:
    """Lays an `InputError` at the door of a field: the one among these that its text names first, else the first."""
    try:
        yield
    except FieldError:
        raise
    except InputError as error:
        raise FieldError({_culprit(str(error), (first, *others)): str(error)}) from None


def _culprit(text: str, names: Sequence[str]) -> str:
    places = {name: found.start() for name in names if (found := search(rf"\b{name}\b", text))}
    return min(places, key=places.__getitem__, default=names[0])


def _read(field: Field, given: Any, used: bool) -> Any:
    if field.kind in ("numbers", "edges"):
        return _read_lines(field, given, used)
    if not isinstance(given, str | int | float) or len(str(given)) > _LONGEST:
        raise InputError(f"{field.label} must be a short text")
    text = str(given).strip() or field.default
    match field.kind:
        case "choice":
            if text not in dict(field.choices):
                raise InputError(f"{field.label} must be one of {', '.join(value for value, _ in field.choices)}")
            return text
        case "nodes":
            return tuple(split_names(text if "," in text or '"' in text else ",".join(text.split())))
        case _:
            return _read_number(field, text)


def _read_lines(field: Field, given: Any, used: bool) -> tuple[float, ...] | Graph | None:
    """Numbers or a graph of one's own; none where the field is not in use."""
    empty = () if field.kind == "numbers" else None
    if not used:
        return empty
    if not isinstance(given, str) or len(given) > MOST_LETTERS:
        raise InputError(f"{field.label} must be a text of at most {MOST_LETTERS:,} characters")
    if field.kind == "numbers":
        if not given.strip():
            raise InputError("paste your numbers here, one a line; no link has them")
        return tuple(number for row in parse_rows(given.splitlines(), field.label, ragged=True) for number in row)
    graph = parse_edges(given, field.label)
    graph.require_connected()
    return graph


def _read_number(field: Field, text: str) -> float | int | None:
    if not text:
        return None
    whole = field.kind == "whole"
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        empty = "" if field.default else "; empty: chosen"
        raise InputError(f"{field.label} must be a {'whole number' if whole else 'number'}{empty}")
    return number


def _ranges(read: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What no other part of midst looks at."""
    n, numbers, graph = read.get("n"), read.get("numbers"), read.get("edges")
    if graph is not None and graph.edges > MOST_EDGES:
        yield "edges", f"there may be {MOST_EDGES:,} edges; these are {graph.edges:,}"
    if graph is not None and numbers and graph.n != len(numbers):
        count = f"{len(numbers):,} number{'' if len(numbers) == 1 else 's'}"
        yield "numbers", f"{count} for the {graph.n:,} nodes of your graph; give one a node, in their order"
    elif n is not None and not 2 <= n <= MOST_NODES:
        yield "numbers" if numbers else "n" if graph is None else "edges", f"nodes must be from 2 to {MOST_NODES:,}"
    elif n is not None and read.get("stop") == "iterations":
        most = most_iterations(n)
        if not 1 <= read.get("iterations", 1) <= most:
            yield "iterations", f"iterations must be from 1 to {most:,} for {n:,} nodes"
    for name in ("seed", "draw"):
        if (read.get(name) or 0) < 0 or (read.get(name) or 0) >= 2**63:
            yield name, f"{_BY_NAME[name].label} must be a whole number of at least 0"
    if (read.get("least") is None) != (read.get("most") is None):
        yield "most", "give both bounds, or none"
    if read.get("adversary") in ("passive", "both") and read.get("corrupt") == ():
        yield "corrupt", "name the corrupt nodes, such as 3, 7"
