"""A witness as a file keeps it: plain lists, steps in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isde.tree_solvers.cuts import AnyCut, Cut
from isde.tree_solvers.witness import Step, TreeWitness


def as_plain(witness: TreeWitness) -> dict[str, Any]:
    """Steps one after another, each with the number of those that it goes on with: they may nest deeply."""
    steps, waiting = [], [witness.first]
    while waiting:
        step = waiting.pop()
        steps.append(
            {
                "cuts": [[list(cut.base), list(cut.columns), list(cut.held)] for cut in step.cuts],
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
        cuts = tuple(Cut(*(tuple(int(c) for c in columns) for columns in cut)) for cut in step["cuts"])
        edge = None if step["edge"] is None else (int(step["edge"][0]), int(step["edge"][1]))
        done.append(Step(cuts, np.array(step["prices"], dtype=np.int64), edge, rest))
    (first,) = done
    return TreeWitness(first, float(plain["known"]), int(plain["bits"]))
