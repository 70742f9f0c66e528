"""A column turned into normal scores and back: monotone rational-quadratic splines (Gregory and Delbourgo).

The spline T meets z(x) = Phi^-1(F(x)) and its slope f(x) / phi(z) at its knots, F and f those of a mixture in one
column. Between knots it is a ratio of quadratics, so T, its slope and its inverse have closed forms; beyond the last
knots it is linear. A density g of scores becomes  g(T(x)) T'(x), which integrates to exactly one whatever the knots:
they decide how normal the scores are, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from isde.arrays import FrozenArrays, Vector

QUANTILES = 33
"""Of the rows: knots to start from."""

TAILS = np.array([-10.0, -7.0, -5.0, -4.0, 4.0, 5.0, 7.0, 10.0])
"""Standard deviations from the mean: knots where there are no rows. The slope at the last one is that of the widest
Gaussian, so that a tail is never narrower than its own."""

ROUNDS = 10
"""Of halving, at most, where the spline is not close enough: a bin ends at a thousandth of its width."""

CLOSE, CLOSE_SLOPE = 0.003, 0.03
"""Scores, and logarithms of slopes, by which a spline may miss the mixture in the middle of two knots.

Three times as much costs ten blocks of levine32_h2 0.007 nats; a third of it gains nothing.
"""

CELLS, REACH = 4, 6.5
"""Centres within a quarter of a bandwidth count as one; kernels end at so many bandwidths."""

MOST_KNOTS = 1000
"""Enough for some dozens of narrow spikes; where there are more, the spline goes through the midst of them."""

LEAST_STEP = 1e-13
"""Between scores at knots: rounding must not make a bin of nothing."""

FARTHEST_SCORE = 1e100
"""Scores. A row farther out counts as if it were here, so that squares stay in float64."""


Knots = tuple[Vector, Vector, Vector]
"""Places, scores and slopes."""

Cells = tuple[Vector, Vector, Vector]
"""Numbers of cells that hold rows, the means of these, and their shares of all rows."""


@dataclass(frozen=True)
class Spline(FrozenArrays):
    """An increasing function through (knots, values) with the slopes given, linear beyond the last knots."""

    knots: Vector
    values: Vector
    slopes: Vector

    def forward(self, x: Vector) -> tuple[Vector, Vector]:
        """T(x) and log T'(x)."""
        k, width, height, left, right = self._bins(x, self.knots)
        t = np.clip((x - self.knots[k]) / width, 0.0, 1.0)  # so that the slope beyond the last knots is theirs
        u = t * (1 - t)
        below = 1 + (left + right - 2) * u
        z = self.values[k] + height * (t * t + left * u) / below
        log_slope = np.log(right * t * t + 2 * u + left * (1 - t) ** 2) - 2 * np.log(below) + np.log(height / width)
        beyond = x - np.clip(x, self.knots[0], self.knots[-1])
        with np.errstate(over="ignore"):
            z += np.where(beyond < 0, self.slopes[0], self.slopes[-1]) * beyond
        return np.clip(z, -FARTHEST_SCORE, FARTHEST_SCORE), log_slope

    def inverse(self, z: Vector) -> Vector:
        """x with T(x) = z."""
        k, width, height, left, right = self._bins(z, self.values)
        r = np.clip((z - self.values[k]) / height, 0.0, 1.0)
        b = left - r * (left + right - 2)
        root = np.hypot(b - 2 * r, 2 * np.sqrt(r * (1 - r)))
        # Two forms of one solution: each is a difference of near equals where the other is none.
        t = np.where(b > 0, 2 * r / (np.maximum(b, 0) + root), (root - b) / (2 - 2 * np.minimum(b, 0)))
        beyond = z - np.clip(z, self.values[0], self.values[-1])
        x: Vector = self.knots[k] + width * t + beyond / np.where(beyond < 0, self.slopes[0], self.slopes[-1])
        return x

    def _bins(self, x: Vector, edges: Vector) -> tuple[NDArray[np.intp], Vector, Vector, Vector, Vector]:
        """Bin of each x, its width and height, and the slopes at its ends in units of height / width."""
        k = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        width, height = np.diff(self.knots), np.diff(self.values)
        unit = width / height
        return k, width[k], height[k], (self.slopes[:-1] * unit)[k], (self.slopes[1:] * unit)[k]


