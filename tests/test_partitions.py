"""Partitions: counting, enumerating, drawing, comparing, walking."""

import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import oracles
from isde.partitions import (
    canonical_partition,
    count_partitions,
    edit_distance,
    enumerate_partitions,
    is_admissible,
    join,
    meet,
    random_partition,
    random_walk,
)

RARE = 1e-6
"""Probability that a right sampler fails a test of its distribution; seeds are fixed, so it fails never or always."""


def labelled(labels):
    """The partition in which columns with equal labels stand together."""
    return canonical_partition([[c for c, own in enumerate(labels) if own == label] for label in set(labels)])


def partitions_of(d):
    return st.lists(st.integers(0, d - 1), min_size=d, max_size=d).map(labelled)


partitions = st.integers(1, 8).flatmap(partitions_of)
triples = st.integers(1, 8).flatmap(lambda d: st.tuples(*[partitions_of(d)] * 3))


# --- counting and enumerating ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "bell"),
    [(0, 1), (1, 1), (10, 115975), (11, 678570), (12, 4213597), (13, 27644437), (14, 190899322), (15, 1382958545)],
)
def test_the_number_of_partitions_is_the_bell_number(d, bell):
    assert count_partitions(d) == bell


@pytest.mark.parametrize(("d", "about"), [(20, 2.4e10), (30, 6.1e17), (40, 7.3e25), (50, 2.8e34)])
def test_partitions_into_pairs_and_singles_are_as_many_as_the_paper_says(d, about):
    assert count_partitions(d, 2) == pytest.approx(about, rel=0.03)


def test_13_columns_in_blocks_of_5_have_25719630_partitions():
    assert count_partitions(13, 5) == 25_719_630


def test_blocks_larger_than_all_columns_change_no_count():
    assert count_partitions(9, 40) == count_partitions(9, 9) == count_partitions(9)


@pytest.mark.parametrize(("d", "k"), [(1, None), (4, None), (6, 1), (6, 2), (6, 3), (7, 4), (5, 50)])
def test_enumeration_gives_every_partition_once_in_pythons_order(d, k):
    found = list(enumerate_partitions(d, k))
    assert found == oracles.all_partitions(d, k)
    assert len(set(found)) == len(found) == count_partitions(d, k)


@pytest.mark.parametrize("call", [count_partitions, enumerate_partitions, random_partition])
def test_blocks_of_no_columns_are_refused(call):
    with pytest.raises(ValueError, match="max_block_size=0"):
        call(5, 0)


def test_a_negative_number_of_columns_is_refused():
    with pytest.raises(ValueError, match="n_columns=-1"):
        count_partitions(-1)


# --- canonical form --------------------------------------------------------------------------------------------


@given(partitions, st.randoms(use_true_random=False))
def test_the_order_in_which_a_partition_is_written_does_not_matter(partition, random):
    shuffled = [random.sample(block, len(block)) for block in random.sample(partition, len(partition))]
    assert canonical_partition(shuffled) == partition


@pytest.mark.parametrize(
    ("blocks", "complaint"),
    [
        ([(0, 1), (1, 2)], "Column 1 .* more than once"),
        ([(0, 1), (3,)], "misses column 2"),
        ([(0, 1), (2,), (3,), (4,)], "names column 4"),
        ([(0, 1, 2, 3), ()], "empty block"),
        ([], "empty block"),
        ([(-1, 0, 1, 2)], "misses column 3"),
    ],
)
def test_what_is_no_partition_of_four_columns_is_refused_by_name(blocks, complaint):
    with pytest.raises(ValueError, match=complaint):
        canonical_partition(blocks, 4)


def test_a_column_number_that_is_no_whole_number_is_refused():
    with pytest.raises((TypeError, ValueError)):
        canonical_partition([(0.6,), (1,)], 2)


# --- drawing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n_partitions"), [(None, 15), (2, 10)])
def test_uniform_random_partitions_are_uniform(k, n_partitions):
    rng = np.random.RandomState(0)
    drawn = Counter(random_partition(4, k, kind="uniform", random_state=rng) for _ in range(150 * n_partitions))
    assert set(drawn) == set(oracles.all_partitions(4, k))
    assert chisquare(list(drawn.values())).pvalue > RARE


def test_the_papers_random_partitions_have_uniform_sizes_with_the_last_cut_to_fit():
    rng, n = np.random.RandomState(0), 6000
    drawn = Counter(random_partition(4, 2, random_state=rng) for _ in range(n))
    # Sizes 1,1,1,(1): 1/8. Sizes 2,2: 1/4, shared by 3 partitions. The rest is one pair, shared by 6.
    share = {4: 1 / 8, 3: 5 / 48, 2: 1 / 12}
    expected = {p: n * share[len(p)] for p in oracles.all_partitions(4, 2)}
    assert set(drawn) == set(expected)
    assert chisquare([drawn[p] for p in expected], list(expected.values())).pvalue > RARE


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from(["paper", "uniform"]), st.integers(0, 10**6))
def test_random_partitions_keep_to_the_block_size_and_to_their_seed(d, k, kind, seed):
    partition = random_partition(d, k, kind=kind, random_state=seed)
    assert partition == canonical_partition(partition, d)
    assert max(map(len, partition)) <= k
    assert partition == random_partition(d, k, kind=kind, random_state=seed)


def test_uniform_partitions_of_60_columns_can_be_drawn():
    assert sum(map(len, random_partition(60, 5, kind="uniform", random_state=0))) == 60


