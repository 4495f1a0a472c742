"""Bits, bounds and sides of one node, against closed forms worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import midst
from midst import graphs
from midst.privacy.audit import audit
from midst.privacy.posterior import Piece, Posterior, cell, single
from midst.privacy.priors import Laplace, Normal, Uniform


def three(values, iterations, prior=None, resolution=None):
    """A path of three, z(0) = 0, c = 1: the first steps can be worked by hand."""
    problem = midst.Problem(graphs.path(3), values)
    trace = midst.solve(
        problem, midst.Consensus(c=1.0, mu=0.0, sigma=0.1, z0=np.zeros(4), stop=midst.After(iterations)), record="audit"
    ).trace
    return audit(trace, prior=prior, resolution=resolution)


def test_first_message_of_three_nodes():
    """x(0) = clip(s, −1/d, 1/d): −1 from above, 0.1 itself, 1 from below."""
    report = three([-2.0, 0.1, 3.0], 1)
    assert report.exposed.tolist() == [False, True, False]
    assert report.exposed_at.tolist() == [-1, 0, -1]
    assert report.side.tolist() == ["below", "at", "above"]
    assert report.lower.tolist() == [-math.inf, 0.1, 1.0]
    assert report.upper.tolist() == [-1.0, 0.1, math.inf]
    inside = norm.cdf(0.1005) - norm.cdf(0.0995)
    assert report.bits == pytest.approx(-np.log2([norm.cdf(-1), inside, norm.sf(1)]), rel=1e-9)


def test_second_message_of_three_nodes():
    """S(1) = −c·a(0): the ends move by 0.1, to −0.9 and 1.1; only the bound above 1 is new."""
    report = three([-2.0, 0.1, 3.0], 2)
    assert report.upper[0] == -1.0
    assert report.lower[2] == pytest.approx(1.1)
    assert report.bits[2] == pytest.approx(-math.log2(norm.sf(1.1)))
    assert report.share_over_time.tolist() == pytest.approx([2 / 3, 2 / 3])


def test_two_sided_interval():
    """s_0 = −1.05 lies just below −1, sent at t = 0 from above; nothing later is closer from that side."""
    report = three([-1.05, 0.1, 3.0], 40)
    assert report.lower[0] <= -1.05 <= report.upper[0]
    assert report.upper[0] == pytest.approx(-1.0)


def test_other_priors_on_the_same_run():
    uniform = three([-2.0, 0.1, 3.0], 1, Uniform(-5, 5), 0.01)
    assert uniform.bits == pytest.approx(-np.log2([0.4, 0.001, 0.4]))
    laplace = three([-2.0, 0.1, 3.0], 1, [Laplace(), Uniform(0, 1), Laplace()], 0.5)
    assert laplace.bits[0] == pytest.approx(-math.log2(0.5 * math.exp(-1)))
    assert laplace.bits[1] == pytest.approx(2.0)  # half of the cell (−0.25, 0.25) lies in (0, 1)


def test_prior_without_mass_names_the_node_and_no_number():
    with pytest.raises(midst.InputError, match="node 2") as refusal:
        three([-2.0, 0.1, 3.125], 1, Uniform(-3, 0.5))
    assert "3.125" not in str(refusal.value)
    with pytest.raises(midst.InputError, match="node 1"):
        three([-2.0, 0.1, 3.0], 1, [Normal(), Uniform(0.2, 0.3), Normal()])


def bits_over_cells(posterior, r):
    """KL(posterior ‖ N(0, 1)) over all cells of width r, summed one by one."""
    edges = (np.arange(-1200, 1201) - 0.5) * r
    before = np.diff(norm.cdf(edges))
    after = np.zeros_like(before)
    for piece in posterior.pieces:
        if piece.atom:
            after[np.searchsorted(edges, piece.lower, "right") - 1] += piece.probability
        else:
            cut = np.diff(norm.cdf(np.clip(edges, piece.lower, piece.upper)))
            after += piece.probability * cut / cut.sum()
    told = after > 0
    return float(np.sum(after[told] * np.log2(after[told] / before[told])))


@pytest.mark.parametrize("ends", [(0.7, math.inf), (-math.inf, 0.7), (0.697, 0.7), (0.6951, 0.7049), (0.3, 0.703)])
def test_a_point_within_an_interval_s_last_cell(ends):
    """The cell of a point is whole, though an interval ends in the middle of it."""
    posterior = Posterior(Normal(), (Piece(0.5, 0.7, 0.7), Piece(0.5, *ends)))
    reference = bits_over_cells(posterior, 0.01)
    assert posterior.bits(0.01) == pytest.approx(reference, abs=0.01)
    assert posterior.grid_bits(0.01) == pytest.approx(reference, abs=1e-9)


@pytest.mark.parametrize("value", [0.5, -0.5, 0.0, 1.49])
def test_a_point_anywhere_in_its_cell_tells_that_cell(value):
    """The lower end is in it: what rounds up there belongs to the cell above."""
    posterior = single(Normal(), 0, value, value)
    low, high = cell(value, 1.0)
    expected = -math.log2(norm.cdf(high) - norm.cdf(low))
    assert posterior.bits(1.0) == pytest.approx(expected)
    assert posterior.grid_bits(1.0) == pytest.approx(expected)


def test_mixture_bits_against_a_sum_over_cells():
    posterior = Posterior(
        Normal(),
        (Piece(0.3, -math.inf, -0.4), Piece(0.25, 0.7, 0.7), Piece(0.4, 0.55, math.inf), Piece(0.05, 0.1, 0.3)),
    )
    reference = bits_over_cells(posterior, 0.01)
    assert reference <= posterior.bits(0.01) <= reference + 0.01
    assert posterior.bounds == (-math.inf, math.inf)
    below, at, above = posterior.sides(0.7)
    assert at == 0.25
    assert below + at + above == pytest.approx(1)
    assert posterior.probability(-math.inf, posterior.median()) <= 0.5 + 1e-9
    assert posterior.value is None


def test_one_piece_is_the_closed_form_whatever_the_resolution():
    prior = Normal(2, 3)
    for lower, upper in ((-1.0, 0.5), (-math.inf, -7.0), (2.0, 2.0001), (90.0, math.inf)):
        posterior = single(prior, 0, lower, upper)
        for r in (1e-6, 0.1, 5.0):
            assert posterior.bits(r) == pytest.approx(-prior.log_mass(lower, upper) / math.log(2))
        assert lower < posterior.median() < upper
        half = posterior.probability(lower, posterior.median())
        assert half == pytest.approx(0.5, abs=1e-6)


def test_nothing_learnt_is_zero_bits():
    assert single(Normal(), 0, -math.inf, math.inf).bits(1e-3) == pytest.approx(0.0, abs=1e-12)


def test_cells_are_what_rounds_to_the_same_multiple():
    assert cell(0.1234, 0.01) == pytest.approx((0.115, 0.125))
    assert cell(-0.1234, 0.01) == pytest.approx((-0.125, -0.115))
