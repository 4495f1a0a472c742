"""One meaning a word, one word a thing. Paths are those after the moves."""

from __future__ import annotations

import re
import subprocess

from engine import Rule, Symbol, Tree, map_strings

ALL = ("src/*", "tests/*", "bench/*", "examples/*", "docs/*")
NET = ("src/midst/net/*", "src/midst/cli/*", "src/midst/simnet/*", "tests/net/*", "tests/simnet/*", "tests/cli/*", "tests/explorer/*", "bench/*")
PRIVACY = ("src/midst/privacy/*", "src/midst/explorer/*", "src/midst/studies/estimate.py", "tests/privacy/*", "tests/explorer/*",
           "tests/studies/*", "tests/paper/*", "bench/leakage.py", "src/midst/cli/attack.py")
WEIGHTS = ("src/midst/problems.py", "src/midst/trace.py", "src/midst/objectives.py", "src/midst/protocol/certificate.py",
           "src/midst/solving.py", "src/midst/methods.py", "src/midst/system.py", "src/midst/engines/batches.py",
           "src/midst/engines/ensemble.py", "src/midst/engines/ensemble_search.py", "src/midst/engines/gpu.py",
           "src/midst/privacy/trace_reader.py", "src/midst/privacy/observations.py")

# Strings that are names of attributes, and code that a rule cannot tell apart
WORD_EDITS_BEFORE: list[tuple[str, str, str]] = [
    ("src/midst/net/metrics.py", 'hasattr(peer, "part")', 'hasattr(peer, "exchange")'),
    ("src/midst/net/local.py", "_end(i, **ending.found.to_dict(), found=ending.found, **costs)",
     '_end(i, **ending.found.to_dict(), **{"found": ending.found}, **costs)'),
    ("tests/simnet/test_simnet.py", '"midst.workers.spread"', '"midst.workers.run_in_parallel"'),
    ("tests/test_trace.py", 'for name in ("t", "x", "branch", "counts", "values")', 'for name in ("t", "x", "branch", "whole_weights", "values")'),
    ("src/midst/engines/ensemble.py", "spread: Callable[[Any, tuple[int, int]], Any]) -> EnsembleResult", "fill: Callable[[Any, tuple[int, int]], Any]) -> EnsembleResult"),
    ("src/midst/engines/ensemble.py", "any run or node; `spread` makes", "any run or node; `fill` makes"),
    ("src/midst/engines/ensemble.py", "=spread(", "=fill("),
    ("src/midst/privacy/sealed.py", "`sights.offsets`", "`observations.shifted_subgradients`"),
    ("src/midst/trace.py", "tuple(told)) for step, k, edges, told in", "tuple(totals)) for step, k, edges, totals in"),
    ("src/midst/protocol/search.py", "            told = totals[start : start + part.numbers]\n", "            own = totals[start : start + part.numbers]\n"),
    ("src/midst/protocol/search.py", "part, told)", "part, own)"),
    ("src/midst/protocol/search.py", "part, told[0])", "part, own[0])"),
]

