"""A selected partition and the proof that it is best."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf

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
    bound: float  # no partition scores more than this (with sense="min": less)
    solver: str  # which solver found it

    @property
    def gap(self) -> float:
        """Distance between bound and score; 0 where both are -inf, so that every partition is."""
        return 0.0 if self.score == self.bound else abs(self.bound - self.score)

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
    bound = score if score == -inf else score + (gap if sense == "max" else -gap)
    selection = Selection(partition, score, bound, solver)
    if not selection.is_optimal:
        raise UnprovedPartition(
            f"Solver {solver!r} found a partition that scores {score:.9g}, and proved only that none passes "
            f"{bound:.9g}: try another solver.",
            selection,
        )
    return selection
