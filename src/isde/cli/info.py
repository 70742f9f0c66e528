"""isde info: run folder -> what it found."""

from __future__ import annotations

import click

from isde.cli.options import debug_option, json_option, print_json


@click.command("info")
@click.argument("run")
@json_option
@debug_option
def command(run: str, as_json: bool) -> None:
    """Blocks or cliques, gains and proof of the model in RUN."""
    from isde.cli.runs import load_model, print_summary, summarize

    summary = summarize(load_model(run))
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)
