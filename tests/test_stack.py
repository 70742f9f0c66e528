"""The stack: mixtures by EM, kernels of a ladder of bandwidths, and their weights, against slow float64 twins."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import ks_2samp, kstest, multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

import isde
import oracles
from chunks import fit_one
from isde import ISDE, fit_blocks, score_subsets
from isde.engine import mixtures, stacking
from isde.errors import ISDEWarning
from isde.marginals.kde import KDEMarginal
from isde.marginals.scales import ScalesStack
from isde.marginals.stack import (
    FINAL_DOUBLINGS,
    FINAL_STEPS,
    SCORING_DOUBLINGS,
    SCORING_STEPS,
    StackBlock,
    StackMarginal,
)
from isde.synthetic import make_structured
from oracles import QUADRATURE, ROUNDING

FLOAT32_DENSITY = 2e-4
"""Nats. One log-density from float32 products, some tens in size."""

FLOAT32_EM = 2e-3
"""Nats, of a mean log-density. Dozens of steps of EM in float32 against the same in float64."""

LADDER = [0.5 / 2**i for i in range(8)]


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
@parametrize_with_checks([ISDE(marginal="stack", split="paper")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# --- slow twins ------------------------------------------------------------------------------------------------


def mixture_log_density(X, weights, means, covariances):
    logs = [
        np.log(w) + multivariate_normal(mean, covariance).logpdf(X).reshape(len(X))
        for w, mean, covariance in zip(weights, means, covariances, strict=True)
        if w > 0
    ]
    return logsumexp(logs, axis=0)


def with_floor(covariance):
    """A millionth of the squared spread, 1, added to each variance, and a millionth of itself."""
    covariance = covariance + 1e-6 * np.eye(len(covariance))
    return covariance + 1e-6 * np.diag(np.diag(covariance))


def em_step(X, weights, means, covariances):
    """One step in float64 for all but the first; components with fewer than two rows for each column go.

    The largest one stays.
    """
    alive = np.flatnonzero(weights)
    joint = np.column_stack(
        [np.log(weights[g]) + multivariate_normal(means[g], covariances[g]).logpdf(X).reshape(len(X)) for g in alive]
    )
    shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
    counts = shares.sum(axis=0)
    largest = 1 + np.argmax(counts[1:])
    kept = [i for i in range(1, len(alive)) if counts[i] >= 2 * X.shape[1] or i == largest]
    new = np.zeros_like(weights), means.copy(), covariances.copy()
    new[0][0] = weights[0]
    for i in kept:
        new[0][alive[i]] = (1 - weights[0]) * counts[i] / counts[kept].sum()
        new[1][alive[i]] = mean = shares[:, i] @ X / counts[i]
        new[2][alive[i]] = with_floor((shares[:, i] * (X - mean).T) @ (X - mean) / counts[i])
    return new


def halves(n_rows, weights, means, covariances):
    """Each component but the first in two along its longest axis, at half its variance there."""
    s, found = means.shape[1], [(weights[0], means[0], covariances[0])]
    for w, mean, covariance in list(zip(weights, means, covariances, strict=True))[1:]:
        if w < 4 * s / n_rows:
            found.append((w, mean, covariance))
            continue
        lengths, axes = np.linalg.eigh(covariance)
        step = np.sqrt(lengths[-1] / 2) * axes[:, -1]
        found += [(w / 2, mean + sign * step, with_floor(covariance - np.outer(step, step))) for sign in (-1, 1)]
    return tuple(np.array(part) for part in zip(*found, strict=True))


def slow_mixtures(X, doublings, steps):
    """Log-density functions of the Gaussian, and of the mixtures of 2, 4, ... components."""
    low, centre, high = np.percentile(X, [25, 50, 75], axis=0)
    deviation = np.sqrt(np.mean((X - centre) ** 2, axis=0))
    spread = np.minimum(np.maximum((high - low) / 1.349, deviation / 1000), deviation)
    Z, n = (X - centre) / spread, len(X)
    gaussian = Z.mean(axis=0), with_floor(np.atleast_2d(np.cov(Z.T, bias=True)))
    model = np.array([1, n]) / (n + 1), np.array([gaussian[0]] * 2), np.array([gaussian[1]] * 2)
    models = [model]
    for _ in range(doublings):
        model = halves(n, *model)
        for _ in range(steps):
            model = em_step(Z, *model)
        models.append(model)
    return [lambda x, m=m: mixture_log_density((x - centre) / spread, *m) - np.log(spread).sum() for m in models]


def best_weights(logs, prior):
    """Weights by a general optimiser: sum_i log sum_e w_e f_e(x_i) + log w_prior over the simplex."""
    densities = np.exp(logs - logs.max(axis=0))

    def loss(w):
        return -np.mean(np.log(w @ densities)) - np.log(w[prior]) / logs.shape[1]

    def slope(w):
        return -np.mean(densities / (w @ densities), axis=1) - (np.arange(len(w)) == prior) / w[prior] / logs.shape[1]

    found = minimize(
        loss,
        np.full(len(logs), 1 / len(logs)),
        jac=slope,
        bounds=[(1e-9, 1)] * len(logs),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.x / found.x.sum()


def slow_weights(logs, prior):
    """300 steps of EM in float64, or until no weight moves by 1e-5; what is below 1e-4 goes, and once more."""
    weights, n = np.full(len(logs), 1 / len(logs)), logs.shape[1]
    for _ in range(2):
        for _ in range(300):
            with np.errstate(divide="ignore"):
                joint = logs + np.log(weights)[:, None]
            shares = np.exp(joint - logsumexp(joint, axis=0))
            before, weights = weights, (shares.sum(axis=1) + (np.arange(len(logs)) == prior)) / (n + 1)
            if np.abs(weights - before).max() < 1e-5:
                break
        weights[(weights < 1e-4) & (np.arange(len(logs)) != prior)] = 0
        weights /= weights.sum()
    return weights


def experts(X, doublings):
    """A log-density function for each expert: kernels of the ladder, then mixtures."""
    kernels = [lambda x, h=h: oracles.kde_log_density(x, X, h) for h in LADDER]
    return kernels + slow_mixtures(X, doublings, SCORING_STEPS)


def slow_stack_score(X_fit, X_score, doublings, cv=5):
    held_out = np.empty((len(LADDER) + doublings + 1, len(X_fit)))
    for fold in oracles.contiguous_folds(len(X_fit), cv):
        others = np.delete(X_fit, fold, axis=0)
        held_out[:, fold] = [expert(X_fit[fold]) for expert in experts(others, doublings)]
    weights = slow_weights(held_out, prior=len(LADDER))
    logs = np.array([expert(X_score) for expert in experts(X_fit, doublings)])
    return logsumexp(logs, b=weights[:, None], axis=0).mean()


def clumps(rng, n, s, n_clumps=4):
    """Rows around a few centres in [0, 1]^s, with sizes and shapes of their own."""
    which = rng.choice(n_clumps, size=n, p=np.arange(1, n_clumps + 1) / sum(range(n_clumps + 1)))
    shapes = 0.07 * rng.normal(size=(n_clumps, s, s))
    noise = np.einsum("nrc,nc->nr", shapes[which], rng.normal(size=(n, s)))
    return rng.uniform(0.2, 0.8, size=(n_clumps, s))[which] + noise


def fold_numbers(n, cv=5):
    return np.repeat(np.arange(min(cv, n)), [len(fold) for fold in oracles.contiguous_folds(n, cv)])


# --- mixtures --------------------------------------------------------------------------------------------------


def a_start(rng, X, n_components):
    """A mixture somewhere near the rows."""
    s = X.shape[1]
    weights = rng.dirichlet(np.full(n_components, 5.0))
    covariances = np.array([a @ a.T + 0.05 * np.eye(s) for a in 0.3 * rng.normal(size=(n_components, s, s))])
    return weights, X[rng.integers(len(X), size=n_components)].copy(), covariances


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("s", [1, 2, 6])
@pytest.mark.parametrize("n", [40, 513, 1500])
def test_em_steps_equal_those_in_float64(rng, n, s, steps):
    X = rng.normal(size=(n, s)) @ rng.normal(size=(s, s)) + rng.integers(2, size=(n, 1))
    start = a_start(rng, X, 3)
    expected, found = start, tuple(part.copy() for part in start)
    for _ in range(steps):
        expected = em_step(X, *expected)
    mixtures._improve(np.ascontiguousarray(X.T, dtype=np.float32), *found, steps)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-4 * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("s", [1, 3])
def test_em_steps_never_lower_the_likelihood(rng, s):
    X = clumps(rng, 700, s) * 10
    rows, model = np.ascontiguousarray(X.T, dtype=np.float32), a_start(rng, X, 4)
    likelihoods = []
    for _ in range(12):
        likelihoods.append(mixture_log_density(X, *model).mean())
        mixtures._improve(rows, *model, 1)
    assert (np.diff(likelihoods) > -1e-5).all()
    assert likelihoods[-1] > likelihoods[0] + 0.1


@given(seed=st.integers(0, 10**6), s=st.integers(1, 6), n_components=st.integers(1, 16), dead=st.integers(0, 3))
def test_log_densities_equal_scipys(seed, s, n_components, dead):
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(30, s))
    weights, means, covariances = a_start(rng, X, n_components)
    weights[rng.permutation(n_components)[: min(dead, n_components - 1)]] = 0.0
    centre, spread = rng.normal(size=s), rng.uniform(0.1, 10, size=s)
    own = mixtures.Mixtures(centre, spread, [weights], [means], [covariances])
    expected = mixture_log_density(X, weights, means, covariances)
    found = own.log_densities(X * spread + centre, 0) + np.log(spread).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=FLOAT32_DENSITY)


def test_components_in_the_units_of_the_data_have_the_same_density(rng):
    X = clumps(rng, 400, 2) * [1e2, 1e-2] + [5e6, 3.0]
    grown = mixtures.grow_mixtures(X, 3, 10)
    for size in range(4):
        weights, means, covariances = grown.components(size)
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(1, abs=ROUNDING)
        expected = mixture_log_density(X, weights, means, covariances)
        np.testing.assert_allclose(grown.log_densities(X, size), expected, rtol=1e-5, atol=FLOAT32_DENSITY)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_grown_mixtures_equal_those_in_float64(rng, s):
    X, fresh = np.split(clumps(rng, 900, s), [600])
    grown = mixtures.grow_mixtures(X, SCORING_DOUBLINGS, SCORING_STEPS)
    for size, log_density in enumerate(slow_mixtures(X, SCORING_DOUBLINGS, SCORING_STEPS)):
        assert grown.log_densities(fresh, size).mean() == pytest.approx(log_density(fresh).mean(), abs=FLOAT32_EM)


def test_the_smallest_mixture_is_the_gaussian(rng):
    X = clumps(rng, 300, 3)
    expected = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X)
    np.testing.assert_allclose(mixtures.grow_mixtures(X, 0, 1).log_densities(X, 0), expected, rtol=0, atol=1e-3)


def test_a_component_with_too_few_rows_is_dropped_and_the_others_share_its_weight(rng):
    X = rng.normal(size=(200, 2))
    X[:3] += 30
    means = np.array([[0.0, 0.0], [0.0, 0.0], [30.0, 30.0]])
    start = np.array([0.1, 0.4, 0.5]), means, np.array(3 * [np.eye(2)])
    mixtures._improve(np.ascontiguousarray(X.T, dtype=np.float32), *start, 2)
    np.testing.assert_allclose(start[0], [0.1, 0.9, 0.0], rtol=0, atol=ROUNDING)


def test_the_first_component_stays_as_it_is_and_takes_far_rows(rng):
    X = rng.normal(size=(200, 2))
    X[:3] += 30
    wide = np.array([0.01, 0.99]), np.zeros((2, 2)), np.array([400 * np.eye(2), np.eye(2)])
    weights, means, covariances = (part.copy() for part in wide)
    mixtures._improve(np.ascontiguousarray(X.T, dtype=np.float32), weights, means, covariances, 9)
    for ours, theirs in zip((weights, means, covariances), wide, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(means[1], X[3:].mean(axis=0), rtol=0, atol=0.01)
    np.testing.assert_allclose(covariances[1], np.cov(X[3:].T, bias=True), rtol=0, atol=0.05)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 12])
@pytest.mark.parametrize("s", [1, 3, 6])
def test_few_rows_leave_one_gaussian(rng, n, s):
    X = rng.normal(size=(n, s))
    grown = mixtures.grow_mixtures(X, SCORING_DOUBLINGS, 3)
    assert all(weight.sum() == pytest.approx(1, abs=1e-6) for weight in grown.weights)
    assert all(np.isfinite(grown.log_densities(3 * X, size)).all() for size in range(SCORING_DOUBLINGS + 1))
    if n < 4 * s:
        assert [(weight > 0).sum() for weight in grown.weights] == [1] + [2] * SCORING_DOUBLINGS
        alive = [means[weight > 0] for weight, means in zip(grown.weights, grown.means, strict=True)]
        assert max(np.ptp(means, axis=0).max() for means in alive) < 1e-5


NASTY = {
    "duplicated rows": lambda X: np.repeat(X[:10], 20, axis=0),
    "one value": lambda X: X * [1, 0, 1],
    "one value but for one row": lambda X: np.where(np.arange(200)[:, None] == 7, X, [0, 0, 0] + X * [1, 0, 1]),
    "two equal columns": lambda X: X[:, [0, 0, 2]],
    "three equal columns": lambda X: X[:, [0, 0, 0]],
    "nearly equal columns": lambda X: X[:, [0]] + 1e-9 * X,
    "one column the sum of others": lambda X: np.column_stack([X[:, :2], X[:, :2].sum(axis=1)]),
    "five values": lambda X: np.round(X),
    "two values": lambda X: np.sign(X),
    "mostly zeros": lambda X: np.where(X > 1, X, 0),
    "an outlier": lambda X: X + 1e6 * (np.arange(200)[:, None] == 7),
    "outliers that are collinear": lambda X: X[:, [0, 0, 0]] + 1e6 * (np.arange(200)[:, None] < 9),
    "heavy tails": lambda X: np.sinh(3 * X),
    "far from zero": lambda X: X + 1e8,
    "large units": lambda X: 1e100 * X,
    "small units": lambda X: 1e-100 * X,
    "unlike units": lambda X: X * [1e-30, 1, 1e30],
}


@pytest.mark.parametrize("what", NASTY)
def test_nasty_rows_have_mixtures_with_proper_covariances(rng, what):
    X = NASTY[what](rng.normal(size=(200, 3)))
    grown = mixtures.grow_mixtures(X, SCORING_DOUBLINGS, SCORING_STEPS)
    for size in range(SCORING_DOUBLINGS + 1):
        assert np.isfinite(grown.log_densities(X, size)).all()
        assert (np.linalg.eigvalsh(grown.covariances[size][grown.weights[size] > 0]) > 0).all()
        assert grown.weights[size].sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("what", NASTY)
def test_nasty_rows_have_finite_scores(rng, what):
    X = NASTY[what](rng.normal(size=(200, 3)))[rng.permutation(200)]
    table = score_subsets(X[:120], X[120:], max_block_size=3, marginal="stack")
    assert np.isfinite(table.scores).all()
    block = fit_one(StackMarginal(), X)
    assert np.isfinite(block.score_samples(X)).all()


@pytest.mark.parametrize("excess", [-1e-3, 0.0, 1e-6, 1e-4, 0.1])
def test_a_covariance_spoilt_by_rounding_is_made_proper_with_as_little_as_it_takes(excess):
    spoilt = np.array([[4.0, 2 * (1 + excess), 0.0], [2 * (1 + excess), 1.0, 0.0], [0.0, 0.0, -1e-9]])
    proper = spoilt.copy()
    mixtures._make_proper(np.ones(1), np.zeros((1, 3)), proper[None])
    assert np.linalg.eigvalsh(proper)[0] > 0
    np.testing.assert_array_equal(proper - np.diag(np.diag(proper)), spoilt - np.diag(np.diag(spoilt)))
    added = np.diag(proper) / np.maximum(np.diag(spoilt), 1e-6) - 1
    assert added.max() < 20 * max(excess, 1e-6)


def test_units_and_offsets_of_columns_change_nothing_for_mixtures(rng):
    X = clumps(rng, 500, 3)
    factors, shifts = np.array([2.0**40, 2.0**-40, 1.0]), np.array([2.0**40, 0.0, -1024.0])
    here, there = (mixtures.grow_mixtures(rows, 4, 15) for rows in (X, X * factors + shifts))
    for size in range(5):
        moved = there.log_densities(X * factors + shifts, size) + np.log(factors).sum()
        assert moved.mean() == pytest.approx(here.log_densities(X, size).mean(), abs=FLOAT32_EM)


def test_a_far_row_does_not_blur_the_others(rng):
    X = clumps(rng, 500, 2)
    with_outlier = np.vstack([X, [1e5, -1e5]])
    here, there = (mixtures.grow_mixtures(rows, 4, 15).log_densities(X, 4).mean() for rows in (X, with_outlier))
    assert there > here - 0.2


# --- kernels ---------------------------------------------------------------------------------------------------


def truncated_kde(rows, centres, bandwidths):
    """Kernel densities without the kernels below 2^-30 (the first of each four bandwidths) or 2^-120 (the others)."""
    squares, s = ((rows[:, None] - centres) ** 2).sum(axis=2), rows.shape[1]
    logs = []
    for j, h in enumerate(bandwidths):
        exponents = -squares / (2 * h**2)
        exponents[exponents < -np.log(2) * (120 if j % 4 else 30)] = -np.inf
        logs.append(logsumexp(exponents, axis=1) - np.log(len(centres)) - s * np.log(h * np.sqrt(2 * np.pi)))
    return np.maximum(logs, -1e30)


@pytest.mark.parametrize("s", [1, 2, 4])
def test_kernel_densities_equal_the_definition_without_the_own_fold(rng, s):
    X, ladder = rng.uniform(size=(83, s)), np.array(LADDER)
    found = stacking.kernel_log_densities(X, fold_numbers(83), X, fold_numbers(83), ladder)
    for fold in oracles.contiguous_folds(83, 5):
        others = np.delete(X, fold, axis=0)
        expected = truncated_kde(X[fold], others, ladder)
        np.testing.assert_allclose(found[:, fold], expected, rtol=1e-5, atol=FLOAT32_DENSITY)
        wide = [oracles.kde_log_density(X[fold], others, h) for h in ladder[:2]]
        np.testing.assert_allclose(found[:2, fold], wide, rtol=1e-5, atol=FLOAT32_DENSITY)


@pytest.mark.parametrize("n_bandwidths", [1, 2, 3, 4, 5, 7, 9])
def test_kernel_densities_of_other_rows_see_every_centre(rng, n_bandwidths):
    X, queries = rng.uniform(size=(70, 2)), rng.uniform(size=(40, 2))
    ladder = 0.8 / 2.0 ** np.arange(n_bandwidths)
    found = stacking.kernel_log_densities(X, fold_numbers(70), queries, np.full(40, -1), ladder)
    np.testing.assert_allclose(found, truncated_kde(queries, X, ladder), rtol=1e-5, atol=FLOAT32_DENSITY)


def test_kernel_densities_do_not_mind_units(rng):
    X, ladder = rng.uniform(size=(70, 2)), np.array(LADDER)
    whole = fold_numbers(70), X, fold_numbers(70)
    here = stacking.kernel_log_densities(X, *whole, ladder)
    for unit, offset in ((1e30, 0), (1e-30, 0), (1.0, 1e6)):
        moved = X * unit + offset
        there = stacking.kernel_log_densities(moved, whole[0], moved, whole[2], ladder * unit)
        np.testing.assert_allclose(there + 2 * np.log(unit), here, rtol=1e-4, atol=1e-3)


def test_bandwidths_however_narrow_are_served(rng):
    X = np.repeat(rng.uniform(size=(10, 2)), 4, axis=0)
    ladder = stacking.bandwidth_ladder(1e-30, 1.0)
    found = stacking.kernel_log_densities(X, fold_numbers(40), X, np.full(40, -1), ladder)
    alone = np.log(1 / 10) - 2 * np.log(ladder * np.sqrt(2 * np.pi))  # each row sees its 4 of 40 copies
    np.testing.assert_allclose(found[20:].T, np.tile(alone[20:], (40, 1)), rtol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0.005, 0.5), (0.1, 0.1), (0.1, 0.2), (0.1, 0.21), (1e-9, 3.0)])
def test_the_ladder_halves_from_the_top_down_to_the_bottom(low, high):
    ladder = stacking.bandwidth_ladder(low, high)
    assert ladder[0] == high
    np.testing.assert_allclose(ladder[1:], ladder[:-1] / 2, rtol=1e-12)
    assert low / 2 < ladder[-1] <= low * (1 + 1e-9)


# --- weights ---------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(2, 300), n_experts=st.integers(2, 9), spread=st.floats(0.1, 30))
def test_weights_are_convex_and_close_to_the_best(seed, n, n_experts, spread):
    rng = np.random.default_rng(seed)
    logs = (spread * rng.normal(size=(n_experts, n)) + rng.normal(size=(n_experts, 1))).astype(np.float32)
    prior = int(rng.integers(n_experts))
    weights = stacking.choose_weights(logs, prior)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (weights >= 0).all()
    assert weights[prior] >= (1 - 1e-5) / (n + 1)

    def objective(w):
        return (logsumexp(logs, b=w[:, None], axis=0).sum() + np.log(w[prior])) / n

    assert objective(weights) >= objective(best_weights(logs.astype(float), prior)) - 1e-3


def test_an_expert_that_says_nothing_is_left_out(rng):
    logs = np.stack([rng.normal(size=500), rng.normal(size=500), np.full(500, -1e30)]).astype(np.float32)
    assert stacking.choose_weights(logs, 0)[2] == 0


def test_the_gaussian_keeps_its_weight_however_many_rows_there_are(rng):
    logs = np.stack([rng.normal(size=30_000), np.full(30_000, -500.0)]).astype(np.float32)
    assert stacking.choose_weights(logs, 1)[1] == pytest.approx(1 / 30_001, rel=1e-3)


def test_rows_that_only_a_dropped_expert_saw_keep_a_density(rng):
    # One row of 20,000: an expert with a weight of 5e-5 goes, and the others see the row only far below float32.
    logs = rng.normal(size=(3, 20_000)).astype(np.float32)
    logs[2] = -1e30
    logs[:, 7] = -5000, -1e30, 0
    weights = stacking.choose_weights(logs, 0)
    assert weights[2] == 0
    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)


# --- held-out densities ----------------------------------------------------------------------------------------


def test_no_expert_has_seen_the_fold_of_the_row_it_judges(rng):
    X, fold = clumps(rng, 203, 2), fold_numbers(203)
    changed = X.copy()
    changed[fold == 2] = rng.uniform(size=(int((fold == 2).sum()), 2))
    kept = np.flatnonzero(fold == 2)[:5]
    changed[kept] = X[kept]
    here, there = (stacking.held_out_log_densities(rows, fold, np.array(LADDER), 4, 15)[0] for rows in (X, changed))
    np.testing.assert_array_equal(here[len(LADDER) :, kept], there[len(LADDER) :, kept])  # not a bit of the fold
    np.testing.assert_allclose(here[: len(LADDER), kept], there[: len(LADDER), kept], rtol=1e-5, atol=FLOAT32_DENSITY)
    assert (here[:, fold == 1] != there[:, fold == 1]).any(axis=0).all()


def test_cross_validation_does_not_flatter_large_mixtures(rng):
    """On noise, the held-out log-density of 16 components is that of fresh rows; 0.2 nats more if folds leaked."""
    fold, flattery = fold_numbers(300), []
    for _ in range(24):
        X, fresh = rng.normal(size=(300, 3)), rng.normal(size=(3000, 3))
        held_out = stacking.fit_stack(X, fold, np.array([1.0]), 4, 15).held_out[[1, 5]].mean(axis=1)
        others = [mixtures.grow_mixtures(X[fold != v], 4, 15) for v in range(5)]
        expected = [np.mean([grown.log_densities(fresh, size).mean() for grown in others]) for size in (0, 4)]
        flattery.append((held_out[1] - expected[1]) - (held_out[0] - expected[0]))
    assert np.mean(flattery) < 0.08


# --- refits ----------------------------------------------------------------------------------------------------


def noisy_xor(seed, n, noise):
    """Rows to fit and 4,000 fresh ones: two bits and their exclusive or, on [0, 1]."""
    rng, parts = np.random.default_rng([seed, n, round(100 * noise)]), []
    for rows in (n, 4000):
        a, b = rng.integers(2, size=(2, rows))
        parts.append(np.column_stack([a, b, a ^ b]) + noise * rng.normal(size=(rows, 3)))
    low, width = parts[0].min(axis=0), np.ptp(parts[0], axis=0)
    return [(part - low) / width for part in parts]


POOR = {"noise 0.1": (9, 1000, 0.1), "noise 0.2": (20, 1000, 0.2)}
"""Seeds by which the mixture of four, grown on all rows, puts one component over two of the clumps."""


@pytest.mark.parametrize("family", [StackMarginal(), ScalesStack()])
@pytest.mark.parametrize("what", POOR)
def test_a_poor_optimum_of_all_rows_is_not_kept(what, family):
    X, fresh = noisy_xor(*POOR[what])
    grown, others = (mixtures.grow_mixtures(rows, 2, FINAL_STEPS) for rows in (X, X[:800]))
    assert grown.log_densities(X, 2).mean() < others.log_densities(X, 2).mean() - 0.2
    stack, kde = (fit_one(f, X) for f in (family, KDEMarginal()))
    assert stack.score_samples(fresh).mean() > kde.score_samples(fresh).mean() + 0.03
    sampled = stack.sample(4000, np.random.RandomState(0))
    assert max(ks_2samp(sampled[:, j], fresh[:, j]).statistic for j in range(3)) < 0.05


def modes(seed, n, fresh):
    """Rows to fit and fresh ones: nine modes on a grid, on [0, 1]; seed 5018 as `experiments/refits.py` draws it."""
    rng = np.random.default_rng([seed, n, 2])
    X, rows = (rng.integers(3, size=(m, 2)) + 0.15 * rng.normal(size=(m, 2)) for m in (n, fresh))
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return (X - low) / width, (rows - low) / width


def test_kernels_that_chance_makes_look_good_have_no_weight():
    """Rows of one draw are in close pairs: kernels a quarter as wide as the best had a share of 0.15, lost 0.047."""
    X, fresh = modes(5018, 300, 40_000)
    stack, kde = (fit_one(family, X) for family in (StackMarginal(), KDEMarginal()))
    assert stack.bandwidths.min() == pytest.approx(kde.bandwidth, rel=0.2)
    assert stack.score_samples(fresh).mean() > kde.score_samples(fresh).mean() - 0.02


def held_out_mean(X, h):
    """Of kernels beside the Gaussian, at the best share, from the other folds, in float64."""
    logs = np.empty((2, len(X)))
    for fold in oracles.contiguous_folds(len(X), 5):
        others = np.delete(X, fold, axis=0)
        logs[0, fold] = oracles.kde_log_density(X[fold], others, h)
        gaussian = multivariate_normal(others.mean(axis=0), np.cov(others.T, bias=True))
        logs[1, fold] = gaussian.logpdf(X[fold]).reshape(len(fold))
    return logsumexp(logs, b=slow_weights(logs, prior=1)[:, None], axis=0).mean()


def best_of_ladder(X, ladder):
    held_out, _ = stacking.held_out_log_densities(X, fold_numbers(len(X)), ladder, 0, 1)
    return stacking.best_bandwidth(held_out[:-1], held_out[-1], ladder)


@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize("shift", [1.0, 1.4])
def test_the_best_bandwidth_is_that_of_a_search_among_many(rng, s, shift):
    X, ladder = clumps(rng, 300, s), shift * np.array(LADDER)
    many = 0.5 * 2.0 ** -np.arange(0, 7, 0.125)
    means = [held_out_mean(X, h) for h in many]
    found = best_of_ladder(X, ladder)
    assert abs(np.log2(found / many[np.argmax(means)])) < 0.3
    assert held_out_mean(X, found) > max(means) - 0.003


def test_a_far_row_does_not_choose_the_bandwidth():
    X, _ = modes(1, 300, 1)
    with_far = np.vstack([X[1:], [[30.0, -30.0]]])
    near, there = (best_of_ladder(rows, np.array(LADDER)) for rows in (X, with_far))
    assert abs(np.log2(there / near)) < 0.5
    assert fit_one(KDEMarginal(), with_far).bandwidth > 2 * near


@pytest.mark.parametrize("ladder", [[0.3], [0.4, 0.2], [100.0, 50.0, 25.0], [1e-9, 5e-10, 2.5e-10]])
def test_at_the_end_of_the_ladder_the_best_bandwidth_is_one_of_it(rng, ladder):
    assert best_of_ladder(clumps(rng, 100, 2), np.array(ladder)) in ladder


@given(narrowest=st.floats(1e-9, 10), ratio=st.floats(0.5, 1e6))
def test_a_ladder_goes_up_from_the_narrowest_to_the_widest_or_just_above(narrowest, ratio):
    ladder = stacking.ladder_up(narrowest, narrowest * ratio)
    assert ladder[-1] == narrowest
    np.testing.assert_array_equal(ladder[:-1], 2 * ladder[1:])
    assert len(ladder) == 1 or ratio * (1 - 1e-8) <= ladder[0] / narrowest < 2 * ratio


def test_a_ladder_from_one_of_its_bandwidths_is_the_ladder_above():
    for i in range(len(LADDER)):
        np.testing.assert_array_equal(stacking.ladder_up(LADDER[i], LADDER[0]), LADDER[: i + 1])


def mean_logs(grown, X):
    return np.array([grown.log_densities(X, size).mean(dtype=float) for size in range(len(grown.weights))])


@pytest.mark.parametrize("s", [1, 2, 4])
def test_no_refit_is_less_likely_than_the_mixture_of_any_fold(rng, s):
    for n in (60, 250, 700):
        X, fold = clumps(rng, n, s, n_clumps=7), fold_numbers(n)
        folds = [mixtures.grow_mixtures(X[fold != v], 4, 8) for v in range(5)]
        found = mean_logs(mixtures.refit_mixtures(X, range(5), folds, 8), X)
        assert (found >= mean_logs(mixtures.grow_mixtures(X, 4, 8), X) - 1e-6).all()
        best = np.max([mean_logs(grown, X) for grown in folds], axis=0)
        assert (found[1:] >= best[1:] - 2 / n).all()  # the Gaussian of a fold, with a row's worth of weight, is left


def test_a_fold_is_continued_where_all_rows_grew_into_a_poor_optimum(rng, monkeypatch):
    X, fold = clumps(rng, 400, 2), fold_numbers(400)
    folds = [mixtures.grow_mixtures(X[fold != v], 3, 15) for v in range(5)]
    grown, grow = mean_logs(mixtures.grow_mixtures(X, 3, 15), X), mixtures.grow_mixtures

    def poor(X, doublings, steps):
        good = grow(X, doublings, steps)
        return mixtures.Mixtures(
            good.centre,
            good.spread,
            good.weights,
            [m + 2 * (i > 1) for i, m in enumerate(good.means)],
            good.covariances,
        )

    monkeypatch.setattr(mixtures, "grow_mixtures", poor)
    found = mixtures.refit_mixtures(X, [0, 2, 3], folds, 15)
    assert (mean_logs(poor(X, 3, 15), X)[2:] < grown[2:] - 0.5).all()
    assert (mean_logs(found, X) > grown - 0.05).all()
    assert (mean_logs(found, X) > np.max([mean_logs(own, X) for own in folds], axis=0) + 1e-4)[2:].all()  # improved
    assert (mixtures.refit_mixtures(X, [2], folds, 15).weights[1] == grow(X, 1, 15).weights[1]).all()


def test_few_rows_have_the_mean_of_the_folds_mixtures_and_many_a_mixture_of_their_own(rng):
    for n, averaged in ((stacking.FEW_ROWS, True), (stacking.FEW_ROWS + 1, False)):
        X, fold = clumps(rng, n, 2), fold_numbers(n)
        stack, fresh = stacking.fit_stack(X, fold, np.array(LADDER), 3, 15), clumps(rng, 200, 2)
        sizes = [size for size in np.flatnonzero(stack.mixture_weights) if size > 0]
        assert sizes
        for size in sizes:
            logs = np.array([own.log_densities(fresh, size) for own in stack.fold_mixtures], dtype=float)
            mean = logsumexp(logs, axis=0) - np.log(5)
            found = stack.mixtures.log_densities(fresh, size)
            near = mean > mean.max() - 5  # farther out, the Gaussian of all rows is not that of a fold
            assert (np.abs(found - mean)[near].max() < 0.02) == averaged
            assert len(stack.mixtures.components(size)[0]) <= (5 if averaged else 1) * (2**size + 1)


def test_mixtures_of_other_rows_are_improved_before_they_are_averaged(rng):
    X, fold = clumps(rng, 400, 2), fold_numbers(400)
    folds = [mixtures.grow_mixtures(X[fold != v] + 0.02, 3, 15) for v in range(5)]
    plain, improved = (mixtures.average_mixtures(X, [0, 3], folds, steps) for steps in (0, 15))
    assert mean_logs(improved, X)[3] > mean_logs(plain, X)[3] + 0.05
    np.testing.assert_array_equal(improved.means[0], mixtures.grow_mixtures(X, 0, 0).means[0])


@pytest.mark.parametrize("units", [[1.0, 1.0], [30.0, 0.1]])
def test_a_fold_starts_with_its_own_density_and_the_gaussian_of_all_rows(rng, units):
    X = clumps(rng, 400, 2) * units + [5.0, -2.0]
    fold, grown = mixtures.grow_mixtures(X[:250], 2, 15), mixtures.grow_mixtures(X, 0, 15)
    weights, means, covariances = mixtures._in_units_of(grown, fold, 2, 400)
    assert weights[0] == pytest.approx(1 / 401)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_array_equal(means[0], grown.means[0][0])
    np.testing.assert_array_equal(covariances[0], grown.covariances[0][0])
    moved = mixtures.Mixtures(grown.centre, grown.spread, [weights], [means], [covariances])
    own, theirs = (m.components(size) for m, size in ((moved, 0), (fold, 2)))
    here, there = (mixture_log_density(X, w[1:] / w[1:].sum(), m[1:], c[1:]) for w, m, c in (own, theirs))
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-3)


def test_an_expert_that_breaks_its_promise_is_left_out_and_the_weights_are_chosen_anew(rng, monkeypatch):
    X, fold, ladder = clumps(rng, 600, 2), fold_numbers(600), np.array(LADDER)
    honest, refit = stacking.fit_stack(X, fold, ladder, 3, 15), mixtures.refit_mixtures
    assert honest.mixture_weights[1:].sum() > 0.3

    def shifted(X, sizes, folds, steps):
        good = refit(X, sizes, folds, steps)
        means = [m + (i > 0) for i, m in enumerate(good.means)]
        return mixtures.Mixtures(good.centre, good.spread, good.weights, means, good.covariances)

    monkeypatch.setattr(stacking, "refit_mixtures", shifted)
    stack = stacking.fit_stack(X, fold, ladder, 3, 15)
    np.testing.assert_array_equal(stack.held_out, honest.held_out)  # what was promised stays on record
    n_kernels = len(stack.bandwidths)
    expected = slow_weights(honest.held_out[: n_kernels + 1].astype(float), prior=n_kernels)
    assert len(stack.mixture_weights) == 1
    found = np.append(stack.kernel_weights, stack.mixture_weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-3)


@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 10), shift=st.floats(-1, 1))
def test_a_promise_is_broken_by_an_expert_that_loses_where_it_is_trusted(seed, spread, shift):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(5)) * (np.arange(5) != 2)
    weights /= weights.sum()
    before = rng.normal(size=(5, 40)).astype(np.float32)
    after = (before + shift + spread * rng.normal(size=(5, 40))).astype(np.float32)
    after[:2] = before[:2]
    promised, kept = (np.log(weights @ np.exp(logs.astype(float))).mean() for logs in (before, after))
    culprit = stacking.promise_breaker(weights, before, after)
    assert (culprit is None) == (kept >= promised) or abs(kept - promised) < 1e-9
    if culprit is not None:
        shares = weights[:, None] * np.exp(before) / (weights @ np.exp(before))
        changes = (shares * (after - before)).mean(axis=1)
        assert culprit in (3, 4)
        assert changes[culprit] == pytest.approx(changes.min())
        assert changes.min() < 0


# --- scores ----------------------------------------------------------------------------------------------------


def test_scores_of_all_subsets_equal_the_slow_twins(rng, monkeypatch):
    # Four components at most: which of many small ones are dropped may hang on a rounding.
    monkeypatch.setattr("isde.marginals.stack.SCORING_DOUBLINGS", 2)
    X = clumps(rng, 420, 3)
    table = score_subsets(X[:250], X[250:], max_block_size=3, marginal="stack")
    for subset in table.subsets:
        S = list(subset)
        assert table[subset] == pytest.approx(slow_stack_score(X[:250][:, S], X[250:][:, S], 2), abs=FLOAT32_EM)
    assert np.isnan(table.bandwidths).all()
    assert table.unsettled == ()


@pytest.mark.parametrize("cv", [2, 7])
def test_folds_are_contiguous(rng, cv, monkeypatch):
    monkeypatch.setattr("isde.marginals.stack.SCORING_DOUBLINGS", 2)
    X = clumps(rng, 240, 1)
    order = np.argsort(X[:160, 0])
    table = score_subsets(X[:160][order], X[160:], max_block_size=1, marginal="stack", cv=cv)
    assert table[0,] == pytest.approx(slow_stack_score(X[:160][order], X[160:], 2, cv), abs=FLOAT32_EM)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_number_of_workers_changes_no_bit(rng, n_jobs):
    X = clumps(rng, 200, 4)
    alone = score_subsets(X[:120], X[120:], max_block_size=3, marginal="stack")
    table = score_subsets(X[:120], X[120:], max_block_size=3, marginal="stack", n_jobs=n_jobs)
    np.testing.assert_array_equal(table.scores, alone.scores)


DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.mark.parametrize("name", ["levine32_h2", "nilsson_rare", "kin8nm"])
def test_the_stack_is_about_as_good_as_its_best_expert_on_real_rows(rng, name):
    if not (DATA / f"{name}.npz").exists():
        pytest.skip("the shared data sets are not here")
    X = np.load(DATA / f"{name}.npz")["X"].astype(np.float64)
    X = X[rng.permutation(len(X))[:2000]]
    U = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    fold, ladder = fold_numbers(1200), np.array(LADDER)
    for n_columns in (1, 2, 3, 3):
        S = rng.choice(U.shape[1], size=n_columns, replace=False)
        fit, score = U[:1200][:, S], U[1200:][:, S]
        grown = mixtures.grow_mixtures(fit, SCORING_DOUBLINGS, SCORING_STEPS)
        alone = [oracles.kde_log_density(score, fit, h).mean() for h in LADDER]
        alone += [grown.log_densities(score, size).mean() for size in range(SCORING_DOUBLINGS + 1)]
        stack = stacking.score_subset(fit, score, fold, ladder, SCORING_DOUBLINGS, SCORING_STEPS)
        assert stack > max(alone) - 0.02


@pytest.mark.parametrize(("setting", "less"), [("FINAL_DOUBLINGS", SCORING_DOUBLINGS), ("FINAL_STEPS", 1)])
def test_kept_blocks_have_finer_mixtures_than_subsets(monkeypatch, setting, less):
    X, _ = make_structured([2], 3000, random_state=0)
    fresh, _ = make_structured([2], 3000, random_state=1)
    fine = fit_blocks(X, [(0, 1)], "stack").score(fresh)
    monkeypatch.setattr(f"isde.marginals.stack.{setting}", less)
    assert fine > fit_blocks(X, [(0, 1)], "stack").score(fresh) + 0.01


def test_the_bandwidths_given_bound_the_ladder(rng):
    X = clumps(rng, 300, 1)
    block = fit_one(StackMarginal(bandwidths=[0.05, 0.1, 0.2]), modes(1, 300, 1)[0])
    assert len(block.bandwidths)
    assert block.bandwidths.min() >= 0.05
    assert block.bandwidths.max() < 2 * 0.2
    given, default = (
        score_subsets(X[:200], X[200:], max_block_size=1, marginal="stack", bandwidths=grid)[0,]
        for grid in ([0.3, 0.4], None)
    )
    assert given != default


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_one_far_row_among_those_fitted_costs_the_others_little(rng, far):
    X, fresh = rng.normal(size=(500, 1)), rng.normal(size=(2000, 1))
    with_far = np.vstack([X[1:], [[far]]])
    near, there = (fit_blocks(rows, [(0,)], "stack").score(fresh) for rows in (X, with_far))
    assert there > near - 0.05


def test_fewer_rows_than_folds_are_said_for_a_block_too(rows):
    with pytest.warns(ISDEWarning, match="Only 4 rows to fit on, and cv=5"):
        fit_one(StackMarginal(), rows[:4])


def test_one_far_row_costs_its_own_density_and_no_more(rng):
    X = clumps(rng, 500, 2)
    far = X[300:].copy()
    far[0] += 1e3
    here, there = (score_subsets(X[:300], rows, max_block_size=2, marginal="stack")[0, 1] for rows in (X[300:], far))
    (gaussian,) = [multivariate_normal(X[:300].mean(axis=0), np.cov(X[:300].T)).logpdf(far[0])]
    assert there == pytest.approx(here + gaussian / 200, rel=0.02)


@pytest.mark.parametrize("far", [1e6, 1e40, 1e145])
def test_rows_however_far_have_finite_scores(rng, far):
    X = clumps(rng, 100, 2)
    rows = np.array([[far, 0.5], [-far, far]])
    assert np.isfinite(score_subsets(X, rows, max_block_size=2, marginal="stack").scores).all()
    assert np.isfinite(fit_one(StackMarginal(), X).score_samples(rows)).all()


def test_a_column_with_one_value_among_the_fitting_rows_is_no_trap(rng):
    X = np.column_stack([rng.uniform(size=100), np.zeros(100)])
    X[60:, 1] = rng.uniform(size=40)
    assert score_subsets(X[:60], X[60:], max_block_size=2, marginal="stack").scores.min() > -30


@pytest.mark.parametrize("bandwidths", [[], [0.1, -0.1], [np.nan], [0.0]])
def test_bandwidths_must_be_positive_numbers(rows, bandwidths):
    with pytest.raises(ValueError, match="bandwidths must be positive"):
        score_subsets(rows[:60], rows[60:], max_block_size=1, marginal="stack", bandwidths=bandwidths)


def test_fewer_rows_than_folds_mean_fewer_folds_and_a_warning(rows):
    with pytest.warns(ISDEWarning, match="Only 4 rows to fit on, and cv=5"):
        table = score_subsets(rows[:4], rows[4:], max_block_size=3, marginal="stack")
    assert np.isfinite(table.scores).all()


def test_one_row_is_too_few_to_fit_on(rows):
    with pytest.raises(ValueError, match="at least 2 rows to fit on, got 1"):
        score_subsets(rows[:1], rows[1:], max_block_size=1, marginal="stack")


# --- blocks ----------------------------------------------------------------------------------------------------


def test_the_density_of_a_block_is_the_weighted_sum_of_its_experts(rng):
    X, fresh = clumps(rng, 300, 2), rng.uniform(size=(50, 2))
    block = fit_one(StackMarginal(), X)
    stack = stacking.fit_stack(X, fold_numbers(300), np.array(LADDER), FINAL_DOUBLINGS, FINAL_STEPS)
    logs = [
        np.log(w) + oracles.kde_log_density(fresh, X, h)
        for w, h in zip(stack.kernel_weights, stack.bandwidths, strict=True)
        if w
    ]
    logs += [np.log(w) + stack.mixtures.log_densities(fresh, i) for i, w in enumerate(stack.mixture_weights) if w]
    assert len(logs) > 2
    np.testing.assert_allclose(block.score_samples(fresh), logsumexp(logs, axis=0), rtol=1e-5, atol=FLOAT32_DENSITY)
    assert block.kernel_weights.sum() + block.weights.sum() == pytest.approx(1, abs=1e-6)
    assert np.isnan(block.bandwidth)


def a_block(rng, s, n=60):
    """Two kernels and three Gaussians, all with weight."""
    X = clumps(rng, n, s)
    means, shapes = X[:3], 0.1 * rng.normal(size=(3, s, s))
    covariances = np.array([a @ a.T + 0.003 * np.eye(s) for a in shapes])
    return StackBlock(X, np.array([0.2, 0.05]), np.array([0.25, 0.15]), np.array([0.3, 0.2, 0.1]), means, covariances)


def test_a_block_is_the_combination_of_its_experts_near_and_far(rng):
    block = a_block(rng, 2)
    rows = np.vstack([block.centres[:20], [[40.0, -3.0], [1e6, 1e6]]])
    logs = [
        np.log(weight) + oracles.kde_log_density(rows, block.centres, h)
        for weight, h in zip(block.kernel_weights, block.bandwidths, strict=True)
    ]
    logs += [
        np.log(weight) + multivariate_normal(mean, covariance).logpdf(rows)
        for weight, mean, covariance in zip(block.weights, block.means, block.covariances, strict=True)
    ]
    np.testing.assert_allclose(block.score_samples(rows), logsumexp(logs, axis=0), rtol=1e-9)


def test_blocks_of_one_column_integrate_to_one(rng):
    grid = np.linspace(-4, 5, 20_001)
    density = np.exp(a_block(rng, 1).score_samples(grid[:, None]))
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=QUADRATURE)


def test_blocks_of_two_columns_integrate_to_one(rng):
    grid = np.linspace(-1.5, 2.5, 401)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    density = np.exp(a_block(rng, 2).score_samples(points))
    assert density.sum() * (grid[1] - grid[0]) ** 2 == pytest.approx(1, abs=1e-5)


def test_rows_drawn_from_one_column_follow_the_density(rng):
    block = a_block(rng, 1)
    grid = np.linspace(-4, 5, 20_001)
    cumulated = np.cumsum(np.exp(block.score_samples(grid[:, None]))) * (grid[1] - grid[0])
    drawn = block.sample(4000, np.random.RandomState(0))[:, 0]
    assert kstest(drawn, lambda x: np.interp(x, grid, cumulated)).pvalue > 0.01


def test_rows_drawn_from_two_columns_fill_each_cell_as_the_density_says(rng):
    block, n = a_block(rng, 2), 20_000
    edges = np.linspace(-1.5, 2.5, 401)
    middles = (edges[1:] + edges[:-1]) / 2
    points = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.exp(block.score_samples(points)).reshape(400, 400) * (edges[1] - edges[0]) ** 2
    expected = mass.reshape(20, 20, 20, 20).sum(axis=(1, 3))
    drawn = block.sample(n, np.random.RandomState(1))
    counts = np.histogram2d(*drawn.T, bins=[edges[::20], edges[::20]])[0]
    assert (np.abs(counts / n - expected) < 5 * np.sqrt((expected + 1 / n) / n)).all()


@pytest.mark.parametrize("k", [1, 3])
def test_a_saved_model_is_loaded_to_the_bit(rng, tmp_path, k):
    X = clumps(rng, 150, 3)
    model = ISDE(k, marginal="stack", split="paper", random_state=0).fit(X)
    model.save(tmp_path / "model.isde")
    again = isde.load(tmp_path / "model.isde")
    np.testing.assert_array_equal(again.score_blocks(X), model.score_blocks(X))
    np.testing.assert_array_equal(again.subset_scores_.scores, model.subset_scores_.scores)
    np.testing.assert_array_equal(again.sample(20, random_state=3), model.sample(20, random_state=3))
    assert again.get_params() == model.get_params()


def test_a_block_without_kernels_is_loaded_too(rng, tmp_path):
    block = a_block(rng, 2)
    weights = block.weights / block.weights.sum()
    without = {"bandwidths": np.empty(0), "kernel_weights": np.empty(0), "weights": weights}
    bare = StackBlock.from_arrays({**block.to_arrays(), **without})
    assert np.isfinite(bare.score_samples(block.centres)).all()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"bandwidths": np.array([0.1])}, "'kernel_weights' has the shape"),
        ({"kernel_weights": np.array([0.1, 0.0])}, "'kernel_weights' must hold weights above 0"),
        ({"bandwidths": np.array([0.1, -0.2])}, "'bandwidths' must hold widths"),
        ({"bandwidths": np.array([0.2, 0.15])}, "each is half of the one before"),
        ({"bandwidths": np.array([0.2, 0.4])}, "each is half of the one before"),
        ({"centres": np.full((4, 2), np.nan)}, "'centres' must hold numbers"),
        ({"centres": np.zeros((4, 3))}, "'means' has the shape"),
        ({"centres": np.zeros((0, 2))}, "the kernels of a stack need centres"),
        ({"weights": np.array([0.5, 0.5])}, "'means' has the shape"),
        ({"weights": np.array([0.5, 0.6, -0.1])}, "'weights' must hold weights above 0"),
        ({"weights": np.array([0.9, 0.6, 0.1])}, "the weights add up to"),
    ],
)
def test_damaged_blocks_are_refused(rng, damage, complaint):
    with pytest.raises(ValueError, match=complaint):
        StackBlock.from_arrays({**a_block(rng, 2).to_arrays(), **damage})


# --- the whole estimator ---------------------------------------------------------------------------------------


def test_multiplying_columns_shifts_log_densities_by_the_jacobian(rng):
    X = clumps(rng, 300, 3)
    factors, shifts = np.array([1000.0, 1.0, 1e-6]), np.array([5.0, -1e4, 0.0])
    here, there = (
        ISDE(3, marginal="stack", split="paper", random_state=0).fit(rows) for rows in (X, X * factors + shifts)
    )
    jacobian = np.log(factors)
    assert there.partition_ == here.partition_
    sums = [jacobian[list(subset)].sum() for subset in here.subset_scores_.subsets]
    np.testing.assert_allclose(
        there.subset_scores_.scores, here.subset_scores_.scores - sums, rtol=0, atol=FLOAT32_DENSITY
    )
    moved = there.score_samples(X * factors + shifts) + jacobian.sum()
    np.testing.assert_allclose(moved, here.score_samples(X), rtol=0, atol=5e-3)


def test_the_stack_finds_the_partition_and_beats_one_bandwidth_where_widths_differ(rng):
    narrow = rng.integers(2, size=(900, 1)) + np.array([0.01, 0.2])[rng.integers(2, size=(900, 1))] * rng.normal(
        size=(900, 2)
    )
    X = np.column_stack([narrow, rng.normal(size=900)])
    stack, kde = (
        ISDE(3, marginal=marginal, split="paper", random_state=0).fit(X[:600]) for marginal in ("stack", "kde")
    )
    assert stack.partition_ == ((0, 1), (2,))
    assert stack.score(X[600:]) > kde.score(X[600:]) + 0.3
