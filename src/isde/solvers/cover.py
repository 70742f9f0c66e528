"""Depth-first search for the partitions whose blocks waste the least of the columns' prices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isde.partitions import Partition
from isde.subsets import Subset, SubsetFamily

REMEMBERED = 1 << 20
"""Slots of the memory of covered sets: 16 MB for up to 64 columns."""


def least_slack_partition(
    family: SubsetFamily, slacks: NDArray[np.int64], *, limit: int, step: int, most_nodes: int
) -> tuple[Partition, int] | None:
    """The partition of least total slack with blocks of at most `limit` each, and its total; None where there is none.

    Totals of different weight differ by at least `step`; of equal ones the first in Python's order of tuples is
    taken. Columns that no usable subset connects are searched apart. Raises `SearchTooLong` after `most_nodes` blocks.
    """
    blocks: list[Subset] = []
    total = 0
    for component in _components(family, np.flatnonzero(slacks <= limit)):
        found = _search_component(family, slacks, component, limit, step, most_nodes)
        if found is None:
            return None
        blocks += found[0]
        total += found[1]
    return tuple(sorted(blocks)), total


class SearchTooLong(Exception):
    """More blocks were tried than allowed."""


def _components(family: SubsetFamily, usable: NDArray[np.intp]) -> list[list[tuple[Subset, int]]]:
    """Usable subsets, with their positions, grouped so that no two groups share a column; every column has a group."""
    root = list(range(family.n_columns))

    def find(column: int) -> int:
        while root[column] != column:
            root[column] = root[root[column]]
            column = root[column]
        return column

    subsets = sorted((family[int(i)], int(i)) for i in usable)
    for subset, _ in subsets:
        for column in subset[1:]:
            root[find(column)] = find(subset[0])
    groups: dict[int, list[tuple[Subset, int]]] = {find(column): [] for column in range(family.n_columns)}
    for subset, position in subsets:
        groups[find(subset[0])].append((subset, position))
    return list(groups.values())


def _search_component(
    family: SubsetFamily,
    slacks: NDArray[np.int64],
    subsets: list[tuple[Subset, int]],
    limit: int,
    step: int,
    most_nodes: int,
) -> tuple[list[Subset], int] | None:
    if not subsets:
        return None  # a column that nothing usable covers
    columns = sorted({column for subset, _ in subsets for column in subset})
    local = {column: i for i, column in enumerate(columns)}
    members = np.full((len(subsets), family.max_size), -1, dtype=np.int64)
    for row, (subset, _) in enumerate(subsets):
        members[row, : len(subset)] = [local[column] for column in subset]
    starts = np.searchsorted(members[:, 0], np.arange(len(columns) + 1)).astype(np.int64)
    ordered = slacks[np.array([position for _, position in subsets])]
    kept, totals = np.full((1, len(columns)), -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    slots = min(REMEMBERED, 16 * 2 ** min(len(columns), 30))
    memory, least = np.zeros((slots, len(columns) // 64 + 1), np.uint64), np.zeros(slots, np.int64)
    count, nodes = _search(starts, members, ordered, limit, step, most_nodes, memory, least, kept, totals)
    if nodes > most_nodes:
        raise SearchTooLong
    return ([subsets[i][0] for i in kept[0] if i >= 0], int(totals[0])) if count else None


@njit(cache=True, nogil=True)
def _seen_cheaper(
    covered: NDArray[np.uint64],  # in: bits of the covered columns
    total: int,  # in: slack spent on covering them
    memory: NDArray[np.uint64],  # in, out: covered sets met before
    least: NDArray[np.int64],  # in, out: least slack they were met with
) -> Any:
    """Whether the same columns were covered before at no more cost: then all that follows was tried already."""
    slots, words = memory.shape
    key = np.uint64(14695981039346656037)
    for w in range(words):
        key = (key ^ covered[w]) * np.uint64(1099511628211)
        key ^= key >> np.uint64(29)
    slot = np.int64(key % np.uint64(slots))
    for probe in range(32):  # a full neighbourhood means: not remembered, which costs time but no correctness
        place = (slot + probe) % slots
        empty, same = True, True
        for w in range(words):
            empty &= memory[place, w] == 0
            same &= memory[place, w] == covered[w]
        if same:
            if least[place] <= total:
                return True
            least[place] = total
            return False
        if empty:
            for w in range(words):
                memory[place, w] = covered[w]
            least[place] = total
            return False
    return False


@njit(cache=True, nogil=True)
def _search(
    starts: NDArray[np.int64],  # in: candidates with first column c stand at starts[c]:starts[c + 1]
    members: NDArray[np.int64],  # in: columns of each candidate, padded with -1
    slacks: NDArray[np.int64],  # in: of each candidate
    limit: int,  # in: most total slack
    step: int,  # in: least difference of two different totals
    most_nodes: int,  # in: give up after so many blocks tried
    memory: NDArray[np.uint64],  # scratch
    least: NDArray[np.int64],  # scratch
    kept: NDArray[np.int64],  # out: candidates of each partition found, by depth, padded with -1
    totals: NDArray[np.int64],  # out: their total slack, ascending
) -> Any:
    """Number of partitions found and of blocks tried."""
    d, width, n = len(starts) - 1, members.shape[1], len(totals)
    covered = np.zeros(memory.shape[1], np.uint64)
    column, cursor, spent = np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64)
    path = np.full(d + 1, -1, np.int64)
    count, nodes, depth, one = 0, 0, 0, np.uint64(1)
    cursor[0] = starts[0]
    while depth >= 0:
        if path[depth] >= 0:  # back from below: free the block tried last
            for i in range(width):
                c = members[path[depth], i]
                if c >= 0:
                    covered[c >> 6] &= ~(one << np.uint64(c & 63))
            path[depth] = -1
        if cursor[depth] == starts[column[depth] + 1]:
            depth -= 1
            continue
        candidate = cursor[depth]
        cursor[depth] += 1
        total = spent[depth] + slacks[candidate]
        if total > limit or (count == n and total > totals[n - 1] - step):
            continue
        fits = True
        for i in range(width):
            c = members[candidate, i]
            if c >= 0 and covered[c >> 6] >> np.uint64(c & 63) & one:
                fits = False
        if not fits:
            continue
        nodes += 1
        if nodes > most_nodes:
            break
        for i in range(width):
            c = members[candidate, i]
            if c >= 0:
                covered[c >> 6] |= one << np.uint64(c & 63)
        path[depth] = candidate
        following = column[depth] + 1
        while following < d and covered[following >> 6] >> np.uint64(following & 63) & one:
            following += 1
        if following < d:
            if n > 1 or not _seen_cheaper(covered, total, memory, least):
                depth += 1
                column[depth], cursor[depth], spent[depth] = following, starts[following], total
            continue
        count = min(count + 1, n)
        place = count - 1
        while place > 0 and totals[place - 1] > total:
            totals[place] = totals[place - 1]
            for i in range(d):
                kept[place, i] = kept[place - 1, i]
            place -= 1
        totals[place] = total
        for i in range(d):
            kept[place, i] = path[i] if i <= depth else -1
    return count, nodes
