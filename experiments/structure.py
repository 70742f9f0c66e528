"""Which blocks are found, and how often a block is found where there is none: ISDE by default, before, and rivals.

    python experiments/structure.py null       # false blocks among independent columns
    python experiments/structure.py found      # one true block among columns that stand alone
    python experiments/structure.py paper      # the paper's structures and Gaussian blocks
    python experiments/structure.py least      # normal pairs of about the correlation that is said to be needed
    python experiments/structure.py models     # what a correlation of 0.3 is worth to each model: seconds
    python experiments/structure.py strangers  # pairs joined by a stranger, by charges of two kinds: half a minute
    python experiments/structure.py table      # the tables from results/structure_*.csv, nothing is run
    python experiments/structure.py figure     # docs/structure.png from them

Each finished table is one row for each method in results/structure_<part>.csv; a run that was stopped goes on where it
stopped. --methods, --sizes (rows) and --tables (of each case) take a part of the work, --workers processes. "isde" is
the default: columns on the copula scale, chance levels at 5 %. "kde" is the default before: kernels on columns scaled
to [0, 1], compared as they are. The others are tests by pairs at 5 % and BDCS (rivals.py); they need
`pip install dcor hyppo`. HSIC with matrices of n x n runs up to 300 rows. All methods see the same tables, whose
columns stand in random order; ISDE looks for blocks of at most three columns, in `paper` of at most four.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from rivals import LARGEST_HSIC, RIVALS

from isde import select_partition
from isde.data.table import default_names
from isde.joined_tables import best_scores
from isde.partitions import Partition
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows
from isde.scores import SubsetScores
from isde.scoring import Scoring
from isde.subsets import SubsetFamily
from isde.synthetic import make_block_gaussian, make_structured, structure_partition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESULTS = Path(__file__).parent / "results"
FIELDS = ("case", "n", "d", "k", "method", "table", "partition", "truth", "seconds")
FIRST_SEED = 90_000
"""Tables of their own: what the default is was decided on others."""

Matrix = NDArray[np.float64]
Generator = np.random.Generator
Row = dict[str, str]
Shape = tuple[int, int, int]
"""Rows, columns, largest block: what the chance levels depend on."""


# --- the methods -----------------------------------------------------------------------------------------------


def isde_blocks(X: Matrix, k: int, seed: int) -> Partition:
    # What columns score by themselves is the same for every partition.
    table = Scoring.of(max_block_size=k, random_state=seed).score(X, columns=False)
    return select_partition(table).partition


def kde_blocks(X: Matrix, k: int, seed: int) -> Partition:
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    table = Scoring.of(max_block_size=k, marginal="kde", alpha=None, random_state=seed).score((X - low) / width)
    return select_partition(table).partition


METHODS = ("isde", "kde", *RIVALS)


def blocks_by(method: str, X: Matrix, k: int, seed: int) -> Partition:
    own = {"isde": isde_blocks, "kde": kde_blocks}
    found = own[method](X, k, seed) if method in own else RIVALS[method](X, seed)
    return tuple(sorted(tuple(sorted(block)) for block in found))


def bearable(method: str, n: int) -> bool:
    return method != "HSIC" or n <= LARGEST_HSIC


# --- the tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Tables with a known structure."""

    part: str  # null, found, paper or least
    label: str
    n: int
    k: int
    structure: tuple[int, ...]
    tables: int
    draw: Callable[[Generator, int], Matrix]  # the columns in the order of the structure

    @property
    def shape(self) -> Shape:
        return self.n, sum(self.structure), self.k

    def sample(self, number: int) -> tuple[Matrix, Partition]:
        """One table and its true partition, the columns in random order so that none gains by standing first."""
        n, d, _ = self.shape
        rng = np.random.default_rng([zlib.crc32(self.label.encode()), n, d, FIRST_SEED + number])
        X, order = self.draw(rng, n), rng.permutation(d)
        truth = (tuple(sorted(order[list(block)].tolist())) for block in structure_partition(self.structure))
        return X[:, np.argsort(order)], tuple(sorted(truth))


