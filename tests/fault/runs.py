"""A run in a process of its own, which may be killed at any moment, and whether what it leaves goes on to the same end.

The process counts what it scores in a file, and ends itself where it is told to: after so many seconds of scoring, or at
the n-th call that changes a file, before or after it, or with half of what is written.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

SCRIPT = """
import os, signal, sys, threading, time
folder, counted, when, jobs = sys.argv[1:5]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

from isde import files
from isde.run import log
from isde.run.store import LogStore

if when.startswith("call "):
    number, how = when.split()[1:]
    calls = [0]

    def wrapped(module, name):
        function = getattr(module, name)

        def counting(*arguments, **options):
            calls[0] += 1
            here = calls[0] == int(number)
            if here and how == "before":
                die()
            if here and how == "half" and name == "write":
                function(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                die()
            found = function(*arguments, **options)
            if here:
                die()
            return found

        setattr(module, name, counting)

    for name in ("write", "fsync", "fdatasync", "ftruncate", "replace", "fdopen", "chmod"):
        if hasattr(os, name):
            wrapped(os, name)
    log.SYNC_SECONDS = -1.0
elif when != "never":
    put = LogStore.put
    begun = []

    def first(self, key, found):
        if not begun:
            begun.append(key)
            threading.Timer(float(when), die).start()
        put(self, key, found)

    LogStore.put = first

from isde import ISDE, chance, score_tables
chance.TABLES = 6
score = score_tables.score_task

def count(*arguments):
    found = score(*arguments)
    handle = os.open(counted, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    posix_write(handle, (arguments[-2].key + chr(10)).encode())
    os.close(handle)
    return found

score_tables.score_task = count
import posix
posix_write = posix.write
import numpy as np
X = np.load(os.path.join(os.path.dirname(folder), "X.npy"))
from sklearn.model_selection import ShuffleSplit
split = ShuffleSplit(12, train_size=0.5, random_state=0)
model = ISDE(3, marginal="MARGINAL", split=split, n_jobs=int(jobs), random_state=0, checkpoint=folder).fit(X)
"""


def write_rows(folder: Path) -> None:
    rng = np.random.default_rng(0)
    t = rng.normal(size=200)
    X = np.column_stack([t, t + 0.4 * rng.normal(size=200), rng.normal(size=(200, 4))])
    np.save(folder / "X.npy", X)


def start(run: Path, when: str = "never", *, jobs: int = 2, marginal: str = "kde") -> int:
    """The exit code of a run that dies as it is told to, or lives."""
    code = textwrap.dedent(SCRIPT).replace("MARGINAL", marginal)
    command = [sys.executable, "-W", "ignore", "-c", code, str(run), str(run) + ".counted", when, str(jobs)]
    return subprocess.run(command, check=False, timeout=600).returncode


def n_scored(run: Path) -> int:
    """Chunks that all processes of a run scored, those of chance left out: tables of it are scored as one."""
    counted = Path(f"{run}.counted")
    return len(counted.read_text().splitlines()) if counted.exists() else 0


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
