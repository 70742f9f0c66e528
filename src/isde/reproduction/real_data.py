"""Item 4: density estimators on cytometry data; and the experiment that items 5 to 8 share with it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from isde.artifacts import load
from isde.baselines.forest import ForestDensity, heaviest_forest, pair_gains
from isde.baselines.kernel import CVKDE
from isde.baselines.mixture import GaussianMixtureCV
from isde.comparison import PAPER_SPLIT, Draw, draw_rows
from isde.data.checks import check_columns, check_finite
from isde.data.table import Table
from isde.errors import InputError
from isde.reproduction import figures
from isde.reproduction.inputs import read_cells
from isde.reproduction.item import Finding, Item, Outcome, Results, Row, Settings, Step, short, show_partition
from isde.reproduction.protocols import (
    BlockDensities,
    Samples,
    one_split_scores,
    rescale,
    sample_scores,
    without_underflows,
)
from isde.scores import SubsetScores
from isde.selection import Selection
from isde.solvers import select_partition

Matrix = NDArray[np.float64]

ISDE_GRID, KERNEL_GRID = np.geomspace(0.001, 0.1, 30).tolist(), np.geomspace(0.001, 0.1, 40).tolist()
"""Of the author's code; the text does not say."""

LARGE_BLOCKS_UP_TO = 13
"""Columns up to which blocks have at most 5 columns, as for Levine13; beyond, at most 3, as for Levine32."""

METHODS = ("ISDE", "FDE", "CVKDE", "GM")
PUBLISHED = {
    13: ("Levine13", {"ISDE": 15.39, "GM": 15.22, "FDE": 15.11, "CVKDE": 14.00}, 29 * 60 + 2),
    32: ("Levine32", {"ISDE": 45.95, "GM": 41.05, "FDE": 39.0, "CVKDE": 33.1}, 3600 + 65),
}
LABELLED_CELLS = {81_747: "Levine13", 104_184: "Levine32"}
"""Rows of the two data sets themselves; other tables with as many columns stand in for them."""


