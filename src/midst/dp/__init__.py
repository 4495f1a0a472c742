"""Differential privacy: noise put on values before anything is sent, what it costs, and the ledger of all runs.

    mechanisms   noise as a map from Problem to Problem; what repeated use adds up to
    ledger       what all runs on one datum have given away together, and a budget for it

`midst.dp` shows the names of both.
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

__all__ = [
    "AccuracyCost",
    "Budget",
    "BudgetError",
    "Entry",
    "GaussianNoise",
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
    "privatise",
]
