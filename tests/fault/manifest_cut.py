"""A manifest cut short: refused at whichever byte it ends, or the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .manifest_damaged import survivors
from .saved_cut import cuts

TRIES, FEW = 1_000_000, 100
"""At most: there are as many as the manifest has bytes."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    yield from survivors(folder, rng, lambda whole: cuts(whole, tries))
