"""Trees rearranged by stacks beside those of the table alone: what they gain, and what edges that costs.

    python experiments/rearranging.py real      # nilsson_rare and other real tables, two to ten seeds
    python experiments/rearranging.py known     # tables whose edges are known, normal ones and clusters
    python experiments/rearranging.py chance    # what stacks say of independent columns, beside what is charged
    python experiments/rearranging.py table     # the tables from results/rearranging_*.csv, nothing is run

Each row of the results is one table: the tree of the table of scores, that of `TreeISDE` by default, and whether it was
rearranged. `real`: rows are drawn by the seed, 4,000 others (or all that are left) are held out, and every one is
counted; the mixture is `GaussianMixtureCV`. `known`: two-trees of eight columns as in `trees.py edges`, and clusters:
each column is drawn given one, two or three earlier ones that stand in a clique, by Gaussian mixtures of random shapes,
so that the graph is known and no column is near normal. Seeds are others than those by which rows, bandwidths and
errors of `isde.rearranging` were chosen. A run that was stopped goes on where it stopped. The shared data are read from
../shared/data, and skipped with a word where they are missing.
"""

from __future__ import annotations

import argparse
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
from real_tables import print_rows, tables
from structure import append, as_text
from trees import CASES, HELD_OUT_ROWS, pairs, read, with_error

from isde import GaussianMixtureCV, TreeISDE
from isde.rearranging import EDGE_NATS, log_copula
from isde.scoring import Scoring
from isde.trees import Edge

RESULTS = Path(__file__).parent / "results"
FIRST_SEED = 90_000

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Generator = np.random.Generator
Row = dict[str, str]


def both(X: Matrix, k: int, seed: int) -> tuple[TreeISDE, TreeISDE]:
    """By the table alone, and by default."""
    default = TreeISDE(k, random_state=seed, n_jobs=1).fit(X)
    if not any(one.is_taken for one in default.rearrangements_ or ()):
        return default, default
    scores = Scoring.of(k, random_state=seed, n_jobs=1).score(X)
    return TreeISDE(k, random_state=seed, n_jobs=1).fit(X, subset_scores=scores), default


def about(model: TreeISDE) -> dict[str, object]:
    """Whether any component was rearranged, and what was promised of the one that gains most."""
    found = max(model.rearrangements_ or (), key=lambda one: one.gain, default=None)
    if found is None:
        return {"taken": "", "promised": "", "error": ""}
    return {"taken": int(found.is_taken), "promised": round(found.gain, 5), "error": round(found.error, 5)}


# --- real tables -----------------------------------------------------------------------------------------------

SEVERAL = 12
"""Columns drawn from levine32_h2."""

REAL = (
    ("nilsson_rare", 5000, 4, range(10)),
    ("nilsson_rare", 2000, 4, range(5)),
    ("nilsson_rare", 10_000, 4, range(2)),
    (f"levine32_h2, {SEVERAL} columns", 5000, 4, range(3)),
    ("kin8nm", 4000, 4, range(3)),
)
"""Data, rows to fit on, largest clique, seeds."""

REAL_FIELDS = (
    "data",
    "n",
    "seed",
    "by_table",
    "default",
    "mixture",
    "edges_by_table",
    "edges",
    "taken",
    "promised",
    "error",
    "seconds",
)


def run_real() -> None:
    path = _begun(RESULTS / "rearranging_real.csv", REAL_FIELDS)
    for label, n, k, seeds in REAL:
        for name, X, _ in tables([label.split(",")[0]]):
            done = {row["seed"] for row in read(path) if (row["data"], row["n"]) == (label, str(n))}
            for seed in (seed for seed in seeds if str(seed) not in done):
                rng = np.random.default_rng(seed)
                order = rng.permutation(len(X))
                columns = np.sort(rng.permutation(X.shape[1])[:SEVERAL]) if label != name else np.arange(X.shape[1])
                row = real_row(X[np.ix_(order[:n], columns)], X[np.ix_(order[n : n + HELD_OUT_ROWS], columns)], k, seed)
                append(path, {"data": label, "n": n, "seed": seed} | row)
                print(label, n, seed, *row.values(), flush=True)


