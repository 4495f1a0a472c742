"""`midst run --ledger`: one node of a simulated run keeps account of what its runs give away."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from midst.dp.joint import Claim, most_bits
from midst.dp.ledger import Entry, Ledger, entry_of
from midst.dp.mechanisms import information
from midst.errors import InputError
from midst.privacy.priors import Prior
from midst.problems import Problem
from midst.protocol.noise import JointNoise
from midst.result import Result


@dataclass(frozen=True)
class Account:
    """A node's ledger, opened with its value, and by which prior bits are told.

    Attributes:
        ledger: of that node's value.
        problem: the values of all, before any noise.
        node: whose.
        prior: of every value.
        mechanism: the noise that is put on them, or on what is told of all.
    """

    ledger: Ledger
    problem: Problem
    node: int
    prior: Prior
    mechanism: Claim | None

    def book(self, result: Result) -> None:
        """Enter what the run gave away to an eavesdropper on clear z(0); of a noised run, what its noise leaves."""
        if isinstance(self.mechanism, JointNoise):
            assert result.noise is not None
            owners, arity = self.problem.owners, result.trace.parameters["arity"]
            own = 1 if owners is None else int(np.count_nonzero(owners == self.node))
            bits = own * most_bits(result.noise.variance, result.noise.probes, arity)
            entry = Entry(bits=bits, mechanism=self.mechanism)
        elif self.mechanism is not None:
            entry = Entry(bits=information(self.mechanism, self.prior.scale), mechanism=self.mechanism)
        else:
            entry = entry_of(
                result.trace,
                self.problem.graph.label(self.node),
                self.prior,
                among=self.ledger.mark(self.problem.values),
            )
        self.ledger.add(entry, self.prior)


def open_account(
    path: str, problem: Problem, name: str, prior: Prior, mechanism: Claim | None, over_budget: bool
) -> Account:
    """The account of a node, if its budget allows one more run.

    Raises:
        InputError: the node does not exist, its value is a vector, the prior excludes a value, the ledger is another
            value's or damaged, or the run would go past the budget and nobody said to run all the same.
    """
    if problem.values.ndim > 1:
        raise InputError("--ledger keeps account of one number; these values are vectors")
    node = problem.graph.index(name, "--ledger-node")
    if mechanism is None and any(prior.log_density(value) == -math.inf for value in problem.values.tolist()):
        raise InputError("--prior gives no mass to some of the values; give a wider one")
    own = node if problem.owners is None else problem.owners == node
    ledger = Ledger.open(path, problem.values[own])
    if not over_budget:
        ledger.require(entry=Entry(mechanism=mechanism))
    return Account(ledger, problem, node, prior, mechanism)
