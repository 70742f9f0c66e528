"""A fitted model with hostile column names, and all that a page can say of it."""

import numpy as np
from sklearn.model_selection import ShuffleSplit

from isde import ISDE
from isde.data.table import Table
from isde.report import report_numbers

HOSTILE = (
    "<script>window.hacked=1</script>",
    "\"><img src=x onerror='window.hacked=2'>",
    "{{ 7 * 7 }}{% raw %}",
    "</style></svg></title><b id=stray>",
    "javascript:window.hacked=3",
    "back\u202ewards",
    "two\nlines\ttab\x00nul",
    "=1+1&amp;&lt;]]>-->",
    "a name that is much longer than any label " * 4,
)


def hostile_table(n_rows=160, names=HOSTILE):
    """A triple, two pairs and two columns alone; the triple depends on the first pair a little."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 9))
    X[:, 1] += 1.5 * X[:, 0]
    X[:, 2] += X[:, 0] - X[:, 1]
    X[:, 4] += 2 * X[:, 3]
    X[:, 6] -= X[:, 5]
    X[:, 5] += 0.5 * X[:, 3]
    return Table(X, tuple(names))


def fitted(table):
    return ISDE(3, marginal="gaussian", split=ShuffleSplit(6, train_size=0.5, random_state=0), random_state=0).fit(
        table
    )


COMPARISON = {
    "scale": "nats per row",
    "train_rows": 100,
    "validation_rows": 50,
    "methods": [
        {
            "method": name,
            "mean_log_likelihood": mean,
            "sd": 0.1,
            "difference": difference,
            "difference_standard_error": error,
            "n_zero": 0,
            "fit_seconds": 1.0,
        }
        for name, mean, difference, error in [
            ("isde", -3.2, 0.0, 0.0),
            ("<i>fde</i>", -3.4, -0.2, 0.05),
            ("gm", None, None, None),
        ]
    ],
    "failures": [{"method": "vine", "message": "<u>no</u>"}],
}


def everything(model, table):
    """The numbers of a page with all its parts."""
    stability = model.stability(table, 4, n_null=2, random_state=0)
    about = {"data": "C:\\secret\\<table>.csv", "split": {"fit_rows": [80] * 6, "score_rows": [80] * 6}}
    return report_numbers(model, table, about=about, stability=stability, comparison=COMPARISON)
