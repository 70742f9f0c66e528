"""Runs of `killable`, and whether what they leave goes on to the same end."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


class Killable:
    """Starts runs on the rows of one table."""

    def __init__(self, process: subprocess.Popen[str], data: Path, **options: Any) -> None:
        self.process, self.data = process, data
        self.options = {"jobs": 2, "marginal": "kde", "splits": 12, "structure": "blocks"} | options

    def start(self, folder: Path, **how: Any) -> int:
        """The exit code of a run as the command has it, -9 where it was killed."""
        without = dict.fromkeys(("seconds", "call", "how", "room", "memory", "as_nobody", "locked_at"))
        job = without | {"folder": str(folder), "data": str(self.data)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(self.options | job | how) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def killable(folder: Path, **options: Any) -> Iterator[Killable]:
    rng = np.random.default_rng(0)
    t = rng.normal(size=200)
    np.save(folder / "X.npy", np.column_stack([t, t + 0.4 * rng.normal(size=200), rng.normal(size=(200, 4))]))
    command = [sys.executable, str(Path(__file__).with_name("killable.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Killable(process, folder / "X.npy", **options)
        assert process.stdin is not None
        process.stdin.close()


def n_begun(run: Path) -> int:
    """Chunks that all processes of a run have begun."""
    return Path(f"{run}.begun").stat().st_size


def n_kept(run: Path) -> int:
    """Chunks that the log holds."""
    from isde.run.log import read_frames

    log = run / "scores.log"
    return len(read_frames(log)[0]) if log.exists() else 0


def outcome(run: Path) -> dict[str, str]:
    """Digests of what a run came to: every score as it was found, and the model file."""
    from isde.run.log import AppendLog

    with AppendLog(run / "scores.log") as log:
        scores = hashlib.sha256()
        for key in sorted(log.keys()):
            scores.update(key.encode() + log.read(key))
    model = hashlib.sha256((run / "model.isde").read_bytes()).hexdigest()
    return {"scores": scores.hexdigest(), "model.isde": model}


def tear(log: Path, rng: np.random.Generator) -> None:
    """Cut the end off a log, as a power cut may."""
    if log.exists() and log.stat().st_size:
        os.truncate(log, max(0, log.stat().st_size - int(rng.integers(1, 400))))
