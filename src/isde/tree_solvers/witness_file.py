"""A witness as a file keeps it: plain lists, steps in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from isde.subsets import Subset
from isde.tree_solvers.classes import Classes
from isde.tree_solvers.clutters import Clutter
from isde.tree_solvers.cuts import AnyCut, Cut
from isde.tree_solvers.witness import Step, TreeWitness


def as_plain(witness: TreeWitness) -> dict[str, Any]:
    """Steps one after another, each with the number of those that it goes on with: they may nest deeply."""
    steps, waiting = [], [witness.first]
    while waiting:
        step = waiting.pop()
        steps.append(
            {
                "cuts": [_plain_cut(cut) for cut in step.cuts],
                "prices": step.prices.tolist(),
                "edge": None if step.edge is None else list(step.edge),
                "rest": len(step.rest),
            }
        )
        waiting.extend(reversed(step.rest))
    return {"known": witness.known, "bits": witness.bits, "steps": steps}


def from_plain(plain: Mapping[str, Any]) -> TreeWitness:
    """The witness that was written; what it proves is for `witness.verify` to say."""
    done: list[Step] = []
    for step in reversed(plain["steps"]):
        rest = tuple(done.pop() for _ in range(int(step["rest"])))
        cuts = tuple(_cut(cut) for cut in step["cuts"])
        edge = None if step["edge"] is None else (int(step["edge"][0]), int(step["edge"][1]))
        done.append(Step(cuts, np.array(step["prices"], dtype=np.int64), edge, rest))
    (first,) = done
    return TreeWitness(first, float(plain["known"]), int(plain["bits"]))


def _plain_cut(cut: AnyCut) -> Any:
    """A list of three lists, or what the other kinds of cuts are made of by name."""
    if isinstance(cut, Cut):
        return [list(cut.base), list(cut.columns), list(cut.held)]
    if isinstance(cut, Clutter):
        return {"columns": list(cut.columns), "pairs": [list(pair) for pair in cut.pairs], "one": list(cut.one)}
    return {"classes": [list(one) for one in cut.classes], "rank": cut.rank}


def _cut(plain: Any) -> AnyCut:
    if not isinstance(plain, Mapping):
        return Cut(*map(_columns, plain))
    if "classes" in plain:
        return Classes(tuple(map(_columns, plain["classes"])), int(plain["rank"]))
    pairs = tuple((int(a), int(b)) for a, b in plain["pairs"])
    return Clutter(_columns(plain["columns"]), pairs, _columns(plain["one"]))


def _columns(plain: Iterable[Any]) -> Subset:
    return tuple(int(column) for column in plain)
