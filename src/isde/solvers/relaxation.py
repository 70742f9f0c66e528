"""The linear relaxation of a short list of subsets, tightened by cuts, and the bound it proves in integers.

A cut is a set of three columns: at most one block of a partition holds two of them or all three. Halves of three pairs
of these columns pass that, and this is how most of what a relaxation promises too much comes about.

As with the prices of columns alone (`prices`), any prices y of columns and p >= 0 of cuts, and a fee, with

    sum of y over S  +  sum of p over the cuts that S holds two columns of  +  fee  >=  W(S)

for every subset S of the list prove that no partition into these subsets outweighs the sum of all y, of all p and of
the fees of all blocks allowed. HiGHS computes them in floating point, and the inequality is made true in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from isde.arrays import FrozenArrays, Mask
from isde.solvers.prices import COVER_TOLERANCE, LARGEST_SUM, PRICE_TOLERANCE, STEP
from isde.solvers.weights import Weights

Numbers = NDArray[np.intp]
Cuts = NDArray[np.intp]
"""The columns of each cut, shape (number of cuts, 3)."""

NO_CUTS: Cuts = np.empty((0, 3), dtype=np.intp)
COLUMNS_PER_ROUND = 500
CUTS_PER_ROUND = 40
MOST_ROUNDS = 20
"""Of cuts: after each the linear program is solved again."""

WORTHWHILE = 0.02
"""Of the distance to what is known, that a round of cuts must close for another one to follow."""

VIOLATED = 0.02
"""Blocks by which a cut is passed before it is worth a row."""

MOST_CUT_COLUMNS = 100
"""Columns of which all sets of three are looked at: the first ones that blocks share."""

FINE = 1 << 30
"""Prices that prove that there is no partition are multiples of 1/FINE: nothing else is at stake there."""

INFEASIBLE = 2
"""scipy.optimize.linprog's status."""


class NotSolved(Exception):
    """HiGHS failed, or its prices leave 64 bits: nothing is known."""


class NoPartition(Exception):
    """It is proved that there is no partition into the subsets of a list."""


@dataclass(frozen=True)
class Relaxed(FrozenArrays):
    """What the relaxation of a list of subsets says; slacks and bound are in 1/STEP of a weight unit."""

    bound: int  # no partition into them weighs more
    slacks: NDArray[np.int64]  # of each of them: a partition that holds it stays below the bound by at least this
    shares: NDArray[np.float64]  # of each of them: how much of it the relaxation chooses
    cuts: Cuts  # those with a price
    fee: int  # of each block; 0 where their number is not limited


