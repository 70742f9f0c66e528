"""How sure is a tree of blocks: the same analysis on random parts of the rows, and on rows without structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.data.words import in_braces
from isde.scores import SubsetScores
from isde.stability import Parts, together
from isde.tree_gains import edge_gains, largest_edge_gain
from isde.trees import Tree

Analyse = Callable[[Matrix, int], tuple[SubsetScores, Tree]]
"""The table of some rows, and the tree found; the seed draws the splits."""


@dataclass(frozen=True, eq=False)
class TreeStability(FrozenArrays):
    """What resampling says of a tree."""

    tree: Tree
    names: tuple[str, ...]
    together: Matrix  # share of resamples in which two columns share a clique, (d, d)
    trees: list[tuple[Tree, float]]  # every tree met, with its share of resamples, most frequent first
    gains: Matrix  # of each edge of the tree (`tree_gains.EdgeGain`), in each resample, nats, (n, edges)
    noise: Vector  # the largest gain of any edge found in rows without structure, 0 where none was, (n_null,)

    @property
    def same_tree(self) -> float:
        """Share of resamples that return the tree itself."""
        return dict(self.trees).get(self.tree, 0.0)

    @property
    def edge_confidence(self) -> Vector:
        """For each edge of the tree, the share of resamples in which it is one."""
        return np.array([self.together[edge] for edge in self.tree.edges])

    @property
    def clique_confidence(self) -> Vector:
        """For each clique of the tree, the share of resamples in which it is one."""
        return np.array(
            [sum(share for met, share in self.trees if clique in met.cliques) for clique in self.tree.cliques]
        )

    @property
    def edge_p_values(self) -> Vector:
        """For each edge, how often rows without structure show some edge with as large a gain; NaN without such rows.

        (1 + number of null resamples with one) / (1 + null resamples): with n_null = 20 no p-value is below 0.048.
        """
        if not len(self.noise):
            return np.full(len(self.tree.edges), np.nan)
        reached = (self.noise[:, None] > 0) & (self.noise[:, None] >= self.gains.mean(axis=0))
        return (1 + reached.sum(axis=0)) / (1 + len(self.noise))

    def __str__(self) -> str:
        lines = [f"{self.same_tree:.0%} of {len(self.gains)} resamples return the same tree"]
        for clique, share in zip(self.tree.cliques, self.clique_confidence, strict=True):
            lines.append(f"  {in_braces(self.names[c] for c in clique)}   in {share:.0%}")
        for i, (a, b) in enumerate(self.tree.edges):
            line = f"  {self.names[a]} -- {self.names[b]}   in {self.edge_confidence[i]:.0%}"
            line += f"   gain {self.gains[:, i].mean():.4f} nats"
            if len(self.noise):
                line += f", by chance p <= {self.edge_p_values[i]:.2g}"
            lines.append(line)
        if len(self.noise):
            shown = int((self.noise > 0).sum())
            lines.append(f"rows without structure showed an edge in {shown} of {len(self.noise)} resamples")
        return "\n".join(lines)


def assess_tree(analyse: Analyse, X: Matrix, names: Sequence[str], tree: Tree, parts: Parts) -> TreeStability:
    """Resample rows without replacement, analyse again, and compare with rows whose columns are permuted apart."""
    found = parts.each(analyse, X)
    selected: list[Tree] = []
    gains = []
    for table, met in islice(found, parts.n):
        selected.append(met)
        gains.append([0.0 if np.isnan(one.gain) else one.gain for one in edge_gains(table, tree)])
    noise = [largest_edge_gain(table, met) for table, met in found]
    return TreeStability(
        tree,
        tuple(names),
        together([met.cliques for met in selected], X.shape[1]),
        [(met, count / parts.n) for met, count in Counter(selected).most_common()],
        np.array(gains).reshape(parts.n, len(tree.edges)),
        np.array(noise, dtype=np.float64),
    )
