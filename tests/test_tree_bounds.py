"""Bounds for trees: no tree passes what cuts and prices prove, and mostly the best tree reaches it."""

import csv
import json
from fractions import Fraction
from itertools import combinations
from math import inf
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import oracles
from isde.subsets import SubsetFamily
from isde.tree_solvers import relaxation
from isde.tree_solvers.cuts import Cut, Sets
from isde.tree_solvers.descent import ASLEEP, BEYOND, Descent
from isde.tree_solvers.merging import merged
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.pricing import Facets
from isde.tree_solvers.relaxation import Limits, upper_bound
from isde.tree_solvers.rounding import Growing, climb, rounded
from isde.tree_solvers.witness import PricesTooLarge, Step, TreeWitness, verify
from isde.tree_solvers.witness_file import as_plain, from_plain
from isde.trees import chordal_cliques
from tree_cases import (
    any_cuts,
    best_weight,
    complete_sets,
    gains_like,
    kinds,
    seeds,
    slow_coefficient,
)

PAPER = Path(__file__).parents[2] / "shared" / "paper"
PROOF = 1e-9


# --- bounds ----------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(1, 5), seeds, kinds)
def test_weights_of_complete_sets_add_up_to_the_score_of_a_tree(d, k, seed, kind):
    gains = gains_like(kind, d, k, seed)
    subsets = SubsetFamily(d, k)
    weights = dict(zip(subsets, moebius_weights(subsets, gains).tolist(), strict=True))
    scores = dict(zip(subsets, gains.tolist(), strict=True))
    graphs = oracles.chordal_graphs(d)
    for index in np.random.default_rng(seed).choice(len(graphs), 20):
        _, cliques, separators = graphs[index]
        if max(map(len, cliques)) <= k:
            score = oracles.tree_score(scores, cliques, separators)
            if score > -inf:
                total = sum(weights[s] for s in complete_sets(cliques, k))
                assert total == pytest.approx(score, rel=1e-9, abs=1e-9 * max(1.0, np.abs(gains[gains > -inf]).max()))


@given(st.integers(1, 6), st.integers(1, 6), seeds, kinds)
def test_the_bound_is_the_weight_of_the_best_tree(d, k, seed, kind):
    subsets = SubsetFamily(d, k)
    weights = moebius_weights(subsets, gains_like(kind, d, k, seed))
    best, found = best_weight(d, k, weights), upper_bound(weights, d, k)
    unit = max(1.0, np.abs(weights[weights > -inf]).max())
    assert found.value >= best - 1e-12 * unit  # the sum by enumeration is rounded
    assert found.value <= best + PROOF * unit
    assert found.weight == pytest.approx(best, abs=PROOF * unit)
    cliques = chordal_cliques(d, found.edges)
    assert max(map(len, cliques)) <= k


@given(st.integers(2, 6), st.integers(2, 6), seeds, kinds)
def test_a_descent_first_proves_the_same(d, k, seed, kind):
    weights = moebius_weights(SubsetFamily(d, k), gains_like(kind, d, k, seed))
    unit = max(1.0, np.abs(weights[weights > -inf]).max())
    with patch("isde.tree_solvers.relaxation.FEW_SETS", 0):
        found = upper_bound(weights, d, k)
    assert found.value == pytest.approx(best_weight(d, k, weights), abs=PROOF * unit)


@given(st.integers(3, 6), st.integers(3, 6), seeds)
def test_payments_move_what_is_left_to_subsets_and_lack_nothing_in_between(d, k, seed):
    subsets = SubsetFamily(d, k)
    left = np.random.default_rng(seed).integers(-20, 10, len(subsets) - d)
    before, outside = left.copy(), np.ones(len(left), dtype=np.bool_)
    cuts, prices, lacking = Facets(subsets).pay(left, outside)
    rows = Sets(subsets, np.arange(d, len(subsets))).coefficients(cuts) if cuts else np.zeros((0, len(left)), np.int64)
    assert (prices > 0).all()
    assert (before - prices @ rows == left).all()
    assert (left[lacking > 0] > 0).all()
    assert (left[(subsets.sizes[d:] > 2) & (lacking == 0)] <= 0).all()


