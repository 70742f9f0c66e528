"""Depth-first search for the partitions whose blocks waste the least of the columns' prices.

Blocks are tried in Python's order of tuples, so that of equal partitions the first is met first. What was learned
below a set of covered columns, a lower bound on the slack of any completion, is remembered: when the same columns are
covered again, by other blocks, what cannot lead to a better partition is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from isde.arrays import FrozenArrays
from isde.engine.jit import loop, part, plain
from isde.partitions import Partition
from isde.solvers.prices import cover_matrix
from isde.subsets import SubsetFamily

FEW_NODES = 3000
"""Blocks that a process tries in plain Python at most: the time that it takes to load the compiled search."""

REMEMBERED = 1 << 20
"""Sets of covered columns that are remembered at most: 24 MB for up to 64 columns."""

LARGEST_TOTAL = 1 << 61
"""No limit goes beyond: sums of slacks must stay within 64 bits."""


_tried_by_python = 0
"""How many it has tried so far: many short searches cost what a long one does, and deserve compiled code as well."""


class SearchTooLong(Exception):
    """More blocks were tried than allowed."""


@dataclass(frozen=True)
class Search(FrozenArrays):
    """What is looked for among the subsets of a family."""

    subsets: SubsetFamily
    slacks: NDArray[np.int64]  # of each subset
    step: int  # totals of different weight differ by at least this
    most_nodes: int  # `SearchTooLong` is raised when more blocks than this were tried
    max_blocks: int | None = None
    fee: int = 0  # for each block that a partition has less than max_blocks

    def least(self, n: int, limit: int) -> list[tuple[Partition, int]]:
        """The `n` partitions of least total slack, at most `limit`, with their totals; fewer where there are fewer."""
        if n > 1:
            return self.several(n, limit)
        found = self.best(limit)
        return [] if found is None else [found]

    def best(self, limit: int, *, first: bool = False) -> tuple[Partition, int] | None:
        """The partition of least total slack, at most `limit`, and the total; None where there is none.

        With `first`, the first one met within the limit. Otherwise columns that no usable subset connects are searched
        apart, unless the number of blocks ties them together.
        """
        if first or self.max_blocks is not None:
            found = self.several(1, limit, first=first)
            return found[0] if found else None
        usable = np.flatnonzero(self.slacks <= limit)
        _, label = connected_components(_links(self.subsets, usable), directed=False)
        home = label[self.subsets.padded_members(usable)[:, 0]]
        blocks: Partition = ()
        total = 0
        for component in range(label.max() + 1):
            found = self._among(usable[home == component], np.flatnonzero(label == component), 1, limit)
            if not found:
                return None
            blocks += found[0][0]
            total += found[0][1]
        return (tuple(sorted(blocks)), total) if total <= limit else None

    def several(self, n: int, limit: int, *, first: bool = False) -> list[tuple[Partition, int]]:
        """The `n` partitions of least total slack, at most `limit`, in order, with their totals."""
        columns = np.arange(self.subsets.n_columns)
        return self._among(np.flatnonzero(self.slacks <= limit), columns, n, limit, first=first)

    def _among(
        self, usable: NDArray[np.intp], columns: NDArray[np.intp], n: int, limit: int, *, first: bool = False
    ) -> list[tuple[Partition, int]]:
        members = self.subsets.padded_members(usable)
        order = np.lexsort(members.T[::-1])  # Python's order: the padding, -1, puts a prefix first
        usable, members = usable[order], members[order]
        d = len(columns)
        local = np.full(self.subsets.n_columns + 1, -1, dtype=np.int64)
        local[columns] = np.arange(d)
        members = local[members]
        words = d // 64 + 1  # the columns, and a word of its own for the number of blocks where that is limited
        words += self.max_blocks is not None
        masks = np.zeros((len(usable), words), dtype=np.uint64)
        for column in members.T:
            here = np.flatnonzero(column >= 0)
            masks[here, column[here] >> 6] |= np.uint64(1) << (column[here] & 63).astype(np.uint64)
        starts = np.searchsorted(members[:, 0], np.arange(d + 1)).astype(np.int64)
        slots = min(REMEMBERED, 16 * 2 ** min(d, 30))

        def search(function: Callable[..., Any], most_nodes: int) -> tuple[int, int]:
            kept[:], totals[:] = -1, 0
            return function(
                starts, masks, (members >= 0).sum(axis=1), self.slacks[usable], self.subsets.max_size,
                -1 if self.max_blocks is None else self.max_blocks, self.fee, limit, self.step, most_nodes, first,
                np.zeros((slots, words), np.uint64), np.zeros(slots, np.int64), kept, totals,
            )  # fmt: skip

        kept, totals = np.empty((n, d), dtype=np.int64), np.empty(n, dtype=np.int64)
        global _tried_by_python
        few, nodes = min(FEW_NODES - _tried_by_python, self.most_nodes), self.most_nodes + 1
        if few > 0 and not _search.signatures:  # nothing is compiled for a short search
            with np.errstate(over="ignore"):  # of the hash
                count, nodes = search(plain(_search), few)
            _tried_by_python += nodes
        if nodes > few and (few < self.most_nodes or _search.signatures):
            count, nodes = search(_search, self.most_nodes)
        if nodes > self.most_nodes:
            raise SearchTooLong
        return [
            (tuple(self.subsets[int(usable[i])] for i in kept[row] if i >= 0), int(totals[row])) for row in range(count)
        ]


def _links(subsets: SubsetFamily, usable: NDArray[np.intp]) -> Any:
    """A graph of the columns in which those of a usable subset are connected."""
    cover = cover_matrix(subsets, usable)
    return cover @ cover.T


@part
def _slot(
    covered: NDArray[np.uint64],  # in: bits of the covered columns
    memory: NDArray[np.uint64],  # in: covered sets met before
) -> Any:
    """Where a set is remembered, or may be; -1 where its neighbourhood is full, which costs time, not correctness."""
    slots, words = memory.shape
    key = np.uint64(14695981039346656037)
    for w in range(words):
        key = (key ^ covered[w]) * np.uint64(1099511628211)
        key ^= key >> np.uint64(29)
    slot = np.int64(key % np.uint64(slots))
    for probe in range(32):
        place = (slot + probe) % slots
        empty, same = True, True
        for w in range(words):
            empty &= memory[place, w] == 0
            same &= memory[place, w] == covered[w]
        if same or empty:
            return place
    return -1


@loop
def _search(
    starts: NDArray[np.int64],  # in: candidates with first column c stand at starts[c]:starts[c + 1]
    masks: NDArray[np.uint64],  # in: bits of the columns of each candidate
    sizes: NDArray[np.int64],  # in: how many these are
    slacks: NDArray[np.int64],  # in: of each candidate
    max_size: int,  # in: most columns of a candidate
    max_blocks: int,  # in: most blocks of a partition; -1: no limit, otherwise their number is the last word of a set
    fee: int,  # in: slack of each block less than that
    limit: int,  # in: most total slack
    step: int,  # in: least difference of two different totals
    most_nodes: int,  # in: give up after so many blocks tried
    first: bool,  # in: stop at the first partition
    memory: NDArray[np.uint64],  # scratch: covered sets met before
    least: NDArray[np.int64],  # scratch: a lower bound on the slack of any completion of theirs
    kept: NDArray[np.int64],  # out: candidates of each partition found, by depth, padded with -1
    totals: NDArray[np.int64],  # out: their total slack, ascending
) -> Any:
    """Number of partitions found and of blocks tried."""
    d, words, n = len(starts) - 1, masks.shape[1], len(totals)
    set_words = words - 1 if max_blocks >= 0 else words
    covered, one = np.zeros(words, np.uint64), np.uint64(1)
    column, cursor, spent = np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64)
    bound = np.full(d + 1, limit + 1, np.int64)  # least slack of what follows, of what was tried at each depth
    path, left = np.full(d + 1, -1, np.int64), np.full(d + 1, d, np.int64)
    count, nodes, depth, cap = 0, 0, 0, limit
    cursor[0] = starts[0]
    while depth >= 0:
        if path[depth] >= 0:  # back from below: free the block tried last
            for w in range(set_words):
                covered[w] ^= masks[path[depth], w]
            if max_blocks >= 0:
                covered[words - 1] = depth
            path[depth] = -1
        if cursor[depth] == starts[column[depth] + 1]:
            if depth > 0:
                place = _slot(covered, memory)
                if place >= 0:
                    for w in range(words):
                        memory[place, w] = covered[w]
                    least[place] = max(least[place], bound[depth])
                bound[depth - 1] = min(bound[depth - 1], slacks[path[depth - 1]] + bound[depth])
            depth -= 1
            continue
        candidate = cursor[depth]
        cursor[depth] += 1
        slack = slacks[candidate]
        if spent[depth] + slack > cap:
            bound[depth] = min(bound[depth], slack)
            continue
        fits = True
        for w in range(set_words):
            fits &= covered[w] & masks[candidate, w] == 0
        still = left[depth] - sizes[candidate]
        if not fits or (max_blocks >= 0 and still > (max_blocks - depth - 1) * max_size):
            continue
        nodes += 1
        if nodes > most_nodes:
            break
        for w in range(set_words):
            covered[w] ^= masks[candidate, w]
        if max_blocks >= 0:
            covered[words - 1] = depth + 1
        path[depth] = candidate
        total = spent[depth] + slack
        if still > 0:
            place = _slot(covered, memory)
            known = least[place] if place >= 0 else 0
            if total + known > cap:
                bound[depth] = min(bound[depth], slack + known)
                continue
            following = column[depth] + 1
            while covered[following >> 6] >> np.uint64(following & 63) & one:
                following += 1
            depth += 1
            column[depth], cursor[depth], spent[depth] = following, starts[following], total
            bound[depth], left[depth] = limit + 1, still
            continue
        if max_blocks >= 0:
            slack += fee * (max_blocks - depth - 1)
            total = spent[depth] + slack
        bound[depth] = min(bound[depth], slack)
        if total > cap:
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
        if first:
            break
        if count == n:
            cap = min(cap, totals[n - 1] - step)
    return count, nodes
