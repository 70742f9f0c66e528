"""Slow, obvious twins of what `isde` computes: definitions in NumPy and plain Python, sharing no code with `src`."""

from functools import lru_cache
from itertools import combinations

import networkx as nx
import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

ROUNDING = 1e-9
"""Nats. Two orders of summation in float64 differ by far less."""

SINGLE_PRECISION = 1e-6
"""Nats. A table of kernel scores is a mean of float32 sums; the final density is not."""

QUADRATURE = 1e-6
"""Sums over a fine grid of a smooth density against its integral."""


def monte_carlo(n):
    """Five standard errors of a mean of n draws with unit variance."""
    return 5 / np.sqrt(n)


PAPER_GRID = [0.01 * 100 ** (i / 29) for i in range(30)]
GRID_RATIO = 100 ** (1 / 29)


# --- kernel densities ------------------------------------------------------------------------------------------


def kde_log_density(rows, centres, bandwidth):
    """log (1/n) sum_j N(row; centre_j, h^2 I) for each row."""
    rows, centres = np.atleast_2d(rows), np.atleast_2d(centres)
    n, s = centres.shape
    exponents = -((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2) / (2 * bandwidth**2)
    return logsumexp(exponents, axis=1) - np.log(n) - s * np.log(bandwidth) - s / 2 * np.log(2 * np.pi)


def contiguous_folds(n, cv):
    """Row numbers of each fold: cv runs of consecutive rows, the first n % cv of them one row longer."""
    cv = min(cv, n)
    sizes = [n // cv + (i < n % cv) for i in range(cv)]
    starts = [sum(sizes[:i]) for i in range(cv)]
    return [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]


def shuffled(rows):
    """Rows in the order in which those of the data, or of folds that keep their order, are handed to a family."""
    return rows[np.random.RandomState(0).permutation(len(rows))]


def cv_score(X, bandwidth, cv=5):
    """Mean over all rows of the log-density fitted on the other folds."""
    held_out = []
    for fold in contiguous_folds(len(X), cv):
        others = [i for i in range(len(X)) if i not in fold]
        held_out.extend(kde_log_density(X[fold], X[others], bandwidth))
    return float(np.mean(held_out))


def choose_bandwidth(X, bandwidths=None, cv=5):
    """The best of the grid by all rows."""
    return best_of_grid(lambda h: cv_score(X, h, cv), bandwidths)


def best_of_grid(score, bandwidths=None):
    """The best of the grid; the default grid grows by one step of its ratio until the best one is inside."""
    grid = list(PAPER_GRID if bandwidths is None else bandwidths)
    scores = [score(h) for h in grid]
    while bandwidths is None:
        best = int(np.argmax(scores))
        if best == 0:
            grid.insert(0, grid[0] / GRID_RATIO)
            scores.insert(0, score(grid[0]))
        elif best == len(grid) - 1:
            grid.append(grid[-1] * GRID_RATIO)
            scores.append(score(grid[-1]))
        else:
            break
    return grid[int(np.argmax(scores))]


def choose_shared_bandwidth(X, splits, cv=5):
    """The bandwidth of several splits: of what ten find, the one nearest to their geometric mean; of two, the wider.

    Each searches by a part of the rows it fits on, all of them together by twice as many as one has.
    """
    chosen = [_choose_by_some(X[fit], 0.2, cv) for fit, _ in splits[:10]]
    middle = np.mean(np.log(chosen))
    return min(chosen, key=lambda h: (round(abs(np.log(h) - middle), 9), -h))


def _choose_by_some(X, share, cv):
    """Evenly spaced rows are scored by those of the other folds."""
    own = np.linspace(0, len(X) - 1, max(1, round(share * len(X)))).astype(int).tolist()
    folds = contiguous_folds(len(X), cv)

    def score(h):
        held_out = []
        for fold in folds:
            here, others = [i for i in own if i in fold], [i for i in range(len(X)) if i not in fold]
            held_out.extend(kde_log_density(X[here], X[others], h) if here else [])
        return float(np.mean(held_out))

    return best_of_grid(score)


def scored_in_common(scored):
    """Of the rows that a split scores, the share that another one scores too: the mean over all pairs of splits."""
    pairs = [len(set(a) & set(b)) / len(a) for a, b in combinations(map(list, scored), 2)]
    return float(np.mean(pairs))


def kde_score(X_fit, X_score, subset, bandwidths=None, cv=5):
    """Held-out mean log-density of a subset, and the bandwidth behind it."""
    S = list(subset)
    h = choose_bandwidth(X_fit[:, S], bandwidths, cv)
    return float(kde_log_density(X_score[:, S], X_fit[:, S], h).mean()), h


def gaussian_score(X_fit, X_score, subset, zero_mean=False):
    """Mean log-density of X_score under the maximum-likelihood Gaussian of X_fit."""
    W, Z = X_fit[:, list(subset)], X_score[:, list(subset)]
    mean = np.zeros(len(subset)) if zero_mean else W.mean(axis=0)
    covariance = np.mean([np.outer(row - mean, row - mean) for row in W], axis=0)
    return float(np.mean(multivariate_normal(mean, covariance).logpdf(Z)))


# --- subsets and partitions ------------------------------------------------------------------------------------


def all_subsets(d, k):
    """By size, then by the reversed tuple: colexicographic."""
    return [s for size in range(1, min(d, k) + 1) for s in sorted(combinations(range(d), size), key=lambda s: s[::-1])]


def all_partitions(d, k=None):
    """Every partition of range(d) into blocks of at most k, by putting each column into an old block or a new one."""
    found = [[]]
    for column in range(d):
        found = [
            [*partition[:i], [*partition[i], column], *partition[i + 1 :]]
            if i < len(partition)
            else [*partition, [column]]
            for partition in found
            for i in range(len(partition) + 1)
        ]
    k = d if k is None else k
    return sorted(tuple(sorted(tuple(b) for b in p)) for p in found if all(len(b) <= k for b in p))


def best_partition(scores, d, sense="max"):
    """Best sum of scores over partitions with a finite sum; finer first among equals, then the first in Python's order.

    `scores` maps sorted tuples to numbers; a subset it lacks scores -inf.
    """
    sign = 1 if sense == "max" else -1

    def total(partition):
        return sum(scores.get(block, -np.inf) for block in partition)

    candidates = [p for p in all_partitions(d) if total(p) > -np.inf]
    best = min(candidates, key=lambda p: (-sign * total(p), -len(p), p))
    return best, total(best)


def neighbours(partition):
    """All partitions one split or one merge away."""
    found = set()
    for a, b in combinations(partition, 2):
        found.add(tuple(sorted([x for x in partition if x not in (a, b)] + [tuple(sorted(a + b))])))
    for block in partition:
        rest = [x for x in partition if x != block]
        for size in range(1, len(block)):
            for part in combinations(block, size):
                found.add(tuple(sorted([*rest, part, tuple(c for c in block if c not in part)])))
    return found


def edit_distances_from(start):
    """Steps to every partition of the same columns, by breadth-first search over splits and merges."""
    distance, frontier = {start: 0}, [start]
    while frontier:
        following = []
        for partition in frontier:
            for other in neighbours(partition):
                if other not in distance:
                    distance[other] = distance[partition] + 1
                    following.append(other)
        frontier = following
    return distance


# --- trees of blocks -------------------------------------------------------------------------------------------


@lru_cache
def chordal_graphs(d):
    """Every chordal graph on range(d): its edges, its maximal cliques and their separators, by networkx."""
    pairs, found = list(combinations(range(d), 2)), []
    for chosen in range(1 << len(pairs)):
        edges = tuple(pair for i, pair in enumerate(pairs) if chosen >> i & 1)
        graph = nx.Graph(edges)
        graph.add_nodes_from(range(d))
        if nx.is_chordal(graph):
            cliques = [tuple(sorted(clique)) for clique in nx.chordal_graph_cliques(graph)]
            joined = nx.Graph()
            joined.add_nodes_from(cliques)
            for a, b in combinations(cliques, 2):
                if set(a) & set(b):
                    joined.add_edge(a, b, weight=len(set(a) & set(b)))
            junctions = nx.maximum_spanning_tree(joined).edges
            found.append((edges, tuple(cliques), tuple(tuple(sorted(set(a) & set(b))) for a, b in junctions)))
    return found


def tree_score(scores, cliques, separators):
    """Sum over cliques minus sum over separators; -inf where one of them is -inf or lacks."""
    terms = [scores.get(term, -np.inf) for term in (*cliques, *separators)]
    if min(terms) == -np.inf:
        return -np.inf
    return sum(terms[: len(cliques)]) - sum(terms[len(cliques) :])


def best_tree(scores, d, k):
    """The largest score of a tree with cliques of at most k columns, and the fewest edges of a tree that has it."""
    scored = [
        (tree_score(scores, cliques, separators), -len(edges))
        for edges, cliques, separators in chordal_graphs(d)
        if max(map(len, cliques)) <= k
    ]
    score, fewest = max(scored)
    return score, -fewest
