"""What a notebook shows of a fitted estimator: its blocks by name."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from isde.data.words import several
from isde.density_estimator import DensityEstimator
from isde.inspection import block_gains, is_tree
from isde.structure_estimator import StructureEstimator

MOST_ALONE = 60
"""Single columns by name; the others are counted."""

STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.4em 0"
CELL = "text-align:{side};padding:0.15em 0.9em 0.15em 0;border-bottom:1px solid rgba(128,128,128,0.35)"


def blocks_html(model: DensityEstimator) -> str:
    """A table of the blocks, the largest gain first; nothing where there are none yet.

    Colours and fonts are the notebook's own, so that it is read in the dark as well.
    """
    if not hasattr(model, "density_"):
        return ""
    return _with_gains(model) if isinstance(model, StructureEstimator) else _by_name(model)


def _by_name(model: DensityEstimator) -> str:
    blocks = model.block_names_
    rows = [[_names(names)] for names in blocks if len(names) > 1]
    alone = [names[0] for names in blocks if len(names) == 1]
    return _page(rows, ["Block"], alone, several(len(blocks), "block"))


def _with_gains(model: StructureEstimator) -> str:
    what, structure = ("clique", "tree") if is_tree(model) else ("block", "partition")
    gains = sorted(block_gains(model), key=lambda gain: -gain.gain)
    rows = [
        [_names(gain.names), f"{gain.gain:.4f}", _known(gain.error), f"{gain.chance:.4f}" if gain.chance else "–"]
        for gain in gains
        if len(gain.names) > 1
    ]
    alone = [gain.names[0] for gain in gains if len(gain.names) == 1]
    heads = [what.capitalize(), "Gain, nats a row", "Error", "Chance"]
    found = model.selection_.proof
    proof = f"the best {structure} for these scores, proved" if found == "proved" else f"proof: {found}"
    return _page(rows, heads, alone, f"{several(len(gains), what)}; {escape(proof)}")


def _page(rows: Sequence[Sequence[str]], heads: Sequence[str], alone: Sequence[str], caption: str) -> str:
    head = "".join(f'<th scope="col" style="{_cell(i)}">{title}</th>' for i, title in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f'<td style="{_cell(i)}">{cell}</td>' for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>" if rows else ""
    more = f" and {len(alone) - MOST_ALONE:,} more" if len(alone) > MOST_ALONE else ""
    rest = f"<div>Alone: {_names(alone[:MOST_ALONE])}{more}</div>" if alone else ""
    return (
        f'<div class="isde-blocks"><table style="{STYLE}"><caption style="text-align:left">{caption}</caption>{table}'
        f"</table>{rest}</div>"
    )


def _cell(place: int) -> str:
    return CELL.format(side="left" if place == 0 else "right")


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"<bdi>{escape(name)}</bdi>" for name in names)


def _known(value: float) -> str:
    return "–" if value != value else f"{value:.4f}"
