"""The score table: every subset of at most k columns with its held-out mean log-likelihood."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isde.archive import Arrays, write_archive
from isde.errors import InputError, ISDEWarning
from isde.marginals import BestMarginal, Marginal, MarginalScores, families_of, resolve_marginal
from isde.progress import progress_bar, say
from isde.subsets import Subset, SubsetFamily
from isde.tables import default_names

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SubsetScores:
    """Scores of all subsets of at most `max_block_size` columns, as arrays aligned with `subsets`."""

    subsets: SubsetFamily  # which subset stands where
    scores: Vector  # mean log-density of held-out rows, nats; mean over splits
    bandwidths: Vector  # bandwidth chosen, on the scale of the data scored; median over splits; NaN where none
    errors: Vector  # standard error of the score, from its spread over splits; NaN for a single split
    names: tuple[str, ...]  # of the columns
    unsettled: tuple[int, ...] = field(default=())  # columns whose bandwidth lies on the edge of the widest grid

    def __post_init__(self) -> None:
        n = len(self.subsets)
        for name in ("scores", "bandwidths", "errors"):
            if getattr(self, name).shape != (n,):
                raise InputError(f"{n:,} subsets but {name} of shape {getattr(self, name).shape}.")
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
        return self[block] - sum(self[(c,)] for c in block)

    def label(self, subset: Sequence[int]) -> str:
        """The names of a subset's columns in braces."""
        return "{" + ", ".join(self.names[c] for c in subset) + "}"

    def restrict(self, max_block_size: int) -> SubsetScores:
        """The table for smaller blocks: a prefix of this one, nothing is scored again."""
        if max_block_size < 1:
            raise ValueError(f"max_block_size={max_block_size} must be at least 1.")
        if max_block_size > self.max_block_size and self.max_block_size < self.n_columns:
            raise ValueError(
                f"max_block_size={max_block_size} but the table has subsets of at most {self.max_block_size} columns: "
                "score again with the larger size."
            )
        family = SubsetFamily(self.n_columns, max_block_size)
        n = len(family)
        return replace(
            self,
            subsets=family,
            scores=self.scores[:n],
            bandwidths=self.bandwidths[:n],
            errors=self.errors[:n],
        )

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
        family = SubsetFamily(n_columns, max(map(len, keyed)))
        values = np.full(len(family), -np.inf)
        for subset, score in keyed.items():
            values[family.index(subset)] = score
        nothing = np.full(len(family), np.nan)
        return cls(family, values, nothing, nothing, tuple(names) if names else default_names(n_columns))

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """One row per subset: columns, size, score, error, bandwidth, gain; as pandas, polars or pyarrow."""
        import narwhals.stable.v2 as nw

        if find_spec(backend) is None:
            raise InputError(f"backend={backend!r} is not installed: pip install {backend}, or name another one.")
        alone = self.subsets.sum_over_members(self.scores[: self.n_columns])
        with np.errstate(invalid="ignore"):  # -inf minus -inf: no gain can be told
            gains = self.scores - alone
        frame = nw.from_dict(
            {
                "subset": [" ".join(map(str, subset)) for subset in self.subsets],
                "columns": [", ".join(self.names[c] for c in subset) for subset in self.subsets],
                "size": self.subsets.sizes.astype(np.int64),
                "score": self.scores,
                "error": self.errors,
                "bandwidth": self.bandwidths,
                "gain": gains,
            },
            backend=backend,
        )
        return frame.to_native()

    def save(self, path: str | Path) -> None:
        """Write the table to one file; `isde.load` reads it."""
        write_archive(path, "scores", *self.to_archive())

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        header = {
            "n_columns": self.n_columns,
            "max_block_size": self.max_block_size,
            "names": list(self.names),
        }
        arrays = {"scores": self.scores, "bandwidths": self.bandwidths, "errors": self.errors}
        return header, arrays | {"unsettled": np.array(self.unsettled, dtype=np.int64)}

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays) -> SubsetScores:
        family = SubsetFamily(int(header["n_columns"]), int(header["max_block_size"]))
        if len(header["names"]) != family.n_columns:
            raise InputError("A score table with other names than columns: the file is damaged.")
        names = tuple(str(n) for n in header["names"])
        unsettled = tuple(arrays["unsettled"].tolist())
        return cls(family, arrays["scores"], arrays["bandwidths"], arrays["errors"], names, unsettled)


def score_splits(
    X: Matrix,
    splits: Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]],
    *,
    max_block_size: int,
    marginal: Marginal | BestMarginal,
    n_jobs: int | None,
    names: Sequence[str],
    verbose: int,
) -> SubsetScores:
    """Score every subset on each split of the rows: mean score, its standard error, median bandwidth.

    Of several families each subset takes the one with the best mean: were it taken split by split, the luck of a
    family on the rows that score would enter the mean.
    """
    parts, subsets, families = list(splits), SubsetFamily(X.shape[1], max_block_size), families_of(marginal)
    if verbose > 0:
        fit, score = parts[0]
        costs = [one.announce(X[fit], X[score], subsets, n_splits=len(parts), n_jobs=n_jobs) for one in families]
        say((f"{len(parts)} splits of the rows: " if len(parts) > 1 else "") + "; then ".join(costs))
    work = f"Scoring {len(subsets):,} subsets" + (f" on {len(parts)} splits" if len(parts) > 1 else "")
    tables = []
    with progress_bar(len(families) * len(parts) * len(subsets), work, show=verbose > 0) as advance:
        for family in families:
            found = [
                family.score_subsets(X[fit], X[score], subsets, n_jobs=n_jobs, advance=advance) for fit, score in parts
            ]
            overlap = sum(len(score) for _, score in parts) / sum(len(fit) for fit, _ in parts)
            tables.append(average_scores([_as_table(one, subsets, names) for one in found], overlap))
    return best_scores(tables)