_N, _E, _P, _S = "midst.net", "midst.engines", "midst.privacy", "midst.studies"
SYMBOLS: list[Symbol] = [
    Symbol(f"{_N}.answer", "Found", "Answer"),
    Symbol(f"{_N}.peer", "Part", "Exchange"),
    Symbol(f"{_N}.wire", "Talk", "Control"),
    Symbol(f"{_N}.wire", "Step", "StepFrame"),
    Symbol(f"{_N}.charter", "Participant", "ParticipantEntry"),
    Symbol("midst.simnet.world", "Participant", "SimulatedParticipant"),
    Symbol(f"{_N}.identity.certificates", "Problem", "CertificateFault"),
    Symbol(f"{_N}.identity.certificates", "Certificate", "CertificateDetails"),
    Symbol("midst.protocol.maxima", "Tide", "StopRule"),
    Symbol("midst.protocol.search", "Part", "QuestionPart"),
    Symbol("midst.protocol.search", "Way", "Spacing"),
    Symbol("midst.protocol.search", "WAYS", "SPACING_ORDERS"),
    Symbol("midst.objectives", "LEVELS", "TAUS"),
    Symbol("midst.solving", "Way", "MethodLike"),
    Symbol("midst.solving", "_Found", "_SearchOutcome"),
    Symbol(f"{_P}.observations", "Offset", "Shifted"),
    Symbol(f"{_P}.observations", "offsets", "shifted_subgradients"),
    Symbol(f"{_P}.trace_reader", "Run", "TraceReader"),
    Symbol("midst.dp.mechanisms", "Gaussian", "GaussianNoise"),
    Symbol("midst.dp.mechanisms", "Laplace", "LaplaceNoise"),
    Symbol(f"{_E}.searching", "Found", "FoundKeys"),
    Symbol(f"{_E}.searching", "Step", "SearchStep"),
    Symbol(f"{_E}.ensemble_search", "Found", "FoundValues"),
    Symbol(f"{_E}.gpu", "Outcome", "DeviceOutcome"),
    Symbol(f"{_E}.gpu", "Runs", "DeviceRuns"),
    Symbol(f"{_E}.gpu", "State", "DeviceState"),
    Symbol(f"{_E}.gpu", "Way", "DeviceProgram"),
    Symbol(f"{_E}.batches", "Settings", "BatchSettings"),
    Symbol(f"{_S}.sweep.spec", "Cell", "GridPoint"),
    Symbol(f"{_S}.estimate", "Interval", "Estimate"),
    Symbol(f"{_S}.plan", "Outcome", "Choice"),
    Symbol(f"{_S}.paper.claims", "Found", "Measured"),
    Symbol(f"{_S}.paper.beyond", "Limits", "EndPositions"),
    Symbol(f"{_S}.paper.runs", "Settings", "StudySettings"),
    Symbol("midst.explorer.fields", "Refused", "FieldError"),
    Symbol("midst.explorer.runs", "Runs", "RunStore"),
    Symbol("midst.explorer.gate", "Keys", "Access"),
    Symbol(f"{_E}.reference_search", "seat", "make_participants"),
    Symbol("midst.workers", "spread", "run_in_parallel"),
    Symbol(f"{_N}.setup", "take_seat", "make_setup"),
    Symbol(f"{_N}.setup", "certifying", "residual_rule"),
    Symbol(f"{_N}.wire", "TALK_BYTES", "CONTROL_BYTES"),
    Symbol(f"{_N}.wire", "encode_talk", "encode_control"),
    Symbol(f"{_N}.wire", "decode_talk", "decode_control"),
    Symbol("midst.cli.doctor", "Result", "Checked"),
    Symbol("midst.cli.charter", "told", "disclosures"),
]

