"""What the paper leaves open, and what is chosen here.

| open in the paper | chosen | why | range |
|---|---|---|---|
| c (Figs. 1–3) | 1 | c has the unit 1/data, and N(0, 1) data has scale 1 | 0.3 to 10; Fig. 4: 0.1 to 30 |
| radius of the geometric graph | √(2 ln n / n): 0.80 for n = 5, 0.60 for n = 15 | connected with high probability; what is not connected is drawn again | 0.6 and 1 for n = 5; 0.45 and 0.8 for n = 15 |
| number of iterations | until every x_i is proved to lie within 1e-6 of the median | nobody is exposed later, unless a value lies that near | Fig. 1 draws on to 1e-12 |
| the values s_i and the graph | one draw for all runs of a figure, as the paper has it; only z(0) is new in every run | "we fixed the values of s_i throughout the experiments" | 24 draws, beside it |
| seeds | seed 1; draw k has data and graph from its child k | any will do: no single draw decides | the draws |
| the draw shown in Figs. 1, 2 | of the 24 the first in which the fewest nodes send their own value | it shows that the condition can be met; how often it is, the other draws say | all draws |
| μ, σ² in Figs. 3, 4 | 0 and 0.01, as in Fig. 1 | the only setting the paper calls feasible | μ = −10; σ = 1 and 10 |
| graph in Fig. 4 | geometric, n = 15 | the middle one of Fig. 3 | ring and complete |
| error of the network (Fig. 1a) | root of the sum of (x_i − median)² | one number that bounds every node's error | |

At the paper's setting there are 100 runs of each draw, as in its Fig. 3; at every other point of a range 25. The draws
are the same ones at every point.
"""  # noqa: E501  (a table that the docs repeat)

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from midst.methods import Certified
from midst.studies.paper.runs import Experiment, Outcome, Run, StudySettings, measure_outcomes, perform
from midst.types import Array, Bools, Row

NEAR = Experiment(n=5)  # Fig. 1: μ = 0 and σ² = 0.01 start near the median
FAR = replace(NEAR, mu=-10.0, sigma=1.0)  # Fig. 2: starts far above it
FIFTEEN = Experiment(n=15)  # Figs. 3 and 4

CLOSE = 1e-6  # to what an answer is proved
CLOSER = 1e-12  # in a run that is drawn


@dataclass(frozen=True, eq=False)
class Shown:
    """The run of Fig. 1 or 2 that is shown, and what came of others.

    Attributes:
        values: s_i.
        held: the values that went into the run: the same, or s_i + n_i.
        x: x_i(t), shape (iterations, n).
        inside: whether node i sent the value it held, likewise.
        median: of the values held; of an even number the two middle values.
        measured: the draw that is shown and many more, the paper's setting first.
    """

    values: Array
    held: Array
    x: Array
    inside: Bools
    median: tuple[float, ...]
    measured: dict[Experiment, list[Outcome]]

    @property
    def error(self) -> Array:
        """The error of the whole network, over t."""
        return np.asarray(np.linalg.norm(self.x - self.x.clip(min(self.median), max(self.median)), axis=1))

    def rows(self) -> list[Row]:
        """A row an iteration."""
        return [
            {"iteration": t + 1}
            | {f"x_{i + 1}": float(x) for i, x in enumerate(self.x[t])}
            | {f"inside_{i + 1}": int(flag) for i, flag in enumerate(self.inside[t])}
            for t in range(len(self.x))
        ]


def drawn_run(settings: StudySettings) -> int:
    """Which draw Figs. 1 and 2 show: the first whose first run, started near the median, exposes the fewest nodes."""
    alone = replace(settings, workers=1, progress=None)
    (found,) = measure_outcomes(dict.fromkeys(settings.plan(NEAR), 1), alone).values()
    return int(np.argmin([each.exposed.sum() for each in found[1:] or found]))


def perform_drawn(experiment: Experiment, settings: StudySettings) -> Run:
    """The run that is shown, recorded in full and run on until its error is too small to draw."""
    return perform(experiment, settings.seed, drawn_run(settings), stop=Certified(CLOSER), record="all")


def measure_around(base: Experiment, others: tuple[Experiment, ...], settings: StudySettings) -> Shown:
    """The run that is shown, and the paper's setting and its range on many draws."""
    plan = settings.plan(base, others)
    truth, problem, result = perform_drawn(next(iter(plan)), settings)
    median = tuple(map(float, problem.answer))
    measured = measure_outcomes(plan, settings, drawn_run(settings))
    return Shown(truth.values, problem.values, result.trace.x, result.trace.inside, median, measured)
