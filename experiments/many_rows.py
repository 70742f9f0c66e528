"""What many rows are worth to the density of a block, and what each bound on them costs.

    python experiments/many_rows.py fitting        # more data, curves against both bounds: 30 processor minutes
    python experiments/many_rows.py table          # the tables from results/many_rows.csv, nothing is run
    python experiments/many_rows.py block_step 1e6 # all blocks of 1,000,000 x 30: seconds and memory; the model is kept
    python experiments/many_rows.py score 1e6      # isde score of as many rows by that model: seconds and memory

`fitting` has three blocks of which the density is known: two noisy circles; a pair with heavy tails, hyperbolic sines
of normals; the paper's triple, whose pairs are independent. Their structure is given, so that only the density is
learned; "whole" is the three and a normal column side by side, whose structure ISDE finds. The loss is the mean of
log f - log f^ over 200,000 fresh rows: what is left of the divergence. "More data" is N = 1e3 to 1e6 with the default
bounds, five seeds. The curves set one bound at a time. Of the shared data, read from
../shared/data and skipped with a word where they are missing, three blocks each: 5,000 rows held out, mean log-density.
Each finished fit is one row; a rerun goes on where it stopped. Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from isde import ISDE, fit_blocks
from isde.marginals.bounds import MAX_CENTRES, MAX_FIT_ROWS
from isde.synthetic import make_structured, structured_log_density

RESULTS = Path(__file__).parent / "results" / "many_rows.csv"
SHARED = Path(__file__).parents[2] / "shared" / "data"
FIELDS = ("part", "data", "seed", "rows", "max_fit_rows", "max_centres", "value", "fit seconds", "score us a row")
FRESH_ROWS, HELD_OUT_ROWS = 200_000, 5_000
FRESH_SEED = 1000  # the same fresh rows for each number of rows: changes are paired
SEEDS = range(5)
TAILS = 1.5  # of the hyperbolic sines
CORRELATION = 0.6
BLOCKS = {  # of those that experiments/scales.py found
    "levine32_h2": ((0, 21), (2, 3, 9), (10, 17)),
    "nilsson_rare": ((0, 8, 9), (1, 3, 5), (4, 7, 12)),
}
PARTS = ("circles", "heavy tails", "triple")
KNOWN = (*PARTS, "whole")


class Fit(NamedTuple):
    """One density to be fitted."""

    part: str
    data: str
    seed: int
    rows: int
    max_fit_rows: int
    max_centres: int


def fits() -> Iterator[Fit]:
    """The cheapest first, so that a run that is stopped has something of everything."""
    pairs, triple, whole = KNOWN[:2], KNOWN[2:3], KNOWN[3:]
    yield from more_data((10**3, 10**4), PARTS)
    yield from more_data((10**5,), pairs)
    for max_centres in (1_000, 2_000, 5_000, 10_000):
        for data in pairs:
            yield Fit("centres", data, 0, 20_000, MAX_FIT_ROWS, max_centres)
        for data in BLOCKS:
            yield Fit("centres", data, 0, 25_000, MAX_FIT_ROWS, max_centres)
    for max_fit_rows in (5_000, 10_000, 25_000):
        for data in BLOCKS:
            yield Fit("fit rows", data, 0, 25_000, max_fit_rows, MAX_CENTRES)
    yield from more_data((10**6,), pairs)
    yield from fit_rows((20_000, 50_000), PARTS)
    yield from more_data((10**3, 10**4, 10**5, 10**6), whole)
    yield from more_data((10**5, 10**6), triple)
    yield from fit_rows((100_000, 400_000), pairs)


def more_data(sizes: Sequence[int], kinds: Sequence[str]) -> Iterator[Fit]:
    for rows in sizes:
        for seed in SEEDS:
            for data in kinds:
                yield Fit("more data", data, seed, rows, MAX_FIT_ROWS, MAX_CENTRES)


def fit_rows(bounds: Sequence[int], kinds: Sequence[str]) -> Iterator[Fit]:
    """Besides the default, whose fit of seed 0 is among "more data"."""
    for max_fit_rows in bounds:
        for data in kinds:
            yield Fit("fit rows", data, 0, 10**6, max_fit_rows, MAX_CENTRES)


def known(data: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a known density, and their log-densities."""
    if data == "whole":
        # Seeds of their own: from the same one, blocks would depend on each other.
        blocks, log_densities = zip(*(known(part, n, 10 * seed + i) for i, part in enumerate(PARTS)), strict=True)
        z = np.random.default_rng(10 * seed + len(PARTS)).normal(size=n)
        X = np.column_stack([*blocks, z])
        return X, sum(log_densities) - 0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    if data == "heavy tails":
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(n, 2))
        Z[:, 1] = CORRELATION * Z[:, 0] + np.sqrt(1 - CORRELATION**2) * Z[:, 1]
        quadratic = (Z**2).sum(axis=1) - 2 * CORRELATION * Z[:, 0] * Z[:, 1]
        log_density = -0.5 * quadratic / (1 - CORRELATION**2) - np.log(2 * np.pi) - 0.5 * np.log(1 - CORRELATION**2)
        return np.sinh(TAILS * Z), log_density - np.log(TAILS * np.cosh(TAILS * Z)).sum(axis=1)
    size = 2 if data == "circles" else 3
    X, _ = make_structured([size], n, random_state=seed)
    return X, structured_log_density(X, [size])


