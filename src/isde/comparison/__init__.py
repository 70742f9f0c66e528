"""Density estimators side by side on the same rows: the paper's real-data experiment, for any estimators.

A draw takes training rows, and validation samples from the rows left. Every method is fitted on the training rows and
scored on every validation row once; all numbers of the comparison follow from these log-densities.
"""

from isde.comparison.draws import TRAIN_ROWS, VALIDATION_ROWS, Draw, draw_rows
from isde.comparison.methods import METHODS, PAPER_SPLIT, Method, MethodOptions, build_methods
from isde.comparison.results import (
    LOWEST_LOG,
    SCALE_NOTE,
    Comparison,
    Difference,
    MethodFit,
    MethodSummary,
    Record,
    underflows,
)
from isde.comparison.side_by_side import compare

__all__ = [
    "LOWEST_LOG",
    "METHODS",
    "PAPER_SPLIT",
    "SCALE_NOTE",
    "TRAIN_ROWS",
    "VALIDATION_ROWS",
    "Comparison",
    "Difference",
    "Draw",
    "Method",
    "MethodFit",
    "MethodOptions",
    "MethodSummary",
    "Record",
    "build_methods",
    "compare",
    "draw_rows",
    "underflows",
]
