"""A saved file with bytes changed, inserted, cut out or doubled: refused, or the same to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .guarded import survivors
from .mutants import mutant
from .saved import KINDS, loads_as_it_was, save

TRIES, FEW = 6_000, 200


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    def mutants(sound: Path) -> Iterator[bytes]:
        whole = sound.read_bytes()
        return (mutant(whole, rng) for _ in range(tries // len(KINDS)))

    yield from survivors(loads_as_it_was, [save(folder, kind) for kind in KINDS], mutants)
