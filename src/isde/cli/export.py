"""isde export: run folder -> the scores of all subsets as a table that anything reads."""

from __future__ import annotations

from pathlib import Path

import click

from isde.cli.options import debug_option, json_option, print_json
from isde.cli.output import echo


@click.command("export")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace FILE.")
@json_option
@debug_option
def command(run: str, file: Path, overwrite: bool, as_json: bool) -> None:
    """Write the score of every subset of RUN to FILE, csv or parquet by its ending: one row for each subset."""
    from isde.cli.runs import load_scores
    from isde.errors import InputError

    if file.suffix not in (".csv", ".parquet"):
        raise InputError(f"{file} ends neither in .csv nor in .parquet: name it so.")
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists: give another name, or --overwrite.")
    if not file.absolute().parent.is_dir():
        raise InputError(f"{file.absolute().parent} is no folder: create it first, or write somewhere else.")
    scores = load_scores(run)
    scores.export(file)
    if as_json:
        print_json({"file": str(file), "n_subsets": len(scores)})
        return
    echo(f"{len(scores):,} subsets written to {file}", err=True)
