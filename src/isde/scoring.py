"""Step 1: the score table of some rows, with everything that it depends on as one value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from isde.arrays import Matrix, Vector
from isde.chance import Chance, SplitTable, all_margins, draw_chance
from isde.data.checks import as_table
from isde.data.table import default_names
from isde.engine.grid import BandwidthGrid
from isde.errors import ISDEWarning, PartialWarning
from isde.first_look import bytes_of_looks, looks_of_triples
from isde.joined_tables import best_scores, with_columns
from isde.listed_subsets import EVERY_UP_TO, ListedSubsets
from isde.marginals import DEFAULT_MARGINAL, resolve_marginal
from isde.marginals.bounds import LEAST_SPLIT_ROWS, MAX_SPLIT_ROWS, check_bound
from isde.marginals.marginal import Marginal, SubsetScorer
from isde.marginals.two_step import TwoStepMarginal
from isde.partitions import RandomState
from isde.penalties import check_penalty, penalized
from isde.progress import say
from isde.run.executors import check_jobs, n_threads
from isde.run.folder import RunFolder
from isde.run.store import MemoryStore, Part, Store
from isde.score_costs import check_table
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows
from isde.scores import SubsetScores
from isde.screening import EXHAUSTIVE, SCREENED, check_search, every_up_to, in_words_of_search, screen
from isde.splits import (
    Split,
    draw_splits,
    preset_for,
    resolve_split,
    rows_at_most,
    shuffled,
    split_key,
)
from isde.subsets import Subset, SubsetFamily

DEFAULT_ALPHA = 0.05
LARGEST_SEED = (1 << 32) - 1

Margin = Callable[[SubsetScores], float]
"""What all columns of a table score together more than in smaller blocks."""


@dataclass(frozen=True)
class Scoring:
    """How subsets are scored: all parameters resolved, and checked to go together."""

    max_block_size: int
    marginal: Marginal
    alone: SubsetScorer  # of columns by themselves, where the marginal scores dependence alone
    split: Any  # as given: chance draws splits of its own
    penalty: str | None
    alpha: float | None  # probability of any false block among independent columns; None: chance is not charged
    max_split_rows: int | None  # of a table of more rows, splits are as large as those of a table of so many
    n_jobs: int | None
    random_state: RandomState
    verbose: int
    search: str = EXHAUSTIVE
    needed_after: int = 0  # bytes that what follows will need: memory is said once, before anything is done

    @classmethod
    def of(
        cls,
        max_block_size: int = 3,
        *,
        marginal: Any = DEFAULT_MARGINAL,
        split: Any = None,
        penalty: str | None = None,
        alpha: float | str | None = "auto",
        bandwidths: Sequence[float] | None = None,
        cv: int = 5,
        max_split_rows: int | None = MAX_SPLIT_ROWS,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        search: str = EXHAUSTIVE,
    ) -> Scoring:
        """From the parameters of `ISDE`; raises for those that do not go together."""
        check_jobs(n_jobs)
        _check_seed(random_state)
        if not isinstance(verbose, int | float | np.number):
            raise ValueError(f"verbose={verbose!r} is no number: give 0 for silence, or 1 for progress.")
        BandwidthGrid.of(bandwidths)  # refused before anything is scored, by whom it may concern later
        family = resolve_marginal(marginal, bandwidths=bandwidths, cv=cv)
        alone = resolve_marginal("stack", bandwidths=bandwidths, cv=cv) if family.traits.by_ranks else family
        check_penalty(penalty, split, family)
        check_search(search, penalty)
        check_bound("max_split_rows", max_split_rows, LEAST_SPLIT_ROWS)
        level = resolve_alpha(alpha, family)
        resolved = family, alone, split, penalty, level, max_split_rows
        return cls(max_block_size, *resolved, n_jobs, random_state, verbose, search)

    def score(self, X: Matrix, names: Sequence[str] | None = None, *, columns: bool = True) -> SubsetScores:
        """The table of all subsets, in the units of `X`.

        On the copula scale a score is what the columns say together plus what each scores by itself; the second part
        has no say in the structure, and `columns=False` leaves it out.
        """
        labels = default_names(X.shape[1]) if names is None else tuple(names)
        return self.score_splits(X, self._splits(X), labels, columns=columns)

    def score_in(self, run: RunFolder, facts: Mapping[str, Any], X: Matrix, names: Sequence[str]) -> SubsetScores:
        """`score`, kept in a run folder as it comes; what the folder has is not scored again."""
        seed = run.seed() if self.random_state is None and self.penalty is None else None
        seeded = self if seed is None else replace(self, random_state=seed)
        splits, size = seeded._splits(X), min(self.max_block_size, X.shape[1])
        with run.store(facts, size, [split_key(split) for split in splits], seed) as store:
            return seeded.score_splits(X, splits, names, store=store, sizes=store.sizes)

    def score_splits(
        self,
        X: Matrix,
        splits: Sequence[Split],
        names: Sequence[str],
        *,
        columns: bool = True,
        store: Store | None = None,
        sizes: Sequence[int] = (),
    ) -> SubsetScores:
        """`score` with the splits given; `store` and `sizes` as in `score_models`."""
        every = SubsetFamily(X.shape[1], self.max_block_size)
        small, first = every, every
        if self.search == SCREENED:
            small = every.up_to(min(EVERY_UP_TO, every.max_size))
            first = every.up_to(every_up_to(every.n_columns, every.max_size))
        check_table(first, len(splits), self.marginal.n_models, in_memory=store is None)
        # What is scored first is not scored again with candidates.
        kept = MemoryStore() if store is None and self.search == SCREENED else _part(store, "table")
        lists: list[ListedSubsets] = []

        def scored(subsets: SubsetFamily) -> list[SubsetScores]:
            how = How(
                self.n_jobs,
                kept,
                verbose=self.verbose,
                needed_after=self.needed_after,
                needed_beside=self._bytes_of_looks(X, subsets),
            )
            rows = SplitRows(self.marginal, X, splits)
            with _threads_for(self.marginal):
                return score_models(rows, subsets, names, how, sizes=sizes, lists=lists)

        def with_list(new: ListedSubsets, whole: ListedSubsets) -> SubsetScores:
            lists.append(new)
            return best_scores(self._charged(scored(whole), chance, len(X)))

        models, chance = scored(first), self._chance(splits, small, every.max_size, len(X), _part(store, "chance"))
        scores = best_scores(self._charged(models, chance, len(X)))
        if first.max_size < every.max_size:
            scores = screen(scores, every.max_size, with_list, lambda: self._look(X))
            self._say_screened(scores)
        if self.marginal.traits.by_ranks and columns:
            scores = with_columns(scores, self._columns_alone(X, splits, names, _part(store, "alone")))
        return scores if self.penalty is None else penalized(scores, self.penalty, len(X), self.marginal)

    def _columns_alone(
        self, X: Matrix, splits: Sequence[Split], names: Sequence[str], store: Store | None
    ) -> SubsetScores:
        """What each column scores by itself, rescaled to [0, 1] for that: a far row would swallow all digits."""
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ISDEWarning)  # few rows: said when the subsets were scored
            warnings.simplefilter("always", PartialWarning)
            single = SubsetFamily(X.shape[1], 1)
            rows = SplitRows(self.alone, (X - low) / width, splits)
            with _threads_for(self.alone):
                models = score_models(rows, single, names, How(self.n_jobs, store))
        return best_scores(models).shifted(-np.log(width))

    def _chance(
        self, splits: Sequence[Split], subsets: SubsetFamily, max_size: int, n_rows: int, store: Store | None
    ) -> Chance | None:
        """What chance gives subsets of up to `max_size` columns; None where it is not charged."""
        alpha = self.alpha
        if alpha is None or max_size == 1:
            return None
        if self.verbose > 0:
            say("Measuring what chance gives: some 20 s of one core at most, or as long as the scoring")
        table = SplitTable(preset_for(self.split, n_rows), tuple(splits), n_rows, self.max_split_rows)
        chance = draw_chance(self._scorer, table, subsets, self.n_jobs, store, max_size=max_size)
        smallest = chance.smallest_alpha(subsets)
        if alpha < smallest:
            raise ValueError(
                f"alpha={alpha:g} is smaller than {chance.n_tables} tables of chance can tell: "
                f"use alpha={1.05 * smallest:.2g} or more, or alpha=None."  # 5 % more, for rounding
            )
        if self.verbose > 0:
            say(
                f"Chance: measured on {chance.n_tables} tables of {chance.n_rows:,} rows without structure, charged so "
                f"that independent columns show a block in at most {100 * alpha:g} % of tables"
            )
        return chance

    def _bytes_of_looks(self, X: Matrix, first: SubsetFamily) -> int:
        """What a first look at triples will take, if there is one after these subsets were scored."""
        if self.search != SCREENED or first.max_size >= min(self.max_block_size, EVERY_UP_TO, X.shape[1]):
            return 0
        n_rows = rows_at_most(len(X), self.max_split_rows)
        return bytes_of_looks(n_rows, X.shape[1], n_threads(self.n_jobs))

    def _look(self, X: Matrix) -> Vector:
        """What each triple seems to gain, by as many rows as splits may have."""
        rows = X[shuffled(len(X))[: rows_at_most(len(X), self.max_split_rows)]]
        if self.verbose > 0:
            say(f"Looking at {comb(X.shape[1], 3):,} triples of columns")
        with threadpool_limits(1, "blas"):
            return looks_of_triples(rows, self.n_jobs)

    def _charged(self, models: list[SubsetScores], chance: Chance | None, n_rows: int) -> list[SubsetScores]:
        """Each model's table with what chance gives it."""
        if chance is None or self.alpha is None:
            return models
        charges = chance.charges(models[0].subsets, rows_at_most(n_rows, self.max_split_rows), self.alpha)
        return [replace(model, charges=charge) for model, charge in zip(models, charges, strict=True)]

    def _say_screened(self, scores: SubsetScores) -> None:
        if self.verbose > 0:
            say(f"Screened: {in_words_of_search(scores)}")

    @property
    def _scorer(self) -> SubsetScorer:
        """What scores subsets, without what fits blocks: chance is the same for all that score alike."""
        return self.marginal.scoring if isinstance(self.marginal, TwoStepMarginal) else self.marginal

    def _splits(self, X: Matrix) -> list[Split]:
        if self.penalty is None:
            own = rows_at_most(len(X), self.max_split_rows)
            if self.verbose > 0 and own < len(X):
                say(f"Of {len(X):,} rows each split draws its own, as many as it would have of {own:,}")
            return draw_splits(resolve_split(preset_for(self.split, len(X)), self.random_state), X, self.max_split_rows)
        every = np.arange(len(X))
        return [(every, every)]