@given(st.integers(2, 6), st.integers(2, 6), seeds, kinds, st.integers(0, 4))
def test_a_bound_that_is_cut_short_holds(d, k, seed, kind, rounds):
    weights = moebius_weights(SubsetFamily(d, k), gains_like(kind, d, k, seed))
    found = upper_bound(weights, d, k, limits=Limits(rounds=rounds, branches=0))
    best = best_weight(d, k, weights)
    unit = max(1.0, np.abs(weights[weights > -inf]).max())
    assert found.value >= best - 1e-12 * unit >= found.weight - 2e-12 * unit
    assert found.gap == found.value - found.weight


@pytest.mark.parametrize("seed", range(20))
def test_branching_closes_what_cuts_leave_open(seed, monkeypatch):
    """Without the search for cuts, edges alone tell the trees apart."""
    monkeypatch.setattr("isde.tree_solvers.relaxation._Search._passed", lambda search, point, least: [])
    weights = moebius_weights(SubsetFamily(4, 3), gains_like("normal", 4, 3, seed))
    found, best = upper_bound(weights, 4, 3), best_weight(4, 3, weights)
    assert found.value >= best - 1e-12
    assert verify(SubsetFamily(4, 3), weights, found.witness) == found.value


def test_a_tree_that_is_known_is_kept():
    weights = moebius_weights(SubsetFamily(3, 2), np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]))
    assert upper_bound(weights, 3, 2, known=[(2, 0), (1, 2)]).edges == ((0, 2), (1, 2))


@pytest.mark.parametrize(("k", "best"), [(2, 15.199727), (3, 15.628966), (4, 15.789347)])
def test_the_authors_scores_of_levine13_are_bounded_by_the_best_tree(k, best):
    subsets, path = SubsetFamily(13, k), PAPER / "levine13_subset_scores.csv"
    if not path.exists():
        pytest.skip("the saved scores are not shipped with the code")
    with path.open() as lines:
        saved = {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
    gains = np.array([saved[s] for s in subsets])
    found = upper_bound(moebius_weights(subsets, gains), 13, k)
    assert found.value == pytest.approx(best, abs=1e-6)
    assert found.gap <= PROOF


# --- merging ---------------------------------------------------------------------------------------------------


@given(st.data(), st.integers(2, 6), st.integers(2, 6), seeds, kinds)
def test_trees_are_merged_to_the_best_of_their_edges(data, d, k, seed, kind):
    subsets = SubsetFamily(d, k)
    weights = moebius_weights(subsets, gains_like(kind, d, k, seed))
    edges = data.draw(st.lists(st.sampled_from(list(combinations(range(d), 2)))))
    outside = [subsets.index(pair) for pair in combinations(range(d), 2) if pair not in edges]
    within = weights.copy()
    within[outside] = -inf
    best, found = best_weight(d, k, within), merged(subsets, weights, edges, None, Limits())
    assert found.weight == pytest.approx(best, abs=PROOF * max(1.0, np.abs(weights[weights > -inf]).max()))
    assert set(found.edges) <= set(edges)


@pytest.mark.parametrize(("share", "edges"), [(0.1, 1), (0.2, 2), (0.3, 2), (0.4, 3), (0.5, 4), (9.0, 5)])
def test_edges_are_taken_as_far_as_they_lead_to_few_sets(share, edges, monkeypatch):
    """Of 12 sets, the third edge makes a triangle with the first two, the fifth another one."""
    asked = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)]
    subsets, given_ = SubsetFamily(4, 3), []
    monkeypatch.setattr("isde.tree_solvers.merging.SETS", share)
    monkeypatch.setattr("isde.tree_solvers.merging.upper_bound", lambda weights, *rest: given_.append(weights))
    merged(subsets, np.ones(len(subsets)), asked, None, Limits())
    allowed = [pair for pair in combinations(range(4), 2) if given_[0][subsets.index(pair)] > -inf]
    assert allowed == sorted(asked[:edges])


