"""Tables in NumPy's own files: `.npy`, one matrix; `.npz`, the matrix `X` or the only one, with names in `columns`."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isde.data.readers.request import Request
from isde.data.table import Table, default_names
from isde.errors import InputError, ISDEError, first_line

HEADER_BYTES_MAX = 10_000
"""Of an array: NumPy takes no more, either."""

DEFLATE_RATIO = 1032
"""By which deflate can shrink what is all the same."""


@dataclass(frozen=True)
class Member:
    """An array in an npz file, by its header."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def read_npy(request: Request) -> Table:
    path = request.path
    with _explained(path):
        _check_npy(path)
        # Mapped, so that a header which declares more than the file holds is refused before memory is asked for.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return from_array(array, None, request)


def stream_npy(request: Request, batch_rows: int) -> Iterator[Table]:
    path = request.path
    with _explained(path):
        _check_npy(path)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        for start in range(0, max(1, len(array)) if array.ndim else 1, batch_rows):
            yield from_array(array[start : start + batch_rows] if array.ndim else array, None, request)


def _check_npy(path: Path) -> None:
    """Refuse what NumPy would take for a pickle, and advise to trust."""
    with open(path, "rb") as stream:
        start = stream.read(len(np.lib.format.MAGIC_PREFIX))
        if start.startswith(b"PK"):
            raise InputError(f"{path} holds an .npz archive: give it that ending.")
        if start != np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path} is no .npy file: is its ending right?")
        stream.seek(0)
        _, dtype = _array_header(stream)
    if dtype.hasobject:
        raise InputError(f"{path} holds Python objects: save it as np.array(X, dtype=float).")


def read_npz(request: Request) -> Table:
    path = request.path
    with _explained(path):
        members = _npz_members(path)
        key = _npz_key(members, path)
        for name, wanted in ((key, "X, dtype=float"), ("columns", "names, dtype=str")):
            if name in members and members[name].dtype.hasobject:
                raise InputError(f"{name!r} in {path} holds Python objects: save it as np.array({wanted}).")
        with np.load(path, allow_pickle=False) as archive:
            names = [str(name) for name in np.atleast_1d(archive["columns"])] if "columns" in members else None
            if len(members[key].shape) == 2:
                request.check_size(*members[key].shape)
            return from_array(archive[key], names, request)


def _npz_key(members: Mapping[str, Member], path: Path) -> str:
    """The name of the table: X, or that of the only matrix."""
    if "X" in members:
        return "X"
    matrices = [key for key, member in members.items() if len(member.shape) == 2 and member.dtype.kind in "fiub"]
    if len(matrices) != 1:
        raise InputError(f"{path} holds the matrices {matrices}: name the one to use 'X'.")
    return matrices[0]


def _npz_members(path: Path) -> dict[str, Member]:
    """What an npz file holds; one that declares more than is stored is refused before NumPy allocates it."""
    members = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            with archive.open(info) as stream:
                shape, dtype = _array_header(stream)
            size = prod(shape) * dtype.itemsize
            # No honest member is packed closer than deflate can; objects are pickled, in bytes that no header tells.
            packed_too_well = info.file_size > DEFLATE_RATIO * (info.compress_size + 1)
            if packed_too_well or (size > info.file_size and not dtype.hasobject):
                raise InputError(f"{path}: {info.filename} declares more numbers than it holds: it is damaged.")
            members[info.filename.removesuffix(".npy")] = Member(shape, dtype)
    return members


def _array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    short = version == (1, 0)
    length = stream.read(2 if short else 4)
    if int.from_bytes(length, "little") > HEADER_BYTES_MAX:  # which NumPy would read before it looks
        raise ValueError("its header is too long")
    header = io.BytesIO(length + stream.read(int.from_bytes(length, "little")))
    read = np.lib.format.read_array_header_1_0 if short else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read(header)
    except MemoryError:  # how Python's parser says that brackets are nested too deep
        raise ValueError("its header is no header") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"it declares the shape {shape}")
    return shape, dtype


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors as one sentence: neither NumPy nor zipfile has a list of what damage makes them raise."""
    try:
        yield
    except (ISDEError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{path} is no {path.suffix} file, or it is damaged ({first_line(error)}).") from error


def from_array(array: NDArray[Any], names: Sequence[str] | None, request: Request) -> Table:
    """The columns asked for of a matrix; without names they are counted."""
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise InputError(
            f"{request.where} holds {array.ndim}-dimensional {array.dtype} data: isde needs a matrix of numbers."
        )
    labels = default_names(array.shape[1]) if names is None else tuple(names)
    if len(labels) != array.shape[1]:
        raise InputError(f"{request.where} has {len(labels)} names in 'columns' for {array.shape[1]} columns.")
    keep = request.positions(labels)
    if keep != list(range(len(labels))):
        array, labels = array[:, keep], tuple(labels[i] for i in keep)
    request.check_size(*array.shape)
    return Table(np.ascontiguousarray(array, dtype=np.float64), labels)
