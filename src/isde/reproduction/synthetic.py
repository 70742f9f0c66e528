"""Item 3: mean log-likelihood on synthetic data whose partition is known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.baselines.forest import ForestDensity, heaviest_forest, pair_gains
from isde.baselines.kernel import CVKDE
from isde.partitions import Partition
from isde.reproduction.item import (
    Finding,
    Item,
    Outcome,
    Results,
    Row,
    Settings,
    Step,
    agree,
    joined,
    label_of,
    mean_sd,
    seed_for,
    short,
    show_partition,
    where_they_differ,
)
from isde.reproduction.protocols import (
    BlockDensities,
    one_split_scores,
    rescale,
    sample_scores,
    without_underflows,
)
from isde.scores import SubsetScores
from isde.solvers import select_partition
from isde.synthetic import make_structured, structure_partition

Structure = tuple[int, ...]

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
    repetitions = settings.pick(5, 2, 2)
    return [
        Step(
            {"structure": " ".join(map(str, structure)), "repetition": r},
            partial(_repetition, structure, seed_for(settings.seed, s, r), settings),
        )
        for s, structure in enumerate(structures)
        for r in range(repetitions)
    ]


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
        self.scores: SubsetScores | None = None

    def isde(self) -> Found:
        self.scores = self._table(self.grid)
        return self._selected(self.scores, self.grid)

    def one_bandwidth(self) -> Found:
        return self._selected(self._table([ONE_BANDWIDTH]), [ONE_BANDWIDTH])

    def forest(self) -> Found:
        assert self.scores is not None
        d = self.U.shape[1]
        if self.is_paper:
            edges = heaviest_forest(pair_gains(self.scores)).edges
            log_densities = self._densities(self.scores, self.grid).of_forest(d, edges)
        else:
            model = ForestDensity(n_jobs=self.settings.jobs).fit(self.U, subset_scores=self.scores)
            edges, log_densities = model.edges_, model.score_samples(self.V[0])[None]
        inside = [any(set(edge) <= set(block) for block in self.truth) for edge in edges]
        return log_densities, {
            "is_truth": "",
            "structure_found": " ".join(f"{i}-{j}" for i, j in sorted(edges)),
            "is_subgraph": all(inside),
        }

    def kernel(self) -> Found:
        model = CVKDE(bandwidths=self.grid, n_jobs=self.settings.jobs).fit(self.U)
        return model.score_samples(self.V[0])[None], {"is_truth": "", "structure_found": "", "is_subgraph": ""}

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
    shown = [s for s in STRUCTURES if results.where(structure=" ".join(map(str, s)))]
    values = {
        (method, s): [row["log_likelihood"] for row in results.where(structure=" ".join(map(str, s)), method=method)]
        for method in PUBLISHED
        for s in shown
    }
    if not shown:
        return []
    is_paper = results.settings["protocol"] == "paper"
    names = joined(map(label_of, shown))
    return [
        *(_levels(results, shown, values, method, is_paper) for method in PUBLISHED),
        *(_differences(shown, values, method, is_paper) for method in PUBLISHED if method != ISDE_NAME),
        _recovery(results, shown),
        _forests(results, shown),
        Finding(
            f"{names}: seconds to fit ISDE",
            f"{joined(_published(PUBLISHED_SECONDS, shown))} (on a GPU)",
            joined(short(results.seconds(ISDE_NAME, structure=" ".join(map(str, s)))) for s in shown),
            "Another machine and another engine: sums of all subsets as matrix products on the processor.",
        ),
    ]


Values = dict[tuple[str, Structure], list[float]]


def _published(row: Sequence[Any], shown: Sequence[Structure]) -> list[Any]:
    return [row[STRUCTURES.index(s)] for s in shown]


def _levels(results: Results, shown: Sequence[Structure], values: Values, method: str, is_paper: bool) -> Finding:
    published = _published(PUBLISHED[method], shown)
    dropped = sum(row["dropped_rows"] for row in results.where(method=method))
    agreements = {label_of(s): agree(p, values[method, s]) for p, s in zip(published, shown, strict=True)}
    reason = "the level moves with the ranges of the two random samples" if is_paper else CLEAN_DIFFERS
    return Finding(
        f"{joined(map(label_of, shown))}: {method}",
        joined(f"{mean:.2f} ({sd:.2f})" for mean, sd in published),
        joined(mean_sd(values[method, s]) for s in shown) + (f"; {dropped} rows dropped" if is_paper else ""),
        where_they_differ(agreements, reason, "Within three standard errors"),
    )


def _differences(shown: Sequence[Structure], values: Values, method: str, is_paper: bool) -> Finding:
    published = [
        own[0] - isde[0]
        for own, isde in zip(_published(PUBLISHED[method], shown), _published(PUBLISHED[ISDE_NAME], shown), strict=True)
    ]
    differences = {s: np.subtract(values[method, s], values[ISDE_NAME, s]).tolist() for s in shown}
    agreements = {
        # Of the published difference the spread is not known; a tenth of a nat is what its rounding and five
        # repetitions leave open.
        label_of(s): abs(float(np.mean(differences[s])) - p) <= 0.1 or agree((p, 0.05), differences[s])
        for p, s in zip(published, shown, strict=True)
    }
    reason = "other random samples" if is_paper else CLEAN_DIFFERS
    return Finding(
        f"{joined(map(label_of, shown))}: {method} minus ISDE",
        joined(f"{p:+.2f}" for p in published),
        joined(f"{np.mean(differences[s]):+.2f}" for s in shown),
        where_they_differ(agreements, reason),
    )


def _recovery(results: Results, shown: Sequence[Structure]) -> Finding:
    rows = {label_of(s): results.where(structure=" ".join(map(str, s)), method=ISDE_NAME) for s in shown}
    exact = {label: sum(row["is_truth"] for row in some) for label, some in rows.items()}
    return Finding(
        f"{joined(rows)}: ISDE finds the true partition",
        joined("5 of 5" for _ in shown),
        joined(f"{exact[label]} of {len(some)}" for label, some in rows.items()),
        where_they_differ(
            {label: exact[label] == len(some) for label, some in rows.items()},
            "one split of the rows in two can be unlucky",
            "The same",
        ),
    )


def _forests(results: Results, shown: Sequence[Structure]) -> Finding:
    measured, agreements = [], {}
    for s in shown:
        rows = results.where(structure=" ".join(map(str, s)), method=FDE_NAME)
        what, agrees = _forest_in_words(s, [str(row["structure_found"]) for row in rows], rows)
        measured.append(f"{what} {sum(agrees)} of {len(rows)}")
        agreements[label_of(s)] = all(agrees)
    return Finding(
        f"{joined(map(label_of, shown))}: graph of FDE",
        joined(_published(PUBLISHED_FOREST, shown)),
        joined(measured),
        where_they_differ(
            agreements, "on one split of the rows, pairs without dependence can gain a little by chance", "The same"
        ),
    )


def _forest_in_words(structure: Structure, graphs: list[str], rows: list[Row]) -> tuple[str, list[bool]]:
    if structure == STRUCTURES[0]:
        truth = " ".join(f"{i}-{j}" for i, j in (b for b in structure_partition(structure) if len(b) == 2))
        return "the true graph", [graph == truth for graph in graphs]
    if structure == STRUCTURES[1]:
        return "no edge", [graph == "" for graph in graphs]
    return "a subgraph of the truth", [bool(row["is_subgraph"]) for row in rows]


ITEM = Item(
    name="table-synthetic",
    paper="Table 4: log-likelihood of ISDE, FDE, CVKDE on [2,2,1], [3,3,3], [4,4,2,2]; partitions and forests found",
    steps=steps,
    findings=findings,
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