# --- descent ---------------------------------------------------------------------------------------------------


def opened(d, k, seed, kind):
    """Weights, and sets that may be complete: all that weigh something, and whose subsets do."""
    subsets = SubsetFamily(d, k)
    weights = moebius_weights(subsets, gains_like(kind, d, k, seed))
    allowed = {s for s, weight in zip(subsets, weights.tolist(), strict=True) if weight > -inf}
    held = [all(part in allowed for n in range(1, len(s) + 1) for part in combinations(s, n)) for s in subsets]
    return subsets, weights, np.array(held[d:], dtype=np.bool_)


@given(st.data(), st.integers(2, 6), st.integers(2, 6), seeds, kinds)
def test_prices_of_a_descent_prove_what_it_says(data, d, k, seed, kind):
    subsets, weights, open_ = opened(d, k, seed, kind)
    descent = Descent(subsets, Facets(subsets), weights, open_)
    for _ in range(2):
        some = data.draw(st.lists(any_cuts(d, min(d, k)), max_size=5))
        new = descent.passed(some, -inf)
        descent.add(new, np.zeros(len(new)))
        descent.run(20)
    cuts, prices = descent.priced
    unit = max(1.0, np.abs(weights[weights > -inf]).max())
    left = weights[d:] - prices @ Sets(subsets, np.arange(d, len(subsets))).coefficients(cuts)
    bound = prices @ [cut.limit for cut in cuts] + np.maximum(left[open_], 0.0).sum()
    assert (prices > 0).all()
    assert descent.left() == pytest.approx(left[open_], abs=1e-9 * unit)
    assert descent.bound() == pytest.approx(bound, abs=1e-9 * unit)
    assert weights[:d].sum() + bound >= best_weight(d, k, weights) - 1e-9 * unit
    point = descent.point
    assert (point[d:][~open_] == 0).all()
    assert ((point >= 0) & (point <= 1)).all()


def test_prices_of_a_moment_stay_where_the_descent_goes_on():
    subsets, weights, open_ = opened(6, 4, 1, "normal")
    open_[:] = True
    descent = Descent(subsets, Facets(subsets), weights, open_)
    columns = tuple(range(6))
    descent.add([Cut((), columns, columns[:n]) for n in (1, 2, 3)], np.full(3, 0.1))
    descent.run(30)
    then, (cuts, prices) = descent.prices, descent.priced
    open_[subsets.index((0, 1, 2, 3)) - 6 :] = False
    descent.keep(open_)
    descent.run(30)
    descent.settle()
    later, later_prices = then.named()
    assert later == cuts
    assert later_prices.tolist() == prices.tolist()
    assert len(prices) > 3
    assert descent.priced[1].tolist() != prices.tolist()


@given(
    st.data(), st.integers(3, 5), st.integers(2, 4), seeds, st.integers(1, 6), st.sampled_from([-1.0, 0.0, 0.02, inf])
)
def test_a_descent_takes_the_steps_of_matrices(data, d, k, seed, n_steps, near):
    subsets, weights, open_ = opened(d, k, seed, "normal")
    cuts = list(dict.fromkeys(data.draw(st.lists(any_cuts(d, min(d, k)), min_size=1, max_size=5))))
    facets = Facets(subsets)
    places = np.argwhere(facets.places >= 0).tolist()
    pairs = [facets.cut(place, out) for place, out in places]
    descent = Descent(subsets, facets, weights, open_)
    cuts = descent.passed(cuts, -inf)
    descent.add(cuts, np.full(len(cuts), 0.01))
    rows = Sets(subsets, np.arange(d, len(subsets))).coefficients([*cuts, *pairs])
    limits = np.array([cut.limit for cut in [*cuts, *pairs]], dtype=np.float64)
    x, p = np.zeros(len(weights) - d), np.full(len(limits), 0.01)
    p[len(cuts) :] = descent._facet_prices = np.random.default_rng(seed).exponential(0.2, len(pairs))
    with patch("isde.tree_solvers.descent.NEAR", near):
        for _ in range(2):
            descent.run(n_steps)
            awake = (x > ASLEEP) | (weights[d:] - p @ rows > -near * descent._worth)
            for place, out in reversed(places):
                awake[facets.places[place, out]] |= awake[place]
            moving = np.array([True] * len(cuts) + [bool(awake[place]) for place, _ in places])
            x, p = slow_steps(weights[d:], rows, limits, descent.scale, x * awake, p, awake, moving, n_steps)
    priced = dict(zip(*descent.priced, strict=True))
    assert descent.point[d:] == pytest.approx(x, abs=1e-9)
    assert [priced.get(cut, 0.0) for cut in [*cuts, *pairs]] == pytest.approx(p, abs=1e-9)


