"""How often a block's stack, fitted again on all rows, is worse than plain kernels, and whether its samples look right.

    python experiments/refits.py run       # ten shapes, 300 to 3,000 rows, thirteen seeds, two families
    python experiments/refits.py few       # the same, 300 rows and forty seeds: there a loss is likeliest
    python experiments/refits.py fewest    # the same, 30 and 100 rows
    python experiments/refits.py table     # the table from the results, nothing is run

Each fit is a block by the stack of `marginal="kde+stack"` or by that of the default, and by `kde`; columns are rescaled
to [0, 1] by the range of the rows to fit. The difference of their log-densities is paired over 40,000 fresh rows. The
bar: never below `kde` by more than 0.02 nats and by more than three standard errors. Kolmogorov-Smirnov distances, the
largest of a block's columns, are those of 4,000 sampled rows to as many fresh ones; those of the rows to fit beside
them say how far chance goes. Seeds are others than those by which the refit was chosen.

Each finished fit is one row; a rerun goes on where it stopped. `--results` names another file to write, or to read.
results/refits_before.csv has the first of these fits by the code of commit a9ef6dc, whose kernels were a fixed ladder.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import ks_2samp

from isde.marginals.kde import KDEMarginal
from isde.marginals.marginal import BlockFitter, FittedBlock
from isde.marginals.scales import ScalesStack
from isde.marginals.stack import StackMarginal

RESULTS = Path(__file__).parent / "results" / "refits.csv"
EARLIER = RESULTS.with_name("refits_before.csv")
FIELDS = ("shape", "rows", "seed", "family", "difference", "error", "ks", "ks kde", "ks data", "seconds")
PARTS = {
    "run": (range(9000, 9013), (300, 600, 1000, 3000)),
    "few": (range(9100, 9140), (300,)),
    "fewest": (range(9200, 9210), (30, 100)),
}
"""Seeds and sizes."""

FRESH_ROWS, SAMPLED_ROWS = 40_000, 4000
FAMILIES: dict[str, BlockFitter] = {"kde+stack": StackMarginal(), "default": ScalesStack()}
LEAST_LOSS, ERRORS = 0.02, 3.0
LEAST_ROWS = 300  # of the fits that the bar is for

Draw = Callable[[np.random.Generator, int], np.ndarray]


def fitted(family: BlockFitter, X: np.ndarray) -> FittedBlock:
    return family.fit_blocks(X, [range(X.shape[1])], n_jobs=1)[0]


def xor(noise: float) -> Draw:
    """Two bits and their exclusive or: any two columns are independent."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        a, b = rng.integers(2, size=(2, n))
        return np.column_stack([a, b, a ^ b]) + noise * rng.normal(size=(n, 3))

    return draw


def grid(side: int) -> Draw:
    """Modes at whole numbers, the same in each direction."""
    return lambda rng, n: rng.integers(side, size=(n, 2)) + 0.15 * rng.normal(size=(n, 2))


def ring(rng: np.random.Generator, n: int) -> np.ndarray:
    angle, radius = rng.uniform(0, 2 * np.pi, size=n), 1 + 0.05 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def moons(rng: np.random.Generator, n: int) -> np.ndarray:
    angle, upper = rng.uniform(0, np.pi, size=n), rng.integers(2, size=n) == 1
    x, y = np.where(upper, np.cos(angle), 1 - np.cos(angle)), np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.column_stack([x, y]) + 0.1 * rng.normal(size=(n, 2))


def student(freedom: int, n_columns: int) -> Draw:
    """Correlated columns with the tails of Student's t: 1 is Cauchy's law."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        X = rng.normal(size=(n, n_columns))
        X[:, 1] += 0.7 * X[:, 0]
        return X / np.sqrt(rng.chisquare(freedom, size=(n, 1)) / freedom)

    return draw


def lognormal(rng: np.random.Generator, n: int) -> np.ndarray:
    x, noise = rng.normal(size=(2, n))
    return np.exp(np.column_stack([x, 0.6 * x + 0.8 * noise]))


def gamma(rng: np.random.Generator, n: int) -> np.ndarray:
    """Steep at zero, where densities have a pole, and in different units along the way."""
    x = rng.gamma(0.7, size=n)
    return np.column_stack([x, x * rng.gamma(2, size=n), rng.exponential(size=n) + 0.3 * x])


SHAPES: dict[str, Draw] = {
    "XOR, noise 0.1": xor(0.1),
    "XOR, noise 0.2": xor(0.2),
    "3 x 3 modes": grid(3),
    "4 x 4 modes": grid(4),
    "ring": ring,
    "two moons": moons,
    "Student, 2": student(2, 3),
    "Cauchy": student(1, 2),
    "lognormal": lognormal,
    "gamma": gamma,
}


def drawn(shape: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and fresh ones, rescaled."""
    rng = np.random.default_rng([seed, rows, list(SHAPES).index(shape)])
    fit, fresh = SHAPES[shape](rng, rows), SHAPES[shape](rng, FRESH_ROWS)
    low, width = fit.min(axis=0), np.ptp(fit, axis=0)
    return (fit - low) / width, (fresh - low) / width


