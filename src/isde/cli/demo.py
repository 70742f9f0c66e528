"""isde demo: the main job on built-in data."""

from __future__ import annotations

import time
from pathlib import Path

import click

from isde.cli.options import debug_option, jobs_option, json_option, print_json, quiet_option, seed_option
from isde.cli.output import echo


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("isde-demo"),
    show_default=True,
    help="Folder.",
)
@seed_option
@jobs_option
@json_option
@quiet_option
@debug_option
def command(output: Path, seed: int, jobs: int, as_json: bool, quiet: bool) -> None:
    """Fit 2,000 rows of 8 built-in columns, compare with independence and a plain KDE on 2,000 fresh rows."""
    from isde.cli.runs import check_output, print_summary, provenance, summarize, write_run
    from isde.density import fit_blocks
    from isde.estimator import ISDE
    from isde.synthetic import demo_table

    output = output.absolute()
    check_output(output, overwrite=True)
    table, fresh = demo_table(random_state=seed), demo_table(random_state=seed + 1)
    if not quiet:
        echo(f"{len(table.X):,} rows of {len(table.names)} columns: {', '.join(table.names)}", err=True)
    start = time.perf_counter()
    model = ISDE(max_block_size=4, n_jobs=jobs, random_state=seed, verbose=0 if quiet else 1).fit(table)
    seconds = time.perf_counter() - start
    columns = range(len(table.names))
    fresh_rows = {
        "ISDE": model.score(fresh),
        "independent columns": fit_blocks(table.X, [(c,) for c in columns], n_jobs=jobs).score(fresh.X),
        "plain KDE, bandwidth by cross-validation": fit_blocks(table.X, [columns], "kde", n_jobs=jobs).score(fresh.X),
    }
    about = provenance(model, table, {"seed": seed, "jobs": jobs})
    summary = summarize(model) | about | {"fresh_rows": fresh_rows}
    write_run(output, model, summary)
    if as_json:
        print_json(summary)
        return
    print_summary(summary)
    echo(f"Mean log-density of {len(fresh.X):,} fresh rows, nats:")
    for method, value in fresh_rows.items():
        echo(f"  {value:8.3f}   {method}")
    echo(f"Fitted in {seconds:.1f} s; written to {output} (isde info, isde score and isde sample read it)")
