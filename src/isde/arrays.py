"""What arrays are called in annotations, and how a value keeps those it holds from being changed."""

from __future__ import annotations

from typing import TypeVar

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
