"""What a tree of blocks says: its edges with what they gain, and which columns are independent given which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isde.data.words import in_braces
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.subsets import Subset
from isde.trees import Edge, Tree


@dataclass(frozen=True)
class EdgeGain:
    """What two columns say of each other given those that stand with both in every clique that holds them.

    With K the columns common to all these cliques, a and b among them, the gain is
    s(K) - s(K without a) - s(K without b) + s(K without both). Where one clique holds both, that is what the tree loses
    when the edge goes and all others stay; in a tree of pairs it is the gain of the pair.
    """

    edge: Edge
    given: Subset  # K without both
    gain: float  # nats a row
    error: float  # standard error of the gain; for more than two columns an upper bound of it; NaN: not known
    chance: float  # what is charged for it
    pair_gain: float  # of the two columns by themselves


def edge_gains(scores: SubsetScores, tree: Tree) -> list[EdgeGain]:
    """Every edge of a tree with its gain, in the order of `tree.edges`.

    >>> table = SubsetScores.from_dict({(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 1.0, (0, 2): 0.5, (1, 2): 0.75})
    >>> [(one.edge, one.gain) for one in edge_gains(table, Tree(((0, 1), (1, 2)), (-1, 0)))]
    [((0, 1), 1.0), ((1, 2), 0.75)]
    """
    charged = scores.charged_by_edge()  # as `select_tree` takes it
    return [_edge_gain(charged, edge, _common(tree, edge)) for edge in tree.edges]


def _edge_gain(scores: SubsetScores, edge: Edge, common: Subset) -> EdgeGain:
    a, b = edge
    given = tuple(column for column in common if column not in edge)
    signed = [(common, 1), (_with(given, b), -1), (_with(given, a), -1), (given, 1)]
    several = [(subset, sign) for subset, sign in signed if len(subset) > 1]  # single columns gain and cost nothing
    places = [scores.subsets.index(subset) for subset, _ in several]
    return EdgeGain(
        edge,
        given,
        sum(sign * scores.gain(subset) for subset, sign in several),
        float(scores.gain_errors[places].sum()),
        float(sum(sign * scores.charges[place] for (_, sign), place in zip(several, places, strict=True))),
        scores.gain(edge),
    )


def _with(columns: Subset, column: int) -> Subset:
    return tuple(sorted((*columns, column)))


def _common(tree: Tree, edge: Edge) -> Subset:
    """The columns of all cliques that hold both ends of an edge."""
    holding = [set(clique) for clique in tree.cliques if set(edge) <= set(clique)]
    return tuple(sorted(set.intersection(*holding)))


def separations(tree: Tree) -> list[tuple[Subset, Partition]]:
    """Each separator once, with the groups of columns, of those that hang together, that it keeps apart.

    Given the separator the groups are independent of each other.

    >>> separations(Tree(((0, 1), (1, 2), (1, 3)), (-1, 0, 0)))
    [((1,), ((0,), (2,), (3,)))]
    """
    return [(separator, _kept_apart(tree, separator)) for separator in sorted(set(tree.separators), key=_by_size)]


def _kept_apart(tree: Tree, separator: Subset) -> Partition:
    own = next(component for component in tree.components if separator[0] in component)
    return tuple(group for group in groups_without(tree, separator) if group[0] in own)


def separator_of(tree: Tree, a: int, b: int) -> Subset | None:
    """The fewest columns given which two columns are independent; () where they are, None where they never are.

    Of separators of the same size the first.

    >>> separator_of(Tree(((0, 1), (1, 2)), (-1, 0)), 0, 2)
    (1,)
    """
    for separator in sorted({(), *tree.separators}, key=_by_size):
        if {a, b}.isdisjoint(separator) and not any({a, b} <= set(g) for g in groups_without(tree, separator)):
            return separator
    return None


def groups_without(tree: Tree, columns: Subset) -> Partition:
    """The columns that hang together when some are taken out of the tree."""
    groups: list[set[int]] = []
    for clique in tree.cliques:
        rest = set(clique) - set(columns)
        touched = [group for group in groups if group & rest]
        groups = [group for group in groups if not group & rest]
        if rest:
            groups.append(rest.union(*touched))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _by_size(columns: Subset) -> tuple[int, Subset]:
    return len(columns), columns


def in_words(tree: Tree, names: Sequence[str]) -> Iterator[str]:
    """What is independent of what, a sentence for the components and one for each separator."""
    if len(tree.components) > 1:
        yield f"{_listed(tree.components, names)} are independent of each other"
    for separator, groups in separations(tree):
        given = in_braces(names[column] for column in separator)
        yield f"given {given}, {_listed(groups, names)} are independent of each other"


def pair_in_words(tree: Tree, names: Sequence[str], a: int, b: int) -> str:
    """Whether two columns depend on each other, and given which they do not.

    >>> pair_in_words(Tree(((0, 1), (1, 2)), (-1, 0)), ("x", "y", "z"), 0, 2)
    'x and z are independent given {y}'
    """
    separator, both = separator_of(tree, a, b), f"{names[a]} and {names[b]}"
    if separator is None:
        return f"{both} depend on each other, whatever else is given"
    given = f" given {in_braces(names[column] for column in separator)}" if separator else ""
    return f"{both} are independent{given}"


def _listed(groups: Partition, names: Sequence[str]) -> str:
    labels = [in_braces(names[column] for column in group) for group in groups]
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def largest_edge_gain(scores: SubsetScores, tree: Tree) -> float:
    """Of all edges of a tree; 0 where it has none."""
    return float(np.max([one.gain for one in edge_gains(scores, tree)], initial=0.0))
