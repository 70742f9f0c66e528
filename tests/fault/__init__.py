"""Faults that isde has to survive: one file for each, and a line here.

A file defines

- `TRIES`, how often `make fault` tries it, and `FEW`, how often `make test` does (`tests/test_fault.py`);
- `run(tries, folder, rng)`, a generator that tries it in an empty folder and yields, for each try, None where the
  program came through it (the same bits as ever, or one sentence of its own), and otherwise what happened, with what
  it takes to see it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol

import numpy as np

FAULTS = {
    "saved file cut at every byte": "saved_cut",
    "saved file changed": "saved_changed",
    "saved file changed, checksums right": "saved_resealed",
    "data file changed": "tables_changed",
}
"""What the table calls a fault, and the file that tries it."""


class Fault(Protocol):
    """What a file of a fault defines."""

    TRIES: int
    FEW: int

    def run(self, tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]: ...


def fault(name: str) -> Fault:
    """The file of a fault, by the name that the table has for it."""
    return import_module(f"{__name__}.{FAULTS[name]}")  # type: ignore[return-value]
