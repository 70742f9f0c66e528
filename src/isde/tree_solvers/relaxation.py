"""What no tree can gain: a linear program over complete sets, tightened by cuts, and by branching where it stays open.

The variables are all sets of two to k columns, 1 where the set is complete in the tree's graph, weighed by
`moebius_weights`. Cuts (`cuts`) that its solution passes are added and it is solved again: by steps (`descent`) as long
as many sets are open, then by the simplex method. Sets that would bring a tree below one that is known are left out on
the way. A solution in whole numbers is a tree, and no tree is better; where the solution stays split and no cut is
found, trees without and with an edge are bounded by themselves.

HiGHS computes in floating point, and is not believed: the bound is what the prices of the cuts prove in integers
(`witness`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import combinations
from math import fsum, inf
from time import process_time

import numpy as np
from numpy.typing import NDArray

from isde.selection import PROOF_TOLERANCE
from isde.subsets import Subset, SubsetFamily
from isde.tree_solvers.class_separation import passed_classes
from isde.tree_solvers.clutter_separation import passed_clutters
from isde.tree_solvers.cuts import AnyCut, Cut, Sets
from isde.tree_solvers.descent import Descent
from isde.tree_solvers.linear_program import LinearProgram, NotSolved
from isde.tree_solvers.pricing import Facets
from isde.tree_solvers.rounding import near, rounded
from isde.tree_solvers.separation import passed_cuts
from isde.tree_solvers.witness import LARGEST_SUM, Integers, Ledger, Mask, Step, TreeWitness, bits_for, verify
from isde.trees import Edge, chordal_cliques

Floats = NDArray[np.float64]
Improve = Callable[[Sequence[Edge], Floats], Sequence[Edge]]
"""From the best tree known and a point of the linear program to a tree that may be better."""

CUTS_PER_ROUND = 400
PASSED = (1e-3, 1e-5, 1e-7)
"""By which a cut is passed before it is worth a row; the next where no cut is left."""

WHOLE = 1e-6
"""A value this close to 0 or 1 is that."""

FEW_SETS, MOST_SETS = 2500, 6000
"""Steps of `descent` come first, until their prices leave so few sets open, or, where they get no further, no more than
the second number: only then does the simplex method bring the bound down faster."""

AHEAD, FEW = 0.3, 20
"""Cuts are looked for that a point on the way from those before to the solution passes: they go deeper. Where so few
are found, that the solution itself passes."""

STEPS_PER_ROUND, CUTS_UNTIL = 180, 0.9
"""Of a descent, between one search for cuts and the next; and of the seconds, after which it looks for no more: steps
bring more then."""

DEEP, SHALLOW, LOWER, ENOUGH = 0.02, 0.001, 0.8, 150
"""By which a cut is passed at first, and at last, to be worth a row there; where fewer than so many are, this much of
it will do: a shallow cut speaks of few sets, and costs steps little."""

DEAR = 0.003
"""Of what prices are measured by there, that of a cut which the simplex method starts with: steps leave ten thousand
cheaper ones, and it finds those that it needs."""

FAINT, MOST_LOOKED_AT = 5e-4, 3000
"""Of a set, that counts as nothing when cuts are looked for there: steps leave a little of many. Of more sets than
these, those that the point has least of count as nothing, too."""

PATIENCE, SLOW, STUCK = 8, 0.9, 0.95
"""A gap that so many solutions leave above such a share of what it was is left to branching; one that as many runs of
steps leave above the other share, to the simplex method."""

ROUNDS_PER_TREE, IMPROVED_FROM = 4, 32
"""A tree near the solution is looked for as often as this; a known one is to be improved after so many rounds, after
twice as many, and so on."""

WORTHWHILE = 0.1
"""Of the sets, that a known tree must rule out before the program is made smaller."""


@dataclass(frozen=True)
class Limits:
    """When to stop; what is proved until then holds."""

    rounds: int = 1000  # solutions of a linear program, in all
    branches: int = 1000  # edges that trees are told apart by
    seconds: float = inf  # of processor time


@dataclass(frozen=True)
class Bound:
    """What no tree weighs more than, and the best tree known."""

    value: float  # a bound of the weight of all trees, nats
    edges: tuple[Edge, ...]  # of the best tree known, given or found on the way
    weight: float  # of that tree
    rounds: int  # solutions of a linear program
    branches: int  # edges that trees were told apart by
    witness: TreeWitness = field(repr=False)

    @property
    def gap(self) -> float:
        return max(self.value - self.weight, 0.0)


def upper_bound(
    weights: Floats,
    n_columns: int,
    max_size: int,
    known: Iterable[Sequence[int]] | None = None,
    limits: Limits | None = None,
    improve: Improve | None = None,
) -> Bound:
    """A bound for the weight of every tree with cliques of at most `max_size` columns.

    `weights` are those of `moebius_weights`, one for each subset in the order of the table, -inf for one that is in no
    tree; `known` are the edges of a good tree: the better it is, the less has to be looked at. The weight of a tree is
    the sum over all its complete sets, single columns among them.

    >>> weights = np.array([0.0, 0.0, 0.0, 1.0, 0.5, 0.75, -1.0])  # of three columns: alone, in pairs, together
    >>> found = upper_bound(weights, n_columns=3, max_size=3)
    >>> found.value, found.edges, verify(SubsetFamily(3, 3), weights, found.witness)
    (1.75, ((0, 1), (1, 2)), 1.75)
    """
    subsets = SubsetFamily(n_columns, max_size)
    search = _Search(subsets, weights, limits or Limits(), improve)
    search.consider([(min(edge), max(edge)) for edge in known or ()])
    first = search.run()
    witness = TreeWitness(first.as_step(), search.weight, search.ledger.bits)
    value = verify(subsets, weights, witness)
    return Bound(value, search.edges, search.weight, search.rounds, search.branches, witness)


@dataclass
class _Node:
    """Trees that hold some edges and sets that are open, and what is proved of them so far."""

    open_: Mask
    complete: tuple[Edge, ...]
    cuts: list[AnyCut]  # to start with; in the end, those of the last linear program
    proved: list[tuple[tuple[AnyCut, ...], Integers]] = field(
        default_factory=list
    )  # cuts and prices, one after another
    bound: int = LARGEST_SUM  # in units of the ledger
    edge: Edge | None = None  # to branch by
    rest: tuple[_Node, ...] = ()

    def as_step(self) -> Step:
        """The proof, read from its end."""
        *before, last = self.proved
        step = Step(*last, self.edge if self.rest else None, tuple(node.as_step() for node in self.rest))
        for one in reversed(before):
            step = Step(*one, None, (step,))
        return step


class _Search:
    def __init__(self, subsets: SubsetFamily, weights: Floats, limits: Limits, improve: Improve | None) -> None:
        self._improve = improve or (lambda edges, point: edges)
        self.subsets, self.weights, self.limits = subsets, weights, limits
        self.ledger = Ledger(subsets, weights, bits_for(subsets, weights))
        self.facets = Facets(subsets)
        self.edges: tuple[Edge, ...] = ()
        self.weight = self._weigh(())
        self.rounds = self.branches = 0
        self._end = process_time() + limits.seconds
        self._last = process_time() + CUTS_UNTIL * limits.seconds
        # A quarter of what counts as proved, or what sums in floating point can tell.
        self._tolerance = max(PROOF_TOLERANCE / 4, 1e-12 * float(np.abs(weights[weights > -inf]).max()))

    @property
    def _known(self) -> int:
        return self.ledger.floor(self.weight)

    @property
    def _is_over(self) -> bool:
        return self.rounds >= self.limits.rounds or process_time() > self._end

    def consider(self, edges: Sequence[Edge]) -> None:
        """Keep a tree that is better than the best one known; what is no tree is passed over."""
        weight = self._weigh(edges)
        if weight > self.weight:
            self.weight, self.edges = weight, tuple(sorted(edges))

    def _weigh(self, edges: Sequence[Edge]) -> float:
        """The weight of a graph, -inf where it is no tree of cliques that are allowed."""
        complete = self._complete(edges)
        return fsum(self.weights[self.subsets.index(one)] for one in complete) if complete else -inf

    def _complete(self, edges: Sequence[Edge]) -> list[Subset]:
        """The complete sets of a tree; none where the graph is no tree of cliques that are allowed."""
        cliques = chordal_cliques(self.subsets.n_columns, edges)
        if cliques is None or max(map(len, cliques)) > self.subsets.max_size:
            return []
        sizes = range(1, self.subsets.max_size + 1)
        return sorted({one for clique in cliques for size in sizes for one in combinations(clique, size)})

    def run(self) -> _Node:
        """Bound the trees that may gain most, again and again, until none can gain more than is known."""
        sizes = range(1, self.subsets.max_size)
        everything = tuple(range(self.subsets.n_columns))
        cuts: list[AnyCut] = [Cut((), everything, everything[:size]) for size in sizes]
        first = _Node(self.ledger.allowed, (), cuts)
        if self.subsets.max_size == 1:
            self._note(first, [], np.empty(0))
            return first
        if not self.edges:
            self.consider(rounded(self.subsets, self.weights, np.zeros(len(self.subsets))))
        if first.open_.sum() > FEW_SETS:
            self._descend(first)
        if not (first.proved and (self._is_over or first.bound <= self._high_enough)):
            self._solve(first)
        waiting, number = [(-first.bound, 0, first)], 0
        while waiting and not self._is_over and self.branches < self.limits.branches:
            _, _, node = heappop(waiting)
            if node.bound <= self._high_enough:
                break
            if node.edge is None:
                continue
            self.branches += 1
            for child in self._branched(node):
                self._solve(child)
                number += 1
                heappush(waiting, (-child.bound, number, child))
        return first

    @property
    def _high_enough(self) -> int:
        """A bound that proves the known tree to be the best."""
        return self._known + self.ledger.floor(self._tolerance)

    def _branched(self, node: _Node) -> tuple[_Node, ...]:
        assert node.edge is not None
        without = _Node(self.ledger.without(node.open_, node.edge), node.complete, node.cuts)
        within = _Node(node.open_, (*node.complete, node.edge), node.cuts)
        node.rest = (without, within)
        return node.rest

    def _descend(self, node: _Node) -> None:
        """Bring the bound of a node down by steps, until few sets are open, or not many and steps get no further."""
        descent = Descent(self.subsets, self.facets, self.weights, node.open_)
        descent.add(node.cuts, np.zeros(len(node.cuts)))
        least, lowest, best = DEEP, inf, descent.prices
        gaps: list[float] = []  # after each run of steps
        while not self._is_over and node.open_.sum() > FEW_SETS and node.bound > self._high_enough:
            if node.open_.sum() <= MOST_SETS and least <= SHALLOW and self._is_slow(gaps, STUCK):
                break
            descent.run(STEPS_PER_ROUND)
            descent.settle()
            self.rounds += 1
            point = descent.point
            bound = self._alone + descent.bound()
            if bound < lowest:
                lowest, best = bound, descent.prices
            gaps.append(lowest - self.weight)
            self._look_for_tree(point)
            if (bound + np.minimum(descent.left(), 0.0) < self.weight).sum() > WORTHWHILE * node.open_.sum():
                self._note(node, *descent.priced)
                descent.keep(node.open_)
            if process_time() > self._last:
                continue
            descent.forget()
            found = self._passed(_cleared(point), least)
            new = descent.passed(found, least)
            descent.add(new, np.zeros(len(new)))
            least = max(SHALLOW, LOWER * least) if len(new) < ENOUGH else least
        cuts, prices = best.named()
        self._note(node, cuts, prices)
        node.cuts = [cut for cut, price in zip(cuts, prices.tolist(), strict=True) if price > DEAR * descent.scale]

    def _solve(self, node: _Node) -> None:
        """Add cuts to the linear program of a node until it proves enough, or none is found."""
        program, thresholds, center = self._program(node), list(PASSED), self._known_point()
        gaps: list[float] = []  # after each solution
        cuts, prices, point = list[AnyCut](), np.empty(0), np.zeros(len(self.subsets))
        while True:
            try:
                values, left, new_prices = program.solve()
            except NotSolved:
                break  # what the last prices prove holds
            self.rounds += 1
            cuts, prices, point = list(program.cuts), new_prices, self._point(program.sets, values)
            solved = self._in_nats(program.sets, values)
            self._look_for_tree(point)
            gaps.append(solved - self.weight)
            if self._is_over or solved <= self.weight + self._tolerance / 2:
                break
            may_branch = self.branches < self.limits.branches and self._most_split(point) is not None
            if may_branch and self._is_slow(gaps, SLOW):
                break
            if (solved + left < self.weight).sum() > WORTHWHILE * len(values):
                before = node.open_.sum()
                self._note(node, cuts, prices)
                program.keep(node.open_[program.sets.positions - self.subsets.n_columns])
                if node.open_.sum() < before:
                    continue
            center = AHEAD * point + (1 - AHEAD) * center
            new = program.passed(self._passed(center, thresholds[0]), values, thresholds[0])
            if len(new) < FEW:
                center = point
                new = program.passed(self._passed(point, thresholds[0]), values, thresholds[0])
            program.forget_slack_rows(prices)
            if new:
                program.add(new)
            elif len(thresholds) == 1:
                break
            else:
                thresholds.pop(0)
        self._note(node, cuts, prices)
        node.cuts, node.edge = cuts, self._most_split(point)

    def _passed(self, point: Floats, least: float) -> list[AnyCut]:
        """Cuts that a point passes, the deepest of them."""
        cuts = [one.cut for one in passed_cuts(self.subsets, point, least, self.rounds)][:CUTS_PER_ROUND]
        clutters = passed_clutters(self.subsets, point, least, self.rounds)
        classes = passed_classes(self.subsets, point, least, self.rounds)
        return [*cuts, *(cut for cut, _ in clutters), *(cut for cut, _ in classes)]

    def _is_slow(self, gaps: Sequence[float], share: float) -> bool:
        """Whether the gap is hardly smaller than a while ago."""
        return len(gaps) > PATIENCE and gaps[-1] > share * gaps[-1 - PATIENCE]

    def _program(self, node: _Node) -> LinearProgram:
        complete = np.zeros(len(node.open_), dtype=np.bool_)
        complete[[self.ledger.place(edge) for edge in node.complete]] = True
        places = np.flatnonzero(node.open_)
        sets = Sets(self.subsets, places + self.subsets.n_columns)
        program = LinearProgram(self.subsets, sets, self.weights[sets.positions], complete[places])
        program.add(node.cuts)
        return program

    def _in_integers(self, cuts: Sequence[AnyCut], prices: Floats) -> tuple[tuple[AnyCut, ...], Integers]:
        """The cuts that have a price, and the prices; none where they leave 64 bits: that proves something as well."""
        fine = np.ldexp(np.maximum(prices, 0.0), self.ledger.bits)
        whole = np.rint(fine if fine.sum() < LARGEST_SUM else np.zeros(len(fine))).astype(np.int64)
        if not self.ledger.fit(whole):
            whole[:] = 0
        return tuple(cut for cut, price in zip(cuts, whole.tolist(), strict=True) if price > 0), whole[whole > 0]

    def _note(self, node: _Node, cuts: Sequence[AnyCut], prices: Floats) -> None:
        """What prices prove of the node's trees, and the sets that are still open after that."""
        proof = self._in_integers(cuts, prices)
        bound, left = self.ledger.prove(*proof, node.open_, node.complete)
        paid = left.copy()
        paying, payments, _ = self.facets.pay(paid, node.open_)  # the bound becomes lower
        every_price = np.concatenate([proof[1], payments])
        if self.ledger.fit(every_price):
            proof = (*proof[0], *paying), every_price
            bound -= self.ledger.counted(left, node.open_, node.complete)
            bound += self.ledger.counted(paid, node.open_, node.complete)
            left = paid
        node.proved.append(proof)
        node.bound = min(node.bound, bound)
        node.open_ = self.ledger.remaining(bound, left, self._known, node.open_, node.complete)

    def _in_nats(self, sets: Sets, values: Floats) -> float:
        """The weight of a solution."""
        return self._alone + float(values @ self.weights[sets.positions])

    @property
    def _alone(self) -> float:
        return fsum(self.weights[: self.subsets.n_columns])

    def _point(self, sets: Sets, values: Floats) -> Floats:
        point = np.zeros(len(self.subsets))
        point[sets.positions] = values
        return point

    def _known_point(self) -> Floats:
        """The best tree known, as a point."""
        point = np.zeros(len(self.subsets))
        point[[self.subsets.index(one) for one in self._complete(self.edges)]] = 1.0
        return point

    def _look_for_tree(self, point: Floats) -> None:
        """The point itself where it is nearly whole, now and then a tree near it, and more rarely what both lead to."""
        self.consider([(int(a), int(b)) for a, b in self.subsets.members(2)[point[self._pairs] > 0.5]])
        if self.rounds % ROUNDS_PER_TREE == 0:
            self.consider(near(self.subsets, self.weights, point))
        if self.rounds >= IMPROVED_FROM and self.rounds.bit_count() == 1:
            self.consider(self._improve(self.edges, point))

    def _most_split(self, point: Floats) -> Edge | None:
        """The edge that the point is least decided about; None where it is decided about all."""
        pairs = point[self._pairs]
        split = np.minimum(pairs, 1 - pairs)
        place = int(np.argmax(split))
        if split[place] < WHOLE:
            return None
        a, b = self.subsets.members(2)[place]
        return int(a), int(b)

    @property
    def _pairs(self) -> slice:
        return self.subsets.of_size(2)


def _cleared(point: Floats) -> Floats:
    """A point without what it has little of."""
    least = FAINT
    if len(point) > MOST_LOOKED_AT:
        least = max(FAINT, float(np.partition(point, -MOST_LOOKED_AT)[-MOST_LOOKED_AT]))
    return np.where(point < least, 0.0, point)
