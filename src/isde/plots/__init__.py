"""Displays in scikit-learn's sense: they draw numbers they are given on axes, and never compute.

The numbers are attributes, `plot(ax=None)` draws them and leaves the axes in `ax_` and `figure_`, and a class method
takes them from a model or a result (`from_estimator`, `from_scores`, ...). No display touches global state.
"""

from isde.plots.all_partitions import LandscapeDisplay
from isde.plots.bandwidths import BandwidthDisplay
from isde.plots.block_diagram import BlockDiagramDisplay
from isde.plots.clique_tree import CliqueTreeDisplay
from isde.plots.co_blocks import CoBlockDisplay
from isde.plots.common import EDGE, require_matplotlib
from isde.plots.comparison import ComparisonDisplay, figure_size
from isde.plots.densities import BlockDensityDisplay, SamplesDisplay
from isde.plots.gain_heatmap import GainHeatmapDisplay
from isde.plots.graph import GraphDisplay
from isde.plots.near_best import ExtremesDisplay, NeighbourhoodDisplay

__all__ = [
    "EDGE",
    "BandwidthDisplay",
    "BlockDensityDisplay",
    "BlockDiagramDisplay",
    "CliqueTreeDisplay",
    "CoBlockDisplay",
    "ComparisonDisplay",
    "ExtremesDisplay",
    "GainHeatmapDisplay",
    "GraphDisplay",
    "LandscapeDisplay",
    "NeighbourhoodDisplay",
    "SamplesDisplay",
    "figure_size",
    "require_matplotlib",
]
