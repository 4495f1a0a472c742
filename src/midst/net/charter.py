"""The charter: what all participants of one run have agreed on, as a TOML file.

Rules:
- Everything in a charter is public among the participants; no private value is ever in it.
- A charter that exists is right: reading one makes every check that the run would make, and an error is one line that
  names the file and the key.
- Two charters with the same digest describe the same run. The digest is over what was settled, not over how it was
  written: spaces, comments, the order of keys and of edges, and defaults written out or left out, change nothing.
- A session names one run. What hides the values is drawn once a session, so a second run needs another session.
- A key that only the other method uses is refused, so that nobody believes it to be at work.
- Noise is agreed on as a promise and a variance. Whether the one keeps the other is not for the network to say: whoever
  takes part works it out before (`dp/joint.py`). What follows from the variance alone is checked here.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from midst.disclosure import Disclosure
from midst.errors import InputError, closest
from midst.graphs import Graph, from_edges
from midst.methods import MethodName, Search, noisy_rules, require_participants, search_rules
from midst.net.identity.certificates import check_name, fingerprint, read_certificate
from midst.net.identity.keys import Identity
from midst.objectives import ENDS, LEVELS, Definition, Mean, Quantile
from midst.protocol.keys import Keys, first_bracket, make_keys
from midst.protocol.noisy_search import NoisyRules
from midst.protocol.search import Rules, SearchState, Spacing
from midst.protocol.statements import Agreement, longest_statement

if TYPE_CHECKING:  # a node loads of these what its charter asks for: the iteration, arrays, statistics or noise
    from midst.problems import Problem
    from midst.protocol.noise import JointNoise
    from midst.protocol.vectors.layout import Layout
    from midst.protocol.vectors.search import Goal
    from midst.statistics import Plan, Statistic
    from midst.system import Parameters

FORMAT = 2

_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*", re.IGNORECASE)
_FRACTION = re.compile(r"[0-9]{1,20}(/[1-9][0-9]{0,9})?")
_MOST_NUMBERS = 10_000_000  # directed edges times coordinates
_MOST_SEARCHERS = 8_000  # participants of a search: who lacks what must fit into a control frame
_MOST_CLIENTS = 7_000  # of a session about arrays: and who lacks which vectors, besides
_MOST_TOLD = 4_000_000  # numbers in all contributions of one step: a record of the journal holds them
MOST_VERIFIED = 50  # participants, where the charter does not say: checking everybody takes each of them as long
_MOST_ROUNDS = 10**9
_MOST_AGGREGATES = 60_000
_MANY = 10**6  # values a participant, where the number does not matter, or the most numbers are wanted
_LONGEST = 30 * 86_400.0  # seconds
_OF_CONSENSUS = {"c": None, "theta": 0.5, "mu": None, "sigma": None, "scale": None, "tolerance": 1e-6}
_OF_SEARCH = {"pooled": False, "statistics": (), "columns": (), "noise": None, "arrays": (), "aggregates": 1}
# besides arity, spacing and resolution, which are of the exact finish too
_NO_ENDS = "bounds must be two finite numbers, the lower first"
_WIDEST = 1000  # in scales: how far from 0 a value may lie where there are no bounds


class ParticipantEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One party.

    Attributes:
        name: as in its certificate.
        fingerprint: of its certificate.
        address: "host:port" where others reach it; None for one that only dials.
        weight: how much its value counts; 0 for one that only relays.
    """

    name: str
    fingerprint: str
    address: str | None = None
    weight: int = 1

    def __post_init__(self) -> None:
        check_name(self.name, "name")
        if _FINGERPRINT.fullmatch(self.fingerprint) is None:
            raise InputError(f"fingerprint of {self.name} must be sha256: and 64 digits 0-9 a-f; see midst keys show")
        if self.address is not None:
            split_address(self.address)
        if not 0 <= self.weight <= 2**50:
            raise InputError(f"weight of {self.name} must be a whole number from 0 to 2^50")


class Deadlines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a node waits, in seconds, before it gives up and says for whom it waited.

    Attributes:
        start: until every neighbour has been heard.
        wait: without progress of a neighbour.
        total: for the whole run.
        linger: after its own end, for neighbours that are not done.
    """

    start: float = 300.0
    wait: float = 60.0
    total: float = 3600.0
    linger: float = 10.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) <= _LONGEST:
                raise InputError(f"{name} must be a positive number of seconds, at most {_LONGEST:.0f} (30 days)")


class ColumnEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One column of the participants' data.

    Attributes:
        name: as in everybody's files.
        bounds: public: where its values lie; the charter's, if not given.
    """

    name: str
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.name.isprintable() or not 0 < len(self.name) <= 64 or set(self.name) & set('"\\'):
            raise InputError("the name of a column must have from 1 to 64 characters, without quotes or backslashes")


class ArrayEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One array of the participants' updates.

    Attributes:
        name: as in everybody's updates.
        shape: its lengths.
        dtype: the type of its numbers, as NumPy calls it: "float32", "bfloat16" …
    """

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"

    def __post_init__(self) -> None:
        from midst.protocol.vectors.formats import find_dtype

        if not self.name.isprintable() or len(self.name) > 256 or set(self.name) & set('"\\'):
            raise InputError("the name of an array must have at most 256 characters, without quotes or backslashes")
        if any(length < 0 for length in self.shape):
            raise InputError(f"shape of {self.name} must be lengths from 0 on")
        _under(f"dtype of {self.name}", lambda: find_dtype(self.dtype))


class NoiseEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noise on every total of a search, of which nobody knows the whole.

    Attributes:
        epsilon: what it is to keep to: ε of all that is told.
        delta: δ.
        colluders: how many participants may put together what they know of the noise.
        values: how many values of one participant are protected together.
        variance: σ² of the noise that all others add to each number: a fraction, such as "999/4".
    """

    epsilon: float
    delta: float
    colluders: int = 1
    values: int = 1
    variance: str

    def __post_init__(self) -> None:
        _under("noise", lambda: self.promise)
        if _FRACTION.fullmatch(self.variance) is None or str(Fraction(self.variance)) != self.variance:
            raise InputError('noise: variance must be a fraction in lowest terms, such as "999/4"')

    @property
    def promise(self) -> JointNoise:
        """What it is to keep to."""
        from midst.protocol.noise import JointNoise

        return JointNoise(self.epsilon, self.delta, self.colluders, self.values)


