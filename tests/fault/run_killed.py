"""kill -9 at a random moment, in one of three cases with the end of the log torn off; then on, until the run is done.

The bits of a run that was left alone, and at most one chunk of each worker done again: at each kill no more chunks are
begun and not in the log than there are workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 200, 20

JOBS, AT_A_TIME, LONGEST = 2, 5, 0.3
"""Workers; kills of one run, after which it is left to end; seconds after its first record that a run lives at most."""

CASES = (("kde", "blocks"), ("copula+stack", "blocks"), ("kde", "screened"), ("kde", "tree"))
"""Marginals and structures: candidates of a screened run follow from scores that were there."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    with runs.killable(folder, jobs=JOBS) as program:
        alone = {}
        for case in CASES:
            whole = folder / f"alone-{'-'.join(case)}"
            if program.start(whole, **_options(case)) != 0:
                raise RuntimeError("a run that is left alone fails")
            alone[case] = runs.outcome(whole)
        for number, first in enumerate(range(0, tries, AT_A_TIME)):
            case = CASES[number % len(CASES)]
            kills = min(AT_A_TIME, tries - first)
            complaint = _one_run(program, folder / f"run-{first}", case, alone[case], kills, rng)
            yield from [complaint] * kills  # of a run that ends otherwise, no kill was survived


def _options(case: tuple[str, str]) -> dict[str, str]:
    marginal, structure = case
    return {"marginal": marginal, "structure": structure}


def _one_run(
    program: runs.Killable,
    place: Path,
    case: tuple[str, str],
    alone: dict[str, str],
    kills: int,
    rng: np.random.Generator,
) -> str | None:
    """None for the bits of a run that was left alone, with as few chunks done again as is promised."""
    killed = n_begun = n_kept = 0
    while killed < kills:
        code = program.start(place, **_options(case), seconds=float(rng.uniform(0, LONGEST)))
        if code == 0:  # it was done before its time: begin anew
            (place / "scores.log").unlink()
            n_begun, n_kept = runs.n_begun(place), 0
            continue
        if code != -9:
            return f"{place}: exit code {code} after {killed} kills"
        killed += 1
        lost = runs.n_begun(place) - n_begun - (runs.n_kept(place) - n_kept)
        if lost > JOBS:
            return f"{place}: {lost} chunks were lost with kill {killed}"
        if killed % 3 == 0:
            runs.tear(place / "scores.log", rng)
        n_begun, n_kept = runs.n_begun(place), runs.n_kept(place)
    if program.start(place, **_options(case)) != 0:
        return f"{place}: does not go on after {killed} kills"
    found, more = runs.outcome(place), runs.n_begun(place) - n_begun - (runs.n_kept(place) - n_kept)
    different = [name for name in alone if found[name] != alone[name]]
    if different:
        return f"{place}: other bits of {', '.join(different)} after {killed} kills"
    return f"{place}: {more} chunks were done twice after {killed} kills" if more else None
