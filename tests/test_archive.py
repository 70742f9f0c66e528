"""Saved files: equal after loading, refused when damaged, never half written."""

import hashlib
import io
import json
import os
import stat
import struct
import sys
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, PredefinedSplit, RepeatedKFold, ShuffleSplit

import isde
from isde import ISDE, SubsetScores, fit_blocks, score_subsets
from isde.archive import read_archive, write_archive
from isde.errors import InputError, ISDEWarning
from isde.solvers import proofs
from isde.solvers.registry import SOLVERS


@pytest.fixture
def table(rows):
    return score_subsets(rows[:60], rows[60:], max_block_size=2, marginal="gaussian", names=["a", "b", "c"])


def fitted(rows, **params):
    return ISDE(3, random_state=0, **params).fit(rows)


def assert_same_table(one, other):
    assert one.subsets == other.subsets
    assert one.names == other.names
    assert one.unsettled == other.unsettled
    for name in ("scores", "bandwidths", "errors"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, header=None, **replaced):
    """The same archive with its header changed by `header(top)` and members replaced."""
    content = members(path) | {f"{name}.npy": data for name, data in replaced.items()}
    if header:
        top = json.loads(content["header.json"])
        header(top)
        content["header.json"] = json.dumps(top).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


# --- save, load, equal -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", ["kde", "gaussian", "gaussian-zero-mean"])
@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_a_loaded_model_equals_the_saved_one(tmp_path, rows, marginal, scale):
    model = fitted(rows, marginal=marginal, scale=scale)
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert isinstance(loaded, ISDE)
    assert loaded.get_params() == model.get_params()
    assert loaded.partition_ == model.partition_
    assert loaded.selection_ == model.selection_
    assert loaded.block_names_ == model.block_names_
    assert loaded.n_features_in_ == 3
    assert_same_table(loaded.subset_scores_, model.subset_scores_)
    np.testing.assert_array_equal(loaded.bandwidths_, model.bandwidths_)
    np.testing.assert_array_equal(loaded.score_blocks(rows), model.score_blocks(rows))
    np.testing.assert_array_equal(loaded.sample(5, random_state=1), model.sample(5, random_state=1))


def test_a_loaded_model_knows_its_column_names_or_that_it_has_none(tmp_path, rows):
    fitted(rows).save(tmp_path / "plain.isde")
    fitted(pd.DataFrame(rows, columns=["ä", "b c", "d"])).save(tmp_path / "named.isde")
    assert not hasattr(isde.load(tmp_path / "plain.isde"), "feature_names_in_")
    assert isde.load(tmp_path / "named.isde").feature_names_in_.tolist() == ["ä", "b c", "d"]


@pytest.mark.parametrize(
    "split",
    [
        None,
        0.7,
        KFold(3),
        ShuffleSplit(2, train_size=0.6, random_state=4),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    ],
    ids=str,
)
def test_the_split_comes_back_as_it_was(tmp_path, rows, split):
    model = fitted(rows, split=split, marginal="gaussian")
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert repr(loaded.split) == repr(split)
    assert_same_table(loaded.subset_scores_, model.subset_scores_)


def test_a_model_with_any_splitter_can_be_loaded_again(tmp_path, rows):
    model = fitted(rows, split=PredefinedSplit(np.arange(120) % 2), marginal="gaussian")
    with pytest.warns(ISDEWarning, match="PredefinedSplit.* cannot be saved.*set its split before `fit`"):
        model.save(tmp_path / "model.isde")
    assert isde.load(tmp_path / "model.isde").score(rows) == model.score(rows)


def test_parameters_given_as_numpy_numbers_can_be_saved(tmp_path, rows):
    model = ISDE(np.int64(3), bandwidths=np.array([0.1, 0.2]), cv=np.int64(4), random_state=np.int64(3)).fit(rows)
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert (loaded.max_block_size, loaded.bandwidths, loaded.cv, loaded.random_state) == (3, [0.1, 0.2], 4, 3)


def test_a_loaded_model_can_be_fitted_again(tmp_path, rows):
    model = fitted(rows)
    model.save(tmp_path / "model.isde")
    assert isde.load(tmp_path / "model.isde").fit(rows).score(rows) == model.score(rows)


def test_a_loaded_score_table_equals_the_saved_one(tmp_path, table):
    table.save(tmp_path / "scores.isde")
    assert_same_table(isde.load(tmp_path / "scores.isde"), table)


