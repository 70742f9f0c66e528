"""The product of fitted block densities, in the units of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from isde.archive import Arrays, over, under, write_archive
from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, check_layout, checked_names, finite, positive
from isde.data.checks import as_table, check_columns, check_units
from isde.data.table import default_names
from isde.data.words import some
from isde.errors import InputError
from isde.marginals import DEFAULT_MARGINAL, fitted_kind, resolve_marginal
from isde.marginals.marginal import BlockFitter, FittedBlock, Marginal, fit_shuffled, of_columns
from isde.partitions import Partition, RandomState, canonical_partition

FARTHEST_RANGES = 1e145
"""Ranges of a column. Log-densities farther out would leave float64: such rows count as if they were here."""

SCALE_NAMES = ("minmax", "standard")

SCALING: Layout = {"shift": finite("d"), "scale": positive("d")}
"""What files hold of a `Scaling`."""


@dataclass(frozen=True)
class Scaling(FrozenArrays):
    """The rescaling of each column to (x - shift) / scale, and what it does to a density."""

    shift: Vector
    scale: Vector

    @classmethod
    def fit(cls, X: Matrix, kind: str | None, *, keep_zero: bool = False) -> Scaling:
        """`"minmax"` maps each column to [0, 1], `"standard"` to mean 0 and variance 1, None leaves it as it is.

        `keep_zero` leaves the shift out, for families that give zero a meaning.
        """
        zero, low, width = np.zeros(X.shape[1]), X.min(axis=0), np.ptp(X, axis=0)
        if kind is None:
            check_units(X)
            return cls(zero, np.ones(X.shape[1]))
        if kind == "minmax":
            return cls(zero if keep_zero else low, width)
        if kind == "standard":
            # On [0, 1] first: squares of very small or large columns would leave the range of float64.
            spread = ((X - low) / width).std(axis=0) * width
            return cls(zero if keep_zero else X.mean(axis=0), spread)
        raise ValueError(f"scale={kind!r} is unknown: use {', '.join(map(repr, SCALE_NAMES))} or None.")

    def transform(self, X: Matrix) -> Matrix:
        with np.errstate(over="ignore"):
            scaled = (X - self.shift) / self.scale
        return np.ascontiguousarray(np.clip(scaled, -FARTHEST_RANGES, FARTHEST_RANGES))

    def inverse(self, U: Matrix) -> Matrix:
        return U * self.scale + self.shift

    @property
    def log_jacobian(self) -> Vector:
        """What each column adds to a log-density on the scaled data to give it in the data's units."""
        log_scale: Vector = np.log(self.scale)
        return -log_scale


