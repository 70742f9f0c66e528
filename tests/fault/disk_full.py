"""No room for the next byte, wherever that is: one sentence, nothing but whole records, and on with more room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 100, 10


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    with runs.killable(folder, jobs=1, marginal="gaussian") as program:
        if program.start(folder / "alone") != 0:
            raise RuntimeError("a run that is left alone fails")
        alone = runs.outcome(folder / "alone")
        largest = max(path.stat().st_size for path in (folder / "alone").iterdir())
        for number in range(tries):
            yield _one(program, folder / f"run-{number}", int(rng.integers(1, largest)), alone)


def _one(program: runs.Killable, place: Path, room: int, alone: dict[str, str]) -> str | None:
    code = program.start(place, room=room)
    if code != 5:
        return f"{place}: exit code {code} with files of at most {room} bytes"
    left = [path.name for path in place.glob(".*")] if place.exists() else []
    if program.start(place) != 0:
        return f"{place}: does not go on after {room} bytes"
    return None if runs.outcome(place) == alone and not left else f"{place}: other bits after {room} bytes, or {left}"
