"""A manifest with bytes changed, inserted, cut out or doubled: refused, or the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from .mutants import mutant

TRIES, FEW = 1_000, 100


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    yield from survivors(folder, rng, lambda whole: (mutant(whole, rng) for _ in range(tries)))


def survivors(
    folder: Path, rng: np.random.Generator, mutants: Callable[[bytes], Iterable[bytes]]
) -> Iterator[str | None]:
    """For each mutant of a manifest None, where it is refused or the same."""
    from isde import ISDE
    from isde.errors import CheckpointError
    from isde.run.folder import MANIFEST_FILE, run_folder

    X = rng.normal(size=(30, 3))
    ISDE(2, marginal="gaussian", random_state=0, checkpoint=folder / "run").fit(X)
    path = folder / "run" / MANIFEST_FILE
    with run_folder(folder / "run") as run:
        sound = run.manifest()
        for number, content in enumerate(mutants(path.read_bytes())):
            path.write_bytes(content)
            try:
                found = run.manifest()
            except CheckpointError:
                yield None
            except Exception as error:
                yield f"number {number}: {error!r}"
            else:
                yield None if found == sound else f"number {number}: it is read as something else"
