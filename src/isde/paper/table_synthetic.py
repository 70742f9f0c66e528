"""Item 3: mean log-likelihood on synthetic data whose partition is known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.baselines.kernel import CVKDE
from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step
from isde.paper.protocols import (
    BlockDensities,
    along_forest,
    of_samples,
    one_split_scores,
    rescale,
    sample_scores,
    without_underflows,
)
from isde.paper.structures import Structure, StructureTable, structure_steps
from isde.paper.wording import agree, joined, show_edges, show_partition, where_they_differ
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.solvers import select_partition
from isde.synthetic import make_structured, structure_partition

STRUCTURES: tuple[Structure, ...] = ((2, 2, 1), (3, 3, 3), (4, 4, 2, 2))
ONE_BANDWIDTH = 0.05
ISDE_NAME, FDE_NAME, CVKDE_NAME, ONE_NAME = "ISDE", "FDE", "CVKDE", f"ISDE at bandwidth {ONE_BANDWIDTH}"

PUBLISHED = {
    ISDE_NAME: ((1.83, 0.08), (4.05, 0.15), (6.30, 0.25)),
    FDE_NAME: ((1.83, 0.08), (2.88, 0.14), (5.89, 0.33)),
    CVKDE_NAME: ((0.56, 0.03), (3.49, 0.11), (3.96, 0.16)),
    ONE_NAME: ((1.01, 0.02), (4.04, 0.14), (5.55, 0.25)),
}
PUBLISHED_SECONDS = (16.0, 297.2, 2611.5)
PUBLISHED_FOREST = ("the true graph 5 of 5", "no edge 5 of 5", "a subgraph of the truth 5 of 5")

CLEAN_DIFFERS = (
    "one scaler shifts no validation row against the density, the grid is the text's, and bandwidths of ISDE come from "
    "all rows"
)
CODE_GRID = np.geomspace(0.01, 10, 30)
"""What produced the published numbers. The text has 0.01 to 1: the default here, which grows where it must."""


def steps(settings: Settings) -> list[Step]:
    """One step for each structure and repetition."""
    structures = settings.pick(STRUCTURES, STRUCTURES, ((2, 2, 1), (3, 1)))
    return structure_steps(structures, settings.pick(5, 2, 2), settings, _repetition)


def _repetition(structure: Structure, seed: int, settings: Settings, _: Sequence[Row]) -> Outcome:
    n = settings.pick(5000, 1000, 120)
    rng = np.random.RandomState(seed)
    (train, truth), (valid, _partition) = (make_structured(structure, n, random_state=rng) for _ in range(2))
    U, V = rescale(train, valid[None], settings.protocol)
    trial = _Trial(U, V, truth, seed, settings)
    rows, seconds = [], {}
    for name, method in (
        (ISDE_NAME, trial.isde),
        (FDE_NAME, trial.forest),
        (CVKDE_NAME, trial.kernel),
        (ONE_NAME, trial.one_bandwidth),
    ):
        start = time.perf_counter()
        log_densities, found = method()
        seconds[name] = time.perf_counter() - start
        rows.append({"method": name} | sample_scores(log_densities, settings.protocol)[0] | found)
    return Outcome(rows, seconds)


Found = tuple[NDArray[np.float64], Row]


class _Trial:
    """The methods on one training and one validation sample; ISDE and FDE share a table of scores."""

    def __init__(self, U: Any, V: Any, truth: Partition, seed: int, settings: Settings) -> None:
        self.U, self.V, self.truth, self.seed, self.settings = U, V, truth, seed, settings
        self.is_paper = settings.protocol == "paper"
        self.grid = CODE_GRID.tolist() if self.is_paper else None

    @cached_property
    def scores(self) -> SubsetScores:
        return self._table(self.grid)

    def isde(self) -> Found:
        return self._selected(self.scores, self.grid)

    def one_bandwidth(self) -> Found:
        return self._selected(self._table([ONE_BANDWIDTH]), [ONE_BANDWIDTH])

    def forest(self) -> Found:
        densities = self._densities(self.scores, self.grid)
        log_densities, edges = along_forest(densities, self.V, self.scores, self.settings.protocol)
        inside = [any(set(edge) <= set(block) for block in self.truth) for edge in edges]
        return log_densities, {
            "is_truth": "",
            "structure_found": show_edges(edges),
            "is_subgraph": all(inside),
        }

    def kernel(self) -> Found:
        model = CVKDE(bandwidths=self.grid, n_jobs=self.settings.jobs).fit(self.U)
        return of_samples(model, self.V), {"is_truth": "", "structure_found": "", "is_subgraph": ""}

    def _table(self, grid: Sequence[float] | None) -> SubsetScores:
        d, jobs = self.U.shape[1], self.settings.jobs
        table = one_split_scores(self.U, d, split="paper", bandwidths=grid, seed=self.seed, jobs=jobs)
        return without_underflows(table, self.U, split="paper", seed=self.seed) if self.is_paper else table

    def _selected(self, scores: SubsetScores, grid: Sequence[float] | None) -> Found:
        partition = select_partition(scores).partition
        is_truth = partition == self.truth
        found = {"is_truth": is_truth, "structure_found": show_partition(partition), "is_subgraph": ""}
        return self._densities(scores, grid).of_partition(partition), found

    def _densities(self, scores: SubsetScores, grid: Sequence[float] | None) -> BlockDensities:
        from_table = scores if self.is_paper else None
        return BlockDensities(self.U, self.V, bandwidths=grid, scores=from_table, jobs=self.settings.jobs)


# --- beside the published numbers ------------------------------------------------------------------------------


def findings(results: Results) -> list[Finding]:
    """A line for each row of the table, the three structures in it; differences from ISDE; partitions, forests."""
    table = StructureTable(results, STRUCTURES)
    if not table.shown:
        return []
    return [
        *(_levels(table, method) for method in PUBLISHED),
        *(_differences(table, method) for method in PUBLISHED if method != ISDE_NAME),
        _recovery(table),
        _forests(table),
        table.seconds(
            "seconds to fit ISDE",
            f"{joined(table.published(PUBLISHED_SECONDS))} (on a GPU)",
            ISDE_NAME,
            "Another machine and another engine: sums of all subsets as matrix products on the processor.",
        ),
    ]


def _levels(table: StructureTable, method: str) -> Finding:
    is_paper = table.results.is_paper
    reason = "the level moves with the ranges of the two random samples" if is_paper else CLEAN_DIFFERS
    found = table.means(method, PUBLISHED[method], table.values(method, "log_likelihood"), reason)
    dropped = sum(table.results.column("dropped_rows", method=method))
    return replace(found, measured=f"{found.measured}; {dropped} rows dropped") if is_paper else found


def _differences(table: StructureTable, method: str) -> Finding:
    both = zip(table.published(PUBLISHED[method]), table.published(PUBLISHED[ISDE_NAME]), strict=True)
    published = [own[0] - isde[0] for own, isde in both]
    own, isde = (table.values(name, "log_likelihood") for name in (method, ISDE_NAME))
    differences = [np.subtract(own[s], isde[s]).tolist() for s in table.shown]
    agrees = [
        # Of the published difference the spread is not known; a tenth of a nat is what its rounding and five
        # repetitions leave open.
        abs(float(np.mean(some)) - p) <= 0.1 or agree((p, 0.05), some)
        for p, some in zip(published, differences, strict=True)
    ]
    reason = "other random samples" if table.results.is_paper else CLEAN_DIFFERS
    return Finding(
        f"{table.label}: {method} minus ISDE",
        joined(f"{p:+.2f}" for p in published),
        joined(f"{np.mean(some):+.2f}" for some in differences),
        where_they_differ(table.agreements(agrees), reason),
    )


def _recovery(table: StructureTable) -> Finding:
    found = table.values(ISDE_NAME, "is_truth").values()
    return Finding(
        f"{table.label}: ISDE finds the true partition",
        joined("5 of 5" for _ in table.shown),
        joined(f"{sum(exact)} of {len(exact)}" for exact in found),
        where_they_differ(
            table.agreements([all(exact) for exact in found]), "one split of the rows in two can be unlucky", "The same"
        ),
    )


def _forests(table: StructureTable) -> Finding:
    measured, agreements = [], []
    for s, rows in table.rows(FDE_NAME).items():
        what, agrees = _forest_in_words(s, [str(row["structure_found"]) for row in rows], rows)
        measured.append(f"{what} {sum(agrees)} of {len(rows)}")
        agreements.append(all(agrees))
    return Finding(
        f"{table.label}: graph of FDE",
        joined(table.published(PUBLISHED_FOREST)),
        joined(measured),
        where_they_differ(
            table.agreements(agreements),
            "on one split of the rows, pairs without dependence can gain a little by chance",
            "The same",
        ),
    )


def _forest_in_words(structure: Structure, graphs: list[str], rows: list[Row]) -> tuple[str, list[bool]]:
    if structure == STRUCTURES[0]:
        truth = show_edges((b[0], b[1]) for b in structure_partition(structure) if len(b) == 2)
        return "the true graph", [graph == truth for graph in graphs]
    if structure == STRUCTURES[1]:
        return "no edge", [graph == "" for graph in graphs]
    return "a subgraph of the truth", [bool(row["is_subgraph"]) for row in rows]


ITEM = Item(
    "table-synthetic",
    "Table 4: log-likelihood of ISDE, FDE, CVKDE on [2,2,1], [3,3,3], [4,4,2,2]; partitions and forests found",
    steps,
    findings,
    has_protocols=True,
    version=2,
    notes=(
        "Bandwidths: 30 values from 0.01 to 10 in the author's code, which the protocol paper takes; the text says "
        "0.01 to 1, which the protocol clean takes, growing where the best one is an end.",
        "The density of the protocol paper has bandwidths from W and kernels around all rows, as the author's code; "
        "that of the protocol clean has both from all rows.",
        "The author's subset scores, and so the weights of FDE's pairs, drop rows whose density underflows, each its "
        "own: so do those of the protocol paper. Bandwidths are chosen with every row under either protocol.",
    ),
)
