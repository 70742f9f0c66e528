"""Selection: every solver finds the best partition of the table, breaks ties in the same way, and proves it."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from isde import Selection, SubsetScores, select_partition
from isde.errors import InputError, UnprovedPartition
from isde.selection import certify
from isde.solvers import dynamic
from isde.solvers.registry import AUTO, choose, solver_named
from isde.solvers.registry import SOLVERS as REGISTRY
from isde.solvers.solver import Proved, Task
from oracles import ROUNDING

SOLVERS = list(REGISTRY)
PAPER = Path(__file__).parents[2] / "shared" / "paper"


def tied_table(d, k, seed):
    """Scores exact in binary with few different gains, so that ties are common; some subsets score -inf or lack."""
    rng = np.random.default_rng(seed)
    scores = {(c,): float(rng.integers(-8, 9)) / 4 for c in range(d)}
    for subset in oracles.all_subsets(d, k)[d:]:
        gain = rng.choice([-0.25, 0.0, 0.25, 0.5, -np.inf, np.nan], p=[0.1, 0.2, 0.3, 0.1, 0.15, 0.15])
        if not np.isnan(gain):
            scores[subset] = float(sum(scores[(c,)] for c in subset) + gain)
    return scores


tied_tables = st.builds(lambda d, k, seed: (d, tied_table(d, k, seed)), *[st.integers(1, 6)] * 2, st.integers(0, 10**6))


def random_table(d, k, seed):
    rng = np.random.default_rng(seed)
    return {s: float(rng.uniform() * len(s)) for s in oracles.all_subsets(d, k)}


# --- the optimum -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sense", ["max", "min"])
@given(tied_tables)
def test_every_solver_finds_the_best_partition_and_breaks_ties_as_stated(solver, sense, case):
    d, scores = case
    found = select_partition(SubsetScores.from_dict(scores), solver=solver, sense=sense)
    partition, score = oracles.best_partition(scores, d, sense)
    assert found.partition == partition
    assert found.score == score
    assert found.bound == score
    assert found.is_optimal
    assert found.solver == solver


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("d", "k"), [(7, 7), (8, 3), (8, 4)])
def test_every_solver_finds_the_best_partition_of_random_scores(solver, d, k):
    for seed in range(3):
        scores = random_table(d, k, seed)
        found = select_partition(SubsetScores.from_dict(scores), solver=solver)
        partition, score = oracles.best_partition(scores, d)
        assert found.partition == partition
        assert found.score == pytest.approx(score, abs=ROUNDING)


@pytest.mark.parametrize("solver", SOLVERS)
def test_where_nothing_is_gained_the_columns_stay_alone(solver):
    table = SubsetScores.from_dict({s: float(sum(s)) for s in oracles.all_subsets(6, 4)})
    assert select_partition(table, solver=solver).partition == ((0,), (1,), (2,), (3,), (4,), (5,))


@pytest.mark.parametrize("solver", SOLVERS)
def test_among_equals_of_as_many_blocks_the_first_in_pythons_order_wins(solver):
    scores = dict.fromkeys(oracles.all_subsets(6, 2), 0.0) | dict.fromkeys(combinations(range(6), 2), 1.0)
    table = SubsetScores.from_dict(scores)
    assert select_partition(table, solver=solver).partition == ((0, 1), (2, 3), (4, 5))


@pytest.mark.parametrize("solver", SOLVERS)
def test_differences_below_the_stated_1e_12_do_not_cut_a_tie(solver):
    scores = {(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 0.5, (0, 2): 0.5 + 1e-13, (1, 2): 0.0}
    assert select_partition(SubsetScores.from_dict(scores), solver=solver).partition == ((0, 1), (2,))


@pytest.mark.parametrize("solver", SOLVERS)
def test_differences_of_1e_11_count(solver):
    scores = {(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 0.5, (0, 2): 0.5 + 1e-11, (1, 2): 0.0}
    assert select_partition(SubsetScores.from_dict(scores), solver=solver).partition == ((0, 2), (1,))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("hopeless", [-1e9, -1e12, -1e15, -1e300])
def test_a_hopeless_subset_does_not_blur_the_others(solver, hopeless):
    scores = {(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 1e-3, (0, 2): 1e-3 + 1e-6, (1, 2): hopeless}
    found = select_partition(SubsetScores.from_dict(scores), solver=solver)
    assert found.partition == ((0, 2), (1,))
    assert found.score == 1e-3 + 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_large_common_level_of_the_scores_does_not_matter(solver):
    scores = {s: score + 1e4 * len(s) for s, score in random_table(6, 3, 0).items()}
    found = select_partition(SubsetScores.from_dict(scores), solver=solver)
    assert found.partition == oracles.best_partition(random_table(6, 3, 0), 6)[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_column_that_must_not_be_alone_is_not(solver):
    scores = {(0,): -np.inf, (1,): 0.0, (2,): 0.0, (0, 1): -5.0, (0, 2): -7.0, (1, 2): 3.0}
    found = select_partition(SubsetScores.from_dict(scores), solver=solver)
    assert (found.partition, found.score) == (((0, 1), (2,)), -5.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sense", ["max", "min"])
def test_where_every_partition_scores_minus_infinity_one_is_still_found(solver, sense):
    scores = {(0,): -np.inf, (1,): 0.0, (2,): 1.0, (0, 1): -np.inf, (1, 2): 2.0}
    found = select_partition(SubsetScores.from_dict(scores), solver=solver, sense=sense)
    assert found.score == found.bound == -np.inf
    assert found.is_optimal
    assert sorted(c for block in found.partition for c in block) == [0, 1, 2]


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_one_column_is_its_own_partition(solver):
    assert select_partition(SubsetScores.from_dict({(0,): 1.5}), solver=solver).partition == ((0,),)


# --- laws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@given(tied_tables)
def test_a_larger_block_size_never_lowers_the_optimum(solver, case):
    d, scores = case
    table = SubsetScores.from_dict(scores)
    optima = [select_partition(table, k, solver=solver).score for k in range(1, table.max_block_size + 1)]
    assert optima == sorted(optima)
    assert optima[0] == sum(scores[(c,)] for c in range(d))


@pytest.mark.parametrize("solver", SOLVERS)
@given(st.permutations(range(6)))
def test_permuting_the_columns_permutes_the_partition(solver, order):
    scores = random_table(6, 3, 1)
    moved = {tuple(sorted(order[c] for c in s)): score for s, score in scores.items()}
    found = select_partition(SubsetScores.from_dict(moved), solver=solver)
    best = select_partition(SubsetScores.from_dict(scores), solver=solver)
    assert found.partition == tuple(sorted(tuple(sorted(order[c] for c in block)) for block in best.partition))
    assert found.score == pytest.approx(best.score, abs=ROUNDING)


def test_the_worst_partition_is_the_best_of_the_negated_table():
    scores = random_table(6, 4, 2)
    worst = select_partition(SubsetScores.from_dict(scores), sense="min")
    best = select_partition(SubsetScores.from_dict({s: -score for s, score in scores.items()}))
    assert worst.partition == best.partition
    assert worst.score == pytest.approx(-best.score, abs=ROUNDING)
    assert worst.score < select_partition(SubsetScores.from_dict(scores)).score


@pytest.mark.parametrize("d", [15, 18])
def test_the_integer_program_agrees_with_the_recursion_where_enumeration_ends(d):
    table = SubsetScores.from_dict(random_table(d, 3, 3))
    dynamic, milp = (select_partition(table, solver=solver) for solver in ("dynamic", "milp"))
    assert milp.partition == dynamic.partition
    assert select_partition(table).solver == "milp"


def test_fifty_columns_are_solved_and_proved():
    found = select_partition(SubsetScores.from_dict(random_table(50, 2, 4)))
    assert found.is_optimal
    assert sorted(c for block in found.partition for c in block) == list(range(50))


def test_sixty_six_columns_are_more_than_one_word_of_bits():
    pairs = tuple((c, c + 1) for c in range(0, 66, 2))
    scores = {(c,): 0.0 for c in range(66)} | dict.fromkeys(pairs, 1.0) | {(1, 2): 1.5, (0, 65): 0.25}
    found = select_partition(SubsetScores.from_dict(scores))
    assert found.partition == pairs
    assert found.score == found.bound == 33.0


def test_an_odd_cycle_beside_many_pairs_of_distant_columns_is_solved_and_proved():
    # The linear relaxation misses by half a nat, and a pair's second column comes late in the search.
    cycle, pairs = [(0, 1), (0, 2), (1, 2)], [(3 + i, 50 - i) for i in range(24)]
    scores = {(c,): 0.0 for c in range(51)} | dict.fromkeys(cycle + pairs, 1.0)
    found = select_partition(SubsetScores.from_dict(scores))
    assert found.score == found.bound == 25.0
    assert found.partition == ((0,), (1, 2), *pairs)  # Python's order among equals


# --- known answers ---------------------------------------------------------------------------------------------

LEVINE = {
    "levine13": (13, 15.117430870747343, [(0, 1, 4, 5, 12), (3, 8, 10), (2, 7)]),
    "levine32": (32, 45.50636810024885, [(0, 1), (8, 28), (14, 17), (18, 30), (12, 22, 23), (19, 25, 29)]),
}


@pytest.mark.parametrize("solver", ["dynamic", "milp"])
@pytest.mark.parametrize("name", LEVINE)
def test_the_papers_saved_scores_give_the_known_partition(name, solver):
    d, best, together = LEVINE[name]
    path = PAPER / f"{name}_subset_scores.csv"
    if not path.is_file():
        pytest.skip(f"The paper's scores are not here: {path} does not exist.")
    if solver == "dynamic" and d > 22:
        pytest.skip(f"The recursion over bit masks takes at most 22 columns, {name} has {d}.")
    with open(path, newline="", encoding="utf-8") as lines:
        scores = {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
    found = select_partition(SubsetScores.from_dict(scores), solver=solver)
    assert found.score == pytest.approx(best, abs=ROUNDING)
    assert found.bound == pytest.approx(best, abs=ROUNDING)
    assert sorted(block for block in found.partition if len(block) > 1) == sorted(together)
    assert sum(map(len, found.partition)) == d


# --- proofs ----------------------------------------------------------------------------------------------------

THREE = SubsetScores.from_dict({(0,): 0.5, (1,): 0.25, (2,): 0.125, (0, 1): 1.0, (0, 2): 0.0, (1, 2): 0.0})


def test_a_certificate_adds_the_score_up_again():
    found = certify(THREE, ((2,), (1, 0)), 0.0, "oracle")
    assert found == Selection(((0, 1), (2,)), 1.125, 1.125, "oracle")
    assert found.is_optimal


@pytest.mark.parametrize("wrong", [((0, 1),), ((0, 1), (1, 2)), ((0, 1), (2,), (3,)), ((0, 1, 2),), ((0,), (), (1, 2))])
def test_what_is_no_partition_into_scored_subsets_gets_no_certificate(wrong):
    with pytest.raises(ValueError, match=r"artition|subset"):
        certify(THREE, wrong, 0.0, "oracle")


def test_a_gap_is_reported_with_the_partition_found():
    with pytest.raises(UnprovedPartition, match=r"1\.125.*1\.625") as caught:
        certify(THREE, ((0, 1), (2,)), 0.5, "oracle")
    assert caught.value.selection == Selection(((0, 1), (2,)), 1.125, 1.625, "oracle")
    assert not caught.value.selection.is_optimal


def test_when_minimising_the_bound_lies_below():
    with pytest.raises(UnprovedPartition) as caught:
        certify(THREE, ((0,), (1, 2)), 0.5, "oracle", sense="min")
    assert caught.value.selection.bound == 0.0


def test_a_wrong_answer_of_a_solver_is_caught(monkeypatch):
    monkeypatch.setattr(dynamic, "best", lambda weights, n: [Proved(((0,), (1, 2)), 10**15)])
    with pytest.raises(UnprovedPartition):
        select_partition(THREE, solver="dynamic")
    monkeypatch.setattr(dynamic, "best", lambda weights, n: [Proved(((0,), (1,)), 0)])
    with pytest.raises(ValueError, match="misses column 2"):
        select_partition(THREE, solver="dynamic")


# --- bad tables and requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "names", "complaint"),
    [
        ({}, None, "empty"),
        ({(0,): 1.0, (0, 1): 2.0}, None, "Column 1 has no score"),
        ({(0,): 1.0, (2,): 1.0}, None, "Column 1 has no score"),
        ({(0,): 1.0}, ["a", "b"], "Column 1 has no score"),
        ({(0,): 1.0, (1,): 1.0, (0, 1): 2.0, (1, 0): 2.0}, None, r"\(0, 1\) stands in the table twice"),
        ({0: 1.0, (0,): 1.0}, None, r"\(0,\) stands in the table twice"),
        ({(0,): 1.0, (1,): 1.0, (1, 1): 2.0}, None, "names a column twice"),
        ({(0,): 1.0, (1,): np.nan}, None, "{x1} is nan"),
        ({(0,): 1.0, (1,): 1.0, (0, 1): np.nan}, ["a", "b"], "{a, b} is nan"),
        ({(0,): 1.0, (1,): 1.0, (0, 1): np.inf}, None, "{x0, x1} is inf"),
        ({(0,): 1.0, (1,): 1.0, (2,): 1.0}, ["a", "b"], "Column 2 is out of range"),
        ({(0,): 1.0, (1,): 1.0, (1, 5): 1.0}, ["a", "b"], "Column 5 is out of range"),
        ({(0,): 1.0, (-1,): 1.0}, None, "no subset"),
        ({(0,): 1.0, (): 1.0}, None, "no subset"),
        ({(0,): 1.0, ("b",): 1.0}, None, "no subset"),
        ({(0,): 1.0, (0.5,): 1.0}, None, "no subset"),
    ],
)
def test_a_bad_table_is_refused_by_its_culprit(scores, names, complaint):
    with pytest.raises(InputError, match=complaint):
        SubsetScores.from_dict(scores, names)


def test_a_table_answers_for_its_subsets():
    assert THREE[0, 1] == 1.0
    assert THREE.gain((0, 1)) == 0.25
    assert THREE.gain((2,)) == 0.0
    assert THREE.label((0, 2)) == "{x0, x2}"
    assert (len(THREE), THREE.n_columns, THREE.max_block_size) == (6, 3, 2)
    with pytest.raises(ValueError, match="no sorted subset"):
        THREE[0, 1, 2]


def test_a_table_for_smaller_blocks_is_a_prefix():
    table = SubsetScores.from_dict(random_table(5, 3, 0))
    assert list(table.restrict(2).subsets) == oracles.all_subsets(5, 2)
    assert table.restrict(2).scores.tolist() == table.scores[:15].tolist()
    with pytest.raises(ValueError, match="at most 3 columns"):
        table.restrict(4)
    with pytest.raises(ValueError, match="max_block_size=0"):
        table.restrict(0)


def test_a_frame_library_that_is_missing_is_said_with_the_way_out(monkeypatch):
    monkeypatch.setattr("isde.scores.find_spec", lambda name: None)
    with pytest.raises(InputError, match="backend='pandas' is not installed: pip install pandas, or name another one"):
        THREE.to_frame()


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_table_becomes_a_frame(backend):
    frame = THREE.to_frame(backend)
    columns = {
        name: list(frame[name].to_pylist() if backend == "pyarrow" else frame[name]) for name in ("subset", "gain")
    }
    assert columns["subset"] == ["0", "1", "2", "0 1", "0 2", "1 2"]
    assert columns["gain"] == [0.0, 0.0, 0.0, 0.25, -0.625, -0.375]


def test_a_table_with_minus_infinity_becomes_a_frame_without_complaint():
    table = SubsetScores.from_dict({(0,): -np.inf, (1,): 0.5, (0, 1): -np.inf})
    assert table.to_frame("polars")["score"].to_list() == [-np.inf, 0.5, -np.inf]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"solver": "greedy"}, "solver='greedy' is unknown"),
        ({"sense": "best"}, "sense='best' is unknown"),
        ({"max_block_size": 0}, "max_block_size=0"),
        ({"max_block_size": 3}, "at most 2 columns"),
    ],
)
def test_a_bad_request_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        select_partition(THREE, **options)


def test_too_many_columns_for_a_solver_are_refused_with_another_one():
    singles = SubsetScores.from_dict({(c,): 0.0 for c in range(23)})
    with pytest.raises(ValueError, match="at most 22 columns, not 23: use solver='milp'"):
        select_partition(singles, solver="dynamic")
    pairs = SubsetScores.from_dict(random_table(20, 2, 0))
    with pytest.raises(ValueError, match=r"would visit 2\.38e\+10 partitions of 20 columns: use solver='milp'"):
        select_partition(pairs, solver="exhaustive")


# --- the registry ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "cheapest"),
    [
        (Task(14, 2), "dynamic"),
        (Task(14, 14), "dynamic"),
        (Task(15, 3), "milp"),
        (Task(15, 15), "dynamic"),
        (Task(22, 22), "dynamic"),
        (Task(23, 23), "milp"),
        (Task(5, 3, max_blocks=2), "milp"),
        (Task(5, 3, n=2), "milp"),
        (Task(700, 3), "milp"),
    ],
)
def test_the_cheapest_solver_that_takes_a_task_is_chosen(task, cheapest):
    assert choose(AUTO, task) == cheapest


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("task", [Task(30, 3), Task(200, 200), Task(5, 3, max_blocks=2), Task(5, 3, n=2)], ids=str)
def test_what_a_solver_refuses_is_refused_with_its_name_and_another_one_that_takes_it(solver, task):
    reason = solver_named(solver).refusal(task)
    if reason is None:
        assert choose(solver, task) == solver
        return
    with pytest.raises(ValueError, match=f"solver='{solver}'") as refused:
        choose(solver, task)
    other = choose(AUTO, task)
    assert str(refused.value) == f"solver={solver!r} {reason}: use solver={other!r}."
    assert solver_named(other).refusal(task) is None


def test_some_solver_takes_everything():
    assert any(solver_named(name).refusal(Task(200, 200, max_blocks=3, n=10**6)) is None for name in REGISTRY)
