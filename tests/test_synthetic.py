"""The synthetic families: the true log-density belongs to the rows that are drawn."""

import numpy as np
import pytest
from scipy import stats

from isde.synthetic import make_structured, structure_partition, structured_log_density
from oracles import monte_carlo


def test_the_density_of_two_rings_integrates_to_one():
    grid = np.linspace(-1.5, 1.5, 601)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    total = np.exp(structured_log_density(points, [2])).sum() * (grid[1] - grid[0]) ** 2
    assert total == pytest.approx(1, abs=1e-6)


def test_larger_blocks_are_the_mixtures_that_the_paper_says():
    X = np.random.default_rng(0).normal(size=(20, 4))
    xor = [
        stats.multivariate_normal([a, b, abs(a - b)], 0.08 * np.eye(3)).pdf(X[:, :3]) for a in (0, 1) for b in (0, 1)
    ]
    two = [stats.multivariate_normal(np.full(4, c), 0.2 * np.eye(4)).pdf(X) for c in (0, 1)]
    np.testing.assert_allclose(structured_log_density(X[:, :3], [3]), np.log(np.mean(xor, axis=0)))
    np.testing.assert_allclose(structured_log_density(X, [4]), np.log(np.mean(two, axis=0)))


def test_the_log_density_adds_over_blocks_and_ends_where_the_uniform_does():
    X, _ = make_structured([2, 1], 50, random_state=0)
    parts = [structured_log_density(X[:, block], [len(block)]) for block in structure_partition([2, 1])]
    np.testing.assert_allclose(structured_log_density(X, [2, 1]), np.sum(parts, axis=0))
    X[0, 2] = 1.5
    assert structured_log_density(X, [2, 1])[0] == -np.inf


@pytest.mark.parametrize("structure", [[3], [4]])
def test_the_rows_drawn_have_the_density_said(structure):
    """E[q(X) / p(X)] = 1 for any density q: here a wide Gaussian."""
    X, _ = make_structured(structure, 20_000, random_state=1)
    wide = stats.multivariate_normal(X.mean(axis=0), 0.3 * np.cov(X.T))  # lighter tails than the truth
    ratio = np.exp(wide.logpdf(X) - structured_log_density(X, structure))
    assert ratio.mean() == pytest.approx(1, abs=monte_carlo(len(X)) * max(1.0, ratio.std()))


def test_as_many_rows_lie_near_the_outer_ring_as_its_density_says():
    grid = np.linspace(-1.5, 1.5, 601)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    near = np.abs(np.hypot(*points.T) - 1) < 0.05
    mass = np.exp(structured_log_density(points[near], [2])).sum() * (grid[1] - grid[0]) ** 2
    X, _ = make_structured([2], 20_000, random_state=1)
    assert (np.abs(np.hypot(*X.T) - 1) < 0.05).mean() == pytest.approx(mass, abs=monte_carlo(len(X)))