WORDS: list[Rule] = [
    # The network: what one participant sets up, exchanges and ends with
    Rule("Seat", "Setup", NET, text="word"),
    Rule("seat_of", "setup_of", ("tests/net/*",)),
    Rule("_seat", "_setup", NET),
    Rule("seats", "setups", NET),
    Rule("seat", "setup", NET, text="word"),
    Rule("found", "answer", ("src/midst/net/*", "src/midst/cli/node.py", "src/midst/cli/up.py", "src/midst/simnet/world.py", "tests/net/*",
                             "bench/participant.py", "bench/network.py"), place="dot", merge=True),
    Rule("found", "answer", ("src/midst/net/peer.py", "src/midst/net/exact_finish.py", "src/midst/net/lockstep.py", "src/midst/net/gossip.py",
                             "src/midst/net/records.py", "src/midst/net/results.py", "src/midst/cli/node.py"), merge=True),
    Rule("counts", "proof", ("src/midst/net/answer.py", "src/midst/net/gossip.py"), merge=True),
    Rule("counts", "proof", ("tests/net/test_peer.py", "tests/net/test_processes.py"), place="dot", merge=True),
    Rule("part", "exchange", ("src/midst/net/*", "src/midst/cli/node.py", "src/midst/cli/up.py", "src/midst/simnet/*", "tests/net/*", "tests/simnet/*", "bench/*"), place="attr"),
    Rule("_make_part", "_make_exchange", ("src/midst/net/peer.py",)),
    Rule("part", "exchange", ("src/midst/net/events.py", "src/midst/net/peer.py"), merge=True),
    Rule("encode_talk", "encode_control", ("tests/*", "bench/*"), place="dot", merge=True, optional=True),
    Rule("Ears", "Listener", ("src/*", "tests/*"), text="word", merge=True),
    Rule("Ears", "Listener", ("bench/*",), text="word", merge=True, optional=True),
    Rule("_ears", "_listener", NET),
    Rule("ears", "listener", NET, text="word", merge=True),
    Rule("_talk", "_control", ("src/midst/net/wire.py",)),
    Rule("talk", "control", ("src/midst/net/wire.py",)),
    # Maxima
    Rule("tide", "stop_rule", ("src/midst/net/*", "tests/net/*"), text="word"),
    Rule("still", "empty", ("src/midst/protocol/maxima.py", "src/midst/net/lockstep.py", "tests/net/test_maxima.py"), merge=True),
    Rule("rise", "merge", ("src/midst/protocol/maxima.py", "src/midst/net/lockstep.py", "tests/net/test_maxima.py")),
    Rule("_level", "_maxima", ("src/midst/net/lockstep.py",)),
    Rule("_levels", "_maxima", ("src/midst/net/wire.py",)),
    Rule("level", "maxima", ("src/midst/net/wire.py", "src/midst/net/lockstep.py", "tests/net/test_wire.py", "tests/net/test_peer.py")),
    Rule("level", "maxima", ("src/midst/protocol/maxima.py", "tests/net/test_maxima.py"), merge=True),
    Rule("levels", "maxima_each", ("src/midst/protocol/maxima.py", "src/midst/net/wire.py", "src/midst/net/setup.py"), ),
    Rule("levels", "maxima_each", ("tests/net/test_maxima.py",), place="attr"),
    # What an adversary observes
    Rule("Sight", "Observation", PRIVACY, text="word"),
    Rule("sights", "observations", PRIVACY, text="word", merge=True),
    Rule("sight", "observation", PRIVACY, text="word"),
    Rule("_track_offset", "_track_shift", ("src/midst/privacy/*",), optional=True),
    Rule("offset", "shifted", ("src/midst/privacy/trace_reader.py",), place="bare"),
    Rule("offset", "shifted", ("src/midst/privacy/views.py",), place="dot"),
    Rule("offset", "shift", ("src/midst/privacy/*", "src/midst/explorer/knowledge.py", "tests/privacy/*"), place="attr", merge=True),
    Rule("offset", "shift", ("src/midst/privacy/*",), place="bare", merge=True),
    Rule("run", "reader", ("src/midst/privacy/views.py",)),
    Rule("_Reading", "_SearchReader", ("src/midst/privacy/published.py",)),
    Rule("offsets", "first_edges", ("src/midst/graphs/graph.py", "src/midst/engines/*", "tests/test_graphs.py", "tests/engines/*", "bench/*")),
    Rule("offsets", "diagonals", ("src/midst/graphs/neighbour_sums.py",)),
    Rule("offset", "diagonal", ("src/midst/graphs/neighbour_sums.py",)),
    # Weights as whole numbers
    Rule("counts", "whole_weights", WEIGHTS),
    Rule("counts", "whole_weights", ("src/midst/*", "tests/*", "bench/*"), place="dot"),
    Rule("counts", "whole_weights", ("tests/searches.py",)),
    Rule("counts", "whole_weights", ("src/midst/privacy/*", "tests/privacy/*"), place="keyword", merge=True, optional=True),
    Rule("_counts", "_whole_weights", ("src/midst/protocol/certificate.py",)),
    Rule("value_counts", "value_weights", ALL),
    Rule("_count_weights", "_find_whole_weights", ("src/midst/problems.py",)),
    Rule("counts", "list_sizes", ("src/midst/net/charter.py", "src/midst/net/setup.py", "src/midst/engines/reference_search.py"), place="bare"),
    # Spread: how far apart numbers lie (a key of files, an option); not of work, not of one number over many
    Rule("_spread", "_log_spaced", ("src/midst/explorer/replay.py", "src/midst/plots/results.py")),
    Rule("_spread", "_broadcast", ("src/midst/engines/gpu.py",)),
    Rule("_spread", "_one_a_leaf", ("src/midst/federated.py",)),
    Rule("spread", "scales", ("src/midst/problems.py",)),
    Rule("spread", "std", ("src/midst/privacy/sealed.py",)),
    # Levels
    Rule("level", "exact_tau", ("src/midst/objectives.py", "src/midst/protocol/certificate.py", "src/midst/privacy/*", "src/midst/engines/*", "src/midst/explorer/*", "src/midst/solving.py", "src/midst/methods.py", "tests/*"), place="attr", merge=True),
    Rule("level", "exact_tau", ("src/midst/objectives.py",), merge=True),
    Rule("level", "p", ("src/midst/privacy/priors.py",)),
    Rule("level", "probability", ("src/midst/privacy/joint.py",), merge=True),
    Rule("levels", "probabilities", ("src/midst/privacy/joint.py",)),
    Rule("level", "height", ("src/midst/plots/results.py",)),
    Rule("levels", "heights", ("src/midst/plots/results.py",)),
    Rule("_levels", "_heights", ("src/midst/plots/results.py",)),
    Rule("_level", "_tau", ("src/midst/explorer/simulate.py",)),
    # Told
    Rule("_told_by_iteration", "_disclosed_by_iteration", ("src/midst/cli/charter.py",)),
    # Share: a fraction of a whole; not a thread's part of the work
    Rule("_A_SHARE", "_LEAST_BLOCKS", ("src/midst/engines/arrays.py",)),
    Rule("_shares", "_parts", ("src/midst/engines/arrays.py",)),
    Rule("share", "part", ("src/midst/engines/arrays.py",), merge=True),
    Rule("shares", "parts", ("src/midst/engines/ensemble.py",)),
    Rule("elsewhere", "any_port", ("src/midst/explorer/server.py", "src/midst/cli/explore.py", "tests/explorer/test_explorer_server.py")),
    Rule("elsewhere", "pending", ("src/midst/engines/arrays.py",)),
    # Classes with two meanings
    Rule("_interval", "_estimate", ("src/midst/studies/estimate.py",)),
    Rule("_Runs", "_RunningBatch", ("src/midst/engines/ensemble.py",)),
    Rule("_Runs", "_RunningSearches", ("src/midst/engines/searching.py",)),
    Rule("_Runs", "_SegmentBuilder", ("src/midst/recorder.py",)),
    # Aliases with two meanings
    # A problem without noise; the weights that were read
    Rule("honest", "noiseless", ("src/midst/cli/run.py",)),
    Rule("heaviness", "given_weights", ("src/midst/cli/run.py",)),
]

