"""Step 1, from rows to tables: the only loop that scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np

from isde.arrays import IntVector
from isde.data.words import in_braces
from isde.errors import CheckpointError, PartialWarning, warn
from isde.joined_tables import average_scores
from isde.listed_subsets import ListedSubsets
from isde.progress import Advance, progress_bar, say
from isde.run.clusters import choose_executor
from isde.run.executors import Executor, ScoreTask
from isde.run.store import MemoryStore, Store
from isde.run.work import Chunk, ChunkScores, Report
from isde.score_costs import announcement
from isde.score_tasks import SplitRows, Task, are_tuned_together, plan_tasks, score_task
from isde.scores import SubsetScores
from isde.splits import scored_in_common
from isde.subsets import Subset, SubsetFamily

LAST_ROUNDS = 2
"""Tasks for each worker, of the last ones, that are begun largest first. All before come split by split, so that the
rows of a split are prepared once."""

SAID = 8
"""How many subsets are named at most where several have no score."""


@dataclass(frozen=True)
class How:
    """Who scores, where results are kept, and what is said meanwhile: nothing that changes a table."""

    n_jobs: int | None = None
    store: Store | None = None  # what it has is not scored again; None: memory, for this time alone
    executor: Executor | None = None  # None: as `n_jobs` and the scorer ask for
    verbose: int = 0
    needed_after: int = 0  # bytes that what follows will need, where that is more: said before anything is done
    needed_beside: int = 0  # and what will come on top of all that threads do not give back


def score_models(
    rows: SplitRows,
    subsets: SubsetFamily,
    names: Sequence[str],
    how: How | None = None,
    *,
    sizes: Sequence[int] = (),
    lists: Sequence[ListedSubsets] = (),
    shared: bool | None = None,
) -> list[SubsetScores]:
    """A table for each model of the rows' scorer: mean score over splits, its standard error, median bandwidth.

    The table of a store may have been scored for smaller blocks first, those of `sizes`. The subsets beyond
    `subsets.complete` columns stand in `lists`, of which the last is new. Splits share what is tuned if they are many
    and large, or as `shared` says.
    """
    scorer, splits, how = rows.scorer, rows.splits, how or How()
    scorer.warn_few_rows(min(len(fit) for fit, _ in splits))
    store = MemoryStore() if how.store is None else how.store
    executor = choose_executor(how.n_jobs, scorer.traits.in_processes) if how.executor is None else how.executor
    shared = are_tuned_together(splits) if shared is None else shared
    tasks, finished = plan_tasks(scorer, splits, subsets, sizes, lists, shared=shared), frozenset(store.finished())
    todo = [task for task in tasks if task.key not in finished]
    for task in tasks:
        if task.key in finished:
            _check_found(task, store.get(task.key))
    if how.verbose > 0 and not lists:
        _say_what_is_left(rows, subsets, how, tasks, todo, in_memory=store.in_memory)
    if todo:
        work = f"Scoring {len(lists[-1] if lists else subsets):,} subsets" + (
            f" on {len(splits)} splits" if len(splits) > 1 else ""
        )
        with progress_bar(sum(task.n_steps for task in todo), work, show=how.verbose > 0) as advance:
            lost = _run_in_turn(rows, tasks, executor, store, advance)
        _warn_lost(lost, names)
    common = scored_in_common(splits)
    return [
        average_scores(_by_split(model, tasks, store, len(splits), subsets, names), common)
        for model in range(scorer.n_models)
    ]


def _run_in_turn(
    rows: SplitRows, tasks: Sequence[Task], executor: Executor, store: Store, advance: Advance
) -> list[Task]:
    """Do the tasks that tune, then those that score with what was tuned; give back those that could not be done."""
    shared, of_splits = ([task for task in tasks if task.tunes is tunes] for tunes in (True, False))
    lost = run_tasks(partial(score_task, rows), shared, executor, store, advance)
    untuned = {(task.subsets, task.chunk.key) for task in lost}
    left = [task for task in of_splits if (task.subsets, task.chunk.key) not in untuned]
    found = [(task, store.get(task.key)) for task in shared if task not in lost]
    tuned = rows.with_tuned(found) if found else rows
    return lost + run_tasks(partial(score_task, tuned), left, executor, store, advance)


def run_tasks(
    score: ScoreTask[Task], tasks: Sequence[Task], executor: Executor, store: Store, advance: Advance
) -> list[Task]:
    """Do the tasks that the store has no results of, and keep these there; give back those that could not be done."""
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
    """The last tasks by size, largest first: the one that all workers wait for at the end is then a small one."""
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
    """The subsets of a chunk that holds a range of them; those of any other are known to its scorer alone."""
    if isinstance(chunk.content, range):
        yield from (subsets[i] for i in chunk.content)


class _Progress:
    """Counts subsets that are done; those of a chunk under way in proportion to the work done."""

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
    rows: SplitRows, subsets: SubsetFamily, how: How, tasks: Sequence[Task], todo: Sequence[Task], *, in_memory: bool
) -> None:
    whole, left = (sum(task.n_steps for task in some) for some in (tasks, todo))
    if left < whole:
        there = f"{len(tasks) - len(todo):,} of {len(tasks):,} chunks"
        say(f"{1 - left / whole:.0%} of the subsets were scored before ({there})")
    if todo:
        say("Measuring (the first run on a machine compiles for some seconds)")
        needed = how.needed_after, how.needed_beside
        say(announcement(rows, subsets, how.n_jobs, todo, *needed, in_memory=in_memory))


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
    """Raise `CheckpointError` for what cannot be the scores of a task: no other numbers may pass for them."""
    content = task.chunk.content
    in_place = not isinstance(content, range) or np.array_equal(found.positions, np.array(content))
    sound = found.are_sound(task.chunk.n_subsets, np.ones(len(task.subsets), dtype=bool))
    if not (in_place and sound) or (task.tunes and np.isnan(found.bandwidths).any()):
        raise CheckpointError(f"What the run holds for chunk {task.key} was not scored by isde: give another folder.")
