"""A saved file cut short: refused at whichever byte it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .guarded import survivors
from .saved import KINDS, loads_as_it_was, save

TRIES = 1_000_000
"""All that there are: lengths are taken at equal distances, and every one where that is less than a byte."""

FEW = 200


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    def cuts(sound: Path) -> Iterator[bytes]:
        whole = sound.read_bytes()
        lengths = np.linspace(0, len(whole) - 1, min(tries // len(KINDS), len(whole))).astype(int)
        return (whole[:length] for length in lengths.tolist())

    yield from survivors(loads_as_it_was, [save(folder, kind) for kind in KINDS], cuts)
