"""What arrays are called in annotations, and how a value keeps those it holds from being changed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
IntVector = NDArray[np.int64]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same numbers, which cannot be changed through what is returned.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


class FrozenArrays:
    """A dataclass whose arrays cannot be changed, as its fields cannot."""

    def __post_init__(self) -> None:
        own: Any = self
        for field in fields(own):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, read_only(value))
