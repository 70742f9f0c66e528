"""What the items read: cells from public or shipped files, and score tables that someone saved."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from isde.artifacts import load
from isde.data.readers import read_table
from isde.data.table import Table
from isde.errors import InputError
from isde.progress import say
from isde.scores import SubsetScores

LABEL = "label"
NO_MARKERS = ("time", "cell_length", "dna1", "dna2", "viability", "file_number", "event_number", "label", "individual")
"""Columns of the public files of Weber and Robinson that are no markers."""

COFACTOR = 5.0
LARGEST_TRANSFORMED = 15.0
"""arcsinh(x / 5) passes this only for x above eight million, counts pass it everywhere: it tells which ones a file has.
The public files exist both ways."""

SAVED_LEVINE13, SAVED_LEVINE32 = "a6205cfda4ba6edc", "1e6b9da782e6f1a4"
"""Starts of the SHA-256 of the author's two files of saved scores."""

KNOWN_BEST = {
    SAVED_LEVINE13: (15.117430870747343, "(0,1,4,5,12) (3,8,10) (2,7)"),
    SAVED_LEVINE32: (45.50636810024885, "(0,1) (8,28) (14,17) (18,30) (12,22,23) (19,25,29)"),
}
"""Their optima: score, and the blocks of two or more columns."""


def read_cells(path: Path) -> Table:
    """The rows of a file. With a column `label`, as in the public Levine files, it is prepared as in the paper.

    That is: the labelled cells (label is a number), the markers only, arcsinh(x / 5) unless that was done. Any other
    file is taken as it is.
    """
    table = read_table(path)
    lower = [name.lower() for name in table.names]
    if LABEL not in lower:
        return table
    labelled = np.isfinite(table.X[:, lower.index(LABEL)])
    if not labelled.any():
        raise InputError(f"{path} has no labelled cells: its column {LABEL!r} holds no number.")
    markers = [i for i, name in enumerate(lower) if name not in NO_MARKERS]
    X = table.X[labelled][:, markers]
    counts = bool(X.max() > LARGEST_TRANSFORMED)
    say(
        f"{path.name}: {len(X):,} labelled of {len(table.X):,} cells, {len(markers)} markers, "
        + (f"transformed by arcsinh(x / {COFACTOR:g})" if counts else "transformed already")
    )
    return Table(np.arcsinh(X / COFACTOR) if counts else X, tuple(table.names[i] for i in markers))


def read_scores(path: Path) -> SubsetScores:
    """A score table: the author's CSV (subset, score, bandwidth; columns counted from 0), or one saved by isde."""
    if path.suffix.lower() != ".csv":
        found = load(path)
        if not isinstance(found, SubsetScores):
            raise InputError(f"{path} holds no score table.")
        return found
    try:
        with open(path, newline="", encoding="utf-8") as lines:
            scores = {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is no table of scores ({error}): it needs the columns subset, as in '0 3 4', and score."
        ) from error
    return SubsetScores.from_dict(scores)
