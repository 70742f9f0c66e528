"""isde reproduce: name of a table or figure of the paper -> its rows, its figure, and the published numbers beside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isde.cli.flags import in_flags
from isde.cli.options import debug_option, jobs_option, json_option, print_json, quiet_option, seed_option
from isde.cli.output import echo

if TYPE_CHECKING:
    from isde.paper.item import Finding, Item, Settings

EVERYTHING = "all"
SCORE_CACHE = "score-tables"


@click.command("reproduce")
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option("--list", "show_list", is_flag=True, help="Show every item.")
@click.option("--quick", is_flag=True, help="Smaller samples and fewer repetitions: minutes for everything.")
@click.option(
    "--protocol",
    type=click.Choice(["clean", "paper"]),
    default="clean",
    show_default=True,
    help="How samples are rescaled and which rows count; paper: as published, with its flaws.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Table of cells: FCS, CSV, npz, ...")
@click.option(
    "--scores", type=click.Path(path_type=Path), help="Saved subset scores, in place of data where no rows are needed."
)
@click.option("-k", "--max-block-size", type=click.IntRange(min=1), help="Largest block.  [default: as in the paper]")
@click.option("--above", type=float, help="Score from which partitions are listed.  [default: as in the paper]")
@click.option("--seconds", type=click.FloatRange(min=0), help="Most for one running time, then it is projected.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Folder."
)
@click.option("--overwrite", is_flag=True, help="Run again what is there already.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a report of the results there, as Markdown.")
@click.option("--tiny", is_flag=True, hidden=True, help="For tests.")
@seed_option
@jobs_option
@json_option
@quiet_option
@debug_option
def command(
    items: tuple[str, ...],
    show_list: bool,
    quick: bool,
    protocol: Any,
    data: Path | None,
    scores: Path | None,
    max_block_size: int | None,
    above: float | None,
    seconds: float | None,
    output: Path,
    overwrite: bool,
    report: Path | None,
    tiny: bool,
    seed: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run tables and figures of the paper: ITEM..., or all of them with the word all.

    Each writes OUTPUT/<item>.csv, a figure where the paper has one, and prints the published numbers beside the
    measured ones. A repetition is written as soon as it is done: the same command again goes on where it stopped, and
    recomputes nothing. Running times stand in files of their own, <item>.times.csv; all other files are the same each
    time, except those of items that measure running times.
    """
    from isde.errors import InputError
    from isde.paper.item import Settings
    from isde.paper.markdown import write_report

    if show_list:
        _print_list(as_json)
        return
    if not items and report is None:
        raise InputError("Name an item, or all: isde reproduce --list shows them.")
    settings = Settings(
        size="tiny" if tiny else "quick" if quick else "full",
        protocol=protocol,
        seed=seed,
        jobs=jobs,
        data=data,
        scores=scores,
        max_block_size=max_block_size,
        above=above,
        seconds=seconds,
        verbose=0 if quiet else 1,
        cache=output / SCORE_CACHE,
    )
    found, refused = _run(_chosen(items, settings), settings, output, overwrite=overwrite, quiet=quiet, as_json=as_json)
    if report is not None:
        missing = write_report(output, report)
        if not quiet:
            rest = f"; without a full run: {', '.join(missing)}" if missing else ""
            echo(f"Written to {report}{rest}", err=True)
    if as_json:
        print_json(found)
    if refused and EVERYTHING not in items:
        raise InputError(f"{', '.join(refused)}: left out, for the reason given above; all others are done.")


def _chosen(names: tuple[str, ...], settings: Settings) -> list[Item]:
    """The items named; of all of them, those that can run with what is given."""
    from isde.errors import InputError
    from isde.paper import ITEMS, find_item

    if EVERYTHING not in names:
        chosen = [find_item(name) for name in dict.fromkeys(names)]
        for item in chosen:
            item.source(settings)  # raises where data are missing, before anything runs
        return chosen
    chosen = []
    for item in ITEMS.values():
        try:
            item.source(settings)
        except InputError as error:
            echo(f"Left out: {in_flags(str(error))}", err=True)
        else:
            chosen.append(item)
    return chosen


def _run(
    items: list[Item], settings: Settings, output: Path, *, overwrite: bool, quiet: bool, as_json: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """What was found, and the names of items that refused what was given."""
    from isde.errors import InputError
    from isde.paper.item import PROTOCOLS
    from isde.paper.runner import run_item

    if not quiet and any(item.has_protocols for item in items):
        echo(f"Protocol {settings.protocol}: {PROTOCOLS[settings.protocol]}", err=True)
    found, refused = [], []
    for item in items:
        try:
            results = run_item(item, settings, output, overwrite=overwrite, quiet=quiet)
        except InputError as error:
            if len(items) == 1:
                raise
            echo(f"Left out: {in_flags(str(error))}", err=True)
            refused.append(item.name)
            continue
        findings = item.compare(results)
        path = output / f"{results.name}.csv"
        found.append(_as_dict(item, settings, path, findings))
        if not as_json:
            _print_findings(item, settings, path, findings)
    return found, refused


def _as_dict(item: Item, settings: Settings, path: Path, findings: list[Finding]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "item": item.name,
        "protocol": settings.protocol if item.has_protocols else None,
        "size": settings.size,
        "file": str(path),
        "findings": [asdict(finding) for finding in findings],
        "notes": list(item.notes),
    }


def _print_findings(item: Item, settings: Settings, path: Path, findings: list[Finding]) -> None:
    protocol = f", protocol {settings.protocol}" if item.has_protocols else ""
    size = "" if settings.size == "full" else f", {settings.size}: not the paper's setting"
    echo(f"{item.name}{protocol}{size}: {path}")
    for finding in findings:
        echo(f"  {finding.what}")
        echo(f"    published {finding.published}")
        echo(f"    measured  {finding.measured}")
        echo(f"    {finding.why}")


def _print_list(as_json: bool) -> None:
    from isde.paper import ITEMS

    if as_json:
        names = ("name", "paper", "needs", "has_protocols")
        print_json([{name: getattr(item, name) for name in names} for item in ITEMS.values()])
        return
    width = max(map(len, ITEMS))
    for item in ITEMS.values():
        needs = {"nothing": "", "data": " (--data)", "data or scores": " (--data or --scores)"}[item.needs]
        echo(f"{item.name:<{width}}  {item.paper}{needs}")
