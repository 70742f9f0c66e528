"""What a score table and a fitted model say beyond the best partition: numbers, and sentences with numbers.

Nothing here draws. `isde.plots` draws these numbers, `isde.report` writes them on a page.
"""

from isde.inspection.all_partitions import Landscape, landscape
from isde.inspection.bandwidths import BandwidthCurve, bandwidth_curve
from isde.inspection.gains import (
    Gain,
    PairGains,
    Torn,
    block_gains,
    blocks_of,
    group_gains,
    is_tree,
    pair_gains,
    scores_of,
    separators_of,
    torn_columns,
)
from isde.inspection.hierarchy import Hierarchy, hierarchy
from isde.inspection.near_best import (
    Neighbour,
    Neighbourhood,
    best_partition,
    extremes,
    neighbourhood,
    runner_up,
    runners_up,
)
from isde.inspection.plausibility import Plausibility, plausibility, tree_over_blocks
from isde.inspection.rows import LowRow, blame, lowest_rows
from isde.inspection.sentences import least_correlation, notes
from isde.inspection.shapes import BlockShape, ColumnShape, PairShape, block_shape, block_shapes
from isde.inspection.worth import HeldOut, held_out

__all__ = [
    "BandwidthCurve",
    "BlockShape",
    "ColumnShape",
    "Gain",
    "HeldOut",
    "Hierarchy",
    "Landscape",
    "LowRow",
    "Neighbour",
    "Neighbourhood",
    "PairGains",
    "PairShape",
    "Plausibility",
    "Torn",
    "bandwidth_curve",
    "best_partition",
    "blame",
    "block_gains",
    "block_shape",
    "block_shapes",
    "blocks_of",
    "extremes",
    "group_gains",
    "held_out",
    "hierarchy",
    "is_tree",
    "landscape",
    "least_correlation",
    "lowest_rows",
    "neighbourhood",
    "notes",
    "pair_gains",
    "plausibility",
    "runner_up",
    "runners_up",
    "scores_of",
    "separators_of",
    "torn_columns",
    "tree_over_blocks",
]
