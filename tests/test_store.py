"""What a run keeps: a log that is whole again after any damage, a folder that goes on, grows, or refuses by name."""

import json
import os
import shutil
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import ShuffleSplit

import isde
from isde import ISDE, chance
from isde.errors import CheckpointError, InputError, ISDEWarning, ResourceError
from isde.run import folder as folder_module
from isde.run import log as log_module
from isde.run.folder import LOG_FILE, MANIFEST_FILE, run_folder
from isde.run.lock import hold
from isde.run.log import MAGIC, AppendLog, read_frames
from isde.run.store import LogStore, MemoryStore, Part, pack, unpack
from isde.run.work import ChunkScores
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows
from isde.splits import draw_splits, resolve_split
from isde.subsets import SubsetFamily

RECORDS = {f"key {i}": bytes([i]) * (5 * i) + MAGIC[: i % 9] for i in range(1, 4)}


@pytest.fixture(name="X")
def five_columns(rng):
    t = rng.normal(size=120)
    return np.column_stack([t, t + 0.3 * rng.normal(size=120), rng.normal(size=(120, 3))])


def fit(X, folder, k=2, marginal="gaussian", **options):
    return ISDE(k, **{"marginal": marginal, "random_state": 0, "n_jobs": 1, "checkpoint": folder, **options}).fit(X)


def bits(model):
    table = model.subset_scores_
    vectors = (table.scores, table.bandwidths, table.errors, table.gain_errors, table.charges)
    return [vector.tobytes() for vector in vectors], model.partition_


def write_log(path, records):
    with AppendLog(path) as log:
        for key, payload in records.items():
            log.append(key, payload)


def records_of(path):
    with AppendLog(path) as log:
        return {key: log.read(key) for key in tuple(log.keys())}


# --- the log ---------------------------------------------------------------------------------------------------


def test_what_was_appended_is_read_in_this_process_and_the_next(tmp_path):
    path = tmp_path / "log"
    with AppendLog(path) as log:
        for key, payload in RECORDS.items():
            log.append(key, payload)
            assert log.read(key) == payload
    assert records_of(path) == RECORDS
    write_log(path, {"another": b""})
    assert records_of(path) == {**RECORDS, "another": b""}


def test_a_log_cut_at_any_byte_holds_the_records_before_it_and_takes_new_ones(tmp_path):
    path = tmp_path / "log"
    write_log(path, RECORDS)
    whole, ends = path.read_bytes(), [place.end for place in read_frames(path)[0].values()]
    for n in range(len(whole) + 1):
        path.write_bytes(whole[:n])
        kept = dict(list(RECORDS.items())[: sum(end <= n for end in ends)])
        write_log(path, {"new": b"payload"})
        assert records_of(path) == {**kept, "new": b"payload"}


@pytest.mark.parametrize("seed", range(200))
def test_a_damaged_log_gives_no_wrong_record_and_loses_few(tmp_path, seed):
    rng, path = np.random.default_rng(seed), tmp_path / "log"
    records = {f"chunk {i}": rng.bytes(int(rng.integers(0, 300))) for i in range(50)}
    write_log(path, records)
    data, at = bytearray(path.read_bytes()), int(rng.integers(path.stat().st_size))
    if seed % 4 == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif seed % 4 == 1:
        data[at:at] = rng.bytes(int(rng.integers(1, 40)))
    elif seed % 4 == 2:
        del data[at : at + int(rng.integers(1, 40))]
    else:
        data += data[at:]
    path.write_bytes(data)
    write_log(path, {"new": b"payload"})
    found = records_of(path)
    assert found.pop("new") == b"payload"
    assert found.items() <= records.items()
    lost = len(records) - len(found)
    assert lost <= (0, 1, 2, 0)[seed % 4] + (
        seed % 4 == 0
    )  # 40 bytes cut out may be the end of one and a part of the next


