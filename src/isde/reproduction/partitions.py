"""Items 5 to 7: what other partitions than the best one are worth, and how far from it they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import pearsonr, spearmanr

from isde.partitions import Partition, canonical_partition, edit_distance, random_partition
from isde.partitions import random_walk as uniform_walk
from isde.reproduction import figures
from isde.reproduction.inputs import read_scores
from isde.reproduction.item import (
    Finding,
    Item,
    Outcome,
    Results,
    Row,
    Settings,
    Step,
    rng_for,
    seed_for,
    show_partition,
)
from isde.reproduction.protocols import sample_scores
from isde.reproduction.real_data import Experiment, experiment
from isde.scores import SubsetScores
from isde.solvers import best_partitions, select_partition, worst_partitions

GROUPS = ("best", "random", "worst")
CLEAR = -0.5
"""A correlation below this is called clear, as those of the paper's figures look."""
SHIFTED = "each sample is in units of its own, and such a shift costs sharp densities, those of good partitions, most"

KNOWN_BEST = {
    # By the start of the file's SHA-256: the author's saved scores, of Levine13 and Levine32, and their optima.
    "a6205cfda4ba6edc": (15.117430870747343, "(0,1,4,5,12) (3,8,10) (2,7)"),
    "1e6b9da782e6f1a4": (45.50636810024885, "(0,1) (8,28) (14,17) (18,30) (12,22,23) (19,25,29)"),
}


def distances(partition: Partition, best: Partition) -> Row:
    """Splits and merges from the best partition, the smallest number and the author's variant."""
    return {
        "edit_distance": edit_distance(partition, best),
        "paper_edit_distance": edit_distance(partition, best, kind="paper"),
    }


def score_of(scores: SubsetScores, partition: Partition) -> float:
    return float(sum(scores[block] for block in partition))


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
    return experiment(replace(settings, protocol="clean"), n_samples(settings)).scores


def n_samples(settings: Settings) -> int:
    return settings.pick(10, 3, 2)


# --- item 5: validation log-likelihood of best, random and worst -----------------------------------------------


def box_steps(settings: Settings) -> list[Step]:
    """One step for each partition: three of each group, the optimum first."""
    trial = experiment(settings, n_samples(settings))
    groups = groups_of(trial.scores, 3, settings.seed)
    groups["best"] = [trial.best.partition, *groups["best"]][:3]
    return [
        Step({"group": group, "rank": rank}, partial(_evaluate, trial, partition))
        for group in GROUPS
        for rank, partition in enumerate(groups[group], start=1)
    ]


def _evaluate(trial: Experiment, partition: Partition, _: Sequence[Row]) -> Outcome:
    shared = {
        "score": score_of(trial.scores, partition),
        **distances(partition, trial.best.partition),
        "partition": show_partition(partition),
    }
    found = sample_scores(trial.densities.of_partition(partition), trial.settings.protocol)
    return Outcome([{"sample": number} | score | shared for number, score in enumerate(found)])


def box_findings(results: Results) -> list[Finding]:
    """The order of the groups."""
    medians = {group: float(np.median(column_of(results, "log_likelihood", group=group))) for group in GROUPS}
    best, random = (column_of(results, "log_likelihood", group=group) for group in ("best", "random"))
    if min(best) > max(random):
        apart = "no sample of a best one is below a random one"
    elif max(best) < min(random):
        apart = "every sample of a best one is below all random ones"
    else:
        apart = "best and random samples overlap"
    same = medians["best"] > medians["random"] > medians["worst"]
    return [
        Finding(
            f"{results.settings['file']}: median log-likelihood of best, random, worst",
            "best above random above worst (figure)",
            ", ".join(f"{group} {value:.2f}" for group, value in medians.items()),
            f"{'The same order' if same else _other_order(results)}; {apart}.",
        )
    ]


def _other_order(results: Results) -> str:
    if results.settings["protocol"] == "paper":
        return f"Another order: {SHIFTED}"
    return "Another order: the worst by the scores are not the worst on new rows"


