"""Trees of blocks: cliques of columns that overlap in separators, the structure of a decomposable model.

Columns of one clique may depend on each other in any way; two columns that share none are independent given the
separators between them. A density with that structure is the product over cliques of f(clique) / f(separator to the
clique it hangs on), so that its score is the sum over cliques minus the sum over separators. A partition is a tree
whose separators are empty, a forest one whose cliques have at most two columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from isde.partitions import Partition
from isde.subsets import Subset

Edge = tuple[int, int]

NO_PARENT = -1


@dataclass(frozen=True)
class Tree:
    """Maximal cliques, each after the one it hangs on; several trees side by side where columns are independent.

    Build one by `tree_of_edges` or `tree_of_cliques`, which put equal structures into one form.
    """

    cliques: tuple[Subset, ...]
    parents: tuple[int, ...]  # position of the clique that each hangs on; NO_PARENT for the first of a component

    @property
    def n_columns(self) -> int:
        return 1 + max(clique[-1] for clique in self.cliques)

    @cached_property
    def shared(self) -> tuple[Subset, ...]:
        """The columns that each clique shares with the one it hangs on; () for the first of a component."""
        return tuple(
            () if parent == NO_PARENT else _common(clique, self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def separators(self) -> tuple[Subset, ...]:
        """What stands between cliques, in order; one that separates several pairs of them stands there as often."""
        return tuple(sorted(shared for shared in self.shared if shared))

    @property
    def terms(self) -> tuple[tuple[Subset, int], ...]:
        """What its score adds (+1) and takes off (-1)."""
        return tuple((clique, 1) for clique in self.cliques) + tuple((shared, -1) for shared in self.separators)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All pairs of columns that share a clique, in order."""
        return tuple(sorted({edge for clique in self.cliques for edge in combinations(clique, 2)}))

    @cached_property
    def components(self) -> Partition:
        """The columns that hang together: independent of all others."""
        component: list[set[int]] = []
        where: list[int] = []
        for clique, parent in zip(self.cliques, self.parents, strict=True):
            where.append(len(component) if parent == NO_PARENT else where[parent])
            if parent == NO_PARENT:
                component.append(set())
            component[where[-1]].update(clique)
        return tuple(sorted(tuple(sorted(columns)) for columns in component))


def tree_of_edges(n_columns: int, edges: Iterable[Sequence[int]]) -> Tree:
    """The tree of a graph; raises ValueError where the graph is not chordal, so that no tree has its edges.

    >>> tree = tree_of_edges(4, [(0, 1), (0, 2), (1, 2), (2, 3)])
    >>> tree.cliques, tree.separators, tree.components
    (((0, 1, 2), (2, 3)), ((2,),), ((0, 1, 2, 3),))
    """
    cliques = chordal_cliques(n_columns, edges)
    if cliques is None:
        raise ValueError("The graph is not chordal: it has a cycle of four or more columns without a chord.")
    return _hang(cliques)


def tree_of_cliques(n_columns: int, cliques: Iterable[Iterable[int]]) -> Tree:
    """The tree of a graph given by its maximal cliques; raises ValueError where they are others."""
    given = tuple(sorted(tuple(sorted(set(clique))) for clique in cliques))
    tree = tree_of_edges(n_columns, {edge for clique in given for edge in combinations(clique, 2)})
    if tuple(sorted(tree.cliques)) != given:
        raise ValueError(f"The maximal cliques are {sorted(tree.cliques)}, not {list(given)}.")
    return tree


def chordal_cliques(n_columns: int, edges: Iterable[Sequence[int]]) -> list[Subset] | None:
    """The maximal cliques of a chordal graph in order, single columns included; None where it is not chordal.

    Columns are visited by the number of their neighbours visited before (maximum cardinality search): in a chordal
    graph those of each column form a clique.
    """
    neighbours = _neighbours(n_columns, edges)
    visited: set[int] = set()
    cliques: list[frozenset[int]] = []
    for _ in range(n_columns):
        column = max(set(range(n_columns)) - visited, key=lambda c: (len(neighbours[c] & visited), -c))
        before = neighbours[column] & visited
        if any(b not in neighbours[a] for a, b in combinations(before, 2)):
            return None
        cliques.append(frozenset(before | {column}))
        visited.add(column)
    largest = [clique for clique in cliques if not any(clique < other for other in cliques)]
    return sorted(tuple(sorted(clique)) for clique in largest)


def _neighbours(n_columns: int, edges: Iterable[Sequence[int]]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in range(n_columns)]
    for a, b in edges:
        if a == b or not (0 <= a < n_columns and 0 <= b < n_columns):
            raise ValueError(f"({a}, {b}) is no edge between two of the columns 0 to {n_columns - 1}.")
        neighbours[a].add(b)
        neighbours[b].add(a)
    return neighbours


def _hang(cliques: Sequence[Subset]) -> Tree:
    """Hang each clique on the one it shares most with, largest overlap first: of cliques of a chordal graph, a tree
    of most overlap is one in which each column's cliques hang together."""
    placed: list[Subset] = []
    parents: list[int] = []
    rest = sorted(cliques)
    while rest:
        overlaps = [[len(_common(clique, other)) for other in placed] for clique in rest]
        most = [max(overlap, default=0) for overlap in overlaps]
        chosen = max(range(len(rest)), key=lambda i: (most[i], -i))
        parents.append(overlaps[chosen].index(most[chosen]) if most[chosen] else NO_PARENT)
        placed.append(rest.pop(chosen))
    return Tree(tuple(placed), tuple(parents))


def _common(one: Subset, other: Subset) -> Subset:
    return tuple(column for column in one if column in other)