class Relaxation:
    """The linear programs over lists of candidates of one problem; candidates are known by their number."""

    def __init__(self, weights: Weights, candidates: Numbers) -> None:
        self.d, self.max_blocks = weights.subsets.n_columns, weights.max_blocks
        self.members = weights.subsets.padded_members(candidates)
        filled = self.members >= 0
        self.holds = np.zeros((len(candidates), self.d), dtype=np.bool_)  # whether a candidate holds a column
        self.holds[np.nonzero(filled)[0], self.members[filled]] = True
        self._values = weights.values[candidates]
        self._in_nats = weights.unit / (self.d + 1)
        self._gains = (self._values * self._in_nats).astype(np.float64)

    def solve(self, listed: Numbers, cuts: Cuts, known: int) -> Relaxed:
        """The bound for partitions into the listed candidates, those first that are likely to be needed.

        The cuts are the ones to start with. A bound below `known` is low enough: no more cuts are looked for. Raises
        `NoPartition` and `NotSolved`.
        """
        active: Numbers = np.arange(min(len(listed), COLUMNS_PER_ROUND))
        found: Relaxed | None = None
        for _ in range(MOST_ROUNDS):
            last = found
            found, active = self._solve_once(listed, active, cuts)
            closed = last is None or last.bound - found.bound > WORTHWHILE * (last.bound - known)
            more = self._violated(listed, found.shares) if closed and found.bound >= known else NO_CUTS
            if not len(more):
                break
            cuts = np.concatenate([found.cuts, more])
        assert found is not None
        return found

    def without_cuts(self, listed: Numbers) -> Relaxed:
        """The bound that prices of the columns alone prove: slacks of blocks add up to the distance from it."""
        return self._solve_once(listed, np.arange(min(len(listed), COLUMNS_PER_ROUND)), NO_CUTS)[0]

    def _solve_once(self, listed: Numbers, active: Numbers, cuts: Cuts) -> tuple[Relaxed, Numbers]:
        """The bound with these cuts, and the candidates in the last linear program."""
        dual, shares, active = self._generate(listed, active, cuts)
        prices = np.rint(dual / self._in_nats * STEP)
        bound, slacks, of_cuts, fee = self._in_integers(listed, prices, STEP * self._values[listed], cuts)
        return Relaxed(bound, slacks, shares, cuts[of_cuts > 0], fee), active

    def _generate(
        self, listed: Numbers, active: Numbers, cuts: Cuts
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Numbers]:
        """Prices of columns and cuts, and the fee; the shares of the listed; and those in the last linear program.

        By column generation from the active ones, as in `prices`.
        """
        if not self.holds[listed].any(axis=0).all():
            raise NoPartition
        rows, gains = self._rows(listed, cuts), self._gains[listed]
        while True:
            solved = self._linear_program(rows, gains, active)
            if solved.status == INFEASIBLE:
                active = self._made_feasible(listed, rows, active, cuts)
                continue
            dual = _dual(solved)
            entering = _entering(gains - rows.T @ dual, active)
            if entering.size == 0:
                break
            active = np.union1d(active, entering)
        shares = np.zeros(len(listed))
        shares[active] = solved.x
        return dual, shares, active

    def _made_feasible(self, listed: Numbers, rows: Any, active: Numbers, cuts: Cuts) -> Numbers:
        """Active ones and others, such that they cover all columns; `NoPartition` where it is proved that none can."""
        while True:
            solved = self._linear_program(rows, np.zeros(len(listed), dtype=np.float64), active, may_uncover=True)
            if solved.x[len(active) :].sum() <= COVER_TOLERANCE:
                return active
            dual = _dual(solved)
            entering = _entering(-(rows.T @ dual), active)
            if entering.size == 0:
                break
            active = np.union1d(active, entering)
        nothing = np.zeros(len(listed), dtype=np.int64)
        bound, *_ = self._in_integers(listed, np.rint(dual * FINE), nothing, cuts)
        raise NoPartition if bound < 0 else NotSolved  # any partition would weigh 0

    def _rows(self, listed: Numbers, cuts: Cuts) -> Any:
        """The constraints on the listed: a row for each column, for each cut, and for the number of blocks."""
        blocks = np.full((1, len(listed)), float(self.max_blocks is not None))
        parts = [self.holds[listed].T, self._counted(listed, cuts), blocks]
        return vstack([csr_array(part, dtype=np.float64) for part in parts], format="csc")

    def _counted(self, listed: Numbers, cuts: Cuts) -> Mask:
        """Whether each cut counts each of the listed: whether that holds two of its columns."""
        a, b, c = (self.holds[listed[None, :], column[:, None]] for column in cuts.T)
        return a & b | a & c | b & c

    def _linear_program(
        self, rows: Any, gains: NDArray[np.float64], active: Numbers, *, may_uncover: bool = False
    ) -> Any:
        """The largest gain of the active ones; perhaps with columns left uncovered, one nat for each."""
        d, rows, cost = self.d, rows[:, active], -gains[active]
        if may_uncover:
            left_out = vstack([eye_array(d), csr_array((rows.shape[0] - d, d))], format="csc")
            rows, cost = hstack([rows, left_out], format="csc"), np.append(cost, np.ones(d))
        most = np.ones(rows.shape[0] - d)
        most[-1] = d if self.max_blocks is None else self.max_blocks
        solved = linprog(
            cost, A_eq=rows[:d], b_eq=np.ones(d), A_ub=rows[d:], b_ub=most, bounds=(0, None), method="highs"
        )
        if solved.status not in (0, INFEASIBLE):
            raise NotSolved(solved.message)
        return solved

    def _in_integers(
        self, listed: Numbers, prices: NDArray[np.float64], values: NDArray[np.int64], cuts: Cuts
    ) -> tuple[int, NDArray[np.int64], NDArray[np.int64], int]:
        """The bound that prices prove once no listed subset outweighs them; slacks, prices of cuts, and the fee."""
        d, most = self.d, self.max_blocks or 0
        if not np.abs(prices).sum() + abs(prices[-1]) * most < LARGEST_SUM:
            raise NotSolved("The prices leave 64 bits.")
        whole = prices.astype(np.int64)
        columns = np.append(whole[:d], 0)  # the last one is for the padding, -1
        of_cuts, fee = np.maximum(whole[d:-1], 0), max(int(whole[-1]), 0) if most else 0
        members = self.members[listed]
        slacks = columns[members].sum(axis=1) + of_cuts @ self._counted(listed, cuts) + fee - values
        raised = 0
        for number in np.flatnonzero(slacks < 0).tolist():
            rest = max(-int(slacks[number]), 0)  # its first column pays it, for every subset that holds that column
            slacks[self.holds[listed, members[number, 0]]] += rest
            raised += rest
            if raised >= LARGEST_SUM:
                raise NotSolved("The prices leave 64 bits.")
        return int(columns.sum()) + raised + int(of_cuts.sum()) + fee * most, slacks, of_cuts, fee

    def _violated(self, listed: Numbers, shares: NDArray[np.float64]) -> Cuts:
        """The cuts that the shares pass the most."""
        split = np.flatnonzero((shares > COVER_TOLERANCE) & (shares < 1 - COVER_TOLERANCE))
        columns = np.flatnonzero(self.holds[listed[split]].any(axis=0))[:MOST_CUT_COLUMNS]
        if len(columns) < 3:
            return NO_CUTS
        holds, part = self.holds[np.ix_(listed[split], columns)].astype(np.float64), shares[split]
        pairs = (holds * part[:, None]).T @ holds
        triples = np.einsum("s,si,sj,sk->ijk", part, holds, holds, holds, optimize=True)
        i, j, k = np.array(list(combinations(range(len(columns)), 3)), dtype=np.intp).T
        # A subset with all three columns stands in three pairs, and counts once.
        passed = pairs[i, j] + pairs[i, k] + pairs[j, k] - 2 * triples[i, j, k] - 1
        worst = np.argsort(-passed, kind="stable")[:CUTS_PER_ROUND]
        worst = worst[passed[worst] > VIOLATED]
        return columns[np.column_stack([i, j, k])[worst]]


def _dual(solved: Any) -> NDArray[np.float64]:
    return -np.append(solved.eqlin.marginals, solved.ineqlin.marginals)


def _entering(excess: NDArray[np.float64], active: Numbers) -> Numbers:
    """The candidates that outweigh their prices the most, of those that are not yet active."""
    worst = np.argsort(-excess, kind="stable")[:COLUMNS_PER_ROUND]
    return np.setdiff1d(worst[excess[worst] > PRICE_TOLERANCE], active)
