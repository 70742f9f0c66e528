"""isde fit: file -> run folder."""

from __future__ import annotations

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
    split_names,
    table_options,
)


@click.command("fit")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder for the result.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier run in that folder.")
@fit_options
@table_options
@json_option
@quiet_option
@debug_option
def command(
    data: Path,
    output: Path,
    overwrite: bool,
    separator: str | None,
    header: bool | None,
    columns: str | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Find the blocks of DATA (csv, tsv, parquet, npy, npz) and fit its density."""
    from isde.cli.runs import check_output, print_summary, summarize, write_run
    from isde.tables import read_table

    model = build_estimator(settings, verbose=0 if quiet else 1)
    output = output.absolute()
    check_output(output, overwrite=overwrite)
    table = read_table(data, separator=separator, header=header, columns=split_names(columns))
    model.fit(table)
    summary = summarize(model) | {"data": str(data), "n_rows": len(table.X), "seed": settings["seed"]}
    write_run(output, model, summary)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)
        click.echo(f"Written to {output}", err=True)


def build_estimator(settings: dict[str, Any], *, verbose: int) -> Any:
    """The estimator that the options of `fit_options` describe."""
    from sklearn.model_selection import ShuffleSplit

    from isde.estimator import ISDE

    m, n, seed = settings["fit_rows"], settings["score_rows"], settings["seed"]
    given = m is not None or n is not None
    return ISDE(
        settings["max_block_size"],
        marginal=settings["marginal"],
        split=ShuffleSplit(1, train_size=m, test_size=n, random_state=seed) if given else None,
        bandwidths=parse_grid(settings["bandwidths"]),
        cv=settings["folds"],
        scale=None if settings["scale"] == "none" else settings["scale"],
        solver=settings["solver"],
        n_jobs=settings["jobs"],
        random_state=seed,
        verbose=verbose,
    )
