"""A folder that cannot be written, from the start or from some record on: one sentence, and on where it can be.

Root may write everywhere: where root runs this, the run is nobody's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 32, 10

FEW_RECORDS = 4
"""After which the folder is locked, at most."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    if os.name == "nt":
        return
    with tempfile.TemporaryDirectory() as open_to_nobody:  # what pytest gives is root's alone
        yield from _run_in(Path(open_to_nobody), tries, rng)


def _run_in(folder: Path, tries: int, rng: np.random.Generator) -> Iterator[str | None]:
    folder.chmod(0o755)
    with runs.killable(folder, jobs=1, marginal="gaussian", splits=4) as program:
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)
        if program.start(folder / "open" / "alone", as_nobody=True) != 0:
            raise RuntimeError("a run that is left alone fails")
        alone = runs.outcome(folder / "open" / "alone")
        ways = list(WAYS)
        for number in range(tries):
            place = folder / f"case-{number}"
            place.mkdir()
            place.chmod(0o777)
            yield WAYS[ways[number % len(ways)]](program, place, rng, alone)


def _parent(program: runs.Killable, place: Path, rng: np.random.Generator, alone: dict[str, str]) -> str | None:
    """The folder of the run cannot even be made."""
    place.chmod(0o555)
    code = program.start(place / "run", as_nobody=True)
    place.chmod(0o777)
    return _goes_on(program, place / "run", code, {2}, alone)


def _whole_run(program: runs.Killable, place: Path, rng: np.random.Generator, alone: dict[str, str]) -> str | None:
    """The folder of a run that is done, and its files."""
    shutil.copytree(place.parent / "open" / "alone", place / "run")
    for path in [*(place / "run").iterdir(), place / "run"]:
        path.chmod(0o555)
    code = program.start(place / "run", as_nobody=True)
    for path in [place / "run", *(place / "run").iterdir()]:
        path.chmod(0o777)
    return _goes_on(program, place / "run", code, {2}, alone)


def _one_file(program: runs.Killable, place: Path, rng: np.random.Generator, alone: dict[str, str]) -> str | None:
    """The log alone."""
    shutil.copytree(place.parent / "open" / "alone", place / "run")
    (place / "run").chmod(0o777)
    for path in (place / "run").iterdir():
        path.chmod(0o666)
    os.truncate(place / "run" / "scores.log", 500)
    (place / "run" / "scores.log").chmod(0o444)
    code = program.start(place / "run", as_nobody=True)
    (place / "run" / "scores.log").chmod(0o666)
    return _goes_on(program, place / "run", code, {2, 5}, alone)


def _midway(program: runs.Killable, place: Path, rng: np.random.Generator, alone: dict[str, str]) -> str | None:
    """From some record on: what is open can be written, the model cannot."""
    code = program.start(place / "run", as_nobody=True, locked_at=int(rng.integers(1, FEW_RECORDS + 1)))
    (place / "run").chmod(0o777)
    return _goes_on(program, place / "run", code, {5}, alone)


WAYS: dict[str, Callable[[runs.Killable, Path, np.random.Generator, dict[str, str]], str | None]] = {
    "parent": _parent,
    "whole run": _whole_run,
    "one file": _one_file,
    "midway": _midway,
}


def _goes_on(program: runs.Killable, place: Path, code: int, expected: set[int], alone: dict[str, str]) -> str | None:
    if code not in expected:
        return f"{place}: exit code {code}"
    left = [path.name for path in place.glob(".*")] if place.exists() else []
    if program.start(place, as_nobody=True) != 0:
        return f"{place}: does not go on where it can be written"
    return None if runs.outcome(place) == alone and not left else f"{place}: other bits, or {left} is left"
