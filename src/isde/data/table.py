"""A table, and which of its columns are meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from isde.arrays import FrozenArrays, Matrix
from isde.data.words import some
from isde.errors import InputError, printable


@dataclass(frozen=True)
class Table(FrozenArrays):
    """Numbers and the names of their columns."""

    X: Matrix  # N rows, d columns
    names: tuple[str, ...]  # d names, all different


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


def check_frame_names(X: Any) -> None:
    """Raise where columns of a pandas or pyarrow frame share a name; polars has no such frames."""
    names = X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns
    repeated = [repr(str(name)) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"The table has more than one column named {some(repeated)}: rename them, or leave them out.")


def columns_of_model(table: Table, names: Sequence[str], where: str) -> Table:
    """The columns that a model was fitted on, in its order; a table without names has them by position."""
    wanted = tuple(names)
    if set(wanted) <= set(table.names):
        return Table(table.X[:, [table.names.index(name) for name in wanted]], wanted)
    if table.names == default_names(len(wanted)):
        return Table(table.X, wanted)
    missing = next(name for name in wanted if name not in table.names)
    raise InputError(f"{where} has no column {missing!r}, which the model needs.")


def column_positions(names: Sequence[str], wanted: Sequence[str] | None, where: str) -> list[int]:
    """The columns to keep, in the order asked for, or all; names of the others may be empty or repeated."""
    if wanted is None:
        _refuse_unnamed(names, where)
        wanted = names
    else:
        _refuse_unknown(wanted, names, where)
    counts = Counter(names)
    repeated = [repr(name) for name in dict.fromkeys(wanted) if counts[name] > 1]
    if repeated:
        raise InputError(
            f"{where} has more than one column named {some(repeated)}: rename them, or leave them out (columns=)."
        )
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in wanted]


def _refuse_unnamed(names: Sequence[str], where: str) -> None:
    unnamed = [i for i, name in enumerate(names) if not name]
    if unnamed == [0]:
        raise InputError(
            f"Column 1 of {where} has no name (a row index?): leave it out with columns=, or save the table without "
            "its index (index=False)."
        )
    if unnamed:
        places = some([str(i + 1) for i in unnamed])
        raise InputError(f"{where} has no name for column {places}: write one, or leave it out with columns=.")


def _refuse_unknown(wanted: Sequence[str], names: Sequence[str], where: str) -> None:
    repeated = [name for name in wanted if list(wanted).count(name) > 1]
    if repeated:
        raise InputError(f"The column {repeated[0]!r} is asked for twice.")
    unknown = [name for name in wanted if name not in names or not name]
    if unknown:
        known = [printable(name) for name in names if name]
        raise InputError(f"{where} has no column {unknown[0]!r}; it has {some(known, 12)}.")
