"""Every claim from the data at reduced size; and the same rules on doctored data, where they must say otherwise.

A test has its figure's name in its own: by that, `conftest.py` sends all tests of a figure to one process.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from midst.engines.ensemble import NEVER
from midst.studies.paper import beyond, fig1, fig2, fig3, fig4
from midst.studies.paper.choices import FIFTEEN
from midst.studies.paper.claims import Case, Claim
from midst.studies.paper.gallery import FIGURES, tabulate
from midst.studies.paper.runs import StudySettings, compare

RUNS = {"fig1": 40, "fig2": 40, "fig3": 24, "fig4": 16, "beyond": 16}


# of the paper, by whom a reader finds them there
QUOTED = {
    "the convergence of the entire network",
    "all nodes, except for the one holding the median value, satisfy x_i(t) ≠ s_i for all t",
    "nodes holding values above the median",
    "may encounter a plateau",
    "privacy guarantees are only achievable for half of the nodes whose values lie below the median",
    "only half of the nodes satisfy the privacy condition",
    "the plateau still exists, however, noise offsets are introduced in the private value",
    "a reduction in accuracy",
    "a denser topology, with a higher degree d,",
    "allowing more nodes to securely preserve their values",
    "a larger value of c results in a smaller window, thus enhancing the ability of more nodes to securely preserve "
    "their values",
    "to balance efficiency and privacy",
    "if node i never transmits s_i to its neighboring nodes, no information about s_i will be disclosed",
}


class Made(dict[str, Any]):
    """The numbers of every figure, made when first asked for."""

    def __missing__(self, name: str) -> Any:
        self[name] = FIGURES[name].run(StudySettings(runs=RUNS[name]))
        return self[name]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return Made()


def find(claims: list[Claim], start: str) -> Claim:
    (claim,) = [claim for claim in claims if claim.text.startswith(start)]
    return claim


def doctored(measured: dict[Any, Any], **changes: Any) -> dict[Any, Any]:
    """The same outcomes, with some of their arrays passed through a function."""

    def change(found: Any) -> Any:
        if isinstance(found, dict):
            return found | {name: each(found[name]) for name, each in changes.items()}
        return found._replace(**{name: each(getattr(found, name)) for name, each in changes.items()})

    return {
        key: [change(each) for each in found] if isinstance(found, list) else change(found)
        for key, found in measured.items()
    }


def mean(case: Case) -> float:
    return float(np.mean(case.draws))


# Fig. 1


def test_fig1_claims(data: dict[str, Any]) -> None:
    found = fig1.claims(data["fig1"])
    exact = find(found, "“the convergence of the entire network”")
    assert exact.holds
    assert exact.failing == ()
    assert data["fig1"].error[-1] < 1e-11
    shown = find(found, "“all nodes, except")
    assert (shown.value, shown.holds) == (0, True)
    assert shown.held is not None
    assert 0 < shown.held < 12  # the draw was chosen: most do not look so
    assert find(found, "The median's holder always").holds
    often = find(found, "How often")
    assert often.holds is None
    assert often.value > 0.5
    assert 0.1 < mean(often) < 0.5
    share = {case.at: mean(case) for case in often.cases}
    assert share["c = 0.3"] < mean(often) < share["c = 10"]


def test_fig1_shows_the_median_and_nobody_else(data: dict[str, Any]) -> None:
    shown = data["fig1"]
    assert set(shown.median) == {np.median(shown.values)}
    others = shown.values != np.median(shown.values)
    assert np.array_equal(shown.inside.any(axis=0), ~others)
    assert (np.abs(shown.x - shown.values)[:, others] > 1e-6).all()


def test_fig1_can_fail(data: dict[str, Any]) -> None:
    measured = data["fig1"].measured
    nobody = doctored(measured, error=lambda e: e + 1e-3, first_inside=lambda t: np.full_like(t, NEVER))
    assert [each.holds for each in fig1.claims(replace(data["fig1"], measured=nobody))] == [
        False,
        True,
        None,
        False,
    ]
    everybody = fig1.claims(replace(data["fig1"], measured=doctored(measured, first_inside=np.zeros_like)))
    assert [each.holds for each in everybody] == [True, False, None, True]
    assert everybody[2].value == 0


def test_fig1_of_an_even_number_ends_between_the_middle_values() -> None:
    own = {"values": (4.0, 1.0, 3.0, 2.0), "n": 4}
    made = fig1.run(StudySettings(runs=4, draws=2, own=own))
    assert made.median == (2.0, 3.0)
    assert made.error[-1] < 1e-11
    (found,) = made.measured.values()
    assert len(found) == 3  # the graph is drawn anew
    assert (found[0].error <= 1e-6).all()
    assert set(found[0].side.flat) == {-1, 1}


# Fig. 2


def test_fig2_claims(data: dict[str, Any]) -> None:
    found = fig2.claims(data["fig2"])
    above = find(found, "“nodes holding values above")
    assert above.holds
    assert above.value == mean(above) == 1
    only = find(found, "“privacy guarantees")
    assert only.holds
    assert only.held == 24
    held = {case.at: case.held for case in only.cases}
    assert held["c = 10"] < 20 < held["c = 3"]  # x starts at −μ/c = 1, not above the data
    half = find(found, "“only half")
    assert half.holds
    assert mean(half) < 0.42
    below = find(found, "How many of the nodes below")
    share = {case.at: mean(case) for case in below.cases}
    assert share["c = 0.3"] < mean(below) < share["c = 3"]
    assert share["n = 15"] > 0.9
    assert find(found, "“the plateau still exists").holds
    cost = find(found, "“a reduction in accuracy”")
    assert cost.holds
    costs = {case.at: mean(case) for case in cost.cases}
    assert costs["offset σ = 0.03"] < mean(cost) < costs["offset σ = 0.3"]


def test_fig2_shows_plateaus_at_what_is_held(data: dict[str, Any]) -> None:
    shown = data["fig2"]
    for run in (shown.plain, shown.blurred):
        above = run.held > run.median[0]
        assert run.inside[:, above].any(axis=0).all()
        assert np.array_equal(np.broadcast_to(run.held, run.x.shape)[run.inside], run.x[run.inside])
    assert np.array_equal(shown.plain.held, shown.plain.values)
    assert np.array_equal(shown.blurred.values, shown.plain.values)
    offset = shown.blurred.held - shown.blurred.values
    assert (offset != 0).all()
    assert np.abs(offset).max() < 0.5


def test_fig2_can_fail(data: dict[str, Any]) -> None:
    def never(t: Any) -> Any:
        return np.full_like(t, NEVER)

    plain, blurred = data["fig2"].plain, data["fig2"].blurred
    unmoved = replace(
        data["fig2"],
        plain=replace(plain, measured=doctored(plain.measured, first_inside=never)),
        blurred=replace(
            blurred, measured=doctored(blurred.measured, first_inside=never, error=lambda error: 0 * error)
        ),
    )
    assert {each.holds for each in fig2.claims(unmoved) if each.place} == {False}


def test_fig2_is_drawn_where_nobody_is_caught(data: dict[str, Any]) -> None:
    plain = data["fig2"].plain
    fig2.draw(replace(data["fig2"], plain=replace(plain, inside=np.zeros_like(plain.inside)))).draw_without_rendering()


# Fig. 3


def test_fig3_claims(data: dict[str, Any]) -> None:
    sparse, dense = fig3.claims(data["fig3"])
    assert sparse.holds
    assert sparse.held == 24
    assert mean(sparse) > 0.2
    assert 0 < mean(dense) < 0.1
    assert dense.held is not None
    assert 12 < dense.held < 24  # a single draw of the data may say otherwise
    assert {case.at: mean(case) for case in dense.cases}["c = 10"] < 0.02  # where nearly nobody is exposed on either


def test_fig3_over_24_draws_of_the_data() -> None:
    """As found before, with other draws. 24 leave a mean open by 0.12/√24 = 0.025: not every seed is as near."""
    found = compare("graph", fig3.TOPOLOGIES, {FIFTEEN: 100}, StudySettings(seed=7, workers=1))
    means = np.array(found.means)
    assert means.shape == (24, 3)
    assert means.mean(axis=0) == pytest.approx([0.48, 0.81, 0.845], abs=0.02)
    assert means.std(axis=0, ddof=1) == pytest.approx([0.12, 0.07, 0.06], abs=0.03)


def test_fig3_can_fail(data: dict[str, Any]) -> None:
    measured = data["fig3"].measured
    swapped = {
        each: [dict(zip(outcomes, reversed(outcomes.values()), strict=True)) for outcomes in draws]
        for each, draws in measured.items()
    }
    assert {claim.holds for claim in fig3.claims(replace(data["fig3"], measured=swapped))} == {False}
    equal = {each: [dict.fromkeys(outcomes, outcomes["rgg"]) for outcomes in draws] for each, draws in measured.items()}
    assert {claim.holds for claim in fig3.claims(replace(data["fig3"], measured=equal))} == {False}


# Fig. 4


def test_fig4_claims(data: dict[str, Any]) -> None:
    safer, price, steps = fig4.claims(data["fig4"])
    assert safer.holds
    assert safer.held == 24
    assert safer.failing == ()
    gains = [mean(case) for case in steps.cases]
    assert gains[:3] == sorted(gains[:3], reverse=True)
    assert min(gains[:3]) > 0.03
    assert price.holds
    assert "ring" in price.failing  # there the tail is so slow that c does not tell


def test_fig4_can_fail(data: dict[str, Any]) -> None:
    measured = data["fig4"].measured
    unmoved = {each: [dict.fromkeys(outcomes, outcomes[1.0]) for outcomes in draws] for each, draws in measured.items()}
    assert {claim.holds for claim in fig4.claims(replace(data["fig4"], measured=unmoved))[:2]} == {False}
    backwards = {
        each: [dict(zip(outcomes, reversed(outcomes.values()), strict=True)) for outcomes in draws]
        for each, draws in measured.items()
    }
    assert fig4.claims(replace(data["fig4"], measured=backwards))[0].holds is False


# Beyond


def test_beyond_claims(data: dict[str, Any]) -> None:
    found = beyond.claims(data["beyond"])
    clear, sealed, saved = found[:3]
    assert [bool(each.place) for each in found] == [True] + [False] * (len(found) - 1)
    assert clear.holds is False
    assert len(clear.failing) == len(clear.cases)
    assert 1.0 < clear.low < clear.high < 1.5
    bits = {case.at: case.value for case in sealed.cases}
    assert bits["c = 30, σ = 10"] < 0.5 < sealed.value
    assert saved.low < 0  # σ = 0.1 is too little to hide a branch
    assert min(case.low for case in saved.cases if case.at in ("c = 10, σ = 1", "c = 10, σ = 10")) > 0
    for text in ("Repeats compose", "It takes fewer", "For an even"):
        assert find(found, text).holds, text
    repeats = next(iter(data["beyond"].repeats.values()))["exposed"].mean(axis=0)
    assert (np.diff(repeats) > 0).all()


def test_beyond_bits_on_secure_nodes_are_those_of_the_interval_they_leave(data: dict[str, Any]) -> None:
    """z(0) in the clear: a node on one side of everything it sent leaks the mass of that side, and no more."""
    bits = data["beyond"].bits[beyond.GRID[0]]["clear"]
    assert np.nanmin(bits) > 0
    assert np.isnan(bits).any(axis=1).all()  # the median's holder is exposed in every run
    far = data["beyond"].bits[beyond.replace(beyond.FIFTEEN, c=30.0)]["clear"]
    assert np.nanmedian(far) == pytest.approx(1.0, abs=0.35)


def test_beyond_can_fail(data: dict[str, Any]) -> None:
    silent = replace(
        data["beyond"],
        bits=doctored(data["beyond"].bits, clear=np.zeros_like, sealed=np.zeros_like),
        repeats=doctored(data["beyond"].repeats, exposed=np.ones_like),
        finish=doctored(data["beyond"].finish, bits=lambda bits: bits[:, ::-1] + [1, 0], rounds=lambda t: t[:, ::-1]),
        limits=doctored(data["beyond"].limits, position=np.zeros_like),
    )
    found = beyond.claims(silent)
    assert [claim.holds for claim in found] == [True, None, None, False, None, False, False]


# All of them


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_are_legible(name: str, data: dict[str, Any]) -> None:
    figure = FIGURES[name].draw(data[name])
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_xlabel() or axes.get_xticklabels()
        assert axes.get_ylabel()
        legend = axes.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        assert not any(box.overlaps(each.get_window_extent()) for each in figure.axes)
        assert figure.bbox.fully_contains(*box.min)
        assert figure.bbox.fully_contains(*box.max)


@pytest.mark.parametrize("name", ["fig1", "fig2"])
def test_the_median_is_drawn(name: str, data: dict[str, Any]) -> None:
    axes = FIGURES[name].draw(data[name]).axes[-1]
    median, _ = data[name].median if name == "fig1" else data[name].blurred.median
    assert any(np.array_equal(line.get_ydata(), [median, median]) for line in axes.lines)


@pytest.mark.parametrize("name", FIGURES)
def test_tables_are_rectangular_and_finite(name: str, data: dict[str, Any]) -> None:
    rows = FIGURES[name].rows(data[name])
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert all(np.isfinite(value) for row in rows for value in row.values() if isinstance(value, float))


@pytest.mark.parametrize("name", FIGURES)
def test_claims_are_sentences_with_a_range(name: str, data: dict[str, Any]) -> None:
    found = FIGURES[name].claims(data[name])
    for claim in found:
        assert claim.text.endswith(".")
        assert claim.low <= claim.value <= claim.high
        assert claim.cases
        assert len(claim.draws) == (0 if name == "beyond" else 24)
        assert len({case.at for case in claim.cases}) == len(claim.cases)
    rows = [line for line in tabulate(found).splitlines() if line.startswith("| ") and not line.startswith("|  |")]
    assert len(rows) == sum(1 + len(claim.cases) for claim in found)


@pytest.mark.parametrize("name", FIGURES)
def test_the_papers_claims_are_quoted_from_it(name: str, data: dict[str, Any]) -> None:
    """Only what stands between quotation marks is the paper's; whatever it does not say has no place in it."""
    for claim in FIGURES[name].claims(data[name]):
        assert bool(claim.place) == claim.text.startswith("“")
        for part in re.findall("“(.*?)”", claim.text):
            assert all(each.strip() in QUOTED for each in part.split("…")), part
