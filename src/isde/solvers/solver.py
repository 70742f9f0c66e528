"""What a solver is asked, and what it answers with.

A solver is a file of this folder with three functions, and a line in `registry.SOLVERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from isde.partitions import Partition
from isde.selection import Witness
from isde.solvers.weights import Weights


@dataclass(frozen=True)
class Task:
    """How much is asked for: what solvers are chosen by."""

    n_columns: int
    max_block_size: int
    max_blocks: int | None = None  # of a partition; None: no limit
    n: int = 1  # partitions to find


@dataclass(frozen=True)
class Proved:
    """A partition and what was proved about its place."""

    partition: Partition  # blocks in canonical order
    bound: int  # no partition, but those before it in the solver's answer, weighs more
    witness: Witness | None = None  # prices from which the bound can be checked; None: the proof was a search


class Solver(Protocol):
    """The heaviest partitions of an exact problem."""

    def refusal(self, task: Task) -> str | None:
        """Why it cannot take a task, as the rest of a sentence that starts with its name; None where it can."""

    def steps(self, task: Task) -> float:
        """What it costs, roughly, counted in steps of the recursion over bit masks, about 2 ns each."""

    def best(self, weights: Weights, n: int = 1) -> list[Proved]:
        """The `n` heaviest partitions, heaviest first, equals in Python's order; fewer where there are fewer.

        What it refuses it need not notice here.
        """
