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
    """A view of an array that cannot be written to.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


class FrozenArrays:
    """A frozen dataclass whose arrays are read-only too, be they fields or parts of tuples.

    A subclass with a `__post_init__` of its own calls this one. Copies, and what other processes are sent, are
    read-only as well: NumPy would make them writeable, and numba would compile what takes them once more.
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
