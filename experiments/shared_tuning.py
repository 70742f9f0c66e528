"""Splits that share one search for bandwidths, beside splits that have their own: what is saved, and what is lost.

    python experiments/shared_tuning.py cost                     # processor seconds over those of one split
    python experiments/shared_tuning.py recovery [--share 1.0]   # true blocks found, paired; about an hour
    python experiments/shared_tuning.py table                    # from results/shared_tuning.csv, nothing is run
    python experiments/shared_tuning.py searches                 # how splits may share a search; 5 processor minutes
    python experiments/shared_tuning.py chance                   # what chance gives to splits of 300 rows; 2 minutes

"before" is how isde worked until splits shared: `ShuffleSplit(20, train_size=0.45)`, each split with a search of its
own on its rows to fit on. "now" is the default. Seeds were not used for choosing. A rerun goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit
from threadpoolctl import threadpool_limits

from isde import chance, splits
from isde.data.table import default_names
from isde.joined_tables import best_scores
from isde.marginals import MARGINAL_NAMES
from isde.run.work import Means
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows, Task
from isde.scoring import DEFAULT_ALPHA, Scoring
from isde.solvers import select_partition
from isde.subsets import SubsetFamily
from isde.synthetic import make_block_gaussian, make_structured

RESULTS = Path(__file__).parent / "results" / "shared_tuning.csv"
FIELDS = ("case", "marginal", "seed", "before", "now")
FIRST_SEED = 7000
DATA = Path(__file__).parents[2] / "shared" / "data"

splits.PRESETS["before"] = lambda seed: ShuffleSplit(20, train_size=0.45, random_state=seed)


@dataclass(frozen=True)
class OwnTuning:
    """A scorer whose splits share nothing."""

    scorer: Any

    def chunks(self, subsets: Any, above: int = 0) -> list[Any]:
        return [replace(chunk, tuned=False) for chunk in self.scorer.chunks(subsets, above)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scorer, name)


def scoring(
    marginal: str, k: int, seed: int, *, before: bool, alpha: Any = "auto", split: str | None = None
) -> Scoring:
    own = Scoring.of(
        k,
        marginal=marginal,
        split=split or ("before" if before else "structure"),
        alpha=alpha,
        random_state=seed,
        n_jobs=1,
    )
    return replace(own, marginal=OwnTuning(own._scorer)) if before else own


def score(how: Scoring, X: np.ndarray) -> Any:
    if not how.marginal.traits.by_ranks:
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return how.score(X, columns=False)


# --- recovery --------------------------------------------------------------------------------------------------

Draw = Callable[[int], tuple[np.ndarray, Any]]


def gaussian(structure: list[int], sigma: float, n: int) -> Draw:
    return lambda seed: make_block_gaussian(structure, n, sigma=sigma, random_state=seed)


def structured(structure: list[int]) -> Draw:
    return lambda seed: make_structured(structure, 5000, random_state=seed)


CASES: dict[str, tuple[int, Draw]] = {
    "[2,2,1] sigma 0.7 N 1000": (100, gaussian([2, 2, 1], 0.7, 1000)),
    "[2,2,1] sigma 0.2 N 1000": (100, gaussian([2, 2, 1], 0.2, 1000)),
    "[4,4,1] sigma 0.7 N 3000": (40, gaussian([4, 4, 1], 0.7, 3000)),
    "[2,2,1] N 5000": (10, structured([2, 2, 1])),
    "[3,3,3] N 5000": (10, structured([3, 3, 3])),
    "[4,4,2,2] N 5000": (10, structured([4, 4, 2, 2])),
}
"""Of the issue: how many tables, and how they are drawn."""


def known() -> list[dict[str, str]]:
    if not RESULTS.is_file():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def recover(share: float, only: str | None) -> None:
    done = {(row["case"], row["marginal"], int(row["seed"])) for row in known()}
    for case, (count, draw) in CASES.items():
        for marginal in ("copula+stack", "kde"):
            for seed in range(FIRST_SEED, FIRST_SEED + round(share * count)):
                if (case, marginal, seed) in done or (only and only not in f"{case} {marginal}"):
                    continue
                now = is_found(draw(seed), marginal, seed, before=False)
                # Who finds the true blocks is not worse than anybody: what was before is slow, and not asked then.
                before = "" if now else int(is_found(draw(seed), marginal, seed, before=True))
                keep(case, marginal, seed, before, int(now))


def is_found(table: tuple[np.ndarray, Any], marginal: str, seed: int, *, before: bool) -> bool:
    X, truth = table
    scores = score(scoring(marginal, X.shape[1], seed, before=before), X)
    return bool(select_partition(scores).partition == truth)


def keep(*row: Any) -> None:
    new = not RESULTS.is_file()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerow(row)
    print(*row, flush=True)


def table() -> None:
    """Tables in which the default misses true blocks were given to what was before, the others were not: it is slow."""
    print("| true blocks | marginal | tables | found now | missed now | of these found before |")
    print("|---|---|---|---|---|---|")
    rows = known()
    for case in CASES:
        for marginal in MARGINAL_NAMES:
            own = [r for r in rows if r["case"] == case and r["marginal"] == marginal]
            missed = [r for r in own if not int(r["now"])]
            if own:
                found_before = sum(int(r["before"]) for r in missed)
                numbers = len(own), len(own) - len(missed), len(missed), found_before if missed else ""
                print(f"| {case} | {marginal} | {' | '.join(map(str, numbers))} |")


# --- cost ------------------------------------------------------------------------------------------------------


def cost(repeats: int) -> None:
    """Best of several, so that other work on the machine has little say; scores alone, no charges."""
    print("| table | marginal | one split, s | twenty splits over one | before |\n|---|---|---|---|---|")
    small = make_structured([3, 3, 3], 3000, random_state=0)[0]
    levine = DATA / "levine32_h2.npz"
    tables = {"N = 3,000, d = 9, k = 4": (small, 4)}
    if levine.is_file():
        X = np.load(levine)["X"].astype(float)
        tables["N = 5,000, d = 32, k = 3"] = (X[np.random.default_rng(0).permutation(len(X))[:5000]], 3)
    else:
        print(f"{levine} is missing: the second table is left out.")
    for name, (X, k) in tables.items():
        for marginal in ("kde", "copula"):
            asked = [(False, "paper"), (False, None), (True, None)]
            hows = [scoring(marginal, k, 0, before=old, alpha=None, split=split) for old, split in asked]
            score(hows[0], X[:200])  # compiles
            one, now = (min(seconds(how, X) for _ in range(repeats)) for how in hows[:2])
            before = f"{seconds(hows[2], X) / one:.1f}" if len(X) <= 3000 else "not run"
            print(f"| {name} | {marginal} | {one:.2f} | {now / one:.2f} | {before} |", flush=True)


def seconds(how: Scoring, X: np.ndarray) -> float:
    start = time.process_time()
    score(how, X)
    return time.process_time() - start


# --- why it is as it is ----------------------------------------------------------------------------------------


def searches(n_tables: int = 100) -> None:
    """Weak pairs by kernels: searches of every split's own, the mean of ten by few rows, one by all rows."""
    case = "[2,2,1] sigma 0.2 N 1000"
    found: dict[str, list[bool]] = {"own": [], "ten, averaged": [], "one, by all rows": []}
    for seed in range(FIRST_SEED, FIRST_SEED + n_tables):
        X, truth = CASES[case][1](seed)
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        how, subsets, names = scoring("kde", 5, seed, before=False), SubsetFamily(5, 5), default_names(5)
        rows = SplitRows(how.marginal, X, how._splits(X))
        with threadpool_limits(1, "blas"):
            tables = (
                score_models(rows, subsets, names, How(1), shared=False),
                score_models(rows, subsets, names, How(1), shared=True),
                score_models(searched_once(rows, subsets), subsets, names, How(1), shared=False),
            )
        for own, models in zip(found.values(), tables, strict=True):
            own.append(select_partition(best_scores(models)).partition == truth)
    print(f"{case}, kernels: true blocks found in so many of {n_tables} tables, by searches")
    for name, own in found.items():
        print(f"{name:<17} {sum(own)}")


