"""Who does the work: a cluster, where one is in use, or this machine."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from multiprocessing import resource_tracker

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from isde.errors import ClusterError, InputError
from isde.run.dask_cluster import DaskExecutor
from isde.run.executors import Executor, LocalExecutor
from isde.run.ray_cluster import RayExecutor

RAY_SETTINGS = {"RAY_worker_niceness": "0", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}
"""Ray's own: 15 starves workers where anything else runs; what it does with SIGTERM prints a page, or aborts."""

_in_use: ContextVar[Executor | None] = ContextVar("isde_cluster", default=None)


def choose_executor(n_jobs: int | None, in_processes: bool = False, *, shares: bool = True) -> Executor:
    """The cluster in use, by `cluster` or by `joblib.parallel_config("dask")`, or workers of this machine."""
    cluster = _in_use.get()
    if cluster is not None:
        return cluster
    backend, _ = get_active_backend()
    kind = type(backend).__name__
    if kind == "DaskDistributedBackend":
        return DaskExecutor(backend.client)
    if kind == "RayBackend":
        raise ValueError(
            "joblib's Ray backend ends with the first worker that it loses, and gives no result before the last one: "
            "use isde.cluster('ray') instead of parallel_config('ray')."
        )
    return LocalExecutor(n_jobs, in_processes, shares)


@contextmanager
def cluster(where: str, n_jobs: int | None = -1) -> Iterator[None]:
    """Subsets are scored there in the block.

    "tcp://scheduler:8786" is the scheduler of a Dask cluster, "local" one of `n_jobs` processes on this machine, and
    "ray" the Ray cluster of RAY_ADDRESS, or one of `n_jobs` processes here. What is sent to a cluster is pickled:
    whoever can connect to its scheduler can run code on it.
    """
    with _ray(n_jobs) if where == "ray" else _dask(where, n_jobs) as executor:
        before = _in_use.set(executor)
        try:
            yield
        finally:
            _in_use.reset(before)


@contextmanager
def _silenced() -> Iterator[None]:
    """What Dask logs of lost connections, pages of it, is said in a sentence where it matters."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in (*names, "asyncio")]  # each has a level of its own
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _dask(where: str, n_jobs: int | None) -> Iterator[Executor]:
    _needs("distributed", "dask")
    from distributed import Client, LocalCluster

    if where == "local":
        workers = {"n_workers": effective_n_jobs(n_jobs), "threads_per_worker": 1}
        # Nobody else can connect, and no page is served.
        alone = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.ERROR}
        _have_leaks_removed()
        with _silenced(), LocalCluster(**alone, **workers) as own, Client(own) as client:
            yield DaskExecutor(client)
        return
    with _silenced():
        try:
            client = Client(where, timeout=10, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            why = f"No Dask scheduler answers at {where!r} ({error})"
            raise ClusterError(f"{why}: start one, or use 'local'.") from error
        with client:
            yield DaskExecutor(client)


def _have_leaks_removed() -> None:
    """Begin the process that removes what workers leave that are killed: without a word, where isde stops them."""
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.pop()


@contextmanager
def _ray(n_jobs: int | None) -> Iterator[Executor]:
    _needs("ray", "ray")
    for name, value in RAY_SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    started = not ray.is_initialized()
    if started:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        with _sigterm_as_before():
            try:
                ray.init(num_cpus=effective_n_jobs(n_jobs), include_dashboard=False, **quiet)
            except ValueError:  # RAY_ADDRESS names a cluster, which has its own number of cores
                ray.init(**quiet)
    try:
        yield RayExecutor()
    finally:
        if started:
            ray.shutdown()


@contextmanager
def _sigterm_as_before() -> Iterator[None]:
    """Whoever heard SIGTERM hears it again after the block, and what came in it: Ray takes it for itself, and exits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        signal.signal(signal.SIGTERM, before)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def _needs(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise InputError(f"{module} is not installed: pip install 'isde[{extra}]'.")
