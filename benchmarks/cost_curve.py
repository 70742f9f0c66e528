"""What a fit costs, by rows and by columns: `isde fit` as users call it, by the clock, and the memory it said and took.

    python benchmarks/cost_curve.py rows [1e3 1e4 1e5 1e6]     # 30 columns, k = 3, default settings, parquet
    python benchmarks/cost_curve.py columns [10 30 100 200]    # 1,000 rows, k = 3, one split
    python benchmarks/cost_curve.py score 1e6                  # isde score with the model of that many rows
    python benchmarks/cost_curve.py table 1e6                  # the parquet file alone, to call isde with by hand
    python benchmarks/cost_curve.py draw                       # docs/cost.png from results/cost_curve.csv

Blocks of three and two columns and columns alone, every second column bent (exp, sinh). Rows are appended to
results/cost_curve.csv beside this file; files and runs stay in a temporary folder that is named.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from isde.synthetic import make_structured

RESULTS = Path(__file__).parent / "results" / "cost_curve.csv"
FIELDS = ("what", "rows", "columns", "k", "options", "seconds", "processor", "megabytes", "said", "found")
PLACE = Path(tempfile.gettempdir()) / "isde-cost"
STRUCTURE = [3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]
"""Of thirty columns."""


def write_table(n_rows: int, n_columns: int) -> tuple[Path, list[list[str]]]:
    """A parquet file, and its true blocks by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    structure = (STRUCTURE * (1 + n_columns // 30))[:]
    while sum(structure) > n_columns:
        structure.pop()
    structure += [1] * (n_columns - sum(structure))
    X, truth = make_structured(structure, n_rows, random_state=0)
    X[:, ::4], X[:, 1::4] = np.exp(X[:, ::4]), np.sinh(2 * X[:, 1::4])
    names = [f"c{j:03d}" for j in range(n_columns)]
    PLACE.mkdir(exist_ok=True)
    path = PLACE / f"{n_rows}x{n_columns}.parquet"
    pq.write_table(pa.table({name: X[:, j] for j, name in enumerate(names)}), path)
    return path, [[names[c] for c in block] for block in truth]


def measured(arguments: list[str]) -> tuple[float, float, float, str]:
    """Seconds by the clock and of the processor, the largest memory of an isde command, and what it said of it, MB."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile("w+") as words:
        process = subprocess.Popen([sys.executable, "-m", "isde", *arguments], env=os.environ, stderr=words)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        words.seek(0)
        text = words.read()
    print(text, flush=True)
    if status != 0:
        raise SystemExit(f"isde {' '.join(arguments)} ended with status {status}.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = re.search(r"([\d,]+) MB with the rows", text)
    return seconds, processor, usage.ru_maxrss / 1024, said[1].replace(",", "") if said else ""


def fit(n_rows: int, n_columns: int, *options: str) -> None:
    path, truth = write_table(n_rows, n_columns)
    run = PLACE / f"run-{n_rows}x{n_columns}-{int(time.time())}"
    cost = measured(["fit", str(path), "-k", "3", "--seed", "0", "-o", str(run), *options])
    blocks = [block["columns"] for block in json.loads((run / "summary.json").read_text())["blocks"]]
    found = sum(block in blocks for block in truth)
    keep("fit", n_rows, n_columns, 3, " ".join(options), *cost, f"{found} of {len(truth)}")
    print(f"{run} holds the model.")


def score(n_rows: int) -> None:
    runs = sorted(PLACE.glob(f"run-{n_rows}x30-*"))
    if not runs:
        raise SystemExit(f"There is no model of {n_rows:,} rows: call rows {n_rows} first.")
    out = PLACE / "scores.parquet"
    cost = measured(["score", str(runs[-1]), str(PLACE / f"{n_rows}x30.parquet"), "-o", str(out), "--overwrite"])
    keep("score", n_rows, 30, 3, "", *cost, "")


def keep(*row: object) -> None:
    new = not RESULTS.is_file()
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerow([f"{value:.1f}" if isinstance(value, float) else value for value in row])
    print(*row, sep="  ", flush=True)


def draw() -> None:
    import matplotlib.pyplot as plt

    with RESULTS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["what"] == "fit"]
    figure, (by_rows, by_columns) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axes, field, label, own in (
        (by_rows, "rows", "rows (30 columns, default settings)", [row for row in rows if not row["options"]]),
        (by_columns, "columns", "columns (1,000 rows, one split)", [row for row in rows if row["options"]]),
    ):
        points = sorted((int(row[field]), float(row["seconds"]), float(row["megabytes"])) for row in own)
        x, seconds, megabytes = zip(*points, strict=True)
        axes.loglog(x, seconds, "o-", label="seconds by the clock, two cores")
        axes.loglog(x, megabytes, "s--", color="0.6", label="memory at most, MB")
        axes.set_xlabel(label)
        axes.grid(alpha=0.3)
    by_rows.legend(frameon=False)
    by_rows.set_title("isde fit, k = 3", loc="left")
    path = Path(__file__).parents[1] / "docs" / "cost.png"
    figure.savefig(path, dpi=120)
    print(f"{path} drawn.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "columns", "score", "table", "draw"])
    parser.add_argument("sizes", nargs="*", type=float)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes]
    if asked.what == "draw":
        draw()
    for n in sizes or {"rows": [1000, 10_000, 100_000, 1_000_000], "columns": [10, 30, 100, 200]}.get(asked.what, []):
        if asked.what == "rows":
            fit(n, 30)
        elif asked.what == "columns":
            fit(1000, n, "--split", "paper")
        elif asked.what == "table":
            print(write_table(n, 30)[0])
        else:
            score(n)


if __name__ == "__main__":
    main()
