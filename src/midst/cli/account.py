"""`midst run --ledger`: one node of a simulated run keeps account of what its runs give away."""

from __future__ import annotations

import math
from dataclasses import dataclass

from midst.errors import InputError
from midst.privacy.audit import audit
from midst.privacy.dp import Mechanism, information
from midst.privacy.ledger import Entry, Ledger
from midst.privacy.priors import Prior
from midst.privacy.published import digests
from midst.problems import Problem
from midst.result import Result


@dataclass(frozen=True)
class Account:
    """A node's ledger, opened with its value, and by which prior bits are told.

    Attributes:
        ledger: of that node's value.
        node: whose.
        prior: of its value.
        mechanism: the noise that is put on it.
    """

    ledger: Ledger
    node: int
    prior: Prior
    mechanism: Mechanism | None

    def book(self, result: Result) -> None:
        """Enter what the run gave away to an eavesdropper on clear z(0); of a noised run, what its noise leaves."""
        if self.mechanism is not None:
            bits = information(self.mechanism, self.prior.scale)
            self.ledger.add(Entry(bits=bits, mechanism=self.mechanism))
            return
        leak, i = audit(result.trace, prior=self.prior), self.node
        told, answer = digests(result.trace)
        floor = None if math.isnan(leak.floor[i]) else float(leak.floor[i])
        exposed, bits = leak.exposed[i], float(leak.bits[i])
        entry = Entry(leak.lower[i], leak.upper[i], exposed, bits, floor=floor, told=told, answer=answer)
        self.ledger.add(entry, lambda lower, upper: -self.prior.log_mass(lower[0], upper[0]) / math.log(2))


def open_account(
    path: str, problem: Problem, node: int, prior: Prior, mechanism: Mechanism | None, over_budget: bool
) -> Account:
    """The account of a node, if its budget allows one more run.

    Raises:
        InputError: the node does not exist, its value is a vector, the ledger is another value's or damaged, or the run
            would go past the budget and nobody said to run all the same.
    """
    if problem.values.ndim > 1:
        raise InputError("--ledger keeps account of one number; these values are vectors")
    if not 0 <= node < problem.graph.n:
        raise InputError(f"--ledger-node {node} does not exist; the nodes are 0 to {problem.graph.n - 1}")
    ledger = Ledger.open(path, problem.values[node])
    if not over_budget:
        ledger.require(entry=Entry(mechanism=mechanism))
    return Account(ledger, node, prior, mechanism)
