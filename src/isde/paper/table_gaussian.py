"""Item 10: the Gaussian appendix, Kullback-Leibler loss and recovery of the partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from isde.arrays import Matrix
from isde.baselines.block_covariance import BlockDiagonalGaussian
from isde.baselines.covariance import gaussian_kl
from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step
from isde.paper.structures import Structure, StructureTable, structure_steps
from isde.paper.wording import joined, show_partition, where_they_differ
from isde.partitions import Partition, is_admissible
from isde.scoring import score_subsets
from isde.solvers import select_partition
from isde.splits import resolve_split
from isde.synthetic import block_covariance, make_block_gaussian

SIGMA = 0.7
STRUCTURES = ((2, 2), (4, 4, 1), (4, 3, 2, 3), (4, 4, 3, 3, 2))
PUBLISHED = {
    "ISDE": ((0.60, 0.21), (1.88, 0.52), (2.85, 0.60), (5.30, 0.96)),
    "BDCS": ((0.60, 0.21), (1.72, 0.46), (2.63, 1.01), (4.42, 1.80)),
    "empirical": ((0.80, 0.20), (3.62, 0.53), (6.88, 0.84), (12.63, 0.83)),
}
PUBLISHED_RECOVERY = {
    "ISDE": ("100 % (100 %)", "80 % (100 %), by the code's output 60 %", "40 % (100 %)", "0 % (100 %)"),
    "BDCS": ("100 % (100 %)", "100 % (100 %)", "80 % (100 %)", "60 % (100 %)"),
}
PUBLISHED_EXACT = {"ISDE": ((5,), (4, 3), (2,), (0,)), "BDCS": ((5,), (5,), (4,), (3,))}
"""Of five; for [4,4,1] the text and the code's output differ."""

PUBLISHED_SECONDS = (0.02, 0.35, 3.0, 60.1)


def steps(settings: Settings) -> list[Step]:
    """One step for each structure and repetition."""
    structures = settings.pick(STRUCTURES, STRUCTURES[:3], ((2, 2), (2, 1)))
    select_all(np.random.default_rng(0).normal(size=(40, 2)), 0, settings.jobs)  # compiles
    return structure_steps(structures, settings.pick(5, 2, 2), settings, _repetition)


def select_all(X: Matrix, seed: int, jobs: int | None) -> Partition:
    """ISDE's partition with k = d: mean-zero Gaussians fitted on one half of the rows, scored on the other."""
    ((fit, score),) = resolve_split("paper", seed).split(X)
    options: dict[str, Any] = {"max_block_size": X.shape[1], "marginal": "gaussian-zero-mean", "n_jobs": jobs}
    return select_partition(score_subsets(X[fit], X[score], **options)).partition


def block_diagonal(covariance: Matrix, partition: Partition) -> Matrix:
    """The covariance with zeros between blocks."""
    kept = np.zeros_like(covariance)
    for block in partition:
        kept[np.ix_(block, block)] = covariance[np.ix_(block, block)]
    return kept


def _repetition(structure: Structure, seed: int, settings: Settings, _: Sequence[Row]) -> Outcome:
    X, truth = make_block_gaussian(structure, settings.pick(6000, 2000, 200), sigma=SIGMA, random_state=seed)
    empirical, true_covariance = np.cov(X.T, bias=True), block_covariance(structure, SIGMA)
    start = time.perf_counter()
    by_isde = select_all(X, seed, settings.jobs)
    chosen = time.perf_counter()
    by_bdcs = BlockDiagonalGaussian(scale=None).fit(X).partition_
    done = time.perf_counter()
    whole: Partition = (tuple(range(len(empirical))),)
    rows = [
        {
            "method": method,
            "kl_x_1000": 1000 * gaussian_kl(true_covariance, block_diagonal(empirical, partition)),
            "is_truth": partition == truth,
            "is_admissible": is_admissible(partition, truth),
            "partition": show_partition(partition),
        }
        for method, partition in (("ISDE", by_isde), ("BDCS", by_bdcs), ("empirical", whole))
    ]
    return Outcome(rows, {"ISDE": chosen - start, "BDCS": done - chosen})


def findings(results: Results) -> list[Finding]:
    """A line for each row of the two tables, the four structures in it."""
    table = StructureTable(results, STRUCTURES)
    if not table.shown:
        return []
    return [
        *(_loss(table, method) for method in PUBLISHED),
        _difference(table),
        *(_recovery(table, method) for method in PUBLISHED_EXACT),
        table.seconds(
            "seconds for ISDE",
            joined(table.published(PUBLISHED_SECONDS)),
            "ISDE",
            "Another machine, and all subsets scored in closed form.",
        ),
    ]


def _loss(table: StructureTable, method: str) -> Finding:
    reason = "other random samples, and the loss of one of five moves with its partition"
    return table.means(f"KL x 1000, {method}", PUBLISHED[method], table.values(method, "kl_x_1000"), reason)


def _difference(table: StructureTable) -> Finding:
    """BDCS against ISDE on the same samples: which of them is closer to the truth."""
    both = zip(table.published(PUBLISHED["BDCS"]), table.published(PUBLISHED["ISDE"]), strict=True)
    published = [bdcs[0] - isde[0] for bdcs, isde in both]
    bdcs, isde = (table.values(method, "kl_x_1000") for method in ("BDCS", "ISDE"))
    measured = [np.subtract(bdcs[s], isde[s]) for s in table.shown]
    return Finding(
        f"{table.label}: KL x 1000, BDCS minus ISDE",
        joined(f"{p:+.2f}" for p in published),
        joined(f"{own.mean():+.2f} ({own.std(ddof=1):.2f})" for own in measured),
        where_they_differ(
            table.agreements([p * own.mean() >= 0 for p, own in zip(published, measured, strict=True)]),
            "other random samples, five of them, and a difference smaller than its spread",
            "The same sign",
        ),
    )


def _recovery(table: StructureTable, method: str) -> Finding:
    measured, agreements = [], []
    for rows, published in zip(table.rows(method).values(), table.published(PUBLISHED_EXACT[method]), strict=True):
        n, exact, admissible = len(rows), *(sum(row[name] for row in rows) for name in ("is_truth", "is_admissible"))
        measured.append(f"{100 * exact / n:.0f} % ({100 * admissible / n:.0f} %)")
        agreements.append(exact * 5 / n in published and admissible == n)
    return Finding(
        f"{table.label}: exact recovery (admissible), {method}",
        joined(table.published(PUBLISHED_RECOVERY[method])),
        joined(measured),
        where_they_differ(table.agreements(agreements), "other random samples, of which one is 20 %", "The same"),
    )


ITEM = Item(
    "table-gaussian",
    "Tables 8 and 9: Kullback-Leibler loss and recovery of ISDE, BDCS and empirical covariance on Gaussian data",
    steps,
    findings,
    notes=(
        "As in the author's code, marginals have mean zero while partitions are compared, and the final covariance of "
        "each block comes from all rows, mean removed; nothing is rescaled and no row dropped: one protocol.",
        "BDCS finds every jump of the dimension exactly where the author's code tries 1,000 penalties between 0 and "
        "10, and removes the mean throughout.",
    ),
)