def test_minus_infinity_survives(tmp_path):
    table = SubsetScores.from_dict({(0,): 0.5, (1,): -np.inf, (0, 1): 1e300})
    table.save(tmp_path / "scores.isde")
    assert_same_table(isde.load(tmp_path / "scores.isde"), table)


def test_unsettled_columns_and_errors_survive(tmp_path, table):
    marked = replace(table, unsettled=(0, 2), errors=np.linspace(0, 1, len(table)))
    marked.save(tmp_path / "scores.isde")
    assert_same_table(isde.load(tmp_path / "scores.isde"), marked)


@pytest.mark.parametrize("marginal", ["kde", "gaussian"])
def test_a_loaded_density_equals_the_saved_one(tmp_path, rows, marginal):
    density = fit_blocks(rows, [(0, 2), (1,)], marginal)
    density.save(tmp_path / "density.isde")
    loaded = isde.load(tmp_path / "density.isde")
    assert loaded.partition == density.partition
    assert loaded.names == density.names
    np.testing.assert_array_equal(loaded.bandwidths, density.bandwidths)
    np.testing.assert_array_equal(loaded.score_blocks(rows), density.score_blocks(rows))


def test_arrays_come_back_bit_for_bit(tmp_path):
    arrays = {
        "floats": np.array([[0.1, -0.0, np.nan], [np.inf, 5e-324, -np.inf]]),
        "scalar": np.array(0.1),
        "integers": np.array([-(2**63), 2**63 - 1]),
        "booleans": np.array([True, False]),
        "empty": np.empty((0, 3)),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    write_archive(tmp_path / "file", "test", {"text": "ä\n", "number": 1}, arrays)
    kind, header, loaded = read_archive(tmp_path / "file")
    assert (kind, header) == ("test", {"text": "ä\n", "number": 1})
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == np.ascontiguousarray(array).tobytes()


def test_nothing_saved_is_a_pickle(tmp_path, rows):
    fitted(rows).save(tmp_path / "model.isde")
    content = members(tmp_path / "model.isde")
    json.loads(content.pop("header.json"))
    assert content
    for data in content.values():
        np.load(io.BytesIO(data), allow_pickle=False)


# --- damage ----------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, rows):
    """A small model's file, and a test that a loaded model is that model."""
    model = ISDE(2, marginal="gaussian", random_state=0).fit(rows[:, [0, 2]])
    path = tmp_path / "model.isde"
    model.save(path)

    def assert_same(loaded):
        assert loaded.get_params() == model.get_params()
        assert loaded.selection_ == model.selection_
        assert_same_table(loaded.subset_scores_, model.subset_scores_)
        np.testing.assert_array_equal(loaded.score_blocks(rows[:5, [0, 2]]), model.score_blocks(rows[:5, [0, 2]]))

    return path, assert_same


def test_a_file_cut_short_anywhere_is_refused(saved):
    path, _ = saved
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 29), *range(len(whole) - 40, len(whole))]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"model\.isde"):
            isde.load(path)


def test_a_file_with_one_changed_bit_is_refused_or_loads_the_same_model(saved):
    path, assert_same = saved
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    flips = [(p, p % 8) for p in range(0, directory, 5)] + [
        (p, b) for p in range(directory, len(whole)) for b in range(8)
    ]
    refused = 0
    for position, bit in flips:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            loaded = isde.load(path)
        except InputError as error:
            assert "model.isde" in str(error)  # noqa: PT017
            refused += 1
        else:
            assert_same(loaded)
    assert refused > len(flips) / 2


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_no_saved_file(tmp_path, seed):
    path = tmp_path / "noise.isde"
    path.write_bytes(np.random.default_rng(seed).bytes(seed * 50))
    with pytest.raises(InputError, match=r"noise\.isde"):
        isde.load(path)


def test_an_array_that_was_replaced_is_noticed(saved):
    path, _ = saved
    name = "density.scale"
    data = bytearray(members(path)[f"{name}.npy"])
    data[-1] ^= 1
    rewrite(path, **{name: bytes(data)})
    with pytest.raises(InputError, match=f"'{name}' differs from its checksum"):
        isde.load(path)


def test_an_array_that_was_added_or_taken_out_is_noticed(saved):
    path, _ = saved
    rewrite(path, extra=b"")
    with pytest.raises(InputError, match="other members"):
        isde.load(path)
    content = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", content["header.json"])
    with pytest.raises(InputError, match=r"model\.isde"):
        isde.load(path)


