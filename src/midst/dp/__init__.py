"""Differential privacy: noise put on values before anything is sent, what it costs, and the ledger of all runs.

    mechanisms   noise as a map from Problem to Problem; what repeated use adds up to
    joint        how much noise the participants of a search must add together, and what that costs
    ledger       what all runs on one datum have given away together, and a budget for it

`midst.dp` shows the names of the first and the last, and of the second what is agreed on.
"""

from midst.dp.ledger import Budget, BudgetError, Entry, Ledger, Totals, entry_of
from midst.dp.loss import composed_epsilon
from midst.dp.mechanisms import (
    AccuracyCost,
    GaussianNoise,
    LaplaceNoise,
    Offset,
    accuracy_cost,
    compose,
    compose_all,
    information,
    privatise,
)
from midst.protocol.noise import JointNoise, parse_joint

__all__ = [
    "AccuracyCost",
    "Budget",
    "BudgetError",
    "Entry",
    "GaussianNoise",
    "JointNoise",
    "LaplaceNoise",
    "Ledger",
    "Offset",
    "Totals",
    "accuracy_cost",
    "compose",
    "compose_all",
    "composed_epsilon",
    "entry_of",
    "information",
    "parse_joint",
    "privatise",
]