def rounded(spread: float) -> Callable[[Generator, int], Matrix]:
    return lambda rng, n: np.round(spread * rng.standard_normal(n))


def one_far_out(rng: Generator, n: int) -> Matrix:
    x = rng.standard_normal(n)
    x[rng.integers(n)] = 20.0
    return x


FAMILIES: dict[str, Callable[[Generator, int], Matrix]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.standard_exponential(n),
    "gamma 2": lambda rng, n: rng.standard_gamma(2, n),
    "t5": lambda rng, n: rng.standard_t(5, n),
    "Laplace": lambda rng, n: rng.laplace(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "rounded, spread 2": rounded(2),
    "rounded, spread 5": rounded(5),
    "30 % zeros": lambda rng, n: np.where(rng.random(n) < 0.3, 0, np.abs(rng.standard_normal(n))),
    "one 20 spreads out": one_far_out,
}
MIXED = "all mixed"
LARGE_FAMILIES = ("normal", "lognormal", "rounded, spread 2")


def independent(family: str, n: int, d: int, tables: int) -> Case:
    """Columns of one family, or each of a random one."""

    def draw(rng: Generator, n: int) -> Matrix:
        names = rng.choice(list(FAMILIES), d) if family == MIXED else [family] * d
        return np.column_stack([FAMILIES[name](rng, n) for name in names])

    return Case("null", family, n, 3, (1,) * d, tables, draw)


def among_strangers(
    label: str,
    n: int,
    size: int,
    block: Callable[[Generator, int], Matrix],
    stranger: Callable[[Generator, int], Matrix],
) -> Case:
    """A block and columns that stand alone, five in all."""
    strangers = 5 - size

    def draw(rng: Generator, n: int) -> Matrix:
        return np.column_stack([block(rng, n), *(stranger(rng, n) for _ in range(strangers))])

    return Case("found", label, n, 3, (size, *(1,) * strangers), 100, draw)


def lognormal_pair(rho: float) -> Callable[[Generator, int], Matrix]:
    return lambda rng, n: np.exp(rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n))


def ring(rng: Generator, n: int) -> Matrix:
    radius, angle = 1 + 0.1 * rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def xor(noise: float) -> Callable[[Generator, int], Matrix]:
    """Three columns of which any two are independent."""

    def draw(rng: Generator, n: int) -> Matrix:
        a, b = rng.integers(0, 2, (2, n))
        return np.column_stack([a, b, a ^ b]) + noise * rng.standard_normal((n, 3))

    return draw


def common_scale(rng: Generator, n: int) -> Matrix:
    return rng.standard_normal((n, 2)) / np.sqrt(rng.chisquare(4, (n, 1)) / 4)


def own_scale(rng: Generator, n: int) -> Matrix:
    """A stranger with the marginal that columns of a common scale have."""
    return rng.standard_t(4, n)


def block_cases(n: int) -> list[Case]:
    normal, lognormal = FAMILIES["normal"], FAMILIES["lognormal"]
    return [
        among_strangers("rho 0.3", n, 2, lognormal_pair(0.3), lognormal),
        among_strangers("rho 0.5", n, 2, lognormal_pair(0.5), lognormal),
        among_strangers("ring", n, 2, ring, normal),
        among_strangers("xor", n, 3, xor(0.1), normal),
        among_strangers("xor, noise 0.2", n, 3, xor(0.2), normal),
        among_strangers("common scale", n, 2, common_scale, own_scale),
    ]


def least_correlation_of(n: int) -> float:
    """What `isde info` says of a table of five independent columns; chance levels are kept, which makes it quick."""
    from isde.inspection import least_correlation

    X = np.random.default_rng(n).normal(size=(n, 5))
    return least_correlation(Scoring.of(max_block_size=3, random_state=0).score(X, columns=False))