def box_draw(results: Results, figure: figures.Figure) -> None:
    groups, colours = {}, []
    for number, group in enumerate(GROUPS):
        for rank in dict.fromkeys(column_of(results, "rank", group=group)):
            groups[f"{group} {rank}"] = column_of(results, "log_likelihood", group=group, rank=rank)
            colours.append(figures.COLOURS[number])
    ax = figure.subplots()
    figures.boxes(ax, groups, colours)
    ax.set_ylabel("mean log-likelihood of a sample, nats per row")
    ax.set_title(f"{results.settings['file']}, protocol {results.settings['protocol']}")


# --- item 6: edit distances ------------------------------------------------------------------------------------


def edit_steps(settings: Settings) -> list[Step]:
    """One step for each group of partitions, the optimum before them."""
    scores = scores_for(settings)
    best = select_partition(scores).partition
    groups = {"optimum": [best]} | groups_of(scores, settings.pick(10, 10, 3), settings.seed)
    return [Step({"group": group}, partial(_measure, scores, best, some)) for group, some in groups.items()]


def _measure(scores: SubsetScores, best: Partition, partitions: list[Partition], _: Sequence[Row]) -> Outcome:
    return Outcome(
        [
            {
                "rank": rank,
                "score": score_of(scores, partition),
                **distances(partition, best),
                "partition": show_partition(partition),
            }
            for rank, partition in enumerate(partitions, start=1)
        ]
    )


def edit_findings(results: Results) -> list[Finding]:
    """The optimum, and the mean distance of each group from it."""
    (optimum,) = results.where(group="optimum")
    name = results.settings["file"]
    known = None if results.settings["max_block_size"] else KNOWN_BEST.get(results.settings["sha256"])
    blocks = [f"({block.replace(' ', ',')})" for block in optimum["partition"].split(" | ") if " " in block]
    found = []
    if known is not None:
        score, together = known
        agrees = abs(optimum["score"] - score) < 1e-9 and sorted(blocks) == sorted(together.split())
        found.append(
            Finding(
                f"{name}: best partition, blocks of two or more",
                f"{score:.9f}: {together}",
                f"{optimum['score']:.9f}: {' '.join(blocks)}",
                "The same." if agrees else "THE OPTIMUM DIFFERS.",
            )
        )
    means = {
        group: [np.mean(column_of(results, column, group=group)) for column in ("edit_distance", "paper_edit_distance")]
        for group in GROUPS
    }
    larger = sum(row["paper_edit_distance"] > row["edit_distance"] for row in results.rows)
    found.append(
        Finding(
            f"{name}: mean edit distance from the optimum (the author's variant)",
            "best below random and worst (figure)",
            ", ".join(f"{group} {exact:.1f} ({paper:.1f})" for group, (exact, paper) in means.items()),
            (
                "The same order"
                if means["best"][0] < min(means["random"][0], means["worst"][0])
                else "Another order on these data"
            )
            + f"; the author's variant is larger than the smallest number of splits and merges for {larger} of "
            f"{len(results.rows) - 1} partitions.",
        )
    )
    return found


def edit_draw(results: Results, figure: figures.Figure) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    titles = {"edit_distance": "smallest number of splits and merges", "paper_edit_distance": "the author's variant"}
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        figures.dots(ax, {group: column_of(results, column, group=group) for group in GROUPS})
        ax.set_title(title, fontsize=10)
    axes[0].set_ylabel("edit distance from the best partition")
    axes[0].set_ylim(bottom=0)  # once both are drawn: they share the axis
    figure.suptitle(results.settings["file"], fontsize=11)


# --- item 7: random walks --------------------------------------------------------------------------------------


def walk_steps(settings: Settings) -> list[Step]:
    """One step for each walk from the best partition."""
    trial = experiment(settings, n_samples(settings))
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


def visited_row(trial: Experiment, partition: Partition) -> Row:
    log_densities = trial.densities.of_partition(partition)
    found = sample_scores(log_densities, trial.settings.protocol)
    return {
        **distances(partition, trial.best.partition),
        "log_likelihood": float(np.mean([score["log_likelihood"] for score in found])),
        "median_row": float(np.median(log_densities)),
        "dropped_rows": sum(score["dropped_rows"] for score in found),
        "score": score_of(trial.scores, partition),
        "partition": show_partition(partition),
    }


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


