"""isde sample: run folder -> rows."""

from __future__ import annotations

import click

from isde.cli.options import debug_option, json_option, print_json, seed_option
from isde.cli.output import print_csv


@click.command("sample")
@click.argument("run")
@click.option("-n", "--n-samples", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows to draw.")
@seed_option
@json_option
@debug_option
def command(run: str, n_samples: int, seed: int, as_json: bool) -> None:
    """Draw rows from the model in RUN, as CSV."""
    from isde.cli.runs import load_model

    model = load_model(run)
    X = model.sample(n_samples, random_state=seed)
    names = list(model.density_.names)
    if as_json:
        print_json({"columns": names, "rows": X.tolist()})
        return
    print_csv(names, X.tolist())
