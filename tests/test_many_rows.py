"""Many rows: bounds on what blocks are learned from, and files that are scored some rows at a time."""

import csv
import io
import json
import tracemalloc

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import isde
from isde import ISDE, TreeISDE, fit_blocks
from isde.cli import main
from isde.data.checks import finite_batches
from isde.data.readers import STREAMS, read_batches, read_table
from isde.data.table import Table
from isde.engine import direct, stacking
from isde.errors import InputError
from isde.inspection import held_out, worth
from isde.marginals import MARGINAL_NAMES, resolve_marginal
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.kde import KDEBlock
from isde.marginals.marginal import fit_shuffled
from isde.marginals.mixture import MixtureBlock
from isde.marginals.scales import ScalesStack
from isde.marginals.stack import FINAL_DOUBLINGS, StackMarginal
from isde.splits import fold_numbers, shuffled
from oracles import ROUNDING


def ring(rng, n):
    angle = rng.uniform(0, 2 * np.pi, size=n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))


def arrays_of(density):
    """Everything a density is made of."""
    return density.to_archive()[1]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def parts_with_kernels(block):
    """The stacks of a block, on whatever scale."""
    if block.kind == "two-scales":
        return [block.own, block.copula.scores]
    return [block.scores if block.kind == "copula" else block]


# --- bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", MARGINAL_NAMES)
def test_bounds_that_are_not_reached_change_no_bit(rng, marginal):
    X = np.column_stack([ring(rng, 300), rng.normal(size=300)])
    free = fit_blocks(X, [(0, 1), (2,)], marginal, max_fit_rows=None, max_centres=None)
    for bounds in ({}, {"max_fit_rows": 300, "max_centres": 300}):
        assert_same(arrays_of(fit_blocks(X, [(0, 1), (2,)], marginal, **bounds)), arrays_of(free))


@pytest.mark.parametrize("marginal", ["copula+stack", "copula", "stack", "kde"])
def test_no_block_has_more_centres_than_allowed(rng, marginal):
    X = np.column_stack([ring(rng, 700), rng.uniform(size=700)])
    density = fit_blocks(X, [(0, 1), (2,)], marginal, max_fit_rows=500, max_centres=40)
    found = [len(part.centres) for block in density.blocks for part in parts_with_kernels(block)]
    assert set(found) <= {0, 40}
    assert 40 in found


def test_rows_beyond_the_bound_are_not_looked_at(rng):
    X = np.column_stack([ring(rng, 400), rng.normal(size=400)])
    taken = np.sort(shuffled(400)[:250])
    other = X.copy()
    other[~np.isin(np.arange(400), taken)] = 0.5
    scaling = isde.density.Scaling.fit(X, "minmax")
    for marginal in ("copula+stack", "kde"):
        family, bounds = resolve_marginal(marginal), Bounds(max_fit_rows=250, max_centres=50)
        blocks = [
            fit_shuffled(family, rows, [(0, 1), (2,)], n_jobs=1, bounds=bounds, transform=scaling.transform)
            for rows in (X, other)
        ]
        for one, two in zip(*blocks, strict=True):
            assert_same(one.to_arrays(), two.to_arrays())


def test_gaussians_take_all_rows(rng):
    X = rng.normal(size=(300, 2))
    few = fit_blocks(X, [(0, 1)], "gaussian", max_fit_rows=20, max_centres=10)
    assert_same(arrays_of(few), arrays_of(fit_blocks(X, [(0, 1)], "gaussian")))
    assert resolve_marginal("gaussian").rows_used(300, Bounds(20, 10)) == RowsUsed(300, 300, 0)


def test_a_kernel_density_has_the_bandwidth_of_its_centres(rng):
    X = ring(rng, 600)
    bounded = fit_blocks(X, [(0, 1)], "kde", max_centres=90, scale=None).blocks[0]
    rows = X[shuffled(600)[:90]]
    np.testing.assert_array_equal(bounded.centres, rows)
    alone = resolve_marginal("kde").fit_blocks(rows, [(0, 1)], n_jobs=1)[0]
    assert bounded.bandwidth == alone.bandwidth > fit_blocks(X, [(0, 1)], "kde", scale=None).blocks[0].bandwidth


