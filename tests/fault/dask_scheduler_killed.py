"""The scheduler of a Dask cluster killed in the middle of a run: exit code 5, and on without it to the same model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

NEEDS = "distributed"

TRIES, FEW = 1, 1

RECORDS = 2
"""After which the scheduler is killed."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    names, rows = "abcdefghij", rng.normal(size=(200, 10))
    np.savetxt(folder / "data.csv", rows, delimiter=",", header=",".join(names), comments="")
    if _fit(folder, "alone").wait() != 0:
        raise RuntimeError("a run that is left alone fails")
    whole = (folder / "alone" / "model.isde").read_bytes()
    for number in range(tries):
        yield _one(folder, f"run-{number}", whole)


def _one(folder: Path, name: str, whole: bytes) -> str | None:
    from isde.run.log import read_frames

    start = ["dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = _python(folder, *start, stderr=subprocess.PIPE, text=True)
    address = next(found[0] for line in scheduler.stderr if (found := re.search(r"tcp://127.0.0.1:\d+", line)))
    rest = threading.Thread(target=scheduler.stderr.read, daemon=True)
    rest.start()
    worker = _python(folder, "dask", "worker", address, "--nthreads", "1", "--no-dashboard", stderr=subprocess.DEVNULL)
    log = folder / name / "scores.log"
    try:
        run = _fit(folder, name, "--cluster", address)
        while run.poll() is None and not (log.exists() and len(read_frames(log)[0]) >= RECORDS):
            time.sleep(0.02)
        scheduler.kill()
        code = run.wait()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        rest.join()
        scheduler.stderr.close()
    if code != 5:
        return f"{name}: exit code {code}"
    if _fit(folder, name).wait() != 0:
        return f"{name}: does not go on without a cluster"
    return None if (folder / name / "model.isde").read_bytes() == whole else f"{name}: another model"


def _fit(folder: Path, name: str, *options: str) -> subprocess.Popen[Any]:
    call = ["fit", "data.csv", "-o", name, "--marginal", "stack", "-k", "2", "--seed", "0", "--alpha", "none"]
    return _python(folder, "isde", *call, *options, stderr=subprocess.DEVNULL)


def _python(folder: Path, module: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=folder, stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, **options,
    )  # fmt: skip
