"""Files and frames in, one `Table` out: an N x d float64 matrix with column names, or one sentence why not."""

from __future__ import annotations

import csv
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from isde.errors import InputError, ISDEWarning
from isde.fcs import read_fcs
from isde.progress import say

TIED_SHARE = 0.05
"""Columns in which more than this share of the rows repeats an earlier value get a warning."""

FAR_SPREADS = 20.0
"""Columns with a value farther than so many spreads (quartiles, as of a normal) from their median get a warning."""

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"})
"""How text files say that a value is missing, in lower case."""

DAMAGE = (
    ValueError, EOFError, OSError, KeyError, SyntaxError, RuntimeError, TokenError, zipfile.BadZipFile, zlib.error
)  # fmt: skip
"""What NumPy and zipfile raise for files of arrays that are none, or damaged."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Numbers and the names of their columns."""

    X: Matrix  # N rows, d columns
    names: tuple[str, ...]  # d names, all different


@dataclass(frozen=True)
class Member:
    """An array in an npz file, by its header."""

    n_dimensions: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Request:
    """How a file is to be read, and what of it; None means: see for yourself."""

    separator: str | None
    header: bool | None
    columns: Sequence[str] | None
    preferred: Sequence[str] | None
    verbose: int


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    preferred: Sequence[str] | None = None,
    verbose: int = 0,
) -> Table:
    """Read a csv, tsv, parquet, npy, npz or fcs file; the ending decides which.

    `header=None` takes the first row of a text file for names unless it is all numbers, and refuses one that may be
    either. `columns` keeps the columns named, in that order; without it, `preferred` does so where the file holds all
    of them. An npz file holds the matrix as `X`, or as its only matrix, and names as `columns`. `verbose=1` says on
    standard error where a first row was taken for data.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path, Request], Table]] = {
        ".csv": _read_text,
        ".tsv": _read_text,
        ".parquet": _read_parquet,
        ".npy": _read_npy,
        ".npz": _read_npz,
        ".fcs": _read_fcs,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path} has the ending {path.suffix!r}: isde reads {', '.join(sorted(readers))}.")
    if not path.is_file():
        raise InputError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}: give a file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    table = reader(path, Request(separator, header, columns, preferred, verbose))
    if table.X.shape[0] == 0 or table.X.shape[1] == 0:
        raise InputError(f"{path} holds a table of {table.X.shape[0]} rows and {table.X.shape[1]} columns: no data.")
    return table


def default_names(n_columns: int) -> tuple[str, ...]:
    """Names for columns without one, as scikit-learn gives them.

    >>> default_names(3)
    ('x0', 'x1', 'x2')
    """
    return tuple(f"x{i}" for i in range(n_columns))


def frame_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a pandas, polars or pyarrow frame; None for anything else."""
    if not nw.dependencies.is_into_dataframe(X):
        return None
    return tuple(str(name) for name in nw.from_native(X, eager_only=True).columns)


def check_numeric_frame(X: Any) -> None:
    """Raise, naming them, where columns of a pandas, polars or pyarrow frame are no numbers.

    What only holds a frame, or promises one, is refused with the call that gives it.
    """
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputError("A polars LazyFrame holds no rows yet: call .collect() first.")
    if any(kind.__name__ == "AnnData" and kind.__module__.startswith("anndata") for kind in type(X).__mro__):
        raise InputError("An AnnData object is more than a table: give adata.to_df().")
    if nw.dependencies.is_into_dataframe(X):
        frame = _numeric_frame(nw.from_native(X, eager_only=True), "the table")
        for name in [str(name) for name, dtype in frame.schema.items() if dtype == nw.Object]:
            try:
                frame[name].to_numpy().astype(np.float64)
            except (ValueError, TypeError) as error:
                raise InputError(f"{name!r} in the table holds no numbers ({error}): leave it out.") from None


