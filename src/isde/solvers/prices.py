"""Prices for the columns: a proof, in integers, of what no partition can outweigh.

Any prices y with  sum of y over S >= W(S)  for every subset S prove that no partition outweighs their sum. The dual
of the linear relaxation gives the lowest such prices; HiGHS computes them in floating point, and here they are
rounded up to integers that satisfy every inequality exactly, whatever the solver's tolerances were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csc_array

from isde.errors import ISDEError
from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import SubsetFamily

COLUMNS_PER_ROUND = 2000
PRICE_TOLERANCE = 1e-9
STEP = 120
"""Price units to one unit of weight. Tied scores have dual prices with small denominators (1/2, 1/3, ...): these
become whole numbers, and the rounding of d prices stays below one unit of weight, so that a tight bound looks tight."""


@dataclass(frozen=True)
class Prices:
    """Integer prices, and how far each subset stays below the prices of its columns, in 1/STEP of a weight unit."""

    bound: int  # no partition weighs more: the sum of the prices
    slacks: NDArray[np.int64]  # price of its columns minus weight, for each subset; never negative


def price_columns(weights: Weights, candidates: NDArray[np.bool_]) -> Prices:
    """Lowest prices for the linear relaxation over `candidates`, valid for every subset."""
    family = weights.family
    in_nats = weights.unit / (family.n_columns + 1)
    allowed = np.flatnonzero(candidates)
    gains = (weights.values * in_nats).astype(np.float64)
    y = _dual_prices(weights, allowed, gains)
    prices = np.rint(y / in_nats * STEP).astype(np.int64)
    slacks = np.empty(len(family), dtype=np.int64)
    for size in range(1, family.max_size + 1):
        where = family.of_size(size)
        _raise_prices(family.members(size), weights.values[where], STEP, prices)
    for size in range(1, family.max_size + 1):
        where = family.of_size(size)
        slacks[where] = prices[family.members(size)].sum(axis=1) - STEP * weights.values[where]
    slacks[weights.values == FORBIDDEN] = np.iinfo(np.int64).max
    return Prices(int(prices.sum()), slacks)


def _dual_prices(weights: Weights, allowed: NDArray[np.intp], gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Dual solution of  max gains x,  each column covered once,  x >= 0, by column generation.

    The linear program starts with the single columns and the subsets of largest gain, and is solved again with the
    subsets that its prices undercut the most, until there are none.
    """
    order = allowed[np.argsort(-gains[allowed], kind="stable")]
    singles = np.arange(weights.family.n_columns)
    active = np.union1d(singles[weights.values[singles] != FORBIDDEN], order[:COLUMNS_PER_ROUND])
    while True:
        y = _solve_dual(weights, active, gains)
        excess = _excess(weights, allowed, gains, y)
        worst = np.argsort(-excess, kind="stable")[:COLUMNS_PER_ROUND]
        entering = np.setdiff1d(allowed[worst[excess[worst] > PRICE_TOLERANCE]], active)
        if entering.size == 0:
            return y
        active = np.union1d(active, entering)


def _solve_dual(weights: Weights, active: NDArray[np.intp], gains: NDArray[np.float64]) -> NDArray[np.float64]:
    ones = np.ones(weights.family.n_columns)
    cover = cover_matrix(weights.family, active)
    solved = linprog(-gains[active], A_eq=cover, b_eq=ones, bounds=(0, None), method="highs")
    if solved.status != 0:
        raise ISDEError(f"HiGHS could not solve the linear relaxation: {solved.message}")
    prices: NDArray[np.float64] = -solved.eqlin.marginals
    return prices


def cover_matrix(family: SubsetFamily, active: NDArray[np.intp]) -> csc_array:
    """The d x len(active) matrix of the set-partitioning problem: entry (c, S) is 1 where column c is in S."""
    subsets = [family[int(i)] for i in active]
    rows = np.array([c for subset in subsets for c in subset])
    starts = np.concatenate([[0], np.cumsum([len(subset) for subset in subsets])])
    return csc_array((np.ones(len(rows)), rows, starts), shape=(family.n_columns, len(active)))


def _excess(
    weights: Weights, allowed: NDArray[np.intp], gains: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """gains minus price of each allowed subset."""
    return gains[allowed] - weights.family.sum_over_members(y)[allowed]


@njit(cache=True, nogil=True)
def _raise_prices(
    members: NDArray[np.int16],  # in: subsets of one size
    weights: NDArray[np.int64],  # in: their weights
    step: int,  # in: price units to one unit of weight
    prices: NDArray[np.int64],  # in, out: raised until no subset outweighs its columns
) -> Any:
    size = members.shape[1]
    for row in range(len(members)):
        excess = step * weights[row]
        for i in range(size):
            excess -= prices[members[row, i]]
        if excess > 0:
            prices[members[row, 0]] += excess
