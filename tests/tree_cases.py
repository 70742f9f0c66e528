"""Tables and cuts that tests of bounds for trees draw, and slow twins of what cuts say."""

from functools import lru_cache
from itertools import combinations
from math import comb, inf

import numpy as np
from hypothesis import strategies as st

import oracles
from isde.subsets import SubsetFamily
from isde.tree_solvers.classes import Classes
from isde.tree_solvers.clutters import Clutter
from isde.tree_solvers.cuts import Cut

KINDS = ["normal", "positive", "star", "tied", "forbidden", "nothing", "large"]


def gains_like(kind, d, k, seed):
    """Gains of a table as a vector: some like data, some meant to be hard."""
    rng, subsets = np.random.default_rng(seed), SubsetFamily(d, k)
    sizes = subsets.sizes - 1.0
    if kind == "nothing":
        return np.zeros(len(subsets))
    if kind == "positive":
        return sizes * rng.uniform(0.5, 1.0, len(subsets))
    if kind == "star":  # one column scored badly is taken off again and again
        return np.array([5.0 * (0 in s) * (len(s) > 1) + 0.1 * rng.normal() * (len(s) > 1) for s in subsets])
    if kind == "tied":
        return sizes * rng.integers(-1, 3, len(subsets)) / 4
    gains = sizes * rng.normal(0.1, 1, len(subsets)) * (1e9 if kind == "large" else 1.0)
    if kind == "forbidden":
        gains[rng.random(len(gains)) < 0.2] = -inf
    return gains


def complete_sets(cliques, k):
    return {s for clique in cliques for size in range(1, k + 1) for s in combinations(clique, size)}


@lru_cache
def all_trees(d, k):
    """A row for each tree: 1 where a subset is complete in it."""
    subsets = SubsetFamily(d, k)
    trees = [cliques for _, cliques, _ in oracles.chordal_graphs(d) if max(map(len, cliques)) <= k]
    rows = np.zeros((len(trees), len(subsets)))
    for row, cliques in zip(rows, trees, strict=True):
        row[[subsets.index(s) for s in complete_sets(cliques, k)]] = 1.0
    return rows


def best_weight(d, k, weights):
    """The heaviest tree of all, by enumeration."""
    lowest = np.where(weights == -inf, -1e15, weights)
    return (all_trees(d, k) @ lowest).max()


@st.composite
def cuts(draw, d, k):
    columns = draw(st.permutations(range(d)))
    n_base = draw(st.integers(0, min(d - 1, k - 1)))
    n_columns = draw(st.integers(1, d - n_base))
    held = draw(st.integers(1, n_columns))
    inside = columns[n_base : n_base + n_columns]
    return Cut(tuple(sorted(columns[:n_base])), tuple(sorted(inside)), tuple(sorted(inside[:held])))


@st.composite
def clutters(draw, d):
    columns = draw(st.sets(st.integers(0, d - 1)))
    pairs = draw(st.sets(st.sampled_from(list(combinations(range(d), 2))), min_size=0 if columns else 1))
    members = [(c,) for c in sorted(columns)] + sorted(pairs)
    return Clutter(tuple(sorted(columns)), tuple(sorted(pairs)), draw(st.sampled_from(members)))


@st.composite
def classes(draw, d):
    labels = draw(st.lists(st.integers(-1, d - 1), min_size=d, max_size=d).filter(lambda labels: max(labels) >= 0))
    own = tuple(tuple(c for c in range(d) if labels[c] == label) for label in sorted(set(labels) - {-1}))
    return Classes(own, draw(st.integers(1, len(own))))


def any_cuts(d, k):
    return st.one_of(cuts(d, k), clutters(d), classes(d))


seeds, kinds = st.integers(0, 10**6), st.sampled_from(KINDS)


def slow_coefficient(cut, subset):
    if isinstance(cut, Clutter):
        members = [{c} for c in cut.columns] + [set(pair) for pair in cut.pairs]
        return (cut.one == subset) - slow_weight(lambda s: any(member <= s for member in members), subset)
    if isinstance(cut, Classes):
        return -slow_weight(lambda s: min(sum(bool(s & set(one)) for one in cut.classes), cut.rank), subset)
    rest, j = set(subset) - set(cut.base), len(cut.held)
    if not set(cut.base) <= set(subset) or not rest <= set(cut.columns):
        return 0
    if len(rest) > j:
        return (-1) ** (len(rest) - j - 1) * comb(len(rest) - 2, j - 1)
    return -1 if len(rest) == 1 and cut.base and not rest & set(cut.held) else 0


def slow_weight(function, subset):
    """The Moebius weight of a function of sets."""
    inside = [set(part) for size in range(len(subset) + 1) for part in combinations(subset, size)]
    return sum((-1) ** (len(subset) - len(part)) * function(part) for part in inside)
