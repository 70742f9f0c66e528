"""isde export: run folder -> the scores of all subsets as a table that anything reads."""

from __future__ import annotations

from pathlib import Path

import click

from isde.cli.options import debug_option, json_option, print_json
from isde.cli.output import check_table_file, echo


@click.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace FILE.")
@json_option
@debug_option
def command(run: str, file: Path, overwrite: bool, as_json: bool) -> None:
    """Write the score of every subset of RUN to FILE, csv or parquet by its ending: one row for each subset."""
    from isde.cli.runs import load_scores

    check_table_file(file, overwrite=overwrite)
    scores = load_scores(run)
    scores.export(file)
    if as_json:
        print_json({"file": str(file), "n_subsets": len(scores)})
        return
    echo(f"{len(scores):,} subsets written to {file}", err=True)
