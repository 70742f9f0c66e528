"""A manifest that says something else, with a checksum that is right: refused, or the same scores."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .saved_resealed import IN_MEMORY, change_json

TRIES, FEW = 1_000, 60


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as quick:
        yield from _run(tries, Path(quick), rng)


def _run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    from isde.errors import ISDEError
    from isde.run.folder import FORMAT, MANIFEST_FILE, _digest

    X = rng.normal(size=(30, 3))
    sound = _fit(X, folder / "run")
    manifest = json.loads((folder / "run" / MANIFEST_FILE).read_text())
    for number in range(tries):
        place, content = folder / "other", json.loads(json.dumps(manifest))
        shutil.copytree(folder / "run", place)
        del content["sha256"], content["format"]
        for _ in range(int(rng.integers(1, 3))):
            change_json(content, rng)
        (place / MANIFEST_FILE).write_text(json.dumps({"format": FORMAT, "sha256": _digest(content), **content}))
        try:
            same = _fit(X, place) == sound
        except ISDEError as error:
            yield None if str(error).isprintable() else f"number {number}: its message is no sentence: {error!r}"
        except Exception as error:
            yield f"number {number}: {error!r} of {content}"
        else:
            yield None if same else f"number {number}: other scores of {content}"
        shutil.rmtree(place)


def _fit(X: np.ndarray, place: Path) -> bytes:
    from isde import ISDE

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a processor that has another name
        model = ISDE(2, marginal="gaussian", split=0.5, random_state=0, alpha=None, n_jobs=1, checkpoint=place).fit(X)
    return model.subset_scores_.scores.tobytes()
