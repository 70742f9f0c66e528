"""Which marginals give the better density: the paper's kernels, the stack, and the rivals, all rows counted.

    python experiments/marginals.py real           # the shared data sets, 5 seeds: about an hour
    python experiments/marginals.py cut            # what small blocks cost a mixture on nilsson_rare: 5 minutes
    python experiments/marginals.py ceiling        # the most that blocks of three can have there: 3 minutes
    python experiments/marginals.py synthetic      # the gap to the true density, 5 seeds: about 5 minutes
    python experiments/marginals.py experts        # the stack against each of its experts alone: about 5 minutes
    python experiments/marginals.py table          # the tables from results/marginals_*.csv, nothing is run
    python experiments/marginals.py draw           # docs/marginals.png from them

Real data: 5,000 rows to fit (3,000 fit the marginals and 2,000 score them, as in the paper), up to 4,000 others held
out, log-densities on columns rescaled to [0, 1] by the range of the rows to fit. Synthetic: 5,000 rows of the paper's
families, 5,000 fresh ones, and how much log-density they lose against the truth; also with mixtures of 16 at most.
Cut: the mixture of all columns, and the best product of its own exact marginals with at most k columns each, chosen on
the held-out rows themselves: what independence between blocks costs, apart from all that an estimator of block
densities can do. Ceiling: the best product of mixtures of 64 that are fitted on the held-out rows themselves, which
fitted on other rows they cannot be expected to reach. Each finished fit is one row; a rerun goes on where it stopped.
The data are read from ../shared/data, and skipped with a word where they are missing.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed

from isde import CVKDE, ISDE, ForestDensity, GaussianMixtureCV, SubsetScores, select_partition
from isde.density_estimator import DensityEstimator
from isde.engine import stacking
from isde.engine.mixtures import grow_mixtures
from isde.marginals import stack
from isde.marginals.kde import KDEBlock
from isde.marginals.mixture import MixtureBlock
from isde.subsets import Subset, SubsetFamily
from isde.synthetic import make_structured, structured_log_density

RESULTS = Path(__file__).parent / "results"
SHARED = Path(__file__).parents[2] / "shared" / "data"
FIELDS = ("data", "k", "method", "seed", "score", "error", "lowest", "seconds")
SEEDS = range(5)
FIT_ROWS, HELD_OUT_ROWS = 5000, 4000
MOST_SUBSETS = 300
PAPER = "ISDE kde (paper)"
CUT, CEILING = "GM cut into blocks", "ceiling of blocks"
CEILING_DOUBLINGS = 6
REAL = [("levine32_h2", 3), ("nilsson_rare", 3), ("nilsson_rare", 5), ("kin8nm", 3)]
SYNTHETIC = [(2, 2, 1), (3, 3, 3), (4, 4, 2, 2)]


def methods(k: int, seed: int) -> dict[str, DensityEstimator]:
    options = {"n_jobs": -1, "random_state": seed}
    return {
        PAPER: ISDE(k, marginal="kde", split=0.6, **options),
        "ISDE stack": ISDE(k, marginal="stack", split=0.6, **options),
        "ISDE kde+stack": ISDE(k, marginal="kde+stack", split=0.6, **options),
        "FDE": ForestDensity(split=0.6, **options),
        "CVKDE": CVKDE(n_jobs=-1),
        "GM by CV": GaussianMixtureCV(**options),
    }


def real_rows(seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for name, k in REAL:
        for seed, fit, held_out in samples(name):
            for method, model in methods(k, seed).items():
                key = (name, str(k), method, str(seed))
                if key not in seen and (k == 3 or method.startswith("ISDE")):  # the others do not depend on k
                    yield measured(key, model, fit, held_out)


def samples(name: str) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Seed, rows to fit and held-out rows, rescaled."""
    path = SHARED / f"{name}.npz"
    if not path.is_file():
        print(f"{path} does not exist: skipped")
        return
    X = np.load(path)["X"].astype(np.float64)
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(X))
        fit, held_out = X[order[:FIT_ROWS]], X[order[FIT_ROWS : FIT_ROWS + HELD_OUT_ROWS]]
        low, width = fit.min(axis=0), np.ptp(fit, axis=0)
        yield seed, (fit - low) / width, (held_out - low) / width


