"""The geometry of a page's figures: paths and places from numbers, for templates that write them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log10, sqrt
from typing import Any

import numpy as np
from contourpy import FillType, contour_generator

from isde.arrays import Matrix, Vector
from isde.layout import place_blocks, place_tree, short

WIDE, NARROW = 920.0, 340.0
"""Two diagrams are written, for screens and for phones."""

CLIQUE_LETTERS = 28
"""Of a clique's label."""

WIDEST_LINE = 6.0
HUES = 6
"""Colours of blocks, one after the other and again from the first."""

MOST_ACROSS = 16
LEVELS = 7
"""Shades of a matrix."""

TREE = 56.0
"""The height of the tree above a matrix."""

LEAST_CELL, MOST_CELL, MATRIX = 15.0, 30.0, 560.0
"""The side of a cell, and that of a matrix where cells can be larger than the least."""

PICTURE = 270.0, 226.0
DOT_SIZES, LARGEST_DOT = 5, 5.5
LEFT, BOTTOM, TOP, RIGHT = 50.0, 34.0, 8.0, 8.0
"""Margins of a picture, for its scales."""


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough.

    >>> number(12.0), number(3.14159), number(-0.01)
    ('12', '3.1', '0')
    """
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def path_of(points: Any, *, closed: bool = False) -> str:
    """The points joined by lines, each as a step from the one before: shorter than places."""
    steps: list[str] = []
    x = y = 0.0
    for px, py in points:
        dx, dy = round(px - x, 1), round(py - y, 1)
        if steps and not dx and not dy:
            continue
        steps.append(f"{number(dx)} {number(dy)}")
        x, y = x + dx, y + dy
    return "m" + "l".join(steps) + ("z" if closed else "")


def ticks(low: float, high: float, most: int = 4) -> list[tuple[float, str]]:
    """Round numbers between two, with their labels.

    >>> [label for _, label in ticks(-0.2, 1.7)]
    ['0', '0.5', '1', '1.5']
    """
    span = high - low
    if not isfinite(span) or span <= 0:
        return []
    rough = span / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [(i * step, f"{i * step:.6g}".replace("-", "−")) for i in range(first, last + 1)]


# --- blocks ----------------------------------------------------------------------------------------------------


def block_order(blocks: Sequence[Any]) -> list[int]:
    """Blocks of several columns first, the largest gain first."""
    return sorted(range(len(blocks)), key=lambda i: (len(blocks[i]["columns"]) == 1, -(blocks[i]["gain"] or 0), i))


def group_hues(groups: Sequence[Any]) -> dict[int, int]:
    """The colour of each group, from 1; 0 for single columns."""
    return {
        place: 0 if len(groups[place]["columns"]) == 1 else 1 + i % HUES for i, place in enumerate(block_order(groups))
    }


def hues(numbers: Any) -> dict[int, int]:
    """The colour of each block: that of its group."""
    colour = group_hues(numbers["groups"])
    return {block: colour[place] for place, group in enumerate(numbers["groups"]) for block in group["blocks"]}


def leading_block(numbers: Any, group: Any) -> int:
    """Of the blocks of a group the one that gains most: what a click on the group shows."""
    return int(max(group["blocks"], key=lambda i: numbers["blocks"][i]["gain"] or 0.0))


def block_diagram(numbers: Any, width: float) -> dict[str, Any]:
    """Cards, lines and dots of the block diagram."""
    groups, names = numbers["groups"], numbers["columns"]
    sets, colour = [tuple(group["positions"]) for group in groups], group_hues(groups)
    leads = [leading_block(numbers, group) for group in groups]
    diagram = place_blocks(sets, names, width, block_order(groups))
    nodes, listed = diagram.nodes, numbers["pairs"]["listed"]
    widest = max((pair["gain"] for pair in listed if pair["gain"] is not None), default=0.0) or 1.0
    of_column = {column: leads[place] for place, group in enumerate(sets) for column in group}
    lines, across = [], 0
    for pair in listed:
        (i, j), passes = pair["positions"], pair["passes"]
        if not pair["inside"] and not (pair["apart"] and passes and across < MOST_ACROSS):
            continue
        across += pair["apart"]
        lines.append(
            {
                "x1": nodes[i].x,
                "y1": nodes[i].y,
                "x2": nodes[j].x,
                "y2": nodes[j].y,
                "width": max(WIDEST_LINE * pair["gain"] / widest, 0.9) if passes else 0.9,
                "kind": "across" if not pair["inside"] else "inside" if passes else "joint",
                "blocks": (of_column[i], of_column[j]),
            }
        )
    cards = [
        {
            "place": leads[card.place],
            "group": groups[card.place],
            "x": card.x,
            "y": card.y,
            "width": card.width,
            "height": card.height,
            "hue": colour[card.place],
            "alone": len(card.nodes) == 1,
            "nodes": [
                {"x": n.x, "y": n.y, "side": n.side, "name": names[n.column], "label": short(names[n.column])}
                for n in card.nodes
            ],
        }
        for card in diagram.cards
    ]
    lines.sort(key=lambda line: line["kind"] != "across")  # lines across lie below
    return {"width": diagram.width, "height": diagram.height, "cards": cards, "lines": lines, "n_across": across}


def clique_tree(numbers: Any) -> dict[str, Any]:
    """Cliques in rows, each below the one it hangs on, joined by lines that name the columns they share."""
    labels = [short(", ".join(block["columns"]), CLIQUE_LETTERS) for block in numbers["blocks"]]
    links, colour = numbers["hangs_on"], hues(numbers)
    tree = place_tree(labels, {link["block"]: link["on"] for link in links})
    boxes = [
        {"place": place, "x": box.x, "y": box.y, "width": box.width, "hue": colour[place], "label": labels[place]}
        | {"columns": numbers["blocks"][place]["columns"]}
        for place, box in tree.boxes.items()
    ]
    lines = [
        {
            "x1": tree.boxes[link["on"]].x,
            "y1": tree.boxes[link["on"]].y,
            "x2": tree.boxes[link["block"]].x,
            "y2": tree.boxes[link["block"]].y,
            "label": short(", ".join(link["columns"]), CLIQUE_LETTERS),
        }
        for link in links
    ]
    return {"width": tree.width, "height": tree.height, "boxes": boxes, "lines": lines}


def gain_bars(blocks: Sequence[Any], width: float = 150.0) -> dict[int, dict[str, float | None]]:
    """A bar for the gain of each block, with its error and the mark of chance."""
    ends = [(b["gain"] or 0.0) + (b["error"] or 0.0) for b in blocks if b["gain"] is not None]
    unit = (width - 4) / max([*ends, *(b["chance"] for b in blocks), 1e-12])
    return {
        place: {
            "gain": max(b["gain"] or 0.0, 0.0) * unit,
            "low": None if b["error"] is None else max((b["gain"] or 0.0) - b["error"], 0.0) * unit,
            "high": None if b["error"] is None else ((b["gain"] or 0.0) + b["error"]) * unit,
            "chance": b["chance"] * unit if b["chance"] else None,
        }
        for place, b in enumerate(blocks)
    }


# --- matrices --------------------------------------------------------------------------------------------------


def cell_side(n_columns: int) -> float:
    """Few columns have larger cells."""
    return float(round(min(max(MATRIX / n_columns, LEAST_CELL), MOST_CELL)))


def matrix(names: Sequence[str], order: Sequence[int], shades: dict[tuple[int, int], int]) -> dict[str, Any]:
    """Cells of each shade as one path, both sides of the diagonal, and the labels."""
    place, cell = {column: i for i, column in enumerate(order)}, cell_side(len(names))
    label = max((len(short(name)) for name in names), default=1) * 7.2 + 12
    paths: dict[int, list[str]] = {shade: [] for shade in range(1, LEVELS + 1)}
    for (i, j), shade in shades.items():
        if shade:
            for row, column in {(place[i], place[j]), (place[j], place[i])}:
                x, y = label + column * cell, row * cell
                paths[shade].append(f"M{number(x)} {number(y)}h{number(cell)}v{number(cell)}h-{number(cell)}z")
    return {
        "label": label,
        "cell": cell,
        "side": cell * len(names),
        "cells": {shade: "".join(parts) for shade, parts in paths.items() if parts},
        "names": [{"name": names[c], "label": short(names[c]), "at": (i + 0.5) * cell} for i, c in enumerate(order)],
    }


def heatmap(numbers: Any) -> dict[str, Any]:
    """The gains of pairs in the order of the tree, which stands above; white where chance gives as much."""
    pairs, names = numbers["pairs"], numbers["columns"]
    largest = max((pair["gain"] for pair in pairs["listed"] if pair["passes"]), default=0.0)
    shades = {tuple(pair["positions"]): shade_of(pair["gain"], largest) for pair in pairs["listed"] if pair["passes"]}
    found = matrix(names, pairs["order"], shades)
    place = {column: i for i, column in enumerate(pairs["order"])}
    colour, frames = group_hues(numbers["groups"]), []
    for number_of, group in enumerate(numbers["groups"]):
        first, size = min(place[c] for c in group["positions"]), len(group["positions"])
        if size > 1:  # the tree keeps groups together
            frame = {"block": leading_block(numbers, group), "hue": colour[number_of]}
            frames.append(frame | {"at": first * found["cell"], "side": size * found["cell"]})
    bounds = [largest * (step / LEVELS) ** 2 for step in range(LEVELS + 1)]
    return found | {
        "frames": frames,
        "tree": _tree(pairs, found["label"], found["cell"]),
        "tree_height": TREE,
        "bounds": list(pairwise(bounds)) if largest else [],
        "order": pairs["order"],
    }


def shade_of(gain: float, largest: float) -> int:
    """From 1 to LEVELS, by the root of the gain: weak ones are seen beside strong ones."""
    return min(LEVELS, 1 + int(LEVELS * sqrt(max(gain, 0.0) / largest))) if largest > 0 else 0


def _tree(pairs: Any, left: float, cell: float) -> dict[str, str]:
    """The lines of the tree, those inside blocks apart from the others."""
    d = len(pairs["order"])
    x = {column: left + (i + 0.5) * cell for i, column in enumerate(pairs["order"])}
    y = dict.fromkeys(range(d), TREE)
    lines: dict[str, list[str]] = {"inside": [], "outside": []}
    for step, merge in enumerate(pairs["merges"]):
        a, b, height = merge["left"], merge["right"], TREE - (TREE - 4) * merge["height"]
        kind = "inside" if merge["inside"] else "outside"
        lines[kind].append(f"M{number(x[a])} {number(y[a])}V{number(height)}H{number(x[b])}V{number(y[b])}")
        x[d + step], y[d + step] = (x[a] + x[b]) / 2, height
    return {kind: "".join(parts) for kind, parts in lines.items()}


def co_blocks(numbers: Any) -> dict[str, Any]:
    """Shares of resamples in which two columns stand together."""
    together, d = numbers["stability"]["together"], len(numbers["columns"])
    shades = {
        (i, j): min(LEVELS, 1 + int(LEVELS * together[i][j])) if together[i][j] else 0
        for i in range(d)
        for j in range(i + 1, d)
    }
    return matrix(numbers["columns"], numbers["pairs"]["order"], shades)


# --- pictures of densities -------------------------------------------------------------------------------------


class Frame:
    """A picture with scales: from the units of the data to places."""

    def __init__(self, x: Sequence[float], y: Sequence[float], size: tuple[float, float] = PICTURE) -> None:
        self.x, self.y, self.size = x, y, size

    def across(self, value: Any) -> Any:
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (self.size[0] - LEFT - RIGHT)

    def up(self, value: Any) -> Any:
        return self.size[1] - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.size[1] - TOP - BOTTOM)

    @property
    def drawn(self) -> dict[str, Any]:
        """Its edges and ticks."""
        return {
            "width": self.size[0],
            "height": self.size[1],
            "left": LEFT,
            "right": self.size[0] - RIGHT,
            "top": TOP,
            "bottom": self.size[1] - BOTTOM,
            "x_ticks": [(self.across(value), label) for value, label in ticks(self.x[0], self.x[1])],
            "y_ticks": [(self.up(value), label) for value, label in ticks(self.y[0], self.y[1])],
        }


def spaced(ends: Sequence[float], n: int) -> Vector:
    """So many places between two ends, both among them."""
    return np.linspace(ends[0], ends[1], n)


def curve(column: Any) -> dict[str, Any]:
    """The density of one column, over the data in bins where they are given."""
    values = np.array(column["density"])
    points = spaced(column["points"], len(values))
    counts, bars = column["counts"], ""
    top = float(values.max())
    if counts and sum(counts):
        edges = spaced(column["points"], len(counts) + 1)
        heights = np.array(counts) / (sum(counts) * (edges[1] - edges[0]))
        top = max(top, float(heights.max()))
    frame = Frame(column["points"], (0.0, 1.06 * top))
    if counts and sum(counts):
        bars = "".join(
            f"M{number(frame.across(a))} {number(frame.up(0))}V{number(frame.up(h))}"
            f"H{number(frame.across(b))}V{number(frame.up(0))}z"
            for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)
            if h
        )
    line = path_of(zip(frame.across(points), frame.up(values), strict=True))
    return {"frame": frame.drawn, "line": line, "bars": bars, "x_name": column["column"]}


def contours(pair: Any) -> dict[str, Any]:
    """Regions of highest density of two columns, the widest first, and cells with rows of the data."""
    density = np.array(pair["density"])
    x, y = spaced(pair["x"], density.shape[0]), spaced(pair["y"], density.shape[1])
    frame = Frame(pair["x"], pair["y"])
    generator = contour_generator(frame.across(x), frame.up(y), density.T, fill_type=FillType.OuterOffset)
    regions = [_region(generator, level) for level in reversed(pair["levels"])]
    return {
        "frame": frame.drawn,
        "regions": regions,
        "cells": _cells(pair, frame),
        "x_name": pair["columns"][0],
        "y_name": pair["columns"][1],
    }


def _region(generator: Any, level: float) -> str:
    """Where the density is above a level, as one path with holes."""
    parts = []
    for outline, offsets in zip(*generator.filled(level, inf), strict=True):
        parts += [_loop(outline[a:b]) for a, b in pairwise(offsets)]
    return "".join(parts)


def _loop(points: Matrix) -> str:
    """A closed line; its first step leads to its place, whatever was drawn before."""
    return "M" + path_of(points[:-1], closed=True)[1:]


def _cells(pair: Any, frame: Frame) -> dict[float, str]:
    """Dots for the cells with rows of the data, by their width, whose square grows with the number of rows.

    A dot is a line of no length with round ends: a tenth of what a circle takes to write.
    """
    if not pair["counts"]:
        return {}
    counts = np.array(pair["counts"])
    middles = [_middles(pair[axis], n) for axis, n in zip("xy", counts.shape, strict=True)]
    largest, dots = max(int(counts.max()), 1), dict[float, list[str]]()
    for i, j in np.argwhere(counts):
        step = ceil(DOT_SIZES * sqrt(counts[i, j] / largest))
        place = f"M{number(frame.across(middles[0][i]))} {number(frame.up(middles[1][j]))}h0"
        dots.setdefault(LARGEST_DOT * step / DOT_SIZES, []).append(place)
    return {width: "".join(places) for width, places in sorted(dots.items())}


def _middles(ends: Sequence[float], n: int) -> Vector:
    edges = spaced(ends, n + 1)
    return (edges[:-1] + edges[1:]) / 2


# --- how sure, how good ----------------------------------------------------------------------------------------


def distances(runners: Sequence[Any]) -> dict[str, Any]:
    """The runners-up: nats below the best against splits and merges."""
    far, most = max(one["below"] for one in runners), max(one["edits"] for one in runners)
    frame = Frame((-0.4, most + 0.6), (1.08 * far or 1.0, 0.0), (420.0, 210.0))
    dots = [{"x": frame.across(one["edits"]), "y": frame.up(one["below"]), "rank": one["rank"]} for one in runners]
    drawn = frame.drawn | {
        "x_ticks": [(frame.across(i), str(i)) for i in range(most + 1)],
        "y_ticks": [(frame.up(value), label) for value, label in ticks(0.0, 1.08 * far)],
    }
    return {"frame": drawn, "dots": dots, "best": {"x": frame.across(0), "y": frame.up(0)}}


def differences(methods: Sequence[Any]) -> dict[str, Any]:
    """What each method scores less than the best, with two standard errors on either side."""
    known = [method for method in methods if method["difference"] is not None]
    reach = [abs(m["difference"]) + 2 * (m["difference_standard_error"] or 0.0) for m in known]
    frame = Frame((-1.05 * max([*reach, 1e-9]), 0.05 * max([*reach, 1e-9])), (0, 1), (420.0, 24.0 * len(known) + 42))
    rows = []
    for i, method in enumerate(known):
        error = 2 * (method["difference_standard_error"] or 0.0)
        at = method["difference"]
        rows.append(
            {
                "method": method["method"],
                "y": 18 + 24 * i,
                "x": frame.across(at),
                "low": frame.across(at - error),
                "high": frame.across(at + error),
            }
        )
    return {"frame": frame.drawn, "rows": rows, "zero": frame.across(0.0)}
