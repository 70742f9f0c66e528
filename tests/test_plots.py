"""Displays: what they draw is what they were given, on the axes given, and nothing else is touched."""

import subprocess
import sys
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from isde import ISDE, TreeISDE
from isde.errors import ISDEWarning
from isde.inspection import landscape
from isde.layout import place_blocks, short
from isde.partitions import random_partition
from isde.plots import (
    BandwidthDisplay,
    BlockDensityDisplay,
    BlockDiagramDisplay,
    CliqueTreeDisplay,
    CoBlockDisplay,
    ExtremesDisplay,
    GainHeatmapDisplay,
    GraphDisplay,
    LandscapeDisplay,
    NeighbourhoodDisplay,
    SamplesDisplay,
)
from isde.plots.common import LETTERS
from pages import HOSTILE, fitted, hostile_table


@pytest.fixture(scope="module")
def table():
    return hostile_table()


@pytest.fixture(scope="module")
def model(table):
    return fitted(table)


@pytest.fixture(scope="module")
def kernels(table):
    return ISDE(3, marginal="kde", split="paper", random_state=0).fit(table.X[:, 3:6])


@pytest.fixture(autouse=True)
def nothing_global():
    """No display leaves a style or, with axes given, a figure behind."""
    before = dict(matplotlib.rcParams)
    yield
    pyplot.close("all")
    assert dict(matplotlib.rcParams) == before


def axes(n=1):
    return Figure(figsize=(6, 4)).subplots(1, n)


def test_a_line_is_as_wide_as_its_gain(model):
    shown = BlockDiagramDisplay.from_estimator(model, ax=axes())
    pairs = shown.pairs
    inside = {pair for block in model.partition_ for pair in combinations(block, 2)}
    assert inside <= set(shown.lines_)
    assert all(pairs.passes[pair] for pair in set(shown.lines_) - inside)
    passing = [pair for pair in shown.lines_ if pairs.passes[pair]]
    widths = np.array([shown.lines_[pair].get_linewidth() for pair in passing])
    gains = np.array([pairs.gains[pair] for pair in passing])
    wide = widths > 0.81  # the thinnest are drawn wide enough to be seen
    assert wide.sum() >= 3
    assert widths[wide] / gains[wide] == pytest.approx(np.full(wide.sum(), (widths / gains).min()))
    for pair in set(shown.lines_) - inside:
        assert shown.lines_[pair].get_linestyle() == "--"
    texts = [text.get_text() for text in shown.ax_.texts]
    assert HOSTILE[2] in texts or any(text.startswith("{{ 7 * 7 }}") for text in texts)


def test_lines_across_are_limited(model):
    assert len(BlockDiagramDisplay.from_estimator(model, ax=axes(), max_across=0).lines_) == sum(
        len(block) * (len(block) - 1) // 2 for block in model.partition_
    )


@pytest.mark.parametrize(("d", "width"), [(1, 300.0), (9, 340.0), (50, 340.0), (50, 920.0), (120, 920.0)])
def test_nothing_overlaps_in_a_diagram(d, width):
    blocks, names = random_partition(d, 7, random_state=d), [f"column number {i}" for i in range(d)]
    diagram = place_blocks(blocks, names, width)
    assert sorted(card.place for card in diagram.cards) == list(range(len(blocks)))
    for a, b in combinations(diagram.cards, 2):
        beside = a.x + a.width <= b.x or b.x + b.width <= a.x
        assert beside or a.y + a.height <= b.y or b.y + b.height <= a.y
    for card in diagram.cards:
        assert {node.column for node in card.nodes} == set(blocks[card.place])
        assert all(card.x < node.x < card.x + card.width for node in card.nodes)
        assert all(card.y < node.y < card.y + card.height for node in card.nodes)
        assert card.x >= 0
        assert card.x + card.width <= diagram.width


def test_the_heatmap_shows_the_gains_that_pass_in_the_order_of_the_tree(model):
    shown = GainHeatmapDisplay.from_estimator(model, ax=axes())
    order = list(shown.tree.order)
    expected = np.where(shown.pairs.passes, shown.pairs.gains, np.nan)[np.ix_(order, order)]
    np.testing.assert_array_equal(shown.shown_, expected)
    np.testing.assert_array_equal(shown.image_.get_array().filled(np.nan), expected)
    assert [label.get_text() for label in shown.ax_.get_xticklabels()] == [short(HOSTILE[c], LETTERS) for c in order]
    assert len(shown.tree_ax_.lines) == len(HOSTILE) - 1
    heights = [max(line.get_ydata()) for line in shown.tree_ax_.lines]
    assert heights == [merge.height for merge in shown.tree.merges]


def test_cliques_stand_below_those_they_hang_on_with_what_they_share():
    X = np.random.default_rng(0).normal(size=(150, 5)).cumsum(axis=1)
    with pytest.warns(ISDEWarning, match="try max_block_size=3"):
        tree = TreeISDE(2, marginal="gaussian", split="paper", random_state=0).fit(X)
    shown = CliqueTreeDisplay.from_estimator(tree, ax=axes())
    found = sorted(text.get_text() for text in shown.separators_.values())
    assert found == sorted(", ".join(f"x{c}" for c in separator) for separator in tree.separators_)
    for place, parent in enumerate(tree.density_.tree.parents):
        if parent >= 0:
            assert shown.boxes_.boxes[place].y > shown.boxes_.boxes[parent].y
    diagram = BlockDiagramDisplay.from_estimator(tree, ax=axes())
    assert set(tree.edges_) == set(diagram.lines_)