TEXTS: list[tuple[str, str, str]] = []
WORD_EDITS: list[tuple[str, str, str]] = [
    ("src/midst/explorer/fields.py", "class FieldError(InputError):  # noqa: N818  (it says what happened)", "class FieldError(InputError):"),
    ("docs/dp.md", "from midst.dp.mechanisms import", "from midst.dp import"),
    ("docs/dp.md", "from midst.dp.ledger import", "from midst.dp import"),
    ("docs/api.md", ".. automodule:: midst.dp.mechanisms\n", ".. automodule:: midst.dp\n.. automodule:: midst.dp.mechanisms\n"),
    ("docs/conf.py", "Branch Counts DTypeLike", "Branch DTypeLike"),
    ("docs/conf.py", "\"Numbers Objective", "\"MethodLike Numbers Objective"),
    ("docs/conf.py", "Side Stop Update Values Way Words", "Side Spacing Stop Update Values Words"),
    ("docs/protocol.md", "**Talk** is `T`", "**Control** frames are `T`"),
    ("docs/protocol.md", "| talk | says |", "| control | says |"),
    ("src/midst/net/setup.py", '"""A setup at the table: everything one participant', '"""The setup: everything one participant'),
    ("src/midst/net/setup.py", "        name: who takes it.\n", "        name: whose.\n"),
    ("src/midst/net/peer.py", "ends with a `Answer`", "ends with an `Answer`"),
    ("src/midst/net/peer.py", "Send what the part has for", "Send what the exchange has for"),
    ("src/midst/net/peer.py", "def _say(self, j: int, talk: Any,", "def _say(self, j: int, message: Any,"),
    ("src/midst/net/peer.py", "encode_control(talk)", "encode_control(message)"),
    ("src/midst/net/charter.py", "fit into a talk frame", "fit into a control frame"),
    ("src/midst/net/wire.py", "**Talk** (HELLO", "**Control** (HELLO"),
    ("src/midst/net/wire.py", "talk frame", "control frame"),
    ("src/midst/net/wire.py", "| levels f64 ×", "| maxima f64 ×"),
    ("src/midst/net/wire.py", "Levels are maxima on their way", "Maxima are on their way"),
    ("src/midst/net/wire.py", "maxima_each: of a stop_rule, a coordinate;", "maxima_each: how many, a coordinate;"),
    ("src/midst/protocol/maxima.py", "The level before", "The maxima before"),
    ("src/midst/protocol/maxima.py", "The level after", "The maxima after"),
    ("src/midst/protocol/maxima.py", "the neighbours' levels", "the neighbours' maxima"),
    ("src/midst/protocol/maxima.py", "holds the same level, if that is", "holds the same maxima, if they are"),
    ("src/midst/graphs/reading.py", '"""Graphs from elsewhere: networkx, matrices and files.', '"""Graphs read from networkx, matrices and files.'),
    ("src/midst/net/answer.py", '"""What a participant has found when its part in a session is over."""', '"""What a participant has in hand when a session is over: the answer and its proof."""'),
    ("src/midst/privacy/__init__.py", "| observations          | what", "| observations    | what"),
    ("src/midst/privacy/__init__.py", "| views, reading  | what that adversary sees of a trace: `View`, and nothing else                         |",
     "| views           | what that adversary sees of a trace: `View`, and nothing else                         |\n| trace_reader    | what a trace has to say of each node, worked out again where it was not kept          |"),
    ("src/midst/privacy/__init__.py", "| estimate        | the same mutual information by other means, to check the bits                         |\n", ""),
    ("src/midst/privacy/__init__.py", "| plots           | pictures of the report                                                                |\n", ""),
    ("src/midst/explorer/__init__.py", "| knowing  | what", "| knowledge | what"),
    ("src/midst/protocol/__init__.py", '"""The masked search, without I/O: what is asked, what is answered, what hides an answer, and how it ends.\n\n',
     '"""The mathematics and the rules of both methods, without I/O: numbers and statements in, the same out.\n\nThe iteration:\n\n- `step`: the paper\'s x and z updates.\n- `node`: one participant of it, with its state.\n- `certificate`: when a result is proved.\n- `maxima`: how all come to know that they may stop.\n\nThe search:\n\n'),
    ("src/midst/net/__init__.py", """    charter    what all agree on                    keys        one's own key; certificates: who is who
    setup       what one derives from it             wire        frames as bytes
    lockstep   the iteration, all together          stop_rule        when it stops: maxima, told on
    gossip     the search: who is told what         exact       the iteration, and then the search
    notary     who signs, and who is believed       finding     what came of it; results: as a file to verify
    peer       a session without I/O                journal     what must not be forgotten; records: what it holds
    transport  what carries frames: tls, zenoh, udp; seal, where somebody is in between
    driver     peer, transport and clock, joined    metrics     numbers about it, for Prometheus
    local      a whole network on this machine
""", """    charter       what all agree on                  identity/    one's own key; certificates: who is who
    setup         what one derives from it           wire         frames as bytes
    lockstep      the iteration, all together        gossip       the search: who is told what
    exact_finish  the iteration, and then the search notary       who signs, and who is believed
    peer          a session without I/O              answer       what came of it; results: as a file to verify
    journal       what must not be forgotten         records      what it holds
    driver        peer, transport and clock, joined  transports/  what carries frames: tls, zenoh, udp; sealing
    events        what a watcher is told             metrics      numbers about it, for Prometheus
    local         a whole network on this machine
"""),
    ("src/midst/net/local.py", '**{"found": ending.answer}', "found=ending.answer"),
]


