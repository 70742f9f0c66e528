"""Tables in parquet files, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from isde.data.checks import numeric_frame
from isde.data.readers.request import Request
from isde.data.table import Table
from isde.errors import InputError, ISDEError, first_line


def read_parquet(request: Request) -> Table:
    with _opened(request) as file:
        request.check_size(file.metadata.num_rows, file.metadata.num_columns)
        native = file.read()
        return _table(native.select(request.positions(native.column_names)), request)


def stream_parquet(request: Request, batch_rows: int) -> Iterator[Table]:
    with _opened(request) as file:
        names = file.schema_arrow.names
        wanted = [names[i] for i in request.positions(names)]
        for batch in file.iter_batches(batch_rows, columns=wanted):
            yield _table(type(batch).from_arrays([batch.column(name) for name in wanted], wanted), request)


@contextmanager
def _opened(request: Request) -> Iterator[Any]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"Reading {request.where} needs pyarrow: pip install 'isde[io]'.") from None
    try:
        with pyarrow.parquet.ParquetFile(request.path, page_checksum_verification=True) as file:
            yield file
    except (ISDEError, MemoryError):
        raise
    except Exception as error:  # of pyarrow, and of what a damaged schema leads to
        raise InputError(f"{request.where} is no parquet file, or it is damaged ({first_line(error)}).") from error


def _table(native: Any, request: Request) -> Table:
    """Rows of pyarrow's, all of them numbers."""
    import pyarrow

    whole = native if isinstance(native, pyarrow.Table) else pyarrow.Table.from_batches([native])
    frame = numeric_frame(nw.from_native(whole, eager_only=True), request.where)
    return Table(np.asarray(frame.to_numpy(), dtype=np.float64), tuple(frame.columns))
