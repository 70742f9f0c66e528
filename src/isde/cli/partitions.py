"""isde partitions: run folder -> the best and worst partitions of its score table, nothing scored again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from isde.cli.options import debug_option, json_option, print_json, split_names
from isde.cli.output import echo
from isde.data.words import in_braces

if TYPE_CHECKING:
    from isde.scores import SubsetScores
    from isde.selection import Selection


@click.command("partitions")
@click.argument("run")
@click.option("--best", type=click.IntRange(min=1), help="How many of the best.  [default: 10, unless --worst]")
@click.option("--worst", type=click.IntRange(min=1), help="How many of the worst.")
@click.option("-k", "--max-block-size", type=int, help="Largest block.  [default: that of the run]")
@click.option("--together", multiple=True, help="Columns that share a block, separated by commas; may be repeated.")
@click.option("--apart", multiple=True, help="Columns no two of which share a block; may be repeated.")
@click.option("--block", "blocks", multiple=True, help="A block fixed in advance; may be repeated.")
@click.option("--min-block-size", type=int, default=1, show_default=True, help="Smallest block.")
@click.option("--max-blocks", type=int, help="Most blocks.  [default: no limit]")
@json_option
@debug_option
def command(
    run: str,
    best: int | None,
    worst: int | None,
    max_block_size: int | None,
    together: tuple[str, ...],
    apart: tuple[str, ...],
    blocks: tuple[str, ...],
    min_block_size: int,
    max_blocks: int | None,
    as_json: bool,
) -> None:
    """The best and the worst partitions by the score table of RUN, exact and in order.

    RUN is a folder made by isde fit, of blocks or of a tree, or a saved score table. Partitions are ranked by their
    score less what chance is charged: "below best" is in these terms. Edits are the splits and merges from the best
    partition under the same constraints.
    """
    from isde.cli.runs import load_scores
    from isde.solvers import Constraints, best_partitions, worst_partitions

    scores = load_scores(run)
    constraints = Constraints(
        together=_groups(together),
        apart=_groups(apart),
        blocks=_groups(blocks),
        min_block_size=min_block_size,
        max_blocks=max_blocks,
    )
    n_best = best if best or worst else 10
    found = {"best": best_partitions(scores, n_best or 1, max_block_size, constraints=constraints)}
    optimum = found["best"][0]
    if not n_best:
        found = {}
    if worst:
        found["worst"] = worst_partitions(scores, worst, max_block_size, constraints=constraints)
    rows = {which: [_row(scores, one, optimum) for one in several] for which, several in found.items()}
    if as_json:
        print_json(rows)
        return
    for which, listed in rows.items():
        _print_rows(which, listed)


def _groups(texts: tuple[str, ...]) -> list[list[str]]:
    return [split_names(text) or [] for text in texts]


def _row(scores: SubsetScores, found: Selection, optimum: Selection) -> dict[str, Any]:
    from isde.partitions import edit_distance

    return {
        "score": _finite(found.score),
        "objective": _finite(found.objective),
        "below_best": _finite(optimum.objective - found.objective),
        "edits": edit_distance(found.partition, optimum.partition),
        "is_proved": found.is_proved,
        "blocks": [[scores.names[c] for c in block] for block in found.partition],
    }


def _finite(value: float) -> float | None:
    """JSON has no infinities."""
    return value if abs(value) < float("inf") else None


def _print_rows(which: str, rows: list[dict[str, Any]]) -> None:
    echo(f"the {len(rows)} {which}, proved" if all(row["is_proved"] for row in rows) else f"the {which}")
    echo("  rank         score    below best   edits   blocks")
    for rank, row in enumerate(rows, start=1):
        together = [in_braces(block) for block in row["blocks"] if len(block) > 1]
        alone = sum(len(block) == 1 for block in row["blocks"])
        label = " ".join([*together, f"{alone} alone"] if alone else together)
        score, below = (
            f"{'-inf':>13}" if value is None else f"{value:13.6f}" for value in (row["score"], row["below_best"])
        )
        echo(f"  {rank:4d} {score} {below}  {row['edits']:6d}   {label}")
