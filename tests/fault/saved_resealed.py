"""A saved file of which someone changed the numbers, and then the checksums: refused, or a density all the same."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from .guarded import Check, survivors
from .saved import KINDS, save

TRIES, FEW = 6_000, 200

IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where files are made: each is synced to disk, and ten thousand of them take minutes."""

HURTFUL = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e-200, 1e200, 1e308, -1e308, 5.0, 1 + 1e-8)
HURTFUL_WHOLE = (-1, 0, 1, 2, 10**6, 2**31, 2**62, -(2**63))
HURTFUL_JSON: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**9,
    1e308,
    "",
    "x",
    "\x1b[2J",
    [],
    {},
    [[]],
    ["a", "a"],
    2**70,
)


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    from isde.archive import read_archive

    def mutants(sound: Path) -> Iterator[bytes]:
        archive = read_archive(sound)
        return (_resealed(*archive, rng) for _ in range(tries // len(KINDS)))

    yield from survivors(is_sound, [save(folder, kind) for kind in KINDS], mutants)


def is_sound(sound: Path) -> Check:
    """What is loaded gives numbers, whatever they are: a digest catches damage, not malice."""
    import isde

    n_columns = getattr(isde.load(sound), "n_features_in_", 0)
    X = np.random.default_rng(1).normal(size=(5, n_columns))
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # where the file now says it has some

    def check(path: Path) -> str | None:
        loaded = isde.load(path)
        if isinstance(loaded, isde.SubsetScores):
            return "a score that is none" if np.isnan(loaded.scores).any() else None
        if np.isnan(loaded.score_samples(X)).any():
            return "a log-density that is none"
        if (loaded.score_samples(X) == np.inf).any():
            return "a density without end"
        return None if np.isfinite(loaded.sample(5, random_state=0)).all() else "rows drawn that are none"

    return check


def _resealed(kind: str, header: dict[str, Any], arrays: dict[str, Any], rng: np.random.Generator) -> bytes:
    from isde.archive import write_archive

    header, arrays = json.loads(json.dumps(header)), {name: array.copy() for name, array in arrays.items()}
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5:
            change_json(header, rng)
        else:
            name = sorted(arrays)[int(rng.integers(len(arrays)))]
            arrays[name] = _changed(arrays[name], rng)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        path = Path(folder) / "file"
        write_archive(path, kind, header, arrays)
        return path.read_bytes()


def _changed(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values, or the shape, or the type."""
    kind = int(rng.integers(6))
    if kind == 0:
        return array[None]
    if kind == 1:
        return array.ravel()[: int(rng.integers(array.size + 1))]
    if kind == 2:
        with np.errstate(invalid="ignore"):
            return array.astype(np.int64 if array.dtype.kind == "f" else np.float64)
    other = array.copy()
    values = HURTFUL if array.dtype.kind == "f" else HURTFUL_WHOLE
    value = values[int(rng.integers(len(values)))]
    if kind == 3 or not array.size:
        other[...] = value
    elif kind == 4:
        other.flat[int(rng.integers(array.size))] = value
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            other = other * np.array(value, dtype=other.dtype)
    return np.asarray(other)  # a number times a number is no array


def change_json(value: Any, rng: np.random.Generator) -> None:
    """Some entry, however deep, becomes something else."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = keys[int(rng.integers(len(keys)))]
    if isinstance(value[key], dict | list) and rng.random() < 0.7:
        change_json(value[key], rng)
    else:
        value[key] = deepcopy(HURTFUL_JSON[int(rng.integers(len(HURTFUL_JSON)))])  # it may be changed in turn
