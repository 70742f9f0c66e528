"""The command line: results on standard output, talk on standard error, one sentence and an exit code on misuse."""

import csv
import errno
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import isde
from fcs_files import write_fcs
from isde import ISDE, best_partitions, load, synthetic, worst_partitions
from isde.cli import COMMANDS, main
from isde.cli.exit_codes import EXIT_CODES
from isde.cli.options import split_names
from isde.data.words import join_names
from isde.errors import CheckpointError, ClusterError, InputError, PartialWarning, ResourceError, warn
from isde.run.folder import run_folder
from isde.synthetic import demo_table
from oracles import ROUNDING

NAMES = ["x", "y", "z"]
MODEL, SUMMARY = "model.isde", "summary.json"
KEPT = {MODEL, SUMMARY, "manifest.json", "scores.log", "lock"}


@pytest.fixture
def data(tmp_path, rng):
    """A csv file of 150 rows: x and y together, z alone."""
    t = rng.normal(size=150)
    X = np.column_stack([t, t + 0.3 * rng.normal(size=150), 40 + 9 * rng.normal(size=150)])
    return write_csv(tmp_path / "data.csv", X)


@pytest.fixture
def run(tmp_path, data):
    """The folder of a fitted Gaussian model."""
    assert call("fit", data, "-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", 1).exit_code == 0
    return tmp_path / "run"


