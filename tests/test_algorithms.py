"""Algorithms of one's own: what the driver gives, keeps and refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from midst import InputError, Mean, Problem, Quantile, graphs
from midst.algorithms import local_of, play, run_algorithm, size_of
from midst.contracts import check_algorithm
from midst.engines.reference import iterate
from midst.protocol.message import Message
from midst.protocol.node import rows
from midst.system import assemble, make_node, settle


@dataclass(frozen=True)
class Averaging:
    """Everybody moves towards its neighbours, by Metropolis weights: to the mean of all."""

    name = "averaging"

    def begin(self, local, rng):
        return local.value, dict.fromkeys(local.neighbours, local.value)

    def step(self, local, x, inbox, rng):
        degree = local.graph.degree
        pull = [(theirs - x) / (1 + max(degree[local.node], degree[j])) for j, theirs in inbox.items()]
        x = x + sum(pull)
        return x, dict.fromkeys(local.neighbours, x)

    def estimate(self, x):
        return x


@dataclass(frozen=True)
class Paper:
    """The paper's iteration, by the very `Node` that runs on a network: z(0) goes round first, then x."""

    z0: np.ndarray
    name = "the paper's"

    def begin(self, local, rng):
        problem = Problem(local.graph, np.full(local.graph.n, local.value), objective=local.objective)
        parameters = settle(problem, c=1.0)
        system = assemble(problem, parameters, self.z0)
        node = make_node(local.node, local.graph, system.terms[local.node], system.c, system.theta)
        drawn = np.split(self.z0, local.graph.first_edges[1:-1])[local.node]
        state, outbox = node.begin(rows(drawn))
        return (node, state), {j: message.number for j, message in outbox.items()}

    def step(self, local, state, inbox, rng):
        node, before = state
        after, outbox = node.step(before, {j: Message(before.round, number) for j, number in inbox.items()})
        return (node, after), {j: message.number for j, message in outbox.items()}

    def estimate(self, state):
        return 0.0 if state[1].x is None else state[1].x


def problem_of(n=9, objective=None, **options):
    graph = graphs.rgg(n, rng=1)
    return Problem(graph, np.random.default_rng(2).normal(size=n), objective=objective or Mean(), **options)


def test_what_comes_out():
    problem = problem_of()
    run = run_algorithm(problem, Averaging(), 40, rng=7)
    edges = 2 * problem.graph.edges
    assert (run.rounds, run.messages, run.bytes) == (40, 40 * edges, 8 * 40 * edges)
    assert run.estimates.shape == (41, 9)
    np.testing.assert_array_equal(run.estimates[0], problem.values)
    assert run.value == pytest.approx(problem.values.mean(), abs=1e-4)
    assert run.error == abs(run.value - float(problem.answer[0]))
    assert run.errors[0] == np.abs(problem.values - problem.values.mean()).max()
    assert run.errors[-1] < 1e-3
    assert len(run.sent) == 40
    for k, sent in enumerate(run.sent):  # in round k + 1 everybody sends what it held after round k
        for i, outbox in enumerate(sent):
            assert outbox == dict.fromkeys(problem.graph.neighbours(i).tolist(), run.estimates[k][i])
    assert repr(run) == "<Run of averaging over <Graph rgg: 9 nodes, 31 edges>: 40 rounds>"


def test_what_is_not_kept_is_counted():
    kept, counted = (run_algorithm(problem_of(), Averaging(), 5, 7, keep=keep) for keep in (True, False))
    assert (kept.messages, kept.bytes) == (counted.messages, counted.bytes)
    assert counted.sent == ()


def test_the_papers_iteration_fits_into_it_to_the_last_bit():
    problem = problem_of(objective=Quantile(0.5))
    z0 = np.random.default_rng(5).normal(size=len(problem.graph.source))
    run = run_algorithm(problem, Paper(z0), 30)
    steps = iterate(assemble(problem, settle(problem, c=1.0), z0))
    for estimates in run.estimates[1:]:
        np.testing.assert_array_equal(estimates, next(steps)[0])
    check_algorithm_of_the_paper()