def measured(fit: Fit) -> dict[str, object]:
    if fit.data in KNOWN:
        rows, _ = known(fit.data, fit.rows, fit.seed)
        fresh, truth = known(fit.data, FRESH_ROWS, FRESH_SEED + fit.seed)
        partition = [range(rows.shape[1])]
    else:
        whole = np.load(SHARED / f"{fit.data}.npz")["X"].astype(np.float64)
        columns = [column for block in BLOCKS[fit.data] for column in block]
        X = whole[np.random.default_rng(fit.seed).permutation(len(whole))][:, columns]
        rows, fresh, truth = X[: fit.rows], X[fit.rows : fit.rows + HELD_OUT_ROWS], None
        ends = np.cumsum([len(block) for block in BLOCKS[fit.data]])
        partition = [range(end - len(block), end) for block, end in zip(BLOCKS[fit.data], ends, strict=True)]
    start = time.process_time()
    if fit.data == "whole":
        model = ISDE(3, random_state=fit.seed, n_jobs=1, max_fit_rows=fit.max_fit_rows, max_centres=fit.max_centres)
        density = model.fit(rows).density_
    else:
        density = fit_blocks(rows, partition, n_jobs=1, max_fit_rows=fit.max_fit_rows, max_centres=fit.max_centres)
    fitted = time.process_time()
    found = density.score_samples(fresh, n_jobs=1)
    scored = time.process_time()
    value = found.mean() if truth is None else (truth - found).mean()
    seconds = round(fitted - start, 2), round(1e6 * (scored - fitted) / len(fresh), 2)
    return dict(zip(FIELDS, (*fit, round(float(value), 6), *seconds), strict=True))


