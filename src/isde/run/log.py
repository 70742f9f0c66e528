"""A file that only grows: named records, each with a digest, whole again after a crash at any byte.

A frame is: magic, length of the key, length of the payload, key, payload, BLAKE2 digest of all that. Whoever opens the
file reads all frames. After one that is damaged, reading goes on at the next magic: a frame that lies about its length
swallows no others. What follows the last whole frame is cut off before anything is appended.

Bytes reach the disk at most SYNC_SECONDS after they were written: a process that is killed loses nothing, since the
system has them; a machine that loses its power loses a second of work.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import time
from collections.abc import KeysView
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Self

from isde.errors import CheckpointError

MAGIC = b"\x89ISDE\r\n\x1a"
"""Its high bit and line ends show transfers that change either."""

HEAD = struct.Struct("<8sII")
DIGEST_BYTES = 16
SYNC_SECONDS = 1.0


@dataclass(frozen=True)
class Place:
    """Where a whole frame stands."""

    start: int
    key_bytes: int
    payload_bytes: int

    @property
    def payload(self) -> int:
        return self.start + HEAD.size + self.key_bytes

    @property
    def end(self) -> int:
        return self.payload + self.payload_bytes + DIGEST_BYTES


class AppendLog:
    """Records of a file by key. One process writes at a time: see `lock`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # No link is followed: it could lead to a file that is not ours to change.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        self._handle = os.open(path, flags, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                raise CheckpointError(f"{path} is no file: give another folder.")
            self._places, self.damaged = read_frames(path)
            self._end = max((place.end for place in self._places.values()), default=0)
            self.torn = os.fstat(self._handle).st_size - self._end
            if self.torn:
                os.ftruncate(self._handle, self._end)
                os.fsync(self._handle)
        except BaseException:
            os.close(self._handle)
            raise
        self._synced = time.monotonic()
        self._unsynced = False
        self._broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.sync()
        finally:
            os.close(self._handle)

    def keys(self) -> KeysView[str]:
        return self._places.keys()

    def append(self, key: str, payload: bytes) -> None:
        """Add a record. Where that fails the file is as it was, and `OSError` says why."""
        if self._broken:
            raise OSError(f"{self.path} could not be written before.")
        named = key.encode()
        frame = HEAD.pack(MAGIC, len(named), len(payload)) + named + payload
        frame += _digest(frame)
        try:
            _write_all(self._handle, frame)
        except BaseException:  # a full disk, Ctrl-C: half a frame must not stay
            self._broken = True
            os.ftruncate(self._handle, self._end)
            self._broken = False
            raise
        place = Place(self._end, len(named), len(payload))
        self._places[key], self._end, self._unsynced = place, place.end, True
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Wait until the disk has all records. One failure is final: the system may have dropped what it had."""
        if not self._unsynced or self._broken:
            return
        try:
            getattr(os, "fdatasync", os.fsync)(self._handle)
        except OSError:
            self._broken = True
            raise
        self._unsynced, self._synced = False, time.monotonic()

    def read(self, key: str) -> bytes:
        """The payload of a record, its digest checked again."""
        place = self._places[key]
        with open(self.path, "rb") as file:
            file.seek(place.start)
            frame = file.read(place.end - place.start)
        if _digest(frame[:-DIGEST_BYTES]) != frame[-DIGEST_BYTES:]:
            raise CheckpointError(f"{self.path} was changed while it was in use: run again, the rest is kept.")
        return frame[place.payload - place.start : -DIGEST_BYTES]


def read_frames(path: Path) -> tuple[dict[str, Place], int]:
    """All whole frames of a file by key, and how many bytes between them are none."""
    places: dict[str, Place] = {}
    if not path.stat().st_size:
        return places, 0
    damaged = end = 0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(MAGIC)
        while at >= 0:
            place = _whole_frame(data, at)
            if place is None:
                at = data.find(MAGIC, at + len(MAGIC))
                continue
            key = data[at + HEAD.size : place.payload].decode(errors="replace")
            if key in places and _content(data, places[key]) != _content(data, place):
                raise CheckpointError(
                    f"{path} holds two different results for {key!r}: it was written by two runs, or on machines that "
                    "round differently; give another folder."
                )
            places[key], damaged, end = place, damaged + at - end, place.end
            at = data.find(MAGIC, end)
    return places, damaged


def _whole_frame(data: mmap.mmap, at: int) -> Place | None:
    """The frame that begins at a magic, if it is one."""
    if at + HEAD.size > len(data):
        return None
    _, key_bytes, payload_bytes = HEAD.unpack_from(data, at)
    place = Place(at, key_bytes, payload_bytes)
    if place.end > len(data):
        return None
    whole = _digest(data[at : place.end - DIGEST_BYTES]) == data[place.end - DIGEST_BYTES : place.end]
    return place if whole else None


def _content(data: mmap.mmap, place: Place) -> bytes:
    return data[place.payload : place.end - DIGEST_BYTES]


def _digest(frame: bytes) -> bytes:
    return blake2b(frame, digest_size=DIGEST_BYTES).digest()


def _write_all(handle: int, data: bytes) -> None:
    """A full disk takes a part without complaint, and complains at the next call."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
