"""One file for everything isde saves: a zip of `.npy` arrays and one JSON header. No pickle, ever.

The header lists each array with its SHA-256, so that damage is noticed. All members are stored as they are, and add up
to no more than the file: nothing is unpacked, and no small file can ask for much memory. Files appear under their name
only when they are complete.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.errors import InputError, ISDEError, first_line
from isde.files import check_regular, whole_file

FORMAT = "isde"
FORMAT_VERSION = 1
HEADER = "header.json"
HEADER_BYTES_MAX = 1 << 24
"""JSON of so many bytes can become half a gigabyte of Python objects; a name for each of 100,000 columns is 2 MB."""

DTYPES = {"<f8", "<i8", "|b1"}

Arrays = dict[str, NDArray[Any]]


def write_archive(path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays to `path`, in place of what was there, all or nothing."""
    members = {name: _to_bytes(array) for name, array in arrays.items()}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    top = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": kind,
        "sha256": digests,
        "content": dict(header),
    }
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder: create it first, or save somewhere else.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file, such as {path / 'model.isde'}.")
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_undated(HEADER), json.dumps(top, indent=1, allow_nan=False))
        for name, data in members.items():
            archive.writestr(_undated(f"{name}.npy"), data)


def _undated(name: str) -> zipfile.ZipInfo:
    """A member without the time: the same content is the same file, to the bit."""
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def read_archive(path: str | Path) -> tuple[str, dict[str, Any], Arrays]:
    """Kind, header and arrays of a file written by `write_archive`; `InputError` for anything else."""
    path = Path(path)
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path)
            top = _read_header(archive, path)
            names = {name: f"{name}.npy" for name in top["sha256"]}
            if members.keys() - {HEADER} != set(names.values()):
                raise InputError(f"{path} holds other members than its header lists: it was changed after saving.")
            arrays = {name: _read_array(archive, name, top["sha256"][name], path) for name in names}
    except (ISDEError, MemoryError):
        raise
    except Exception as error:  # neither zipfile nor NumPy nor json has a list of what damage makes them raise
        raise InputError(
            f"{path} is no file saved by isde, or it is damaged or cut short ({first_line(error)}); save it again."
        ) from error
    return top["kind"], top["content"], arrays


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """What the file holds, by name; refused, before any of it is read, where it is packed or would not fit in it."""
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    stored = all(info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size for info in infos)
    if not stored or len(members) < len(infos) or sum(info.file_size for info in infos) > path.stat().st_size:
        raise InputError(f"{path} declares more than it holds, or holds it as isde does not: it was not saved by isde.")
    return members


def _read_header(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if archive.getinfo(HEADER).file_size > HEADER_BYTES_MAX:
        raise InputError(f"{path} declares a header of more than {HEADER_BYTES_MAX >> 20} MB: not saved by isde.")
    top = json.loads(archive.read(HEADER), parse_constant=_no_number)
    if not isinstance(top, dict) or top.get("format") != FORMAT:
        raise InputError(f"{path} is no file saved by isde.")
    version = top.get("version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise InputError(
            f"{path} has format version {version!r}, this isde reads version {FORMAT_VERSION}: "
            "upgrade isde (pip install --upgrade isde)."
        )
    shapes = (("kind", str), ("sha256", dict), ("content", dict))
    if any(not isinstance(top.get(key), kind) for key, kind in shapes):
        raise InputError(f"{path} has a header without {', '.join(k for k, _ in shapes)}: it is damaged.")
    return top


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} in the header")


def _read_array(archive: zipfile.ZipFile, name: str, digest: str, path: Path) -> NDArray[Any]:
    data = archive.read(f"{name}.npy")
    if hashlib.sha256(data).hexdigest() != digest:
        raise InputError(f"{path}: array {name!r} differs from its checksum: the file is damaged.")
    buffer = io.BytesIO(data)
    version = np.lib.format.read_magic(buffer)
    if version != (1, 0):
        raise InputError(f"{path}: array {name!r} has an unknown .npy version.")
    try:
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    except MemoryError:  # how Python's parser says that brackets are nested too deep
        raise InputError(f"{path}: array {name!r} has no header: the file is damaged.") from None
    if dtype.str not in DTYPES or fortran:
        raise InputError(f"{path}: array {name!r} has type {dtype.str}, isde saves {', '.join(sorted(DTYPES))}.")
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != len(data) - buffer.tell():
        raise InputError(f"{path}: array {name!r} declares the shape {shape}, and holds {len(data):,} bytes.")
    return np.frombuffer(data, dtype=dtype, offset=buffer.tell()).reshape(shape).copy()


def _to_bytes(array: NDArray[Any]) -> bytes:
    array = np.asarray(array)
    # np.ascontiguousarray would turn a scalar into a vector; order="C" keeps the shape.
    plain = array.astype({"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}[array.dtype.kind], order="C")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def over(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays under names with a prefix."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays whose names have the prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def beside(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays whose names do not have the prefix."""
    return {name: array for name, array in arrays.items() if not name.startswith(prefix)}
