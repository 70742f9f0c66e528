"""Tables in parquet files, read by pyarrow."""

from __future__ import annotations

import narwhals.stable.v2 as nw
import numpy as np

from isde.data.checks import numeric_frame
from isde.data.readers.request import Request
from isde.data.table import Table
from isde.errors import InputError, first_line


def read_parquet(request: Request) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"Reading {request.where} needs pyarrow: pip install 'isde[io]'.") from None
    try:
        native = pyarrow.parquet.ParquetFile(request.path).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{request.where} is no parquet file, or it is damaged ({first_line(error)}).") from error
    native = native.select(request.positions(native.column_names))
    frame = numeric_frame(nw.from_native(native, eager_only=True), request.where)
    return Table(np.asarray(frame.to_numpy(), dtype=np.float64), tuple(frame.columns))
