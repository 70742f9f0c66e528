"""isde score: run folder + file -> log-densities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isde.cli.options import debug_option, jobs_option, json_option, print_json, quiet_option, table_options
from isde.cli.output import echo, print_csv
from isde.data.words import join_names

if TYPE_CHECKING:
    from isde.structure_estimator import StructureEstimator

TOTAL = "log_density"


@click.command("score")
@click.argument("run")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--rows", is_flag=True, help="Print the log-density of every row, and of each block, as CSV.")
@table_options
@jobs_option
@json_option
@quiet_option
@debug_option
def command(
    run: str,
    data: Path,
    rows: bool,
    reading: dict[str, Any],
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Mean log-density of the rows of DATA under the model in RUN, in the units of the data."""
    from isde.cli.runs import load_model, read_for

    model = load_model(run).set_params(n_jobs=jobs)
    table = read_for(model, data, **reading, verbose=0 if quiet else 1)
    blocks = model.score_blocks(table)
    log_density = blocks.sum(axis=1)
    if rows:
        columns = zip(log_density.tolist(), blocks.tolist(), strict=True)
        print_csv([TOTAL, *_labels(model)], ([total, *parts] for total, parts in columns))
        return
    result = {
        "n_rows": len(log_density),
        "mean_log_density": float(log_density.mean()),
        "standard_error": float(log_density.std(ddof=1) / len(log_density) ** 0.5) if len(log_density) > 1 else None,
        "lowest": float(log_density.min()),
    }
    if as_json:
        print_json(result)
        return
    error = "" if result["standard_error"] is None else f" (standard error {result['standard_error']:.4f})"
    echo(f"{result['n_rows']:,} rows: mean log-density {result['mean_log_density']:.6f}{error}")
    echo(f"lowest {result['lowest']:.6f}")


def _labels(model: StructureEstimator) -> list[str]:
    """Of blocks, or of the further columns of cliques given those that they share."""
    names, tree = model.density_.names, model.density_.tree
    labels = []
    for clique, shared in zip(tree.cliques, tree.shared, strict=True):
        label = block_label([names[column] for column in clique if column not in shared])
        given = block_label([names[column] for column in shared])
        labels.append(f"{label} | {given}" if shared else label)
    return labels


def block_label(names: Sequence[str]) -> str:
    """The names of a block as a header; a column that is called as the total is, is quoted.

    >>> block_label(["a", "b"]), block_label(["a b"]), block_label(["log_density"])
    ('a b', '"a b"', '"log_density"')
    """
    label = join_names(names, " ")
    return f'"{label}"' if label == TOTAL else label
