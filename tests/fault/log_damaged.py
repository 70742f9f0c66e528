"""A log of 50 records with bytes changed, inserted, cut out or doubled: no wrong record, and few are lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .mutants import mutant

TRIES, FEW = 1_000, 100


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    from isde.errors import ISDEError
    from isde.run.log import AppendLog

    path = folder / "scores.log"
    records = {f"chunk {i}": rng.bytes(int(rng.integers(0, 300))) for i in range(50)}
    with AppendLog(path) as log:
        for key, payload in records.items():
            log.append(key, payload)
    whole = path.read_bytes()
    for number in range(tries):
        path.write_bytes(mutant(whole, rng))
        try:
            with AppendLog(path) as log:
                log.append("new", b"payload")
            with AppendLog(path) as log:
                found = {key: log.read(key) for key in tuple(log.keys())}
        except ISDEError as error:  # doubled records of which one was changed as well
            yield None if "two different results" in str(error) else f"number {number}: {error}"
            continue
        except Exception as error:
            yield f"number {number}: {error!r}"
            continue
        sound = found.pop("new", None) == b"payload" and found.items() <= records.items()
        yield None if sound else f"number {number}: a record that was never written"
