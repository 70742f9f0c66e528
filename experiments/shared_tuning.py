"""Splits that share one search for bandwidths, beside splits that have their own: what is saved, and what is lost.

    python experiments/shared_tuning.py cost                     # processor seconds over those of one split
    python experiments/shared_tuning.py recovery [--share 1.0]   # true blocks found, paired; about an hour
    python experiments/shared_tuning.py table                    # from results/shared_tuning.csv, nothing is run

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

from isde import splits
from isde.marginals import MARGINAL_NAMES
from isde.scoring import Scoring
from isde.solvers import select_partition
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
    print("| true blocks found | marginal | tables | before | now | now only | before only |")
    print("|---|---|---|---|---|---|---|")
    rows = known()
    for case in CASES:
        for marginal in MARGINAL_NAMES:
            own = [r for r in rows if r["case"] == case and r["marginal"] == marginal]
            both = [(int(r["before"]), int(r["now"])) for r in own if r["before"]]
            if own:
                before = sum(b for b, _ in both) if len(both) == len(own) else "not run"
                only = sum(n > b for b, n in both), sum(b > n for b, n in both)
                now = sum(int(r["now"]) for r in own)
                print(f"| {case} | {marginal} | {len(own)} | {before} | {now} | {only[0]} | {only[1]} |")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "recovery", "table"])
    parser.add_argument("--share", type=float, default=1.0, help="of the tables")
    parser.add_argument("--only", help="cases and marginals with this in their name")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    if asked.what == "cost":
        cost(asked.repeats)
    elif asked.what == "recovery":
        recover(asked.share, asked.only)
    else:
        table()


if __name__ == "__main__":
    main()