def write_csv(path, X, names=NAMES):
    with open(path, "w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        if names:
            writer.writerow(names)
        writer.writerows(np.asarray(X).tolist())
    return path


def write_counting(folder):
    """What pandas writes for a frame made of an array: names that are numbers."""
    return write_csv(folder / "counting.csv", np.eye(3), names=range(3))


def read_csv(path):
    return np.loadtxt(path, delimiter=",", skiprows=1)


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def spawn(*arguments, **options):
    """The command in a process of its own, as a user calls it."""
    code = "import sys; from isde.cli import main; main(prog_name='isde')"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def refusal(result, code=2):
    """The one sentence of a refused call: its exit code, nothing on standard output, no traceback."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1
    assert result.stderr.splitlines()[-1] == lines[0]
    return lines[0]


def snapshot(folder):
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


# --- standard output -------------------------------------------------------------------------------------------


def test_rows_of_score_are_json_where_that_is_asked_for(run, data):
    found = json.loads(call("score", run, data, "--rows", "--json", "--jobs", 1).stdout)
    as_csv = call("score", run, data, "--rows", "--jobs", 1).stdout.splitlines()
    assert found["columns"] == next(csv.reader(as_csv))
    assert [",".join(map(repr, row)) for row in found["rows"]] == as_csv[1:]


def test_one_of_a_kind_is_no_plural(data):
    shown = call("fit", data, "--columns", "x", "--marginal", "gaussian", "--jobs", 1, "--quiet").stdout
    assert shown.startswith("1 block of 1 column (largest allowed 1, 1 subset scored, ")


def test_what_is_printed_is_utf8_whatever_the_locale(tmp_path, rng):
    path = write_csv(tmp_path / "data.csv", rng.normal(size=(60, 2)), names=["größe", "😀"])
    run = tmp_path / "run"
    assert call("fit", path, "-o", run, "--marginal", "gaussian", "--jobs", 1, "--quiet").exit_code == 0
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    drawn = spawn("sample", run, "-n", 1, env=ascii_only, encoding="utf-8")
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert drawn.stdout.splitlines()[0] == "größe,😀"


def test_a_run_that_is_not_there_is_called_a_run(tmp_path):
    complaint = refusal(call("info", tmp_path / "nowhere"))
    assert complaint.endswith("nowhere does not exist: give a folder made by isde fit, or a file saved by isde.")


# --- help ------------------------------------------------------------------------------------------------------


def test_help_lists_every_command_without_heavy_imports():
    code = """
import sys
from isde.cli import main
try:
    main(["--help"])
except SystemExit as stop:
    heavy = {"sklearn", "numba", "scipy", "pandas", "numpy", "pyarrow"} & set(sys.modules)
    sys.exit(f"exit code {stop.code}, imported {heavy}" if stop.code or heavy else 0)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    for command, text in COMMANDS.items():
        assert command in shown.stdout
        assert text in shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    shown = call(command, "-h")
    assert shown.exit_code == 0
    assert f"Usage: main {command}" in shown.stdout
    assert "--json" in shown.stdout


def test_the_package_answers_as_a_module():
    command = [sys.executable, "-m", "isde", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.strip() == f"isde, version {isde.__version__}"


@pytest.mark.parametrize("command", ["--help", "fit --help", "info RUN", "partitions RUN --worst 2"])
def test_what_only_reads_compiles_nothing_that_scores_or_fits(run, command):
    code = """
import sys
from isde.cli import main
main(sys.argv[1:], standalone_mode=False)
if "numba" in sys.modules:
    from numba.core.dispatcher import Dispatcher
    engine = [module for name, module in sys.modules.items() if name.startswith("isde.engine.")]
    found = [value for module in engine for value in vars(module).values() if isinstance(value, Dispatcher)]
    compiled = {function.__name__ for function in found if function.signatures}
    sys.exit(f"compiled {compiled}" if compiled else 0 if found else "there is nothing to compile")
"""
    arguments = [str(run) if word == "RUN" else word for word in command.split()]
    shown = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_the_installed_script_answers():
    script = Path(sys.executable).with_name("isde.exe" if os.name == "nt" else "isde")
    if not script.exists():
        pytest.skip(f"The package is used without its script: {script} does not exist.")
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.strip() == f"isde, version {isde.__version__}"


# --- fit -------------------------------------------------------------------------------------------------------


def test_fit_writes_the_model_that_the_estimator_finds(data, tmp_path):
    X = read_csv(data)
    result = call("fit", data, "-o", tmp_path / "run", "-k", 3, "--seed", 7, "--jobs", 1, "--quiet", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    model, expected = isde.load(tmp_path / "run"), ISDE(3, random_state=7).fit(X)
    assert [[NAMES.index(name) for name in block["columns"]] for block in summary["blocks"]] == [
        list(block) for block in expected.partition_
    ]
    assert model.partition_ == expected.partition_
    assert model.selection_ == expected.selection_
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.density_.score_samples(X), expected.score_samples(X))
    assert summary["score"] == expected.selection_.score
    assert summary["objective"] == expected.selection_.objective == summary["bound"]
    at = [expected.subset_scores_.subsets.index(block) for block in expected.partition_]
    assert [b["chance"] for b in summary["blocks"]] == expected.subset_scores_.charges[at].tolist()
    assert [b["gain_error"] for b in summary["blocks"]] == expected.subset_scores_.gain_errors[at].tolist()
    second = isde.best_partitions(expected.subset_scores_, 2)[1]
    assert summary["runner_up"]["below"] == expected.selection_.objective - second.objective > 0
    assert (summary["is_optimal"], summary["rank"], summary["proof"]) == (True, 1, "proved")
    assert [b["gain"] for b in summary["blocks"]] == [expected.subset_scores_.gain(b) for b in expected.partition_]
    assert {b["bandwidth"] for b in summary["blocks"]} == {None}  # a stack has several
    assert summary["independence_score"] == pytest.approx(sum(expected.subset_scores_.scores[:3]), abs=ROUNDING)
    assert (summary["n_rows"], summary["n_columns"], summary["n_subsets"]) == (150, 3, 7)
    assert snapshot(tmp_path / "run").keys() == KEPT
    assert json.loads((tmp_path / "run" / SUMMARY).read_text(encoding="utf-8")) == summary


def test_fit_prints_blocks_gains_and_proof(data, tmp_path):
    result = call("fit", data, "-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", 1)
    assert "x, y   gain " in result.stdout
    assert "alone: z" in result.stdout
    assert "the best partition for these scores, proved" in result.stdout
    assert "NOT" not in result.stdout
    assert str(tmp_path / "run") in result.stderr
    assert str(tmp_path / "run") not in result.stdout


def test_quiet_is_quiet(data, tmp_path):
    loud = call("fit", data, "-o", tmp_path / "a", "--marginal", "gaussian", "--jobs", 1, "--json")
    quiet = call("fit", data, "-o", tmp_path / "b", "--marginal", "gaussian", "--jobs", 1, "--json", "--quiet")
    assert "Scoring 7 subsets" in loud.stderr
    assert quiet.stderr == ""
    found = [json.loads(result.stdout) for result in (quiet, loud)]
    for one in found:
        one["fit"] = {name: value for name, value in one["fit"].items() if "seconds" not in name}
    assert found[0] == found[1]


def test_options_reach_the_estimator(data, tmp_path):
    options = ["-m", 60, "-n", 50, "--folds", 3, "--bandwidths", "0.1:0.4:3", "--scale", "standard", "--solver", "milp"]
    options += ["--marginal", "kde", "--seed", 4]
    result = call("fit", data, "-o", tmp_path / "run", "-k", 3, "--jobs", 1, *options)
    assert result.exit_code == 0, result.output
    model = isde.load(tmp_path / "run")
    assert (model.split.train_size, model.split.test_size, model.split.random_state) == (60, 50, 4)
    assert model.bandwidths == pytest.approx([0.1, 0.2, 0.4])
    assert (model.cv, model.scale, model.solver, model.random_state) == (3, "standard", "milp", 4)
    assert model.selection_.solver == "milp"
    assert set(model.bandwidths_) <= set(model.bandwidths)


def test_one_block_and_one_column_are_said_as_one(data, tmp_path):
    result = call("fit", data, "-o", tmp_path / "run", "--columns", "x", "--marginal", "gaussian", "--jobs", 1)
    assert "1 block of 1 column (" in result.stdout


def test_columns_can_be_chosen_by_name(data, tmp_path):
    call("fit", data, "-o", tmp_path / "run", "--columns", "z, x", "--marginal", "gaussian", "--jobs", 1)
    assert isde.load(tmp_path / "run").feature_names_in_.tolist() == ["z", "x"]


def test_a_name_with_a_comma_can_be_asked_for(tmp_path, rng):
    data = write_csv(tmp_path / "data.csv", rng.normal(size=(60, 3)), ["a", "b, c", "d"])
    asked = ["--columns", 'd,"b, c"', "--marginal", "gaussian", "--jobs", 1]
    assert call("fit", data, "-o", tmp_path / "run", *asked).exit_code == 0
    assert isde.load(tmp_path / "run").feature_names_in_.tolist() == ["d", "b, c"]
    result = call("partitions", tmp_path / "run", "--together", '"b, c",d', "--best", 1, "--json")
    assert json.loads(result.stdout)["best"][0]["blocks"] == [["d", "b, c"]]


@pytest.mark.parametrize("names", [["a"], ["a", "b, c"], ['5" long', "b"], ['"quoted"', "a b", "c,d"], ["a,", ",b"]])
def test_names_joined_are_taken_apart_again(names):
    assert split_names(join_names(names)) == names


def test_a_name_with_a_comma_is_shown_as_one(tmp_path, rng):
    t = rng.normal(size=(100, 1))
    data = write_csv(tmp_path / "data.csv", t + 0.2 * rng.normal(size=(100, 2)), ["a", "b, c"])
    assert '  a, "b, c"   gain ' in call("fit", data, "--marginal", "gaussian", "--jobs", 1).stdout


def test_without_output_a_fit_is_shown_and_nothing_is_written(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    options = ["--marginal", "gaussian", "--jobs", 1]
    shown = call("fit", data, *options)
    assert shown.exit_code == 0, shown.output
    assert snapshot(tmp_path) == before
    assert "Nothing was written: with -o FOLDER the model is kept" in shown.stderr
    assert shown.stdout == call("fit", data, *options, "-o", tmp_path / "run").stdout
    assert call("fit", data, *options, "--quiet").stderr == ""


def test_the_parents_of_the_output_are_made_and_gone_where_the_fit_fails(data, tmp_path):
    folder = tmp_path / "some" / "where" / "run"
    before = snapshot(tmp_path)
    refusal(call("fit", data, "-o", folder, "-k", 0))
    refusal(call("fit", tmp_path / "no.csv", "-o", folder))
    assert snapshot(tmp_path) == before
    assert call("fit", data, "-o", folder, "--marginal", "gaussian", "--jobs", 1).exit_code == 0
    assert snapshot(folder).keys() == KEPT
    assert [p.name for p in folder.parent.iterdir()] == ["run"]


def test_the_summary_says_where_a_run_comes_from(data, tmp_path):
    options = ["--marginal", "gaussian", "--jobs", 1, "--columns", "x,z", "--seed", 3]
    call("fit", data, "-o", tmp_path / "run", *options)
    summary = json.loads((tmp_path / "run" / SUMMARY).read_text(encoding="utf-8"))
    assert (summary["version"], summary["n_rows"], summary["seed"]) == (isde.__version__, 150, 3)
    assert summary["split"]["splitter"].startswith("ShuffleSplit(n_splits=20, random_state=3, ")
    assert (summary["split"]["fit_rows"], summary["split"]["score_rows"]) == ([67] * 20, [83] * 20)
    chosen = {"marginal": "gaussian", "columns": ["x", "z"], "seed": 3, "folds": 5, "separator": None, "alpha": "auto"}
    assert chosen.items() <= summary["options"].items()
    others = {option.name for option in main.get_command(None, "fit").params} - set(summary["options"])
    assert others == {"data", "output", "page", "overwrite", "cluster", "as_json", "quiet", "debug"}


@pytest.mark.parametrize(
    ("options", "fit_rows", "score_rows"),
    [(["-m", 60, "-n", 50], [60], [50]), (["--penalty", "bic"], [150], [150])],
    ids=str,
)
def test_the_summary_counts_the_rows_that_fitted_and_scored(data, options, fit_rows, score_rows):
    found = json.loads(call("fit", data, "--marginal", "gaussian", "--jobs", 1, "--json", *options).stdout)
    assert (found["split"]["fit_rows"], found["split"]["score_rows"]) == (fit_rows, score_rows)


def test_data_may_come_through_standard_input_or_gzipped(data, run, tmp_path):
    plain = data.read_bytes()
    expected = call("score", run, data, "--jobs", 1).stdout
    for given in (plain, gzip.compress(plain)):
        result = CliRunner().invoke(main, ["score", str(run), "-", "--jobs", "1"], input=given)
        assert (result.exit_code, result.stdout) == (0, expected)
    missed = CliRunner().invoke(main, ["score", str(run), "-"], input="x,y\n1,2\n")
    assert refusal(missed) == "Error: standard input has no column 'z', which the model needs."
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(plain))
    assert call("score", run, tmp_path / "data.csv.gz", "--jobs", 1).stdout == expected


def test_another_encoding_is_told_and_taken(tmp_path, rng):
    data = write_csv(tmp_path / "data.csv", rng.normal(size=(60, 2)), ["größe", "b"])
    data.write_bytes(data.read_text(encoding="utf-8").encode("latin-1"))
    fit = ["fit", data, "--marginal", "gaussian", "--jobs", 1, "--json", "--quiet"]
    message = refusal(call(*fit))
    assert message.endswith("data.csv is not UTF-8: read it with --encoding latin-1, or the one it was written in.")
    found = json.loads(call(*fit, "--encoding", "latin-1").stdout)
    assert [block["columns"] for block in found["blocks"]] == [["größe"], ["b"]]


def test_a_tab_is_typed_as_messages_write_it(data, run, tmp_path):
    tabs = tmp_path / "tabs.csv"
    tabs.write_text(data.read_text(encoding="utf-8").replace(",", "\t"), encoding="utf-8")
    assert r"(--separator '\t')" in refusal(call("score", run, tabs))
    assert call("score", run, tabs, "--separator", r"\t", "--jobs", 1).exit_code == 0


@pytest.mark.parametrize("ending", [".tsv", ".parquet", ".npy", ".npz", ".fcs"])
def test_every_kind_of_file_gives_the_same_model(data, run, tmp_path, ending):
    X = read_csv(data)
    path = tmp_path / f"data{ending}"
    if ending == ".tsv":
        np.savetxt(path, X, delimiter="\t", fmt="%.17g", header="\t".join(NAMES), comments="")
    elif ending == ".parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), path)
    elif ending == ".fcs":
        write_fcs(path, X, NAMES, [""] * 3, kind="D")
    else:
        np.save(path, X) if ending == ".npy" else np.savez(path, X=X, columns=NAMES)
    result = call("fit", path, "-o", tmp_path / "other", "--marginal", "gaussian", "--jobs", 1)
    assert result.exit_code == 0, result.output
    found, expected = (isde.load(folder).density_.score_samples(X) for folder in (tmp_path / "other", run))
    np.testing.assert_array_equal(found, expected)


def test_a_first_row_of_numbers_is_said_to_be_data_unless_told_or_quiet(data, tmp_path, run):
    plain = write_csv(tmp_path / "plain.csv", read_csv(data), names=None)
    said = "plain.csv: first row taken as data, columns named x0 to x2: --header if it holds names.\n"
    fit = ["fit", plain, "--marginal", "gaussian", "--jobs", 1, "--overwrite", "-o", tmp_path / "other"]
    for command in (fit, ["score", run, plain], ["compare", plain, "--methods", "gaussian", "--repeats", 2]):
        assert said in call(*command).stderr
        for option in ("--quiet", "--no-header"):
            result = call(*command, option)
            assert result.exit_code == 0, result.output
            assert said not in result.stderr
    assert "--header or --no-header" in refusal(call("fit", write_counting(tmp_path), "-o", tmp_path / "third"))


# --- score, sample, info ---------------------------------------------------------------------------------------


def test_score_prints_the_mean_log_density(data, run):
    values = isde.load(run).density_.score_samples(read_csv(data))
    result = call("score", run, data, "--json", "--jobs", 1)
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["n_rows"] == 150
    assert found["mean_log_density"] == pytest.approx(values.mean(), abs=ROUNDING)
    assert found["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(150), abs=ROUNDING)
    assert found["lowest"] == pytest.approx(values.min(), abs=ROUNDING)
    assert f"mean log-density {values.mean():.6f}" in call("score", run, data, "--jobs", 1).stdout


def test_score_prints_every_row_and_block(data, run):
    table = list(csv.reader(io.StringIO(call("score", run, data, "--rows", "--jobs", 1).stdout)))
    assert table[0] == ["log_density", "x y", "z"]
    values = np.array(table[1:], dtype=float)
    np.testing.assert_array_equal(values[:, 1:], isde.load(run).density_.score_blocks(read_csv(data)))
    np.testing.assert_allclose(values[:, 0], values[:, 1:].sum(axis=1), rtol=0, atol=ROUNDING)


def test_headers_of_blocks_differ_whatever_columns_are_called(tmp_path, rng):
    t = rng.normal(size=(150, 1))
    X = np.hstack([t, t + 0.2 * rng.normal(size=(150, 1)), rng.normal(size=(150, 2))])
    data = write_csv(tmp_path / "data.csv", X, ["a", "b", "a b", "log_density"])
    fitted = call("fit", data, "-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", 1)
    assert fitted.exit_code == 0, fitted.output
    header = next(csv.reader(io.StringIO(call("score", tmp_path / "run", data, "--rows", "--jobs", 1).stdout)))
    assert header == ["log_density", "a b", '"a b"', '"log_density"']


def test_columns_are_found_by_name_in_any_order_and_among_others(data, run, tmp_path):
    X = read_csv(data)
    moved = write_csv(
        tmp_path / "moved.csv", np.column_stack([X[:, 2], X[:, 0], X[:, 0] ** 2, X[:, 1]]), ["z", "x", "w", "y"]
    )
    assert call("score", run, moved, "--jobs", 1).stdout == call("score", run, data, "--jobs", 1).stdout


def test_only_the_columns_of_the_model_are_read(data, run, tmp_path):
    lines = data.read_text(encoding="utf-8").splitlines()
    more = ["cell,,note," + lines[0], *(f"cell{i},{i},NA,{line}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "more.csv").write_text("\n".join(more), encoding="utf-8")
    result = call("score", run, tmp_path / "more.csv", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout == call("score", run, data, "--jobs", 1).stdout
    assert "'cell'" in refusal(call("score", run, tmp_path / "more.csv", "--columns", "cell,x,y,z"))


def test_names_that_are_numbers_are_known_from_the_model(tmp_path, rng):
    data = write_csv(tmp_path / "data.csv", rng.normal(size=(60, 2)), ["2019", "2020"])
    arguments = ["-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", 1]
    assert call("fit", data, "--header", *arguments).exit_code == 0
    result = call("score", tmp_path / "run", data, "--json", "--jobs", 1)
    assert (json.loads(result.stdout)["n_rows"], result.stderr) == (60, "")


def test_a_file_without_names_is_scored_by_position(data, run, tmp_path):
    plain = write_csv(tmp_path / "plain.csv", read_csv(data), names=None)
    assert call("score", run, plain, "--jobs", 1).stdout == call("score", run, data, "--jobs", 1).stdout


def test_one_row_has_no_standard_error(data, run, tmp_path):
    one = write_csv(tmp_path / "one.csv", read_csv(data)[:1])
    assert json.loads(call("score", run, one, "--json", "--jobs", 1).stdout)["standard_error"] is None
    assert "standard error" not in call("score", run, one, "--jobs", 1).stdout


def test_sample_prints_the_rows_that_the_model_draws(run):
    expected = isde.load(run).sample(20, random_state=3)
    result = call("sample", run, "-n", 20, "--seed", 3)
    assert (result.exit_code, result.stderr) == (0, "")
    table = list(csv.reader(io.StringIO(result.stdout)))
    assert table[0] == NAMES
    np.testing.assert_array_equal(np.array(table[1:], dtype=float), expected)
    found = json.loads(call("sample", run, "-n", 20, "--seed", 3, "--json").stdout)
    assert found["columns"] == NAMES
    np.testing.assert_array_equal(found["rows"], expected)


def test_sampled_rows_can_be_scored(run, tmp_path):
    (tmp_path / "drawn.csv").write_text(call("sample", run, "-n", 50).stdout, encoding="utf-8")
    assert json.loads(call("score", run, tmp_path / "drawn.csv", "--json", "--jobs", 1).stdout)["n_rows"] == 50


def test_a_model_of_columns_without_names_can_be_shown_sampled_and_scored(tmp_path, rows):
    ISDE(marginal="gaussian", random_state=0).fit(rows).save(tmp_path / "model.isde")
    plain = write_csv(tmp_path / "plain.csv", rows, names=None)
    for arguments in (["info"], ["sample", "-n", 3], ["score", plain, "--jobs", 1]):
        result = call(arguments[0], tmp_path / "model.isde", *arguments[1:])
        assert result.exit_code == 0, result.output
    assert call("sample", tmp_path / "model.isde", "-n", 3).stdout.startswith("x0,x1,x2\n")


def test_info_prints_what_fit_found(run):
    result = call("info", run)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "x, y   gain " in result.stdout
    assert "the best partition for these scores, proved" in result.stdout
    found, stored = json.loads(call("info", run, "--json").stdout), json.loads((run / SUMMARY).read_text())
    assert found == {key: stored[key] for key in found}


def test_info_says_where_a_proof_was_not_checked_again(run, monkeypatch):
    monkeypatch.setattr("isde.solvers.proofs.MOST_STEPS", 0)
    result = call("info", run)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "the best partition for these scores, proved when it was fitted, not checked again: score " in result.stdout
    assert "bound" not in result.stdout
    found = json.loads(call("info", run, "--json").stdout)
    assert (found["proof"], found["is_optimal"], found["bound"]) == ("not checked again", False, None)


# --- partitions ------------------------------------------------------------------------------------------------


def test_partitions_lists_the_best_and_the_worst_in_order(run):
    scores = load(run).subset_scores_
    result = call("partitions", run, "--best", 2, "--worst", 1, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    expected = best_partitions(scores, 2)
    assert [row["blocks"] for row in found["best"]] == [
        [[NAMES[c] for c in block] for block in one.partition] for one in expected
    ]
    assert [row["score"] for row in found["best"]] == [one.score for one in expected]
    assert found["best"][1]["below_best"] == expected[0].score - expected[1].score
    assert found["best"][0]["edits"] == 0
    assert found["worst"][0]["score"] == worst_partitions(scores, 1)[0].score
    assert all(row["is_proved"] for rows in found.values() for row in rows)


def test_partitions_prints_a_table_of_all_five_partitions_of_three_columns(run):
    result = call("partitions", run)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "the 5 best, proved"
    assert "{x, y} 1 alone" in lines[2]
    assert len(lines) == 7
    assert "the 1 worst, proved" in call("partitions", run, "--worst", 1).stdout
    assert "best" not in call("partitions", run, "--worst", 1).stdout.replace("below best", "")


def test_partitions_reads_a_saved_score_table(run, tmp_path):
    load(run).subset_scores_.save(tmp_path / "scores.isde")
    assert call("partitions", tmp_path / "scores.isde").stdout == call("partitions", run).stdout


@pytest.mark.parametrize(
    ("options", "best"),
    [
        (["-k", 1], [["x"], ["y"], ["z"]]),
        (["--together", "x,z", "--apart", "x, y"], [["x", "z"], ["y"]]),
        (["--block", "y,z"], [["x"], ["y", "z"]]),
        (["--min-block-size", 3], [["x", "y", "z"]]),
        (["--max-blocks", 1], [["x", "y", "z"]]),
    ],
)
def test_partitions_under_constraints(run, options, best):
    result = call("partitions", run, "--best", 1, "--json", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["best"][0]["blocks"] == best


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--together", "x,q"], "There is no column 'q' to keep together: the columns are x, y, z."),
        (["--together", "x,y", "--apart", "y,x"], "meets all of these: together x, y; apart x, y."),
        (["-k", 9], "score again with the larger size"),
        (["-k", 2, "--min-block-size", 2], "meets this: --min-block-size 2"),
    ],
)
def test_partitions_refuses_what_cannot_be(run, options, complaint):
    if "score again" in complaint:
        load(run).subset_scores_.restrict(2).save(run.parent / "scores.isde")
        run = run.parent / "scores.isde"
    assert complaint in refusal(call("partitions", run, *options))


# --- misuse ----------------------------------------------------------------------------------------------------

BAD_FILES = {
    "empty": ("", "is empty"),
    "ragged": ("x,y\n1,2\n3\n", "ragged: row 2 has 1 values"),
    "text": ("x,y\n1,foo\n2,bar\n", "'y' (for example 'foo')"),
    "missing": ("x,y\n1,\n2,3\n", "Missing values in 'y' (1)"),
    "semicolon": ("x;y\n1;2\n", "separated by ';'"),
    "nan": ("x,y\n" + "".join(f"{i},{'nan' if i < 2 else i * i}\n" for i in range(9)), "'y' (2) of 9 rows"),
    "constant": ("x,y\n" + "".join(f"{i},5\n" for i in range(9)), "'y' has the same value"),
    "duplicate": ("x,x\n1,2\n", "more than one column named 'x'"),
    "few rows": ("x,y\n1,2\n2,3\n3,5\n", "3 sample"),
    "only header": ("x,y\n", "no rows"),
    "binary": ("\x00\x80\udcff\udcfe", "no text file"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line_and_nothing_is_written(tmp_path, kind):
    content, complaint = BAD_FILES[kind]
    (tmp_path / "bad.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
    before = snapshot(tmp_path)
    assert complaint in refusal(call("fit", tmp_path / "bad.csv", "-o", tmp_path / "run", "--jobs", 1))
    assert snapshot(tmp_path) == before


BAD_OPTIONS = {
    "k": (["-k", 0], "--max-block-size 0 must be"),
    "marginal": (["--marginal", "spline"], "'spline' is not one of"),
    "solver": (["--solver", "greedy"], "'greedy' is not one of"),
    "scale": (["--scale", "log"], "'log' is not one of"),
    "folds": (["--folds", 1], "--folds"),
    "grid": (["--bandwidths", "wide"], "'wide' is neither FROM:TO:COUNT"),
    "negative grid": (["--bandwidths", "-1,2"], "must be positive"),
    "rows": (["-m", 1000], "1000"),
    "columns": (["--columns", "x,omega"], "no column 'omega'"),
    "seed": (["--seed", -1], "-1"),
    "jobs": (["--jobs", 0], "0 is no number of workers: give 1 or more, or -1 for all cores."),
    "quotes": (["--columns", 'x,"y'], "quote a name that has a comma"),
    "encoding": (["--encoding", "klingon"], "--encoding klingon is unknown"),
    "separator": (["--separator", "::"], "--separator :: cannot separate values"),
    "unknown": (["--colour", "red"], "--colour"),
}


@pytest.mark.parametrize("kind", BAD_OPTIONS)
def test_a_bad_option_is_refused_and_nothing_is_written(data, tmp_path, kind):
    options, complaint = BAD_OPTIONS[kind]
    before = snapshot(tmp_path)
    assert complaint in refusal(call("fit", data, "-o", tmp_path / "run", "--jobs", 1, *options))
    assert snapshot(tmp_path) == before


def test_a_missing_file_and_an_unknown_ending_are_refused(tmp_path):
    assert "does not exist" in refusal(call("fit", tmp_path / "no.csv", "-o", tmp_path / "run"))
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    assert "'.xlsx'" in refusal(call("fit", tmp_path / "data.xlsx", "-o", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_content_is_refused_and_left_as_it_is(data, tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("precious")
    (folder / MODEL).write_text("not a model")
    before = snapshot(tmp_path)
    for option in ([], ["--overwrite"]):
        assert "holds other files" in refusal(call("fit", data, "-o", folder, *option))
    assert snapshot(tmp_path) == before


def test_an_output_that_is_a_file_or_in_one_is_refused(data, tmp_path):
    before = snapshot(tmp_path)
    assert "is a file" in refusal(call("fit", data, "-o", data))
    assert "data.csv is a file, and no folder" in refusal(call("fit", data, "-o", data / "run"))
    assert "data.csv is a file, and no folder" in refusal(call("fit", data, "-o", data / "some" / "run"))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("command", ["fit", "compare", "demo"])
def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch, command):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)  # the tests may run as root, who may write anywhere
    arguments = [] if command == "demo" else [tmp_path / "nothing.csv"]  # never looked at
    message = refusal(call(command, *arguments, "-o", tmp_path / "run"))
    assert message == f"Error: {tmp_path / 'run'} cannot be written (Permission denied): write somewhere else."


def test_a_name_that_is_too_long_is_refused_before_any_work(data, tmp_path):
    assert "cannot be written (" in refusal(call("fit", data, "-o", tmp_path / ("run" * 100)))


def test_an_empty_folder_is_used(data, tmp_path):
    (tmp_path / "run").mkdir()
    assert call("fit", data, "-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", 1).exit_code == 0
    assert isinstance(isde.load(tmp_path / "run"), ISDE)


def test_an_earlier_run_is_replaced_only_when_told_so(data, run):
    before = snapshot(run)
    again = ["fit", data, "-o", run, "--marginal", "gaussian", "--jobs", 1, "-k", 1]
    message = refusal(call(*again), code=4)
    assert message.startswith(f"Error: {run} was begun with --max-block-size 3, and --max-block-size 1 is smaller")
    assert message.endswith("give another folder, or --overwrite.")
    assert snapshot(run) == before
    assert call(*again, "--overwrite").exit_code == 0
    assert isde.load(run).max_block_size == 1
    assert snapshot(run).keys() == KEPT
    assert not [p for p in run.parent.iterdir() if p.name.endswith(".part")]


def test_a_run_made_before_there_were_logs_is_replaced_only_when_told_so(data, run):
    for name in ("manifest.json", "scores.log", "lock"):
        (run / name).unlink()
    before = snapshot(run)
    again = ["fit", data, "-o", run, "--marginal", "gaussian", "--jobs", 1]
    assert "--overwrite" in refusal(call(*again))
    assert snapshot(run) == before
    assert call(*again, "--overwrite").exit_code == 0
    assert snapshot(run).keys() == KEPT


def without_seconds(folder):
    """The files of a run, its summary without what two fits do not share."""
    files = snapshot(folder)
    summary = json.loads(files.pop(SUMMARY))
    for name in ("seconds", "processor_seconds"):
        del summary["fit"][name]
    return files | {SUMMARY: summary}


def test_the_same_command_goes_on_and_says_how_much_was_there(data, run):
    before = without_seconds(run)
    again = ["fit", data, "-o", run, "--marginal", "gaussian", "--jobs", 1]
    result = call(*again)
    assert result.exit_code == 0
    assert "100% of the subsets were scored before (20 of 20 chunks)" in result.stderr
    assert without_seconds(run) == before
    (run / "scores.log").write_bytes(before["scores.log"][:-1])
    (run / MODEL).unlink()
    result = call(*again)
    assert "of the subsets were scored before (19 of 20 chunks)" in result.stderr
    assert {name: data for name, data in without_seconds(run).items() if name != "scores.log"} == {
        name: data for name, data in before.items() if name != "scores.log"
    }


def test_a_run_that_has_not_ended_is_said_to_be_one(run, tmp_path):
    (run / MODEL).unlink()
    for arguments in (["info", run], ["sample", run], ["export", run, tmp_path / "scores.csv"]):
        assert "holds a run that has not ended: the same isde fit goes on with it" in refusal(call(*arguments))


@pytest.mark.parametrize("holds", ["a run", "nothing yet", "an unfinished file"])
def test_a_folder_in_use_is_refused_at_once(data, run, tmp_path, holds):
    run = run if holds == "a run" else tmp_path / "new"
    with run_folder(run):
        if holds == "an unfinished file":
            (run / ".manifest.json.abc.part").touch()
        code = "import sys; from isde.cli import main; main(prog_name='isde')"
        result = subprocess.run(
            [sys.executable, "-c", code, "fit", data, "-o", run, "--marginal", "gaussian"],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert result.returncode == 4
    assert result.stderr.startswith(f"Error: {run} is in use by process {os.getpid()} on ")


def test_a_partial_file_of_others_is_not_taken_for_a_run(data, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".film.part").touch()
    assert "holds other files" in refusal(call("fit", data, "-o", tmp_path / "run"))


def test_export_writes_every_subset_with_its_exact_score(run, tmp_path):
    scores = isde.load(run).subset_scores_
    for ending in ("csv", "parquet"):
        file = tmp_path / f"scores.{ending}"
        result = call("export", run, file)
        assert (result.exit_code, result.stdout) == (0, "")
        assert f"7 subsets written to {file}" in result.stderr
        assert "exists: give another name, or --overwrite" in refusal(call("export", run, file))
        assert call("export", run, file, "--overwrite").exit_code == 0
    table = pq.read_table(tmp_path / "scores.parquet").to_pydict()
    with open(tmp_path / "scores.csv", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["columns"] for row in rows] == table["columns"] == ["x", "y", "z", "x, y", "x, z", "y, z", "x, y, z"]
    for name, values in (("score", scores.scores), ("gain", scores.gains), ("charge", scores.charges)):
        assert np.array(table[name]).tobytes() == values.tobytes()
        assert np.array([float(row[name]) for row in rows]).tobytes() == values.tobytes()
    assert "ends neither in .csv nor in .parquet" in refusal(call("export", run, tmp_path / "scores.txt"))
    assert "is no folder" in refusal(call("export", run, tmp_path / "no" / "scores.csv"))


def test_a_stopped_command_says_so_by_its_exit_code(data, monkeypatch):
    for number in (signal.SIGINT, signal.SIGTERM):
        monkeypatch.setattr(ISDE, "fit", lambda *_, number=number: os.kill(os.getpid(), number))
        handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
        result = call("fit", data)
        assert (result.exit_code, result.stdout) == (128 + number, "")
        assert result.stderr == "\nStopped.\n"
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError("Unable to allocate 155. GiB"), 5),
        (OSError(errno.ENOSPC, "No space left on device"), 5),
        (OSError(errno.EFBIG, "File too large"), 5),
        (OSError(errno.ENOENT, "No such file or directory"), 1),
        (InputError("no"), 2),
        (TypeError("no"), 2),
        (CheckpointError("no"), 4),
        (ResourceError("no"), 5),
        (ClusterError("no"), 5),
        (RuntimeError("no"), 1),
    ],
    ids=repr,
)
def test_every_family_of_errors_has_its_exit_code(data, monkeypatch, error, code):
    def fail(*_):
        raise error

    monkeypatch.setattr(ISDE, "fit", fail)
    refusal(call("fit", data), code)


@pytest.mark.parametrize(
    ("file", "what"), [("graph.svg", "graph.svg"), (None, "what is printed, or for a temporary file")]
)
def test_a_full_disk_is_a_sentence_that_says_of_what(data, monkeypatch, file, what):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device", file)

    monkeypatch.setattr(ISDE, "fit", fail)
    said = f"There is no room for {what} (No space left on device): make room, or write somewhere else."
    assert said in refusal(call("fit", data), 5)


def test_the_table_of_exit_codes_in_the_docs_is_that_of_the_program():
    text = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    for code, (meaning, families) in EXIT_CODES.items():
        assert f"| {code} | {meaning} | {families} |" in text


@pytest.mark.filterwarnings("default::isde.errors.PartialWarning")
def test_what_has_no_score_is_named_and_the_exit_code_says_partial(data, monkeypatch, tmp_path):
    fit = ISDE.fit

    def without_some(self, *arguments):
        warn("Scoring {x, y} ended the process", PartialWarning)
        return fit(self, *arguments)

    monkeypatch.setattr(ISDE, "fit", without_some)
    result = call("fit", data, "--marginal", "gaussian", "--jobs", 1, "-o", tmp_path / "run")
    assert result.exit_code == 3
    assert "Warning: Scoring {x, y} ended the process" in result.stderr
    assert isinstance(isde.load(tmp_path / "run"), ISDE)


def test_a_failed_fit_leaves_the_earlier_run_as_it_was(run, tmp_path):
    (tmp_path / "bad.csv").write_text("x,y\n1,foo\n")
    before = snapshot(tmp_path)
    refusal(call("fit", tmp_path / "bad.csv", "-o", run, "--overwrite"))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("what", [MODEL, SUMMARY])
def test_a_disk_that_is_full_after_the_fit_takes_nothing_away(data, tmp_path, monkeypatch, what):
    replace = os.replace

    def full(source, target):
        if Path(target).name == what:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    fit = ["fit", data, "--marginal", "gaussian", "--jobs", 1]
    monkeypatch.setattr(os, "replace", full)
    result = call(*fit, "-o", tmp_path / "run")
    assert result.exit_code == 5
    assert result.stdout == call(*fit).stdout
    message = result.stderr.splitlines()[-1]
    assert message.startswith(f"Error: {tmp_path / 'run' / what} cannot be written (No space left on device)")
    assert not list((tmp_path / "run").glob(".*"))
    monkeypatch.undo()
    assert "100% of the subsets were scored before" in call(*fit, "-o", tmp_path / "run").stderr
    assert snapshot(tmp_path / "run").keys() == KEPT


def test_a_disk_that_is_full_before_the_fit_scores_nothing(data, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    result = call("fit", data, "-o", tmp_path / "run", "--marginal", "gaussian", "--jobs", 1)
    assert "manifest.json cannot be written (No space left on device): nothing was scored." in refusal(result, code=5)


def test_what_is_no_run_is_refused(data, run, tmp_path):
    assert "holds no model.isde" in refusal(call("info", tmp_path))
    assert "does not exist" in refusal(call("sample", tmp_path / "no"))
    assert "data.csv" in refusal(call("score", data, data))
    isde.load(run).subset_scores_.save(tmp_path / "scores.isde")
    assert "no fitted model" in refusal(call("info", tmp_path / "scores.isde"))


def test_a_truncated_model_is_refused(data, run):
    (run / MODEL).write_bytes((run / MODEL).read_bytes()[:-30])
    for arguments in (["info", run], ["sample", run], ["score", run, data]):
        assert "cut short" in refusal(call(*arguments))


def test_data_without_the_columns_of_the_model_are_refused(run, tmp_path):
    other = write_csv(tmp_path / "other.csv", np.ones((3, 3)), ["x", "q", "z"])
    assert "no column 'y'" in refusal(call("score", run, other))


@pytest.mark.parametrize("arguments", [["score"], ["fit"], ["sample", "run", "-n", "0"], ["paint"]], ids=str)
def test_a_wrong_call_is_refused(arguments):
    refusal(call(*arguments))


# --- as a process ----------------------------------------------------------------------------------------------


def test_a_process_says_one_line_and_exits_with_two(tmp_path):
    (tmp_path / "bad.csv").write_text("x,y\n1,foo\n2,bar\n")
    result = spawn("fit", "bad.csv", "-o", "run", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert (
        result.stderr
        == "Error: 'y' (for example 'foo') in bad.csv holds text: leave it out (--columns) or encode it first.\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_debug_shows_the_traceback(tmp_path):
    (tmp_path / "bad.csv").write_text("x,y\n1,foo\n2,bar\n")
    result = spawn("fit", "bad.csv", "-o", "run", "--debug", cwd=tmp_path)
    assert result.returncode != 0
    assert "Traceback" in result.stderr
    assert "InputError" in result.stderr


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_works_when_called_from_python(tmp_path, place):
    (tmp_path / "bad.csv").write_text("x,y\n1,foo\n2,bar\n")
    arguments = ["fit", tmp_path / "bad.csv", "-o", tmp_path / "run"]
    result = call(*(["--debug", *arguments] if place == "before" else [*arguments, "--debug"]))
    assert isinstance(result.exception, InputError)


def test_warnings_are_one_line_on_standard_error(tmp_path, rng):
    write_csv(tmp_path / "data.csv", rng.normal(size=(80, 1)) + [0.1, 0.1, 0.5] * rng.normal(size=(80, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as for a user: printed, no error
        arguments = ["-o", tmp_path / "run", "-k", 2, "--marginal", "gaussian", "--json", "--quiet", "--jobs", 1]
        result = call("fit", tmp_path / "data.csv", *arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["blocks"][0]["columns"] == ["x", "y"]
    assert result.stderr.startswith("Warning: {x, y} is as large as --max-block-size 2 allows")
    assert result.stderr.endswith(": try --max-block-size 3.\n")
    assert result.stderr.count("\n") == 1


def test_a_call_leaves_pythons_own_warnings_as_they_were(tmp_path):
    show = warnings.showwarning
    call("info", tmp_path)
    assert warnings.showwarning is show


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes.")
def test_a_reader_that_stops_early_gets_no_complaint(run):
    code = "import sys; from isde.cli import main; main(prog_name='isde')"
    command = [sys.executable, "-c", code, "sample", str(run), "-n", "200000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "x,y,z\n"
        process.stdout.close()
        assert process.stderr.read() == ""


def test_the_demo_compares_the_model_with_simpler_ones_on_fresh_rows(tmp_path, monkeypatch):
    def small(random_state):
        return demo_table(300, random_state=random_state)

    monkeypatch.setattr(synthetic, "demo_table", small)
    result = call("demo", "-o", tmp_path / "demo", "--jobs", 1, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    summary, model = json.loads(result.stdout), isde.load(tmp_path / "demo")
    held_out = summary["fresh_rows"]
    assert held_out["ISDE"] == pytest.approx(model.score(small(1)), abs=ROUNDING)
    assert held_out["ISDE"] > max(value for method, value in held_out.items() if method != "ISDE")
    assert len(held_out) == 3
    assert sorted(name for block in summary["blocks"] for name in block["columns"]) == sorted(small(0).names)


@pytest.mark.parametrize("options", [["-m", "100"], ["-n", "0"], ["-m", "6", "-n", "7"]])
def test_more_rows_than_there_are_is_refused_in_the_command_lines_words(tmp_path, options):
    data = tmp_path / "data.csv"
    data.write_text("a,b\n" + "".join(f"{i},{i * i % 7}.{i}\n" for i in range(9)), encoding="utf-8")
    result = CliRunner().invoke(main, ["fit", str(data), "-o", str(tmp_path / "run"), *options])
    assert result.exit_code == 2
    assert "rows" in result.stderr.splitlines()[-1]
    assert result.stderr.splitlines()[-1].startswith("Error: --")
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("always::isde.errors.ISDEWarning")
def test_fewer_rows_than_folds_are_warned_of_once_for_each_fit(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a,b\n1,2\n2,3.5\n4,5\n3,1\n9,7\n8,2.5\n7,3\n6,9\n", encoding="utf-8")
    options = ["--jobs", "1", "--split", "paper"]
    result = CliRunner().invoke(main, ["fit", str(data), "-o", str(tmp_path / "run"), *options])
    assert result.exit_code == 0
    assert result.stderr.count("Only 4 rows") == 1
