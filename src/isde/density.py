"""Fitted block densities along a structure, in the units of the data: of independent blocks, their product."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from isde.archive import Arrays, over, under, write_archive
from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, check_layout, checked_names, finite, positive
from isde.data.checks import as_table, check_columns, check_units
from isde.data.table import default_names
from isde.data.words import in_braces, some
from isde.errors import InputError
from isde.marginals import DEFAULT_MARGINAL, fitted_kind, resolve_marginal
from isde.marginals.bounds import MAX_CENTRES, MAX_FIT_ROWS, UNBOUNDED, Bounds
from isde.marginals.marginal import BlockFitter, FittedBlock, Marginal, checked_columns, fit_shuffled, of_columns
from isde.partitions import Partition, RandomState, canonical_partition
from isde.subsets import Subset
from isde.trees import NO_PARENT, Tree

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


class DensityAlongTree(ABC):
    """Fitted densities of the cliques of a tree, each given the columns it shares with the clique it hangs on.

    log f(x) = sum over cliques C of  log f_C(x_C) - log f_C(x_S),  S the columns shared, f_C(x_S) the exact marginal of
    f_C itself: each term is a conditional density, and f integrates to one whatever the densities of the cliques are.
    A subclass is a frozen dataclass with these fields, and says how its structure is archived.
    """

    archive_kind: ClassVar[str]
    """What its saved files call it."""

    tree: Tree
    blocks: tuple[FittedBlock, ...]  # aligned with the cliques of the tree, fitted on the scaled data
    scaling: Scaling
    names: tuple[str, ...]

    @property
    def bandwidths(self) -> Vector:
        """Bandwidth of each block, on the scaled data; NaN where its family has none."""
        return np.array([block.bandwidth for block in self.blocks])

    @cached_property
    def _shared_densities(self) -> tuple[FittedBlock | None, ...]:
        """The density of what each clique shares, as its own density has it; None where that is nothing."""
        return tuple(
            density_of_shared(block, clique, shared)
            for clique, shared, block in zip(self.tree.cliques, self.tree.shared, self.blocks, strict=True)
        )

    # --- log-densities -----------------------------------------------------------------------------------------

    def score_blocks(self, X: ArrayLike, n_jobs: int | None = None) -> Matrix:
        """Log-density of each row in each block, shape (n rows, n blocks); the columns add up to `score_samples`.

        Of a clique that hangs on another one it is the log-density of its further columns given those they share.
        """
        return self.log_densities(self._rows(X), n_jobs)

    def log_densities(self, X: Matrix, n_jobs: int | None) -> Matrix:
        """`score_blocks` of rows that were checked before."""
        U = self.scaling.transform(X)
        parts = []
        for clique, shared, block, given in zip(
            self.tree.cliques, self.tree.shared, self.blocks, self._shared_densities, strict=True
        ):
            log_density = log_conditional(U, clique, block, shared, given, n_jobs)
            further = [column for column in clique if column not in shared]
            parts.append(log_density + self.scaling.log_jacobian[further].sum())
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

    def score_given(self, X: ArrayLike, columns: Sequence[int | str], n_jobs: int | None = None) -> Vector:
        """Log-density of the other columns of each row given these; of which columns, see `marginal`."""
        own = self._closed(columns)
        rows = self._rows(X)
        given = self.marginal(own).log_densities(of_columns(rows, own), n_jobs)
        conditional: Vector = self.log_densities(rows, n_jobs).sum(axis=1) - given.sum(axis=1)
        return conditional

    def __repr__(self) -> str:
        cliques = [in_braces(self.names[column] for column in clique) for clique in self.tree.cliques]
        return f"{type(self).__name__}({some(cliques, 12)})"

    # --- rows drawn --------------------------------------------------------------------------------------------

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Matrix:
        """Rows drawn from the density."""
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise ValueError(f"n_samples={n_samples!r} must be a whole number of at least 1.")
        U = np.empty((n_samples, len(self.names)))
        self._draw(U, set(), check_random_state(random_state))
        return self.scaling.inverse(U)

    def sample_given(self, columns: Sequence[int | str], values: ArrayLike, random_state: RandomState = None) -> Matrix:
        """Complete rows whose `columns` are `values`, a row each, the others drawn given these.

        Exact, and therefore only for the columns that `marginal` takes.
        """
        own = self._closed(columns)
        given = np.asarray(values, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(own) or not len(given):
            raise ValueError(f"values of shape {given.shape} for {len(own)} columns: give a matrix, a row each.")
        if not np.isfinite(given).all():
            raise InputError("values must be finite numbers: rows cannot be drawn given others.")
        X = np.tile(self.scaling.shift, (len(given), 1))
        X[:, own] = given
        U = self.scaling.transform(X)
        self._draw(U, set(own), check_random_state(random_state))
        drawn = self.scaling.inverse(U)
        drawn[:, own] = given  # to the bit
        return drawn

    def _draw(self, U: Matrix, known: set[int], rng: np.random.RandomState) -> None:
        """Fill in the columns of scaled rows that are not known, clique by clique."""
        for clique, block in zip(self.tree.cliques, self.blocks, strict=True):
            given = [column for column in clique if column in known]
            if not given:
                U[:, list(clique)] = block.sample(len(U), rng)
            elif len(given) < len(clique):
                U[:, list(clique)] = block.sample_given(_places(clique, given), of_columns(U, given), rng)
            known = known | set(clique)

    # --- part of the columns -----------------------------------------------------------------------------------

    def marginal(self, columns: Sequence[int | str]) -> Self:
        """The exact density of some of the columns, in the order given.

        The columns of blocks that hang on nothing can be any. Along a tree, a column brings with it those that its
        clique shares with the one it hangs on: what lies between would have to be integrated out, for which there is
        no closed form. Raises InputError, with the columns that are missing, for others.
        """
        own = self._closed(columns)
        position = {column: i for i, column in enumerate(own)}
        kept: list[Subset] = []
        parents: list[int] = []
        blocks: list[FittedBlock] = []
        where: list[int] = []  # of each clique: what is left of it, or of the one that it hangs on
        for clique, shared, parent, block in zip(
            self.tree.cliques, self.tree.shared, self.tree.parents, self.blocks, strict=True
        ):
            above = NO_PARENT if parent == NO_PARENT else where[parent]
            if not any(column in position for column in clique if column not in shared):
                where.append(above)
                continue
            rest = sorted((column for column in clique if column in position), key=lambda column: position[column])
            where.append(len(kept))
            kept.append(tuple(position[column] for column in rest))
            parents.append(above)
            blocks.append(block if tuple(rest) == clique else block.marginal(_places(clique, rest)))
        scaling = Scaling(self.scaling.shift[own], self.scaling.scale[own])
        names = tuple(self.names[column] for column in own)
        return self._of_parts(Tree(tuple(kept), tuple(parents)), tuple(blocks), scaling, names)

    def _closed(self, columns: Sequence[int | str]) -> list[int]:
        """Columns by number, where their density has a closed form: see `marginal`."""
        own = checked_columns(numbered([columns], self.names)[0], len(self.names))
        needed = set(own)
        for clique, shared in reversed(list(zip(self.tree.cliques, self.tree.shared, strict=True))):
            if needed & (set(clique) - set(shared)):
                needed |= set(shared)
        missing = [repr(self.names[column]) for column in sorted(needed - set(own))]
        if missing:
            given = some([repr(self.names[column]) for column in own], 6)
            raise InputError(
                f"The density of {given} alone has no closed form: their cliques hang on {some(missing, 6)}, which "
                "would have to be integrated out; add these columns, or draw rows and leave them out."
            )
        return own

    @classmethod
    @abstractmethod
    def _of_parts(cls, tree: Tree, blocks: tuple[FittedBlock, ...], scaling: Scaling, names: tuple[str, ...]) -> Self:
        """The density of cliques in any order that has each after the one it hangs on."""

    # --- on disk -----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the density to one file; `isde.load` reads it."""
        write_archive(path, self.archive_kind, *self.to_archive())

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        arrays: Arrays = {"shift": self.scaling.shift, "scale": self.scaling.scale}
        for i, block in enumerate(self.blocks):
            arrays |= over(f"block{i}.", block.to_arrays())
        blocks = [
            {"columns": list(columns), "kind": block.kind}
            for columns, block in zip(self.tree.cliques, self.blocks, strict=True)
        ]
        return {"names": list(self.names), "blocks": blocks}, arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        names = checked_names(header["names"])
        tree = cls._tree_from_archive(header, len(names))
        blocks: list[FittedBlock] = []
        for i, entry in enumerate(header["blocks"]):
            blocks.append(fitted_kind(entry["kind"]).from_arrays(under(f"block{i}.", arrays)))
            if blocks[-1].n_columns != len(entry["columns"]):
                raise ValueError(f"block {i} has parameters for another number of columns")
        scaling = {name: arrays[name] for name in SCALING}
        check_layout(scaling, SCALING)
        if scaling["shift"].shape != (len(names),):
            raise ValueError("the scaling does not fit the columns")
        return cls._of_parts(tree, tuple(blocks), Scaling(**scaling), names)

    @classmethod
    @abstractmethod
    def _tree_from_archive(cls, header: Mapping[str, Any], n_columns: int) -> Tree:
        """The structure of a file, checked."""


