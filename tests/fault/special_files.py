"""A pipe, a device, a socket or a folder wherever a file is read or written: one sentence, and no waiting."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

TRIES, FEW = 1_000, 8
"""At most: there are fewer cases."""

PATIENCE_SECONDS = 60
"""So long that a busy machine is no hang."""

RUN_FILES = ("manifest.json", "scores.log", "lock", "model.isde", "summary.json")


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    np.savetxt(folder / "data.csv", rng.normal(size=(40, 3)), delimiter=",", header="a,b,c", comments="")
    if _isde(folder, _FIT, "run")[0] != 0:
        raise RuntimeError("a run that is left alone fails")
    cases = [(kind, use) for kind in KINDS for use in [*_READS, *RUN_FILES]]
    if tries < len(cases):
        cases = [cases[i] for i in rng.permutation(len(cases))[:tries]]
    for number, (kind, use) in enumerate(cases):
        place = folder / f"case-{number}"
        place.mkdir()
        yield _one(folder, place, kind, use)


def _one(folder: Path, place: Path, kind: str, use: str) -> str | None:
    if use in RUN_FILES:
        shutil.copytree(folder / "run", place / "run")
        path = place / "run" / use
        path.unlink()
        arguments: list[str] = [str(folder / one) if one == "data.csv" else one for one in [*_FIT, "run"]]
    else:
        path = place / f"special{Path(use.split()[-1]).suffix}"
        arguments = [str(path) if one.startswith("special") else one for one in use.split()]
        arguments = [str(folder / one) if one in ("run", "data.csv") else one for one in arguments]
    KINDS[kind](path)
    found = _isde(place, arguments)
    if found is None:
        return f"{place}: {use} as {kind} hangs"
    code, said = found
    lines = said.strip().splitlines()
    if "Traceback" in said or (code != 0 and not (lines and lines[-1].startswith(("Error:", "Usage:")))):
        return f"{place}: {use} as {kind}: exit code {code}: {said[-300:]}"
    # The summary is written anew, in place of what was there; what is read is refused.
    return None if code in (2, 4, 5) or use in ("summary.json", "model.isde") else f"{place}: {use} as {kind} is taken"


_FIT = ["fit", "data.csv", "--marginal", "gaussian", "-k", "2", "--seed", "0", "--alpha", "none", "-o"]
_READS = (
    "fit special.csv -k 2",
    "fit special.npy -k 2",
    "fit special.parquet -k 2",
    "fit special.fcs -k 2",
    "score run special.csv",
    "info special.isde",
)
"""Commands that read; "special" is what they are given instead of a file."""


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(path),
    "zeros without end": lambda path: os.symlink("/dev/zero", path),
    "a socket": _socket,
    "a folder": lambda path: path.mkdir(),
    "a link to itself": lambda path: os.symlink(path.name, path),
}


def _isde(folder: Path, *arguments: list[str] | str) -> tuple[int, str] | None:
    """Exit code and what was said; None for a command that does not end."""
    call = [one for part in arguments for one in ([part] if isinstance(part, str) else part)]
    try:
        found = subprocess.run(
            [sys.executable, "-m", "isde", *call], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return found.returncode, found.stderr
