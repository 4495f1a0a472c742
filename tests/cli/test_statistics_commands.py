"""`--statistics`: of midst run and midst up, and in charters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from midst.cli import main
from midst.cli.values import parse_dialect
from midst.columns import Dialect
from midst.errors import InputError
from midst.net.charter_files import parse_invitation
from midst.net.identity import keys


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    """A folder with a CSV of each of five sites."""
    folder = tmp_path / "sites"
    folder.mkdir()
    rng = np.random.default_rng(4)
    for name in "abcde":
        rows = (f"{k},{stay:g}" for k, stay in enumerate(np.round(rng.gamma(2, 3, 20))))
        (folder / f"{name}.csv").write_text("id,los\n" + "\n".join(rows) + "\n")
    return folder


def pooled(folder: Path) -> np.ndarray:
    return np.concatenate([np.loadtxt(path, delimiter=",", skiprows=1)[:, 1] for path in sorted(folder.iterdir())])


def test_run_reads_a_file_a_participant(sites: Path, tmp_path: Path) -> None:
    line = ("run", "--graph", "ring", "--values-dir", sites, "--column", "los", "--seed", 1)
    picture = tmp_path / "out.png"
    done = invoke(*line, "--statistics", "median,p95,mean,histogram:0,5,10,40", "--json", "--plot", picture)
    told = json.loads(done.stdout)
    own = pooled(sites)
    assert told["statistics"]["median"] == np.quantile(own, 0.5, method="inverted_cdf")
    assert told["statistics"]["mean"] == own.mean()
    assert told["statistics"]["histogram:0,5,10,40"] == np.histogram(own, [0, 5, 10, 40])[0].tolist()
    assert (told["values"], told["nodes"], told["exposed"]) == (100, 5, [])
    assert picture.read_bytes()[:4] == b"\x89PNG"
    shown = invoke(*line, "--statistics", "median", "--bounds", "0:100", "--resolution", 1).stdout
    assert "100 of 5 participants" in shown


def test_lines_of_a_file_are_participants_too(tmp_path: Path) -> None:
    (tmp_path / "lists.txt").write_text("1 2 3\n4 5\n6\n")
    (tmp_path / "column.csv").write_text("who,pay\na,1\nb,2\nc,4\nd,NA\n")
    done = invoke(
        "run", "--graph", "ring", "--values", tmp_path / "lists.txt", "--pooled", "--statistics", "sum", "--json"
    )
    assert json.loads(done.stdout)["statistics"] == {"sum": 21.0}
    line = ("run", "--graph", "ring", "--values", tmp_path / "column.csv", "--column", "pay", "--missing", "drop")
    assert json.loads(invoke(*line, "--statistics", "sum", "--json").stdout)["statistics"] == {"sum": 7.0}
    found = invoke(*line, "--method", "search", "--json")
    assert json.loads(found.stdout)["value"] == 2.0
    assert found.stderr == "midst: 1 row has a missing value and was left out\n"


def test_a_table_with_semicolons_is_read_as_is_said(tmp_path: Path) -> None:
    (tmp_path / "pay.csv").write_text("who;pay;bonus\na;1.000;2,5\nb;2.000;3,5\nc;4.000;0,5\n")
    (tmp_path / "lists.txt").write_text("1,5;2\n2,5\n3\n")
    german = ("--csv", "sep=; decimal=, thousands=.")
    line = ("run", "--graph", "ring", "--values", tmp_path / "pay.csv", "--column", "pay", "--json")
    assert json.loads(invoke(*line, *german).stdout)["value"] == 2000.0
    for said, told in (((), "line 1: another separator in the header; say how"), (("--csv", "semicolon"), "line 2")):
        done = invoke(*line, *said)
        assert (done.exit_code, done.stdout) == (2, "")
        assert told in done.stderr
        assert "--csv semicolon" in done.stderr
    line = ("run", "--graph", "ring", "--values", tmp_path / "lists.txt", "--pooled", "--csv", "semicolon", "--json")
    assert json.loads(invoke(*line, "--statistics", "sum").stdout)["statistics"] == {"sum": 9.0}
    folder = tmp_path / "sites"
    folder.mkdir()
    for k, name in enumerate("abc"):
        (folder / f"{name}.csv").write_text(f"pay\n{k},5\n1\n")
    line = ("up", "--graph", "ring", "--values-dir", folder, "--csv", "semicolon", "--statistics", "sum")
    done = invoke(*line, "--bounds", "0:9", "--resolution", 0.5, "--no-verify", "--json")
    assert json.loads(done.stdout)["statistics"] == {"sum": 7.5}


@pytest.mark.parametrize(
    ("said", "dialect"),
    [
        (None, Dialect()),
        ("semicolon", Dialect(";", ",")),
        ("sep=; decimal=, thousands=.", Dialect(";", ",", ".")),
        ("sep=tab", Dialect("\t")),
        ("thousands=blank  decimal=,", Dialect(None, ",", " ")),
        ("sep=, decimal=,", Dialect(",", ",")),
    ],
)
def test_forms(said: str | None, dialect: Dialect) -> None:
    assert parse_dialect(said) == dialect


@pytest.mark.parametrize(
    "said", ["", " ", "comma", "semicolon decimal=.", "seperator=;", "sep", "sep=;", "sep=;;", "dec=,"]
)
def test_what_is_no_form(said: str) -> None:
    with pytest.raises(InputError, match=r"^--csv: "):
        parse_dialect(said)


def test_a_network_of_this_machine_says_what_it_left_out(tmp_path: Path) -> None:
    for name, rows in {"a": "1\nNA\n3\n", "b": "2\n5\n", "c": "NA\n4\n"}.items():
        (tmp_path / f"{name}.csv").write_text("pay\n" + rows)
    line = ("up", "--graph", "ring", "--values-dir", tmp_path, "--column", "pay", "--statistics", "sum", "--no-verify")
    done = invoke(*line, "--bounds", "0:9", "--resolution", 1, "--missing", "drop", "--json")
    assert json.loads(done.stdout)["statistics"] == {"sum": 15.0}
    assert "midst: 2 rows have a missing value and were left out" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--statistics", "modus"), "there is no statistic 'modus'"),
        (("--statistics", "median", "--objective", "mean"), "--objective is of a single answer"),
        (("--statistics", "median", "--save", "run.npz"), "--save is of a single answer"),
        (("--statistics", "median", "--column", "lso"), "no column 'lso'; did you mean los?"),
        (("--statistics", "median", "--values", "x.txt"), "give --values-dir, with a file a participant, or --values"),
        (("--statistics", "median", "--method", "both"), "--method both is of a single answer"),
        (("--statistics", "median", "--method", "consensus"), "the iteration takes one value a node"),
        (("--statistics", "top:999"), "top:999 of 100 values; it takes 999"),
        ((), "--values-dir is for --statistics"),
    ],
)
def test_what_does_not_go_together_is_refused(sites: Path, options: tuple[str, ...], words: str) -> None:
    given = ("--column", "los") if "--column" not in options else ()
    done = invoke("run", "--graph", "ring", "--values-dir", sites, *given, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_up_finds_them_with_real_processes(sites: Path, tmp_path: Path) -> None:
    line = ("up", "--graph", "ring", "--values-dir", sites, "--column", "los", "--bounds", "0:100", "--resolution", 1)
    out = tmp_path / "result.json"
    picture = tmp_path / "picture.svg"
    done = invoke(*line, "--statistics", "median,mean", "--out", out, "--json", "--no-verify", "--plot", picture)
    assert picture.read_text().startswith("<?xml")
    told = json.loads(done.stdout)
    own = pooled(sites)
    right = {"median": np.quantile(own, 0.5, method="inverted_cdf"), "mean": own.mean()}
    assert told["statistics"] == right
    checked = invoke("verify", out, "--charter", out.with_suffix(".toml"), "--json")
    assert json.loads(checked.stdout)["statistics"] == right
    shown = invoke("verify", out, "--charter", out.with_suffix(".toml")).stdout
    assert "votes were not proved" in shown
    for option, words in (("--explore", "follows a single answer"), ("--quantile=0.5", "leave out --objective")):
        refused = invoke(*line, "--statistics", "median", option)
        assert (refused.exit_code, words in refused.stderr) == (2, True)
    refused = invoke(*line[:-2], "--statistics", "median,mean")
    assert (refused.exit_code, "mean needs both" in refused.stderr) == (2, True)


# Charters


@pytest.fixture
def people(tmp_path: Path) -> list[str]:
    made = [keys.make_identity(name, tmp_path / name) for name in ("alice", "bob", "carol")]
    return [f"{one.certificate_file}@127.0.0.1:{7000 + k}" for k, one in enumerate(made)]


def new(people: list[str], *options: object) -> Result:
    return invoke("charter", "new", "--session", "s1", "--method", "search", "--graph", "ring", *options, *people)


def test_a_charter_has_statistics_columns_and_rules(people: list[str], tmp_path: Path) -> None:
    options = ("--statistics", "median,mean,histogram:0,10,20", "--column", "los=0:60", "--column", "cost=0:9000")
    done = new(people, *options, "--resolution", 0.5, "--disclosure", "values=100,share=0.5,support=1")
    charter = parse_invitation(done.stdout, "stdout").charter
    assert charter.statistics == ("median", "mean", "histogram:0,10,20")
    assert [(one.name, one.bounds) for one in charter.columns] == [("los", (0.0, 60.0)), ("cost", (0.0, 9000.0))]
    assert (charter.disclosure.values, charter.disclosure.share, charter.disclosure.participants) == (100, 0.5, 3)
    assert parse_invitation(charter.to_toml(), "again").charter.digest == charter.digest
    (tmp_path / "c.toml").write_text(done.stdout)
    shown = invoke("charter", "show", tmp_path / "c.toml").stdout
    assert "the median, mean, histogram:0,10,20 of los, cost of 3 participants" in shown
    assert "with fewer than 3 participants or 100 values in all, or where one has more than 50% of them" in shown
    assert "how many values each participant has" in shown
    assert "cost lies between 0 and 9000" in shown
    assert "What to expect, whatever the shape of the values" in shown
    told = shown.replace("\n  ", " ").split("\n- ")[-3:]
    assert [line.partition(" values in all: ")[0] for line in told] == ["100", "1,000", "10,000"]
    assert all(re.search(r"≈ \S+ to \S+ bits about los, ≈ \S+ to \S+ bits about cost", line) for line in told)
    assert "the sums over all values that means and variances follow from" in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--statistics", "median,mean"), "bounds, resolution: mean needs both"),
        (("--statistics", "modus"), "statistics: there is no statistic 'modus'"),
        (("--statistics", "median", "--objective", "mean"), "leave out --objective and --quantile"),
        (("--statistics", "median", "--weight", "bob=2"), "weight: statistics are of values that count alike"),
        (("--statistics", "median", "--coordinates", "2"), "coordinates: statistics are of columns"),
        (("--statistics", "median", "--column", "a", "--column", "a"), "columns: each needs its own name"),
        (("--statistics", "median", "--column", "a=5:1"), "lower"),
        (("--column", "a"), "columns are for statistics"),
        (("--statistics", "max", "--disclosure", "support=3"), "statistics, disclosure: max is over 1 of the values"),
        (("--statistics", "median", "--disclosure", "participants=4"), "3 participants, and at least 4 are asked for"),
        (("--statistics", "median", "--disclosure", "nobody=4"), "disclosure"),
        (("--statistics", "median", "--disclosure", "values=x"), "such as participants=5,values=100"),
    ],
)
def test_a_charter_that_cannot_be_is_refused(people: list[str], options: tuple[str, ...], words: str) -> None:
    done = new(people, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_same_statistics_in_another_order_are_another_charter(people: list[str]) -> None:
    texts = [new(people, "--statistics", names).stdout for names in ("min,max", "max,min")]
    one, other = (parse_invitation(text, "c").charter for text in texts)
    assert one.digest != other.digest
