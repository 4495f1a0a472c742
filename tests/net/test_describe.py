"""Statistics over a network of real processes: files in, one table out, refused before anything is asked."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from processes import Network, Outcome, network, read_journal
from scipy import stats

from midst import graphs
from midst.cli import main
from midst.net.records import Inputs

STATISTICS = ["median", "quartiles", "mean", "std", "trimmed:0.1", "mad", "top:3", "histogram:0,10,20,50"]
PUBLIC: dict[str, Any] = {"method": "search", "bounds": [0, 100], "resolution": 0.5}


def tables(seed: int = 1, sites: int = 5) -> list[np.ndarray]:
    """Length of stay and cost, of another number of patients a site."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(sites):
        patients = int(rng.integers(8, 30))
        made.append(np.column_stack([np.round(rng.gamma(2, 4, patients)), np.round(rng.uniform(0, 100, patients))]))
    return made


def write_files(net: Network, data: list[np.ndarray], gaps: int = 0) -> None:
    for name, table in zip(net.charter.names, data, strict=True):
        rows = [f"{k},{cost:g},{los:g}" for k, (los, cost) in enumerate(table.tolist())]
        rows += ["x,,3"] * gaps
        path = net.folder / f"{name}.csv"
        path.touch(mode=0o600)
        path.write_text("id,cost,los\n" + "\n".join(rows) + "\n")


def run(net: Network, *options: str) -> list[Outcome]:
    running = [
        net.start(name, *options, given=["--value-file", str(net.folder / f"{name}.csv")]) for name in net.charter.names
    ]
    return [one.wait() for one in running]


@pytest.mark.parametrize("verify", [False, True])
def test_sites_find_the_statistics_of_all_their_rows(tmp_path: Path, verify: bool) -> None:
    data = tables(sites=4 if verify else 5)
    columns = [{"name": "los"}, {"name": "cost", "bounds": [0, 200]}]
    settings = {**PUBLIC, "statistics": STATISTICS[:3] if verify else STATISTICS, "columns": columns, "verify": verify}
    with network(tmp_path, graphs.ring(len(data)), [None] * len(data), **settings) as net:
        write_files(net, data, gaps=2)
        ends = run(net, "--missing", "drop", "--out", str(tmp_path / "result.json"))
        found = [end.answer["statistics"] for end in ends]
        assert all("2 of your rows have a missing value" in end.err for end in ends)
        assert all(each == found[0] for each in found)
        pooled = np.concatenate(data)
        for k, column in enumerate(("los", "cost")):
            own, told = pooled[:, k], found[0][column]
            assert told["median"] == np.quantile(own, 0.5, method="inverted_cdf")
            assert told["mean"] == pytest.approx(own.mean(), rel=1e-15)
            if not verify:
                assert told["std"] == pytest.approx(own.std(ddof=1), rel=1e-12)
                assert told["trimmed:0.1"] == pytest.approx(stats.trim_mean(own, 0.1), rel=1e-12)
                assert told["top:3"] == np.sort(own)[::-1][:3].tolist()
                assert told["histogram:0,10,20,50"] == np.histogram(own, [0, 10, 20, 50])[0].tolist()
        checked = CliRunner().invoke(
            main, ["verify", str(tmp_path / "result.json"), "--charter", str(net.charter_file), "--json"]
        )
        assert json.loads(checked.stdout)["statistics"] == found[0]
        plain = json.loads((tmp_path / "result.json").read_text())
        plain["statistics"]["los"]["mean"] += 0.5
        (tmp_path / "result.json").write_text(json.dumps(plain))
        forged = CliRunner().invoke(main, ["verify", str(tmp_path / "result.json"), "--charter", str(net.charter_file)])
        assert forged.exit_code == 2
        assert "statistics than the file" in forged.stderr


@pytest.mark.parametrize("statistics", [["mean"], ["quartiles", "mean", "mad"]])
def test_a_ledger_has_what_a_session_told(tmp_path: Path, statistics: list[str]) -> None:
    data = tables(seed=2, sites=3)
    settings = {**PUBLIC, "statistics": statistics, "columns": [{"name": "los"}], "verify": False}
    ledger = tmp_path / "los.ledger"
    assert CliRunner().invoke(main, ["ledger", "new", str(ledger)]).exit_code == 0
    with network(tmp_path, graphs.path(3), [None] * 3, **settings) as net:
        write_files(net, data)
        given = {name: ["--value-file", str(net.folder / f"{name}.csv")] for name in net.charter.names}
        others = [net.start(name, given=given[name]) for name in net.charter.names[1:]]
        first = net.start("p0", "--ledger", str(ledger), given=given["p0"]).wait()
        assert first.code == 0, first.err
        assert all(one.wait().code == 0 for one in others)
    shown = CliRunner().invoke(main, ["ledger", "show", str(ledger), "--json"])
    assert json.loads(shown.stdout)["bits"] > 0


def test_too_few_values_are_noticed_before_anything_is_asked(tmp_path: Path) -> None:
    """Five answers about five values: everybody has announced how many it has, and nobody has said more."""
    statistics = ["min", "max", "median", "mean", "variance"]
    values = [float(k) for k in (48, 21, 37, 5, 90)]
    with network(tmp_path, graphs.ring(5), values, statistics=statistics, **PUBLIC) as net:
        ends = net.run()
        assert {end.code for end in ends} == {4}
        assert all("nothing was asked: the answers are 5 equations about 4 values" in end.err for end in ends)
        own = read_journal(net.journal("p0"))
        assert sum(isinstance(each, Inputs) for each in own) == 1, "the announcements, and nothing after them"
        again = net.start("p0").wait()
        assert again.code == 4
        assert "nothing was asked" in again.err


