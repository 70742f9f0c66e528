"""The score table: every subset of at most k columns with its held-out mean log-likelihood."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isde.archive import Arrays, write_archive
from isde.arrays import FrozenArrays, Mask, Vector
from isde.contents import Layout, check_layout, checked_names, numbers, whole
from isde.data.table import default_names
from isde.data.words import guarded, in_braces, some
from isde.errors import InputError, printable, warn
from isde.files import whole_file
from isde.listed_subsets import ListedSubsets
from isde.subsets import Subset, SubsetFamily

ALIGNED = ("scores", "bandwidths", "errors", "gain_errors", "charges")
"""The vectors of a table, one number for each subset."""


LARGEST = 1e300
"""Scores: sums over all columns stay in float64."""


def _add_up(array: Vector) -> Mask:
    return np.abs(array) <= LARGEST


def _is_gain(array: Vector) -> Mask:
    return _add_up(array) | np.isnan(array) | (array == -np.inf)


LAYOUT: Layout = {
    "scores": numbers("n", "scores, finite or -inf", lambda array: _add_up(array) | (array == -np.inf)),
    "bandwidths": numbers("n", "bandwidths above 0, or none", lambda array: ~(array <= 0) & (array != np.inf)),
    "errors": numbers("n", "errors of at least 0, or none", lambda array: ~(array < 0)),
    # Older files have no charges, and not every table has gains of its own.
    "gain_errors": numbers("n", "errors of at least 0, or none", lambda array: ~(array < 0), optional=True),
    "charges": numbers("n", "finite charges", lambda array: _add_up(array) & (array >= 0), optional=True),
    "dependence": numbers("n", "gains, finite or -inf or none", _is_gain, optional=True),
    "unsettled": whole("u"),
    "listed": whole("l", optional=True),  # ranks of the larger subsets, where not all of them were scored
}
"""What files hold of a table; "none" is NaN."""


def _not_given() -> Vector:
    return np.empty(0)


def check_is_scores(scores: Any) -> None:
    """Raise for what is no table of scores, with the attribute of a model that is one."""
    if not isinstance(scores, SubsetScores):
        raise TypeError(
            f"{type(scores).__name__} is no table of scores: give subset_scores_ of a fitted model, or what "
            "score_subsets returns."
        )


@dataclass(frozen=True, eq=False)
class SubsetScores(FrozenArrays):
    """Scores of all subsets of at most `max_block_size` columns, as arrays aligned with `subsets`."""

    subsets: SubsetFamily  # which subset stands where
    scores: Vector  # mean log-density of held-out rows, nats; mean over splits
    bandwidths: Vector  # bandwidth chosen, on the scale of the data scored; median over splits; NaN where none
    errors: Vector  # standard error of the score, from its spread over splits, or over rows; NaN: not known
    names: tuple[str, ...]  # of the columns
    unsettled: tuple[int, ...] = field(default=())  # columns whose bandwidth lies on the edge of the widest grid
    gain_errors: Vector = field(default_factory=_not_given)  # standard error of the gain, as `errors`; NaN: not known
    charges: Vector = field(default_factory=_not_given)  # what chance gives, which solvers take off; 0: nothing
    dearest_pair: float = (
        0.0  # the largest charge of any model for two columns: a pair may not show it, see `best_scores`
    )
    dependence: Vector | None = None  # gains scored by themselves: large column scores would swallow them
    left_out: int = 0  # larger subsets that were candidates, and are not among these since there were too many

    def __repr__(self) -> str:
        largest, names = self.subsets.max_size, some([printable(name) for name in self.names])
        return f"SubsetScores({len(self):,} subsets of at most {largest} of {len(self.names):,} columns: {names})"

    def __post_init__(self) -> None:
        n = len(self.subsets)
        for name, unknown in (("gain_errors", np.nan), ("charges", 0.0)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(n, unknown))
        for name in self._vectors():
            if getattr(self, name).shape != (n,):
                raise InputError(f"{n:,} subsets but {name} of shape {getattr(self, name).shape}.")
        super().__post_init__()
        if not np.isfinite(self.charges).all() or (self.charges < 0).any() or self.charges[: self.n_columns].any():
            raise InputError("Charges are finite, not below 0, and 0 for single columns.")
        wrong = np.flatnonzero(np.isnan(self.scores) | (self.scores == np.inf))
        if wrong.size:
            raise InputError(
                f"The score of {self.label(self.subsets[int(wrong[0])])} is {self.scores[wrong[0]]}: "
                "scores are finite numbers, or -inf for a subset that must not be chosen."
            )

    @property
    def n_columns(self) -> int:
        return self.subsets.n_columns

    @property
    def max_block_size(self) -> int:
        return self.subsets.max_size

    def __len__(self) -> int:
        return len(self.subsets)

    def __getitem__(self, subset: Iterable[int]) -> float:
        """Score of one subset."""
        return float(self.scores[self.subsets.index(subset)])

    def gain(self, block: Sequence[int]) -> float:
        """Score of a block minus the scores of its columns alone: what keeping them together is worth."""
        if self.dependence is not None:
            return float(self.dependence[self.subsets.index(block)])
        return self[block] - sum(self[(c,)] for c in block)

    @property
    def gains(self) -> Vector:
        """The gain of every subset; NaN where neither the subset nor its columns have a density."""
        if self.dependence is not None:
            return self.dependence
        with np.errstate(invalid="ignore"):  # -inf minus -inf: no gain can be told
            gains: Vector = self.scores - self.subsets.sum_over_members(self.scores[: self.n_columns])
        return gains

    def objective(self, block: Sequence[int]) -> float:
        """Score of a block minus what chance is charged for it."""
        return float(self.objectives[self.subsets.index(block)])

    @property
    def objectives(self) -> Vector:
        """Scores minus charges: what a partition is chosen by."""
        return self.scores - self.charges

    def uncharged(self) -> SubsetScores:
        """The table as it was scored, with nothing charged for chance."""
        return replace(self, charges=np.zeros(len(self)), dearest_pair=0.0)

    def charged_by_edge(self) -> SubsetScores:
        """The table for trees: a clique is charged as a block is, and no less than its pairs are.

        Charges of blocks keep strangers apart. In a tree a clique also stands against its columns with an edge less,
        and by charges of blocks that edge would come cheap: at 300 rows, 92 % of two-trees of eight columns had edges
        that are not there, none by this table, and no true edge is lost (`experiments/trees.py charges`).
        """
        if self.max_block_size < 2:
            return self
        pairs = self.charges[self.subsets.of_size(2)]
        return replace(self, charges=np.maximum(self.charges, self.subsets.sum_over_pairs(pairs)))

    def label(self, subset: Sequence[int]) -> str:
        """The names of a subset's columns in braces."""
        return in_braces(self.names[c] for c in subset)

    def restrict(self, max_block_size: int) -> SubsetScores:
        """The table for smaller blocks: a prefix of this one, nothing is scored again."""
        if max_block_size < 1:
            raise ValueError(f"max_block_size={max_block_size} must be at least 1.")
        if max_block_size > self.max_block_size and self.max_block_size < self.n_columns:
            raise ValueError(
                f"max_block_size={max_block_size} but the table has subsets of at most {self.max_block_size} columns: "
                "score again with the larger size."
            )
        subsets = self.subsets.up_to(max_block_size)
        left_out = 0 if subsets.complete == subsets.max_size else self.left_out
        vectors = {name: getattr(self, name)[: len(subsets)] for name in self._vectors()}
        return replace(self, subsets=subsets, left_out=left_out, **vectors)

    def only(self, subsets: SubsetFamily) -> SubsetScores:
        """The table of some of the subsets, all single columns among them."""
        at = np.concatenate([self.subsets.find(subsets.members(size)) for size in range(1, subsets.max_size + 1)])
        if (at < 0).any():
            raise ValueError(f"{subsets[int(np.argmin(at))]} is not in the table.")
        return replace(self, subsets=subsets, **{name: getattr(self, name)[at] for name in self._vectors()})

    @property
    def is_exhaustive(self) -> bool:
        """Whether every subset of at most `max_block_size` columns was scored."""
        return self.subsets.complete == self.subsets.max_size

    def check_exhaustive(self, what: str) -> None:
        """Raise, for `what` that needs every subset, where not all of them were scored."""
        if not self.is_exhaustive:
            raise InputError(
                f"{what} needs the score of every subset, and search='screened' scored candidates alone: use "
                f"max_block_size={self.subsets.complete}, of which every subset is there, or search='exhaustive'."
            )

    def _vectors(self) -> tuple[str, ...]:
        """The names of the vectors it has."""
        return ALIGNED if self.dependence is None else (*ALIGNED, "dependence")

    def shifted(self, per_column: Vector) -> SubsetScores:
        """Scores plus a constant for each column of a subset: a change of the columns' units."""
        return replace(self, scores=self.scores + self.subsets.sum_over_members(per_column))

    @classmethod
    def from_dict(cls, scores: Mapping[Any, float], names: Sequence[str] | None = None) -> SubsetScores:
        """A table from {(0,): 0.8, (0, 1): 1.9, ...}.

        Every column needs its own score; a larger subset that is missing gets -inf and is never chosen.

        >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (0, 1): 1.9})
        >>> table[0, 1], round(table.gain((0, 1)), 3)
        (1.9, 0.2)
        """
        if not scores:
            raise InputError("The table is empty: give a score for each column.")
        keyed: dict[Subset, float] = {}
        for key, score in scores.items():
            subset = _as_subset(key)
            if subset in keyed:
                raise InputError(f"The subset {subset} stands in the table twice.")
            keyed[subset] = float(score)
        singles = {s[0] for s in keyed if len(s) == 1}
        n_columns = len(names) if names is not None else max(max(s) for s in keyed) + 1
        missing = sorted(set(range(n_columns)) - singles)
        if missing:
            raise InputError(f"Column {missing[0]} has no score of its own: the table needs every single column.")
        unknown = sorted({c for s in keyed for c in s if c >= n_columns})
        if unknown:
            raise InputError(f"Column {unknown[0]} is out of range: there are {n_columns} names.")
        subsets = SubsetFamily(n_columns, max(map(len, keyed)))
        values = np.full(len(subsets), -np.inf)
        for subset, score in keyed.items():
            values[subsets.index(subset)] = score
        nothing = np.full(len(subsets), np.nan)
        return cls(subsets, values, nothing, nothing, tuple(names) if names else default_names(n_columns))

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """One row per subset: its columns, score, bandwidth, gain, errors, and what chance gives (`charge`).

        As pandas, polars or pyarrow.
        """
        import narwhals.stable.v2 as nw

        if find_spec(backend) is None:
            raise InputError(f"backend={backend!r} is not installed: pip install {backend}, or name another one.")
        return nw.from_dict(self._columns(), backend=backend).to_native()

    def _columns(self) -> dict[str, Any]:
        """One row for each subset."""
        return {
            "subset": [" ".join(map(str, subset)) for subset in self.subsets],
            "columns": [", ".join(self.names[c] for c in subset) for subset in self.subsets],
            "size": self.subsets.sizes.astype(np.int64),
            "score": self.scores,
            "error": self.errors,
            "bandwidth": self.bandwidths,
            "gain": self.gains,
            "gain_error": self.gain_errors,
            "charge": self.charges,
        }

    def export(self, path: str | Path) -> None:
        """Write `to_frame` as csv, or as parquet (with pyarrow), by the ending of the name; floats are exact."""
        path = Path(path)
        if path.suffix == ".parquet":
            if find_spec("pyarrow") is None:
                raise InputError("Parquet files need pyarrow: pip install 'isde[io]', or write csv.")
            import pyarrow.parquet as pq

            with whole_file(path) as file:
                pq.write_table(self.to_frame("pyarrow"), file)
        elif path.suffix == ".csv":
            columns = self._columns()
            columns["columns"] = [guarded(names) for names in columns["columns"]]
            with whole_file(path) as file:
                text = io.TextIOWrapper(file, encoding="utf-8", newline="")
                writer = csv.writer(text)
                writer.writerow(columns)
                writer.writerows(zip(*(_listed(values) for values in columns.values()), strict=True))
                text.detach()  # which flushes; the file is closed by its owner
        else:
            raise InputError(f"{path} ends neither in .csv nor in .parquet: name it so.")

    def save(self, path: str | Path) -> None:
        """Write the table to one file; `isde.load` reads it."""
        write_archive(path, "scores", *self.to_archive())

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        header = {
            "n_columns": self.n_columns,
            "max_block_size": self.max_block_size,
            "names": list(self.names),
            "dearest_pair": self.dearest_pair,
        }
        arrays = {name: getattr(self, name) for name in self._vectors()}
        arrays["unsettled"] = np.array(self.unsettled, dtype=np.int64)
        if isinstance(self.subsets, ListedSubsets):
            larger = [self.subsets.ranks(s) for s in range(self.subsets.complete + 1, self.max_block_size + 1)]
            header["screened"] = {"listed": list(map(len, larger)), "left_out": self.left_out}
            arrays["listed"] = np.concatenate([np.empty(0, dtype=np.int64), *larger])
        return header, arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays) -> SubsetScores:
        names, largest = checked_names(header["names"]), header["max_block_size"]
        check_layout(arrays, LAYOUT)
        aligned: dict[str, Any] = {name: own for name, own in arrays.items() if name not in ("unsettled", "listed")}
        unsettled, dearest = tuple(arrays["unsettled"].tolist()), float(header.get("dearest_pair", 0.0))
        if header["n_columns"] != len(names) or not set(unsettled) <= set(range(len(names))):
            raise InputError("A score table with other names than columns: the file is damaged.")
        # All subsets of so many columns are 2^largest - 1 alone: with fewer scores their number need not be counted.
        if type(largest) is not int or not 0 < largest <= len(arrays["scores"]).bit_length() or not 0 <= dearest < inf:
            raise InputError("A score table with other subsets than scores: the file is damaged.")
        subsets, left_out = SubsetFamily(len(names), largest), 0
        if "screened" in header:
            subsets, left_out = _listed_subsets(len(names), largest, header["screened"], arrays["listed"])
        rest: dict[str, Any] = {"unsettled": unsettled, "dearest_pair": dearest, "left_out": left_out}
        return cls(subsets, names=names, **rest, **aligned)