class Charter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What all agree on.

    Attributes:
        midst: version of the format.
        method: how the answer is found: "search", "consensus" or "paper"; see `methods.py`.
        session: names this one run.
        participants: in the order that gives each its number.
        edges: pairs of names.
        objective: what is to be found.
        quantile: which, where the objective is one.
        definition: the answer that is meant where there are two; see `Quantile`.
        bounds: public: all values lie between them. A search does without.
        scale: consensus, in place of bounds: about how far values lie from each other.
        resolution: public: values are told apart to this, and the answer is a multiple of it.
        coordinates: how many numbers each value has.
        pooled: whether every participant brings a list of values.
        statistics: search, in place of an objective: what is to be found of everybody's lists together.
        columns: of the lists, where these are rows.
        disclosure: what must hold for statistics to be asked for.
        arrays: search, where values are updates of a model: the arrays of each.
        aggregates: of arrays: how many rounds the session has, each with an update of everybody.
        trim: of arrays: how many values a trimmed mean, or a mean around the median, leaves out.
        arity: search: thresholds a probe.
        spacing: search: where they are placed, "rank", "value" or "key"; or public quantiles of the data.
        verify: whether everybody proves its votes in the search; not given: up to 50 participants, and not with noise.
        noise: search: what everybody adds a share of to every number; see `NoiseEntry`.
        c: consensus: convergence parameter; chosen where not given, like mu and sigma.
        theta: averaging constant.
        mu: z(0) has this mean (with the edge's sign).
        sigma: and this standard deviation.
        tolerance: of the residual certificate, relative to the scale.
        rounds: the most there may be.
        deadlines: see `Deadlines`.
    """

    midst: int = FORMAT
    method: MethodName
    session: str
    participants: tuple[ParticipantEntry, ...]
    edges: tuple[tuple[str, str], ...]
    objective: Literal["median", "maximum", "minimum", "mean", "quantile", "trimmed mean", "mean around median"] = (
        "median"
    )
    quantile: float | None = None
    definition: Definition = "inverted_cdf"
    bounds: tuple[float, float] | None = None
    scale: float | None = None
    resolution: float | None = None
    coordinates: int = 1
    pooled: bool = False
    statistics: tuple[str, ...] = ()
    columns: tuple[ColumnEntry, ...] = ()
    disclosure: Disclosure = msgspec.field(default_factory=Disclosure)
    arrays: tuple[ArrayEntry, ...] = ()
    aggregates: int = 1
    trim: int = 0
    arity: int = 3
    spacing: Spacing | tuple[float, ...] = "rank"
    verify: bool | None = None
    noise: NoiseEntry | None = None
    c: float | None = None
    theta: float = 0.5
    mu: float | None = None
    sigma: float | None = None
    tolerance: float = 1e-6
    rounds: int = 100_000
    deadlines: Deadlines = msgspec.field(default_factory=Deadlines)

    def __post_init__(self) -> None:
        if self.midst != FORMAT:
            raise InputError(f"midst: the charter has format {self.midst}, this midst reads {FORMAT}; use one version")
        check_name(self.session, "session")
        self._check_participants()
        self._check_edges()
        self._check_numbers()
        self._check_method()
        if self.arrays:
            self._check_arrays()
            return
        if self.aggregates != 1:
            raise InputError("aggregates: these are of arrays; leave it out")
        self._check_noise()
        self._check_statistics()
        self._check_objective()

    # Who

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The participants' names, by number."""
        return tuple(one.name for one in self.participants)

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        return tuple(one.weight for one in self.participants)

    @property
    def _counts_alike(self) -> bool:
        return set(self._weights) == {1}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def number(self, name: str) -> int:
        """The number of a participant.

        Raises:
            InputError: there is none of that name.
        """
        if name not in self._numbers:
            near = closest(name, self.names)
            raise InputError(f"{_shown(name)} is no participant; the charter has {few(self.names)}{near}")
        return self._numbers[name]

    @cached_property
    def graph(self) -> Graph:
        """Who talks to whom; connected."""
        pairs = [[self._numbers[name] for name in edge] for edge in self.edges]
        return from_edges(len(self.names), pairs, name=self.session, labels=self.names)

    def neighbours(self, name: str) -> tuple[int, ...]:
        """The numbers of a participant's neighbours, in ascending order."""
        return tuple(self.graph.neighbours(self.number(name)).tolist())

    # What

    @cached_property
    def goal(self) -> Quantile | Mean:
        """What is to be found."""
        if self.objective == "mean":
            return Mean()
        level = LEVELS.get(self.objective, self.quantile)
        assert level is not None, "checked when the charter was made"
        return Quantile(level, self.definition)

    @property
    def is_masked_sum(self) -> bool:
        """Whether the search is for a mean, by one sum of all values."""
        return self.method == "search" and self.objective == "mean" and not self.arrays

    @cached_property
    def wanted(self) -> tuple[Statistic, ...]:
        """The statistics that are to be found; none where there is an objective."""
        if not self.statistics:
            return ()
        from midst.statistics import parse_statistics

        return parse_statistics(self.statistics)

    @property
    def has_lists(self) -> bool:
        """Whether every participant brings a list of values, or of rows."""
        return self.pooled or bool(self.statistics)

    @property
    def width(self) -> int:
        """How many numbers a value, or a row of a list, has."""
        return len(self.columns) or self.coordinates

    @property
    def column_names(self) -> tuple[str, ...]:
        """Of the statistics' columns; one that has no name is called "value"."""
        return tuple(one.name for one in self.columns) or ("value",)

    @cached_property
    def layout(self) -> Layout | None:
        """Of the updates; None where values are numbers."""
        if not self.arrays:
            return None
        from midst.protocol.vectors.layout import ArraySpec, Layout

        specs = tuple(ArraySpec(one.name, one.shape, one.dtype) for one in self.arrays)
        return Layout(specs, self.bounds, self.resolution)

    @cached_property
    def vector_goal(self) -> Goal:
        """What is to be found of every coordinate of the updates."""
        from midst.protocol.vectors.search import Goal

        n = len(self.participants)
        if self.objective in ("mean", "trimmed mean", "mean around median"):
            return Goal(self.objective, n, (n + 1) // 2, self.trim)
        goal = self.goal
        assert isinstance(goal, Quantile)
        return Goal("quantile", n, goal.ranks(n)[0])

    @property
    def longest_vector(self) -> int:
        """Bytes of the longest one that is sent for a chunk; 0 where values are numbers."""
        if self.layout is None:
            return 0
        from midst.protocol.vectors.chunk import longest_vector

        return longest_vector(self.layout, self.vector_goal)

    @property
    def title(self) -> str:
        """What is to be found, in words; where there are two answers, which of them."""
        if self.objective in ("trimmed mean", "mean around median"):
            return self.objective
        if self.statistics:
            of = f" of {', '.join(self.column_names)}" if self.columns else ""
            return ", ".join(self.statistics) + of
        return self.goal.name if self.pooled else self.goal.title(sum(self._weights))

    @cached_property
    def keys(self) -> Keys:
        """What a search makes of values."""
        return make_keys(self.resolution)

    @property
    def column_ranges(self) -> list[tuple[float, float]]:
        """Between which numbers the values of each column must lie."""
        return [each or self.value_range for each in self._own_bounds]

    @property
    def _own_bounds(self) -> list[tuple[float, float] | None]:
        """Those of each column alone; None where it has none of its own."""
        return [one.bounds for one in self.columns] or [None] * self.width

    @property
    def value_range(self) -> tuple[float, float]:
        """Between which numbers a value must lie: the bounds, a thousand scales about 0, or all that a search knows."""
        if self.bounds is not None:
            return self.bounds
        if self.scale is not None:
            return -_WIDEST * self.scale, _WIDEST * self.scale
        return self.keys.ends

    def search_rules(self, list_sizes: Sequence[int], thresholds: tuple[tuple[int, ...], ...] = ()) -> Rules:
        """The rules of the search that finds the answer, where participants have so many values each.

        An iteration gives the thresholds of the first probe, a tuple of keys a coordinate.
        """
        if self.statistics:
            return self.plan(sum(list_sizes)).rules(Search(self.arity, self.spacing), self.keys, self._brackets)
        total = sum(weight * count for weight, count in zip(self._weights, list_sizes, strict=True))
        units = {weight for weight in self._weights if weight > 0}
        unit = units.pop() if len(units) == 1 else None
        method = Search(self.arity, self.spacing)
        return search_rules(method, self.goal, self.keys, self._brackets, total, unit, thresholds)

    def noisy_rules(self, list_sizes: Sequence[int]) -> NoisyRules:
        """The rules of the search with noise, where participants have so many values each.

        Raises:
            InputError: a search with noise cannot find this, or nobody would be left to add any.
        """
        assert self.noise is not None
        variance, count = Fraction(self.noise.variance), len(self.participants)
        agreed = variance, count, self.noise.colluders
        return noisy_rules(self.arity, self.goal, self.keys, self._brackets[0], sum(list_sizes), *agreed)

    @property
    def _brackets(self) -> list[tuple[int, int]]:
        return [first_bracket(self.keys, each or self.bounds) for each in self._own_bounds]

    def plan(self, total: int) -> Plan:
        """What the search has to find for the statistics of so many values."""
        from midst.statistics import Plan

        return Plan(self.wanted, total, self.width)

    def table(self, search: SearchState) -> dict[str, dict[str, float | list[float]]]:
        """The statistics that a search has found, by the names of columns and their own."""
        from midst.statistics import read_statistics

        found = read_statistics(self.plan(search.rules.total), search)
        plain = [{name: np.asarray(value).tolist() for name, value in each.items()} for each in found]
        return dict(zip(self.column_names, plain, strict=True))

    def refusal(self, list_sizes: Sequence[int]) -> str | None:
        """Why nothing is to be asked, where everybody has so many values; None where it is.

        Too much would follow from the statistics, or too little from an answer with so much noise.
        """
        if self.noise is not None:
            from midst.protocol.noise import size_refusal

            rules = self.noisy_rules(list_sizes)
            return size_refusal(self.noise.delta, rules.added, rules.most_numbers, rules.total)
        return next(self.disclosure.refusals(self.wanted, list_sizes), None) if self.statistics else None

    def problem(self, values: ArrayLike | None = None) -> Problem:
        """The problem that is to be solved, of one value or row a participant; all in the middle if not given.

        Raises:
            InputError: the values are not such values, or not within the bounds.
        """
        from midst.problems import Problem

        if values is None:
            middle = 0.0 if self.bounds is None else self.bounds[0] / 2 + self.bounds[1] / 2
            n = len(self.participants)
            values = np.full(n if self.coordinates == 1 else (n, self.coordinates), middle)
        return Problem(
            self.graph,
            values,
            weights=self._weights,
            weight_unit=1.0,
            objective=self.goal,
            scale=self.scale,
            bounds=self.bounds,
            resolution=self.resolution,
        )

    @cached_property
    def parameters(self) -> Parameters:
        """The paper's parameters: those given, and the others as chosen from what is public."""
        from midst.system import settle

        with np.errstate(over="ignore"):  # what overflows is refused as not finite
            certified = self.stop == "certified"
            return settle(self.problem(), c=self.c, theta=self.theta, mu=self.mu, sigma=self.sigma, certified=certified)

    @property
    def stop(self) -> Literal["exact", "certified"]:
        """What ends the run: a search where the answer is one of the values, else the residual certificate."""
        if self.method != "consensus":
            return "exact" if self.method == "search" else "certified"
        goal = self.goal
        return "exact" if isinstance(goal, Quantile) and goal.is_one_value(sum(self._weights)) else "certified"

    @property
    def is_verified(self) -> bool:
        """Whether everybody proves its votes: without, one liar can choose which honest value is published."""
        if self.verify is None:
            plain = self.noise is None and not self.arrays
            return self.stop == "exact" and len(self.participants) <= MOST_VERIFIED and plain
        return self.verify

    def agreement(self, opening: tuple[tuple[int, ...], ...] = ()) -> Agreement:
        """What all agreed on about the search; an iteration gives the thresholds of its first probe."""
        make_rules = partial(self.search_rules, thresholds=opening) if self.noise is None else self.noisy_rules
        return Agreement(self.digest, self._weights, self.has_lists, make_rules, self.is_verified, self.refusal)

    @property
    def longest_statement(self) -> int:
        """Bytes of the longest contribution or dispute; 0 where there is no search."""
        if self.stop != "exact":
            return 0
        if self.layout is not None:
            from midst.protocol.vectors.chunk import longest_note

            return longest_note(self.layout, self.vector_goal)
        sizes = [_MANY if self.statistics else 1] * len(self.participants)
        rules = self.search_rules(sizes) if self.noise is None else self.noisy_rules(sizes)
        return longest_statement(rules, len(self.participants), self.has_lists, self.is_verified)

    # Sameness

    @cached_property
    def digest(self) -> bytes:
        """The hash of what was settled."""
        return hashlib.sha256(b"midst charter\n" + msgspec.json.encode(self._settled, order="sorted")).digest()

    @cached_property
    def field_digests(self) -> dict[str, bytes]:
        """Eight bytes a key, by which two nodes find out in what their charters differ."""
        return {
            key: hashlib.sha256(msgspec.json.encode([key, value], order="sorted")).digest()[:8]
            for key, value in self._settled.items()
        }

    @cached_property
    def _settled(self) -> dict[str, Any]:
        """Every key with its value as it will be used: chosen where it was not given, and in one spelling."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        plain["verify"] = self.is_verified
        plain["edges"] = sorted(sorted(self._numbers[name] for name in edge) for edge in self.edges)
        if self.method != "search":
            for name in ("c", "mu", "sigma"):
                plain[name] = float(getattr(self.parameters, name).flat[0])
        return {key: _spelled(value) for key, value in plain.items()}

    def to_toml(self) -> str:
        """The charter as a TOML file; what is left to be chosen is left out."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        tables = [("[deadlines]", plain.pop("deadlines"))]
        tables += [("[[columns]]", one) for one in plain.pop("columns")]
        tables += [("[[arrays]]", one) for one in plain.pop("arrays")]
        if not self.arrays:
            del plain["aggregates"], plain["trim"]
        disclosure, noise = plain.pop("disclosure"), plain.pop("noise")
        if noise is not None:
            tables.append(("[noise]", noise))
        if self.statistics:
            tables.append(("[disclosure]", disclosure))
        else:
            plain.pop("statistics")
        tables += [("[[participants]]", one) for one in plain.pop("participants")]
        edges = "".join(f"  {_toml(edge)},\n" for edge in plain.pop("edges"))
        blocks = [f"{_lines(plain)}edges = [\n{edges}]\n", *(f"{head}\n{_lines(table)}" for head, table in tables)]
        return "\n".join(blocks)

    # Checks, in the order of the keys

    def _check_participants(self) -> None:
        if len(self.participants) < 2:
            raise InputError("participants: at least two are needed; one value alone has nobody to hide it from")
        for key in ("name", "fingerprint", "address"):
            first: dict[object, str] = {}
            for one in self.participants:
                entry = getattr(one, key)
                if entry is None:
                    continue
                entry = split_address(entry) if key == "address" else entry
                if entry in first:
                    both = f"{first[entry]} and {one.name}"
                    raise InputError(f"participants: {both} have the same {key}; they must differ")
                first[entry] = one.name
        if self.method == "search":
            _under("participants", lambda: require_participants(len(self.participants)))
        if not any(self._weights):
            raise InputError("participants: all weights are zero; at least one must count")

    def _check_edges(self) -> None:
        seen: set[frozenset[str]] = set()
        for a, b in self.edges:
            edge = f"edges: {_shown(a)} - {_shown(b)}"
            for end in (a, b):
                if end not in self._numbers:
                    near = closest(end, self.names)
                    raise InputError(f"{edge}: {_shown(end)} is no participant; there are {few(self.names)}{near}")
            if a == b:
                raise InputError(f"{edge} joins a participant to itself; leave it out")
            if frozenset((a, b)) in seen:
                raise InputError(f"{edge} is given twice; give each edge once, in either direction")
            seen.add(frozenset((a, b)))
            if all(self.participants[self._numbers[end]].address is None for end in (a, b)):
                raise InputError(f"{edge}: neither has an address, so neither can dial the other; give one of them")
        _under("edges", self.graph.require_connected)

    def _check_numbers(self) -> None:
        given = [self.bounds is not None, self.scale is not None]
        some = self.method == "search" or any(given)
        fit = 1 <= self.coordinates <= max(_MOST_NUMBERS // (2 * len(self.edges)), 1)
        _require(
            (not all(given), "bounds, scale: give one of the two"),
            (some, "bounds, scale: give exactly one of the two; everybody must know how large values are"),
            (self.bounds is None or _are_ends(self.bounds), _NO_ENDS),
            (fit, f"coordinates must be at least 1, and twice the edges times them at most {_MOST_NUMBERS:,}"),
            (0 < self.tolerance < inf, "tolerance must be a positive number"),
            (1 <= self.rounds <= _MOST_ROUNDS, f"rounds must be from 1 to {_MOST_ROUNDS:,}"),
        )
        _under("resolution", lambda: first_bracket(self.keys, self.bounds))

    def _check_method(self) -> None:
        others = _OF_CONSENSUS if self.method == "search" else _OF_SEARCH
        for key, default in others.items():
            if getattr(self, key) != default:
                other = "consensus" if self.method == "search" else "search"
                raise InputError(f'{key} is for method = "{other}"; leave it out, or choose that method')
        if self.method == "paper":
            as_written = (self.objective, self.definition, self.theta) == ("median", "any", 0.5)
            words = 'method: "paper" is Algorithm 1 as written: objective "median", definition "any", theta 0.5'
            _require((as_written and self._counts_alike, words))
        if self.pooled and self.coordinates > 1:
            raise InputError("pooled: lists of values have one coordinate; leave one of the two out")
        _under("arity, spacing", lambda: Search(self.arity, self.spacing))
        for key in ("resolution", "verify"):
            if getattr(self, key) and self.stop != "exact":
                raise InputError(f"{key} is for a search, and this run ends by residuals; leave it out")

    def _check_arrays(self) -> None:
        """Updates of a model: one statistic of every coordinate, found by bits."""
        _require(
            (_differ(self.arrays), "arrays: each needs its own name"),
            (not self.verify, "verify: votes about vectors cannot be proved; leave it out"),
            (self.noise is None, "noise: there is none about vectors; leave it out"),
            (not self.statistics, "statistics: of vectors one is found; give an objective in their place"),
            (self.coordinates == 1 and not self.pooled, "coordinates, pooled: arrays say how many numbers there are"),
            (self._counts_alike, "weight: all updates count alike; leave weights out"),
            (self.definition in ENDS, "definition: of vectors, the low or the high median is found"),
            ((self.objective == "quantile") == (self.quantile is not None), "quantile: give it with that objective"),
            (1 <= self.aggregates <= _MOST_AGGREGATES, f"aggregates must be from 1 to {_MOST_AGGREGATES:,}"),
            (self.trim == 0 or "mean " in f"{self.objective} ", "trim is for a trimmed mean, or one around the median"),
            (len(self.participants) <= _MOST_CLIENTS, f"participants: at most {_MOST_CLIENTS:,}"),
        )
        layout = self.layout
        assert layout is not None
        _under("objective, trim", lambda: layout.check_goal(self.vector_goal))

    def _check_statistics(self) -> None:
        _require((_differ(self.columns), "columns: each needs its own name"))
        for one in self.columns:
            if one.bounds is not None:
                key = f"columns: {one.name}"
                _require((_are_ends(one.bounds), f"{key}: {_NO_ENDS}"))
                _under(key, partial(first_bracket, self.keys, one.bounds))
        if not self.statistics:
            _require((not self.columns, "columns are for statistics; leave them out, or say which statistics"))
            return
        _under("statistics", lambda: self.wanted)
        usual = (self.objective, self.quantile, self.definition, self.pooled) == ("median", None, ENDS[0], False)
        summed = [each.name for each in self.wanted if each.needs_sums]
        bounded = None not in (each or self.bounds for each in self._own_bounds)
        _require(
            (usual, "statistics: leave out objective, quantile, definition and pooled; list what is to be found"),
            (self.coordinates == 1, "coordinates: statistics are of columns; name them, in place of this"),
            (self._counts_alike, "weight: statistics are of values that count alike; leave weights out"),
            (not summed or (self.resolution is not None and bounded), _need_both("".join(summed[:1]))),
        )
        refused = self.refusal([_MANY] * len(self.participants))  # what no number of values would change
        _require((refused is None, f"statistics, disclosure: {refused}"))

    def _check_objective(self) -> None:
        of_arrays = self.objective in ("trimmed mean", "mean around median") or self.trim
        named = (self.objective == "quantile") == (self.quantile is not None)
        usual = self.definition == ENDS[0] or self.objective not in ("mean", "maximum", "minimum")
        _require(
            (not of_arrays, "objective, trim: these are of arrays; of numbers, give statistics, such as trimmed:0.1"),
            (named, 'quantile: give it with objective = "quantile", and only then'),
            (usual, f"definition chooses between two answers; there is only one {self.objective}"),
        )
        _under("quantile", lambda: self.goal)
        rounded = self.resolution is not None
        sums = not self.is_masked_sum or (rounded and self.bounds is not None)
        halves = self.definition != "averaged_inverted_cdf" or (rounded and self.method == "search")
        _require(
            (sums, _need_both("a mean by search")),
            (halves, 'definition: the midpoint of two values needs method = "search" and a public resolution'),
        )
        if self.stop == "exact":
            self._check_search()
        if self.method == "search":
            return
        from midst.system import assemble

        problem = self.problem()
        parameters = self.parameters
        with np.errstate(over="ignore"):
            far = np.abs(parameters.mu) + 10 * parameters.sigma  # no z(0) will ever be farther out
        start = np.broadcast_to(far, (len(self.graph.source), *far.shape))
        _under("c, mu, sigma", lambda: assemble(problem, parameters, start))

    def _check_noise(self) -> None:
        if self.noise is None:
            return
        bounded = self.bounds is not None and self.resolution is not None
        _require(
            (not self.verify, "verify: a vote with noise on it cannot be proved; leave it out"),
            (not self.statistics, "statistics: with noise one quantile is found; give an objective in their place"),
            (self.coordinates == 1, "coordinates: with noise values are single numbers; leave it out"),
            (self._counts_alike, "weight: with noise all values count alike; leave weights out"),
            (self.spacing in ("rank", "key"), "spacing: with noise thresholds are placed by key; leave it out"),
            (bounded, _need_both("noise")),
        )

    def _check_size(self) -> None:
        """Refuses noise that nobody could add, or too much for the values, where it is known how many there are."""
        self.noisy_rules([1] * len(self.participants))
        if not self.pooled and (refused := self.refusal([1] * len(self.participants))) is not None:
            raise InputError(refused)

    def _check_search(self) -> None:
        count = len(self.participants)
        if count > _MOST_SEARCHERS:
            raise InputError(f"participants: a search has at most {_MOST_SEARCHERS:,}")
        if not self.statistics:
            _under("objective, definition", lambda: self.search_rules([1] * count))
        if self.noise is not None:
            _under("noise", self._check_size)
        if count * self.longest_statement > 8 * _MOST_TOLD:
            key, most = "verify, coordinates, arity" if self.is_verified else "coordinates, arity", 8 * _MOST_TOLD
            raise InputError(f"{key}: all participants together would tell more than {most:,} bytes in a step")


def _require(*needs: tuple[bool, str]) -> None:
    """Refuse, in the words of the first need that does not hold."""
    for holds, words in needs:
        if not holds:
            raise InputError(words)


def _differ(named: Sequence[ColumnEntry | ArrayEntry]) -> bool:
    return len({one.name for one in named}) == len(named)


def _need_both(what: str) -> str:
    return f"bounds, resolution: {what} needs both, such as bounds = [0, 100], resolution = 0.01"


def _are_ends(bounds: tuple[float, float]) -> bool:
    return all(map(isfinite, bounds)) and bounds[0] < bounds[1]


def make_charter(plain: Mapping[str, Any], where: str) -> Charter:
    """The charter of plain values, such as TOML holds.

    Raises:
        InputError: it is not a charter that can be run; names the file and the key.
    """
    if plain.get("method") == "paper":
        plain = {"definition": "any", **plain}
    try:
        return msgspec.convert(plain, Charter)
    except (msgspec.ValidationError, OverflowError) as error:
        raise InputError(f"{where}: {_readable(str(error))}") from None


def differing(own: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """The keys in which another charter differs, from the `field_digests` of both; names nothing unknown."""
    found = [key for key, digest in own.items() if other.get(key) != digest]
    return found + (["keys unknown to this version of midst"] if other.keys() - own.keys() else [])


def check_identity(charter: Charter, name: str, identity: Identity) -> int:
    """The number of a participant, if the identity is the one that the charter knows it by.

    Raises:
        InputError: there is no such participant, or the key or its certificate is another's.
    """
    number = charter.number(name)
    if identity.name != name:
        raise InputError(f"{identity.key_file} is the key of {identity.name}, not of {name}; give the right --key")
    expected = charter.participants[number].fingerprint
    if identity.fingerprint != expected:
        found = f"{identity.certificate_file} is {identity.fingerprint}, but the charter has {expected} for {name}"
        raise InputError(f"{found}; use that certificate, or agree on a new charter")
    return number


def strangers(charter: Charter, name: str, identity: Identity) -> tuple[str, ...]:
    """The neighbours with whom TLS would not talk, since they are not trusted."""
    prints = {fingerprint(read_certificate(path)) for path in identity.trusted}
    neighbours = (charter.participants[j] for j in charter.neighbours(name))
    return tuple(one.name for one in neighbours if one.fingerprint not in prints)


def split_address(address: str, *, to_bind: bool = False) -> tuple[str, int]:
    """Host and port of "host:port"; an IPv6 address stands in brackets, "[::1]:7001".

    To bind, 0.0.0.0 and [::] will do: all addresses of this host.

    Raises:
        InputError: it is not an address that others can dial, or that can be bound.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 2**16):
        raise InputError("address must be host:port, such as alice.example.org:7001, with a port from 1 to 65535")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        number = ipaddress.ip_address(bare)
    except ValueError:
        if _HOST.fullmatch(host) is None or host.rpartition(".")[2].isdecimal():
            raise InputError("address: the host must be a name or an IP address (IPv6 in brackets)") from None
        return host.lower(), int(port)
    if (number.version == 6) != (bare != host):
        raise InputError("address: write an IPv6 address in brackets, as in [::1]:7001, and no other")
    if number.is_multicast or (number.is_unspecified and not to_bind):
        raise InputError(f"address: nobody can dial {bare}; give the address at which others reach this host")
    return str(number), int(port)


def _under(key: str, check: Callable[[], object]) -> None:
    """Makes a check, and says which key it is about if it fails."""
    try:
        check()
    except InputError as error:
        raise InputError(f"{key}: {error}") from None


def _shown(name: str) -> str:
    """A name as it may appear in a message."""
    return name if len(name) <= 64 and name.isascii() and name.isprintable() and name else ascii(name[:64])


def few(names: Iterable[str]) -> str:
    """Names in words, the first eight of many."""
    listed = list(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")


def _readable(message: str) -> str:
    """What msgspec says as "what - at `$.where`", as "where: what", with the key or the word that was meant."""
    what, _, path = message.replace("`", "").rpartition(" - at ")
    what, path = (what, path) if what else (path, "$")
    key = path.removeprefix("$").removeprefix(".")
    unknown = re.search("unknown field (.+)|enum value '(.+)'", what)
    near = closest(unknown[1] or unknown[2], _known_at(key)) if unknown else ""
    return f"{key}: {what}{near}" if key else what + near


def _known_at(key: str) -> list[str]:
    """The keys, or the words, that may stand at a place in a charter."""
    found: set[str] = set()
    kinds = [msgspec.inspect.type_info(Charter)]
    for step in filter(None, re.sub(r"\[[^]]*\]", "", key).split(".")):
        inside = [kind for each in kinds for kind in _parts(each)]
        fields = [field for kind in inside if isinstance(kind, msgspec.inspect.StructType) for field in kind.fields]
        kinds = [field.type for field in fields if field.encode_name == step]
    for kind in (part for each in kinds for part in _parts(each)):
        if isinstance(kind, msgspec.inspect.StructType):
            found.update(field.encode_name for field in kind.fields)
        elif isinstance(kind, msgspec.inspect.LiteralType):
            found.update(map(str, kind.values))
    return sorted(found)


def _parts(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """A type, or what it is a choice or a list of."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return [part for each in kind.types for part in _parts(each)]
    return _parts(kind.item_type) if isinstance(kind, msgspec.inspect.VarTupleType) else [kind]


def _spelled(value: Any) -> Any:
    """Numbers that are equal, spelled the same: 1 and 1.0, or 0.0 and −0.0. None here is too large for a float."""
    if isinstance(value, int | float):
        return float(value + 0.0).hex()
    if isinstance(value, dict):
        return {key: _spelled(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(entry) for entry in value]
    return value


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items() if value is not None)


def _toml(value: Any) -> str:
    """A value in TOML; texts in a charter have been checked to need no escapes."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return repr(value)
