"""The command line with trees of blocks: fit, info, score, sample, stability, graph, compare."""

import csv
import io
import json

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import isde
from isde import ISDE, TreeISDE
from isde.cli import main
from isde.comparison import MethodOptions, build_methods

FAST = ("--marginal", "gaussian", "--jobs", 1, "--quiet")


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def works(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module", name="data")
def chain_file(tmp_path_factory):
    """Four columns in a chain, one alone whose name has a comma."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 4)).cumsum(axis=1), rng.normal(size=300)])
    path = tmp_path_factory.mktemp("data") / "chain.csv"
    np.savetxt(path, X, delimiter=",", header='a,b,c,d,"e, f"', comments="", fmt="%.8g")
    return path


@pytest.fixture(scope="module", name="run")
def fitted_run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tree"
    works("fit", data, "--structure", "tree", "-k", 2, "-o", folder, *FAST)
    return folder


def test_fit_finds_a_tree_and_says_what_it_means(data):
    text = works("fit", data, "--structure", "tree", "-k", 2, *FAST)
    assert text.startswith("4 cliques of 5 columns (largest allowed 2, 15 subsets scored, marginal gaussian)\n")
    assert '  {a, b}\n    {b, c}   by {b}\n      {c, d}   by {c}\n  alone: "e, f"\n' in text
    assert "  a -- b   gain" in text
    assert "given {b}, {a} and {c, d} are independent of each other\n" in text
    assert "the best tree for these scores, proved: score" in text
    assert "the best partition is" in text
    assert "by the tree" in text
    assert "independent blocks lose what lies between them" in text


@pytest.mark.filterwarnings("ignore:.*as large as max_block_size")
def test_the_default_size_follows_the_structure(data):
    for structure, kind, size in (("blocks", ISDE, 3), ("tree", TreeISDE, 4)):
        summary = json.loads(works("fit", data, "--structure", structure, "--json", *FAST))
        assert summary["structure"] == structure
        assert summary["max_block_size"] == summary["options"]["max_block_size"] == size
        assert kind().max_block_size == size


def test_the_run_holds_the_model_of_the_same_options(data, run):
    model = isde.load(run)
    assert isinstance(model, TreeISDE)
    X = np.loadtxt(data, delimiter=",", skiprows=1)
    other = TreeISDE(2, marginal="gaussian", n_jobs=1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.density_.score_samples(X), other.density_.score_samples(X))


def test_info_says_the_same_again(data, run):
    found, fitted = json.loads(works("info", run, "--json")), json.loads((run / "summary.json").read_text())
    assert {name: fitted[name] for name in found} == found
    assert [clique["columns"] for clique in found["cliques"]] == [["a", "b"], ["b", "c"], ["c", "d"], ["e, f"]]
    assert [clique["hangs_on"] for clique in found["cliques"]] == [None, 0, 1, None]
    assert [clique["shared"] for clique in found["cliques"]] == [[], ["b"], ["c"], []]
    assert found["components"] == [["a", "b", "c", "d"], ["e, f"]]
    assert [edge["columns"] for edge in found["edges"]] == [["a", "b"], ["b", "c"], ["c", "d"]]
    assert set(found["edges"][0]) == {"columns", "given", "gain", "gain_error", "chance", "pair_gain"}
    assert found["proof"] == "proved"
    assert fitted["held_out"]["tree_gain"] > 2 * fitted["held_out"]["tree_error"]
    assert "4 cliques of 5 columns" in works("info", run)


def test_score_has_a_column_for_each_clique_given_what_it_shares(data, run):
    rows = list(csv.reader(io.StringIO(works("score", run, data, "--rows", "--quiet"))))
    assert rows[0] == ["log_density", "a b", "c | b", "d | c", '"e, f"']
    X = np.loadtxt(data, delimiter=",", skiprows=1)
    values = np.array(rows[1:], dtype=float)
    np.testing.assert_array_equal(values[:, 1:], isde.load(run).density_.score_blocks(X))
    assert "300 rows: mean log-density" in works("score", run, data, "--quiet")


def test_sample_draws_rows(run):
    rows = list(csv.reader(io.StringIO(works("sample", run, "-n", 3))))
    assert rows[0] == ["a", "b", "c", "d", "e, f"]
    np.testing.assert_array_equal(np.array(rows[1:], dtype=float), isde.load(run).sample(3, random_state=0))


def test_stability_counts_edges(data, run):
    found = json.loads(works("stability", run, data, "-n", 3, "--null", 2, "--jobs", 1, "--quiet", "--json"))
    assert [edge["in_resamples"] for edge in found["edges"]] == [1, 1, 1]
    assert [edge["p_value"] for edge in found["edges"]] == [pytest.approx(1 / 3)] * 3
    assert found["n_null"] == 2
    assert np.array(found["together"]).shape == (5, 5)
    text = works("stability", run, data, "-n", 3, "--null", 0, "--jobs", 1, "--quiet")
    assert "a -- b   in 100%" in text


def test_partitions_of_a_tree_are_those_of_its_table(run):
    assert "{a, b}" in works("partitions", run, "--best", 2)


@pytest.mark.parametrize("kind", ["graphml", "dot", "png", "svg"])
def test_the_graph_is_written(run, tmp_path, kind):
    path = tmp_path / f"tree.{kind}"
    assert f"Written to {path}" in call("graph", run, "-o", path).stderr
    assert path.stat().st_size > 200
    if kind == "graphml":
        graph = nx.read_graphml(path)
        names = nx.get_node_attributes(graph, "name")
        assert {tuple(sorted((names[a], names[b]))) for a, b in graph.edges} == {("a", "b"), ("b", "c"), ("c", "d")}


@pytest.mark.parametrize("output", ["tree.xls", "tree", "no/folder/tree.dot", "no/folder/tree.png"])
def test_a_graph_that_cannot_be_written_is_refused(run, tmp_path, output):
    result = call("graph", run, "-o", tmp_path / output)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_the_graph_is_printed_as_json(run):
    found = json.loads(works("graph", run, "--json"))
    assert found["columns"] == ["a", "b", "c", "d", "e, f"]
    assert found["edges"] == json.loads(works("info", run, "--json"))["edges"]
    result = call("graph", run)
    assert result.exit_code == 2
    assert "-o tree.graphml, or --json" in result.stderr


def test_blocks_have_a_graph_too(data, tmp_path):
    works("fit", data, "-o", tmp_path / "run", "-k", 4, *FAST)
    works("graph", tmp_path / "run", "-o", tmp_path / "blocks.graphml")
    assert nx.number_of_edges(nx.read_graphml(tmp_path / "blocks.graphml")) == len(
        isde.load(tmp_path / "run").edge_gains_
    )


def test_a_solver_of_the_other_structure_is_refused_in_flags(data):
    result = call("fit", data, "--structure", "tree", "--solver", "exhaustive", *FAST)
    assert result.exit_code == 2
    assert "--solver exhaustive is unknown: use 'auto'" in result.stderr


def test_a_tree_can_be_compared_by_name(data):
    found = json.loads(
        works("compare", data, "--methods", "tree,gaussian", "--repeats", 2, "--json", "--quiet", "--jobs", 1)
    )
    assert {method["method"] for method in found["methods"]} == {"tree", "gaussian"}
    assert found["failures"] == []


@pytest.mark.parametrize(("given", "sizes"), [(None, (3, 4)), (2, (2, 2))])
def test_methods_have_their_own_size_unless_one_is_given(given, sizes):
    built = build_methods(["isde", "tree"], MethodOptions(max_block_size=given))
    assert tuple(one.max_block_size for one in built.values()) == sizes
    assert isinstance(built["tree"], TreeISDE)