def slow_steps(weights, rows, limits, scale, x, p, awake, moving, n_steps):
    """Of the sets that are awake, and the prices that move with them: all others stay what they are."""
    own = rows[np.ix_(moving, awake)]
    sizes, given_ = np.abs(own), weights[awake] - p[~moving] @ rows[np.ix_(~moving, awake)]
    start = now = x[awake], p[moving]
    for step in range(n_steps):
        values, prices = now
        new_x = np.clip(values + (given_ - prices @ own) / np.maximum(sizes.sum(axis=0), 1) / scale, 0, 1)
        rise = scale * (own @ (2 * new_x - values) - limits[moving]) / np.maximum(sizes.sum(axis=1), 1)
        new_p = np.maximum(prices + rise, 0)
        now = tuple(
            (step + 1) / (step + 2) * (new + BEYOND * (new - old)) + first / (step + 2)
            for new, old, first in ((new_x, values, start[0]), (new_p, prices, start[1]))
        )
    x, p = x.copy(), p.copy()
    x[awake], p[moving] = np.clip(now[0], 0, 1), np.maximum(now[1], 0)
    return x, p


@given(st.data(), st.integers(3, 5), st.integers(3, 5), seeds, kinds)
def test_settling_moves_one_facet_after_another_to_where_the_bound_is_lowest(data, d, k, seed, kind):
    subsets, weights, open_ = opened(d, k, seed, kind)
    descent = Descent(subsets, Facets(subsets), weights, open_)
    cuts = descent.passed(data.draw(st.lists(any_cuts(d, min(d, k)), max_size=5)), -inf)
    descent.add(cuts, np.full(len(cuts), 0.01))
    descent.run(data.draw(st.integers(1, 20)))
    # Some prices are too high, as after steps: those are lowered.
    descent._facet_prices += np.random.default_rng(seed).exponential(0.5, len(descent._facet_prices))
    before = descent.bound()
    prices = descent._facet_prices.copy()
    for facet in reversed(range(len(prices))):
        larger, smaller = descent.left()[[descent._larger[facet], descent._smaller[facet]]]
        own, bounds = descent._facet_prices[facet], []
        # The bound is lowest at the price there is, or where a set is paid for, or where the price ends.
        choices = [price for price in (own, own + larger, own - smaller, 0.0) if price >= 0.0]
        for price in choices:
            descent._facet_prices[facet] = price
            bounds.append(descent.bound())
        lowest = min(bounds)
        unit = max(1.0, lowest)
        # Among equals the price that moves least.
        near = [price for price, bound in zip(choices, bounds, strict=True) if bound <= lowest + 1e-9 * unit]
        descent._facet_prices[facet] = min(near, key=lambda price: abs(price - own))
    slow = descent.bound()
    descent._facet_prices = prices
    descent.settle()
    assert descent.bound() == pytest.approx(slow, rel=1e-6, abs=1e-6)
    assert descent.bound() <= before + 1e-9 * max(1.0, before)
    assert (descent._facet_prices >= 0).all()


