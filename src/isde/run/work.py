"""What there is to do and what was found, as values: nothing here knows who does it, where, or for which marginal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isde.arrays import FrozenArrays, IntVector, Mask, Vector
from isde.contents import FARTHEST

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterable[Any]]
"""Calls a function on each tuple of arguments, in any way, and gives the results in order."""

Report = Callable[[float], None]
"""Told the share of a chunk's work that is done."""

FEWEST_CHUNKS = 64
"""Into which a family of subsets is cut, if it has as many: few workers should wait for the last one."""


@dataclass(frozen=True)
class Chunk:
    """Some subsets, scored together by one model: the least that is done, kept, or lost."""

    key: str  # its name among all chunks of a scorer; follows from the subsets, never from memory or workers
    n_subsets: int
    work: float  # in proportion to the seconds that it takes, among the chunks of its model
    model: int = 0  # which of the scorer's models
    content: Any = None  # what the scorer needs to know which subsets these are
    tuned: bool = False  # whether something is chosen for its subsets that several splits may share


@dataclass(frozen=True)
class ChunkScores(FrozenArrays):
    """What was found of the subsets of a chunk, in any order."""

    positions: IntVector  # of the subsets among all
    scores: Vector  # mean log-density of the rows to score, nats
    bandwidths: Vector  # NaN where the model has none
    unsettled: Mask  # the best bandwidth lies on the edge of the widest grid allowed

    @classmethod
    def without_bandwidths(cls, positions: IntVector, scores: Vector) -> ChunkScores:
        return cls(positions, scores, np.full(len(scores), np.nan), np.zeros(len(scores), dtype=bool))

    def are_sound(self, n_subsets: int, have_scores: Mask) -> bool:
        """Whether these are so many of all subsets, each once, with numbers that mean something.

        A digest tells that a record is as it was written, not that it was written by this program. `have_scores` says
        which of all subsets have one.
        """
        if not len(self.positions) == len(np.unique(self.positions)) == n_subsets:
            return False
        if not ((self.positions >= 0) & (self.positions < len(have_scores))).all():
            return False
        scores = self.scores[have_scores[self.positions]]
        widths = self.bandwidths[~np.isnan(self.bandwidths)]
        # No density gives -inf; of all else there is a spread over splits.
        numbers = (scores == -np.inf) | (np.abs(scores) <= FARTHEST)
        return bool(numbers.all() and ((widths > 0) & (widths < np.inf)).all())


@dataclass(frozen=True)
class Tuned(FrozenArrays):
    """What a model chose for each subset of a family, for all splits: see `ChunkScores`."""

    bandwidths: Vector
    unsettled: Mask


@dataclass(frozen=True)
class Cost:
    """What a chunk is expected to take."""

    shared: float  # seconds of one worker that several can share
    alone: float = 0.0  # seconds that they cannot
    memory: int = 0  # bytes beyond data and results


def _serially(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
    return (function(*task) for task in tasks)


def _silently(share: float) -> None:
    pass


@dataclass(frozen=True)
class Means:
    """What a chunk may use: workers of its own, and memory."""

    run: Run = _serially
    n_workers: int = 1  # that `run` calls at once
    memory: int = 1 << 30  # bytes, for all of them
    report: Report = _silently


def cut_evenly(n_subsets: int, most: int, first: int = 0) -> Sequence[Chunk]:
    """Chunks of subsets in a row, from the first on, of at most so many and about equal work; `content` is their range.

    >>> [chunk.content for chunk in cut_evenly(130, most=8)][:2], len(cut_evenly(130, most=8))
    ([range(0, 3), range(3, 6)], 44)
    """
    size = min(most, -(-(n_subsets - first) // FEWEST_CHUNKS))
    parts = (range(start, min(start + size, n_subsets)) for start in range(first, n_subsets, size or 1))
    return [Chunk(f"{part.start}-{part.stop}", len(part), len(part), content=part) for part in parts]