def test_folds_promise_the_kernel_density_that_is_kept(rng):
    """Held out, a row sees the centres of the other folds; the mean of these densities is that of all centres."""
    X, bandwidths = ring(rng, 400), np.array([0.5, 0.25, 0.125, 0.0625])
    fold, centres = fold_numbers(400, 5), Bounds(max_centres=50).centres(400)
    assert np.bincount(fold[centres]).tolist() == [10] * 5
    held, _ = stacking.held_out_log_densities(X, fold, bandwidths, 1, 2, centres)
    for b, h in enumerate(bandwidths):
        for v in range(5):
            block = KDEBlock(X[centres][fold[centres] != v], float(h))
            np.testing.assert_allclose(held[b, fold == v], block.score_samples(X[fold == v]), atol=2e-3)
    folds = [KDEBlock(X[centres][fold[centres] != v], 0.25).score_samples(X) for v in range(5)]
    kept = KDEBlock(X[centres], 0.25).score_samples(X)
    np.testing.assert_allclose(logsumexp(folds, axis=0) - np.log(5), kept, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("family", [StackMarginal(), ScalesStack()])
def test_the_kernels_kept_are_those_that_were_weighed(rng, monkeypatch, family):
    seen = []
    honest = stacking.kernel_log_densities

    def noted(centres, *rest):
        seen.append(len(centres))
        return honest(centres, *rest)

    monkeypatch.setattr(stacking, "kernel_log_densities", noted)
    monkeypatch.setattr("isde.engine.scales.kernel_log_densities", noted)
    X = ring(rng, 500)
    family.fit_blocks(X, [(0, 1)], n_jobs=1, bounds=Bounds(max_centres=100))
    assert set(seen) <= {80, 100}  # without a fold, and all: folds are told apart inside


def test_centres_are_spread_over_the_folds():
    for n_rows, most in ((1000, 7), (23, 22), (10**6, 5000)):
        centres = Bounds(max_centres=most).centres(n_rows)
        assert len(set(centres.tolist())) == most
        assert centres[0] >= 0
        assert centres[-1] < n_rows
        counts = np.bincount(fold_numbers(n_rows, 5)[centres], minlength=5)
        assert np.ptp(counts) <= 2
    assert Bounds(max_centres=30).centres(30) is UNBOUNDED.centres(30) is None


def test_more_components_only_where_not_every_row_is_a_centre(rng, monkeypatch):
    monkeypatch.setattr("isde.marginals.stack.ROWS_FOR_COMPONENT", 10)
    asked = []
    honest = stacking.fit_stack
    monkeypatch.setattr(stacking, "fit_stack", lambda *args: asked.append(args[3]) or honest(*args))
    X = rng.normal(size=(700, 1))
    for bounds in (UNBOUNDED, Bounds(max_centres=699)):
        StackMarginal().fit_blocks(X, [(0,)], n_jobs=1, bounds=bounds)
    assert asked == [FINAL_DOUBLINGS, FINAL_DOUBLINGS + 1]


def test_workers_do_not_matter_above_the_bounds(rng):
    X = np.column_stack([ring(rng, 400), ring(rng, 400)])
    one, two = (fit_blocks(X, [(0, 1), (2, 3)], n_jobs=n, max_fit_rows=300, max_centres=60) for n in (1, 2))
    assert_same(arrays_of(one), arrays_of(two))


@pytest.mark.parametrize("name", ["max_fit_rows", "max_centres"])
@pytest.mark.parametrize("value", [0, 1, -5, 2.5, True, "many"])
def test_bounds_that_are_none_are_refused(rng, name, value):
    with pytest.raises(ValueError, match=f"{name}=.* must be a whole number of at least 2, or None for all rows"):
        ISDE(2, **{name: value}).fit(rng.normal(size=(30, 2)))


def test_memory_of_a_fit_does_not_grow_with_rows_beyond_the_bound(rng):
    """But for the permutation, and what checks of the table itself take."""
    family, bounds = resolve_marginal("copula+stack"), Bounds(max_fit_rows=2000, max_centres=100)
    peaks = []
    for n in (3_000, 30_000):
        X = ring(rng, n)
        fit_shuffled(family, X[:500], [(0, 1)], n_jobs=1, bounds=bounds)
        tracemalloc.start()
        fit_shuffled(family, X, [(0, 1)], n_jobs=1, bounds=bounds)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 8 * 30_000 * 2


# --- what was used is said -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ISDE, TreeISDE])
def test_rows_used_are_said_and_saved(rng, tmp_path, capsys, kind):
    X = np.column_stack([ring(rng, 200), rng.normal(size=200)])
    model = kind(2, split="paper", max_fit_rows=150, max_centres=50, verbose=1, random_state=0).fit(X)
    assert model.rows_used_ == RowsUsed(200, 150, 50)
    assert "on 150 of 200 rows, with 50 centres of kernels at most" in capsys.readouterr().err
    model.save(tmp_path / "model.isde")
    loaded = isde.load(tmp_path / "model.isde")
    assert loaded.rows_used_ == model.rows_used_
    assert (loaded.max_fit_rows, loaded.max_centres) == (150, 50)
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))


