"""Tables in NumPy's own files: `.npy`, one matrix; `.npz`, the matrix `X` or the only one, with names in `columns`."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isde.data.readers.request import Request
from isde.data.table import Table, default_names
from isde.errors import InputError, first_line

DAMAGE = (
    ValueError, EOFError, OSError, KeyError, SyntaxError, RuntimeError, TokenError, zipfile.BadZipFile, zlib.error
)  # fmt: skip
"""What NumPy and zipfile raise for files of arrays that are none, or damaged."""


@dataclass(frozen=True)
class Member:
    """An array in an npz file, by its header."""

    n_dimensions: int
    dtype: np.dtype[Any]


def read_npy(request: Request) -> Table:
    path = request.path
    try:
        _check_npy(path)
        # Mapped, so that a header which declares more than the file holds is refused before memory is asked for.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except InputError:
        raise
    except DAMAGE as error:
        raise _damaged(path, error) from error
    return from_array(array, None, request)


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
    try:
        members = _npz_members(path)
        key = _npz_key(members, path)
        for name, wanted in ((key, "X, dtype=float"), ("columns", "names, dtype=str")):
            if name in members and members[name].dtype.hasobject:
                raise InputError(f"{name!r} in {path} holds Python objects: save it as np.array({wanted}).")
        with np.load(path, allow_pickle=False) as archive:
            names = [str(name) for name in np.atleast_1d(archive["columns"])] if "columns" in members else None
            return from_array(archive[key], names, request)
    except InputError:
        raise
    except DAMAGE as error:
        raise _damaged(path, error) from error


def _npz_key(members: Mapping[str, Member], path: Path) -> str:
    """The name of the table: X, or that of the only matrix."""
    if "X" in members:
        return "X"
    matrices = [key for key, member in members.items() if member.n_dimensions == 2 and member.dtype.kind in "fiub"]
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
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            if size > info.file_size and not dtype.hasobject:  # objects are pickled, in bytes that no header tells
                raise InputError(f"{path}: {info.filename} declares more numbers than it holds: it is damaged.")
            members[info.filename.removesuffix(".npy")] = Member(len(shape), dtype)
    return members


def _array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is no {path.suffix} file, or it is damaged ({first_line(error)}).")


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
    return Table(np.ascontiguousarray(array, dtype=np.float64), labels)