# The surface

SURFACE = {  # name -> "module" or "module:name there"
    "Aborted": "midst.errors", "Adversary": "midst.privacy.adversaries", "After": "midst.methods", "Certified": "midst.methods",
    "Consensus": "midst.methods", "Exact": "midst.methods", "Graph": "midst.graphs", "InputError": "midst.errors",
    "Mean": "midst.objectives", "MidstError": "midst.errors", "NotCertified": "midst.errors", "Problem": "midst.problems",
    "Quantile": "midst.objectives", "Result": "midst.result", "Search": "midst.methods", "Trace": "midst.trace",
    "audit": "midst.privacy.audit", "dp": "midst", "federated": "midst", "graphs": "midst",
    "max": "midst.solving:maximum", "mean": "midst.solving", "median": "midst.solving", "min": "midst.solving:minimum",
    "priors": "midst.privacy", "quantile": "midst.solving", "solve": "midst.solving", "solve_ensemble": "midst.engines.ensemble",
}
NOT_YET = ("compare", "describe")  # kept where the old __init__ has them
ONE_LEVEL_DOWN = {  # what was at the top -> where it is
    "Certificate": "midst.protocol.certificate", "Density": "midst.privacy.priors", "EnsembleResult": "midst.engines.ensemble",
    "Laplace": "midst.privacy.priors", "Leakage": "midst.privacy.audit", "Ledger": "midst.dp.ledger", "MissingExtra": "midst.errors",
    "Normal": "midst.privacy.priors", "Reconstruction": "midst.privacy.attack", "Samples": "midst.privacy.priors",
    "TraceError": "midst.errors", "Uniform": "midst.privacy.priors", "View": "midst.privacy.views", "load_trace": "midst.trace:load",
    "maximum": "midst.solving", "minimum": "midst.solving", "reconstruct": "midst.privacy.attack", "view": "midst.privacy.views",
}
INIT = '''"""midst: the median from the midst of the network.

The public names are those of `__init__.pyi`, which editors and type checkers read as well: one list. Each is loaded when
it is first used, so that `midst --help` does not wait for NumPy.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def _read_stub() -> dict[str, tuple[str, str]]:
    """Each public name: its module, and its name there."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes: dict[str, tuple[str, str]] = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom):
            homes |= {alias.name: (line.module or "", alias.name) for alias in line.names}
        elif isinstance(line, ast.Assign):  # max = maximum
            shown, original = ast.unparse(line).split(" = ")
            homes[shown] = homes.pop(original)
    return homes


_HOMES = _read_stub()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'midst' has no attribute {name!r}")
    module, original = _HOMES[name]
    if module != __name__:
        home = import_module(module)
        if hasattr(home, original):
            return getattr(home, original)
    return import_module(f"{module}.{original}")


def __dir__() -> list[str]:
    return __all__
'''.replace("  # noqa: PLE0605", "")