def test_records_that_contradict_each_other_are_refused(tmp_path):
    path = tmp_path / "log"
    write_log(path, {"a": b"1"})
    first = path.read_bytes()
    path.unlink()
    write_log(path, {"a": b"2"})
    path.write_bytes(first + path.read_bytes())
    with pytest.raises(CheckpointError, match="two different results for 'a'"):
        AppendLog(path)
    path.write_bytes(first + first)
    assert records_of(path) == {"a": b"1"}


def test_a_disk_that_takes_half_a_record_and_then_no_more_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    path, write = tmp_path / "log", os.write

    def half(handle, data):
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(handle, bytes(data)[: len(data) // 2])

    with AppendLog(path) as log:
        log.append("a", b"kept")
        before = path.read_bytes()
        monkeypatch.setattr(os, "write", half)
        store = LogStore(log)
        with pytest.raises(ResourceError, match=r"No room for [\d,]+ more bytes in .*log, [\d,]+ are free: make room"):
            store.put("b", ChunkScores.without_bandwidths(np.arange(100), np.arange(100.0)))
        assert path.read_bytes() == before
        monkeypatch.setattr(os, "write", write)
        log.append("c", b"later")
    assert records_of(path) == {"a": b"kept", "c": b"later"}


def test_a_disk_that_fails_to_sync_is_not_asked_again(tmp_path, monkeypatch):
    def fail(handle):
        calls.append(handle)
        raise OSError(5, "Input/output error")

    calls = []
    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(log_module, "SYNC_SECONDS", -1.0)
    with AppendLog(tmp_path / "log") as log:
        for _ in range(2):
            with pytest.raises(OSError, match=r"Input/output|could not be written before"):
                log.append("a", b"")
    assert len(calls) == 1


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "log").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="log"):
        AppendLog(tmp_path / "log")
    assert (tmp_path / "precious").read_text() == "mine"


# --- what was found, as bytes ----------------------------------------------------------------------------------

floats = st.floats(width=64)


@given(st.integers(0, 400).flatmap(lambda n: st.tuples(
    st.lists(st.integers(0, 2**62), min_size=n, max_size=n),
    st.lists(floats, min_size=n, max_size=n),
    st.lists(st.one_of(st.sampled_from([0.0, -0.0, float("nan"), 0.25]), floats), min_size=n, max_size=n),
    st.lists(st.booleans(), min_size=n, max_size=n),
)))  # fmt: skip
def test_what_was_found_is_the_same_to_the_bit_from_its_bytes(lists):
    kinds = (np.int64, np.float64, np.float64, bool)
    found = ChunkScores(*(np.array(values, dtype=kind) for values, kind in zip(lists, kinds, strict=True)))
    assert_same(unpack(pack(found)), found)


