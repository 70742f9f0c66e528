"""How numbers, partitions and agreements read in a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def show_partition(partition: Iterable[Iterable[int]]) -> str:
    """A partition in a cell of a table.

    >>> show_partition([(0, 2), (1,)])
    '0 2 | 1'
    """
    return " | ".join(" ".join(map(str, block)) for block in partition)


def show_edges(edges: Iterable[tuple[int, int]]) -> str:
    """The edges of a graph in a cell of a table.

    >>> show_edges([(2, 3), (0, 1)])
    '0-1 2-3'
    """
    return " ".join(f"{i}-{j}" for i, j in sorted(edges))


def joined(values: Iterable[Any]) -> str:
    """Cells of one row of a published table."""
    return " / ".join(map(str, values))


def short(number: float) -> str:
    """A running time or a ratio: two digits, or all before the point.

    >>> short(0.01234), short(12.34), short(9597.2)
    ('0.012', '12', '9,597')
    """
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def where_they_differ(agreements: Mapping[str, bool], reason: str, agreed: str = "Agrees") -> str:
    """One sentence for a row of a table: that it agrees, or where it does not, and why.

    >>> where_they_differ({"a": True, "b": False}, "other data")
    'Agrees but for b: other data.'
    >>> where_they_differ({"a": True}, "other data"), where_they_differ({"a": False}, "other data")
    ('Agrees.', 'Other data.')
    """
    differing = [label for label, agrees in agreements.items() if not agrees]
    if not differing:
        return f"{agreed}."
    if len(differing) == len(agreements):
        return f"{reason[0].upper()}{reason[1:]}."
    return f"{agreed} but for {', '.join(differing)}: {reason}."


def label_of(structure: Iterable[int]) -> str:
    """The name of a structure in the paper.

    >>> label_of((2, 2, 1))
    '[2,2,1]'
    """
    return f"[{','.join(map(str, structure))}]"


def mean_sd(values: Sequence[float], digits: int = 2) -> str:
    """Mean and standard deviation as the paper prints them.

    >>> mean_sd([1.0, 2.0])
    '1.50 (0.71)'
    """
    spread = np.std(values, ddof=1) if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f} ({spread:.{digits}f})"


def agree(published: tuple[float, float], values: Sequence[float], repetitions: int = 5) -> bool:
    """Whether a published mean (standard deviation) and repetitions of our own differ by no more than chance.

    Three standard errors of the difference, both from standard deviations over repetitions.
    """
    mean, sd = published
    own = float(np.std(values, ddof=1)) if len(values) > 1 else sd
    error = np.sqrt(sd**2 / repetitions + own**2 / len(values))
    return bool(abs(np.mean(values) - mean) <= 3 * error + 0.005)
