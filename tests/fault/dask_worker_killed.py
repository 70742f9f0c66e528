"""One worker of a Dask cluster killed, or both, at a random moment: the bits of one process alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .clusters import tries_with_kills

NEEDS = "distributed"

TRIES, FEW = 4, 2


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    from distributed import LocalCluster

    from isde import cluster

    logging.disable(logging.CRITICAL)
    try:
        alone = {"host": "127.0.0.1", "dashboard_address": None}
        with LocalCluster(2, threads_per_worker=1, **alone) as own, cluster(own.scheduler_address):
            yield from tries_with_kills(tries, folder, rng, most=2)
    finally:
        logging.disable(logging.NOTSET)
