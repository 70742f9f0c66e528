"""What a notebook shows of a fitted estimator: its blocks by name."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from isde.inspection import block_gains

MOST_ALONE = 60
"""Single columns by name; the others are counted."""

STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.4em 0"
CELL = "text-align:{side};padding:0.15em 0.9em 0.15em 0;border-bottom:1px solid rgba(128,128,128,0.35)"


def blocks_html(model: Any) -> str:
    """A table of the blocks, the largest gain first; nothing where there are none yet.

    Colours and fonts are the notebook's own, so that it is read in the dark as well.
    """
    if not hasattr(model, "density_"):
        return ""
    if not hasattr(model, "subset_scores_"):
        blocks = [names for names in model.block_names_ if len(names) > 1]
        rows = [[_names(names)] for names in blocks]
        alone = [names[0] for names in model.block_names_ if len(names) == 1]
        return _page(rows, ["Block"], alone, f"{len(model.block_names_):,} blocks")
    gains = sorted(block_gains(model), key=lambda gain: -gain.gain)
    rows = [
        [_names(gain.names), f"{gain.gain:.4f}", _known(gain.error), f"{gain.chance:.4f}" if gain.chance else "–"]
        for gain in gains
        if len(gain.names) > 1
    ]
    alone = [gain.names[0] for gain in gains if len(gain.names) == 1]
    heads = ["Block", "Gain, nats a row", "Error", "Chance"]
    proof = {"proved": "the best partition for these scores, proved"}.get(
        model.selection_.proof, f"proof: {model.selection_.proof}"
    )
    n = len(gains)
    return _page(rows, heads, alone, f"{n:,} {'block' if n == 1 else 'blocks'}; {escape(proof)}")


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
