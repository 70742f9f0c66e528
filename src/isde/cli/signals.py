"""Ctrl-C and SIGTERM end a command at once: what was scored is on disk, nothing half-written stays, the cursor is back.

Python hears of a signal when compiled code comes back to it, which may take seconds. So a thread hears of it too, and
ends the process where the command has not done so by then. A command that has ended leaves without Python's own
tidying up, which takes seconds after a large import, and which no thread can cut short.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from isde.files import remove_unfinished

GRACE_SECONDS = 0.5
"""That a command has to end by itself. With the rest of two seconds a machine may be busy otherwise."""

SHOW_CURSOR = "\033[?25h"

TIDIES_UP = b"resource_tracker"
"""The process of `multiprocessing` that removes what others leave, once they have ended, and then ends."""


@contextmanager
def stopped_by_signals() -> Iterator[Callable[[], int]]:
    """Signals raise `KeyboardInterrupt` in the block; gives a function that tells which one it was."""
    heard: list[int] = []
    told = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        _started.update(_descendants())  # before any of them ends, and what it started is nobody's child
        raise KeyboardInterrupt

    def which() -> int:
        told.set()  # whoever asks has said that the command is stopped
        return heard[0] if heard else int(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield which
        return
    ours, its = socket.socketpair()
    ours.setblocking(False)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    fd_before = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_end_in_time, args=(its, told), daemon=True).start()
    try:
        yield which
    finally:
        signal.set_wakeup_fd(fd_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        ours.close()


def _end_in_time(its: socket.socket, told: threading.Event) -> None:
    with its:
        number = its.recv(1)
        if not number:  # the command is done
            return
        its.settimeout(GRACE_SECONDS)
        try:
            while its.recv(1):  # impatient people press twice
                pass
        except TimeoutError:
            if not told.is_set():
                os.write(2, b"\nStopped.\n")
            if sys.stderr.isatty():
                os.write(2, SHOW_CURSOR.encode())
            leave_at_once(128 + number[0])


def leave_at_once(code: int) -> NoReturn:
    """End this process: nothing half-written stays, nor any process that it started."""
    remove_unfinished()
    for child in multiprocessing.active_children():
        child.kill()
    held: set[int] = set()
    while more := _descendants() - held:
        _tell(more, signal.SIGSTOP)  # what is held starts no other
        held |= more
    if held | _started:
        _tell(held | _started, signal.SIGKILL)
    os._exit(code)


def _tell(processes: set[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(OSError):  # it has ended
            os.kill(pid, number)


_started: set[int] = set()
"""Processes that there were when a signal came."""


def _descendants() -> set[int]:
    """The processes that this one started, and those that they did, where the system tells: a cluster has many."""
    parents: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if TIDIES_UP not in (process / "cmdline").read_bytes():
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}
