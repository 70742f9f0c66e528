"""Set partitioning by linear programming: dominance, prices, then a search through what the prices leave open.

HiGHS only suggests: the bound is checked in integers (`prices`), and the search (`cover`) proves the partition by
trying every one whose blocks together stay within the distance between bound and best. Where that is too many, HiGHS's
integer program finds the partition, and the bound says how good it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from isde.errors import ISDEError
from isde.partitions import Partition
from isde.solvers.cover import SearchTooLong, least_slack_partition
from isde.solvers.dominance import undominated
from isde.solvers.prices import STEP, cover_matrix, price_columns
from isde.solvers.weights import Weights

MOST_NODES = 20_000_000
WIDEN = 1.5
"""Growth of the search's limit from round to round: the last round costs about as much as all before it."""

FIRST_GAP = 1e-4
"""Nats. Linear relaxations that are not tight miss by more than this."""


def heaviest_partition(weights: Weights) -> tuple[Partition, int]:
    """The heaviest partition and a proven bound on the weight of any."""
    candidates = undominated(weights)
    prices = price_columns(weights, candidates)
    slacks = np.where(candidates, prices.slacks, np.iinfo(np.int64).max)
    family, limit = weights.family, STEP * weights.family.n_columns
    try:
        while True:
            found = least_slack_partition(family, slacks, limit=limit, step=STEP, most_nodes=MOST_NODES)
            if found is not None and found[1] <= limit:
                return found[0], (prices.bound - found[1]) // STEP
            # Blocks beyond the limit could still make up for it, as long as the total is larger than the limit.
            wider = max(int(limit * WIDEN), int(FIRST_GAP / weights.unit * (family.n_columns + 1)) * STEP)
            limit = wider if found is None else found[1]
    except SearchTooLong:
        return _by_branch_and_bound(weights, slacks), prices.bound // STEP


def _by_branch_and_bound(weights: Weights, slacks: NDArray[np.int64]) -> Partition:
    """HiGHS's integer program; its presolve hangs near 1e5 subsets, and its default relative gap is no proof."""
    family = weights.family
    active = np.flatnonzero(slacks < np.iinfo(np.int64).max)
    gains = weights.values[active] * (weights.unit / (family.n_columns + 1))
    solved = milp(
        -gains,
        constraints=LinearConstraint(cover_matrix(family, active), 1, 1),
        integrality=np.ones(len(active)),
        bounds=Bounds(0, 1),
        options={"presolve": False, "mip_rel_gap": 0},
    )
    if solved.x is None:
        raise ISDEError(f"HiGHS found no partition: {solved.message}")
    return tuple(family[int(i)] for i in active[solved.x > 0.5])
