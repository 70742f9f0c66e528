"""Which rows fit the marginals, and which score them: presets by name, shares, or any scikit-learn splitter.

A larger share of rows to score, and several splits, keep independent blocks apart; a larger share to fit on keeps weak
dependence. No rule does best at both (experiments/splits.py): hence two presets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit

from isde.marginals.marginal import shuffled
from isde.partitions import RandomState

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Numbers of the rows to fit on, and of those to score."""

DEFAULT_SPLIT = "structure"
SPLIT_NAMES = ("structure", "density", "paper")


def resolve_split(split: Any, random_state: RandomState) -> Any:
    """A splitter for a preset's name, a share of the rows, None (the default preset) or a splitter.

    >>> resolve_split(0.5, 0)
    ShuffleSplit(n_splits=1, random_state=0, test_size=None, train_size=0.5)
    """
    name = DEFAULT_SPLIT if split is None else split
    if isinstance(name, str):
        if name == "structure":
            return ShuffleSplit(20, train_size=0.45, random_state=random_state)
        if name == "density":
            return KFold(5, shuffle=True, random_state=random_state)
        if name == "paper":
            return ShuffleSplit(1, train_size=0.5, random_state=random_state)
        raise ValueError(f"split={split!r} is unknown: use {', '.join(map(repr, SPLIT_NAMES))}, a share or a splitter.")
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


def draw_splits(splitter: Any, X: NDArray[np.float64]) -> list[Split]:
    """What a splitter makes of the rows: at least one split, with rows to fit on and others to score.

    Rows to fit on that come in the order of the data are shuffled.
    """
    n_rows = len(X)
    try:
        parts = [(np.asarray(fit), np.asarray(score)) for fit, score in splitter.split(X)]
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