@pytest.mark.parametrize(("d", "k", "seed"), [(5, 3, 0), (6, 3, 1), (6, 4, 2)])
def test_a_descent_comes_near_to_the_linear_program(d, k, seed):
    subsets, weights, open_ = opened(d, k, seed, "positive")
    facets, columns = Facets(subsets), tuple(range(d))
    cuts = [Cut((), columns, columns[:n]) for n in range(1, k)]
    cuts += [Cut((v,), tuple(c for c in columns if c != v), ((v + 1) % d,)) for v in columns]
    pairs = [facets.cut(place, out) for place, out in np.argwhere(facets.places >= 0).tolist()]
    rows = Sets(subsets, np.arange(d, len(subsets))).coefficients([*cuts, *pairs])
    solved = linprog(-weights[d:], rows, [cut.limit for cut in [*cuts, *pairs]], bounds=(0, 1))
    descent = Descent(subsets, facets, weights, open_)
    descent.add(cuts, np.zeros(len(cuts)))
    for _ in range(20):
        descent.run(150)
        descent.forget()
    assert descent.bound() == pytest.approx(-solved.fun, rel=2e-3)
    assert descent.bound() >= -solved.fun - 1e-9


@given(st.integers(3, 6), st.integers(2, 6), seeds, kinds, st.integers(1, 30), st.sampled_from([0, 12]))
def test_a_bound_by_descent_holds(d, k, seed, kind, rounds, at_once):
    subsets = SubsetFamily(d, k)
    weights = moebius_weights(subsets, gains_like(kind, d, k, seed))
    with patch.object(relaxation, "FEW_SETS", at_once):
        found = upper_bound(weights, d, k, limits=Limits(rounds, branches=2, seconds=1e6))
    best = best_weight(d, k, weights)
    unit = max(1.0, np.abs(weights[weights > -inf]).max())
    assert found.value >= best - 1e-12 * unit >= found.weight - 2e-12 * unit
    assert verify(subsets, weights, found.witness) == found.value


def test_of_many_sets_cuts_are_looked_for_in_those_the_point_has_most_of(monkeypatch):
    point = np.array([0.0, 0.5, 1e-5, 0.2, 0.3, 0.9])
    assert relaxation._cleared(point).tolist() == [0.0, 0.5, 0.0, 0.2, 0.3, 0.9]
    monkeypatch.setattr(relaxation, "MOST_LOOKED_AT", 2)
    assert relaxation._cleared(point).tolist() == [0.0, 0.5, 0.0, 0.0, 0.0, 0.9]


# --- witnesses -------------------------------------------------------------------------------------------------


@st.composite
def steps(draw, d, k, depth=2):
    some = tuple(draw(st.lists(any_cuts(d, k), max_size=4)))
    prices = np.array(draw(st.lists(st.integers(0, 1 << 20), min_size=len(some), max_size=len(some))), dtype=np.int64)
    n_rest = draw(st.integers(0, 2)) if depth else 0
    edge = draw(st.sampled_from(list(combinations(range(d), 2)))) if n_rest == 2 else None
    return Step(some, prices, edge, tuple(draw(steps(d, k, depth - 1)) for _ in range(n_rest)))


@given(st.data(), st.integers(2, 5), st.integers(2, 5), seeds, kinds)
def test_no_witness_whatever_it_says_proves_less_than_the_best_tree(data, d, k, seed, kind):
    """The known gain of a witness may be false: then what it proves is not below that."""
    subsets = SubsetFamily(d, k)
    weights = moebius_weights(subsets, gains_like("normal" if kind == "large" else kind, d, k, seed))
    known = data.draw(st.floats(-3, 3))
    witness = TreeWitness(data.draw(steps(d, min(d, k))), known, bits=18)
    assert verify(subsets, weights, witness) >= best_weight(d, k, weights) - 1e-12


