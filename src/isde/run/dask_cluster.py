"""Chunks as futures of a Dask cluster: one for each of its threads at a time, and the rows placed by a task.

A worker that dies takes what it was doing with it, and Dask does that again elsewhere. The rows are the result of a
task, too: were they scattered, the death of all workers that hold them would be the end; a task is computed again.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from isde.errors import ClusterError
from isde.run.executors import Done, ScoreTask, Task, frugally, memory_allowed
from isde.run.work import ChunkScores, Means, Report

LOOK_SECONDS, PATIENCE_SECONDS = 1.0, 20.0
"""Between looks at the scheduler while nothing is done; how long it may be gone."""

MOST_LOSSES = 5
"""Results of one task that may be lost with the workers that have them."""


@dataclass(frozen=True)
class DaskExecutor:
    """The workers of a Dask client."""

    client: Any

    @property
    def n_workers(self) -> int:
        with suppress(OSError, TimeoutError):
            return max(1, sum(self.client.nthreads().values()))
        raise self._gone()

    def means(self, n_tasks: int) -> Means:
        """One thread for each task: a cluster has a worker for every core that it should use."""
        return Means(memory=memory_allowed())

    def map(self, score: ScoreTask[Task], tasks: Sequence[Task], report: Callable[[Task], Report]) -> Done[Task]:
        if not tasks:
            return
        means, name, finished = self.means(len(tasks)), f"isde-{uuid4().hex}", SimpleQueue[Any]()
        under_way: dict[str, tuple[int, Any]] = {}
        waiting, losses, most = list(range(len(tasks)))[::-1], Counter[int](), self.n_workers
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")  # the rows, once
                placed = self.client.submit(_Placed, score, list(tasks), key=f"{name}-rows", pure=False)
            while waiting or under_way:
                while waiting and len(under_way) < most:
                    number = waiting.pop()
                    key = f"{name}-{number}-{losses[number]}"
                    future = self.client.submit(_do, placed, number, means, key=key, pure=False)
                    future.add_done_callback(finished.put)
                    under_way[key] = number, future
                future = self._next(finished)
                number, _ = under_way.pop(future.key)
                try:
                    found = self._found(future)
                except _ResultLost:
                    losses[number] += 1
                    if losses[number] >= MOST_LOSSES:
                        raise self._gone() from None
                    waiting.append(number)
                    continue
                yield tasks[number], found
                future.release()
        finally:
            with suppress(Exception):
                self.client.cancel([future for _, future in under_way.values()], force=True)

    def _next(self, finished: SimpleQueue[Any]) -> Any:
        """A future that is done; `ClusterError` where the scheduler is lost."""
        gone = None
        while True:
            with suppress(Empty):
                return finished.get(timeout=LOOK_SECONDS)
            if self.client.status == "running":
                gone = None
                continue
            gone = gone or time.monotonic()
            if self.client.status == "closed" or time.monotonic() - gone > PATIENCE_SECONDS:
                raise self._gone()

    def _found(self, future: Any) -> ChunkScores | None:
        """None for a task whose workers died each time; `_ResultLost` where one died with the result."""
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            try:
                found: ChunkScores = future.result(timeout=PATIENCE_SECONDS)
            except (OSError, TimeoutError, CancelledError) as error:
                raise self._lost() from error
            return found
        if future.status != "error":
            raise self._lost()
        failure = future.exception()
        if isinstance(failure, KilledWorker):
            return None
        raise failure

    def _lost(self) -> Exception:
        return _ResultLost() if self.client.status == "running" else self._gone()

    def _gone(self) -> ClusterError:
        scheduler = getattr(self.client.scheduler, "address", None) or "of the cluster"
        return ClusterError(
            f"The scheduler {scheduler} is lost: what was scored is kept where there is a run folder, and the same "
            "call goes on from there."
        )


class _ResultLost(Exception):
    """A task was done, and its result went with the worker that had it."""


class _Placed:
    """What tasks need of the rows, on the worker that does them."""

    def __init__(self, score: ScoreTask[Any], tasks: Sequence[Any]) -> None:
        self.score, self.tasks = score, tasks


def _do(placed: _Placed, number: int, means: Means) -> ChunkScores:
    with threadpool_limits(1):
        return frugally(placed.score, placed.tasks[number], means)
