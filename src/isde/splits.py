"""Which rows fit the marginals, and which score them: presets by name, shares, or any scikit-learn splitter.

A larger share of rows to score, and several splits, keep independent blocks apart; a larger share to fit on keeps weak
dependence. No rule does best at both (experiments/splits.py): hence two presets.
"""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import KFold, ShuffleSplit

from isde.partitions import RandomState

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
    if isinstance(name, float):
        if not 0 < name < 1:
            raise ValueError(f"split={split} must be a share of the rows between 0 and 1.")
        return ShuffleSplit(1, train_size=name, random_state=random_state)
    if hasattr(name, "split"):
        return name
    raise TypeError(
        f"split={split!r} is neither one of {', '.join(map(repr, SPLIT_NAMES))}, nor a share of rows, nor a "
        "scikit-learn splitter."
    )
