"""What saved arrays have to be: as many as expected, of shapes that go together, with values that mean something.

A checksum tells damage, not sense: a file can be whole and hold a scale that is no number, or weights that add up to
five. Whatever is saved has a layout, and nothing is built from arrays that do not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FARTHEST = 1e150
"""Squares of larger numbers, and inverse squares of widths below its inverse, would leave float64."""

LEAST_PIVOT = 1e-13
"""Of a variance, what other columns leave of it: of less, rounding makes nothing, and a density has no digit."""

ROUNDING = 1e-9
"""By which weights may miss a sum of 1, and covariances their mirror image: sums of float64 carry less."""


@dataclass(frozen=True)
class Content:
    """One array: a letter, or a number, for each of its dimensions; equal letters stand for equal lengths."""

    dimensions: tuple[str, ...]
    words: str  # what it holds
    is_sound: Callable[[NDArray[Any]], bool]
    kind: str = "f"  # of its numbers, as NumPy has it
    optional: bool = False


Layout = Mapping[str, Content]


def check_layout(arrays: Mapping[str, NDArray[Any]], layout: Layout) -> None:
    """Raise ValueError, naming the culprit, unless these are the arrays that the layout asks for."""
    unknown = sorted(set(arrays) - set(layout))
    missing = [name for name, content in layout.items() if name not in arrays and not content.optional]
    if unknown or missing:
        raise ValueError(f"it has an array {unknown[0]!r} too many" if unknown else f"it has no array {missing[0]!r}")
    lengths: dict[str, int] = {}
    for name, array in arrays.items():
        content = layout[name]
        wanted = f"{name!r} must hold {content.words}"
        if array.dtype.kind != content.kind or array.ndim != len(content.dimensions):
            raise ValueError(f"{wanted}, in {len(content.dimensions)} dimensions")
        for letter, length in zip(content.dimensions, array.shape, strict=True):
            expected = int(letter) if letter.isdigit() else lengths.setdefault(letter, length)
            if length != expected:
                raise ValueError(f"{name!r} has the shape {array.shape}, where {expected} belong to the other arrays")
        if not content.is_sound(array):
            raise ValueError(wanted)


def numbers(dimensions: str, words: str, is_sound: Callable[[NDArray[Any]], Any], *, optional: bool = False) -> Content:
    """Floats of which each is sound."""
    return Content(tuple(dimensions.split()), words, lambda array: bool(np.all(is_sound(array))), optional=optional)


def finite(dimensions: str = "") -> Content:
    return numbers(dimensions, "finite numbers", np.isfinite)


def places(dimensions: str = "") -> Content:
    """Where something lies: its distances have squares."""
    return numbers(dimensions, f"numbers of at most {FARTHEST:g}", lambda array: np.abs(array) <= FARTHEST)


def positive(dimensions: str = "") -> Content:
    return numbers(dimensions, "finite numbers above 0", lambda array: (array > 0) & np.isfinite(array))


def widths(dimensions: str = "") -> Content:
    """Bandwidths and the like, by whose squares distances are divided."""
    return numbers(
        dimensions,
        f"widths between {1 / FARTHEST:g} and {FARTHEST:g}",
        lambda array: (array >= 1 / FARTHEST) & (array <= FARTHEST),
    )


def shares(dimensions: str = "") -> Content:
    """Weights of parts, each with some."""
    return numbers(dimensions, "weights above 0", lambda array: (array > 0) & (array <= 1 + ROUNDING))


def whole(dimensions: str = "", *, optional: bool = False) -> Content:
    return Content(tuple(dimensions.split()), "whole numbers", lambda array: True, kind="i", optional=optional)


def covariances(dimensions: str = "") -> Content:
    """Matrices over the last two dimensions."""
    return Content(tuple(dimensions.split()), "covariances, symmetric and positive definite", _are_covariances)


def _are_covariances(array: NDArray[Any]) -> bool:
    variances = np.diagonal(array, axis1=-2, axis2=-1)
    if not (np.abs(array) <= FARTHEST**2).all() or not (variances >= FARTHEST**-2).all():
        return False
    spread = np.sqrt(variances)
    unit = spread[..., :, None] * spread[..., None, :]
    if not (np.abs(array - np.swapaxes(array, -1, -2)) <= ROUNDING * unit).all():
        return False
    try:
        pivots = _pivots(array)
    except np.linalg.LinAlgError:
        return False
    return bool(((pivots >= 1 / FARTHEST) & (pivots**2 >= LEAST_PIVOT * variances)).all())


def _pivots(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.diagonal(np.linalg.cholesky(covariances), axis1=-2, axis2=-1)


def check_reach(means: NDArray[np.float64], covariances: NDArray[np.float64]) -> None:
    """Raise ValueError where Gaussians lie so many of their widths from zero that squares leave float64."""
    if means.size and not (np.abs(means).max() <= FARTHEST * np.minimum(_pivots(covariances).min(), 1.0)):
        raise ValueError("its Gaussians are too narrow for where they lie")


def checked_names(names: Any) -> tuple[str, ...]:
    """The names of columns, from JSON: texts, all different."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of the columns are no texts")
    if len(set(names)) < len(names):
        raise ValueError("two columns have one name")
    return tuple(names)


def check_sum(*weights: NDArray[np.float64]) -> None:
    """Raise ValueError unless weights, wherever they stand, add up to 1."""
    total = float(sum(part.sum() for part in weights))
    if not abs(total - 1) <= ROUNDING:
        raise ValueError(f"the weights add up to {total:g} instead of 1")