def walk_findings(results: Results) -> list[Finding]:
    """Correlation of log-likelihood with distance."""
    return [
        correlation(
            f"{results.settings['file']}: {len(results.rows)} partitions visited, correlation of log-likelihood with "
            "edit distance",
            "clearly negative (figure)",
            results,
        )
    ]


def correlation(what: str, published: str, results: Results) -> Finding:
    """Of the mean, as in the paper, and of the median row, which no far row moves."""
    measured, found = [], []
    for label, column, value in (
        ("edit distance", "edit_distance", "log_likelihood"),
        ("the author's variant", "paper_edit_distance", "log_likelihood"),
        ("edit distance, median row instead of the mean", "edit_distance", "median_row"),
    ):
        steps, values = column_of(results, column), column_of(results, value)
        if len(set(steps)) < 2 or len(set(values)) < 2:
            return Finding(what, published, "none", "Too little spread in distance.")
        r, rho = float(pearsonr(steps, values)[0]), float(spearmanr(steps, values)[0])
        measured.append(f"{r:.2f}, by ranks {rho:.2f} ({label})")
        found.append(r)
    *of_mean, of_median = found
    if max(of_mean) < 0:
        why = "The same sign." if max(of_mean) <= CLEAR else "The same sign, but weak."
    elif results.settings["protocol"] == "paper":
        why = f"Another sign: {SHIFTED}."
    elif of_median < 0:
        why = (
            "Another sign: few rows, far from all others, decide the mean, and every row counts; the median row agrees."
        )
    else:
        why = "Another sign, on other cells or another draw of them."
    return Finding(what, published, "; ".join(measured), why)


def walk_draw(results: Results, figure: figures.Figure) -> None:
    scatter_both(results, figure, "partitions visited by random walks")


def scatter_both(results: Results, figure: figures.Figure, title: str) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    labels = {"edit_distance": "edit distance", "paper_edit_distance": "edit distance, the author's variant"}
    for ax, (column, label) in zip(axes, labels.items(), strict=True):
        figures.scatter(ax, column_of(results, column), column_of(results, "log_likelihood"))
        ax.set_xlabel(label)
    axes[0].set_ylabel("mean validation log-likelihood, nats per row")
    figure.suptitle(f"{title}: {results.settings['file']}, protocol {results.settings['protocol']}", fontsize=11)


def column_of(results: Results, column: str, **wanted: Any) -> list[Any]:
    return [row[column] for row in results.where(**wanted)]


BOXES = Item(
    name="figure-partitions-boxplot",
    paper="Figure 2: validation log-likelihood of the three best, three random and the three worst partitions",
    steps=box_steps,
    findings=box_findings,
    draw=box_draw,
    needs="data",
    has_protocols=True,
    version=2,
)
EDITS = Item(
    name="figure-edit-distances",
    paper="Figure 3: edit distance from the best partition of the 10 next best, 10 random and the 10 worst ones",
    steps=edit_steps,
    findings=edit_findings,
    draw=edit_draw,
    needs="data or scores",
    notes=(
        "The author's code counts 2 * overlaps - blocks of P - blocks of Q, which splits down to the overlaps and can "
        "be larger than the smallest number of splits and merges, the definition in the text: both are shown.",
        "Random partitions as in the paper: sizes uniform on 1..k, the last block cut to fit.",
    ),
)
WALKS = Item(
    name="figure-random-walks",
    paper="Figure 4: mean validation log-likelihood against edit distance for 5 random walks of 40 steps",
    steps=walk_steps,
    findings=walk_findings,
    draw=walk_draw,
    needs="data",
    has_protocols=True,
    version=2,
    notes=(
        "The author's walk, taken under the protocol paper, splits a block's list at one point, so that most "
        "splits never happen; under the protocol clean every partition at distance 1 has the same chance.",
    ),
)
