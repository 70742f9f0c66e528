"""Files and folders that are written whole or not at all: filled beside their place, synced to disk, then renamed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from isde.errors import InputError, first_line

NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG}
"""What a system says where a disk is full, or a file may not grow."""

SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a disk"),
    (stat.S_ISSOCK, "a socket"),
)
"""What a path can lead to that is neither file nor folder."""


def check_regular(path: Path) -> None:
    """Raise `InputError` for a path that is no file: whatever is read has an end, and can be read again."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist: give a file.") from None
    except (OSError, ValueError) as error:  # one too long, or with a zero in it
        raise InputError(f"{path} cannot be read ({first_line(error)}).") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder: give a file.")
    if not stat.S_ISREG(mode):
        kind = next((word for test, word in SPECIAL if test(mode)), "no file")
        raise InputError(f"{path} is {kind}, which may never end: write what comes from it to a file, and give that.")


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` once the block has ended well; else nothing is left."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    _unfinished.add(Path(name))
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)  # a full disk does not say of what
        raise
    finally:
        _unfinished.discard(Path(name))
    _sync_folder(path.parent)


_unfinished: set[Path] = set()


def remove_unfinished() -> None:
    """What a process leaves half-written that ends at once."""
    for path in tuple(_unfinished):
        path.unlink(missing_ok=True)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `folder` once the block has ended well; else nothing is left."""
    with _beside(folder) as staging:
        yield staging
        for path in staging.rglob("*"):
            if path.is_file():
                _sync_file(path)
        _sync_folder(staging)
        staging.chmod(0o777 & ~_umask())
        _put_in_place(staging, folder)
        _sync_folder(folder.parent)


def check_room(folder: Path) -> None:
    """Raise `OSError` where no folder can be made there; permissions alone do not tell: a disk may be read-only."""
    with _beside(folder):
        pass


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, and the parents it needs; what is not put in place is gone at the end."""
    missing = [parent for parent in folder.parents if not parent.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    finally:
        for parent in missing:
            with suppress(OSError):  # one that was not made, or holds something now: the folder put in place
                parent.rmdir()


def _put_in_place(staging: Path, folder: Path) -> None:
    """Rename `staging` to `folder`; what was there is kept until that is done, and put back where it cannot be."""
    earlier = folder.with_name(f"{staging.name}.old")
    if folder.exists():
        os.replace(folder, earlier)
    try:
        os.replace(staging, folder)
    except BaseException:
        if earlier.exists():
            os.replace(earlier, folder)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def _sync_file(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Names on disk, too, where the system can: Windows opens no folders, and some disks refuse."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_exchanging = threading.Lock()
"""Of the umask: of two threads that exchange it at once, one would take the other's for that of the process."""


def _umask() -> int:
    """The permissions new files are made without; temporary ones are private whatever it is."""
    with _exchanging:
        umask = os.umask(0o077)  # of other threads new files are private meanwhile, not open to everybody
        os.umask(umask)
    return umask