class Experiment:
    """Training rows and validation samples of a table, rescaled by the protocol, and ISDE's table of scores."""

    def __init__(self, settings: Settings, repeats: int) -> None:
        assert settings.data is not None
        self.settings, self.repeats = settings, repeats

    @cached_property
    def table(self) -> Table:
        assert self.settings.data is not None
        table = read_cells(self.settings.data)
        check_finite(table.X, table.names)
        check_columns(table.X, table.names)
        return table

    @property
    def max_block_size(self) -> int:
        d = len(self.table.names)
        paper = 5 if d <= LARGE_BLOCKS_UP_TO else 3
        return min(d, paper if self.settings.max_block_size is None else self.settings.max_block_size)

    @cached_property
    def draw(self) -> Draw:
        """The paper's 5,000 rows and samples of 2,000; the first samples are the same however many there are."""
        n, pick = len(self.table.X), self.settings.pick
        train, valid = min(pick(5000, 1500, 120), n // 2), pick(2000, 1000, 60)
        options = {"train_rows": train, "validation_rows": min(valid, (n - train) // 2)}
        (draw,) = draw_rows(n, **options, repeats=self.repeats, random_state=self.settings.seed)
        return draw

    @cached_property
    def rescaled(self) -> tuple[Matrix, Samples]:
        X = self.table.X
        return rescale(X[self.draw.train], X[self.draw.samples], self.settings.protocol)

    @property
    def train(self) -> Matrix:
        return self.rescaled[0]

    @property
    def samples(self) -> Samples:
        return self.rescaled[1]

    @cached_property
    def scored(self) -> tuple[SubsetScores, float]:
        """The table of scores and the seconds it took; read from the cache where an item before has made it.

        Every row counts, so that both protocols start from the same one.
        """
        path = None if self.settings.cache is None else self.settings.cache / f"scores-{self._digest()}.isde"
        if path is not None and path.is_file():
            table = load(path)
            assert isinstance(table, SubsetScores)
            return table, float(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["seconds"])
        start = time.perf_counter()
        table = one_split_scores(
            self.train,
            self.max_block_size,
            split=PAPER_SPLIT,
            bandwidths=ISDE_GRID,
            seed=self.settings.seed,
            jobs=self.settings.jobs,
            verbose=self.settings.verbose,
        )
        seconds = time.perf_counter() - start
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")  # made again when needed
            path.with_suffix(".json").write_text(json.dumps({"seconds": seconds}) + "\n", encoding="utf-8")
            table.save(path)
        return table, seconds

    def _digest(self) -> str:
        """Of everything that the scores depend on."""
        what = hashlib.sha256(self.train.tobytes())
        what.update(f"{self.max_block_size} {self.settings.seed} {PAPER_SPLIT} {ISDE_GRID}".encode())
        return what.hexdigest()[:16]

    @cached_property
    def scores(self) -> SubsetScores:
        """As the protocol averages them."""
        table, _ = self.scored
        if self.settings.protocol == "clean":
            return table
        return without_underflows(table, self.train, split=PAPER_SPLIT, seed=self.settings.seed)

    @cached_property
    def best(self) -> Selection:
        return select_partition(self.scores)

    @cached_property
    def densities(self) -> BlockDensities:
        """Of blocks: as the author's code has them, or as `ISDE` does."""
        from_table = self.scores if self.settings.protocol == "paper" else None
        return BlockDensities(
            self.train,
            self.samples,
            bandwidths=ISDE_GRID,
            scores=from_table,
            jobs=self.settings.jobs,
            verbose=self.settings.verbose,
        )


@lru_cache(maxsize=1)
def experiment(settings: Settings, repeats: int) -> Experiment:
    """One at a time: items that follow each other share it."""
    return Experiment(settings, repeats)


# --- the box plots ---------------------------------------------------------------------------------------------


def steps(settings: Settings) -> list[Step]:
    """One step for each method: a fit, and its scores on all validation samples."""
    trial = experiment(settings, settings.pick(20, 5, 3))
    return [Step({"method": method}, partial(_run_method, trial, method)) for method in METHODS]


def _run_method(trial: Experiment, method: str, _: Sequence[Row]) -> Outcome:
    start = time.perf_counter()
    log_densities, detail = {"ISDE": _isde, "FDE": _forest, "CVKDE": _kernel, "GM": _mixture}[method](trial)
    seconds = {"fit and score": time.perf_counter() - start}
    if method == "ISDE":
        seconds["score subsets"] = trial.scored[1]
    scores = sample_scores(log_densities, trial.settings.protocol)
    shape = {"n_rows": len(trial.table.X), "n_columns": len(trial.table.names)}
    rows = [{"sample": number} | score | shape | {"detail": detail} for number, score in enumerate(scores)]
    return Outcome(rows, seconds)


Found = tuple[NDArray[np.float64], str]


def _isde(trial: Experiment) -> Found:
    return trial.densities.of_partition(trial.best.partition), show_partition(trial.best.partition)


def _forest(trial: Experiment) -> Found:
    if trial.settings.protocol == "paper":
        edges = heaviest_forest(pair_gains(trial.scores)).edges
        log_densities = trial.densities.of_forest(len(trial.table.names), edges)
    else:
        model = ForestDensity(bandwidths=ISDE_GRID, n_jobs=trial.settings.jobs)
        model.fit(trial.train, subset_scores=trial.scores)
        edges, log_densities = model.edges_, _of_samples(model, trial)
    return log_densities, " ".join(f"{i}-{j}" for i, j in sorted(edges))


def _kernel(trial: Experiment) -> Found:
    model = CVKDE(bandwidths=KERNEL_GRID, n_jobs=trial.settings.jobs).fit(trial.train)
    return _of_samples(model, trial), f"bandwidth {model.bandwidth_:.6g}"


def _mixture(trial: Experiment) -> Found:
    settings = trial.settings
    largest = settings.pick(30, 10, 2)
    model = GaussianMixtureCV(largest, n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose).fit(
        trial.train
    )
    return _of_samples(model, trial), f"{model.n_components_} components"


def _of_samples(model: CVKDE | ForestDensity | GaussianMixtureCV, trial: Experiment) -> NDArray[np.float64]:
    """Log-densities of every row of every sample, (samples, rows)."""
    rows = trial.samples.reshape(-1, trial.samples.shape[2])
    return model.score_samples(rows).reshape(trial.samples.shape[:2])


def findings(results: Results) -> list[Finding]:
    """Medians beside those of the paper; for other tables than the paper's, what can be compared is the order."""
    n_rows, n_columns = results.rows[0]["n_rows"], results.rows[0]["n_columns"]
    published_name, published, gpu = PUBLISHED.get(n_columns, ("", {}, np.nan))
    is_same_data = LABELLED_CELLS.get(n_rows) == published_name != ""
    label = f"{results.settings['file']} ({n_rows:,} x {n_columns})"
    if is_same_data:
        stands = "Another random draw of rows" + ("." if _is_paper(results) else ", one scaler, and every row counts.")
    else:
        stands = f"Other cells than {published_name or 'those of the paper'}: levels cannot agree."
        if _is_paper(results):
            stands += " Each sample is in units of its own, as in the paper: what that costs depends on the cells."
    medians = {method: float(np.median(_values(results, method))) for method in METHODS}
    found = [
        Finding(
            f"{label}: median of {method} (mean, range)",
            f"{published[method]} ({published_name})" if published else "none",
            _spread(_values(results, method)) + _dropped(results, method),
            stands,
        )
        for method in METHODS
    ]
    means = {method: float(np.mean(_values(results, method))) for method in METHODS}
    found.append(_order(label, published, medians, means, "Another draw" if is_same_data else "Other cells"))
    if published:
        found.append(
            Finding(
                f"{label}: seconds to score all subsets, once for both protocols",
                f"{gpu:,} s on a GPU ({published_name})",
                f"{short(results.seconds('score subsets', method='ISDE'))} s",
                "Another machine and another engine, on as many columns and rows.",
            )
        )
    return found


def _is_paper(results: Results) -> bool:
    return bool(results.settings["protocol"] == "paper")


def _order(
    label: str, published: dict[str, float], medians: dict[str, float], means: dict[str, float], data: str
) -> Finding:
    ours, by_means, theirs = (sorted(values, key=lambda m: -values[m]) for values in (medians, means, published))
    if not published:
        why = "The paper has no table of this width."
    elif ours == theirs:
        why = "The same."
    else:
        why = f"{data}: {ours[0]} is first" + (", as in the paper." if ours[0] == theirs[0] else ".")
    if ours[0] != by_means[0]:
        why += f" By means {by_means[0]} is: few rows, far from all others, cost {ours[0]} some samples."
    return Finding(
        f"{label}: order of methods by medians (by means)",
        " > ".join(theirs) or "none",
        f"{' > '.join(ours)} ({' > '.join(by_means)})",
        why,
    )


def _spread(values: Sequence[float]) -> str:
    return f"{np.median(values):.2f} ({np.mean(values):.2f}, {min(values):.2f} to {max(values):.2f})"


def _values(results: Results, method: str) -> list[float]:
    return [row["log_likelihood"] for row in results.where(method=method)]


def _dropped(results: Results, method: str) -> str:
    dropped = sum(row["dropped_rows"] for row in results.where(method=method))
    return f"; {dropped:,} rows dropped" if _is_paper(results) else ""


def draw(results: Results, figure: figures.Figure) -> None:
    groups = {method: _values(results, method) for method in METHODS}
    ax = figure.subplots()
    figures.boxes(ax, groups, [figures.COLOURS[0]] * len(groups))
    ax.set_ylabel("mean log-likelihood of a sample, nats per row")
    ax.set_title(f"{results.settings['file']}, protocol {results.settings['protocol']}")


def check_width(trial: Experiment, item: str) -> None:
    """Raise where a table has more partitions than can be visited."""
    if len(trial.table.names) > LARGE_BLOCKS_UP_TO:
        raise InputError(
            f"{item} visits every partition, and {len(trial.table.names)} columns have too many, as in the paper: give "
            f"a table of at most {LARGE_BLOCKS_UP_TO} columns."
        )


ITEM = Item(
    name="figure-levine-boxplot",
    paper="Figure 1: validation log-likelihood of ISDE, FDE, CVKDE and GM on cytometry data, 20 samples of 2,000",
    steps=steps,
    findings=findings,
    draw=draw,
    needs="data",
    has_protocols=True,
    version=2,
    notes=(
        "m = 3,000 rows fit and 2,000 score; bandwidths 0.001 to 0.1, 30 values, 40 for CVKDE, as in the author's code "
        "(the text does not say).",
        "The author's subset scores drop rows whose density underflows, each subset its own: so do those of the "
        "protocol paper, in this figure and the next ones. Bandwidths are chosen with every row under either protocol.",
        "FDE: the published product under the protocol paper, which is not a density (its integral is not 1); "
        "normalised under the protocol clean.",
        "Of a table with fewer than 10,000 rows half fit, instead of 5,000, and a quarter at most is a sample.",
        "GM ends its search after five sizes in a row that are clearly worse; the paper tries all of 1 to 30.",
    ),
)
