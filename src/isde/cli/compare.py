"""isde compare: file -> density estimators side by side."""

from __future__ import annotations

import csv
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isde.cli.flags import in_flags
from isde.cli.options import (
    debug_option,
    jobs_option,
    json_option,
    print_json,
    quiet_option,
    seed_option,
    split_names,
    table_options,
    with_registry,
)
from isde.cli.output import echo

if TYPE_CHECKING:
    from isde.comparison import Comparison, MethodSummary

PAPER_HEAD = " paper's way "
TABLE_FILE, RESULT_FILE, FIGURE_FILE = "comparison.csv", "comparison.json", "comparison.png"


def _methods() -> Mapping[str, Any]:
    from isde.comparison import METHODS  # imported only when somebody asks

    return METHODS


@click.command("compare", cls=with_registry("Methods", _methods))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--methods", default="isde,fde,cvkde,gm,bdcs", show_default=True, help="Names of methods, separated by commas."
)
@click.option("--with", "extra", metavar="METHOD", multiple=True, help="One more, as in --with vine.")
@click.option(
    "--estimator",
    "specs",
    metavar="MODULE:NAME",
    multiple=True,
    help="One more, with fit and score_samples: a class, a function that makes one, or an instance; may be repeated.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=20, show_default=True, help="Validation samples.")
@click.option("--train-rows", type=int, help="Rows to fit on.  [default: 5,000, or half of the table]")
@click.option("--validation-rows", type=int, help="Rows of a sample.  [default: 2,000, or half of the rows left]")
@click.option("--fits", type=click.IntRange(min=1), default=1, show_default=True, help="Draws of training rows.")
@click.option(
    "-k",
    "--max-block-size",
    type=click.IntRange(min=1),
    help="Largest block of the isde methods, and of tree.  [default: 3, and 4 for tree]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="New folder for table, JSON and box plot.")
@click.option("--no-plot", is_flag=True, help="No box plot in that folder: needs no matplotlib.")
@seed_option
@jobs_option
@table_options
@json_option
@quiet_option
@debug_option
def command(
    data: Path,
    methods: str,
    extra: tuple[str, ...],
    specs: tuple[str, ...],
    repeats: int,
    train_rows: int | None,
    validation_rows: int | None,
    fits: int,
    max_block_size: int | None,
    output: Path | None,
    no_plot: bool,
    seed: int,
    jobs: int,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare density estimators by the log-likelihood of rows of DATA that they have not seen.

    As in the paper's real-data experiment: each method is fitted once to the same training rows, then scored on the
    same validation samples, drawn from the rows left. With --fits, all of it again with other training rows.
    """
    from isde.cli.runs import check_output
    from isde.comparison import MethodOptions, build_methods, compare
    from isde.data.readers import read_table
    from isde.plots import require_matplotlib

    if output is not None:
        output = output.absolute()
        check_output(output, overwrite=False, replaceable=frozenset())
        if not no_plot:
            require_matplotlib(otherwise="--no-plot")
    options = MethodOptions(max_block_size, jobs, seed, verbose=0 if quiet else 1)
    with _importable(Path.cwd()):
        named = split_names(methods) or []
        estimators = build_methods([*named, *dict.fromkeys(name for name in extra if name not in named)], options)
        for spec in specs:
            estimators[_name_for(spec, estimators)] = load_estimator(spec, seed)
        table = read_table(data, **reading, verbose=options.verbose)
        found = compare(
            table,
            estimators,
            train_rows=train_rows,
            validation_rows=validation_rows,
            repeats=repeats,
            fits=fits,
            random_state=seed,
            verbose=options.verbose,
        )
    about = {"data": str(data), "n_rows": len(table.X), "n_columns": len(table.names), "seed": seed}
    result = about | {"max_block_size": max_block_size} | found.to_dict()
    for text, said_by in found.warnings().items():
        echo(f"Warning: {', '.join(said_by)}: {in_flags(text)}", err=True)
    if output is not None:
        write_comparison(output, found, result, plot=not no_plot)
    if as_json:
        print_json(result)
    else:
        print_comparison(found, len(table.X), len(table.names))
    if output is not None and not quiet:
        echo(f"Written to {output}", err=True)


# --- estimators of the user's own ------------------------------------------------------------------------------


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules in `folder` can be imported, as when Python runs a script there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def load_estimator(spec: str, seed: int) -> Any:
    """The estimator that MODULE:NAME means: an instance, or what a class or function returns without arguments."""
    from isde.errors import InputError

    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise InputError(f"--estimator {spec} is not of the form MODULE:NAME, as in sklearn.neighbors:KernelDensity.")
    try:
        home = import_module(module)
    except Exception as error:  # whatever a user's module does while it is imported
        raise InputError(f"--estimator {spec} cannot be imported ({type(error).__name__}: {error}).") from error
    if not hasattr(home, name):
        raise InputError(f"--estimator {spec}: the module {module} has no {name}.")
    found = getattr(home, name)
    if inspect.isclass(found) or not hasattr(found, "fit"):
        found = _call(found, spec)
    for needed in ("fit", "score_samples"):
        if not callable(getattr(found, needed, None)):
            raise InputError(f"--estimator {spec} has no {needed}: a density estimator has fit and score_samples.")
    if getattr(found, "random_state", 0) is None and hasattr(found, "set_params"):
        found.set_params(random_state=seed)
    return found


def _call(factory: Any, spec: str) -> Any:
    from isde.errors import InputError

    try:
        return factory()
    except Exception as error:
        raise InputError(
            f"--estimator {spec} cannot be made without arguments ({type(error).__name__}: {error}): "
            "write a function in a file of this folder that returns one, and give FILE:FUNCTION."
        ) from error


def _name_for(spec: str, taken: dict[str, Any]) -> str:
    """Its own name; with the module where that is taken."""
    from isde.errors import InputError

    name = spec.partition(":")[2]
    if name not in taken:
        return name
    if spec in taken:
        raise InputError(f"--estimator {spec} is given twice.")
    return spec


# --- results ---------------------------------------------------------------------------------------------------


def write_comparison(folder: Path, found: Comparison, result: dict[str, Any], *, plot: bool) -> None:
    """Table, JSON and box plot, all or nothing."""
    from isde.cli.runs import write_json
    from isde.files import whole_folder

    with whole_folder(folder) as staging:
        rows = [asdict(record) for record in found.records()]
        with open(staging / TABLE_FILE, "w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        write_json(staging / RESULT_FILE, result)
        if plot:
            _draw(found, staging / FIGURE_FILE)


def _draw(found: Comparison, path: Path) -> None:
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    from isde.plots import ComparisonDisplay, figure_size

    figure = Figure(figsize=figure_size(len(found.methods)), layout="constrained")
    ComparisonDisplay.from_comparison(found, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def print_comparison(found: Comparison, n_rows: int, n_columns: int) -> None:
    """The methods, best first; the paper's way apart from the numbers in which every row counts."""
    from isde.comparison import LOWEST_LOG, SCALE_NOTE

    draw = found.draws[0]
    repeats, validation_rows = draw.samples.shape
    fits = "" if len(found.draws) == 1 else f", {len(found.draws)} times"
    echo(
        f"{n_rows:,} rows of {n_columns} columns: fitted on {len(draw.train):,}, {repeats} validation samples of "
        f"{validation_rows:,} from the other {n_rows - len(draw.train):,}{fits}"
    )
    echo(f"Log-likelihood: {SCALE_NOTE}")
    summaries = found.summaries()
    width = max(len("method"), *(len(summary.method) for summary in summaries))
    left = f"{'method':<{width}}  {'mean':>10} {'sd':>7}  {'to the best':>11} {'std error':>9}"
    left += f"  {'fit s':>7} {'score s':>7}"
    echo(f"{' every row counted ':-^{len(left)}}  {PAPER_HEAD:-^27}")
    echo(f"{left}  {'mean':>10} {'rows dropped':>16}")
    for summary in summaries:
        echo(_line(summary, width))
    echo(
        f"paper's way: rows of extremely low density (it underflows to zero, log-density below {LOWEST_LOG:.2f}) are "
        "dropped before averaging"
    )
    echo(_error_note(found))
    for summary in summaries:
        if summary.n_zero:
            echo(f"{summary.method}: density zero in {summary.n_zero:,} of {summary.n_rows:,} rows; its mean is -inf")
    for method, text in found.failures.items():
        echo(f"{method}: failed: {in_flags(text)}")


def _line(summary: MethodSummary, width: int) -> str:
    gap = (_number(summary.difference, "+.3f"), _number(summary.difference_standard_error, ".3f"))
    if summary.difference == summary.difference_standard_error == 0:
        gap = ("best", "")
    dropped = f"{summary.n_underflow:,} of {summary.n_rows:,}"
    return (
        f"{summary.method:<{width}}  {_number(summary.mean_log_likelihood, '.3f'):>10} "
        f"{_number(summary.sd, '.3f'):>7}  {gap[0]:>11} {gap[1]:>9}  "
        f"{summary.fit_seconds:>7.1f} {summary.score_seconds:>7.1f}  "
        f"{_number(summary.paper_mean_log_likelihood, '.3f'):>10} {dropped:>16}"
    )


def _number(value: float, form: str) -> str:
    """A number, or a dash for one that does not exist."""
    return "-" if value != value else format(value, form)


def _error_note(found: Comparison) -> str:
    if len(found.draws) > 1:
        return f"sd over samples; standard errors of the paired differences over the {len(found.draws)} fits"
    return "sd over samples; standard errors of the paired differences over validation rows, given this one fit"
