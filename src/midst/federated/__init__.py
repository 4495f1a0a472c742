"""Aggregation of models: the median, trimmed mean, … of every coordinate of clients' updates, which nobody is shown.

updates      an update as a list of arrays, whatever a framework makes of it
aggregating  all clients in one process: what comes out, and what it costs and gives away
client       one client of a real network, round after round
flower       a strategy for Flower

By a search of bits (`protocol/vectors`): nobody sends a number of its own, only masked counts. The median is robust
against bad updates. A client that lies about its counts can put any coordinate anywhere, and nothing names it.
"""

from midst.federated.aggregating import (
    Aggregate,
    AggregateOptions,
    coordinate_median,
    coordinate_quantile,
    mean,
    mean_around_median,
    trimmed_mean,
)
from midst.federated.client import Client, Round

__all__ = [
    "Aggregate",
    "AggregateOptions",
    "Client",
    "Round",
    "coordinate_median",
    "coordinate_quantile",
    "mean",
    "mean_around_median",
    "trimmed_mean",
]