def _as_table(found: MarginalScores, subsets: SubsetFamily, names: Sequence[str]) -> SubsetScores:
    unsettled = tuple(np.flatnonzero(found.unsettled[: subsets.n_columns]).tolist())
    no_error = np.full(len(subsets), np.nan)
    return SubsetScores(subsets, found.scores, found.bandwidths, no_error, tuple(names), unsettled)


def score_subsets(
    X_fit: ArrayLike,
    X_score: ArrayLike,
    *,
    max_block_size: int,
    marginal: Any = "kde",
    bandwidths: Sequence[float] | None = None,
    cv: int = 5,
    n_jobs: int | None = None,
    names: Sequence[str] | None = None,
    verbose: int = 0,
) -> SubsetScores:
    """Score every subset of at most `max_block_size` columns.

    The score of S is mean_i log f_S(X_score[i, S]) with f_S fitted on X_fit[:, S]. The data are taken as they are:
    the default bandwidths (0.01 to 1, growing where they must) suit columns scaled to [0, 1].
    """
    fit, score = _as_rows(X_fit, "X_fit"), _as_rows(X_score, "X_score")
    if fit.shape[1] != score.shape[1]:
        raise ValueError(f"X_fit has {fit.shape[1]} columns, X_score has {score.shape[1]}.")
    if max_block_size < 1:
        raise ValueError(f"max_block_size={max_block_size} must be at least 1.")
    labels = default_names(fit.shape[1]) if names is None else tuple(names)
    rows, m = np.concatenate([fit, score]), len(fit)
    return score_splits(
        rows,
        [(np.arange(m), np.arange(m, len(rows)))],
        max_block_size=max_block_size,
        marginal=resolve_marginal(marginal, bandwidths=bandwidths, cv=cv),
        n_jobs=n_jobs,
        names=labels,
        verbose=verbose,
    )


def average_scores(tables: Sequence[SubsetScores], overlap: float) -> SubsetScores:
    """One table from several splits of the same rows: mean score, its standard error, median bandwidth.

    Splits share rows: more of them take away the chance of the split, not that of the rows. Hence `overlap`, rows that
    score for each row that fits (Nadeau and Bengio 2003).
    """
    if len(tables) == 1:
        return tables[0]
    scores = np.stack([table.scores for table in tables])
    with np.errstate(invalid="ignore"):  # -inf minus -inf: a subset no split could fit has no spread
        errors = scores.std(axis=0, ddof=1) * np.sqrt(1 / len(tables) + overlap)
    return replace(
        tables[0],
        scores=scores.mean(axis=0),
        errors=errors,
        bandwidths=np.median([table.bandwidths for table in tables], axis=0),
        unsettled=tuple(sorted({c for table in tables for c in table.unsettled})),
    )


def best_scores(tables: Sequence[SubsetScores]) -> SubsetScores:
    """One table from those of several families: for each subset, what the family with the best score says."""
    best, every = np.argmax([table.scores for table in tables], axis=0), np.arange(len(tables[0]))
    return replace(
        tables[0],
        scores=np.stack([table.scores for table in tables])[best, every],
        errors=np.stack([table.errors for table in tables])[best, every],
        bandwidths=np.stack([table.bandwidths for table in tables])[best, every],
        unsettled=tuple(c for c in range(tables[0].n_columns) if c in tables[best[c]].unsettled),
    )


def warn_unsettled(scores: SubsetScores) -> None:
    """Warn, naming the columns, where the default grid of bandwidths could not grow far enough."""
    if scores.unsettled:
        names = ", ".join(repr(scores.names[c]) for c in scores.unsettled)
        warnings.warn(
            f"The best bandwidth for {names} lies beyond the widest grid: repeated values or far outliers; "
            "leave the column out, transform it, or pass bandwidths=.",
            ISDEWarning,
            stacklevel=3,
        )


def _as_rows(X: ArrayLike, name: str) -> Matrix:
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{name} must be a matrix with rows and columns, got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} has NaN or infinite values.")
    return rows


def _as_subset(key: Any) -> Subset:
    columns = (key,) if isinstance(key, int | np.integer) else tuple(key)
    if not columns or any(not isinstance(c, int | np.integer) or c < 0 for c in columns):
        raise InputError(f"{key!r} is no subset: use tuples of column numbers, counted from 0.")
    if len(set(columns)) < len(columns):
        raise InputError(f"The subset {key!r} names a column twice.")
    return tuple(sorted(int(c) for c in columns))
