"""A selected tree of blocks, and how far it can be from the best one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum, inf, isnan, nan
from typing import Any, ClassVar

from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.selection import PROOF_TOLERANCE, Proof
from isde.subsets import Subset
from isde.trees import Edge, Tree, tree_of_cliques, tree_of_edges


@dataclass(frozen=True)
class TreeSelection:
    """A tree, its score, and a bound that no tree passes; unlike a partition's, the gap between them may stay open."""

    rank: ClassVar[int] = 1  # no others are looked for: it is the best that was found
    tree: Tree
    score: float  # sum over cliques minus sum over separators, nats per row
    bound: float  # no tree has a larger objective
    solver: str  # which solver found it
    objective: float = nan  # the same sums with what chance is charged taken off; the score itself unless given
    witness: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)  # of the bound; None: a search
    was_proved: bool = False  # before it was saved, which nobody need believe

    def __post_init__(self) -> None:
        if isnan(self.objective):
            object.__setattr__(self, "objective", self.score)

    @property
    def cliques(self) -> tuple[Subset, ...]:
        return self.tree.cliques

    @property
    def separators(self) -> tuple[Subset, ...]:
        return self.tree.separators

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All pairs of columns that share a clique."""
        return self.tree.edges

    @property
    def components(self) -> Partition:
        """The columns that hang together: independent of all others."""
        return self.tree.components

    partition = components

    @property
    def gap(self) -> float:
        """Distance between bound and objective; 0 where both are -inf, so that every tree is."""
        return 0.0 if self.objective == self.bound else self.bound - self.objective

    @property
    def is_optimal(self) -> bool:
        """Whether the bound proves that no tree is better."""
        return self.gap <= PROOF_TOLERANCE

    @property
    def proof(self) -> Proof:
        """How its proof stands; "not checked again" is one that was loaded, and would take long to check."""
        if self.is_optimal:
            return "proved"
        return "not checked again" if self.was_proved else "not proved"

    def to_archive(self) -> dict[str, Any]:
        """What a file keeps: the cliques and what proves the bound, which is not believed without that."""
        return {
            "cliques": [list(clique) for clique in self.cliques],
            "solver": self.solver,
            "was_proved": self.is_optimal or self.was_proved,
            "witness": self.witness,
        }

    @classmethod
    def from_archive(cls, n_columns: int, header: Mapping[str, Any]) -> TreeSelection:
        """A claim: nothing is known of its score and its place before both were checked (`tree_solvers.proofs`)."""
        tree = tree_of_cliques(n_columns, [[int(c) for c in clique] for clique in header["cliques"]])
        witness, was_proved = header.get("witness"), bool(header["was_proved"])
        return cls(tree, nan, inf, str(header["solver"]), witness=witness, was_proved=was_proved)


def certify_tree(
    scores: SubsetScores,
    edges: Iterable[Edge],
    gap: float,
    solver: str,
    witness: Mapping[str, Any] | None = None,
) -> TreeSelection:
    """Trust no solver: check that the graph is that of a tree of scored blocks, and add its score up again.

    `gap` is how far below the bound the solver proved its tree to be; inf where it proved nothing.
    """
    tree = tree_of_edges(scores.n_columns, edges)
    largest = max(tree.cliques, key=len)
    if len(largest) > scores.max_block_size:
        raise ValueError(f"The clique {largest} has more than {scores.max_block_size} columns: the table lacks it.")
    for separator in tree.separators:
        if scores[separator] == -inf:
            raise ValueError(f"The separator {separator} scores -inf, which cannot be taken off.")
    score = fsum(sign * scores[term] for term, sign in tree.terms)
    objective = fsum(sign * scores.objective(term) for term, sign in tree.terms)
    if objective == -inf:  # then all trees are, or little is known
        return TreeSelection(tree, score, -inf if gap <= PROOF_TOLERANCE else inf, solver, objective)
    return TreeSelection(tree, score, objective + gap, solver, objective, witness)
