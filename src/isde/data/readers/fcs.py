"""Cells from an FCS file, the format of the public cytometry data: list mode, floating point, versions 2.0 to 3.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.data.readers.arrays import from_array
from isde.data.readers.request import Request
from isde.data.table import Table
from isde.errors import InputError

Events = tuple[NDArray[np.floating[Any]], tuple[str, ...]]


def read_fcs(request: Request) -> Table:
    return from_array(*read_events(request.path), request)


def read_events(path: Path) -> Events:
    """Every event as it is stored, and the markers' names ($PnS, or $PnN where there is none)."""
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
        raise InputError(f"{path} is no FCS file, or it is damaged ({error}).") from error


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
    kinds = {"F": "f4", "D": "f8"}
    if text["$DATATYPE"] not in kinds or text["$MODE"] != "L":
        raise InputError(
            f"{path} holds data of type {text['$DATATYPE']} in mode {text['$MODE']}: only floating point lists are "
            "read; export it as CSV."
        )
    order = "<" if text["$BYTEORD"].startswith("1") else ">"
    start = int(content[26:34] or 0) or int(text["$BEGINDATA"])  # beyond 99,999,999 bytes it stands in the text
    n_columns, n_rows = int(text["$PAR"]), int(text["$TOT"])
    names = tuple(_name(text, i) for i in range(1, n_columns + 1))
    values = np.frombuffer(content, order + kinds[text["$DATATYPE"]], count=n_rows * n_columns, offset=start)
    return values.reshape(n_rows, n_columns), names


def _name(text: dict[str, str], number: int) -> str:
    return text.get(f"$P{number}S", "").strip() or text[f"$P{number}N"].strip()
