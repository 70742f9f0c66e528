"""A fitted estimator in a notebook, run for real."""

import nbformat
import numpy as np
import pytest
from sklearn import config_context

from isde import CVKDE, ISDE, ForestDensity, TreeISDE
from isde.notebook import blocks_html
from pages import HOSTILE, fitted, hostile_table

nbclient = pytest.importorskip("nbclient", reason="nbclient is not here: pip install nbclient ipykernel")

CODE = """
import numpy as np, pandas as pd
from isde import ISDE
x = np.random.default_rng(0).normal(size=(60, 3))
x[:, 1] += 3 * x[:, 0]
frame = pd.DataFrame(x, columns=["height", "<b>weight</b>", "time"])
model = ISDE(2, marginal="gaussian", split="paper", random_state=0)
model.fit(frame)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of jupyter_client and zmq
def test_a_notebook_shows_the_blocks_by_name(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (output,) = [out for out in notebook.cells[0].outputs if out.output_type == "execute_result"]
    html = output["data"]["text/html"]
    assert "<bdi>height</bdi>, <bdi>&lt;b&gt;weight&lt;/b&gt;</bdi>" in html
    assert "Alone: <bdi>time</bdi>" in html
    assert "sk-" in html  # scikit-learn's own diagram stands above
    assert output["data"]["text/plain"].startswith("ISDE(")


def test_blocks_stand_with_gain_error_and_chance():
    table = hostile_table()
    model = fitted(table)
    html = blocks_html(model)
    for block in model.partition_:
        if len(block) > 1:
            assert f"{model.subset_scores_.gain(block):.4f}" in html
    for name in (name for name in HOSTILE if "<" in name):
        assert name not in html
    assert "proved" in html


@pytest.mark.parametrize("bandwidths", [None, "plug-in"])
def test_a_forest_shows_its_trees(bandwidths):
    model = ForestDensity(bandwidths=bandwidths, random_state=0).fit(chain())
    html = model._repr_mimebundle_()["text/html"]
    assert "<bdi>x0</bdi>, <bdi>x1</bdi>, <bdi>x2</bdi>" in html
    assert "1 block<" in html


def test_a_tree_is_called_one():
    html = blocks_html(TreeISDE(2, marginal="gaussian", random_state=0).fit(chain()))
    assert "Clique</th>" in html
    assert "2 cliques; the best tree for these scores, proved" in html


def chain():
    return np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=1)


def test_an_estimator_that_is_not_fitted_shows_no_blocks():
    assert "isde-blocks" not in ISDE()._repr_mimebundle_()["text/html"]
    assert blocks_html(ISDE()) == ""


def test_other_estimators_and_plain_text():
    X = hostile_table(40).X[:, :2]
    model = CVKDE().fit(X)
    assert "<bdi>x0</bdi>, <bdi>x1</bdi>" in model._repr_html_()
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")