@pytest.mark.parametrize("version", [2, 99, "3", None])
def test_a_newer_format_is_refused_by_its_version(saved, version):
    path, _ = saved
    rewrite(path, header=lambda top: top.update(version=version))
    with pytest.raises(InputError, match=f"version {version!r}, this isde reads version 1: upgrade isde"):
        isde.load(path)


def test_an_unknown_kind_of_content_is_refused_by_name(saved):
    path, _ = saved
    rewrite(path, header=lambda top: top.update(kind="forest"))
    with pytest.raises(InputError, match="'forest'"):
        isde.load(path)


def test_other_zip_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", X=np.ones(3))
    with pytest.raises(InputError, match=r"other\.npz"):
        isde.load(tmp_path / "other.npz")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("header.json", '{"format": "something"}')
    with pytest.raises(InputError, match="no file saved by isde"):
        isde.load(tmp_path / "other.zip")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("density"),
        lambda content: content.update(rank=0),
        lambda content: content.update(witness={"fee": 0, "unit": 1.0}),
        lambda content: content.pop("solver"),
        lambda content: content["density"].update(names=["a"]),
        lambda content: content["density"]["blocks"].pop(),
        lambda content: content["density"]["blocks"][0].update(kind="spline"),
        lambda content: content["scores"].update(n_columns=5),
        lambda content: content["params"].update(colour="red"),
        lambda content: content.update(scores=None),
    ],
)
def test_content_that_does_not_fit_together_is_refused(saved, change):
    path, _ = saved
    rewrite(path, header=lambda top: change(top["content"]))
    with pytest.raises(InputError, match=r"model\.isde is damaged"):
        isde.load(path)


def reseal(path, **replaced):
    """The same archive with other arrays and the right checksums: what no digest can tell."""
    kind, header, arrays = read_archive(path)
    write_archive(path, kind, header, arrays | replaced)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("density.scale", lambda scale: scale * np.nan, "'scale' must hold finite numbers above 0"),
        ("density.scale", lambda scale: -scale, "'scale' must hold finite numbers above 0"),
        ("density.shift", lambda shift: shift + np.inf, "'shift' must hold finite numbers"),
        ("density.shift", lambda shift: shift[:1], "has the shape"),
        ("density.block0.covariance", lambda matrix: -matrix, "covariances, symmetric and positive definite"),
        ("density.block0.covariance", np.triu, "covariances, symmetric and positive definite"),
        (
            "density.block0.covariance",
            lambda matrix: matrix[0, 0] * np.array([[1, 1], [1, 1 + 1e-15]]),  # positive definite to the last digit
            "covariances, symmetric and positive definite",
        ),
        ("density.block0.mean", lambda mean: mean * 1e200, "'mean' must hold numbers of at most 1e.150"),
        ("scores.scores", lambda scores: scores * np.nan, "'scores' must hold scores"),
        ("scores.scores", lambda scores: scores[:-1], "has the shape"),
        ("scores.bandwidths", np.zeros_like, "'bandwidths' must hold bandwidths above 0"),
        ("scores.errors", lambda errors: np.full(len(errors), -1.0), "'errors' must hold errors"),
        ("scores.charges", lambda charges: charges - 1, "'charges' must hold finite charges"),
        ("scores.unsettled", lambda _: np.array([7]), "other names than columns"),
    ],
)
def test_a_file_with_right_checksums_and_senseless_content_is_refused(tmp_path, rows, name, change, complaint):
    path = tmp_path / "model.isde"
    correlated = rows[:, [0, 2]] + rows[:, [2, 0]] / 2
    ISDE(2, marginal="gaussian", solver="milp", random_state=0).fit(correlated).save(path)
    _, _, arrays = read_archive(path)
    assert isde.load(path).partition_ == ((0, 1),)
    reseal(path, **{name: change(arrays[name])})
    with pytest.raises(InputError, match=rf"model\.isde is damaged.*{complaint}"):
        isde.load(path)


def test_blocks_in_another_order_are_not_taken_for_those_of_other_columns(tmp_path, rows):
    path = tmp_path / "density.isde"
    fit_blocks(rows, [(0,), (1,), (2,)], "gaussian").save(path)
    kind, header, arrays = read_archive(path)
    write_archive(path, kind, header | {"blocks": header["blocks"][::-1]}, arrays)
    with pytest.raises(InputError, match="another order"):
        isde.load(path)


