"""Prices for the columns: a proof, in integers, of what no partition can outweigh.

Any prices y with  sum of y over S >= W(S)  for every subset S prove that no partition outweighs their sum. The dual
of the linear relaxation gives the lowest such prices; HiGHS computes them in floating point, and here they are
rounded up to integers that satisfy every inequality exactly, whatever the solver's tolerances were.

Where the number of blocks is limited to r, each block pays a fee as well, and r fees belong to the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csc_array, eye_array, hstack

from isde.arrays import FrozenArrays
from isde.errors import ISDEError
from isde.selection import Witness
from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import SubsetFamily

COLUMNS_PER_ROUND = 2000
PRICE_TOLERANCE = 1e-9
COVER_TOLERANCE = 1e-6
STEP = 120
"""Price units to one unit of weight. Tied scores have dual prices with small denominators (1/2, 1/3, ...): these
become whole numbers, and the rounding of d prices stays below one unit of weight, so that a tight bound looks tight."""

NEVER = np.iinfo(np.int64).max
"""The slack of a subset that must not be a block."""

LARGEST_SUM = 1 << 62
"""Prices whose sizes add up to more are not used: sums of prices, fees and weights must stay within 64 bits."""

RAISED_AT_ONCE = 256
"""Subsets looked at one by one, before those that still outweigh their columns are looked for again."""


@dataclass(frozen=True)
class Prices(FrozenArrays):
    """Integer prices, and how far each subset stays below the prices of its columns, in 1/STEP of a weight unit."""

    columns: NDArray[np.int64]  # the price of each column
    bound: int  # no partition weighs more: the sum of the prices, and of the fees of all blocks allowed
    fee: int  # of each block; 0 where their number is not limited
    slacks: NDArray[np.int64]  # price of its columns plus fee minus weight, for each subset; never negative

    def witness(self, weights: Weights) -> Witness:
        """What is worth keeping of them."""
        return Witness(self.columns, self.fee, weights.unit / STEP)


def price_columns(weights: Weights, candidates: NDArray[np.bool_]) -> Prices | None:
    """Lowest prices for the linear relaxation over `candidates`, valid for every subset; None where it is infeasible.

    `candidates` are subsets among which there is a heaviest partition.
    """
    in_nats = weights.unit / (weights.subsets.n_columns + 1)
    dual = _dual_prices(weights, np.flatnonzero(candidates), (weights.values * in_nats).astype(np.float64))
    if dual is None:
        return None
    y = np.rint(dual / in_nats * STEP).astype(np.int64)
    prices = raised(weights, y[:-1], max(int(y[-1]), 0))
    if prices is None:
        raise ISDEError("HiGHS's prices for the linear relaxation are too large for 64 bits: try another solver.")
    return prices


def witnessed(weights: Weights, witness: Witness) -> Prices | None:
    """The prices of a witness, as they are for these weights; None where they are none.

    Weights computed on another machine may differ by a rounding, and now and then so does their unit.
    """
    ratio = witness.unit / (weights.unit / STEP)
    columns, fee = witness.prices, witness.fee
    if len(columns) != weights.subsets.n_columns or not 1 / LARGEST_SUM < ratio < LARGEST_SUM:
        return None
    if ratio != 1:
        columns = np.rint(np.clip(columns * ratio, -LARGEST_SUM, LARGEST_SUM)).astype(np.int64)
        fee = int(min(fee * ratio, LARGEST_SUM))
    return raised(weights, columns, fee)


def raised(weights: Weights, prices: NDArray[np.int64], fee: int) -> Prices | None:
    """Prices that no subset outweighs, by raising those of first columns; None where they leave 64 bits."""
    if weights.max_blocks is None:
        fee = 0  # nothing limits how often it is paid, and the bound holds no fees
    columns = prices.tolist()
    if not _fit(weights, columns, fee):
        return None
    slacks = _slacks(weights, columns, fee)
    lacking = np.flatnonzero(slacks < 0)
    if lacking.size:
        columns = _raise(weights, columns, fee, lacking)
        if columns is None:
            return None
        slacks = _slacks(weights, columns, fee)
    return Prices(np.array(columns, dtype=np.int64), sum(columns) + fee * (weights.max_blocks or 0), fee, slacks)


def _fit(weights: Weights, columns: list[int], fee: int) -> bool:
    return sum(map(abs, columns)) + fee * (weights.max_blocks or 0) < LARGEST_SUM


def _slacks(weights: Weights, columns: list[int], fee: int) -> NDArray[np.int64]:
    """Price of its columns plus fee minus weight, for each subset; `NEVER` for one that must not be a block."""
    subsets, prices = weights.subsets, np.array(columns, dtype=np.int64)
    slacks = np.empty(len(subsets), dtype=np.int64)
    for size in range(1, subsets.max_size + 1):
        where = subsets.of_size(size)
        slacks[where] = fee - STEP * weights.values[where]
        for column in subsets.members(size).T:  # three times as fast as a sum over rows as short as these
            slacks[where] += prices[column]
    slacks[weights.values == FORBIDDEN] = NEVER
    return slacks


def _raise(weights: Weights, columns: list[int], fee: int, lacking: NDArray[np.intp]) -> list[int] | None:
    """Go through the subsets that outweigh their columns: where one still does, its first column pays the rest."""
    subsets = weights.subsets
    while lacking.size:
        for position in lacking[:RAISED_AT_ONCE].tolist():
            subset = subsets[position]
            rest = STEP * int(weights.values[position]) - fee - sum(columns[c] for c in subset)
            columns[subset[0]] += max(rest, 0)
        if not _fit(weights, columns, fee):
            return None
        lacking = lacking[RAISED_AT_ONCE:]
        prices = np.array([*columns, 0], dtype=np.int64)  # the last one is for the padding, -1
        slacks = prices[subsets.padded_members(lacking)].sum(axis=1) + fee - STEP * weights.values[lacking]
        lacking = lacking[slacks < 0]
    return columns


def cover_matrix(subsets: SubsetFamily, active: NDArray[np.intp]) -> csc_array:
    """The d x len(active) matrix of the set-partitioning problem: entry (c, S) is 1 where column c is in S."""
    members = subsets.padded_members(active)
    filled = members >= 0
    starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    return csc_array((np.ones(starts[-1]), members[filled], starts), shape=(subsets.n_columns, len(active)))


def _dual_prices(weights: Weights, allowed: NDArray[np.intp], gains: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Dual solution of  max gains x,  each column covered once,  x >= 0: prices of the columns, then the fee.

    By column generation: the linear program starts with the single columns and the subsets of largest gain, and is
    solved again with the subsets that its prices undercut the most, until there are none.
    """
    order = allowed[np.argsort(-gains[allowed], kind="stable")]
    active = np.union1d(allowed[allowed < weights.subsets.n_columns], order[:COLUMNS_PER_ROUND])
    if (weights.values[: weights.subsets.n_columns] == FORBIDDEN).any() or weights.max_blocks is not None:
        # Perhaps no choice of these covers all columns: add subsets until one does, or it is proved that none can.
        _, active, uncovered = _generate(weights, allowed, np.zeros_like(gains), active, may_uncover=True)
        if uncovered > COVER_TOLERANCE:
            return None
    return _generate(weights, allowed, gains, active, may_uncover=False)[0]


