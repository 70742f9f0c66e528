"""What the estimators share that select a structure by a table of scores: parameters, rows, warnings, part-runs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isde.archive import Arrays, over, under
from isde.arrays import Matrix, Vector
from isde.callbacks import CallbackSupport
from isde.data.checks import tied_columns, warn_far_rows
from isde.density import Scaling, scaling_for
from isde.density_estimator import SubsetScoreEstimator
from isde.errors import ISDEWarning, warn
from isde.fit_record import FitRecord
from isde.marginals.bounds import Bounds, RowsUsed
from isde.marginals.marginal import BlockFitter
from isde.partitions import Partition, RandomState
from isde.progress import say
from isde.run.executors import n_threads
from isde.scores import SubsetScores
from isde.scoring import Margin, Scoring, further_column, margin_over_divisions
from isde.screening import EXHAUSTIVE, SCREENED, every_up_to
from isde.stability import Score
from isde.subsets import Subset, SubsetFamily
from isde.tree_gains import EdgeGain, edge_gains

BLOCK_BYTES, TABLE_BYTES = 1700, 580
"""Of each row that a block is learned from, what some thirty experts say of it on two scales and temporary arrays; of
each subset, what is made of its scores at the end. Measured with 100,000 to 1,000,000 rows, and with 200 columns
(benchmarks/cost_curve.py)."""


class StructureEstimator(CallbackSupport, SubsetScoreEstimator, ABC):  # type: ignore[misc]
    """A density estimator with the parameters of `ISDE`, whose structure is the best by its table of subset scores.

    A subclass writes `__init__`, `fit` and `stability`, and says which solvers there are.
    """

    max_block_size: int
    marginal: Any
    split: Any
    penalty: str | None
    alpha: float | str | None
    bandwidths: Sequence[float] | None
    cv: int
    max_split_rows: int | None
    scale: str | None
    max_fit_rows: int | None
    max_centres: int | None
    solver: str
    n_jobs: int | None
    random_state: RandomState
    verbose: int
    search: str = EXHAUSTIVE  # a tree needs every subset

    subset_scores_: SubsetScores
    partition_: Partition
    tied_: tuple[str, ...]
    rows_used_: RowsUsed | None
    fit_record_: FitRecord | None = None  # of a model that was read from a file

    @abstractmethod
    def _check_solver(self) -> None:
        """Raise for a solver that does not exist."""

    def _scoring(self) -> Scoring:
        """The parameters, resolved, and checked before anything is done."""
        self._check_solver()
        if not isinstance(self.max_block_size, int | np.integer) or self.max_block_size < 1:
            raise ValueError(f"max_block_size={self.max_block_size!r} must be a whole number of at least 1.")
        return Scoring.of(
            self.max_block_size,
            marginal=self.marginal,
            split=self.split,
            penalty=self.penalty,
            alpha=self.alpha,
            bandwidths=self.bandwidths,
            cv=self.cv,
            max_split_rows=self.max_split_rows,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
            search=self.search,
        )

    def _bounds(self) -> Bounds:
        return Bounds(self.max_fit_rows, self.max_centres)

    def _score_rows(self, X: Any, given: SubsetScores | None) -> tuple[Matrix, Scaling, Scoring]:
        """Leave the table of scores in `subset_scores_`: the rows checked, how they are rescaled, and scored."""
        scoring = self._scoring()
        rows = self._check_rows(X, scoring)
        scoring = replace(scoring, needed_after=self._needed_at_the_end(rows, scoring))
        scaling = scaling_for(rows, self.scale, scoring.marginal)
        self.subset_scores_ = self._subset_scores(rows, scaling, scoring, given)
        return rows, scaling, scoring

    def _check_params(self) -> None:
        self._bounds()  # refused before anything is scored

    def _bounds_for(self, X: Matrix, marginal: BlockFitter, blocks: str) -> Bounds:
        """The bounds by which blocks are fitted; what these leave is noted, and said."""
        bounds = self._bounds()
        self.rows_used_ = marginal.rows_used(len(X), bounds)
        if self.verbose > 0:
            say(f"Fitting {blocks} on {self.rows_used_}")
        return bounds

    def _needed_at_the_end(self, X: Matrix, scoring: Scoring) -> int:
        """Bytes that the table and its blocks will take once subsets are scored, by all workers."""
        used = scoring.marginal.rows_used(len(X), self._bounds())
        every = scoring.max_block_size
        if scoring.search == SCREENED:
            every = every_up_to(X.shape[1], every)
        subsets = SubsetFamily(X.shape[1], every)
        return max(BLOCK_BYTES * used.fitted * n_threads(self.n_jobs), TABLE_BYTES * subsets.offsets[-1])

    def _check_rows(self, X: Any, scoring: Scoring) -> Matrix:
        """The rows to fit on; notes columns with repeated values, and warns of what does harm."""
        by_ranks = scoring.marginal.traits.by_ranks  # to which repeated values and far rows do no harm
        matrix = self._check(X, reset=True, ties=not by_ranks)
        self.tied_ = tied_columns(matrix, self._names()) if by_ranks else ()
        if not by_ranks:
            warn_far_rows(matrix, self._names())
        return matrix

    def _parts_of(self, X: Any) -> tuple[Score, Matrix, SubsetScores]:
        """For `stability`: how parts of the rows are scored, the rows, and the table of all of them."""
        check_is_fitted(self)
        self.subset_scores_.check_exhaustive("Comparing parts of the rows")
        rows = self._check(X, reset=False)
        scoring = replace(self._scoring(), max_block_size=self.subset_scores_.max_block_size, verbose=0)
        if not scoring.marginal.traits.by_ranks:
            rows = self.density_.scaling.transform(rows)

        def score(rows: Matrix, seed: int) -> SubsetScores:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ISDEWarning)  # said when the model was fitted
                return replace(scoring, random_state=seed).score(rows, columns=False)

        return score, rows, replace(self.subset_scores_, names=self._names())

    def score_blocks(self, X: Any) -> Matrix:
        """Log-density of each row in each block, shape (n rows, n blocks); adds up to `score_samples`."""
        [found] = self.score_batches([X])
        return found

    def score_batches(self, batches: Iterable[Any]) -> Iterator[Matrix]:
        """`score_blocks` of tables as they come, for more rows than fit into memory; what is to be said, once."""
        check_is_fitted(self)
        if self.tied_:
            warn(
                f"Repeated values in {', '.join(self.tied_[:5])}: their order was drawn at random to find the blocks, "
                "which does no harm, but no density exists there, and log-densities say how narrow the narrowest "
                "kernels are: leave such columns out, or add noise of the size of their rounding."
            )
        for X in batches:
            yield super().score_blocks(X)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        stability: Any = None,
        comparison: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write one HTML page on the fitted model, to send to a colleague: a single file, no rows in it.

        With rows `X`: the data beside the density, in cells, and the held-out comparison with independence.
        `stability` is what `stability(X)` returns, `comparison` the JSON of `isde compare`. Needs `isde[report]`.
        """
        check_is_fitted(self)
        pages = import_module("isde.report")  # by name: pages stand above the estimators that they show
        return pages.write_report(self, path, X, stability=stability, comparison=comparison)

    @property
    def selected_from_(self) -> SubsetScores:
        """The table of scores that the structure is the best by."""
        check_is_fitted(self)
        return self.subset_scores_

    @property
    def bandwidths_(self) -> Vector:
        check_is_fitted(self)
        return self.density_.bandwidths

    @property
    def edge_gains_(self) -> list[EdgeGain]:
        """Every pair of columns that share a block or clique, with what it gains."""
        check_is_fitted(self)
        return edge_gains(self.selected_from_, self.density_.tree)

    def _warn_no_density(self, structure: str, score: float, blocks: Sequence[Subset]) -> None:
        if score == -np.inf:
            without = [block for block in blocks if self.subset_scores_[block] == -np.inf]
            culprits = ", ".join(repr(self._names()[c]) for block in without for c in block)
            warn(
                f"Every {structure} scores -inf, since {culprits} had no density in some split of the rows: a single "
                "value there, or too few rows to fit on. Leave such columns out, fit on more rows, or use another "
                "marginal."
            )

    def _warn_larger_blocks(
        self, scoring: Scoring, X: Matrix, blocks: Sequence[Subset], margin: Margin = margin_over_divisions
    ) -> None:
        """Say which block would take one more column, where that gains more than chance."""
        k = self.subset_scores_.max_block_size
        if not 1 < k < self.n_features_in_:
            return
        rows = X if scoring.marginal.traits.by_ranks else self.density_.scaling.transform(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ISDEWarning)  # said of the whole table
            found = [further_column(self.subset_scores_, block, scoring, rows, margin) for block in blocks]
        joined = max((one for one in found if one is not None), key=lambda one: one.gain, default=None)
        if joined is not None:
            block, column = self.subset_scores_.label(joined.block), self._names()[joined.column]
            warn(
                f"{block} is as large as max_block_size={k} allows, and {column!r} would gain {joined.gain:.3g} nats "
                f"by joining it, more than chance gives: try max_block_size={k + 1}."
            )

    def _extra_to_archive(self) -> tuple[dict[str, Any], Arrays]:
        scores, arrays = self.subset_scores_.to_archive()
        header: dict[str, Any] = {"scores": scores, "tied": list(self.tied_)}
        if self.rows_used_ is not None:
            header["rows_used"] = asdict(self.rows_used_)
        return header, over("scores.", arrays)

    def _extra_from_archive(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        self.subset_scores_ = SubsetScores.from_archive(header["scores"], under("scores.", arrays))
        self.tied_ = tuple(str(text) for text in header.get("tied", ()))
        used = header.get("rows_used")  # files of earlier versions do not say
        self.rows_used_ = None if used is None else RowsUsed.from_json(used)
