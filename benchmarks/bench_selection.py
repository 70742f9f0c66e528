"""Partition selection against the paper's solver (PuLP with CBC) and against plain scipy.optimize.milp.

    python benchmarks/bench_selection.py               # everything, about 25 minutes, most of it CBC's
    python benchmarks/bench_selection.py --most 60     # gives CBC and milp at most a minute for each table

Every table has the uniform random scores of the paper's running-time table. CBC gets a sparse model of its own kind,
written by PuLP; the time is that of its `solve` alone, the time to build the model stands beside. A rival that is
stopped has its time limit printed, with a `>`; without PuLP (`pip install pulp`) its column is empty (nan). The paper's
saved scores are read from ../shared/paper and skipped, with a word, where that folder is missing.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from isde import SubsetScores, best_partitions, select_partition, worst_partitions
from isde.inspection import landscape
from isde.solvers.prices import cover_matrix
from isde.subsets import SubsetFamily

PAPER = Path(__file__).parents[2] / "shared" / "paper"
CELLS = [(d, k) for k in (2, 3, 4, 5) for d in (5, 10, 20, 30, 40, 50)]
FULL = [(d, d) for d in range(9, 16)]
MILP_UP_TO = 50_000
"""Subsets beyond which HiGHS's presolve hangs, and does not look at its time limit."""


def uniform_table(d: int, k: int, seed: int = 0) -> SubsetScores:
    family = SubsetFamily(d, k)
    nothing = np.full(len(family), np.nan)
    scores = np.random.default_rng(seed).uniform(size=len(family))
    return SubsetScores(family, scores, nothing, nothing, tuple(f"x{c}" for c in range(d)))


def best_of(times: int, function, *arguments):
    """Least wall time of several calls, and what the last one returned."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        result = function(*arguments)
        found.append(time.perf_counter() - start)
    return min(found), result


def by_cbc(table: SubsetScores, most: float) -> tuple[float, float, float | None]:
    """Seconds to build the model and to solve it, and the score; None where the time was up."""
    try:
        import pulp
    except ImportError:
        return np.nan, np.nan, None
    start = time.perf_counter()
    problem = pulp.LpProblem("partition", pulp.LpMaximize)
    chosen = [pulp.LpVariable(f"s{i}", cat="Binary") for i in range(len(table))]
    problem += pulp.LpAffineExpression(zip(chosen, table.scores.tolist(), strict=True))
    holding: list[list[int]] = [[] for _ in range(table.n_columns)]
    for i, subset in enumerate(table.subsets):
        for column in subset:
            holding[column].append(i)
    for numbers in holding:
        problem += pulp.LpAffineExpression((chosen[i], 1) for i in numbers) == 1
    built = time.perf_counter()
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0, timeLimit=most))
    solved = problem.solutionTime < most and problem.status == pulp.LpStatusOptimal
    return built - start, time.perf_counter() - built, pulp.value(problem.objective) if solved else None


def by_plain_milp(table: SubsetScores, most: float) -> tuple[float, float | None]:
    """Seconds and score of the integer program over all subsets, as scipy's documentation would have it."""
    every = np.arange(len(table))
    start = time.perf_counter()
    solved = milp(
        -table.scores,
        constraints=LinearConstraint(cover_matrix(table.subsets, every), 1, 1),
        integrality=np.ones(len(table)),
        bounds=Bounds(0, 1),
        options={"time_limit": most, "mip_rel_gap": 0},
    )
    return time.perf_counter() - start, -solved.fun if solved.status == 0 else None


def shown(seconds: float, done: bool) -> str:
    return f"{'' if done else '>'}{seconds:.3g}"


def compare(cells: list[tuple[int, int]], most: float) -> None:
    print("  d   k    subsets   isde s     CBC s  (built)    milp s  CBC/isde  ok")
    for d, k in cells:
        table = uniform_table(d, k)
        ours, found = best_of(3, select_partition, table)
        row = f"{d:3d} {k:3d} {len(table):10,d} {ours:8.3f}"
        built, cbc, cbc_score = by_cbc(table, most)
        plain, plain_score = by_plain_milp(table, most) if len(table) <= MILP_UP_TO else (np.inf, None)
        same = all(abs(score - found.score) < 1e-6 for score in (cbc_score, plain_score) if score is not None)
        print(
            f"{row} {shown(cbc, cbc_score is not None):>9} {built:8.1f} {shown(plain, plain_score is not None):>9} "
            f"{cbc / ours:9.1f}  {same and found.is_optimal}",
            flush=True,
        )


def known_answers() -> None:
    for name in ("levine13", "levine32"):
        path = PAPER / f"{name}_subset_scores.csv"
        if not path.is_file():
            print(f"{path} does not exist: skipped")
            continue
        with open(path, newline="", encoding="utf-8") as lines:
            scores = {tuple(map(int, row["subset"].split())): float(row["score"]) for row in csv.DictReader(lines)}
        table = SubsetScores.from_dict(scores)
        seconds, found = best_of(3, select_partition, table)
        together = " ".join(str(block) for block in found.partition if len(block) > 1)
        print(f"{name}: {found.score!r}, bound {found.bound!r} in {seconds:.3f} s: {together}")
        for n in (10, 1000):
            best, worst = best_of(1, best_partitions, table, n), best_of(1, worst_partitions, table, n)
            print(f"  {n} best {best[0]:.2f} s down to {best[1][-1].score:.6f}, ", end="")
            print(f"{n} worst {worst[0]:.2f} s up to {worst[1][-1].score:.6f}")
        if name == "levine13":
            seconds, whole = best_of(3, landscape, table, 100, 14.6)
            print(f"  landscape {seconds:.2f} s: {whole.n_partitions:,} partitions, {len(whole.above):,} above 14.6")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=300.0, help="seconds for a rival on one table")
    most = parser.parse_args().most
    select_partition(uniform_table(6, 3), solver="milp")  # compiles
    select_partition(uniform_table(6, 3), solver="dynamic")
    known_answers()
    print("\nblocks of any size (the paper's table against brute force)")
    compare(FULL, most)
    print("\nblocks of at most k columns (the paper's table by d and k)")
    compare(CELLS, most)


if __name__ == "__main__":
    main()
