"""Numbers about a fit, each held against its definition written out."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from isde import (
    CVKDE,
    ISDE,
    SubsetScores,
    TreeISDE,
    best_partitions,
    edit_distance,
    enumerate_partitions,
    fit_blocks,
    fit_tree,
    select_partition,
    select_tree,
)
from isde.errors import InputError, ISDEWarning, collecting, warn
from isde.fit_record import fingerprint
from isde.inspection import (
    bandwidth_curve,
    blame,
    block_gains,
    block_shape,
    extremes,
    hierarchy,
    lowest_rows,
    neighbourhood,
    pair_gains,
    plausibility,
    runners_up,
    torn_columns,
)
from isde.inspection.shapes import by_fifths, highest_levels
from isde.partitions import random_partition
from isde.plots import GainHeatmapDisplay
from isde.trees import NO_PARENT, Tree
from oracles import ROUNDING


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 6))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 0] - X[:, 1]
    X[:, 4] += 2 * X[:, 3]
    return 10 * X + 5


@pytest.fixture(scope="module")
def model(rows):
    return ISDE(3, marginal="kde", split="paper", random_state=0).fit(rows)


@pytest.fixture(scope="module")
def charged(rows):
    return ISDE(3, marginal="copula", split="paper", random_state=0).fit(rows)


def random_scores(d, k, seed):
    rng, family = np.random.default_rng(seed), {}
    for size in range(1, k + 1):
        for subset in combinations(range(d), size):
            family[subset] = float(rng.normal())
    return SubsetScores.from_dict(family)


# --- gains -----------------------------------------------------------------------------------------------------


def test_the_gain_of_a_block_is_its_score_less_those_of_its_columns(model):
    scores = model.subset_scores_
    for block, found in zip(model.partition_, block_gains(model), strict=True):
        assert found.columns == block
        assert found.gain == pytest.approx(scores[block] - sum(scores[(c,)] for c in block), abs=ROUNDING)


def test_pairs_are_a_symmetric_matrix_with_errors_and_chance(charged):
    scores = charged.subset_scores_
    found = pair_gains(scores, charged.partition_)
    for i, j in combinations(range(6), 2):
        at = scores.subsets.index((i, j))
        assert found.gains[i, j] == found.gains[j, i] == scores.gain((i, j))
        assert found.chances[i, j] == scores.charges[at] > 0
        assert found.inside[i, j] == any({i, j} <= set(block) for block in charged.partition_)
        assert found.passes[i, j] == (found.gains[i, j] > found.chances[i, j])
    assert np.isnan(np.diag(found.gains)).all()
    assert np.isnan(pair_gains(scores.restrict(1)).gains).all()


def test_a_column_torn_from_its_block_costs_what_the_partition_without_it_scores_less(charged):
    scores = charged.subset_scores_
    found = torn_columns(charged)
    assert {torn.column for torn in found} == {c for block in charged.partition_ if len(block) > 1 for c in block}
    for torn in found:
        rest = tuple(c for c in torn.block if c != torn.column)
        whole, apart = scores.objective(torn.block), scores.objective(rest) + scores.objective((torn.column,))
        assert torn.loss - torn.chance == pytest.approx(whole - apart, abs=1e-9)
        assert torn.loss > torn.chance  # else the partition would not be the best
    assert [torn.loss for torn in found] == sorted((torn.loss for torn in found), reverse=True)


# --- the tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_the_tree_keeps_blocks_together_and_never_bends_down(seed):
    table = random_scores(7, 3, seed)
    partition = random_partition(7, 3, random_state=seed)
    tree = hierarchy(table, partition)
    assert sorted(tree.order) == list(range(7))
    for block in partition:
        places = sorted(tree.order.index(c) for c in block)
        assert places == list(range(places[0], places[0] + len(block)))
    columns, height = {c: {c} for c in range(7)}, dict.fromkeys(range(7), 0.0)
    for number, merge in enumerate(tree.merges):
        assert merge.height >= max(height[merge.left], height[merge.right])
        columns[7 + number], height[7 + number] = columns[merge.left] | columns[merge.right], merge.height
        assert merge.size == len(columns[7 + number])
        assert merge.inside == any(columns[7 + number] <= set(block) for block in partition)
    assert len(tree.merges) == 6


def test_what_is_larger_than_any_subset_scored_hangs_together_by_its_pairs():
    table = random_scores(6, 2, 3)
    tree = hierarchy(table, ((0, 2, 3, 5), (1, 4)))
    assert {*tree.order[:4]} in ({0, 2, 3, 5}, {1, 4, tree.order[2], tree.order[3]})
    assert [merge.inside for merge in tree.merges].count(True) == 4
    alone = hierarchy(table.restrict(1), tuple((c,) for c in range(6)))
    assert {merge.height for merge in alone.merges} == {1.0}


def test_what_is_held_together_jointly_parts_at_one_height():
    scores = dict.fromkeys([(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)], 0.0) | {(0, 1, 2): 0.5}
    tree = hierarchy(SubsetScores.from_dict(scores), ((0, 1, 2),))
    expected = 1 - np.sqrt(1 - np.exp(-1.0))
    assert [merge.height for merge in tree.merges] == pytest.approx([expected, expected])


# --- other partitions ------------------------------------------------------------------------------------------


def test_runners_up_are_the_next_best_with_their_distance_in_score_and_edits(charged):
    found = runners_up(charged, 5)
    expected = best_partitions(charged.subset_scores_, 6)[1:]
    assert [one.partition for one in found] == [one.partition for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.below == pytest.approx(charged.selection_.objective - other.objective, abs=ROUNDING)
        assert one.edits == edit_distance(charged.partition_, other.partition)
        kept = set(charged.partition_) - set(one.gone)
        assert kept | set(one.new) == set(one.partition)
    assert runners_up(ISDE(1, marginal="gaussian").fit(np.random.default_rng(0).normal(size=(40, 2)))) == []


def test_walks_meet_partitions_with_their_true_distance_and_score(charged):
    scores = charged.subset_scores_
    found = neighbourhood(scores, 3, 6, random_state=1)
    all_of_them = {
        (
            edit_distance(charged.partition_, partition),
            round(charged.selection_.objective - sum(map(scores.objective, partition)), 8),
        )
        for partition in enumerate_partitions(6, 3)
    }
    met = set(zip(found.edits.tolist(), found.below.round(8).tolist(), strict=True))
    assert (0, 0.0) in met
    assert met <= all_of_them
    assert (found.below >= 0).all()
    assert neighbourhood(scores.restrict(1)).below.tolist() == [0.0]


def test_extremes_are_the_best_and_the_worst_of_all():
    table = random_scores(6, 3, 0)
    totals = sorted(sum(table[block] for block in partition) for partition in enumerate_partitions(6, 3))
    found = extremes(table, 4)
    assert found["best"] == pytest.approx(totals[::-1][:4])
    assert found["worst"] == pytest.approx(totals[:4])
    assert totals[0] <= found["random"].min() <= found["random"].max() <= totals[-1]


# --- rows ------------------------------------------------------------------------------------------------------


def test_the_lowest_rows_name_the_block_to_blame(model, rows):
    far = rows.copy()
    block = next(block for block in model.partition_ if len(block) > 1)
    far[17, block[0]] += 400
    found = lowest_rows(model, far, 3)
    assert found[0].row == 17
    assert found[0].block == block
    assert [one.log_density for one in found] == sorted(model.score_samples(far))[:3]
    parts = model.score_blocks(far)
    place = model.partition_.index(block)
    assert found[0].shortfall == pytest.approx(np.median(parts[:, place]) - parts[17, place])
    assert blame(model, far, 1 / 200) == {one: int(one == block) for one in model.partition_}
    assert sum(blame(model, far, 0.1).values()) == 20


@pytest.mark.parametrize("call", [lambda m, X: lowest_rows(m, X, 0), lambda m, X: blame(m, X, 0.0)])
def test_no_rows_are_no_question(model, rows, call):
    with pytest.raises(ValueError, match="must be"):
        call(model, rows)


# --- bandwidths ------------------------------------------------------------------------------------------------


def test_the_bandwidth_chosen_is_the_best_of_its_curve(model, rows):
    for block, chosen in zip(model.partition_, model.bandwidths_, strict=True):
        curve = bandwidth_curve(model, rows, block)
        assert curve.chosen == chosen
        assert curve.bandwidths[curve.scores.argmax()] == chosen
        assert (np.diff(curve.bandwidths) > 0).all()


def test_curves_are_in_the_units_of_the_data(model, rows):
    block = model.partition_[0]
    other = fit_blocks(100 * rows, model.partition_, "kde")
    scaled = ISDE(3, marginal="kde").set_params(**model.get_params())
    scaled.density_, scaled.partition_ = other, model.partition_
    shift = len(block) * np.log(100)
    found, same = bandwidth_curve(scaled, 100 * rows, block), bandwidth_curve(model, rows, block)
    assert found.scores.max() == pytest.approx(same.scores.max() - shift, abs=1e-6)


def test_other_families_have_no_curve_and_say_so(charged, rows, model):
    with pytest.raises(InputError, match="marginal='kde'"):
        bandwidth_curve(charged, rows, charged.partition_[0])
    with pytest.raises(ValueError, match="no block of the model"):
        bandwidth_curve(model, rows, (0, 1, 2, 3, 4, 5))


# --- shapes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["model", "charged"])
def test_shapes_are_densities_in_the_units_of_the_data(which, rows, request):
    fitted = request.getfixturevalue(which)
    block = max(fitted.partition_, key=len)
    shape = block_shape(fitted, block, rows)
    assert shape.exact
    for column in shape.columns:
        step = column.points[1] - column.points[0]
        assert column.density.sum() * step == pytest.approx(1, abs=0.02)
        inside = (rows[:, column.column] >= column.points[0]) & (rows[:, column.column] <= column.points[-1])
        assert column.counts.sum() == inside.sum()
        assert column.n_outside == (~inside).sum()
    for pair in shape.pairs:
        area = (pair.x[1] - pair.x[0]) * (pair.y[1] - pair.y[0])
        assert pair.density.sum() * area == pytest.approx(1, abs=0.03)
        assert pair.fifths.sum() == pytest.approx(1)
        assert (np.diff(pair.levels) < 0).all()
    assert len(shape.pairs) == len(block) * (len(block) - 1) // 2
    assert len(block_shape(fitted, block, max_pairs=1).pairs) == 1


def test_a_pair_is_the_density_itself(model):
    block = next(block for block in model.partition_ if len(block) == 2)
    (pair,) = block_shape(model, block).pairs
    place = model.partition_.index(block)
    X = np.full((2, 6), 5.0)
    X[:, list(block)] = [[pair.x[10], pair.y[30]], [pair.x[25], pair.y[7]]]
    expected = np.exp(model.score_blocks(X)[:, place])
    assert [pair.density[10, 30], pair.density[25, 7]] == pytest.approx(expected, rel=1e-6)


def test_a_family_without_exact_marginals_is_counted():
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(3), 0.2 * np.eye(3) + 0.8, size=150)
    fitted = ISDE(3, marginal=GaussianMixture(1, random_state=0), split="paper", random_state=0).fit(X)
    (block,) = fitted.partition_
    shape = block_shape(fitted, block)
    assert not shape.exact
    for pair in shape.pairs:
        assert pair.density.sum() * (pair.x[1] - pair.x[0]) * (pair.y[1] - pair.y[0]) == pytest.approx(1, abs=0.02)
        assert pair.correlation == pytest.approx(0.8, abs=0.1)


def test_levels_hold_their_share_of_a_gaussian():
    axis = np.linspace(-5, 5, 201)
    density = np.exp(-(axis[:, None] ** 2 + axis**2) / 2) / (2 * np.pi)
    masses = np.array([0.25, 0.5, 0.95])
    assert highest_levels(density, masses) == pytest.approx((1 - masses) / (2 * np.pi), rel=0.01)


def test_fifths_of_independent_columns_are_even_and_of_equal_ones_diagonal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    assert by_fifths(X) == pytest.approx(np.full((5, 5), 0.04), abs=0.005)
    assert by_fifths(X[:, [0, 0]]) == pytest.approx(0.2 * np.eye(5), abs=1e-3)


# --- plausibility ----------------------------------------------------------------------------------------------


def table_of(pairs, charge, d=4):
    scores = {(c,): 0.0 for c in range(d)} | {pair: pairs.get(pair, 0.0) for pair in combinations(range(d), 2)}
    plain = SubsetScores.from_dict(scores)
    charges = np.where(plain.subsets.sizes > 1, charge, 0.0)
    return SubsetScores(plain.subsets, plain.scores, plain.bandwidths, plain.errors, plain.names, charges=charges)


def with_table(scores, partition):
    """A model of which nothing is known but its scores and its blocks."""
    model = ISDE()
    model.subset_scores_, model.partition_ = scores, partition
    model.density_ = SimpleNamespace(tree=Tree(partition, (NO_PARENT,) * len(partition)))
    return model


@pytest.mark.parametrize(
    ("pairs", "charge", "verdict", "left", "share"),
    [
        ({(0, 1): 0.5, (2, 3): 0.05}, 0.1, "plausible", 0, 1.0),
        ({(0, 1): 2.1, (1, 2): 0.2}, 0.1, "nearly", 1, 2.0 / 2.1),
        ({(0, 1): 0.5, (1, 2): 0.4, (0, 3): 0.2}, 0.1, "not plausible", 2, 0.5),
        ({(0, 1): 0.5}, 0.0, "cannot be told", None, None),
    ],
)
def test_independence_is_plausible_where_nothing_is_left_across(pairs, charge, verdict, left, share):
    found = plausibility(with_table(table_of(pairs, charge), ((0, 1), (2,), (3,))))
    assert (found.verdict, found.n_left, found.n_across) == (verdict, left, 5)
    assert found.share_inside == (None if share is None else pytest.approx(share))
    assert found.sentence.endswith((".", "know."))


def test_single_columns_leave_nothing_to_tell():
    table = table_of({}, 0.1).restrict(1)
    assert plausibility(with_table(table, ((0,), (1,), (2,), (3,)))).verdict == "cannot be told"


# --- any density -----------------------------------------------------------------------------------------------


def test_a_density_without_blocks_is_one_block(rows):
    model = CVKDE(bandwidths=[0.1]).fit(rows[:, :2])
    assert [row.block for row in lowest_rows(model, rows[:, :2], 2)] == [(0, 1), (0, 1)]
    assert blame(model, rows[:, :2], 0.1) == {(0, 1): 20}
    assert block_shape(model, (0, 1)).names == model.density_.names


@pytest.mark.parametrize("kind", [CVKDE, ISDE, TreeISDE])
def test_what_is_not_fitted_has_no_blocks_to_blame(kind):
    with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        block_shape(kind(), (0,))


# --- what is remembered ----------------------------------------------------------------------------------------


def test_a_fit_remembers_its_rows_time_versions_and_warnings(rows):
    tied = np.round(rows[:, :3] / 20)
    with pytest.warns(ISDEWarning) as shown:
        model = ISDE(1, marginal="kde", split="paper").fit(tied)
    record = model.fit_record_
    assert (record.n_rows, record.n_columns) == tied.shape
    assert record.fingerprint == fingerprint(tied, ("x0", "x1", "x2"))
    assert record.seconds > 0
    assert record.versions["numpy"] == np.__version__
    assert set(record.warnings) == {str(one.message) for one in shown}


def test_a_block_is_asked_for_by_numbers_or_names(model, rows):
    block = next(own for own in model.partition_ if len(own) > 1)
    names = [model.density_.names[c] for c in reversed(block)]
    assert block_shape(model, names).block == block_shape(model, block).block == block
    alone = ISDE(1, marginal="gaussian", random_state=0).fit(rows)
    assert block_shape(alone, "x3").block == block_shape(alone, [3]).block == (3,)
    with pytest.raises(ValueError, match=r"\{x0, zz\} is no block of the model: its blocks are \{x0\}, \{x1\}"):
        block_shape(alone, ["x0", "zz"])


@pytest.mark.parametrize("ask", [torn_columns, block_gains, plausibility, GainHeatmapDisplay.from_estimator])
def test_what_is_no_fitted_model_is_told_so(ask, model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(ISDE())
    with pytest.raises(TypeError, match="SubsetScores is no model: give a fitted ISDE or TreeISDE"):
        ask(model.subset_scores_)


@pytest.mark.parametrize("select", [lambda model: best_partitions(model, 2), select_partition, select_tree])
def test_a_model_is_no_table_of_scores(select, model):
    with pytest.raises(TypeError, match="ISDE is no table of scores: give subset_scores_ of a fitted model"):
        select(model)


def test_tables_and_densities_are_shown_in_a_line(model, rows):
    shown = repr(model.subset_scores_), repr(model.density_), repr(fit_tree(rows, [(0, 1), (1, 2), (3,), (4,), (5,)]))
    assert shown[0].startswith("SubsetScores(")
    assert shown[0].endswith(" of 6 columns: x0, x1, x2, x3, x4 and 1 more)")
    assert shown[1].startswith("ProductDensity({x0, x1")
    assert shown[2] == "TreeDensity({x0, x1}, {x1, x2}, {x3}, {x4}, {x5})"


def test_a_fingerprint_knows_numbers_shape_and_names():
    X = np.arange(6.0).reshape(2, 3)
    prints = [
        fingerprint(X, "abc"),
        fingerprint(X.reshape(3, 2), "ab"),
        fingerprint(X, "abd"),
        fingerprint(X + 1e-16 * (X == 5), "abc"),
        fingerprint(np.nextafter(X, 9), "abc"),
    ]
    assert len(set(prints)) == 4  # 5 + 1e-16 is 5
    assert fingerprint(np.asfortranarray(X), "abc") == prints[0]


def test_what_is_warned_of_inside_is_collected_by_all_outside():
    def say():
        with collecting() as outer:
            warn("one")
            with collecting() as inner:
                warn("two")
            warn("three")
        return outer, inner

    with pytest.warns(ISDEWarning, match="one|two|three"):
        outer, inner = say()
    assert (outer, inner) == (["one", "two", "three"], ["two"])
