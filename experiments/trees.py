"""Trees of blocks: edges that are there and edges that are not, and what a tree is worth on real tables.

    python experiments/trees.py edges     # tables with a known structure, 50 of each kind
    python experiments/trees.py charges   # few rows: edges by the charges of blocks, and by those of edges
    python experiments/trees.py real      # two shared data sets, 5 seeds, beside blocks, forest, mixture and vine
    python experiments/trees.py table     # the tables from results/trees_*.csv, nothing is run

`edges`: 3,000 rows, cliques of at most four columns, the default's table and its tree; columns in random order
(`rearranging.py` tells what rearranging does to trees whose edges are known: only the last case has a wide component).
A false edge joins two columns of different true blocks, or is none of the true graph. `real`: 5,000 rows to fit and
4,000 others held out, every row counted; log-densities in the units of the data. "Tree by stacks" scores subsets by
stacks on one split and charges nothing, as a density estimator would. Seconds are of one processor
(`time.process_time`), scoring included. The vine copula needs `pip install pyvinecopulib`, whose defaults it has:
kernel margins, all pair families and structures. Each finished table or fit is one row, and a run that was stopped goes
on where it stopped. The shared data are read from ../shared/data, and skipped with a word where they are missing.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from real_tables import print_rows, standard_error, tables
from structure import FAMILIES, append, as_text

from isde import ISDE, ForestDensity, GaussianMixtureCV, TreeISDE, select_partition, select_tree
from isde.partitions import Partition
from isde.scoring import Scoring
from isde.synthetic import make_block_gaussian, make_structured, structure_partition
from isde.tree_solvers import dynamic
from isde.tree_solvers.problem import TreeProblem
from isde.trees import Edge

RESULTS = Path(__file__).parent / "results"
FIRST_SEED = 60_000
"""Tables of their own: what a tree is charged was decided on others."""

ROWS, LARGEST_CLIQUE, TABLES = 3000, 4, 50

Matrix = NDArray[np.float64]
Generator = np.random.Generator
Row = dict[str, str]
Draw = Callable[[Generator, int], tuple[Matrix, list[Edge]]]
"""Rows, as many as asked for, and the true edges."""


# --- tables with a known structure -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Tables whose true edges are known."""

    label: str
    draw: Draw

    def sample(self, number: int, n_rows: int = ROWS) -> tuple[Matrix, list[Edge]]:
        """One table, its columns in random order so that none gains by standing first."""
        rng = np.random.default_rng([zlib.crc32(self.label.encode()), FIRST_SEED + number])
        X, edges = self.draw(rng, n_rows)
        order = rng.permutation(X.shape[1])
        moved = ((int(order[a]), int(order[b])) for a, b in edges)
        return X[:, np.argsort(order)], sorted((min(edge), max(edge)) for edge in moved)


