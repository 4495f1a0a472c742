"""Where files and definitions go."""

from __future__ import annotations

import ast
from pathlib import Path

from engine import Tree

_SRC = "src/midst"
_ROOMS = {
    "update.py": "protocol/step.py",
    "node.py": "protocol/node.py",
    "certificate.py": "protocol/certificate.py",
    "net/tide.py": "protocol/maxima.py",
    "graphs/elsewhere.py": "graphs/reading.py",
    "engines/large.py": "graphs/neighbour_sums.py",
    "privacy/dp.py": "dp/mechanisms.py",
    "privacy/ledger.py": "dp/ledger.py",
    "privacy/planner.py": "studies/plan.py",
    "privacy/expectation.py": "studies/expectation.py",
    "privacy/estimate.py": "studies/estimate.py",
    "paper": "studies/paper",
    "sweep": "studies/sweep",
    "plots.py": "plots/results.py",
    "privacy/plots.py": "plots/leakage.py",
    "funnel.py": "plots/funnel.py",
    "picture.py": "plots/picture.py",
    "privacy/sights.py": "privacy/observations.py",
    "privacy/reading.py": "privacy/trace_reader.py",
    "explorer/knowing.py": "explorer/knowledge.py",
    "net/keys.py": "net/identity/keys.py",
    "net/certificates.py": "net/identity/certificates.py",
    "net/transport.py": "net/transports/transport.py",
    "net/tls.py": "net/transports/tls.py",
    "net/udp.py": "net/transports/udp.py",
    "net/zenoh.py": "net/transports/zenoh.py",
    "net/seal.py": "net/transports/seal.py",
    "net/seat.py": "net/setup.py",
    "net/finding.py": "net/answer.py",
    "net/exact.py": "net/exact_finish.py",
}
_OPTIONAL_ROOMS = {  # which other branches may bring
    "privacy/loss.py": "dp/loss.py",
    "privacy/losses.py": "dp/losses.py",
    "privacy/accounting.py": "dp/accounting.py",
    "privacy/accountant.py": "dp/accountant.py",
    "privacy/composition.py": "dp/composition.py",
    "privacy/mechanisms.py": "dp/mechanisms.py",
    "privacy/sampling.py": "dp/sampling.py",
    "privacy/noise.py": "dp/noise.py",
}
_TESTS = {
    "tests/test_layers.py": "tests/test_rooms.py",
    "tests/test_update.py": "tests/protocol/test_step.py",
    "tests/test_node.py": "tests/protocol/test_node.py",
    "tests/engines/test_large.py": "tests/engines/test_neighbour_sums.py",
    "tests/net/test_seat.py": "tests/net/test_setup.py",
    "tests/net/test_tide.py": "tests/net/test_maxima.py",
    "tests/explorer/test_explorer_knowing.py": "tests/explorer/test_explorer_knowledge.py",
    "tests/privacy/test_dp.py": "tests/dp/test_dp.py",
    "tests/privacy/test_ledger.py": "tests/dp/test_ledger.py",
    "tests/privacy/searches.py": "tests/searches.py",  # ledger's tests need it too
    "tests/privacy/test_planner.py": "tests/studies/test_plan.py",
    "tests/privacy/test_estimate.py": "tests/studies/test_estimate.py",
    "tests/test_sweep.py": "tests/studies/test_sweep.py",
    "tests/test_plots.py": "tests/plots/test_plots.py",
    "tests/test_picture.py": "tests/plots/test_picture.py",
    "tests/privacy/test_leakage_plots.py": "tests/plots/test_leakage_plots.py",
}

MOVES = [(f"{_SRC}/{old}", f"{_SRC}/{new}") for old, new in _ROOMS.items()] + list(_TESTS.items())
OPTIONAL_MOVES = [(f"{_SRC}/{old}", f"{_SRC}/{new}") for old, new in _OPTIONAL_ROOMS.items()]
OVERWRITTEN = ["tests/test_rooms.py"]