def resolve_alpha(alpha: float | str | None, marginal: Marginal) -> float | None:
    """The probability of a false block that is meant; raises for one that the marginal cannot promise."""
    by_ranks = marginal.traits.by_ranks
    if alpha is None or alpha == "auto":
        return DEFAULT_ALPHA if alpha == "auto" and by_ranks else None
    if isinstance(alpha, str) or not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must be a probability between 0 and 1, 'auto', or None.")
    if not by_ranks:
        raise ValueError(
            f"alpha={alpha} needs scores on the copula scale, marginal='copula+stack' or 'copula': "
            "elsewhere what chance gives depends on the columns; leave it out."
        )
    return float(alpha)


def _threads_for(scorer: SubsetScorer) -> Any:
    """Small matrices by many threads are slow; a foreign estimator may have large ones."""
    return threadpool_limits(None if scorer.traits.in_processes else 1, "blas")


def _part(store: Store | None, name: str) -> Store | None:
    return None if store is None else Part(store, name)


@dataclass(frozen=True)
class Joined:
    """A block that one more column would join."""

    block: Subset
    column: int
    gain: float  # over the best structure of all these columns in smaller blocks, nats a row


def margin_over_divisions(scores: SubsetScores) -> float:
    """What all columns of a table score together more than in their best division into smaller blocks."""
    return float(all_margins(scores)[-1])


