"""Data files of every format, small ones, and the checks of what is read from their mutants."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from .guarded import Check

ENDINGS = (".csv", ".tsv", ".csv.gz", ".npy", ".npz", ".parquet", ".fcs")

NAMES = ("a", 'b "c"', "d")


def write(folder: Path, ending: str) -> Path:
    """A table of 20 rows and three columns."""
    path, X = folder / f"data{ending}", np.random.default_rng(0).normal(size=(20, 3))
    if ending.startswith((".csv", ".tsv")):
        separator = "\t" if ending == ".tsv" else ","
        quoted = ['"' + name.replace('"', '""') + '"' for name in NAMES]
        lines = [quoted, *([repr(value) for value in row] for row in X.tolist())]
        content = "".join(separator.join(line) + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    elif ending == ".npy":
        np.save(path, X)
    elif ending == ".npz":
        np.savez_compressed(path, X=X, columns=np.array(NAMES))
    elif ending == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), path, write_page_checksum=True)
    else:
        _write_fcs(path, X)
    return path


def _write_fcs(path: Path, X: np.ndarray) -> None:
    words = {"$DATATYPE": "D", "$MODE": "L", "$BYTEORD": "4,3,2,1", "$PAR": X.shape[1], "$TOT": len(X)}
    for i, name in enumerate(NAMES, start=1):
        words |= {f"$P{i}N": name, f"$P{i}B": 64, f"$P{i}R": 1024}
    text = ("|" + "".join(f"{key}|{value}|" for key, value in words.items())).encode()
    data = X.astype(">f8").tobytes()
    places = [58, 57 + len(text), 58 + len(text), 57 + len(text) + len(data), 0, 0]
    path.write_bytes(b"FCS3.0    " + b"".join(f"{place:8d}".encode() for place in places) + text + data)


def is_a_table(sound: Path) -> Check:
    """What is read is a table, of the shape that it had where the format tells."""
    from isde.data.readers import read_table

    shape = read_table(sound).X.shape

    def check(path: Path) -> str | None:
        table = read_table(path)
        X, names = table.X, table.names
        if X.ndim != 2 or X.dtype != np.float64 or len(names) != X.shape[1] or len(set(names)) < len(names):
            return "what is read is no table"
        if path.suffix == ".fcs" and X.shape != shape:
            return f"a table of shape {X.shape} instead of {shape}"
        return None

    return check
