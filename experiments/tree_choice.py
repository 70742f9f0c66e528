"""Which tree a density would choose: trees of `nilsson_rare` by other scores than the default's, and false edges.

    python experiments/tree_choice.py real      # trees by four kinds of scores, with the same densities; 10 seeds
    python experiments/tree_choice.py edges     # the same choice among two-trees of eight columns: edges not there
    python experiments/tree_choice.py table     # the tables from results/tree_choice_*.csv, nothing is run

`real`: rows as in `trees.py real`, cliques of at most four columns. Trees are chosen by the default's table, by
Gaussian mixtures of the subsets' normal scores, by such mixtures of the data as they are, and by stacks of the data
(`marginal="stack"`, `split="paper"`); whatever chose it, a tree's cliques then have the default's densities. Mixtures
have 1 to 16 components, weighed on the rows that score; a third of the rows fits them, a third scores. On the last
third the tree is compared with the default's, both by the mixtures of the first: `z` is the mean difference over its
standard error, by rows that had no say in the choice of this tree. `edges`: 50 tables of 3,000 rows, normal but for
their columns' scales; there the comparison is with the true tree, which is what the default finds in all of them
(`trees.py edges`). Each finished fit is one row, and a run that was stopped goes on where it stopped. --seeds and
--methods take a part of the work; a seed of all five takes some three minutes of one processor. The rows kept are of
--seeds 0 to 5 for mixtures of the data, and of no stacks: `trees.py real` has these with densities of their own.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from real_tables import print_rows, tables
from scipy.special import logsumexp
from structure import append, as_text
from trees import CASES, FIT_ROWS, HELD_OUT_ROWS, TABLES, pairs, read, with_error

from isde import GaussianMixtureCV, SubsetScores, fit_tree, select_tree
from isde.engine.mixtures import Mixtures, grow_mixtures
from isde.engine.stacking import choose_weights, mixture_log_densities
from isde.marginals.stack import SCORING_DOUBLINGS, SCORING_STEPS
from isde.normal_scores import normal_scores
from isde.scoring import Scoring
from isde.subsets import Subset, SubsetFamily
from isde.trees import Tree, tree_of_edges

RESULTS = Path(__file__).parent / "results"
DATA, LARGEST_CLIQUE, SEEDS = "nilsson_rare", 4, range(10)

RIVAL, DEFAULT, BY_RANKS, BY_MIXTURES, BY_STACKS = (
    "mixture by CV",
    "the default's",
    "mixtures of ranks",
    "mixtures of the data",
    "stacks of the data",
)
METHODS = (RIVAL, DEFAULT, BY_RANKS, BY_MIXTURES, BY_STACKS)
REAL_FIELDS = ("seed", "method", "mean", "median", "lowest", "edges", "z", "seconds")
EDGE_FIELDS = ("method", "table", "truth", "found", "z")

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """Three parts of the rows: to fit mixtures on, to choose by, and to judge by."""

    fit: Matrix
    choose: Matrix
    judge: Matrix

    @classmethod
    def of(cls, X: Matrix, seed: int, *, ranks: bool = False) -> Parts:
        order = np.random.default_rng([1, seed]).permutation(len(X))
        fit, choose, judge = (X[own] for own in np.array_split(order, 3))
        if ranks:
            scores, others = normal_scores(fit, np.concatenate([choose, judge]))
            return cls(scores, *np.split(others, [len(choose)]))
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        return cls(*((part - low) / width for part in (fit, choose, judge)))

    def mixtures(self, subset: Subset) -> tuple[Mixtures, Vector]:
        """Mixtures of each size, and their weights."""
        columns = list(subset)
        grown = grow_mixtures(np.ascontiguousarray(self.fit[:, columns]), SCORING_DOUBLINGS, SCORING_STEPS)
        return grown, choose_weights(_logs(grown, self.choose[:, columns]), 0)

    def table(self) -> SubsetScores:
        """Every subset by the combination of its mixtures, charging nothing."""
        subsets = SubsetFamily(self.fit.shape[1], LARGEST_CLIQUE)
        return SubsetScores.from_dict({own: float(self._log_density(own, self.choose).mean()) for own in subsets})

    def _log_density(self, subset: Subset, rows: Matrix) -> Vector:
        grown, weights = self.mixtures(subset)
        logs = _logs(grown, rows[:, list(subset)]).astype(np.float64)
        return np.asarray(logsumexp(logs, b=weights[:, None], axis=0))

    def z(self, tree: Tree, other: Tree) -> float:
        """How many standard errors a tree is above another one; 0 for the same tree."""
        signed = dict.fromkeys({*(term for term, _ in tree.terms), *(term for term, _ in other.terms)}, 0)
        for own, side in ((tree, 1), (other, -1)):
            for term, sign in own.terms:
                signed[term] += side * sign
        differences = [sign * self._log_density(term, self.judge) for term, sign in signed.items() if sign]
        if not differences:
            return 0.0
        each = np.sum(differences, axis=0)
        return float(each.mean() / (each.std(ddof=1) / np.sqrt(len(each))))


def _logs(grown: Mixtures, rows: Matrix) -> NDArray[np.float32]:
    return mixture_log_densities(grown, np.ascontiguousarray(rows))


# --- a real table ----------------------------------------------------------------------------------------------


def run_real(seeds: Iterable[int], methods: Sequence[str]) -> None:
    path = _begun(RESULTS / "tree_choice_real.csv", REAL_FIELDS)
    for _, X, _ in tables([DATA]):
        for seed in seeds:
            done = {row["method"] for row in read(path) if row["seed"] == str(seed)}
            order = np.random.default_rng(seed).permutation(len(X))
            fit, held_out = X[order[:FIT_ROWS]], X[order[FIT_ROWS : FIT_ROWS + HELD_OUT_ROWS]]
            for row in rows_of(seed, fit, held_out, [m for m in METHODS if m in methods and m not in done]):
                append(path, row)
                print(*row.values(), flush=True)


def rows_of(seed: int, fit: Matrix, held_out: Matrix, methods: Sequence[str]) -> Iterator[dict[str, object]]:
    default: Tree | None = None
    for method in methods:
        begin, own = time.process_time(), dict[str, object]()
        if method == RIVAL:
            found = GaussianMixtureCV(random_state=seed).fit(fit).score_samples(held_out)
        else:
            parts = Parts.of(fit, seed, ranks=method == BY_RANKS)
            tree = chosen_tree(method, fit, seed, parts)
            if method == DEFAULT:
                default = tree
            elif method != BY_RANKS:  # whose parts are on another scale
                default = default or chosen_tree(DEFAULT, fit, seed, parts)
                own["z"] = round(parts.z(tree, default), 2)
            own["edges"] = len(tree.edges)
            found = fit_tree(fit, tree.cliques, n_jobs=1).score_samples(held_out)
        own["seconds"] = round(time.process_time() - begin, 1)
        yield dict.fromkeys(REAL_FIELDS, "") | {"seed": seed, "method": method} | summary(found) | own


def chosen_tree(method: str, fit: Matrix, seed: int, parts: Parts) -> Tree:
    if method in (BY_RANKS, BY_MIXTURES):
        return select_tree(parts.table()).tree
    if method == DEFAULT:
        return select_tree(Scoring.of(LARGEST_CLIQUE, random_state=seed, n_jobs=1).score(fit)).tree
    by_stacks = Scoring.of(LARGEST_CLIQUE, marginal="stack", split="paper", random_state=seed, n_jobs=1)
    return select_tree(by_stacks.score((fit - fit.min(axis=0)) / np.ptp(fit, axis=0))).tree


def summary(found: Vector) -> dict[str, object]:
    values = {"mean": found.mean(), "median": np.median(found), "lowest": found.min()}
    return {name: round(float(value), 5) for name, value in values.items()}


# --- a known structure -----------------------------------------------------------------------------------------


def run_edges(n_tables: int) -> None:
    path = _begun(RESULTS / "tree_choice_edges.csv", EDGE_FIELDS)
    case = next(case for case in CASES if case.label == "2-tree of 8")
    done = {(row["method"], row["table"]) for row in read(path)}
    for method, number in product((BY_RANKS, BY_MIXTURES), range(n_tables)):
        if (method, str(number)) in done:
            continue
        X, truth = case.sample(number)
        parts = Parts.of(X, number, ranks=method == BY_RANKS)
        found = select_tree(parts.table()).tree
        z = round(parts.z(found, tree_of_edges(X.shape[1], truth)), 2)
        append(
            path, dict(zip(EDGE_FIELDS, (method, number, as_text(tuple(truth)), as_text(found.edges), z), strict=True))
        )


# --- what the rows say -----------------------------------------------------------------------------------------

SURE = 3.0
"""Standard errors by which a tree would have to be above the default's to take its place."""


