"""Tasks in joblib's processes, one of which may die.

joblib then ends all others, drops what they had found but not handed over, and says nothing of what they were doing. So
each process leaves a note while it does a task, and what it found in a file. Tasks with a note are tried again by
themselves; one that ends its process again and again is given up, and all others are done.

The file is removed when what was found is taken and kept, and the process begins its next task then: joblib would let
it go on at once.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib._parallel_backends import LokyBackend
from joblib.externals.loky.process_executor import BrokenProcessPool
from joblib.parallel import get_active_backend

from isde.errors import ISDEError

MOST_DEATHS = 3
"""Processes that a task may end before it is given up."""

MOST_ROUNDS = 5
"""In a row without anything done, and without a task to blame."""

WATCH_SECONDS, LOOK_SECONDS = 0.5, 0.001
"""Between looks of a process: whether its run lives, and whether what it found was taken."""

FOUND = ".found"


def do_in_processes(
    score: Callable[[Any, Any], Any], tasks: Sequence[Any], means: Any, n_workers: int
) -> Iterator[tuple[int, Any]]:
    """The number of each task with what was found, None for one that was given up."""
    left, deaths, idle = dict(enumerate(tasks)), Counter[int](), 0
    with tempfile.TemporaryDirectory(prefix="isde-", ignore_cleanup_errors=True) as folder:
        while left:
            # Those under way when a process died, each by itself; then all others together.
            blamed = next((number for number in left if deaths[number]), None)
            some = {blamed: left[blamed]} if blamed is not None else left
            pool = _pool(max(2, n_workers))
            calls = (delayed(_noted)(score, i, task, means, folder) for i, task in dict(some).items())
            n_left = len(left)
            try:
                for number, found in pool(calls):
                    del left[number]
                    yield number, found
                    (Path(folder) / f"{number}{FOUND}").unlink(missing_ok=True)
            except BrokenProcessPool as error:
                for path in Path(folder).glob(f"*{FOUND}"):
                    number = int(path.name.removesuffix(FOUND))
                    if number in left:
                        del left[number]
                        yield number, pickle.loads(path.read_bytes())
                    path.unlink()
                noted = [int(note.name) for note in Path(folder).iterdir() if note.name.isdigit()]
                for number in set(noted) & left.keys():
                    deaths[number] += 1
                    if deaths[number] >= MOST_DEATHS:
                        del left[number]
                        yield number, None
                for number in noted:
                    (Path(folder) / str(number)).unlink(missing_ok=True)
                idle = idle + 1 if len(left) == n_left and not noted else 0
                if idle >= MOST_ROUNDS:
                    raise ISDEError(
                        f"Worker processes ended {idle} times in a row before they did anything ({error}): "
                        "is there memory for them? Try n_jobs=1."
                    ) from error


def _pool(n_workers: int) -> Any:
    with ending_with_this_process("processes"):
        # Tasks one by one: joblib would send several as one, and lose them as one.
        return Parallel(n_jobs=n_workers, prefer="processes", return_as="generator_unordered", batch_size=1)


def ending_with_this_process(prefer: str) -> AbstractContextManager[Any]:
    """Pools that are made here, as joblib makes them, have processes that end with this one, where they are loky's."""
    backend, _ = get_active_backend(prefer=prefer)
    if not isinstance(backend, LokyBackend):
        return nullcontext()
    return parallel_config("loky", initializer=_end_with, initargs=(os.getpid(),))


def _noted(score: Callable[[Any, Any], Any], number: int, task: Any, means: Any, folder: str) -> tuple[int, Any]:
    _wait_until_taken()
    note = Path(folder) / str(number)
    note.touch()
    found = score(task, means)
    with suppress(OSError):  # no room: it is handed over, or done again
        part = note.with_suffix(".part")
        part.write_bytes(pickle.dumps(found))
        _found_last[:] = [part.rename(note.with_suffix(FOUND))]
    note.unlink(missing_ok=True)
    return number, found


_found_last: list[Path] = []
"""The file of what this process found last."""


def _wait_until_taken() -> None:
    parent = os.getppid()
    while _found_last and _found_last[0].exists() and os.getppid() == parent:
        time.sleep(LOOK_SECONDS)


def _end_with(parent: int) -> None:
    """A process whose run was killed would go on with what it was sent, and then wait for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
