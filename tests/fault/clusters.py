"""Clusters of this machine whose processes are killed, and fits that last long enough for it."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture


class Slow(GaussianMixture):
    """Long enough to be killed at, and says who does it."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        super().__init__(1, random_state=0)

    def fit(self, X: Any, y: Any = None) -> Any:
        if self.folder is not None:
            (Path(self.folder) / f"{os.getpid()}").touch()
            time.sleep(0.05)
        return super().fit(X)


def fit(X: np.ndarray, folder: Path | None) -> bytes:
    """The scores of all subsets; of a fit by `Slow` in the cluster in use, where there is a folder."""
    from isde import ISDE

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marginal = Slow(None if folder is None else str(folder))
        model = ISDE(3, marginal=marginal, split=0.5, alpha=None, random_state=0, n_jobs=1).fit(X)
    return model.subset_scores_.scores.tobytes()


@contextmanager
def killing(folder: Path, n: int, rng: np.random.Generator) -> Iterator[set[str]]:
    """Kill the first n processes that do something, a moment after they began."""

    def watch() -> None:
        while not stop.is_set() and len(killed) < n:
            for path in folder.iterdir():
                if path.name not in killed and len(killed) < n:
                    time.sleep(float(rng.uniform(0, 0.1)))
                    killed.add(path.name)
                    try:
                        os.kill(int(path.name), signal.SIGKILL)
                    except ProcessLookupError:  # it ended with the other one
                        killed.discard(path.name)
                        path.unlink()
            time.sleep(0.01)

    killed: set[str] = set()
    stop = threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def tries_with_kills(tries: int, folder: Path, rng: np.random.Generator, most: int) -> Iterator[str | None]:
    """Fits in the cluster in use, in each of which some of its workers die."""
    X = rng.normal(size=(40, 4))
    alone = fit(X, None)
    for number in range(tries):
        place, n = folder / str(number), 1 + number % most
        place.mkdir()
        try:
            with killing(place, n, rng) as killed:
                found = fit(X, place)
        except Exception as error:
            yield f"number {number}, {n} killed: {error!r}"
            continue
        if len(killed) < n:
            yield f"number {number}: only {len(killed)} of {n} were killed"
        else:
            yield None if found == alone else f"number {number}: other bits with {n} killed"
