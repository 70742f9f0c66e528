"""Mutants of a file, opened one after the other in a process that may die, hang or want too much of everything."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from isde.errors import ISDEError, ISDEWarning

SECONDS = 5.0
"""Of a processor, for one file."""

HANG_SECONDS = 120.0
"""Of waiting: so long that a busy machine is no hang."""

EXTRA_BYTES = 1 << 30
"""That one file may ask for, beyond what the program has anyhow."""

Check = Callable[[Path], str | None]
"""Opens a file and says what is wrong with what comes of it, or None; errors may leave it."""

Prepare = Callable[[Path], Check]
"""From the sound file; called in the process."""


def survivors(prepare: Prepare, sound: Path, mutants: Iterable[bytes]) -> Iterator[str | None]:
    """For each mutant of a sound file None, where it is refused by an error of isde or found good, or what happened."""
    worker, number = _Worker(prepare, sound), 0
    mutated = sound.with_name(f"mutant{''.join(sound.suffixes)}")
    try:
        for number, content in enumerate(mutants):
            mutated.write_bytes(content)
            complaint = worker.ask(mutated)
            if complaint is not None:
                kept = Path(tempfile.mkdtemp(prefix="isde-lost-")) / mutated.name
                kept.write_bytes(content)
                complaint = f"{kept}, number {number}: {complaint}"
            yield complaint
    finally:
        worker.end()


class _Worker:
    def __init__(self, prepare: Prepare, sound: Path) -> None:
        self.prepare, self.sound = prepare, sound
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.prepare, self.sound, theirs), daemon=True)
        self.process.start()
        theirs.close()
        if not self.connection.poll(HANG_SECONDS) or self.connection.recv() != "ready":
            raise RuntimeError(f"{self.sound} cannot be opened as it is")

    def ask(self, path: Path) -> str | None:
        self.connection.send(path)
        try:
            if self.connection.poll(HANG_SECONDS):
                complaint: str | None = self.connection.recv()
                return complaint
            happened = "it hangs"
        except (EOFError, ConnectionResetError):
            self.process.join()
            happened = f"the process died, exit code {self.process.exitcode}"
        self.end()
        self._start()
        return happened

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(prepare: Prepare, sound: Path, connection: Connection) -> None:
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ISDEWarning)
    check = prepare(sound)
    if check(sound) is not None:
        raise RuntimeError(f"{sound}: {check(sound)}")
    _limit_memory()
    connection.send("ready")
    while True:
        try:
            path = connection.recv()
        except EOFError:
            return
        begun = time.process_time()
        complaint = _complaint(check, path)
        seconds = time.process_time() - begun
        connection.send(complaint if seconds <= SECONDS else f"it took {seconds:.1f} s")


def _complaint(check: Check, path: Path) -> str | None:
    try:
        return check(path)
    except ISDEError as error:
        text = str(error)
        return None if text.isprintable() and len(text) < 2000 else f"its message is no sentence: {text[:200]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def _limit_memory() -> None:
    """What is not there cannot be had: asking for more raises MemoryError, which is none of isde's own."""
    if sys.platform != "linux":
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + EXTRA_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def fingerprint(thing: Any) -> Any:
    """Something that equals only for equal things, of arrays to the bit."""
    import numpy as np

    if isinstance(thing, np.ndarray):
        return (thing.shape, thing.dtype.str, thing.tobytes())
    if isinstance(thing, dict):
        return tuple((key, fingerprint(value)) for key, value in sorted(thing.items()))
    if isinstance(thing, list | tuple):
        return tuple(map(fingerprint, thing))
    return repr(thing)
