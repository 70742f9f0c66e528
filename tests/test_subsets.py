"""Subsets: their order, their positions, their masks."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from isde.subsets import SubsetFamily, colex_combinations

families = st.integers(1, 30).flatmap(lambda d: st.builds(SubsetFamily, st.just(d), st.integers(1, 6)))


@pytest.mark.parametrize(("d", "k"), [(1, 1), (4, 2), (5, 5), (6, 3), (3, 9)])
def test_subsets_come_by_size_and_colexicographic_within_a_size(d, k):
    assert list(SubsetFamily(d, k)) == oracles.all_subsets(d, k)


@pytest.mark.parametrize(("d", "k", "count"), [(13, 5, 2_379), (32, 3, 5_488), (50, 5, 2_369_935), (200, 3, 1_333_500)])
def test_counts_are_those_of_the_paper(d, k, count):
    assert len(SubsetFamily(d, k)) == count


@given(families, st.data())
def test_position_and_subset_are_inverse(family, data):
    position = data.draw(st.integers(0, len(family) - 1))
    subset = family[position]
    assert family.index(subset) == position
    assert subset in family
    assert list(subset) == sorted(set(subset))
    assert len(subset) == family.sizes[position]


@given(families, st.data())
def test_a_drawn_subset_is_found_where_its_position_says(family, data):
    columns = st.integers(0, family.n_columns - 1)
    subset = tuple(sorted(data.draw(st.sets(columns, min_size=1, max_size=family.max_size))))
    assert family[family.index(subset)] == subset


@given(st.integers(2, 9), st.integers(2, 9))
def test_smaller_sizes_are_a_prefix(d, k):
    smaller = SubsetFamily(d, k - 1)
    assert list(SubsetFamily(d, k))[: len(smaller)] == list(smaller)


def test_masks_have_the_bits_of_the_columns():
    family = SubsetFamily(7, 4)
    assert family.masks.tolist() == [sum(2**c for c in subset) for subset in family]


def test_the_mask_of_column_63_fits():
    assert int(SubsetFamily(64, 1).masks[63]) == 2**63


def test_more_than_64_columns_have_no_masks():
    with pytest.raises(ValueError, match="64 columns, not 65"):
        _ = SubsetFamily(65, 1).masks


def test_200_columns_work():
    family = SubsetFamily(200, 3)
    assert family[-1] == (197, 198, 199)
    assert family.index((0, 1, 199)) == 200 + comb(200, 2) + comb(199, 3)
    assert family.members(3)[-1].tolist() == [197, 198, 199]
    assert family.members(3).shape == (comb(200, 3), 3)


def test_members_sizes_and_slices_agree_with_iteration():
    family = SubsetFamily(6, 4)
    for size in range(1, 5):
        assert [tuple(row) for row in family.members(size).tolist()] == family[family.of_size(size)]
        assert set(family.sizes[family.of_size(size)].tolist()) == {size}


def test_sums_over_members_are_sums():
    family, values = SubsetFamily(5, 3), np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    assert family.sum_over_members(values).tolist() == [sum(values[c] for c in subset) for subset in family]


@pytest.mark.parametrize(("n_columns", "max_size"), [(1, 1), (4, 1), (5, 2), (6, 4)])
def test_sums_over_the_pairs_of_each_subset(n_columns, max_size):
    family, pairs = SubsetFamily(n_columns, max_size), list(SubsetFamily(n_columns, 2))[n_columns:]
    values = dict(zip(pairs, np.arange(1.0, len(pairs) + 1), strict=True))
    expected = [sum(values[pair] for pair in combinations(subset, 2)) for subset in family]
    assert family.sum_over_pairs(np.array([*values.values()])).tolist() == expected


def test_negative_positions_count_from_the_end():
    family = SubsetFamily(5, 2)
    assert [family[-i] for i in range(1, 16)] == list(family)[::-1]
    for beyond in (15, -16):
        with pytest.raises(IndexError):
            family[beyond]


@pytest.mark.parametrize("wrong", [(), (1, 0), (0, 0), (0, 1, 2, 3), (5,), (-1, 2)])
def test_what_is_no_subset_has_no_position(wrong):
    family = SubsetFamily(5, 3)
    assert wrong not in family
    with pytest.raises(ValueError, match="no sorted subset"):
        family.index(wrong)


def test_names_have_no_position():
    with pytest.raises(ValueError, match="holds names, and a subset is the numbers of its columns"):
        SubsetFamily(5, 3).index(("a", "b", "c"))


def test_a_size_beyond_the_columns_means_all_columns():
    assert SubsetFamily(3, 8) == SubsetFamily(3, 3)
    assert SubsetFamily(3, 2) != SubsetFamily(3, 3)
    assert hash(SubsetFamily(3, 8)) == hash(SubsetFamily(3, 3))


@pytest.mark.parametrize(("d", "k"), [(0, 1), (3, 0), (-1, 2)])
def test_a_family_needs_columns_and_a_size(d, k):
    with pytest.raises(ValueError, match=f"n_columns={d}, max_size={k}"):
        SubsetFamily(d, k)


@pytest.mark.parametrize(("n", "size"), [(6, 1), (6, 3), (6, 6), (9, 4)])
def test_colex_combinations_are_all_combinations(n, size):
    rows = colex_combinations(n, size)
    assert rows.shape == (comb(n, size), size)
    assert [tuple(r) for r in rows.tolist()] == [s for s in oracles.all_subsets(n, size) if len(s) == size]