def table() -> None:
    rows = read(RESULTS / "tree_choice_real.csv")
    if rows:
        print(f"{DATA}: held-out log-density of {HELD_OUT_ROWS:,} rows, nats, +- standard error over seeds\n")
        own = {(row["method"], row["seed"]): row for row in rows}
        others = ("above the mixture by", "medians, above by", "above the default's tree by")
        head = ["tree by", "seeds", "mean", *others, "least z", "lowest row"]
        print_rows(head, [real_line(own, method) for method in METHODS if any(m == method for m, _ in own)])
    rows = read(RESULTS / "tree_choice_edges.csv")
    if rows:
        print("\nTwo-trees of eight columns, % of tables\n")
        head = [
            "tree by",
            "tables",
            "a false edge",
            "all true edges",
            f"above the true tree by {SURE:g} errors",
            "largest z",
        ]
        by_method = ([row for row in rows if row["method"] == method] for method in (BY_RANKS, BY_MIXTURES))
        print_rows(head, [edges_line(own) for own in by_method if own])


def edges_line(rows: Sequence[dict[str, str]]) -> list[str]:
    false = np.array([bool(pairs(row["found"]) - pairs(row["truth"])) for row in rows])
    complete = np.array([pairs(row["truth"]) <= pairs(row["found"]) for row in rows])
    z = np.array([float(row["z"]) for row in rows])
    shares = (false, complete, z > SURE)
    return [rows[0]["method"], str(len(rows)), *(f"{100 * share.mean():.0f}" for share in shares), f"{z.max():.1f}"]


def real_line(own: dict[tuple[str, str], dict[str, str]], method: str) -> list[str]:
    here = [row for (name, seed), row in own.items() if name == method and {(RIVAL, seed), (DEFAULT, seed)} <= set(own)]

    def above(other: str, name: str) -> str:
        if METHODS.index(method) <= METHODS.index(other):
            return ""
        return with_error(np.array([float(row[name]) - float(own[other, row["seed"]][name]) for row in here]))

    zs = [float(row["z"]) for row in here if row["z"]]
    return [
        method,
        str(len(here)),
        with_error(np.array([float(row["mean"]) for row in here])),
        above(RIVAL, "mean"),
        above(RIVAL, "median"),
        above(DEFAULT, "mean"),
        f"{min(zs):.1f}" if zs and method not in (RIVAL, DEFAULT) else "",
        f"{min(float(row['lowest']) for row in here):.0f}",
    ]


def _begun(path: Path, fields: Sequence[str]) -> Path:
    """A file with its first line."""
    if not path.is_file():
        append(path, dict(zip(fields, fields, strict=True)))
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["real", "edges", "table"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tables", type=int, default=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.part == "real":
        run_real(options.seeds, options.methods)
    elif options.part == "edges":
        run_edges(options.tables)
    else:
        table()
