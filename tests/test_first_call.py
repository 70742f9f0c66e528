"""What a machine that never ran isde has to compile: counted, since seconds depend on the machine."""

import gc
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from isde import SubsetScores, best_partitions
from isde.engine.jit import _WithoutCollector, plain
from isde.solvers import cover
from isde.subsets import SubsetFamily

FIT = """
import hashlib, json, sys, warnings
import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher
from isde import ISDE, chance

compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event): pass
event.register("numba:compile", Listener())
warnings.simplefilter("ignore")
chance.TABLES = 3
rng, bits = np.random.default_rng(0), hashlib.sha256()
for n, d in ((300, 3), (90, 5)):
    X = rng.normal(size=(n, d))
    X[:, 1] += X[:, 0] ** 2
    X[0] *= 1000
    model = ISDE(random_state=0).fit(X)
    bits.update(model.subset_scores_.scores.tobytes() + model.score_samples(X).tobytes())
functions = {
    f"{name}.{key}": len(value.signatures)
    for name, module in list(sys.modules.items()) if name.startswith("isde.")
    for key, value in vars(module).items()
    if isinstance(value, Dispatcher) and value.py_func.__module__ == name and value.signatures
}
print(json.dumps({"functions": functions, "compiled": compiled, "bits": bits.hexdigest()}))
"""


def run(cache, *command):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Default fits of a first and a second process."""
    cache = tmp_path_factory.mktemp("cache")
    return [json.loads(run(cache, "-c", FIT)) for _ in range(2)]


def test_a_default_fit_compiles_few_functions_each_for_one_kind_of_arguments(fits):
    assert set(fits[0]["functions"].values()) == {1}
    assert len(fits[0]["functions"]) <= 16


def test_a_default_fit_compiles_hardly_anything_that_is_not_ours(fits):
    """Each kind of np.zeros, each whole-array assignment inside a compiled function is several functions of numba's."""
    assert len(fits[0]["compiled"]) <= 17, fits[0]["compiled"]


def test_a_second_process_compiles_nothing(fits):
    assert fits[1]["compiled"] == []


def test_the_first_run_on_a_machine_gives_the_bits_of_all_others(fits):
    assert fits[0]["bits"] == fits[1]["bits"]


def test_help_info_and_partitions_compile_nothing(tmp_path):
    X = np.random.default_rng(0).normal(size=(150, 6))
    X[:, 1] += X[:, 0] ** 2
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
    isde = ["-c", "from isde.cli import main; main()"]
    fit = ["fit", tmp_path / "rows.csv", "-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", "1", "--quiet"]
    run(tmp_path / "full", *isde, *fit)
    for command in (["--help"], ["info", tmp_path / "run"], ["partitions", tmp_path / "run", "--worst", "3"]):
        assert run(tmp_path / "empty", *isde, *command)
        assert not list(tmp_path.glob("empty/**/*.nb*")), command


class NeverCompiled:
    """A compiled function as it is in a fresh process."""

    signatures = ()

    def __init__(self, function):
        self.py_func = function.py_func

    def __call__(self, *_):
        raise AssertionError("compiled")


def random_scores(d, k, rng):
    """A table with ties."""
    family = SubsetFamily(d, k)
    unknown = np.full(len(family), np.nan)
    return SubsetScores(family, rng.normal(size=len(family)).round(1), unknown, unknown, tuple("abcdefghi"[:d]))


@pytest.mark.parametrize(("d", "k", "n"), [(5, 3, 8), (7, 7, 30), (9, 2, 5)])
def test_a_short_search_in_python_finds_what_the_compiled_one_finds(d, k, n, rng, monkeypatch):
    scores = random_scores(d, k, rng)
    compiled = best_partitions(scores, n)
    monkeypatch.setattr(cover, "_search", NeverCompiled(cover._search))
    monkeypatch.setattr(cover, "FEW_NODES", 10**9)
    assert best_partitions(scores, n) == compiled


def test_a_search_that_is_too_long_for_python_is_compiled(rng, monkeypatch):
    scores = random_scores(7, 3, rng)
    found = best_partitions(scores, 9)
    monkeypatch.setattr(cover, "_search", NeverCompiled(cover._search))
    monkeypatch.setattr(cover, "FEW_NODES", 2)
    with pytest.raises(AssertionError, match="compiled"):
        best_partitions(scores, 9)
    assert found


def test_a_plain_function_calls_plain_functions():
    covered, memory = np.array([5], dtype=np.uint64), np.zeros((64, 1), dtype=np.uint64)
    with np.errstate(over="ignore"):
        place = plain(cover._slot)(covered, memory)
    memory[place] = covered
    with np.errstate(over="ignore"):
        assert plain(cover._slot)(covered, memory) == place


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_rests_while_something_is_compiled_and_is_as_before_afterwards(was_on):
    listener, before = _WithoutCollector(), gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        for step in (listener.on_start, listener.on_start, listener.on_end):
            step(None)
            assert not gc.isenabled()
        listener.on_end(None)
        assert gc.isenabled() == was_on
    finally:
        (gc.enable if before else gc.disable)()
