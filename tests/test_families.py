"""More than one family: lists, of which each subset takes the best, and the default, which has one for each step."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from isde import ISDE, SubsetScores, fit_blocks, load, score_subsets, score_tables
from isde.cli.fit import command as fit_command
from isde.errors import InputError
from isde.joined_tables import average_scores, best_scores
from isde.marginals import DEFAULT_MARGINAL, MARGINAL_NAMES, resolve_marginal
from isde.marginals.gaussian import GaussianMarginal


def test_a_list_scores_each_subset_by_its_best_family(rows):
    families = ["gaussian", "kde", "stack"]
    alone = [score_subsets(rows[:60], rows[60:], max_block_size=3, marginal=family) for family in families]
    best = score_subsets(rows[:60], rows[60:], max_block_size=3, marginal=families)
    np.testing.assert_array_equal(best.scores, np.max([table.scores for table in alone], axis=0))
    chosen = np.argmax([table.scores for table in alone], axis=0)
    expected = [alone[c].bandwidths[i] for i, c in enumerate(chosen)]
    np.testing.assert_array_equal(best.bandwidths, expected)


def ring(rng, n):
    angle = rng.uniform(0, 2 * np.pi, size=n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))


def test_each_block_takes_the_family_that_suits_it(rng):
    gaussian = rng.normal(size=(400, 2)) @ [[1, 0.8], [0, 0.6]]
    density = fit_blocks(np.column_stack([gaussian, ring(rng, 400)]), [(0, 1), (2, 3)], ["gaussian", "kde"])
    assert [block.kind for block in density.blocks] == ["gaussian", "kde"]
    assert np.isnan(density.bandwidths).tolist() == [True, False]


def test_the_families_of_an_estimator_are_those_of_its_blocks(rng):
    X = np.column_stack([ring(rng, 400), rng.normal(size=400)])
    model = ISDE(3, marginal=["kde", "gaussian"], split="paper", random_state=0).fit(X)
    assert model.partition_ == ((0, 1), (2,))
    assert [block.kind for block in model.density_.blocks] == ["kde", "gaussian"]


@pytest.mark.filterwarnings("ignore:.* order the rows alike:isde.errors.ISDEWarning")
def test_a_family_that_fails_on_a_block_is_not_taken(rng):
    X = rng.normal(size=(60, 1)) * [1.0, 2.0]
    with pytest.raises(InputError, match="singular"):
        fit_blocks(X, [(0, 1)], "gaussian")
    assert fit_blocks(X, [(0, 1)], ["gaussian", "kde"]).blocks[0].kind == "kde"


def test_zero_keeps_its_meaning_in_a_list(rng):
    X = rng.normal(size=(200, 1)) + 5
    alone, listed = (fit_blocks(X, [(0,)], marginal) for marginal in ("gaussian-zero-mean", ["gaussian-zero-mean"]))
    np.testing.assert_array_equal(alone.score_samples(X), listed.score_samples(X))
    assert not resolve_marginal(["gaussian", "kde"]).traits.keeps_zero
    assert resolve_marginal(["gaussian", "gaussian-zero-mean"]).traits.keeps_zero


def test_the_folds_that_choose_a_family_for_a_block_are_those_asked_for(rng):
    class Counting(GaussianMarginal):
        def fit_blocks(self, X, blocks, *, n_jobs, bounds):
            seen.append(len(X))
            return super().fit_blocks(X, blocks, n_jobs=n_jobs, bounds=bounds)

    seen = []
    fit_blocks(rng.normal(size=(90, 1)), [(0,)], [Counting()], cv=3)
    assert seen == [60, 60, 60, 90]


def table(scores, unsettled=()):
    return replace(SubsetScores.from_dict(scores), unsettled=unsettled)


def test_a_column_is_unsettled_where_the_family_it_takes_is():
    kernels = table({(0,): 1.0, (1,): 1.0}, unsettled=(0, 1))
    gaussians = table({(0,): 2.0, (1,): 0.0})
    assert best_scores([gaussians, kernels]).unsettled == best_scores([kernels, gaussians]).unsettled == (1,)


def test_a_column_is_unsettled_where_it_is_in_any_split():
    splits = [table({(0,): 1.0, (1,): 1.0}, unsettled=unsettled) for unsettled in ((), (1,), (0,))]
    assert average_scores(splits, common=0.5).unsettled == (0, 1)


def test_a_list_of_nothing_is_refused():
    with pytest.raises(TypeError, match="nor a list of these"):
        resolve_marginal([])


def test_a_family_is_taken_by_its_mean_over_splits_not_split_by_split(rows):
    X, families = rows[:, [0, 2]], ["gaussian", "kde"]
    split = ShuffleSplit(6, train_size=0.4, random_state=0)
    alone = [ISDE(2, marginal=family, split=split).fit(X).subset_scores_ for family in families]
    best = ISDE(2, marginal=families, split=split).fit(X).subset_scores_
    chosen = np.argmax([table.scores for table in alone], axis=0)
    for name in ("scores", "errors", "bandwidths"):
        expected = [getattr(alone[c], name)[i] for i, c in enumerate(chosen)]
        np.testing.assert_array_equal(getattr(best, name), expected)


def test_a_list_in_a_list_is_one_list(rows):
    nested, flat = (
        resolve_marginal(families) for families in (["kde", ["gaussian", "stack"]], ["kde", "gaussian", "stack"])
    )
    assert nested == flat


def test_progress_of_a_list_counts_every_family(rows, monkeypatch):
    done, announced = [], []

    @contextmanager
    def counting(total, *_args, **_kwargs):
        announced.append(total)
        yield done.append

    monkeypatch.setattr(score_tables, "progress_bar", counting)
    table = score_subsets(rows[:60], rows[60:], max_block_size=2, marginal=["gaussian", "kde"])
    assert announced == [sum(done)] == [2 * len(table)]


# --- one family to find the blocks, another to describe them ---------------------------------------------------


def test_one_family_finds_the_blocks_and_another_describes_them(rng, tmp_path):
    X = np.column_stack([ring(rng, 300), rng.normal(size=300)])
    model = ISDE(3, marginal="kde+stack", split="paper", random_state=0).fit(X)
    kde = ISDE(3, marginal="kde", split="paper", random_state=0).fit(X)
    for name in ("scores", "bandwidths"):
        np.testing.assert_array_equal(getattr(model.subset_scores_, name), getattr(kde.subset_scores_, name))
    assert model.selection_ == kde.selection_
    stack = fit_blocks(X, kde.partition_, "stack")
    np.testing.assert_array_equal(model.score_samples(X), stack.score_samples(X))
    model.save(tmp_path / "model.isde")
    np.testing.assert_array_equal(load(tmp_path / "model.isde").score_samples(X), stack.score_samples(X))


def test_blocks_side_by_side_are_those_one_by_one(rng):
    X, blocks = np.column_stack([ring(rng, 200), rng.normal(size=200)]), [(0, 1), (2,)]
    together = [fit_blocks(X, blocks, "stack", n_jobs=n_jobs).score_blocks(X) for n_jobs in (1, 2)]
    # In the units of the data alone: each block has its columns' own rescaling.
    alone = [
        fit_blocks(X[:, list(block)], [range(len(block))], "stack").score_samples(X[:, list(block)]) for block in blocks
    ]
    np.testing.assert_array_equal(together[0], together[1])
    np.testing.assert_array_equal(together[0], np.column_stack(alone))


def test_the_command_line_knows_every_family_and_the_default():
    option = next(o for o in fit_command.params if o.name == "marginal")
    assert set(option.type.choices) == set(MARGINAL_NAMES)
    assert option.default == DEFAULT_MARGINAL == ISDE().marginal
