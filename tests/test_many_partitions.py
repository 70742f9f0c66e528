"""The K best and worst, constraints and the landscape: all against every partition written down."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from isde import Constraints, SubsetScores, best_partitions, count_partitions, select_partition, worst_partitions
from isde.errors import InputError, ISDEError
from isde.inspection import landscape
from isde.solvers.registry import AUTO, SOLVER_NAMES, solver_named
from isde.solvers.solver import Task
from isde.subsets import SubsetFamily
from oracles import ROUNDING
from test_selection import PAPER, random_table, tied_table

# --- the K best ------------------------------------------------------------------------------------------------


def ranked(scores, d, sense="max", allowed=lambda partition: True):
    """Every allowed partition: fewest subsets at -inf first, then score, then more blocks, then Python's order."""
    sign = -1 if sense == "max" else 1

    def key(partition):
        parts = [scores.get(block, -np.inf) for block in partition]
        finite = [part for part in parts if part > -np.inf]
        return len(parts) - len(finite), sign * sum(finite), -len(partition), partition

    k = max(map(len, scores))
    return sorted(filter(allowed, oracles.all_partitions(d, k)), key=key)


def takes(solver, task):
    return solver == AUTO or solver_named(solver).refusal(task) is None


small_tables = st.builds(
    lambda d, k, seed: (d, tied_table(d, k, seed)), st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6)
)


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("sense", ["max", "min"])
@given(small_tables, st.integers(1, 250))
def test_the_best_partitions_are_those_of_full_enumeration_in_order(solver, sense, case, n):
    d, scores = case
    table = SubsetScores.from_dict(scores)
    n = n if takes(solver, Task(d, table.max_block_size, n=n)) else 1
    found = best_partitions(table, n, solver=solver, sense=sense)
    # Of those that score -inf, which ones come first is not promised beyond the fewest such subsets.
    expected = [p for p in ranked(scores, d, sense)[:n] if all(scores.get(b, -np.inf) > -np.inf for b in p)]
    assert [one.partition for one in found][: len(expected)] == expected
    assert len(found) == min(n, count_partitions(d, max(map(len, scores))))
    assert len({one.partition for one in found}) == len(found)
    assert all(one.score == one.bound for one in found)
    assert [one.rank for one in found] == list(range(1, len(found) + 1))
    assert all(one.is_proved for one in found)
    assert [one.is_optimal for one in found] == [True] + [False] * (len(found) - 1)


@pytest.mark.parametrize("hopeless", [-30.0, -1e6, -1e12])
def test_the_order_is_exact_below_independence_and_beside_a_hopeless_score(hopeless):
    scores = random_table(6, 3, 5) | {(0, 1): hopeless}
    everything = ranked(scores, 6)
    found = best_partitions(SubsetScores.from_dict(scores), 10**4)
    assert len(found) == len(everything)
    finite = [p for p in everything if (0, 1) not in p]
    assert [one.partition for one in found][: len(finite)] == finite
    assert all((0, 1) in one.partition for one in found[len(finite) :])


def test_the_worst_are_the_best_upside_down():
    scores = random_table(7, 3, 6)
    table = SubsetScores.from_dict(scores)
    everything = [one.partition for one in best_partitions(table, 10**4)]
    assert [one.partition for one in worst_partitions(table, 50)] == everything[::-1][:50]


def test_a_restricted_block_size_holds_for_all_of_them():
    table = SubsetScores.from_dict(random_table(7, 4, 7))
    found = best_partitions(table, 30, max_block_size=2)
    assert max(len(block) for one in found for block in one.partition) == 2
    assert [one.partition for one in found] == [one.partition for one in best_partitions(table.restrict(2), 30)]


def test_the_first_of_many_is_the_selected_one_where_only_the_search_can_go():
    table = SubsetScores.from_dict(random_table(30, 3, 8))
    found = best_partitions(table, 100)
    assert found[0].partition == select_partition(table).partition
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len({one.partition for one in found}) == 100


def test_too_many_that_are_equally_good_are_refused_in_a_sentence(monkeypatch):
    from isde.solvers import milp

    monkeypatch.setattr(milp, "MOST_NODES_OF_SEVERAL", 10_000)
    family = SubsetFamily(29, 3)
    nothing = np.full(len(family), np.nan)
    scores = np.where(family.sizes == 3, 1.0, 0.0)
    table = SubsetScores(family, scores, nothing, nothing, tuple(map(str, range(29))))
    with pytest.raises(ISDEError, match="ask for fewer"):
        best_partitions(table, 5)