# Cells of a histogram: edges on the grid, halfway and elsewhere, and beyond the bounds.
HISTOGRAMS: dict[str, tuple[dict[str, Any], list[list[float]], list[str]]] = {
    "whole": (
        {"resolution": 1, "bounds": [0, 4]},
        [[0, 1, 1], [2, 2, 2], [3, 4]],
        ["-0.5,0.5,1.5,2.5,3.5,4.5", "0.5,1.5,3.5", "1,2,4", "-9,-5,2,90"],
    ),
    "tenths": (
        {"resolution": 0.1, "bounds": [-1, 1]},
        [[0.1, 0.3, 0.25], [0.7, -0.15], [0.35, 0.05, 0.6]],
        ["-0.1,0.1,0.3,0.7", "-0.2,0.05,0.35,0.6", "0.3,0.30001", "-0.25,0.65"],
    ),
    "floats": (
        {"bounds": [-1, 1]},
        [[0.1, 0.3, 5e-324], [0.7, -0.15], [0.35, 0.6]],
        ["0,0.1,0.3", "-1e9,-0.15,0.3,0.7", "0.6,1e300"],
    ),
}


@pytest.mark.parametrize("case", HISTOGRAMS)
def test_histograms_are_those_of_numpy_of_the_rounded_values(tmp_path: Path, case: str) -> None:
    public, data, edges = HISTOGRAMS[case]
    asked = [f"histogram:{each}" for each in edges]
    out = str(tmp_path / "result.json")
    settings = {"method": "search", "statistics": asked, "columns": [{"name": "los"}], **public}
    with network(tmp_path, graphs.complete(3), [None] * 3, **settings) as net:
        for name, values in zip(net.charter.names, data, strict=True):
            path = net.folder / f"{name}.csv"
            path.touch(mode=0o600)
            path.write_text("los\n" + "".join(f"{value!r}\n" for value in values))
        ends = run(net, "--out", out)
        checked = CliRunner().invoke(main, ["verify", out, "--charter", str(net.charter_file), "--json"])
    pooled = [value for part in data for value in part]
    if "resolution" in public:
        step = Fraction(str(public["resolution"]))
        pooled = [float(round(Fraction(value) / step) * step) for value in pooled]
    right = [np.histogram(pooled, [float(edge) for edge in each.split(",")])[0].tolist() for each in edges]
    for found in (*(end.answer["statistics"] for end in ends), json.loads(checked.stdout)["statistics"]):
        assert found == dict(zip(asked, right, strict=True))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda text: text.replace("los", "stay"), (), "no column 'los'; there are"),
        (lambda text: text + "9,1,48213\n", (), "los of p0 is not a number between the charter's bounds, 0 and 100"),
        (lambda text: text + "9,1,\n", (), "column 'los': missing; fill it in, or leave such rows out with --missing"),
        (lambda text: text + "9,1,48213x\n", (), "not a number"),
        (lambda text: "id,cost,los\n", (), "no rows"),
        (lambda text: text.replace(",", ";"), (), "say how the file is written, as in --csv semicolon"),
        (
            lambda text: text.replace(",", ";") + "9;1;48213.5\n",
            ("--csv", "semicolon"),
            "not written with a decimal comma",
        ),
        (lambda text: text, ("--column", "cots"), "no column 'cots'; did you mean cost?"),
    ],
)
def test_a_bad_file_is_told_to_its_owner_alone(tmp_path: Path, change: Any, options: Any, words: str) -> None:
    settings = {**PUBLIC, "statistics": ["median"], "columns": [{"name": "los"}]}
    with network(tmp_path, graphs.path(3), [None] * 3, **settings) as net:
        write_files(net, tables(sites=3))
        path = net.folder / "p0.csv"
        path.write_text(change(path.read_text()))
        end = net.start("p0", *options, given=["--value-file", str(path)]).wait()
        assert end.code == 2
        assert words in end.err
        assert "48213" not in end.err
        assert end.err.count("\n") == 1
        assert net.written() == []


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    settings = {**PUBLIC, "statistics": ["median"], "columns": [{"name": "los"}]}
    with network(tmp_path, graphs.path(3), [None] * 3, **settings) as net:
        write_files(net, tables(sites=3))
        path = net.folder / "p0.csv"
        path.chmod(0o644)
        end = net.start("p0", given=["--value-file", str(path)]).wait()
        assert (end.code, "chmod 600" in end.err) == (2, True)


def test_killed_it_goes_on_with_the_same_table(tmp_path: Path) -> None:
    data = tables(seed=3)
    settings = {**PUBLIC, "statistics": ["quartiles", "mean", "mad"], "columns": [{"name": "los"}], "verify": False}
    with network(tmp_path, graphs.ring(5), [None] * 5, **settings) as net:
        write_files(net, data)
        given = {name: ["--value-file", str(net.folder / f"{name}.csv")] for name in net.charter.names}
        others = [net.start(name, given=given[name]) for name in net.charter.names[1:]]
        first = net.start("p0", given=given["p0"])
        while not net.journal("p0").exists() or net.journal("p0").stat().st_size < 500:
            assert first.alive
        first.kill()
        ends = [net.start("p0", given=given["p0"]).wait(), *(one.wait() for one in others)]
        found = [end.answer["statistics"] for end in ends]
        assert all(each == found[0] for each in found)
        own = np.concatenate(data)[:, 0]
        assert found[0]["mean"] == pytest.approx(own.mean(), rel=1e-15)