def test_all_rows_are_said_to_be_all(rng, capsys):
    model = ISDE(2, split="paper", verbose=1, random_state=0).fit(rng.normal(size=(100, 2)))
    assert model.rows_used_.is_all
    assert "on all 100 rows\n" in capsys.readouterr().err


@pytest.mark.parametrize("saved", [{"given": 5, "fitted": 9, "centres": 2}, {"given": "5", "fitted": 3, "centres": 2}])
def test_rows_used_in_a_file_are_not_believed(saved):
    with pytest.raises((ValueError, TypeError)):
        RowsUsed.from_json(saved)


def test_rows_left_out_are_bounded_too(rng, monkeypatch):
    X = np.column_stack([ring(rng, 300), rng.normal(size=300)])
    model = ISDE(2, split="paper", random_state=0).fit(X)
    whole = held_out(model, X)
    monkeypatch.setattr(worth, "MOST_ROWS", 100)
    found = held_out(model, X)
    assert (whole.n_fitted, whole.n_scored) == (240, 60)
    assert (found.n_fitted, found.n_scored) == (80, 20)


# --- Gaussians by compiled code ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("n_components", [1, 70])
def test_sums_of_gaussians_are_those_of_scipy(rng, size, n_components):
    factors = rng.normal(size=(n_components, size, size)) + 2 * np.eye(size)
    weights = rng.dirichlet(np.ones(n_components))
    block = MixtureBlock(weights, rng.normal(size=(n_components, size)), factors @ factors.transpose(0, 2, 1))
    X = np.concatenate([rng.normal(size=(150, size)), 1e3 * rng.normal(size=(5, size)), np.full((1, size), 1e100)])
    expected = logsumexp(
        [
            np.log(w) + np.atleast_1d(multivariate_normal(m, c).logpdf(X))
            for w, m, c in zip(block.weights, block.means, block.covariances, strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(block.score_samples(X), expected, rtol=1e-12, atol=1e-12)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(block.score_samples(X, n_jobs), block.score_samples(X))


def test_a_row_beyond_all_numbers_has_a_density():
    block = MixtureBlock(np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), 1e-20))
    assert np.isfinite(block.score_samples(np.array([[1e200]]))).all()


# --- some rows at a time -------------------------------------------------------------------------------------------


def write(X, names, path):
    """A table as a file of any ending that can be streamed."""
    ending = "".join(path.suffixes)
    if ending == ".npy":
        np.save(path, X)
    elif ending == ".parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table([*X.T.copy()], names), path, row_group_size=70)
    else:
        separator = "," if "csv" in ending else "\t"
        text = "\n".join([separator.join(names), *(separator.join(map(repr, row)) for row in X.tolist())]) + "\n"
        if ending.endswith(".gz"):
            import gzip

            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
    return path


@pytest.mark.parametrize("ending", sorted(STREAMS))
@pytest.mark.parametrize("batch_rows", [1, 7, 64, 200, 10**6])
def test_batches_are_the_table(rng, tmp_path, ending, batch_rows):
    X = rng.normal(size=(200, 3))
    path = write(X, ["a", "b", "c"], tmp_path / f"rows{ending}")
    for options in ({}, {"columns": ["x2", "x0"] if ending == ".npy" else ["c", "a"]}):
        whole = read_table(path, **options)
        batches = list(read_batches(path, batch_rows=batch_rows, **options))
        assert {table.names for table in batches} == {whole.names}
        assert max(len(table.X) for table in batches) <= batch_rows
        assert len(batches) == -(-200 // batch_rows)
        np.testing.assert_array_equal(np.concatenate([table.X for table in batches]), whole.X)


def test_files_that_are_read_whole_come_in_batches_too(rng, tmp_path):
    X = rng.normal(size=(20, 2))
    np.savez(tmp_path / "rows.npz", X=X)
    batches = list(read_batches(tmp_path / "rows.npz", batch_rows=6))
    assert [len(table.X) for table in batches] == [6, 6, 6, 2]
    np.testing.assert_array_equal(np.concatenate([table.X for table in batches]), X)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n\n3,4\n\n\n5,6\n\n",
        '"a","b"\r\n"1","2"\r\n3,4\r\n5,6',
        "\n\na,b\n1,2\n3,4\n5,6\n",
        '"a\nline",b\n1,2\n3,4\n5,6\n',
        '"a","b"\n"1\n","2"\n3,4\n5,6\n',
    ],
)
def test_blank_lines_and_quotes_are_no_rows_of_a_batch(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode())
    whole = read_table(path)
    for batch_rows in (1, 2, 3, 4):
        batches = list(read_batches(path, batch_rows=batch_rows))
        np.testing.assert_array_equal(np.concatenate([table.X for table in batches]), whole.X)
        assert batches[0].names == whole.names