def _generate(
    weights: Weights,
    allowed: NDArray[np.intp],
    gains: NDArray[np.float64],
    active: NDArray[np.intp],
    *,
    may_uncover: bool,
) -> tuple[NDArray[np.float64], NDArray[np.intp], float]:
    """Prices and fee, the subsets in the linear program at the end, and how many columns it left uncovered."""
    while True:
        y, uncovered = _solve(weights, active, gains, may_uncover=may_uncover)
        excess = gains[allowed] - weights.subsets.sum_over_members(y[:-1])[allowed] - y[-1]
        worst = np.argsort(-excess, kind="stable")[:COLUMNS_PER_ROUND]
        entering = np.setdiff1d(allowed[worst[excess[worst] > PRICE_TOLERANCE]], active)
        if entering.size == 0 or (may_uncover and uncovered <= COVER_TOLERANCE):
            return y, active, uncovered
        active = np.union1d(active, entering)


def _solve(
    weights: Weights, active: NDArray[np.intp], gains: NDArray[np.float64], *, may_uncover: bool
) -> tuple[NDArray[np.float64], float]:
    d, cost = weights.subsets.n_columns, -gains[active]
    cover = cover_matrix(weights.subsets, active)
    if may_uncover:  # one nat for each column left out
        cover, cost = hstack([cover, eye_array(d)], format="csc"), np.append(cost, np.ones(d))
    limit: dict[str, Any] = {}
    if weights.max_blocks is not None:
        blocks = np.zeros((1, len(cost)))
        blocks[0, : len(active)] = 1
        limit = {"A_ub": blocks, "b_ub": [weights.max_blocks]}
    solved = linprog(cost, A_eq=cover, b_eq=np.ones(d), bounds=(0, None), method="highs", **limit)
    if solved.status != 0:
        raise ISDEError(f"HiGHS could not solve the linear relaxation: {solved.message}")
    fee = solved.ineqlin.marginals if limit else [0.0]
    return -np.append(solved.eqlin.marginals, fee), float(solved.x[len(active) :].sum())