# --- ties at sizes where enumeration ends ----------------------------------------------------------------------


def levels(d, k, per_size):
    """A table in which all subsets of a size score the same."""
    family = SubsetFamily(d, k)
    nothing = np.full(len(family), np.nan)
    return SubsetScores(family, np.array(per_size)[family.sizes - 1], nothing, nothing, tuple(map(str, range(d))))


@pytest.mark.parametrize(
    ("d", "per_size", "score", "start"),
    [
        (30, [1.0, 1.0, 1.0], 30.0, ((0,), (1,), (2,))),  # all equal: nothing gained
        (30, [1.0, 2.0, 3.0], 30.0, ((0,), (1,), (2,))),  # additive: all partitions tied, the finest wins
        (30, [0.0, 1.0, 1.0], 15.0, ((0, 1), (2, 3))),
        (31, [0.0, 1.0, 1.0], 15.0, ((0,), (1, 2), (3, 4))),  # half a column too many for the linear program
        (29, [0.0, 0.0, 1.0], 9.0, ((0,), (1,), (2, 3, 4))),
    ],
)
def test_large_ties_are_solved_proved_and_cut_as_stated(d, per_size, score, start):
    found = select_partition(levels(d, 3, per_size))
    assert (found.score, found.bound) == (score, score)
    assert found.partition[: len(start)] == start


def test_scores_that_are_all_noise_are_solved_and_proved():
    family = SubsetFamily(40, 3)
    scores = family.sizes + 0.01 * np.random.default_rng(0).normal(size=len(family))
    nothing = np.full(len(family), np.nan)
    assert select_partition(SubsetScores(family, scores, nothing, nothing, tuple(map(str, range(40))))).is_optimal


# --- constraints -----------------------------------------------------------------------------------------------


def allows(constraints):
    """The definition of the constraints, for partitions of numbered columns."""

    def allowed(partition):
        home = {c: i for i, block in enumerate(partition) for c in block}
        return (
            all(len({home[c] for c in group}) == 1 for group in constraints.together)
            and all(len({home[c] for c in group}) == len(group) for group in constraints.apart)
            and all(tuple(sorted(block)) in partition for block in constraints.blocks)
            and min(map(len, partition)) >= constraints.min_block_size
            and (constraints.max_blocks is None or len(partition) <= constraints.max_blocks)
        )

    return allowed


groups = st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=3, unique=True), max_size=1)
constraints_of_six = st.builds(
    Constraints,
    together=groups,
    apart=groups,
    blocks=groups,
    min_block_size=st.integers(1, 2),
    max_blocks=st.one_of(st.none(), st.integers(2, 5)),
)


@given(st.integers(0, 10**6), st.integers(2, 4), constraints_of_six, st.sampled_from(["max", "min"]))
def test_under_constraints_every_solver_agrees_with_enumeration(seed, k, constraints, sense):
    scores = tied_table(6, k, seed)
    for subset in oracles.all_subsets(6, k):  # -inf would compete with the constraints for the last place
        if scores.get(subset, -np.inf) == -np.inf:
            scores[subset] = sum(scores[(c,)] for c in subset) - 0.5
    table = SubsetScores.from_dict(scores)
    expected = ranked(scores, 6, sense, allows(constraints))
    if not expected:
        with pytest.raises(InputError, match="No partition of the 6 columns"):
            best_partitions(table, 3, sense=sense, constraints=constraints)
        with pytest.raises(InputError, match="No partition of the 6 columns"):
            select_partition(table, sense=sense, constraints=constraints)
        return
    for solver in SOLVER_NAMES:
        for n in (1, 20):
            if takes(solver, Task(6, k, constraints.max_blocks, n)):
                found = best_partitions(table, n, solver=solver, sense=sense, constraints=constraints)
                assert [one.partition for one in found] == expected[:n]
                assert all(one.is_proved for one in found)


@pytest.mark.parametrize("seed", range(5))
def test_partitions_with_fewer_blocks_than_allowed_take_their_place_among_the_others(seed):
    # Columns gain by being alone, so that each block more is worth something: the fee for a block is not zero.
    scores = {s: 3.0 / len(s) + float(np.random.default_rng([seed, *s]).normal()) for s in oracles.all_subsets(6, 4)}
    limit = Constraints(max_blocks=4)
    expected = ranked(scores, 6, "max", allows(limit))
    found = best_partitions(SubsetScores.from_dict(scores), 60, constraints=limit)
    assert {len(one.partition) for one in found} >= {3, 4}
    assert [one.partition for one in found] == expected[:60]


