"""Handwritten digits, a model that tells them apart, and what a poisoned client makes of it.

The data come with scikit-learn: 1797 pictures of 8 × 8 pixels. A fifth is kept to measure by; the rest is dealt out to
the clients. The model is softmax regression, 650 numbers, trained by gradient descent on all of a client's pictures:
nothing is drawn, so a run can be repeated.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

LOWEST, HIGHEST = -4, 4  # public: where all weights lie

Model = dict[str, np.ndarray]
Examples = tuple[np.ndarray, np.ndarray]  # pictures, one a row, and the digit of each


def new_model() -> Model:
    """A model that has learnt nothing."""
    return {"weight": np.zeros((64, 10)), "bias": np.zeros(10)}


def client_examples(client: int, clients: int) -> Examples:
    """What one client has, and nobody else."""
    pictures, digits = _shuffled()
    kept = len(digits) // 5
    return pictures[kept + client :: clients], digits[kept + client :: clients]


def test_examples() -> Examples:
    """What no client has."""
    pictures, digits = _shuffled()
    kept = len(digits) // 5
    return pictures[:kept], digits[:kept]


def train(model: Model, examples: Examples, steps: int = 10, rate: float = 0.5) -> Model:
    """The model after a few steps of gradient descent, within the bounds."""
    pictures, digits = examples
    weight, bias = model["weight"], model["bias"]
    for _ in range(steps):
        error = (_softmax(pictures @ weight + bias) - np.eye(10)[digits]) / len(digits)
        weight, bias = weight - rate * pictures.T @ error, bias - rate * error.sum(axis=0)
    return _clip({"weight": weight, "bias": bias})


def poisoned(clients: int) -> range:
    """Which of the clients are: three of ten."""
    return range(clients * 3 // 10)


def poison(model: Model, trained: Model) -> Model:
    """Ten times the way back from what training found, within the bounds too: outside them it would be refused."""
    return _clip({name: array - 10 * (trained[name] - array) for name, array in model.items()})


def accuracy(model: Model, examples: Examples) -> float:
    """The share of digits told right."""
    pictures, digits = examples
    return float(np.mean((pictures @ model["weight"] + model["bias"]).argmax(axis=1) == digits))


def _shuffled() -> Examples:
    pictures, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    return pictures[order] / 16, digits[order]


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _clip(model: Model) -> Model:
    return {name: array.clip(LOWEST, HIGHEST) for name, array in model.items()}
