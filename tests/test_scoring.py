"""Step 1 as one value: the table is what its parts give when put together by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

import oracles
from chunks import by_model, by_split
from isde import ISDE, load, score_subsets, select_partition
from isde.chance import SplitTable, draw_chance
from isde.marginals import resolve_marginal
from isde.marginals.copula import CopulaScorer
from isde.scoring import Scoring
from isde.splits import draw_splits, resolve_split
from isde.subsets import SubsetFamily
from oracles import ROUNDING

FAMILY = SubsetFamily(3, 3)

SPLITS = {
    "one": "paper",
    "a share": 0.6,
    "folds": "density",
    "ones own": ShuffleSplit(3, train_size=0.4, random_state=1),
}


@pytest.fixture
def skewed(rng):
    """140 rows: a pair that depends, a column alone; long tails."""
    X = rng.normal(size=(140, 3))
    X[:, 1] += X[:, 0]
    return np.exp(X)


def scored_by(scorer, X, split, family):
    """Scores and bandwidths of each model in each split, two lists of (models, splits, subsets)."""
    found = by_split(scorer, X, draw_splits(resolve_split(split, 0), X), family)
    return [
        np.array([[getattr(m, name) for m in one] for one in found]).swapaxes(0, 1) for name in ("scores", "bandwidths")
    ]


def widening(X, split):
    """Splits share rows: more of them do not make the error smaller than their overlap."""
    parts = draw_splits(resolve_split(split, 0), X)
    common = oracles.scored_in_common([score for _, score in parts])
    return np.sqrt(1 / len(parts) + common / (1 - common))


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("data", ["skewed", "rows"])
def test_a_score_is_the_best_model_by_its_mean_over_splits_plus_what_columns_score_alone(data, split, request):
    X = request.getfixturevalue(data)
    scores, bandwidths = scored_by(CopulaScorer(), X, split, FAMILY)
    low, width = X.min(axis=0), np.ptp(X, axis=0)  # columns by themselves are scored on [0, 1], in the units of X
    columns = scored_by(resolve_marginal("stack"), (X - low) / width, split, SubsetFamily(3, 1))[0][0] - np.log(width)
    best, every = scores.mean(axis=1).argmax(axis=0), np.arange(len(FAMILY))
    together = scores.mean(axis=1)[best, every]
    alone = [columns.mean(axis=0)[list(S)].sum() for S in FAMILY]
    scoring = Scoring.of(3, marginal="copula", split=split, alpha=None, random_state=0)
    found, dependence = (scoring.score(X, tuple("abc"), columns=columns) for columns in (True, False))
    np.testing.assert_allclose(dependence.scores, together, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.scores, together + alone, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.gains, together, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(found.bandwidths, np.median(bandwidths, axis=1)[best, every])
    assert found.names == dependence.names == ("a", "b", "c")
    assert found.gain((0, 1)) > 0.1
    assert (best[3] == 0) == (data == "rows")  # kernels for a curve, Gaussians for a line
    if scores.shape[1] == 1:
        assert np.isnan(found.errors).all()
        assert np.isnan(found.gain_errors).all()
        return
    spread = scores.std(axis=1, ddof=1)[best, every] * widening(X, split)
    columns_spread = columns.std(axis=0, ddof=1) * widening(X, split)
    errors = [np.hypot(spread[i], np.sqrt((columns_spread[list(S)] ** 2).sum())) for i, S in enumerate(FAMILY)]
    np.testing.assert_allclose(dependence.errors, spread, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.gain_errors, spread, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.errors, errors, rtol=0, atol=ROUNDING)


def test_with_charges_the_best_model_is_the_best_after_charges(skewed):
    scores, _ = scored_by(CopulaScorer(), skewed, "paper", FAMILY)
    splits = draw_splits(resolve_split("paper", 0), skewed)
    chance = draw_chance(CopulaScorer(), SplitTable("paper", tuple(splits), 140), FAMILY, None)
    charges = np.array(chance.charges(FAMILY, 140, 0.3))
    objectives = scores.mean(axis=1) - charges
    best, every = objectives.argmax(axis=0), np.arange(len(FAMILY))
    scoring = Scoring.of(3, marginal="copula", split="paper", alpha=0.3, random_state=0)
    for columns in (True, False):
        found = scoring.score(skewed, columns=columns)
        np.testing.assert_array_equal(found.charges, charges[best, every])
        np.testing.assert_allclose(found.gains, scores.mean(axis=1)[best, every], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.objectives, objectives.max(axis=0), rtol=0, atol=ROUNDING)
    assert found.charges.any()


def test_what_columns_score_alone_has_no_say_in_the_structure(skewed):
    scoring = Scoring.of(3, marginal="copula", split="paper", random_state=0)
    with_, without = (scoring.score(skewed, columns=columns) for columns in (True, False))
    assert without.scores[:3].tolist() == [0.0] * 3
    assert select_partition(with_).partition == select_partition(without).partition == ((0, 1), (2,))
    assert select_partition(with_).score != select_partition(without).score


@pytest.mark.parametrize("far", [1e9, 1e12, 1e30])
def test_a_row_however_far_has_no_say_in_the_structure(skewed, far):
    skewed[7, 0] = far
    scoring = Scoring.of(3, marginal="copula", split="paper", random_state=0)
    with_, without = (scoring.score(skewed, columns=columns) for columns in (True, False))
    np.testing.assert_allclose(with_.gains, without.gains, rtol=0, atol=ROUNDING)
    assert select_partition(with_).partition == select_partition(with_.restrict(2)).partition == ((0, 1), (2,))


def test_gains_scored_by_themselves_survive_in_a_file(skewed, tmp_path):
    skewed[7, 0] = 1e12
    table = Scoring.of(3, marginal="copula", split="paper", random_state=0).score(skewed)
    table.save(tmp_path / "table.isde")
    np.testing.assert_array_equal(load(tmp_path / "table.isde").gains, table.gains)


@pytest.mark.parametrize("far", [-1e17, -1e30])
def test_rescaling_has_no_say_in_the_order_of_values(skewed, far):
    skewed[7, 0] = far
    model = ISDE(3, marginal="copula", split="paper", random_state=0, scale="minmax").fit(skewed)
    assert model.partition_ == ((0, 1), (2,))


def test_how_blocks_are_described_has_no_say_either(skewed):
    one, other = (
        Scoring.of(2, marginal=marginal, split="paper", random_state=0).score(skewed)
        for marginal in ("copula", "copula+stack")
    )
    for name in ("scores", "bandwidths", "charges"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_on_the_datas_own_scale_scores_are_the_mean_over_splits(rows, marginal):
    expected = scored_by(resolve_marginal(marginal), rows, "density", FAMILY)[0][0].mean(axis=0)
    scoring = Scoring.of(3, marginal=marginal, split="density", random_state=0)
    for columns in (True, False):  # scores hold their columns already
        np.testing.assert_allclose(scoring.score(rows, columns=columns).scores, expected, rtol=0, atol=ROUNDING)


def test_of_several_families_each_subset_takes_the_best(rows):
    each = [scored_by(resolve_marginal(m), rows, "paper", FAMILY)[0][0].mean(axis=0) for m in ("kde", "gaussian")]
    found = Scoring.of(3, marginal=["kde", "gaussian"], split="paper", random_state=0).score(rows)
    np.testing.assert_allclose(found.scores, np.max(each, axis=0), rtol=0, atol=ROUNDING)


def test_with_a_penalty_all_rows_are_fitted_and_scored(rows):
    found = Scoring.of(3, marginal="gaussian", penalty="bic").score(rows)
    price = 0.5 * np.log(120) / 120
    for S in FAMILY:
        parameters = len(S) + len(S) * (len(S) + 1) // 2
        expected = oracles.gaussian_score(rows, rows, S) - price * parameters
        assert found[S] == pytest.approx(expected, abs=ROUNDING)


def test_a_model_has_the_table_of_its_rescaled_rows_in_the_units_of_the_data(skewed):
    model = ISDE(3, split="paper", random_state=0).fit(skewed)
    low, width = skewed.min(axis=0), np.ptp(skewed, axis=0)
    scaled = Scoring.of(3, split="paper", random_state=0).score((skewed - low) / width)
    units = [np.log(width[list(S)]).sum() for S in FAMILY]
    np.testing.assert_allclose(model.subset_scores_.scores, scaled.scores - units, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(model.subset_scores_.charges, scaled.charges)


def test_the_seed_draws_the_splits(skewed):
    scoring = Scoring.of(2, marginal="copula", split="paper", alpha=None, random_state=0)
    one, again, other = (replace(scoring, random_state=seed).score(skewed, columns=False) for seed in (0, 0, 1))
    assert one.scores.tobytes() == again.scores.tobytes()
    assert one.scores.tobytes() != other.scores.tobytes()


def test_parameters_that_do_not_go_together_are_refused_before_anything_is_scored(skewed, monkeypatch):
    monkeypatch.setattr("isde.scoring.score_models", lambda *args, **kwargs: pytest.fail("scored"))
    for params in ({"alpha": 7}, {"marginal": "kde", "alpha": 0.1}, {"penalty": "bic"}, {"marginal": "splines"}):
        with pytest.raises(ValueError, match=r"alpha|penalty|unknown"):
            Scoring.of(2, **params).score(skewed)


# --- rows given ------------------------------------------------------------------------------------------------


def test_rows_to_fit_on_and_to_score_can_be_given(skewed):
    models = by_model(CopulaScorer(), skewed[:80], skewed[80:], FAMILY)
    low, width = skewed.min(axis=0), np.ptp(skewed, axis=0)
    U = (skewed - low) / width
    (alone,) = by_model(resolve_marginal("stack"), U[:80], U[80:], SubsetFamily(3, 1))
    columns = alone.scores - np.log(width)
    expected = np.max([m.scores for m in models], axis=0) + [columns[list(S)].sum() for S in FAMILY]
    found = score_subsets(skewed[:80], skewed[80:], max_block_size=3, marginal="copula", names=tuple("abc"))
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=ROUNDING)
    assert not found.charges.any()
    assert found.names == ("a", "b", "c")
    assert found.gain((0, 1)) > 0.1


def test_rows_given_are_taken_in_the_order_given(skewed):
    fit, score = draw_splits(resolve_split(KFold(2), 0), skewed)[0]
    assert (np.diff(fit) < 0).any()
    split = Scoring.of(2, marginal="copula", alpha=None).score_splits(skewed, [(fit, score)], tuple("abc"))
    given = score_subsets(skewed[fit], skewed[score], max_block_size=2, marginal="copula")
    assert given.scores.tobytes() == split.scores.tobytes()


def test_a_verbose_run_says_what_it_does_and_what_it_will_cost(skewed, capsys):
    score_subsets(skewed[:80], skewed[80:], max_block_size=3, marginal="copula", verbose=1)
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        "7 subsets of 3 columns on the copula scale, 8 bandwidths and two Gaussians, 80 rows to fit on, 60 to score: "
        in said.err
    )
