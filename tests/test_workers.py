"""Worker processes that die, runs that are stopped, disks and folders that refuse: real processes, real signals."""

import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import isde
from isde import ISDE
from isde.errors import PartialWarning, ResourceError
from isde.run.executors import LocalExecutor
from isde.run.log import read_frames

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals.")


class Once(GaussianMixture):
    """Kills its process at the first subset of three columns, once for each file `flag` and number."""

    def __init__(self, flag=None, deaths=1):
        self.flag, self.deaths = flag, deaths
        super().__init__(1, random_state=0)

    def fit(self, X, y=None):
        if X.shape[1] == 3:
            for number in range(self.deaths):
                try:
                    os.close(os.open(f"{self.flag}-{number}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X)


class Poison(GaussianMixture):
    """Ends its process wherever the first column is far from zero and there are two."""

    def __init__(self, counted=None):
        self.counted = counted
        super().__init__(1, random_state=0)

    def fit(self, X, y=None):
        if X.shape[1] == 2 and X[:, 0].mean() > 5 and X[:, 1].mean() < -5:
            os._exit(7)
        with open(self.counted, "a") as file:
            file.write(".")
        return super().fit(X)


@pytest.fixture(name="X")
def four_columns(rng):
    return rng.normal(size=(60, 4)) + np.array([0, 10, -10, 0])


def fit(X, marginal, **options):
    return ISDE(3, marginal=marginal, split="paper", scale=None, random_state=0, **options).fit(X)


def test_a_killed_worker_does_not_end_the_run(X, tmp_path):
    killed = fit(X, Once(str(tmp_path / "flag"), deaths=2), n_jobs=2)
    alone = fit(X, GaussianMixture(1, random_state=0), n_jobs=1)
    assert len(list(tmp_path.iterdir())) == 2  # it was killed, twice
    assert killed.subset_scores_.scores.tobytes() == alone.subset_scores_.scores.tobytes()


def test_a_chunk_that_kills_its_worker_each_time_is_named_and_all_others_are_done(X, tmp_path):
    counted = tmp_path / "counted"
    with pytest.warns(PartialWarning, match=r"Scoring {x1, x2} ended the process .* \(chunk 6-7\)") as said:
        found = fit(X, Poison(str(counted)), n_jobs=2)
    assert len([one for one in said if one.category is PartialWarning]) == 1
    alone = fit(X, GaussianMixture(1, random_state=0), n_jobs=1).subset_scores_
    lost = found.subset_scores_.subsets.index((1, 2))
    assert found.subset_scores_.scores[lost] == -np.inf
    others = np.arange(len(alone)) != lost
    assert found.subset_scores_.scores[others].tobytes() == alone.scores[others].tobytes()
    assert (1, 2) not in found.partition_
    # Each chunk is one subset here; the other worker's may be lost with each of three deaths; blocks are fitted, too.
    assert len(counted.read_text()) <= len(alone) - 1 + 3 + len(found.partition_)


# --- stopped ---------------------------------------------------------------------------------------------------

SLOW = """
import sys, time
from isde import score_tables
score = score_tables.score_task
def slowly(*arguments):
    time.sleep(0.05)
    return score(*arguments)
score_tables.score_task = slowly
from isde.cli import main
main(prog_name="isde")
"""


def write_rows(folder):
    rng = np.random.default_rng(0)
    np.savetxt(folder / "data.csv", rng.normal(size=(60, 4)), delimiter=",", header="a,b,c,d", comments="")


def command(folder, *options, code=SLOW):
    arguments = ["fit", "data.csv", "-o", "run", "--marginal", "kde", "--jobs", "2", "--alpha", "none", *options]
    environment = os.environ | {"PYTHONPATH": str(Path(isde.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def wait_for_records(folder, n):
    log = folder / "run" / "scores.log"
    for _ in range(2400):
        if log.exists() and len(read_frames(log)[0]) >= n:
            return
        time.sleep(0.05)
    raise AssertionError("the run scores nothing")


def group_of(process):
    """Processes of the group that a run made, itself included."""
    found = subprocess.run(["ps", "-o", "pid=", "-g", str(process.pid)], capture_output=True, text=True, check=False)
    return found.stdout.split()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_stopped_run_leaves_nothing_but_what_it_scored_and_goes_on(tmp_path, number):
    write_rows(tmp_path)
    with command(tmp_path) as process:
        wait_for_records(tmp_path, 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert out == ""
    assert err.splitlines()[-1] == "Stopped."
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"manifest.json", "scores.log", "lock"}
    assert group_of(process) == []
    kept = len(read_frames(tmp_path / "run" / "scores.log")[0])
    assert 3 <= kept < 20
    with command(tmp_path) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert f"of the subsets were scored before ({kept} of 20 chunks)" in err


def test_a_run_that_hears_no_signal_is_ended_all_the_same(tmp_path):
    """Compiled code may not come back to Python for long."""
    write_rows(tmp_path)
    deaf = SLOW.replace("time.sleep(0.05)", "hold_on()").replace(
        "import sys, time",
        "import sys, ctypes\nlibc = ctypes.CDLL(None)\ndef hold_on():\n    libc.usleep(50_000)\n"
        "def for_long():\n    for _ in range(100): libc.sleep(1)\n",
    )
    deaf = deaf.replace("from isde.cli import main", "from isde import estimator\nestimator.select_partition = "
                        "lambda *_, **__: for_long()\nfrom isde.cli import main")  # fmt: skip
    with command(tmp_path, code=deaf) as process:
        wait_for_records(tmp_path, 20)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)  # of the hundred seconds in which it would not hear
    assert process.returncode == 128 + signal.SIGTERM
    assert not list((tmp_path / "run").glob(".*"))


def test_a_stopped_run_does_not_wait_for_python_to_tidy_up(tmp_path):
    """Which takes seconds where much was imported; no thread can end the process then."""
    write_rows(tmp_path)
    untidy = SLOW.replace(
        "from isde import",
        "class Untidy:\n    def __del__(self): time.sleep(600)\nuntidy = Untidy()\nfrom isde import",
        1,
    )
    with command(tmp_path, code=untidy) as process:
        wait_for_records(tmp_path, 3)
        process.send_signal(signal.SIGTERM)
        try:
            _, err = process.communicate(timeout=60)  # of ten minutes
        finally:
            process.kill()
    assert process.returncode == 128 + signal.SIGTERM
    assert err.endswith("Stopped.\n")


IN_WORKERS = {
    "in a chunk": """
    X = np.random.default_rng(0).normal(size=(20, 3))
    ISDE(2, marginal=Endless(), split="paper", random_state=0, n_jobs=2).fit(X)
    """,
    "in a part of a chunk": """
    with parallel_config("loky"), workers(2) as run:
        list(run(begin, [(600,), (600,)]))
    """,
    "idle": """
    with parallel_config("loky"), workers(2) as run:
        list(run(begin, [(0,), (0,)]))
    time.sleep(600)
    """,
}
"""What runs are in the middle of, with processes of loky."""


@pytest.mark.parametrize("where", IN_WORKERS)
def test_workers_end_with_a_run_that_is_killed(tmp_path, where):
    """By itself: joblib's own would be there for five minutes."""
    code = f"""
    import sys, time
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import numpy as np
    from joblib import parallel_config
    from isde import ISDE
    from isde.run.executors import workers
    from test_workers import Endless, begin
    {IN_WORKERS[where]}
    """
    (tmp_path / "run").mkdir()
    with command(tmp_path, code=code) as process:
        for _ in range(1200):
            if len(group_of(process)) >= 3 and (tmp_path / "begun").exists():
                break
            time.sleep(0.05)
        else:
            raise AssertionError("no workers were started")
        process.kill()
    for _ in range(1200):
        if not group_of(process):
            return
        time.sleep(0.05)
    raise AssertionError(f"left behind: {group_of(process)}")


def begin(seconds):
    Path("begun").touch()
    time.sleep(seconds)


class Endless(GaussianMixture):
    def fit(self, X, y=None):
        Path("begun").touch()
        time.sleep(600)


# --- no room ---------------------------------------------------------------------------------------------------


def test_a_disk_that_fills_up_ends_the_run_with_a_sentence_and_it_goes_on_with_more_room(tmp_path):
    write_rows(tmp_path)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    arguments = ["fit", "data.csv", "-o", "run", "--marginal", "kde", "--jobs", "1", "--alpha", "none"]
    environment = os.environ | {"PYTHONPATH": str(Path(isde.__file__).parents[1])}
    call = [sys.executable, "-m", "isde", *arguments]
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "check": False}
    full = subprocess.run(call, preexec_fn=limit, **options)
    assert full.returncode == 5
    assert full.stdout == ""
    message = full.stderr.splitlines()[-1]
    place = re.escape(str(tmp_path / "run" / "scores.log"))
    assert re.match(rf"Error: No room for \d+ more bytes in {place}, [\d,]+ are free: make room; what was", message)
    assert "Traceback" not in full.stderr
    kept = len(read_frames(tmp_path / "run" / "scores.log")[0])
    assert kept > 5
    more = subprocess.run(call, **options)
    assert more.returncode == 0
    assert f"({kept} of 20 chunks)" in more.stderr
    alone = subprocess.run([*call[:6], "alone", *call[7:]], **options)
    assert alone.stdout == more.stdout
    assert (tmp_path / "run" / "model.isde").read_bytes() == (tmp_path / "alone" / "model.isde").read_bytes()


def test_a_table_that_no_machine_holds_is_refused_before_anything_is_allocated(rng):
    X = rng.uniform(size=(20, 5000))
    with pytest.raises(ResourceError, match="max_block_size=3 with 5,000 columns means 20,833,337,500 subsets") as said:
        ISDE(3, marginal="gaussian", split="paper").fit(X)
    instead = r"needs [\d.]+ TB of memory, and there are [\d.]+ [GT]B: use max_block_size=[12], or fewer columns"
    assert re.search(instead, str(said.value))


def test_a_chunk_without_the_memory_it_may_have_makes_do_with_less():
    def score(task, means):
        asked.append(means.memory)
        if means.memory > 100 << 20:
            raise MemoryError
        return task

    for n_jobs, n_tasks in ((1, 1), (2, 40)):
        asked = []
        done = list(LocalExecutor(n_jobs).map(score, range(n_tasks), lambda task: lambda share: None))
        assert sorted(done) == [(task, task) for task in range(n_tasks)]
        assert max(asked) > 100 << 20 >= min(asked)

    def never(task, means):
        raise MemoryError

    with pytest.raises(MemoryError):
        list(LocalExecutor(1).map(never, range(1), lambda task: lambda share: None))


# --- no place for compiled code --------------------------------------------------------------------------------

NOWHERE = """
import warnings
warnings.simplefilter("always")
from isde.engine import jit
print(jit.CACHE)
"""


@pytest.mark.parametrize("safe", [True, False])
def test_where_nothing_can_be_written_compiled_code_has_a_place_or_none(tmp_path, safe):
    place = tmp_path / f"isde-compiled-{os.getuid()}"
    if not safe:
        place.mkdir()
        place.chmod(0o777)
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = kept | {
        "PYTHONPATH": str(Path(isde.__file__).parents[1]),
        "TMPDIR": str(tmp_path),
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",  # neither beside the file nor at home
    }
    call = [sys.executable, "-c", NOWHERE]
    result = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert result.stdout == f"{safe}\n", result.stderr
    what = f"it is kept in {place}" if safe else "every command compiles for some seconds"
    assert f"No place for compiled code beside isde, nor at home: {what}; NUMBA_CACHE_DIR names one." in result.stderr
