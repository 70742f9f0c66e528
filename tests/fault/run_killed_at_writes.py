"""kill -9 before, after, and in the middle of every call that writes, syncs or renames; then on, to the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 1_000, 9
"""At most: there are fewer such calls in a run, three ways each."""

WAYS = ("before", "after", "half")


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    runs.write_rows(folder)
    if runs.start(folder / "alone", marginal="gaussian", jobs=1) != 0:
        raise RuntimeError("a run that is left alone fails")
    alone = runs.outcome(folder / "alone")
    n_calls = _count(folder)
    cases = [(number, way) for number in range(1, n_calls + 1) for way in WAYS]
    if tries < len(cases):  # the first, which make the manifest, the last, which put the model in place, and between
        cases = [cases[i] for i in np.unique(np.linspace(0, len(cases) - 1, tries).astype(int))]
    for number, way in cases:
        place = folder / f"call-{number}-{way}"
        code = runs.start(place, f"call {number} {way}", marginal="gaussian", jobs=1)
        if code not in (0, -9):
            yield f"{place}: exit code {code}"
            continue
        if runs.start(place, marginal="gaussian", jobs=1) != 0:
            yield f"{place}: does not go on"
            continue
        left = [path.name for path in place.glob(".*")]
        yield None if runs.outcome(place) == alone and not left else f"{place}: other bits, or {left} is left"


def _count(folder: Path) -> int:
    """How many calls a run makes: the first number that is never reached."""
    low, high = 1, 64
    while runs.start(folder / f"count-{high}", f"call {high} before", marginal="gaussian", jobs=1) == -9:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        alive = runs.start(folder / f"count-{middle}", f"call {middle} before", marginal="gaussian", jobs=1) == 0
        low, high = (low, middle) if alive else (middle, high)
    return low
