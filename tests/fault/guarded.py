"""Mutants of a file, opened one after the other in a process that may die, hang or want too much of everything."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
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


def survivors(
    prepare: Prepare, sounds: Sequence[Path], mutants: Callable[[Path], Iterable[bytes]]
) -> Iterator[str | None]:
    """For each mutant of each sound file None, where isde refuses it or finds it good; otherwise what happened."""
    worker = _Worker(prepare, sounds)
    try:
        for number, (sound, content) in enumerate((file, one) for file in sounds for one in mutants(file)):
            mutated = sound.with_name(f"mutant{''.join(sound.suffixes)}")
            mutated.write_bytes(content)
            complaint = worker.ask(sound, mutated)
            if complaint is not None:
                kept = Path(tempfile.mkdtemp(prefix="isde-lost-")) / mutated.name
                kept.write_bytes(content)
                complaint = f"{kept}, number {number}: {complaint}"
            yield complaint
    finally:
        worker.end()


class _Worker:
    def __init__(self, prepare: Prepare, sounds: Sequence[Path]) -> None:
        self.prepare, self.sounds = prepare, sounds
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.prepare, self.sounds, theirs), daemon=True)
        self.process.start()
        theirs.close()
        if not self.connection.poll(HANG_SECONDS) or self.connection.recv() != "ready":
            raise RuntimeError("the sound files cannot be opened as they are")

    def ask(self, sound: Path, mutated: Path) -> str | None:
        self.connection.send((sound, mutated))
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


def _serve(prepare: Prepare, sounds: Sequence[Path], connection: Connection) -> None:
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ISDEWarning)
    checks = {sound: prepare(sound) for sound in sounds}
    for sound, check in checks.items():
        if check(sound) is not None:
            raise RuntimeError(f"{sound}: {check(sound)}")
    _limit_memory()
    connection.send("ready")
    while True:
        try:
            sound, path = connection.recv()
        except EOFError:
            return
        begun = time.process_time()
        complaint = _complaint(checks[sound], path)
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
