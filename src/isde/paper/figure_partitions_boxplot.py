"""Item 5: validation log-likelihood of the best, random and worst partitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from isde.paper import drawing
from isde.paper.experiment import Experiment, experiment, few_samples, item_on_cells
from isde.paper.item import Finding, Outcome, Results, Row, Settings, Step
from isde.paper.other_partitions import GROUPS, SHIFTED, groups_of, placed
from isde.paper.protocols import sample_scores
from isde.partitions import Partition


def steps(settings: Settings) -> list[Step]:
    """One step for each partition: three of each group, the optimum first."""
    trial = experiment(settings, few_samples(settings))
    groups = groups_of(trial.scores, 3, settings.seed)
    groups["best"] = [trial.best.partition, *groups["best"]][:3]
    return [
        Step({"group": group, "rank": rank}, partial(_evaluate, trial, partition))
        for group in GROUPS
        for rank, partition in enumerate(groups[group], start=1)
    ]


def _evaluate(trial: Experiment, partition: Partition, _: Sequence[Row]) -> Outcome:
    place = placed(trial.scores, partition, trial.best.partition)
    found = sample_scores(trial.densities.of_partition(partition), trial.settings.protocol)
    return Outcome([{"sample": number} | score | place for number, score in enumerate(found)])


def findings(results: Results) -> list[Finding]:
    """The order of the groups."""
    medians = {group: float(np.median(results.column("log_likelihood", group=group))) for group in GROUPS}
    best, random = (results.column("log_likelihood", group=group) for group in ("best", "random"))
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
    if results.is_paper:
        return f"Another order: {SHIFTED}"
    return "Another order: the worst by the scores are not the worst on new rows"


def draw(results: Results, figure: drawing.Figure) -> None:
    groups, colours = {}, []
    for number, group in enumerate(GROUPS):
        for rank in dict.fromkeys(results.column("rank", group=group)):
            groups[f"{group} {rank}"] = results.column("log_likelihood", group=group, rank=rank)
            colours.append(drawing.COLOURS[number])
    drawing.log_likelihoods(figure, groups, colours, results.title)


ITEM = item_on_cells(
    "figure-partitions-boxplot",
    "Figure 2: validation log-likelihood of the three best, three random and the three worst partitions",
    steps,
    findings,
    draw,
)
