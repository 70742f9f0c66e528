"""Clusters: real schedulers and worker processes, of which some die; the bits of one process alone."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.mixture import GaussianMixture

import isde
from isde import ISDE, cluster
from isde.errors import ClusterError, InputError
from isde.run import clusters
from isde.run.folder import LOG_FILE
from isde.run.log import read_frames

pytestmark = [
    pytest.mark.cluster,
    # What clusters leave to the garbage collector is theirs.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning",
                               "ignore::pytest.PytestUnraisableExceptionWarning"),
]  # fmt: skip


class Slow(GaussianMixture):
    """Long enough to be killed at, and says who does it."""

    def __init__(self, folder=None):
        self.folder = folder
        super().__init__(1, random_state=0)

    def fit(self, X, y=None):
        if self.folder is not None:
            (Path(self.folder) / f"{os.getpid()}").touch()
            time.sleep(0.1)
        return super().fit(X)


@pytest.fixture(name="X")
def four_columns(rng):
    return rng.normal(size=(60, 4))


def fit(X, marginal, **options):
    return ISDE(3, marginal=marginal, split="density", random_state=0, n_jobs=1, **options).fit(X)


def bits(model):
    table = model.subset_scores_
    return [v.tobytes() for v in (table.scores, table.bandwidths, table.errors, table.charges)], model.partition_


def most_begun_and_not_kept(folder):
    """Tasks begun by the cluster in use beyond those whose results were kept, at most."""

    def begin(task, means):
        (folder / str(task)).touch()
        return task

    most = 0
    for n_kept, _ in enumerate(clusters.choose_executor(None).map(begin, range(12), lambda task: lambda share: None)):
        time.sleep(0.1)  # in which any number could be begun
        most = max(most, len(list(folder.iterdir())) - n_kept)
    return most


@contextmanager
def killing(folder, n):
    """Kill the first n processes that do something, as soon as they do."""

    def watch():
        while not stop.is_set() and len(killed) < n:
            for path in folder.iterdir():
                if path.name not in killed and len(killed) < n:
                    killed.add(path.name)
                    os.kill(int(path.name), signal.SIGKILL)
            time.sleep(0.02)

    killed, stop = set(), threading.Event()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


# --- Dask ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as own,
        Client(own, set_as_default=True) as client,
    ):
        yield client


@pytest.mark.parametrize("marginal", ["kde", "copula", "stack"])
def test_dask_gives_the_bits_of_one_process(X, client, marginal, tmp_path):
    alone = fit(X, marginal)
    with cluster(client.scheduler.address):
        assert bits(fit(X, marginal, checkpoint=tmp_path / "run")) == bits(alone)
    log = tmp_path / "run" / LOG_FILE
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    with cluster(client.scheduler.address):
        assert bits(fit(X, marginal, checkpoint=tmp_path / "run")) == bits(alone)


def test_no_worker_of_dask_begins_a_task_before_what_it_found_last_was_kept(client, tmp_path):
    with cluster(client.scheduler.address):
        assert most_begun_and_not_kept(tmp_path) == 2


def test_joblibs_dask_backend_is_the_same_cluster(X, client, monkeypatch):
    used = []
    executor = clusters.DaskExecutor
    monkeypatch.setattr(clusters, "DaskExecutor", lambda client: used.append(client) or executor(client))
    with parallel_config("dask"):
        assert bits(fit(X, "kde")) == bits(fit(X, "kde"))
    assert used
    assert bits(fit(X, "kde")) == bits(fit(X, "kde"))


@pytest.mark.parametrize("n_killed", [1, 2], ids=["one worker", "all workers"])
def test_killed_workers_of_dask_are_replaced_and_the_run_ends_with_the_same_bits(X, client, tmp_path, n_killed):
    with killing(tmp_path, n_killed) as killed, cluster(client.scheduler.address):
        found = fit(X, Slow(str(tmp_path)))
    assert len(killed) == n_killed
    assert bits(found) == bits(fit(X, Slow()))


def test_errors_of_tasks_are_raised_as_they_are(X, client):
    class Failing(GaussianMixture):
        def fit(self, X, y=None):
            raise ValueError("no")

    with cluster(client.scheduler.address), pytest.raises(isde.errors.ISDEError, match="Failing failed on columns"):
        fit(X, Failing())


def test_no_scheduler_is_said_in_a_sentence(X):
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with (
        pytest.raises(ClusterError, match=r"No Dask scheduler answers at 'tcp://127.0.0.1:9'"),
        cluster("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_lost_scheduler_ends_the_run_which_goes_on_elsewhere(tmp_path):
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    names, rows = "abcdefghijkl", np.random.default_rng(0).normal(size=(400, 12))
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header=",".join(names), comments="")
    environment = os.environ | {"PYTHONPATH": str(Path(isde.__file__).parents[1])}
    options = {"cwd": tmp_path, "env": environment, "stderr": subprocess.PIPE, "text": True}
    fit = [sys.executable, "-m", "isde", "fit", "data.csv", "-o", "run", "--marginal", "stack", "-k", "2"]
    start = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with subprocess.Popen(start, **options) as scheduler:
        address = next(found[0] for line in scheduler.stderr if (found := re.search(r"tcp://127.0.0.1:\d+", line)))
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()
        join = [sys.executable, "-m", "dask", "worker", address, "--nthreads", "1", "--no-dashboard"]
        worker = subprocess.Popen(join, **options | {"stderr": subprocess.DEVNULL})
        try:
            with subprocess.Popen([*fit, "--cluster", address], stdout=subprocess.PIPE, **options) as run:
                log = tmp_path / "run" / LOG_FILE
                for _ in range(2400):
                    if log.exists() and len(read_frames(log)[0]) >= 2:
                        break
                    time.sleep(0.05)
                scheduler.kill()
                out, err = run.communicate(timeout=300)
        finally:
            worker.kill()
            worker.wait()
    assert run.returncode == 5, err
    assert out == ""
    assert "Traceback" not in err
    assert re.search(r"Error: The scheduler .* is lost: what was scored is kept", err)
    kept = len(read_frames(log)[0])
    again = subprocess.run(fit, stdout=subprocess.PIPE, check=False, **options)
    assert again.returncode == 0, again.stderr
    assert re.search(rf"of the subsets were scored before \({kept} of [\d,]+ chunks\)", again.stderr)


PATIENCE_SECONDS = 10.0
"""For processes to be gone that were killed; Ray's own stay for half a minute where nobody ends them."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(("where", "needs"), [("local", "distributed"), ("ray", "ray")])
def test_a_stopped_run_leaves_no_process_of_its_cluster_and_one_word(tmp_path, where, needs, number):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    names, rows = "abcdefghijkl", np.random.default_rng(0).normal(size=(400, 12))
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header=",".join(names), comments="")
    fit = [sys.executable, "-m", "isde", "fit", "data.csv", "-o", "run", "-k", "2"]
    environment = os.environ | {"PYTHONPATH": str(Path(isde.__file__).parents[1])}
    said = tmp_path / "said"  # no pipe: its end would wait for whoever is left
    with said.open("w") as file:
        run = subprocess.Popen(
            [*fit, "--cluster", where, "--jobs", "2"], cwd=tmp_path, env=environment, start_new_session=True,
            stdout=file, stderr=file,
        )  # fmt: skip
    log = tmp_path / "run" / LOG_FILE
    while run.poll() is None and not (log.exists() and len(read_frames(log)[0]) >= 1):
        time.sleep(0.05)
    time.sleep(1)  # Ray's own processes have begun
    run.send_signal(number)
    assert run.wait(60) == 128 + number, said.read_text()
    assert re.search(r"splits\n(Measuring.*\n)?\nStopped\.\n$", said.read_text()), said.read_text()
    ends = time.monotonic() + PATIENCE_SECONDS
    while left := _session_of(run.pid):
        assert time.monotonic() < ends, left
        time.sleep(0.1)


