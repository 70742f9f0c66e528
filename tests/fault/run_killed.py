"""kill -9 at a random moment, in one of three cases with the end of the log torn off; then on, until the run is done.

The bits of a run that was left alone, and at most one chunk of each worker done again (two where records were torn off).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 200, 20

JOBS = 2
AT_A_TIME = 5
"""Kills of one run, after which it is left to end."""

MARGINALS = ("kde", "copula+stack")


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    runs.write_rows(folder)
    alone, chunks = {}, {}
    for marginal in MARGINALS:
        whole = folder / f"alone-{marginal}"
        if runs.start(whole, jobs=JOBS, marginal=marginal) != 0:
            raise RuntimeError("a run that is left alone fails")
        alone[marginal], chunks[marginal] = runs.outcome(whole), runs.n_scored(whole)
    for first in range(0, tries, AT_A_TIME):
        marginal = MARGINALS[first // AT_A_TIME % len(MARGINALS)]
        kills = min(AT_A_TIME, tries - first)
        yield from _one_run(folder / f"run-{first}", marginal, alone[marginal], chunks[marginal], kills, rng)


def _one_run(
    place: Path, marginal: str, alone: dict[str, str], n_chunks: int, kills: int, rng: np.random.Generator
) -> Iterator[str | None]:
    """Each kill is one try; where the end is not as it should be, all of them are lost."""
    killed = torn = 0
    for kill in range(kills):
        code = runs.start(place, f"{rng.uniform(0, 0.25):.4f}", jobs=JOBS, marginal=marginal)
        if code not in (0, -9):
            yield from [f"{place}: exit code {code} after {kill} kills"] * kills
            return
        killed += code == -9
        if code == -9 and kill % 3 == 2:
            torn += 1
            runs.tear(place / "scores.log", rng)
    if runs.start(place, jobs=JOBS, marginal=marginal) != 0:
        yield from [f"{place}: does not go on after {kills} kills"] * kills
        return
    found, again = runs.outcome(place), runs.n_scored(place) - n_chunks
    different = [name for name in alone if found[name] != alone[name]]
    # A record that was torn off is done again whoever was killed: 400 bytes may be two small ones.
    allowed = JOBS * killed + 2 * torn
    complaint = None
    if different:
        complaint = f"{place}: other bits of {', '.join(different)} after {killed} kills"
    elif again > allowed:
        complaint = f"{place}: {again} of {n_chunks} chunks were done again after {killed} kills, {torn} torn tails"
    yield from [complaint] * kills
