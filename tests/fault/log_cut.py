"""A log of three records cut short: at whichever byte it ends, it holds the records before it and takes new ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .log_damaged import write, wrong_record
from .saved_cut import cuts

TRIES, FEW = 1_000_000, 100
"""At most: there are as many as the log has bytes."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    path, records = folder / "scores.log", write(folder / "scores.log", 3, rng)
    for part in cuts(path.read_bytes(), tries):
        path.write_bytes(part)
        complaint = wrong_record(path, records)
        yield None if complaint is None else f"{len(part)} bytes: {complaint}"