@dataclass(frozen=True)
class ProductDensity:
    """Independent blocks, each with its own density; log-densities add over blocks."""

    partition: Partition
    blocks: tuple[FittedBlock, ...]  # aligned with partition, fitted on the scaled data
    scaling: Scaling
    names: tuple[str, ...]

    @property
    def bandwidths(self) -> Vector:
        """Bandwidth of each block, on the scaled data; NaN where its family has none."""
        return np.array([block.bandwidth for block in self.blocks])

    def score_blocks(self, X: ArrayLike, n_jobs: int | None = None) -> Matrix:
        """Log-density of each row in each block, shape (n rows, n blocks); the columns add up to `score_samples`."""
        return self.log_densities(self._rows(X), n_jobs)

    def log_densities(self, X: Matrix, n_jobs: int | None) -> Matrix:
        """`score_blocks` of rows that were checked before."""
        U = self.scaling.transform(X)
        shift = self.scaling.log_jacobian
        parts = [
            block.score_samples(of_columns(U, columns), n_jobs) + shift[list(columns)].sum()
            for columns, block in zip(self.partition, self.blocks, strict=True)
        ]
        return np.column_stack(parts)

    def _rows(self, X: ArrayLike) -> Matrix:
        """Checked, with the columns of the density where they have names of their own."""
        table, unnamed = as_table(X, self.names), default_names(len(self.names))
        if len(table.names) != len(self.names):
            raise InputError(f"The data have {len(table.names)} columns, the density has {len(self.names)}.")
        if table.names != self.names and unnamed not in (table.names, self.names):
            raise InputError(
                f"The data have the columns {list(table.names)}, the density has {list(self.names)}, in this order."
            )
        return table.X

    def score_samples(self, X: ArrayLike, n_jobs: int | None = None) -> Vector:
        """Log-density of each row, in the units of the data the density was fitted on."""
        total: Vector = self.score_blocks(X, n_jobs).sum(axis=1)
        return total

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Mean log-density, nats per row."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Matrix:
        """Rows drawn from the density."""
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples} must be at least 1.")
        rng = check_random_state(random_state)
        U = np.empty((n_samples, len(self.names)))
        for columns, block in zip(self.partition, self.blocks, strict=True):
            U[:, list(columns)] = block.sample(n_samples, rng)
        return self.scaling.inverse(U)

    def save(self, path: str | Path) -> None:
        """Write the density to one file; `isde.load` reads it."""
        write_archive(path, "density", *self.to_archive())

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        arrays: Arrays = {"shift": self.scaling.shift, "scale": self.scaling.scale}
        for i, block in enumerate(self.blocks):
            arrays |= over(f"block{i}.", block.to_arrays())
        blocks = [
            {"columns": list(columns), "kind": block.kind}
            for columns, block in zip(self.partition, self.blocks, strict=True)
        ]
        return {"names": list(self.names), "blocks": blocks}, arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays) -> ProductDensity:
        names = checked_names(header["names"])
        given = tuple(tuple(entry["columns"]) for entry in header["blocks"])
        partition = canonical_partition(given, len(names))
        if given != partition:  # whose blocks would be taken for those of other columns
            raise ValueError("the blocks stand in another order than they were saved in")
        blocks: list[FittedBlock] = []
        for i, entry in enumerate(header["blocks"]):
            blocks.append(fitted_kind(entry["kind"]).from_arrays(under(f"block{i}.", arrays)))
            if blocks[-1].n_columns != len(entry["columns"]):
                raise ValueError(f"block {i} has parameters for another number of columns")
        scaling = {name: arrays[name] for name in SCALING}
        check_layout(scaling, SCALING)
        if scaling["shift"].shape != (len(names),):
            raise ValueError("the scaling does not fit the columns")
        return cls(partition, tuple(blocks), Scaling(**scaling), names)


def fit_blocks(
    X: ArrayLike,
    partition: Iterable[Iterable[int | str]],
    marginal: Any = DEFAULT_MARGINAL,
    bandwidths: Sequence[float] | None = None,
    *,
    cv: int = 5,
    scale: str | None = "minmax",
    n_jobs: int | None = None,
) -> ProductDensity:
    """The density for a given partition: each block fitted on all rows, its bandwidth tuned on all rows.

    Columns of the partition are numbers, or names where `X` has them. As in `ISDE`, columns are rescaled inside
    (`scale`), `bandwidths` is the grid for the rescaled data, and log-densities come in the units of `X`.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> density = fit_blocks(X, [(0, 1), (2,)])
    >>> density.score_samples(X).shape, density.partition
    ((200,), ((0, 1), (2,)))
    """
    table = as_table(X)
    check_columns(table.X, table.names)
    blocks = canonical_partition(_numbered(partition, table.names), len(table.names))
    family = resolve_marginal(marginal, bandwidths=bandwidths, cv=cv)
    return fit_product(table.X, blocks, family, scaling_for(table.X, scale, family), table.names, n_jobs=n_jobs)


def _numbered(partition: Iterable[Iterable[int | str]], names: Sequence[str]) -> list[list[int]]:
    """A partition by numbers, from one by numbers or names."""
    blocks = [[block] if isinstance(block, str) else list(block) for block in partition]
    unknown = [column for block in blocks for column in block if isinstance(column, str) and column not in names]
    if unknown:
        raise InputError(f"There is no column {unknown[0]!r}: the columns are {some([repr(n) for n in names], 12)}.")
    return [[names.index(c) if isinstance(c, str) else c for c in block] for block in blocks]


def scaling_for(X: Matrix, scale: str | None, marginal: Marginal) -> Scaling:
    """The rescaling for a family of marginals; one with mean zero keeps the data's zero."""
    return Scaling.fit(X, scale, keep_zero=marginal.traits.keeps_zero)


def fit_product(
    X: Matrix,
    partition: Partition,
    marginal: BlockFitter,
    scaling: Scaling,
    names: tuple[str, ...],
    *,
    n_jobs: int | None,
) -> ProductDensity:
    """`fit_blocks` with everything checked and resolved."""
    U = scaling.transform(X)
    blocks = fit_shuffled(marginal, U, partition, n_jobs=n_jobs)
    return ProductDensity(partition, tuple(blocks), scaling, names)
