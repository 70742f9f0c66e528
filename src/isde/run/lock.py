"""One run for each folder: a lock that the kernel keeps, and frees when its process ends, however it ends."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from isde.errors import CheckpointError, InputError, ResourceError, warn
from isde.files import NO_ROOM

LOCK_FILE = "lock"

_held: ContextVar[frozenset[Path]] = ContextVar("isde_held", default=frozenset())


@contextmanager
def hold(folder: Path) -> Iterator[Path]:
    """The folder, made where it is missing, for nobody else; gone again where nothing was put into it.

    Inside a block that holds it, the same folder may be held once more; not by another thread.
    """
    folder = folder.absolute()
    if folder in _held.get():
        yield folder
        return
    # Missing, too, is what no file system has room for: names too long, or below a file.
    made = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _locked(folder)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero in it
        if folder in made:  # a full disk may have room for a lock's name, and not for its owner's
            with suppress(OSError, ValueError):
                (folder / LOCK_FILE).unlink()
        _remove_empty(made)
        reason, code = (error.strerror, error.errno) if isinstance(error, OSError) else (None, None)
        kind = ResourceError if code in NO_ROOM else InputError
        raise kind(f"{folder} cannot be written ({reason or error}): write somewhere else.") from error
    before = _held.set(_held.get() | {folder})
    try:
        yield folder
    finally:
        _held.reset(before)
        with suppress(OSError):  # somebody removed it
            if [entry.name for entry in folder.iterdir()] == [LOCK_FILE]:
                (folder / LOCK_FILE).unlink()
                _remove_empty(made)
        os.close(handle)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError, ValueError):  # one that was not made, or holds something now
            folder.rmdir()


def _locked(folder: Path) -> int:
    """An open lock file that this process holds."""
    path = folder / LOCK_FILE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            _ask(handle, folder)
            if _still_there(handle, path):
                owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
                os.ftruncate(handle, 0)
                os.pwrite(handle, owner, 0) if hasattr(os, "pwrite") else os.write(handle, owner)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it belonged to a folder that was removed meanwhile


def _ask(handle: int, folder: Path) -> None:
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            raise CheckpointError(
                f"{folder} is in use by {_owner(folder)}: wait until that run has ended, or give another folder."
            ) from None
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        warn(f"The file system of {folder} has no locks: see to it that no other run writes there.")


def _owner(folder: Path) -> str:
    try:
        owner = json.loads((folder / LOCK_FILE).read_bytes())
        return f"process {int(owner['pid'])} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has just begun
        return "another run"


def _still_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        os.lseek(handle, 1 << 20, os.SEEK_SET)  # locked bytes cannot be read: these are beyond the owner's name
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
