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
    """A dataclass whose arrays cannot be changed, as its fields cannot: those that are fields, and those in tuples.

    Whoever has a `__post_init__` of their own calls this one. A copy, and what another process is sent, is as its
    original: NumPy would hand out arrays to write to, for which compiled code is compiled once more.
    """

    def __post_init__(self) -> None:
        own: Any = self
        for field in fields(own):
            object.__setattr__(self, field.name, _frozen(getattr(self, field.name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, _frozen(value))


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return read_only(value)
    return tuple(map(_frozen, value)) if type(value) is tuple else value