def found_rows(seeds: Sequence[int], sizes: Sequence[int], seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    """Seed by seed, so that a run that was stopped has something of each shape."""
    for seed in seeds:
        for shape in SHAPES:
            for rows in sizes:
                todo = [name for name in FAMILIES if (shape, str(rows), str(seed), name) not in seen]
                if todo:
                    yield from measured(shape, rows, seed, todo)


def measured(shape: str, rows: int, seed: int, todo: list[str]) -> Iterator[dict[str, object]]:
    fit, fresh = drawn(shape, rows, seed)
    kde = fitted(KDEMarginal(), fit)
    by_kde, some = kde.score_samples(fresh, n_jobs=1), fresh[:SAMPLED_ROWS]
    ks_kde, ks_data = distance(kde, some, seed), largest_ks(fit, some)
    for name in todo:
        start = time.process_time()
        block = fitted(FAMILIES[name], fit)
        seconds = time.process_time() - start
        gain = block.score_samples(fresh, n_jobs=1) - by_kde
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        values = (gain.mean(), error, distance(block, some, seed), ks_kde, ks_data, seconds)
        yield dict(zip(FIELDS, (shape, rows, seed, name, *(round(float(v), 5) for v in values)), strict=True))


def distance(block: FittedBlock, fresh: np.ndarray, seed: int) -> float:
    return largest_ks(block.sample(SAMPLED_ROWS, np.random.RandomState(seed)), fresh)


def largest_ks(here: np.ndarray, there: np.ndarray) -> float:
    return max(ks_2samp(here[:, j], there[:, j]).statistic for j in range(here.shape[1]))


def run(path: Path, seeds: Sequence[int], sizes: Sequence[int]) -> None:
    warnings.simplefilter("ignore")
    compile_first()
    seen = {(row["shape"], row["rows"], row["seed"], row["family"]) for row in read(path)}
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not seen:
            writer.writeheader()
        for row in found_rows(seeds, sizes, seen):
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def compile_first() -> None:
    """The first seconds of a run are the compiler's: no fit shall pay for them."""
    X = np.random.default_rng(0).uniform(size=(100, 2))
    for family in (KDEMarginal(), *FAMILIES.values()):
        fitted(family, X).score_samples(X)


def read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(path: Path) -> None:
    print(
        "fits below kde by more than 0.02 nats and three standard errors, of all; the least and the median difference;"
    )
    print("the largest Kolmogorov-Smirnov distance of a sampled column to fresh rows: stack, kde, the rows to fit;")
    print(f"shapes and all: fits of {LEAST_ROWS} rows and more")
    for name in (EARLIER, path) if path == RESULTS else (path,):
        rows = read(name)
        print(f"\n{name.name}: {len(rows)} fits")
        for family in FAMILIES:
            own = [row for row in rows if row["family"] == family]
            enough = [row for row in own if int(row["rows"]) >= LEAST_ROWS]
            for shape in SHAPES:
                print_line(f"{family:9s} {shape:14s}", [row for row in enough if row["shape"] == shape])
            print_line(f"{family:9s} {'all':14s}", enough)
            for size in sorted({int(row["rows"]) for row in own}):
                print_line(f"{family:9s} {f'{size} rows':14s}", [row for row in own if int(row["rows"]) == size])


def print_line(title: str, rows: list[dict[str, str]]) -> None:
    if not rows:
        return
    difference, error, ks, ks_kde, ks_data, seconds = (
        np.array([float(row[field]) for row in rows]) for field in FIELDS[4:]
    )
    below = int(((difference < -LEAST_LOSS) & (difference < -ERRORS * error)).sum())
    print(
        f"  {title} {below:3d} of {len(rows):4d}   {difference.min():+8.3f} {np.median(difference):+8.3f}"
        f"   {ks.max():.3f} {ks_kde.max():.3f} {ks_data.max():.3f}   {seconds.sum():6.1f} s to fit"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "table"])
    parser.add_argument("--results", type=Path, default=RESULTS, help="another file of results")
    arguments = parser.parse_args()
    if arguments.part == "table":
        table(arguments.results)
    else:
        run(arguments.results, *PARTS[arguments.part])
