"""What executors add to chunks, measured on one and two workers, and what follows for clusters.

    python benchmarks/scaling.py [executors] [--only threads,loky,dask,ray] [--write]

Chunks are measured beside the same chunks done by as many bare processes, which have no executor, at the same time:
they share the machine in the same way, and other work on it slows both. Of an executor the processor's time is
counted, in the process that calls (and schedules) and in those that work, with chunks that cost nothing and answer as
real ones do. Three numbers then say how long p workers take for n chunks of c seconds,

    T(p) = max(n (c + worker) / p, n caller) + the wait for the last chunks,

where on the two cores of a small machine the caller takes its time from the workers. That is held against measured
times, and says what d = 50, k = 5 takes on 2 to 1,000 cores. The store is measured beside. `--write` puts table and
figure into docs.
"""

from __future__ import annotations

import argparse
import heapq
import multiprocessing
import os
import pickle
import re
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.model_selection import ShuffleSplit

from isde.marginals import resolve_marginal
from isde.run.clusters import choose_executor, cluster
from isde.run.executors import LocalExecutor
from isde.run.log import AppendLog
from isde.run.store import LogStore
from isde.run.work import ChunkScores, Means
from isde.score_tables import largest_of_the_last_first
from isde.score_tasks import SplitRows, Task, plan_tasks, score_task
from isde.splits import draw_splits
from isde.subsets import SubsetFamily

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- scaling: written by benchmarks/scaling.py --write -->", "<!-- end of scaling -->"

EXECUTORS = ("threads", "loky", "dask", "ray")
NEEDS = {"dask": "distributed", "ray": "ray"}

D, K, ROWS, CHUNKS = 16, 4, 1500, 6
"""Of the table whose chunks are measured, one for each split."""

EMPTY = 60
"""Chunks that cost nothing."""

LARGE_D, LARGE_K, LARGE_ROWS, LARGE_SPLITS = 50, 5, 3000, 20
CORES = (2, 8, 32, 128, 512, 1000)
WITHIN = 0.15


def nothing(task: Any, means: Means) -> ChunkScores:
    """A chunk that costs nothing, with an answer of the usual size."""
    return ChunkScores.without_bandwidths(np.arange(2500), np.random.default_rng(0).random(2500))


def silent(task: Any) -> Callable[[float], None]:
    return lambda share: None


# --- what is measured ------------------------------------------------------------------------------------------


@contextmanager
def executor(name: str, n: int) -> Iterator[Any]:
    if name in ("threads", "loky"):
        with parallel_config("loky") if name == "loky" else nullcontext():
            yield LocalExecutor(n, in_processes=name == "loky", shares=False)
    else:
        with cluster("local" if name == "dask" else name, n):
            yield choose_executor(n)


def seconds_of(own: Any, score: Any, tasks: Sequence[Any]) -> float:
    begun = time.perf_counter()
    assert sum(1 for _ in own.map(score, tasks, silent)) == len(tasks)
    return time.perf_counter() - begun


