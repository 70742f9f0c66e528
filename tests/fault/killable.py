"""Runs that may be killed at any moment: a process that is asked for them, line by line, and forks one for each.

The forked process has nothing left to import or compile. It counts the chunks that it begins in a file, and kills
itself where it is told to: so many seconds after the first record, or at the n-th call that changes a file, before it,
after it, or with half of what is written.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit

from isde import ISDE, TreeISDE, chance
from isde.cli.exit_codes import exit_code
from isde.run import executors, log
from isde.run.store import LogStore

CHANGING = ("write", "fsync", "fdatasync", "ftruncate", "replace", "fdopen", "chmod", "open")
"""Functions of `os` that change files, or open one to."""


NOBODY = 65534


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fit(job: dict[str, Any], folder: str | None) -> None:
    split = ShuffleSplit(job["splits"], train_size=0.5, random_state=0)
    options = {"marginal": job["marginal"], "split": split, "n_jobs": job["jobs"], "random_state": 0}
    STRUCTURES[job["structure"]](**options, checkpoint=folder).fit(np.load(job["data"]))


STRUCTURES = {"blocks": partial(ISDE, 3), "screened": partial(ISDE, 4, search="screened"), "tree": partial(TreeISDE, 3)}


def run(job: dict[str, Any]) -> None:
    """What a forked process does."""
    _count_begun(job["folder"] + ".begun")
    calls = [0]
    if job["call"] is not None:
        log.SYNC_SECONDS = -1.0  # every record is synced
        for name in CHANGING:
            _wrap(name, calls, job["call"], job["how"])
    if job["room"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["room"], job["room"]))
    if job["memory"] is not None:
        most = _address_space() + job["memory"]
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if job["as_nobody"] and os.getuid() == 0:  # nothing is read-only for root
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if job["locked_at"] is not None:
        _lock_at(job["locked_at"], job["folder"])
    if job["seconds"] is not None:
        _die_after(job["seconds"])
    fit(job, job["folder"])
    if job["call"] == 0:
        with open(job["folder"] + ".calls", "w") as file:
            file.write(str(calls[0]))


def _address_space() -> int:
    """Bytes that this process has asked for so far."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _lock_at(number: int, folder: str) -> None:
    """The folder becomes read-only with the n-th record."""
    put, count = LogStore.put, [0]

    def counting(self: LogStore, key: str, found: Any) -> None:
        count[0] += 1
        if count[0] == number:
            os.chmod(folder, 0o555)
        put(self, key, found)

    LogStore.put = counting  # type: ignore[method-assign]


def _wrap(name: str, calls: list[int], number: int, how: str) -> None:
    function = getattr(os, name)

    def counting(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        here = calls[0] == number
        if here and how == "before":
            die()
        if here and how == "half" and name == "write":
            function(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            die()
        found = function(*arguments, **options)
        if here:
            die()
        return found

    setattr(os, name, counting)


def _die_after(seconds: float) -> None:
    put, begun = LogStore.put, []

    def first(self: LogStore, key: str, found: Any) -> None:
        if not begun:
            begun.append(key)
            threading.Timer(seconds, die).start()
        put(self, key, found)

    LogStore.put = first  # type: ignore[method-assign]


def _count_begun(path: str) -> None:
    """A table of chance is one chunk of the store; its own chunks are none, whichever threads they are shared by."""
    do, write = executors.frugally, os.write
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    tables: list[Any] = []  # of chance, under way: nothing else is scored meanwhile

    def count(score: Any, task: Any, *means: Any) -> Any:
        if not isinstance(task, chance.DrawnTable):
            if not tables:
                write(handle, b".")
            return do(score, task, *means)
        write(handle, b".")
        tables.append(task)
        try:
            return do(score, task, *means)
        finally:
            tables.pop()

    executors.frugally = count


def main() -> None:
    warnings.simplefilter("ignore")
    chance.TABLES = 6
    ready: set[str] = set()
    for line in sys.stdin:
        job = json.loads(line)
        if job["marginal"] not in ready:  # so that forked processes find all compiled
            fit(job | {"jobs": 1, "splits": 1}, None)
            ready.add(job["marginal"])
        child = os.fork()
        if child == 0:
            try:
                run(job)
            except Exception as error:
                code = exit_code(error)
                if code != 5 and not job["as_nobody"]:
                    print(repr(error), file=sys.stderr, flush=True)
                os._exit(code)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
