"""What scoring will take, before it is done: seconds and bytes, in numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from isde import memory
from isde.listed_subsets import EVERY_UP_TO
from isde.run.clusters import choose_executor
from isde.run.work import Means
from isde.score_tasks import SplitRows, Task, are_tuned_together, plan_tasks
from isde.scores import ALIGNED
from isde.subsets import SubsetFamily

TABLE_BYTES = 17
"""For each subset and split while the table of a model is made: score, bandwidth, and whether that is settled."""

RESULT_BYTES, PLAIN_BYTES = 14, 9
"""For each subset, split and model, at most, as the store packs them: position, score, bandwidth, and whether that is
settled; and where there are no bandwidths, and all subsets in a row."""

NUMBER_BYTES = 8

TUNED_TO_MEASURE = 40
"""Rows that are enough to find a bandwidth of the usual size, with which the cost of scoring is measured."""


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
    """What to do where the table for blocks of `asked` columns is too large, and the one for `fits` columns is not."""
    smaller = [f"max_block_size={fits}"] if fits else []
    fewer = ["search='screened'"] if EVERY_UP_TO <= fits < asked else []
    return f"use {', or '.join([*smaller, *fewer, 'fewer columns'])}"


def bytes_of_subset(n_splits: int, n_models: int, *, in_memory: bool) -> int:
    """Bytes for each subset until there is one table: results, unless a file holds them, and the tables made."""
    found = RESULT_BYTES * n_splits * n_models if in_memory else 0
    return found + TABLE_BYTES * n_splits + len(ALIGNED) * NUMBER_BYTES * n_models


def expected_cost(
    rows: SplitRows,
    subsets: SubsetFamily,
    n_jobs: int | None,
    tasks: Sequence[Task] | None = None,
    *,
    in_memory: bool = True,
) -> tuple[float, int]:
    """Seconds and bytes that tasks will need, or all there are: a chunk of middle size is timed for each model.

    `in_memory` says that results take memory; otherwise a file holds them.
    """
    scorer, splits = rows.scorer, rows.splits
    executor = choose_executor(n_jobs, scorer.traits.in_processes)
    tasks = plan_tasks(scorer, splits, subsets, shared=are_tuned_together(splits)) if tasks is None else tasks
    n_workers, means = executor.n_workers, executor.means(len(tasks))
    at_once = max(1, n_workers // means.n_workers)
    seconds, needed = 0.0, 0
    for own in of_one_kind(tasks):
        middle = sorted(own, key=lambda task: task.chunk.work)[len(own) // 2]
        cost = scorer.cost(_measurable(rows, middle, means), middle.subsets, middle.chunk, means)
        one = cost.shared / n_workers + cost.alone / at_once
        seconds += one * sum(task.chunk.work for task in own) / middle.chunk.work
        needed = max(needed, at_once * cost.memory)
    found = sum(task.chunk.n_subsets * (RESULT_BYTES if task.chunk.tuned else PLAIN_BYTES) for task in tasks)
    tables = bytes_of_subset(len(splits), scorer.n_models, in_memory=False) * len(subsets)
    return seconds, needed + found * in_memory + tables


def _measurable(rows: SplitRows, task: Task, means: Means) -> Any:
    """The rows of a task; what will be tuned for its split is not known yet, and is found by a few rows."""
    if not task.shares:
        return rows.of(task)
    scorer = rows.scorer
    few = scorer.to_tune(rows[task.split], min(1.0, TUNED_TO_MEASURE / len(rows.splits[task.split][0])))
    found = scorer.score(few, task.subsets, task.chunk, replace(means, report=lambda share: None))
    return rows.with_tuned([(replace(task, split=0), found)]).of(task)


def of_one_kind(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Tasks by model, those that tune apart from those that score."""
    kinds: dict[Any, list[Task]] = {}
    for task in tasks:
        kinds.setdefault((task.chunk.model, task.tunes), []).append(task)
    yield from kinds.values()


def announcement(
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
    seconds, needed = expected_cost(rows, subsets, n_jobs, tasks, in_memory=in_memory)
    most = memory.resident_bytes() + max(needed + needed_beside, needed_after)
    of_splits = f"{n} splits of the rows: " if n > 1 else ""
    what = rows.scorer.describe(subsets, len(fit), len(score))
    return f"{of_splits}{what}: {in_words(seconds, n)}, {most / 2**20:,.0f} MB with the rows"


def in_words(seconds: float, n_splits: int) -> str:
    """How long so many splits take, for people.

    >>> in_words(0.2, 1), in_words(42, 1), in_words(600, 20)
    ('less than a second', 'about 42 s', 'about 10 minutes in all')
    """
    scope = " in all" if n_splits > 1 else ""
    if seconds < 1:
        return f"less than a second{scope}"
    return (f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} minutes") + scope
