"""`isde.load`: whatever isde has saved, by path."""

from __future__ import annotations

from pathlib import Path

from isde.archive import read_archive
from isde.baselines.block_covariance import BlockDiagonalGaussian
from isde.baselines.covariance import EmpiricalGaussian
from isde.baselines.forest import ForestDensity
from isde.baselines.kernel import CVKDE
from isde.baselines.mixture import GaussianMixtureCV
from isde.density import DensityAlongTree, ProductDensity
from isde.density_estimator import DensityEstimator
from isde.errors import InputError, ISDEError, first_line
from isde.estimator import ISDE
from isde.scores import SubsetScores
from isde.tree_density import TreeDensity
from isde.tree_estimator import TreeISDE

MODEL_FILE = "model.isde"
"""What the command line calls it inside a run folder."""

ESTIMATORS: tuple[type[DensityEstimator], ...] = (
    ISDE,
    TreeISDE,
    CVKDE,
    ForestDensity,
    GaussianMixtureCV,
    BlockDiagonalGaussian,
    EmpiricalGaussian,
)

DENSITIES: tuple[type[DensityAlongTree], ...] = (ProductDensity, TreeDensity)

KINDS: dict[str, type[DensityEstimator] | type[SubsetScores] | type[DensityAlongTree]] = {
    **{estimator.archive_kind: estimator for estimator in ESTIMATORS},
    **{density.archive_kind: density for density in DENSITIES},
    "scores": SubsetScores,
}


def load(path: str | Path) -> DensityEstimator | SubsetScores | DensityAlongTree:
    """A saved model, score table or density; for the folder of a run, its model."""
    path = Path(path)
    if path.is_dir():
        if not (path / MODEL_FILE).is_file():
            raise InputError(f"{path} holds no {MODEL_FILE}: it is no folder made by isde fit.")
        path = path / MODEL_FILE
    if not path.exists():
        raise InputError(f"{path} does not exist: give a folder made by isde fit, or a file saved by isde.")
    kind, header, arrays = read_archive(path)
    if kind not in KINDS:
        raise InputError(f"{path} holds a {kind!r}, which this isde does not know: upgrade isde.")
    try:
        return KINDS[kind].from_archive(header, arrays)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, RecursionError, ISDEError) as error:
        raise InputError(f"{path} is damaged: its content does not fit together ({first_line(error)}).") from error
