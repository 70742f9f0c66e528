"""isde fit: file -> run folder."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from isde.cli.options import (
    debug_option,
    fit_options,
    json_option,
    parse_grid,
    print_json,
    quiet_option,
    table_options,
    with_registry,
)
from isde.cli.output import echo
from isde.marginals import FAMILIES


@click.command("fit", cls=with_registry("Marginals", lambda: FAMILIES))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder that keeps scores as they come, and the result: after a crash the same command goes on.  "
    "[default: show it, write nothing]",
)
@click.option("--overwrite", is_flag=True, help="Begin anew in a folder that holds an earlier run.")
@click.option(
    "--cluster",
    help="Where to score: tcp://HOST:PORT of a Dask scheduler, local (Dask on this machine) or ray.  "
    "[default: threads of this machine]",
)
@click.option(
    "--report", "page", type=click.Path(path_type=Path), help="One HTML page on the result, too: the file to write."
)
@fit_options
@table_options
@json_option
@quiet_option
@debug_option
def command(
    data: Path,
    output: Path | None,
    page: Path | None,
    overwrite: bool,
    cluster: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Find the blocks of DATA, or a tree of overlapping ones, and fit its density.

    DATA is a csv or tsv file, plain or gzipped, a parquet, npy, npz or fcs file, or - for csv from standard input.
    """
    from isde.cli.report import check_page, write_page
    from isde.cli.runs import (
        check_run,
        fit_in_run,
        held_out_of,
        print_summary,
        provenance,
        summarize,
        write_summary,
    )
    from isde.data.readers import read_table
    from isde.errors import ResourceError
    from isde.report import report_numbers
    from isde.run.clusters import cluster as use_cluster
    from isde.run.folder import run_folder

    verbose = 0 if quiet else 1
    model = build_estimator(settings, verbose=verbose)
    settings["max_block_size"] = model.max_block_size
    if output is not None:
        output = output.absolute()
        check_run(output, overwrite=overwrite)
    if page is not None:
        check_page(page, output)
    failed: ResourceError | None = None
    with nullcontext() if output is None else run_folder(output) as run:
        table = read_table(data, **reading, verbose=verbose)
        check_split(settings["fit_rows"], settings["score_rows"], len(table.X))
        with nullcontext() if cluster is None else use_cluster(cluster, settings["jobs"]):
            if run is None:
                model.fit(table)
            else:
                failed = fit_in_run(model, table, run, overwrite=overwrite)
        about = provenance(model, table, settings | reading) | {"data": str(data)}
        summary = summarize(model) | {"held_out": held_out_of(model, table.X)} | about
        if run is not None:
            failed = failed or write_summary(run.path, summary)
    if page is not None:
        write_page(report_numbers(model, table, about=summary), page, quiet=quiet)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)
    if failed is not None:
        raise failed  # what was found is shown all the same
    if not quiet:
        echo(_what_was_written(output), err=True)


def _what_was_written(output: Path | None) -> str:
    if output is None:
        return "Nothing was written: with -o FOLDER the model is kept, for isde info, score, sample and stability."
    return f"Written to {output}"


def check_split(fit_rows: int | None, score_rows: int | None, n_rows: int) -> None:
    """Refuse numbers of rows that the table does not have, in the command line's words."""
    from isde.errors import InputError

    for option, value in (("--fit-rows", fit_rows), ("--score-rows", score_rows)):
        if value is not None and not 1 <= value < n_rows:
            raise InputError(f"{option} {value} does not fit {n_rows:,} rows: give a number from 1 to {n_rows - 1:,}.")
    if (fit_rows or 0) + (score_rows or 0) > n_rows:
        raise InputError(
            f"--fit-rows {fit_rows} and --score-rows {score_rows} are more than the {n_rows:,} rows there are."
        )


def build_estimator(settings: dict[str, Any], *, verbose: int) -> Any:
    """The estimator that the options of `fit_options` describe."""
    from sklearn.model_selection import ShuffleSplit

    from isde.errors import InputError
    from isde.estimator import ISDE
    from isde.tree_estimator import TreeISDE

    m, n, seed = settings["fit_rows"], settings["score_rows"], settings["seed"]
    split = settings["split"]
    if m is not None or n is not None:
        if split is not None:
            raise InputError(f"--split {split} and numbers of rows exclude each other: give one of them.")
        split = ShuffleSplit(1, train_size=m, test_size=n, random_state=seed)
    largest = {} if settings["max_block_size"] is None else {"max_block_size": settings["max_block_size"]}
    is_tree, search = settings["structure"] == "tree", settings["search"]
    if is_tree and search != "exhaustive":
        raise InputError(
            f"--search {search} is for --structure blocks: a tree needs the score of every clique and separator."
        )
    estimator, asked = (TreeISDE, {}) if is_tree else (ISDE, {"search": search})
    return estimator(
        **largest,
        **asked,
        marginal=settings["marginal"],
        split=split,
        penalty=settings["penalty"],
        alpha=settings["alpha"],
        bandwidths=parse_grid(settings["bandwidths"]),
        cv=settings["folds"],
        scale=None if settings["scale"] == "none" else settings["scale"],
        max_fit_rows=settings["max_fit_rows"],
        max_split_rows=settings["max_split_rows"],
        max_centres=settings["max_centres"],
        solver=settings["solver"],
        n_jobs=settings["jobs"],
        random_state=seed,
        verbose=verbose,
    )
