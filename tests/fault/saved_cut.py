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
    sounds = [save(folder, kind) for kind in KINDS]
    yield from survivors(loads_as_it_was, sounds, lambda sound: cuts(sound.read_bytes(), tries // len(KINDS)))


def cuts(whole: bytes, most: int) -> Iterator[bytes]:
    """The beginning of a file, at so many places at equal distances, or of every length."""
    lengths = np.linspace(0, len(whole) - 1, min(most, len(whole))).astype(int)
    return (whole[:length] for length in lengths.tolist())
