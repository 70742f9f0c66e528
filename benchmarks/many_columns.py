"""What many columns cost: a whole fit, all subsets scored, the best partition proved.

    python benchmarks/many_columns.py [--columns 10,50,100,200] [--sizes 2,3] [--marginals kde,copula+stack]
                                      [--splits paper,default] [--rows 1000] [--alpha auto|none] [--search exhaustive]
                                      [--jobs 1] [--estimate]

The table has planted blocks (three XOR-like columns, two pairs on rings, two columns alone, and so on). Every line is a
fit in a process of its own: seconds of the processor for scoring (with what chance gives), for selecting, and for the
blocks; the most memory that the process held, beside what was said before anything was scored, and the same process
before it began; how many blocks are right.

`--estimate` scores one chunk of middle size of each model, of all its rows, and says what all chunks of all splits
would take of the processor; and the same for each table that chance is measured on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
import warnings
from itertools import product
from unittest.mock import patch

import numpy as np

PLANTED = 3, 2, 2, 1, 1


def planted(n_columns: int, largest: int, n_rows: int, seed: int = 0):
    """Rows with blocks of at most `largest` columns, their columns shuffled, and the true partition."""
    from isde.partitions import canonical_partition
    from isde.synthetic import make_structured

    sizes, left = [], n_columns
    while left:
        sizes.append(min(PLANTED[len(sizes) % len(PLANTED)], largest, left))
        left -= sizes[-1]
    X, truth = make_structured(sizes, n_rows, random_state=seed)
    place = np.random.default_rng(seed).permutation(n_columns)
    shuffled = np.empty_like(X)
    shuffled[:, place] = X
    return shuffled, canonical_partition([sorted(place[list(block)].tolist()) for block in truth], n_columns)


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def measure(d: int, k: int, marginal: str, split: str, alpha: str, n_rows: int, search: str, n_jobs: int) -> None:
    from isde import ISDE
    from isde.density import scaling_for

    warnings.simplefilter("ignore")
    model = ISDE(
        k,
        marginal=marginal,
        split=None if split == "default" else split,
        alpha=None if alpha == "none" else "auto",
        random_state=0,
        n_jobs=n_jobs,
        verbose=1,  # what is said of memory is read by the process that started this one
        **({} if search == "exhaustive" else {"search": search}),
    )
    small, _ = planted(6, 2, 40)
    ISDE(2, marginal=marginal, split="paper", random_state=0).fit(small)  # compiled code is loaded or made
    X, truth = planted(d, k, n_rows)
    before, start = peak_megabytes(), time.process_time()
    scoring = model._scoring()
    rows = model._check_rows(X, scoring)
    scores = model._subset_scores(rows, scaling_for(rows, model.scale, scoring.marginal), scoring, None)
    scored = time.process_time()
    from isde import select_partition

    found = select_partition(scores)
    selected = time.process_time()
    right = f"{len(set(found.partition) & set(truth))} of {len(truth)}"
    print(
        f"{d:>5} {k:>2} {marginal:<13} {split:<8} {len(scores):>10,} {scored - start:>9.1f} {selected - scored:>8.1f} "
        f"{peak_megabytes():>8,.0f} {before:>8,.0f}  {'yes' if found.is_optimal else 'no':<6} {right}",
        flush=True,
    )


def seconds_of_chunks(scorer, X, splits, subsets, shared) -> float:
    """What all of them take, by one of middle size of each model, tuned by its first split if splits share."""
    from isde.run.work import Means
    from isde.score_costs import _of_one_kind
    from isde.score_tasks import SplitRows, plan_tasks, score_task

    rows, seconds = SplitRows(scorer, X, splits), 0.0
    tasks = plan_tasks(scorer, splits, subsets, shared=shared)
    for own in _of_one_kind(tasks):
        middle, here = sorted(own, key=lambda task: task.chunk.work)[len(own) // 2], rows
        if middle.shares:
            tunes = next(task for task in tasks if task.tunes and task.chunk.key == middle.chunk.key)
            here = rows.with_tuned([(tunes, score_task(rows, tunes, Means()))])
        start = time.process_time()
        score_task(here, middle, Means())
        seconds += (time.process_time() - start) * sum(task.chunk.work for task in own) / middle.chunk.work
    return seconds


def estimate(d: int, k: int, marginal: str, split: str, n_rows: int) -> None:
    from threadpoolctl import threadpool_limits

    from isde import chance
    from isde.score_tasks import are_tuned_together
    from isde.scoring import Scoring
    from isde.splits import preset_for
    from isde.subsets import SubsetFamily

    warnings.simplefilter("ignore")
    scoring = Scoring.of(k, marginal=marginal, split=None if split == "default" else split, random_state=0)
    scoring.score(planted(6, 2, 40)[0])  # compiled code is loaded or made
    X, asked = planted(d, k, n_rows)[0], []
    splits, subsets, scorer = scoring._splits(X), SubsetFamily(d, k), scoring._scorer
    with threadpool_limits(1, "blas"):
        shared = are_tuned_together(splits)
        seconds, tables = seconds_of_chunks(scorer, X, splits, subsets, shared), ""
        if scoring.alpha is not None:
            with patch.object(chance, "_draw_once", lambda *what: asked.append(what)):  # what is asked for alone
                chance.draw_chance(scorer, preset_for(scoring.split, n_rows), splits, subsets, n_rows, 1)
            ((_, shape, n_tables, _),) = asked
            family = SubsetFamily(shape.n_columns, k)
            table = chance._draw_table(shape, seed=0)
            each = seconds_of_chunks(scorer, table.X, table.splits, family, shared)
            tables = f", and {n_tables} tables of chance of {each:,.0f} s each"
    print(f"{d:>5} {k:>2} {marginal:<13} {split:<8} {len(subsets):>10,}: about {seconds:,.0f} s{tables}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", default="10,50,100,200")
    parser.add_argument("--sizes", default="2,3")
    parser.add_argument("--marginals", default="kde,copula+stack")
    parser.add_argument("--splits", default="paper,default")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--alpha", default="auto", choices=["auto", "none"])
    parser.add_argument("--search", default="exhaustive", choices=["exhaustive", "screened"])
    parser.add_argument("--jobs", type=int, default=1, help="workers")
    parser.add_argument("--estimate", action="store_true", help="what scoring would take, from one chunk of each model")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        case = int(asked.columns), int(asked.sizes), asked.marginals, asked.splits
        measure(*case, asked.alpha, asked.rows, asked.search, asked.jobs)
        return
    if asked.estimate:
        for marginal, split, k, d in product(
            *(values.split(",") for values in (asked.marginals, asked.splits, asked.sizes, asked.columns))
        ):
            estimate(int(d), int(k), marginal, split, asked.rows)
        return
    print(f"{asked.rows:,} rows, alpha {asked.alpha}, search {asked.search}; seconds of the processor, megabytes")
    print(f"{'d':>5} {'k':>2} {'marginal':<13} {'split':<8} {'subsets':>10} {'scoring':>9} {'select':>8} ", end="")
    print(f"{'peak':>8} {'before':>8}  {'proved':<6} blocks right, MB said", flush=True)
    for marginal in asked.marginals.split(","):
        for split in asked.splits.split(","):
            for k in asked.sizes.split(","):
                for d in asked.columns.split(","):
                    case = ["--columns", d, "--sizes", k, "--marginals", marginal, "--splits", split]
                    more = ["--rows", str(asked.rows), "--alpha", asked.alpha, "--search", asked.search, "--one"]
                    one = [sys.executable, __file__, *case, *more, "--jobs", str(asked.jobs)]
                    done = subprocess.run(one, check=True, capture_output=True, text=True)
                    said = re.search(r"([\d,]+) MB with the rows", done.stderr)
                    print(f"{done.stdout.rstrip()}  {said[1] if said else '?':>8}", flush=True)


if __name__ == "__main__":
    main()
