"""What an analyst demands of a partition, and why no partition can meet it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Mask
from isde.data.words import join_names
from isde.errors import InputError
from isde.subsets import SubsetFamily

Column = int | str


@dataclass(frozen=True)
class Constraints:
    """Demands on a partition; columns are given by name or by number.

    >>> Constraints(together=[("CD4", "CD8")], apart=[("CD3", "CD19")], max_blocks=10).max_blocks
    10
    """

    together: Sequence[Sequence[Column]] = ()  # groups of columns that share a block
    apart: Sequence[Sequence[Column]] = ()  # groups of columns no two of which share a block
    blocks: Sequence[Sequence[Column]] = ()  # blocks fixed in advance
    min_block_size: int = 1
    max_blocks: int | None = None


@dataclass(frozen=True)
class Rule:
    """One demand: in words, and which subsets may be blocks under it, or how many blocks there may be."""

    text: str
    allowed: Callable[[SubsetFamily], Mask] | None = None
    max_blocks: int | None = None


@dataclass(frozen=True)
class Demands(FrozenArrays):
    """Several rules together, over a family of subsets."""

    allowed: Mask
    max_blocks: int | None


def rules_of(constraints: Constraints, names: Sequence[str]) -> list[Rule]:
    """Each demand as a rule of its own; raises for columns and numbers that make no sense."""
    rules = []
    for what, groups, rule in (
        ("together", constraints.together, _together),
        ("apart", constraints.apart, _apart),
        ("block", constraints.blocks, _block),
    ):
        for group in groups:
            columns = _columns(group, names, what, at_least=1 if what == "block" else 2)
            rules.append(Rule(f"{what} {join_names(names[c] for c in columns)}", rule(columns)))
    if constraints.min_block_size < 1:
        raise InputError(f"min_block_size={constraints.min_block_size} must be at least 1.")
    if constraints.min_block_size > 1:
        least = constraints.min_block_size
        rules.append(Rule(f"min_block_size={least}", lambda subsets: subsets.sizes >= least))
    if constraints.max_blocks is not None:
        if constraints.max_blocks < 1:
            raise InputError(f"max_blocks={constraints.max_blocks} must be at least 1.")
        rules.append(Rule(f"max_blocks={constraints.max_blocks}", max_blocks=constraints.max_blocks))
    return rules


def combine(rules: Sequence[Rule], subsets: SubsetFamily) -> Demands:
    """What is left under all rules."""
    allowed = np.ones(len(subsets), dtype=bool)
    for rule in rules:
        if rule.allowed is not None:
            allowed &= rule.allowed(subsets)
    return Demands(allowed, min((rule.max_blocks for rule in rules if rule.max_blocks is not None), default=None))


def conflict(rules: Sequence[Rule], subsets: SubsetFamily, is_possible: Callable[[Demands], bool]) -> str:
    """One sentence that names the fewest rules that rule each other out: without any of them there is a partition."""
    needed = list(rules)
    for rule in rules:
        without = [other for other in needed if other is not rule]
        if not is_possible(combine(without, subsets)):
            needed = without
    demands = "; ".join(rule.text for rule in needed)
    what, way_out = ("this", "Take it back") if len(needed) == 1 else ("all of these", "Take one back")
    return (
        f"No partition of the {subsets.n_columns} columns into blocks of at most {subsets.max_size} meets {what}: "
        f"{demands}. {way_out}, or allow larger blocks."
    )


def _columns(group: Sequence[Column], names: Sequence[str], what: str, *, at_least: int) -> list[int]:
    if isinstance(group, str):
        raise InputError(f"{what}={group!r} must be a group of columns, such as [({group!r}, ...)].")
    columns = []
    for column in group:
        if isinstance(column, str) and column not in names:
            raise InputError(f"There is no column {column!r} to keep {what}: the columns are {join_names(names)}.")
        number = names.index(column) if isinstance(column, str) else int(column)
        if not 0 <= number < len(names):
            raise InputError(f"There is no column {number} to keep {what}: columns are numbered 0 to {len(names) - 1}.")
        columns.append(number)
    if len(set(columns)) < max(len(columns), at_least):
        raise InputError(f"{what} {tuple(group)} must name at least {at_least} columns, each once.")
    return sorted(columns)


def _together(columns: list[int]) -> Callable[[SubsetFamily], Mask]:
    return lambda subsets: np.isin(_count(subsets, columns), (0, len(columns)))


def _apart(columns: list[int]) -> Callable[[SubsetFamily], Mask]:
    return lambda subsets: _count(subsets, columns) <= 1


def _block(columns: list[int]) -> Callable[[SubsetFamily], Mask]:
    def allowed(subsets: SubsetFamily) -> Mask:
        count = _count(subsets, columns)
        return (count == 0) | ((count == len(columns)) & (subsets.sizes == len(columns)))

    return allowed


def _count(subsets: SubsetFamily, columns: list[int]) -> NDArray[np.float64]:
    """How many of the columns each subset holds."""
    return subsets.sum_over_members(np.isin(np.arange(subsets.n_columns), columns).astype(np.float64))
