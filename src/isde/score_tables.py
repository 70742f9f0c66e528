"""Step 1, from rows to tables: the only loop that scores, the mean over splits, the best of several models."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from isde import memory
from isde.arrays import Matrix
from isde.data.words import in_braces
from isde.errors import CheckpointError, PartialWarning, warn
from isde.marginals.marginal import SubsetScorer
from isde.progress import Advance, progress_bar, say
from isde.run.clusters import choose_executor
from isde.run.executors import Executor, ScoreTask
from isde.run.store import MemoryStore, Store
from isde.run.work import Chunk, ChunkScores, Means, Report
from isde.scores import ALIGNED, SubsetScores
from isde.splits import Split, split_key
from isde.subsets import Subset, SubsetFamily

SPLITS_KEPT = 4
"""Splits whose rows are kept prepared: chunks come split by split, and few are under way at once."""

TABLE_BYTES = 42
"""Of a subset of a split, while the table of a model is made: scores, bandwidths, gains, what is averaged of them."""

LAST_ROUNDS = 2
"""Tasks of each worker that are taken by size. Those before come split by split, whose rows are prepared once."""

SAID = 8
"""Subsets that are named where several have no score."""

RESULT_BYTES = 25
"""Of a subset of a split by a model, as the store keeps it: position, score, bandwidth, whether it is settled."""


@dataclass(frozen=True)
class Task:
    """A chunk of one split."""

    split: int
    chunk: Chunk
    key: str  # of the split and the chunk: follows from the rows drawn and the subsets alone
    subsets: SubsetFamily  # of whose chunks it is one: that of the whole table, or a smaller one that came first


def score_models(
    X: Matrix,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    scorer: SubsetScorer,
    *,
    n_jobs: int | None,
    names: Sequence[str],
    verbose: int = 0,
    store: Store | None = None,
    sizes: Sequence[int] = (),
    executor: Executor | None = None,
) -> list[SubsetScores]:
    """A table for each model of a scorer: mean score over splits, its standard error, median bandwidth.

    What a store has is not scored again. Its table may have been scored for smaller blocks first, those of `sizes`.
    """
    scorer.warn_few_rows(min(len(fit) for fit, _ in splits))
    store = MemoryStore() if store is None else store
    executor = choose_executor(n_jobs, scorer.traits.in_processes) if executor is None else executor
    tasks, rows = plan_tasks(scorer, splits, subsets, sizes), SplitRows(scorer, X, splits)
    finished = frozenset(store.finished())
    todo = [task for task in tasks if task.key not in finished]
    if verbose > 0:
        _say_what_is_left(scorer, X, splits, subsets, n_jobs, tasks, todo)
    if todo:
        work = f"Scoring {len(subsets):,} subsets" + (f" on {len(splits)} splits" if len(splits) > 1 else "")
        with progress_bar(sum(task.chunk.n_subsets for task in todo), work, show=verbose > 0) as advance:
            lost = run_tasks(partial(score_task, scorer, rows), todo, executor, store, advance)
        _warn_lost(lost, subsets, names)
    overlap = sum(len(score) for _, score in splits) / sum(len(fit) for fit, _ in splits)
    return [
        average_scores(_by_split(model, tasks, store, len(splits), subsets, names), overlap)
        for model in range(scorer.n_models)
    ]


def check_table(subsets: SubsetFamily, n_splits: int, n_models: int, *, in_memory: bool) -> None:
    """Raise `ResourceError`, before anything is allocated, for a table that this machine cannot hold."""
    each = TABLE_BYTES * n_splits + (RESULT_BYTES * n_splits * n_models if in_memory else 0)
    most, n, k = memory.memory_bytes(), subsets.offsets[-1], subsets.max_size
    fits = [size for size in range(1, k) if most is None or subsets.offsets[size + 1] * each <= most]
    memory.check_memory(
        n * each,
        f"max_block_size={k} with {subsets.n_columns:,} columns means {n:,} subsets: their table",
        f"use max_block_size={fits[-1]}, or fewer columns" if fits else "use fewer columns",
    )


def plan_tasks(
    scorer: SubsetScorer, splits: Sequence[Split], subsets: SubsetFamily, sizes: Sequence[int] = ()
) -> list[Task]:
    """All that there is to do, split by split: for the smallest of `sizes`, then for what each larger one adds."""
    steps = pairwise([0, *(size for size in sizes if size < subsets.max_size), subsets.max_size])
    families = [(above, SubsetFamily(subsets.n_columns, size)) for above, size in steps]
    chunks = [(own, chunk) for above, own in families for chunk in scorer.chunks(own, above)]
    return [
        Task(number, chunk, f"{split_key(split)}:{chunk.key}", own)
        for number, split in enumerate(splits)
        for own, chunk in chunks
    ]


def run_tasks(
    score: ScoreTask[Task], tasks: Sequence[Task], executor: Executor, store: Store, advance: Advance
) -> list[Task]:
    """Do what the store does not have yet, and keep it there; tasks that could not be done are given back."""
    progress, lost, finished = _Progress(advance), [], frozenset(store.finished())
    todo = largest_of_the_last_first([task for task in tasks if task.key not in finished], executor.n_workers)
    with closing(executor.map(score, todo, progress.within)) as done:
        for task, found in done:
            if found is None:
                lost.append(task)
            else:
                store.put(task.key, found)
            progress.finish(task)
    return lost


def largest_of_the_last_first(tasks: Sequence[Task], n_workers: int) -> list[Task]:
    """Of the last tasks, the largest first: where all workers wait for the last one, that is a small one."""
    if n_workers == 1:
        return list(tasks)
    at = max(0, len(tasks) - LAST_ROUNDS * n_workers)
    return [*tasks[:at], *sorted(tasks[at:], key=lambda task: -task.chunk.work)]


def _warn_lost(lost: Sequence[Task], subsets: SubsetFamily, names: Sequence[str]) -> None:
    """Name what has no score."""
    if not lost:
        return
    some = [in_braces(names[c] for c in subset) for task in lost for subset in _subsets_of(task.chunk, subsets)]
    what = ", ".join(dict.fromkeys(some[:SAID])) + (", ..." if len(some) > SAID else "")
    chunks = dict.fromkeys(task.chunk.key for task in lost)
    warn(
        f"Scoring {what or 'some subsets'} ended the process that did it each time it was tried (chunk "
        f"{', '.join(chunks)}): these subsets have no score and are in no block, all others are scored. Leave a column "
        "out, or use another marginal; the same call tries again what is missing.",
        PartialWarning,
    )


def _subsets_of(chunk: Chunk, subsets: SubsetFamily) -> Iterator[Subset]:
    """Those of a chunk of subsets in a row; another's are known to its scorer alone."""
    if isinstance(chunk.content, range):
        yield from (subsets[i] for i in chunk.content)


