"""Partitions of d columns into blocks of at most k: check, count, enumerate, draw, compare, walk.

A partition is a tuple of blocks; a block is a sorted tuple of columns; blocks are ordered by their first column.
Python's own order of such tuples is the stated order in which ties between partitions are resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations, pairwise
from math import comb
from operator import index
from typing import Literal

import numpy as np
from sklearn.utils import check_random_state

Block = tuple[int, ...]
Partition = tuple[Block, ...]
RandomState = int | np.random.RandomState | None


def canonical_partition(blocks: Iterable[Iterable[int]], n_columns: int | None = None) -> Partition:
    """The partition with sorted blocks in order of their first column.

    Raises ValueError, naming the culprit, unless each column of range(n_columns) stands in exactly one block.

    >>> canonical_partition([[3, 1], [2, 0]])
    ((0, 2), (1, 3))
    """
    partition = tuple(sorted(tuple(sorted(index(c) for c in block)) for block in blocks))
    columns = sorted(c for block in partition for c in block)
    if () in partition or not columns:
        raise ValueError("A partition has no empty block.")
    expected = len(set(columns)) if n_columns is None else n_columns
    repeated = [c for c, following in pairwise(columns) if c == following]
    if repeated:
        raise ValueError(f"Column {repeated[0]} stands in the partition more than once.")
    if columns != list(range(expected)):
        missing = sorted(set(range(expected)) - set(columns))
        unknown = sorted(set(columns) - set(range(expected)))
        what = f"misses column {missing[0]}" if missing else f"names column {unknown[0]}"
        raise ValueError(f"The partition {what}: it must hold each of the columns 0 to {expected - 1} once.")
    return partition


def count_partitions(n_columns: int, max_block_size: int | None = None) -> int:
    """How many partitions of `n_columns` columns have blocks of at most `max_block_size`; exact.

    With the block of column 0 of size s chosen, the rest is a smaller problem:
    count(n) = sum_s C(n - 1, s - 1) count(n - s).

    >>> count_partitions(15), count_partitions(13, 5)
    (1382958545, 25719630)
    """
    if n_columns < 0:
        raise ValueError(f"n_columns={n_columns} must not be negative.")
    largest = n_columns if max_block_size is None else _check_block_size(max_block_size)
    return _count_table(n_columns, min(largest, n_columns))[n_columns]


@lru_cache(maxsize=64)
def _count_table(n_columns: int, largest: int) -> tuple[int, ...]:
    counts = [1]
    for n in range(1, n_columns + 1):
        counts.append(sum(comb(n - 1, s - 1) * counts[n - s] for s in range(1, min(largest, n) + 1)))
    return tuple(counts)


def enumerate_partitions(n_columns: int, max_block_size: int | None = None) -> Iterator[Partition]:
    """Every partition with blocks of at most `max_block_size`, in Python's order of tuples.

    >>> list(enumerate_partitions(3, 2))
    [((0,), (1,), (2,)), ((0,), (1, 2)), ((0, 1), (2,)), ((0, 2), (1,))]
    """
    largest = n_columns if max_block_size is None else _check_block_size(max_block_size)

    def blocks_from(block: Block, rest: Block) -> Iterator[Block]:
        yield block
        if len(block) < largest:
            for i, column in enumerate(rest):
                yield from blocks_from((*block, column), rest[i + 1 :])

    def extend(head: Partition, columns: Block) -> Iterator[Partition]:
        if not columns:
            yield head
            return
        for block in blocks_from(columns[:1], columns[1:]):
            yield from extend((*head, block), tuple(c for c in columns if c not in block))

    return extend((), tuple(range(n_columns)))


def random_partition(
    n_columns: int,
    max_block_size: int | None = None,
    *,
    kind: Literal["paper", "uniform"] = "paper",
    random_state: RandomState = None,
) -> Partition:
    """A random partition with blocks of at most `max_block_size`.

    `kind="paper"` shuffles the columns and cuts off blocks whose size is uniform on 1..k, the last one cut to fit.
    `kind="uniform"` gives each partition of Part_d^k the same probability.
    """
    largest = n_columns if max_block_size is None else _check_block_size(max_block_size)
    rng = check_random_state(random_state)
    if kind not in ("paper", "uniform"):
        raise ValueError(f"kind={kind!r} is unknown: use 'paper' or 'uniform'.")
    columns = list(rng.permutation(n_columns))
    blocks = []
    while columns:
        size = (
            min(int(rng.randint(1, largest + 1)), len(columns))
            if kind == "paper"
            else _uniform_first_size(len(columns), largest, rng)
        )
        blocks.append(columns[:size])
        columns = columns[size:]
    return canonical_partition(blocks, n_columns)


def _uniform_first_size(n: int, largest: int, rng: np.random.RandomState) -> int:
    """Size of one given column's block in a uniform partition: P(s) = C(n-1, s-1) count(n-s) / count(n)."""
    counts = _count_table(n, min(largest, n))
    # 64 bits beyond the count make the remainder's bias smaller than any test can see.
    ticket = int.from_bytes(rng.bytes(counts[n].bit_length() // 8 + 9), "little") % counts[n]
    for size in range(1, min(largest, n) + 1):
        ticket -= comb(n - 1, size - 1) * counts[n - size]
        if ticket < 0:
            return size
    raise AssertionError("the sizes' counts add up to the total")


def meet(first: Iterable[Iterable[int]], second: Iterable[Iterable[int]]) -> Partition:
    """The coarsest partition finer than both: all non-empty intersections of their blocks.

    >>> meet([(0, 1), (2, 3)], [(0, 1, 2), (3,)])
    ((0, 1), (2,), (3,))
    """
    P, Q = _same_columns(first, second)
    return tuple(sorted(tuple(sorted(set(p) & set(q))) for p in P for q in Q if set(p) & set(q)))


def join(first: Iterable[Iterable[int]], second: Iterable[Iterable[int]]) -> Partition:
    """The finest partition coarser than both: connected components of overlapping blocks.

    >>> join([(0, 1), (2, 3)], [(0,), (1, 2), (3,)])
    ((0, 1, 2, 3),)
    """
    P, Q = _same_columns(first, second)
    components = [set(block) for block in P]
    for block in Q:
        touched = [c for c in components if c & set(block)]
        components = [c for c in components if not c & set(block)] + [set().union(*touched)]
    return tuple(sorted(tuple(sorted(c)) for c in components))


def is_admissible(partition: Iterable[Iterable[int]], truth: Iterable[Iterable[int]]) -> bool:
    """Whether every block of `truth` lies inside a block of `partition`: nothing that belongs together is cut.

    >>> is_admissible([(0, 1, 2)], truth=[(0, 1), (2,)]), is_admissible([(0,), (1, 2)], truth=[(0, 1), (2,)])
    (True, False)
    """
    P, T = _same_columns(partition, truth)
    return all(any(set(t) <= set(p) for p in P) for t in T)


def edit_distance(
    first: Iterable[Iterable[int]],
    second: Iterable[Iterable[int]],
    *,
    kind: Literal["exact", "paper"] = "exact",
) -> int:
    """The smallest number of splits and merges that turn one partition into the other.

    Merging up to the join takes |P| - |P v Q| steps, splitting down from it |Q| - |P v Q|; no way is shorter.
    `kind="paper"` is the author's 2 |meet| - |P| - |Q|, which splits down to the meet instead and can be larger.

    >>> edit_distance([(0, 1), (2, 3)], [(0, 2), (1, 3)])
    2
    >>> edit_distance([(0, 1), (2, 3)], [(0, 2), (1, 3)], kind="paper")
    4
    """
    P, Q = _same_columns(first, second)
    if kind == "exact":
        return len(P) + len(Q) - 2 * len(join(P, Q))
    if kind == "paper":
        return 2 * len(meet(P, Q)) - len(P) - len(Q)
    raise ValueError(f"kind={kind!r} is unknown: use 'exact' or 'paper'.")


def random_walk(
    start: Iterable[Iterable[int]],
    n_steps: int,
    max_block_size: int | None = None,
    *,
    random_state: RandomState = None,
) -> list[Partition]:
    """A walk of `n_steps` splits and merges, each uniform among the neighbours inside Part_d^k.

    Returns n_steps + 1 partitions, `start` first; consecutive ones have edit distance 1.
    """
    partition = canonical_partition(start)
    n_columns = sum(map(len, partition))
    largest = n_columns if max_block_size is None else _check_block_size(max_block_size)
    if max(map(len, partition)) > largest:
        raise ValueError(f"The start has a block of {max(map(len, partition))} columns, max_block_size is {largest}.")
    if min(largest, n_columns) == 1 and n_steps > 0:
        raise ValueError("With blocks of one column there is a single partition: nowhere to walk to.")
    rng = check_random_state(random_state)
    walk = [partition]
    for _ in range(n_steps):
        walk.append(_random_neighbour(walk[-1], largest, rng))
    return walk


def _random_neighbour(partition: Partition, largest: int, rng: np.random.RandomState) -> Partition:
    """One of the partitions at edit distance 1, each with the same probability."""
    merges = [(a, b) for a, b in combinations(partition, 2) if len(a) + len(b) <= largest]
    # A block of s columns splits in 2^(s-1) - 1 ways: its first column stays, any non-empty set of the others goes.
    splits = np.array([2 ** (len(block) - 1) - 1 for block in partition], dtype=float)
    weights = np.append(splits, len(merges))
    choice = rng.choice(len(weights), p=weights / weights.sum())
    if choice == len(partition):
        a, b = merges[rng.randint(len(merges))]
        return canonical_partition([x for x in partition if x not in (a, b)] + [a + b])
    block = partition[choice]
    leaves = np.zeros(len(block) - 1, dtype=bool)
    while not leaves.any():
        leaves = rng.rand(len(block) - 1) < 0.5
    gone = [c for c, leaving in zip(block[1:], leaves, strict=True) if leaving]
    stay = [c for c in block if c not in gone]
    return canonical_partition([x for x in partition if x != block] + [stay, gone])


def _same_columns(first: Iterable[Iterable[int]], second: Iterable[Iterable[int]]) -> tuple[Partition, Partition]:
    P, Q = canonical_partition(first), canonical_partition(second)
    if sum(map(len, P)) != sum(map(len, Q)):
        raise ValueError(f"The partitions have {sum(map(len, P))} and {sum(map(len, Q))} columns.")
    return P, Q


def _check_block_size(max_block_size: int) -> int:
    if max_block_size < 1:
        raise ValueError(f"max_block_size={max_block_size} must be at least 1.")
    return int(max_block_size)
