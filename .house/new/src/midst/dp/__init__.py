"""Differential privacy: noise put on values before anything is sent, what it costs, and the ledger of all runs.

    mechanisms   noise as a map from Problem to Problem; what repeated use adds up to
    ledger       what all runs on one datum have given away together, and a budget for it

`midst.dp` shows the names of both.
"""