@pytest.mark.parametrize(
    ("last", "columns"),
    [
        ("1,2,3", None),
        ("1", None),
        ("1,text", None),
        ("1,", None),
        ("text,1", ["a"]),
        ('1,"0,5"', None),
        ("1,2,3", ["b"]),
    ],
)
def test_what_is_wrong_late_in_a_file_is_told_as_of_the_whole(tmp_path, last, columns):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1.5,2.5\n" * 50 + last + "\n")
    with pytest.raises(InputError) as whole:
        read_table(path, columns=columns)
    with pytest.raises(InputError) as streamed:
        list(read_batches(path, columns=columns, batch_rows=8))
    assert str(streamed.value) == str(whole.value)


@pytest.mark.parametrize("content", ["", "\n\n", "a,b\n", "1;2\n3;4\n"])
def test_files_of_nothing_are_refused_as_before(tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InputError) as whole:
        read_table(path)
    with pytest.raises(InputError) as streamed:
        list(read_batches(path))
    assert str(streamed.value) == str(whole.value)


def test_values_that_are_no_numbers_are_counted_to_the_end(rng):
    X = rng.normal(size=(40, 2))
    X[[17, 30], 0], X[31, 1] = np.nan, np.inf
    batches = [Table(X[i : i + 8], ("a", "b")) for i in range(0, 40, 8)]
    given = []
    with pytest.raises(InputError, match=r"'a' \(2\), 'b' \(1\) of 40 rows, first in row 18"):
        given.extend(table for table in finite_batches(batches))
    assert len(given) == 2


def test_reading_batches_takes_the_memory_of_one(rng, tmp_path):
    path, peaks = write(rng.normal(size=(20_000, 5)), list("abcde"), tmp_path / "rows.csv"), []
    for read in (read_table, lambda path: [0 for _ in read_batches(path, batch_rows=500)]):
        tracemalloc.start()
        read(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] / 4


# --- isde score ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    rng = np.random.default_rng(3)
    X = np.column_stack([ring(rng, 260), rng.normal(size=260)])
    model = ISDE(2, split="paper", max_fit_rows=200, max_centres=80, random_state=0).fit(Table(X, ("x", "y", "z")))
    path = tmp_path_factory.mktemp("model") / "model.isde"
    model.save(path)
    return model, path, X


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def small_batches(monkeypatch):
    import isde.data.readers as readers

    monkeypatch.setitem(readers.read_batches.__kwdefaults__, "batch_rows", 37)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy", ".tsv.gz"])