def searched_once(rows: SplitRows, subsets: SubsetFamily) -> SplitRows:
    """The same splits, with the bandwidths that one search by all rows finds."""
    every = np.arange(len(rows.X))
    whole = SplitRows(rows.scorer, rows.X, [(every, every)])
    tasks = [Task(0, chunk, chunk.key, subsets, tunes=True) for chunk in rows.scorer.chunks(subsets) if chunk.tuned]
    to_tune = rows.scorer.to_tune(whole[0], 1.0)
    return rows.with_tuned([(task, rows.scorer.score(to_tune, subsets, task.chunk, Means())) for task in tasks])


def chance_of_few(n_rows: int = 300, n_columns: int = 5) -> None:
    """Rows times the margin that chance gives a pair or triple with the default's probability."""
    scorer, subsets = Scoring.of(3)._scorer, SubsetFamily(n_columns, 3)
    print(f"{n_rows} rows, {n_columns} columns: what chance gives, nats in all")
    head = "kernels: pairs | triples | correlation: pairs | triples | magnitudes: pairs | triples"
    print(f"| splits | searches | {head} |")
    print("|---|---|---|---|---|---|---|---|")
    for split in ("before", "turned"):
        for shared in (False, True):
            rows = max(rows for rows in chance.ROWS if rows <= n_rows)
            shape = chance.Shape(split, shared, 3, rows, rows, chance.COLUMNS)
            drawn = chance._draw(scorer, shape, chance.TABLES, 1, None)
            cells = [
                max(
                    drawn._margin(pooled, count, DEFAULT_ALPHA / drawn._shares(subsets, size))
                    for pooled, count in drawn._counted(size, kinds)
                )
                for model in drawn.margins
                for size, kinds in enumerate(model, start=2)
            ]
            name = "20 x 0.45" if split == "before" else split
            print(f"| {name} | {'shared' if shared else 'own'} | {' | '.join(f'{c:.1f}' for c in cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "recovery", "table", "searches", "chance"])
    parser.add_argument("--share", type=float, default=1.0, help="of the tables")
    parser.add_argument("--only", help="cases and marginals with this in their name")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    if asked.what == "cost":
        cost(asked.repeats)
    elif asked.what == "recovery":
        recover(asked.share, asked.only)
    else:
        {"table": table, "searches": searches, "chance": chance_of_few}[asked.what]()


if __name__ == "__main__":
    main()
