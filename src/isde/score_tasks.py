"""What there is to score, as tasks: the chunks of each split, what splits share, and the rows that a task takes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from isde.arrays import Matrix
from isde.listed_subsets import ListedSubsets
from isde.marginals.marginal import SubsetScorer
from isde.run.work import Chunk, ChunkScores, Means, Tuned
from isde.splits import Split, split_key
from isde.subsets import SubsetFamily

SPLITS_KEPT = 4
"""Splits whose prepared rows are kept: chunks come split by split, so that few splits are in use at once."""

TUNED_SPLITS, TUNED_SHARE = 10, 0.2
"""Where there are so many splits, the first ones search for what all of them use, each by such a share of its rows: a
tenth of what a search for every split would cost, and as many true blocks are found (experiments/shared_tuning.py
recovery). One search by all rows costs no less, but its luck is not averaged out: of weak pairs it finds 79 %, ten
searches 83, those of every split's own 88 (experiments/shared_tuning.py searches)."""

TUNED_FROM = 1000
"""Rows to fit on from which splits share their searches. With fewer rows a search costs little; and on the copula scale
splits that decide by themselves whether a subset depends at all do not all err at once: chance then gives pairs a third
as much by kernels (experiments/shared_tuning.py chance)."""

TUNING_STEPS = 2
"""For how many scores a tuning task counts on the progress bar: with kernels it takes about as long."""


@dataclass(frozen=True)
class Task:
    """A chunk of one split."""

    split: int
    chunk: Chunk
    key: str  # of the split and the chunk: follows from the rows drawn and the subsets alone
    subsets: SubsetFamily  # of whose chunks it is one: that of the table, a smaller one that came first, or a list

    tunes: bool = False  # or else it scores
    shares: bool = False  # scores with what others tuned

    @property
    def n_steps(self) -> int:
        """How far it moves the progress bar."""
        return self.chunk.n_subsets * (TUNING_STEPS if self.tunes else 1)


def plan_tasks(
    scorer: SubsetScorer,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    sizes: Sequence[int] = (),
    lists: Sequence[ListedSubsets] = (),
    *,
    shared: bool = False,
) -> list[Task]:
    """All that there is to do: first what splits share, if they do, then split by split.

    Each for the smallest of `sizes`, then for what each larger one adds, then for `lists`.
    """
    steps = pairwise([0, *(size for size in sizes if size < subsets.complete), subsets.complete])
    families = [(above, SubsetFamily(subsets.n_columns, size)) for above, size in steps]
    chunks = [(own, chunk, chunk.key) for above, own in families for chunk in scorer.chunks(own, above)]
    chunks += [(own, chunk, f"{own.key}:{chunk.key}") for own in lists for chunk in scorer.chunks(own)]
    keys = [split_key(split) for split in splits]
    tuned = keys[:TUNED_SPLITS] if shared else []
    tasks = [
        Task(number, chunk, f"{rows}:tuning:{key}", own, tunes=True)
        for number, rows in enumerate(tuned)
        for own, chunk, key in chunks
        if chunk.tuned
    ]
    by = f"tuned-{blake2b(''.join(tuned).encode(), digest_size=8).hexdigest()}:"
    for number, rows in enumerate(keys):
        for own, chunk, key in chunks:
            shares = shared and chunk.tuned
            tasks.append(Task(number, chunk, f"{rows}:{by if shares else ''}{key}", own, shares=shares))
    return tasks


def are_tuned_together(splits: Sequence[Split]) -> bool:
    """Whether splits are enough, and large enough, to share searches. Further ones change nothing for those before."""
    return len(splits) >= TUNED_SPLITS and min(len(fit) for fit, _ in splits) >= TUNED_FROM


class SplitRows:
    """The rows of each split as a scorer takes them: prepared when they are asked for, and kept for a few splits."""

    def __init__(
        self,
        scorer: SubsetScorer,
        X: Matrix,
        splits: Sequence[Split],
        tuned: Mapping[SubsetFamily, Sequence[Tuned | None]] | None = None,
    ) -> None:
        self.scorer, self.X, self.splits, self.tuned = scorer, X, splits, tuned or {}
        self._prepared: OrderedDict[int, Any] = OrderedDict()
        self._lock = threading.Lock()
        self.token = uuid4().hex

    def __getitem__(self, number: int) -> Any:
        with self._lock:
            if number not in self._prepared:
                fit, score = self.splits[number]
                self._prepared[number] = self.scorer.prepare(self.X[fit], self.X[score])
                if len(self._prepared) > SPLITS_KEPT:
                    self._prepared.popitem(last=False)
            return self._prepared[number]

    def of(self, task: Task) -> Any:
        """The rows of a task: to tune on, or with what was tuned for its subsets."""
        rows, tuned = self[task.split], self.tuned.get(task.subsets)
        if task.tunes:
            return self.scorer.to_tune(rows, TUNED_SHARE)
        return rows if tuned is None else self.scorer.with_tuned(rows, tuned)

    def with_tuned(self, found: Sequence[tuple[Task, ChunkScores]]) -> SplitRows:
        """The same rows, with what was found for all splits."""
        by_family: dict[SubsetFamily, list[tuple[Task, ChunkScores]]] = {}
        for task, scores in found:
            by_family.setdefault(task.subsets, []).append((task, scores))
        models = range(self.scorer.n_models)
        tuned = {own: [_tuned(own, model, parts) for model in models] for own, parts in by_family.items()}
        return SplitRows(self.scorer, self.X, self.splits, tuned)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process is sent the rows that are used, and prepares them once for all of its chunks."""
        used = np.unique(np.concatenate(list(chain(*self.splits))))
        splits = [(np.searchsorted(used, fit), np.searchsorted(used, score)) for fit, score in self.splits]
        return _rows_here, (self.token, self.scorer, self.X[used], splits, self.tuned)


def _tuned(subsets: SubsetFamily, model: int, found: Sequence[tuple[Task, ChunkScores]]) -> Tuned | None:
    """For each subset of a family, the bandwidth nearest to the mean of those that splits found; None: none was found.

    Not the mean itself: many subsets share a bandwidth of a grid, and none shares a geometric mean.
    """
    own = [(task.split, scores) for task, scores in found if task.chunk.model == model]
    if not own:
        return None
    shape = 1 + max(split for split, _ in own), len(subsets)
    bandwidths, unsettled = np.ones(shape), np.zeros(shape, dtype=bool)
    for split, scores in own:
        bandwidths[split, scores.positions] = scores.bandwidths
        unsettled[split, scores.positions] = scores.unsettled
    bandwidths = np.sort(bandwidths, axis=0)[::-1]
    logs = np.log(bandwidths)
    nearest = np.abs(logs - logs.mean(axis=0)).round(9).argmin(axis=0)  # of two as near, the wider one
    return Tuned(bandwidths[nearest, np.arange(len(subsets))], np.logical_or.reduce(unsettled))


_here: list[tuple[str, SplitRows]] = []
"""The rows that this process was sent last."""


def _rows_here(token: str, *rows: Any) -> SplitRows:
    found = next((found for own, found in _here if own == token), None)
    if found is None:
        found = SplitRows(*rows)
        _here[:] = [(token, found)]  # other threads may put theirs in its place
    return found


def score_task(rows: SplitRows, task: Task, means: Means) -> ChunkScores:
    return rows.scorer.score(rows.of(task), task.subsets, task.chunk, means)
