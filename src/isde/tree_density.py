"""The density of a tree of blocks: each clique's own density, given the columns it shares with the one it hangs on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from isde.archive import Arrays
from isde.arrays import Matrix
from isde.data.checks import as_table, check_columns
from isde.data.words import some
from isde.density import DensityAlongTree, Scaling, numbered, scaling_for
from isde.errors import InputError
from isde.marginals import DEFAULT_MARGINAL, MARGINAL_NAMES, resolve_marginal
from isde.marginals.bounds import MAX_CENTRES, MAX_FIT_ROWS, UNBOUNDED, Bounds
from isde.marginals.marginal import BlockFitter, FittedBlock, Marginal, fit_shuffled
from isde.partitions import Partition
from isde.trees import NO_PARENT, Tree, tree_of_cliques


@dataclass(frozen=True, repr=False)
class TreeDensity(DensityAlongTree):
    """Cliques along a tree: exact to score and to draw from, and to condition and marginalise along the tree.

    Each clique has a density of its own, and two of them need not agree about the columns that they share: the product
    depends, a little, on which clique comes first (`rooted_at`). Given one clique's columns, those of the cliques that
    hang on it are drawn exactly; those of the clique that it hangs on are not, see `marginal`.
    """

    archive_kind: ClassVar[str] = "tree-density"
    tree: Tree
    blocks: tuple[FittedBlock, ...]  # aligned with the cliques of the tree, fitted on the scaled data
    scaling: Scaling
    names: tuple[str, ...]

    @property
    def partition(self) -> Partition:
        """The columns that hang together: independent of all others."""
        return self.tree.components

    def rooted_at(self, columns: Sequence[int | str]) -> TreeDensity:
        """The same densities of cliques, from the first clique on that holds all these columns.

        That is another density, as far as the cliques disagree about the columns that they share (at most 0.06 nats
        a row in trials), in which these columns come first: their marginal has a closed form, and rows can be drawn
        given them.
        """
        own = set(numbered([columns], self.names)[0])
        unknown = sorted(own - set(range(len(self.names))))
        if unknown:
            raise InputError(f"There is no column {unknown[0]}: columns are numbered 0 to {len(self.names) - 1}.")
        first = next((i for i, clique in enumerate(self.tree.cliques) if own <= set(clique)), None)
        if first is None:
            names = some([repr(self.names[column]) for column in sorted(own)], 6)
            raise InputError(f"No clique holds {names} together: give columns of one clique.")
        order, parents = _from_clique(self.tree, first)
        tree = Tree(tuple(self.tree.cliques[i] for i in order), parents)
        return TreeDensity(tree, tuple(self.blocks[i] for i in order), self.scaling, self.names)

    @classmethod
    def _of_parts(
        cls, tree: Tree, blocks: tuple[FittedBlock, ...], scaling: Scaling, names: tuple[str, ...]
    ) -> TreeDensity:
        return cls(tree, blocks, scaling, names)

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        header, arrays = super().to_archive()
        return header | {"parents": list(self.tree.parents)}, arrays

    @classmethod
    def _tree_from_archive(cls, header: Mapping[str, Any], n_columns: int) -> Tree:
        cliques = tuple(tuple(int(column) for column in entry["columns"]) for entry in header["blocks"])
        tree = Tree(cliques, tuple(int(parent) for parent in header["parents"]))
        _check_hangs_together(tree, n_columns)
        return tree


def _from_clique(tree: Tree, first: int) -> tuple[list[int], tuple[int, ...]]:
    """The cliques of a tree from one of them on, and where the one stands that each hangs on; other trees stay."""
    neighbours: list[list[int]] = [[] for _ in tree.cliques]
    for clique, parent in enumerate(tree.parents):
        if parent != NO_PARENT:
            neighbours[clique].append(parent)
            neighbours[parent].append(clique)
    roots = [i for i, parent in enumerate(tree.parents) if parent == NO_PARENT]
    order: list[int] = []
    parents: list[int] = []
    for root in [first, *roots]:
        waiting = [(root, NO_PARENT)] if root not in order else []
        while waiting:
            clique, parent = waiting.pop(0)
            place = len(order)
            order.append(clique)
            parents.append(parent)
            waiting += [(other, place) for other in neighbours[clique] if other not in order]
    return order, tuple(parents)


def _check_hangs_together(tree: Tree, n_columns: int) -> None:
    """Raise where the product along a tree would be no density: each column comes once, then in the clique hung on."""
    if len(tree.parents) != len(tree.cliques):
        raise ValueError("every clique of a tree says which one it hangs on")
    met: set[int] = set()
    for i, (clique, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
        if not clique or list(clique) != sorted(set(clique)) or not NO_PARENT <= parent < i:
            raise ValueError(f"clique {i} is no set of columns that hangs on an earlier clique")
        if not met & set(clique) <= (set() if parent == NO_PARENT else set(tree.cliques[parent])):
            raise ValueError(f"clique {i} shares columns with others than the clique it hangs on")
        met |= set(clique)
    if met != set(range(n_columns)):
        raise ValueError("the cliques have other columns than the density")


def fit_tree(
    X: ArrayLike,
    cliques: Iterable[Iterable[int | str]],
    marginal: Any = DEFAULT_MARGINAL,
    bandwidths: Sequence[float] | None = None,
    *,
    cv: int = 5,
    scale: str | None = "minmax",
    n_jobs: int | None = None,
    max_fit_rows: int | None = MAX_FIT_ROWS,
    max_centres: int | None = MAX_CENTRES,
) -> TreeDensity:
    """The density for a given tree of blocks: each clique fitted once.

    Cliques are those of a chordal graph, every column in one at least, as numbers or names; all else as in
    `fit_blocks`.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 4)).cumsum(axis=1)
    >>> density = fit_tree(X, [(0, 1), (1, 2), (2, 3)], "gaussian")
    >>> density.score_samples(X).shape, density.tree.separators
    ((200,), ((1,), (2,)))
    """
    table = as_table(X)
    check_columns(table.X, table.names)
    given = numbered(cliques, table.names)
    missing = [repr(name) for column, name in enumerate(table.names) if not any(column in clique for clique in given)]
    if missing:
        raise InputError(f"No clique holds {some(missing, 6)}: a column that is alone is a clique of its own.")
    tree = tree_of_cliques(len(table.names), given)
    family = resolve_marginal(marginal, bandwidths=bandwidths, cv=cv)
    if tree.separators:
        check_has_marginals(family)
    scaling, bounds = scaling_for(table.X, scale, family), Bounds(max_fit_rows, max_centres)
    return fit_cliques(table.X, tree, family, scaling, table.names, n_jobs=n_jobs, bounds=bounds)


def fit_cliques(
    X: Matrix,
    tree: Tree,
    marginal: BlockFitter,
    scaling: Scaling,
    names: tuple[str, ...],
    *,
    n_jobs: int | None,
    bounds: Bounds = UNBOUNDED,
) -> TreeDensity:
    """`fit_tree` with everything checked and resolved."""
    blocks = fit_shuffled(marginal, X, tree.cliques, n_jobs=n_jobs, bounds=bounds, transform=scaling.transform)
    return TreeDensity(tree, tuple(blocks), scaling, names)


def check_has_marginals(marginal: Marginal) -> None:
    """Refuse, before anything is scored, a family whose cliques cannot be conditioned on what they share."""
    culprit = marginal.traits.without_marginals
    if culprit is not None:
        raise InputError(
            f"A tree needs the exact marginal densities of its cliques, and isde knows none of {culprit}: "
            f"use {', '.join(map(repr, MARGINAL_NAMES))}, or ISDE, whose blocks share no columns."
        )
