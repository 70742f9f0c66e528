"""Set partitioning by linear programming: dominance, prices, then a search through what the prices leave open.

HiGHS only suggests: the bound is checked in integers (`prices`), and the search (`cover`) proves the partition by
trying every one whose blocks together stay within the distance between bound and best. Where that is too many, HiGHS's
integer program finds the partition, and the bound says how good it is.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from isde.arrays import Mask
from isde.errors import ISDEError
from isde.partitions import Partition
from isde.solvers.cover import Search, SearchTooLong
from isde.solvers.dominance import undominated
from isde.solvers.prices import NEVER, STEP, Prices, cover_matrix, price_columns
from isde.solvers.solver import Proved, Task
from isde.solvers.weights import FORBIDDEN, Weights

DYNAMIC_UP_TO = 14
"""Columns up to which the recursion over bit masks (3^d steps) is faster than a linear program, whatever k is."""

STEPS_OF_A_SPLIT = 4
"""Steps of the recursion that cost as much as dominance does for one split of one subset, measured at d = 16 to 20."""

MOST_NODES = 5_000_000
MOST_NODES_OF_SEVERAL = 20_000_000
MOST_SECONDS = 600
"""For HiGHS, before its best partition is returned with the bound there is."""

TIED_BELOW = 1e6
"""Units. Scores that are multiples of so large a unit are likely to be tied."""

WIDEN = 1.5
"""Growth of the search's limit from round to round: the last round costs about as much as all before it."""

FIRST_GAP = 1e-4
"""Nats. Linear relaxations that are not tight miss by more than this."""

LARGEST_TOTAL = 1 << 61
"""No limit goes beyond: sums of slacks must stay within 64 bits."""

INFEASIBLE = 2
"""scipy.optimize.milp's status."""


def refusal(task: Task) -> str | None:
    return None


def steps(task: Task) -> float:
    d = task.n_columns
    splits = sum(comb(d, size) * 2**size for size in range(1, task.max_block_size + 1))  # what dominance looks at
    return max(3**DYNAMIC_UP_TO, STEPS_OF_A_SPLIT * splits)


def best(weights: Weights, n: int = 1) -> list[Proved]:
    """The `n` heaviest partitions; where the search for a single one is too long, HiGHS's with the bound of the prices.

    Of several, each one's bound is its own weight.
    """
    candidates = possible_blocks(weights, n)
    prices = price_columns(weights, candidates)
    if prices is None:
        return []
    search = search_within(weights, prices, candidates, MOST_NODES if n == 1 else MOST_NODES_OF_SEVERAL)
    try:
        found = search_outwards(weights, search, n, _largest_total(search))
    except SearchTooLong:
        if n == 1:
            return _by_branch_and_bound(weights, prices, search)
        raise ISDEError(
            f"The {n} best partitions are not told apart after {MOST_NODES_OF_SEVERAL:,} steps, too many are about "
            "as good: ask for fewer, or for a smaller max_block_size."
        ) from None
    witness = prices.witness(weights)
    return [Proved(partition, (prices.bound - slack) // STEP, witness) for partition, slack in found]


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


def _by_branch_and_bound(weights: Weights, prices: Prices, search: Search) -> list[Proved]:
    """HiGHS's integer program, then the first partition of its weight, where a search finds that one soon."""
    partition = _integer_program(weights, np.flatnonzero(search.slacks < NEVER), prices.bound)
    if partition is None:
        return []
    try:
        found = search.best(prices.bound - STEP * weights.of(partition), first=True)
    except SearchTooLong:
        found = None
    return [Proved(found[0] if found else partition, prices.bound // STEP, prices.witness(weights))]


def _integer_program(weights: Weights, candidates: NDArray[np.intp], bound: int) -> Partition | None:
    """The largest gain, by HiGHS; then, where ties are likely, the most blocks that reach it."""
    subsets = weights.subsets
    gains = (weights.values[candidates] - 1) // (subsets.n_columns + 1)
    limits = [LinearConstraint(cover_matrix(subsets, candidates), 1, 1)]
    if weights.max_blocks is not None:
        limits.append(LinearConstraint(np.ones((1, len(candidates))), 1, weights.max_blocks))
    # Gains are whole numbers: less than one away from the best is the best.
    most = max(bound / STEP / (subsets.n_columns + 1), 1.0)
    chosen = _solve(gains, limits, relative_gap=0.99 / most)
    if chosen is not None and np.abs(gains).max() < TIED_BELOW:
        reached = LinearConstraint(gains[None, :].astype(float), gains[chosen].sum() - 0.5, np.inf)
        finer = _solve(np.ones(len(candidates)), [*limits, reached], relative_gap=0.99 / subsets.n_columns)
        chosen = chosen if finer is None else finer
    return None if chosen is None else tuple(sorted(subsets[int(i)] for i in candidates[chosen]))


def _solve(gains: NDArray[Any], limits: list[LinearConstraint], *, relative_gap: float) -> NDArray[np.intp] | None:
    solved = milp(
        -gains.astype(float),
        constraints=limits,
        integrality=np.ones(len(gains)),
        bounds=Bounds(0, 1),
        # HiGHS's presolve hangs near 1e5 subsets.
        options={"presolve": False, "mip_rel_gap": relative_gap, "time_limit": MOST_SECONDS},
    )
    if solved.status == INFEASIBLE:
        return None
    if solved.x is None:
        raise ISDEError(f"HiGHS found no partition: {solved.message}")
    return np.flatnonzero(solved.x > 0.5)
