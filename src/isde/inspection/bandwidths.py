"""Cross-validated log-likelihood of a block against its bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isde.arrays import FrozenArrays, Vector
from isde.data.checks import as_table
from isde.data.table import columns_of_model
from isde.data.words import in_braces
from isde.engine.direct import cv_log_likelihood
from isde.engine.grid import BandwidthGrid
from isde.errors import InputError
from isde.inspection.gains import block_of, blocks_of
from isde.marginals.kde import KDEBlock
from isde.marginals.marginal import of_columns
from isde.splits import contiguous_folds, shuffled
from isde.structure_estimator import StructureEstimator
from isde.subsets import Subset


@dataclass(frozen=True, eq=False)
class BandwidthCurve(FrozenArrays):
    """What kernels of each bandwidth of a grid are worth for a block."""

    block: Subset
    names: tuple[str, ...]
    bandwidths: Vector  # on the rescaled data, ascending; the one chosen is among them
    scores: Vector  # mean log-density of the rows left out of each fold, nats, in the units of the data
    chosen: float


def bandwidth_curve(model: StructureEstimator, X: Any, block: Sequence[int | str]) -> BandwidthCurve:
    """The curve that the bandwidth of a block of kernels was chosen from, on the rows it was fitted on."""
    own, blocks = block_of(model, block), blocks_of(model)
    density, names = model.density_, tuple(model.density_.names[c] for c in own)
    fitted = density.blocks[blocks.index(own)]
    if not isinstance(fitted, KDEBlock):
        raise InputError(
            f"{in_braces(names)} has no single bandwidth, its density is {type(fitted).__name__}: "
            "curves are there for marginal='kde'."
        )
    matrix = columns_of_model(as_table(X, density.names), density.names, "X").X
    rows = density.scaling.transform(matrix)[shuffled(len(matrix))]
    grid = np.unique(np.append(BandwidthGrid.of(model.bandwidths).values, fitted.bandwidth))
    scores = cv_log_likelihood(of_columns(rows, own), contiguous_folds(len(rows), model.cv), grid)
    shift = density.scaling.log_jacobian[list(own)].sum()
    return BandwidthCurve(own, names, grid, scores + shift, fitted.bandwidth)
