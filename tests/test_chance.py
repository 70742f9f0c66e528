"""What chance gives and what is charged for it: by hand, by all partitions, and in tables without structure."""

import re
import threading
import warnings
from dataclasses import replace
from itertools import combinations
from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.model_selection import KFold, ShuffleSplit

import isde
import oracles
from isde import ISDE, SubsetScores, best_partitions, select_partition, worst_partitions
from isde import chance as chance_module
from isde.archive import write_archive
from isde.chance import Chance, Shape, SplitTable, _kinds, all_margins, draw_chance
from isde.errors import InputError, ISDEWarning
from isde.marginals import resolve_marginal
from isde.marginals.copula import CopulaScorer
from isde.marginals.marginal import Traits
from isde.run.store import MemoryStore
from isde.run.work import Chunk, ChunkScores
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows
from isde.scoring import Scoring
from isde.solvers.registry import SOLVERS
from isde.splits import draw_splits, resolve_split
from isde.subsets import SubsetFamily
from oracles import ROUNDING

MOST_APART = 0.05
"""Of two distribution functions by 20 tables each. Margins that share columns know of each other: no p-value is right.
Columns that depend on each other are 0.4 to 1 apart from those that do not."""


ROWS, COLUMNS, TABLES, RANK = (30, 60, 100, 300), 16, 20, 5
NUMBERS = {"ROWS": ROWS, "COLUMNS": COLUMNS, "TABLES": TABLES, "RANK": RANK, "FARTHEST_TAIL": 1e4}
NUMBERS |= {"AFFORDABLE": 4e11, "COLUMN": 1e9, "TIMES": 20, "OVERHEAD": 1e5}
DEFAULTS = {name: getattr(chance_module, name) for name in NUMBERS}


