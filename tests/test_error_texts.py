"""Errors in words that fit whoever reads them: no Python in front of who typed a command, and what was meant."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import midst
from midst.cli import main
from midst.errors import InputError, closest
from midst.graphs import make
from midst.net.charter_files import parse_invitation
from midst.privacy.priors import parse_prior

ROOT = Path(midst.__file__).parent
PYTHON_ONLY = {"federated.py", "engines/ensemble.py", "engines/batches.py", "engines/gpu.py"}
SPELLED = re.compile(
    r"(?<![-\w:,])[a-z_]+=(['\"{]|True|False|None|midst|\d| )"  # a keyword, but for those in rgg:radius=0.4
    r"|solve_ensemble|\bgraphs\.[a-z]|midst\.(Exact|Certified|After|Search|Consensus)\("
)
MAY = (  # what may be written so: options of a graph, of noise; and what no command can cause
    "radius=",
    "p={threshold",
    "eps=",
    "rgg:radius",
    "participants=5",
    "colluders=1",
    "alice=2",
    "{name}=2",
    "stop must be midst.Exact()",
    "noise must be such as",
    "midst.graphs.ring(n)",
    "midst.graphs.from_networkx",
    "give method=midst.",
    'the column that holds the nodes: site="…"',
)


def errors(path: Path):
    """The text of every error that a module raises."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                if isinstance(part, ast.JoinedStr):
                    text = "".join(each.value if isinstance(each, ast.Constant) else "{…}" for each in part.values)
                    yield node.lineno, text
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield node.lineno, part.value


def test_no_python_in_an_error_that_a_command_can_cause():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in ROOT.rglob("*.py")
        if str(path.relative_to(ROOT)) not in PYTHON_ONLY
        for line, text in errors(path)
        if SPELLED.search(text) and not any(may in text for may in MAY)
    ]
    assert found == []


def test_what_was_meant():
    assert closest("rign", ["path", "ring"]) == "; did you mean ring?"
    assert closest("Alice", ["alice", "bob"]) == "; did you mean alice?"
    assert closest("nothing", ["path", "ring"]) == closest("ring", []) == closest("", ["ring"]) == ""


RING = ("run", "--graph", "ring", "--nodes", "5")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("rnu",), "run"),
        (("ledger", "shwo"), "show"),
        (("run", "--graph", "rign", "--nodes", "5"), "ring"),
        (("run", "--graph", "rgg:raduis=0.4", "--nodes", "5"), "radius"),
        ((*RING, "--engine", "arays"), "arrays"),
        ((*RING, "--method", "serach"), "search"),
        ((*RING, "--objective", "medain"), "median"),
        ((*RING, "--record", "adit"), "audit"),
        ((*RING, "--dp", "gausian:eps=1"), "gaussian"),
        ((*RING, "--dp", "gaussian:eps=1,detla=1e-5,bounds=0:1"), "delta"),
        ((*RING, "--method", "search", "--dp", "joint:eps=1,detla=1e-6"), "delta"),
        (("plan", "--graph", "ring", "--nodes", "5", "--prior", "nromal:0,1"), "normal"),
        (("plan", "--graph", "ring", "--nodes", "5", "--adversary", "pasive:1"), "passive"),
        (("run", "--graph", "ring", "--values", "values.txt", "--statistics", "mdian"), "median"),
        (("run", "--graph", "ring", "--values", "values.txt", "--statistics", "trimed:0.1"), "trimmed"),
        (("paper", "fig11", "--out", "figures"), "fig1"),
    ],
)
def test_a_command_says_what_was_meant(tmp_path, monkeypatch, words, meant):
    monkeypatch.chdir(tmp_path)
    Path("values.txt").write_text("1\n2\n3\n")
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2
    assert re.search(rf"[Dd]id you mean '?{meant}'?\?", done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1


CHARTER = """midst = 2
method = "search"
session = "s"
edges = [["alice", "bob"], ["bob", "carol"], ["carol", "alice"]]
"""
NAMES = ("alice", "bob", "carol")
PEOPLE = "".join(
    f'\n[[participants]]\nname = "{name}"\nfingerprint = "sha256:{k:064x}"\naddress = "127.0.0.1:{7001 + k}"\n'
    for k, name in enumerate(NAMES)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHARTER + "objetcive = 1" + PEOPLE, "unknown field objetcive; did you mean objective?"),
        (CHARTER.replace('"search"', '"serach"') + PEOPLE, "method: Invalid enum value 'serach'; did you mean search?"),
        (CHARTER + PEOPLE.replace("fingerprint", "figerprint"), "unknown field figerprint; did you mean fingerprint?"),
        (
            CHARTER + PEOPLE + "[deadlines]\nstrat = 1",
            "deadlines: Object contains unknown field strat; did you mean start",
        ),
        (CHARTER + 'columns = [{nmae = "a"}]' + PEOPLE, "unknown field nmae; did you mean name?"),
        (CHARTER + 'noise = {epsilonn = 1, delta = 1e-6, variance = "1"}' + PEOPLE, "did you mean epsilon?"),
        (CHARTER + "disclosure = {valeus = 1}" + PEOPLE, "did you mean values?"),
        (CHARTER + 'spacing = "rnak"' + PEOPLE, "did you mean rank?"),
    ],
)
def test_a_charter_says_what_was_meant(text, said):
    with pytest.raises(InputError, match=re.escape(said)):
        parse_invitation(text, "c.toml")


def test_a_participant_that_was_meant():
    charter = parse_invitation(CHARTER + PEOPLE, "c.toml").charter
    with pytest.raises(InputError, match=r"alcie is no participant; the charter has alice, .*; did you mean alice\?"):
        charter.number("alcie")
    with pytest.raises(InputError, match=r"crol is no participant; .*; did you mean carol\?"):
        parse_invitation(CHARTER.replace('["carol", "alice"]', '["crol", "alice"]') + PEOPLE, "c.toml")


def test_words_of_the_field():
    with pytest.raises(InputError, match="prime; try 14"):
        make("grid", 13)
    with pytest.raises(InputError, match="or force it"):
        midst.solve(midst.Problem(make("ring", 5), range(5)), midst.Consensus(theta=1))
    with pytest.raises(InputError, match="prior must be"):
        parse_prior("gauss:0,1")