def check_finite(X: Matrix, names: Sequence[str]) -> None:
    """Raise, naming the columns with their counts, where values are missing or infinite."""
    bad = (~np.isfinite(X)).sum(axis=0)
    if bad.any():
        counts = [f"{names[c]!r} ({bad[c]:,})" for c in np.flatnonzero(bad).tolist()]
        raise InputError(
            f"NaN or infinite (inf) values in {_some(counts)} of {len(X):,} rows: drop or fill those rows first."
        )


def check_columns(X: Matrix, names: Sequence[str], *, ties: bool = True) -> None:
    """Raise where a column is constant; warn where columns repeat each other or, with `ties`, their own values."""
    ordered = np.sort(X, axis=0)
    constant = np.flatnonzero(ordered[0] == ordered[-1])
    if constant.size:
        raise InputError(
            f"{_some([repr(names[c]) for c in constant.tolist()])} has the same value in every row: "
            "a constant has no density; leave it out."
        )
    with np.errstate(over="ignore"):
        endless = np.flatnonzero(~np.isfinite(ordered[-1] - ordered[0]))
    if endless.size:
        raise InputError(
            f"{_some([repr(names[c]) for c in endless.tolist()])} spans more than a float64 can hold: rescale it."
        )
    tied = tied_columns(X, names) if ties else ()
    if tied:
        warnings.warn(
            f"Repeated values in {_some(tied)}: no density exists there and bandwidths collapse towards zero; "
            "leave such columns out, or add noise of the size of their rounding.",
            ISDEWarning,
            stacklevel=4,
        )
    _warn_duplicates(X, names)


def tied_columns(X: Matrix, names: Sequence[str]) -> tuple[str, ...]:
    """The columns in which many rows repeat a value, with their share.

    >>> tied_columns(np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0]]), ["zeros", "b"])
    ("'zeros' (50%)",)
    """
    shares = (np.diff(np.sort(X, axis=0), axis=0) == 0).mean(axis=0)
    return tuple(f"{names[c]!r} ({shares[c]:.0%})" for c in np.flatnonzero(shares > TIED_SHARE).tolist())


def warn_far_rows(X: Matrix, names: Sequence[str]) -> None:
    """Warn, naming the columns, of values so far out that kernels on the data's own scale let a row decide."""
    low, middle, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    spread = np.where(high > low, (high - low) / 1.35, np.inf)
    farthest = np.abs(X - middle).max(axis=0) / spread
    far = [f"{names[c]!r} ({farthest[c]:.0f} spreads)" for c in np.flatnonzero(farthest > FAR_SPREADS).tolist()]
    if far:
        warnings.warn(
            f"Values far from all others in {_some(far)}: on the data's own scale single rows carry a score there, and "
            "can make or hide a block; use marginal='copula+stack', or transform such columns.",
            ISDEWarning,
            stacklevel=3,
        )


def _warn_duplicates(X: Matrix, names: Sequence[str]) -> None:
    first_seen: dict[bytes, int] = {}
    for c in range(X.shape[1]):
        twin = first_seen.setdefault(np.ascontiguousarray(X[:, c]).tobytes(), c)
        if twin != c:
            warnings.warn(
                f"{names[twin]!r} and {names[c]!r} are the same column: their joint density is degenerate; "
                "leave one out.",
                ISDEWarning,
                stacklevel=4,
            )