def module_map(tree: Tree) -> dict[str, str]:
    """Old dotted name -> new dotted name, of every module that moved, those of moved folders included."""
    found: dict[str, str] = {}
    for old, new in {**_ROOMS, **_OPTIONAL_ROOMS}.items():
        if old.endswith(".py"):
            found[f"midst.{_dotted(old)}"] = f"midst.{_dotted(new)}"
        else:
            found[f"midst.{old}"] = f"midst.{_dotted(new)}"
            for path in (tree.root / _SRC / new).rglob("*.py"):
                inner = path.relative_to(tree.root / _SRC / new).with_suffix("").as_posix().replace("/", ".")
                if inner != "__init__":
                    found[f"midst.{old}.{inner}"] = f"midst.{_dotted(new)}.{inner}"
    found["midst.privacy.dp"] = "midst.dp.mechanisms"
    return found


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


# Definitions that change modules, by the modules' new names; done after the moves.
DEFINITIONS = [
    ("midst.net.local", ["TransportName", "make_transport", "largest_frame"], "midst.net.transports.making"),
    ("midst.net.local", ["Event", "moment"], "midst.net.events"),
    ("midst.engines.arrays", ["sum_over_neighbours"], "midst.graphs.neighbour_sums"),
    ("midst.protocol.node", ["make_node"], "midst.system"),
    ("midst.protocol.maxima", ["certifying"], "midst.net.setup"),
]
NAMES: dict[tuple[str, str], tuple[str, str]] = {("*", name): ("midst.types", name) for name in ("Array", "Ints", "Bools")}
NAMES |= {("*", "Branch"): ("midst.types", "Branch")}


def definition_map() -> dict[tuple[str, str], tuple[str, str]]:
    """For imports written with the old module's name, and with its new one."""
    back = {f"midst.{_dotted(new)}": f"midst.{_dotted(old)}" for old, new in _ROOMS.items()}
    found = {}
    for old, names, new in DEFINITIONS:
        for name in names:
            found[old, name] = new, name
            found[back.get(old, old), name] = new, name
    return found


ALIASES = {"Array": "NDArray[np.float64]", "Ints": "NDArray[np.int64]", "Bools": "NDArray[np.bool_]", "Branch": "NDArray[np.int8]"}
SYNONYMS = {"Counts": "Ints", "Owners": "Ints"}

