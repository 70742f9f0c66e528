"""isde reproduce: every item at a tiny setting; runs that stop and go on; the author's saved scores; the report."""

import csv
import json
import struct
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from math import comb
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import oracles
from fcs_files import write_fcs
from isde import ISDE, ForestDensity, count_partitions, edit_distance, paper, select_partition
from isde.cli import main
from isde.comparison import underflows
from isde.errors import InputError
from isde.paper import ITEMS
from isde.paper import table_selection_brute_force as selection_times
from isde.paper.figure_random_walks import paper_walk
from isde.paper.inputs import read_cells
from isde.paper.item import Settings, rng_for
from isde.paper.markdown import write_report
from isde.paper.protocols import (
    BlockDensities,
    one_split_scores,
    rescale,
    sample_scores,
    without_underflows,
)
from isde.paper.runner import run_item
from isde.paper.table_running_times import slice_within
from isde.paper.timing import uniform_scores
from isde.partitions import enumerate_partitions
from isde.splits import resolve_split
from isde.synthetic import make_structured
from oracles import ROUNDING

PAPER = Path(__file__).parents[2] / "shared" / "paper"

COLUMNS = {
    "table-counts": ["table", "symbol", "d", "k", "count", "published"],
    "table-selection-brute-force": ["d", "n_partitions", "isde_seconds", "brute_force_seconds", "brute_force"],
    "table-synthetic": ["structure", "repetition", "method", "log_likelihood", "dropped_rows", "is_truth"],
    "figure-levine-boxplot": ["method", "sample", "log_likelihood", "dropped_rows", "n_rows", "n_columns", "detail"],
    "figure-partitions-boxplot": ["group", "rank", "sample", "log_likelihood", "dropped_rows", "score"],
    "figure-edit-distances": ["group", "rank", "score", "edit_distance", "paper_edit_distance", "partition"],
    "figure-random-walks": ["walk", "step", "edit_distance", "paper_edit_distance", "log_likelihood"],
    "figure-landscape": ["bins", "low", "high", "count", "n_partitions"],
    "figure-best-partitions": ["first_rank", "n_above", "rank", "edit_distance", "paper_edit_distance"],
    "table-running-times-kde": ["n", "isde_seconds", "sklearn_seconds", "largest_difference"],
    "table-running-times-scores": ["k", "d", "n_subsets", "seconds", "kind", "columns_measured"],
    "table-running-times-selection": ["k", "d", "n_subsets", "seconds", "kind", "is_proved", "solver"],
    "table-gaussian": ["structure", "repetition", "method", "kl_x_1000", "is_truth", "is_admissible"],
}
"""The first columns of each item's rows."""


