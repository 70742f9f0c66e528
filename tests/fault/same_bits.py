"""One table by every executor, with 1, 2 and 4 workers, at once or in two goes: scores and model, one SHA-256."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 1_000, 6
"""At most: there are four executors, three numbers of workers, and two ways."""

EXECUTORS = {"threads": None, "loky": None, "dask": "distributed", "ray": "ray"}
WORKERS = (1, 2, 4)


def run(tries: int, folder: Path, rng: np.random.Generator) -> Generator[str | None, None, str]:
    t = rng.normal(size=60)
    X = np.column_stack([t, t + 0.5 * rng.normal(size=60), rng.normal(size=(60, 2))])
    found: dict[tuple[str, int, str], str] = {}
    for name, needs in EXECUTORS.items():
        for n in WORKERS if needs is None or find_spec(needs) else ():
            if len(found) >= tries:
                break
            with _executor(name, n):
                for way in ("fresh", "resumed"):
                    found[name, n, way] = _digest(X, folder / f"{name}-{n}-{way}", resumed=way == "resumed")
                    first = next(iter(found.values()))
                    yield None if found[name, n, way] == first else f"{name}, {n} workers, {way}: other bits"
    return _table(found)


@contextmanager
def _executor(name: str, n: int) -> Iterator[None]:
    from joblib import parallel_config

    from isde import cluster

    if name in ("threads", "loky"):
        with parallel_config("loky" if name == "loky" else "threading", n_jobs=n):
            yield
        return
    logging.disable(logging.WARNING)
    if name == "ray":
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # its workers import what this process does
    try:
        with cluster("local" if name == "dask" else name, n):
            yield
    finally:
        logging.disable(logging.NOTSET)


def _digest(X: np.ndarray, place: Path, *, resumed: bool) -> str:
    """The number of workers is not said to the model: its file holds its parameters."""
    from sklearn.model_selection import ShuffleSplit

    from isde import ISDE, chance

    split = ShuffleSplit(3, train_size=0.5, random_state=0)
    before, chance.TABLES = chance.TABLES, 2
    try:
        for again in range(1 + resumed):
            if again:
                log = place / "scores.log"
                os.truncate(log, log.stat().st_size // 2)
                (place / "model.isde").unlink()
            ISDE(2, split=split, random_state=0, checkpoint=place).fit(X)
    finally:
        chance.TABLES = before
    return hashlib.sha256("".join(runs.outcome(place).values()).encode()).hexdigest()


def _table(found: dict[tuple[str, int, str], str]) -> str:
    cells = dict.fromkeys((name, n) for name, n, _ in found)
    lines = ["| executor | workers | fresh | resumed |", "|---|---|---|---|"]
    for name, n in cells:
        digests = [found[name, n, way][:16] for way in ("fresh", "resumed")]
        lines.append(f"| {name} | {n} | `{digests[0]}` | `{digests[1]}` |")
    return "\n".join(["SHA-256 of all scores and the model file, first 16 digits:", "", *lines])