def _some(items: Sequence[str], limit: int = 5) -> str:
    """The first few items in words.

    >>> _some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


# --- frames and binary files -----------------------------------------------------------------------------------


def _numeric_frame(frame: nw.DataFrame[Any], where: str) -> nw.DataFrame[Any]:
    text = [
        str(name)
        for name, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean or dtype == nw.Object)
    ]
    if text:
        raise InputError(
            f"{_some([repr(name) for name in text])} in {where} holds no numbers: leave it out or encode it first."
        )
    return frame


def _read_parquet(path: Path, request: Request) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"Reading {path} needs pyarrow: pip install 'isde[io]'.") from None
    try:
        native = pyarrow.parquet.ParquetFile(path).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is no parquet file, or it is damaged ({_first_line(error)}).") from error
    native = native.select(_positions(native.column_names, request, path))
    frame = _numeric_frame(nw.from_native(native, eager_only=True), str(path))
    return Table(np.asarray(frame.to_numpy(), dtype=np.float64), tuple(frame.columns))


def _read_npy(path: Path, request: Request) -> Table:
    try:
        _check_npy(path)
        # Mapped, so that a header which declares more than the file holds is refused before memory is asked for.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except InputError:
        raise
    except DAMAGE as error:
        raise _damaged(path, error) from error
    return _from_array(array, None, request, path)


def _check_npy(path: Path) -> None:
    """Refuse what NumPy would take for a pickle, and advise to trust."""
    with open(path, "rb") as stream:
        start = stream.read(len(np.lib.format.MAGIC_PREFIX))
        if start.startswith(b"PK"):
            raise InputError(f"{path} holds an .npz archive: give it that ending.")
        if start != np.lib.format.MAGIC_PREFIX:
            raise InputError(f"{path} is no .npy file: is its ending right?")
        stream.seek(0)
        _, dtype = _array_header(stream)
    if dtype.hasobject:
        raise InputError(f"{path} holds Python objects: save it as np.array(X, dtype=float).")


def _read_npz(path: Path, request: Request) -> Table:
    try:
        members = _npz_members(path)
        key = _npz_key(members, path)
        for name, wanted in ((key, "X, dtype=float"), ("columns", "names, dtype=str")):
            if name in members and members[name].dtype.hasobject:
                raise InputError(f"{name!r} in {path} holds Python objects: save it as np.array({wanted}).")
        with np.load(path, allow_pickle=False) as archive:
            names = [str(name) for name in np.atleast_1d(archive["columns"])] if "columns" in members else None
            return _from_array(archive[key], names, request, path)
    except InputError:
        raise
    except DAMAGE as error:
        raise _damaged(path, error) from error


def _npz_key(members: Mapping[str, Member], path: Path) -> str:
    """The name of the table: X, or that of the only matrix."""
    if "X" in members:
        return "X"
    matrices = [key for key, member in members.items() if member.n_dimensions == 2 and member.dtype.kind in "fiub"]
    if len(matrices) != 1:
        raise InputError(f"{path} holds the matrices {matrices}: name the one to use 'X'.")
    return matrices[0]


def _npz_members(path: Path) -> dict[str, Member]:
    """What an npz file holds; one that declares more than is stored is refused before NumPy allocates it."""
    members = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            with archive.open(info) as stream:
                shape, dtype = _array_header(stream)
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            if size > info.file_size and not dtype.hasobject:  # objects are pickled, in bytes that no header tells
                raise InputError(f"{path}: {info.filename} declares more numbers than it holds: it is damaged.")
            members[info.filename.removesuffix(".npy")] = Member(len(shape), dtype)
    return members


def _array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is no {path.suffix} file, or it is damaged ({_first_line(error)}).")


def _read_fcs(path: Path, request: Request) -> Table:
    return _from_array(*read_fcs(path), request, path)


def _from_array(array: NDArray[Any], names: Sequence[str] | None, request: Request, path: Path) -> Table:
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise InputError(f"{path} holds {array.ndim}-dimensional {array.dtype} data: isde needs a matrix of numbers.")
    labels = default_names(array.shape[1]) if names is None else tuple(names)
    if len(labels) != array.shape[1]:
        raise InputError(f"{path} has {len(labels)} names in 'columns' for {array.shape[1]} columns.")
    keep = _positions(labels, request, path)
    if keep != list(range(len(labels))):
        array, labels = array[:, keep], tuple(labels[i] for i in keep)
    return Table(np.ascontiguousarray(array, dtype=np.float64), labels)


# --- text files ------------------------------------------------------------------------------------------------


def _read_text(path: Path, request: Request) -> Table:
    separator = request.separator or {".csv": ",", ".tsv": "\t"}[path.suffix.lower()]
    first, second = _first_rows(path, separator)
    if request.separator is None and len(first) == 1:
        other = next((s for s in ",;\t|" if s in first[0]), None)
        if other:
            raise InputError(f"{path} looks separated by {other!r}: say so (--separator {other!r}).")
    has_header = _has_header([field.strip() for field in first], request, path)
    if has_header and second is None:
        raise InputError(f"{path} has a header but no rows.")
    names = tuple(field.strip() for field in first) if has_header else default_names(len(first))
    keep = _positions(names, request, path)
    in_file_order = keep == list(range(len(names)))
    try:
        with open(path, encoding="utf-8-sig", newline="") as lines:
            rows = lines if in_file_order else _of_width(lines, separator, len(names))
            skip = _lines_before_data(path, has_header)
            X = np.loadtxt(
                rows,
                np.float64,
                delimiter=separator,
                skiprows=skip,
                usecols=None if in_file_order else keep,
                ndmin=2,
                quotechar='"',
                comments=None,
            )
    except ValueError as error:
        raise _explain(path, separator, names, keep, has_header, error) from None
    if in_file_order and X.shape[1] != len(names):
        raise InputError(f"{path} is ragged: {len(names)} names in the header, {X.shape[1]} values in each row.")
    return Table(X, tuple(names[i] for i in keep))


def _has_header(first: Sequence[str], request: Request, path: Path) -> bool:
    """Whether the first row holds names: as told, else by what stands there; refused where it may be either."""
    if request.header is not None:
        return request.header
    asked = request.columns or request.preferred
    if asked and set(asked) <= set(first):
        return True
    doubt = _doubt(first)
    if doubt:
        raise InputError(
            f"The first row of {path} {doubt}: say whether it holds names or data with --header or --no-header "
            "(in Python, header=True or header=False)."
        )
    if not all(_is_number(field) for field in first):
        return True
    if request.verbose:
        say(f"{path}: first row taken as data, columns named x0 to x{len(first) - 1}: --header if it holds names.")
    return False


def _doubt(first: Sequence[str]) -> str | None:
    """Why a first row may be names or data: a wrong guess would lose a row, or invent one."""
    if list(first) in ([str(i + start) for i in range(len(first))] for start in (0, 1)):
        return f"just counts ({_some(first, 3)}), as names written by pandas do"
    if all(_is_number(field) for field in first):
        return None
    gaps = [field for field in first if _is_missing(field)]
    if gaps and any(_is_number(field) and not _is_missing(field) for field in first):
        return f"holds numbers and gaps ({gaps[0]!r})"
    return f"holds nothing but gaps ({gaps[0]!r})" if len(gaps) == len(first) else None


def _of_width(lines: Iterable[str], separator: str, width: int) -> Iterator[str]:
    """The lines, as long as each has `width` fields: asked for some columns only, NumPy would not look."""
    for line in lines:
        plain = line.count(separator) == width - 1 or not line.strip()
        if not plain and len(next(csv.reader([line], delimiter=separator))) != width:
            raise ValueError("ragged")
        yield line


def _first_rows(path: Path, separator: str) -> tuple[list[str], list[str] | None]:
    rows = []
    for row in _text_rows(path, separator):
        if row:
            rows.append(row)
        if len(rows) == 2:
            break
    if not rows:
        raise InputError(f"{path} holds nothing but blank lines.")
    return rows[0], rows[1] if len(rows) == 2 else None


def _text_rows(path: Path, separator: str) -> Iterable[list[str]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as lines:
            yield from csv.reader(lines, delimiter=separator)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no text file ({_first_line(error)}): is its ending right?") from error


def _lines_before_data(path: Path, has_header: bool) -> int:
    """Physical lines up to and with the header, which may follow blank lines or hold a quoted line break."""
    if not has_header:
        return 0
    with open(path, encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines)
        for row in reader:
            if row:
                return reader.line_num
    raise AssertionError("a header was read before")


def _explain(
    path: Path,
    separator: str,
    names: Sequence[str],
    keep: Sequence[int],
    has_header: bool,
    error: Exception,
) -> InputError:
    """Why NumPy could not read the file, in the file's own terms: ragged rows, or every column that is no numbers."""
    faults = Faults()
    rows = (row for row in _text_rows(path, separator) if row)
    for number, row in enumerate(rows):
        if number == 0 and has_header:
            continue
        if len(row) != len(names):
            return InputError(
                f"{path} is ragged: row {number + 1 - has_header:,} has {len(row)} values, {len(names)} are expected."
            )
        for c in keep:
            faults.note(c, row[c])
    found = faults.sentences(names, path) or [f"{path} cannot be read as a table ({_first_line(error)})"]
    return InputError("; ".join(found) + ".")


