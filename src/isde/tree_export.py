"""The graph of a tree of blocks as a file: GraphML and DOT, an edge for all pairs of columns that share a clique.

Columns are numbered nodes, n0, n1 and so on, with their name as an attribute: names may hold what neither format allows
in an identifier.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from isde.errors import InputError, printable
from isde.files import whole_file
from isde.tree_gains import EdgeGain
from isde.trees import Tree

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"

NUMBERS = ("gain", "error", "chance", "pair_gain")
"""Of an edge, in the words of `EdgeGain`; `given` comes beside them, as names."""

NOT_IN_XML = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, other codes that a terminal obeys, and carriage returns, of which readers make line ends."""


def to_graphml(path: str | Path, tree: Tree, names: Sequence[str], gains: Sequence[EdgeGain] = ()) -> None:
    """Write the graph as GraphML, which networkx, Gephi, Cytoscape and yEd read.

    Nodes have a `name` and the number of their `component`; edges, where gains are given, `gain`, `error`, `chance`,
    `pair_gain` and the names they are `given`. Numbers that are not known are left out.
    """
    top = ElementTree.Element("graphml", xmlns=NAMESPACE)
    keys = [("name", "node", "string"), ("component", "node", "int"), ("given", "edge", "string")]
    for name, place, kind in [*keys, *((name, "edge", "double") for name in NUMBERS)]:
        ElementTree.SubElement(top, "key", {"id": name, "for": place, "attr.name": name, "attr.type": kind})
    graph = ElementTree.SubElement(top, "graph", id="tree", edgedefault="undirected")
    for column, name in enumerate(names):
        node = ElementTree.SubElement(graph, "node", id=f"n{column}")
        _data(node, "name", name)
        _data(node, "component", str(_component(tree, column)))
    found = {one.edge: one for one in gains}
    for a, b in tree.edges:
        edge = ElementTree.SubElement(graph, "edge", source=f"n{a}", target=f"n{b}")
        for name, text in _attributes(found.get((a, b)), names).items():
            _data(edge, name, text)
    ElementTree.indent(top)
    _write(path, ElementTree.tostring(top, encoding="utf-8", xml_declaration=True) + b"\n")


def to_dot(path: str | Path, tree: Tree, names: Sequence[str], gains: Sequence[EdgeGain] = ()) -> None:
    """Write the graph in Graphviz's language; attributes as in `to_graphml`, and the name as `label`."""
    found = {one.edge: one for one in gains}
    lines = ["graph tree {"]
    for column, name in enumerate(names):
        lines.append(f"  n{column} [label={_quoted(name)}, component={_component(tree, column)}];")
    for a, b in tree.edges:
        known = _attributes(found.get((a, b)), names)
        attributes = ", ".join(f"{name}={_quoted(text)}" for name, text in known.items())
        lines.append(f"  n{a} -- n{b} [{attributes}];" if attributes else f"  n{a} -- n{b};")
    _write(path, "\n".join([*lines, "}", ""]).encode("utf-8", "backslashreplace"))


def _component(tree: Tree, column: int) -> int:
    return next(number for number, columns in enumerate(tree.components) if column in columns)


def _attributes(one: EdgeGain | None, names: Sequence[str]) -> dict[str, str]:
    """Of an edge, as text."""
    if one is None:
        return {}
    numbers = {name: getattr(one, name) for name in NUMBERS}
    known = {name: repr(value) for name, value in numbers.items() if math.isfinite(value)}
    return known | ({"given": ", ".join(names[column] for column in one.given)} if one.given else {})


def _data(parent: ElementTree.Element, key: str, text: str) -> None:
    element = ElementTree.SubElement(parent, "data", key=key)
    element.text = NOT_IN_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _quoted(text: str) -> str:
    """A string of Graphviz, in which backslashes and quotes stand for themselves, and other codes for their escapes.

    >>> print(_quoted('a "b" \\\\c'))
    "a \\"b\\" \\\\c"
    """
    lines = [printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'


def check_place(path: Path) -> None:
    """Refuse a file in a folder that does not exist."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.parent} is no folder: create it first, or write somewhere else.")


def _write(path: str | Path, content: bytes) -> None:
    path = Path(path)
    check_place(path)
    with whole_file(path) as file:
        file.write(content)
