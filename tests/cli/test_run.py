"""`midst run`: what it computes, writes and refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import sparse

import midst
from midst.cli import main, options, paper
from midst.cli import run as run_module
from midst.engines import ENGINES
from midst.errors import MissingExtra
from midst.graphs import KINDS
from midst.methods import METHODS
from midst.objectives import LEVELS, Definition
from midst.protocol.search import SPACING_ORDERS
from midst.studies.paper.gallery import FIGURES
from midst.studies.paper.runs import StudySettings
from midst.system import streams
from midst.trace import load as load_trace

SECRET = "31337.4242"
RUN = ("run", "--graph", "ring", "--seed", "7")
BY_ITERATION = ("--method", "consensus")


def invoke(*arguments: str | Path, input: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=input)


def answer(*arguments: str | Path, input: str | None = None) -> dict[str, object]:
    done = invoke(*arguments, "--json", input=input)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder to work in, with a file of five values in it."""
    monkeypatch.chdir(tmp_path)
    Path("values.txt").write_text(f"# held by the parties\n3\n1.5\n\n{SECRET}  # an outlier\n-2e0\n4\n")
    return tmp_path


# What it computes


def test_json_is_one_object_with_the_promised_keys() -> None:
    found = answer("run", "--graph", "rgg", "--nodes", "15", "--seed", "7")
    promised = {"value", "objective", "nodes", "edges", "iterations", "certified", "exposed", "error"}
    assert promised <= found.keys()
    assert (found["objective"], found["nodes"], found["certified"], found["seed"]) == ("median", 15, True, 7)


def test_it_is_what_the_library_computes() -> None:
    drawn = streams(7)
    graph = midst.graphs.make("rgg", 15, rng=drawn.graph)
    problem = midst.Problem(graph, drawn.values.standard_normal(15), objective=midst.Quantile(0.5))
    command = ("run", "--graph", "rgg", "--nodes", "15", "--seed", "7")
    for method in METHODS:
        solved = midst.solve(problem, method, rng=7).to_dict()
        assert answer(*command, "--method", method) == json.loads(json.dumps(solved | {"seed": 7}))


def test_a_run_without_a_seed_can_be_repeated() -> None:
    first = answer("run", "--graph", "tree", "--nodes", "9")
    assert first["seed"] != answer("run", "--graph", "tree", "--nodes", "9")["seed"]
    assert first == answer("run", "--graph", "tree", "--nodes", "9", "--seed", str(first["seed"]))


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ((), 3),
        (("--objective", "median"), 3),
        (("--objective", "maximum", "--scale", "10"), 31337.4242),
        (("--objective", "minimum"), -2),
        (("--objective", "mean"), (3 + 1.5 + 31337.4242 - 2 + 4) / 5),
        (("--quantile", "0.25"), 1.5),
        (("--weights", "weights.txt"), 4),
        (("--bounds", "-1e5:1e5", *BY_ITERATION, "--stop", "certified", "--tolerance", "1e-9"), 3),
        ((*BY_ITERATION, "--c", "0.5", "--theta", "0.4", "--mu", "-1", "--sigma", "0.3"), 3),
        (("--engine", "reference"), 3),
        (("--engine", "reference", *BY_ITERATION), 3),
        (("--method", "search", "--arity", "7", "--spacing", "key"), 3),
        (("--method", "search", "--resolution", "2", "--bounds", "-1e5:1e5"), 4),
        (("--method", "search", "--weights", "weights.txt"), 4),
        ((*BY_ITERATION, "--engine", "edges", "--stop", "certified"), 3),
        ((*BY_ITERATION, "--stop", "exact"), 3),
    ],
)
def test_answers(options: tuple[str, ...], value: float) -> None:
    Path("weights.txt").write_text("1\n1\n1\n1\n5\n")
    assert answer(*RUN, "--values", "values.txt", *options)["value"] == pytest.approx(value, abs=2e-3)


