"""`--dp` of midst charter new, run and up: noise that nobody knows as a whole, settled, explained, kept account of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from midst.cli import main
from midst.dp import ledger as module
from midst.dp.ledger import Ledger
from midst.net.charter import Charter
from midst.net.charter_files import parse_invitation
from midst.net.identity import keys

SPEC = "eps=1,delta=1e-6,colluders=1"
PUBLIC = ("--bounds", "0:100", "--resolution", "0.5")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def refusal(*arguments: object) -> str:
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.output
    return done.stderr


@pytest.fixture
def people(tmp_path: Path) -> list[str]:
    made = [keys.make_identity(name, tmp_path / name) for name in ("alice", "bob", "carol")]
    return [f"{one.certificate_file}@{one.name}.example.org:7001" for one in made]


@pytest.fixture
def values(tmp_path: Path) -> Path:
    """A file with the lists of four participants, a line each."""
    rng = np.random.default_rng(4)
    rows = (np.round(rng.normal(50, 15, 250).clip(0, 100)) for _ in range(4))
    (tmp_path / "lists.txt").write_text("\n".join(" ".join(f"{x:g}" for x in row) for row in rows) + "\n")
    return tmp_path / "lists.txt"


def new(people: list[str], *options: object) -> Charter:
    line = ("charter", "new", "--session", "s", "--method", "search", "--graph", "ring", "--pooled")
    done = invoke(*line, *options, *people)
    assert done.exit_code == 0, done.stderr
    return parse_invitation(done.stdout, "stdout").charter


# midst charter


def test_a_charter_is_written_with_the_least_noise(people: list[str], tmp_path: Path) -> None:
    charter = new(people, *PUBLIC, "--dp", SPEC)
    assert charter.noise is not None
    assert str(charter.noise.promise) == "eps=1.0,delta=1e-06,colluders=1"
    assert (charter.arity, charter.spacing, charter.is_verified) == (1, "key", False)
    assert charter.noise.variance == "285/2"
    assert new(people, *PUBLIC, "--dp", SPEC, "--arity", 3).arity == 3
    file = tmp_path / "c.toml"
    file.write_text(charter.to_toml())
    assert invoke("charter", "check", file).stdout.strip() == charter.digest.hex()
    shown = " ".join(invoke("charter", "show", file).stdout.split())
    for words in (
        "(1, 1e-06)-DP of all that is told, for one value, against each participant; of variance 285/2",
        "expect the answer to be off by 14.6 places in rank, 1% of 1,462 values; with fewer than 147 nothing is asked",
        "1 thresholds a probe, placed by key; votes are not proved",
        "shifts the odds between any two values by a factor of 2.72 at most, but for a chance of 1e-06",
        "they can put the answer anywhere",
        "costs the same again",
    ):
        assert words in shown
    assert json.loads(invoke("charter", "show", file, "--json").stdout)["charter"]["noise"]["variance"] == "285/2"


def test_who_takes_no_colluders_into_account_is_told_what_that_means(people: list[str], tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(new(people, *PUBLIC, "--dp", "eps=1,delta=1e-6,colluders=0").to_toml())
    shown = " ".join(invoke("charter", "show", tmp_path / "c.toml").stdout.split())
    assert "against outsiders only; everybody knows its own share of the noise, so agree on colluders=1" in shown


def test_a_charter_from_another_one_settles_its_noise_anew(people: list[str], tmp_path: Path) -> None:
    """More probes cost more noise: as it was, it would keep to less."""
    old = tmp_path / "old.toml"
    old.write_text(new(people, *PUBLIC, "--dp", SPEC).to_toml())

    def again(*options: object) -> Charter:
        done = invoke("charter", "new", "--from", old, "--session", "t", *options)
        assert done.exit_code == 0, done.stderr
        return parse_invitation(done.stdout, "stdout").charter

    finer = again("--resolution", "0.001")
    assert finer.noise is not None
    assert finer.noise.variance == "1213/4"
    assert again("--dp", "eps=2,delta=1e-6").noise.promise.epsilon == 2  # type: ignore[union-attr]
    plain = tmp_path / "plain.toml"
    plain.write_text(new(people, *PUBLIC, "--spacing", "value").to_toml())
    old = plain
    assert again().noise is None
    made = again("--dp", SPEC)
    assert (made.arity, made.spacing) == (1, "key")


def test_what_cannot_be_is_refused(people: list[str], tmp_path: Path) -> None:
    line = ("charter", "new", "--session", "s", "--method", "search", "--graph", "ring", "--pooled", "--dp", SPEC)
    assert "noise needs --bounds and --resolution" in refusal(*line, "--bounds", "0:100", *people)
    assert "cannot be proved" in refusal(*line, *PUBLIC, "--verify", *people)
    assert "colluders must be from 0 to 2" in refusal(*line[:-1], "eps=1,delta=1e-6,colluders=3", *PUBLIC, *people)
    assert "joint noise takes eps and delta" in refusal(*line[:-1], "eps=1", *PUBLIC, *people)
    assert "arity must be" in refusal(*line, *PUBLIC, "--arity", 0, *people)
    assert "lower" in refusal(*line, "--bounds", "5:1", "--resolution", "1", *people)
    alone = ("charter", "new", "--session", "s", "--method", "search", "--graph", "ring", "--dp", SPEC, *PUBLIC)
    assert "among 3 values would be off by half of them or more" in refusal(*alone, *people)
    file = tmp_path / "weak.toml"
    file.write_text(new(people, *PUBLIC, "--dp", SPEC).to_toml().replace('"285/2"', '"40"'))
    for command in ("check", "show"):
        assert "noise of variance 40 keeps to epsilon 1.9" in refusal("charter", command, file)


# midst run


def test_a_simulated_search_with_noise(values: Path, tmp_path: Path) -> None:
    line = ("run", "--graph", "ring", "--values", values, "--pooled", "--method", "search", "--seed", 5, *PUBLIC)
    told = json.loads(invoke(*line, "--dp", f"joint:{SPEC}", "--json").stdout)
    assert told == json.loads(invoke(*line, "--dp", f"joint:{SPEC}", "--json").stdout)
    assert (told["certified"], told["standing"], told["exposed"], told["probes"]) == (False, None, [], 8)
    assert told["noise"] == {
        "epsilon": 1.0, "delta": 1e-6, "colluders": 1, "values": 1, "variance": "285/2", "probes": 8,
        "rank_error": pytest.approx(0.01378, abs=1e-4),
    }  # fmt: skip
    assert told["error"] < 5
    shown = invoke(*line, "--dp", f"joint:{SPEC}").stdout
    assert "none: every total of 8 probes had noise on it" in shown
    assert "(1, 1e-06)-DP of all that is told" in shown
    exact = json.loads(invoke(*line, "--json").stdout)
    assert (exact["certified"], exact["noise"], exact["error"]) == (True, None, 0)
    saved = tmp_path / "run.npz"
    assert invoke(*line, "--dp", f"joint:{SPEC}", "--save", saved).exit_code == 0
    assert "no audit of a search with noise" in refusal("audit", saved)


def test_what_run_refuses(values: Path, tmp_path: Path) -> None:
    line = ("run", "--graph", "ring", "--values", values, "--pooled", "--dp", f"joint:{SPEC}")
    assert "give --method search" in refusal(*line, "--method", "consensus", *PUBLIC)
    assert "leave them out" in refusal(*line, *PUBLIC, "--plot", tmp_path / "a.png")
    assert "noise needs public bounds and a resolution" in refusal(*line)
    assert "noise needs public bounds and a resolution" in refusal(*line, "--bounds", "0:100")
    assert "placed by key" in refusal(*line, *PUBLIC, "--spacing", "value")
    assert "among 15 values" in refusal(
        "run", "--graph", "ring", "--nodes", 15, "--method", "search", "--dp", f"joint:{SPEC}", "--bounds", "-9:9",
        "--resolution", 1,
    )  # fmt: skip


def test_run_keeps_account(values: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORK", 2)
    book = tmp_path / "book.json"
    assert invoke("ledger", "new", book, "--max-epsilon", 2, "--delta", "1e-5").exit_code == 0
    line: tuple[Any, ...] = ("run", "--graph", "ring", "--values", values, "--pooled", "--method", "search", *PUBLIC)
    line = (*line, "--dp", f"joint:{SPEC}", "--ledger", book, "--prior", "uniform:0,100")
    for runs in (1, 2):
        assert invoke(*line, "--seed", runs).exit_code == 0
        totals = Ledger.open(book).totals()
        assert (totals.runs, totals.epsilon, totals.kind) == (runs, runs, "upper bound")
    assert 0 < totals.bits < 30, "of 250 values"
    assert "epsilon 3 of 2" in refusal(*line)


# midst up


def test_a_network_of_this_machine_adds_noise(values: Path, tmp_path: Path) -> None:
    line = ("up", "--graph", "ring", "--values", values, "--pooled", "--method", "search", "--dp", SPEC)
    done = invoke(*line, *PUBLIC, "--out", tmp_path / "r.json", "--json")
    told = json.loads(done.stdout)
    own = np.concatenate([np.array(row.split(), float) for row in values.read_text().splitlines()])
    assert abs(told["value"] - np.median(own)) < 5
    assert told["probes"] == 8
    checked = invoke("verify", tmp_path / "r.json", "--charter", tmp_path / "r.toml")
    assert checked.exit_code == 0
    assert "nothing proves it; expect the answer's rank to be off by some 1.38% of all values" in checked.stdout
    assert "signed  by all 4" in checked.stdout
    assert "give --method search" in refusal(
        "up", "--graph", "ring", "--nodes", 4, "--method", "consensus", "--dp", SPEC
    )
    assert "noise needs --bounds and --resolution" in refusal(*line)