class Faults:
    """What stands in place of numbers, by column."""

    def __init__(self) -> None:
        self.missing: Counter[int] = Counter()
        self.commas: dict[int, str] = {}  # the first of each column
        self.text: dict[int, str] = {}

    def note(self, column: int, field: str) -> None:
        if _is_missing(field):
            self.missing[column] += 1
        elif not _is_number(field):
            (self.commas if _has_decimal_comma(field) else self.text).setdefault(column, field)

    def sentences(self, names: Sequence[str], path: Path) -> list[str]:
        """One for each kind; a column of text is to be left out, whatever else it holds."""
        missing = [f"{names[c]!r} ({count:,})" for c, count in sorted(self.missing.items()) if c not in self.text]
        commas = [_example(names[c], field) for c, field in sorted(self.commas.items()) if c not in self.text]
        text = [_example(names[c], field) for c, field in sorted(self.text.items())]
        told = (
            (missing, "Missing values in {} of {}: drop or fill those rows first, or leave the column out (--columns)"),
            (commas, "{} in {} is written with decimal commas: write points (pandas reads them with decimal=',')"),
            (text, "{} in {} holds text: leave it out (--columns) or encode it first"),
        )
        return [sentence.format(_some(culprits, 12), path) for culprits, sentence in told if culprits]