def real_row(fit: Matrix, held_out: Matrix, k: int, seed: int) -> dict[str, object]:
    begin = time.process_time()
    by_table, default = both(fit, k, seed)
    seconds = time.process_time() - begin
    models = {"by_table": by_table, "default": default, "mixture": GaussianMixtureCV(random_state=seed).fit(fit)}
    means = {name: round(float(model.score_samples(held_out).mean()), 5) for name, model in models.items()}
    edges = {"edges_by_table": len(by_table.edges_), "edges": len(default.edges_)}
    return means | edges | about(default) | {"seconds": round(seconds, 1)}


# --- tables whose edges are known ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """Tables whose true edges are known."""

    label: str
    n_rows: int
    draw: Callable[[Generator, int], tuple[Matrix, list[Edge]]]

    def sample(self, number: int) -> tuple[Matrix, list[Edge]]:
        """One table, its columns in random order so that none gains by standing first."""
        rng = np.random.default_rng([zlib.crc32(self.label.encode()), FIRST_SEED + number])
        X, edges = self.draw(rng, self.n_rows)
        order = rng.permutation(X.shape[1])
        moved = ((int(order[a]), int(order[b])) for a, b in edges)
        return X[:, np.argsort(order)], sorted((min(edge), max(edge)) for edge in moved)


def clusters(
    n_columns: int, n_parents: int, n_components: int
) -> Callable[[Generator, int], tuple[Matrix, list[Edge]]]:
    """Each column given earlier ones of a clique, by mixtures of its own."""

    def draw(rng: Generator, n: int) -> tuple[Matrix, list[Edge]]:
        X, edges, parents = np.empty((n, n_columns)), [], [tuple[int, ...]()]
        for column in range(n_columns):
            given = parents[rng.integers(len(parents))] if column > n_parents else tuple(range(column))
            drawn = drawn_given(rng, X[:, given], n_components)
            X[:, column] = (drawn - drawn.mean()) / drawn.std()
            edges += [(parent, column) for parent in given]
            if column >= n_parents:
                fresh = column > n_parents
                parents = (parents if fresh else []) + [
                    one for one in combinations((*given, column), n_parents) if not fresh or column in one
                ]
        return X, edges

    return draw


def drawn_given(rng: Generator, given: Matrix, n_components: int) -> Vector:
    """A column given others, by a Gaussian mixture of all of them with random shapes."""
    n, s = given.shape
    weights, means = rng.dirichlet(np.full(n_components, 3.0)), 2 * rng.normal(size=(n_components, s + 1))
    factors = rng.normal(size=(n_components, s + 1, s + 1))
    widths = rng.uniform(0.1, 0.6, n_components)[:, None, None] / (s + 1)
    covariances = factors @ factors.transpose(0, 2, 1) * widths + 0.02 * np.eye(s + 1)
    logs, centres, spreads = np.empty((n, n_components)), np.empty((n, n_components)), np.empty(n_components)
    for j, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        precision = np.linalg.inv(covariance[:s, :s])
        away = given - mean[:s]
        logs[:, j] = np.log(weights[j]) - 0.5 * ((away @ precision) * away).sum(axis=1)
        logs[:, j] += 0.5 * np.linalg.slogdet(precision)[1]
        centres[:, j] = mean[s] + away @ precision @ covariance[:s, s]
        spreads[j] = np.sqrt(covariance[s, s] - covariance[:s, s] @ precision @ covariance[:s, s])
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    chosen = (shares.cumsum(axis=1) > rng.random((n, 1)) * shares.sum(axis=1, keepdims=True)).argmax(axis=1)
    every = np.arange(n)
    return np.asarray(centres[every, chosen] + spreads[chosen] * rng.normal(size=n))


KNOWN = (
    (Known("2-tree of 8", 3000, next(case.draw for case in CASES if case.label == "2-tree of 8")), 50),
    (Known("clusters, one parent", 3000, clusters(8, 1, 4)), 30),
    (Known("clusters, two parents", 3000, clusters(8, 2, 4)), 50),
    (Known("clusters, three parents", 3000, clusters(8, 3, 4)), 30),
    (Known("13 columns, 8 clusters, three parents", 5000, clusters(13, 3, 8)), 10),
)
"""Each with how many tables."""

