"""Size and cost of a page at 8, 32 and 50 columns, with the data beside the density.

`python benchmarks/bench_report.py [FOLDER]`; with a folder, pages are kept there. The tables: the demo's; Levine's 32
markers (`../shared/data/levine32_h2.npz`, or synthetic columns where it is not there); the paper's synthetic blocks of
three, two and one columns. One split, so that fitting takes seconds.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from isde import ISDE
from isde.data.table import Table
from isde.errors import ISDEWarning
from isde.report import render, report_numbers
from isde.synthetic import demo_table, make_structured

LEVINE = Path(__file__).parents[2] / "shared" / "data" / "levine32_h2.npz"


def tables() -> dict[str, tuple[Table, int]]:
    """By name, each with its largest block."""
    return {"demo": (demo_table(1200), 4), **levine(), "synthetic": (synthetic([3] * 6 + [2] * 10 + [1] * 12), 3)}


def levine(n_rows: int = 1500) -> dict[str, tuple[Table, int]]:
    if not LEVINE.is_file():
        return {"synthetic 32": (synthetic([3] * 6 + [2] * 5 + [1] * 4), 3)}
    with np.load(LEVINE, allow_pickle=False) as file:
        chosen = np.random.default_rng(0).permutation(len(file["X"]))[:n_rows]
        X, names = file["X"][chosen].astype(float), tuple(map(str, file["columns"]))
    return {"levine32_h2": (Table(np.ascontiguousarray(X), names), 3)}


def synthetic(structure: list[int]) -> Table:
    X, _ = make_structured(structure, 1000, random_state=0)
    return Table(X, tuple(f"v{i:02d}" for i in range(X.shape[1])))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    print("| table | columns | rows | blocks of several | page, kB | JSON, kB | numbers, s | page, s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (table, largest) in tables().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ISDEWarning)
            model = ISDE(largest, split="paper", random_state=0, n_jobs=1).fit(table)
        start = time.process_time()
        numbers = report_numbers(model, table, about={"data": name})
        between = time.process_time()
        page = render(numbers)
        end = time.process_time()
        several = sum(len(block) > 1 for block in model.partition_)
        print(
            f"| {name} | {len(table.names)} | {len(table.X):,} | {several} | {len(page.encode()) / 1e3:.0f} | "
            f"{len(json.dumps(numbers)) / 1e3:.0f} | {between - start:.1f} | {end - between:.1f} |"
        )
        if folder is not None:
            (folder / f"{len(table.names)}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
