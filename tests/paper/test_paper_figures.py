"""Every claim from the data at reduced size; and the same rules on doctored data, where they must say otherwise.

A test has its figure's name in its own: by that, `conftest.py` sends all tests of a figure to one process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from midst.engines.ensemble import NEVER
from midst.studies.paper import beyond, fig1, fig2, fig3, fig4
from midst.studies.paper.claims import Claim
from midst.studies.paper.gallery import FIGURES, tabulate
from midst.studies.paper.runs import StudySettings

RUNS = {"fig1": 60, "fig2": 60, "fig3": 24, "fig4": 16, "beyond": 16}


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
    return {
        each: found._replace(**{name: change(getattr(found, name)) for name, change in changes.items()})
        for each, found in measured.items()
    }


# Fig. 1


def test_fig1_claims(data: dict[str, Any]) -> None:
    found = fig1.claims(data["fig1"])
    exact = find(found, "The nodes converge")
    assert exact.holds
    assert exact.failing == ()
    assert data["fig1"].error[-1] < 1e-11
    assert find(found, "In the draw shown").holds
    assert find(found, "The holder of the median").holds
    everywhere = find(found, "The same is true of every draw")
    assert not everywhere.holds
    assert 0.1 < everywhere.low < everywhere.value < everywhere.high < 0.5
    share = {case.at: case.value for case in everywhere.cases}
    assert share["c = 0.3"] < everywhere.value < share["c = 10"]


def test_fig1_shows_the_median_and_nobody_else(data: dict[str, Any]) -> None:
    shown = data["fig1"]
    assert shown.median == np.median(shown.values)
    assert np.array_equal(shown.exposed, shown.values == shown.median)
    others = shown.values != shown.median
    assert (np.abs(shown.x - shown.values)[:, others] > 1e-6).all()


def test_fig1_can_fail(data: dict[str, Any]) -> None:
    wrong = replace(
        data["fig1"],
        inside=np.ones_like(data["fig1"].inside),
        measured=doctored(
            data["fig1"].measured, error=lambda e: e + 1e-3, first_inside=lambda t: np.full_like(t, NEVER)
        ),
    )
    assert not any(claim.holds for claim in fig1.claims(wrong))


# Fig. 2


def test_fig2_claims(data: dict[str, Any]) -> None:
    found = fig2.claims(data["fig2"])
    above = find(found, "Every node above")
    assert above.holds
    assert above.failing == ("c = 10",)  # x starts at −μ/c = 1, not above the data
    half = find(found, "At most half")
    assert half.holds
    assert half.high < 0.42
    below = {case.at: case.value for case in find(found, "The nodes below").cases}
    assert below["c = 0.3"] < find(found, "The nodes below").value < below["c = 3"]
    assert below["n = 15"] > 0.9
    for text in ("With an offset the plateaus", "A plateau then tells", "The offset costs"):
        assert find(found, text).holds, text
    assert find(found, "With an offset the plateaus").failing == ()
    cost = {case.at: case.value for case in find(found, "The offset costs").cases}
    assert cost["offset σ = 0.03"] < find(found, "The offset costs").value < cost["offset σ = 0.3"]


def test_fig2_shows_plateaus_at_what_is_held(data: dict[str, Any]) -> None:
    shown = data["fig2"]
    for run in (shown.plain, shown.blurred):
        above = run.held > run.median
        assert run.inside[:, above].any(axis=0).all()
        assert np.array_equal(np.broadcast_to(run.held, run.x.shape)[run.inside], run.x[run.inside])
    assert np.array_equal(shown.plain.held, shown.values)
    offset = shown.blurred.held - shown.values
    assert (offset != 0).all()
    assert np.abs(offset).max() < 0.5


def test_fig2_can_fail(data: dict[str, Any]) -> None:
    unmoved = replace(
        data["fig2"], measured=doctored(data["fig2"].measured, first_inside=lambda t: np.full_like(t, NEVER))
    )
    assert [claim.holds for claim in fig2.claims(unmoved)[:3]] == [False, False, True]
    for part, change, text in (
        ("plateaus", {"shift": lambda shift: 1e-15 * shift}, "With an offset"),
        ("plateaus", {"shift": lambda shift: 1.5 * shift}, "A plateau then tells"),
        ("measured_blurred", {"error": lambda error: 0 * error}, "The offset costs"),
    ):
        wrong = replace(data["fig2"], **{part: doctored(getattr(data["fig2"], part), **change)})
        assert not find(fig2.claims(wrong), text).holds, text


# Fig. 3


def test_fig3_claims(data: dict[str, Any]) -> None:
    found = fig3.claims(data["fig3"])
    assert found[0].holds
    assert found[0].low > 0.2
    assert found[1].holds
    assert 0 < found[1].value < 0.1
    assert "c = 10" in found[1].failing  # where nearly nobody is exposed on either
    shares = [outcome.secure_share.mean() for outcome in data["fig3"].drawn.values()]
    assert shares == sorted(shares)
    assert shares == pytest.approx([0.48, 0.80, 0.83], abs=0.06)


def test_fig3_can_fail(data: dict[str, Any]) -> None:
    swapped = {
        each: dict(zip(outcomes, reversed(outcomes.values()), strict=True))
        for each, outcomes in data["fig3"].measured.items()
    }
    assert not any(claim.holds for claim in fig3.claims(fig3.Data(swapped)))
    equal = {each: dict.fromkeys(outcomes, outcomes["rgg"]) for each, outcomes in data["fig3"].measured.items()}
    assert not any(claim.holds for claim in fig3.claims(fig3.Data(equal)))


# Fig. 4


def test_fig4_claims(data: dict[str, Any]) -> None:
    safer, steps, price = fig4.claims(data["fig4"])
    assert safer.holds
    assert safer.failing == ()
    gains = [case.value for case in steps.cases]
    assert gains[:3] == sorted(gains[:3], reverse=True)
    assert all(case.holds for case in steps.cases[:3])
    assert price.holds
    assert "ring" in price.failing  # there the tail is so slow that c does not tell


def test_fig4_can_fail(data: dict[str, Any]) -> None:
    measured = data["fig4"].measured
    unmoved = {each: dict.fromkeys(outcomes, outcomes[1.0]) for each, outcomes in measured.items()}
    assert not any(claim.holds for claim in fig4.claims(fig4.Data(unmoved)))
    backwards = {
        each: dict(zip(outcomes, reversed(outcomes.values()), strict=True)) for each, outcomes in measured.items()
    }
    assert not any(claim.holds for claim in fig4.claims(fig4.Data(backwards))[:2])


# Beyond


def test_beyond_claims(data: dict[str, Any]) -> None:
    found = beyond.claims(data["beyond"])
    clear, sealed, saved = found[:3]
    assert not clear.holds
    assert len(clear.failing) == len(clear.cases)
    assert 1.0 < clear.low < clear.high < 1.5
    assert not sealed.holds
    bits = {case.at: case.value for case in sealed.cases}
    assert bits["c = 30, σ = 10"] < 0.5 < sealed.value
    assert not saved.holds  # σ = 0.1 is too little to hide a branch
    assert {"c = 10, σ = 1", "c = 10, σ = 10"}.isdisjoint(saved.failing)
    for text in ("Repeats compose", "The exact finish tells no more", "It takes fewer", "For an even"):
        assert find(found, text).holds, text
    repeats = next(iter(data["beyond"].repeats.values())).exposed.mean(axis=0)
    assert (np.diff(repeats) > 0).all()


def test_beyond_bits_on_secure_nodes_are_those_of_the_interval_they_leave(data: dict[str, Any]) -> None:
    """z(0) in the clear: a node on one side of everything it sent leaks the mass of that side, and no more."""
    bits = data["beyond"].bits[beyond.GRID[0]].clear
    assert np.nanmin(bits) > 0
    assert np.isnan(bits).any(axis=1).all()  # the median's holder is exposed in every run
    far = data["beyond"].bits[beyond.replace(beyond.FIFTEEN, c=30.0)].clear
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
    assert [claim.holds for claim in found] == [True, True] + [False] * (len(found) - 2)


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
    median = data[name].median if name == "fig1" else data[name].blurred.median
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
        assert claim.cases or claim.text.startswith("In the draw shown")
        assert len({case.at for case in claim.cases}) == len(claim.cases)
    assert len(tabulate(found).splitlines()) == 2 + sum(1 + len(claim.cases) for claim in found)
