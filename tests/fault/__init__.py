"""Faults that isde has to survive: one file for each, and a line here.

A file defines

- `TRIES`, how often `make fault` tries it, and `FEW`, how often `make test` does (`tests/test_fault.py`);
- `run(tries, folder, rng)`, a generator that tries it in an empty folder and yields, for each try, None where the
  program came through it (the same bits as ever, or one sentence of its own), and otherwise what happened, with what
  it takes to see it again; what it measured it may return as a sentence;
- `NEEDS`, where it does, the package without which it cannot be tried.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

FAULTS = {
    "run killed at random": "run_killed",
    "run killed at every write": "run_killed_at_writes",
    "run stopped by a signal": "run_stopped",
    "worker process killed": "worker_killed",
    "Dask worker killed": "dask_worker_killed",
    "Dask scheduler killed": "dask_scheduler_killed",
    "Ray worker killed": "ray_worker_killed",
    "other executor, fresh or resumed": "same_bits",
    "disk full": "disk_full",
    "folder read-only": "folder_read_only",
    "memory limited": "memory_limited",
    "two runs into one folder": "two_runs",
    "log cut at every byte": "log_cut",
    "log damaged": "log_damaged",
    "log changed, checksums right": "log_resealed",
    "manifest cut at every byte": "manifest_cut",
    "manifest damaged": "manifest_damaged",
    "manifest changed, checksums right": "manifest_resealed",
    "saved file cut at every byte": "saved_cut",
    "saved file changed": "saved_changed",
    "saved file changed, checksums right": "saved_resealed",
    "data file changed": "tables_changed",
    "pipe, device or socket as a file": "special_files",
}
"""What the table calls a fault, and the file that tries it."""


class Fault(Protocol):
    """What a file of a fault defines."""

    TRIES: int
    FEW: int

    def run(self, tries: int, folder: Path, rng: np.random.Generator) -> Generator[str | None, None, str | None]: ...


def fault(name: str) -> Fault:
    """The file of a fault, by the name that the table has for it."""
    return import_module(f"{__name__}.{FAULTS[name]}")  # type: ignore[return-value]


def missing(module: Fault) -> str | None:
    """The package that a fault needs and that is not installed."""
    needs: str | None = getattr(module, "NEEDS", None)
    return None if needs is None or find_spec(needs) else needs
