"""Good trees by annealing over chordal graphs: fast at any number of columns, and no proof.

Runs of random steps (`walk`) start from the best forest, the best partition and columns alone; each ends with all edges
that still gain. What they meet is merged: of their edges, the best tree is solved for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from isde.errors import UnprovedPartition
from isde.solvers import select_partition
from isde.subsets import binomials
from isde.tree_solvers import forest
from isde.tree_solvers.merging import merged
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.relaxation import Limits
from isde.tree_solvers.solver import Found
from isde.tree_solvers.walk import walk
from isde.trees import Edge, tree_of_edges

STEPS_PER_PAIR = 1000
"""Of a run, for each pair of columns: half a million for 32 columns, 0.1 s. Five times as many meet better trees, but
trees merged are better by far than any single one, and gain little by it."""

MILD, WARM, HOT, COLD = 0.3, 0.08, 1.0, 0.02
"""Temperatures of runs at their start, and of all at their end, in gains of the average edge of the best forest."""

RUNS = (MILD,) * 6 + (WARM,) * 4 + (HOT,) * 3
"""Warm runs go on from the best tree of those before, others from the starts. Of many columns mild runs find the better
trees; scores that no density gives, such as those drawn by lot, need more heat."""

MERGING = Limits(rounds=60, branches=20)
"""Of the linear programs by which trees are merged: 5 s for 100 columns and cliques of three. None of time, so that the
tree is the same on every machine."""

SEED = 15


def refusal(task: TreeTask) -> str | None:
    return None


def steps(task: TreeTask) -> float:
    return inf  # never chosen for its cost: it proves nothing


def best(problem: TreeProblem) -> Found:
    """The best tree met or merged; its bound is the sum of all weights above 0, which no tree passes."""
    edges = best_edges(problem)
    if edges is None:
        return Found(None, inf)
    weights = moebius_weights(problem.subsets, problem.gains)[problem.subsets.n_columns :]
    return Found(edges, max(float(np.maximum(weights, 0.0).sum()) - problem.gain(edges), 0.0) + problem.rounding)


def best_edges(problem: TreeProblem) -> tuple[Edge, ...] | None:
    """The best tree of the edges of all runs; None where all trees need a subset of score -inf."""
    met = trees_met(problem)
    known, weights = best_allowed(problem, *met), moebius_weights(problem.subsets, problem.gains)
    return best_allowed(problem, known, merged(problem.subsets, weights, _edges_of(met), known, MERGING).edges)


def best_allowed(problem: TreeProblem, *trees: tuple[Edge, ...] | None) -> tuple[Edge, ...] | None:
    """The tree that gains most, among equals one with the fewest edges; None where all need a subset of score -inf."""
    gains = {edges: problem.gain(edges) for edges in trees if edges is not None}
    best = _best_of(gains) if gains else None
    return best if best is not None and gains[best] > -inf else None


def _edges_of(met: Mapping[tuple[Edge, ...], float]) -> list[Edge]:
    """Those of the best trees first."""
    return [edge for edges in sorted(met, key=lambda edges: -met[edges]) for edge in edges]


def trees_met(problem: TreeProblem) -> dict[tuple[Edge, ...], float]:
    """The best tree of each run and the starts, and what they gain."""
    starts = _starts(problem)
    found = {start: problem.gain(start) for start in starts}
    if problem.subsets.n_columns > 1 and problem.subsets.max_size > 1:
        temperature = _temperature(problem)
        for run, hot in enumerate(RUNS):
            start = _best_of(found) if hot == WARM else starts[run % len(starts)]
            edges = _run(problem, start, temperature, SEED + run, hot)
            found[edges] = problem.gain(edges)
    return found


def _best_of(found: Mapping[tuple[Edge, ...], float]) -> tuple[Edge, ...]:
    """The tree that gains most; among equals, one with the fewest edges."""
    return min(found, key=lambda edges: (-found[edges], len(edges), edges))


def _starts(problem: TreeProblem) -> list[tuple[Edge, ...]]:
    """The best forest, as far as columns may stand alone, the best partition, and columns alone."""
    try:
        blocks = select_partition(problem.scores).partition
    except UnprovedPartition as good:  # that will do
        blocks = good.selection.partition
    partition = tuple(sorted(edge for block in blocks for edge in combinations(block, 2)))
    pairs = TreeProblem(problem.scores.restrict(min(2, problem.subsets.max_size)))
    by_pairs = forest.best(pairs).edges if pairs.task.all_alone else None
    return list(dict.fromkeys([tuple(sorted(by_pairs or ())), partition, ()]))


def _temperature(problem: TreeProblem) -> float:
    """What an edge is worth: the mean of the d - 1 pairs that gain most; of all subsets where no pair gains."""
    gains = problem.gains[problem.subsets.of_size(2)]
    most = np.sort(gains[gains > 0.0])[-(problem.subsets.n_columns - 1) :]
    if most.size:
        return float(most.mean())
    finite = problem.gains[np.isfinite(problem.gains)]
    return float(np.abs(finite).mean()) or 1.0


def _run(problem: TreeProblem, start: Sequence[Edge], temperature: float, seed: int, hot: float) -> tuple[Edge, ...]:
    """The best graph that a run meets, then all that single edges still gain there."""
    d = problem.subsets.n_columns
    met = _walk(problem, start, STEPS_PER_PAIR * (d * (d - 1) // 2), temperature, seed, problem.gains, hot)
    return _walk(problem, met, 0, temperature, seed, problem.gains)


def _walk(
    problem: TreeProblem,
    start: Sequence[Edge],
    n_steps: int,
    temperature: float,
    seed: int,
    gains: NDArray[np.float64],
    hot: float = MILD,
) -> tuple[Edge, ...]:
    d, k = problem.subsets.n_columns, problem.subsets.max_size
    joined = np.zeros((d, d), dtype=np.bool_)
    for a, b in start:
        joined[a, b] = joined[b, a] = True
    neighbours, degrees = np.zeros((d, d), dtype=np.int64), joined.sum(axis=1)
    for c in range(d):
        neighbours[c, : degrees[c]] = np.flatnonzero(joined[c])
    uses = np.zeros(len(problem.subsets), dtype=np.int64)
    for term, sign in tree_of_edges(d, start).terms:
        uses[problem.subsets.index(term)] += sign
    finite = gains[np.isfinite(gains)]
    penalty = 1.0 + 4.0 * float(np.abs(finite).max(initial=0.0))
    found, scratch = np.zeros((d, d), dtype=np.bool_), np.zeros((6, d + k + 2), dtype=np.int64)
    table = (gains, np.asarray(problem.subsets.offsets), binomials(d, k))
    heat = (n_steps, hot * temperature, COLD * temperature, seed)
    walk(k, *table, joined, neighbours, degrees, uses, penalty, *heat, found, scratch)
    return tuple((int(a), int(b)) for a, b in np.argwhere(np.triu(found)))
