"""Set partitioning by linear programming: dominance, prices, then a search through what the prices leave open.

HiGHS only suggests: the bound is checked in integers (`prices`), and the search (`cover`) proves the partition by
trying every one whose blocks together stay within the distance between bound and best. Where that is too many, branch
and bound (`branching`) narrows the distance by cuts and by cases, in integers as well.
"""

from __future__ import annotations

from math import comb

import numpy as np

from isde.arrays import Mask
from isde.errors import ISDEError
from isde.partitions import Partition
from isde.solvers.branching import Tree
from isde.solvers.cover import LARGEST_TOTAL, Search, SearchTooLong
from isde.solvers.dominance import undominated
from isde.solvers.prices import NEVER, STEP, Prices, price_columns
from isde.solvers.solver import Proved, Task
from isde.solvers.weights import FORBIDDEN, Weights

DYNAMIC_UP_TO = 14
"""Columns up to which the recursion over bit masks (3^d steps) is faster than a linear program, whatever k is."""

STEPS_OF_A_SPLIT = 4
"""Steps of the recursion that cost as much as dominance does for one split of one subset, measured at d = 16 to 20."""

MOST_NODES = 1_000_000
"""Blocks that a search tries before branch and bound, which is faster where most partitions differ: 0.1 to 0.3 s."""

FEW_BRANCHES = 60
"""Nodes of branch and bound, before a long search, which is faster where many partitions are as good."""

MOST_NODES_AT_LAST = 5_000_000
MOST_NODES_OF_SEVERAL = 20_000_000
"""Blocks that the long search tries, for one partition and for several: 1 to 5 s."""

MOST_BRANCHES = 5000
"""Nodes of branch and bound after that."""

FEW_PARTITIONS = 100
"""That branch and bound is asked for: these it tells apart within seconds."""

WIDEN = 1.5
"""Growth of the search's limit from round to round: the last round costs about as much as all before it."""

FIRST_GAP = 1e-4
"""Nats. Linear relaxations that are not tight miss by more than this."""


def refusal(task: Task) -> str | None:
    return None


def steps(task: Task) -> float:
    d = task.n_columns
    splits = sum(comb(d, size) * 2**size for size in range(1, task.max_block_size + 1))  # what dominance looks at
    return max(3**DYNAMIC_UP_TO, STEPS_OF_A_SPLIT * splits)


def best(weights: Weights, n: int = 1) -> list[Proved]:
    """The `n` heaviest partitions; where a single one is not proved within the limits, with the bound there is.

    Of several, each one's bound is its own weight.
    """
    candidates = possible_blocks(weights, n)
    prices = price_columns(weights, candidates)
    if prices is None:
        return []
    few = n <= FEW_PARTITIONS
    found = _by_search(weights, prices, candidates, n, MOST_NODES if few else MOST_NODES_OF_SEVERAL)
    if found is None and not few:
        raise _not_told_apart(n)
    proved = _by_branching(weights, prices, candidates, n) if found is None else [(p, weights.of(p)) for p in found]
    return [Proved(partition, bound, prices.witness(weights)) for partition, bound in proved]


def possible_blocks(weights: Weights, n: int) -> Mask:
    """Subsets among which the blocks of the `n` heaviest partitions are."""
    # A runner-up, or a partition of few blocks, may need a subset though its split outweighs it.
    return undominated(weights) if n == 1 and weights.max_blocks is None else weights.values != FORBIDDEN


def search_within(weights: Weights, prices: Prices, candidates: Mask, most_nodes: int) -> Search:
    """The search for partitions into candidates that waste the least of the prices."""
    slacks = np.where(candidates, prices.slacks, NEVER)
    return Search(weights.subsets, slacks, STEP, most_nodes, weights.max_blocks, prices.fee)


def search_outwards(weights: Weights, search: Search, n: int, most: int) -> list[tuple[Partition, int]]:
    """The `n` partitions of least total slack, at most `most`, with their totals; fewer where there are fewer."""
    limit = min(weights.subsets.n_columns, most)  # first: the rounding of the prices
    while True:
        found = search.least(n, limit)
        if len(found) == n or limit >= most:
            return found
        limit = _wider(weights, limit, most)


def _largest_total(search: Search) -> int:
    """No partition wastes more."""
    usable = search.slacks[search.slacks < NEVER]
    return min(LARGEST_TOTAL, search.subsets.n_columns * (int(usable.max()) + search.fee))


def _wider(weights: Weights, limit: int, most: int) -> int:
    first = int(FIRST_GAP / weights.unit * (weights.subsets.n_columns + 1)) * STEP
    return min(most, max(int(limit * WIDEN), first, STEP))


def _by_search(weights: Weights, prices: Prices, candidates: Mask, n: int, most_nodes: int) -> list[Partition] | None:
    """The `n` heaviest partitions; None where the search is too long."""
    search = search_within(weights, prices, candidates, most_nodes)
    try:
        return [partition for partition, _ in search_outwards(weights, search, n, _largest_total(search))]
    except SearchTooLong:
        return None


def _by_branching(weights: Weights, prices: Prices, candidates: Mask, n: int) -> list[tuple[Partition, int]]:
    """The `n` heaviest partitions with their bounds, by branch and bound and a long search in turns."""
    tree = Tree(weights, prices, np.flatnonzero(candidates), n)
    if tree.grow(FEW_BRANCHES):
        return [(partition, weights.of(partition)) for partition in tree.partitions]
    found = _by_search(weights, prices, candidates, n, MOST_NODES_AT_LAST if n == 1 else MOST_NODES_OF_SEVERAL)
    if found is None and not _only_ties_are_left(weights, tree) and tree.grow(MOST_BRANCHES):
        found = tree.partitions
    if found is not None:
        return [(partition, weights.of(partition)) for partition in found]
    if n > 1 or not tree.partitions:
        raise _not_told_apart(n)
    best = _first_as_heavy(weights, prices, candidates, tree.partitions[0])
    return [(best, max(weights.of(best), tree.bound))]


def _only_ties_are_left(weights: Weights, tree: Tree) -> bool:
    """Whether no partition gains more than the best one found; others may gain as much and have more blocks."""
    return bool(tree.partitions) and weights.nats(weights.of(tree.partitions[-1]), tree.bound) <= 0


def _not_told_apart(n: int) -> ISDEError:
    if n == 1:
        return ISDEError("No partition was found before the limits were reached: take back a constraint.")
    return ISDEError(
        f"The {n} best partitions are not told apart after {MOST_NODES_OF_SEVERAL:,} steps, too many are about as "
        "good: ask for fewer, or for a smaller max_block_size."
    )


def _first_as_heavy(weights: Weights, prices: Prices, candidates: Mask, known: Partition) -> Partition:
    """The first partition in Python's order that is as heavy as the one known, where a search meets it soon."""
    search = search_within(weights, prices, candidates, MOST_NODES)
    try:
        found = search.best(prices.bound - STEP * weights.of(known), first=True)
    except SearchTooLong:
        return known
    if found is None or found[0] == known:
        return known
    return _first_as_heavy(weights, prices, candidates, found[0])  # which may be heavier, and not the first of these
