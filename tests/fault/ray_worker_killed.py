"""A worker of a Ray cluster killed at a random moment: the bits of one process alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .clusters import tries_with_kills

NEEDS = "ray"

TRIES, FEW = 4, 1


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    import ray

    from isde import cluster

    os.environ.setdefault("RAY_worker_niceness", "0")  # as `cluster` does
    started = not ray.is_initialized()
    if started:
        paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": paths})
    try:
        with cluster("ray"):
            yield from tries_with_kills(tries, folder, rng, most=1)
    finally:
        if started:
            ray.shutdown()