def further_column(
    scores: SubsetScores, block: Subset, scoring: Scoring, X: Matrix, margin: Margin = margin_over_divisions
) -> Joined | None:
    """What a block of the largest size would gain by one more column, if more than chance gives.

    The column that goes best with some of the block's is scored together with the block, in a table of their own; the
    gain is its `margin`. Chance is what a block of the largest size is charged more than a smaller one, and twice the
    standard error.
    """
    if len(block) < scores.max_block_size:
        return None
    column = _most_dependent(scores, block)
    own = [*block, column]
    few = replace(scoring, max_block_size=len(own), alpha=None, verbose=0, search=EXHAUSTIVE)
    small = few.score(X[:, own], columns=False)
    last = len(small) - 1
    gain = margin(small)
    charges = scores.charges[scores.subsets.index(block)], scores.charges[scores.subsets.index(block[:-1])]
    noise = np.nan_to_num(2 * small.gain_errors[last])
    return Joined(block, column, gain) if gain > max(charges[0] - charges[1], noise) else None


def _most_dependent(scores: SubsetScores, block: Subset) -> int:
    """The column outside a block that gains most with some of its columns, as many as any column was scored with."""
    parts = list(combinations(block, min(len(block), scores.subsets.complete) - 1))
    with_some = {
        c: max(scores.gain(tuple(sorted((*part, c)))) - scores.gain(part) for part in parts)
        for c in set(range(scores.n_columns)) - set(block)
    }
    return max(with_some, key=lambda c: with_some[c])


def _check_seed(random_state: RandomState) -> None:
    """Raise for what draws no splits, a NumPy Generator among it."""
    try:
        check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state={random_state!r} is no seed: give a whole number from 0 to {LARGEST_SEED}, a "
            "numpy.random.RandomState, or None."
        ) from None


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
    """Score every subset of at most `max_block_size` columns; nothing is charged for chance.

    The score of S is mean_i log f_S(X_score[i, S]) with f_S fitted on X_fit[:, S]. The data are taken as they are:
    the default bandwidths (0.01 to 1, growing where they must) suit columns scaled to [0, 1].
    """
    fit, score = np.ascontiguousarray(as_table(X_fit).X), np.ascontiguousarray(as_table(X_score).X)
    if fit.shape[1] != score.shape[1]:
        raise ValueError(f"X_fit has {fit.shape[1]} columns, X_score has {score.shape[1]}.")
    if max_block_size < 1:
        raise ValueError(f"max_block_size={max_block_size} must be at least 1.")
    scoring = Scoring.of(
        max_block_size,
        marginal=marginal,
        alpha=None,
        bandwidths=bandwidths,
        cv=cv,
        max_split_rows=None,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    rows, m = np.concatenate([fit, score]), len(fit)
    labels = default_names(fit.shape[1]) if names is None else tuple(names)
    return scoring.score_splits(rows, [(np.arange(m), np.arange(m, len(rows)))], labels)
