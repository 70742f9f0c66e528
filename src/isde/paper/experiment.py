"""The experiment on cytometry data that figures 1 to 6 share: rows, scores, densities of blocks."""

from __future__ import annotations

import hashlib
import json
import time
from functools import cached_property, lru_cache, partial

import numpy as np

from isde.arrays import Matrix
from isde.artifacts import load
from isde.comparison import PAPER_SPLIT, Draw, draw_rows
from isde.data.checks import check_columns, check_finite
from isde.data.table import Table
from isde.errors import InputError
from isde.paper.inputs import read_cells
from isde.paper.item import Item, Settings
from isde.paper.protocols import BlockDensities, Samples, one_split_scores, rescale, without_underflows
from isde.scores import SubsetScores
from isde.selection import Selection
from isde.solvers import select_partition

ISDE_GRID = np.geomspace(0.001, 0.1, 30).tolist()
"""Of the author's code; the text does not say."""

LARGE_BLOCKS_UP_TO = 13
"""Columns up to which blocks have at most 5 columns, as for Levine13; beyond, at most 3, as for Levine32."""


class Experiment:
    """Training rows and validation samples of a table, rescaled by the protocol, and ISDE's table of scores."""

    def __init__(self, settings: Settings, repeats: int) -> None:
        assert settings.data is not None
        self.settings, self.repeats = settings, repeats

    @cached_property
    def table(self) -> Table:
        assert self.settings.data is not None
        table = read_cells(self.settings.data)
        check_finite(table.X, table.names)
        check_columns(table.X, table.names)
        return table

    @property
    def max_block_size(self) -> int:
        d = len(self.table.names)
        paper = 5 if d <= LARGE_BLOCKS_UP_TO else 3
        return min(d, paper if self.settings.max_block_size is None else self.settings.max_block_size)

    @cached_property
    def draw(self) -> Draw:
        """The paper's 5,000 rows and samples of 2,000; the first samples are the same however many there are."""
        n, pick = len(self.table.X), self.settings.pick
        train, valid = min(pick(5000, 1500, 120), n // 2), pick(2000, 1000, 60)
        options = {"train_rows": train, "validation_rows": min(valid, (n - train) // 2)}
        (draw,) = draw_rows(n, **options, repeats=self.repeats, random_state=self.settings.seed)
        return draw

    @cached_property
    def rescaled(self) -> tuple[Matrix, Samples]:
        X = self.table.X
        return rescale(X[self.draw.train], X[self.draw.samples], self.settings.protocol)

    @property
    def train(self) -> Matrix:
        return self.rescaled[0]

    @property
    def samples(self) -> Samples:
        return self.rescaled[1]

    @cached_property
    def scored(self) -> tuple[SubsetScores, float]:
        """The table of scores and the seconds it took; read from the cache where an item before has made it.

        Every row counts, so that both protocols start from the same one.
        """
        path = None if self.settings.cache is None else self.settings.cache / f"scores-{self._digest()}.isde"
        if path is not None and path.is_file():
            table = load(path)
            assert isinstance(table, SubsetScores)
            return table, float(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["seconds"])
        start = time.perf_counter()
        table = one_split_scores(
            self.train,
            self.max_block_size,
            split=PAPER_SPLIT,
            bandwidths=ISDE_GRID,
            seed=self.settings.seed,
            jobs=self.settings.jobs,
            verbose=self.settings.verbose,
        )
        seconds = time.perf_counter() - start
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")  # made again when needed
            path.with_suffix(".json").write_text(json.dumps({"seconds": seconds}) + "\n", encoding="utf-8")
            table.save(path)
        return table, seconds

    def _digest(self) -> str:
        """Of everything that the scores depend on."""
        what = hashlib.sha256(self.train.tobytes())
        what.update(f"{self.max_block_size} {self.settings.seed} {PAPER_SPLIT} {ISDE_GRID}".encode())
        return what.hexdigest()[:16]

    @cached_property
    def scores(self) -> SubsetScores:
        """As the protocol averages them."""
        table, _ = self.scored
        if self.settings.protocol == "clean":
            return table
        return without_underflows(table, self.train, split=PAPER_SPLIT, seed=self.settings.seed)

    @cached_property
    def best(self) -> Selection:
        return select_partition(self.scores)

    @cached_property
    def densities(self) -> BlockDensities:
        """Of blocks: as the author's code has them, or as `ISDE` does."""
        from_table = self.scores if self.settings.protocol == "paper" else None
        return BlockDensities(
            self.train,
            self.samples,
            bandwidths=ISDE_GRID,
            scores=from_table,
            jobs=self.settings.jobs,
            verbose=self.settings.verbose,
        )


@lru_cache(maxsize=1)
def experiment(settings: Settings, repeats: int) -> Experiment:
    """One at a time: items that follow each other share it."""
    return Experiment(settings, repeats)


def few_samples(settings: Settings) -> int:
    """Validation samples of the figures about partitions."""
    return settings.pick(10, 3, 2)


def check_width(trial: Experiment, item: str) -> None:
    """Raise where a table has more partitions than can be visited."""
    if len(trial.table.names) > LARGE_BLOCKS_UP_TO:
        raise InputError(
            f"{item} visits every partition, and {len(trial.table.names)} columns have too many, as in the paper: give "
            f"a table of at most {LARGE_BLOCKS_UP_TO} columns."
        )


item_on_cells = partial(Item, needs="data", has_protocols=True, version=2)
"""Makes an item of this experiment; the version is raised when the experiment makes other rows."""
