"""What is wrong with a table, in sentences that name the columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from isde.arrays import Matrix, Positions, Vector
from isde.data.table import Table, check_frame_names, default_names, frame_names
from isde.data.words import some
from isde.errors import InputError, warn

TIED_SHARE = 0.05
"""Columns in which more than this share of the rows repeats an earlier value get a warning."""

FARTHEST, NARROWEST = 1e140, 1e-140
"""Values, and ranges, of a column that can be used as it stands; a rescaled one is far from both."""

FAR_SPREADS = 20.0
"""Columns with a value farther than so many spreads (quartiles, as of a normal) from their median get a warning."""


FIRST_ROWS, MANY_VALUES = 1000, 12
"""Rows that are looked at before all are, for columns in the same order; and the different values that it takes there:
two columns that have nothing to do with each other have the same order of so many once in 12! tables."""

NO_NUMBERS = {
    "c": "Complex data not supported: give real and imaginary parts as columns of their own.",
    "m": "The table holds spans of time: give them as numbers, in a unit of your choice.",
    "M": "The table holds dates: give them as numbers, such as days since the first.",
    "V": "A structured array is no matrix: make a data frame of it, as pandas.DataFrame(X) does.",
}
"""What arrays hold that NumPy would make numbers of in silence, or print whole to say that it cannot."""


def check_input(X: Any) -> None:
    """Raise, with the way out, for what is no table of numbers."""
    if isinstance(X, Table) or issparse(X):  # the second is refused by scikit-learn, in words of its own
        return
    check_numeric_frame(X)
    if nw.dependencies.is_into_dataframe(X):
        return
    if X is None or isinstance(X, str | bytes | PathLike | Mapping):
        what = type(X).__name__ if isinstance(X, Mapping) else repr(X)
        raise InputError(f"{what} is no table: give rows, as an array or a data frame (pandas.read_csv makes one).")
    if nw.dependencies.is_into_series(X):
        raise InputError("A series is one column, not a table: call .to_frame() first.")
    if isinstance(X, np.ma.MaskedArray) and X.mask.any():
        raise InputError(f"{int(X.mask.sum()):,} values of the table are masked: drop or fill those rows first.")
    _check_array(X if hasattr(X, "dtype") and hasattr(X, "shape") else _as_array(X))


def _as_array(X: Any) -> Any:
    try:
        return np.asarray(X)
    except ValueError:
        raise InputError("The rows of the table have different numbers of values: give as many in each.") from None


def _check_array(X: Any) -> None:
    kind = getattr(X.dtype, "kind", "f")
    if kind in NO_NUMBERS:
        raise InputError(NO_NUMBERS[kind])
    n_dimensions = len(X.shape)
    if n_dimensions == 1:
        raise InputError(
            "A table has two dimensions, and this array has one. Reshape your data: X.reshape(-1, 1) makes it one "
            "column, X.reshape(1, -1) one row."
        )
    if n_dimensions != 2:
        raise InputError(f"A table has two dimensions, rows and columns, and this has {n_dimensions}.")


def check_numeric_frame(X: Any) -> None:
    """Raise, naming them, where columns of a pandas, polars or pyarrow frame are no numbers.

    What only holds a frame, or promises one, is refused with the call that gives it.
    """
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputError("A polars LazyFrame holds no rows yet: call .collect() first.")
    if any(kind.__name__ == "AnnData" and kind.__module__.startswith("anndata") for kind in type(X).__mro__):
        raise InputError("An AnnData object is more than a table: give adata.to_df().")
    if nw.dependencies.is_into_dataframe(X):
        check_frame_names(X)
        _check_dense(X)
        frame = numeric_frame(nw.from_native(X, eager_only=True), "the table")
        for name in [str(name) for name, dtype in frame.schema.items() if dtype == nw.Object]:
            try:
                frame[name].to_numpy().astype(np.float64)
            except (ValueError, TypeError) as error:
                raise InputError(f"{name!r} in the table holds no numbers ({error}): leave it out.") from None


def _check_dense(X: Any) -> None:
    """Raise for columns of pandas that keep only what is not zero: to narwhals they are of no kind it knows."""
    kinds = X.dtypes.items() if nw.dependencies.is_pandas_dataframe(X) else ()
    sparse = [repr(str(name)) for name, kind in kinds if type(kind).__name__ == "SparseDtype"]
    if sparse:
        raise InputError(f"{some(sparse)} in the table is sparse: give X.astype(float), which is dense.")


def numeric_frame(frame: nw.DataFrame[Any], where: str) -> nw.DataFrame[Any]:
    """The frame, if all of its columns may be numbers; those of Python objects are looked at by whoever takes them."""
    text = [
        str(name)
        for name, dtype in frame.schema.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean or dtype == nw.Object)
    ]
    if text:
        raise InputError(
            f"{some([repr(name) for name in text])} in {where} holds no numbers: leave it out or encode it first."
        )
    return frame


def as_table(X: Any, unnamed: Sequence[str] = ()) -> Table:
    """A table, frame or array as float64, all of it finite numbers; `unnamed` are names for as many without."""
    if isinstance(X, Table):
        matrix, names = X.X, X.names
    else:
        check_input(X)
        matrix = check_array(X, dtype=np.float64, ensure_all_finite=False)
        width = matrix.shape[1]
        names = frame_names(X) or (tuple(unnamed) if len(unnamed) == width else default_names(width))
    check_finite(matrix, names)
    return Table(matrix, names)


def check_finite(X: Matrix, names: Sequence[str]) -> None:
    """Raise, naming the columns with their counts and the first row, where values are missing or infinite."""
    for _ in finite_batches([Table(X, tuple(names))]):
        pass


def finite_batches(batches: Iterable[Table]) -> Iterator[Table]:
    """The parts of a table, as long as all numbers are finite; then the others are counted too, to be told of all."""
    n_rows, first, bad = 0, None, np.zeros(0, dtype=np.int64)
    names: tuple[str, ...] = ()
    for table in batches:
        names, wrong = table.names, ~np.isfinite(table.X)
        bad = wrong.sum(axis=0) + (bad if len(bad) else 0)
        if first is None and wrong.any():
            first = n_rows + int(np.flatnonzero(wrong.any(axis=1))[0])
        n_rows += len(table.X)
        if first is None:
            yield table
    if first is not None:
        counts = [f"{names[c]!r} ({bad[c]:,})" for c in np.flatnonzero(bad).tolist()]
        raise InputError(
            f"NaN or infinite (inf) values in {some(counts)} of {n_rows:,} rows, first in row {first + 1:,}: drop or "
            "fill those rows first."
        )


def check_columns(X: Matrix, names: Sequence[str], *, ties: bool = True) -> None:
    """Raise where a column is constant; warn where columns repeat each other or, with `ties`, their own values."""
    ordered = np.sort(X, axis=0)
    constant = np.flatnonzero(ordered[0] == ordered[-1])
    if constant.size:
        raise InputError(
            f"{some([repr(names[c]) for c in constant.tolist()])} has the same value in every row: "
            "a constant has no density; leave it out."
        )
    with np.errstate(over="ignore"):
        endless = np.flatnonzero(~np.isfinite(ordered[-1] - ordered[0]))
    if endless.size:
        raise InputError(
            f"{some([repr(names[c]) for c in endless.tolist()])} spans more than a float64 can hold: rescale it."
        )
    tied = tied_columns(X, names) if ties else ()
    if tied:
        warn(
            f"Repeated values in {some(tied)}: no density exists there and bandwidths collapse towards zero; "
            "leave such columns out, or add noise of the size of their rounding.",
        )
    _warn_duplicates(X, names)


def check_units(X: Matrix) -> None:
    """Raise where a column, as it stands, has values or distances whose squares leave float64."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.minimum(high, FARTHEST) - np.maximum(low, -FARTHEST)  # of finite ends: their difference may be none
    wrong = np.flatnonzero((np.maximum(-low, high) > FARTHEST) | ((width > 0) & (width < NARROWEST)))
    if wrong.size:
        c = int(wrong[0])
        raise InputError(
            f"Column {c + 1} has values from {low[c]:.3g} to {high[c]:.3g}, whose squares leave float64: have it "
            "rescaled (scale='minmax'), or give it in other units."
        )


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
        warn(
            f"Values far from all others in {some(far)}: on the data's own scale single rows carry a score there, and "
            "can make or hide a block; use marginal='copula+stack', or transform such columns.",
        )


