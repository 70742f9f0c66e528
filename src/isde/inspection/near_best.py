"""Partitions beside the best one: the runners-up, those around it, the best, random and worst ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from sklearn.utils import check_random_state

from isde.arrays import FrozenArrays, IntVector, Vector
from isde.errors import ISDEError
from isde.inspection.gains import blocks_of, selected_from
from isde.partitions import Partition, RandomState, edit_distance, random_partition, random_walk
from isde.scores import SubsetScores
from isde.selection import Selection
from isde.solvers import best_partitions, select_partition, worst_partitions
from isde.structure_estimator import StructureEstimator
from isde.subsets import Subset


@dataclass(frozen=True)
class Neighbour:
    """A partition, and how far it is from the one that a model has."""

    rank: int  # 2: the runner-up
    partition: Partition
    objective: float  # score less what chance is charged, nats a row
    below: float  # the model's objective minus this one
    edits: int  # splits and merges that lead from one to the other
    gone: tuple[Subset, ...]  # blocks of the model that it has not
    new: tuple[Subset, ...]  # blocks that the model has not


@dataclass(frozen=True, eq=False)
class Neighbourhood(FrozenArrays):
    """Partitions met on random walks from the best one: how far they are, and what they score."""

    edits: IntVector
    below: Vector  # the best objective minus theirs, nats a row


def runners_up(model: StructureEstimator, n: int = 10) -> list[Neighbour]:
    """The `n` best partitions after the model's own, in order; fewer where too many are about as good.

    Beside a tree of blocks, which is no partition: the best ones of all, each below the tree.
    """
    for many in dict.fromkeys((n + 1, n // 2 + 1, 2)):
        try:
            found = best_partitions(selected_from(model), many)
        except ISDEError:
            continue
        return [_neighbour(one, model) for one in found if one.partition != blocks_of(model)][:n]
    return []


def _neighbour(found: Selection, model: StructureEstimator) -> Neighbour:
    own, groups = blocks_of(model), model.partition_
    gone = tuple(block for block in own if block not in found.partition)
    new = tuple(block for block in found.partition if block not in own)
    below, edits = model.selection_.objective - found.objective, edit_distance(groups, found.partition)
    return Neighbour(found.rank, found.partition, found.objective, below, edits, gone, new)


def best_partition(scores: SubsetScores) -> Selection | None:
    """The best partition; None where it cannot be proved."""
    try:
        return select_partition(scores)
    except ISDEError:
        return None


def runner_up(scores: SubsetScores) -> Selection | None:
    """The second best partition; None where there is one only, or too many are about as good."""
    try:
        best = best_partitions(scores, 2)
    except ISDEError:
        return None
    return best[1] if len(best) > 1 else None


def neighbourhood(
    scores: SubsetScores, n_walks: int = 20, n_steps: int = 25, *, random_state: RandomState = 0
) -> Neighbourhood:
    """The partitions met on random walks of splits and merges from the best one, each once.

    Of a table of candidates, those whose blocks are all scored.
    """
    best, rng = select_partition(scores), check_random_state(random_state)
    if min(scores.max_block_size, scores.n_columns) == 1:
        return Neighbourhood(np.zeros(1, dtype=np.int64), np.zeros(1))
    walks = (random_walk(best.partition, n_steps, scores.max_block_size, random_state=rng) for _ in range(n_walks))
    met = dict.fromkeys(partition for walk in walks for partition in walk)
    if not scores.is_exhaustive:
        met = {partition: None for partition in met if all(block in scores.subsets for block in partition)}
    edits = np.array([edit_distance(best.partition, partition) for partition in met])
    below = _objective(scores, best.partition) - np.array([_objective(scores, partition) for partition in met])
    return Neighbourhood(edits, below)


def extremes(scores: SubsetScores, n: int = 20, *, random_state: RandomState = 0) -> dict[str, Vector]:
    """The scores of the `n` best partitions, of `n` drawn uniformly at random, and of the `n` worst."""
    scores.check_exhaustive("A partition drawn at random")
    rng = check_random_state(random_state)
    k, table = scores.max_block_size, scores.uncharged()
    drawn = [random_partition(scores.n_columns, k, kind="uniform", random_state=rng) for _ in range(n)]
    return {
        "best": np.array([found.score for found in best_partitions(table, n)]),
        "random": np.array([_objective(table, partition) for partition in drawn]),
        "worst": np.array([found.score for found in worst_partitions(table, n)]),
    }


def _objective(scores: SubsetScores, partition: Partition) -> float:
    objectives = scores.objectives
    return fsum(objectives[scores.subsets.index(block)] for block in partition)
