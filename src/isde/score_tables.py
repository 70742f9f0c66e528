"""Step 1, from rows to tables: the only loop that scores, the mean over splits, the best of several models."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from isde import memory
from isde.arrays import IntVector, Matrix, Vector
from isde.data.words import in_braces
from isde.errors import CheckpointError, PartialWarning, warn
from isde.listed_subsets import EVERY_UP_TO, ListedSubsets
from isde.marginals.marginal import SubsetScorer
from isde.progress import Advance, progress_bar, say
from isde.run.clusters import choose_executor
from isde.run.executors import Executor, ScoreTask
from isde.run.store import MemoryStore, Store
from isde.run.work import Chunk, ChunkScores, Means, Report, Tuned
from isde.scores import ALIGNED, SubsetScores
from isde.splits import Split, scored_in_common, split_key
from isde.subsets import Subset, SubsetFamily

SPLITS_KEPT = 4
"""Splits whose rows are kept prepared: chunks come split by split, and few are under way at once."""

TABLE_BYTES = 17
"""Of a subset of a split, while the table of a model is made: score, bandwidth, whether it is settled."""

AVERAGED_AT_ONCE = 1 << 16
"""Subsets whose scores of all splits are averaged together: what that takes besides stays small, however many."""

NUMBER_BYTES = 8

TUNED_TO_MEASURE = 40
"""Rows that tell a bandwidth of the usual size, to measure what scoring with it costs."""

LAST_ROUNDS = 2
"""Tasks of each worker that are taken by size. Those before come split by split, whose rows are prepared once."""

SAID = 8
"""Subsets that are named where several have no score."""

RESULT_BYTES, PLAIN_BYTES = 14, 9
"""Of a subset of a split by a model, at most, as the store packs it: position, score, bandwidth, if it is settled; and
without a bandwidth, all subsets in a row."""


TUNED_SPLITS, TUNED_SHARE = 10, 0.2
"""How many splits, the first ones, search by themselves for what all of them use, if there are as many, and by which
share of their rows: a tenth of what searches of their own would cost, and as many true blocks are found
(experiments/shared_tuning.py). One search by all rows costs no less, but its luck is not averaged: of pairs with
correlation 0.2 it found 79 % in place of 88."""

TUNED_FROM = 1000
"""Rows to fit on, from which on splits share. Of fewer, searches cost little; and on the copula scale splits that each
decide whether a subset depends at all are wrong one at a time: chance then gives triples by kernels a third as much."""

TUNING_STEPS = 2
"""What tuning is worth on the bar of progress, in scores: with kernels it takes about as long."""


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
        """On the bar of progress."""
        return self.chunk.n_subsets * (TUNING_STEPS if self.tunes else 1)


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
    lists: Sequence[ListedSubsets] = (),
    executor: Executor | None = None,
    needed_after: int = 0,
    needed_beside: int = 0,
    shared: bool | None = None,
) -> list[SubsetScores]:
    """A table for each model of a scorer: mean score over splits, its standard error, median bandwidth.

    What a store has is not scored again. Its table may have been scored for smaller blocks first, those of `sizes`. The
    subsets beyond `subsets.complete` columns stand in `lists`, of which the last is new. Where what follows will need
    more memory, `needed_after` says how much, so that it can be said before anything is done; `needed_beside` is what
    comes on top of what threads do not give back. Splits share what is tuned if they are many and large, or as `shared`
    says.
    """
    scorer.warn_few_rows(min(len(fit) for fit, _ in splits))
    store = MemoryStore() if store is None else store
    executor = choose_executor(n_jobs, scorer.traits.in_processes) if executor is None else executor
    shared = are_tuned_together(splits) if shared is None else shared
    tasks, rows = plan_tasks(scorer, splits, subsets, sizes, lists, shared=shared), SplitRows(scorer, X, splits)
    finished = frozenset(store.finished())
    todo = [task for task in tasks if task.key not in finished]
    for task in tasks:
        if task.key in finished:
            _check_found(task, store.get(task.key))
    if verbose > 0 and not lists:
        _say_what_is_left(scorer, rows, subsets, n_jobs, tasks, todo, (needed_after, needed_beside), store.in_memory)
    if todo:
        work = f"Scoring {len(lists[-1] if lists else subsets):,} subsets" + (
            f" on {len(splits)} splits" if len(splits) > 1 else ""
        )
        with progress_bar(sum(task.n_steps for task in todo), work, show=verbose > 0) as advance:
            lost = _run_in_turn(scorer, rows, tasks, executor, store, advance)
        _warn_lost(lost, names)
    common = scored_in_common(splits)
    return [
        average_scores(_by_split(model, tasks, store, len(splits), subsets, names), common)
        for model in range(scorer.n_models)
    ]


def check_table(subsets: SubsetFamily, n_splits: int, n_models: int, *, in_memory: bool) -> None:
    """Raise `ResourceError`, before anything is allocated, for a table that this machine cannot hold."""
    each = bytes_of_subset(n_splits, n_models, in_memory=in_memory)
    most, n, k = memory.memory_bytes(), subsets.offsets[-1], subsets.max_size
    fits = [size for size in range(1, k) if most is None or subsets.offsets[size + 1] * each <= most]
    memory.check_memory(
        n * each,
        f"max_block_size={k} with {subsets.n_columns:,} columns means {n:,} subsets: their table",
        _way_out(fits[-1] if fits else 0, k),
    )


def _way_out(fits: int, asked: int) -> str:
    """What else there is where the table for blocks of `asked` columns is too large, and one for `fits` is not."""
    smaller = [f"max_block_size={fits}"] if fits else []
    fewer = ["search='screened'"] if EVERY_UP_TO <= fits < asked else []
    return f"use {', or '.join([*smaller, *fewer, 'fewer columns'])}"


def bytes_of_subset(n_splits: int, n_models: int, *, in_memory: bool) -> int:
    """What a subset takes until there is one table: what was found, if it stands in no file, and the tables made."""
    found = RESULT_BYTES * n_splits * n_models if in_memory else 0
    return found + TABLE_BYTES * n_splits + len(ALIGNED) * NUMBER_BYTES * n_models


def plan_tasks(
    scorer: SubsetScorer,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    sizes: Sequence[int] = (),
    lists: Sequence[ListedSubsets] = (),
    *,
    shared: bool = False,
) -> list[Task]:
    """All that there is to do: what splits share, if they do, then split by split.

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
    """Whether there are enough of them, of enough rows. More of them change nothing in what those before share."""
    return len(splits) >= TUNED_SPLITS and min(len(fit) for fit, _ in splits) >= TUNED_FROM