def test_a_landscape_is_its_histogram(model):
    shown = LandscapeDisplay.from_estimator(model, bins=12, ax=axes())
    found = landscape(model.subset_scores_, 12)
    values, edges, _ = shown.steps_.get_data()
    np.testing.assert_array_equal(values, found.counts)
    np.testing.assert_array_equal(edges, found.edges)


def test_partitions_around_the_best_are_points(model):
    shown = NeighbourhoodDisplay.from_estimator(model, 3, 5, ax=axes())
    np.testing.assert_array_equal(shown.points_.get_xdata(), shown.neighbourhood.edits)
    np.testing.assert_array_equal(shown.points_.get_ydata(), -shown.neighbourhood.below)


def test_boxes_stand_for_their_groups_and_count_what_has_no_place():
    groups = {"best": np.array([3.0, 4.0, 5.0]), "random": np.array([1.0, 2.0]), "worst": np.array([0.0, -np.inf])}
    shown = ExtremesDisplay(groups).plot(axes())
    medians = [line.get_ydata()[0] for line in shown.boxes_["medians"]]
    assert medians == [4.0, 1.5, 0.0]
    assert [label.get_text() for label in shown.ax_.get_xticklabels()] == ["best", "random", "worst\n(1 at −∞)"]


def test_best_random_and_worst_of_a_model(model):
    shown = ExtremesDisplay.from_estimator(model, 3, ax=axes())
    assert list(shown.groups) == ["best", "random", "worst"]
    assert shown.groups["best"][0] == pytest.approx(model.selection_.score)


def test_a_density_of_one_column_is_a_curve(table):
    alone = ISDE(1, marginal="gaussian", split="paper").fit(table)
    shown = BlockDensityDisplay.from_estimator(alone, (3,), table, ax=axes())
    (column,) = shown.shape.columns
    np.testing.assert_array_equal(shown.line_.get_ydata(), column.density)
    assert shown.axes_[0].patches  # the data


def test_a_density_of_more_columns_is_contours_of_its_pairs(model, table):
    block = max(model.partition_, key=len)
    n = len(block) * (len(block) - 1) // 2
    shown = BlockDensityDisplay.from_estimator(model, block, table, ax=axes(n))
    assert len(shown.contours_) == n == 3
    for contour, pair, ax in zip(shown.contours_, shown.shape.pairs, shown.axes_, strict=True):
        assert contour.levels == pytest.approx(sorted(pair.levels))
        assert ax.lines[0].get_xdata().size == len(table.X)
        assert (ax.get_xlabel(), ax.get_ylabel()) == pair.names
    with pytest.raises(ValueError, match="3 pictures"):
        BlockDensityDisplay.from_estimator(model, block, ax=axes())


def test_data_stand_beside_as_many_rows_drawn(model, table):
    shown = SamplesDisplay.from_estimator(model, table, (0, 1), ax=axes(2))
    left, right = (np.column_stack(points.get_data()) for points in shown.points_)
    assert sorted(map(tuple, left)) == sorted(map(tuple, table.X[:, :2]))
    np.testing.assert_array_equal(right, model.sample(len(table.X), random_state=0)[:, :2])


def test_a_bandwidth_curve_is_drawn_with_the_one_chosen(kernels, table):
    block = kernels.partition_[0]
    shown = BandwidthDisplay.from_estimator(kernels, table.X[:, 3:6], block, ax=axes())
    np.testing.assert_array_equal(shown.line_.get_ydata(), shown.curve.scores)
    assert shown.ax_.lines[1].get_xdata()[0] == kernels.bandwidths_[0]


def test_shares_of_blocks_are_a_matrix_in_the_order_of_blocks(model, table):
    shown = CoBlockDisplay.from_estimator(model, table, 3, ax=axes())
    shortened = [short(name, LETTERS) for name in HOSTILE]
    order = [shortened.index(label.get_text()) for label in shown.ax_.get_xticklabels()]
    np.testing.assert_array_equal(shown.shown_, shown.stability.together[np.ix_(order, order)])
    assert (np.diag(shown.shown_) == 1).all()


def test_long_names_are_cut_in_a_graph_and_others_are_not(model):
    names = ["a" * 300, *model.density_.names[1:]]
    display = GraphDisplay(model.density_.tree, names).plot(Figure().subplots())
    labels = [text.get_text() for text in display.ax_.texts]
    assert labels == [short(name, LETTERS) for name in names]


def test_plots_are_reached_through_isde():
    code = "import isde; isde.plots.GraphDisplay; assert {'inspection', 'plots', 'synthetic'} <= set(dir(isde))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_axes_a_new_figure_is_made(model):
    shown = BlockDiagramDisplay.from_estimator(model)
    assert shown.ax_.figure is shown.figure_
    assert pyplot.get_fignums()
    assert len(BlockDensityDisplay.from_estimator(model, max(model.partition_, key=len)).axes_) == 3


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")  # the control characters in the names
@pytest.mark.parametrize("display", [BlockDiagramDisplay, GainHeatmapDisplay])
def test_figures_can_be_written_whatever_columns_are_called(display, model, tmp_path):
    display.from_estimator(model).figure_.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000