KNOWN_FIELDS = ("case", "table", "n", "truth", "by_table", "default", "taken", "promised", "error")


def run_known(workers: int) -> None:
    path = _begun(RESULTS / "rearranging_known.csv", KNOWN_FIELDS)
    done = {(row["case"], row["table"]) for row in read(path)}
    left = [(case, t) for case, n_tables in KNOWN for t in range(n_tables) if (case.label, str(t)) not in done]
    Parallel(workers)(delayed(known_rows)(path, left[start::workers]) for start in range(workers))


def known_rows(path: Path, share: Sequence[tuple[Known, int]]) -> None:
    warnings.simplefilter("ignore")
    for case, number in share:
        X, truth = case.sample(number)
        by_table, default = both(X, 4, FIRST_SEED + number)
        row = {"case": case.label, "table": number, "n": case.n_rows, "truth": as_text(tuple(truth))}
        edges = {"by_table": as_text(by_table.edges_), "default": as_text(default.edges_)}
        append(path, row | edges | about(default))


# --- what chance gives -------------------------------------------------------------------------------------------


def chance(n_draws: int = 200) -> None:
    """Of independent normal columns: a pair, and the edge that closes a triple, in nats over the rows that choose."""
    lines = []
    for n in (2000, 5000, 10_000):
        learned, chosen = n // 2, n // 4
        found = []
        for draw in range(n_draws):
            Z = np.random.default_rng([FIRST_SEED, n, draw]).normal(size=(learned + chosen, 3))

            def gain(*columns: int, Z: Matrix = Z, learned: int = learned) -> float:
                rows = np.ascontiguousarray(Z[:, columns])
                return float(log_copula(rows[:learned], rows[learned:]).sum())

            found.append((gain(0, 1), gain(0, 1, 2) - gain(0, 1) - gain(1, 2)))
        largest = np.max(found, axis=0)
        lines.append([f"{n:,}", *(f"{value:.1f}" for value in largest), f"{EDGE_NATS:g}"])
    print(f"The largest of {n_draws} draws, nats over all rows that choose\n")
    print_rows(["rows", "a pair", "an edge that closes a triple", "charged for such an edge"], lines)


# --- what the rows say -----------------------------------------------------------------------------------------


def table() -> None:
    print("Held-out log-density of rows, nats, +- standard error over seeds\n")
    head = [
        "data",
        "rows",
        "rearranged",
        "default above table's tree",
        "tree of the table above mixture",
        "default above mixture",
    ]
    print_rows(head, list(real_lines(read(RESULTS / "rearranging_real.csv"))))
    print("\nTables with ..., %, and how many were rearranged; edges in all of them\n")
    head = ["case", "tables", "rearranged", "a false edge: by table, default", "all edges: by table, default"]
    print_rows(head, list(known_lines(read(RESULTS / "rearranging_known.csv"))))


def real_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    for label, n, _, _ in REAL:
        own = [row for row in rows if (row["data"], row["n"]) == (label, str(n))]
        if own:
            by_table, default, mixture = (
                np.array([float(row[name]) for row in own]) for name in ("by_table", "default", "mixture")
            )
            taken = sum(row["taken"] == "1" for row in own)
            above = (
                with_error(difference) for difference in (default - by_table, by_table - mixture, default - mixture)
            )
            yield [label, f"{n:,}", f"{taken} of {len(own)}", *above]


def known_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    for case, _ in KNOWN:
        own = [row for row in rows if row["case"] == case.label]
        if own:
            shares = [
                ", ".join(
                    f"{100 * np.mean([verdict(pairs(row[who]), pairs(row['truth'])) for row in own]):.0f}"
                    for who in ("by_table", "default")
                )
                for verdict in (lambda found, true: bool(found - true), lambda found, true: true <= found)
            ]
            yield [case.label, str(len(own)), str(sum(row["taken"] == "1" for row in own)), *shares]


def _begun(path: Path, fields: Sequence[str]) -> Path:
    """A file with its first line."""
    if not path.is_file():
        append(path, dict(zip(fields, fields, strict=True)))
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["real", "known", "chance", "table"])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.part == "real":
        run_real()
    elif options.part == "known":
        run_known(options.workers)
    elif options.part == "chance":
        chance()
    else:
        table()