def pair_near_least(share: float, n: int) -> Case:
    """A normal pair of a share of the correlation that is said to be needed, among five columns."""

    def pair(rng: Generator, n: int) -> Matrix:
        rho = share * least_correlation_of(n)
        return rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)

    def stranger(rng: Generator, n: int) -> Matrix:
        return rng.normal(size=n)

    return replace(among_strangers(f"{share:g} x least", n, 2, pair, stranger), part="least")


def structured(structure: tuple[int, ...], n: int) -> Case:
    def draw(rng: Generator, n: int) -> Matrix:
        return make_structured(structure, n, random_state=int(rng.integers(2**31)))[0]

    return Case("paper", f"paper {list(structure)}", n, 4, structure, 20, draw)


def gaussian(structure: tuple[int, ...], sigma: float, n: int) -> Case:
    def draw(rng: Generator, n: int) -> Matrix:
        return make_block_gaussian(structure, n, sigma=sigma, random_state=int(rng.integers(2**31)))[0]

    return Case("paper", f"Gaussian {list(structure)}, sigma {sigma}", n, 4, structure, 20, draw)


CASES = [
    *(independent(f, n, d, 100) for n in (100, 300, 1000) for d in (5, 12) for f in (*FAMILIES, MIXED)),
    *(independent(family, 5000, d, n) for d, n in ((5, 100), (12, 40)) for family in LARGE_FAMILIES),
    *(case for n in (1000, 300, 100) for case in block_cases(n)),
    *(structured(structure, n) for n in (1000, 3000) for structure in ((2, 2, 1), (3, 3, 3), (4, 4, 2, 2))),
    *(gaussian(structure, 0.7, 1000) for structure in ((2, 2), (4, 4, 1), (4, 3, 2, 3))),
    *(gaussian(structure, 0.2, 1000) for structure in ((2, 2, 1), (4, 4, 1), (4, 3, 2, 3))),
    *(pair_near_least(share, n) for n in (30, 100, 300, 1000) for share in (0.7, 1.0, 1.4)),
]

BARS = {
    ("rho 0.3", 1000): 0.95,
    ("ring", 1000): 0.98,
    ("xor", 1000): 0.98,
    ("common scale", 1000): 0.80,
    ("rho 0.3", 300): 0.85,
    ("rho 0.5", 300): 0.95,
    ("ring", 300): 0.95,
    ("xor", 300): 0.95,
    ("rho 0.5", 100): 0.80,
    ("ring", 100): 0.90,
    ("xor", 100): 0.90,
}
"""What the default is to reach, set before it was run: how often the true block is found."""

MOST_FALSE, MOST_FALSE_IN_A_FAMILY = 0.065, 0.12


# --- running ---------------------------------------------------------------------------------------------------

Task = tuple[Case, int, tuple[str, ...]]
"""A case, the number of one of its tables, the methods that have not seen it."""


def run(part: str, methods: Sequence[str], sizes: Sequence[int] | None, tables: int | None, workers: int) -> None:
    """Every table that is not yet in the file, the largest shapes first.

    All tables of a shape go to one process, one after the other: chance levels are found once for a shape and kept.
    Processes append rows themselves, so that a stopped run loses no more than the tables under way.
    """
    path = RESULTS / f"structure_{part}.csv"
    jobs: dict[Shape, list[Task]] = defaultdict(list)
    for task in tasks(part, methods, sizes, tables, path):
        jobs[task[0].shape].append(task)
    if not path.is_file():
        append(path, dict(zip(FIELDS, FIELDS, strict=True)))
    Parallel(workers)(delayed(work)(path, jobs[shape]) for shape in sorted(jobs, reverse=True))


def tasks(
    part: str, methods: Sequence[str], sizes: Sequence[int] | None, tables: int | None, path: Path
) -> Iterator[Task]:
    done = {tuple(row[field] for field in ("case", "n", "d", "method", "table")) for row in read(path)}
    for case in (case for case in CASES if case.part == part and (sizes is None or case.n in sizes)):
        n, d, _ = case.shape
        for number in range(min(case.tables, tables or case.tables)):
            left = [m for m in methods if (case.label, str(n), str(d), m, str(number)) not in done]
            left = [method for method in left if bearable(method, n)]
            if left:
                yield case, number, tuple(left)


