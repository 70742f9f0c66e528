"""A log of 50 records with bytes changed, inserted, cut out or doubled: no wrong record, and few are lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .mutants import mutant

TRIES, FEW = 1_000, 100


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    path, records = folder / "scores.log", write(folder / "scores.log", 50, rng)
    whole = path.read_bytes()
    for number in range(tries):
        path.write_bytes(mutant(whole, rng))
        complaint = wrong_record(path, records)
        yield None if complaint is None else f"number {number}: {complaint}"


def write(path: Path, n: int, rng: np.random.Generator) -> dict[str, bytes]:
    """A log of n records, and what they are."""
    from isde.run.log import AppendLog

    records = {f"chunk {i}": rng.bytes(int(rng.integers(0, 300))) for i in range(n)}
    with AppendLog(path) as log:
        for key, payload in records.items():
            log.append(key, payload)
    return records


def wrong_record(path: Path, records: dict[str, bytes]) -> str | None:
    """What is wrong with a log, after a new record, that holds some of these and nothing else."""
    from isde.errors import ISDEError
    from isde.run.log import AppendLog

    try:
        with AppendLog(path) as log:
            log.append("new", b"payload")
        with AppendLog(path) as log:
            found = {key: log.read(key) for key in tuple(log.keys())}
    except ISDEError as error:  # doubled records of which one was changed as well
        return None if "two different results" in str(error) else str(error)
    except Exception as error:
        return repr(error)
    sound = found.pop("new", None) == b"payload" and found.items() <= records.items()
    return None if sound else "a record that was never written"
