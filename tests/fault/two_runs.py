"""Two runs into one folder, begun at about the same moment: one is done, the other refused, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TRIES, FEW = 20, 1


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    np.savetxt(folder / "data.csv", rng.normal(size=(40, 4)), delimiter=",", header="a,b,c,d", comments="")
    alone = _start(folder, "alone")
    _, said = alone.communicate()
    if alone.returncode != 0:
        raise RuntimeError(f"a run that is left alone fails: {said}")
    whole = (folder / "alone" / "model.isde").read_bytes()
    for number in range(tries):
        name = f"run-{number}"
        first = _start(folder, name)
        time.sleep(float(rng.uniform(0, 0.3)))
        second = _start(folder, name)
        both = [process.communicate()[1] for process in (first, second)]
        yield _complaint(folder / name, [first.returncode, second.returncode], both, whole)


def _complaint(place: Path, codes: list[int], said: list[str], whole: bytes) -> str | None:
    if sorted(codes) not in ([0, 4], [0, 0]):  # the second may find a run that is done, and have nothing to do
        return f"{place}: exit codes {codes}: {said}"
    for code, text in zip(codes, said, strict=True):
        if code == 4 and "is in use by" not in text:
            return f"{place}: it is not said who uses it: {text}"
    same = (place / "model.isde").read_bytes() == whole
    return None if same and not list(place.glob(".*")) else f"{place}: another model, or something is left"


def _start(folder: Path, name: str) -> subprocess.Popen[str]:
    call = ["fit", "data.csv", "-o", name, "--marginal", "gaussian", "-k", "2", "--alpha", "none", "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "isde", *call], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