def independent(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
    return np.column_stack([FAMILIES[name](rng, n) for name in rng.choice(list(FAMILIES), 9)]), []


def within(structure: Sequence[int]) -> list[Edge]:
    return [edge for block in structure_partition(structure) for edge in combinations(block, 2)]


def structured(*structure: int) -> Draw:
    def draw(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
        return make_structured(structure, n, random_state=int(rng.integers(2**31)))[0], within(structure)

    return draw


def gaussian(*structure: int) -> Draw:
    def draw(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
        seed = int(rng.integers(2**31))
        return make_block_gaussian(structure, n, sigma=0.7, random_state=seed)[0], within(structure)

    return draw


def chain(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
    edges = [(0, 1), (1, 2), (2, 3)]
    return markov(rng, n, 4, edges), edges


def two_tree(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
    """Eight columns, each but two joined to both ends of an edge that was there."""
    edges = [(0, 1)]
    for column in range(2, 8):
        a, b = edges[rng.integers(len(edges))]
        edges += [(a, column), (b, column)]
    if np.bincount(np.ravel(edges)).max() > 5:  # partial correlations of 0.35 with more are hardly ever possible
        return two_tree(rng, n)
    return markov(rng, n, 8, edges), edges


def xor(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
    """Three columns of which two say nothing, and two strangers."""
    X = rng.normal(size=(n, 5))
    X[:, 2] = np.abs(X[:, 2]) * np.sign(X[:, 0] * X[:, 1])
    return X, [(0, 1), (0, 2), (1, 2)]


def markov(rng: Generator, n: int, n_columns: int, edges: Sequence[Edge]) -> Matrix:
    """Normal rows with partial correlations from 0.35 to 0.6 of either sign where there is an edge, then sinh."""
    precision = np.zeros((n_columns, n_columns))
    while np.linalg.eigvalsh(precision)[0] < 0.05:
        precision = np.eye(n_columns)
        for a, b in edges:
            precision[a, b] = precision[b, a] = rng.choice([-1, 1]) * rng.uniform(0.35, 0.6)
    covariance = np.linalg.inv(precision)
    X = rng.multivariate_normal(np.zeros(n_columns), covariance, n)
    return np.sinh(X / np.sqrt(np.diag(covariance)))


CASES = (
    Case("independent", independent),
    Case("[2, 2, 1]", structured(2, 2, 1)),
    Case("[3, 3, 3]", structured(3, 3, 3)),
    Case("[4, 4, 2, 2]", structured(4, 4, 2, 2)),
    Case("Gaussian [4, 4, 1]", gaussian(4, 4, 1)),
    Case("chain of 4", chain),
    Case("2-tree of 8", two_tree),
)
WITH_BLOCKS = tuple(case.label for case in CASES[:5])
"""Cases whose true blocks are cliques: the bars for false edges are theirs."""

MOST_FALSE, MOST_FALSE_IN_A_CASE, LEAST_CONNECTED, LEAST_COMPLETE = 0.065, 0.15, 0.95, 0.90

EDGE_FIELDS = ("case", "table", "n", "d", "found", "truth", "blocks", "gap", "seconds")


def run_edges(labels: Sequence[str], n_tables: int, workers: int) -> None:
    path = RESULTS / "trees_edges.csv"
    done = {(row["case"], row["table"]) for row in read(path)}
    if not path.is_file():
        append(path, dict(zip(EDGE_FIELDS, EDGE_FIELDS, strict=True)))
    left = [(case, t) for case in CASES if case.label in labels for t in range(n_tables)]
    left = [(case, t) for case, t in left if (case.label, str(t)) not in done]
    shares = [left[start::workers] for start in range(workers)]
    Parallel(workers)(delayed(work)(path, share) for share in shares)


def work(path: Path, share: Sequence[tuple[Case, int]]) -> None:
    warnings.simplefilter("ignore")
    for case, number in share:
        X, truth = case.sample(number)
        begin = time.process_time()
        # What columns score by themselves is the same for every tree.
        scores = Scoring.of(LARGEST_CLIQUE, random_state=FIRST_SEED + number, n_jobs=1).score(X, columns=False)
        tree, partition = select_tree(scores), select_partition(scores).partition
        seconds = round(time.process_time() - begin, 2)
        found = as_text(tree.edges), as_text(tuple(truth)), as_text(partition)
        values = (case.label, number, *X.shape, *found, f"{tree.gap:.3g}", seconds)
        append(path, dict(zip(EDGE_FIELDS, values, strict=True)))


# --- charges of blocks, and of edges ---------------------------------------------------------------------------

FEW_ROWS, FEW_TABLES = (300, 100), 40
CHARGED = (*(case for case in CASES if case.label in ("chain of 4", "2-tree of 8")), Case("xor triple", xor))


def charges_table() -> None:
    """Why a clique is charged no less than its pairs: false edges and complete trees by either rule."""
    warnings.simplefilter("ignore")
    lines = []
    for n in FEW_ROWS:
        for case in CHARGED:
            found = np.array([by_both(case, number, n) for number in range(FEW_TABLES)])
            lines.append([case.label, str(n), *(f"{100 * share:.0f}" for share in found.mean(axis=0))])
    print(f"{FEW_TABLES} tables each, %: with a false edge, with all true edges\n")
    head = ["case", "N", "false, as blocks", "complete, as blocks", "false, by edge", "complete, by edge"]
    print_rows(head, lines)


def by_both(case: Case, number: int, n_rows: int) -> list[bool]:
    X, truth = case.sample(number, n_rows)
    scores = Scoring.of(LARGEST_CLIQUE, random_state=FIRST_SEED + number, n_jobs=1).score(X, columns=False)
    as_blocks = dynamic.best(TreeProblem(scores)).edges or ()
    trees = (set(as_blocks), set(select_tree(scores).edges))
    return [verdict for edges in trees for verdict in (bool(edges - set(truth)), set(truth) <= edges)]


# --- real tables -----------------------------------------------------------------------------------------------

FIT_ROWS, HELD_OUT_ROWS, SEEDS = 5000, 4000, range(5)
SIZES = {"nilsson_rare": (3, 4), "levine32_h2": (3,)}
"""Largest blocks and cliques."""

RIVALS = ("tree by stacks", "forest", "mixture", "vine")
REAL_FIELDS = ("data", "seed", "method", "mean", "lowest", "infinite", "edges", "score", "bound", "seconds")


def run_real(data: Sequence[str], methods: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    path = RESULTS / "trees_real.csv"
    if not path.is_file():
        append(path, dict(zip(REAL_FIELDS, REAL_FIELDS, strict=True)))
    for name, X, _ in tables(data):
        for seed in SEEDS:
            done = {row["method"] for row in read(path) if (row["data"], row["seed"]) == (name, str(seed))}
            order = np.random.default_rng(seed).permutation(len(X))
            fit, held_out = X[order[:FIT_ROWS]], X[order[FIT_ROWS : FIT_ROWS + HELD_OUT_ROWS]]
            k = max(SIZES[name])
            for rows in (structures(name, seed, fit, held_out, done), rivals(k, seed, fit, held_out, methods, done)):
                for row in rows:
                    append(path, {"data": name, "seed": seed} | row)
                    print(name, seed, *row.values(), flush=True)


def structures(name: str, seed: int, fit: Matrix, held_out: Matrix, done: set[str]) -> Iterator[dict[str, object]]:
    """Blocks and trees of each size, each by default."""
    for k in SIZES[name]:
        for method, kind in ((f"blocks {k}", ISDE), (f"tree {k}", TreeISDE)):
            if method not in done:
                yield measured(method, kind(k, random_state=seed, n_jobs=1), fit, held_out)


def measured(method: str, model: ISDE | TreeISDE, fit: Matrix, held_out: Matrix) -> dict[str, object]:
    begin = time.process_time()
    model.fit(fit)
    seconds = time.process_time() - begin
    chosen = model.selection_
    edges = (
        len(model.edges_) if isinstance(model, TreeISDE) else sum(len(b) * (len(b) - 1) // 2 for b in model.partition_)
    )
    own = {
        "edges": edges,
        "score": round(chosen.score, 5),
        "bound": round(chosen.bound - chosen.objective + chosen.score, 5),
    }
    return row_of(method, model.score_samples(held_out), seconds) | own


def rivals(
    k: int, seed: int, fit: Matrix, held_out: Matrix, methods: Sequence[str], done: set[str]
) -> Iterator[dict[str, object]]:
    for method in (method for method in methods if method not in done):
        begin = time.process_time()
        if method == "vine":
            from pyvinecopulib import Vinedist

            found = Vinedist.from_data(fit).logpdf(held_out)
        else:
            model = {
                "tree by stacks": TreeISDE(k, marginal="stack", split="paper", random_state=seed, n_jobs=1),
                "forest": ForestDensity(random_state=seed),
                "mixture": GaussianMixtureCV(random_state=seed),
            }[method]
            found = model.fit(fit).score_samples(held_out)
        yield row_of(method, found, time.process_time() - begin)


def row_of(method: str, found: NDArray[np.float64], seconds: float) -> dict[str, object]:
    infinite = int((~np.isfinite(found)).sum())
    mean, lowest = round(float(found.mean()), 5), round(float(found.min()), 3)
    known: dict[str, object] = dict.fromkeys(REAL_FIELDS[2:], "")
    return known | {
        "method": method,
        "mean": mean,
        "lowest": lowest,
        "infinite": infinite,
        "seconds": round(seconds, 1),
    }


# --- what the rows say -----------------------------------------------------------------------------------------


def table() -> None:
    edges_table(read(RESULTS / "trees_edges.csv"))
    real_table(read(RESULTS / "trees_real.csv"))


def edges_table(rows: Sequence[Row]) -> None:
    lines, false_ones, all_blocks = [], 0, 0
    for case in CASES:
        own = [row for row in rows if row["case"] == case.label]
        if not own:
            continue
        false = np.array([bool(pairs(row["found"]) - pairs(row["truth"])) for row in own])
        complete = np.array([pairs(row["truth"]) <= pairs(row["found"]) for row in own])
        connected = np.array([connects(row) for row in own])
        agree = np.array([as_text(components(row["found"], int(row["d"]))) == row["blocks"] for row in own])
        if case.label in WITH_BLOCKS:
            false_ones, all_blocks = false_ones + int(false.sum()), all_blocks + len(own)
        shares = (false, connected, complete, agree)
        lines.append([case.label, str(len(own)), *(f"{100 * share.mean():.0f}" for share in shares)])
    print("Trees of at most four columns a clique, 3,000 rows: tables with ..., %\n")
    head = [
        "case",
        "tables",
        "a false edge",
        "every true block connected",
        "all true edges",
        "components as the blocks",
    ]
    print_rows(head, lines)
    if all_blocks:
        share = false_ones / all_blocks
        error = np.sqrt(share * (1 - share) / all_blocks)
        print(f"\nFalse edges in cases with blocks: {100 * share:.1f} +- {100 * error:.1f} % of tables (bar 6.5)")


def pairs(text: str) -> set[Edge]:
    return {(a, b) for a, b in (map(int, pair.split()) for pair in text.split("|") if pair.strip())}


def components(text: str, n_columns: int) -> Partition:
    own = list(range(n_columns))
    for a, b in pairs(text):
        own = [own[a] if one == own[b] else one for one in own]
    return tuple(sorted(tuple(c for c in range(n_columns) if own[c] == one) for one in set(own)))


def connects(row: Row) -> bool:
    """Whether each true component lies within one that was found."""
    found = components(row["found"], int(row["d"]))
    true = components(row["truth"], int(row["d"]))
    return all(any(set(one) <= set(other) for other in found) for one in true)


def real_table(rows: Sequence[Row]) -> None:
    for name in SIZES:
        own = {(row["method"], int(row["seed"])): row for row in rows if row["data"] == name}
        methods = list(dict.fromkeys(method for method, _ in own))
        if not methods:
            continue
        tree = f"tree {max(SIZES[name])}"
        print(f"\n{name}: held-out log-density of {HELD_OUT_ROWS:,} rows, nats, +- standard error over seeds\n")
        print_rows(
            ["method", "seeds", "mean", f"below {tree}", "lowest row", "rows at -inf", "edges", "open gap", "seconds"],
            [real_line(own, method, tree) for method in methods],
        )


def real_line(own: dict[tuple[str, int], Row], method: str, tree: str) -> list[str]:
    seeds = [seed for seed in SEEDS if (method, seed) in own and (tree, seed) in own]
    here = [own[method, seed] for seed in seeds]
    means = np.array([float(row["mean"]) for row in here])
    behind = np.array([float(own[tree, seed]["mean"]) for seed in seeds]) - means
    gaps = [float(row["bound"]) - float(row["score"]) for row in here if row["bound"]]
    edges = [float(row["edges"]) for row in here if row["edges"]]
    return [
        method,
        str(len(seeds)),
        with_error(means),
        with_error(behind),
        f"{min(float(row['lowest']) for row in here):.1f}",
        str(sum(int(row["infinite"]) for row in here)),
        f"{np.mean(edges):.0f}" if edges else "",
        f"{max(gaps):.4f}" if gaps else "",
        f"{np.median([float(row['seconds']) for row in here]):.0f}",
    ]


def with_error(values: NDArray[np.float64]) -> str:
    return (
        f"{values.mean():.3f} +- {standard_error(values):.3f}" if np.isfinite(values).all() else f"{values.mean():.3f}"
    )


def read(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    labels = [case.label for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["edges", "charges", "real", "table"])
    parser.add_argument("--cases", nargs="+", choices=labels, default=labels)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--data", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rivals", nargs="*", choices=RIVALS, default=RIVALS)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.part == "edges":
        run_edges(options.cases, options.tables, options.workers)
    elif options.part == "charges":
        charges_table()
    elif options.part == "real":
        run_real(options.data, options.rivals)
    else:
        table()
