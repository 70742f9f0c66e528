"""A tree near a point of the linear program: edges that the point holds first, then whatever gains."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isde.subsets import SubsetFamily
from isde.trees import Edge

LEAST_GAIN = 1e-12
MOST_CHANGES = 1000


class Growing:
    """A chordal graph with cliques of at most k columns, changed by one edge at a time."""

    def __init__(self, subsets: SubsetFamily, weights: NDArray[np.float64], edges: Iterable[Edge] = ()) -> None:
        self.subsets, self.weights = subsets, weights
        self.neighbours: list[set[int]] = [set() for _ in range(subsets.n_columns)]
        for edge in edges:
            self.toggle(edge)

    @property
    def edges(self) -> tuple[Edge, ...]:
        return tuple((a, b) for a, near in enumerate(self.neighbours) for b in sorted(near) if a < b)

    def toggle(self, edge: Edge) -> None:
        a, b = edge
        self.neighbours[a] ^= {b}
        self.neighbours[b] ^= {a}

    def may_toggle(self, edge: Edge) -> bool:
        """An edge may go where it lies in one clique only, and come where what its ends share separates them."""
        a, b = edge
        shared = self.neighbours[a] & self.neighbours[b]
        if b in self.neighbours[a]:
            return all(d in self.neighbours[c] for c, d in combinations(shared, 2))
        return len(shared) <= self.subsets.max_size - 2 and not self._reaches(a, b, shared)

    def gain(self, edge: Edge) -> float:
        """What toggling an edge, where it may be, adds to the weight of the graph."""
        a, b = edge
        shared = self.neighbours[a] & self.neighbours[b]
        with_edge = sum(
            self.weights[self.subsets.index(sorted((a, b, *more)))]
            for size in range(len(shared) + 1)
            for more in combinations(shared, size)
        )
        return float(-with_edge if b in self.neighbours[a] else with_edge)

    def _reaches(self, a: int, b: int, closed: set[int]) -> bool:
        seen, ahead = {a} | closed, [a]
        while ahead:
            for c in self.neighbours[ahead.pop()] - seen:
                if c == b:
                    return True
                seen.add(c)
                ahead.append(c)
        return False


def rounded(subsets: SubsetFamily, weights: NDArray[np.float64], point: NDArray[np.float64]) -> tuple[Edge, ...]:
    """The edges of a tree: those of the point, by its values, as far as each may come, then steps that gain most."""
    graph = Growing(subsets, weights, near(subsets, weights, point))
    climb(graph, _pairs(subsets))
    return graph.edges


def near(subsets: SubsetFamily, weights: NDArray[np.float64], point: NDArray[np.float64]) -> tuple[Edge, ...]:
    """The edges of a tree: those of the point, by its values, as far as each may come."""
    pairs, graph = _pairs(subsets), Growing(subsets, weights)
    values = point[subsets.n_columns :][: len(pairs)]
    for place in np.argsort(-values, kind="stable").tolist():
        if values[place] <= 0.0:
            break
        if graph.may_toggle(pairs[place]):
            graph.toggle(pairs[place])
    return graph.edges


def _pairs(subsets: SubsetFamily) -> list[Edge]:
    return [(int(a), int(b)) for a, b in subsets.members(2)] if subsets.max_size > 1 else []


def climb(graph: Growing, pairs: list[Edge]) -> None:
    """Toggle the edge that gains most, until none gains."""
    for _ in range(MOST_CHANGES):
        gains = [(graph.gain(pair), pair) for pair in pairs if graph.may_toggle(pair)]
        most, pair = max(gains, default=(0.0, (0, 0)))
        if most <= LEAST_GAIN:
            return
        graph.toggle(pair)