@dataclass(frozen=True, repr=False)
class ProductDensity(DensityAlongTree):
    """Independent blocks, each with its own density; log-densities add over blocks."""

    archive_kind: ClassVar[str] = "density"
    partition: Partition
    blocks: tuple[FittedBlock, ...]  # aligned with partition, fitted on the scaled data
    scaling: Scaling
    names: tuple[str, ...]
    tree: Tree = field(init=False, compare=False, repr=False)  # the blocks, of which none hangs on another

    def __post_init__(self) -> None:
        object.__setattr__(self, "tree", Tree(self.partition, (NO_PARENT,) * len(self.partition)))

    @classmethod
    def _of_parts(
        cls, tree: Tree, blocks: tuple[FittedBlock, ...], scaling: Scaling, names: tuple[str, ...]
    ) -> ProductDensity:
        order = sorted(range(len(blocks)), key=lambda i: tree.cliques[i])
        return cls(tuple(tree.cliques[i] for i in order), tuple(blocks[i] for i in order), scaling, names)

    @classmethod
    def _tree_from_archive(cls, header: Mapping[str, Any], n_columns: int) -> Tree:
        given = tuple(tuple(entry["columns"]) for entry in header["blocks"])
        partition = canonical_partition(given, n_columns)
        if given != partition:  # whose blocks would be taken for those of other columns
            raise ValueError("the blocks stand in another order than they were saved in")
        return Tree(partition, (NO_PARENT,) * len(partition))


