"""Where the columns of blocks stand in a diagram: geometry alone, for figures and for pages.

Blocks are cards in rows, as wide as their labels need, and columns stand in a circle on each, their labels left and
right of it. Single columns follow in rows of their own. Lengths are in units of which a letter takes about 7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from isde.errors import printable
from isde.subsets import Subset

LETTER, LINE, MARGIN, GAP, HEAD = 7.3, 15.0, 12.0, 14.0, 24.0
TREE_ROW = 64.0
LEAST_RADIUS, MOST_LETTERS, ALONE_HEIGHT = 30.0, 16, 26.0


@dataclass(frozen=True)
class Node:
    """A column."""

    column: int
    x: float
    y: float
    side: int  # of its label: -1 left, 1 right


@dataclass(frozen=True)
class Card:
    """A block of several columns, or a single column."""

    place: int  # which block
    x: float  # of its upper left corner
    y: float
    width: float
    height: float
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Diagram:
    """Cards, and the room they take."""

    width: float
    height: float
    cards: tuple[Card, ...]

    @property
    def nodes(self) -> dict[int, Node]:
        """The columns, by number."""
        return {node.column: node for card in self.cards for node in card.nodes}


def short(name: str, letters: int = MOST_LETTERS) -> str:
    """A name that fits, without control codes: no font has them, and a drawing as XML may not.

    >>> short("temperature_of_the_room"), short("CD4"), short("a\\x1b")
    ('temperature_of_…', 'CD4', 'a\\\\x1b')
    """
    name = printable(name)
    return name if len(name) <= letters else name[: letters - 1] + "…"


def place_blocks(blocks: Sequence[Subset], names: Sequence[str], width: float, order: Sequence[int] = ()) -> Diagram:
    """Blocks of several columns in rows of at most `width`, then the single ones; in `order`, or as they come."""
    order = list(order) or list(range(len(blocks)))
    several = [_card(i, blocks[i], names) for i in order if len(blocks[i]) > 1]
    alone = [_chip(i, blocks[i], names) for i in order if len(blocks[i]) == 1]
    cards: list[Card] = []
    y = _rows(several, width, 0.0, cards)
    y = _rows(alone, width, y, cards)
    widest = max((card.x + card.width for card in cards), default=0.0)
    return Diagram(widest, y, tuple(cards))


def _rows(some: Sequence[Card], width: float, y: float, placed: list[Card]) -> float:
    """Put cards in rows from `y` on; where the next row would begin."""
    row: list[Card] = []
    for card in some:
        if row and sum(one.width + GAP for one in row) + card.width > width:
            y = _close(row, y, placed)
            row = []
        row.append(card)
    return _close(row, y, placed) if row else y


def _close(row: Sequence[Card], y: float, placed: list[Card]) -> float:
    x, height = 0.0, max(card.height for card in row)
    for card in row:
        # All cards of a row are as high as the highest; circles stand in their middle.
        down = y + (height - card.height) / 2
        nodes = tuple(Node(node.column, node.x + x, node.y + down, node.side) for node in card.nodes)
        placed.append(Card(card.place, x, y, card.width, height, nodes))
        x += card.width + GAP
    return y + height + GAP


def _card(place: int, block: Subset, names: Sequence[str]) -> Card:
    radius = max(LEAST_RADIUS, LINE * len(block) / pi)
    angles = _angles(len(block))
    widths = {side: _label_width(block, angles, names, side) for side in (-1, 1)}
    width = widths[-1] + widths[1] + 2 * (radius + MARGIN + 8)
    height = HEAD + 2 * (radius * max(abs(sin(angle)) for angle in angles) + MARGIN + 4)
    x, y = widths[-1] + radius + MARGIN + 8, HEAD + (height - HEAD) / 2
    nodes = [
        Node(column, x + radius * cos(angle), y + radius * sin(angle), 1 if cos(angle) > 0 else -1)
        for column, angle in zip(block, angles, strict=True)
    ]
    return Card(place, 0.0, 0.0, max(width, 118.0), height, tuple(nodes))


def _angles(n: int) -> list[float]:
    """Equally spaced, turned so that none stands straight above or below the middle: labels have a side."""
    turns = [pi * t / (12 * n) for t in range(24)]
    turn = max(turns, key=lambda t: round(min(abs(cos(t + 2 * pi * i / n)) for i in range(n)), 9))
    return [pi + turn + 2 * pi * i / n for i in range(n)]


def _label_width(block: Subset, angles: Sequence[float], names: Sequence[str], side: int) -> float:
    own = [names[c] for c, angle in zip(block, angles, strict=True) if (cos(angle) > 0) == (side > 0)]
    return max((LETTER * len(short(name)) for name in own), default=0.0)


def _chip(place: int, block: Subset, names: Sequence[str]) -> Card:
    width = 24 + LETTER * len(short(names[block[0]])) + 8
    return Card(place, 0.0, 0.0, width, ALONE_HEIGHT, (Node(block[0], 12.0, ALONE_HEIGHT / 2, 1),))


# --- trees of cliques ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A clique, by the middle of its box."""

    x: float
    y: float
    width: float


@dataclass(frozen=True)
class BoxTree:
    """Boxes, each below the one it hangs on, and the room they take."""

    width: float
    height: float
    boxes: dict[int, Box]


def place_tree(labels: Sequence[str], parents: dict[int, int]) -> BoxTree:
    """Boxes for all that hangs on something or has something hanging on it; each above the middle of what it carries.

    >>> tree = place_tree(["a, b", "b, c", "b, d", "e"], {1: 0, 2: 0})
    >>> sorted(tree.boxes), tree.boxes[1].y > tree.boxes[0].y, tree.boxes[1].y == tree.boxes[2].y
    ([0, 1, 2], True, True)
    """
    below: dict[int, list[int]] = {}
    for place, parent in parents.items():
        below.setdefault(parent, []).append(place)
    boxes: dict[int, Box] = {}

    def put(place: int, depth: int, left: float) -> float:
        """Where the next box may begin."""
        right, width = left, LETTER * len(labels[place]) + 22
        for child in below.get(place, ()):
            right = put(child, depth + 1, right)
        right = max(right, left + width + GAP)
        boxes[place] = Box((left + right - GAP) / 2, 16 + TREE_ROW * depth, width)
        return right

    right = 0.0
    for root in sorted(set(below) - set(parents)):
        right = put(root, 0, right)
    return BoxTree(right, max((box.y for box in boxes.values()), default=0.0) + TREE_ROW / 2, boxes)
