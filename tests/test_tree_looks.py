"""What a tree says: gains of its edges, independence in words, and its graph as a file and as a figure."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from isde import ISDE, SubsetScores, TreeISDE
from isde.errors import InputError, printable
from isde.plots.graph import GraphDisplay, layout
from isde.subsets import SubsetFamily
from isde.tree_export import to_dot, to_graphml
from isde.tree_gains import edge_gains, in_words, pair_in_words, separations, separator_of
from isde.trees import tree_of_edges
from oracles import ROUNDING

HOUSE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)]
"""Two triangles that share an edge, a column that hangs on one of them, and one that is alone."""

HOSTILE = ("a & <b>", 'quote " and \\ back', "$x_1$\nnext", "größe 日本", "tab\tbell\x07\r", "</graphml>")


def random_table(n_columns, k, seed=0):
    rng = np.random.default_rng(seed)
    subsets = SubsetFamily(n_columns, k)
    charges = np.where(subsets.sizes > 1, rng.uniform(size=len(subsets)), 0.0)
    return SubsetScores(
        subsets,
        rng.normal(size=len(subsets)),
        *np.full((2, len(subsets)), np.nan),
        tuple(f"x{c}" for c in range(n_columns)),
        gain_errors=rng.uniform(size=len(subsets)),
        charges=charges,
    )


def total(table, tree, objective=False):
    return sum(sign * (table.objective(term) if objective else table[term]) for term, sign in tree.terms)


@st.composite
def chordal_graphs(draw, n_columns=6):
    edges = []
    for edge in combinations(range(n_columns), 2):
        if draw(st.booleans()):
            edges.append(edge)
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(n_columns))
    chordal, _ = nx.complete_to_chordal_graph(graph)
    return tuple(tuple(sorted(edge)) for edge in chordal.edges)


# --- gains -------------------------------------------------------------------------------------------------------


@given(chordal_graphs())
def test_the_gain_of_an_edge_is_what_the_tree_loses_where_it_can_go_alone(edges):
    table, tree = random_table(6, 6).charged_by_edge(), tree_of_edges(6, edges)
    for one in edge_gains(table, tree):
        rest = [edge for edge in tree.edges if edge != one.edge]
        if nx.is_chordal(nx.Graph(rest)) and sum(set(one.edge) <= set(c) for c in tree.cliques) == 1:
            less = tree_of_edges(6, rest)
            assert one.gain == pytest.approx(total(table, tree) - total(table, less), abs=ROUNDING)
            charged = total(table, tree, objective=True) - total(table, less, objective=True)
            assert one.gain - one.chance == pytest.approx(charged, abs=ROUNDING)


def test_an_edge_in_several_cliques_is_given_what_they_share():
    table = random_table(6, 3)
    gains = {one.edge: one for one in edge_gains(table, tree_of_edges(6, HOUSE))}
    assert gains[1, 2].given == ()  # of both triangles
    assert gains[1, 2].gain == gains[1, 2].pair_gain == pytest.approx(table.gain((1, 2)))
    assert gains[1, 2].error == table.gain_errors[table.subsets.index((1, 2))]
    assert gains[0, 1].given == (2,)
    expected = table[0, 1, 2] - table[0, 2] - table[1, 2] + table[2,]
    assert gains[0, 1].gain == pytest.approx(expected, abs=ROUNDING)
    assert gains[0, 1].pair_gain == pytest.approx(table.gain((0, 1)))
    places = [table.subsets.index(subset) for subset in ((0, 1, 2), (0, 2), (1, 2))]
    assert gains[0, 1].error == pytest.approx(table.gain_errors[places].sum())  # no spread of a sum is larger


@pytest.mark.filterwarnings("ignore:.*as large as max_block_size")
def test_blocks_have_edges_too():
    X = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=1)
    model = ISDE(2, marginal="gaussian", random_state=0, split="paper").fit(X)
    assert [one.edge for one in model.edge_gains_] == [block for block in model.partition_ if len(block) == 2]


# --- in words ----------------------------------------------------------------------------------------------------


@given(chordal_graphs())
def test_the_separator_of_two_columns_is_the_smallest_there_is(edges):
    tree, graph = tree_of_edges(6, edges), nx.Graph(edges)
    graph.add_nodes_from(range(6))
    for a, b in combinations(range(6), 2):
        found = separator_of(tree, a, b)
        if graph.has_edge(a, b):
            assert found is None
            continue
        rest = graph.copy()
        rest.remove_nodes_from(found)
        assert not nx.has_path(rest, a, b)
        assert len(found) == nx.node_connectivity(graph, a, b)


@given(chordal_graphs())
def test_a_separator_keeps_its_groups_apart(edges):
    tree, graph = tree_of_edges(6, edges), nx.Graph(edges)
    for separator, groups in separations(tree):
        assert len(groups) > 1
        rest = graph.subgraph(set(graph) - set(separator))
        own = nx.node_connected_component(graph, separator[0]) - set(separator)
        expected = sorted(tuple(sorted(c)) for c in nx.connected_components(rest) if c <= own)
        assert list(groups) == expected


def test_independence_in_words():
    tree, names = tree_of_edges(6, HOUSE), ("a", "b", "c", "d", "e", "f, g")
    assert list(in_words(tree, names)) == [
        '{a, b, c, d, e} and {"f, g"} are independent of each other',
        "given {d}, {a, b, c} and {e} are independent of each other",
        "given {b, c}, {a} and {d, e} are independent of each other",
    ]
    assert pair_in_words(tree, names, 0, 3) == "a and d are independent given {b, c}"
    assert pair_in_words(tree, names, 0, 5) == "a and f, g are independent"
    assert pair_in_words(tree, names, 0, 1) == "a and b depend on each other, whatever else is given"


# --- files -------------------------------------------------------------------------------------------------------


def test_networkx_reads_the_graph_with_hostile_names(tmp_path):
    tree, table = tree_of_edges(6, HOUSE), random_table(6, 3)
    to_graphml(tmp_path / "tree.graphml", tree, HOSTILE, edge_gains(table, tree))
    graph = nx.read_graphml(tmp_path / "tree.graphml")
    assert not graph.is_directed()
    names = nx.get_node_attributes(graph, "name")
    assert [names[f"n{c}"] for c in range(6)] == [
        *HOSTILE[:4],
        "tab\tbell\\x07\\x0d",
        "</graphml>",
    ]
    assert {tuple(sorted((int(a[1:]), int(b[1:])))) for a, b in graph.edges} == set(tree.edges)
    for one in edge_gains(table, tree):
        found = graph.edges[f"n{one.edge[0]}", f"n{one.edge[1]}"]
        assert (found["gain"], found["error"], found["chance"]) == (one.gain, one.error, one.chance)
        assert found.get("given", "") == ", ".join(HOSTILE[c] for c in one.given)
    assert graph.nodes["n0"]["component"] == graph.nodes["n4"]["component"] != graph.nodes["n5"]["component"]


def test_a_graph_without_gains_or_edges_can_be_written(tmp_path):
    to_graphml(tmp_path / "tree.graphml", tree_of_edges(2, []), ("a", "b"))
    assert sorted(nx.read_graphml(tmp_path / "tree.graphml")) == ["n0", "n1"]
    to_dot(tmp_path / "tree.dot", tree_of_edges(2, [(0, 1)]), ("a", "b"))
    assert "  n0 -- n1;" in (tmp_path / "tree.dot").read_text()


def test_numbers_that_are_not_known_are_left_out(tmp_path):
    table = SubsetScores.from_dict({(0,): 0.0, (1,): 0.0, (0, 1): 1.0})
    tree = tree_of_edges(2, [(0, 1)])
    to_graphml(tmp_path / "tree.graphml", tree, ("a", "b"), edge_gains(table, tree))
    assert nx.read_graphml(tmp_path / "tree.graphml").edges["n0", "n1"] == {
        "gain": 1.0,
        "chance": 0.0,
        "pair_gain": 1.0,
    }


def test_dot_quotes_names(tmp_path):
    tree = tree_of_edges(6, HOUSE)
    to_dot(tmp_path / "tree.dot", tree, HOSTILE, edge_gains(random_table(6, 3), tree))
    lines = (tmp_path / "tree.dot").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "graph tree {"
    assert lines[-1] == "}"
    assert lines[2] == r'  n1 [label="quote \" and \\ back", component=0];'
    assert lines[3] == r'  n2 [label="$x_1$\nnext", component=0];'
    assert sum(" -- " in line for line in lines) == len(HOUSE)
    assert lines[7].startswith('  n0 -- n1 [gain="')


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        to_dot(tmp_path / "no" / "tree.dot", tree_of_edges(1, []), ("a",))


# --- figure ------------------------------------------------------------------------------------------------------


def test_a_tree_is_drawn_with_a_line_for_each_edge(tmp_path):
    tree, figure = tree_of_edges(6, HOUSE), Figure()
    names = (*HOSTILE[:3], "größe", "e", "f")
    display = GraphDisplay(tree, names, edge_gains(random_table(6, 3), tree)).plot(figure.subplots())
    assert len(display.ax_.lines) == len(HOUSE)
    assert [text.get_text() for text in display.ax_.texts[-6:]] == [printable(name) for name in names]
    widths = [line.get_linewidth() for line in display.ax_.lines]
    assert max(widths) == 6.0
    for (a, b), line in zip(tree.edges, display.ax_.lines, strict=True):
        np.testing.assert_array_equal(np.column_stack(line.get_data()), display.positions_[[a, b]])
    figure.savefig(tmp_path / "tree.png")
    assert (tmp_path / "tree.png").stat().st_size > 5000


@given(chordal_graphs())
def test_no_two_columns_stand_on_each_other(edges):
    tree = tree_of_edges(6, edges)
    positions = layout(tree, 6)
    assert np.isfinite(positions).all()
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2)[np.triu_indices(6, 1)]
    assert apart.min() > 0.3


def test_a_chain_is_drawn_as_a_line_of_equal_steps():
    positions = layout(tree_of_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)]), 5)
    np.testing.assert_allclose(np.linalg.norm(np.diff(positions, axis=0), axis=1), 1, atol=0.01)
    assert np.ptp(positions[:, 0]) == pytest.approx(4, abs=0.05)


def test_a_fitted_model_is_drawn_with_its_names():
    X = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=1)
    model = TreeISDE(2, marginal="gaussian", random_state=0).fit(X)
    display = GraphDisplay.from_estimator(model, ax=Figure().subplots())
    assert len(display.ax_.lines) == len(model.edges_) == 2
