"""One reader per file format: a file here and a line in `READERS`, imported when such a file is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

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

STREAMS = {
    ".csv": "text:stream_csv",
    ".csv.gz": "text:stream_csv",
    ".tsv": "text:stream_tsv",
    ".tsv.gz": "text:stream_tsv",
    ".parquet": "parquet:stream_parquet",
    ".npy": "arrays:stream_npy",
}
"""Those that can be read some rows at a time, and the function that does; others are read whole, and cut."""

BATCH_ROWS = 1 << 16
"""Rows at a time: 16 MB of 30 columns."""


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
    request, ending = _request(path, separator, encoding, header, columns, preferred, verbose)
    with _explained(request):
        table: Table = _function(READERS[ending])(request)
    if 0 in table.X.shape:
        raise _no_data(request, *table.X.shape)
    return table


def read_batches(
    path: str | Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    preferred: Sequence[str] | None = None,
    verbose: int = 0,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Table]:
    """The table of `read_table`, some rows at a time: text, parquet and npy files are never in memory as a whole.

    The batches have `batch_rows` rows at most, and together are the table. What is wrong with the file is told, in the
    words of `read_table`, when it is met: what was made of earlier batches should not be in its place by then.
    """
    request, ending = _request(path, separator, encoding, header, columns, preferred, verbose)
    with _explained(request):
        if ending in STREAMS:
            batches: Iterator[Table] = _function(STREAMS[ending])(request, batch_rows)
        else:
            batches = cut(_function(READERS[ending])(request), batch_rows)
        n_rows = n_columns = 0
        for table in batches:
            n_rows, n_columns = n_rows + len(table.X), table.X.shape[1]
            if n_columns and len(table.X):
                yield table
    if not n_rows or not n_columns:
        raise _no_data(request, n_rows, n_columns)


def cut(table: Table, batch_rows: int) -> Iterator[Table]:
    """A table, some rows at a time."""
    for start in range(0, len(table.X), batch_rows):
        yield Table(table.X[start : start + batch_rows], table.names)


def _request(
    path: str | Path,
    separator: str | None,
    encoding: str | None,
    header: bool | None,
    columns: Sequence[str] | None,
    preferred: Sequence[str] | None,
    verbose: int,
) -> tuple[Request, str]:
    """What is asked for, of a file that is there and not empty; and its ending."""
    path = Path(path)
    from_input = str(path) == STANDARD_INPUT
    ending = ".csv" if from_input else _ending(path)
    content = standard_input(encoding) if from_input else None
    request = Request(path, content, separator, encoding, header, columns, preferred, verbose)
    if content is None:
        check_regular(path)
    if (path.stat().st_size if content is None else len(content)) == 0:
        raise InputError(f"{request.where} is empty.")
    return request, ending


def _function(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"isde.data.readers.{module}"), name)


@contextmanager
def _explained(request: Request) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{request.where} cannot be read ({error.strerror or first_line(error)}).") from error


def _no_data(request: Request, n_rows: int, n_columns: int) -> InputError:
    return InputError(f"{request.where} holds a table of {n_rows} rows and {n_columns} columns: no data.")


def _ending(path: Path) -> str:
    """The part of a name that says what the file is."""
    found = next((ending for ending in READERS if path.name.lower().endswith(ending)), None)
    if found is None:
        if path.exists():
            check_regular(path)  # a folder has no ending that would do
        what = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise InputError(f"{path} has {what}: isde reads {', '.join(sorted(READERS))}.")
    return found
