"""Set partitioning by linear programming: dominance, prices, then a search through what the prices leave open.

HiGHS only suggests: the bound is checked in integers (`prices`), and the search (`cover`) proves the partition by
trying every one whose blocks together stay within the distance between bound and best. Where that is too many, HiGHS's
integer program finds the partition, and the bound says how good it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from isde.errors import ISDEError
from isde.partitions import Partition
from isde.solvers.cover import Search, SearchTooLong
from isde.solvers.dominance import undominated
from isde.solvers.prices import NEVER, STEP, Prices, cover_matrix, price_columns
from isde.solvers.weights import FORBIDDEN, Weights

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

FARTHEST = 1 << 61
"""No limit goes beyond: sums of slacks must stay within 64 bits."""

INFEASIBLE = 2
"""scipy.optimize.milp's status."""


def heaviest_partition(weights: Weights) -> tuple[Partition, int] | None:
    """The heaviest partition and a proven bound on the weight of any; None where no partition is allowed."""
    # Under a limit on the number of blocks a subset may be needed though its split outweighs it.
    candidates = undominated(weights) if weights.max_blocks is None else weights.values != FORBIDDEN
    prices = price_columns(weights, candidates)
    if prices is None:
        return None
    prices = replace(prices, slacks=np.where(candidates, prices.slacks, NEVER))
    search = _search(weights, prices, MOST_NODES)
    limit, most = weights.family.n_columns, _largest_total(weights, prices)  # first: the rounding of the prices
    try:
        while True:
            found = search.best(limit)
            if found is not None:
                return found[0], (prices.bound - found[1]) // STEP
            if limit >= most:
                return None
            limit = _wider(weights, limit, most)
    except SearchTooLong:
        return _by_branch_and_bound(weights, prices, search)


def heaviest_partitions(weights: Weights, n: int) -> list[Partition]:
    """The `n` heaviest partitions in order, all of them where there are fewer."""
    prices = price_columns(weights, weights.values != FORBIDDEN)
    if prices is None:
        return []
    search = _search(weights, prices, MOST_NODES_OF_SEVERAL)
    limit, most = weights.family.n_columns, _largest_total(weights, prices)  # first: the rounding of the prices
    try:
        while len(found := search.several(n, limit)) < n and limit < most:
            limit = _wider(weights, limit, most)
    except SearchTooLong:
        raise ISDEError(
            f"The {n} best partitions are not told apart after {MOST_NODES_OF_SEVERAL:,} steps, too many are about "
            "as good: ask for fewer, or for a smaller max_block_size."
        ) from None
    return [partition for partition, _ in found]


def _search(weights: Weights, prices: Prices, most_nodes: int) -> Search:
    return Search(weights.family, prices.slacks, STEP, most_nodes, weights.max_blocks, prices.fee)


def _largest_total(weights: Weights, prices: Prices) -> int:
    """No partition wastes more."""
    d, usable = weights.family.n_columns, prices.slacks[prices.slacks < NEVER]
    return min(FARTHEST, d * (int(usable.max()) + prices.fee))


def _wider(weights: Weights, limit: int, most: int) -> int:
    first = int(FIRST_GAP / weights.unit * (weights.family.n_columns + 1)) * STEP
    return min(most, max(int(limit * WIDEN), first, STEP))


def _by_branch_and_bound(weights: Weights, prices: Prices, search: Search) -> tuple[Partition, int] | None:
    """HiGHS's integer program, then the first partition of its weight, where a search finds that one soon."""
    candidates = np.flatnonzero(prices.slacks < NEVER)
    partition = _integer_program(weights, candidates, prices.bound)
    if partition is None:
        return None
    try:
        found = search.best(prices.bound - STEP * weights.of(partition), first=True)
    except SearchTooLong:
        found = None
    return found[0] if found else partition, prices.bound // STEP


def _integer_program(weights: Weights, candidates: NDArray[np.intp], bound: int) -> Partition | None:
    """The largest gain, by HiGHS; then, where ties are likely, the most blocks that reach it."""
    family = weights.family
    gains = (weights.values[candidates] - 1) // (family.n_columns + 1)
    limits = [LinearConstraint(cover_matrix(family, candidates), 1, 1)]
    if weights.max_blocks is not None:
        limits.append(LinearConstraint(np.ones((1, len(candidates))), 1, weights.max_blocks))
    # Gains are whole numbers: less than one away from the best is the best.
    most = max(bound / STEP / (family.n_columns + 1), 1.0)
    chosen = _solve(gains, limits, relative_gap=0.99 / most)
    if chosen is not None and np.abs(gains).max() < TIED_BELOW:
        reached = LinearConstraint(gains[None, :].astype(float), gains[chosen].sum() - 0.5, np.inf)
        finer = _solve(np.ones(len(candidates)), [*limits, reached], relative_gap=0.99 / family.n_columns)
        chosen = chosen if finer is None else finer
    return None if chosen is None else tuple(sorted(family[int(i)] for i in candidates[chosen]))


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
