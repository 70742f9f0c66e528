"""What executors add to chunks, measured on one and two workers, and what follows for clusters.

    python benchmarks/scaling.py [--rows 600] [--chunks 24] [--only threads,loky,dask,ray]

For each executor: seconds of a chunk, what the executor adds to one, bytes back for it, bytes placed once. A model of
three numbers then says how long p workers take for n chunks, of which the last is waited for, half of it on average,

    T(p) = max(n (chunk + added) / p, n added) + chunk / 2,

and is held against the measured times; and it says what d = 50, k = 5 takes on 2 to 1,000 cores. Times of an executor
stand between two serial runs of the same chunks: other work on the machine slows both. The store is measured beside.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from joblib import parallel_config
from sklearn.model_selection import ShuffleSplit

from isde.engine.scoring import kernel_chunks
from isde.marginals import resolve_marginal
from isde.run.clusters import choose_executor, cluster
from isde.run.executors import LocalExecutor
from isde.run.log import AppendLog
from isde.run.store import LogStore, MemoryStore
from isde.run.work import ChunkScores, Means
from isde.score_tables import SplitRows, plan_tasks, run_tasks, score_task
from isde.splits import draw_splits
from isde.subsets import SubsetFamily

D, K = 16, 4
LARGE_D, LARGE_K, LARGE_ROWS, LARGE_SPLITS = 50, 5, 3000, 20
CORES = (2, 8, 32, 128, 512, 1000)
WITHIN = 0.15


def nothing(task, means):
    """A chunk that costs nothing, with an answer of the usual size."""
    return ChunkScores.without_bandwidths(np.arange(2000), np.zeros(2000))


def silent(task):
    return lambda share: None


@contextmanager
def executor(name: str, n: int):
    if name in ("threads", "loky"):
        with parallel_config("loky") if name == "loky" else nullcontext():
            yield LocalExecutor(n, in_processes=name == "loky", shares=False)
    else:
        with cluster("local" if name == "dask" else name, n):
            yield choose_executor(n)


def wall(own, score, tasks) -> float:
    start = time.perf_counter()
    done = sum(1 for _ in own.map(score, tasks, silent))
    assert done == len(tasks)
    return time.perf_counter() - start


def serial(score, tasks) -> tuple[float, float]:
    """Seconds of the wall and of the processor for all tasks, one after the other."""
    begun, cpu = time.perf_counter(), time.process_time()
    for task in tasks:
        score(task, Means())
    return time.perf_counter() - begun, time.process_time() - cpu


def measure(name: str, score, tasks) -> dict[str, float]:
    """Times of an executor on one and two workers, each between two serial runs, in units of which it is told."""
    empty, found = list(range(4 * len(tasks))), {}
    for n in (1, 2):
        with executor(name, n) as own:
            wall(own, score, tasks[: 2 * n])  # workers start, and load compiled code
            before = serial(score, tasks)[0]
            found[f"seconds_{n}"] = wall(own, score, tasks)
            after = serial(score, tasks)[0]
            found[f"serial_{n}"] = (before + after) / 2
            found[f"empty_{n}"] = wall(own, nothing, empty) / len(empty)
    return found


def predicted(n_chunks: int, chunk: float, added: float, p: int) -> float:
    """T(p) of the model."""
    return max(n_chunks * (chunk + added) / p, n_chunks * added) + (chunk / 2 if p > 1 else 0.0)


def store_overhead(score, tasks) -> tuple[float, float]:
    """Seconds of the processor for a chunk in memory, and what the log adds to it."""
    found = [(task.key, score(task, Means())) for task in tasks]
    own = LocalExecutor(1)
    cpu = time.process_time()
    run_tasks(score, tasks, own, MemoryStore(), lambda n: None)
    chunk = (time.process_time() - cpu) / len(tasks)
    with tempfile.TemporaryDirectory() as folder, AppendLog(Path(folder) / "scores.log") as log:
        store = LogStore(log)
        cpu, begun, n = time.process_time(), time.perf_counter(), 0
        while time.perf_counter() - begun < 2.0:  # long enough for a sync or two
            for key, scores in found:
                store.put(f"{n}:{key}", scores)
                n += 1
        added = (time.process_time() - cpu) / n
    return chunk, added


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--chunks", type=int, default=24)
    parser.add_argument("--only", default="threads,loky,dask,ray")
    asked = parser.parse_args()
    X = np.random.default_rng(0).random((asked.rows, D))
    scorer, family = resolve_marginal("kde"), SubsetFamily(D, K)
    splits = draw_splits(ShuffleSplit(asked.chunks, train_size=0.45, random_state=0), X)
    score = partial(score_task, scorer, SplitRows(scorer, X, splits))
    tasks = plan_tasks(scorer, splits, family)[: asked.chunks]
    score(tasks[0], Means())
    elapsed, cpu = serial(score, tasks)
    each, log = store_overhead(score, tasks[:4])
    back, once = len(pickle.dumps(score(tasks[0], Means()))), len(pickle.dumps((score, tasks)))
    print(f"chunk: {1e3 * cpu / len(tasks):.0f} ms of a processor, {1e3 * elapsed / len(tasks):.0f} ms by the clock")
    print(f"       {tasks[0].chunk.n_subsets:,} subsets, {back:,} bytes back, {once:,} bytes placed once on a worker")
    print(f"store: {1e3 * log:.2f} ms a chunk, {100 * log / each:.2f} % of this one, {100 * log:.3f} % of a second")
    heads = [f"{n} {'worker' if n == 1 else 'workers'}, predicted" for n in (1, 2)]
    print(f"\n{'executor':<10} {'added/chunk':>12} {heads[0]:>24} {heads[1]:>24}")
    added = {}
    for name in asked.only.split(","):
        needs = {"dask": "distributed", "ray": "ray"}.get(name)
        if needs and find_spec(needs) is None:
            print(f"{name:<10} not installed")
            continue
        found = measure(name, score, tasks)
        added[name] = found["empty_2"]
        cells = [_against(found, n, len(tasks)) for n in (1, 2)]
        print(f"{name:<10} {1e3 * found['empty_2']:>9.2f} ms {cells[0]:>24} {cells[1]:>24}", flush=True)
    large(cpu / sum(task.chunk.work for task in tasks), asked.rows, added)


def _against(found: dict[str, float], n: int, n_chunks: int) -> str:
    """Measured, predicted, and how far off; marked where that is more than it should be."""
    expected = predicted(n_chunks, found[f"serial_{n}"] / n_chunks, found[f"empty_{n}"], n)
    off = found[f"seconds_{n}"] / expected - 1
    return f"{found[f'seconds_{n}']:.2f} s {expected:.2f} s {100 * off:+.0f} %{'' if abs(off) <= WITHIN else ' !'}"


def large(per_work: float, n_rows: int, added: dict[str, float]) -> None:
    """d = 50, k = 5: seconds grow with work and with the square of the rows."""
    chunks = kernel_chunks(SubsetFamily(LARGE_D, LARGE_K))
    n = len(chunks) * LARGE_SPLITS
    each = per_work * np.mean([chunk.work for chunk in chunks]) * (LARGE_ROWS / n_rows) ** 2
    print(f"\nd = {LARGE_D}, k = {LARGE_K}, {LARGE_ROWS:,} rows, {LARGE_SPLITS} splits: {n:,} chunks of {each:.1f} s,")
    print(f"{n * each / 3600:,.1f} hours of a core; minutes, and the share of the cores that works")
    print(f"{'cores':>6} " + " ".join(f"{name:>16}" for name in added))
    for p in CORES:
        times = [predicted(n, each, one, p) for one in added.values()]
        shown = (f"{t / 60:.1f} min {100 * n * each / (p * t):.0f} %" for t in times)
        print(f"{p:>6} " + " ".join(f"{text:>16}" for text in shown))


if __name__ == "__main__":
    main()
