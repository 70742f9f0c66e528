"""Independence Structure Density Estimation: which columns move together, and a density built from that."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isde.artifacts import load
    from isde.baselines.block_covariance import BlockDiagonalGaussian
    from isde.baselines.covariance import EmpiricalGaussian
    from isde.baselines.forest import ForestDensity
    from isde.baselines.kernel import CVKDE
    from isde.baselines.mixture import GaussianMixtureCV
    from isde.density import fit_blocks
    from isde.estimator import ISDE
    from isde.partitions import (
        count_partitions,
        edit_distance,
        enumerate_partitions,
        random_partition,
        random_walk,
    )
    from isde.run.clusters import cluster
    from isde.scores import SubsetScores
    from isde.scoring import score_subsets
    from isde.selection import Selection
    from isde.solvers import Constraints, best_partitions, select_partition, worst_partitions
    from isde.tree_density import fit_tree
    from isde.tree_estimator import TreeISDE
    from isde.tree_selection import TreeSelection
    from isde.tree_solvers import select_tree

__version__ = "0.1.0"

_HOMES = {
    "Constraints": "solvers",
    "CVKDE": "baselines.kernel",
    "ISDE": "estimator",
    "BlockDiagonalGaussian": "baselines.block_covariance",
    "EmpiricalGaussian": "baselines.covariance",
    "ForestDensity": "baselines.forest",
    "GaussianMixtureCV": "baselines.mixture",
    "Selection": "selection",
    "SubsetScores": "scores",
    "TreeISDE": "tree_estimator",
    "TreeSelection": "tree_selection",
    "best_partitions": "solvers",
    "cluster": "run.clusters",
    "count_partitions": "partitions",
    "edit_distance": "partitions",
    "enumerate_partitions": "partitions",
    "fit_blocks": "density",
    "fit_tree": "tree_density",
    "load": "artifacts",
    "random_partition": "partitions",
    "random_walk": "partitions",
    "score_subsets": "scoring",
    "select_partition": "solvers",
    "select_tree": "tree_solvers",
    "worst_partitions": "solvers",
}

_MODULES = ("inspection", "plots", "synthetic")
"""Modules that users reach through `isde`."""

__all__ = [
    "CVKDE",
    "ISDE",
    "BlockDiagonalGaussian",
    "Constraints",
    "EmpiricalGaussian",
    "ForestDensity",
    "GaussianMixtureCV",
    "Selection",
    "SubsetScores",
    "TreeISDE",
    "TreeSelection",
    "best_partitions",
    "cluster",
    "count_partitions",
    "edit_distance",
    "enumerate_partitions",
    "fit_blocks",
    "fit_tree",
    "load",
    "random_partition",
    "random_walk",
    "score_subsets",
    "select_partition",
    "select_tree",
    "worst_partitions",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: scikit-learn and numba take a second that `isde --help` should not.
    if name in _HOMES:
        return getattr(import_module(f"isde.{_HOMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"isde.{name}")
    raise AttributeError(f"module 'isde' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
