"""isde score: run folder + file -> log-densities."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isde.cli.options import debug_option, jobs_option, json_option, print_json, quiet_option, table_options
from isde.cli.output import Write, check_table_file, echo, table_writer
from isde.data.words import join_names

if TYPE_CHECKING:
    from isde.structure_estimator import StructureEstimator

TOTAL = "log_density"


@click.command("score")
@click.argument("run")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--rows", is_flag=True, help="Print the log-density of every row, and of each block, as CSV, or with --json."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the log-densities of every row to this file, csv or parquet by its ending.",
)
@click.option("--overwrite", is_flag=True, help="Replace that file.")
@table_options
@jobs_option
@json_option
@quiet_option
@debug_option
def command(
    run: str,
    data: Path,
    rows: bool,
    output: Path | None,
    overwrite: bool,
    reading: dict[str, Any],
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Mean log-density of the rows of DATA under the model in RUN, in the units of the data.

    Text, parquet and npy files are read and scored some rows at a time, however many there are.
    """
    import numpy as np

    from isde.cli.runs import batches_for, load_model

    if output is not None:
        check_table_file(output, overwrite=overwrite)
    model = load_model(run).set_params(n_jobs=jobs)
    batches = batches_for(model, data, **reading, verbose=0 if quiet else 1)
    header = [TOTAL, *_labels(model)]
    printed: list[Any] | None = [] if rows and as_json and output is None else None
    with _writer(output, header, rows, printed) as write:
        totals = []
        for blocks in model.score_batches(batches):
            totals.append(blocks.sum(axis=1))
            write(np.column_stack([totals[-1], blocks]))
    if printed is not None:
        print_json({"columns": header, "rows": np.concatenate(printed).tolist()})
        return
    if rows and output is None:
        return
    log_density = np.concatenate(totals)
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


def _writer(
    output: Path | None, header: Sequence[str], rows: bool, printed: list[Any] | None
) -> AbstractContextManager[Write]:
    """Where log-densities go as they come: a list to print as JSON, a file, standard output, or nowhere."""
    if printed is not None:
        return nullcontext(printed.append)
    return table_writer(output, header) if rows or output is not None else nullcontext(lambda matrix: None)


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
