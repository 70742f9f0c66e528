"""Candidate bandwidths: a grid that is used as it is, or one that grows where its best value is an end.

Kernels that keep the normal. On normal scores a kernel of bandwidth h around c is N(sqrt(1 - h^2) c, h^2), not
N(c, h^2): smoothed so (Mehler's kernel, the transition of an Ornstein-Uhlenbeck process), standard normal columns stay
standard normal at any bandwidth, and h = 1 is independence itself. The plain kernel widens each column to 1 + h^2,
which costs a pair about as much as weak dependence is worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isde.arrays import FrozenArrays

PAPER_GRID = np.geomspace(0.01, 1, 30)
"""For data scaled to [0, 1]."""

NORMAL_GRID = np.array([0.24, 0.33, 0.45, 0.6, 0.75, 0.87, 0.95, 1.0])
"""For normal scores. Narrower kernels only where the narrowest is the best, wider than 1 there is nothing."""

NARROWEST, WIDEST = 1e-17, 1e17
"""Whose squares, and what these divide, stay in float32: beyond, scores of subsets were wrong without a word."""

GROWTH_LIMIT = 1000.0
"""How far beyond each end of a grid that grows a bandwidth is looked for: three decades."""


@dataclass(frozen=True)
class BandwidthGrid(FrozenArrays):
    """Candidate bandwidths, ascending; `grows` where the ends may be passed by steps of the same ratio."""

    values: NDArray[np.float64]
    grows: bool
    keeps_normal: bool = False  # kernels that leave standard normal columns as they are; no bandwidth is above 1

    @classmethod
    def of_normal_scores(cls) -> BandwidthGrid:
        return cls(NORMAL_GRID, grows=True, keeps_normal=True)

    @classmethod
    def of(cls, bandwidths: ArrayLike | None) -> BandwidthGrid:
        """The paper's grid, which grows, or the user's, which is used as it is."""
        if bandwidths is None:
            return cls(PAPER_GRID, grows=True)
        values = np.unique(np.asarray(bandwidths, dtype=np.float64))
        if values.size == 0 or not np.all(np.isfinite(values)) or values[0] <= 0:
            raise ValueError(f"bandwidths must be positive numbers, got {bandwidths!r}.")
        if values[0] < NARROWEST or values[-1] > WIDEST:
            raise ValueError(
                f"bandwidths from {values[0]:.3g} to {values[-1]:.3g} have squares that leave float32: they must lie "
                f"between {NARROWEST:g} and {WIDEST:g}; rescale the columns, or give them in other units."
            )
        return cls(values, grows=False)

    @property
    def ratio(self) -> float:
        return float(self.values[1] / self.values[0])

    def step(self, k: int) -> float:
        """The grid continued: step(0) is the first value, step(-1) the one below it, and so on."""
        if 0 <= k < len(self.values):
            return float(self.values[k])
        edge = self.values[0] if k < 0 else self.values[-1]
        return float(edge * self.ratio ** (k if k < 0 else k - len(self.values) + 1))

    @property
    def reach(self) -> int:
        """How many steps it may grow downwards."""
        return int(np.log(GROWTH_LIMIT) / np.log(self.ratio)) if self.grows else 0

    @property
    def reach_above(self) -> int:
        """How many steps it may grow upwards."""
        return 0 if self.keeps_normal else self.reach