@dataclass(frozen=True)
class ColumnLaw(FrozenArrays):
    """sum_k weights[k] N(means[k], widths[k]^2) + sum_j kernel_weights[j] KDE(rows, bandwidths[j]), in one column."""

    weights: Vector
    means: Vector
    widths: Vector
    rows: Vector
    bandwidths: Vector
    kernel_weights: Vector

    def spline(self) -> Spline:
        """Phi^-1(F) with as many knots as it takes."""
        cells = [_cells(self.rows, h) for h in self.bandwidths]
        widest = int(np.argmax(self.widths))
        mean, width = self.means[widest], self.widths[widest]
        x = np.concatenate([mean + width * TAILS, np.quantile(self.rows, np.linspace(0, 1, QUANTILES))])
        knots = _increasing(*self._at(np.unique(x), cells))
        if len(knots[0]) < 2:  # so narrow and far from zero that rounding leaves one number
            unit = max(width, 1e-6 * abs(mean))
            return Spline(mean + unit * np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.full(2, 1 / unit))
        settled = np.zeros(0)
        for _ in range(ROUNDS):
            open_bins = ~np.isin(knots[0][:-1], settled)
            if not open_bins.any() or len(knots[0]) > MOST_KNOTS:
                break
            knots, close = self._halved(knots, open_bins, cells)
            settled = np.concatenate([settled, close])
        return Spline(*knots)

    def _halved(self, knots: Knots, open_bins: NDArray[np.bool_], cells: list[Cells]) -> tuple[Knots, Vector]:
        """Knots, and more of them in those of the open bins where the spline is off; the left ends of the others."""
        left, right = knots[0][:-1][open_bins], knots[0][1:][open_bins]
        exact = self._at(left + (right - left) / 2, cells)
        z, log_slope = Spline(*knots).forward(exact[0])
        with np.errstate(divide="ignore"):
            off = np.abs(log_slope - np.log(exact[2])) > CLOSE_SLOPE
        off |= np.abs(z - exact[1]) > CLOSE
        merged = [np.concatenate([old, new[off]]) for old, new in zip(knots, exact, strict=True)]
        order = np.argsort(merged[0], kind="stable")
        return _increasing(*(part[order] for part in merged)), left[~off]

    def _at(self, x: Vector, cells: list[Cells]) -> Knots:
        """x, Phi^-1(F(x)) and its slope; each tail by its own sum, for its digits."""
        u = (x[:, None] - self.means) / self.widths
        below, above = ndtr(u) @ self.weights, ndtr(-u) @ self.weights
        density = np.exp(-0.5 * u * u) @ (self.weights / self.widths)
        for (numbers, centres, shares), h, weight in zip(cells, self.bandwidths, self.kernel_weights, strict=True):
            first = np.searchsorted(numbers, np.floor(x / h * CELLS) - CELLS * REACH)
            window = first[:, None] + np.arange(int(2 * CELLS * REACH) + 2)
            inside = np.minimum(window, len(numbers) - 1)
            near = shares[inside] * (window < len(numbers))
            u = (x[:, None] - centres[inside]) / h
            before, after = np.append(0.0, shares.cumsum()), np.append(shares[::-1].cumsum()[::-1], 0.0)
            below += weight * ((near * ndtr(u)).sum(axis=1) + before[first])
            above += weight * ((near * ndtr(-u)).sum(axis=1) + after[np.minimum(window[:, -1] + 1, len(numbers))])
            density += weight / h * (near * np.exp(-0.5 * u * u)).sum(axis=1)
        z = np.where(below < above, ndtri(below), -ndtri(above))
        with np.errstate(over="ignore", invalid="ignore"):  # where there is nothing, there will be no knot
            return x, z, density * np.exp(0.5 * z * z)


def _cells(rows: Vector, bandwidth: float) -> Cells:
    """The rows gathered in cells of a part of the bandwidth."""
    numbers, which, counts = np.unique(np.floor(rows / bandwidth * CELLS), return_inverse=True, return_counts=True)
    return numbers, np.bincount(which, weights=rows) / counts, counts / len(rows)


def _increasing(x: Vector, z: Vector, slopes: Vector) -> Knots:
    """Those of the knots, which ascend, that have a score and a slope, and a larger score than all before them."""
    sound = np.isfinite(z) & np.isfinite(slopes) & (slopes > 0)
    x, z, slopes = x[sound], z[sound], slopes[sound]
    kept = np.ones(len(x), dtype=bool)
    kept[1:] = np.diff(np.maximum.accumulate(z)) > LEAST_STEP
    return x[kept], z[kept], slopes[kept]