def rewrite_surface(tree: Tree) -> None:
    """One list of public names; what is no longer among them is imported from its home."""
    init = tree.root / "src/midst/__init__.py"
    old = init.read_text()
    if "_read_stub" in old:
        return
    homes = dict(re.findall(r'^    "(\w+)": "([\w.:]+)",$', old, re.MULTILINE))
    top = {**SURFACE, **{name: f"midst.{homes[name]}" for name in NOT_YET if name in homes}}
    for name in homes:
        if name not in top and name not in ONE_LEVEL_DOWN:
            tree.say(f"surface: {name} is new at the top, and no rule says where it is to be; left out")
    by_module: dict[str, list[str]] = {}
    for name, home in top.items():
        module, _, original = home.partition(":")
        by_module.setdefault(module, []).append(original or f"{name} as {name}")
    stub = '"""The public names, in one list; `__init__.py` reads it too."""\n\n'
    stub += "".join(f"from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(by_module.items()))
    stub += "\n" + "".join(f"{name} = {home.partition(':')[2]}\n" for name, home in top.items() if ":" in home)
    stub = stub.replace("\n\nfrom", "\n\nfrom midst._version import __version__ as __version__\nfrom", 1)
    init.write_text(INIT)
    init.with_suffix(".pyi").write_text(stub)
    subprocess.run(["git", "-C", str(tree.root), "add", "-N", "src/midst/__init__.pyi"], check=False)
    down = {}
    for name, home in ONE_LEVEL_DOWN.items():
        module, _, original = home.partition(":")
        down["midst", name] = module, original or name
    # imports by name
    from engine import Homes, _add_imports, rename_tokens, rewrite_imports

    rewrite_imports(tree, Homes({}, down, frozenset(["load_trace"])))
    shown = {"maximum": "max", "minimum": "min"} | {n: f"priors.{n}" for n in ONE_LEVEL_DOWN if ONE_LEVEL_DOWN[n].endswith("priors")}
    for path in tree.python():
        text = path.read_text()
        wanted: list[str] = []

        def one(name: str, place: str) -> str:
            if place == "attr of midst" and name in ONE_LEVEL_DOWN:
                if name in shown:
                    return shown[name]
                module, _, original = ONE_LEVEL_DOWN[name].partition(":")
                wanted.append(f"from {module} import {original} as {name}" if original else f"from {module} import {name}")
                return f"\0{name}"
            return name

        after = rename_tokens(text, one).replace("midst.\0", "")
        if after != text:
            path.write_text(_add_imports(after, wanted))
        text = path.read_text()
        after = map_strings(text, lambda s: _show_in_text(s, shown))
        if after != text:
            path.write_text(after)
    for path in tree.pages():
        text = path.read_text()
        after = re.sub(r"(:: )midst\.(\w+)$", lambda m: m[1] + ".".join(down["midst", m[2]]) if ("midst", m[2]) in down and m[2] not in ("maximum", "minimum") else m[0], text, flags=re.MULTILINE)
        after = _show_in_text(after, shown)
        if after != text:
            path.write_text(after)


def _show_in_text(text: str, shown: dict[str, str]) -> str:
    return re.sub(r"(?<![\w.])midst\.(\w+)\b(?!\.)", lambda m: f"midst.{shown.get(m[1], m[1])}", text)