# Small edits that the rooms need: protocol is below problems, and so knows weights and objective, not a Problem.
_CERTIFICATE = "src/midst/protocol/certificate.py"
ROOM_EDITS: list[tuple[str, str, str]] = [
    (_CERTIFICATE, "def __init__(self, problem: Problem, s: Array, tolerance: Array) -> None:",
     "def __init__(self, objective: Objective, counts: Ints, s: Array, tolerance: Array) -> None:"),
    (_CERTIFICATE, "            problem: weights and objective.\n",
     "            objective: what is sought.\n            counts: the weights, in units.\n"),
    (_CERTIFICATE, """        self._counts = problem.counts
        self._weights = problem.counts / problem.counts.sum()
        self._s = s
        self._quantile = isinstance(problem.objective, Quantile)
        self._needed_below, self._needed_above = weights_needed(problem.objective, problem.counts)
        self._total = int(problem.counts.sum())
""", """        self._counts = counts
        self._weights = counts / counts.sum()
        self._s = s
        self._quantile = isinstance(objective, Quantile)
        self._needed_below, self._needed_above = weights_needed(objective, counts)
        self._total = int(counts.sum())
"""),
    (_CERTIFICATE, "def slack(problem: Problem) -> float:",
     "def slack(objective: Objective, counts: Ints, unit_weight: float) -> float:"),
    (_CERTIFICATE, """    total = int(problem.counts.sum())
    tau = problem.objective.level(total) if isinstance(problem.objective, Quantile) else Fraction(0)
    needed = weights_needed(problem.objective, problem.counts)
""", """    total = int(counts.sum())
    tau = objective.level(total) if isinstance(objective, Quantile) else Fraction(0)
    needed = weights_needed(objective, counts)
"""),
    (_CERTIFICATE, "return float(room) * problem.unit_weight", "return float(room) * unit_weight"),
    ("src/midst/net/setup.py", "slack(problem)", "slack(problem.objective, problem.counts, problem.unit_weight)"),
    ("tests/net/test_maxima.py", "slack(problem)", "slack(problem.objective, problem.counts, problem.unit_weight)"),
    ("tests/net/test_maxima.py", "slack(Problem(graphs.ring(n), range(n), objective=Quantile(0.5)))",
     "slack(Quantile(0.5), np.ones(n, np.int64), 1.0)"),
    ("src/midst/solving.py", "Prover(problem, ", "Prover(problem.objective, problem.counts, "),
    ("tests/test_certificate.py", "Prover(problem, ", "Prover(problem.objective, problem.counts, "),
    ("src/midst/net/local.py", 'f"midst.net.{transport}"', 'f"midst.net.transports.{transport}"'),
    ("src/midst/plots/leakage.py", "from midst.studies.plan import Plan\n", ""),
    ("src/midst/plots/leakage.py", "from typing import Any\n", "from typing import TYPE_CHECKING, Any\n"),
    ("src/midst/plots/leakage.py", "\n_HIDDEN, _EXPOSED, _FAINT =",
     "\nif TYPE_CHECKING:\n    from midst.studies.plan import Plan\n\n_HIDDEN, _EXPOSED, _FAINT ="),
    ("src/midst/graphs/__init__.py", '    "Ints",\n', ""),
    ("src/midst/graphs/__init__.py", "from midst.types import Ints\n", ""),
    ("src/midst/__init__.py", '"Certificate": "certificate"', '"Certificate": "protocol.certificate"'),
    ("src/midst/__init__.py", '"privacy.ledger"', '"dp.ledger"'),
    ("src/midst/graphs/neighbour_sums.py", "from midst.graphs import Graph\n", "from midst.graphs.graph import Graph\n"),
    ("tests/studies/test_sweep.py", '"import sys; from midst.studies.sweep import read_spec, run_sweep; run_sweep(read_spec(sys.argv[1]), sys.argv[2])"',
     '(\n        "import sys; from midst.studies.sweep import read_spec, run_sweep; "\n        "run_sweep(read_spec(sys.argv[1]), sys.argv[2])"\n    )'),
    # Files named in docstrings and pages
    ("src/midst/*", "`update.py`", "`step.py`"),
    ("docs/*", "`update.py`", "`step.py`"),
    ("src/midst/engines/arrays.py", "(`large.py`)", "(`neighbour_sums.py`)"),
    ("docs/*", "engines/large.py", "graphs/neighbour_sums.py"),
    ("docs/*", "privacy/estimate.py", "studies/estimate.py"),
    ("src/midst/privacy/views.py", "(by `reading.py`)", "(by `trace_reader.py`)"),
    ("src/midst/privacy/views.py", "(`sights.py`)", "(`observations.py`)"),
    ("src/midst/net/wire.py", "(`tide.py`)", "(`maxima.py`)"),
    ("src/midst/net/wire.py", "`seat.py`", "`setup.py`"),
    ("src/midst/net/lockstep.py", "(`tide.py`)", "(`maxima.py`)"),
    ("docs/protocol.md", "net/tide.py", "protocol/maxima.py"),
    ("docs/protocol.md", "net/seat.py", "net/setup.py"),
    ("docs/protocol.md", "net/exact.py", "net/exact_finish.py"),
]


def fill_init(tree: Tree) -> None:
    """`midst.dp` shows what its modules define."""
    init = tree.root / _SRC / "dp/__init__.py"
    text = init.read_text()
    if "import" in text:
        return
    lines, every = [], []
    for path in sorted((tree.root / _SRC / "dp").glob("*.py")):
        if path.name == "__init__.py":
            continue
        names = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        names = [n for n in names if not n.startswith(("_", "check_", "parse_"))]
        lines.append(f"from midst.dp.{path.stem} import {', '.join(names)}")
        every += names
    init.write_text(text + "\n" + "\n".join(lines) + f"\n\n__all__ = {sorted(every)!r}\n")