def _example(name: str, field: str) -> str:
    return f"{name!r} (for example {field!r})"


def _is_missing(field: str) -> bool:
    return field.strip().lower() in MISSING


def _has_decimal_comma(field: str) -> bool:
    """Whether a number is written as in '0,5'.

    >>> _has_decimal_comma("-0,5e3"), _has_decimal_comma("0.5"), _has_decimal_comma("1,2,3")
    (True, False, False)
    """
    return "," in field and _is_number(field.replace(",", ".", 1))


def _is_number(field: str) -> bool:
    if "_" in field:  # Python reads 1_000 as a number, NumPy does not
        return False
    try:
        float(field)
    except ValueError:
        return False
    return True


# --- names of columns ------------------------------------------------------------------------------------------


def _positions(names: Sequence[str], request: Request, path: Path) -> list[int]:
    """The columns to keep, in the order asked for; names of the others may be empty or repeated."""
    wanted = request.columns
    if wanted is None and request.preferred is not None and set(request.preferred) <= set(names):
        wanted = request.preferred
    if wanted is None:
        _refuse_unnamed(names, path)
        wanted = names
    else:
        _refuse_unknown(wanted, names, path)
    counts = Counter(names)
    repeated = [repr(name) for name in dict.fromkeys(wanted) if counts[name] > 1]
    if repeated:
        raise InputError(
            f"{path} has more than one column named {_some(repeated)}: rename them, or leave them out (--columns)."
        )
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in wanted]


def _refuse_unnamed(names: Sequence[str], path: Path) -> None:
    unnamed = [i for i, name in enumerate(names) if not name]
    if unnamed == [0]:
        raise InputError(
            f"Column 1 of {path} has no name (a row index?): leave it out with --columns, or save the table without "
            "its index (index=False)."
        )
    if unnamed:
        places = _some([str(i + 1) for i in unnamed])
        raise InputError(f"{path} has no name for column {places}: write one, or leave it out with --columns.")


def _refuse_unknown(wanted: Sequence[str], names: Sequence[str], path: Path) -> None:
    repeated = [name for name in wanted if list(wanted).count(name) > 1]
    if repeated:
        raise InputError(f"The column {repeated[0]!r} is asked for twice.")
    unknown = [name for name in wanted if name not in names or not name]
    if unknown:
        known = [name for name in names if name]
        raise InputError(f"{path} has no column {unknown[0]!r}; it has {_some(known, 12)}.")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".:")
