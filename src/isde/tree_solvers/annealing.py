"""Good trees by annealing over chordal graphs: fast at any number of columns, and no proof.

Two kinds of steps keep a graph chordal. An edge ab comes or goes, where the common neighbours S of a and b separate
them once it is gone, and are complete: then exactly the cliques S + a, S + b, S + a + b and the separator S change. And
a column whose neighbours N are complete moves to another complete set T. Both change the gain by four terms of the
table. Runs start from the best forest, the best partition and columns alone; each ends with all edges that still gain.

Neighbours are lists beside a matrix of yes and no: trees have few of them, and any number of columns will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop, part
from isde.solvers import select_partition
from isde.subsets import binomials
from isde.tree_solvers import forest
from isde.tree_solvers.moebius import gains_of_weights, moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.solver import Found
from isde.trees import Edge, tree_of_edges

STEPS_PER_PAIR = 5000
"""Of a run, for each pair of columns: 2.5 million for 32 columns, 0.3 s."""

MILD, WARM, HOT, COLD = 0.3, 0.08, 1.0, 0.02
"""Temperatures of runs at their start, and of all at their end, in gains of the average edge of the best forest."""

RUNS = (MILD,) * 6 + (WARM,) * 4 + (HOT,) * 3
"""Warm runs go on from the best tree of those before, others from the starts. Of many columns mild runs find the better
trees; scores that no density gives, such as those drawn by lot, need more heat."""

LED_STEPS_PER_PAIR, COOL = 2000, 0.03
"""Of a run that is led, mild at its start: its steps, and the temperature at the start of the run after it."""

LEADING = 0.3
"""What an edge costs that the point has nothing of, in the same unit."""

SEED = 15

REFUSED = -1e300
"""The change of an edge that stays as it is."""


def refusal(task: TreeTask) -> str | None:
    return None


def steps(task: TreeTask) -> float:
    return inf  # never chosen for its cost: it proves nothing


def best(problem: TreeProblem) -> Found:
    """The best tree of all runs; its bound is the sum of all weights above 0, which no tree passes."""
    edges = best_edges(problem)
    gain = problem.gain(edges)
    if gain == -inf:
        return Found(None, inf)
    weights = moebius_weights(problem.subsets, problem.gains)[problem.subsets.n_columns :]
    return Found(edges, max(float(np.maximum(weights, 0.0).sum()) - gain, 0.0) + problem.rounding)


def best_edges(problem: TreeProblem) -> tuple[Edge, ...]:
    """The edges of the best tree of all runs; those of a run may need subsets of score -inf where all do."""
    starts = _starts(problem)
    found = {start: problem.gain(start) for start in starts}
    d, k = problem.subsets.n_columns, problem.subsets.max_size
    if d > 1 and k > 1:
        temperature = _temperature(problem)
        for run, hot in enumerate(RUNS):
            start = _best(found) if hot == WARM else starts[run % len(starts)]
            edges = _run(problem, start, temperature, SEED + run, hot)
            found[edges] = problem.gain(edges)
    return _best(found)


def _best(found: Mapping[tuple[Edge, ...], float]) -> tuple[Edge, ...]:
    """The tree that gains most; among equals, one with the fewest edges."""
    return min(found, key=lambda edges: (-found[edges], len(edges), edges))


def led(problem: TreeProblem, start: Sequence[Edge], point: NDArray[np.float64], seed: int) -> tuple[Edge, ...]:
    """The best tree of a short run that a point of a linear program leads: an edge costs what the point has not of it.

    From there a run by the gains alone, too cold to go far.
    """
    pairs, temperature = problem.subsets.of_size(2), _temperature(problem)
    costs = np.zeros(len(problem.subsets))
    costs[pairs] = LEADING * temperature * (1.0 - point[pairs])
    gains = problem.gains - gains_of_weights(problem.subsets, costs)
    met = _walk(problem, start, _steps(problem, LED_STEPS_PER_PAIR), temperature, seed, gains, MILD)
    met = _walk(problem, met, _steps(problem, LED_STEPS_PER_PAIR // 2), temperature, seed, problem.gains, COOL)
    return _walk(problem, met, 0, temperature, seed, problem.gains)


def _steps(problem: TreeProblem, per_pair: int) -> int:
    d = problem.subsets.n_columns
    return per_pair * (d * (d - 1) // 2)


def _starts(problem: TreeProblem) -> list[tuple[Edge, ...]]:
    """The best forest, as far as columns may stand alone, the best partition, and columns alone."""
    blocks = select_partition(problem.scores).partition
    partition = tuple(sorted(edge for block in blocks for edge in combinations(block, 2)))
    pairs = TreeProblem(problem.scores.restrict(min(2, problem.subsets.max_size)))
    by_pairs = forest.best(pairs).edges if pairs.task.all_alone else None
    return list(dict.fromkeys([tuple(sorted(by_pairs or ())), partition, ()]))


def _temperature(problem: TreeProblem) -> float:
    """What an edge is worth: the mean of the d - 1 pairs that gain most; of all subsets where no pair gains."""
    gains = problem.gains[problem.subsets.of_size(2)]
    most = np.sort(gains[gains > 0.0])[-(problem.subsets.n_columns - 1) :]
    if most.size:
        return float(most.mean())
    finite = problem.gains[np.isfinite(problem.gains)]
    return float(np.abs(finite).mean()) or 1.0


def _run(problem: TreeProblem, start: Sequence[Edge], temperature: float, seed: int, hot: float) -> tuple[Edge, ...]:
    """The best graph that a run meets, then all that single edges still gain there."""
    met = _walk(problem, start, _steps(problem, STEPS_PER_PAIR), temperature, seed, problem.gains, hot)
    return _walk(problem, met, 0, temperature, seed, problem.gains)


def _walk(
    problem: TreeProblem,
    start: Sequence[Edge],
    n_steps: int,
    temperature: float,
    seed: int,
    gains: NDArray[np.float64],
    hot: float = MILD,
) -> tuple[Edge, ...]:
    d, k = problem.subsets.n_columns, problem.subsets.max_size
    joined = np.zeros((d, d), dtype=np.bool_)
    for a, b in start:
        joined[a, b] = joined[b, a] = True
    neighbours, degrees = np.zeros((d, d), dtype=np.int64), joined.sum(axis=1)
    for c in range(d):
        neighbours[c, : degrees[c]] = np.flatnonzero(joined[c])
    uses = np.zeros(len(problem.subsets), dtype=np.int64)
    for term, sign in tree_of_edges(d, start).terms:
        uses[problem.subsets.index(term)] += sign
    finite = gains[np.isfinite(gains)]
    penalty = 1.0 + 4.0 * float(np.abs(finite).max(initial=0.0))
    found, scratch = np.zeros((d, d), dtype=np.bool_), np.zeros((4, d + k + 2), dtype=np.int64)
    table = (gains, np.asarray(problem.subsets.offsets), binomials(d, k))
    heat = (n_steps, hot * temperature, COLD * temperature, seed)
    _anneal(k, *table, joined, neighbours, degrees, uses, penalty, *heat, found, scratch)
    return tuple((int(a), int(b)) for a, b in np.argwhere(np.triu(found)))


@part
def _random(state: int) -> Any:
    """The next of a run of numbers that look random (xorshift), in 63 bits."""
    state ^= (state << 13) & 0x7FFFFFFFFFFFFFFF
    state ^= state >> 7
    return state ^ ((state << 17) & 0x7FFFFFFFFFFFFFFF)


@part
def _place(members: NDArray[np.int64], size: int, offsets: NDArray[np.int64], terms: NDArray[np.int64]) -> Any:
    """Where a set of columns, in any order, stands in the table."""
    place = offsets[size]
    for i in range(size):
        rank = 1
        for j in range(size):
            if members[j] < members[i]:
                rank += 1
        place += terms[members[i], rank]
    return place


@part
def _change(
    members: NDArray[np.int64],
    size: int,
    sign: int,
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
    penalty: float,
) -> Any:
    """What one use more (sign 1) or less (-1) of a set of columns adds to the gain; -inf costs the penalty a use."""
    if size == 0:
        return 0.0
    place = _place(members, size, offsets, terms)
    if gains[place] == -np.inf:
        return -penalty * (abs(uses[place] + sign) - abs(uses[place]))
    return sign * gains[place]


@part
def _use(
    members: NDArray[np.int64],
    size: int,
    sign: int,
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
) -> None:
    if size > 0:
        uses[_place(members, size, offsets, terms)] += sign


@part
def _are_complete(joined: NDArray[np.bool_], members: NDArray[np.int64], size: int) -> Any:
    for i in range(size):
        for j in range(i):
            if not joined[members[i], members[j]]:
                return False
    return True


@part
def _are_separated(
    a: int,
    b: int,
    members: NDArray[np.int64],
    size: int,
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> Any:
    """Whether every path from a to b passes through the members."""
    for i in range(size):
        seen[members[i]] = stamp
    seen[a] = stamp
    queue[0] = a
    first, last = 0, 1
    while first < last:
        column = queue[first]
        first += 1
        for i in range(degrees[column]):
            other = neighbours[column, i]
            if seen[other] != stamp:
                if other == b:
                    return False
                seen[other] = stamp
                queue[last] = other
                last += 1
    return True


@part
def _join(a: int, b: int, joined: NDArray[np.bool_], neighbours: NDArray[np.int64], degrees: NDArray[np.int64]) -> None:
    joined[a, b] = joined[b, a] = True
    neighbours[a, degrees[a]] = b
    neighbours[b, degrees[b]] = a
    degrees[a] += 1
    degrees[b] += 1


@part
def _part_with(
    a: int, b: int, joined: NDArray[np.bool_], neighbours: NDArray[np.int64], degrees: NDArray[np.int64]
) -> None:
    joined[a, b] = joined[b, a] = False
    for one, other in ((a, b), (b, a)):
        degrees[one] -= 1
        for i in range(degrees[one]):
            if neighbours[one, i] == other:
                neighbours[one, i] = neighbours[one, degrees[one]]
                break


@part
def _toggle(
    a: int,
    b: int,
    least: float,
    k: int,
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
    penalty: float,
    joined: NDArray[np.bool_],
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    common: NDArray[np.int64],
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> Any:
    """Let an edge come or go, and what that adds to the gain; REFUSED where it adds less than asked, or may not be."""
    few, many = (b, a) if degrees[b] < degrees[a] else (a, b)
    size = 0
    for i in range(degrees[few]):
        if joined[many, neighbours[few, i]]:
            if size < k - 1:
                common[size] = neighbours[few, i]
            size += 1
    if size > k - 2:
        return REFUSED
    sign = -1 if joined[a, b] else 1
    change = _change(common, size, sign, gains, offsets, terms, uses, penalty)
    common[size] = a
    change += _change(common, size + 1, -sign, gains, offsets, terms, uses, penalty)
    common[size + 1] = b
    change += _change(common, size + 2, sign, gains, offsets, terms, uses, penalty)
    common[size] = b
    change += _change(common, size + 1, -sign, gains, offsets, terms, uses, penalty)
    if change < least:
        return REFUSED
    if sign == -1:
        if not _are_complete(joined, common, size):
            return REFUSED
        _part_with(a, b, joined, neighbours, degrees)
    else:
        if not _are_separated(few, many, common, size, neighbours, degrees, queue, seen, stamp):
            return REFUSED
        _join(a, b, joined, neighbours, degrees)
    _use(common, size, sign, offsets, terms, uses)
    _use(common, size + 1, -sign, offsets, terms, uses)
    common[size] = a
    _use(common, size + 1, -sign, offsets, terms, uses)
    common[size + 1] = b
    _use(common, size + 2, sign, offsets, terms, uses)
    return change


@loop
def _anneal(
    k: int,
    gains: NDArray[np.float64],  # in: in the order of the table
    offsets: NDArray[np.int64],  # in: of the table, by size
    terms: NDArray[np.int64],  # in: binomials, which add up to a place in the table
    joined: NDArray[np.bool_],  # in and out: the graph
    neighbours: NDArray[np.int64],  # in and out: of each column, as many as its degree
    degrees: NDArray[np.int64],  # in and out
    uses: NDArray[np.int64],  # in and out: of each subset, as clique or, negative, as separator
    penalty: float,
    n_steps: int,
    hot: float,
    cold: float,
    seed: int,
    found: NDArray[np.bool_],  # out: the best graph met
    scratch: NDArray[np.int64],
) -> None:
    d = len(joined)
    common, target, queue, seen = scratch[0], scratch[1], scratch[2], scratch[3]
    state = 88172645463325252 ^ (seed * 2654435761)
    for _ in range(20):
        state = _random(state)
    now, most, stamp = 0.0, -1.0, 0
    temperature, cooling = hot, (cold / hot) ** (1000.0 / max(n_steps, 1))
    step, last_change, n_pairs = 0, n_steps, d * (d - 1) // 2
    a, b = 0, 0
    while True:
        if now > most:
            most = now
            for i in range(d):
                for j in range(d):
                    found[i, j] = joined[i, j]
        step += 1
        # In the end all pairs in turn, until none gains any more.
        is_greedy = step > n_steps
        if is_greedy and step - last_change > n_pairs:
            break
        if step % 1000 == 0:
            temperature *= cooling
        least = 1e-12  # of a change that is taken
        state = _random(state)
        if is_greedy:
            b += 1
            if b >= d:
                a = a + 1 if a < d - 2 else 0
                b = a + 1
        else:
            a = (state >> 20) % d
            b = (state >> 40) % d
            state = _random(state)
            least = temperature * np.log(((state >> 10) & 0xFFFFFFFF) * 2.0**-32 + 1e-300)
        if is_greedy or state & 8:  # an edge comes or goes
            if a != b:
                stamp += 1
                change = _toggle(
                    a, b, least, k, gains, offsets, terms, uses, penalty,
                    joined, neighbours, degrees, common, queue, seen, stamp,
                )  # fmt: skip
                if change > REFUSED:
                    now += change
                    last_change = max(last_change, step)
        elif state & 4:  # an edge of column a goes to another column instead, near to the one it leaves
            if degrees[a] == 0:
                continue
            b = neighbours[a, (state >> 20) % degrees[a]]
            state = _random(state)
            through = b if state & 1 else neighbours[a, (state >> 20) % degrees[a]]
            c = neighbours[through, (state >> 40) % degrees[through]]
            if c == a or joined[a, c]:
                continue
            stamp += 2
            change = _toggle(
                a, b, REFUSED, k, gains, offsets, terms, uses, penalty,
                joined, neighbours, degrees, common, queue, seen, stamp - 1,
            )  # fmt: skip
            if change == REFUSED:
                continue
            more = _toggle(
                a, c, least - change, k, gains, offsets, terms, uses, penalty,
                joined, neighbours, degrees, common, queue, seen, stamp,
            )  # fmt: skip
            if more == REFUSED:
                stamp += 1
                _toggle(
                    a, b, REFUSED, k, gains, offsets, terms, uses, penalty,
                    joined, neighbours, degrees, common, queue, seen, stamp,
                )  # fmt: skip
            else:
                now += change + more
        else:  # column a moves to a complete set that holds b, or, where both are the same, to none
            size = degrees[a]
            if size > k - 1:
                continue
            for i in range(size):
                common[i] = neighbours[a, i]
            if not _are_complete(joined, common, size):
                continue
            new = 0
            if a != b:
                target[0] = b
                new = 1
                wanted = 1 + (state >> 4) % (k - 1)
                tries = 2 * k
                while new < wanted and tries > 0 and degrees[b] > 0:
                    tries -= 1
                    state = _random(state)
                    other = neighbours[b, (state >> 20) % degrees[b]]
                    fits = other != a
                    for i in range(new):
                        fits = fits and joined[other, target[i]]
                    if fits:
                        target[new] = other
                        new += 1
            same = new == size
            for i in range(new):
                same = same and joined[a, target[i]]
            if same:
                continue
            change = _change(common, size, 1, gains, offsets, terms, uses, penalty)
            change += _change(target, new, -1, gains, offsets, terms, uses, penalty)
            common[size] = a
            target[new] = a
            change += _change(common, size + 1, -1, gains, offsets, terms, uses, penalty)
            change += _change(target, new + 1, 1, gains, offsets, terms, uses, penalty)
            if change < least:
                continue
            _use(common, size, 1, offsets, terms, uses)
            _use(target, new, -1, offsets, terms, uses)
            _use(common, size + 1, -1, offsets, terms, uses)
            _use(target, new + 1, 1, offsets, terms, uses)
            for i in range(size):
                _part_with(a, common[i], joined, neighbours, degrees)
            for i in range(new):
                _join(a, target[i], joined, neighbours, degrees)
            now += change
