"""Cells from an FCS file, the format of the public cytometry data: list mode, floating point, versions 2.0 to 3.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.data.readers.arrays import from_array
from isde.data.readers.request import Request
from isde.data.table import Table
from isde.errors import InputError, first_line
from isde.memory import check_memory

BYTE_ORDERS = {"1,2": "<", "4,3": ">"}
"""How $BYTEORD begins, and what NumPy calls it."""

Events = tuple[NDArray[np.floating[Any]], tuple[str, ...]]


def read_fcs(request: Request) -> Table:
    return from_array(*read_events(request.path), request)


def read_events(path: Path) -> Events:
    """Every event as it is stored, and the markers' names ($PnS, or $PnN where there is none)."""
    check_memory(path.stat().st_size, str(path), "give fewer events")
    content = path.read_bytes()
    if not content.startswith(b"FCS"):
        raise InputError(f"{path} is no FCS file: is its ending right?")
    try:
        text_start, text_end = (int(content[place : place + 8]) for place in (10, 18))
        text = _keywords(content[text_start : text_end + 1].decode("utf-8", errors="replace"))
        return _events(content, text, path)
    except (KeyError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no FCS file, or it is damaged ({first_line(error)}).") from error


def _keywords(text: str) -> dict[str, str]:
    """Keywords and values between delimiters, the first character; a doubled delimiter stands for itself.

    >>> _keywords("/$PAR/2/$P1S/a//b/")
    {'$PAR': '2', '$P1S': 'a/b'}
    """
    delimiter = text[0]
    parts = text[1:].replace(delimiter * 2, "\0").rstrip().removesuffix(delimiter).split(delimiter)
    words = [part.replace("\0", delimiter) for part in parts]
    return {key.upper(): value for key, value in zip(words[::2], words[1::2], strict=False)}


def _events(content: bytes, text: dict[str, str], path: Path) -> Events:
    kinds = {"F": 4, "D": 8}
    if text["$DATATYPE"] not in kinds or text["$MODE"] != "L":
        raise InputError(
            f"{path} holds data of type {text['$DATATYPE']!r} in mode {text['$MODE']!r}: only floating point lists are "
            "read; export it as CSV."
        )
    width = kinds[text["$DATATYPE"]]
    n_columns, n_rows = int(text["$PAR"]), int(text["$TOT"])
    if n_columns < 1 or n_rows < 0:
        raise InputError(f"{path} declares {n_rows} events of {n_columns} channels: it is damaged.")
    names = tuple(_name(text, i) for i in range(1, n_columns + 1))
    if any(int(text.get(f"$P{i}B", 8 * width)) != 8 * width for i in range(1, n_columns + 1)):
        raise InputError(f"{path} declares channels of other widths than {8 * width} bits: it is damaged.")
    start, end = _data_range(content, text, path)
    # Some instruments write the place after the last byte for the last one.
    if (n_rows and end + 1 - start not in (size := n_rows * n_columns * width, size + 1)) or end > len(content):
        raise InputError(
            f"{path} declares {n_rows:,} events of {n_columns:,} channels, and {end + 1 - start:,} bytes for them: "
            "it is damaged."
        )
    order = BYTE_ORDERS[text["$BYTEORD"].replace(" ", "")[:3]]
    values = np.frombuffer(content, f"{order}f{width}", count=n_rows * n_columns, offset=start)
    return values.reshape(n_rows, n_columns), names


def _data_range(content: bytes, text: dict[str, str], path: Path) -> tuple[int, int]:
    """The first and the last byte of the events, from the header, or, beyond 99,999,999 bytes, from the text."""
    header = [int(content[place : place + 8].strip() or 0) for place in (26, 34)]
    told = [int(text.get(key, 0)) for key in ("$BEGINDATA", "$ENDDATA")]
    start, end = told if 0 in header else header
    if 0 not in header and told[0] not in (0, start):
        raise InputError(f"{path} says of two places that its events begin there: it is damaged.")
    return start, end


def _name(text: dict[str, str], number: int) -> str:
    return text.get(f"$P{number}S", "").strip() or text[f"$P{number}N"].strip()
