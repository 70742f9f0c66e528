"""A table of scores with what is demanded of its partitions, as an exact problem for solvers."""

from __future__ import annotations

from math import fsum, ldexp

import numpy as np

from isde.errors import InputError
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.solvers.constraints import Constraints, Demands, combine, conflict, rules_of
from isde.solvers.registry import solver_named
from isde.solvers.solver import Proved, Solver, Task
from isde.solvers.weights import FINEST_BITS, FORBIDDEN, Weights, gains_of, integer_weights

JUDGE = "milp"
"""The solver that takes every problem: it says whether demands can be met."""


class Problem:
    """Which partition, of those that meet the demands, has the largest (`sense="min"`: smallest) objective."""

    def __init__(
        self, scores: SubsetScores, max_block_size: int | None, sense: str, constraints: Constraints | None
    ) -> None:
        self.scores = scores if max_block_size is None else scores.restrict(max_block_size)
        self.sense = sense
        self.gains = gains_of(self.scores, sense)
        self.rules = rules_of(constraints or Constraints(), self.scores.names)
        self.demands = combine(self.rules, self.scores.subsets)

    def task(self, n: int) -> Task:
        """What finding its `n` best partitions asks of a solver."""
        return Task(self.scores.n_columns, self.scores.max_block_size, self.demands.max_blocks, n)

    @property
    def floor(self) -> float | None:
        """What the best partition gains at least, as far as that is known beforehand: columns alone gain nothing."""
        d = self.scores.n_columns
        alone_allowed = self.demands.max_blocks is None and self.demands.allowed[:d].all()
        return 0.0 if alone_allowed and np.isfinite(self.gains[:d]).all() else None

    def weights(self, floor: float | None) -> Weights:
        """Integer weights, exact for partitions that gain at least `floor`."""
        return integer_weights(
            self.scores.subsets,
            self.gains,
            floor=floor,
            allowed=self.demands.allowed,
            max_blocks=self.demands.max_blocks,
        )

    def solved_by(self, solver: Solver, n: int) -> list[tuple[Proved, float]]:
        """The `n` best partitions in order, each with the distance to its bound in nats.

        Weights are exact down to a gain. Where the partitions found reach below, they show how deep to go: the true
        ones are no worse.
        """
        floor = self.floor
        while True:
            weights = self.weights(floor)
            found = solver.best(weights, n)
            if not found:
                raise InputError(conflict(self.rules, self.scores.subsets, self._is_possible))
            gains = {one.partition: self._block_gains(one.partition) for one in found}
            lowest = min(map(fsum, gains.values()))
            if (lowest == -np.inf) if floor is None else (lowest >= floor):
                break
            floor = None if lowest == -np.inf else lowest
        found.sort(key=lambda one: _place(one.partition, gains[one.partition]))
        return [(one, weights.nats(weights.of(one.partition), one.bound)) for one in found]

    def gain(self, partition: Partition) -> float:
        """What a partition adds to the columns alone, charges taken off."""
        return fsum(self._block_gains(partition))

    def meets_demands(self, partition: Partition) -> bool:
        """Whether a partition is one of those looked for."""
        most = self.demands.max_blocks
        allowed = all(self.demands.allowed[self.scores.subsets.index(block)] for block in partition)
        return allowed and (most is None or len(partition) <= most)

    def _block_gains(self, partition: Partition) -> list[float]:
        return [float(self.gains[self.scores.subsets.index(block)]) for block in partition]

    def _is_possible(self, demands: Demands) -> bool:
        values = np.where(demands.allowed, 1, FORBIDDEN)
        return bool(solver_named(JUDGE).best(Weights(self.scores.subsets, values, 1.0, demands.max_blocks)))


def _place(partition: Partition, gains: list[float]) -> tuple[int, int, int, Partition]:
    """A key that sorts as the solvers do, in the finest unit however far the scores of the partitions lie apart."""
    finite = [gain for gain in gains if gain > -np.inf]
    units = sum(round(ldexp(gain, FINEST_BITS)) for gain in finite)
    return len(gains) - len(finite), -units, -len(partition), partition