def score_task(scorer: SubsetScorer, rows: SplitRows, task: Task, means: Means) -> ChunkScores:
    return scorer.score(rows[task.split], task.subsets, task.chunk, means)


class SplitRows:
    """The rows of each split as a scorer takes them, prepared when they are asked for; those of few splits are kept."""

    def __init__(self, scorer: SubsetScorer, X: Matrix, splits: Sequence[Split]) -> None:
        self.scorer, self.X, self.splits = scorer, X, splits
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process prepares its own, once for all chunks that it is sent."""
        return _rows_here, (self.token, self.scorer, self.X, self.splits)


_here: list[tuple[str, SplitRows]] = []
"""The rows that this process was sent last."""


def _rows_here(token: str, scorer: SubsetScorer, X: Matrix, splits: Sequence[Split]) -> SplitRows:
    if not _here or _here[0][0] != token:
        _here[:] = [(token, SplitRows(scorer, X, splits))]
    return _here[0][1]


class _Progress:
    """Subsets done, those of a chunk under way by the share of its work."""

    def __init__(self, advance: Advance) -> None:
        self.advance, self.ahead = advance, 0

    def within(self, task: Task) -> Report:
        def report(share: float) -> None:
            reached = int(share * task.chunk.n_subsets)
            if reached > self.ahead:
                self.advance(reached - self.ahead)
                self.ahead = reached

        return report

    def finish(self, task: Task) -> None:
        self.advance(task.chunk.n_subsets - self.ahead)
        self.ahead = 0


def _say_what_is_left(
    scorer: SubsetScorer,
    X: Matrix,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task],
    todo: Sequence[Task],
) -> None:
    whole, left = (sum(task.chunk.n_subsets for task in some) for some in (tasks, todo))
    if left < whole:
        there = f"{len(tasks) - len(todo):,} of {len(tasks):,} chunks"
        say(f"{1 - left / whole:.0%} of the subsets were scored before ({there})")
    if todo:
        say("Measuring (the first run on a machine compiles for some seconds)")
        say(announcement(scorer, X, splits, subsets, n_jobs, todo))


def expected_cost(
    scorer: SubsetScorer,
    X: Matrix,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task] | None = None,
) -> tuple[float, int]:
    """Seconds and bytes that tasks, or all of them, will need: of each model a chunk of middle size is timed."""
    executor = choose_executor(n_jobs, scorer.traits.in_processes)
    tasks = plan_tasks(scorer, splits, subsets) if tasks is None else tasks
    means, (fit, score) = executor.means(len(tasks)), splits[0]
    at_once, rows = executor.n_workers // means.n_workers, scorer.prepare(X[fit], X[score])
    seconds, memory = 0.0, 0
    for own in _by_model(tasks):
        middle = sorted(own, key=lambda task: task.chunk.work)[len(own) // 2]
        cost = scorer.cost(rows, middle.subsets, middle.chunk, means)
        one = cost.shared / executor.n_workers + cost.alone / at_once
        seconds += one * sum(task.chunk.work for task in own) / middle.chunk.work
        memory = max(memory, at_once * cost.memory)
    return seconds, memory + RESULT_BYTES * len(splits) * scorer.n_models * len(subsets)


def announcement(
    scorer: SubsetScorer,
    X: Matrix,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task],
) -> str:
    """What there is to do, and what it will cost, in a sentence."""
    (fit, score), n = splits[0], len(splits)
    seconds, memory = expected_cost(scorer, X, splits, subsets, n_jobs, tasks)
    of_splits = f"{n} splits of the rows: " if n > 1 else ""
    what = scorer.describe(subsets, len(fit), len(score))
    return f"{of_splits}{what}: {in_words(seconds, n)}, {memory / 2**20:,.0f} MB"


def _by_model(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    for model in dict.fromkeys(task.chunk.model for task in tasks):
        yield [task for task in tasks if task.chunk.model == model]


def in_words(seconds: float, n_splits: int) -> str:
    """What so many splits take, for people.

    >>> in_words(0.2, 1), in_words(42, 1), in_words(600, 20)
    ('less than a second', 'about 42 s', 'about 10 minutes in all')
    """
    scope = " in all" if n_splits > 1 else ""
    if seconds < 1:
        return f"less than a second{scope}"
    return (f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} minutes") + scope


def _by_split(
    model: int, tasks: Sequence[Task], store: Store, n_splits: int, subsets: SubsetFamily, names: Sequence[str]
) -> list[SubsetScores]:
    """The table of each split by one model."""
    # What could not be scored must not be chosen.
    scores, bandwidths = np.full((n_splits, len(subsets)), -np.inf), np.full((n_splits, len(subsets)), np.nan)
    unsettled, finished = np.zeros((n_splits, len(subsets)), dtype=bool), frozenset(store.finished())
    for task in tasks:
        if task.chunk.model == model and task.key in finished:
            found = store.get(task.key)
            _check_found(task, found, len(subsets))
            here = task.split, found.positions
            scores[here], bandwidths[here], unsettled[here] = found.scores, found.bandwidths, found.unsettled
    no_error = np.full(len(subsets), np.nan)
    columns = (tuple(np.flatnonzero(own[: subsets.n_columns]).tolist()) for own in unsettled)
    return [
        SubsetScores(subsets, score, bandwidth, no_error, tuple(names), edge)
        for score, bandwidth, edge in zip(scores, bandwidths, columns, strict=True)
    ]


def _check_found(task: Task, found: ChunkScores, n_subsets: int) -> None:
    """Raise `CheckpointError` for what cannot be the scores of a task: nobody else's numbers become its own."""
    content = task.chunk.content
    in_place = not isinstance(content, range) or np.array_equal(found.positions, np.array(content))
    if not in_place or not found.are_sound(task.chunk.n_subsets, np.ones(n_subsets, dtype=bool)):
        raise CheckpointError(f"What the run holds for chunk {task.key} was not scored by isde: give another folder.")


