"""What blocks, pairs and single columns are worth: gains with their errors and with what chance gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isde.arrays import FrozenArrays, Mask, Matrix
from isde.data.words import in_braces, some
from isde.density_estimator import DensityEstimator
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.structure_estimator import StructureEstimator
from isde.subsets import Subset
from isde.tree_estimator import TreeISDE


def scores_of(model: StructureEstimator) -> SubsetScores:
    """The score table of a fitted model."""
    _check_fitted(model)
    return model.subset_scores_


def selected_from(model: StructureEstimator) -> SubsetScores:
    """The table that the structure of a fitted model is the best by: of a tree that was rearranged another one."""
    _check_fitted(model)
    return model.selected_from_


def _check_fitted(model: DensityEstimator) -> None:
    if hasattr(model, "density_"):
        return
    if not hasattr(model, "fit"):
        raise TypeError(f"{type(model).__name__} is no model: give a fitted ISDE or TreeISDE.")
    check_is_fitted(model)


def is_tree(model: DensityEstimator) -> bool:
    """Whether what a model describes together may overlap, along a tree."""
    return isinstance(model, TreeISDE)


def blocks_of(model: DensityEstimator) -> tuple[Subset, ...]:
    """The columns that a model describes together: the blocks of a partition, the cliques of a tree."""
    _check_fitted(model)
    return model.density_.tree.cliques


def block_of(model: DensityEstimator, block: Sequence[int | str] | int | str) -> Subset:
    """One of the blocks of a model, by the numbers or the names of its columns."""
    blocks, names = blocks_of(model), model.density_.names
    wanted = [block] if isinstance(block, int | str) else list(block)
    asked = {names.index(column) if column in names else column for column in wanted}
    found = next((own for own in blocks if set(own) == asked), None)
    if found is None:
        known = some([in_braces(names[c] for c in own) for own in blocks], 12)
        raise ValueError(f"{in_braces(map(str, wanted))} is no block of the model: its blocks are {known}.")
    return found


def separators_of(model: DensityEstimator) -> tuple[Subset, ...]:
    """What the cliques of a tree share; blocks share nothing."""
    check_is_fitted(model)
    return model.density_.tree.separators


@dataclass(frozen=True)
class Gain:
    """What some columns together are worth over the same columns alone."""

    columns: Subset
    names: tuple[str, ...]
    score: float  # held-out mean log-density, nats a row
    gain: float  # score minus the scores of the columns alone
    error: float  # standard error of the gain; NaN: not known
    chance: float  # what is charged for it: a gain that chance gives too; 0: nothing was charged

    @property
    def passes(self) -> bool:
        """Whether it gains more than chance gives."""
        return self.gain > self.chance


@dataclass(frozen=True, eq=False)
class PairGains(FrozenArrays):
    """The gain of every pair of columns, as matrices; NaN on the diagonal, and everywhere where no pair was scored."""

    names: tuple[str, ...]
    blocks: tuple[Subset, ...]
    gains: Matrix
    errors: Matrix
    chances: Matrix

    @property
    def inside(self) -> Mask:
        """Whether two columns stand together in a block."""
        inside = np.zeros(self.gains.shape, dtype=bool)
        for block in self.blocks:
            inside[np.ix_(block, block)] = True
        return inside

    @property
    def passes(self) -> Mask:
        """Whether a pair gains more than chance gives; where nothing was charged, more than nothing."""
        passes: Mask = self.gains > self.chances
        return passes


@dataclass(frozen=True)
class Torn:
    """What is lost where a column stands alone, and the rest of its block stays together."""

    column: int
    name: str
    block: Subset
    loss: float  # gain of the block minus that of the rest, nats a row
    chance: float  # what the block is charged more than the rest


def gain_of(scores: SubsetScores, columns: Sequence[int]) -> Gain:
    """The gain of one subset."""
    subset = tuple(columns)
    at = scores.subsets.index(subset)
    return Gain(
        subset,
        tuple(scores.names[c] for c in subset),
        float(scores.scores[at]),
        scores.gain(subset),
        float(scores.gain_errors[at]),
        float(scores.charges[at]),
    )


def block_gains(model: StructureEstimator) -> list[Gain]:
    """The gain of each block, in the order of the model's blocks."""
    return [gain_of(selected_from(model), block) for block in blocks_of(model)]


def group_gains(model: StructureEstimator) -> list[float]:
    """What each group of columns that hang together gains: its block, or its cliques minus what they share."""
    scores, terms = selected_from(model), [*((block, 1) for block in blocks_of(model))]
    terms += [(separator, -1) for separator in separators_of(model)]
    return [
        sum(sign * scores.gain(subset) for subset, sign in terms if set(subset) <= set(group))
        for group in model.partition_
    ]


def pair_gains(scores: SubsetScores, blocks: Partition = ()) -> PairGains:
    """The gains of all pairs in the table, and which of them stand together in `blocks`."""
    d = scores.n_columns
    matrices = [np.full((d, d), np.nan) for _ in range(3)]
    if scores.max_block_size > 1 and d > 1:
        here, (first, second) = scores.subsets.of_size(2), scores.subsets.members(2).T
        for matrix, values in zip(matrices, (scores.gains, scores.gain_errors, scores.charges), strict=True):
            matrix[first, second] = matrix[second, first] = values[here]
    return PairGains(scores.names, tuple(blocks), *matrices)


def torn_columns(model: StructureEstimator) -> list[Torn]:
    """For each column of a block of several, what is lost where it is torn from it; the largest loss first."""
    scores = selected_from(model)
    found = []
    for block in blocks_of(model):
        for column in block if len(block) > 1 else ():
            rest = tuple(c for c in block if c != column)
            whole, left = gain_of(scores, block), gain_of(scores, rest)
            loss, chance = whole.gain - left.gain, whole.chance - left.chance
            found.append(Torn(column, scores.names[column], block, loss, chance))
    return sorted(found, key=lambda torn: -torn.loss)
