"""Pictures in axes of others, in the widths of a journal, and with fonts that it takes."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from matplotlib.text import Text

import midst
from midst import InputError, graphs
from midst.cli import main, options
from midst.plots.results import draw_both
from midst.plots.style import WIDTH_NAMES, WIDTHS, Width
from midst.studies.sweep import run_sweep
from midst.studies.sweep.spec import parse_spec

VALUES = np.random.default_rng(5).standard_normal(9)
GRAPH = graphs.rgg(9, rng=1)
GRIDS: dict[str, dict[str, Any]] = {
    "numbers": {"graph": ["ring", "complete"], "n": [5, 9]},
    "words": {"graph": "ring", "n": 5, "method": ["consensus", "search"], "c": [1.0, 3.0], "adversary": "eavesdropper"},
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of everything that can be drawn."""
    problem = midst.Problem(GRAPH, VALUES, bounds=(-4, 4))
    consensus = midst.solve(problem, "consensus", rng=7, record="all", keep_values=True)
    search = midst.solve(problem, "search")
    runs = midst.Problem(GRAPH, np.random.default_rng(1).normal(size=(9, 30)))
    found = {
        "consensus": consensus,
        "search": search,
        "trace": consensus.trace,
        "trace of a search": search.trace,
        "leakage": midst.audit(consensus.trace),
        "ensemble": midst.solve_ensemble(runs, "consensus", rng=1),
        "ensemble of searches": midst.solve_ensemble(runs, "search"),
    }
    for name, grid in GRIDS.items():
        folder = tmp_path_factory.mktemp("sweeps") / name
        found[f"sweep over {name}"] = run_sweep(parse_spec({"runs": 2, "grid": grid}), folder)
    return found


KINDS = """consensus,search,trace,trace of a search,leakage,ensemble,ensemble of searches,
sweep over numbers,sweep over words""".replace("\n", "").split(",")
PANELS = {
    "consensus": ("course", "network"),
    "search": ("course", "network"),
    "leakage": ("bits", "bounds", "share"),
    "ensemble": ("rounds", "exposed"),
    "sweep over numbers": ("rounds", "exposed"),
    "sweep over words": ("rounds", "exposed", "bits"),
}


def texts(figure: Any) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


@pytest.mark.parametrize("kind", KINDS)
def test_into_given_axes(drawn: dict[str, Any], kind: str) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert drawn[kind].plot(right) is right
    assert drawn[kind].plot(ax=right) is right
    assert right.has_data()
    assert not left.has_data()
    assert figure.get_suptitle() == ""
    figure.draw_without_rendering()


@pytest.mark.parametrize(("kind", "of"), [(kind, of) for kind, panels in PANELS.items() for of in panels])
def test_one_panel_alone(drawn: dict[str, Any], kind: str, of: str) -> None:
    whole, alone = drawn[kind].plot(), drawn[kind].plot(of=of)
    assert len(whole.axes) == len(PANELS[kind])
    [axes] = alone.axes
    titles = [each.get_title() for each in whole.axes]
    assert axes.get_title() in titles
    given = Figure().subplots()
    assert drawn[kind].plot(given, of=of).get_title() == axes.get_title()
    if of == PANELS[kind][0]:
        assert drawn[kind].plot(Figure().subplots()).get_title() == axes.get_title()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", WIDTH_NAMES)
def test_in_the_widths_of_a_journal(drawn: dict[str, Any], kind: str, width: Width) -> None:
    """As wide as said, no text of it outside, nor so small that nobody reads it; a caption says what it is."""
    figure = drawn[kind].plot(width=width)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == WIDTHS[width]
    assert figure.get_figheight() < 9.5
    assert figure.get_suptitle() == ""
    assert min(text.get_fontsize() for text in texts(figure)) >= 6
    assert_nothing_is_cut(figure)