@pytest.mark.parametrize(
    ("definition", "low", "high"), [("inverted_cdf", 2, 2), ("inverted_cdf_high", 3, 3), ("any", 2, 3)]
)
def test_definitions(definition: str, low: float, high: float) -> None:
    value = answer(*RUN, "--values", "-", "--definition", definition, input="1 2 3 4".replace(" ", "\n"))["value"]
    assert isinstance(value, float)
    assert low - 1e-5 <= value <= high + 1e-5


def test_rows_are_vectors() -> None:
    found = answer(*RUN, "--values", "-", input="1, 10\n2 20\n3, 30\n")
    assert found["value"] == pytest.approx([2, 20], abs=1e-3)
    assert found["coordinates"] == 2


@pytest.mark.parametrize(
    ("spec", "edges"),
    [("regular:k=6", 30), ("ws:k=4,p=0.1", 20), ("rgg:radius=2", 45), ("er:p=1,connected=false", 45), ("star", 9)],
)
def test_kinds_with_options(spec: str, edges: int) -> None:
    assert answer("run", "--graph", spec, "--nodes", "10")["edges"] == edges


@pytest.mark.parametrize("name", ["edges.txt", "ring.graphml", "ring.npz", "no-ending"])
def test_graphs_from_files(name: str) -> None:
    graph = nx.cycle_graph(5)
    if name == "ring.graphml":
        nx.write_graphml(graph, name)
    elif name == "ring.npz":
        sparse.save_npz(name, sparse.csr_array(nx.to_numpy_array(graph)))
    else:
        nx.write_edgelist(graph, name, data=False)
    assert answer("run", "--graph", name)["nodes"] == 5
    assert answer("run", "--graph", name, "--nodes", "5", "--values", "values.txt")["edges"] == 5