class Bare:
    """Processes that do chunks of their own, each its share, without an executor."""

    def __init__(self, n: int, score: Any, tasks: Sequence[Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.ends = []
        for number in range(n):
            ours, theirs = context.Pipe()
            context.Process(target=_serve, args=(theirs, score, tasks[number::n]), daemon=True).start()
            self.ends.append(ours)
        self.begin()
        self.seconds()  # compiled code is loaded

    def begin(self) -> None:
        for end in self.ends:
            end.send("go")

    def seconds(self) -> tuple[float, float]:
        """By the clock until all are done, and of a processor for a chunk."""
        found = [end.recv() for end in self.ends]
        return max(by_clock for by_clock, _ in found), sum(took for _, took in found) / len(found)

    def stop(self) -> None:
        for end in self.ends:
            end.send(None)


def _serve(end: Any, score: Any, tasks: Sequence[Any]) -> None:
    while end.recv() is not None:
        begun, processor = time.perf_counter(), time.process_time()
        for task in tasks:
            score(task, Means())
        end.send((time.perf_counter() - begun, (time.process_time() - processor) / len(tasks)))


@dataclass(frozen=True)
class Added:
    """What an executor adds to a chunk, in seconds of a processor."""

    caller: float  # in the process that calls, and for Dask schedules
    worker: float  # in all others


def added_by(own: Any) -> Added:
    seconds_of(own, nothing, range(2 * own.n_workers))
    caller, others = _own_seconds(), _seconds_of_others()
    seconds_of(own, nothing, range(EMPTY))
    return Added((_own_seconds() - caller) / EMPTY, (_seconds_of_others() - others) / EMPTY)


def _own_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _seconds_of_others() -> float:
    """Of all processes that this one, or one of those, has started."""
    parents, seconds = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(path.parent.name)
        parents[pid], seconds[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(seconds[pid] for pid in below - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Point:
    """An executor with so many workers, beside as many bare processes, at the same time."""

    n: int
    measured: list[float]
    bare: list[float]
    added: Added
    chunk: float  # seconds of a processor

    def predicted(self, i: int) -> float:
        """As long as bare processes take, and what the executor adds by its processes on the same cores.

        By the clock a chunk takes longer than of a processor that others use, and what is added takes as much longer.
        """
        slower = self.bare[i] / (CHUNKS / self.n * self.chunk)
        cores = min(self.n, os.cpu_count() or 1)
        return self.bare[i] + CHUNKS * (self.added.caller + self.added.worker) / cores * slower

    @property
    def off(self) -> float:
        """How far off the prediction is, in the middle of all rounds."""
        return statistics.median(m / self.predicted(i) for i, m in enumerate(self.measured)) - 1


def measure(name: str, score: Any, tasks: Sequence[Any], rounds: int) -> list[Point]:
    """With bare processes beside it, begun at the same moment."""
    points = []
    for n in (1, 2):
        bare = Bare(n, score, tasks)
        with executor(name, n) as own:
            seconds_of(own, score, tasks)  # workers start, and load compiled code
            measured, beside = [], []
            for _ in range(rounds):
                bare.begin()
                measured.append(seconds_of(own, score, tasks))
                beside.append(bare.seconds())
            chunk = statistics.median(processor for _, processor in beside)
            points.append(Point(n, measured, [by_clock for by_clock, _ in beside], added_by(own), chunk))
        bare.stop()
    return points


def store_overhead(found: ChunkScores) -> float:
    """Seconds of the processor that the log takes for a chunk, its syncs included."""
    with tempfile.TemporaryDirectory() as folder, AppendLog(Path(folder) / "scores.log") as log:
        store, cpu, begun, n = LogStore(log), time.process_time(), time.perf_counter(), 0
        while time.perf_counter() - begun < 3.0:  # long enough for a sync or two
            store.put(f"{n}", found)
            n += 1
        return (time.process_time() - cpu) / n


# --- what follows ----------------------------------------------------------------------------------------------


def time_of(chunks: Sequence[float], added: Added, p: int) -> float:
    """Until p workers have done all chunks, each taking the next one as the caller hands it out."""
    free, handed, last = [0.0] * p, 0.0, 0.0
    for chunk in chunks:
        handed += added.caller
        done = max(heapq.heappop(free), handed) + chunk + added.worker
        last = max(last, done)
        heapq.heappush(free, done)
    return last


def large_tasks() -> list[Task]:
    """Those of d = 50, k = 5."""
    splits = [(np.arange(number), np.arange(1)) for number in range(LARGE_SPLITS)]
    return plan_tasks(resolve_marginal("kde"), splits, SubsetFamily(LARGE_D, LARGE_K))


@dataclass(frozen=True)
class Large:
    """A run that belongs on a cluster."""

    tasks: list[Task]
    per_work: float  # seconds of a processor, with the rows of what was measured

    def seconds(self, p: int) -> list[float]:
        """Of each task, in the order of p workers: they grow with the work and the square of the rows."""
        by_rows = self.per_work * (LARGE_ROWS / ROWS) ** 2
        return [by_rows * task.chunk.work for task in largest_of_the_last_first(self.tasks, p)]

    def time_of(self, added: Added, p: int) -> float:
        return time_of(self.seconds(p), added, p)

    @property
    def all_seconds(self) -> float:
        return sum(self.seconds(1))


def executors(asked: argparse.Namespace) -> None:
    X = np.random.default_rng(0).random((ROWS, D))
    scorer, family = resolve_marginal("kde"), SubsetFamily(D, K)
    splits = draw_splits(ShuffleSplit(CHUNKS, train_size=0.45, random_state=0), X)
    score, tasks = partial(score_task, SplitRows(scorer, X, splits)), plan_tasks(scorer, splits, family)
    found = score(tasks[0], Means())
    said: list[str] = []

    def say(line: str = "") -> None:
        print(line, flush=True)
        said.append(line)

    say("| executor | added to a chunk: by caller, by workers | 1 worker: measured, predicted | 2 workers |")
    say("|---|---|---|---|")
    points: dict[str, list[Point]] = {}
    for name in asked.only.split(","):
        if name in NEEDS and find_spec(NEEDS[name]) is None:
            print(f"{name}: not installed")
            continue
        points[name] = measure(name, score, tasks, asked.rounds)
        one, two = points[name]
        own = f"{1e3 * two.added.caller:.1f} ms, {1e3 * two.added.worker:.1f} ms"
        say(f"| {name} | {own} | {_against(one)} | {_against(two)} |")
    chunk = statistics.median(point.chunk for both in points.values() for point in both)
    log = store_overhead(found)
    say()
    say(
        f"Seconds by the clock for {CHUNKS} chunks of {chunk:.2f} s of a processor ({tasks[0].chunk.n_subsets:,} "
        f"subsets, {ROWS:,} rows), each time beside as many bare processes that do the same, the middle of "
        f"{asked.rounds} rounds; {len(pickle.dumps(found)) / 1e3:,.0f} kB come back for each. The store takes "
        f"{1e3 * log:.2f} ms of a processor for a chunk: {100 * log:.2f} % where chunks take a second."
    )
    say()
    added = {name: both[1].added for name, both in points.items()}
    large = Large(large_tasks(), chunk / tasks[0].chunk.work)
    _say_large(say, large, added)
    if asked.write:
        _write(said)
        _draw(large, added, points)


def _against(point: Point) -> str:
    """Measured, predicted, and how far off; marked where that is more than it should be."""
    middle = statistics.median(point.measured)
    expected = middle / (1 + point.off)
    mark = "" if abs(point.off) <= WITHIN else ", not within 15 %"
    return f"{middle:.1f} s, {expected:.1f} s ({100 * point.off:+.0f} %{mark})"


def _say_large(say: Callable[..., None], large: Large, added: dict[str, Added]) -> None:
    n_subsets, chunks = len(SubsetFamily(LARGE_D, LARGE_K)), large.seconds(1)
    once = len(pickle.dumps(large.tasks)) + np.zeros((LARGE_ROWS, LARGE_D)).nbytes
    back, n, mean = 25 * n_subsets * LARGE_SPLITS, len(chunks), statistics.mean(chunks)
    say(
        f"Predicted for {LARGE_D} columns, blocks of {LARGE_K} ({n_subsets:,} subsets), {LARGE_ROWS:,} rows and "
        f"{LARGE_SPLITS} splits: {n:,} chunks of {mean:.0f} s ({max(chunks):.0f} s the largest), "
        f"{large.all_seconds / 3600:,.1f} hours of a core; minutes, and the share of the cores that works:"
    )
    say()
    say("| cores | " + " | ".join(added) + " |")
    say("|---|" + "---|" * len(added))
    for p in CORES:
        times = [large.time_of(one, p) for one in added.values()]
        say(
            f"| {p:,} | "
            + " | ".join(f"{t / 60:,.1f} min, {100 * large.all_seconds / (p * t):.0f} %" for t in times)
            + " |"
        )
    most, dearest = CORES[-1], max(added.values(), key=lambda one: one.caller)
    free = large.time_of(Added(0.0, 0.0), most)
    say()
    say(
        f"What would limit {most:,} cores is the number of chunks: {n:,} are {n / most:.1f} for each, and whatever the "
        f"executor, {100 * (1 - large.all_seconds / (most * free)):.0f} % of the cores' time is spent waiting for the "
        f"last ones. The caller takes {1e3 * dearest.caller:.1f} ms for a chunk at most and could keep "
        f"{mean / dearest.caller:,.0f} cores busy. Through the scheduler go {back / 1e6:,.0f} MB of scores in all "
        f"({back / free / 1e6:.0f} MB a second), and {once / 1e6:.1f} MB of rows and plan once to each worker "
        f"({most * once / 1e9:.1f} GB, which Dask's workers pass on among themselves)."
    )


# --- docs ------------------------------------------------------------------------------------------------------


def _write(lines: Sequence[str]) -> None:
    page = DOCS / "reliability.md"
    text = page.read_text()
    figure = "![Share of the cores that works, predicted from 1 and 2 workers](scaling.png)"
    own = "\n".join([BEGIN, *lines, "", figure, END])
    page.write_text(re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: own, text, flags=re.DOTALL))


def _draw(large: Large, added: dict[str, Added], points: dict[str, list[Point]]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    cores = np.unique(np.geomspace(1, CORES[-1], 40).astype(int))
    for name, one in added.items():
        times = np.array([large.time_of(one, int(p)) for p in cores])
        left.plot(cores, times / 60, label=name)
        right.plot(cores, 100 * large.all_seconds / (cores * times), label=name)
    left.set(xscale="log", yscale="log", xlabel="cores", ylabel="minutes", title=f"d = {LARGE_D}, k = {LARGE_K}")
    right.set(xscale="log", xlabel="cores", ylabel="share of the cores that works, %", ylim=(0, 105))
    off = [f"{name} {', '.join(f'{100 * point.off:+.0f} %' for point in both)}" for name, both in points.items()]
    half = -(-len(off) // 2)
    said = "measured against predicted, 1 and 2 workers:\n" + "; ".join(off[:half]) + "\n" + "; ".join(off[half:])
    right.set_title(said, fontsize=8)
    left.legend(frameon=False)
    figure.savefig(DOCS / "scaling.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    own = commands.add_parser("executors", help="what executors add, and what follows (the default)")
    for each in (parser, own):
        each.add_argument("--only", default=",".join(EXECUTORS))
        each.add_argument("--rounds", type=int, default=3)
        each.add_argument("--write", action="store_true", help="put table and figure into docs")
    asked = parser.parse_args()
    {None: executors, "executors": executors}[asked.command](asked)


if __name__ == "__main__":
    main()