def assert_nothing_is_cut(figure: Any) -> None:
    """No words lie outside, to the left or the right; ticks beyond an axis are not drawn, and so not looked at."""
    for axes in figure.axes:
        legend = axes.get_legend()
        words = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts, *(legend.get_texts() if legend else ())]
        for text in words:
            if text.get_text():
                extent = text.get_window_extent()
                assert extent.x0 >= figure.bbox.x0 - 1, text.get_text()
                assert extent.x1 <= figure.bbox.x1 + 1, text.get_text()


@pytest.mark.parametrize("width", WIDTH_NAMES)
def test_both_methods(drawn: dict[str, Any], width: Width) -> None:
    figure = draw_both(drawn["consensus"], drawn["search"], width=width)
    figure.draw_without_rendering()
    assert len(figure.axes) == 4
    assert figure.get_figwidth() == WIDTHS[width]
    assert_nothing_is_cut(figure)


@pytest.mark.parametrize("kind", KINDS)
def test_fonts_of_a_pdf_are_of_type_42(drawn: dict[str, Any], kind: str) -> None:
    before, buffer = dict(mpl.rcParams), io.BytesIO()
    drawn[kind].plot().savefig(buffer, format="pdf")
    fonts = set(re.findall(rb"/Subtype /((?:CIDFont)?Type[023]|TrueType)\b", buffer.getvalue()))
    assert fonts
    assert b"Type3" not in fonts
    assert dict(mpl.rcParams) == before


def test_private_values_are_drawn_where_asked_for_and_held(drawn: dict[str, Any]) -> None:
    def legend(axes: Any) -> list[str]:
        return [text.get_text() for text in axes.get_legend().get_texts()]

    shown = drawn["trace"].plot(Figure().subplots(), values=True)
    assert any("private values" in name for name in legend(shown))
    assert not any("private" in name for name in legend(drawn["trace"].plot(Figure().subplots())))
    with pytest.raises(InputError, match="does not hold the private values"):
        drawn["trace of a search"].plot(values=True)


def test_what_is_not_there_is_refused(drawn: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"of must be one of network, course; did you mean course\?"):
        drawn["consensus"].plot(of="corse")
    with pytest.raises(InputError, match="width must be one of column, page"):
        drawn["ensemble"].plot(width="wide")
    with pytest.raises(InputError, match="leave width out"):
        drawn["leakage"].plot(Figure().subplots(), width="page")
    with pytest.raises(InputError, match="axes of matplotlib"):
        drawn["leakage"].plot(ax=Figure())
    with pytest.raises(InputError, match="of must be one of rounds, exposed"):
        drawn["sweep over numbers"].plot(of="bits")
    noisy = midst.Search(noise=midst.dp.JointNoise(epsilon=1, delta=1e-6))
    result = midst.median(np.arange(500.0) % 50, "ring", method=noisy, bounds=(0, 50), resolution=1, rng=1)
    with pytest.raises(InputError, match="with noise is not drawn"):
        result.trace.plot()


def test_a_run_without_a_record_is_refused() -> None:
    result = midst.median(VALUES, GRAPH, rng=1, method="consensus")
    empty = {"t": result.trace.t[:0], "x": result.trace.x[:0], "branch": result.trace.branch[:0]}
    for name, array in empty.items():
        object.__setattr__(result.trace, name, array)
    for held in (result, result.trace):
        with pytest.raises(InputError, match="no iteration was recorded"):
            held.plot()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert options.WIDTH_NAMES == WIDTH_NAMES
    run = ["run", "--graph", "rgg", "--nodes", "9", "--seed", "7"]
    for extra in ([], ["--method", "both"]):
        done = CliRunner().invoke(main, [*run, *extra, "--plot", "run.pdf", "--width", "column"])
        assert done.exit_code == 0, done.stderr
        [box] = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) [\d.]+ \]", Path("run.pdf").read_bytes())
        assert float(box) == pytest.approx(72 * WIDTHS["column"])
    done = CliRunner().invoke(main, [*run, "--width", "column"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--width is that of a picture; give --plot too" in done.stderr
