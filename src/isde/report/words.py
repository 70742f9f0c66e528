"""Numbers in words: how a page writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import PureWindowsPath
from typing import Any

from isde.data.words import in_braces, several, some
from isde.marginals import FITTED_KINDS

UNKNOWN = "–"
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

VERDICTS = {
    "plausible": "Yes: nothing speaks against it",
    "nearly": "Nearly: little dependence is left between blocks",
    "not plausible": "No: dependence between blocks remains",
    "cannot be told": "It cannot be told from this fit",
}

PROOFS = {
    "proved": "proved",
    "not checked again": "proved when it was fitted; not checked again, which would take long",
    "not proved": "not proved",
}

FAMILIES = {kind: line.about for kind, line in FITTED_KINDS.items()}
"""What fitted blocks are, in words."""


def nats(value: float | None, digits: int = 4) -> str:
    """A number of nats, with a true minus sign.

    >>> nats(0.12345), nats(-1.5, 2), nats(None)
    ('0.1235', '−1.50', '–')
    """
    return UNKNOWN if value is None else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 4) -> str:
    """A number of nats that always has its sign."""
    return UNKNOWN if value is None else f"{value:+.{digits}f}".replace("-", "−")


def general(value: float | None, digits: int = 4) -> str:
    """A number as short as its digits allow."""
    return UNKNOWN if value is None else f"{value:.{digits}g}".replace("-", "−")


def percent(value: float | None, digits: int = 0) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}%}"


def whole(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def count(text: str) -> str:
    """A whole number that may be very large, from its digits.

    >>> count("4140"), count("1382958545000000"), count("9990000000")
    ('4,140', '1.4 × 10¹⁵', '1.0 × 10¹⁰')
    """
    value = Decimal(text)
    if value < 10**9:
        return f"{value:,}"
    digits, power = f"{value:.1e}".split("e+")
    return f"{digits} × 10{power.translate(RAISED)}"


def duration(seconds: float | None) -> str:
    """A time in the unit that suits it."""
    if seconds is None:
        return UNKNOWN
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} seconds" if seconds < 100 else f"{seconds:.0f} seconds"


def braces(names: Sequence[str]) -> str:
    return in_braces(names)


def first_few(names: Sequence[str], limit: int = 8) -> str:
    return some(list(names), limit)


def file_name(path: str | None) -> str | None:
    """The last part of a path of any system: where a file lies is nobody else's business."""
    return None if path is None else PureWindowsPath(path).name or None


def change(runner: Mapping[str, Any]) -> str:
    """What a runner-up has in place of blocks of the best partition.

    >>> change({"gone": [["a", "b"], ["c"]], "new": [["a", "b", "c"]]})
    '{a, b}, {c} → {a, b, c}'
    """
    gone, new = (", ".join(in_braces(block) for block in runner[side]) for side in ("gone", "new"))
    return f"{gone} → {new}"


def kind(numbers: Mapping[str, Any]) -> str:
    """What the columns that are described together are called."""
    return "clique" if numbers["structure"] == "tree" else "block"


def rivals(numbers: Mapping[str, Any]) -> str:
    """Of what the structure found is the best."""
    if numbers["structure"] == "tree":
        return "all trees"
    return f"{count(numbers['proof']['n_partitions'])} partitions"


def place(numbers: Mapping[str, Any]) -> str:
    """Which place the structure found has among all others."""
    proof, k = numbers["proof"], numbers["plausibility"]["max_block_size"]
    if proof["rank"] > 1:
        return f"It is number {proof['rank']} of {rivals(numbers)} for these scores"
    found = "this is the best" if proof["proof"] != "not proved" else "this is the best that was found"
    sets = f"with {kind(numbers)}s of at most {several(k, 'column')}"
    if proof["search"] is not None:
        sets += ", as far as their blocks were scored,"
    return f"Of {rivals(numbers)} {sets} {found} for the {several(proof['n_subsets'], 'subset score')}"


def shared(together: Sequence[Sequence[float]]) -> list[tuple[int, int, float]]:
    """Pairs of columns that ever stand together, the most frequent first."""
    found = [(i, j, row[j]) for i, row in enumerate(together) for j in range(i + 1, len(row)) if row[j]]
    return sorted(found, key=lambda pair: -pair[2])


FILTERS = {
    "nats": nats,
    "signed": signed,
    "general": general,
    "percent": percent,
    "whole": whole,
    "count": count,
    "duration": duration,
    "braces": braces,
    "first_few": first_few,
    "file_name": file_name,
    "change": change,
}
