"""A worker process killed in the middle of a chunk: the same bits, and at most one chunk of each worker done again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .mortal import Mortal

TRIES, FEW = 20, 1

JOBS, CHUNK = 2, 1
"""Workers, and fits of a chunk where there are few subsets."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    X = rng.normal(size=(60, 4))
    alone, n_fits = _fit(X, folder / "alone", 0)
    for number in range(tries):
        at = int(rng.integers(1, n_fits - 10))
        found, fits = _fit(X, folder / f"counted-{number}", at)
        again = fits - n_fits
        if found != alone:
            yield f"other bits with a worker killed at fit {at}"
        else:
            yield None if again <= JOBS * CHUNK else f"{again} fits were done again with a worker killed at fit {at}"


def _fit(X: np.ndarray, file: Path, n: int) -> tuple[bytes, int]:
    from isde import ISDE

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ISDE(3, marginal=Mortal(str(file), n), split="density", random_state=0, n_jobs=JOBS).fit(X)
    return model.subset_scores_.scores.tobytes(), file.stat().st_size
