"""Trees of blocks as values: cliques, separators, components, against networkx."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isde.trees import NO_PARENT, chordal_cliques, tree_of_cliques, tree_of_edges


@st.composite
def graphs(draw, largest=8):
    n_columns = draw(st.integers(1, largest))
    pairs = list(combinations(range(n_columns), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return n_columns, edges


def as_networkx(n_columns, edges):
    graph = nx.Graph()
    graph.add_nodes_from(range(n_columns))
    graph.add_edges_from(edges)
    return graph


@given(graphs())
def test_chordal_graphs_and_their_cliques_are_those_of_networkx(case):
    graph = as_networkx(*case)
    cliques = chordal_cliques(*case)
    assert (cliques is not None) == nx.is_chordal(graph)
    if cliques is not None:
        assert cliques == sorted(tuple(sorted(c)) for c in nx.chordal_graph_cliques(graph))


@given(graphs())
def test_each_clique_hangs_where_all_it_shares_with_earlier_ones_stands(case):
    n_columns, edges = case
    if chordal_cliques(n_columns, edges) is None:
        with pytest.raises(ValueError, match="not chordal"):
            tree_of_edges(n_columns, edges)
        return
    tree = tree_of_edges(n_columns, edges)
    assert tree.n_columns == n_columns
    assert tree.edges == tuple(sorted(tuple(sorted(e)) for e in edges))
    graph = as_networkx(n_columns, edges)
    assert tree.components == tuple(sorted(tuple(sorted(c)) for c in nx.connected_components(graph)))
    for i, (clique, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
        earlier = {c for other in tree.cliques[:i] for c in other}
        assert set(tree.shared[i]) == set(clique) & earlier  # the running intersection
        assert (parent == NO_PARENT) == (not tree.shared[i])
        assert parent < i
    assert tree_of_cliques(n_columns, reversed(tree.cliques)) == tree


@given(graphs())
def test_each_column_is_counted_once(case):
    n_columns, edges = case
    if chordal_cliques(n_columns, edges) is not None:
        counts = np.zeros(n_columns, dtype=int)
        for term, sign in tree_of_edges(n_columns, edges).terms:
            counts[list(term)] += sign
        assert (counts == 1).all()


def test_other_cliques_than_maximal_ones_are_refused():
    with pytest.raises(ValueError, match="maximal cliques are"):
        tree_of_cliques(3, [(0, 1), (1, 2), (0, 2)])
    with pytest.raises(ValueError, match="no edge"):
        tree_of_edges(3, [(0, 3)])
