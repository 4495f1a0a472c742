"""The paper's figures as settings, and what lies beyond them.

The settings come from `midst.studies.paper.choices`, the draw of Figs. 1 and 2 among them: the page shows the very runs
that `midst paper` draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from midst.studies.paper.choices import CLOSER, FAR, FIFTEEN, NEAR, drawn_run
from midst.studies.paper.runs import Experiment
from midst.studies.paper.runs import StudySettings as Series

_SERIES = Series()


@dataclass(frozen=True)
class Preset:
    """Settings to start from.

    Attributes:
        name: short, for a button: what one sees.
        text: the same in a sentence, with the paper's figure.
        a: the settings, as text by field.
        b: those of the second run, where two are compared.
    """

    name: str
    text: str
    a: dict[str, str]
    b: dict[str, str] | None = None


def presets() -> list[Preset]:
    """What to look at: first what the page shows unasked, then the paper's other figures, then two runs at a time."""
    shown = drawn_run(_SERIES)
    near, far, blurred = (
        _settings(each, shown, tolerance=f"{CLOSER:g}") for each in (NEAR, FAR, replace(FAR, offset=0.1))
    )
    ring, rgg, complete = (_settings(replace(FIFTEEN, graph=graph)) for graph in ("ring", "rgg", "complete"))
    small, large = (_settings(replace(FIFTEEN, c=c)) for c in (0.1, 10.0))
    exact = {"method": "consensus", "stop": "exact"}
    sealed, search = exact | {"init": "sealed"}, {"least": "-3", "most": "3"}
    return [
        Preset("Nobody exposed", "A search: totals close in on the median, and nobody's number is sent.", search),
        Preset("Started far away: three caught", "Fig. 2: everybody on the way down is caught on a plateau.", far),
        Preset("Started near the answer", "Fig. 1: only the holder of the median sends its own number.", near),
        Preset("Far away, with noise", "Fig. 2 (b): noise on every number moves its plateau.", blurred),
        Preset("Fifteen nodes", "Fig. 3: fifteen nodes on a random geometric graph.", rgg),
        Preset("Shorter intervals", "Fig. 4: a larger c makes intervals shorter; fewer are caught.", large),
        Preset("Consensus | search", "The same numbers by both: who is exposed, who is not.", search | exact, search),
        Preset("Near | far", "Figs. 1 and 2: the same numbers, started near the median and far above it.", near, far),
        Preset("Without | with noise", "Fig. 2, without and with noise on the numbers.", far, blurred),
        Preset("Ring | complete graph", "Fig. 3: the denser the graph, the fewer are exposed.", ring, complete),
        Preset("Ring | geometric graph", "Fig. 3: the denser the graph, the fewer are exposed.", ring, rgg),
        Preset("Long | short intervals", "Fig. 4: c = 0.1 and 10; the larger, the fewer are exposed.", small, large),
        Preset("Certified | exact", "The plain iteration, and the exact finish by a search.", rgg, rgg | exact),
        Preset("z(0) heard | sealed", "z(0) in the clear, and sealed between neighbours.", exact, sealed),
    ]


def describe() -> list[dict[str, Any]]:
    """The presets, ready for JSON."""
    return [vars(preset) for preset in presets()]


def _settings(experiment: Experiment, draw: int = 0, tolerance: str = "1e-6") -> dict[str, str]:
    """An experiment of the paper as the fields have it."""
    noise = {"dp": "offset", "offset": f"{experiment.offset:g}"} if experiment.offset else {}
    return {
        "method": "consensus",
        "graph": experiment.graph,
        "n": str(experiment.n),
        "c": f"{experiment.c:g}",
        "mu": f"{experiment.mu:g}",
        "sigma": f"{experiment.sigma:g}",
        "seed": str(_SERIES.seed),
        "draw": str(draw),
        "stop": "certified",
        "tolerance": tolerance,
    } | noise