def warn_unsettled(scores: SubsetScores) -> None:
    """Warn, naming the columns, where the default grid of bandwidths could not grow far enough."""
    if scores.unsettled:
        names = ", ".join(repr(scores.names[c]) for c in scores.unsettled)
        warn(
            f"The best bandwidth for {names} lies beyond the widest grid: repeated values or far outliers; "
            "leave the column out, transform it, or pass bandwidths=."
        )


def _listed_subsets(
    n_columns: int, largest: int, saved: Mapping[str, Any], ranks: NDArray[np.int64]
) -> tuple[SubsetFamily, int]:
    """The subsets of a table that does not hold all, and how many candidates were left out."""
    counts, left_out = saved["listed"], saved["left_out"]
    if any(type(n) is not int or n < 0 for n in (*counts, left_out)) or sum(counts) != len(ranks):
        raise InputError("A score table with another list of subsets than its header says: the file is damaged.")
    larger = np.split(ranks, np.cumsum(counts)[:-1]) if counts else []
    return ListedSubsets(n_columns, largest - len(counts), larger), left_out


def _listed(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _as_subset(key: Any) -> Subset:
    columns = (key,) if isinstance(key, int | np.integer) else tuple(key)
    if not columns or any(not isinstance(c, int | np.integer) or c < 0 for c in columns):
        raise InputError(f"{key!r} is no subset: use tuples of column numbers, counted from 0.")
    if len(set(columns)) < len(columns):
        raise InputError(f"The subset {key!r} names a column twice.")
    return tuple(sorted(int(c) for c in columns))
