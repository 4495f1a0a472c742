"""What an adversary has received, message by message, and the view that this makes.

An audit of a simulated run reads a trace, which knows more than any adversary does. This is the other way to the same
view: from messages alone, as the reference engine, the fault simulator or a real node's log has them. The tests hold
one against the other, so that nothing is sent that the audit does not count.

| message      | sent to                      | what it says                         | counted as                    |
|--------------|------------------------------|--------------------------------------|-------------------------------|
| z(0)         | one neighbour, sealed or not | z_{i|j}(0)                           | `View.sums`, `Shifted`        |
| x            | every neighbour              | x_i(t)                               | `View.messages`, observations |
| maxima       | every neighbour, and told on | the largest of some x, −x, residuals | follow from x, as tests check |
| announcement | everybody                    | a session key, how many values       | public: `Published.owner`     |
| contribution | everybody                    | numbers behind masks; commitments    | their sums: `Published.cells` |
|              |                              | and proofs, which hide their numbers |                               |
| dispute      | everybody                    | commitments to masks, which hide them| nothing                       |
| final        | everybody                    | a signature on totals and answer     | `Published.answer`            |

Rules:
- Whatever no line covers is refused, and so is a second message of one sender for one place.
- A coalition hears what is sent to and by its members. An eavesdropper hears all, z(0) only where it is in the clear.
- Nothing here looks at a value, but at those that the coalition has brought itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from midst.errors import InputError
from midst.objectives import Mean
from midst.privacy.adversaries import Adversary
from midst.privacy.observations import Branches, Heard, Observation, Shifted, Unseen, shifted_subgradients
from midst.privacy.published import ELSEWHERE, read_published
from midst.privacy.trace_reader import TraceReader
from midst.privacy.tracking import track
from midst.privacy.views import SHORTEST, View, view_of_search
from midst.problems import Problem
from midst.protocol.commitments import ORDER, SCALAR_BYTES, decode_scalars
from midst.protocol.masks import add_up, split
from midst.protocol.message import Message
from midst.protocol.search import Rules, SearchState, SearchStep, widths
from midst.protocol.statements import Statement
from midst.system import Parameters
from midst.trace import Trace, places_of, probes_of
from midst.types import Array, Bools


class Messages:
    """What one adversary has received of a run on one number a node."""

    def __init__(self, problem: Problem, parameters: Parameters | None, adversary: Adversary) -> None:
        """Nothing heard yet.

        Args:
            problem: what is public of it: graph, objective, weights, keys. No value is read.
            parameters: of the iteration; None where there is none.
            adversary: who listens.
        """
        self._corrupt = adversary.check(problem.graph)
        self._problem, self._parameters, self._adversary = problem, parameters, adversary
        graph = problem.graph
        self._edge = {ends: k for k, ends in enumerate(zip(graph.source.tolist(), graph.target.tolist(), strict=True))}
        self._numbers: dict[tuple[int, ...], float] = {}
        self._statements: dict[tuple[int, int], Statement] = {}

    def hear(self, i: int, j: int, said: Message | Statement | tuple[int, Array]) -> None:
        """Take note of what i has sent to j, if the adversary hears it: a number, a statement, or a round's maxima.

        Raises:
            InputError: nothing accounts for such a message, or it contradicts another one.
        """
        party = i in self._corrupt or j in self._corrupt
        heard = party or self._adversary.eavesdrops
        match said:
            case Message(round=round, number=number) if np.ndim(number) == 0 and (i, j) in self._edge:
                sealed = round == 0 and self._adversary.init == "sealed"
                if party or (heard and not sealed):
                    self._note(self._numbers, (i, j) if round == 0 else (i, j, round - 1), float(number))
            case Statement() if said.kind in (b"A", b"C", b"D", b"F"):
                if heard:
                    self._note(self._statements, (said.step, said.signer), said)
            case (int(), np.ndarray()):
                pass  # maxima, which follow from every x
            case _:
                raise InputError(f"no view accounts for a {type(said).__name__} from node {i} to node {j}")

    def view(self, rules: Rules | None = None, own: Mapping[int, float] | None = None) -> View:
        """What the adversary sees; compare `views.view`.

        Args:
            rules: of the search, where there was one; where it begins is public.
            own: the value of every corrupt node.
        """
        heard = self._as_heard(rules, own or {})
        about = read_published(heard, self._adversary)
        if not heard.iterations:
            return view_of_search(heard, self._adversary, about)
        reader = TraceReader(heard, 0)
        assert reader.z0 is not None
        known = ~np.isnan(reader.z0)
        sums = reader.sums(known)
        bare = View(self._adversary, reader.public, (), heard.x, sums)
        bare = replace(bare, observations=_look(bare, known))
        return replace(bare, observations=track(bare), published=about)

    def _note(self, known: dict[Any, Any], place: tuple[int, ...], said: Any) -> None:
        if known.setdefault(place, said) != said:
            raise InputError(f"two different messages for one place: {place}")

    def _as_heard(self, rules: Rules | None, own: Mapping[int, float]) -> Trace:
        """The record of the run as far as it was heard: NaN elsewhere."""
        problem, graph = self._problem, self._problem.graph
        times = [key[2] + 1 for key in self._numbers if len(key) == 3]
        x = np.full((max(times, default=0), graph.n), np.nan)
        z0 = self._public_z0()
        unit = 1.0 if self._parameters is None else float(self._parameters.unit)
        for key, number in self._numbers.items():
            if len(key) == 2:
                z0[self._edge[key[0], key[1]]] = number * (unit if isinstance(problem.objective, Mean) else 1.0)
                continue
            i, _, t = key
            if not (math.isnan(x[t, i]) or x[t, i] == number * unit):
                raise InputError(f"node {i} sent two different x({t})")
            x[t, i] = number * unit
        trace = Trace(
            graph=graph,
            objective=problem.objective,
            whole_weights=problem.whole_weights,
            unit_weight=problem.unit_weight,
            parameters={} if self._parameters is None else self._parameters.to_dict(),
            iterations=len(x),
            t=np.arange(len(x)),
            x=x,
            branch=np.zeros(x.shape, np.int8),
            z0=z0,
        )
        return trace if rules is None else replace(trace, **self._searched(rules, own))

    def _public_z0(self) -> Array:
        """What everybody knows of z(0) beforehand: all of it where sigma is 0, else nothing."""
        graph, parameters = self._problem.graph, self._parameters
        if parameters is None or parameters.sigma > 0:
            return np.full(len(graph.source), np.nan)
        return np.asarray(graph.sign * float(parameters.mu), np.float64)

    def _searched(self, rules: Rules, own: Mapping[int, float]) -> dict[str, Any]:
        """What the statements make public: their sums, question by question."""
        search = SearchState.begin(rules)
        steps: list[SearchStep] = []
        count = self._problem.graph.n
        while search.question is not None:
            wide = widths(search.question)
            said = [self._statements[len(steps) + 1, signer] for signer in range(count)]
            if all(len(each.content) == 8 * sum(wide) for each in said):
                totals = add_up((each.numbers for each in said), wide)
            else:
                ends = (each.content[-2 * SCALAR_BYTES * len(wide) :] for each in said)  # numbers and blindings
                columns = zip(*(decode_scalars(end)[::2] for end in ends), strict=True)
                totals = split((sum(column) % ORDER for column in columns), wide)
            steps.append(SearchStep(search.question, totals))
            search = search.fold(totals)
        keys, answer = rules.keys, search.value(0)
        probes = probes_of(keys, steps)
        places = np.full(count, ELSEWHERE)
        if own:
            mine = np.array([keys.key(value) for value in own.values()], np.uint64)
            places[list(own)] = places_of(probes, [keys.key(answer)], mine)
        return {"probes": probes, "answer": (answer,), "places": places}


def _look(view: View, known: Bools) -> tuple[Observation, ...]:
    """Of each honest node the kind of observation that the messages allow, and the z(0) that are known."""
    public, x = view.public, view.messages
    assert x is not None
    assert view.sums is not None
    graph = public.graph
    q = shifted_subgradients(public, x, *view.sums)
    shown = np.bincount(graph.source, known & known[graph.reverse], graph.n) == graph.degree  # every z of its edges
    heard, followed = ~np.isnan(x[0]), ~np.isnan(q[-1])
    observations: list[Observation] = []
    corrupt = view.adversary.check(graph)
    for i in range(graph.n):
        if i in corrupt:
            continue
        if not heard[i]:
            observations.append(Unseen(i))
        elif shown[i] and followed[i]:
            observations.append(Branches(i, float(x[-1, i])))
        elif heard.all() and public.theta == 0.5 and len(x) >= SHORTEST:
            later = x[1:, i]
            ends = float(later.min()), float(later.max())
            observation = Shifted(i, float(x[0, i]), float(x[-1, i]), float(q[0, i]), float(q[1, i]), *ends)
            weightless = public.left[i] + public.right[i] == 0
            observations.append(replace(observation, shift=float(q[1, i])) if weightless else observation)
        else:
            observations.append(Heard(i, float(x[-1, i])))
    return tuple(observations)
