"""Files that isde saves, small ones, and the check that one of them loads as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .guarded import Check, fingerprint

KINDS = ("gaussian", "kde", "copula+stack", "scores")


def save(folder: Path, kind: str) -> Path:
    """A model of two columns of one kind of marginal, or its table of scores."""
    from isde import ISDE

    rng = np.random.default_rng(0)
    t = rng.uniform(size=40)
    X = np.column_stack([t, t**2 + 0.1 * rng.normal(size=40)])
    model = ISDE(2, marginal="gaussian" if kind == "scores" else kind, alpha=None, split=0.5, random_state=0).fit(X)
    path = folder / f"{kind.replace('+', '-')}.isde"
    (model.subset_scores_ if kind == "scores" else model).save(path)
    return path


def loads_as_it_was(sound: Path) -> Check:
    """What is loaded equals the sound file in all that a user can ask for."""
    import isde

    expected = _facts(isde.load(sound))

    def check(path: Path) -> str | None:
        return None if _facts(isde.load(path)) == expected else "it loads as something else"

    return check


def _facts(loaded: object) -> object:
    from isde import ISDE, SubsetScores

    header, arrays = loaded.to_archive()  # type: ignore[attr-defined]
    if isinstance(loaded, SubsetScores):
        return fingerprint([header, arrays])
    assert isinstance(loaded, ISDE)
    X = np.random.default_rng(1).normal(size=(5, 2))
    return fingerprint([header, arrays, repr(loaded.selection_), loaded.score_blocks(X)])
