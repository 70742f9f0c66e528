"""Splits by name, and penalties in their place: scores equal what is computed by hand."""

import re
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, RepeatedKFold, ShuffleSplit, StratifiedKFold
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

import isde
import oracles
from isde import ISDE, SubsetScores, score_subsets, select_partition, splits
from isde.errors import ISDEWarning
from isde.marginals import resolve_marginal
from isde.penalties import _slope_price, check_penalty, penalized
from isde.score_tasks import are_tuned_together
from isde.scoring import Scoring
from isde.splits import DEFAULT_SPLIT, SPLIT_NAMES, draw_splits, resolve_split, split_key
from isde.synthetic import make_block_gaussian
from oracles import ROUNDING, SINGLE_PRECISION


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
@parametrize_with_checks([ISDE(marginal="gaussian", penalty="bic"), ISDE(marginal="gaussian", split="density")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# --- splits ----------------------------------------------------------------------------------------------------


class ByDefinition:
    """Four times, rows in a new order are cut into five folds; each is scored by the 45 % of rows that follow it."""

    def split(self, X):
        rng, n = np.random.RandomState(3), len(X)
        for _ in range(4):
            order = rng.permutation(n).tolist()
            for fold in oracles.contiguous_folds(n, 5):
                after = (2 * order)[fold[-1] + 1 :][: int(0.45 * n)]
                yield np.array(after), np.array([order[i] for i in fold])


PRESETS = {
    "structure": ShuffleSplit(20, train_size=0.45, random_state=3),
    "density": KFold(5, shuffle=True, random_state=3),
    "paper": ShuffleSplit(1, train_size=0.5, random_state=3),
    "turned": ByDefinition(),
}


def test_every_preset_is_documented():
    assert tuple(PRESETS) == SPLIT_NAMES
    described = {
        "structure": "`ShuffleSplit(20, train_size=0.45)`",
        "turned": "`TurnedFolds(5, 4, train_size=0.45)`",
        "density": "`KFold(5, shuffle=True)`",
        "paper": "`ShuffleSplit(1, train_size=0.5)`",
    }
    documentation = " ".join(ISDE.__doc__.split())
    assert all(f'"{name}"' in documentation and what in documentation for name, what in described.items())


def test_the_default_means_turned_folds_where_rows_are_many():
    """From how many on is no matter for a test; that all who ask agree on it is."""
    X = np.random.default_rng(0).normal(size=(splits.TURNED_FROM, 2))
    for n, name in ((splits.TURNED_FROM - 1, "structure"), (splits.TURNED_FROM, "turned")):
        asked = (Scoring.of(2, marginal="gaussian", split=split, random_state=0) for split in (None, name))
        by_default, by_name = (scoring.score(X[:n]).scores for scoring in asked)
        np.testing.assert_array_equal(by_default, by_name)


def test_many_large_splits_share_their_searches_and_others_do_not():
    few, many = ((np.arange(n), np.arange(n, n + 5)) for n in (999, 1000))
    assert are_tuned_together([many] * 10)
    assert not are_tuned_together([many] * 9)
    assert not are_tuned_together([*[many] * 10, few])


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_the_splitter_it_stands_for(rows, name):
    ours, expected = (list(splitter.split(rows)) for splitter in (resolve_split(name, 3), PRESETS[name]))
    assert len(ours) == len(expected)
    for (fit, score), (expected_fit, expected_score) in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(fit, expected_fit)
        np.testing.assert_array_equal(score, expected_score)


def test_no_split_means_the_default_preset(rows):
    assert repr(resolve_split(None, 5)) == repr(resolve_split(DEFAULT_SPLIT, 5))
    with_none, by_name = (
        ISDE(3, marginal="gaussian", split=split, random_state=5).fit(rows) for split in (None, DEFAULT_SPLIT)
    )
    np.testing.assert_array_equal(with_none.subset_scores_.scores, by_name.subset_scores_.scores)


@pytest.mark.parametrize("split", [*SPLIT_NAMES, 0.3, RepeatedKFold(n_splits=2, n_repeats=2, random_state=3)], ids=str)
@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_scores_and_errors_are_averages_over_the_splits(rows, split, marginal, monkeypatch):
    monkeypatch.setattr("isde.score_tasks.TUNED_FROM", 0)  # ten splits or more share, however few rows they have
    splitter = PRESETS.get(split, split) if not isinstance(split, float) else ShuffleSplit(1, train_size=split)
    splitter.random_state = 3
    own = rows[:, [0, 2]]
    model = ISDE(2, marginal=marginal, split=split, scale=None, random_state=3).fit(rows[:, [0, 2]])
    in_order, parts = isinstance(splitter, KFold | RepeatedKFold), list(splitter.split(rows))
    parts = [(oracles.shuffled(fit) if in_order else fit, score) for fit, score in parts]
    shared = len(parts) >= 10 and marginal == "kde"
    bandwidths = [oracles.choose_shared_bandwidth(own[:, S], parts) for S in ([0], [1], [0, 1])] if shared else None
    tables = [shared_scores(own[fit], own[score], bandwidths, marginal) for fit, score in parts]
    found, scores = model.subset_scores_, np.array([table.scores for table in tables])
    np.testing.assert_allclose(found.scores, scores.mean(axis=0), rtol=0, atol=SINGLE_PRECISION)
    if len(tables) == 1:
        assert np.isnan(found.errors).all()
    else:
        squares = ((scores - scores.mean(axis=0)) ** 2).sum(axis=0) / (len(tables) - 1)
        common = oracles.scored_in_common([score for _, score in splitter.split(rows)])
        expected = np.sqrt(squares * (1 / len(tables) + common / (1 - common)))
        np.testing.assert_allclose(found.errors, expected, rtol=0, atol=SINGLE_PRECISION)
    np.testing.assert_allclose(found.bandwidths, np.median([table.bandwidths for table in tables], axis=0), rtol=1e-12)


def shared_scores(X_fit, X_score, bandwidths, marginal):
    """One split: with the bandwidths that all splits share, by definition, or with those that it finds by itself."""
    if bandwidths is None:
        return score_subsets(X_fit, X_score, max_block_size=2, marginal=marginal)
    subsets = [0], [1], [0, 1]
    scores = [
        oracles.kde_log_density(X_score[:, S], X_fit[:, S], h).mean() for S, h in zip(subsets, bandwidths, strict=True)
    ]
    return SimpleNamespace(scores=np.array(scores), bandwidths=np.array(bandwidths))


def test_turned_folds_score_and_fit_every_row_as_often_as_any_other():
    """But for one, where folds and shares are no whole rows."""
    for n in (100, 103):
        parts = list(resolve_split("turned", 0).split(np.zeros((n, 1))))
        fitted, scored = (np.bincount(np.concatenate(rows), minlength=n) for rows in zip(*parts, strict=True))
        assert (scored == 4).all()
        assert np.ptp(fitted) <= (4 if n == 100 else 8)
        assert all(not set(fit.tolist()) & set(score.tolist()) for fit, score in parts)


@pytest.mark.parametrize("split", [*SPLIT_NAMES, 0.3, KFold(4), RepeatedKFold(n_splits=2, n_repeats=2)], ids=str)
def test_of_many_rows_a_split_has_as_many_as_one_of_fewer_rows_drawn_anew_for_each(split):
    many, few = (draw_splits(resolve_split(split, 0), np.zeros((n, 1)), 500) for n in (20_000, 500))
    for (fit, score), (few_fit, few_score) in zip(many, few, strict=True):
        assert abs(len(fit) - len(few_fit)) <= 1
        assert abs(len(score) - len(few_score)) <= 1
        assert not set(fit.tolist()) & set(score.tolist())
        assert not (np.diff(fit) > 0).all()  # in a random order
    drawn = [row for split in many for rows in split for row in rows.tolist()]
    assert len(set(drawn)) > 0.7 * len(drawn)
    assert 0.4 < np.mean(drawn) / 20_000 < 0.6


def test_up_to_the_bound_splits_are_those_without_one(rows):
    bounded, free = (draw_splits(resolve_split("density", 0), rows, bound) for bound in (len(rows), None))
    assert [split_key(split) for split in bounded] == [split_key(split) for split in free]


@pytest.mark.parametrize("wrong", [0, 19, -1, 100.0, "many"])
def test_a_bound_of_rows_that_leaves_none_is_refused(rows, wrong):
    with pytest.raises(ValueError, match=f"max_split_rows={wrong!r} must be a whole number of at least 20, or None"):
        ISDE(max_split_rows=wrong).fit(rows)


def test_a_table_of_more_rows_than_the_bound_is_scored_by_its_definition(rng, monkeypatch):
    """Splits have their own rows, as many as a table of 400 would give them."""
    X = rng.normal(size=(1600, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    monkeypatch.setattr("isde.score_tasks.TUNED_FROM", 0)
    scoring = Scoring.of(2, marginal="kde", split="turned", max_split_rows=400, random_state=3)
    U = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    found = scoring.score(U)
    parts = draw_splits(resolve_split("turned", 3), U, 400)
    bandwidths = [oracles.choose_shared_bandwidth(U[:, S], parts) for S in ([0], [1], [0, 1])]
    tables = [shared_scores(U[fit], U[score], bandwidths, "kde") for fit, score in parts]
    np.testing.assert_allclose(found.bandwidths, bandwidths, rtol=1e-12)
    expected = np.mean([table.scores for table in tables], axis=0)
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=SINGLE_PRECISION)


@pytest.mark.parametrize("name", SPLIT_NAMES)
def test_the_seed_draws_the_splits(rows, name):
    one, same, other = (
        ISDE(3, marginal="gaussian", split=name, random_state=seed).fit(rows).subset_scores_.scores
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, np.nan])
def test_a_share_lies_between_zero_and_one(share):
    with pytest.raises(ValueError, match="must be a share of the rows between 0 and 1"):
        resolve_split(share, 0)


@pytest.mark.parametrize("name", ["half", "Structure", ""])
def test_an_unknown_name_is_refused_with_those_that_are_known(name):
    with pytest.raises(
        ValueError, match=f"split='{name}' is unknown: use 'structure', 'density', 'paper', 'turned', a share"
    ):
        resolve_split(name, 0)


@pytest.mark.parametrize("wrong", [5, True, [0.5], object()])
def test_what_is_no_split_is_refused(wrong):
    with pytest.raises(TypeError, match="is neither one of 'structure', 'density', 'paper', 'turned', nor a share"):
        resolve_split(wrong, 0)


@pytest.mark.parametrize("split", ["structure", "density", ShuffleSplit(20, train_size=0.45, random_state=0)], ids=str)
def test_the_error_of_a_score_is_its_spread_over_fresh_data(split):
    """Twenty splits of the same rows are no twenty samples."""
    tables = [
        ISDE(1, marginal="gaussian", split=split, random_state=0)
        .fit(np.random.default_rng(seed).normal(size=(200, 2)))
        .subset_scores_
        for seed in range(80)
    ]
    told = np.mean([table.errors for table in tables])
    assert told == pytest.approx(np.std([table.scores for table in tables], axis=0).mean(), rel=0.2)


@pytest.mark.parametrize("marginal", ["kde", "stack"])
@pytest.mark.parametrize("split", ["density", "paper"])
def test_sorted_rows_are_as_good_as_others(rng, marginal, split):
    X = rng.normal(size=(600, 2)) @ [[1, 0.8], [0, 0.6]]
    fresh = rng.normal(size=(600, 2)) @ [[1, 0.8], [0, 0.6]]
    as_drawn, by_time = (
        ISDE(2, marginal=marginal, split=split, random_state=0).fit(rows) for rows in (X, X[np.argsort(X[:, 0])])
    )
    assert by_time.score(fresh) == pytest.approx(as_drawn.score(fresh), abs=0.02)
    np.testing.assert_allclose(by_time.subset_scores_.scores, as_drawn.subset_scores_.scores, rtol=0, atol=0.1)


class Splitter:
    """One that yields what it is told."""

    def __init__(self, *parts):
        self.parts = parts

    def split(self, X, y=None, groups=None):
        return iter(self.parts)

    def __repr__(self):
        return "Splitter()"


@pytest.mark.parametrize(
    ("split", "complaint"),
    [
        (Splitter(), r"split=Splitter\(\) makes no split of 120 rows"),
        (Splitter((range(100), [])), "leaves 100 of 120 rows to fit on and 0 to score: at least 2 and 1"),
        (Splitter(([0], range(9))), "leaves 1 of 120 rows to fit on and 9 to score"),
        (Splitter((range(100), [3, 120])), "asks for row 120 of 120: it was made for other rows"),
        (StratifiedKFold(2), "StratifiedKFold.* cannot split 120 rows without y and groups: "),
        (GroupKFold(2), "GroupKFold.* cannot split 120 rows without y and groups: "),
        (KFold(500), "cannot split 120 rows .*: Cannot have number of splits n_splits=500 greater"),
    ],
    ids=str,
)
@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_a_splitter_that_does_not_fit_the_rows_is_refused_by_name(rows, split, complaint, marginal):
    with pytest.raises(ValueError, match=complaint):
        ISDE(2, marginal=marginal, split=split).fit(rows)


def test_a_splitter_sees_the_rows(rows):
    class ByFirstColumn:
        def split(self, X, y=None, groups=None):
            seen.append(X)
            yield np.argsort(X[:, 0])[:60], np.argsort(X[:, 0])[60:]

    seen = []
    ISDE(3, marginal="gaussian", split=ByFirstColumn(), scale=None).fit(rows)
    np.testing.assert_array_equal(seen[0], rows)


def test_a_splitter_bound_to_row_numbers_is_refused_by_stability(rows):
    model = ISDE(3, marginal="gaussian", split=PredefinedSplit(np.arange(120) % 2)).fit(rows)
    with pytest.raises(ValueError, match=r"made for other rows .`stability` draws parts"):
        model.stability(rows, 2)


def test_a_class_of_splitters_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"split=KFold is a class: pass a splitter made by it, such as KFold\(\)"):
        resolve_split(KFold, 0)


def test_a_share_may_be_a_numpy_number(rows):
    one, other = (
        ISDE(3, marginal="gaussian", split=share, random_state=0).fit(rows).subset_scores_.scores
        for share in (0.5, np.float32(0.5))
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:Repeated values:isde.errors.ISDEWarning")
def test_a_score_of_minus_infinity_is_said_with_the_column(rng):
    X = rng.normal(size=(200, 3))
    X[:, 1] = np.arange(200) < 3
    with pytest.warns(ISDEWarning, match="scores -inf, since .*'x1'.* had no density in some split"):
        ISDE(3, marginal="gaussian", random_state=0).fit(X)


@pytest.mark.parametrize("name", SPLIT_NAMES)
def test_a_model_with_a_preset_is_saved_and_loaded(rows, tmp_path, name):
    model = ISDE(2, marginal="gaussian", split=name, random_state=0).fit(rows[:, [0, 2]])
    model.save(tmp_path / "model.isde")
    again = isde.load(tmp_path / "model.isde")
    assert again.split == name
    np.testing.assert_array_equal(again.subset_scores_.errors, model.subset_scores_.errors)


# --- penalties -------------------------------------------------------------------------------------------------


def likelihood(X, subset):
    """Log-likelihood of all rows under their own Gaussian."""
    W = X[:, list(subset)]
    return multivariate_normal(W.mean(axis=0), np.cov(W.T, bias=True)).logpdf(W).sum()


@pytest.mark.parametrize("scale", ["minmax", None])
def test_bic_scores_are_likelihood_minus_half_log_n_for_each_parameter(rows, scale):
    found = ISDE(3, marginal="gaussian", penalty="bic", scale=scale).fit(rows).subset_scores_
    for subset in oracles.all_subsets(3, 3):
        s = len(subset)
        bic = likelihood(rows, subset) - 0.5 * np.log(120) * (s + s * (s + 1) / 2)
        assert found[subset] == pytest.approx(bic / 120, abs=ROUNDING)
    assert np.isnan(found.errors).all()


def test_a_family_about_zero_pays_for_no_means(rows):
    marginal = resolve_marginal("gaussian-zero-mean")
    scores = SubsetScores.from_dict({(0,): 1.0, (1,): 2.0, (0, 1): 4.0})
    found = penalized(scores, "bic", 100, marginal)
    price = 0.5 * np.log(100) / 100
    np.testing.assert_allclose(found.scores, [1 - price, 2 - price, 4 - 3 * price], rtol=0, atol=ROUNDING)


def test_the_partition_is_the_one_with_the_best_bic():
    X, _ = make_block_gaussian([2, 2, 1], 200, sigma=0.6, random_state=1)

    def bic(partition):
        return sum(likelihood(X, b) - 0.5 * np.log(200) * (len(b) + len(b) * (len(b) + 1) / 2) for b in partition)

    model = ISDE(5, marginal="gaussian", penalty="bic").fit(X)
    assert model.partition_ == max(oracles.all_partitions(5), key=bic)
    assert model.selection_.score == pytest.approx(max(map(bic, oracles.all_partitions(5))) / 200, abs=ROUNDING)


def price_by_brute_force(X, k):
    """The kappa, on a fine grid, at which the best of all partitions loses the most parameters; the last of equals."""
    partitions = oracles.all_partitions(X.shape[1], k)
    values = np.array([sum(likelihood(X, block) for block in partition) for partition in partitions])
    dimensions = np.array([sum(len(b) + len(b) * (len(b) + 1) // 2 for b in partition) for partition in partitions])
    kappas = np.arange(0, 10, 2e-4)
    best = [min(dimensions[v > v.max() - 1e-9]) for v in (values - kappa * dimensions for kappa in kappas)]
    drops = -np.diff(best)
    if drops.max() == 0:
        return 0.0
    return kappas[1 + np.flatnonzero(drops == drops.max())[-1]]


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(("structure", "seed"), [([2, 2, 1], 0), ([3, 2], 1), ([1, 1, 1, 1, 1], 2), ([4, 1], 3)])
def test_the_slope_is_the_largest_drop_over_all_partitions(structure, seed, k):
    X, _ = make_block_gaussian(structure, 300, sigma=0.25, random_state=seed)
    scores = score_subsets(X, X, max_block_size=k, marginal="gaussian")
    sizes = scores.subsets.sizes.astype(float)
    found = _slope_price(scores, sizes + sizes * (sizes + 1) / 2, 300)
    assert found == pytest.approx(price_by_brute_force(X, k), abs=2.1e-4)


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
def test_the_slope_penalty_is_twice_the_slope():
    X, _ = make_block_gaussian([2, 2, 1], 300, sigma=0.25, random_state=0)
    found = ISDE(5, marginal="gaussian", penalty="slope").fit(X)
    price = 2 * price_by_brute_force(X, 5)
    for subset in oracles.all_subsets(5, 5):
        s = len(subset)
        expected = (likelihood(X, subset) - price * (s + s * (s + 1) / 2)) / 300
        assert found.subset_scores_[subset] == pytest.approx(expected, abs=1e-4)
    assert found.partition_ == select_partition(found.subset_scores_).partition


def test_penalties_keep_independent_columns_apart_where_the_likelihood_alone_merges_them():
    X, truth = make_block_gaussian([2, 2, 1], 400, sigma=0.7, random_state=0)
    own = score_subsets(X, X, max_block_size=5, marginal="gaussian")
    assert len(select_partition(own).partition) == 1
    for penalty in ("bic", "slope"):
        assert ISDE(5, marginal="gaussian", penalty=penalty).fit(X).partition_ == truth


def test_one_column_has_no_slope(rows):
    assert ISDE(marginal="gaussian", penalty="slope").fit(rows[:, [0]]).partition_ == ((0,),)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"penalty": "aic", "marginal": "gaussian"}, "penalty='aic' is unknown: use 'bic', 'slope' or None"),
        ({"penalty": "bic", "marginal": "gaussian", "split": "paper"}, "leave split='paper' out, or the penalty"),
        ({"penalty": "bic", "marginal": "gaussian", "split": 0.5}, "leave split=0.5 out"),
        ({"penalty": "bic"}, "needs a family with a fixed number of parameters, such as marginal='gaussian'"),
        ({"penalty": "slope", "marginal": "stack"}, "needs a family with a fixed number of parameters"),
        ({"penalty": "bic", "marginal": ["gaussian", "kde"]}, "needs a family with a fixed number of parameters"),
    ],
)
def test_penalties_that_cannot_be_had_are_refused(rows, params, complaint):
    with pytest.raises(ValueError, match=complaint):
        ISDE(**params).fit(rows)


def test_no_penalty_asks_nothing():
    check_penalty(None, "paper", resolve_marginal("kde"))


def test_a_model_with_a_penalty_is_saved_and_loaded(rows, tmp_path):
    model = ISDE(3, marginal="gaussian", penalty="bic").fit(rows)
    model.save(tmp_path / "model.isde")
    again = isde.load(tmp_path / "model.isde")
    assert again.penalty == "bic"
    assert again.partition_ == model.partition_
    np.testing.assert_array_equal(again.subset_scores_.scores, model.subset_scores_.scores)


@pytest.mark.parametrize("marginal", ["kde", "stack", KernelDensity()], ids=str)
def test_the_cost_is_said_for_all_splits_together(rows, capsys, monkeypatch, marginal):
    """One split takes a second by a clock that goes by seconds."""
    ticks = count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    told = []
    for n_splits in (1, 40):
        ISDE(1, marginal=marginal, split=ShuffleSplit(n_splits, train_size=0.5), verbose=1).fit(rows[:, :1])
        told.append(capsys.readouterr().err)
    assert "40 splits of the rows: " in told[1]
    (one,) = re.findall(r": about (\d+) s(?! in all)", told[0])
    ((amount, unit),) = re.findall(r": about (\d+) (s|minutes) in all", told[1])
    assert int(amount) == (40 * int(one) if unit == "s" else round(40 * int(one) / 60))
