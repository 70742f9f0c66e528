"""Candidate bandwidths: a grid that is used as it is, or one that grows where its best value is an end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

PAPER_GRID = np.geomspace(0.01, 1, 30)
"""For data scaled to [0, 1]."""

GROWTH_LIMIT = 1000.0
"""How far beyond each end of the default grid a bandwidth is looked for: three decades."""


@dataclass(frozen=True)
class BandwidthGrid:
    """Candidate bandwidths, ascending; `grows` where the ends may be passed by steps of the same ratio."""

    values: NDArray[np.float64]
    grows: bool

    @classmethod
    def of(cls, bandwidths: ArrayLike | None) -> BandwidthGrid:
        """The paper's grid, which grows, or the user's, which is used as it is."""
        if bandwidths is None:
            return cls(PAPER_GRID, grows=True)
        values = np.unique(np.asarray(bandwidths, dtype=np.float64))
        if values.size == 0 or not np.all(np.isfinite(values)) or values[0] <= 0:
            raise ValueError(f"bandwidths must be positive numbers, got {bandwidths!r}.")
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
        """How many steps it may grow on each side."""
        return int(np.log(GROWTH_LIMIT) / np.log(self.ratio)) if self.grows else 0
