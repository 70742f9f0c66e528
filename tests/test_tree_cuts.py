"""Cuts: every tree keeps them, and those that a point passes are found."""

from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isde.subsets import SubsetFamily
from isde.tree_solvers.class_separation import passed_classes
from isde.tree_solvers.classes import Classes
from isde.tree_solvers.clutter_separation import passed_clutters
from isde.tree_solvers.clutters import Clutter
from isde.tree_solvers.cuts import Cut, Sets, moebius_of_excess
from isde.tree_solvers.separation import passed_cuts
from tree_cases import all_trees, any_cuts, seeds, slow_coefficient


@given(st.data(), st.integers(2, 5), st.integers(2, 5))
def test_every_tree_keeps_every_cut(data, d, k):
    cut = data.draw(any_cuts(d, min(d, k)))
    subsets = SubsetFamily(d, k)
    row = Sets(subsets, np.arange(d, len(subsets))).coefficients([cut])[0]
    assert (all_trees(d, k)[:, d:] @ row).max() <= cut.limit


@given(st.data(), st.integers(2, 6), st.integers(2, 6))
def test_coefficients_are_those_of_the_formula(data, d, k):
    several = data.draw(st.lists(any_cuts(d, min(d, k)), min_size=1, max_size=4))
    subsets = SubsetFamily(d, k)
    rows = Sets(subsets, np.arange(d, len(subsets))).coefficients(several)
    assert rows.tolist() == [[slow_coefficient(cut, s) for s in subsets if len(s) > 1] for cut in several]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Clutter((0, 1), (), (2,)),
        lambda: Clutter((0, 0), (), (0,)),
        lambda: Clutter((-1,), (), (-1,)),
        lambda: Clutter((), ((1, 0),), (1, 0)),
        lambda: Clutter((), ((0, 1),), (0, 2)),
        lambda: Classes(((0, 1), (1, 2)), 2),
        lambda: Classes(((0, 1), ()), 2),
        lambda: Classes(((0,), (1,)), 3),
        lambda: Classes(((0,), (-1,)), 2),
    ],
)
def test_what_is_no_clutter_and_no_classes_is_refused(make):
    with pytest.raises(ValueError, match="no cl"):
        make()


@pytest.mark.parametrize("parts", [((0,), (0, 1), (1,)), ((), (0, 1), ()), ((), (0, 1), (2,))])
def test_what_is_no_cut_is_refused(parts):
    with pytest.raises(ValueError, match="is no cut"):
        Cut(*parts)


@given(st.integers(3, 6), st.integers(2, 4), seeds)
def test_cuts_found_are_passed_by_as_much_as_is_said(d, k, seed):
    subsets, rng = SubsetFamily(d, k), np.random.default_rng(seed)
    point = rng.random(len(subsets)) * (rng.random(len(subsets)) < 0.7)
    point[:d] = 1.0
    sets = Sets(subsets, np.arange(d, len(subsets)))
    found = [(one.cut, one.amount) for one in passed_cuts(subsets, point, 1e-3, seed)]
    found += passed_clutters(subsets, point, 1e-3, seed) + passed_classes(subsets, point, 1e-3, seed)
    for cut, said in found:
        amount = sets.coefficients([cut])[0] @ point[d:] - cut.limit
        assert amount == pytest.approx(said, abs=1e-9)
        assert amount >= 1e-3


def test_of_each_base_the_cut_that_is_passed_by_most_is_nearly_always_found():
    """Points drawn by lot are harder than those of linear programs."""
    asked, missed = 0, 0
    for seed, d, k in product(range(15), (5, 8), (3, 4)):
        subsets, rng = SubsetFamily(d, k), np.random.default_rng(seed)
        point = rng.random(len(subsets)) * (rng.random(len(subsets)) < 0.7)
        values = dict(zip(subsets, point.tolist(), strict=True))
        with patch("isde.tree_solvers.separation.PEAKS", 60):
            found = passed_cuts(subsets, point, 1e-3, seed)
        for base, held in [((), 1), ((), 2), ((0,), 1), *([((0,), 2)] if k == 4 else [])]:
            most = max(amounts_passed(values, d, base, held))
            own = [one.amount for one in found if one.cut.base == base and len(one.cut.held) == held]
            assert max(own, default=0.0) <= most + 1e-9
            asked += most > 1e-3
            missed += max(own, default=0.0) < most - 1e-9 and most > 1e-3
    assert asked > 150
    assert missed < 0.1 * asked


def amounts_passed(values, d, base, held):
    """Of all cuts of a base, by enumeration, 0 of none. Others of a base are those that more is present with."""
    weights = moebius_of_excess(4)
    around = {tuple(sorted({*s} - {*base})): value for s, value in values.items() if {*base} <= {*s} and value > 1e-7}
    near = {c for s in around if len(s) > held for c in s}
    yield 0.0
    for size in range(held + 1, d + 1):
        for columns in combinations(sorted(near) if base else range(d), size):
            costs = sorted(around.get((c,), 0.0) if base else 1.0 for c in columns)
            inside = (s for n in range(held + 1, 5) for s in combinations(columns, n) if s in around)
            yield sum(weights[held, len(s)] * around[s] for s in inside) - sum(costs[: size - held])


def test_a_point_that_keeps_all_cuts_may_pass_a_clutter():
    """Half of two edges and their triangles: an edge more than fits, and only a clutter says so."""
    subsets = SubsetFamily(4, 3)
    point = np.zeros(len(subsets))
    for columns, value in {(0, 1): 1.0, (2, 3): 0.5, (0, 2, 3): 0.5, (1, 2, 3): 0.5}.items():
        point[subsets.index(columns)] = value
    for columns in ((0,), (1,), (2,), (3,)):
        point[subsets.index(columns)] = 1.0
    for columns in ((0, 2), (0, 3), (1, 2), (1, 3)):
        point[subsets.index(columns)] = 0.5
    clutter = Clutter((0, 1), ((2, 3),), (0,))
    row = Sets(subsets, np.arange(4, len(subsets))).coefficients([clutter])[0]
    assert row @ point[4:] - clutter.limit == pytest.approx(0.5)
    assert max(amount for _, amount in passed_clutters(subsets, point, 1e-3, 0)) >= 0.5 - 1e-9