@pytest.fixture(autouse=True, scope="module")
def numbers():
    """How much is drawn, and believed, is a matter of measuring; what follows from it is not."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in NUMBERS.items():
            patch.setattr(chance_module, name, value)
        yield


@pytest.fixture
def as_by_default(monkeypatch):
    for name, value in DEFAULTS.items():
        monkeypatch.setattr(chance_module, name, value)


def descending(*values):
    return np.sort(np.array(values, dtype=float))[::-1]


def structure(**params):
    """Fast: one split."""
    return Scoring.of(**({"max_block_size": 2, "marginal": "copula", "split": "paper", "random_state": 0} | params))


@pytest.fixture
def pair(rng):
    """150 rows: two columns that depend on each other, and one that is alone."""
    X = rng.normal(size=(150, 3))
    X[:, 1] += 1.5 * X[:, 0]
    return np.exp(X)


# --- charges ---------------------------------------------------------------------------------------------------

PAIRS = descending(*np.arange(1, 13) / 100)  # 0.12 to 0.01
TRIPLES = descending(0.03, 0.02, 0.02, 0.01, 0.01, 0, 0, 0)
MERGED = descending(*np.arange(100) / 1000)  # 0.099 to 0

MADE_UP = Chance(n_tables=2, n_rows=100, n_scored=50, n_columns=4, margins=(((PAIRS,), (TRIPLES, MERGED)),))


def test_charges_of_a_small_example_are_those_computed_by_hand():
    # 6 pairs share alpha = 0.6: each passes with probability 0.1, that is 1.2 of the 12 margins drawn, fewer than are
    # believed: the fifth, 0.08, and the tail beyond it. 4 triples pass with probability 0.15: of TRIPLES 1.2 of 8, the
    # fifth is 0.01; of MERGED the fifteenth is 0.085, which is more. Drawn with 100 rows of which 50 score; charged
    # for 200 rows, half as much a row.
    pair = 0.08 + log(5 / 1.2) / 50
    triple = pair + max(0.01 + log(5 / 1.2) / 50, 0.085)
    (found,) = MADE_UP.charges(SubsetFamily(4, 3), n_rows=200, alpha=0.6)
    np.testing.assert_allclose(found, [0] * 4 + [pair / 2] * 6 + [triple / 2] * 4, rtol=0, atol=ROUNDING)


def test_alpha_is_shared_by_models_and_by_subsets_of_a_size():
    twice = replace(MADE_UP, margins=2 * MADE_UP.margins)
    one, other = twice.charges(SubsetFamily(4, 3), 200, 0.6)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, MADE_UP.charges(SubsetFamily(4, 3), 200, 0.3)[0])
    np.testing.assert_allclose(
        MADE_UP.charges(SubsetFamily(9, 2), 200, 0.6)[0][-1],
        MADE_UP.charges(SubsetFamily(4, 2), 200, 0.6 * comb(4, 2) / comb(9, 2))[0][-1],
        rtol=0,
        atol=ROUNDING,
    )


def charge_by_definition(chance, n_columns, size, n_rows, alpha):
    """For one model: the dearest of all divisions of a block, and the margin that chance reaches with its share."""
    if size == 1:
        return 0.0
    divisions = (p for p in oracles.all_partitions(size) if len(p) > 1)
    dearest = max(sum(charge_by_definition(chance, n_columns, len(b), n_rows, alpha) for b in p) for p in divisions)
    margin = 0.0
    for drawn in chance.margins[0][size - 2]:
        wanted = alpha / len(chance.margins) / comb(n_columns, size) * len(drawn)
        believed = min(RANK, len(drawn))
        if int(wanted) >= believed:
            reached = drawn[int(wanted) - 1]
        else:
            reached = drawn[believed - 1] + max(log(believed / wanted), 0) / chance.n_scored
        margin = max(margin, reached * chance.n_rows / n_rows)
    return dearest + margin


def made_up(seed, n_models=2):
    """Margins of a few sizes, mostly below 0; pools of 1 to 3,000."""
    rng = np.random.default_rng(seed)

    def pool():
        return descending(*rng.normal(-0.02, 0.03, size=int(10 ** rng.uniform(0, 3.5))))

    margins = tuple(
        tuple(tuple(pool() for _ in range(1 if size == 2 else 2)) for size in (2, 3, 4, 5)) for _ in range(n_models)
    )
    return Chance(20, 80, int(rng.integers(20, 81)), 16, margins)


chances, alphas = st.builds(made_up, st.integers(0, 10**6)), st.floats(1e-6, 0.99)


@given(chances, st.integers(5, 30), st.integers(50, 5000), alphas)
def test_charges_are_their_definition(chance, d, n_rows, alpha):
    found = chance.charges(SubsetFamily(d, 5), n_rows, alpha)
    expected = [charge_by_definition(chance, d, size, n_rows, alpha) for size in range(1, 6)]
    assert len(found) == 2
    np.testing.assert_allclose(found[0], np.array(expected)[SubsetFamily(d, 5).sizes - 1], rtol=0, atol=ROUNDING)


def by_size(chance, d, n_rows, alpha):
    """One charge for each size, (models, 5)."""
    family = SubsetFamily(d, 5)
    return np.array([charges[list(family.offsets[1:6])] for charges in chance.charges(family, n_rows, alpha)])


@given(chances, st.integers(5, 30), alphas, alphas)
def test_a_smaller_alpha_is_charged_more(chance, d, one, other):
    strict, lax = (by_size(chance, d, 100, alpha) for alpha in sorted([one, other]))
    assert (strict >= lax).all()


@given(chances, st.integers(5, 60), st.integers(5, 60), alphas)
def test_more_columns_are_charged_more(chance, one, other, alpha):
    few, many = (by_size(chance, d, 100, alpha) for d in sorted([one, other]))
    assert (many >= few).all()


@given(chances, st.integers(5, 30), alphas)
def test_charges_shrink_as_one_over_the_rows(chance, d, alpha):
    np.testing.assert_allclose(by_size(chance, d, 100, alpha), 7 * by_size(chance, d, 700, alpha), atol=ROUNDING)


@given(chances, st.integers(5, 30), alphas)
def test_a_block_is_charged_at_least_what_any_division_of_it_is(chance, d, alpha):
    for charges in by_size(chance, d, 100, alpha):
        assert charges[0] == 0
        assert (charges >= 0).all()
        for size in range(2, 6):
            for division in oracles.all_partitions(size):
                assert sum(charges[len(block) - 1] for block in division) <= charges[size - 1] + ROUNDING


def test_the_dearest_division_may_be_the_one_in_the_middle():
    nothing = descending(*[-1.0] * 100)
    chance = Chance(1, 100, 100, 16, (((descending(*[0.2] * 100),), (nothing,), (nothing,)),))
    (found,) = chance.charges(SubsetFamily(4, 4), 100, 0.9)
    np.testing.assert_allclose(found[[4, 10, 14]], [0.2, 0.2, 0.4], rtol=0, atol=ROUNDING)  # two pairs, not a triple


@pytest.mark.parametrize("n_drawn", [1, 4, 5, 1000])
def test_beyond_the_margins_drawn_an_alpha_e_times_smaller_costs_one_nat_in_all(n_drawn):
    chance = Chance(1, 100, 40, 16, (((np.full(n_drawn, 0.5),),),))
    alpha = min(RANK, n_drawn) / n_drawn * comb(4, 2) * 0.9  # as many margins as are believed lie beyond
    one, other = (chance.charges(SubsetFamily(4, 2), 100, alpha / times)[0][-1] for times in (1, np.e))
    assert one >= 0.5
    assert other - one == pytest.approx(1 / 40, abs=ROUNDING)  # of the rows that score


def test_margins_below_nothing_are_charged_nothing():
    chance = Chance(1, 100, 100, 16, (((descending(*[-0.5] * 50),),),))
    assert not chance.charges(SubsetFamily(4, 2), 100, 0.05)[0].any()


def test_the_smallest_alpha_leaves_the_tail_ten_thousand_times_rarer_than_what_is_believed():
    # 12 pairs drawn for 6, 8 triples for 4.
    assert MADE_UP.smallest_alpha(SubsetFamily(4, 2)) == pytest.approx(5 / 8 / 1e4 * 4, rel=1e-12)
    assert replace(MADE_UP, margins=MADE_UP.margins * 3).smallest_alpha(SubsetFamily(4, 3)) == pytest.approx(
        3 * 5 / 12 / 1e4 * 6, rel=1e-12
    )


# --- what is drawn ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k"), [(16, 2), (16, 3), (16, 4), (16, 5), (2, 2), (3, 3), (5, 5), (7, 3), (40, 3)])
def test_subsets_are_of_as_many_groups_as_columns_or_of_two(d, k):
    family = SubsetFamily(d, k)
    size_of_group = min(max(k - 1, 2), -(-d // 2))
    group = [c // size_of_group for c in range(d)]
    found = _kinds(family)
    assert len(found) == k - 1
    for size, kinds in enumerate(found, start=2):
        everything = list(combinations(range(d), size))
        n_groups = {subset: len({group[c] for c in subset}) for subset in everything}
        expected = [{s for s in everything if n_groups[s] == n} for n in {2, size}]
        assert sorted([sorted(family[int(i)] for i in kind) for kind in kinds]) == sorted(
            sorted(kind) for kind in expected if kind
        )


class Recorder:
    """A scorer of two models that remembers the tables it was shown, and scores by nothing but them."""

    traits = Traits(by_ranks=True)
    n_models = 2

    def __init__(self):
        self.tables = []

    def warn_few_rows(self, n_fit):
        pass

    def chunks(self, subsets, above=0):
        return [Chunk(f"model {model}", len(subsets), 1.0, model) for model in (0, 1)]

    def prepare(self, X_fit, X_score):
        self.tables.append((X_fit, X_score))
        return X_fit, X_score

    def score(self, rows, subsets, chunk, means):
        scores = recorded_scores(*rows, subsets)[chunk.model]
        return ChunkScores.without_bandwidths(np.arange(len(subsets)), scores)


def recorded_scores(X_fit, X_score, family):
    columns = X_fit.mean(axis=0), X_score.std(axis=0)
    return [np.array([np.cos(100 * c[list(S)].sum()) for S in family]) for c in columns]


def drawn_by(scorer, split, d, k, n):
    X = np.zeros((n, d))
    splits = tuple(draw_splits(resolve_split(split, 0), X))
    return draw_chance(scorer, SplitTable(split, splits, n), SubsetFamily(d, k), 1)


def margin(scores, subset):
    """By all partitions of the subset into smaller blocks."""
    divisions = (p for p in oracles.all_partitions(len(subset)) if len(p) > 1)
    return scores[subset] - max(sum(scores[tuple(subset[c] for c in b)] for b in p) for p in divisions)


@pytest.mark.parametrize("n_splits", [1, 3])
def test_margins_over_the_best_division_are_pooled_by_model_size_and_kind(n_splits):
    scorer, family = Recorder(), SubsetFamily(16, 3)
    chance = drawn_by(scorer, ShuffleSplit(n_splits, train_size=0.6, random_state=0), 4, 3, 30)
    assert (chance.n_tables, chance.n_rows, chance.n_columns) == (TABLES, 30, 16)
    assert len(scorer.tables) == n_splits * TABLES
    group = np.arange(16) // 2
    pooled = {(model, kind): [] for model in (0, 1) for kind in ("pair", "alone", "joined")}
    for first in range(0, len(scorer.tables), n_splits):
        splits = [recorded_scores(*table, family) for table in scorer.tables[first : first + n_splits]]
        for model, scores in enumerate(np.mean(splits, axis=0)):
            table = dict(zip(family, scores, strict=True))
            for subset in family:
                n_groups = len({int(group[c]) for c in subset})
                if len(subset) > 1 < n_groups:
                    kind = "pair" if len(subset) == 2 else "alone" if n_groups == 3 else "joined"
                    pooled[model, kind].append(margin(table, subset))
    for model in (0, 1):
        (pairs,), triples = chance.margins[model]
        joined, alone = sorted(triples, key=len)
        for kind, found in (("pair", pairs), ("alone", alone), ("joined", joined)):
            np.testing.assert_allclose(found, descending(*pooled[model, kind]), rtol=0, atol=ROUNDING)


def test_columns_of_a_group_depend_on_each_other_and_groups_are_independent():
    scorer = Recorder()
    drawn_by(scorer, ShuffleSplit(1, train_size=0.5, random_state=0), 4, 4, 400)
    rows = np.concatenate([X for table in scorer.tables for X in table])
    group = np.arange(16) // 3
    expected = np.where(group[:, None] == group, 0.9, 0.0) + 0.1 * np.eye(16)
    np.testing.assert_allclose(np.corrcoef(rows.T), expected, rtol=0, atol=oracles.monte_carlo(len(rows)))
    assert len({X.tobytes() for X, _ in scorer.tables}) == TABLES


def test_rows_scored_by_any_split_are_counted_once():
    assert drawn_by(Recorder(), KFold(5), 3, 2, 30).n_scored == 30
    assert drawn_by(Recorder(), ShuffleSplit(1, train_size=0.8, random_state=0), 3, 2, 30).n_scored == 6
    assert drawn_by(Recorder(), ShuffleSplit(30, train_size=0.5, random_state=0), 3, 2, 30).n_scored == 30


@pytest.mark.parametrize(
    ("n", "drawn"), [(8, 8), (29, 29), (30, 30), (59, 30), (60, 60), (99, 60), (300, 300), (400, 300)]
)
def test_as_many_rows_are_drawn_as_the_data_have_or_fewer_of_round_numbers(n, drawn):
    assert drawn_by(CopulaScorer(), "paper", 3, 2, n).n_rows == drawn


def test_a_splitter_of_ones_own_sees_as_many_rows_as_the_data_have():
    assert drawn_by(Recorder(), ShuffleSplit(1, train_size=0.5, random_state=0), 3, 2, 700).n_rows == 700


def test_a_table_of_many_columns_is_drawn_as_wide():
    chance = drawn_by(CopulaScorer(), "paper", 18, 2, 60)
    assert (chance.n_columns, chance.n_tables) == (18, TABLES)


@pytest.mark.parametrize("split", ["structure", "paper"])
@pytest.mark.parametrize("n", [60, 500, 3000])
@pytest.mark.parametrize(("d", "k"), [(2, 2), (10, 3), (10, 6), (30, 3), (60, 3), (20, 5)])
def test_tables_cost_no_more_than_the_data_or_twenty_seconds(d, k, n, split, monkeypatch):
    asked = []
    monkeypatch.setattr(chance_module, "_draw_once", lambda *arguments: asked.append(arguments))
    drawn_by(CopulaScorer(), split, d, k, n)
    ((_, shape, n_tables, _),) = asked
    shared, rows, width = shape.shared, shape.n_rows, shape.n_columns
    assert shared == (split == "structure" and n == 3000)

    def products(n_rows, n_columns):
        subsets = sum(comb(n_columns, size) for size in range(1, k + 1))
        n_splits, share = (20, 0.45) if split == "structure" else (1, 0.5)
        fit, searches = int(share * n_rows), 2 if shared else n_splits  # ten of twenty search, each by a fifth
        return (searches * 6 * fit * fit + n_splits * (fit * (n_rows - fit) + 1e5)) * subsets

    assert (shape.max_size, rows, shape.drawn_rows) == (k, min(n, 300) // 60 * 60, rows)
    assert d <= width <= max(d, COLUMNS)
    assert 1 <= n_tables <= TABLES
    own = products(n, d) + 1e9 * d
    allowed = max(own, min(20 * own, 4e11))
    assert n_tables * products(rows, width) <= 1.01 * allowed  # shares of rows are whole rows
    if width < max(d, COLUMNS):  # as wide as can be
        assert TABLES * products(rows, width + 1) > 0.99 * allowed
    if n_tables < TABLES:  # no narrower table, and not one table more
        assert width == d
        assert (n_tables + 1) * products(rows, width) > 0.99 * allowed


@pytest.mark.parametrize(("d", "k", "n_tables"), [(60, 3, TABLES), (100, 3, 12), (200, 3, 1), (50, 5, 1)])
def test_a_million_subsets_are_shown_by_one_table(d, k, n_tables, monkeypatch):
    asked = []
    monkeypatch.setattr(chance_module, "_draw_once", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(chance_module, "AFFORDABLE", 1e20)
    drawn_by(CopulaScorer(), "structure", d, k, 3000)
    _, _, drawn, _ = asked[0]
    assert drawn == n_tables


def test_one_table_has_the_same_bits_whoever_draws_it(monkeypatch, rng):
    monkeypatch.setattr(chance_module, "TABLES", 1)
    splits = draw_splits(resolve_split("paper", 0), rng.normal(size=(120, 18)))
    ask = CopulaScorer(), SplitTable("paper", tuple(splits), 120), SubsetFamily(18, 3)
    one, two = (draw_chance(*ask, n_jobs, MemoryStore()) for n_jobs in (1, 2))
    assert one.n_tables == 1
    for model, same in zip(one.margins, two.margins, strict=True):
        assert [own.tobytes() for kinds in model for own in kinds] == [own.tobytes() for kinds in same for own in kinds]


@pytest.mark.parametrize(("n", "drawn"), [(5000, 60), (10_000, 60), (30_000, 180), (1_000_000, 1200)])
def test_where_splits_draw_their_own_rows_those_of_chance_do_too(n, drawn, monkeypatch):
    """As far apart as those of the data, up to where they hardly share a row."""
    asked = []
    monkeypatch.setattr(chance_module, "_draw_once", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(chance_module, "ROWS", (60,))
    splits = draw_splits(resolve_split("turned", 0), np.zeros((n, 2)), 10_000)
    draw_chance(CopulaScorer(), SplitTable("turned", tuple(splits), n, 10_000), SubsetFamily(2, 2), 1)
    shape = asked[0][1]
    narrow = replace(shape, n_columns=2)
    assert narrow == Shape("turned", True, 2, 60, drawn, 2)  # they share what is tuned, as those of the data do
    table = chance_module._draw_table(narrow, 0)
    assert table.X.shape == (drawn, 2)
    assert {(len(fit), len(score)) for fit, score in table.splits} == {(27, 12)}


@pytest.mark.parametrize(("d", "k"), [(120, 3), (50, 4), (30, 5)])
def test_the_default_alpha_can_be_told_however_many_subsets(d, k, monkeypatch, as_by_default):
    def draw(scorer, shape, n_tables, n_jobs):
        kinds = _kinds(shape.subsets)
        pools = [[np.zeros(n_tables * len(kind)) for kind in of_size] for of_size in kinds]
        return Chance(n_tables, shape.n_rows, shape.n_rows, shape.n_columns, (pools, pools, pools))

    monkeypatch.setattr(chance_module, "_draw_once", draw)
    assert drawn_by(CopulaScorer(), None, d, k, 200).smallest_alpha(SubsetFamily(d, k)) <= 0.05


def test_workers_leave_the_filters_of_warnings_as_they_were(rng):
    before = list(warnings.filters)
    structure(n_jobs=2).score(rng.normal(size=(77, 3)), columns=False)
    assert warnings.filters == before


def test_splits_are_drawn_one_after_the_other_for_any_number_of_workers():
    class InTurn(KFold):
        def split(self, X, y=None, groups=None):
            threads.add(threading.get_ident())
            return super().split(X)

    threads = set()
    splits = tuple(draw_splits(InTurn(2), np.zeros((40, 3))))
    draw_chance(CopulaScorer(), SplitTable(InTurn(2), splits, 40), SubsetFamily(3, 2), 2)
    assert threads == {threading.get_ident()}


def test_chance_is_drawn_once_for_all_tables_of_a_shape():
    one, again = (drawn_by(CopulaScorer(), "paper", 3, 2, 60) for _ in range(2))
    assert one is again
    assert drawn_by(CopulaScorer(), "paper", 3, 2, 77) is one
    for other in (("paper", 3, 2, 59), ("paper", 3, 3, 60), (0.5, 3, 2, 60)):
        assert drawn_by(CopulaScorer(), *other) is not one
    assert drawn_by(CopulaScorer(cv=4), "paper", 3, 2, 60) is not one


def test_the_number_of_workers_changes_no_bit_of_chance():
    table = SplitTable("paper", tuple(draw_splits(resolve_split("paper", 0), np.zeros((260, 3)))), 260)
    one, two = (draw_chance(CopulaScorer(), table, SubsetFamily(3, 2), n_jobs) for n_jobs in (1, 2))
    assert one is not two
    for a, b in zip(one.margins, two.margins, strict=True):
        assert a[0][0].tobytes() == b[0][0].tobytes()


def test_what_is_charged_does_not_depend_on_the_data_nor_on_the_seed(rng):
    common = rng.integers(3, size=90)
    tables = rng.normal(size=(90, 3)), np.column_stack([common, common, np.exp(3 * rng.normal(size=90))])
    of_models = drawn_by(CopulaScorer(), "paper", 3, 2, 90).charges(SubsetFamily(3, 2), 90, 0.05)
    for X in tables:
        for seed in (0, 1):
            splits = tuple(draw_splits(resolve_split("paper", seed), X))
            again = draw_chance(CopulaScorer(), SplitTable("paper", splits, 90), SubsetFamily(3, 2), 2)
            for one, other in zip(of_models, again.charges(SubsetFamily(3, 2), 90, 0.05), strict=True):
                assert one.tobytes() == other.tobytes()
            found = structure(random_state=seed).score(X, columns=False).charges
            assert set(found[3:]) <= {charges[-1] for charges in of_models}


def test_each_subset_is_charged_for_the_model_that_it_takes(rng):
    X = rng.normal(size=(150, 4))
    X[:, 1] += X[:, 0]
    X[:, 2:] *= np.exp(1.5 * rng.normal(size=(150, 1)))
    scoring = structure()
    splits = draw_splits(resolve_split("paper", 0), X)
    models = score_models(SplitRows(CopulaScorer(), X, splits), SubsetFamily(4, 2), tuple("abcd"), How(1))
    chance = draw_chance(CopulaScorer(), SplitTable("paper", tuple(splits), 150), SubsetFamily(4, 2), None)
    charges = chance.charges(SubsetFamily(4, 2), 150, 0.05)
    assert len({float(of_model[-1]) for of_model in charges}) == 3
    found = scoring.score(X, columns=False)
    taken = set()
    for i in range(len(found)):
        best = max(range(3), key=lambda m: models[m].scores[i] - charges[m][i])
        assert (found.scores[i], found.charges[i]) == (models[best].scores[i], charges[best][i])
        taken.add(best)
    assert len(taken) > 1


def test_a_splitter_of_ones_own_is_charged_for_too(rng):
    X = rng.normal(size=(60, 3))
    found = [structure(split=KFold(3)).score(X, columns=False).charges for _ in range(2)]
    assert found[0][3:].all()
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.filterwarnings("ignore:Only .* rows to fit on:isde.errors.ISDEWarning")
@pytest.mark.parametrize(("n", "split"), [(5, "density"), *((n, "paper") for n in (5, 8, 10, 30))])
def test_few_rows_are_charged_for_and_show_no_block(rng, n, split):
    found = structure(split=split).score(rng.normal(size=(n, 3)), columns=False)
    assert select_partition(found).partition == ((0,), (1,), (2,))


def test_few_rows_are_said_of_the_data_and_not_of_the_tables_drawn(rng):
    with pytest.warns(ISDEWarning, match="Only 4 rows to fit on") as said:
        structure().score(rng.normal(size=(9, 3)), columns=False)
    assert len(said) == 1


# --- parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0, 1, 2, -0.05, float("nan"), "x", True])
@pytest.mark.parametrize("marginal", ["copula", "copula+stack", "kde"])
def test_what_is_no_probability_is_refused(rows, alpha, marginal):
    with pytest.raises(ValueError, match=f"alpha={alpha!r} must be a probability between 0 and 1, 'auto', or None"):
        ISDE(2, marginal=marginal, alpha=alpha).fit(rows)


@pytest.mark.parametrize("marginal", ["kde", "gaussian", "stack", "kde+stack", ["kde", "gaussian"]], ids=str)
def test_alpha_is_refused_where_chance_depends_on_the_columns(rows, marginal):
    with pytest.raises(ValueError, match=r"alpha=0\.05 needs scores on the copula scale"):
        ISDE(2, marginal=marginal, alpha=0.05).fit(rows)


@pytest.mark.parametrize("marginal", [["copula", "kde"], ["kde", "copula+stack"], ["copula"]], ids=str)
def test_scores_of_dependence_alone_are_in_no_list(marginal):
    with pytest.raises(ValueError, match="name 'copula' or 'copula\\+stack' alone, or leave it out of the list"):
        resolve_marginal(marginal)


def test_without_alpha_nothing_is_charged(pair):
    assert structure().score(pair, columns=False).charges.any()
    assert not structure(alpha=None).score(pair, columns=False).charges.any()
    assert not structure(marginal="gaussian").score(pair).charges.any()


def test_single_columns_have_nothing_to_be_charged_for(pair):
    assert not structure().score(pair, columns=False).charges[:3].any()
    assert not structure(max_block_size=1).score(pair, columns=False).charges.any()
    assert not structure().score(pair[:, :1], columns=False).charges.any()


def test_by_default_it_is_five_percent_on_the_copula_scale(pair):
    default, five, half = (structure(alpha=alpha).score(pair, columns=False) for alpha in ("auto", 0.05, 0.5))
    assert structure().alpha == 0.05
    assert structure(marginal="kde").alpha is None
    assert default.charges.tobytes() == five.charges.tobytes()
    assert default.charges[3] > half.charges[3]


def test_an_alpha_that_the_tables_drawn_cannot_tell_is_refused_in_a_sentence(rows):
    chance = drawn_by(CopulaScorer(), "paper", 3, 2, 120)
    smallest = chance.smallest_alpha(SubsetFamily(3, 2))
    structure(alpha=1.01 * smallest).score(rows, columns=False)
    with pytest.raises(
        ValueError, match=r"is smaller than 20 tables of chance can tell: use alpha=.* or more, or alpha=None"
    ):
        structure(alpha=0.99 * smallest).score(rows, columns=False)


@pytest.mark.parametrize(("d", "k"), [(3, 2), (4, 3), (7, 3), (10, 2)])
def test_the_alpha_proposed_is_accepted(rng, d, k):
    X = rng.normal(size=(60, d))
    with pytest.raises(ValueError, match="tables of chance can tell") as refused:
        structure(max_block_size=k, alpha=1e-9).score(X, columns=False)
    proposed = float(re.search(r"use alpha=(\S+) or more", str(refused.value)).group(1))
    structure(max_block_size=k, alpha=proposed).score(X, columns=False)


def test_progress_says_what_chance_was_measured_on(rows, capsys):
    structure(alpha=0.1, verbose=1).score(rows, columns=False)
    said = capsys.readouterr()
    assert said.out == ""
    assert "Chance: measured on 20 tables of 100 rows without structure" in said.err
    assert "show a block in at most 10 % of tables" in said.err


# --- charges in tables -----------------------------------------------------------------------------------------


def charged_table(d, k, seed):
    """Scores and charges exact in binary with few different values, so that ties are common; some subsets score -inf.

    Returns the table, and what partitions are chosen by as a dictionary.
    """
    rng = np.random.default_rng(seed)
    family = SubsetFamily(d, k)
    columns = rng.integers(-8, 9, size=d) / 4
    gains = rng.choice([-0.25, 0.0, 0.25, 0.5, 1.0, -np.inf], size=len(family), p=[0.1, 0.15, 0.2, 0.2, 0.25, 0.1])
    gains[:d] = 0.0
    charges = rng.integers(0, 4, size=len(family)) / 4
    charges[:d] = 0.0
    nothing = np.full(len(family), np.nan)
    scores = family.sum_over_members(columns) + gains
    table = SubsetScores(family, scores, nothing, nothing, tuple(map(str, range(d))), charges=charges)
    return table, {S: float(scores[i] - charges[i]) for i, S in enumerate(family)}


charged_tables = st.builds(charged_table, st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))


def total(table, partition):
    return sum(table[block] for block in partition)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sense", ["max", "min"])
@given(charged_tables)
def test_every_solver_finds_the_best_partition_after_charges(solver, sense, case):
    table, objectives = case
    found = select_partition(table, solver=solver, sense=sense)
    partition, objective = oracles.best_partition(objectives, table.n_columns, sense)
    assert found.partition == partition
    assert found.objective == found.bound == objective
    assert found.score == total(table, partition)
    assert found.is_optimal
    assert found.gap == 0


@pytest.mark.parametrize("sense", ["max", "min"])
@given(charged_tables, st.integers(1, 60))
def test_the_best_partitions_are_in_the_order_of_what_is_left_after_charges(sense, case, n):
    table, objectives = case
    sign = -1 if sense == "max" else 1
    everything = oracles.all_partitions(table.n_columns, table.max_block_size)
    finite = [p for p in everything if all(objectives[b] > -np.inf for b in p)]
    expected = sorted(finite, key=lambda p: (sign * sum(objectives[b] for b in p), -len(p), p))[:n]
    found = best_partitions(table, n, sense=sense)
    assert [one.partition for one in found][: len(expected)] == expected
    assert len(found) == min(n, len(everything))
    for one in found:
        assert one.score == total(table, one.partition)
        assert one.objective == one.bound == sum(objectives[b] for b in one.partition)
    if sense == "min":
        assert found == worst_partitions(table, n)


@given(charged_tables, st.integers(1, 6))
def test_charges_stay_with_their_subsets_when_blocks_get_smaller(case, k):
    table, objectives = case
    k = min(k, table.max_block_size)
    smaller = table.restrict(k)
    np.testing.assert_array_equal(smaller.charges, table.charges[: len(smaller)])
    np.testing.assert_array_equal(smaller.objectives, [objectives[S] for S in smaller.subsets])
    assert select_partition(table, k).objective == select_partition(smaller).objective


@given(charged_tables)
def test_units_do_not_change_what_is_charged_and_a_table_can_be_seen_without(case):
    table, objectives = case
    shifted = table.shifted(np.arange(table.n_columns) / 4)
    np.testing.assert_array_equal(shifted.charges, table.charges)
    free = table.uncharged()
    assert not free.charges.any()
    np.testing.assert_array_equal(free.objectives, table.scores)
    for S in table.subsets:
        assert table.objective(S) == objectives[S]
        assert free.objective(S) == table[S]


def test_a_block_needs_to_gain_more_than_it_is_charged():
    family, nothing = SubsetFamily(2, 2), np.full(3, np.nan)
    table = SubsetScores(family, np.array([1.0, 2.0, 3.5]), nothing, nothing, ("a", "b"))
    for charge, partition in ((0.0, ((0, 1),)), (0.25, ((0, 1),)), (0.5, ((0,), (1,))), (0.75, ((0,), (1,)))):
        found = select_partition(replace(table, charges=np.array([0.0, 0.0, charge])))
        assert found.partition == partition
        assert (found.score, found.objective) == ((3.5, 3.5 - charge) if len(partition) == 1 else (3.0, 3.0))
        assert found.bound == found.objective


@pytest.mark.parametrize("charges", [[0, 0, -0.1], [0, 0, np.nan], [0, 0, np.inf], [0.1, 0, 0.1]], ids=str)
def test_charges_that_cannot_be_are_refused(charges):
    table = SubsetScores.from_dict({(0,): 1.0, (1,): 2.0, (0, 1): 4.0})
    with pytest.raises(InputError, match="Charges are finite, not below 0, and 0 for single columns"):
        replace(table, charges=np.array(charges, dtype=float))


def test_charges_of_another_length_are_refused():
    table = SubsetScores.from_dict({(0,): 1.0, (1,): 2.0, (0, 1): 4.0})
    with pytest.raises(InputError, match="3 subsets but charges of shape"):
        replace(table, charges=np.zeros(4))


def test_charges_and_gain_errors_survive_in_a_file(pair, tmp_path):
    table = structure(split="density").score(pair)
    table.save(tmp_path / "scores.isde")
    again = isde.load(tmp_path / "scores.isde")
    assert table.charges.any()
    assert np.isfinite(table.gain_errors).all()
    for name in ("scores", "errors", "gain_errors", "charges", "bandwidths"):
        assert getattr(again, name).tobytes() == getattr(table, name).tobytes()
    assert select_partition(again) == select_partition(table)


@pytest.mark.parametrize("dropped", [("charges",), ("charges", "gain_errors")], ids=str)
def test_a_file_from_before_there_were_charges_has_none(pair, tmp_path, dropped):
    table = structure().score(pair)
    header, arrays = table.to_archive()
    write_archive(tmp_path / "old.isde", "scores", header, {n: a for n, a in arrays.items() if n not in dropped})
    old = isde.load(tmp_path / "old.isde")
    assert not old.charges.any()
    assert np.isnan(old.gain_errors).all()
    assert old.scores.tobytes() == table.scores.tobytes()
    assert select_partition(old).objective == select_partition(old).score


@pytest.mark.filterwarnings("ignore:.*as large as max_block_size:isde.errors.ISDEWarning")
def test_a_model_keeps_what_was_charged_through_fitting_and_files(pair, tmp_path):
    model = ISDE(2, split="paper", marginal="copula", random_state=0).fit(pair)
    found = model.selection_
    assert found.partition == ((0, 1), (2,))
    assert found.objective == found.bound
    charge = model.subset_scores_.charges[3]
    assert found.score - found.objective == pytest.approx(charge, abs=ROUNDING)
    assert charge > 0
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert loaded.selection_ == found
    assert loaded.alpha == "auto"
    assert loaded.subset_scores_.charges.tobytes() == model.subset_scores_.charges.tobytes()
    assert ISDE(2, marginal="copula").fit(pair, subset_scores=loaded.subset_scores_).selection_ == found
    dear = replace(model.subset_scores_, charges=np.where(model.subset_scores_.subsets.sizes > 1, 99.0, 0.0))
    assert ISDE(2, marginal="copula").fit(pair, subset_scores=dear).partition_ == ((0,), (1,), (2,))


# --- tables without structure ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_permuted_columns_have_the_margins_of_chance_however_skewed_and_tied(k):
    n, family = 100, SubsetFamily(16, k)
    permuted = [[], [], []]
    for seed in range(1000, 1020):
        rng = np.random.default_rng(seed)
        X = np.floor(3 * np.exp(rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 16))))
        X = np.column_stack([rng.permutation(column) for column in X.T])
        splits = draw_splits(resolve_split("paper", seed), X)
        models = score_models(SplitRows(CopulaScorer(), X, splits), family, tuple(map(str, range(16))), How(1))
        for margins, model in zip(permuted, models, strict=True):
            margins.append(all_margins(model)[family.of_size(k)])
    chance = drawn_by(CopulaScorer(), "paper", 4, k, n)
    for margins, model in zip(permuted, chance.margins, strict=True):
        drawn = max(model[k - 2], key=len)  # columns of as many groups
        assert ks_2samp(np.concatenate(margins), drawn).statistic < MOST_APART
        assert (np.concatenate(margins) > 0).any()


def test_independent_skewed_columns_show_no_block(as_by_default):
    shown = 0
    for seed in range(40):
        X = np.random.default_rng(seed).exponential(size=(200, 5))
        table = structure(split="structure", random_state=seed).score(X, columns=False)
        shown += len(select_partition(table).partition) < 5
    assert shown <= 6  # 2 are expected; 7 or more in 3 of 1,000


def test_a_lognormal_pair_is_found_and_nobody_joins_it(as_by_default):
    found = 0
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(300, 5))
        X[:, 1] = 0.6 * X[:, 0] + 0.8 * X[:, 1]
        table = structure(max_block_size=3, split="paper", random_state=seed).score(np.exp(X), columns=False)
        found += select_partition(table).partition == ((0, 1), (2,), (3,), (4,))
    assert found >= 17


def test_a_clique_is_charged_as_a_block_and_no_less_than_its_pairs():
    family = SubsetFamily(4, 3)
    rng = np.random.default_rng(0)
    charges = np.concatenate([np.zeros(4), rng.uniform(0.1, 1.0, len(family) - 4)])
    nothing = np.full(len(family), np.nan)
    table = SubsetScores(family, np.zeros(len(family)), nothing, nothing, tuple("abcd"), charges=charges)
    by_edge = table.charged_by_edge()
    for subset, charge in zip(family, by_edge.charges, strict=True):
        own = charges[family.index(subset)]
        pairs = sum(charges[family.index(pair)] for pair in combinations(subset, 2))
        assert charge == pytest.approx(max(own, pairs), abs=ROUNDING)
    assert (by_edge.charges[family.of_size(2)] == charges[family.of_size(2)]).all()
    assert not table.uncharged().charged_by_edge().charges.any()
    assert not table.restrict(1).charged_by_edge().charges.any()