def _run_in_turn(
    scorer: SubsetScorer, rows: SplitRows, tasks: Sequence[Task], executor: Executor, store: Store, advance: Advance
) -> list[Task]:
    """First what is shared, then what each split scores with it; tasks that could not be done are given back."""
    shared, of_splits = ([task for task in tasks if task.tunes is tunes] for tunes in (True, False))
    lost = run_tasks(partial(score_task, scorer, rows), shared, executor, store, advance)
    untuned = {(task.subsets, task.chunk.key) for task in lost}
    left = [task for task in of_splits if (task.subsets, task.chunk.key) not in untuned]
    found = [(task, store.get(task.key)) for task in shared if task not in lost]
    tuned = rows.with_tuned(found) if found else rows
    return lost + run_tasks(partial(score_task, scorer, tuned), left, executor, store, advance)


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


def _warn_lost(lost: Sequence[Task], names: Sequence[str]) -> None:
    """Name what has no score."""
    if not lost:
        return
    some = [in_braces(names[c] for c in subset) for task in lost for subset in _subsets_of(task.chunk, task.subsets)]
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
    return scorer.score(rows.of(task), task.subsets, task.chunk, means)


class SplitRows:
    """The rows of each split as a scorer takes them, prepared when they are asked for; those of few splits are kept."""

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
        """Another process prepares its own, once for all chunks that it is sent: of the rows that are used."""
        used = np.unique(np.concatenate(list(chain(*self.splits))))
        splits = [(np.searchsorted(used, fit), np.searchsorted(used, score)) for fit, score in self.splits]
        return _rows_here, (self.token, self.scorer, self.X[used], splits, self.tuned)