def call(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def tiny(name, cells, folder, *options):
    source = [] if ITEMS[name].needs == "nothing" else ["--data", cells]
    result = call(name, "--tiny", "--jobs", 1, "--quiet", "-o", folder, *source, *options)
    assert result.exit_code == 0, result.output
    return result


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def refusal(result):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    return line


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """A table of 500 rows and 6 columns that stands for cytometry data."""
    path = tmp_path_factory.mktemp("data") / "cells.npz"
    X, _ = make_structured([3, 2, 1], 500, random_state=0)
    np.savez(path, X=X, columns=[f"m{c}" for c in range(6)])
    return path


# --- every item ------------------------------------------------------------------------------------------------


def test_the_list_shows_every_item():
    shown = call("--list")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == list(ITEMS) == list(COLUMNS)
    assert [item["name"] for item in json.loads(call("--list", "--json").stdout)] == list(ITEMS)


def test_the_files_of_this_room_shadow_no_word_of_the_core():
    room = Path(paper.__file__).parent
    own = {path.stem for path in room.glob("*.py")} - {"__init__"}
    others = [path for path in room.parent.rglob("*.py") if room not in path.parents]
    core = {word for path in others for word in (path.stem, path.parent.name)}
    assert {"partitions", "solvers"} <= core
    assert not own & core
    assert {name.replace("-", "_") for name in ITEMS if "running-times" not in name} <= own  # an item, a file


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_writes_its_rows_and_figure_and_the_same_ones_again(name, cells, tmp_path):
    item = ITEMS[name]
    for protocol in ("clean", "paper") if item.has_protocols else ("clean",):
        options = ["--protocol", protocol]
        result = tiny(name, cells, tmp_path / "a", *options)
        stem = item.file_name(Settings(size="tiny", protocol=protocol, data=cells))
        assert result.stdout.startswith(name)
        assert f"{stem}.csv" in result.stdout
        assert result.stdout.count("published") == result.stdout.count("measured") > 0
        path = tmp_path / "a" / f"{stem}.csv"
        found = rows_of(path)
        assert list(found[0])[: len(COLUMNS[name])] == COLUMNS[name]
        assert json.loads(path.with_suffix(".json").read_text())["is_complete"] is True
        assert path.with_suffix(".png").is_file() == (item.draw is not None)
        assert tiny(name, cells, tmp_path / "a", *options).stdout == result.stdout  # read from disk, not run
        if not item.is_timing:
            tiny(name, cells, tmp_path / "b", *options)
            assert (tmp_path / "b" / path.name).read_bytes() == path.read_bytes()
            assert not any("seconds" in column for column in found[0])


def test_the_two_protocols_never_share_a_file(cells, tmp_path):
    for protocol in ("clean", "paper"):
        tiny("figure-levine-boxplot", cells, tmp_path, "--protocol", protocol)
    clean, paper = (rows_of(tmp_path / f"figure-levine-boxplot-cells-{p}-tiny.csv") for p in ("clean", "paper"))
    assert all(row["dropped_rows"] == "0" for row in clean)
    assert [row["log_likelihood"] for row in clean] != [row["log_likelihood"] for row in paper]
    assert len(clean) == len(paper) == 12


@pytest.mark.parametrize("name", ["figure-edit-distances", "figure-landscape"])
def test_an_item_without_protocols_does_not_depend_on_one(name, cells, tmp_path, monkeypatch):
    monkeypatch.setattr("isde.paper.experiment.without_underflows", lambda table, *_, **__: table.restrict(1))
    for protocol in ("clean", "paper"):
        tiny(name, cells, tmp_path / protocol, "--protocol", protocol)
    one, other = (tmp_path / p / f"{name}-cells-tiny.csv" for p in ("clean", "paper"))
    assert one.read_bytes() == other.read_bytes()


def test_quick_is_another_file_and_says_so(tmp_path):
    result = call("table-counts", "--quick", "-o", tmp_path, "--json", "--quiet")
    (found,) = json.loads(result.stdout)
    assert found["size"] == "quick"
    assert found["file"].endswith("table-counts-quick.csv")
    assert {finding["why"] for finding in found["findings"]} == {
        "A smaller setting than the paper's: try the full one."
    }
    (full,) = json.loads(call("table-counts", "-o", tmp_path, "--json", "--quiet").stdout)
    assert {finding["why"] for finding in full["findings"]} == {"The same.", "Above that bound."}


def test_all_runs_what_needs_no_data_and_names_the_rest(monkeypatch, tmp_path):
    monkeypatch.setattr("isde.paper.ITEMS", {name: ITEMS[name] for name in ("table-counts", "figure-random-walks")})
    result = call("all", "--tiny", "-o", tmp_path, "--jobs", 1)
    assert result.exit_code == 0
    assert "Left out: figure-random-walks needs a table of cells: give --data FILE." in result.stderr
    assert (tmp_path / "table-counts-tiny.csv").is_file()


# --- longer: `make test-slow` -----------------------------------------------------------------------------------


def mean_of(rows, column, **wanted):
    chosen = [float(row[column]) for row in rows if all(row[name] == value for name, value in wanted.items())]
    assert chosen
    return np.mean(chosen)


def isde_beats_one_density(rows):
    by_method = [mean_of(rows, "log_likelihood", structure="2 2 1", method=m) for m in ("ISDE", "CVKDE")]
    return by_method[0] > by_method[1] + 0.5 and mean_of(rows, "is_truth", structure="2 2 1", method="ISDE") == 1


def falls_with_distance(rows):
    return np.corrcoef(*([float(row[name]) for row in rows] for name in ("edit_distance", "log_likelihood")))[0, 1] < 0


CLAIMS = {
    "table-counts": lambda rows: len({row["symbol"] for row in rows}) == 6,
    "table-selection-brute-force": lambda rows: {row["same_score"] for row in rows} <= {"yes", "not checked"},
    "table-synthetic": isde_beats_one_density,
    "figure-levine-boxplot": lambda rows: (
        mean_of(rows, "log_likelihood", method="ISDE") > mean_of(rows, "log_likelihood", method="CVKDE")
    ),
    "figure-partitions-boxplot": lambda rows: (
        mean_of(rows, "log_likelihood", group="best")
        > mean_of(rows, "log_likelihood", group="random")
        > mean_of(rows, "log_likelihood", group="worst")
    ),
    "figure-edit-distances": lambda rows: (
        mean_of(rows, "edit_distance", group="best") < mean_of(rows, "edit_distance", group="random")
    ),
    "figure-random-walks": falls_with_distance,
    "figure-landscape": lambda rows: sum(int(row["count"]) for row in rows) == count_partitions(10, 5),
    "figure-best-partitions": falls_with_distance,
    "table-running-times-kde": lambda rows: max(float(row["largest_difference"]) for row in rows) < 1e-6,
    "table-running-times-scores": lambda rows: len(rows) == 12,
    "table-running-times-selection": lambda rows: all(row["is_proved"] == "1" for row in rows),
    "table-gaussian": lambda rows: mean_of(rows, "is_admissible", method="ISDE") == 1,
}
"""What the paper says of each item, and a smaller setting must show."""


@pytest.fixture(scope="module")
def many_cells(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "many.npz"
    X, _ = make_structured([4, 3, 2, 1], 6000, random_state=0)
    np.savez(path, X=X, columns=[f"m{c}" for c in range(10)])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ITEMS)
def test_every_item_at_the_quick_setting_shows_what_the_paper_says(name, many_cells, tmp_path):
    source = [] if ITEMS[name].needs == "nothing" else ["--data", many_cells]
    for protocol in ("clean", "paper") if ITEMS[name].has_protocols else ("clean",):
        result = call(name, "--quick", "--quiet", "-o", tmp_path, "--protocol", protocol, *source)
        assert result.exit_code == 0, result.output
        stem = ITEMS[name].file_name(Settings(size="quick", protocol=protocol, data=many_cells))
        assert CLAIMS[name](rows_of(tmp_path / f"{stem}.csv")), protocol


# --- stop and go on --------------------------------------------------------------------------------------------


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    code = """
import os
from isde.paper import runner
write = runner._Files.write
def write_and_die(self, rows, times):
    write(self, rows, times)
    os._exit(9)
runner._Files.write = write_and_die
from isde.cli import main
main(["reproduce", "table-gaussian", "--tiny", "--jobs", "1", "-o", "."])
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert killed.returncode == 9
    path = tmp_path / "table-gaussian-tiny.csv"
    assert {(row["structure"], row["repetition"]) for row in rows_of(path)} == {("2 2", "0")}
    assert json.loads(path.with_suffix(".json").read_text())["is_complete"] is False
    result = call("table-gaussian", "--tiny", "--jobs", 1, "-o", tmp_path)
    assert "1 of 4" not in result.stderr
    assert "2 of 4: structure 2 2, repetition 1" in result.stderr
    call("table-gaussian", "--tiny", "--jobs", 1, "-o", tmp_path / "whole")
    assert path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes()
    times = rows_of(path.with_suffix(".times.csv"))
    assert len(times) == 8  # two methods in each of four steps


def test_a_finished_run_recomputes_nothing_unless_told(cells, tmp_path, monkeypatch):
    first = tiny("figure-random-walks", cells, tmp_path)

    def refuse(*_):
        raise AssertionError("something was computed")

    monkeypatch.setattr("isde.paper.figure_random_walks._walk", refuse)
    monkeypatch.setattr("isde.paper.experiment.one_split_scores", refuse)
    assert tiny("figure-random-walks", cells, tmp_path).stdout == first.stdout
    again = call("figure-random-walks", "--tiny", "--jobs", 1, "-o", tmp_path, "--data", cells, "--overwrite")
    assert again.exit_code == 1
    assert "something was computed" in again.stderr


def test_a_run_whose_rows_were_deleted_is_made_again(tmp_path):
    first = call("table-counts", "-o", tmp_path, "--quiet")
    (tmp_path / "table-counts.csv").unlink()
    assert call("table-counts", "-o", tmp_path, "--quiet").stdout == first.stdout
    assert rows_of(tmp_path / "table-counts.csv")


def test_rows_of_an_older_version_are_refused_and_not_reported(tmp_path, monkeypatch):
    assert call("table-counts", "-o", tmp_path, "--quiet").exit_code == 0
    newer = replace(ITEMS["table-counts"], version=2)
    monkeypatch.setitem(ITEMS, "table-counts", newer)
    assert "was made with version=1, not 2" in refusal(call("table-counts", "-o", tmp_path, "--quiet"))
    with pytest.raises(InputError, match="no complete run"):
        write_report(tmp_path, tmp_path / "report.md")
    assert not (tmp_path / "report.md").exists()


def test_a_refused_item_among_several_is_no_success(cells, tmp_path):
    tiny("figure-edit-distances", cells, tmp_path)
    asked = ["--tiny", "--jobs", 1, "--quiet", "-o", tmp_path, "--data", cells, "-k", 2]
    result = call("figure-edit-distances", "table-counts", *asked)
    assert result.exit_code == 2
    assert "Left out: " in result.stderr
    assert result.stderr.splitlines()[-1] == (
        "Error: figure-edit-distances: left out, for the reason given above; all others are done."
    )
    assert (tmp_path / "table-counts-tiny.csv").is_file()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--seed", 5], "was made with --seed 0, not 5: give another --output, or --overwrite to replace it."),
        (["-k", 2], "was made with max_block_size=None, not 2"),
    ],
)
def test_rows_made_with_other_settings_are_refused_by_name(cells, tmp_path, options, complaint):
    tiny("figure-edit-distances", cells, tmp_path)
    before = (tmp_path / "figure-edit-distances-cells-tiny.csv").read_bytes()
    asked = ["figure-edit-distances", "--tiny", "--jobs", 1, "-o", tmp_path, "--data", cells, *options]
    message = refusal(call(*asked))
    assert "figure-edit-distances-cells-tiny.csv" in message
    assert complaint in message
    assert (tmp_path / "figure-edit-distances-cells-tiny.csv").read_bytes() == before
    assert call(*asked, "--overwrite").exit_code == 0


def test_rows_of_another_file_with_the_same_name_are_refused(cells, tmp_path):
    tiny("figure-edit-distances", cells, tmp_path)
    other = tmp_path / "cells.npz"
    np.savez(other, X=make_structured([3, 2, 1], 500, random_state=1)[0])
    message = refusal(call("figure-edit-distances", "--tiny", "--jobs", 1, "-o", tmp_path, "--data", other))
    assert "was made with sha256=" in message


# --- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["table-nothing"], "There is no item 'table-nothing': there are "),
        ([], "Name an item, or all"),
        (["figure-levine-boxplot"], "figure-levine-boxplot needs a table of cells: give --data FILE."),
        (["figure-landscape"], "give --data FILE, or --scores FILE."),
        (["figure-levine-boxplot", "--data", "missing.npz"], "missing.npz does not exist: give a file."),
        (["figure-landscape", "--scores", "missing.csv"], "missing.csv does not exist: give a file."),
        (["--report", "r.md"], "holds no complete run at full settings"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(arguments, complaint, tmp_path):
    assert complaint in refusal(call(*arguments, "-o", tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_wide_table_has_no_landscape(tmp_path):
    np.savez(tmp_path / "wide.npz", X=np.random.default_rng(0).normal(size=(300, 14)))
    result = call("figure-landscape", "--tiny", "-o", tmp_path / "out", "--data", tmp_path / "wide.npz")
    assert "14 columns have too many, as in the paper" in refusal(result)
    assert not list(tmp_path.glob("out/*.json"))


def test_a_threshold_above_every_score_is_refused(cells, tmp_path):
    result = call("figure-best-partitions", "--tiny", "--jobs", 1, "-o", tmp_path, "--data", cells, "--above", 1000)
    assert "No partition scores more than 1000.0" in refusal(result)
    tiny("figure-landscape", cells, tmp_path, "--above", 0.5)
    assert {row["threshold"] for row in rows_of(tmp_path / "figure-landscape-cells-tiny.csv")} == {"0.5"}


def test_a_table_that_is_none_of_scores_is_refused(tmp_path):
    (tmp_path / "scores.csv").write_text("a,b\n1,2\n")
    message = refusal(call("figure-edit-distances", "--scores", tmp_path / "scores.csv", "-o", tmp_path / "out"))
    assert "it needs the columns subset, as in '0 3 4', and score." in message


# --- the author's saved scores ---------------------------------------------------------------------------------


def paper_file(name):
    path = PAPER / name
    if not path.is_file():
        pytest.skip(f"{path} does not exist")
    return path


@pytest.mark.parametrize(
    ("name", "score", "together"),
    [
        ("levine13", 15.117430870747343, {"0 1 4 5 12", "3 8 10", "2 7"}),
        ("levine32", 45.50636810024885, {"0 1", "8 28", "14 17", "18 30", "12 22 23", "19 25 29"}),
    ],
)
def test_saved_scores_give_the_known_optimum_and_both_edit_distances(name, score, together, tmp_path):
    scores = paper_file(f"{name}_subset_scores.csv")
    result = call("figure-edit-distances", "--scores", scores, "-o", tmp_path, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    best, distances = json.loads(result.stdout)[0]["findings"]
    assert best["why"] == "The same."
    assert "the author's variant" in distances["what"]
    found = rows_of(tmp_path / f"figure-edit-distances-{name}_subset_scores.csv")
    assert [row["group"] for row in found] == ["optimum", *["best"] * 10, *["random"] * 10, *["worst"] * 10]
    assert float(found[0]["score"]) == pytest.approx(score, abs=1e-9)
    assert {block for block in found[0]["partition"].split(" | ") if " " in block} == together
    assert found[1]["partition"] != found[0]["partition"]
    partitions = [[tuple(map(int, b.split())) for b in row["partition"].split(" | ")] for row in found]
    for row, partition in zip(found, partitions, strict=True):
        assert int(row["edit_distance"]) == edit_distance(partition, partitions[0])
        assert int(row["paper_edit_distance"]) == edit_distance(partition, partitions[0], kind="paper")


def test_saved_scores_give_the_landscape_of_levine13(tmp_path):
    scores = paper_file("levine13_subset_scores.csv")
    result = call("figure-landscape", "--scores", scores, "-o", tmp_path, "--quiet")
    assert result.exit_code == 0, result.output
    assert "measured  25,719,630" in result.stdout
    assert "measured  1,454" in result.stdout
    found = rows_of(tmp_path / "figure-landscape-levine13_subset_scores.csv")
    assert sum(int(row["count"]) for row in found) == 25_719_630
    assert {(row["threshold"], row["n_above"]) for row in found} == {("14.6", "1454")}


# --- report ----------------------------------------------------------------------------------------------------


def test_the_report_holds_every_item_once_and_no_smaller_run(cells, tmp_path):
    for name, item in ITEMS.items():
        for protocol in ("clean", "paper") if item.has_protocols else ("clean",):
            tiny(name, cells, tmp_path / "results", "--protocol", protocol)
    with pytest.raises(InputError, match="no complete run at full settings"):
        write_report(tmp_path / "results", tmp_path / "r.md")
    for path in (tmp_path / "results").glob("*.json"):  # as if they were full runs
        path.write_text(path.read_text().replace('"size": "tiny"', '"size": "full"'))
    result = call("--report", tmp_path / "r.md", "-o", tmp_path / "results")
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    for name in ITEMS:
        assert f"| {name} | " in text
    for heading in ("measured, protocol paper", "measured, protocol clean", "published", "cores", "not run"):
        assert (heading in text) is (heading != "not run")
    widths = {line.count("|") - line.count("\\|") for line in text.splitlines() if line.startswith("|")}
    assert widths == {6, 7}
    write_report(tmp_path / "results", tmp_path / "again.md")
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == text


# --- the parts -------------------------------------------------------------------------------------------------


def test_one_scaler_for_all_rows_or_each_sample_by_its_own(rng):
    train, samples = rng.normal(size=(50, 3)), 2 * rng.normal(size=(4, 30, 3))
    U, V = rescale(train, samples, "clean")
    np.testing.assert_allclose(V, (samples - train.min(axis=0)) / np.ptp(train, axis=0), atol=ROUNDING)
    assert (U.min(), U.max()) == (0, 1)
    assert V.max() > 1
    for sample in rescale(train, samples, "paper")[1]:
        assert sample.min(axis=0).tolist() == [0, 0, 0]
        assert sample.max(axis=0) == pytest.approx(1)


def test_only_the_paper_drops_rows():
    log_densities = np.array([[-1.0, -2000.0, -3.0], [-2000.0, -2000.0, -2000.0]])
    clean, paper = (sample_scores(log_densities, protocol) for protocol in ("clean", "paper"))
    assert clean[0] == {"log_likelihood": pytest.approx(-2004 / 3), "dropped_rows": 0}
    assert paper[0] == {"log_likelihood": pytest.approx(-2.0), "dropped_rows": 1}
    assert np.isnan(paper[1]["log_likelihood"])


def test_the_papers_scores_leave_out_the_rows_that_underflow(rng):
    U = np.concatenate([rng.uniform(size=(90, 3)), rng.uniform(size=(10, 3)) * [1, 60, 60]])
    table = one_split_scores(U, 3, split="paper", bandwidths=[0.02, 0.05], seed=0, jobs=1)
    found = without_underflows(table, U, split="paper", seed=0)
    ((fit, score),) = resolve_split("paper", 0).split(U)
    n_dropped = {}
    for subset, h, value in zip(table.subsets, table.bandwidths, found.scores, strict=True):
        logs = oracles.kde_log_density(U[np.ix_(score, subset)], U[np.ix_(fit, subset)], h)
        assert value == pytest.approx(logs[~underflows(logs)].mean(), abs=1e-5)
        n_dropped[subset] = underflows(logs).sum()
    assert n_dropped[0,] == 0 < n_dropped[1,]
    assert n_dropped[1, 2] >= n_dropped[1,]


def test_densities_by_block_are_those_of_the_estimators(rng):
    U, V = make_structured([2, 1], 200, random_state=0)[0], rng.uniform(size=(2, 20, 3))
    U = (U - U.min(axis=0)) / np.ptp(U, axis=0)
    grid = np.geomspace(0.01, 1, 10).tolist()
    scores = one_split_scores(U, 3, split="paper", bandwidths=grid, seed=3, jobs=1)
    model = ISDE(3, marginal="kde", split="paper", bandwidths=grid, random_state=3).fit(U)
    np.testing.assert_allclose(scores.scores, model.subset_scores_.scores, atol=ROUNDING)
    blocks = BlockDensities(U, V, bandwidths=grid, scores=None, jobs=1)
    found = blocks.of_partition(model.partition_)
    np.testing.assert_allclose(found, [model.score_samples(sample) for sample in V], atol=ROUNDING)
    forest = ForestDensity(bandwidths=grid, normalize=False, random_state=3).fit(U)
    found = blocks.of_forest(3, forest.edges_)
    np.testing.assert_allclose(found, [forest.score_samples(sample) for sample in V], atol=ROUNDING)
    of_table = BlockDensities(U, V, bandwidths=None, scores=scores, jobs=1)._fit([(0, 1), (2,)])
    assert [block.bandwidth for block in of_table] == [
        scores.bandwidths[scores.subsets.index(b)] for b in [(0, 1), (2,)]
    ]
    assert all(len(block.centres) == len(U) for block in of_table)


def test_the_authors_walk_splits_and_merges_at_one_point():
    start = ((0, 1, 2), (3, 4), (5,))
    walk = paper_walk(start, 60, 3, np.random.default_rng(0))
    assert walk[0] == start
    assert len(walk) == 61
    for before, after in pairwise(walk):
        assert edit_distance(before, after) == 1
        assert max(map(len, after)) <= 3
        for block in set(before) - set(after):
            if len(after) > len(before):  # a split: the two parts are neighbours in the block's list
                first = next(b for b in after if b[0] == block[0])
                assert block[: len(first)] == first


def test_brute_force_finds_what_the_solver_finds():
    table = uniform_scores(6, 6, rng_for(0))
    partition, score = selection_times.brute_force(dict(zip(table.subsets, table.scores.tolist(), strict=True)), 6)
    found = select_partition(table)
    assert (partition, score) == (found.partition, pytest.approx(found.score))
    added = sum(len(p) for p in enumerate_partitions(6))
    assert selection_times.blocks_in_all_partitions(6) == added


def test_brute_force_is_extrapolated_where_it_would_take_too_long(tmp_path):
    run_item(selection_times.ITEM, Settings(size="tiny", jobs=1), tmp_path, quiet=True)
    first, second, _ = rows_of(tmp_path / "table-selection-brute-force-tiny.csv")
    assert (first["brute_force"], second["brute_force"]) == ("measured", "extrapolated")
    assert first["same_score"] == "yes"
    blocks = selection_times.blocks_in_all_partitions
    expected = float(first["brute_force_seconds"]) * blocks(5) / blocks(4)
    assert float(second["brute_force_seconds"]) == pytest.approx(expected)


def test_scores_are_projected_from_as_many_columns_as_fit(rng):
    X = rng.uniform(size=(120, 9))
    assert slice_within(X, 2, 1e9, 1) == 9
    assert slice_within(X, 2, 0.0, 1) == 3


@pytest.mark.parametrize("d", [2, 7, 20, 31])
def test_the_papers_formula_for_pairings_is_right_from_zero(d):
    total, ordered, factorial = 0, 1, 1
    for i in range(d // 2 + 1):
        total += ordered // factorial
        ordered *= comb(d - 2 * i, 2)
        factorial *= i + 1
    assert total == count_partitions(d, 2)


# --- public files ----------------------------------------------------------------------------------------------


def public_table(rng):
    """Counts with labels as the public files have them: NaN where a cell has none."""
    counts = rng.gamma(1, 60, size=(40, 3))
    label = np.where(np.arange(40) % 4 == 0, np.nan, 2.0)
    return np.column_stack([np.arange(40), counts, label, np.ones(40)]), counts, label


def test_public_files_give_labelled_cells_markers_and_arcsinh(rng, tmp_path):
    X, counts, label = public_table(rng)
    names = ["Time", "CD3", "CD4", "CD8", "label", "individual"]
    expected = np.arcsinh(counts[np.isfinite(label)] / 5)
    write_fcs(
        tmp_path / "a.fcs", X, ["Time", "Er170", "Nd145", "Nd146", "label", "individual"], ["", *names[1:4], "", ""]
    )
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([names, *X.tolist()])
    for path in (tmp_path / "a.fcs", tmp_path / "a.csv"):
        found = read_cells(path)
        assert found.names == ("CD3", "CD4", "CD8")
        np.testing.assert_allclose(found.X, expected, rtol=1e-6)


def test_files_that_are_transformed_already_are_left_so(rng, tmp_path):
    X, counts, label = public_table(rng)
    X[:, 1:4] = np.arcsinh(counts / 5)
    names = ["Time", "CD3", "CD4", "CD8", "label", "individual"]
    write_fcs(tmp_path / "a.fcs", X, names, [""] * 6)
    np.testing.assert_allclose(read_cells(tmp_path / "a.fcs").X, X[np.isfinite(label), 1:4], rtol=1e-6)


def test_files_without_labels_are_taken_as_they_are(cells):
    found = read_cells(cells)
    assert found.names == tuple(f"m{c}" for c in range(6))
    assert len(found.X) == 500


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"PK3.0", "is no FCS file: is its ending right?"),
        (b"FCS3.0", "is no FCS file, or it is damaged"),
        (b"FCS3.0    " + struct.pack("48s", b"      58      60"), "is no FCS file, or it is damaged"),
    ],
)
def test_damaged_fcs_files_are_refused(content, complaint, tmp_path):
    (tmp_path / "a.fcs").write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        read_cells(tmp_path / "a.fcs")


def test_fcs_files_of_integers_are_refused(tmp_path):
    write_fcs(tmp_path / "a.fcs", np.ones((2, 2)), ["a", "b"], ["", ""], kind="I")
    with pytest.raises(InputError, match="only floating point lists are read; export it as CSV"):
        read_cells(tmp_path / "a.fcs")