@given(st.integers(2, 6), st.integers(2, 6), seeds, kinds)
def test_a_witness_checked_by_fractions_proves_the_same(d, k, seed, kind):
    subsets = SubsetFamily(d, k)
    weights = moebius_weights(subsets, gains_like(kind, d, k, seed))
    found = upper_bound(weights, d, k)
    exact = slow_bound(subsets, weights, found.witness)
    assert found.value == pytest.approx(float(exact), rel=1e-15, abs=len(subsets) * 2.0**-found.witness.bits)


def slow_bound(subsets, weights, witness):
    """What a witness proves, a set at a time, weights not rounded."""
    unit, d = Fraction(1, 2) ** witness.bits, subsets.n_columns
    by_set = {s: Fraction(w) for s, w in zip(subsets, weights.tolist(), strict=True) if w > -inf}
    known = Fraction(witness.known)

    def closed(sets):
        return {s for s in sets if all(r in sets for size in range(2, len(s)) for r in combinations(s, size))}

    def bound_of(step, open_, complete):
        left = {s: by_set[s] for s in by_set if len(s) > 1}
        bound = sum(by_set[(c,)] for c in range(d))
        for cut, price in zip(step.cuts, step.prices.tolist(), strict=True):
            bound += price * unit * cut.limit
            for s in left:
                left[s] -= price * unit * slow_coefficient(cut, s)
        bound += sum(left[s] if s in complete else max(left[s], 0) for s in open_ | complete)
        if not step.rest:
            return max(bound, known)
        slack = len(by_set) * unit  # rounding must not tell a set apart
        rest = closed({s for s in open_ if s in complete or bound + min(left[s], 0) >= known - slack})
        if len(step.rest) == 1:
            return min(max(bound, known), bound_of(step.rest[0], rest, complete))
        without, within = step.rest
        apart = closed({s for s in rest if not set(step.edge) <= set(s)})
        return min(
            max(bound, known), max(bound_of(without, apart, complete), bound_of(within, rest, complete | {step.edge}))
        )

    return bound_of(witness.first, closed({s for s in by_set if len(s) > 1}), set())


@given(st.data(), st.integers(2, 5), st.integers(2, 5))
def test_a_file_keeps_every_kind_of_cut(data, d, k):
    witness = TreeWitness(data.draw(steps(d, min(d, k))), 0.5, bits=18)
    again = from_plain(json.loads(json.dumps(as_plain(witness))))
    assert as_plain(again) == as_plain(witness)
    assert again.first.cuts == witness.first.cuts


def test_prices_below_zero_prove_nothing():
    witness = TreeWitness(Step((Cut((), (0, 1), (0,)),), np.array([-1])), -inf, 20)
    with pytest.raises(PricesTooLarge):
        verify(SubsetFamily(2, 2), np.zeros(3), witness)


# --- trees near a point ----------------------------------------------------------------------------------------


@given(st.integers(2, 6), st.integers(2, 6), seeds)
def test_rounding_gives_a_tree_that_no_single_edge_improves(d, k, seed):
    subsets, rng = SubsetFamily(d, k), np.random.default_rng(seed)
    weights = moebius_weights(subsets, gains_like("normal", d, k, seed))
    edges = rounded(subsets, weights, rng.random(len(subsets)))
    cliques = chordal_cliques(d, edges)
    assert max(map(len, cliques)) <= k
    by_set = dict(zip(subsets, weights.tolist(), strict=True))
    weight = sum(by_set[s] for s in complete_sets(cliques, k))
    for pair in combinations(range(d), 2):
        other = chordal_cliques(d, set(edges) ^ {pair})
        if other is not None and max(map(len, other)) <= k:
            assert sum(by_set[s] for s in complete_sets(other, k)) <= weight + 1e-9


def test_climbing_starts_where_it_is_told():
    subsets = SubsetFamily(3, 2)
    graph = Growing(subsets, np.array([0.0, 0.0, 0.0, -1.0, 2.0, 1.0]), [(0, 1)])
    climb(graph, [(0, 1), (0, 2), (1, 2)])
    assert graph.edges == ((0, 2), (1, 2))