def _session_of(pid):
    """Processes that were started by one, as the system has them."""
    found = subprocess.run(["ps", "-o", "args=", "-g", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.splitlines()


def test_a_cluster_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(clusters, "find_spec", lambda name: None)
    for where, extra in (("local", "dask"), ("tcp://a:1", "dask"), ("ray", "ray")):
        with pytest.raises(InputError, match=rf"is not installed: pip install 'isde\[{extra}\]'"), cluster(where):
            pass


# --- Ray -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray_here():
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    place = str(Path(__file__).parent)
    os.environ.setdefault("RAY_worker_niceness", "0")  # as `cluster` does
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": f"{Path(isde.__file__).parents[1]}:{place}"}})  # fmt: skip
    yield ray
    ray.shutdown()


@pytest.mark.parametrize("marginal", ["kde", "copula"])
def test_ray_gives_the_bits_of_one_process(X, ray_here, marginal, tmp_path):
    with cluster("ray"):
        found = fit(X, marginal, checkpoint=tmp_path / "run")
    assert bits(found) == bits(fit(X, marginal))


def test_no_worker_of_ray_begins_a_task_before_what_it_found_last_was_kept(ray_here, tmp_path):
    with cluster("ray"):
        assert most_begun_and_not_kept(tmp_path) == 2


def test_a_killed_worker_of_ray_is_replaced_and_the_run_ends_with_the_same_bits(X, ray_here, tmp_path):
    with killing(tmp_path, 1) as killed, cluster("ray"):
        found = fit(X, Slow(str(tmp_path)))
    assert len(killed) == 1
    assert bits(found) == bits(fit(X, Slow()))


def test_joblibs_ray_backend_is_refused_with_the_reason(X, ray_here):
    from ray.util.joblib import register_ray

    register_ray()
    with parallel_config("ray"), pytest.raises(ValueError, match=r"first worker that it loses.*isde.cluster\('ray'\)"):
        fit(X, "kde")