@pytest.mark.parametrize("n_jobs", [0, 10**9, "all", 1.5, True])
def test_a_file_cannot_ask_for_any_number_of_workers(saved, n_jobs):
    path, _ = saved
    rewrite(path, header=lambda top: top["content"]["params"].update(n_jobs=n_jobs))
    with pytest.raises(InputError, match="no number of workers"):
        isde.load(path)


# --- files that ask for much -----------------------------------------------------------------------------------


def write_zip(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def peak_bytes(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refuse(path, match):
    with pytest.raises(InputError, match=match):
        isde.load(path)


def huge_array():
    """A header that declares 15 GB, and nothing after it."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (2_000_000_000,)})
    return buffer.getvalue()


def test_an_array_that_declares_gigabytes_is_refused_before_memory_is_asked_for(saved):
    path, _ = saved
    data = huge_array()
    digest = hashlib.sha256(data).hexdigest()
    rewrite(path, header=lambda top: top["sha256"].update({"density.scale": digest}), **{"density.scale": data})
    assert peak_bytes(lambda: refuse(path, r"'density\.scale' declares the shape \(2000000000,\)")) < 1 << 22


def test_a_packed_header_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.isde"
    write_zip(path, {"header.json": b"[" + b"{}," * (20 << 20) + b"{}]"}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    assert peak_bytes(lambda: refuse(path, "holds it as isde does not")) < 1 << 22


def test_a_header_of_many_megabytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "header.isde"
    write_zip(path, {"header.json": b" " * (17 << 20)})
    assert peak_bytes(lambda: refuse(path, "a header of more than 16 MB")) < 1 << 22


def test_members_that_lie_on_each_other_are_refused(saved):
    path, _ = saved
    whole = bytearray(path.read_bytes())
    first = whole.index(b"PK\x01\x02")
    for place in range(first, len(whole)):  # every member claims to be as large as the file
        if whole[place : place + 4] == b"PK\x01\x02":
            whole[place + 20 : place + 28] = 2 * struct.pack("<I", len(whole) - 300)
    path.write_bytes(whole)
    refuse(path, "declares more than it holds")


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (b"[" * 100_000, "recursion"),
        (b'{"format": NaN}', "NaN in the header"),
        (b'{"format": ' + b"9" * 10_000 + b"}", "digits"),
        (b'"isde"', "no file saved by isde"),
        (b"\xff\xfe", "Expecting value"),
    ],
)
def test_json_that_python_chokes_on_is_refused(tmp_path, header, complaint):
    write_zip(tmp_path / "odd.isde", {"header.json": header})
    refuse(tmp_path / "odd.isde", complaint)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(max_block_size=10**6),
        lambda content: content.update(max_block_size=True),
        lambda content: content.update(max_block_size=2.0),
        lambda content: content.update(n_columns=10**9),
        lambda content: content.update(names=["a", "a", "b"]),
        lambda content: content.update(names="abc"),
        lambda content: content.update(dearest_pair=-1),
    ],
)
def test_a_table_that_says_other_things_than_its_arrays_is_refused(tmp_path, table, change):
    path = tmp_path / "scores.isde"
    table.save(path)
    rewrite(path, header=lambda top: change(top["content"]))
    refuse(path, "is damaged")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="This system has no named pipes.")
def test_a_pipe_or_a_device_is_no_saved_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.isde")
    refuse(tmp_path / "pipe.isde", r"pipe\.isde is a pipe, which may never end")
    refuse("/dev/zero", "is a device, which may never end")


# --- proofs ----------------------------------------------------------------------------------------------------


def proved_model(rows, path, solver="milp"):
    model = ISDE(3, marginal="gaussian", solver=solver, random_state=0).fit(rows)
    model.save(path)
    return model


def make_older(path):
    """The file as it was before there were witnesses: with a gap to be believed."""
    kind, header, arrays = read_archive(path)
    older = {key: value for key, value in header.items() if key not in ("rank", "witness")}
    write_archive(path, kind, older | {"gap": 0.0}, {n: a for n, a in arrays.items() if not n.startswith("witness.")})


def test_a_file_holds_what_proves_its_partition_and_no_gap(tmp_path, rows):
    model = proved_model(rows, tmp_path / "model.isde")
    _, header, arrays = read_archive(tmp_path / "model.isde")
    assert "gap" not in header
    assert "bound" not in header
    assert (header["rank"], header["solver"]) == (1, "milp")
    np.testing.assert_array_equal(arrays["witness.prices"], model.selection_.witness.prices)
    loaded = isde.load(tmp_path / "model.isde").selection_
    assert (loaded.proof, loaded.is_optimal, loaded.rank) == ("proved", True, 1)
    np.testing.assert_array_equal(loaded.witness.prices, model.selection_.witness.prices)
    assert (loaded.witness.fee, loaded.witness.unit) == (model.selection_.witness.fee, model.selection_.witness.unit)


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_worse_partition_with_a_density_of_its_own_is_refused(tmp_path, rows, solver, older):
    path = tmp_path / "model.isde"
    model = proved_model(rows, path, solver)
    better = model.partition_
    for partition in isde.enumerate_partitions(3):
        if partition != better:
            model.density_ = fit_blocks(rows, partition, "gaussian")
            model.save(path)
            if older:
                make_older(path)
            with pytest.raises(InputError, match=r"model\.isde is damaged.*its partition is not the best") as refused:
                isde.load(path)
            assert str(better) in str(refused.value)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_older_file_is_searched_again(tmp_path, rows, solver):
    model = proved_model(rows, tmp_path / "model.isde", solver)
    make_older(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde").selection_
    assert loaded == model.selection_
    assert (loaded.proof, loaded.is_optimal, loaded.witness) == ("proved", True, None)


def test_a_proof_that_would_take_long_is_not_checked_again_and_says_so(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(proofs, "MOST_STEPS", 0)
    model = proved_model(rows, tmp_path / "model.isde", "dynamic")
    loaded = isde.load(tmp_path / "model.isde")
    assert model.selection_.proof == "proved"
    assert loaded.selection_.proof == "not checked again"
    assert not loaded.selection_.is_optimal
    assert loaded.selection_.bound == np.inf
    assert (loaded.partition_, loaded.selection_.score) == (model.partition_, model.selection_.score)
    loaded.save(tmp_path / "again.isde")
    monkeypatch.undo()
    assert isde.load(tmp_path / "again.isde").selection_ == model.selection_


def test_a_missing_file_and_a_folder_without_a_model_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        isde.load(tmp_path / "nothing.isde")
    with pytest.raises(InputError, match=r"holds no model\.isde"):
        isde.load(tmp_path)


# --- what cannot be saved, and writing that fails --------------------------------------------------------------


def test_a_foreign_estimator_is_refused_by_name_and_its_scores_can_be_saved(tmp_path, rows):
    model = fitted(rows, marginal=GaussianMixture(2, random_state=0))
    with pytest.raises(InputError, match=r"GaussianMixture .*subset_scores_"):
        model.save(tmp_path / "model.isde")
    with pytest.raises(InputError, match="GaussianMixture"):
        model.density_.save(tmp_path / "density.isde")
    assert list(tmp_path.iterdir()) == []
    model.subset_scores_.save(tmp_path / "scores.isde")
    loaded = isde.load(tmp_path / "scores.isde")
    assert isde.select_partition(loaded) == model.selection_


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_writing_that_fails_leaves_nothing_behind_and_what_was_there_as_it_was(tmp_path, table, monkeypatch, step):
    def fail(*_):
        raise OSError("disk full")

    path = tmp_path / "scores.isde"
    path.write_text("precious")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        table.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "precious"


def test_saving_replaces_an_earlier_file(tmp_path, table):
    path = tmp_path / "scores.isde"
    table.restrict(1).save(path)
    table.save(path)
    assert_same_table(isde.load(path), table)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_does_not_exist_is_named(tmp_path, table):
    with pytest.raises(InputError, match="nowhere"):
        table.save(tmp_path / "nowhere" / "scores.isde")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows files have no such permissions.")
def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path, table):
    table.save(tmp_path / "scores.isde")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "scores.isde").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        ISDE().save(tmp_path / "model.isde")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file_to_save_to(tmp_path, rng):
    model = ISDE(1, marginal="gaussian", random_state=0).fit(rng.normal(size=(20, 1)))
    with pytest.raises(InputError, match=r"is a folder: give the name of a file, such as .*model\.isde"):
        model.save(tmp_path)