def fitting() -> None:
    warnings.simplefilter("ignore")
    fit_blocks(known("triple", 200, 0)[0], [(0, 1), (2,)], n_jobs=1).score(known("triple", 200, 0)[0])  # compiled now
    seen = {tuple(row[field] for field in FIELDS[:6]) for row in read()}
    missing = {name for name in BLOCKS if not (SHARED / f"{name}.npz").is_file()}
    for name in sorted(missing):
        print(f"{SHARED / name}.npz does not exist: skipped")
    with open(RESULTS, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not seen:
            writer.writeheader()
        for fit in fits():
            if tuple(map(str, fit)) not in seen and fit.data not in missing:
                row = measured(fit)
                writer.writerow(row)
                file.flush()
                print(*row.values(), flush=True)


def read() -> list[dict[str, str]]:
    if not RESULTS.is_file():
        return []
    with open(RESULTS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table() -> None:
    rows = read()
    _more_data([row for row in rows if row["part"] == "more data"])
    default = [row for row in rows if (row["part"], row["seed"], row["rows"]) == ("more data", "0", str(10**6))]
    _curve("max_centres", [row for row in rows if row["part"] == "centres"])
    _curve("max_fit_rows", [row for row in rows if row["part"] == "fit rows"] + default)


def _more_data(rows: list[dict[str, str]]) -> None:
    print("more data: loss, nats, mean over seeds +- standard error; and paired change from the line before\n")
    for data in KNOWN:
        print(data)
        before: dict[str, float] = {}
        for n in sorted({int(row["rows"]) for row in rows if row["data"] == data}):
            own = {row["seed"]: row for row in rows if row["data"] == data and int(row["rows"]) == n}
            loss = {seed: float(row["value"]) for seed, row in own.items()}
            change = np.array([loss[seed] - before[seed] for seed in loss if seed in before])
            changed = f"   change {_with_error(change)}" if len(change) > 1 else ""
            seconds = np.mean([float(row["fit seconds"]) for row in own.values()])
            mean = _with_error(np.array(list(loss.values())))
            print(f"  {n:>9,}   {mean}{changed}   {seconds:6.1f} s   {len(loss)} seeds")
            before = loss


def _curve(bound: str, rows: list[dict[str, str]]) -> None:
    print(f"\n{bound}: loss of known densities, held-out log-density of others; seconds to fit; us to score a row\n")
    for data in (*KNOWN, *BLOCKS):
        print(data)
        for value in sorted({int(row[bound]) for row in rows if row["data"] == data}):
            own = [row for row in rows if row["data"] == data and int(row[bound]) == value]
            mean, fit, score = (np.mean([float(row[field]) for row in own]) for field in FIELDS[6:])
            n_rows = int(own[0]["rows"])
            print(f"  {value:>9,}   {mean:9.5f}   {fit:6.1f} s   {score:6.1f} us   {len(own)} seeds of {n_rows:,} rows")


def _with_error(values: np.ndarray) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():9.5f} +- {error:.5f}"


# --- a million rows of 30 columns ----------------------------------------------------------------------------------

STRUCTURE = [2, 3] * 6
FOLDER = Path(__file__).parent / "results" / "many_rows"


def wide(n: int, seed: int) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    """Twelve blocks, every fourth column bent."""
    X, partition = make_structured(STRUCTURE, n, random_state=seed)
    X[:, ::4] = np.sinh(X[:, ::4])
    return X, partition


def block_step(n: int, jobs: int) -> None:
    """Fit the blocks, and keep them with a table of scores that leads to them, as `isde fit` would."""
    from isde import ISDE, SubsetScores

    X, partition = wide(n, 0)
    model = ISDE(3, marginal="copula+stack", n_jobs=jobs)
    ISDE(3, n_jobs=jobs).fit(X[:300], subset_scores=_table_for(partition, SubsetScores))  # compiled now
    before, wall, processor = _megabytes(), time.perf_counter(), time.process_time()
    model.fit(X, subset_scores=_table_for(partition, SubsetScores))
    seconds = time.perf_counter() - wall, time.process_time() - processor
    print(f"{n:,} x {X.shape[1]}, {len(partition)} blocks: {seconds[0]:.0f} s by the clock, {seconds[1]:.0f} s of the")
    print(f"processor, {_megabytes() - before:.0f} MB beyond the table; {model.rows_used_}")
    FOLDER.mkdir(exist_ok=True)
    model.save(FOLDER / "model.isde")


def _table_for(partition: tuple[tuple[int, ...], ...], kind: type) -> object:
    """A table of which the partition is the best."""
    from itertools import combinations

    d = sum(map(len, partition))
    scores = {subset: 0.0 for size in (1, 2, 3) for subset in combinations(range(d), size)}
    return kind.from_dict(scores | {block: float(len(block)) for block in partition})


def score(n: int, ending: str) -> None:
    """`isde score` of fresh rows in a process of its own."""
    path = FOLDER / f"rows.{ending}"
    X, _ = wide(n, 1)
    names = [f"x{i}" for i in range(X.shape[1])]
    if ending == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table([*X.T.copy()], names), path)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(",".join(names) + "\n")
            csv.writer(file, lineterminator="\n").writerows(X.tolist())
    del X
    wall = time.perf_counter()
    command = [sys.executable, "-m", "isde", "score", str(FOLDER / "model.isde"), str(path), "--json"]
    subprocess.run([*command, "-o", str(FOLDER / f"scores.{ending}"), "--overwrite"], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"isde score of {n:,} rows, {ending}: {time.perf_counter() - wall:.0f} s by the clock,")
    print(f"{used.ru_utime + used.ru_stime:.0f} s of the processor, {used.ru_maxrss / 1e3:.0f} MB at most")


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("fitting", "table", "block_step", "score"))
    parser.add_argument("rows", nargs="?", type=float, default=1e6)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--ending", choices=("parquet", "csv"), default="parquet")
    arguments = parser.parse_args()
    if arguments.command == "block_step":
        block_step(int(arguments.rows), arguments.jobs)
    elif arguments.command == "score":
        score(int(arguments.rows), arguments.ending)
    else:
        {"fitting": fitting, "table": table}[arguments.command]()


if __name__ == "__main__":
    main()