def test_scores_of_batches_are_those_of_the_whole_to_the_bit(fitted, tmp_path, small_batches, ending):
    model, path, X = fitted
    data = write(X, ["x", "y", "z"], tmp_path / f"rows{ending}")
    table = list(csv.reader(io.StringIO(call("score", path, data, "--rows", "--jobs", 1).stdout)))
    blocks = model.score_blocks(Table(X, ("x", "y", "z")))
    np.testing.assert_array_equal(np.array(table[1:], dtype=float)[:, 1:], blocks)
    np.testing.assert_array_equal(np.array(table[1:], dtype=float)[:, 0], blocks.sum(axis=1))
    found = json.loads(call("score", path, data, "--json", "--jobs", 2).stdout)
    values = blocks.sum(axis=1)
    assert found["mean_log_density"] == values.mean()
    assert found["lowest"] == values.min()
    assert found["n_rows"] == 260


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_scores_go_to_a_file(fitted, tmp_path, small_batches, ending):
    model, path, X = fitted
    data, output = write(X, ["x", "y", "z"], tmp_path / "rows.csv"), tmp_path / f"scores{ending}"
    result = call("score", path, data, "-o", output, "--jobs", 1)
    assert "260 rows: mean log-density" in result.stdout
    found = read_table(output)
    assert found.names[0] == "log_density"
    np.testing.assert_array_equal(found.X[:, 1:], model.score_blocks(Table(X, ("x", "y", "z"))))
    again = call("score", path, data, "-o", output)
    assert again.exit_code != 0
    assert "--overwrite" in again.stderr
    assert call("score", path, data, "-o", output, "--overwrite", "--jobs", 1).exit_code == 0


@pytest.mark.parametrize("output", ["scores.txt", "nowhere/scores.csv"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read(fitted, tmp_path, output):
    result = call("score", fitted[1], tmp_path / "nothing.csv", "-o", tmp_path / output)
    assert result.exit_code != 0
    assert "nothing.csv" not in result.stderr


@pytest.mark.parametrize("broken", ["nan,1,2", "1,2", "text,1,2"])
def test_a_late_row_that_is_refused_leaves_nothing_behind(fitted, tmp_path, small_batches, broken):
    _, path, X = fitted
    data = write(X, ["x", "y", "z"], tmp_path / "rows.csv")
    data.write_text(data.read_text() + broken + "\n")
    output = tmp_path / "scores.csv"
    for arguments in (["--rows"], ["-o", output]):
        result = call("score", path, data, *arguments, "--jobs", 1)
        assert result.exit_code != 0
        assert result.stdout == ""
        assert {file.name for file in tmp_path.iterdir()} == {"rows.csv"}
    if broken.startswith("nan"):
        assert "of 261 rows, first in row 261" in result.stderr
    if broken == "1,2":
        assert "row 261 has 2 values" in result.stderr


def test_bounds_are_options_of_the_command_line(rng, tmp_path):
    data = write(np.column_stack([ring(rng, 150), rng.normal(size=150)]), ["x", "y", "z"], tmp_path / "rows.csv")
    options = ["--split", "paper", "-k", 2, "--jobs", 1, "--max-fit-rows", 100, "--max-centres", 30]
    result = call("fit", data, "-o", tmp_path / "run", *options)
    assert "densities learned from 100 of 150 rows, with 30 centres of kernels at most" in result.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["rows_used"] == {"given": 150, "fitted": 100, "centres": 30}
    assert "densities learned from 100 of 150 rows" in call("info", tmp_path / "run").stdout
    free = call("fit", data, "--split", "paper", "-k", 2, "--jobs", 1, "--max-centres", "none", "--json")
    assert json.loads(free.stdout)["rows_used"] == {"given": 150, "fitted": 150, "centres": 150}
    refused = call("fit", data, "--max-centres", "few")
    assert "'few' is no number of rows: give 2 or more, or none for all." in refused.stderr


def test_exact_kernel_sums_of_bounded_blocks(fitted):
    """Against the definition, by all centres."""
    model, _, X = fitted
    block = model.density_.blocks[0]
    U = model.density_.scaling.transform(X)[:, :2]
    part = parts_with_kernels(block)[0]
    if len(part.bandwidths):
        logs = direct.log_kernel_sums(U, part.centres, part.bandwidths)
        logs += (np.log(part.kernel_weights) - direct.log_normaliser(2, len(part.centres), part.bandwidths))[:, None]
        gaussians = [
            np.log(w) + multivariate_normal(m, c).logpdf(U)
            for w, m, c in zip(part.weights, part.means, part.covariances, strict=True)
        ]
        np.testing.assert_allclose(
            part.score_samples(U), logsumexp([*logs, *gaussians], axis=0), rtol=1e-12, atol=1e-12
        )