def _warn_duplicates(X: Matrix, names: Sequence[str]) -> None:
    """Warn of columns that say no more than an earlier one: its copies, also in other units or turned around."""
    copies: dict[bytes, int] = {}
    orders: dict[bytes, int] = {}
    for c in range(X.shape[1]):
        twin = copies.setdefault(np.ascontiguousarray(X[:, c]).tobytes(), c)
        if twin != c:
            what = f"{names[twin]!r} and {names[c]!r} are the same column: their"
        elif (twin := _first_in_order(orders, X, c)) != c:
            what = f"{names[twin]!r} and {names[c]!r} order the rows alike: if each follows from the other, their"
        else:
            continue
        warn(f"{what} joint density is degenerate; leave one out.")


def _first_in_order(orders: dict[bytes, int], X: Matrix, c: int) -> int:
    """The earlier column by which rows stand in the same order, or in the reverse one; `c` itself where none is."""
    ranks = _ranks(X[:FIRST_ROWS, c])
    if ranks.max() + 1 < MANY_VALUES:
        return c
    up, down = (np.ascontiguousarray(order).tobytes() for order in (ranks, ranks.max() - ranks))
    twin = orders.get(up, orders.get(down))
    if twin is None:
        orders[up] = c
        return c
    one, other = _ranks(X[:, twin]), _ranks(X[:, c])
    alike = np.array_equal(one, other) or np.array_equal(one, other.max() - other)
    return twin if alike else c


def _ranks(values: Vector) -> Positions:
    return np.unique(values, return_inverse=True)[1]
