"""Who does the work: chunks one after the other, or by joblib's threads or processes; clusters have files of their own.

Where there are many chunks, workers take one each; where there are few, all workers share each in turn. Results do not
depend on it: a chunk gives the same bits whoever does it.

scikit-learn's `working_memory` (MiB, 1024 unless set) bounds what all chunks that are under way need beyond data and
results.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from numbers import Integral
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import get_config

from isde.memory import address_space_left
from isde.run.processes import do_in_processes, ending_with_this_process
from isde.run.work import ChunkScores, Means, Report, Run

CHUNKS_PER_WORKER = 4
"""With fewer chunks than this for each worker, workers share each chunk instead."""

LEAST_MEMORY = 64 << 20
"""Bytes for each worker: with less, there are fewer workers."""

THREAD_BYTES = 256 << 20
"""Of address space, for each worker that is a thread: its stack and what `malloc` keeps for it, and its share of the
threads that a pool has besides."""

Task = TypeVar("Task")
ScoreTask = Callable[[Task, Means], ChunkScores]
Done = Generator[tuple[Task, ChunkScores | None], None, None]


class Executor(Protocol):
    """Does tasks, and gives their results in any order.

    Of the tasks begun, no more than there are workers have a result that was not taken and used yet: whoever keeps each
    result before asking for the next one loses, when it is killed, no more than one task of each worker.
    """

    @property
    def n_workers(self) -> int:
        """How many there are."""
        ...

    def means(self, n_tasks: int) -> Means:
        """What each of so many tasks may use, but for who does it."""
        ...

    def map(self, score: ScoreTask[Task], tasks: Sequence[Task], report: Callable[[Task], Report]) -> Done[Task]:
        """Each task with what was found, as it is done; `report(task)` is told the share of a task under way.

        None was found of a task that ends each process that does it.
        """
        ...


@dataclass(frozen=True)
class LocalExecutor:
    """Workers of this machine, as joblib counts them: threads, or processes for code that holds the interpreter."""

    n_jobs: int | None = None
    in_processes: bool = False
    shares: bool = True  # several workers can do a task together

    def map(self, score: ScoreTask[Task], tasks: Sequence[Task], report: Callable[[Task], Report]) -> Done[Task]:
        n_workers = self.n_workers
        means = self._means(n_workers, len(tasks))
        if means.n_workers == n_workers:
            with workers(n_workers) as run:
                for task in tasks:
                    yield task, frugally(score, task, replace(means, run=run, report=report(task)))
            return
        numbered = do_in_processes if self._processes() else _do_in_threads
        for number, found in numbered(partial(frugally, score), tasks, means, n_workers):
            yield tasks[number], found

    def _processes(self) -> bool:
        """Whether joblib's workers are processes, by what they do or as `parallel_config` says."""
        backend, _ = get_active_backend(prefer="processes" if self.in_processes else "threads")
        return not getattr(backend, "supports_sharedmem", False)

    @property
    def n_workers(self) -> int:
        """Workers there are, within the memory allowed: under `ulimit -v` fewer from one look to the next."""
        return max(1, min(n_threads(self.n_jobs), memory_allowed() // LEAST_MEMORY))

    def means(self, n_tasks: int) -> Means:
        return self._means(self.n_workers, n_tasks)

    def _means(self, n_workers: int, n_tasks: int) -> Means:
        apart = self.in_processes or not self.shares or n_tasks >= CHUNKS_PER_WORKER * n_workers
        at_once = n_workers if apart else 1
        return Means(n_workers=n_workers // at_once, memory=memory_allowed() // at_once)


def frugally(score: ScoreTask[Task], task: Task, means: Means) -> ChunkScores:
    """Score with the memory allowed, or, where that is not there, with half of it, and half of that."""
    while True:
        try:
            return score(task, means)
        except MemoryError:
            if means.memory < LEAST_MEMORY:
                raise
            means = replace(means, memory=means.memory // 2)


def _do_in_threads(
    score: ScoreTask[Task], tasks: Sequence[Task], means: Means, n_workers: int
) -> Iterator[tuple[int, ChunkScores]]:
    """Threads of its own: joblib's begin the next task before what they found is taken."""
    waiting, finished, numbers = SimpleQueue[int | None](), SimpleQueue[_Finished](), iter(range(len(tasks)))
    for _ in range(n_workers):
        # Nobody waits at the end for a thread that is in compiled code.
        Thread(target=_serve, args=(score, tasks, means, waiting, finished), daemon=True).start()
    try:
        for number in islice(numbers, n_workers):
            waiting.put(number)
        for _ in tasks:
            number, found = finished.get()
            if isinstance(found, BaseException):
                raise found
            yield number, found
            for following in islice(numbers, 1):
                waiting.put(following)
    finally:
        for _ in range(n_workers):
            waiting.put(None)


_Finished = tuple[int, ChunkScores | BaseException]


def _serve(
    score: ScoreTask[Task],
    tasks: Sequence[Task],
    means: Means,
    waiting: SimpleQueue[int | None],
    finished: SimpleQueue[_Finished],
) -> None:
    """What a thread does until it is told that nothing is left."""
    while (number := waiting.get()) is not None:
        try:
            finished.put((number, score(tasks[number], means)))
        except BaseException as error:  # raised where it is taken
            finished.put((number, error))


def memory_allowed() -> int:
    """Bytes of scikit-learn's `working_memory`, or what `ulimit -v` leaves of them."""
    asked, left = int(get_config()["working_memory"] * 2**20), address_space_left()
    return asked if left is None else min(asked, left)


def check_jobs(n_jobs: Any) -> None:
    """Raise for what joblib would not take for a number of workers."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} is no number of workers: give 1 or more, or -1 for all cores.")


def n_threads(n_jobs: int | None) -> int:
    """Workers as joblib counts them, as far as `ulimit -v` has room for their threads.

    A thread that finds no room for itself may never begin, and whoever started it waits for ever.
    """
    check_jobs(n_jobs)
    asked, left = effective_n_jobs(n_jobs), address_space_left()
    return asked if left is None else max(1, min(asked, left // THREAD_BYTES))


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Run]:
    """A pool of threads (or what `joblib.parallel_config` says) as a function that runs tasks in order."""
    n_workers = n_threads(n_jobs)
    if n_workers == 1:
        yield Means().run
        return
    with ending_with_this_process("threads"):
        parallel = Parallel(n_jobs=n_workers, prefer="threads", return_as="generator")
    with parallel as pool:

        def run(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
            results: Iterable[Any] = pool(delayed(function)(*task) for task in tasks)
            return results

        yield run
