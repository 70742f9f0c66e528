"""isde graph: run folder -> its graph as a file or a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isde.cli.options import debug_option, json_option, print_json, quiet_option
from isde.cli.output import echo

if TYPE_CHECKING:
    from isde.structure_estimator import StructureEstimator

FIGURES = (".png", ".svg", ".pdf")


@click.command("graph")
@click.argument("run")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write: .graphml or .dot for other programs, .png, .svg or .pdf for a figure.",
)
@json_option
@quiet_option
@debug_option
def command(run: str, output: Path | None, as_json: bool, quiet: bool) -> None:
    """The graph of the model in RUN: a line between all pairs of columns that share a clique, or a block."""
    from isde.cli.runs import load_model
    from isde.cli.trees import edges_as_json
    from isde.errors import InputError
    from isde.tree_export import check_place

    if output is None and not as_json:
        raise InputError("Give a file to write, as in -o tree.graphml, or --json.")
    if output is not None:
        if output.suffix.lower() not in (".graphml", ".dot", *FIGURES):
            raise InputError(f"{output} is no graph or figure: end its name in .graphml, .dot, {', '.join(FIGURES)}.")
        check_place(output)
    model = load_model(run)
    if output is not None:
        _write(model, output)
    if as_json:
        print_json({"columns": list(model.density_.names), "edges": edges_as_json(model)})
    if output is not None and not quiet:
        echo(f"Written to {output}", err=True)


def _write(model: StructureEstimator, path: Path) -> None:
    from isde.tree_export import to_dot, to_graphml

    kind = path.suffix.lower()
    if kind in FIGURES:
        _draw(model, path)
    else:
        write = to_graphml if kind == ".graphml" else to_dot
        write(path, model.density_.tree, model.density_.names, model.edge_gains_)


def _draw(model: StructureEstimator, path: Path) -> None:
    from isde.files import whole_file
    from isde.plots import require_matplotlib

    require_matplotlib(otherwise="-o tree.graphml")
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    from isde.plots.graph import GraphDisplay, graph_figure_size

    figure = Figure(figsize=graph_figure_size(len(model.density_.names)), layout="constrained")
    GraphDisplay.from_estimator(model, ax=figure.subplots())
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
