"""A data file of any format with bytes changed, inserted, cut out or doubled: refused, or read as a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .guarded import survivors
from .mutants import mutant
from .tables import ENDINGS, is_a_table, write

TRIES, FEW = 10_000, 210


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    def mutants(sound: Path) -> Iterator[bytes]:
        whole = sound.read_bytes()
        return (mutant(whole, rng) for _ in range(tries // len(ENDINGS)))

    yield from survivors(is_a_table, [write(folder, ending) for ending in ENDINGS], mutants)
