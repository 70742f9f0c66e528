"""kill -9 at a random moment, in one of three cases with the end of the log torn off; then on, until the run is done.

The bits of a run that was left alone, and at most one chunk of each worker done again. A table of chance is one chunk
of the store and 36 of the count (12 splits by three models).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import runs

TRIES, FEW = 200, 20

JOBS, AT_A_TIME, LONGEST = 2, 5, 0.3
"""Workers; kills of one run, after which it is left to end; seconds after its first record that a run lives at most."""

MARGINALS = {"kde": 1, "copula+stack": 36}
"""How many are counted where one chunk is lost, at most."""

TORN_RECORDS = 3
"""Of 400 bytes torn off."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    with runs.killable(folder, jobs=JOBS) as program:
        alone, chunks = {}, {}
        for marginal in MARGINALS:
            whole = folder / f"alone-{marginal}"
            if program.start(whole, marginal=marginal) != 0:
                raise RuntimeError("a run that is left alone fails")
            alone[marginal], chunks[marginal] = runs.outcome(whole), runs.n_scored(whole)
        for number, first in enumerate(range(0, tries, AT_A_TIME)):
            marginal = list(MARGINALS)[number % len(MARGINALS)]
            kills = min(AT_A_TIME, tries - first)
            complaint = _one_run(
                program, folder / f"run-{first}", marginal, alone[marginal], chunks[marginal], kills, rng
            )
            yield from [complaint] * kills  # of a run that ends otherwise, no kill was survived


def _one_run(
    program: runs.Killable,
    place: Path,
    marginal: str,
    alone: dict[str, str],
    n_chunks: int,
    kills: int,
    rng: np.random.Generator,
) -> str | None:
    """None for the bits of a run that was left alone."""
    killed = torn = 0
    while killed < kills:
        code = program.start(place, marginal=marginal, seconds=float(rng.uniform(0, LONGEST)))
        if code == 0:  # it was done before its time: begin anew
            (place / "scores.log").unlink()
            Path(f"{place}.scored").write_bytes(b"")
            kills, killed, torn = kills - killed, 0, 0
            continue
        if code != -9:
            return f"{place}: exit code {code} after {killed} kills"
        killed += 1
        if killed % 3 == 0:
            torn += 1
            runs.tear(place / "scores.log", rng)
    if program.start(place, marginal=marginal) != 0:
        return f"{place}: does not go on after {killed} kills"
    found, again = runs.outcome(place), runs.n_scored(place) - n_chunks
    different = [name for name in alone if found[name] != alone[name]]
    if different:
        return f"{place}: other bits of {', '.join(different)} after {killed} kills"
    if again > MARGINALS[marginal] * (JOBS * killed + TORN_RECORDS * torn):
        return f"{place}: {again} of {n_chunks} chunks were done again after {killed} kills, {torn} torn tails"
    return None
