"""What is remembered of a fit besides its result: rows, their fingerprint, time, versions, and what was warned of.

It is kept in memory and in the summary of a run, not in the model file: two fits of the same rows give the same file.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from isde.arrays import Matrix
from isde.errors import collecting

PACKAGES = ("isde", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class FitRecord:
    """How a model came about."""

    n_rows: int
    n_columns: int
    fingerprint: str  # of the rows and the names of their columns
    seconds: float
    processor_seconds: float  # of this process, all threads
    versions: dict[str, str]
    warnings: tuple[str, ...]  # what isde said during the fit


def recorded(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that leaves a `FitRecord` in `fit_record_`."""

    @wraps(fit)
    def remembered(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        with collecting() as said:
            found = fit(self, X, *args, **kwargs)
        seconds = time.perf_counter() - wall, time.process_time() - processor
        rows = self._check(X, reset=False)
        said_once, digest = tuple(dict.fromkeys(said)), fingerprint(rows, self._names())
        self.fit_record_ = FitRecord(len(rows), rows.shape[1], digest, *seconds, versions(), said_once)
        return found

    return remembered


def fingerprint(X: Matrix, names: Sequence[str]) -> str:
    """SHA-256 of the names, the shape and the numbers of a table, the same on every machine.

    >>> fingerprint(np.array([[1.0, 2.0]]), ["a", "b"])[:12]
    '6ebd5b948315'
    """
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass"))
    digest.update(np.array(X.shape, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(X, dtype="<f8").data)
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of Python and of what the numbers depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from its source
            continue
    return found
