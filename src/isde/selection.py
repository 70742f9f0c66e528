"""A selected partition, its place among all of them, and the proof of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum, inf, isfinite, isnan, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isde.archive import Arrays
from isde.arrays import FrozenArrays
from isde.errors import UnprovedPartition
from isde.partitions import Partition, canonical_partition
from isde.scores import SubsetScores

PROOF_TOLERANCE = 1e-9
"""Nats. A bound this close to the score proves it: float64 sums of a few dozen scores carry 1e-13."""

LARGEST_FEE = 1 << 62

Proof = Literal["proved", "not checked again", "not proved"]


@dataclass(frozen=True, eq=False)
class Witness(FrozenArrays):
    """Integer prices of the columns, from which a bound follows: no subset outweighs the prices of its columns."""

    prices: NDArray[np.int64]  # of each column
    fee: int  # of each block, where the number of blocks is limited; otherwise 0
    unit: float  # nats that (number of columns + 1) price units stand for

    def __post_init__(self) -> None:
        object.__setattr__(self, "prices", np.array(self.prices))
        super().__post_init__()
        whole = self.prices.ndim == 1 and self.prices.dtype == np.int64
        if not whole or not 0 <= self.fee < LARGEST_FEE or not (isfinite(self.unit) and self.unit > 0):
            raise ValueError("A witness has a whole price for each column, a fee of at least 0 and a unit above 0.")


@dataclass(frozen=True)
class Selection:
    """A partition, its score, and a bound that no partition passes but those that stand before it."""

    partition: Partition  # blocks in canonical order
    score: float  # sum of the block scores, nats per row
    bound: float  # no partition, but those of a lower rank, has a larger objective (with sense="min": a smaller one)
    solver: str  # which solver found it
    objective: float = nan  # the score minus what chance is charged; the score itself unless given
    rank: int = 1  # its place: 1 is the best, 2 the runner-up
    witness: Witness | None = field(default=None, compare=False, repr=False)  # prices; None: the proof was a search
    was_proved: bool = False  # before it was saved, which nobody need believe

    def __post_init__(self) -> None:
        if isnan(self.objective):
            object.__setattr__(self, "objective", self.score)
        if self.rank < 1:
            raise ValueError(f"rank={self.rank} must be at least 1.")

    @property
    def gap(self) -> float:
        """Distance between bound and objective; 0 where both are -inf, so that every partition is."""
        return 0.0 if self.objective == self.bound else abs(self.bound - self.objective)

    @property
    def is_proved(self) -> bool:
        """Whether the bound proves its place: none is better but the `rank - 1` before it."""
        return self.gap <= PROOF_TOLERANCE

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved to be the best; a runner-up never is."""
        return self.rank == 1 and self.is_proved

    @property
    def proof(self) -> Proof:
        """How its proof stands; "not checked again" is one that was loaded, and would take long to check."""
        if self.is_proved:
            return "proved"
        return "not checked again" if self.was_proved else "not proved"

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        """What a file keeps beside the partition: no gap, which could only be believed, but what proves it."""
        header: dict[str, Any] = {"solver": self.solver, "rank": self.rank}
        if self.witness is None:
            return header, {}
        return header | {"witness": {"fee": self.witness.fee, "unit": self.witness.unit}}, {
            "prices": self.witness.prices
        }

    @classmethod
    def from_archive(cls, partition: Partition, header: Mapping[str, Any], arrays: Arrays) -> Selection:
        """A claim: nothing is known of its score and its place before both were checked (`solvers.proofs`)."""
        saved = header.get("witness")  # files of earlier versions have none, and a gap that is not believed
        witness = None if saved is None else Witness(arrays["prices"], int(saved["fee"]), float(saved["unit"]))
        return cls(partition, nan, inf, str(header["solver"]), rank=int(header.get("rank", 1)), witness=witness)


def certify(
    scores: SubsetScores,
    partition: Partition,
    gap: float,
    solver: str,
    *,
    sense: str = "max",
    rank: int = 1,
    witness: Witness | None = None,
) -> Selection:
    """Trust no solver: check that each column stands in one block, and add the score up again from the table.

    `gap` is how far below the bound the solver proved its partition to be. Raises `UnprovedPartition`, with the
    selection, where the proof is missing.
    """
    partition = canonical_partition(partition, scores.n_columns)
    score = fsum(scores[block] for block in partition)
    objective = score - fsum(scores.charges[scores.subsets.index(block)] for block in partition)
    selection = Selection(partition, score, _bound(objective, gap, sense), solver, objective, rank, witness)
    if not selection.is_proved:
        raise UnprovedPartition(
            f"Solver {solver!r} found a partition that reaches {objective:.9g}, and proved only that none passes "
            f"{selection.bound:.9g}: try another solver.",
            selection,
        )
    return selection


def _bound(objective: float, gap: float, sense: str) -> float:
    if objective == -inf:  # then all partitions are, or little is known
        return objective if gap <= PROOF_TOLERANCE else inf
    return objective + (gap if sense == "max" else -gap)