def test_an_unknown_kind_of_random_partition_is_refused():
    with pytest.raises(ValueError, match="kind='even' is unknown"):
        random_partition(4, kind="even")


# --- comparing -------------------------------------------------------------------------------------------------


def test_the_edit_distance_is_the_shortest_way_on_all_pairs_of_five_columns():
    everything = oracles.all_partitions(5)
    for start in everything:
        steps = oracles.edit_distances_from(start)
        assert {p: edit_distance(start, p) for p in everything} == steps


@pytest.mark.parametrize("seed", range(5))
def test_the_edit_distance_is_the_shortest_way_from_some_partitions_of_six_columns(seed):
    start = random_partition(6, kind="uniform", random_state=seed)
    steps = oracles.edit_distances_from(start)
    assert {p: edit_distance(start, p) for p in oracles.all_partitions(6)} == steps


@pytest.mark.parametrize("kind", ["exact", "paper"])
@given(triples)
def test_edit_distances_are_metrics(kind, three):
    P, Q, R = three
    assert edit_distance(P, P, kind=kind) == 0
    assert (edit_distance(P, Q, kind=kind) == 0) == (P == Q)
    assert edit_distance(P, Q, kind=kind) == edit_distance(Q, P, kind=kind)
    assert edit_distance(P, R, kind=kind) <= edit_distance(P, Q, kind=kind) + edit_distance(Q, R, kind=kind)


@given(triples)
def test_the_papers_distance_is_never_smaller_than_the_exact_one(three):
    P, Q, _ = three
    assert edit_distance(P, Q, kind="paper") >= edit_distance(P, Q)


def test_the_papers_distance_can_be_larger():
    P, Q = [(0, 1), (2, 3)], [(0, 2), (1, 3)]
    assert edit_distance(P, Q) == 2
    assert edit_distance(P, Q, kind="paper") == 4


def test_partitions_of_different_columns_have_no_distance():
    with pytest.raises(ValueError, match="3 and 2 columns"):
        edit_distance([(0, 1, 2)], [(0, 1)])


def test_an_unknown_kind_of_distance_is_refused():
    with pytest.raises(ValueError, match="kind='rand' is unknown"):
        edit_distance([(0,)], [(0,)], kind="rand")


def is_finer(P, Q):
    return all(any(set(p) <= set(q) for q in Q) for p in P)


@given(triples)
def test_the_meet_is_the_coarsest_common_refinement_and_the_join_the_finest_common_coarsening(three):
    P, Q, R = three
    assert is_finer(meet(P, Q), P)
    assert is_finer(meet(P, Q), Q)
    assert is_finer(P, join(P, Q))
    assert is_finer(Q, join(P, Q))
    if is_finer(R, P) and is_finer(R, Q):
        assert is_finer(R, meet(P, Q))
    if is_finer(P, R) and is_finer(Q, R):
        assert is_finer(join(P, Q), R)


@given(triples)
def test_meet_and_join_absorb_each_other(three):
    P, Q, _ = three
    assert meet(P, join(P, Q)) == P == join(P, meet(P, Q))
    assert canonical_partition(meet(P, Q)) == meet(P, Q)
    assert canonical_partition(join(P, Q)) == join(P, Q)


@given(triples)
def test_a_partition_is_admissible_where_the_truth_is_finer(three):
    P, truth, _ = three
    assert is_admissible(P, truth) == is_finer(truth, P)
    assert is_admissible(join(P, truth), truth)


# --- walking ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "k"), [([(0,), (1,), (2,), (3,), (4,)], 3), ([(0, 1, 2, 3, 4, 5)], None)])
def test_each_step_of_a_walk_is_one_split_or_merge_inside_the_block_size(start, k):
    walk = random_walk(start, 60, k, random_state=0)
    assert len(walk) == 61
    assert walk[0] == canonical_partition(start)
    for here, there in pairwise(walk):
        assert there in oracles.neighbours(here)
        assert edit_distance(here, there) == 1
        assert max(map(len, there)) <= (k or 6)


def test_the_first_step_of_a_walk_is_uniform_among_the_neighbours():
    rng, start = np.random.RandomState(0), ((0, 1, 2), (3,), (4,))
    allowed = {p for p in oracles.neighbours(start) if max(map(len, p)) <= 3}
    drawn = Counter(random_walk(start, 1, 3, random_state=rng)[1] for _ in range(300 * len(allowed)))
    assert set(drawn) == allowed
    assert chisquare(list(drawn.values())).pvalue > RARE


def test_a_walk_follows_its_seed():
    assert random_walk([(0, 1), (2,)], 9, random_state=3) == random_walk([(0, 1), (2,)], 9, random_state=3)


def test_a_walk_of_no_steps_stays():
    assert random_walk([(0,)], 0) == [((0,),)]


def test_a_walk_cannot_start_outside_the_block_size():
    with pytest.raises(ValueError, match="block of 3 columns, max_block_size is 2"):
        random_walk([(0, 1, 2)], 1, 2)


@pytest.mark.parametrize(("start", "k"), [([(0,), (1,)], 1), ([(0,)], None)])
def test_there_is_nowhere_to_walk_among_single_columns(start, k):
    with pytest.raises(ValueError, match="nowhere to walk"):
        random_walk(start, 1, k)


def test_modules_named_in_the_readme_are_reached_through_the_package():
    code = "import isde; isde.inspection.landscape; isde.synthetic.make_structured"
    subprocess.run([sys.executable, "-c", code], check=True)
