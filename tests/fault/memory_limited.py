"""No memory beyond so many bytes: the same bits, or one sentence and exit code 5, and on with more of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 40, 6

MOST_BYTES = 1 << 30
"""Beyond what the program has when it begins: with as much, these runs end as ever."""

MARGINALS = ("kde", "copula+stack", "gaussian")


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    if sys.platform != "linux":
        return
    with runs.killable(folder, jobs=2, splits=4) as program:
        alone = {}
        for marginal in MARGINALS:
            if program.start(folder / f"alone-{marginal}", marginal=marginal) != 0:
                raise RuntimeError("a run that is left alone fails")
            alone[marginal] = runs.outcome(folder / f"alone-{marginal}")
        for number in range(tries):
            marginal, room = MARGINALS[number % len(MARGINALS)], int(rng.uniform(0, 1) ** 3 * MOST_BYTES)
            yield _one(program, folder / f"run-{number}", marginal, room, alone[marginal])


def _one(program: runs.Killable, place: Path, marginal: str, room: int, alone: dict[str, str]) -> str | None:
    code = program.start(place, marginal=marginal, memory=room)
    if code not in (0, 5):
        return f"{place}: exit code {code} with {room:,} bytes more"
    left = [path.name for path in place.glob(".*")] if place.exists() else []
    if program.start(place, marginal=marginal) != 0:
        return f"{place}: does not go on after {room:,} bytes"
    return None if runs.outcome(place) == alone and not left else f"{place}: other bits after {room:,} bytes, or {left}"
