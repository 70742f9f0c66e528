"""Item 7: what partitions on random walks from the best one are worth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from isde.paper import drawing
from isde.paper.experiment import Experiment, experiment, few_samples, item_on_cells
from isde.paper.item import Finding, Outcome, Results, Row, Settings, Step, rng_for, seed_for
from isde.paper.other_partitions import correlation, visited_row
from isde.partitions import Partition, canonical_partition
from isde.partitions import random_walk as uniform_walk


def steps(settings: Settings) -> list[Step]:
    """One step for each walk from the best partition."""
    trial = experiment(settings, few_samples(settings))
    n_walks, n_steps = settings.pick((5, 40), (5, 10), (2, 4))
    return [Step({"walk": w}, partial(_walk, trial, n_steps, w)) for w in range(1, n_walks + 1)]


def _walk(trial: Experiment, n_steps: int, number: int, _: Sequence[Row]) -> Outcome:
    k, seed = trial.scores.max_block_size, trial.settings.seed
    if trial.settings.protocol == "paper":
        visited = paper_walk(trial.best.partition, n_steps, k, rng_for(seed, 7, number))
    else:
        visited = uniform_walk(trial.best.partition, n_steps, k, random_state=seed_for(seed, 7, number))
    trial.densities.add([block for partition in visited for block in partition])
    return Outcome(
        [{"step": step} | visited_row(trial, partition) for step, partition in enumerate(visited) if step > 0]
    )


def paper_walk(start: Partition, n_steps: int, k: int, rng: np.random.Generator) -> list[Partition]:
    """The author's walk: split or merge with equal chance, and a split cuts a block's list at one point.

    `isde.partitions.random_walk` takes every partition at distance 1 with the same chance instead.
    """
    walk = [start]
    while len(walk) <= n_steps:
        blocks = list(walk[-1])
        if rng.random() < 0.5:
            divisible = [block for block in blocks if len(block) > 1]
            if not divisible:
                continue
            block = divisible[int(rng.integers(len(divisible)))]
            cut = int(rng.integers(1, len(block)))
            others = [other for other in blocks if other != block]
            walk.append(canonical_partition([*others, block[:cut], block[cut:]]))
        elif len(blocks) > 1:
            i, j = rng.choice(len(blocks), 2, replace=False).tolist()
            if len(blocks[i]) + len(blocks[j]) <= k:
                others = [other for number, other in enumerate(blocks) if number not in (i, j)]
                walk.append(canonical_partition([*others, blocks[i] + blocks[j]]))
    return walk


def findings(results: Results) -> list[Finding]:
    """Correlation of log-likelihood with distance."""
    return [
        correlation(
            f"{results.settings['file']}: {len(results.rows)} partitions visited, correlation of log-likelihood with "
            "edit distance",
            "clearly negative (figure)",
            results,
        )
    ]


def draw(results: Results, figure: drawing.Figure) -> None:
    drawing.scatter_both(results, figure, "partitions visited by random walks")


ITEM = item_on_cells(
    "figure-random-walks",
    "Figure 4: mean validation log-likelihood against edit distance for 5 random walks of 40 steps",
    steps,
    findings,
    draw,
    notes=(
        "The author's walk, taken under the protocol paper, splits a block's list at one point, so that most "
        "splits never happen; under the protocol clean every partition at distance 1 has the same chance.",
    ),
)
