"""A data file of any format with bytes changed, inserted, cut out or doubled: refused, or read as a table."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .guarded import survivors
from .mutants import mutant
from .tables import ENDINGS, is_a_table, write

TRIES, FEW = 7_000, 210


def _repacked(sound: Path, rng: np.random.Generator) -> bytes:
    """What a packed file holds is changed, and its own checksums are right."""
    if sound.suffix == ".gz":
        return gzip.compress(mutant(gzip.decompress(sound.read_bytes()), rng))
    buffer = io.BytesIO()
    with zipfile.ZipFile(sound) as members, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as changed:
        for name in members.namelist():
            content = members.read(name)
            changed.writestr(name, mutant(content, rng) if rng.random() < 0.7 else content)
    return buffer.getvalue()


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    def mutants(sound: Path) -> Iterator[bytes]:
        whole = sound.read_bytes()
        for _ in range(tries // len(ENDINGS)):
            packed = sound.suffix in (".gz", ".npz") and rng.random() < 0.5
            yield _repacked(sound, rng) if packed else mutant(whole, rng)

    yield from survivors(is_a_table, [write(folder, ending) for ending in ENDINGS], mutants)
