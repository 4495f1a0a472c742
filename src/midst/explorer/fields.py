"""What can be set, and what is refused.

Rules:
- `FIELDS` is the only list: the page draws its form from it, and `parse` reads what comes back by it.
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
    kind: FieldKind = "number"
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hint: str = ""
    help: str = ""


_SIMULATED = ("source", ("simulated",))
_ITERATES = ("method", ("consensus", "paper"))
_BY_CONSENSUS = ("method", ("consensus",))
_SEARCHES = ("method", ("search",))
_DRAWN = ("data", ("drawn",))


def _field(name: str, label: str, group: str, *when: tuple[str, tuple[str, ...]], **more: Any) -> Field:
    return Field(name, label, group, when=(_SIMULATED, *when), **more)


def _words(*pairs: str) -> tuple[tuple[str, str], ...]:
    return tuple((value, words) for value, _, words in (pair.partition(" ") for pair in pairs))


_KINDS = _words(
    "rgg random geometric",
    "ring ring",
    "complete complete",
    "path path",
    "star star",
    "tree tree",
    "grid grid",
    "er Erdős–Rényi",
    "ws small world",
    "ba scale-free",
    "regular regular",
)
_GRAPHS = (*_KINDS, ("own", "my own"))
_GENERATED = ("graph", tuple(kind for kind, _ in _KINDS))
_OBJECTIVES = _words("median the median", "quantile a quantile", "maximum the maximum", "minimum the minimum")
_OBJECTIVES += _words("mean the mean")
_PRIORS = _words("normal normal", "uniform uniform", "laplace Laplace")
_WHO = _words("eavesdropper an eavesdropper", "passive corrupt nodes", "both both of them")
_METHODS = _words("search search", "consensus consensus", "paper the paper, as written")
_STOPS = _words("exact exact, by a search", "certified certified", "iterations after so many")
_NOISE = _words("none none", "offset an offset", "gaussian Gaussian", "laplace Laplace")
_EDGES = "Two names a line; one for a node without edges."
_NUMBERS = "One a node, in the order of the nodes. They stay on this machine, and are in no link."
_PRIOR = "What numbers are drawn from; of your own, what an adversary believes before it listens. Empty: 0 and 1, or "
_PRIOR += "what is public about your own."

FIELDS: tuple[Field, ...] = (
    Field("source", "run", "network", "choice", "simulated", _words("simulated simulated", "file from the file")),
    Field("coordinate", "coordinate", "network", "whole", "0", when=(("source", ("file",)),)),
    _field("graph", "graph", "network", kind="choice", default="rgg", choices=_GRAPHS),
    _field("edges", "edges", "network", ("graph", ("own",)), kind="edges", hint="alice bob\nbob carol", help=_EDGES),
    _field("n", "nodes", "network", _GENERATED, _DRAWN, kind="whole", default="15", help=f"At most {MOST_NODES:,}."),
    _field("radius", "radius", "network", ("graph", ("rgg",)), hint="auto"),
    _field("p", "probability p", "network", ("graph", ("er", "ws")), hint="auto"),
    _field("k", "neighbours k", "network", ("graph", ("ws", "regular")), kind="whole", hint="4"),
    _field("m", "edges m", "network", ("graph", ("ba",)), kind="whole", hint="2"),
    _field("seed", "seed", "network", kind="whole", default="7", help="The same seed draws the same run."),
    _field("draw", "paper's run", "network", kind="whole", hint="none", help="Its k-th run under this seed."),
    _field("data", "numbers", "data", kind="choice", default="drawn", choices=_words("drawn drawn", "own my own")),
    _field("numbers", "my numbers", "data", ("data", ("own",)), kind="numbers", hint="3.1\n4.7\n2.5", help=_NUMBERS),
    _field("prior", "shape", "data", kind="choice", default="normal", choices=_PRIORS, help=_PRIOR),
    _field("prior_a", "mean | low", "data", hint="auto", help=_PRIOR),
    _field("prior_b", "spread | high", "data", hint="auto", help=_PRIOR),
    _field("least", "bounds: low", "data", hint="none", help="Public: where all values lie."),
    _field("most", "high", "data", hint="none"),
    _field("objective", "find", "data", kind="choice", default="median", choices=_OBJECTIVES),
    _field("q", "quantile", "data", ("objective", ("quantile",)), default="0.9"),
    _field("method", "by", "method", kind="choice", default="search", choices=_METHODS),
    _field("arity", "thresholds", "method", _SEARCHES, kind="whole", default="3", help="Of a probe, from 1 to 7."),
    _field("resolution", "resolution", "method", _SEARCHES, hint="none", help="Public: values are rounded to it."),
    _field("c", "c", "iteration", _ITERATES, hint="auto", help="Larger: fewer are exposed, often in more time."),
    _field("theta", "θ", "iteration", _BY_CONSENSUS, default="0.5", help="Averaging constant, in (0, 1)."),
    _field("mu", "μ", "iteration", _ITERATES, hint="auto", help="Mean of z(0): far from 0 starts far from the median."),
    _field("sigma", "σ", "iteration", _ITERATES, hint="0.1", help="Standard deviation of z(0)."),
    _field("stop", "stop when", "iteration", _BY_CONSENSUS, kind="choice", default="exact", choices=_STOPS),
    _field(
        "iterations", "iterations", "iteration", _BY_CONSENSUS, ("stop", ("iterations",)), kind="whole", default="200"
    ),
    _field("tolerance", "tolerance", "iteration", _BY_CONSENSUS, ("stop", ("certified",)), default="1e-6"),
    Field("adversary", "adversary", "adversary", "choice", "eavesdropper", _WHO),
    Field("corrupt", "corrupt nodes", "adversary", "nodes", when=(("adversary", ("passive", "both")),), hint="3, 7"),
    Field("init", "z(0) travels", "adversary", "choice", "clear", _words("clear in the clear", "sealed sealed")),
    Field("believes", "believes", "adversary", "choice", "normal", _PRIORS, when=(("source", ("file",)),)),
    Field("believes_a", "mean | low", "adversary", default="0", when=(("source", ("file",)),)),
    Field("believes_b", "spread | high", "adversary", default="1", when=(("source", ("file",)),)),
    _field("dp", "noise on the values", "defence", kind="choice", default="none", choices=_NOISE),
    _field("offset", "std of the offset", "defence", ("dp", ("offset",)), hint="auto"),
    _field("epsilon", "ε", "defence", ("dp", ("gaussian", "laplace")), default="1"),
    _field("delta", "δ", "defence", ("dp", ("gaussian",)), default="1e-5"),
    _field("low", "clipped from", "defence", ("dp", ("gaussian", "laplace")), hint="bounds"),
    _field("high", "to", "defence", ("dp", ("gaussian", "laplace")), hint="bounds"),
)
_BY_NAME = {field.name: field for field in FIELDS}


@dataclass(frozen=True)
class Settings:
    """What to run and to look at; a field that is not in use has its default.

    The attributes are those of `FIELDS`; a number that is chosen, or left out, is None. `n` is that of one's own
    numbers or graph, where they are given.
    """

    source: str
    coordinate: int
    graph: str
    edges: Graph | None
    n: int
    radius: float | None
    p: float | None
    k: int | None
    m: int | None
    seed: int
    draw: int | None
    data: str
    numbers: tuple[float, ...] = attribute(repr=False)
    prior: str
    prior_a: float | None
    prior_b: float | None
    least: float | None
    most: float | None
    objective: str
    q: float
    method: str
    arity: int
    resolution: float | None
    c: float | None
    theta: float
    mu: float | None
    sigma: float | None
    stop: str
    iterations: int
    tolerance: float
    adversary: str
    corrupt: tuple[str, ...]
    init: str
    believes: str
    believes_a: float
    believes_b: float
    dp: str
    offset: float | None
    epsilon: float
    delta: float
    low: float | None
    high: float | None

    @property
    def limit(self) -> int:
        """How many iterations fit."""
        return most_iterations(self.n)


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
        used = all(_word(given, name) in values for name, values in field.when)
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


def _word(given: Mapping[str, Any], name: str) -> str:
    return str(given.get(name) or _BY_NAME[name].default)


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
            return _read_nodes(text)
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


def _read_nodes(text: str) -> tuple[str, ...]:
    return tuple(split_names(text if "," in text or '"' in text else ",".join(text.split())))


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
