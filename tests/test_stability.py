"""How sure is a partition: frequencies, noise and the simplest partition, against what they are defined by."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ShuffleSplit

import isde
import oracles
from isde import ISDE, SubsetScores, score_subsets, select_partition
from isde.stability import (
    LISTED,
    Stability,
    _standard_error,
    all_gains,
    all_margins,
    assess,
    largest_margins,
    rows_of_parts,
    simplest_within,
)
from oracles import ROUNDING

pytestmark = pytest.mark.filterwarnings("ignore:.*as large as max_block_size:isde.errors.ISDEWarning")


@pytest.fixture
def pair(rng):
    """200 Gaussian rows: columns 0 and 1 nearly the same, 2 and 3 alone."""
    X = rng.normal(size=(200, 4))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    return X


def gaussian(**params):
    return ISDE(3, marginal="gaussian", split="paper", random_state=0, **params)


def equal(one, other):
    assert one.partitions == other.partitions
    for name in ("together", "gains", "margins", "noise"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.simplest, one.simplest_error) == (other.simplest, other.simplest_error)


def margin(scores, subset):
    """By all partitions of the subset into smaller blocks."""
    divisions = (p for p in oracles.all_partitions(len(subset), len(subset)) if len(p) > 1)
    return scores[subset] - max(sum(scores[tuple(subset[c] for c in b)] for b in p) for p in divisions)


# --- what is counted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 25])
def test_frequencies_follow_from_the_partitions_met(rng, n):
    X = rng.normal(size=(60, 4))
    X[:, 1] += 0.3 * X[:, 0]
    found = gaussian().fit(X).stability(X, n, n_null=3, random_state=0)
    shares = [share for _, share in found.partitions]
    assert sum(shares) == pytest.approx(1, abs=ROUNDING)
    assert shares == sorted(shares, reverse=True)
    assert len({partition for partition, _ in found.partitions}) == len(found.partitions) > 1
    np.testing.assert_array_equal(found.together, found.together.T)
    np.testing.assert_array_equal(np.diag(found.together), 1)
    for a in range(4):
        for b in range(4):
            shared = sum(share for p, share in found.partitions if any(a in block and b in block for block in p))
            assert found.together[a, b] == pytest.approx(shared, abs=ROUNDING)
    for block, confidence in zip(found.partition, found.block_confidence, strict=True):
        assert confidence == pytest.approx(sum(share for p, share in found.partitions if block in p), abs=ROUNDING)
    assert found.same_partition == pytest.approx(dict(found.partitions).get(found.partition, 0), abs=ROUNDING)
    assert found.gains.shape == (n, len(found.partition))
    assert found.noise.shape == (3, 2)


def test_each_resample_is_the_same_analysis_of_some_rows(pair):
    model = gaussian(scale=None).fit(pair)
    found = model.stability(pair, 6, n_null=4, share=0.4, random_state=3)
    rng, partitions, gains, margins, noise = np.random.RandomState(3), [], [], [], []

    def table(rows):
        ((fit, score),) = ShuffleSplit(1, train_size=0.5, random_state=rng.randint(2**31 - 1)).split(rows)
        return score_subsets(rows[fit], rows[score], max_block_size=3, marginal="gaussian")

    for _ in range(6):
        scores = table(pair[rng.permutation(200)[:80]])
        partitions.append(select_partition(scores).partition)
        gains.append([scores.gain(block) for block in model.partition_])
        margins.append([margin(scores, block) if len(block) > 1 else np.nan for block in model.partition_])
    for _ in range(4):
        part = pair[rng.permutation(200)[:80]]
        scores = table(np.column_stack([rng.permutation(column) for column in part.T]))
        noise.append([max(margin(scores, s) for s in oracles.all_subsets(4, 3) if len(s) == size) for size in (2, 3)])
    np.testing.assert_allclose(found.margins, margins, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.gains, gains, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.noise, noise, rtol=0, atol=ROUNDING)
    assert {p: share * 6 for p, share in found.partitions} == {p: partitions.count(p) for p in partitions}


def test_margins_are_over_the_best_division_and_the_largest_those_of_each_size(rng):
    scores = {subset: float(rng.normal()) for subset in oracles.all_subsets(5, 4)}
    table = SubsetScores.from_dict(scores)
    larger = [s for s in table.subsets if len(s) > 1]
    np.testing.assert_allclose(all_margins(table)[5:], [margin(table, s) for s in larger], rtol=0, atol=ROUNDING)
    assert np.isnan(all_margins(table)[:5]).all()
    expected = [max(margin(table, s) for s in larger if len(s) == size) for size in (2, 3, 4)]
    np.testing.assert_allclose(largest_margins(table), expected, rtol=0, atol=ROUNDING)


def test_columns_without_a_density_gain_nothing_and_say_nothing():
    never = -np.inf
    scores = {(0,): never, (1,): 1.0, (2,): 2.0, (0, 1): never, (0, 2): never, (1, 2): never}
    np.testing.assert_array_equal(all_gains(SubsetScores.from_dict(scores)), [0, 0, 0, 0, 0, never])
    np.testing.assert_array_equal(largest_margins(SubsetScores.from_dict(scores)), [0])


def test_resamples_without_a_density_are_left_out_of_the_standard_error():
    assert _standard_error(np.array([1.0, -np.inf, 2.0, 4.0]), 20, 100) == pytest.approx(
        np.std([1, 2, 4], ddof=1) / 2, abs=ROUNDING
    )
    assert _standard_error(np.array([1.0, -np.inf]), 20, 100) == 0


# --- what it says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", ["gaussian", "kde", "stack"])
def test_a_strong_pair_is_certain(pair, marginal):
    model = ISDE(2, marginal=marginal, split="paper", random_state=0).fit(pair[:, :3])
    found = model.stability(pair[:, :3], 8, n_null=9, random_state=0)
    assert found.partition == ((0, 1), (2,))
    assert found.together[0, 1] == 1
    assert found.block_confidence[0] == 1
    assert found.block_p_values[0] == pytest.approx(0.1, abs=ROUNDING)
    assert np.isnan(found.block_p_values[1])
    assert found.gains[:, 0].min() > found.noise.max()


def test_gains_of_independent_columns_are_noise(rng):
    X = rng.normal(size=(150, 4))
    model = gaussian().fit(X)

    def score(rows, seed):
        half = len(rows) // 2
        return score_subsets(rows[:half], rows[half:], max_block_size=3, marginal="gaussian")

    found = assess(
        score,
        X,
        model.subset_scores_,
        ((0, 1), (2, 3)),
        n=20,
        n_null=19,
        share=0.5,
        random_state=0,
        verbose=0,
    )
    assert (found.block_p_values > 0.3).all()
    assert abs(found.gains.mean()) < 0.05


def test_the_p_value_counts_null_resamples_that_gain_as_much(rng):
    found = Stability(
        partition=((0, 1), (2, 3, 4), (5,)),
        names=tuple("abcdef"),
        together=np.eye(6),
        partitions=[(((0, 1), (2, 3, 4), (5,)), 1.0)],
        gains=np.array([[0.4, 0.9, 0.0], [0.6, 0.9, 0.0]]),
        margins=np.array([[0.4, 0.1, np.nan], [0.6, 0.3, np.nan]]),
        noise=np.array([[0.5, 0.0], [0.6, 0.2], [0.4, 0.3], [0.1, 0.1]]),
        simplest=((0, 1), (2,), (3, 4), (5,)),
        simplest_error=0.1,
    )
    np.testing.assert_array_equal(found.block_p_values, [3 / 5, 3 / 5, np.nan])
    told = str(found)
    assert "100% of 2 resamples return the same partition" in told
    assert "{a, b}   in 100%   gain 0.5000 nats, by chance p <= 0.6" in told
    assert "{c, d, e}   in 100%   gain 0.9000 nats, 0.2000 over its best division, by chance p <= 0.6\n" in told
    assert "{f}   in 100%\n" in told
    assert told.endswith("within one standard error (0.1000 nats), and simpler: with {c} {d, e}")


def test_without_null_resamples_there_are_no_p_values(pair):
    found = gaussian().fit(pair).stability(pair, 3, n_null=0, random_state=0)
    assert np.isnan(found.block_p_values).all()
    assert found.noise.shape == (0, 2)
    assert "gain" in str(found)
    assert "chance" not in str(found)


def test_a_stranger_merged_into_a_pair_is_seen(rng):
    X = rng.normal(size=(400, 3))
    X[:, 1] += X[:, 0]
    model = gaussian().fit(X)
    found = assess(
        lambda rows, seed: gaussian().fit(rows).subset_scores_,
        X,
        model.subset_scores_,
        ((0, 1, 2),),
        n=20,
        n_null=19,
        share=0.5,
        random_state=0,
        verbose=0,
    )
    assert found.gains.min() > 0.1
    assert found.block_p_values[0] > 0.3


def test_blocks_of_one_column_have_no_noise(pair):
    found = ISDE(1, marginal="gaussian", split="paper").fit(pair).stability(pair, 3, n_null=2, random_state=0)
    assert found.same_partition == 1
    assert found.noise.shape == (2, 0)
    assert found.simplest_error == 0


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_standard_error_is_that_of_other_data(share):
    """Differences of two partitions over fresh data sets spread as one data set says of itself."""

    def draw(seed):
        X = np.random.default_rng(seed).normal(size=(300, 2))
        return X @ [[1, 0.5], [0, 0.8]]

    def fitted(X):
        return ISDE(2, marginal="gaussian", penalty="bic").fit(X)

    fresh = [fitted(draw(seed)).subset_scores_.gain((0, 1)) for seed in range(80)]
    told = [
        _standard_error(stability.gains[:, 0], round(share * 300), 300)
        for stability in (
            fitted(draw(seed)).stability(draw(seed), 40, n_null=0, share=share, random_state=0) for seed in range(6)
        )
    ]
    assert np.mean(told) == pytest.approx(np.std(fresh), rel=0.3)


# --- the simplest partition ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [0.0, 0.3, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_simplest_partition_within_its_error_equals_full_enumeration(seed, tolerance):
    rng = np.random.default_rng(seed)
    scores = {subset: float(rng.normal(scale=len(subset))) for subset in oracles.all_subsets(6, 3)}
    partitions = sorted(oracles.all_partitions(6, 3), key=lambda p: -sum(scores[block] for block in p))
    errors = tolerance * rng.uniform(size=len(partitions))
    best, expected = sum(scores[block] for block in partitions[0]), partitions[0]
    for p, error in zip(partitions, errors, strict=True):
        if best - sum(scores[block] for block in p) <= error and len(p) > len(expected):
            expected = p
    assert simplest_within(SubsetScores.from_dict(scores), partitions, errors) == expected


def test_the_simplest_partition_is_within_the_error_of_its_difference(rng):
    X = rng.normal(size=(300, 4))
    X[:, 1] += X[:, 0]
    X[:, 3] += 0.1 * X[:, 2]
    model, rng_again, differences = gaussian(scale=None).fit(X), np.random.RandomState(0), []
    model.partition_ = ((0, 1), (2, 3))
    found = model.stability(X, 10, n_null=0, random_state=0)
    for _ in range(10):
        rows = X[rng_again.permutation(300)[:150]]
        split = ShuffleSplit(1, train_size=0.5, random_state=rng_again.randint(2**31 - 1))
        ((fit, score),) = split.split(rows)
        table = score_subsets(rows[fit], rows[score], max_block_size=3, marginal="gaussian")
        differences.append(sum(table[block] for block in found.simplest) - table[0, 1] - table[2, 3])
    assert found.simplest == ((0, 1), (2,), (3,))
    assert found.simplest_error == pytest.approx(_standard_error(np.array(differences), 150, 300), abs=ROUNDING)


def test_strong_blocks_do_not_hide_a_weak_one(rng):
    """The error is that of the difference: how much the strong pair gains does not matter for the weak one."""
    X = rng.normal(size=(2000, 4))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    X[:, 3] += 0.15 * X[:, 2]
    model = ISDE(2, marginal="gaussian", random_state=0).fit(X)
    found = model.stability(X, 20, n_null=0, random_state=0)
    weak = found.gains[:, found.partition.index((2, 3))].mean()
    assert _standard_error(found.gains.sum(axis=1), 1000, 2000) > weak
    assert found.simplest == ((0, 1), (2, 3))


def test_partitions_too_many_to_be_told_apart_are_no_obstacle(pair, monkeypatch):
    model = gaussian().fit(pair)
    asked = []

    def refuse(scores, n):
        asked.append(n)
        raise isde.errors.ISDEError("too many are about equal")

    monkeypatch.setattr("isde.stability.best_partitions", refuse)
    found = model.stability(pair, 3, n_null=0, random_state=0)
    assert asked == list(LISTED)
    assert found.simplest == model.partition_


# --- the call --------------------------------------------------------------------------------------------------


def test_the_seed_decides_everything(pair):
    model = gaussian().fit(pair)
    one, same, other = (model.stability(pair, 5, n_null=3, random_state=seed) for seed in (1, 1, 2))
    equal(one, same)
    assert (one.gains != other.gains).any()


@pytest.mark.parametrize("marginal", ["kde", "stack"])
def test_the_number_of_workers_changes_no_bit(pair, marginal):
    one, two = (
        ISDE(2, marginal=marginal, split="paper", random_state=0, n_jobs=n_jobs)
        .fit(pair)
        .stability(pair, 2, n_null=1, random_state=0)
        for n_jobs in (1, 2)
    )
    equal(one, two)


def test_nothing_about_the_model_changes(pair):
    model = gaussian().fit(pair)
    scores, params = model.subset_scores_, model.get_params()
    model.stability(pair, 2, n_null=1)
    assert model.subset_scores_ is scores
    assert model.get_params() == params


def test_units_of_the_data_do_not_matter(pair):
    factors = np.array([1024.0, 2.0**-20, 1.0, 4.0])
    one, other = (gaussian().fit(X).stability(X, 4, n_null=2, random_state=0) for X in (pair, pair * factors))
    np.testing.assert_allclose(one.gains, other.gains, rtol=0, atol=ROUNDING)
    assert one.partitions == other.partitions


def test_frames_keep_their_names(pair):
    frame = pd.DataFrame(pair, columns=["left", "right", "this", "that"])
    model = gaussian().fit(frame)
    found = model.stability(frame, 4, n_null=2, random_state=0)
    assert found.names == ("left", "right", "this", "that")
    assert "{left, right" in str(found)
    equal(found, gaussian().fit(pair).stability(pair, 4, n_null=2, random_state=0))


def test_names_are_those_of_the_model_where_the_table_has_none(pair):
    frame = pd.DataFrame(pair, columns=["left", "right", "this", "that"])
    model = gaussian().fit(frame, subset_scores=gaussian().fit(pair).subset_scores_)
    assert model.stability(frame, 2, n_null=0).names == ("left", "right", "this", "that")


@pytest.mark.parametrize(
    "params",
    [
        {"marginal": "gaussian", "split": "density"},
        {"marginal": "gaussian", "penalty": "bic"},
        {"marginal": "kde", "split": 0.5, "bandwidths": [0.1, 0.2]},
    ],
    ids=str,
)
def test_a_loaded_model_says_the_same(pair, tmp_path, params):
    model = ISDE(2, random_state=0, **params).fit(pair)
    model.save(tmp_path / "model.isde")
    equal(*(m.stability(pair, 3, n_null=2, random_state=0) for m in (model, isde.load(tmp_path / "model.isde"))))


def test_few_rows_and_tied_columns_are_no_obstacle(rng):
    X = np.column_stack([rng.integers(3, size=30), rng.normal(size=30), rng.normal(size=30)]).astype(float)
    model = ISDE(2, split="paper", random_state=0).fit(X)
    found = model.stability(X, 3, n_null=2, random_state=0)
    assert np.isfinite(found.gains).all()


@pytest.mark.parametrize("penalty", ["bic", "slope"])
def test_a_column_with_one_value_in_a_part_of_the_rows_is_no_obstacle(rng, penalty):
    X = rng.normal(size=(40, 3))
    X[:, 0] = 0.0
    X[:2, 0] = 1.0
    with pytest.warns(isde.errors.ISDEWarning, match="Repeated"):
        model = ISDE(2, marginal="gaussian", penalty=penalty).fit(X)
    found = model.stability(X, 12, n_null=6, random_state=0)
    assert not np.isnan(found.simplest_error)
    assert str(found)


def test_blocks_are_as_large_as_in_the_table(pair):
    model = ISDE(2, marginal="gaussian", split="paper", random_state=0).fit(pair).set_params(max_block_size=3)
    assert model.stability(pair, 2, n_null=2, random_state=0).noise.shape == (2, 1)


def test_an_unfitted_model_says_so(pair):
    with pytest.raises(NotFittedError):
        ISDE().stability(pair)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"n": 1}, "n=1 and n_null=20: at least 2 resamples"),
        ({"n": 0}, "n=0"),
        ({"n": 2.5}, "n=2.5"),
        ({"n_null": -1}, "n_null=-1: at least 2 resamples, and not less than 0"),
        ({"share": 0.0}, "share=0.0 of 200 rows"),
        ({"share": 1.0}, "share=1.0 of 200 rows must leave at least 8 of them, and be less than 1"),
        ({"share": 0.03}, "share=0.03 of 200 rows must leave at least 8"),
        ({"share": -0.5}, "share=-0.5"),
    ],
)
def test_bad_arguments_are_refused(pair, arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        gaussian().fit(pair).stability(pair, **arguments)


def test_other_columns_than_fitted_are_refused(pair):
    with pytest.raises(ValueError, match="3 features"):
        gaussian().fit(pair).stability(pair[:, :3])


def test_progress_goes_to_standard_error(pair, capsys):
    model = gaussian(verbose=1).fit(pair)
    capsys.readouterr()
    model.stability(pair, 2, n_null=1)
    told = capsys.readouterr().err
    assert "Resampling" in told
    assert "Scoring" not in told


def test_a_share_that_is_no_number_is_refused_as_any_other(rows):
    with pytest.raises(ValueError, match="share=nan of 120 rows must leave at least 8"):
        rows_of_parts(float("nan"), 120)
