"""A selected partition and the proof that it is best."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, isnan, nan

from isde.errors import UnprovedPartition
from isde.partitions import Partition, canonical_partition
from isde.scores import SubsetScores

PROOF_TOLERANCE = 1e-9
"""Nats. A bound this close to the score proves it: float64 sums of a few dozen scores carry 1e-13."""


@dataclass(frozen=True)
class Selection:
    """A partition, its score, and a bound that no partition passes."""

    partition: Partition  # blocks in canonical order
    score: float  # sum of the block scores, nats per row
    bound: float  # no partition has a larger objective than this (with sense="min": a smaller one)
    solver: str  # which solver found it
    objective: float = nan  # the score minus what chance is charged; the score itself unless given

    def __post_init__(self) -> None:
        if isnan(self.objective):
            object.__setattr__(self, "objective", self.score)

    @property
    def gap(self) -> float:
        """Distance between bound and objective; 0 where both are -inf, so that every partition is."""
        return 0.0 if self.objective == self.bound else abs(self.bound - self.objective)

    @property
    def is_optimal(self) -> bool:
        """Whether the bound proves the partition best."""
        return self.gap <= PROOF_TOLERANCE


def certify(scores: SubsetScores, partition: Partition, gap: float, solver: str, *, sense: str = "max") -> Selection:
    """Trust no solver: check that each column stands in one block, and add the score up again from the table.

    `gap` is how far below the bound the solver proved its partition to be. Raises `UnprovedPartition`, with the
    selection, where the proof is missing.
    """
    partition = canonical_partition(partition, scores.n_columns)
    score = fsum(scores[block] for block in partition)
    objective = score - fsum(scores.charges[scores.subsets.index(block)] for block in partition)
    bound = objective if score == -inf else objective + (gap if sense == "max" else -gap)
    selection = Selection(partition, score, bound, solver, objective)
    if not selection.is_optimal:
        raise UnprovedPartition(
            f"Solver {solver!r} found a partition that reaches {objective:.9g}, and proved only that none passes "
            f"{bound:.9g}: try another solver.",
            selection,
        )
    return selection
