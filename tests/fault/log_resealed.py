"""Records of a log changed, and their digests with them: refused, or scores that are numbers, each in its place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .mutants import mutant
from .saved_resealed import HURTFUL, HURTFUL_WHOLE, IN_MEMORY

TRIES, FEW = 1_000, 60


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as quick:
        yield from _run(tries, Path(quick), rng)


def _run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    X = rng.normal(size=(40, 3))
    sound = _score(X, folder / "run")
    records = _records(folder / "run" / "scores.log")
    for number in range(tries):
        place = folder / "other"
        shutil.copytree(folder / "run", place)
        (place / "scores.log").unlink()
        changed = sorted(records)[int(rng.integers(len(records)))]
        _write(place / "scores.log", records | {changed: _changed(records[changed], rng)})
        complaint = _complaint(X, place, sound, changed)
        yield None if complaint is None else f"number {number}, {changed}: {complaint}"
        shutil.rmtree(place)


def _complaint(X: np.ndarray, place: Path, sound: Any, changed: str) -> str | None:
    from isde.errors import ISDEError

    try:
        found = _score(X, place)
    except ISDEError as error:
        text = str(error)
        return None if text.isprintable() and len(text) < 2000 else f"its message is no sentence: {text[:200]!r}"
    except Exception as error:
        return repr(error)
    if np.isnan(found.scores).any() or (found.scores == np.inf).any():
        return "a score that is none"
    if changed.startswith("chance:"):
        return None if np.array_equal(found.scores, sound.scores) else "a score that was not touched is another"
    return None


def _score(X: np.ndarray, place: Path) -> Any:
    from sklearn.model_selection import ShuffleSplit

    from isde import chance
    from isde.run.folder import run_folder
    from isde.scoring import Scoring

    before, chance.TABLES = chance.TABLES, 2
    try:
        split = ShuffleSplit(2, train_size=0.5, random_state=0)
        with run_folder(place) as run:
            return Scoring.of(2, marginal="copula", split=split, random_state=0, n_jobs=1).score_in(run, {}, X, "abc")
    finally:
        chance.TABLES = before


def _records(path: Path) -> dict[str, bytes]:
    from isde.run.log import AppendLog

    with AppendLog(path) as log:
        return {key: log.read(key) for key in tuple(log.keys())}


def _write(path: Path, records: dict[str, bytes]) -> None:
    from isde.run.log import AppendLog

    with AppendLog(path) as log:
        for key, payload in records.items():
            log.append(key, payload)


def _changed(payload: bytes, rng: np.random.Generator) -> bytes:
    """Its numbers, as they were packed, or its bytes."""
    from isde.run.store import pack, unpack
    from isde.run.work import ChunkScores

    if rng.random() < 0.3:
        return mutant(payload, rng)
    found = unpack(payload)
    vectors = {name: np.array(getattr(found, name)) for name in ("positions", "scores", "bandwidths", "unsettled")}
    name = list(vectors)[int(rng.integers(3))]
    values = HURTFUL_WHOLE if name == "positions" else HURTFUL
    if rng.random() < 0.2:
        vectors = {key: vector[: int(rng.integers(len(vector)))] for key, vector in vectors.items()}
    else:
        vectors[name][int(rng.integers(len(vectors[name])))] = values[int(rng.integers(len(values)))]
    return pack(ChunkScores(**vectors))
