"""What is done: chunks by key, with what was found; in memory, or in the log of a run folder."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from isde.errors import CheckpointError, ResourceError
from isde.files import NO_ROOM
from isde.run.log import AppendLog
from isde.run.work import ChunkScores


class Store(Protocol):
    """Keeps what was found; a key that it knows is not done again."""

    @property
    def in_memory(self) -> bool:
        """Whether what is kept takes memory."""
        ...

    def finished(self) -> Collection[str]:
        """The keys of what is done."""
        ...

    def put(self, key: str, found: ChunkScores) -> None:
        """Keep what was found."""
        ...

    def get(self, key: str) -> ChunkScores:
        """What was found under a key."""
        ...


class MemoryStore:
    """Kept as long as the process lives, as the bytes that a file would hold: half of the arrays, or less."""

    in_memory: ClassVar[bool] = True

    def __init__(self) -> None:
        self._found: dict[str, bytes] = {}

    def finished(self) -> Collection[str]:
        return self._found.keys()

    def put(self, key: str, found: ChunkScores) -> None:
        self._found[key] = pack(found)

    def get(self, key: str) -> ChunkScores:
        return unpack(self._found[key])


@dataclass(frozen=True)
class LogStore:
    """Kept in a file."""

    in_memory: ClassVar[bool] = False
    log: AppendLog

    def finished(self) -> Collection[str]:
        return self.log.keys()

    def put(self, key: str, found: ChunkScores) -> None:
        payload = pack(found)
        try:
            self.log.append(key, payload)
        except OSError as error:
            raise _not_written(self.log, len(payload), error) from error

    def get(self, key: str) -> ChunkScores:
        try:
            return unpack(self.log.read(key))
        except OSError as error:
            raise ResourceError(
                f"{self.log.path} cannot be read any more ({error.strerror or error}): what it held is lost where it "
                "was removed; run again."
            ) from error


@dataclass(frozen=True)
class Part:
    """A part of a store, whose keys have a name in front."""

    store: Store
    name: str

    @property
    def in_memory(self) -> bool:
        return self.store.in_memory

    def finished(self) -> Collection[str]:
        front = f"{self.name}:"
        return {key.removeprefix(front) for key in self.store.finished() if key.startswith(front)}

    def put(self, key: str, found: ChunkScores) -> None:
        self.store.put(f"{self.name}:{key}", found)

    def get(self, key: str) -> ChunkScores:
        return self.store.get(f"{self.name}:{key}")


def _not_written(log: AppendLog, n_bytes: int, error: OSError) -> ResourceError:
    folder = log.path.parent
    kept = f"what was scored before is kept, and the same call goes on from there ({error.strerror or error})."
    if error.errno not in NO_ROOM:
        return ResourceError(f"{log.path} cannot be written any more: {kept}")
    free = shutil.disk_usage(folder).free
    return ResourceError(f"No room for {n_bytes:,} more bytes in {log.path}, {free:,} are free: make room; {kept}")


# --- what was found, as bytes ----------------------------------------------------------------------------------

FIELDS = (("positions", "<i8"), ("scores", "<f8"), ("bandwidths", "<f8"), ("unsettled", "|b1"))
"""The vectors of what was found, in this order, after their length."""

SPELLED_OUT = "scores"
"""The vector that takes a byte for each value at least: so the bytes of a record tell how many there may be, and a
wrong length is known before room is made for it."""

SAME, RUN, FEW, SHORT, ALL = b"S", b"R", b"F", b"I", b"A"
"""One value for all; whole numbers in a row, by the first; at most 256 values, each by its number; whole numbers of
four bytes; all as they are."""


def pack(found: ChunkScores) -> bytes:
    """A third of the plain arrays for kernels, whose bandwidths are few; not quite a third for models without."""
    parts = [np.array(len(found.positions), dtype="<u4").tobytes()]
    for name, kind in FIELDS:
        values = np.ascontiguousarray(getattr(found, name), dtype=kind)
        parts.append(_pack(values, as_one=name != SPELLED_OUT))
    return b"".join(parts)


def unpack(payload: bytes) -> ChunkScores:
    """What `pack` made bytes of; `CheckpointError` for others."""
    try:
        n, at = int(np.frombuffer(payload, "<u4", 1)[0]), 4
        if n > len(payload):
            raise ValueError("it is too short")
        vectors: list[NDArray[Any]] = []
        for _, kind in FIELDS:
            vector, at = _unpack(payload, at, n, np.dtype(kind))
            vectors.append(vector)
        if at != len(payload):
            raise ValueError("bytes are left over")
    except (ValueError, IndexError, KeyError) as error:
        raise CheckpointError(f"A record of the run is none of this isde's ({error}): give another folder.") from error
    return ChunkScores(*vectors)


def _pack(values: NDArray[np.generic], *, as_one: bool) -> bytes:
    bits = values.view(f"u{values.dtype.itemsize}")  # so that NaN equals NaN, and -0.0 is not 0.0
    few, number = np.unique(bits, return_inverse=True)
    if len(few) == 0 or (as_one and len(few) == 1):
        return SAME + few.tobytes()
    if values.dtype.kind == "i":
        if (np.diff(bits) == 1).all():
            return RUN + bits[:1].tobytes()
        return SHORT + bits.astype("<u4").tobytes() if bits.max() < 2**32 else ALL + bits.tobytes()
    if len(few) <= 256 and values.dtype.itemsize > 1:
        return FEW + np.uint8(len(few) - 1).tobytes() + few.tobytes() + number.astype(np.uint8).tobytes()
    return ALL + bits.tobytes()


def _unpack(payload: bytes, at: int, n: int, kind: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    way, at = payload[at : at + 1], at + 1

    def take(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        nonlocal at
        if at + count * dtype.itemsize > len(payload):
            raise ValueError("it is too short")
        found = np.frombuffer(payload, dtype, count, at)
        at += count * dtype.itemsize
        return found

    if way == SAME:
        values = np.repeat(take(min(n, 1), kind), n)
    elif way == RUN:
        values = take(1, kind) + np.arange(n)
    elif way == FEW:
        few = take(int(take(1, np.dtype("u1"))[0]) + 1, kind)
        values = few[take(n, np.dtype("u1"))]
    elif way == SHORT:
        values = take(n, np.dtype("<u4")).astype(kind)
    elif way == ALL:
        values = take(n, kind)
    else:
        raise ValueError(f"{way!r} is no way to write a vector")
    return values.astype(kind.newbyteorder("="), copy=False), at
