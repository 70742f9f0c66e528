"""Chunks as plain Ray tasks: one for each core at a time, the rows put into its object store once.

A task whose worker died is sent again. (joblib's Ray backend does not do that: it ends with its first lost worker.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from isde.errors import ClusterError, first_line
from isde.run.executors import Done, ScoreTask, Task, frugally, memory_allowed
from isde.run.work import ChunkScores, Means, Report

MOST_DEATHS = 3
"""Workers that a task may lose."""


@dataclass(frozen=True)
class RayExecutor:
    """The cores of the Ray cluster that this process is connected to."""

    @property
    def n_workers(self) -> int:
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def means(self, n_tasks: int) -> Means:
        return Means(memory=memory_allowed())

    def map(self, score: ScoreTask[Task], tasks: Sequence[Task], report: Callable[[Task], Report]) -> Done[Task]:
        import ray
        from ray.exceptions import RayError, RayTaskError, WorkerCrashedError

        do = ray.remote(num_cpus=1, max_retries=0)(_do)
        means, waiting, deaths = self.means(len(tasks)), list(range(len(tasks)))[::-1], Counter[int]()
        # What is under way when this ends is left to end: Ray aborts where a task is cancelled as it ends.
        placed, under_way = ray.put((score, list(tasks))), dict[Any, int]()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self.n_workers:
                    number = waiting.pop()
                    under_way[do.remote(placed, number, means)] = number
                for done in ray.wait(list(under_way), num_returns=1)[0]:
                    number = under_way.pop(done)
                    try:
                        found: ChunkScores | None = ray.get(done)
                    except WorkerCrashedError:
                        deaths[number] += 1
                        if deaths[number] < MOST_DEATHS:
                            waiting.append(number)
                            continue
                        found = None
                    except RayTaskError as error:
                        raise error.cause from error
                    yield tasks[number], found
        except RayError as error:
            raise ClusterError(
                f"The Ray cluster is lost ({first_line(error)}): what was scored is kept where there is a run folder, "
                "and the same call goes on from there."
            ) from error


def _do(placed: tuple[ScoreTask[Any], Sequence[Any]], number: int, means: Means) -> ChunkScores:
    score, tasks = placed
    with threadpool_limits(1):
        return frugally(score, tasks[number], means)
