"""Which rows fit the marginals and which score them; and the folds that choose a bandwidth, runs of shuffled rows.

Splits have presets by name, are shares, or any scikit-learn splitter. A larger share of rows to score, and several
splits, keep independent blocks apart; a larger share to fit on keeps weak dependence. No rule does best at both
(experiments/splits.py): hence two presets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils import check_random_state

from isde.arrays import IntVector, Matrix, Positions
from isde.errors import warn
from isde.partitions import RandomState

Split = tuple[Positions, Positions]
"""Numbers of the rows to fit on, and of those to score."""

Folds = Sequence[Split]


@dataclass
class TurnedFolds:
    """Each fold of the shuffled rows is scored once, by a fit on the rows that follow it, round and round.

    Every row scores as often as any other, and fits as often: drawn at random, as `ShuffleSplit` does, splits of the
    same size find fewer true blocks. Folds are made `n_turns` times, each time of rows in another order.

    >>> fit, score = next(TurnedFolds(n_folds=2, n_turns=1, train_size=0.25, random_state=0).split(np.zeros((8, 1))))
    >>> len(fit), len(score)
    (2, 4)
    """

    n_folds: int = 5
    n_turns: int = 4
    train_size: float = 0.45
    random_state: RandomState = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_folds * self.n_turns

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        rng, n_rows = check_random_state(self.random_state), len(X)
        for _ in range(self.n_turns):
            order = rng.permutation(n_rows)
            for fold in np.array_split(np.arange(n_rows), self.n_folds):
                turned = np.roll(order, -fold[0]) if len(fold) else order
                yield turned[len(fold) :][: int(self.train_size * n_rows)], turned[: len(fold)]


PRESETS: dict[str, Callable[[RandomState], Any]] = {
    "structure": lambda seed: ShuffleSplit(20, train_size=0.45, random_state=seed),
    "density": lambda seed: KFold(5, shuffle=True, random_state=seed),
    "paper": lambda seed: ShuffleSplit(1, train_size=0.5, random_state=seed),
    "turned": lambda seed: TurnedFolds(random_state=seed),
}
SPLIT_NAMES = tuple(PRESETS)
DEFAULT_SPLIT = "structure"

MOST_IN_COMMON = 0.99
"""Splits that score all the same rows, such as those of a splitter that draws the rows to fit on alone: the spread of
their scores says nothing of that of rows."""


TURNED_FROM = 2_500
"""Rows from which on "structure" means "turned". Of fewer rows every one that scores counts, and cost does not: chance
gives triples a margin of 2.6 nats in all by magnitudes where twenty splits score 55 % of 300 rows each, and of 3.2 by
turned folds (experiments/shared_tuning.py chance)."""


def preset_for(split: Any, n_rows: int) -> Any:
    """The split meant by the default for so many rows; any other is meant as it is.

    >>> preset_for(None, 300), preset_for("structure", 10_000), preset_for("paper", 10_000)
    ('structure', 'turned', 'paper')
    """
    name = DEFAULT_SPLIT if split is None else split
    is_default = isinstance(name, str) and name == DEFAULT_SPLIT
    return "turned" if is_default and n_rows >= TURNED_FROM else name


def resolve_split(split: Any, random_state: RandomState) -> Any:
    """A splitter for a preset's name, a share of the rows, None (the default preset) or a splitter.

    >>> resolve_split(0.5, 0)
    ShuffleSplit(n_splits=1, random_state=0, test_size=None, train_size=0.5)
    """
    name = DEFAULT_SPLIT if split is None else split
    if isinstance(name, str):
        if name not in PRESETS:
            known = ", ".join(map(repr, PRESETS))
            raise ValueError(f"split={split!r} is unknown: use {known}, a share or a splitter.")
        return PRESETS[name](random_state)
    if isinstance(name, float | np.floating):
        if not 0 < name < 1:
            raise ValueError(f"split={split} must be a share of the rows between 0 and 1.")
        return ShuffleSplit(1, train_size=name, random_state=random_state)
    if isinstance(name, type):
        raise TypeError(f"split={name.__name__} is a class: pass a splitter made by it, such as {name.__name__}().")
    if hasattr(name, "split"):
        return name
    raise TypeError(
        f"split={split!r} is neither one of {', '.join(map(repr, SPLIT_NAMES))}, nor a share of rows, nor a "
        "scikit-learn splitter."
    )


def rows_at_most(n_rows: int, max_split_rows: int | None) -> int:
    """Of how many rows a split is one, as far as its size goes."""
    return n_rows if max_split_rows is None else min(n_rows, max_split_rows)


def draw_splits(splitter: Any, X: Matrix, max_split_rows: int | None = None) -> list[Split]:
    """What a splitter makes of the rows: at least one split, with rows to fit on and others to score.

    Of a table of more than `max_split_rows`, a split keeps as many rows as it would have of a table of so many, drawn
    at random for each. Rows to fit on that come in the order of the data are shuffled.
    """
    n_rows = len(X)
    share = rows_at_most(n_rows, max_split_rows) / n_rows
    try:
        parts = [
            (_thinned(np.asarray(fit), share, number), _thinned(np.asarray(score), share, number))
            for number, (fit, score) in enumerate(splitter.split(X))
        ]
    except (TypeError, ValueError) as error:
        raise ValueError(f"split={splitter!r} cannot split {n_rows:,} rows without y and groups: {error}") from error
    if not parts:
        raise ValueError(f"split={splitter!r} makes no split of {n_rows:,} rows.")
    for fit, score in parts:
        if len(fit) < 2 or len(score) < 1:
            raise ValueError(
                f"split={splitter!r} leaves {len(fit)} of {n_rows:,} rows to fit on and {len(score)} to score: "
                "at least 2 and 1 are needed."
            )
        last = max(fit.max(), score.max())
        if last >= n_rows:
            raise ValueError(
                f"split={splitter!r} asks for row {last} of {n_rows:,}: it was made for other rows (`stability` draws "
                "parts of the rows, and needs a splitter for any number of them)."
            )
    return [(fit[shuffled(len(fit))] if (np.diff(fit) > 0).all() else fit, score) for fit, score in parts]


def _thinned(rows: Positions, share: float, seed: int) -> Positions:
    """A share of some rows, drawn at random; all of them, as they come, where the share is 1."""
    if share == 1:
        return rows
    return rows[np.random.RandomState(seed).permutation(len(rows))[: max(1, int(share * len(rows)))]]


def scored_in_common(splits: Sequence[Split]) -> float:
    """Of the rows that a split scores, the share that another one scores too, on average; below 1.

    >>> scored_in_common([(np.array([0]), np.array([1, 2])), (np.array([0]), np.array([2, 3]))])
    0.5
    """
    if len(splits) == 1:
        return 0.0
    _, counts = np.unique(np.concatenate([score for _, score in splits]), return_counts=True)
    return min(float((counts * (counts - 1)).sum() / counts.sum() / (len(splits) - 1)), MOST_IN_COMMON)


def split_key(split: Split) -> str:
    """A short name for a split: the same for the same rows in the same order, here or on another machine."""
    digest = blake2b(digest_size=8)
    for rows in split:
        digest.update(np.asarray(rows, dtype="<i8").tobytes() + b"|")
    return digest.hexdigest()


def shuffled(n_rows: int) -> Positions:
    """The same permutation for as many rows.

    Bandwidths and weights are chosen over folds that are runs of rows: where these are sorted, by time or class, each
    fold would be scored by rows that are not like it.
    """
    return np.random.RandomState(0).permutation(n_rows)


def check_folds(cv: int) -> None:
    """Raise for a number of folds that leaves nothing to fit on."""
    if not isinstance(cv, int | np.integer) or cv < 2:
        raise ValueError(f"cv={cv!r} must be a whole number of at least 2 folds.")


def contiguous_folds(n_rows: int, cv: int) -> Folds:
    """`KFold(cv)` without shuffling, as in the paper; fewer folds where there are fewer rows."""
    if n_rows < 2:
        raise ValueError(f"Cross-validation needs at least 2 rows to fit on, got {n_rows}: give more rows.")
    return list(KFold(min(cv, n_rows)).split(np.empty((n_rows, 1))))


def fold_numbers(n_rows: int, cv: int) -> IntVector:
    """The number of each row's fold, ascending."""
    return np.repeat(np.arange(min(cv, n_rows)), [len(held_out) for _, held_out in contiguous_folds(n_rows, cv)])


def warn_few_rows(n_rows: int, cv: int) -> None:
    """Warn where there are fewer rows than folds; one alone is refused (`contiguous_folds`)."""
    if 1 < n_rows < cv:
        warn(f"Only {n_rows} rows to fit on, and cv={cv}: {n_rows} folds are used; give more rows or a smaller cv.")
