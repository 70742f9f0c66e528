"""What a solver of trees is asked, and what it answers with.

A solver is a file of this folder with three functions, and a line in `registry.SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.trees import Edge


@dataclass(frozen=True)
class Found:
    """A tree by its edges, and how far it is proved to be from the best one."""

    edges: tuple[Edge, ...] | None  # None: it found no tree that needs no subset of score -inf
    gap: float  # nats; no tree is better by more, or, without edges, 0 where there is none and inf otherwise
    witness: Mapping[str, Any] | None = None  # from which the gap can be checked (`witness_file`); None: by searching


class TreeSolver(Protocol):
    """The best tree of a problem, or a good one with a bound."""

    def refusal(self, task: TreeTask) -> str | None:
        """Why it cannot take a task, as the rest of a sentence that starts with its name; None where it can."""

    def steps(self, task: TreeTask) -> float:
        """What it costs, roughly, counted in steps of the recursion over bit masks, about 2 ns each."""

    def best(self, problem: TreeProblem) -> Found:
        """The best tree it finds; what it refuses it need not notice here."""
