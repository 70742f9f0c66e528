"""Branch and bound: the heaviest partitions where a relaxation is far from tight, against every one written down."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from isde import SubsetScores, best_partitions, select_partition
from isde.errors import ISDEError, UnprovedPartition
from isde.solvers import branching, exhaustive, milp, relaxation
from isde.solvers.branching import Tree
from isde.solvers.prices import STEP, price_columns
from isde.solvers.relaxation import NO_CUTS, NoPartition, Relaxation
from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import SubsetFamily
from oracles import ROUNDING
from test_many_partitions import allows, constraints_of_six, levels, ranked
from test_selection import random_table, tied_table

ENOUGH = 100_000


def leave_all_to_branching(patched):
    """The searches before and after branch and bound find nothing: what is found, branch and bound has found."""
    for name in ("MOST_NODES", "MOST_NODES_AT_LAST", "MOST_NODES_OF_SEVERAL"):
        patched.setattr(milp, name, 0)
    patched.setattr(milp, "FEW_BRANCHES", ENOUGH)


def loose_weights(d, k, seed, *, spread, forbidden=0.0, max_blocks=None):
    """Blocks gain by their size, nearly alike: fractions of many of them gain more than any partition."""
    rng = np.random.default_rng(seed)
    family = SubsetFamily(d, k)
    gains = (family.sizes.astype(np.int64) - 1) * 3 * spread + rng.integers(-spread, spread + 1, size=len(family))
    values = np.where(rng.uniform(size=len(family)) < forbidden, FORBIDDEN, gains * (d + 1) + 1)
    return Weights(family, values, 1 / (4 * spread), max_blocks)


weights_of_all_kinds = st.builds(
    lambda d, k, seed, spread, forbidden, fewer: loose_weights(
        d, k, seed, spread=spread, forbidden=forbidden, max_blocks=None if fewer is None else max(1, d - fewer)
    ),
    st.integers(2, 7),
    st.integers(1, 4),
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 10**10]),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.one_of(st.none(), st.integers(0, 4)),
)


def grown(weights, n):
    candidates = milp.possible_blocks(weights, n)
    prices = price_columns(weights, candidates)
    if prices is None:
        return []
    tree = Tree(weights, prices, np.flatnonzero(candidates), n)
    assert tree.grow(ENOUGH)
    return tree.partitions


# --- the tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 20], ids=["without cuts", "with cuts"])
@pytest.mark.parametrize("few", [0, 5, 150], ids="search among {}".format)
@pytest.mark.parametrize("likely", [0, 2000], ids="begin with {}".format)
@given(weights=weights_of_all_kinds, n=st.sampled_from([1, 2, 5, 30]))
def test_the_heaviest_are_those_of_full_enumeration_in_order(rounds, few, likely, weights, n):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(relaxation, "MOST_ROUNDS", rounds)
        patched.setattr(branching, "FEW_SUBSETS", few)
        patched.setattr(branching, "LIKELY", likely)
        assert grown(weights, n) == [one.partition for one in exhaustive.best(weights, n)]


@pytest.mark.parametrize("seed", range(3))
def test_candidates_that_enter_a_few_at_a_time_change_nothing(seed, monkeypatch):
    weights = loose_weights(8, 4, seed, spread=10**10, forbidden=0.3, max_blocks=5)
    expected = [one.partition for one in exhaustive.best(weights, 3)]
    monkeypatch.setattr(relaxation, "COLUMNS_PER_ROUND", 2)
    monkeypatch.setattr(branching, "FEW_SUBSETS", 0)
    assert grown(weights, 3) == expected


@pytest.mark.parametrize(
    ("shares", "dropped", "known"),
    [
        ({(0, 1): 1, (2, 3): 1, (4,): 1}, [], [((0, 1), (2, 3), (4,))]),
        ({(0, 1): 1, (2, 3): 1, (4,): 1}, [(2, 3)], []),
        ({(0, 1): 0.5, (1, 2): 0.5, (0, 2): 0.5, (3,): 1, (4,): 1}, [], []),
    ],
    ids=["a partition", "one of its blocks dropped", "halves"],
)
def test_children_hold_each_partition_once_but_the_one_that_was_chosen(shares, dropped, known):
    weights = loose_weights(5, 2, 0, spread=1)
    everything = np.arange(len(weights.subsets))
    tree = Tree(weights, price_columns(weights, everything >= 0), everything, 10**3)
    block_of = [weights.subsets[int(position)] for position in tree._candidates]
    listed = np.array([number for number, block in enumerate(block_of) if block not in dropped])
    of_listed = np.array([shares.get(block_of[number], 0.0) for number in listed])
    children = [{block_of[number] for number in child} for child in tree._divided(listed, of_listed)]
    for partition in oracles.all_partitions(5, 2):
        possible = not set(partition) & set(dropped) and partition not in known
        assert sum(set(partition) <= child for child in children) == possible


def test_a_tree_that_is_stopped_keeps_a_bound_that_holds_and_can_go_on(monkeypatch):
    monkeypatch.setattr(relaxation, "MOST_ROUNDS", 1)
    monkeypatch.setattr(branching, "FEW_SUBSETS", 0)
    weights = loose_weights(8, 3, 0, spread=10**10)
    (expected,) = exhaustive.best(weights)
    everything = milp.possible_blocks(weights, 1)
    tree = Tree(weights, price_columns(weights, everything), np.flatnonzero(everything), 1)
    bounds = [tree.bound]
    while not tree.grow(1):
        bounds.append(tree.bound)
        assert max(tree.bound, weights.of(tree.partitions[0])) >= expected.bound
    assert len(bounds) > 3
    assert bounds == sorted(bounds, reverse=True)
    assert tree.partitions == [expected.partition]


# --- the relaxation --------------------------------------------------------------------------------------------


def test_a_cut_closes_an_odd_cycle():
    scores = dict.fromkeys(oracles.all_subsets(3, 2), 0) | dict.fromkeys(combinations(range(3), 2), 1)
    weights = Weights(SubsetFamily(3, 2), np.array([4 * gain + 1 for gain in scores.values()]), 1.0)
    listed = np.arange(6)
    assert Relaxation(weights, listed).without_cuts(listed).bound == STEP * 15 // 2  # three halves of three pairs
    solved = Relaxation(weights, listed).solve(listed, NO_CUTS, 0)
    assert solved.bound == STEP * 6  # a pair and a single column
    assert solved.cuts.tolist() == [[0, 1, 2]]


@given(weights=weights_of_all_kinds, seed=st.integers(0, 10**6))
def test_bound_and_slacks_hold_for_every_partition_of_a_list(weights, seed):
    allowed = np.flatnonzero(weights.values != FORBIDDEN)
    listed = np.random.default_rng(seed).permutation(len(allowed))[: max(1, len(allowed) * 3 // 4)]
    there = {weights.subsets[int(allowed[number])]: place for place, number in enumerate(listed)}
    most = weights.max_blocks or weights.subsets.n_columns
    every = oracles.all_partitions(weights.subsets.n_columns, weights.subsets.max_size)
    partitions = [p for p in every if len(p) <= most and all(block in there for block in p)]
    try:
        solved = Relaxation(weights, allowed).solve(listed, NO_CUTS, -(1 << 62))
    except NoPartition:
        assert not partitions
        return
    for partition in partitions:
        below = solved.bound - STEP * weights.of(partition)
        assert below >= sum(int(solved.slacks[there[block]]) for block in partition) >= 0
    assert (solved.slacks >= 0).all()


# --- as users meet it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sense", ["max", "min"])
@given(d=st.integers(2, 6), k=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_scores_with_ties_and_minus_infinity_are_selected_from_as_stated(sense, d, k, seed):
    scores = tied_table(d, k, seed)
    with pytest.MonkeyPatch.context() as patched:
        leave_all_to_branching(patched)
        found = select_partition(SubsetScores.from_dict(scores), solver="milp", sense=sense)
    assert (found.partition, found.score) == oracles.best_partition(scores, d, sense)
    assert found.is_optimal


@given(st.integers(0, 10**6), st.integers(2, 4), constraints_of_six, st.sampled_from(["max", "min"]))
def test_constraints_are_met(seed, k, constraints, sense):
    scores = random_table(6, k, seed)
    expected = ranked(scores, 6, sense, allows(constraints))
    if expected:
        with pytest.MonkeyPatch.context() as patched:
            leave_all_to_branching(patched)
            found = best_partitions(
                SubsetScores.from_dict(scores), 3, solver="milp", sense=sense, constraints=constraints
            )
        assert [one.partition for one in found] == expected[:3]
        assert all(one.is_proved for one in found)


def test_where_nothing_is_proved_the_bound_is_told(monkeypatch):
    leave_all_to_branching(monkeypatch)
    monkeypatch.setattr(milp, "FEW_BRANCHES", 0)
    monkeypatch.setattr(milp, "MOST_BRANCHES", 0)
    scores = dict.fromkeys(oracles.all_subsets(5, 2), 0.0) | {(0, 1): 1.0, (0, 2): 1.01, (1, 2): 1.02}
    with pytest.raises(UnprovedPartition) as refused:
        select_partition(SubsetScores.from_dict(scores), solver="milp")
    assert refused.value.selection.partition == ((0,), (1, 2), (3,), (4,))
    assert refused.value.selection.bound == pytest.approx(1.515, abs=ROUNDING)
    with pytest.raises(ISDEError, match="The 2 best partitions are not told apart"):
        best_partitions(SubsetScores.from_dict(scores), 2, solver="milp")


def test_of_partitions_that_gain_as_much_the_score_is_proved_and_the_first_found():
    # Half a column is too many for the linear program, and no cut of three columns sees it.
    found = select_partition(levels(31, 3, [0.0, 1.0, 1.0]))
    assert (found.score, found.bound) == (15.0, 15.0)
    assert found.partition[:3] == ((0,), (1, 2), (3, 4))
