"""Files that isde saves, small ones, and the check that one of them loads as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .guarded import Check, fingerprint

KINDS = ("gaussian", "kde", "copula+stack", "scores", "tree", "screened")


def save(folder: Path, kind: str) -> Path:
    """A model of two columns of one kind of marginal, or its table of scores; a tree; one of a list of subsets."""
    model = _fitted(kind)
    path = folder / f"{kind.replace('+', '-')}.isde"
    (model.subset_scores_ if kind == "scores" else model).save(path)
    return path


def _fitted(kind: str) -> Any:
    from isde import ISDE, TreeISDE

    rng = np.random.default_rng(0)
    t = rng.uniform(size=40)
    X = np.column_stack([t, t**2 + 0.1 * rng.normal(size=40)])
    options: dict[str, Any] = {"alpha": None, "split": 0.5, "random_state": 0}
    if kind == "tree":
        third = X[:, 1] + 0.1 * rng.normal(size=40)
        return TreeISDE(2, marginal="gaussian", **options).fit(np.column_stack([X, third]))
    if kind == "screened":
        wide = t[:, None] + 0.3 * rng.normal(size=(40, 5))
        return ISDE(4, marginal="gaussian", search="screened", **options).fit(wide)
    return ISDE(2, marginal="gaussian" if kind == "scores" else kind, **options).fit(X)


def loads_as_it_was(sound: Path) -> Check:
    """What is loaded equals the sound file in all that a user can ask for."""
    import isde

    expected = _facts(isde.load(sound))

    def check(path: Path) -> str | None:
        return None if _facts(isde.load(path)) == expected else "it loads as something else"

    return check


def _facts(loaded: object) -> object:
    from isde import SubsetScores
    from isde.structure_estimator import StructureEstimator

    header, arrays = loaded.to_archive()  # type: ignore[attr-defined]
    if isinstance(loaded, SubsetScores):
        return fingerprint([header, arrays])
    assert isinstance(loaded, StructureEstimator)
    X = np.random.default_rng(1).normal(size=(5, loaded.n_features_in_))
    return fingerprint([header, arrays, repr(loaded.selection_), loaded.score_blocks(X)])  # type: ignore[attr-defined]