def with_columns(scores: SubsetScores, alone: SubsetScores) -> SubsetScores:
    """Scores of dependence alone plus what each column scores by itself.

    Gains and their errors do not change; the error of a score is that of two terms that hardly know each other.
    """
    errors = np.sqrt(scores.gain_errors**2 + scores.subsets.sum_over_members(alone.errors**2))
    return replace(scores.shifted(alone.scores), errors=errors, unsettled=alone.unsettled, dependence=scores.gains)


def average_scores(tables: Sequence[SubsetScores], overlap: float) -> SubsetScores:
    """One table from several splits of the same rows: mean score, its standard error, median bandwidth.

    Splits share rows: more of them take away the chance of the split, not that of the rows. Hence `overlap`, rows that
    score for each row that fits (Nadeau and Bengio 2003).
    """
    if len(tables) == 1:
        return tables[0]
    scores, gains = np.stack([table.scores for table in tables]), np.stack([table.gains for table in tables])
    widening = np.sqrt(1 / len(tables) + overlap)
    with np.errstate(invalid="ignore"):  # -inf minus -inf: a subset no split could fit has no spread
        errors, gain_errors = (values.std(axis=0, ddof=1) * widening for values in (scores, gains))
    return replace(
        tables[0],
        scores=scores.mean(axis=0),
        errors=errors,
        gain_errors=gain_errors,
        bandwidths=np.median([table.bandwidths for table in tables], axis=0),
        unsettled=tuple(sorted({c for table in tables for c in table.unsettled})),
    )


def best_scores(tables: Sequence[SubsetScores]) -> SubsetScores:
    """One table from those of several models: for each subset, what the model with the best score says.

    The best mean over splits: were it taken split by split, the luck of a model on the rows that score would enter.
    Where chance is charged, the best after charges: a model that chance favours less wins with less.
    """
    best, every = np.argmax([table.objectives for table in tables], axis=0), np.arange(len(tables[0]))
    return replace(
        tables[0],
        unsettled=tuple(c for c in range(tables[0].n_columns) if c in tables[best[c]].unsettled),
        dearest_pair=max(float(table.charges[table.subsets.sizes == 2].max(initial=0.0)) for table in tables),
        **{name: np.stack([getattr(table, name) for table in tables])[best, every] for name in ALIGNED},
    )
