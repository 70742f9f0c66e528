"""Is independence between the blocks plausible? What dependence the table shows across them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isde.inspection.gains import Gain, blocks_of, gain_of, pair_gains, scores_of
from isde.inspection.hierarchy import correlation_worth
from isde.scores import SubsetScores
from isde.solvers import select_partition
from isde.structure_estimator import StructureEstimator
from isde.tree_solvers import select_tree

Verdict = Literal["plausible", "nearly", "not plausible", "cannot be told"]

MOST_INSIDE = 0.9
"""Where this share of what pairs gain lies inside blocks, little is left between them."""


@dataclass(frozen=True)
class Plausibility:
    """How much of the dependence between pairs of columns lies inside blocks, and what is left across them."""

    verdict: Verdict
    sentence: str
    n_across: int  # pairs of columns in different blocks
    n_left: int | None  # of these, how many gain more than chance gives; None: chance was not charged
    share_inside: float | None  # of what all pairs gain above chance, the part of pairs inside blocks
    largest_left: Gain | None  # the pair across blocks that gains most
    n_full: int  # blocks as large as the largest allowed
    max_block_size: int


def plausibility(model: StructureEstimator) -> Plausibility:
    """What speaks for and against independence between a model's blocks, by the pairs of its score table."""
    scores = scores_of(model)
    blocks = blocks_of(model)
    pairs = pair_gains(scores, model.partition_)  # in a tree, columns without a common clique may hang together, too
    upper = np.triu(np.ones(pairs.gains.shape, dtype=bool), 1)
    across, known = upper & ~pairs.inside, bool(scores.charges.any())
    n_across, k = int(across.sum()), scores.max_block_size
    n_full = sum(len(block) == k for block in blocks) if 1 < k < scores.n_columns else 0
    if k == 1 or not n_across:
        why = "no pair of columns was scored" if k == 1 else "all columns stand in one block"
        return Plausibility(
            "cannot be told", f"There is nothing to compare: {why}.", n_across, None, None, None, n_full, k
        )
    gains = np.where(across, pairs.gains, -np.inf)
    first, second = divmod(int(gains.argmax()), len(gains))
    largest = gain_of(scores, (first, second))
    if not known:
        sentence = (
            "Chance was not charged, so that the table cannot tell weak dependence from noise; the pair across blocks "
            f"that gains most, {_named(largest)}, gains {largest.gain:.3g} nats. Fit with alpha=0.05 to know."
        )
        return Plausibility("cannot be told", sentence, n_across, None, None, largest, n_full, k)
    above = np.where(pairs.passes, pairs.gains - pairs.chances, 0.0)
    inside, left = float(above[upper & pairs.inside].sum()), float(above[across].sum())
    n_left = int((across & pairs.passes).sum())
    share = inside / (inside + left) if inside + left else None
    verdict, sentence = _said(n_left, n_across, share, largest, n_full, k)
    return Plausibility(verdict, sentence, n_across, n_left, share, largest, n_full, k)


def tree_over_blocks(scores: SubsetScores) -> float:
    """What the best tree of blocks scores more than the best partition, nats a row: what disjoint blocks lose.

    By the table of scores, each structure chosen with its own charges; `held_out` has it on rows left out, with its
    error, for a `TreeISDE`.

    >>> table = SubsetScores.from_dict({(0,): 0, (1,): 0, (2,): 0, (0, 1): 1.0, (1, 2): 0.5, (0, 2): 0})
    >>> tree_over_blocks(table)
    0.5
    """
    return select_tree(scores).score - select_partition(scores).score


def _said(n_left: int, n_across: int, share: float | None, largest: Gain, n_full: int, k: int) -> tuple[Verdict, str]:
    if not n_left:
        return "plausible", (
            f"None of the {n_across:,} pairs of columns in different blocks gains more than chance gives. "
            "Dependence of three or more columns across blocks would show only in blocks that large."
        )
    assert share is not None
    pairs = f"{n_left:,} of the {n_across:,} pairs" if n_left > 1 else f"1 of the {n_across:,} pairs"
    found = (
        f"{pairs} of columns in different blocks {'gain' if n_left > 1 else 'gains'} more than chance gives, most of "
        f"all {_named(largest)}: {largest.gain:.3g} nats, as much as a correlation of "
        f"{correlation_worth(largest.gain):.2f}. {share:.0%} of what pairs gain above chance lies inside blocks."
    )
    larger = (
        f" {n_full} {'block is' if n_full == 1 else 'blocks are'} as large as max_block_size={k} allows"
        if n_full
        else ""
    )
    if share >= MOST_INSIDE:
        return "nearly", found + (f"{larger}: larger ones may take in the rest." if larger else "")
    advice = f"{larger}: try a larger one." if larger else " Blocks describe part of the dependence only."
    return "not plausible", found + advice


def _named(gain: Gain) -> str:
    return " and ".join(gain.names)
