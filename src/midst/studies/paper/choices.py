"""What the paper leaves open, and what is chosen here.

| open in the paper | chosen | why | range |
|---|---|---|---|
| c (Figs. 1–3) | 1 | c has the unit 1/data, and N(0, 1) data has scale 1 | 0.3 to 10; Fig. 4: 0.1 to 30 |
| radius of the geometric graph | √(2 ln n / n): 0.80 for n = 5, 0.60 for n = 15 | connected with high probability; what is not connected is drawn again | 0.6 and 1 for n = 5; 0.45 and 0.8 for n = 15 |
| number of iterations | until every x_i is proved to lie within 1e-6 of the median | nobody is exposed later, unless a value lies that near | Fig. 1 draws on to 1e-12 |
| seeds | seed 1; run k draws data, graph and z(0) from its child k | any will do: each number is over many draws, with its interval | the draws |
| the draw shown in Figs. 1, 2 | the first that shows what the paper's Fig. 1 shows | it shows that the condition can be met; how often it is, the claims say | all draws |
| μ, σ² in Figs. 3, 4 | 0 and 0.01, as in Fig. 1 | the only setting the paper calls feasible | μ = −10; σ = 1 and 10 |
| graph in Fig. 4 | geometric, n = 15 | the middle one of Fig. 3 | ring and complete |
| error of the network (Fig. 1a) | root of the sum of (x_i − median)² | one number that bounds every node's error | |

At the paper's setting there are 100 runs, as in its Fig. 3; at every other point of a range 25. Every run draws its
data and its graph afresh, the same ones at every point.
"""  # noqa: E501  (a table that the docs repeat)

from __future__ import annotations

from dataclasses import replace
from itertools import count

from midst.methods import Certified
from midst.studies.paper.runs import Experiment, Run, StudySettings, perform

NEAR = Experiment(n=5)  # Fig. 1: μ = 0 and σ² = 0.01 start near the median
FAR = replace(NEAR, mu=-10.0, sigma=1.0)  # Fig. 2: starts far above it
FIFTEEN = Experiment(n=15)  # Figs. 3 and 4

CLOSE = 1e-6  # to what an answer is proved
CLOSER = 1e-12  # in a run that is drawn


def plan(base: Experiment, others: tuple[Experiment, ...], settings: StudySettings) -> dict[Experiment, int]:
    """How often to run the paper's own setting, and each of a range around it."""
    return {base: settings.runs} | dict.fromkeys(others, settings.runs_in_range)


def drawn_run(settings: StudySettings) -> int:
    """Which run Figs. 1 and 2 show: the first in which nobody but the holder of the median sends its own value."""
    return next(k for k in count() if len(perform(NEAR, settings.seed, k).result.exposed) == 1)


def perform_drawn(experiment: Experiment, settings: StudySettings) -> Run:
    """The run that is shown, recorded in full and run on until its error is too small to draw."""
    k = drawn_run(settings)
    return perform(experiment, settings.seed, k, stop=Certified(CLOSER), record="all")