def _tuned(subsets: SubsetFamily, model: int, found: Sequence[tuple[Task, ChunkScores]]) -> Tuned | None:
    """For the subsets of a family, what is nearest to the mean of what splits found by one model; None: nothing was.

    The nearest, since bandwidths of a grid are many subsets' at once, and the geometric mean is nobody's.
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
    if not _here or _here[0][0] != token:
        _here[:] = [(token, SplitRows(*rows))]
    return _here[0][1]


class _Progress:
    """Subsets done, those of a chunk under way by the share of its work."""

    def __init__(self, advance: Advance) -> None:
        self.advance, self.ahead = advance, 0

    def within(self, task: Task) -> Report:
        def report(share: float) -> None:
            reached = int(share * task.n_steps)
            if reached > self.ahead:
                self.advance(reached - self.ahead)
                self.ahead = reached

        return report

    def finish(self, task: Task) -> None:
        self.advance(task.n_steps - self.ahead)
        self.ahead = 0


def _say_what_is_left(
    scorer: SubsetScorer,
    rows: SplitRows,
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task],
    todo: Sequence[Task],
    needed_then: tuple[int, int],
    in_memory: bool,
) -> None:
    whole, left = (sum(task.n_steps for task in some) for some in (tasks, todo))
    if left < whole:
        there = f"{len(tasks) - len(todo):,} of {len(tasks):,} chunks"
        say(f"{1 - left / whole:.0%} of the subsets were scored before ({there})")
    if todo:
        say("Measuring (the first run on a machine compiles for some seconds)")
        say(announcement(scorer, rows, subsets, n_jobs, todo, *needed_then, in_memory=in_memory))


def expected_cost(
    scorer: SubsetScorer,
    X: Matrix,
    splits: Sequence[Split],
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task] | None = None,
    *,
    in_memory: bool = True,
) -> tuple[float, int]:
    """Seconds and bytes that tasks, or all of them, will need: of each model a chunk of middle size is timed.

    What they find takes memory, or stands in a file.
    """
    executor = choose_executor(n_jobs, scorer.traits.in_processes)
    tasks = plan_tasks(scorer, splits, subsets, shared=are_tuned_together(splits)) if tasks is None else tasks
    means, rows = executor.means(len(tasks)), SplitRows(scorer, X, splits)
    at_once = executor.n_workers // means.n_workers
    seconds, needed = 0.0, 0
    for own in _of_one_kind(tasks):
        middle = sorted(own, key=lambda task: task.chunk.work)[len(own) // 2]
        cost = scorer.cost(_measurable(scorer, rows, middle, means), middle.subsets, middle.chunk, means)
        one = cost.shared / executor.n_workers + cost.alone / at_once
        seconds += one * sum(task.chunk.work for task in own) / middle.chunk.work
        needed = max(needed, at_once * cost.memory)
    found = sum(task.chunk.n_subsets * (RESULT_BYTES if task.chunk.tuned else PLAIN_BYTES) for task in tasks)
    tables = bytes_of_subset(len(splits), scorer.n_models, in_memory=False) * len(subsets)
    return seconds, needed + found * in_memory + tables


def _measurable(scorer: SubsetScorer, rows: SplitRows, task: Task, means: Means) -> Any:
    """The rows of a task; what is tuned for its split is not known yet, and taken from few rows."""
    if not task.shares:
        return rows.of(task)
    few = scorer.to_tune(rows[task.split], min(1.0, TUNED_TO_MEASURE / len(rows.splits[task.split][0])))
    found = scorer.score(few, task.subsets, task.chunk, replace(means, report=lambda share: None))
    return rows.with_tuned([(replace(task, split=0), found)]).of(task)


def announcement(
    scorer: SubsetScorer,
    rows: SplitRows,
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task],
    needed_after: int = 0,
    needed_beside: int = 0,
    *,
    in_memory: bool = True,
) -> str:
    """What there is to do, and what it will cost, in a sentence; memory is that of the process, rows and all."""
    (fit, score), n = rows.splits[0], len(rows.splits)
    seconds, needed = expected_cost(scorer, rows.X, rows.splits, subsets, n_jobs, tasks, in_memory=in_memory)
    most = memory.resident_bytes() + max(needed + needed_beside, needed_after)
    of_splits = f"{n} splits of the rows: " if n > 1 else ""
    what = scorer.describe(subsets, len(fit), len(score))
    return f"{of_splits}{what}: {in_words(seconds, n)}, {most / 2**20:,.0f} MB with the rows"


def _of_one_kind(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Tasks of one model, those that tune and those that score apart."""
    kinds: dict[Any, list[Task]] = {}
    for task in tasks:
        kinds.setdefault((task.chunk.model, task.tunes), []).append(task)
    yield from kinds.values()


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
    places = {own: _places(own, subsets) for own in {task.subsets for task in tasks}}
    for task in tasks:
        if not task.tunes and task.chunk.model == model and task.key in finished:
            found = store.get(task.key)
            here = task.split, places[task.subsets][found.positions]
            scores[here], bandwidths[here], unsettled[here] = found.scores, found.bandwidths, found.unsettled
    unknown, nothing = np.full(len(subsets), np.nan), np.zeros(len(subsets))  # shared by all splits
    columns = (tuple(np.flatnonzero(own[: subsets.n_columns]).tolist()) for own in unsettled)
    return [
        SubsetScores(subsets, score, bandwidth, unknown, tuple(names), edge, gain_errors=unknown, charges=nothing)
        for score, bandwidth, edge in zip(scores, bandwidths, columns, strict=True)
    ]


