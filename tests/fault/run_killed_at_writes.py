"""kill -9 before, after, and in the middle of every call that opens, writes, syncs or renames; then to the same end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 1_000, 12
"""At most: there are fewer such calls in a run, three ways each."""

WAYS = ("before", "after", "half")


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    with runs.killable(folder, jobs=1, marginal="gaussian", splits=4) as program:
        if program.start(folder / "alone", call=0) != 0:
            raise RuntimeError("a run that is left alone fails")
        alone, n_calls = runs.outcome(folder / "alone"), int((folder / "alone.calls").read_text())
        cases = [(number, way) for number in range(1, n_calls + 1) for way in WAYS]
        if tries < len(cases):  # the first make the manifest, the last put the model in place
            cases = [cases[i] for i in np.unique(np.linspace(0, len(cases) - 1, tries).astype(int))]
        for number, way in cases:
            yield _one(program, folder / f"call-{number}-{way}", number, way, alone)


def _one(program: runs.Killable, place: Path, number: int, way: str, alone: dict[str, str]) -> str | None:
    code = program.start(place, call=number, how=way)
    if code != -9:
        return f"{place}: exit code {code}"
    if program.start(place) != 0:
        return f"{place}: does not go on"
    left = [path.name for path in place.glob(".*")]
    return None if runs.outcome(place) == alone and not left else f"{place}: other bits, or {left} is left"
