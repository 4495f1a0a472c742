"""Federated learning with bad clients: logistic regression at ten clients, aggregated by the mean and by the median.

Three clients submit nonsense. The median is found by the clients themselves, so no server sees an update, and is held
against NumPy's: ten is an even number, for which NumPy gives the mean of the two medians. Run: python
examples/federated.py
"""

from __future__ import annotations

import numpy as np

import midst
from midst.federated import coordinate_median

CLIENTS, BAD, FEATURES, ROUNDS = 10, (1, 4, 8), 20, 15
Model = dict[str, np.ndarray]


def draw(rng: np.random.Generator, truth: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, and on which side of a plane each lies; one label in twenty is wrong."""
    points = rng.standard_normal((count, FEATURES))
    return points, (points @ truth > 0) ^ (rng.random(count) < 0.05)


def train(model: Model, points: np.ndarray, label: np.ndarray, steps: int = 5, rate: float = 0.5) -> Model:
    """What changes in the model after a few steps of gradient descent."""
    weight, bias = model["weight"], model["bias"]
    for _ in range(steps):
        error = 1 / (1 + np.exp(-(points @ weight + bias).clip(-30, 30))) - label
        weight, bias = weight - rate * points.T @ error / len(label), bias - rate * error.mean()
    return {"weight": weight - model["weight"], "bias": bias - model["bias"]}


def mean(updates: list[Model]) -> Model:
    """The usual way."""
    return {name: np.mean([update[name] for update in updates], axis=0) for name in updates[0]}


def median(updates: list[Model]) -> Model:
    """The mean of the two medians, as NumPy has it: two runs, since each finds one of the clients' numbers."""
    low, high = (coordinate_median(updates, definition=each) for each in ("inverted_cdf", "inverted_cdf_high"))
    found = {name: (low.value[name] + high.value[name]) / 2 for name in low.value}
    for name, array in found.items():
        assert np.array_equal(array, np.median([update[name] for update in updates], axis=0))
    return found


def main() -> None:
    """Train both ways, and print how often unseen points are told right."""
    rng = np.random.default_rng(3)
    truth = rng.standard_normal(FEATURES)
    data = [draw(rng, truth, 100) for _ in range(CLIENTS)]
    points, label = draw(rng, truth, 5000)
    for way in (mean, median):
        model: Model = {"weight": np.zeros(FEATURES), "bias": np.zeros(())}
        for _ in range(ROUNDS):
            updates = [train(model, *own) for own in data]
            for i in BAD:
                updates[i] = {name: rng.normal(0, 20, array.shape) for name, array in updates[i].items()}
            step = way(updates)
            model = {name: array + step[name] for name, array in model.items()}
        right = np.mean((points @ model["weight"] + model["bias"] > 0) == label)
        print(f"{way.__name__:>6} of {CLIENTS} clients, {len(BAD)} of them bad: {right:.1%} right")
    found = coordinate_median([train(model, *own) for own in data], graph="ring", prior=midst.priors.Normal(0, 0.1))
    assert found.leakage is not None
    told = f"{found.leakage.bits:.2f} bits a weight, of which the median alone tells {found.leakage.floor:.2f}"
    print(f"one more round of the median: {found.steps} questions, {found.sent[1]:,} bytes sent a client, {told}")


if __name__ == "__main__":
    main()
