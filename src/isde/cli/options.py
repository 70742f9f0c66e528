"""Options that several commands share."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

import click

from isde.cli.output import echo
from isde.marginals import DEFAULT_MARGINAL, MARGINAL_NAMES
from isde.marginals.bounds import LEAST_BOUND, LEAST_SPLIT_ROWS, MAX_CENTRES, MAX_FIT_ROWS, MAX_SPLIT_ROWS
from isde.solvers.registry import AUTO, SOLVER_NAMES
from isde.tree_solvers.registry import TREE_SOLVER_NAMES

Command = TypeVar("Command", bound=Callable[..., Any])


class Line(Protocol):
    """Of a registry."""

    @property
    def about(self) -> str: ...


DEBUG = "isde.debug"


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    meta = ctx.find_root().meta
    meta[DEBUG] = meta.get(DEBUG, False) or value


def _check_jobs(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if value == 0:
        raise click.BadParameter("0 is no number of workers: give 1 or more, or -1 for all cores.", ctx, param)
    return value


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_remember_debug, help="Show the traceback of an error."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
jobs_option = click.option(
    "--jobs", type=int, default=-1, callback=_check_jobs, show_default=True, help="Workers; -1 means all cores."
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress on standard error.")


def with_registry(title: str, registry: Callable[[], Mapping[str, Line]]) -> type[click.Command]:
    """A command that lists in its help what a registry has."""

    class Listing(click.Command):
        def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            super().format_help_text(ctx, formatter)
            with formatter.section(title):
                formatter.write_dl([(name, line.about) for name, line in registry().items()])

    return Listing


def table_options(command: Command) -> Command:
    """How a data file is read; the command gets it as `reading`, for `read_table`."""

    @wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:
        reading = {name: kwargs.pop(name) for name in ("separator", "encoding", "header", "columns")}
        return command(*args, reading=reading, **kwargs)

    for option in (
        click.option(
            "--columns",
            callback=lambda ctx, param, value: split_names(value),
            help="Columns to use, by name, separated by commas; quoted where a name has one: 'a,\"b, c\"'.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="First row of a text file holds names, or data.  [default: judged by its cells]",
        ),
        click.option("--encoding", help="Encoding of a text file, such as latin-1.  [default: utf-8]"),
        click.option(
            "--separator",
            callback=lambda ctx, param, value: "\t" if value == r"\t" else value,
            help="Separator of a text file.  [default: ',' for csv, tab for tsv]",
        ),
    ):
        collected = option(collected)
    return cast(Command, collected)


def fit_options(command: Command) -> Command:
    """Everything the estimator takes."""
    for option in reversed(
        (
            click.option(
                "--structure",
                type=click.Choice(["blocks", "tree"]),
                default="blocks",
                show_default=True,
                help="Independent blocks, or blocks that overlap along a tree.",
            ),
            click.option(
                "-k",
                "--max-block-size",
                type=int,
                help="Most columns in a block.  [default: 3, or 4 with --structure tree]",
            ),
            click.option(
                "--marginal",
                type=click.Choice(MARGINAL_NAMES),
                default=DEFAULT_MARGINAL,
                show_default=True,
                help="How subsets are scored, and how the blocks found are described; see above.",
            ),
            click.option(
                "--alpha",
                type=Alpha(),
                metavar=Alpha.name,
                default="auto",
                show_default=True,
                help="Probability of finding any block among independent columns: what chance alone gives is charged.  "
                "auto is 0.05 with copula and copula+stack; none charges nothing.",
            ),
            click.option(
                "--split",
                type=click.Choice(["structure", "density", "paper", "turned"]),
                help="Rows that fit and rows that score: twenty splits that keep independent blocks apart, five folds "
                "that keep weak dependence, or the paper's one half; turned is what structure means from 2,500 rows "
                "on.  [default: structure]",
            ),
            click.option("--fit-rows", "-m", type=int, help="One split only: rows to fit on.  [default: half]"),
            click.option("--score-rows", "-n", type=int, help="One split only: rows to score.  [default: the rest]"),
            click.option(
                "--penalty",
                type=click.Choice(["bic", "slope"]),
                help="A price for each parameter in place of a split, for --marginal gaussian.",
            ),
            click.option(
                "--folds",
                type=click.IntRange(min=2),
                default=5,
                show_default=True,
                help="Folds that choose a bandwidth.",
            ),
            click.option(
                "--bandwidths",
                help="Grid on the rescaled data: FROM:TO:COUNT (log scale) or numbers separated by commas.  "
                "[default: 0.01:1:30, growing where it must]",
            ),
            click.option(
                "--scale",
                type=click.Choice(["minmax", "standard", "none"]),
                default="minmax",
                show_default=True,
                help="Rescaling of each column.",
            ),
            click.option(
                "--max-split-rows",
                type=Bound(LEAST_SPLIT_ROWS),
                metavar=Bound.name,
                default=str(MAX_SPLIT_ROWS),
                show_default=True,
                help="Most rows that a split is made of: of a larger table each split draws its own; none takes all.",
            ),
            click.option(
                "--max-fit-rows",
                type=Bound(),
                metavar=Bound.name,
                default=str(MAX_FIT_ROWS),
                show_default=True,
                help="Most rows that the densities of blocks are learned from, drawn at random; none takes all.",
            ),
            click.option(
                "--max-centres",
                type=Bound(),
                metavar=Bound.name,
                default=str(MAX_CENTRES),
                show_default=True,
                help="Most kernel centres in a block: the cost of isde score grows with them; none takes every row.",
            ),
            click.option(
                "--solver",
                type=click.Choice(list(dict.fromkeys((*SOLVER_NAMES, *TREE_SOLVER_NAMES)))),
                default=AUTO,
                show_default=True,
                help=f"How the partition is found; with --structure tree one of {', '.join(TREE_SOLVER_NAMES)}.",
            ),
            click.option(
                "--search",
                type=click.Choice(["exhaustive", "screened"]),
                default="exhaustive",
                show_default=True,
                help="Score every subset; or pairs, triples and larger candidates that these connect, where all are "
                "too many.",
            ),
            seed_option,
            jobs_option,
        )
    ):
        command = option(command)
    return command


class Alpha(click.ParamType[Any]):
    """A probability, or one of two words."""

    name = "PROBABILITY|auto|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str | None:
        if value in ("auto", None):
            return "auto"
        if value == "none":
            return None
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0 < number < 1:
            self.fail(f"{value!r} is no probability between 0 and 1: give one, auto or none.", param, ctx)
        return number


class Bound(click.ParamType[Any]):
    """A number of rows, or none."""

    name = "NUMBER|none"

    def __init__(self, least: int = LEAST_BOUND) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if value is None or value == "none":
            return None
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < self.least:
            self.fail(f"{value!r} is no number of rows: give {self.least} or more, or none for all.", param, ctx)
        return number


def split_names(text: str | None) -> list[str] | None:
    """Names separated by commas, as in a row of a csv file.

    >>> split_names('a, b'), split_names('a,"b, c"')
    (['a', 'b'], ['a', 'b, c'])
    """
    if text is None:
        return None
    try:
        row = next(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True), [""])
    except csv.Error:
        raise click.BadParameter(
            f"{text!r} is no list of names: quote a name that has a comma or a quote, as in 'a,\"b, c\"'."
        ) from None
    return [name.strip() for name in row]


def parse_grid(text: str | None) -> list[float] | None:
    """A grid from "0.01:1:30" or "0.05,0.1,0.2".

    >>> parse_grid("0.01:1:3"), parse_grid("0.05, 0.1")
    ([0.01, 0.1, 1.0], [0.05, 0.1])
    """
    if text is None:
        return None
    try:
        if ":" in text:
            import numpy as np

            low, high, count = text.split(":")
            return [float(f"{h:.17g}") for h in np.geomspace(float(low), float(high), int(count))]
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither FROM:TO:COUNT nor numbers separated by commas.", param_hint="--bandwidths"
        ) from None


def print_json(value: Any) -> None:
    echo(json.dumps(value, indent=2, allow_nan=False))