def work(path: Path, jobs: Sequence[Task]) -> None:
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    for case, number, methods in jobs:
        X, truth = case.sample(number)
        n, d, k = case.shape
        for method in methods:
            begin = time.perf_counter()
            partition = blocks_by(method, X, k, FIRST_SEED + number)
            seconds = round(time.perf_counter() - begin, 4)
            values = (case.label, n, d, k, method, number, as_text(partition), as_text(truth), seconds)
            append(path, dict(zip(FIELDS, values, strict=True)))
    print(f"{len(jobs)} tables of shape {jobs[0][0].shape}: {time.perf_counter() - start:.0f} s", flush=True)


def append(path: Path, row: dict[str, object]) -> None:
    """In a single write: rows of two processes do not mix."""
    line = io.StringIO()
    csv.DictWriter(line, list(row), lineterminator="\n").writerow(row)
    with open(path, "ab", buffering=0) as file:
        file.write(line.getvalue().encode())


def read(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_text(partition: Partition) -> str:
    """Blocks of two columns or more; the other columns stand alone.

    >>> as_text(((0, 2), (1,), (3,)))
    '0 2'
    """
    return "|".join(" ".join(map(str, block)) for block in partition if len(block) > 1)


# --- why the default is what it is ------------------------------------------------------------------------------

MODELS = "kernels", "correlation", "magnitudes"


def by_model(X: Matrix, k: int, seed: int) -> list[SubsetScores]:
    """What each model says of the subsets of a table, nothing charged."""
    how = Scoring.of(max_block_size=k, random_state=seed)
    rows = SplitRows(how._scorer, X, how._splits(X))
    return score_models(rows, SubsetFamily(X.shape[1], k), default_names(X.shape[1]), How(1))


def models(rho: float = 0.3, n: int = 300, tables: int = 200) -> None:
    """What a normal pair scores by each model, on rows left out."""
    gains = []
    for number in range(tables):
        X = np.random.default_rng([FIRST_SEED, number]).multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
        gains.append([model.scores[-1] for model in by_model(X, 2, number)])
    print(f"{tables} normal pairs of correlation {rho}, {n} rows: mean held-out score, nats a row")
    print(f"({-0.5 * np.log(1 - rho**2):.4f} is all there is)\n")
    means, errors = np.mean(gains, axis=0), np.std(gains, axis=0, ddof=1) / np.sqrt(tables)
    for name, mean, error in zip(MODELS, means, errors, strict=True):
        print(f"{name:<12} {mean:.4f} +- {error:.4f}")
    print(f"\ncorrelation over kernels: {means[1] / means[0]:.2f}")


def strangers(tables: int = 100) -> None:
    """A true pair among five columns: how often a stranger is joined to it, by two kinds of charges."""
    case = next(case for case in CASES if (case.part, case.label, case.n) == ("found", "rho 0.3", 1000))
    n, d, k = case.shape
    subsets, joined = SubsetFamily(d, k), np.zeros(2, dtype=int)
    for number in range(tables):
        X, truth = case.sample(number)
        how = Scoring.of(max_block_size=k, random_state=FIRST_SEED + number)
        chance = how._chance(how._splits(X), subsets, k, n, None)
        # The first kind of margins is that of columns each of another group, which are independent.
        alone = replace(chance, margins=tuple(tuple(kinds[:1] for kinds in model) for model in chance.margins))
        scored = by_model(X, k, FIRST_SEED + number)
        for kind, charged in enumerate((alone, chance)):
            partition = select_partition(best_scores(how._charged(scored, charged, n))).partition
            joined[kind] += any(set(pair) < set(block) for pair in truth if len(pair) > 1 for block in partition)
    print(f"{case.label}, N = {n:,}, {tables} tables: the true pair is joined by a stranger")
    print(f"charged for independent columns alone: {joined[0]}; for groups of dependent columns too: {joined[1]}")


# --- what the rows say -----------------------------------------------------------------------------------------


def is_false(row: Row) -> bool:
    return row["partition"] != ""


def is_found(row: Row) -> bool:
    """The true block stands among the blocks, whatever the others are."""
    return row["truth"] in row["partition"].split("|")


def is_exact(row: Row) -> bool:
    return row["partition"] == row["truth"]


Rates = dict[tuple[str, int, int, str], tuple[float, int]]
"""By case, rows, columns and method: a share of the tables, and how many they are."""


def rates(part: str, event: Callable[[Row], bool]) -> Rates:
    events = defaultdict(list)
    for row in read(RESULTS / f"structure_{part}.csv"):
        events[row["case"], int(row["n"]), int(row["d"]), row["method"]].append(event(row))
    return {key: (float(np.mean(values)), len(values)) for key, values in events.items()}


def methods_in(found: Rates) -> list[str]:
    present = {method for *_, method in found}
    return [method for method in METHODS if method in present]


def print_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in (head, ["---"] * len(head), *rows):
        print("|", " | ".join(line), "|")


def percent(share: float) -> str:
    return f"{100 * share:.3g}"


def table() -> None:
    null_table()
    for part, event, what in (
        ("found", is_found, "the true block is found, % of tables"),
        ("found", is_exact, "the whole partition is right, % of tables"),
        ("paper", is_exact, "the whole partition is right, % of tables"),
        ("least", is_found, "the pair is found, % of tables"),
    ):
        found_table(part, rates(part, event), what, bars=part == "found" and event is is_found)
    seconds_table()


def null_table() -> None:
    found = rates("null", is_false)
    methods, rows = methods_in(found), []
    for n, d in dict.fromkeys((case.n, case.shape[1]) for case in CASES if case.part == "null"):
        cells = [null_cell(families_of(found, n, d, method)) for method in methods]
        rows.append([f"{n:,}", str(d), *cells])
    print("\nFalse blocks among independent columns, % of tables over all families +- standard error; the worst family")
    print(f"(bars: {percent(MOST_FALSE)} and {percent(MOST_FALSE_IN_A_FAMILY)})\n")
    print_rows(["N", "d", *methods], rows)
    print_tables_of(found)
    if "isde" in methods:
        print("\nisde, by family:\n")
        print_families(found, "isde")


def families_of(found: Rates, n: int, d: int, method: str) -> dict[str, tuple[float, int]]:
    return {case: value for (case, *rest), value in found.items() if rest == [n, d, method]}


def null_cell(families: dict[str, tuple[float, int]]) -> str:
    if not families:
        return ""
    pooled, error = pool(families)
    worst = max(families, key=lambda family: families[family][0])
    return f"{100 * pooled:.1f} +- {100 * error:.1f}; {worst} {percent(families[worst][0])}"


def pool(families: dict[str, tuple[float, int]]) -> tuple[float, float]:
    """Mean over families, each counted once, and its standard error."""
    shares, counts = np.array(list(families.values())).T
    return shares.mean(), float(np.sqrt((shares * (1 - shares) / counts).sum()) / len(shares))


def print_families(found: Rates, method: str) -> None:
    shapes = list(dict.fromkeys((n, d) for _, n, d, m in found if m == method))
    rows = []
    for family in (*FAMILIES, MIXED):
        shares = [found.get((family, *shape, method)) for shape in shapes]
        rows.append([family, *("" if share is None else percent(share[0]) for share in shares)])
    print_rows(["family", *(f"N {n:,}, d {d}" for n, d in shapes)], rows)


def found_table(part: str, found: Rates, what: str, bars: bool) -> None:
    methods, rows, missed = methods_in(found), [], []
    for case in (case for case in CASES if case.part == part):
        n, d, k = case.shape
        shares = [found.get((case.label, n, d, method)) for method in methods]
        cells = ["" if share is None else percent(share[0]) for share in shares]
        bar = BARS.get((case.label, n)) if bars else None
        rows.append([case.label, f"{n:,}", *([str(k)] if part == "paper" else []), *cells])
        if bars:
            rows[-1].append("" if bar is None else percent(bar))
        if bar is not None and "isde" in methods and shares[methods.index("isde")] is not None:
            share, count = shares[methods.index("isde")]
            if share < bar:
                missed.append(f"{case.label} N {n:,} ({percent(share)} +- {error_of(share, count)}, {percent(bar)})")
    head = ["case", "N", *(["k"] if part == "paper" else []), *methods, *(["bar"] if bars else [])]
    print(f"\n{part}: {what}\n")
    print_rows(head, rows)
    print_tables_of(found)
    if bars and "isde" in methods:
        print("\nBars that isde misses:", "; ".join(missed) or "none")


def error_of(share: float, count: int) -> str:
    return f"{100 * np.sqrt(share * (1 - share) / count):.1f}"


def print_tables_of(found: Rates) -> None:
    """How many tables the rates are of, where they are not all there."""
    wanted = {(case.label, *case.shape[:2]): case.tables for case in CASES}
    missing = defaultdict(set)
    for method in methods_in(found):
        for (label, n, d), tables in wanted.items():
            count = found.get((label, n, d, method), (0, 0))[1]
            if 0 < count < tables:
                missing[method].add(f"{count} of {tables} of {label} N {n:,} d {d}")
    for method, those in missing.items():
        shown = sorted(those)
        print(f"\n{method}, tables so far: {'; '.join(shown[:4])}{' and others' if len(shown) > 4 else ''}")
    if "HSIC" in methods_in(found):
        print(f"\nHSIC, with matrices of n x n, up to {LARGEST_HSIC} rows only.")


def seconds_table() -> None:
    spent = defaultdict(list)
    for row in read(RESULTS / "structure_null.csv"):
        spent[int(row["n"]), int(row["d"]), row["method"]].append(float(row["seconds"]))
    methods = [method for method in METHODS if any(method == m for *_, m in spent)]
    rows = [
        [f"{n:,}", str(d), *(f"{np.median(spent[n, d, m]):.3f}" if (n, d, m) in spent else "" for m in methods)]
        for n, d in dict.fromkeys((n, d) for n, d, _ in sorted(spent))
    ]
    print("\nSeconds for a table of independent columns, median\n")
    print_rows(["N", "d", *methods], rows)


# --- the figure ------------------------------------------------------------------------------------------------

STYLES = {
    "isde": ("#D55E00", "o"),
    "kde": ("#000000", "s"),
    "Spearman": ("#56B4E9", "^"),
    "distance correlation": ("#0072B2", "v"),
    "Hoeffding's D": ("#009E73", "D"),
    "HSIC": ("#CC79A7", "P"),
    "HSIC of ranks": ("#E69F00", "X"),
    "BDCS": ("#999999", "*"),
}
"""Okabe and Ito's colours, and a marker of its own for each."""

SHOWN_SIZES = (100, 300, 1000)


def figure() -> None:
    """Above: false blocks by family, 5 and 12 columns together. Below: how often the true block is found."""
    import matplotlib.pyplot as plt

    false = together(rates("null", is_false))
    found, exact = (together(rates("found", event)) for event in (is_found, is_exact))
    families = [*FAMILIES, MIXED]
    cases = list(dict.fromkeys(case.label for case in CASES if case.part == "found"))
    sheet, axes = plt.subplots(
        2, 3, figsize=(13, 10.5), sharey="row", layout="constrained", height_ratios=[len(families), len(cases) + 1]
    )
    for column, n in enumerate(SHOWN_SIZES):
        draw_rates(axes[0, column], false, families, n)
        draw_rates(axes[1, column], found, cases, n, exact)
        axes[0, column].set(title=f"N = {n:,}", xlim=(-0.7, 115))
        axes[0, column].set_xscale("symlog", linthresh=10, linscale=1.2)
        axes[0, column].set_xticks([0, 5, 10, 20, 50, 100], ["0", "5", "10", "20", "50", "100"])
        axes[0, column].axvline(5, color="0.6", linewidth=1, zorder=0)
        axes[0, column].axvline(100 * MOST_FALSE_IN_A_FAMILY, color="0.6", linewidth=1, linestyle="--", zorder=0)
        axes[1, column].set(xlim=(-3, 103))
        for y, case in enumerate(cases):
            if (case, n) in BARS:
                axes[1, column].plot(
                    [100 * BARS[case, n]] * 2, [y - 0.42, y + 0.42], color="0.4", linewidth=1.5, zorder=1
                )
    axes[0, 1].set_xlabel(
        "independent columns: tables with a false block, %\n"
        "(line: 5 %; dashed: what no family is to exceed; isde with a 95 % interval)"
    )
    axes[1, 1].set_xlabel(
        "one true block among 5 columns: tables in which it is found, %\n"
        "(thin line: down to those without a false block beside it; upright: what isde is to reach)"
    )
    present = {method for *_, method in (*false, *found)}
    handles = [
        plt.Line2D([], [], color=colour, marker=marker, linestyle="", label=method)
        for method, (colour, marker) in STYLES.items()
        if method in present
    ]
    sheet.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    sheet.savefig(RESULTS.parents[1] / "docs" / "structure.png", dpi=110)


Shares = dict[tuple[str, int, str], tuple[float, int]]
"""`Rates` over all numbers of columns."""


def together(found: Rates) -> Shares:
    parts = defaultdict(list)
    for (case, n, _, method), value in found.items():
        parts[case, n, method].append(value)
    shares = {}
    for key, values in parts.items():
        count = sum(count for _, count in values)
        shares[key] = sum(share * count for share, count in values) / count, count
    return shares


def draw_rates(ax: Axes, found: Shares, cases: list[str], n: int, exact: Shares | None = None) -> None:
    """A marker for each case and method; lines to other rates, or for isde the interval that few tables leave."""
    for shift, (method, (colour, marker)) in enumerate(STYLES.items()):
        for y, case in enumerate(cases):
            if (case, n, method) not in found:
                continue
            share, count = found[case, n, method]
            height = y + 0.1 * (shift - (len(STYLES) - 1) / 2)
            if exact is not None:
                ends = [100 * share, 100 * exact[case, n, method][0]]
                ax.plot(ends, [height] * 2, color=colour, linewidth=1, alpha=0.6)
            elif method == "isde":
                ax.plot(100 * wilson(share, count), [height] * 2, color=colour, linewidth=1.5)
            ax.plot(100 * share, height, marker, color=colour, markersize=6, clip_on=False)
    ax.set(yticks=range(len(cases)), yticklabels=cases, ylim=(len(cases) - 0.5, -0.5))
    for y in range(len(cases) - 1):
        ax.axhline(y + 0.5, color="0.92", linewidth=1, zorder=0)


def wilson(share: float, count: int) -> Matrix:
    z = 1.96
    middle, half = share + z**2 / (2 * count), z * np.sqrt(share * (1 - share) / count + (z / count) ** 2 / 4)
    return np.array([middle - half, middle + half]) / (1 + z**2 / count)


OTHERS = {"models": models, "strangers": strangers, "table": table, "figure": figure}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["null", "found", "paper", "least", *OTHERS])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--sizes", nargs="+", type=int, help="only tables with so many rows")
    parser.add_argument("--tables", type=int, help="at most so many tables of each case")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.part in OTHERS:
        OTHERS[options.part]()
    else:
        run(options.part, options.methods, options.sizes, options.tables, options.workers)
    if options.part == "least":
        for n in dict.fromkeys(case.n for case in CASES if case.part == "least"):
            print(f"{n:,} rows of five columns: the least correlation is {least_correlation_of(n):.2f}", flush=True)
