"""Selection of trees: exact solvers find the best tree of the table, others a good one with a bound that holds."""

import csv
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from isde import SubsetScores, TreeSelection, select_partition, select_tree
from isde.data.table import default_names
from isde.errors import InputError, UnprovedPartition
from isde.subsets import SubsetFamily
from isde.tree_selection import certify_tree
from isde.tree_solvers import annealing, certify_tree_again, dynamic, proofs
from isde.tree_solvers.merging import merged
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.registry import SOLVERS as REGISTRY
from isde.tree_solvers.registry import choose, solver_named
from isde.tree_solvers.relaxation import Limits
from isde.tree_solvers.solver import Found
from isde.trees import tree_of_edges
from oracles import ROUNDING

PAPER = Path(__file__).parents[2] / "shared" / "paper"
EXACT = ["forest", "dynamic"]
SOLVERS = list(REGISTRY)


def tied_table(d, k, seed):
    """Scores exact in binary with few different gains, so that ties are common; some subsets score -inf or lack."""
    rng = np.random.default_rng(seed)
    scores = {(c,): float(rng.integers(-8, 9)) / 4 for c in range(d)}
    for subset in oracles.all_subsets(d, k)[d:]:
        gain = rng.choice([-0.25, 0.0, 0.25, 0.5, -np.inf, np.nan], p=[0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
        if not np.isnan(gain):
            scores[subset] = float(sum(scores[(c,)] for c in subset) + gain * (len(subset) - 1))
    for c in range(d):
        if rng.uniform() < 0.1:
            scores[(c,)] = -np.inf
    return scores


def random_table(d, k, seed):
    """Scores of any size, in which larger subsets gain a little."""
    rng = np.random.default_rng(seed)
    alone = rng.normal(size=d)
    return {s: float(alone[list(s)].sum() + (len(s) - 1) * rng.normal(0.1, 1)) for s in oracles.all_subsets(d, k)}


def charged(scores, seed):
    """A table with charges, and the scores minus charges as a dictionary."""
    table = SubsetScores.from_dict(scores)
    charges = np.random.default_rng(seed).integers(0, 3, len(table)) / 8
    charges[: table.n_columns] = 0.0
    table = replace(table, charges=charges)
    return table, dict(zip(table.subsets, table.charged_by_edge().objectives.tolist(), strict=True))


sizes, seeds = st.integers(1, 6), st.integers(0, 10**6)
tied_tables = st.builds(lambda d, k, seed: (d, tied_table(d, k, seed), seed), sizes, sizes, seeds)


def takes(solver, table):
    return solver_named(solver).refusal(TreeProblem(table).task) is None


# --- the optimum -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", EXACT)
@given(tied_tables)
def test_exact_solvers_find_the_best_tree_with_the_fewest_edges(solver, case):
    d, scores, seed = case
    table, objectives = charged(scores, seed)
    table = table.restrict(min(2, table.max_block_size)) if solver == "forest" else table
    if not takes(solver, table):
        return
    found = select_tree(table, solver=solver)
    best, fewest = oracles.best_tree(objectives, d, table.max_block_size)
    assert found.objective == found.bound == best
    assert found.is_optimal
    assert found.solver == solver
    if best > -np.inf:
        assert len(found.edges) == fewest


@pytest.mark.parametrize("k", range(1, 7))
def test_the_recursion_finds_the_best_tree_of_random_scores(k):
    for seed in range(3):
        scores = random_table(6, k, seed)
        found = select_tree(SubsetScores.from_dict(scores), solver="dynamic")
        assert found.score == pytest.approx(oracles.best_tree(scores, 6, k)[0], abs=ROUNDING)
        assert found.gap == 0.0
        assert max(map(len, found.cliques)) <= k


@given(tied_tables)
def test_annealing_finds_trees_and_bounds_that_hold(case):
    d, scores, seed = case
    table, objectives = charged(scores, seed)
    found = select_tree(table, solver="annealing")
    best, _ = oracles.best_tree(objectives, d, table.max_block_size)
    assert found.objective <= best <= found.bound
    if select_partition(table.charged_by_edge()).objective > -np.inf:
        assert found.objective >= select_partition(table.charged_by_edge()).objective
    assert found.solver == "annealing"


@pytest.mark.parametrize("k", [3, 4])
def test_annealing_finds_the_best_of_random_scores_of_few_columns(k):
    for seed in range(5):
        table = SubsetScores.from_dict(random_table(7, k, seed))
        exact, found = (select_tree(table, solver=solver) for solver in ("dynamic", "annealing"))
        assert found.objective == pytest.approx(exact.objective, abs=ROUNDING)
        assert found.edges == exact.edges


@given(st.builds(lambda d, k, seed: (d, tied_table(d, k, seed), seed), st.integers(1, 5), sizes, seeds))
def test_the_linear_program_bounds_every_tree_and_proves_the_best_where_all_subsets_count(case):
    d, scores, seed = case
    table, objectives = charged(scores, seed)
    found = select_tree(table, solver="milp")
    best, _ = oracles.best_tree(objectives, d, table.max_block_size)
    assert found.objective <= best <= found.bound
    if (
        np.isfinite(table.scores[: table.subsets.of_size(table.max_block_size).start]).all()
        and table.max_block_size > 1
    ):
        assert found.objective == best
        assert found.proof == "proved"


def gaussian_table(d, k, seed):
    """Gains of Gaussian columns that hang together in a 2-tree, as 300 rows show them, less 0.01 a pair."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, d))
    for c in range(2, d):
        X[:, c] += X[:, rng.choice(c, 2, replace=False)] @ [0.8, -0.6]
    correlation, subsets = np.corrcoef(X.T), SubsetFamily(d, k)
    gains = [-0.5 * np.linalg.slogdet(correlation[np.ix_(s, s)])[1] - 0.005 * len(s) * (len(s) - 1) for s in subsets]
    nothing = np.full(len(subsets), np.nan)
    return SubsetScores(subsets, np.array(gains), nothing, nothing, default_names(d))


@pytest.mark.parametrize(("d", "k"), [(13, 3), (12, 4)])
def test_the_linear_program_agrees_with_the_recursion_where_enumeration_ends(d, k):
    table = gaussian_table(d, k, seed=0)
    exact, found = (select_tree(table, solver=solver) for solver in ("dynamic", "milp"))
    assert select_tree(table).solver == "dynamic"
    assert found.edges == exact.edges
    assert found.objective == exact.objective
    assert found.proof == exact.proof == "proved"


def test_many_columns_are_left_to_the_linear_program():
    assert choose("auto", TreeTask(16, 5)) == "dynamic"
    assert choose("auto", TreeTask(32, 3)) == "milp"
    assert choose("auto", TreeTask(50, 2)) == "forest"
    assert choose("auto", TreeTask(50, 2, all_alone=False)) == "milp"


def test_trees_of_fifty_columns_are_merged_with_a_proof(monkeypatch):
    """Cuts found by climbs from few columns that stand together took 133 rounds and four branches."""
    problem = TreeProblem(gaussian_table(50, 3, seed=9))
    monkeypatch.setattr(annealing, "STEPS_PER_PAIR", 300)
    met = annealing.trees_met(problem)
    weights = moebius_weights(problem.subsets, problem.gains)
    edges = [edge for tree in met for edge in tree]
    found = merged(problem.subsets, weights, edges, max(met, key=met.get), Limits(rounds=60, branches=0))
    assert found.gap <= ROUNDING
    assert found.weight > 1.004 * max(met.values())


def test_a_partition_that_is_not_proved_is_a_start_as_well(monkeypatch):
    def unproved(scores):
        raise UnprovedPartition("not proved", replace(select_partition(scores), bound=99.0))

    table = gaussian_table(9, 3, seed=2)
    monkeypatch.setattr(annealing, "select_partition", unproved)
    found = select_tree(table, solver="annealing")
    assert found.edges == select_tree(table, solver="dynamic").edges


@given(st.integers(3, 9), st.integers(2, 4), seeds)
def test_no_walk_ends_below_its_start(d, k, seed):
    """Steps add up what they change: a sum that went wrong would keep a graph that is no better, or no tree."""
    problem = TreeProblem(SubsetScores.from_dict(random_table(d, min(d, k), seed)))
    start = dynamic.best(problem).edges
    temperature = annealing._temperature(problem)
    found = annealing._walk(problem, start, 2000, temperature, seed, problem.gains, hot=2.0)
    assert problem.gain(found) >= problem.gain(start) - ROUNDING


def test_annealing_gives_the_same_tree_each_time():
    table = SubsetScores.from_dict(random_table(20, 3, 0))
    one, other = (select_tree(table, solver="annealing") for _ in range(2))
    assert one == other
    assert one.proof == "not proved"
    assert one.objective > select_tree(table, 2).objective


def test_seventy_columns_are_more_than_one_word_of_bits(monkeypatch):
    monkeypatch.setattr(annealing, "STEPS_PER_PAIR", 200)
    scores = {(c,): 0.0 for c in range(70)} | {(c, c + 1): 1.0 for c in range(69)}
    scores |= {(c, c + 2): 0.0 for c in range(68)} | {(c, c + 1, c + 2): 2.5 for c in range(68)}
    found = select_tree(SubsetScores.from_dict(scores), solver="annealing")
    assert found.score == 69 + 68 * 0.5


@given(st.integers(1, 10), seeds)
def test_pairs_give_a_maximum_spanning_forest(d, seed):
    scores = random_table(d, 2, seed)
    table = SubsetScores.from_dict(scores)
    graph = nx.Graph()
    graph.add_nodes_from(range(d))
    for a, b in combinations(range(d), 2):
        if table.gain((a, b)) > 0:
            graph.add_edge(a, b, weight=table.gain((a, b)))
    forest = nx.maximum_spanning_tree(graph)
    best = sum(scores[(c,)] for c in range(d)) + forest.size(weight="weight")
    for solver in SOLVERS:
        found = select_tree(table, solver=solver)
        assert found.score == pytest.approx(best, abs=ROUNDING)
        assert found.edges == tuple(sorted(tuple(sorted(edge)) for edge in forest.edges))


@given(tied_tables)
def test_no_tree_is_worse_than_the_best_partition(case):
    _, scores, seed = case
    table, _ = charged(scores, seed)
    assert select_tree(table).objective >= select_partition(table.charged_by_edge()).objective


@pytest.mark.parametrize(("d", "size"), [(6, 2), (8, 2), (6, 3), (9, 3)])
def test_where_separators_are_forbidden_the_components_are_the_best_partition(d, size):
    rng = np.random.default_rng(d)
    scores = {s: rng.normal() if len(s) == size else -np.inf for s in oracles.all_subsets(d, size)}
    table = SubsetScores.from_dict(scores)
    found, best = select_tree(table), select_partition(table)
    assert found.components == found.cliques == best.partition
    assert found.score == pytest.approx(best.score, abs=ROUNDING)


def test_a_larger_block_size_never_lowers_the_optimum():
    table = SubsetScores.from_dict(random_table(8, 5, 0))
    optima = [select_tree(table, k).score for k in range(1, 6)]
    assert optima == sorted(optima)
    assert optima[0] == pytest.approx(table.scores[:8].sum(), abs=ROUNDING)
    assert select_tree(table, 1).edges == ()


@given(st.permutations(range(7)))
def test_permuting_the_columns_permutes_the_tree(order):
    scores = random_table(7, 3, 1)
    moved = {tuple(sorted(order[c] for c in s)): score for s, score in scores.items()}
    found, best = select_tree(SubsetScores.from_dict(moved)), select_tree(SubsetScores.from_dict(scores))
    assert found.edges == tuple(sorted(tuple(sorted((order[a], order[b]))) for a, b in best.edges))
    assert found.score == pytest.approx(best.score, abs=ROUNDING)


@pytest.mark.parametrize(("k", "best"), [(2, 15.199727), (3, 15.628966), (4, 15.789347), (5, 15.798310)])
def test_the_papers_saved_scores_give_the_known_optima(k, best):
    path = PAPER / "levine13_subset_scores.csv"
    if not path.is_file():
        pytest.skip(f"The paper's scores are not here: {path} does not exist.")
    with open(path, newline="", encoding="utf-8") as lines:
        scores = {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
    found = select_tree(SubsetScores.from_dict(scores), k)
    assert found.score == pytest.approx(best, abs=5e-7)  # as it is printed
    assert found.is_optimal


# --- odd tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_one_column_is_its_own_tree(solver):
    found = select_tree(SubsetScores.from_dict({(0,): 1.5}), solver=solver)
    assert (found.cliques, found.separators, found.edges, found.components) == (((0,),), (), (), ((0,),))
    assert found.score == 1.5


@pytest.mark.parametrize("solver", SOLVERS)
def test_where_nothing_is_gained_there_is_no_edge(solver):
    scores = {s: float(sum(s)) for s in oracles.all_subsets(6, 4 if solver != "forest" else 2)}
    assert select_tree(SubsetScores.from_dict(scores), solver=solver).edges == ()


def test_differences_below_the_stated_1e_12_do_not_add_an_edge():
    assert select_tree(SubsetScores.from_dict({(0,): 0.0, (1,): 0.0, (0, 1): 1e-13})).edges == ()
    assert select_tree(SubsetScores.from_dict({(0,): 0.0, (1,): 0.0, (0, 1): 1e-11})).edges == ((0, 1),)


def test_a_large_common_level_of_the_scores_does_not_matter():
    scores = random_table(6, 3, 0)
    level = {s: score + 1e4 * len(s) for s, score in scores.items()}
    assert (
        select_tree(SubsetScores.from_dict(level)).edges
        == select_tree(SubsetScores.from_dict(scores), solver="dynamic").edges
    )


@pytest.mark.parametrize("hopeless", [-1e9, -1e12, -1e300])
def test_a_hopeless_clique_does_not_blur_the_others(hopeless):
    scores = dict.fromkeys(oracles.all_subsets(3, 2), 0.0) | {(0, 1): 1e-3, (0, 2): 1e-6, (1, 2): hopeless}
    assert select_tree(SubsetScores.from_dict(scores), solver="dynamic").edges == ((0, 1), (0, 2))
    scores |= {(1, 2): 0.0, (0, 1, 2): hopeless}
    assert select_tree(SubsetScores.from_dict(scores), solver="dynamic").edges == ((0, 1), (0, 2))


def test_a_range_too_wide_for_the_finest_unit_is_said_by_the_gap():
    scores = {(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 1e12, (1, 2): 1e-3}
    found = select_tree(SubsetScores.from_dict(scores), solver="dynamic")
    assert 0.0 < found.gap < 1e-3
    assert found.proof == "not proved"


def test_a_column_that_must_not_be_alone_is_not_and_separates_nothing():
    scores = {(0,): -np.inf, (1,): 0.0, (2,): 0.0, (0, 1): -5.0, (0, 2): -7.0, (1, 2): -3.0}
    found = select_tree(SubsetScores.from_dict(scores))
    assert (found.edges, found.score, found.solver) == (((0, 1),), -5.0, "dynamic")


def test_a_tree_may_be_finite_where_no_partition_is():
    scores = {(0,): -np.inf, (1,): 1.0, (2,): -np.inf, (0, 1): 2.0, (1, 2): 4.0}
    found = select_tree(SubsetScores.from_dict(scores))
    assert (found.cliques, found.separators, found.score) == (((0, 1), (1, 2)), ((1,),), 5.0)


def test_where_every_tree_scores_minus_infinity_one_is_still_found():
    scores = {(0,): -np.inf, (1,): 0.0, (2,): 1.0, (0, 1): -np.inf, (1, 2): 2.0}
    found = select_tree(SubsetScores.from_dict(scores))
    assert found.score == found.bound == -np.inf
    assert found.is_optimal


def test_gains_scored_by_themselves_are_what_a_tree_is_chosen_by():
    table = SubsetScores.from_dict(dict.fromkeys(oracles.all_subsets(3, 2), 0.0))
    gains = np.where(table.subsets.sizes == 1, 0.0, [0, 0, 0, 1.0, -1.0, 2.0])
    found = select_tree(replace(table, dependence=gains))
    assert found.edges == ((0, 1), (1, 2))


# --- requests --------------------------------------------------------------------------------------------------


def test_what_a_solver_cannot_take_is_refused_with_the_way_out():
    table = SubsetScores.from_dict(random_table(4, 3, 0))
    with pytest.raises(ValueError, match="solver='forest' takes cliques of at most 2 columns, not 3: use"):
        select_tree(table, solver="forest")
    with pytest.raises(ValueError, match="solver='exhaustive' is unknown: use 'auto', 'forest', 'dynamic'"):
        select_tree(table, solver="exhaustive")
    with pytest.raises(ValueError, match="max_block_size=4 but the table has subsets of at most 3"):
        select_tree(table, 4)
    with pytest.raises(ValueError, match="max_block_size=0"):
        select_tree(table, 0)


@pytest.mark.parametrize(
    ("task", "complaint"),
    [(TreeTask(17, 5), "GB for 17 columns"), (TreeTask(21, 1), "steps for 21"), (TreeTask(13, 5), None)],
)
def test_the_recursion_says_what_it_would_need(task, complaint):
    reason = dynamic.refusal(task)
    assert (reason is None) if complaint is None else (complaint in reason)


# --- proofs ----------------------------------------------------------------------------------------------------

FOUR = SubsetScores.from_dict(random_table(4, 3, 0))


def test_a_certificate_adds_the_score_up_again():
    scores = {s: float(2 ** len(s)) for s in oracles.all_subsets(4, 3)}
    found = certify_tree(SubsetScores.from_dict(scores), [(2, 3), (0, 1), (1, 2), (0, 2)], 0.5, "oracle")
    assert found == TreeSelection(tree_of_edges(4, [(0, 1), (0, 2), (1, 2), (2, 3)]), 10.0, 10.5, "oracle")
    assert (found.gap, found.is_optimal, found.proof) == (0.5, False, "not proved")
    assert found.partition == found.components == ((0, 1, 2, 3),)


@pytest.mark.parametrize(
    ("edges", "complaint"),
    [
        ([(0, 1), (1, 2), (2, 3), (0, 3)], "not chordal"),
        (list(combinations(range(4), 2)), "more than 3 columns"),
        ([(0, 4)], "no edge"),
    ],
)
def test_what_is_no_tree_of_scored_blocks_gets_no_certificate(edges, complaint):
    with pytest.raises(ValueError, match=complaint):
        certify_tree(FOUR, edges, 0.0, "oracle")


def test_a_separator_at_minus_infinity_gets_no_certificate():
    table = SubsetScores.from_dict({(0,): 0.0, (1,): -np.inf, (2,): 0.0, (0, 1): 0.0, (1, 2): 0.0})
    with pytest.raises(ValueError, match=r"separator \(1,\) scores -inf"):
        certify_tree(table, [(0, 1), (1, 2)], 0.0, "oracle")


def test_charges_are_taken_off_cliques_and_separators():
    table = replace(FOUR, charges=np.where(FOUR.subsets.sizes == 1, 0.0, np.where(FOUR.subsets.sizes == 2, 0.5, 2.0)))
    found = certify_tree(table, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 0.0, "oracle")
    assert found.score == pytest.approx(FOUR[0, 1, 2] + FOUR[1, 2, 3] - FOUR[1, 2], abs=ROUNDING)
    assert found.objective == pytest.approx(found.score - 2.0 - 2.0 + 0.5, abs=ROUNDING)


def reloaded(found, table):
    return certify_tree_again(table, TreeSelection.from_archive(table.n_columns, found.to_archive()))


def test_a_saved_tree_is_proved_again():
    found = select_tree(FOUR)
    assert reloaded(found, FOUR) == found
    assert reloaded(found, FOUR).proof == "proved"


def test_a_saved_tree_that_takes_long_to_check_says_so(monkeypatch):
    found = select_tree(FOUR)
    monkeypatch.setattr(proofs, "MOST_STEPS", 0)
    assert reloaded(found, FOUR).proof == "not checked again"
    assert reloaded(found, FOUR).score == found.score
    unproved = certify_tree(FOUR, found.edges, 0.5, "oracle")
    assert reloaded(unproved, FOUR).proof == "not proved"


def test_a_saved_bound_is_checked_by_its_witness(monkeypatch):
    monkeypatch.setattr(proofs, "MOST_STEPS", 0)
    table = gaussian_table(8, 3, seed=1)
    found = select_tree(table, solver="milp")
    saved = json.loads(json.dumps(found.to_archive()))
    again = certify_tree_again(table, TreeSelection.from_archive(8, saved))
    assert found.proof == again.proof == "proved"
    assert again == found
    for step in saved["witness"]["steps"]:  # each may prove the bound by itself
        step["prices"] = [0] * len(step["prices"])
    weaker = certify_tree_again(table, TreeSelection.from_archive(8, saved))
    assert weaker.proof == "not checked again"
    assert found.bound < weaker.bound < np.inf
    saved["witness"]["steps"][0]["cuts"] = [[[0], [0], [0]]]
    damaged = certify_tree_again(table, TreeSelection.from_archive(8, saved))
    assert damaged.bound == np.inf


def test_a_saved_tree_that_claims_to_be_the_best_and_is_not_is_refused():
    claimed = certify_tree(FOUR, [], 0.0, "oracle")
    with pytest.raises(InputError, match="not the best of its scores"):
        reloaded(claimed, FOUR)
    honest = certify_tree(FOUR, [], 9.0, "oracle")
    assert reloaded(honest, FOUR).bound == pytest.approx(select_tree(FOUR).objective, abs=ROUNDING)


def test_a_wrong_answer_of_a_solver_is_caught(monkeypatch):
    monkeypatch.setattr(dynamic, "best", lambda problem: Found(((0, 1), (1, 2), (2, 3), (0, 3)), 0.0))
    with pytest.raises(ValueError, match="not chordal"):
        select_tree(FOUR, solver="dynamic")