def check_algorithm_of_the_paper():
    class OnAny(Paper):
        """With z(0) of its own on every graph."""

        def __init__(self):
            super().__init__(np.zeros(0))

        def begin(self, local, rng):
            z0 = np.random.default_rng(local.graph.edges).normal(size=len(local.graph.source))
            return Paper(z0).begin(local, rng)

    check_algorithm(OnAny(), Quantile(0.5), rounds=300)


def test_vectors_lists_and_bytes():
    graph = graphs.ring(5)
    values = np.random.default_rng(1).normal(size=(5, 2))
    run = run_algorithm(Problem(graph, values, objective=Mean()), Averaging(), 60)
    assert run.estimates.shape == (61, 5, 2)
    np.testing.assert_allclose(run.value, values.mean(axis=0), atol=1e-6)
    assert run.bytes == 16 * run.messages
    lists = Problem(graph, [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], [7.0], [8.0]], pooled=True)
    assert [np.ravel(local_of(lists, i).value).tolist() for i in (0, 1, 2)] == [[1, 2], [3], [4, 5, 6]]
    assert (size_of(b"abc"), size_of(1.0), size_of((1.0, 2.0)), size_of(np.zeros(3))) == (3, 8, 16, 24)


def test_what_a_node_knows():
    problem = problem_of(weights=np.arange(9) / 10, bounds=(-10, 10))
    local = local_of(problem, 3)
    assert local.value == problem.values[3]
    assert isinstance(local.value, float)
    assert local.weight == pytest.approx(0.3)
    assert (local.scale, local.centre) == (5.0, 0.0)
    assert local.neighbours == tuple(problem.graph.neighbours(3).tolist())
    assert str(local.value) not in repr(local)


def test_the_same_seed_gives_the_same_and_every_node_draws_by_itself():
    class Drawing(Averaging):
        def begin(self, local, rng):
            noisy = local.value + rng.normal()
            return noisy, dict.fromkeys(local.neighbours, noisy)

    one, again, other = (run_algorithm(problem_of(), Drawing(), 3, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.estimates, again.estimates)
    assert not np.equal(one.estimates, other.estimates).any()
    noise = one.estimates[0] - problem_of().values
    assert len(set(noise.tolist())) == 9


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({3: 1.0, 99: 1.0}, "averaging: node 0 wrote to (3|99), which is no neighbour of it"),
        (float("nan"), "node 0 sent something that is neither finite numbers nor bytes"),
        ((1.0, float("inf")), "neither finite numbers nor bytes"),
        ("words", "neither finite numbers nor bytes"),
        (None, "neither finite numbers nor bytes"),
    ],
)
def test_what_nobody_may_send_is_refused(message, text):
    class Wrong(Averaging):
        def begin(self, local, rng):
            return local.value, message if isinstance(message, dict) else dict.fromkeys(local.neighbours, message)

    problem = Problem(graphs.path(5), range(5), objective=Mean())
    with pytest.raises(InputError, match=text):
        run_algorithm(problem, Wrong(), 2)


@pytest.mark.parametrize("estimate", [float("nan"), (1.0, 2.0)])
def test_estimates_are_numbers(estimate):
    class Wrong(Averaging):
        def estimate(self, x):
            return estimate

    with pytest.raises(InputError, match="estimate must be one finite number a coordinate"):
        run_algorithm(problem_of(), Wrong(), 2)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True])
def test_rounds_are_counted(rounds):
    with pytest.raises(InputError, match="rounds must be a whole number"):
        run_algorithm(problem_of(), Averaging(), rounds)


def test_nobody_need_write():
    class Quiet(Averaging):
        def begin(self, local, rng):
            return local.value, {}

        def step(self, local, x, inbox, rng):
            assert inbox == {}
            return x, {}

    run = run_algorithm(problem_of(), Quiet(), 4)
    assert (run.messages, run.bytes) == (0, 0)


def test_rounds_go_on_for_ever():
    played = play(problem_of(), Averaging(), 1)
    first = next(played)
    assert (first.sent, first.messages) == ((), 0)
    assert [next(played).messages for _ in range(3)] == [62] * 3


def test_locals_are_frozen():
    with pytest.raises(AttributeError):
        local_of(problem_of(), 0).value = 1.0
    assert replace(local_of(problem_of(), 0), value=1.0).value == 1.0