def test_report_for_people() -> None:
    done = invoke(*RUN, "--values", "values.txt", *BY_ITERATION)
    assert (done.exit_code, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    rows = dict(line.strip().split("  ", 1) for line in lines)
    assert list(rows) == ["median", "method", "proof", "iterations", "rounds", "graph", "exposed", "error", "seed"]
    assert rows["graph"] == "ring, 5 nodes, 5 edges"
    assert rows["seed"] == "7"
    assert re.fullmatch(r"[1-5] of 5 exposed; --method search exposes nobody", last)


def test_report_of_a_search() -> None:
    done = invoke(*RUN, "--values", "values.txt")
    rows = dict(line.strip().split("  ", 1) for line in done.stdout.splitlines())
    assert list(rows) == ["median", "method", "proof", "rounds", "graph", "exposed", "error", "seed"]
    assert (rows["exposed"], rows["seed"]) == ("nobody", "7")
    assert re.fullmatch(r"exact, by the totals of \d+ probes: 2 below, 1 equal, 2 above", rows["proof"])


def test_a_mean_is_not_told_of_the_search() -> None:
    assert "--method" not in invoke(*RUN, "--values", "values.txt", "--objective", "mean", *BY_ITERATION).stdout


# What it writes


def test_save_leaves_the_values_out_unless_asked() -> None:
    run = (*RUN, *BY_ITERATION, "--values", "values.txt", "--save", "run.npz")
    assert invoke(*run, "--record", "all").exit_code == 0
    trace = load_trace("run.npz")
    assert trace.values is None
    assert len(trace.t) == trace.iterations
    kept = ("--keep-values", "--iterations", "25", "--record", "10")
    assert invoke(*run, *kept).exit_code == 0
    trace = load_trace("run.npz")
    assert trace.values is not None
    assert np.array_equal(trace.t, [0, 10, 20, 24])


@pytest.mark.parametrize(("name", "start"), [("run.png", b"\x89PNG"), ("run.pdf", b"%PDF"), ("run.SVG", b"<?xml")])
def test_plot(name: str, start: bytes) -> None:
    assert invoke(*RUN, "--values", "values.txt", "--plot", name, "--show-values").exit_code == 0
    assert Path(name).read_bytes().startswith(start)


@pytest.mark.parametrize("shown", [(), ("--show-values",)])
def test_page_with_noise_on_the_values(shown: tuple[str, ...]) -> None:
    noise = ("--dp", "gaussian:eps=1,delta=1e-5,bounds=0:100")
    assert invoke(*RUN, "--values", "values.txt", *noise, "--page", "run.html", *shown).exit_code == 0
    page = Path("run.html").read_text()
    told = zlib.decompress(b64decode(re.search(r'id="a.run">([^<]*)<', page)[1]))  # type: ignore[index]
    assert b"exposure, bounds and bits are of the noised values" in told
    own = np.loadtxt("values.txt")
    assert (own.tobytes() in told) == bool(shown)
    assert (b'"held"' in told) == bool(shown)


def test_no_proof_is_told_and_still_reported() -> None:
    done = invoke(*RUN, *BY_ITERATION, "--nodes", "9", "--limit", "3", "--json", "--save", "run.npz")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["certified"] is False
    assert done.stderr.startswith("midst: error: ")
    assert "3 iterations" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert load_trace("run.npz").iterations == 3


def test_a_fixed_number_of_iterations_is_no_error() -> None:
    found = answer(*RUN, *BY_ITERATION, "--nodes", "9", "--iterations", "3")
    assert (found["certified"], found["iterations"]) == (False, 3)
    assert (
        answer(*RUN, *BY_ITERATION, "--nodes", "9", "--iterations", "3", "--theta", "1", "--force")["iterations"] == 3
    )


def test_a_full_disk_costs_the_file_and_not_the_answer(folder: Path) -> None:
    command = f"ulimit -f 1; '{sys.executable}' -m midst run --graph ring --nodes 50 --json --save run.npz"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (1, "midst: error: File too large\n")
    assert json.loads(done.stdout)["nodes"] == 50
    assert [path.name for path in folder.iterdir()] == ["values.txt"]


def test_on_a_terminal_there_is_progress_and_a_table() -> None:
    screen, terminal = pty.openpty()
    arguments = [
        "run",
        *BY_ITERATION,
        "--graph",
        "ring",
        "--nodes",
        "300",
        "--iterations",
        "12000",
        "--record",
        "audit",
    ]
    with subprocess.Popen([sys.executable, "-m", "midst", *arguments], stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while chunk := _read(screen):
            shown += chunk
    assert process.returncode == 0
    text = shown.decode()
    assert "of the scale" in text, "progress"
    assert "╭" in text, "a table"
    assert "NOT certified" in text


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # the other end is closed
        return b""


# What it refuses


def graph_file(text: str) -> Callable[[], None]:
    return lambda: (Path("graph.txt").write_text(text), None)[1]


def directed_graphml() -> None:
    nx.write_graphml(nx.DiGraph([(0, 1), (1, 2)]), "graph.graphml")


def directed_npz() -> None:
    sparse.save_npz("graph.npz", sparse.csr_array(np.triu(np.ones((4, 4)), 1)))


def values(text: str) -> Callable[[], None]:
    return lambda: (Path("bad.txt").write_bytes(text.encode("latin-1")), None)[1]


def weights(text: str) -> Callable[[], None]:
    return lambda: (Path("weights.txt").write_text(text), None)[1]


def nothing() -> None:
    pass


FIVE = ("--values", "values.txt")
ITERATED = (*FIVE, *BY_ITERATION)
BAD = ("--values", "bad.txt")
WEIGHED = (*FIVE, "--weights", "weights.txt")
FROM_TEXT = ("--graph", "graph.txt")

REFUSALS: dict[str, tuple[Callable[[], None], tuple[str, ...], str]] = {
    # values
    "nan": (
        values(f"{SECRET}\nnan\n1"),
        BAD,
        "bad.txt, line 2: missing; fill it in, or leave such rows out with --missing drop",
    ),
    "infinite": (values(f"{SECRET}\n1\n-inf"), BAD, "bad.txt, line 3: not a finite number"),
    "overflow": (values(f"{SECRET}\n1\n1e999"), BAD, "bad.txt, line 3: not a finite number"),
    "not a number": (values(f"1\n# two\n{SECRET}x\n"), BAD, "bad.txt, line 3: not a number"),
    "ragged": (values(f"1 2\n{SECRET}\n"), BAD, "bad.txt, line 2: 1 in a row, but 2 before"),
    "empty": (values(" \n# nothing\n"), BAD, "bad.txt: no numbers"),
    "not text": (values("1\n\xff\xfe\n"), BAD, "bad.txt: not a text in UTF-8"),
    "one value": (values(SECRET), BAD, "at least two nodes"),
    "no such file": (nothing, ("--values", "none.txt"), "none.txt: No such file"),
    "a folder": (nothing, ("--values", "."), ".: Is a directory"),
    "nodes and values disagree": (nothing, (*FIVE, "--nodes", "6"), "5 values for 6 nodes"),
    "no nodes": (nothing, (), "how many nodes has the ring? give --nodes or --values"),
    "one node": (nothing, ("--nodes", "1"), "n must be at least 3; got 1"),
    "not so many nodes": (nothing, ("--nodes", "many"), "'many' is not a valid integer"),
    # graphs
    "unknown kind": (nothing, ("--graph", "rign", *FIVE), "did you mean ring?"),
    "unknown kind with options": (nothing, ("--graph", "rgh:k=1", *FIVE), "unknown kind of graph 'rgh'"),
    "unknown option": (nothing, ("--graph", "rgg:k=1", *FIVE), "rgg has no option 'k'"),
    "option that is no number": (nothing, ("--graph", "rgg:radius=big", *FIVE), "'radius=big' is not name=number"),
    "option without a number": (nothing, ("--graph", "rgg:radius", *FIVE), "'radius' is not name=number"),
    "option that is ours": (nothing, ("--graph", "rgg:rng=1", *FIVE), "use --nodes and --seed"),
    "disconnected": (graph_file("0 1\n1 2\n3 4\n"), (*FROM_TEXT, *FIVE), "2 components ({0, 1, 2} and {3, 4})"),
    "self-loop": (graph_file("0 1\n1 1\n"), FROM_TEXT, "graph.txt, line 2: edge (1, 1) joins a node to itself"),
    "parallel edge": (graph_file("0 1\n1 2\n1 0\n"), FROM_TEXT, "graph.txt, line 3: edge (1, 0) is given before"),
    "directed graphml": (directed_graphml, ("--graph", "graph.graphml"), "graph.graphml is directed"),
    "directed matrix": (directed_npz, ("--graph", "graph.npz"), "graph.npz is directed input"),
    "no such graph": (nothing, ("--graph", "none.txt"), "none.txt: No such file"),
    "graph of another size": (graph_file("0 1\n1 2"), (*FROM_TEXT, "--nodes", "4"), "graph.txt has 3 nodes, not 4"),
    "values of another size": (graph_file("0 1\n1 2"), (*FROM_TEXT, *FIVE), "graph.txt has 3 nodes, not 5"),
    # parameters
    "c zero": (nothing, (*ITERATED, "--c", "0"), "c must be positive"),
    "c negative": (nothing, (*ITERATED, "--c", "-1"), "c must be positive"),
    "c nan": (nothing, (*ITERATED, "--c", "nan"), "c must be finite"),
    "theta zero": (nothing, (*ITERATED, "--theta", "0"), "theta must be in (0, 1]"),
    "theta above": (nothing, (*ITERATED, "--theta", "1.5"), "theta must be in (0, 1]"),
    "theta one": (nothing, (*ITERATED, "--theta", "1"), "theta = 1 does not converge"),
    "sigma": (nothing, (*ITERATED, "--sigma", "-0.1"), "sigma must not be negative"),
    "mu": (nothing, (*ITERATED, "--mu", "inf"), "mu must be finite"),
    "tolerance": (nothing, (*ITERATED, "--tolerance", "0"), "tolerance must be a positive number"),
    "iterations": (nothing, (*ITERATED, "--iterations", "0"), "iterations must be a whole number of at least 1"),
    "limit": (nothing, (*ITERATED, "--limit", "-1"), "limit must be a whole number of at least 1"),
    "seed": (nothing, (*FIVE, "--seed", "-1"), "-1 is not in the range x>=0"),
    "record": (nothing, (*FIVE, "--record", "0"), "record must be"),
    "record text": (nothing, (*FIVE, "--record", "some"), "record must be"),
    "engine": (nothing, (*FIVE, "--engine", "steam"), "'steam' is not one of"),
    "scale": (nothing, (*FIVE, "--scale", "0"), "scale must be between"),
    "bounds": (nothing, (*FIVE, "--bounds", "1:0"), "bounds must be finite and the lower below the upper"),
    "bounds text": (nothing, (*FIVE, "--bounds", "1"), "--bounds must be two numbers, LO:HI"),
    "outside bounds": (nothing, (*FIVE, "--bounds", "-5:5"), "value of node 2 lies outside the public bounds"),
    "quantile above": (nothing, (*FIVE, "--quantile", "1.1"), "quantile must be in [0, 1]"),
    "quantile below": (nothing, (*FIVE, "--quantile", "-0.1"), "quantile must be in [0, 1]"),
    "quantile nan": (nothing, (*FIVE, "--quantile", "nan"), "quantile must be a number in [0, 1]"),
    "two objectives": (nothing, (*FIVE, "--quantile", "0.9", "--objective", "mean"), "not both"),
    "exact without a value": (
        nothing,
        ("--nodes", "4", *BY_ITERATION, "--stop", "exact", "--definition", "any"),
        "stop certified",
    ),
    "search for any": (
        nothing,
        ("--nodes", "4", "--method", "search", "--definition", "any"),
        "try definition inverted_cdf",
    ),
    "search with c": (nothing, (*FIVE, "--c", "1"), "--c is an option of --method consensus"),
    "iteration with arity": (nothing, (*ITERATED, "--arity", "3"), "--arity is an option of --method search"),
    "arity": (nothing, (*FIVE, "--method", "search", "--arity", "8"), "arity must be from 1 to 7"),
    "resolution": (nothing, (*FIVE, "--resolution", "0"), "resolution must be a positive number"),
    "engine of a search": (nothing, (*FIVE, "--engine", "edges"), "try arrays or reference"),
    "side of a mean": (
        nothing,
        (*FIVE, "--objective", "mean", "--definition", "inverted_cdf"),
        "there is only one mean",
    ),
    # weights
    "negative weight": (weights("1\n1\n-31337.4242\n1\n1"), WEIGHED, "weight of node 2 is negative"),
    "no weight": (weights("0\n0\n0\n0\n0"), WEIGHED, "all weights are zero"),
    "weights of another size": (weights("1\n1"), WEIGHED, "weights have shape (2,)"),
    "weight not finite": (weights("1\n1\ninf\n1\n1"), WEIGHED, "weights.txt, line 3: not a finite number"),
    "input twice": (nothing, ("--values", "-", "--weights", "-"), "standard input can be read once"),
    # outputs
    "save into nowhere": (nothing, (*FIVE, "--save", "none/run.npz"), "folder none does not exist"),
    "save over a folder": (nothing, (*FIVE, "--save", "."), "is a folder"),
    "save over the input": (nothing, (*FIVE, "--save", "./values.txt"), "is given twice"),
    "plot into nowhere": (nothing, (*FIVE, "--plot", "none/run.png"), "folder none does not exist"),
    "plot as text": (nothing, (*FIVE, "--plot", "run.docx"), "run.docx: a picture ends in .png, .pdf, .svg"),
    "plot of nothing": (nothing, (*FIVE, "--plot", "run.png", "--record", "none"), "try --record auto"),
    "save and plot": (nothing, (*FIVE, "--save", "run.png", "--plot", "run.png"), "is given twice"),
    "page into nowhere": (nothing, (*FIVE, "--page", "none/run.html"), "folder none does not exist"),
    "page as a picture": (nothing, (*FIVE, "--page", "run.png"), "run.png: a page ends in .html"),
    "page of nothing": (nothing, (*FIVE, "--page", "run.html", "--record", "none"), "--page shows what --record none"),
    "page and save": (nothing, (*FIVE, "--save", "run.html", "--page", "run.html"), "is given twice"),
    "page of too many": (
        nothing,
        ("--nodes", "2001", "--page", "run.html"),
        "2,001 nodes and 2,001 edges are more than",
    ),
    "page by no prior": (nothing, (*FIVE, "--page", "run.html", "--prior", "normal:0"), "two numbers are needed"),
    "page of a mean": (nothing, (*FIVE, "--page", "run.html", "--objective", "mean"), "cannot judge a masked sum yet"),
    "page of an iterated mean": (
        nothing,
        (*ITERATED, "--page", "run.html", "--objective", "mean"),
        "try --record all",
    ),
    "page of lists": (
        nothing,
        (*FIVE, "--pooled", "--method", "search", "--page", "run.html", "--show-values"),
        "these have lists; leave the private values out",
    ),
    "page of noise": (
        nothing,
        (*FIVE, "--method", "search", "--dp", "joint:eps=1,delta=1e-6", "--page", "run.html"),
        "--plot and --page draw totals",
    ),
    "keep in nothing": (nothing, (*FIVE, "--keep-values"), "--keep-values needs --save"),
    "show in nothing": (nothing, (*FIVE, "--show-values"), "--show-values needs --plot or --page"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, folder: Path) -> None:
    prepare, options, message = REFUSALS[name]
    prepare()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    outputs = () if {"--save", "--keep-values"} & set(options) else ("--save", "run.npz")
    done = invoke(*RUN, *outputs, *options)
    assert message in done.stderr
    assert done.stderr.startswith("midst: error: ")
    assert len(done.stderr.splitlines()) == 1
    assert (done.exit_code, done.stdout) == (2, "")
    assert SECRET not in done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midst.files.os.access", lambda *_: False)  # for root everything can be written
    done = invoke(*RUN, "--nodes", "5", "--save", "run.npz")
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", "midst: error: run.npz cannot be written\n")


def test_what_options_offer_is_what_there_is() -> None:
    assert (*LEVELS, "mean") == run_module.OBJECTIVES
    assert set(run_module.DEFINITIONS) == set(get_args(Definition))
    assert run_module.METHODS == METHODS
    assert tuple(SPACING_ORDERS) == run_module.SPACINGS
    assert tuple(ENGINES) == run_module.ENGINES
    assert tuple(KINDS) == options.KINDS
    assert f"A kind ({', '.join(KINDS)})" in " ".join(options.GRAPH_HELP.split())
    assert tuple(FIGURES) == paper.FIGURES
    defaults = {option.name: option.default for option in paper.command.params}
    assert (defaults["runs"], defaults["seed"]) == (StudySettings.runs, StudySettings.seed)


def test_missing_matplotlib_is_said_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)  # type: ignore[arg-type]
    for name in ("midst.plots.picture", "midst.plots.results"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("midst.solving.solve", None)
    done = invoke(*RUN, "--nodes", "5", "--plot", "run.png")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"midst: error: {MissingExtra('matplotlib', 'plot')}\n"


def test_refusal_in_a_real_process(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "midst", "run", "--graph", "ring", "--values", "-", "--save", "run.npz"],
        input=f"1\n{SECRET}\n{SECRET}oops\n", capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "midst: error: standard input, line 3: not a number\n"
    assert not Path("run.npz").exists()
