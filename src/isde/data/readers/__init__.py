"""One reader per file format: a file here and a line in `READERS`, imported when such a file is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from isde.data.readers.request import STANDARD_INPUT, Request, standard_input
from isde.data.table import Table
from isde.errors import InputError, first_line
from isde.files import check_regular

READERS = {
    ".csv": "text:read_csv",
    ".csv.gz": "text:read_csv",
    ".tsv": "text:read_tsv",
    ".tsv.gz": "text:read_tsv",
    ".parquet": "parquet:read_parquet",
    ".npy": "arrays:read_npy",
    ".npz": "arrays:read_npz",
    ".fcs": "fcs:read_fcs",
}
"""How a file's name ends, and the function that reads it."""


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    preferred: Sequence[str] | None = None,
    verbose: int = 0,
) -> Table:
    """Read a csv, tsv (both also gzipped), parquet, npy, npz or fcs file; the ending decides which. "-" reads csv from
    standard input.

    `header=None` takes the first row of a text file for names unless it is all numbers, and refuses one that may be
    either. Text is UTF-8, with or without a byte order mark, unless `encoding` names another. `columns` keeps the
    columns named, in that order; without it, `preferred` does so where the file holds all of them. An npz file holds
    the matrix as `X`, or as its only matrix, and names as `columns`. `verbose=1` says on standard error where a first
    row was taken for data.
    """
    path = Path(path)
    from_input = str(path) == STANDARD_INPUT
    ending = ".csv" if from_input else _ending(path)
    content = standard_input(encoding) if from_input else None
    request = Request(path, content, separator, encoding, header, columns, preferred, verbose)
    if content is None:
        check_regular(path)
    if (path.stat().st_size if content is None else len(content)) == 0:
        raise InputError(f"{request.where} is empty.")
    module, function = READERS[ending].split(":")
    try:
        table: Table = getattr(import_module(f"isde.data.readers.{module}"), function)(request)
    except OSError as error:
        raise InputError(f"{request.where} cannot be read ({error.strerror or first_line(error)}).") from error
    if 0 in table.X.shape:
        n_rows, n_columns = table.X.shape
        raise InputError(f"{request.where} holds a table of {n_rows} rows and {n_columns} columns: no data.")
    return table


def _ending(path: Path) -> str:
    """The part of a name that says what the file is."""
    found = next((ending for ending in READERS if path.name.lower().endswith(ending)), None)
    if found is None:
        raise InputError(f"{path} has the ending {path.suffix!r}: isde reads {', '.join(sorted(READERS))}.")
    return found
