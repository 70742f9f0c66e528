"""What reaches the terminal: lines without control codes, whatever the names of columns and files hold."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import click

from isde.data.words import guarded
from isde.errors import InputError, ResourceError, printable
from isde.files import whole_file

IN_MEMORY = 1 << 24
"""Bytes that wait to be printed; more wait on disk."""


def echo(text: str, *, err: bool = False) -> None:
    """Lines on standard output, or on standard error."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


def write_utf8() -> None:
    """Print as files are written, whatever the locale says; what a terminal cannot show is escaped there."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8")


def print_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output; its names as they are, but for what a spreadsheet would run, or a terminal obey."""
    write_header(sys.stdout, names, printable_only=sys.stdout.isatty())
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)


def write_header(file: IO[str], names: Sequence[str], *, printable_only: bool = False) -> None:
    cells = [guarded(name) for name in names]
    if printable_only:
        cells = [printable(cell) for cell in cells]
    # Python before 3.13 does not quote a carriage return, at which readers begin a new line.
    quoted = any("\r" in cell for cell in cells)
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerow(cells)


def check_table_file(path: Path, *, overwrite: bool) -> None:
    """Refuse, before any work, a table that cannot be written there."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{path} ends neither in .csv nor in .parquet: give a name that does.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists: give another name, or --overwrite.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.absolute().parent} is no folder: create it first, or write somewhere else.")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"Writing {path} needs pyarrow: pip install 'isde[io]'.")


Write = Callable[[Any], None]
"""Takes the next rows of a table, a matrix."""


@contextmanager
def table_writer(path: Path | None, names: Sequence[str]) -> Iterator[Write]:
    """Rows as they come into a csv or parquet file, or for standard output (None); there at the end, or not at all."""
    if path is None:
        with _printed(names) as write:
            yield write
        return
    try:
        with whole_file(path) as file, (_as_parquet if path.suffix == ".parquet" else _as_csv)(file, names) as write:
            yield write
    except OSError as error:
        raise ResourceError(f"{path} cannot be written ({error.strerror or error}): nothing is left of it.") from error


@contextmanager
def _printed(names: Sequence[str]) -> Iterator[Write]:
    """What is printed must not end in the middle where a later row is refused: it waits in a temporary file."""
    with SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", newline="") as file:
        write_header(file, names, printable_only=sys.stdout.isatty())
        rows = csv.writer(file, lineterminator="\n")
        yield lambda matrix: rows.writerows(matrix.tolist())
        file.seek(0)
        copyfileobj(file, sys.stdout)


@contextmanager
def _as_csv(file: IO[bytes], names: Sequence[str]) -> Iterator[Write]:
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    write_header(text, names)
    rows = csv.writer(text, lineterminator="\n")
    yield lambda matrix: rows.writerows(matrix.tolist())
    text.detach()  # flushed; whoever opened the file closes it


@contextmanager
def _as_parquet(file: IO[bytes], names: Sequence[str]) -> Iterator[Write]:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        yield lambda matrix: writer.write_table(pyarrow.table([*matrix.T.copy()], schema=schema))