def assert_same(one, other):
    for name in ("positions", "scores", "bandwidths", "unsettled"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("positions", [np.arange(7, 1007), np.arange(1000)[::-1], np.arange(1000) * 2**40])
def test_positions_in_a_row_and_few_bandwidths_take_little_room(positions, rng):
    found = ChunkScores(positions, rng.normal(size=1000), np.repeat([0.1, np.nan], 500), np.zeros(1000, dtype=bool))
    assert_same(unpack(pack(found)), found)
    in_a_row = positions[1] - positions[0] == 1
    assert len(pack(found)) < (9_100 if in_a_row else 13_100 if positions[-1] < 2**32 else 17_100)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_record_are_refused(data):
    try:
        found = unpack(data)
    except CheckpointError:
        return
    assert len(found.positions) == len(found.scores)


def test_a_record_that_claims_to_be_long_is_refused_before_room_is_made_for_it():
    same = ChunkScores(np.arange(1000), np.zeros(1000), np.full(1000, np.nan), np.zeros(1000, dtype=bool))
    assert_same(unpack(pack(same)), same)
    tracemalloc.start()
    for claimed in (2**25, 2**32 - 1):
        with pytest.raises(CheckpointError, match="too short"):
            unpack(np.array(claimed, dtype="<u4").tobytes() + pack(same)[4:])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


def test_a_part_of_a_store_has_keys_of_its_own():
    store = MemoryStore()
    one, other = Part(store, "one"), Part(store, "other")
    one.put("a", ChunkScores.without_bandwidths(np.arange(1), np.array([1.0])))
    other.put("a", ChunkScores.without_bandwidths(np.arange(1), np.array([2.0])))
    assert (one.get("a").scores[0], other.get("a").scores[0]) == (1.0, 2.0)
    assert one.finished() == {"a"}


# --- the lock --------------------------------------------------------------------------------------------------


def test_a_folder_is_for_one_thread_at_a_time_and_again_inside_itself(tmp_path):
    def other():
        try:
            with hold(tmp_path / "run"):
                pass
        except CheckpointError as error:
            said.append(str(error))

    said = []
    with hold(tmp_path / "run"), hold(tmp_path / "run"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert f"is in use by process {os.getpid()} on " in said[0]
    assert not (tmp_path / "run").exists()  # nothing was put into it
    other()
    assert len(said) == 1


def test_a_killed_process_leaves_no_lock(tmp_path):
    code = f"""
import sys, time
from pathlib import Path
from isde.run.lock import hold
with hold(Path({str(tmp_path / "run")!r})):
    print("held", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(CheckpointError, match=f"in use by process {process.pid} on "), hold(tmp_path / "run"):
            pass
        process.kill()
        process.wait()
    with hold(tmp_path / "run"):
        (tmp_path / "run" / "kept").touch()
    assert (tmp_path / "run" / "kept").exists()


# --- going on, growing, refusing -------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """The keys of what is scored."""
    keys, put = [], LogStore.put

    def count(self, key, found):
        keys.append(key)
        put(self, key, found)

    monkeypatch.setattr(LogStore, "put", count)
    return keys


@pytest.mark.parametrize("marginal", ["gaussian", "kde", "copula+stack", "copula", ["kde", "gaussian"]])
def test_a_run_goes_on_from_any_point_with_the_same_bits(X, tmp_path, marginal, counted):
    plain = fit(X, None, marginal=marginal, split=ShuffleSplit(3, train_size=0.5, random_state=0))
    whole = fit(X, tmp_path / "run", marginal=marginal, split=ShuffleSplit(3, train_size=0.5, random_state=0))
    assert bits(whole) == bits(plain)
    log, model = tmp_path / "run" / LOG_FILE, (tmp_path / "run" / "model.isde").read_bytes()
    data, n = log.read_bytes(), len(counted)
    assert n == len(set(counted))
    for share in (0.0, 0.35, 0.8, 1.0):
        log.write_bytes(data[: int(share * len(data))])
        kept = len(read_frames(log)[0])
        counted.clear()
        again = fit(X, tmp_path / "run", marginal=marginal, split=ShuffleSplit(3, train_size=0.5, random_state=0))
        assert len(counted) == n - kept
        assert bits(again) == bits(plain)
        assert (tmp_path / "run" / "model.isde").read_bytes() == model
    assert bits(isde.load(tmp_path / "run")) == bits(plain)
    log.write_bytes(data[:20] + b"!" + data[21:])
    with pytest.warns(ISDEWarning, match=r"bytes of .*scores.log are damaged: what stood there is scored again, not"):
        again = fit(X, tmp_path / "run", marginal=marginal, split=ShuffleSplit(3, train_size=0.5, random_state=0))
    assert bits(again) == bits(plain)


@pytest.mark.parametrize("few", [2, 10], ids=["splits of their own", "splits that share"])
@pytest.mark.parametrize("marginal", ["gaussian", "kde", "stack", "copula", GaussianMixture(1, random_state=0)])
@pytest.mark.filterwarnings("ignore:These blocks cannot be saved:isde.errors.ISDEWarning")
def test_larger_blocks_and_more_splits_score_what_is_new_alone(X, tmp_path, marginal, few, counted, monkeypatch):
    monkeypatch.setattr(chance, "TABLES", 1)
    monkeypatch.setattr("isde.score_tasks.TUNED_FROM", 0)
    some, more = (ShuffleSplit(n, train_size=0.5, random_state=0) for n in (few, few + 1))
    splits = draw_splits(more, X)
    fit(X, tmp_path / "run", marginal=marginal, split=some, k=2)
    scored = set(counted)
    counted.clear()
    larger = fit(X, tmp_path / "run", marginal=marginal, split=some, k=4)
    assert not scored & set(counted)
    assert_close(larger, fit(X, None, marginal=marginal, split=some, k=4))
    sizes = SubsetFamily(5, 4).sizes
    log_sizes = {int(s) for key in counted if key.startswith("table:") for s in sizes[positions(tmp_path / "run", key)]}
    assert log_sizes == {3, 4}
    scored |= set(counted)
    counted.clear()
    extended = fit(X, tmp_path / "run", marginal=marginal, split=more, k=4)
    assert not scored & set(counted)
    assert {key.split(":")[1] for key in counted if key.startswith("table:")} == {isde.splits.split_key(splits[-1])}
    assert_close(extended, fit(X, None, marginal=marginal, split=more, k=4))


def positions(folder, key):
    with AppendLog(folder / LOG_FILE) as log:
        return unpack(log.read(key)).positions


def assert_close(one, other):
    """Subsets of larger blocks are other sums of the same float32 products when they are scored by themselves."""
    np.testing.assert_allclose(one.subset_scores_.scores, other.subset_scores_.scores, rtol=0, atol=1e-6)
    assert one.partition_ == other.partition_


def test_a_disk_without_room_for_a_lock_leaves_no_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(ResourceError, match=r"run cannot be written \(No space left"), hold(tmp_path / "some" / "run"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file/run", "file/some/run", "long" * 100, "nul\0"])
def test_a_folder_that_cannot_be_is_said_in_a_sentence(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be written \(.*\): write somewhere else"), hold(tmp_path / name):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_half_a_record_that_cannot_be_cut_off_is_the_end_of_a_log(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    with AppendLog(tmp_path / "log") as log:
        log.append("a", b"1")
        with monkeypatch.context() as patch:
            patch.setattr("isde.run.log._write_all", lambda handle, frame: os.write(handle, frame[:5]) and broken())
            patch.setattr(os, "ftruncate", broken)
            with pytest.raises(OSError, match="Input/output"):
                log.append("b", b"2")
        with pytest.raises(OSError, match="could not be written before"):
            log.append("c", b"3")  # behind half a record it would stand elsewhere than the log says
        assert log.read("a") == b"1"
    assert list(read_frames(tmp_path / "log")[0]) == ["a"]


def test_a_folder_that_is_removed_meanwhile_is_said_in_a_sentence(tmp_path):
    with run_folder(tmp_path / "run") as run, run.store({}, 2, ["one"], None) as store:
        store.put("a", ChunkScores.without_bandwidths(np.arange(3), np.arange(3.0)))
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(ResourceError, match=r"scores\.log cannot be read any more \(No such file"):
            store.get("a")


@pytest.mark.parametrize(("d", "k", "above"), [(5, 4, 2), (9, 5, 2), (26, 4, 3), (30, 3, 1), (7, 7, 6), (13, 4, 1)])
def test_the_chunks_above_a_size_hold_every_larger_subset_once(d, k, above, rng):
    from isde.engine.plan import build_tile, plan_pieces

    family = SubsetFamily(d, k)
    found = [build_tile(family, pieces).position for pieces in plan_pieces(family, above)]
    real = np.concatenate(found)
    assert sorted(real[real >= 0]) == list(range(family.offsets[above + 1], len(family)))


CHANGED = {
    "max_block_size": ({"k": 2}, "max_block_size=3, and max_block_size=2 is smaller"),
    "marginal": ({"marginal": "gaussian"}, "marginal='kde', not 'gaussian'"),
    "bandwidths": ({"bandwidths": [0.1, 0.2]}, r"bandwidths=None, not \[0.1, 0.2\]"),
    "cv": ({"cv": 3}, "cv=5, not 3"),
    "scale": ({"scale": "standard"}, "scale='minmax', not 'standard'"),
    "random_state": ({"random_state": 1}, "other splits of the rows"),
    "split": ({"split": 0.4}, "other splits of the rows"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_other_parameters_are_refused_by_name_and_nothing_is_changed(X, tmp_path, name):
    options, complaint = CHANGED[name]
    fit(X, tmp_path / "run", k=3, marginal="kde", split=0.5)
    before = contents(tmp_path / "run")
    with pytest.raises(CheckpointError, match=complaint):
        fit(X, tmp_path / "run", **{"k": 3, "marginal": "kde", "split": 0.5, **options})
    assert contents(tmp_path / "run") == before


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_other_data_are_refused_by_name(X, tmp_path):
    fit(X, tmp_path / "run")
    one_value = X.copy()
    one_value[3, 1] = np.nextafter(one_value[3, 1], 1.0)
    with pytest.raises(CheckpointError, match="begun with other data, of the same shape"):
        fit(one_value, tmp_path / "run")
    with pytest.raises(CheckpointError, match="begun with rows=120, not 119"):
        fit(X[:-1], tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"begun with other columns \('x4'\)"):
        fit(X[:, :4], tmp_path / "run")
    fit(np.asfortranarray(X), tmp_path / "run")  # the same numbers


def test_the_same_numbers_are_the_same_data_however_they_lie_in_memory(X):
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    facts = [folder_module.data_facts(x, "abcde") for x in (X, np.asfortranarray(X), strided, X.astype(">f8"))]
    assert all(fact == facts[0] for fact in facts)


@pytest.mark.parametrize("package", ["isde", "numpy", "numba"])
def test_another_version_is_refused_and_a_small_difference_is_said(X, tmp_path, monkeypatch, package):
    now = folder_module.machine_facts()
    fit(X, tmp_path / "run")
    monkeypatch.setattr(folder_module, "machine_facts", lambda: now | {package: "99.1"})
    with pytest.raises(CheckpointError, match=f"the version of {package}="):
        fit(X, tmp_path / "run")
    monkeypatch.setattr(folder_module, "machine_facts", lambda: now | {"processor": "another"})
    with pytest.warns(ISDEWarning, match="goes on with another: last digits of scores may differ"):
        fit(X, tmp_path / "run")


def test_a_run_without_a_seed_goes_on_with_the_one_that_was_drawn(X, tmp_path, counted):
    one = fit(X, tmp_path / "run", random_state=None)
    counted.clear()
    again = fit(X, tmp_path / "run", random_state=None)
    assert not counted
    assert bits(one) == bits(again)


def test_a_manifest_changed_at_any_byte_is_refused_or_the_same(X, tmp_path):
    fit(X, tmp_path / "run")
    path = tmp_path / "run" / MANIFEST_FILE
    whole = path.read_bytes()
    with run_folder(tmp_path / "run") as run:
        sound = run.manifest()
        for n in range(len(whole)):
            for damaged in (whole[:n], whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :]):
                path.write_bytes(damaged)
                try:
                    found = run.manifest()
                except CheckpointError as error:
                    found = str(error)
                assert found == sound or found.startswith(f"{path} is damaged")
        path.write_bytes(b"[" * 100_000)
        with pytest.raises(CheckpointError):
            run.manifest()
        path.unlink()
        with pytest.raises(CheckpointError, match=r"holds scores.log without manifest.json"):
            run.manifest()


def test_the_manifest_says_what_the_run_is_of(X, tmp_path):
    fit(X, tmp_path / "run")
    said = json.loads((tmp_path / "run" / MANIFEST_FILE).read_text())
    assert said["facts"]["rows"] == 120
    assert said["facts"]["columns"] == ["x0", "x1", "x2", "x3", "x4"]
    assert said["max_block_sizes"] == [2]
    assert len(said["splits"]) == 20
    assert {"isde", "numpy", "numba", "processor"} <= said["machine"].keys()


def test_a_table_given_and_a_run_folder_exclude_each_other(X, tmp_path):
    table = fit(X, None).subset_scores_
    with pytest.raises(ValueError, match="leave one of them out"):
        ISDE(2, marginal="gaussian", checkpoint=tmp_path / "run").fit(X, subset_scores=table)
    assert not (tmp_path / "run").exists()


def test_a_model_that_cannot_be_saved_leaves_its_scores(X, tmp_path):
    with pytest.warns(ISDEWarning, match="cannot be saved without pickle: .*scores.isde holds every score"):
        model = fit(X[:, :3], tmp_path / "run", k=3, marginal=GaussianMixture(1, random_state=0), split="paper")
    saved = isde.load(tmp_path / "run" / "scores.isde")
    assert saved.scores.tobytes() == model.subset_scores_.scores.tobytes()


def test_a_model_from_a_run_does_not_write_into_it_when_fitted_again(X, tmp_path):
    fit(X, tmp_path / "run")
    assert isde.load(tmp_path / "run").checkpoint is None


def test_data_that_cannot_be_fitted_leave_no_folder(X, tmp_path):
    with pytest.raises(InputError):
        fit(np.full((10, 2), np.nan), tmp_path / "some" / "run")
    assert not (tmp_path / "some").exists()


def test_what_a_killed_process_left_half_written_is_removed(X, tmp_path):
    fit(X, tmp_path / "run")
    (tmp_path / "run" / ".model.isde.abc.part").write_bytes(b"half")
    fit(X, tmp_path / "run")
    assert contents(tmp_path / "run").keys() == {"model.isde", LOG_FILE, MANIFEST_FILE, "lock"}


def test_a_model_that_cannot_be_written_is_fitted_all_the_same(X, tmp_path, monkeypatch):
    replace = os.replace

    def full(source, target):
        if str(target).endswith("model.isde"):
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    model = ISDE(2, marginal="gaussian", random_state=0, checkpoint=tmp_path / "run")
    with pytest.raises(ResourceError, match=r"model.isde cannot be written \(No space left on device\): the"):
        model.fit(X)
    assert model.partition_ == fit(X, None).partition_
    monkeypatch.undo()
    assert bits(fit(X, tmp_path / "run")) == bits(model)


def test_chance_of_many_columns_keeps_the_margins_that_are_looked_at(monkeypatch):
    """The same charges from the largest margins of each table as from all of them, for any alpha."""
    from isde.marginals.copula import CopulaScorer

    monkeypatch.setattr(chance, "TABLES", 3)
    splits, family = draw_splits(resolve_split("paper", 0), np.zeros((60, 18))), SubsetFamily(18, 3)
    table = chance.SplitTable("paper", tuple(splits), 60)
    few = chance.draw_chance(CopulaScorer(), table, family, 1, MemoryStore())
    monkeypatch.setattr(chance, "COLUMNS", 18)
    every = chance.draw_chance(CopulaScorer(), table, family, 1, MemoryStore())
    assert few.counts is not None
    assert every.counts is None
    assert len(few.margins[0][1][0]) < len(every.margins[0][1][0])
    for alpha in (0.001, 0.05, 0.3, 0.999):
        for one, other in zip(few.charges(family, 60, alpha), every.charges(family, 60, alpha), strict=True):
            assert one.tobytes() == other.tobytes()
    assert few.smallest_alpha(family) == every.smallest_alpha(family)


def test_the_first_table_and_the_extended_one_have_the_same_scores_for_small_subsets(X):
    """What was scored for small blocks is used as it is."""
    splits = draw_splits(resolve_split("paper", 0), X)
    scorer, store = isde.marginals.resolve_marginal("kde"), MemoryStore()
    names = tuple("abcde")
    rows, how = SplitRows(scorer, X, splits), How(1, store)
    (small,) = score_models(rows, SubsetFamily(5, 2), names, how)
    (large,) = score_models(rows, SubsetFamily(5, 4), names, how, sizes=(2, 4))
    assert large.scores[: len(small)].tobytes() == small.scores.tobytes()
