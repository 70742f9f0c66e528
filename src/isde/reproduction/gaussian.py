"""Item 10: the Gaussian appendix, Kullback-Leibler loss and recovery of the partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.baselines.block_covariance import BlockDiagonalGaussian
from isde.baselines.covariance import gaussian_kl
from isde.partitions import Partition, is_admissible
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
from isde.scoring import score_subsets
from isde.solvers import select_partition
from isde.splits import resolve_split
from isde.synthetic import block_covariance, make_block_gaussian

Matrix = NDArray[np.float64]

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
    return [
        Step(
            {"structure": " ".join(map(str, structure)), "repetition": r},
            partial(_repetition, structure, seed_for(settings.seed, s, r), settings),
        )
        for s, structure in enumerate(structures)
        for r in range(settings.pick(5, 2, 2))
    ]


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


def _repetition(structure: tuple[int, ...], seed: int, settings: Settings, _: Sequence[Row]) -> Outcome:
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
    shown = [s for s in STRUCTURES if results.where(structure=" ".join(map(str, s)))]
    if not shown:
        return []
    places = [STRUCTURES.index(s) for s in shown]
    return [
        *(_loss(results, shown, places, method) for method in PUBLISHED),
        _difference(results, shown, places),
        *(_recovery(results, shown, places, method) for method in PUBLISHED_EXACT),
        Finding(
            f"{joined(map(label_of, shown))}: seconds for ISDE",
            joined(PUBLISHED_SECONDS[i] for i in places),
            joined(short(results.seconds("ISDE", structure=" ".join(map(str, s)))) for s in shown),
            "Another machine, and all subsets scored in closed form.",
        ),
    ]


def _loss(results: Results, shown: Sequence[tuple[int, ...]], places: list[int], method: str) -> Finding:
    values = [
        [row["kl_x_1000"] for row in results.where(structure=" ".join(map(str, s)), method=method)] for s in shown
    ]
    published = [PUBLISHED[method][i] for i in places]
    agreements = {label_of(s): agree(p, v) for s, p, v in zip(shown, published, values, strict=True)}
    return Finding(
        f"{joined(map(label_of, shown))}: KL x 1000, {method}",
        joined(f"{mean:.2f} ({sd:.2f})" for mean, sd in published),
        joined(map(mean_sd, values)),
        where_they_differ(
            agreements,
            "other random samples, and the loss of one of five moves with its partition",
            "Within three standard errors",
        ),
    )


def _difference(results: Results, shown: Sequence[tuple[int, ...]], places: list[int]) -> Finding:
    """BDCS against ISDE on the same samples: which of them is closer to the truth."""
    published = [PUBLISHED["BDCS"][i][0] - PUBLISHED["ISDE"][i][0] for i in places]
    measured = []
    for s in shown:
        bdcs, isde = (
            np.array([row["kl_x_1000"] for row in results.where(structure=" ".join(map(str, s)), method=method)])
            for method in ("BDCS", "ISDE")
        )
        measured.append(bdcs - isde)
    agreements = {label_of(s): p * own.mean() >= 0 for s, p, own in zip(shown, published, measured, strict=True)}
    return Finding(
        f"{joined(map(label_of, shown))}: KL x 1000, BDCS minus ISDE",
        joined(f"{p:+.2f}" for p in published),
        joined(f"{own.mean():+.2f} ({own.std(ddof=1):.2f})" for own in measured),
        where_they_differ(
            agreements, "other random samples, five of them, and a difference smaller than its spread", "The same sign"
        ),
    )


def _recovery(results: Results, shown: Sequence[tuple[int, ...]], places: list[int], method: str) -> Finding:
    measured, agreements = [], {}
    for s, i in zip(shown, places, strict=True):
        rows = results.where(structure=" ".join(map(str, s)), method=method)
        n, exact, admissible = len(rows), *(sum(row[name] for row in rows) for name in ("is_truth", "is_admissible"))
        measured.append(f"{100 * exact / n:.0f} % ({100 * admissible / n:.0f} %)")
        agreements[label_of(s)] = exact * 5 / n in PUBLISHED_EXACT[method][i] and admissible == n
    return Finding(
        f"{joined(map(label_of, shown))}: exact recovery (admissible), {method}",
        joined(PUBLISHED_RECOVERY[method][i] for i in places),
        joined(measured),
        where_they_differ(agreements, "other random samples, of which one is 20 %", "The same"),
    )


ITEM = Item(
    name="table-gaussian",
    paper="Tables 8 and 9: Kullback-Leibler loss and recovery of ISDE, BDCS and empirical covariance on Gaussian data",
    steps=steps,
    findings=findings,
    notes=(
        "As in the author's code, marginals have mean zero while partitions are compared, and the final covariance of "
        "each block comes from all rows, mean removed; nothing is rescaled and no row dropped: one protocol.",
        "BDCS finds every jump of the dimension exactly where the author's code tries 1,000 penalties between 0 and "
        "10, and removes the mean throughout.",
    ),
)
