"""Tables in parquet files, read by pyarrow."""

from __future__ import annotations

import narwhals.stable.v2 as nw
import numpy as np

from isde.data.checks import numeric_frame
from isde.data.readers.request import Request
from isde.data.table import Table
from isde.errors import InputError, ISDEError, first_line


def read_parquet(request: Request) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"Reading {request.where} needs pyarrow: pip install 'isde[io]'.") from None
    try:
        with pyarrow.parquet.ParquetFile(request.path, page_checksum_verification=True) as file:
            request.check_size(file.metadata.num_rows, file.metadata.num_columns)
            native = file.read()
        native = native.select(request.positions(native.column_names))
        frame = numeric_frame(nw.from_native(native, eager_only=True), request.where)
        return Table(np.asarray(frame.to_numpy(), dtype=np.float64), tuple(frame.columns))
    except ISDEError:
        raise
    except Exception as error:  # of pyarrow, and of what a damaged schema leads to
        raise InputError(f"{request.where} is no parquet file, or it is damaged ({first_line(error)}).") from error