def density_of_shared(block: FittedBlock, clique: Subset, shared: Subset) -> FittedBlock | None:
    """The density of some of a clique's columns as its own density has it; None where they are none."""
    return block.marginal(_places(clique, shared)) if shared else None


def log_conditional(
    U: Matrix,
    clique: Subset,
    block: FittedBlock,
    shared: Subset,
    given: FittedBlock | None,  # density of what is shared
    n_jobs: int | None,
) -> Vector:
    """Log-density of a clique's columns in scaled rows, given those that it shares."""
    log_density = block.score_samples(of_columns(U, clique), n_jobs)
    if given is not None:
        log_density = log_density - given.score_samples(of_columns(U, shared), n_jobs)
    return log_density


def _places(clique: Sequence[int], columns: Sequence[int]) -> list[int]:
    """Where columns stand in a clique that has them."""
    return [clique.index(column) for column in columns]


def fit_blocks(
    X: ArrayLike,
    partition: Iterable[Iterable[int | str]],
    marginal: Any = DEFAULT_MARGINAL,
    bandwidths: Sequence[float] | None = None,
    *,
    cv: int = 5,
    scale: str | None = "minmax",
    n_jobs: int | None = None,
    max_fit_rows: int | None = MAX_FIT_ROWS,
    max_centres: int | None = MAX_CENTRES,
) -> ProductDensity:
    """The density for a given partition: each block fitted and tuned on the same rows, all of them unless many.

    Columns of the partition are numbers, or names where `X` has them. As in `ISDE`, columns are rescaled inside
    (`scale`), `bandwidths` is the grid for the rescaled data, log-densities come in the units of `X`, and blocks are
    learned from `max_fit_rows` rows at most, with `max_centres` centres of kernels.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> density = fit_blocks(X, [(0, 1), (2,)])
    >>> density.score_samples(X).shape, density.partition
    ((200,), ((0, 1), (2,)))
    """
    table = as_table(X)
    check_columns(table.X, table.names)
    blocks = canonical_partition(numbered(partition, table.names), len(table.names))
    family = resolve_marginal(marginal, bandwidths=bandwidths, cv=cv)
    scaling, bounds = scaling_for(table.X, scale, family), Bounds(max_fit_rows, max_centres)
    return fit_product(table.X, blocks, family, scaling, table.names, n_jobs=n_jobs, bounds=bounds)


def numbered(partition: Iterable[Iterable[int | str]], names: Sequence[str]) -> list[list[int]]:
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
    bounds: Bounds = UNBOUNDED,
) -> ProductDensity:
    """`fit_blocks` with everything checked and resolved."""
    blocks = fit_shuffled(marginal, X, partition, n_jobs=n_jobs, bounds=bounds, transform=scaling.transform)
    return ProductDensity(partition, tuple(blocks), scaling, names)
