"""What the tables of running times share: a stopwatch, and the random scores that selection is timed on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from isde.data.table import default_names
from isde.scores import SubsetScores
from isde.subsets import SubsetFamily

T = TypeVar("T")


def min_seconds(times: int, function: Callable[[], T]) -> tuple[float, T]:
    """Least wall time of several calls, and what the last one returned."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        taken.append(time.perf_counter() - start)
    return min(taken), result


def uniform_scores(d: int, k: int, rng: np.random.Generator) -> SubsetScores:
    """A table of uniform random scores: the author timed selection on such."""
    subsets = SubsetFamily(d, k)
    nothing = np.full(len(subsets), np.nan)
    return SubsetScores(subsets, rng.uniform(size=len(subsets)), nothing, nothing, default_names(d))
