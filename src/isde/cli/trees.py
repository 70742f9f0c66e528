"""A tree of blocks in words: its cliques as a tree, its edges with gains, and what is independent given what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from isde.data.words import in_braces, join_names
from isde.tree_gains import in_words
from isde.trees import NO_PARENT

if TYPE_CHECKING:
    from isde.rearranging import Rearrangement
    from isde.structure_estimator import StructureEstimator
    from isde.tree_estimator import TreeISDE
    from isde.tree_gains import EdgeGain

MOST_SENTENCES = 12
"""About what is independent of what; `--json` has all of them."""


def tree_summary(model: TreeISDE) -> dict[str, Any]:
    """Of a summary, what a tree has in place of blocks."""
    tree, names = model.selection_.tree, model.density_.names
    return {
        "cliques": [
            {
                "columns": [names[column] for column in clique],
                "shared": [names[column] for column in shared],
                "hangs_on": None if parent == NO_PARENT else parent,
                "bandwidth": None if math.isnan(bandwidth) else float(bandwidth),
            }
            for clique, shared, parent, bandwidth in zip(
                tree.cliques, tree.shared, tree.parents, model.bandwidths_, strict=True
            )
        ],
        "edges": edges_as_json(model),
        "components": [list(block) for block in model.block_names_],
        "independence": list(in_words(tree, names)),
        "rearrangements": None
        if model.rearrangements_ is None
        else [_worth(one, names) for one in model.rearrangements_],
    }


def _worth(found: Rearrangement, names: tuple[str, ...]) -> dict[str, Any]:
    return found.to_json() | {"columns": [names[column] for column in found.columns]}


def edges_as_json(model: StructureEstimator) -> list[dict[str, Any]]:
    """Every pair of columns that share a clique or block, with what it gains."""
    return [_edge(one, model.density_.names) for one in model.edge_gains_]


def _edge(one: EdgeGain, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "columns": [names[column] for column in one.edge],
        "given": [names[column] for column in one.given],
        "gain": _finite(one.gain),
        "gain_error": _finite(one.error),
        "chance": one.chance,
        "pair_gain": _finite(one.pair_gain),
    }


def _finite(value: float) -> float | None:
    """JSON has neither NaN nor infinities: a table may lack the score of a part."""
    return value if math.isfinite(value) else None


def tree_lines(summary: dict[str, Any]) -> Iterator[str]:
    """The cliques, each under the one it hangs on, edges with their gains, and what is independent of what."""
    cliques, alone = summary["cliques"], []
    for number, clique in enumerate(cliques):
        if clique["hangs_on"] is None and len(clique["columns"]) == 1:
            alone.append(clique["columns"][0])
        elif clique["hangs_on"] is None:
            yield from _branch(cliques, number, 1)
    if alone:
        yield f"  alone: {join_names(alone)}"
    if summary["edges"]:
        yield "edges: what two columns say of each other, given the columns that stand with both in all their cliques"
    edges = sorted(summary["edges"], key=lambda edge: -(edge["gain"] or 0.0))
    labels = [_edge_label(edge) for edge in edges]
    width = max(map(len, labels), default=0)
    for edge, label in zip(edges, labels, strict=True):
        gain = "not known" if edge["gain"] is None else f"{edge['gain']:8.4f}"
        error = "" if edge["gain_error"] is None else f" +- {edge['gain_error']:.4f}"
        chance = f", chance gives {edge['chance']:.4f}" if edge["chance"] else ""
        yield f"  {label:<{width}}   gain {gain}{error} nats{chance}"
    sentences = summary["independence"]
    yield from sentences[:MOST_SENTENCES]
    if len(sentences) > MOST_SENTENCES:
        yield f"and {len(sentences) - MOST_SENTENCES} more such sentences, with --json"


def _branch(cliques: list[dict[str, Any]], number: int, depth: int) -> Iterator[str]:
    """A clique and those that hang on it."""
    clique = cliques[number]
    shared = f"   by {in_braces(clique['shared'])}" if clique["shared"] else ""
    yield f"{'  ' * depth}{in_braces(clique['columns'])}{shared}"
    for other, below in enumerate(cliques):
        if below["hangs_on"] == number:
            yield from _branch(cliques, other, depth + 1)


def _edge_label(edge: dict[str, Any]) -> str:
    given = f" | {join_names(edge['given'])}" if edge["given"] else ""
    return join_names(edge["columns"], " -- ") + given
