"""isde report: run folder -> one HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from isde.cli.options import (
    debug_option,
    jobs_option,
    json_option,
    print_json,
    quiet_option,
    seed_option,
    table_options,
)
from isde.cli.output import echo


@click.command("report")
@click.argument("run")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write.  [default: report.html in the run]"
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The rows that were fitted: counted in cells beside the density, never written.",
)
@click.option(
    "--stability",
    "resamples",
    type=click.IntRange(min=2),
    help="Analyse so many random parts of the rows of --data, too: as isde stability.",
)
@click.option(
    "--comparison", type=click.Path(path_type=Path), help="Folder made by isde compare: other methods beside."
)
@seed_option
@table_options
@jobs_option
@json_option
@quiet_option
@debug_option
def command(
    run: str,
    output: Path | None,
    data: Path | None,
    resamples: int | None,
    comparison: Path | None,
    seed: int,
    reading: dict[str, Any],
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write one HTML page on RUN, to send to a colleague; with --json its numbers, and no page unless -o is given."""
    from isde.cli.runs import load_model, read_for, read_summary
    from isde.errors import InputError
    from isde.report import report_numbers, require_jinja2

    if resamples is not None and data is None:
        raise InputError("--stability needs the rows: give --data FILE.")
    target = output or (None if as_json else page_in(run))
    if target is not None:
        require_jinja2()
    verbose = 0 if quiet else 1
    model = load_model(run).set_params(n_jobs=jobs, verbose=verbose)
    compared = None if comparison is None else _read_comparison(comparison)
    rows = None if data is None else read_for(model, data, **reading, verbose=verbose)
    stability = None if resamples is None else model.stability(rows, resamples, random_state=seed)
    numbers = report_numbers(model, rows, about=read_summary(run), stability=stability, comparison=compared)
    write_page(numbers, target, quiet=quiet)
    if as_json:
        print_json(numbers)


def page_in(run: str) -> Path:
    """Where the page of a run goes: into its folder, or beside its file."""
    path = Path(run)
    from isde.cli.runs import REPORT_FILE

    return path / REPORT_FILE if path.is_dir() else path.with_suffix(".html")


def check_page(page: Path, folder: Path | None) -> None:
    """Refuse, before any work, a page that could not be written; `folder` is made by then."""
    from isde.report import check_target, require_jinja2

    require_jinja2()
    if folder is None or page.absolute().parent != folder:
        check_target(page)


def write_page(numbers: dict[str, Any], target: Path | None, *, quiet: bool) -> None:
    """Write the page of some numbers, if it has a place, and say so."""
    from isde.report import save_page

    if target is not None:
        save_page(numbers, target)
        if not quiet:
            echo(f"Written to {target.absolute()}", err=True)


def _read_comparison(folder: Path) -> dict[str, Any]:
    from isde.cli.compare import RESULT_FILE
    from isde.errors import InputError

    try:
        found = json.loads((folder / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} is no folder made by isde compare: {RESULT_FILE} cannot be read ({error})."
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("methods"), list):
        raise InputError(f"{folder / RESULT_FILE} holds no comparison.")
    return found
