"""What other partitions than the best one are worth, and how far from it they are: what figures 2 to 6 share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import pearsonr, spearmanr

from isde.paper.experiment import Experiment, experiment, few_samples
from isde.paper.inputs import read_scores
from isde.paper.item import Finding, Results, Row, Settings, seed_for
from isde.paper.protocols import sample_scores
from isde.paper.wording import show_partition
from isde.partitions import Partition, edit_distance, random_partition
from isde.scores import SubsetScores
from isde.solvers import best_partitions, worst_partitions

GROUPS = ("best", "random", "worst")

CLEAR = -0.5
"""A correlation below this is called clear, as those of the paper's figures look."""

SHIFTED = "each sample is in units of its own, and such a shift costs sharp densities, those of good partitions, most"


def placed(scores: SubsetScores, partition: Partition, best: Partition) -> Row:
    """Score of a partition, and its splits and merges from the best: the smallest number and the author's variant."""
    return {
        "score": float(sum(scores[block] for block in partition)),
        "edit_distance": edit_distance(partition, best),
        "paper_edit_distance": edit_distance(partition, best, kind="paper"),
        "partition": show_partition(partition),
    }


def groups_of(scores: SubsetScores, n: int, seed: int) -> dict[str, list[Partition]]:
    """The n best after the optimum, n random and the n worst partitions."""
    d, k = scores.n_columns, scores.max_block_size
    best = [found.partition for found in best_partitions(scores, n + 1)]
    rng = np.random.RandomState(seed_for(seed, 5))
    return {
        "best": best[1:],
        "random": [random_partition(d, k, random_state=rng) for _ in range(n)],
        "worst": [found.partition for found in worst_partitions(scores, n)],
    }


def scores_for(settings: Settings) -> SubsetScores:
    """The table of scores: someone's, or that of the training rows, every row counted: there are no two protocols."""
    if settings.scores is not None:
        table = read_scores(settings.scores)
        return table if settings.max_block_size is None else table.restrict(settings.max_block_size)
    return experiment(replace(settings, protocol="clean"), few_samples(settings)).scores


def visited_row(trial: Experiment, partition: Partition) -> Row:
    """A partition on validation rows: their mean over samples, their median row, and where the partition is."""
    log_densities = trial.densities.of_partition(partition)
    found = sample_scores(log_densities, trial.settings.protocol)
    place = placed(trial.scores, partition, trial.best.partition)
    return {
        **{name: place[name] for name in ("edit_distance", "paper_edit_distance")},
        "log_likelihood": float(np.mean([score["log_likelihood"] for score in found])),
        "median_row": float(np.median(log_densities)),
        "dropped_rows": sum(score["dropped_rows"] for score in found),
        **{name: place[name] for name in ("score", "partition")},
    }


def correlation(what: str, published: str, results: Results) -> Finding:
    """Of the mean, as in the paper, and of the median row, which no far row moves."""
    measured, found = [], []
    for label, column, value in (
        ("edit distance", "edit_distance", "log_likelihood"),
        ("the author's variant", "paper_edit_distance", "log_likelihood"),
        ("edit distance, median row instead of the mean", "edit_distance", "median_row"),
    ):
        steps, values = results.column(column), results.column(value)
        if len(set(steps)) < 2 or len(set(values)) < 2:
            return Finding(what, published, "none", "Too little spread in distance.")
        r, rho = float(pearsonr(steps, values)[0]), float(spearmanr(steps, values)[0])
        measured.append(f"{r:.2f}, by ranks {rho:.2f} ({label})")
        found.append(r)
    *of_mean, of_median = found
    if max(of_mean) < 0:
        why = "The same sign." if max(of_mean) <= CLEAR else "The same sign, but weak."
    elif results.is_paper:
        why = f"Another sign: {SHIFTED}."
    elif of_median < 0:
        why = (
            "Another sign: few rows, far from all others, decide the mean, and every row counts; the median row agrees."
        )
    else:
        why = "Another sign, on other cells or another draw of them."
    return Finding(what, published, "; ".join(measured), why)