def test_columns_are_named_or_numbered():
    scores = random_table(4, 3, 9)
    table = SubsetScores.from_dict(scores, ["CD3", "CD4", "CD8", "CD19"])
    by_name = select_partition(table, constraints=Constraints(together=[("CD8", "CD3")], apart=[("CD4", "CD19")]))
    by_number = select_partition(table, constraints=Constraints(together=[(0, 2)], apart=[(1, 3)]))
    assert by_name == by_number
    assert any({0, 2} <= set(block) for block in by_name.partition)


def test_a_limit_on_the_blocks_holds_at_forty_columns():
    table = SubsetScores.from_dict(random_table(40, 3, 10))
    free = select_partition(table)
    limited = select_partition(table, constraints=Constraints(max_blocks=14))
    assert len(free.partition) > 14 >= len(limited.partition)
    assert free.score > limited.score == limited.bound


def test_hopeless_scores_do_not_blur_a_choice_under_constraints():
    scores = random_table(6, 3, 11) | {(0, 1): -1e12, (2, 3): -1e15}
    table = SubsetScores.from_dict(scores)
    demands = Constraints(min_block_size=2)
    assert select_partition(table, constraints=demands).partition == ranked(scores, 6, "max", allows(demands))[0]


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        (Constraints(together=[("a", "b", "c", "d")]), "at most 3 meets this: together a, b, c, d"),
        (Constraints(together=[("a", "b")], apart=[("b", "a")]), "all of these: together a, b; apart a, b"),
        (
            Constraints(together=[("a", "b"), ("b", "c"), ("d", "e")], apart=[("a", "c")], max_blocks=4),
            "these: together a, b; together b, c; apart a, c",
        ),
        (Constraints(blocks=[("a", "b"), ("b", "c")]), "these: block a, b; block b, c"),
        (Constraints(blocks=[("a",)], min_block_size=2), "these: block a; min_block_size=2"),
        (Constraints(max_blocks=1), "this: max_blocks=1"),
        (Constraints(min_block_size=4), "this: min_block_size=4"),
        (Constraints(apart=[("a", "b", "c")], max_blocks=2), "these: apart a, b, c; max_blocks=2"),
        (Constraints(apart=[("a", "b")], min_block_size=3, blocks=[("c", "d", "e")]), "this: min_block_size=3"),
    ],
)
def test_demands_that_rule_each_other_out_are_named_and_no_others(constraints, complaint):
    table = SubsetScores.from_dict(random_table(5, 3, 12), list("abcde"))
    with pytest.raises(InputError, match=complaint):
        select_partition(table, constraints=constraints)


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        (Constraints(together=[("a", "z")]), "no column 'z' to keep together: the columns are a, b, c"),
        (Constraints(apart=[(0, 7)]), "no column 7 to keep apart"),
        (Constraints(apart=[(0, -1)]), "no column -1 to keep apart"),
        (Constraints(together=["ab"]), "must be a group of columns"),
        (Constraints(together=[("a",)]), "at least 2 columns"),
        (Constraints(together=[("a", "a")]), "each once"),
        (Constraints(blocks=[()]), "at least 1 column"),
        (Constraints(min_block_size=0), "min_block_size=0"),
        (Constraints(max_blocks=0), "max_blocks=0"),
    ],
)
def test_demands_that_make_no_sense_are_refused_by_name(constraints, complaint):
    table = SubsetScores.from_dict(random_table(3, 2, 13), list("abc"))
    with pytest.raises(InputError, match=complaint):
        best_partitions(table, 2, constraints=constraints)


def test_a_solver_that_cannot_count_blocks_says_so():
    table = SubsetScores.from_dict(random_table(4, 2, 0))
    with pytest.raises(ValueError, match="use solver='milp'"):
        select_partition(table, solver="dynamic", constraints=Constraints(max_blocks=3))


def test_a_solver_of_one_partition_says_so():
    table = SubsetScores.from_dict(random_table(4, 2, 0))
    with pytest.raises(ValueError, match="solver='dynamic' finds one partition, not 2: use solver='milp'"):
        best_partitions(table, 2, solver="dynamic")
    assert best_partitions(table, 1, solver="dynamic") == [select_partition(table, solver="dynamic")]


def test_none_of_zero_partitions_are_asked_for():
    with pytest.raises(ValueError, match="n=0"):
        best_partitions(SubsetScores.from_dict({(0,): 1.0}), 0)


# --- the landscape ---------------------------------------------------------------------------------------------