def cut_rows(seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for seed, fit, held_out in samples("nilsson_rare"):
        if all(("nilsson_rare", k, CUT, str(seed)) in seen for k in ("3", "5")):
            continue
        density = GaussianMixtureCV(n_jobs=-1, random_state=seed).fit(fit).density_
        (mixture,), U = density.blocks, density.scaling.transform(held_out)
        family = SubsetFamily(U.shape[1], 5)
        logs = {
            s: marginal(mixture, s).score_samples(U[:, s]) + density.scaling.log_jacobian[list(s)].sum() for s in family
        }
        for k in (3, 5):
            start = time.perf_counter()
            found = best_product(SubsetFamily(family.n_columns, k), logs)
            yield as_row(("nilsson_rare", str(k), CUT, str(seed)), found, time.perf_counter() - start)


def marginal(mixture: MixtureBlock, subset: Subset) -> MixtureBlock:
    columns = list(subset)
    return MixtureBlock(mixture.weights, mixture.means[:, columns], mixture.covariances[:, columns][:, :, columns])


def ceiling_rows(seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for seed, _, held_out in samples("nilsson_rare"):
        key = ("nilsson_rare", "3", CEILING, str(seed))
        if key not in seen:
            start, family = time.perf_counter(), SubsetFamily(held_out.shape[1], 3)
            logs = Parallel(-1)(delayed(own_mixture)(held_out[:, s]) for s in family)
            found = best_product(family, dict(zip(family, logs, strict=True)))
            yield as_row(key, found, time.perf_counter() - start)


def own_mixture(X: np.ndarray) -> np.ndarray:
    """Log-densities of rows by a mixture fitted on them."""
    grown = grow_mixtures(X, CEILING_DOUBLINGS, stack.FINAL_STEPS)
    return grown.log_densities(X, CEILING_DOUBLINGS).astype(np.float64)


def best_product(family: SubsetFamily, logs: dict[Subset, np.ndarray]) -> np.ndarray:
    """Log-densities of the rows by the product of blocks that is best for them."""
    unknown = np.full(len(family), np.nan)
    means = np.array([logs[subset].mean() for subset in family])
    names = tuple(map(str, range(family.n_columns)))
    return sum(
        logs[block] for block in select_partition(SubsetScores(family, means, unknown, unknown, names)).partition
    )


def synthetic_rows(seen: set[tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for structure in SYNTHETIC:
        k = max(structure)
        for seed in SEEDS:
            fit, _ = make_structured(structure, FIT_ROWS, random_state=seed)
            fresh, _ = make_structured(structure, FIT_ROWS, random_state=seed + 1000)
            truth = structured_log_density(fresh, structure)
            for method, model in methods(k, seed).items():
                key = (str(list(structure)), str(k), method, str(seed))
                if key not in seen and method.startswith("ISDE"):
                    yield measured(key, model, fit, fresh, truth)
            key = (str(list(structure)), str(k), "ISDE stack of 16", str(seed))
            if key not in seen:
                with patch.object(stack, "FINAL_DOUBLINGS", stack.SCORING_DOUBLINGS):
                    yield measured(key, methods(k, seed)["ISDE stack"], fit, fresh, truth)


def measured(
    key: tuple[str, ...],
    model: DensityEstimator,
    fit: np.ndarray,
    held_out: np.ndarray,
    truth: np.ndarray | float = 0.0,
) -> dict[str, object]:
    start = time.perf_counter()
    model.fit(fit)
    seconds = time.perf_counter() - start
    return as_row(key, model.score_samples(held_out) - truth, seconds)


def as_row(key: tuple[str, ...], found: np.ndarray, seconds: float) -> dict[str, object]:
    error = found.std(ddof=1) / np.sqrt(len(found))
    values = (*key, round(found.mean(), 5), round(error, 5), round(found.min(), 2), round(seconds, 1))
    return dict(zip(FIELDS, values, strict=True))


def read(part: str) -> list[dict[str, str]]:
    path = RESULTS / f"marginals_{part}.csv"
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


PARTS = {"real": real_rows, "cut": cut_rows, "ceiling": ceiling_rows, "synthetic": synthetic_rows}


def run(part: str) -> None:
    warnings.simplefilter("ignore")
    seen = {tuple(row[field] for field in FIELDS[:4]) for row in read(part)}
    with open(RESULTS / f"marginals_{part}.csv", "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not seen:
            writer.writeheader()
        for row in PARTS[part](seen):
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


def table() -> None:
    for part, rows, what in (
        ("real", read("real") + read("cut") + read("ceiling"), "mean log-density"),
        ("synthetic", read("synthetic"), "mean log-density minus the truth's"),
    ):
        print(
            f"\n{part}: {what} of held-out rows, nats; standard error over seeds; paired difference to the paper's ISDE"
        )
        for data, k in dict.fromkeys((row["data"], row["k"]) for row in rows):
            here = [row for row in rows if (row["data"], row["k"]) == (data, k)]
            for method in dict.fromkeys(row["method"] for row in here):
                own = {row["seed"]: row for row in here if row["method"] == method}
                base = {row["seed"]: float(row["score"]) for row in here if row["method"] == PAPER}
                scores = np.array([float(row["score"]) for row in own.values()])
                paired = np.array([float(row["score"]) - base[seed] for seed, row in own.items() if seed in base])
                low, seconds = (np.array([float(row[f]) for row in own.values()]) for f in ("lowest", "seconds"))
                errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (scores, paired)]
                print(
                    f"  {data:14s} k {k}  {method:18s} {scores.mean():8.3f} +- {errors[0]:.3f}"
                    f"   {paired.mean():+7.3f} +- {errors[1]:.3f}"
                    f"   lowest row {low.min():9.1f}   {seconds.mean():6.1f} s"
                )


def experts() -> None:
    """Score of the stack minus that of the best of its experts alone, for many subsets of each data set."""
    ladder, rows = stacking.bandwidth_ladder(stack.NARROWEST, stack.WIDEST), []
    fold = np.repeat(np.arange(5), 600)
    for name in dict.fromkeys(name for name, _ in REAL):
        for _, X, _ in islice(samples(name), 1):
            fit, score = X[:3000], X[3000:]
            family = SubsetFamily(X.shape[1], 3)
            chosen = np.random.default_rng(0).permutation(len(family))[:MOST_SUBSETS]
            lines = Parallel(-1)(
                delayed(against_experts)(name, family[i], fit[:, family[i]], score[:, family[i]], fold, ladder)
                for i in chosen.tolist()
            )
            rows += lines
            worst = min(lines, key=lambda line: line["difference"])
            differences = np.array([line["difference"] for line in lines])
            print(
                f"{name}: {len(lines)} subsets, stack minus best expert: median {np.median(differences):+.4f}, "
                f"lowest {worst['difference']:+.4f} ({worst['subset']}: {worst['best expert']})",
                flush=True,
            )
    if not rows:
        return
    with open(RESULTS / "marginals_experts.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def against_experts(
    name: str, subset: tuple[int, ...], fit: np.ndarray, score: np.ndarray, fold: np.ndarray, ladder: np.ndarray
) -> dict[str, object]:
    grown = grow_mixtures(fit, stack.SCORING_DOUBLINGS, stack.SCORING_STEPS)
    alone = {f"bandwidth {h:.3g}": KDEBlock(fit, h).score_samples(score, 1).mean() for h in ladder}
    alone |= {f"{2**i} Gaussians": grown.log_densities(score, i).mean() for i in range(stack.SCORING_DOUBLINGS + 1)}
    best = max(alone, key=lambda expert: alone[expert])
    combined = stacking.score_subset(fit, score, fold, ladder, stack.SCORING_DOUBLINGS, stack.SCORING_STEPS)
    columns = " ".join(map(str, subset))
    found = {"data": name, "subset": columns, "stack": round(combined, 5), "best": round(float(alone[best]), 5)}
    return found | {"difference": round(combined - float(alone[best]), 5), "best expert": best}


def draw() -> None:
    import matplotlib.pyplot as plt

    rows = read("real") + read("cut")
    panels = list(dict.fromkeys((row["data"], row["k"]) for row in rows))
    shown = [PAPER, "ISDE kde+stack", "ISDE stack", "FDE", "CVKDE", "GM by CV", CUT]
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 2.8), sharey=True, layout="constrained")
    for ax, (data, k) in zip(axes, panels, strict=True):
        for y, method in enumerate(shown):
            # Methods without blocks do not depend on k: their runs stand under k = 3.
            own = [r for r in rows if r["data"] == data and r["method"] == method]
            own = [r for r in own if r["k"] == (k if "ISDE" in method or method == CUT else "3")]
            ax.plot([float(row["score"]) for row in own], [y] * len(own), "o", color=f"C{y}", alpha=0.7)
        ax.set(title=f"{data}, k = {k}", yticks=range(len(shown)), yticklabels=shown)
        ax.grid(axis="x", color="0.9")
    axes[0].invert_yaxis()
    figure.supxlabel("mean log-density of held-out rows, nats; a dot a seed", fontsize=10)
    figure.savefig(RESULTS.parents[1] / "docs" / "marginals.png", dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "experts", "table", "draw"])
    part = parser.parse_args().part
    {"experts": experts, "table": table, "draw": draw}.get(part, lambda: run(part))()
