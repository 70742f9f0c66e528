"""isde stability: run folder + its data -> how sure the blocks are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from isde.stability import Stability
    from isde.tree_stability import TreeStability


@click.command("stability")
@click.argument("run")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-n", "--resamples", type=click.IntRange(min=2), default=50, show_default=True, help="Parts of the rows.")
@click.option(
    "--null",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Further parts whose columns are permuted, each by itself: what chance gives.",
)
@click.option("--share", type=float, default=0.5, show_default=True, help="Share of the rows in a part.")
@seed_option
@table_options
@jobs_option
@json_option
@quiet_option
@debug_option
def command(
    run: str,
    data: Path,
    resamples: int,
    null: int,
    share: float,
    seed: int,
    reading: dict[str, Any],
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """How sure the blocks or edges in RUN are: the same analysis on random parts of DATA, the rows it was fitted on."""
    from isde.cli.runs import load_model, read_for, warn_other_rows
    from isde.tree_stability import TreeStability

    verbose = 0 if quiet else 1
    model = load_model(run).set_params(n_jobs=jobs, verbose=verbose)
    table = read_for(model, data, **reading, verbose=verbose)
    warn_other_rows(run, table)
    found = model.stability(table, resamples, n_null=null, share=share, random_state=seed)
    if as_json:
        print_json(_tree_as_json(found) if isinstance(found, TreeStability) else _as_json(found))
    else:
        echo(str(found))


def _tree_as_json(found: TreeStability) -> dict[str, Any]:
    names, p_values = found.names, found.edge_p_values
    return {
        "cliques": [
            {"columns": [names[c] for c in clique], "in_resamples": float(share)}
            for clique, share in zip(found.tree.cliques, found.clique_confidence, strict=True)
        ],
        "edges": [
            {
                "columns": [names[c] for c in edge],
                "in_resamples": float(found.edge_confidence[i]),
                "gain": float(found.gains[:, i].mean()),
                "p_value": float(p_values[i]) if len(found.noise) else None,
            }
            for i, edge in enumerate(found.tree.edges)
        ],
        "same_tree": found.same_tree,
        "n_resamples": len(found.gains),
        "columns": list(names),
        "together": found.together.tolist(),
        "null_with_edges": int((found.noise > 0).sum()),
        "n_null": len(found.noise),
    }


def _as_json(found: Stability) -> dict[str, Any]:
    names = found.names
    margins, p_values = found.margins.mean(axis=0), found.block_p_values
    blocks = [
        {
            "columns": [names[c] for c in block],
            "in_resamples": float(found.block_confidence[i]),
            "gain": float(found.gains[:, i].mean()),
            "margin": float(margins[i]) if len(block) > 1 else None,
            "p_value": float(p_values[i]) if len(block) > 1 and len(found.noise) else None,
        }
        for i, block in enumerate(found.partition)
    ]
    return {
        "blocks": blocks,
        "same_partition": found.same_partition,
        "n_resamples": len(found.gains),
        "columns": list(names),
        "together": found.together.tolist(),
        "simplest": [[names[c] for c in block] for block in found.simplest],
    }