def _places(own: SubsetFamily, subsets: SubsetFamily) -> IntVector:
    """Where the subsets of one family stand in another."""
    every = np.arange(len(own))
    return subsets.find(own.padded_members(every)) if isinstance(own, ListedSubsets) else every


def _check_found(task: Task, found: ChunkScores) -> None:
    """Raise `CheckpointError` for what cannot be the scores of a task: nobody else's numbers become its own."""
    content = task.chunk.content
    in_place = not isinstance(content, range) or np.array_equal(found.positions, np.array(content))
    sound = found.are_sound(task.chunk.n_subsets, np.ones(len(task.subsets), dtype=bool))
    if not (in_place and sound) or (task.tunes and np.isnan(found.bandwidths).any()):
        raise CheckpointError(f"What the run holds for chunk {task.key} was not scored by isde: give another folder.")


def with_columns(scores: SubsetScores, alone: SubsetScores) -> SubsetScores:
    """Scores of dependence alone plus what each column scores by itself.

    Gains and their errors do not change; the error of a score is that of two terms that hardly know each other.
    """
    errors = np.sqrt(scores.gain_errors**2 + scores.subsets.sum_over_members(alone.errors**2))
    return replace(scores.shifted(alone.scores), errors=errors, unsettled=alone.unsettled, dependence=scores.gains)


def average_scores(tables: Sequence[SubsetScores], common: float) -> SubsetScores:
    """One table from several splits of the same rows: mean score, its standard error, median bandwidth.

    Splits share rows: more of them take away the chance of the split, not that of the rows. Two splits that score a
    share `common` of the same rows differ by less than two samples do, and their scores have that much correlation
    (Nadeau and Bengio 2003, who take it from the numbers of rows where they are drawn at random).
    """
    if len(tables) == 1:
        return tables[0]
    first, widening = tables[0], np.sqrt(1 / len(tables) + common / (1 - common))
    names = "scores", "errors", "gain_errors", "bandwidths"
    found: dict[str, Any] = {name: np.empty(len(first)) for name in names}
    for size in range(1, first.max_block_size + 1):
        where = first.subsets.of_size(size)
        for start in range(where.start, where.stop, AVERAGED_AT_ONCE):
            here = slice(start, min(start + AVERAGED_AT_ONCE, where.stop))
            scores, gains = (
                np.stack(values) for values in zip(*(_within(table, size, here) for table in tables), strict=True)
            )
            found["scores"][here] = scores.mean(axis=0)
            with np.errstate(invalid="ignore"):  # -inf minus -inf: a subset no split could fit has no spread
                found["errors"][here] = scores.std(axis=0, ddof=1) * widening
                found["gain_errors"][here] = gains.std(axis=0, ddof=1) * widening
            found["bandwidths"][here] = np.median([table.bandwidths[here] for table in tables], axis=0)
    return replace(first, unsettled=tuple(sorted({c for table in tables for c in table.unsettled})), **found)


def _within(table: SubsetScores, size: int, here: slice) -> tuple[Vector, Vector]:
    """Scores and gains of some subsets of one size."""
    first, scores = table.subsets.offsets[size], table.scores[here]
    members = table.subsets.members(size)[here.start - first : here.stop - first]
    with np.errstate(invalid="ignore"):  # -inf minus -inf: no gain can be told
        return scores, scores - table.scores[: table.n_columns][members].sum(axis=1)


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
