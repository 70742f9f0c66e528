"""A linear program that grows by rows: HiGHS goes on from its last solution, where SciPy starts again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.subsets import SubsetFamily
from isde.tree_solvers.cuts import AnyCut, Sets

Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""Of HiGHS, for both sides of the program."""

SLACK = 1e-6
"""Of a row that may be left out: it holds by so much, and has no price."""


class NotSolved(Exception):
    """HiGHS gave no optimum."""


class LinearProgram:
    """Largest weight of sets that keep some cuts; each set between 0 and 1, those complete at 1."""

    def __init__(self, subsets: SubsetFamily, sets: Sets, weights: Floats, complete: NDArray[np.bool_]) -> None:
        import highspy

        self._subsets, self.sets, self.cuts = subsets, sets, list[AnyCut]()
        self._highs: Any = highspy.Highs()
        self._infinity, self._optimal = highspy.kHighsInf, highspy.HighsModelStatus.kOptimal
        options = {"output_flag": False, "threads": 1, "solver": "simplex", "random_seed": 0}
        tolerances = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
        for name, value in (options | tolerances).items():
            self._highs.setOptionValue(name, value)
        n = len(weights)
        self._highs.addVars(n, complete.astype(np.float64), np.ones(n))
        # HiGHS's tolerances are absolute, and made for costs of about 1.
        self._unit = 2.0 ** np.floor(np.log2(np.abs(weights).max(initial=0.0) or 1.0))
        self._highs.changeColsCost(n, np.arange(n, dtype=np.int32), -weights / self._unit)

    def add(self, cuts: Sequence[AnyCut]) -> None:
        which, columns, values = self.sets.entries(cuts)
        starts = np.searchsorted(which, np.arange(len(cuts)))
        self._highs.addRows(
            len(cuts),
            np.full(len(cuts), -self._infinity),
            np.array([cut.limit for cut in cuts], dtype=np.float64),
            len(columns),
            starts.astype(np.int32),
            columns.astype(np.int32),
            values.astype(np.float64),
        )
        self.cuts.extend(cuts)

    def passed(self, cuts: Sequence[AnyCut], values: Floats, least: float) -> list[AnyCut]:
        """Those cuts that are new, and that the values of the sets pass by so much."""
        present = set(self.cuts)
        new = [cut for cut in dict.fromkeys(cuts) if cut not in present]
        rows, columns, coefficients = self.sets.entries(new)
        sums = np.bincount(rows, coefficients * values[columns], minlength=len(new))
        return [cut for cut, total in zip(new, sums.tolist(), strict=True) if total - cut.limit >= least / 2]

    def solve(self) -> tuple[Floats, Floats, Floats]:
        """The values of the sets, what is left of their weights after the cuts are paid, and the prices of the cuts."""
        if not self._run():
            self._highs.clearSolver()  # now and then the last solution is no good start
        if not (self._is_solved or self._run()):
            raise NotSolved(f"HiGHS: {self._highs.modelStatusToString(self._highs.getModelStatus())}")
        solution = self._highs.getSolution()
        left, prices = np.array(solution.col_dual), np.array(solution.row_dual)
        # HiGHS minimizes here: of a maximum, some of its methods give prices of the other sign.
        return np.array(solution.col_value), -left * self._unit, -prices * self._unit

    def _run(self) -> bool:
        self._highs.run()
        return self._is_solved

    @property
    def _is_solved(self) -> bool:
        solution = self._highs.getSolution()
        is_optimal = self._highs.getModelStatus() == self._optimal
        return bool(is_optimal and solution.value_valid and solution.dual_valid)

    def forget_slack_rows(self, prices: Floats) -> None:
        """Leave out the cuts that hold by far, if these are many: a row costs time in each solution."""
        held = np.array([cut.limit for cut in self.cuts]) - np.array(self._highs.getSolution().row_value)
        slack = (held > SLACK) & (prices == 0)
        if slack.sum() <= 0.3 * len(self.cuts):
            return
        dropped = np.flatnonzero(slack).astype(np.int32)
        self._highs.deleteRows(len(dropped), dropped)
        self.cuts = [cut for cut, is_slack in zip(self.cuts, slack.tolist(), strict=True) if not is_slack]

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave out all other sets."""
        dropped = np.flatnonzero(~kept).astype(np.int32)
        self._highs.deleteCols(len(dropped), dropped)
        self.sets = Sets(self._subsets, self.sets.positions[kept])