@given(small_tables, st.integers(1, 7))
def test_the_landscape_is_the_histogram_of_every_partition(case, bins):
    d, scores = case
    table = SubsetScores.from_dict(scores)
    everything = [(sum(scores.get(b, -np.inf) for b in p), p) for p in oracles.all_partitions(d, table.max_block_size)]
    finite = [score for score, _ in everything if score > -np.inf]
    threshold = float(np.median(finite))
    found = landscape(table, bins, above=threshold)
    assert found.n_partitions == len(everything)
    assert found.n_impossible == len(everything) - len(finite)
    assert found.counts.tolist() == np.histogram(finite, found.edges)[0].tolist()
    assert found.edges[0] == min(finite)
    assert found.edges[-1] == pytest.approx(max(finite))
    assert found.mean == pytest.approx(np.mean(finite), abs=ROUNDING)
    above = sorted(((-score, p) for score, p in everything if score > threshold))
    assert found.above == [(p, -score) for score, p in above]


def test_scores_on_the_edge_of_a_bin_fall_where_numpy_puts_them():
    scores = {s: 0.7 * sum(s) * (len(s) > 1) for s in oracles.all_subsets(7, 3)}
    everything = [sum(scores[b] for b in p) for p in oracles.all_partitions(7, 3)]
    found = landscape(SubsetScores.from_dict(scores), bins=21)
    within = np.clip(everything, found.edges[0], found.edges[-1])  # sums in another order pass the ends by 1e-16
    assert found.counts.tolist() == np.histogram(within, found.edges)[0].tolist()


def test_the_landscape_of_smaller_blocks_is_restricted():
    table = SubsetScores.from_dict(random_table(7, 4, 14))
    assert landscape(table, max_block_size=2).n_partitions == count_partitions(7, 2)


def test_a_landscape_that_takes_hours_is_refused_with_an_estimate():
    with pytest.raises(InputError, match=r"7.53e\+23 partitions of 32 columns would take about .* years"):
        landscape(levels(32, 3, [0.0, 0.5, 1.0]))
    with pytest.raises(InputError, match=r"would take about .* minutes, more than max_minutes=1e-09"):
        landscape(levels(14, 4, [0.0, 0.5, 1.0, 1.5]), max_minutes=1e-9)
    with pytest.raises(InputError, match="at most 24 columns, not 30"):
        landscape(levels(30, 1, [0.0]))


@pytest.mark.parametrize(
    ("scores", "options", "complaint"),
    [
        ({(0,): 1.0}, {"bins": 0}, "bins=0"),
        ({(0,): -np.inf}, {}, "no landscape"),
    ],
)
def test_a_landscape_that_makes_no_sense_is_refused(scores, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        landscape(SubsetScores.from_dict(scores), **options)


def test_a_threshold_that_lists_too_much_is_refused(monkeypatch):
    from isde.inspection import all_partitions

    monkeypatch.setattr(all_partitions, "MOST_LISTED", 10)
    with pytest.raises(InputError, match="raise the threshold"):
        landscape(levels(5, 5, [0.0, 1.0, 1.0, 1.0, 1.0]), above=-1.0)


# --- known answers ---------------------------------------------------------------------------------------------


def saved_scores(name):
    path = Path(PAPER) / f"{name}_subset_scores.csv"
    if not path.is_file():
        pytest.skip(f"The paper's scores are not here: {path} does not exist.")
    with open(path, newline="", encoding="utf-8") as lines:
        return SubsetScores.from_dict(
            {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
        )


def test_the_landscape_of_the_papers_scores():
    table = saved_scores("levine13")
    found = landscape(table, above=14.6)
    assert found.n_partitions == found.counts.sum() == 25_719_630
    assert len(found.above) == 1454
    best = best_partitions(table, 1000)
    assert [one.partition for one in best] == [partition for partition, _ in found.above[:1000]]
    assert best[0].score == found.above[0][1] == pytest.approx(15.117430870747343, abs=ROUNDING)


def test_the_best_of_the_papers_32_columns_differ_by_small_edits_of_the_best():
    table = saved_scores("levine32")
    best = best_partitions(table, 10)
    assert best[0].score == pytest.approx(45.50636810024885, abs=ROUNDING)
    # An upper bound on any other: all neighbours of the best by one split or merge are among those considered.
    neighbours = [p for p in oracles.neighbours(best[0].partition) if max(map(len, p)) <= 3]
    runner_up = max(sum(table[block] for block in p) for p in neighbours)
    assert best[1].score >= runner_up - ROUNDING
    for worse, better in combinations(reversed(best), 2):
        assert worse.score <= better.score
