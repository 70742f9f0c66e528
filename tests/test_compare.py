"""The comparison of density estimators: the same rows for all, every row counted, and the paper's way beside it."""

import csv
import importlib.util
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.neighbors import KernelDensity

from isde import CVKDE, ISDE, BlockDiagonalGaussian, EmpiricalGaussian, ForestDensity, GaussianMixtureCV, TreeISDE
from isde.baselines import vine
from isde.cli import main
from isde.comparison import (
    LOWEST_LOG,
    METHODS,
    Comparison,
    Draw,
    Method,
    MethodFit,
    MethodOptions,
    build_methods,
    compare,
    draw_rows,
    underflows,
)
from isde.data.table import Table
from isde.density import Scaling
from isde.errors import InputError, ISDEError
from isde.plots import ComparisonDisplay
from isde.synthetic import make_structured
from oracles import ROUNDING

NAMES = ["a", "b", "c"]
FAST = "gaussian,bdcs,cvkde"


@pytest.fixture(scope="module", name="X")
def some_rows():
    """240 rows: a curved pair on scales of its own, and a column that is alone."""
    rng = np.random.default_rng(5)
    t = rng.uniform(-1, 1, size=240)
    return np.column_stack([50 * t, t**2 + 0.1 * rng.normal(size=240), 7 + 0.01 * rng.normal(size=240)])


@pytest.fixture
def data(tmp_path, X):
    return write_csv(tmp_path / "data.csv", X)


def write_csv(path, X):
    with open(path, "w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(NAMES)
        writer.writerows(X.tolist())
    return path


def call(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def result_of(*arguments):
    answer = call(*arguments, "--jobs", 1, "--quiet", "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def refusal(answer):
    """The one sentence of a refused call."""
    assert (answer.exit_code, answer.stdout) == (2, ""), answer.output
    assert answer.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in answer.stderr
    return answer.stderr.splitlines()[-1]


def on_unit_scale(model, X, draw):
    """Log-densities of each validation sample on the columns rescaled by the training rows, from the raw rows."""
    log_range = np.log(np.ptp(X[draw.train], axis=0)).sum()
    model.fit(X[draw.train])
    return np.array([model.score_samples(X[rows]) + log_range for rows in draw.samples])


def made_up(**log_densities):
    """A comparison of one draw in which row 2 is in two samples."""
    draw = Draw(np.array([0, 1]), np.array([[2, 3], [2, 4], [5, 6]]))
    fitted = {name: [MethodFit(np.array(values, dtype=float), 1.0, 2.0)] for name, values in log_densities.items()}
    return Comparison([draw], [Scaling(np.zeros(1), np.ones(1))], fitted, {})


class Given(BaseEstimator):
    """A standard normal, with one log-density replaced."""

    def __init__(self, value=0.0):
        self.value = value

    def fit(self, X, y=None):
        return self

    def score_samples(self, X):
        scores = norm.logpdf(X).sum(axis=1)
        scores[0] = self.value
        return scores


class Refuses(Given):
    def fit(self, X, y=None):
        raise RuntimeError("no such luck\nat all")


# --- rows ------------------------------------------------------------------------------------------------------


def test_a_draw_keeps_training_and_validation_rows_apart():
    for draw in draw_rows(100, train_rows=60, validation_rows=15, repeats=7, fits=3):
        assert len(set(draw.train)) == 60
        assert draw.samples.shape == (7, 15)
        assert not set(draw.train) & set(draw.samples.ravel())
        assert all(len(set(sample)) == 15 for sample in draw.samples)
        np.testing.assert_array_equal(draw.rows[draw.positions], draw.samples)
        counts = np.array([(draw.samples == row).sum() for row in draw.rows])
        np.testing.assert_allclose(draw.shares, counts / counts.sum(), rtol=ROUNDING)


def test_draws_depend_on_the_seed_and_on_nothing_else():
    (one,) = draw_rows(100, random_state=3)
    several = draw_rows(100, random_state=3, fits=2)
    (other,) = draw_rows(100, random_state=4)
    np.testing.assert_array_equal(one.train, several[0].train)
    np.testing.assert_array_equal(one.samples, several[0].samples)
    assert set(one.train) != set(several[1].train)
    assert set(one.train) != set(other.train)


@pytest.mark.parametrize(("n_rows", "sizes"), [(30_000, (5000, 2000)), (8000, (4000, 2000)), (100, (50, 25))])
def test_sizes_are_the_papers_where_the_table_is_large_enough(n_rows, sizes):
    (draw,) = draw_rows(n_rows, repeats=2)
    assert (len(draw.train), draw.samples.shape[1]) == sizes


@pytest.mark.parametrize(
    ("n_rows", "settings", "complaint"),
    [
        (7, {}, "7 rows are too few"),
        (50, {"train_rows": 3}, "3 training rows of 50 are too few"),
        (50, {"train_rows": 50}, r"train_rows=50 leaves too few of 50 rows .* at most 48"),
        (50, {"train_rows": 49}, "train_rows=49 "),
        (50, {"train_rows": 100}, "train_rows=100 "),
        (50, {"validation_rows": 0}, "0 validation rows of 50 are too few"),
        (50, {"validation_rows": 26}, "25 training rows and 26 validation rows are more than the 50 rows"),
        (50, {"repeats": 0}, "repeats=0"),
        (50, {"fits": 0}, "fits=0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(n_rows, settings, complaint):
    with pytest.raises(InputError, match=complaint):
        draw_rows(n_rows, **settings)


# --- numbers ---------------------------------------------------------------------------------------------------


def test_underflow_is_where_the_exponential_is_zero():
    values = LOWEST_LOG + np.array([-1.0, -1e-12, 0.0, 1e-12, 1.0])
    np.testing.assert_array_equal(underflows(values), np.exp(values) == 0)
    assert underflows(values).sum() == 3


def test_the_papers_way_differs_exactly_by_the_rows_that_underflow():
    found = made_up(near=[1, 2, 3, 4, 5], far=[-2000, 2, 3, 4, -np.inf])
    np.testing.assert_array_equal(found.samples("near"), found.paper_samples("near"))
    np.testing.assert_array_equal(found.samples("near"), [[1.5, 2.0, 4.5]])
    np.testing.assert_array_equal(found.samples("far"), [[-999.0, -998.5, -np.inf]])
    np.testing.assert_array_equal(found.paper_samples("far"), [[2.0, 3.0, 4.0]])
    assert [(record.n_underflow, record.n_zero) for record in found.records()[3:]] == [(1, 0), (1, 0), (1, 1)]
    near, far = found.summaries()
    assert (near.n_underflow, far.n_underflow, far.n_zero, far.n_rows) == (0, 2, 1, 5)
    assert (far.mean_log_likelihood, far.difference, far.paper_mean_log_likelihood) == (-np.inf, -np.inf, 3.0)
    assert np.isnan(far.difference_standard_error)
    listed = found.to_dict()["methods"][1]
    assert (listed["mean_log_likelihood"], listed["n_zero"]) == (None, 1)


def test_a_sample_in_which_every_row_underflows_has_no_mean_in_the_papers_way():
    found = made_up(far=[-800, -800, 3, 4, 5])
    assert np.isnan(found.paper_samples("far")[0, 0])
    assert found.to_dict()["records"][0]["paper_mean_log_likelihood"] is None


def test_differences_are_paired_and_a_row_in_two_samples_counts_twice_in_the_error():
    one, other = np.array([1.0, 2, 3, 4, 5]), np.array([0.0, 2, 1, 5, 5])
    difference = made_up(one=one, other=other).difference("one", "other")
    rows = (one - other)[[0, 1, 0, 2, 3, 4]]
    shares = np.array([2, 1, 1, 1, 1]) / 6
    assert difference.mean == pytest.approx(rows.mean(), abs=ROUNDING)
    assert difference.standard_error == pytest.approx(
        np.std(one - other, ddof=1) * np.sqrt((shares**2).sum()), abs=ROUNDING
    )


def test_the_standard_error_is_that_of_the_mean_where_samples_share_no_row(rng):
    draw = Draw(np.array([0]), np.arange(1, 41).reshape(4, 10))
    a, b = rng.normal(size=(2, 40))
    found = Comparison([draw], [], {"a": [MethodFit(a, 0, 0)], "b": [MethodFit(b, 0, 0)]}, {})
    assert found.difference("a", "b").standard_error == pytest.approx((a - b).std(ddof=1) / 40**0.5, abs=ROUNDING)


def test_after_several_fits_the_standard_error_is_that_over_fits(X):
    found = compare(X, build_methods(["cvkde", "gaussian"]), repeats=3, fits=4)
    assert found.samples("cvkde").shape == (4, 3)
    by_fit = (found.samples("gaussian") - found.samples("cvkde")).mean(axis=1)
    difference = found.difference("gaussian", "cvkde")
    assert difference.mean == pytest.approx(by_fit.mean(), abs=ROUNDING)
    assert difference.standard_error == pytest.approx(by_fit.std(ddof=1) / 2, abs=ROUNDING)
    assert [(r.fit, r.repeat) for r in found.records()[:4]] == [(0, 0), (0, 1), (0, 2), (1, 0)]


# --- methods ---------------------------------------------------------------------------------------------------

DIRECT = {
    "isde": lambda: ISDE(2, random_state=1),
    "isde-kde": lambda: ISDE(2, marginal="kde", split=0.6, random_state=1),
    "isde-stack": lambda: ISDE(2, marginal="stack", split=0.6, random_state=1),
    "isde-gaussian": lambda: ISDE(2, marginal="gaussian", split=0.6, random_state=1),
    "tree": lambda: TreeISDE(2, random_state=1),
    "fde": lambda: ForestDensity(split=0.6, random_state=1),
    "cvkde": lambda: CVKDE(),
    "gm": lambda: GaussianMixtureCV(random_state=1),
    "bdcs": lambda: BlockDiagonalGaussian(),
    "gaussian": lambda: EmpiricalGaussian(),
}


@pytest.mark.parametrize("method", DIRECT)
def test_every_name_stands_for_its_estimator_with_the_papers_split(method):
    built = build_methods([method], MethodOptions(max_block_size=2, random_state=1))[method]
    assert type(built) is type(DIRECT[method]())
    assert built.get_params() == DIRECT[method]().get_params()


@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
@pytest.mark.parametrize("method", sorted(DIRECT.keys() - {"gm"}))  # a mixture takes seconds, and the same way
def test_every_method_is_the_estimator_fitted_to_the_same_rows(X, method):
    methods = build_methods([method], MethodOptions(max_block_size=2, random_state=1))
    found = compare(X, methods, repeats=2, random_state=9)
    (draw,) = draw_rows(len(X), repeats=2, random_state=9)
    expected = on_unit_scale(DIRECT[method](), X, draw)
    # Rescaled twice instead of once: the last digits of a row differ, and searches hand them on.
    np.testing.assert_allclose(found.samples(method)[0], expected.mean(axis=1), atol=1e-6)
    np.testing.assert_array_equal(found.draws[0].samples, draw.samples)


def test_every_method_by_name_is_compared_with_its_estimator():
    assert set(METHODS) == {*DIRECT, "vine"}
    help_text = call("-h").stdout
    assert all(f"  {name} " in help_text for name in METHODS)


def test_a_line_in_the_registry_is_all_that_a_method_needs(data, monkeypatch):
    monkeypatch.setitem(METHODS, "another", Method("Gaussian again", EmpiricalGaussian, {"scale": "standard"}))
    assert "another        Gaussian again\n" in call("-h").stdout
    assert METHODS["another"].build(MethodOptions(n_jobs=3)).get_params() == {"scale": "standard"}
    found = result_of(data, "--methods", "gaussian", "--with", "another", "--repeats", 2)
    assert {method["method"] for method in found["methods"]} == {"gaussian", "another"}
    assert "the methods are isde," in refusal(call(data, "--with", "nobody"))


def test_names_that_are_unknown_or_twice_are_refused():
    with pytest.raises(InputError, match="no method 'kde': the methods are isde, isde-kde"):
        build_methods(["isde", "kde"])
    with pytest.raises(InputError, match="'gm' is named twice"):
        build_methods(["gm", "isde", "gm"])


def test_a_frame_and_a_table_give_the_same_as_an_array(X):
    import pandas

    methods = build_methods(["gaussian"])
    expected = compare(X, methods, repeats=2).samples("gaussian")
    for same in (Table(X, tuple(NAMES)), pandas.DataFrame(X, columns=NAMES)):
        np.testing.assert_array_equal(compare(same, methods, repeats=2).samples("gaussian"), expected)


def test_a_far_row_counts_and_only_the_papers_way_drops_it(X):
    far = X.copy()
    (draw,) = draw_rows(len(X), repeats=4)
    row = draw.samples[1, 0]
    far[row, 0] = 1e5
    found = compare(far, build_methods(["cvkde", "gaussian"]), repeats=4)
    hit = (draw.samples == row).any(axis=1)
    np.testing.assert_array_equal(found.samples("cvkde")[0] != found.paper_samples("cvkde")[0], hit)
    np.testing.assert_array_equal([r.n_underflow for r in found.records()[:4]], hit)
    kernels = on_unit_scale(CVKDE(), far, draw)
    kept = [sample[sample > -745.2].mean() for sample in kernels]
    assert kernels.min() < -1e4
    np.testing.assert_allclose(found.paper_samples("cvkde")[0], kept, rtol=1e-9)
    np.testing.assert_allclose(found.samples("cvkde")[0], kernels.mean(axis=1), rtol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Refuses(), "RuntimeError: no such luck"),
        (Given(np.nan), "score_samples gave nan in 1 of "),
        (Given(np.inf), "score_samples gave inf in 1 of "),
    ],
)
def test_a_method_that_fails_is_reported_by_name_and_the_others_go_on(X, estimator, message):
    found = compare(X, {"bad": estimator, "gaussian": EmpiricalGaussian()}, repeats=2, fits=2)
    assert found.methods == ["gaussian"]
    assert found.failures.keys() == {"bad"}
    assert found.failures["bad"].startswith(message)
    assert "\n" not in found.failures["bad"]
    with pytest.raises(ISDEError, match=f"No method could be compared.*bad: {message}"):
        compare(X, {"bad": estimator})


def test_a_method_that_failed_is_not_fitted_again(X, monkeypatch):
    tried = []
    monkeypatch.setattr(Refuses, "fit", lambda self, X: tried.append(len(X)) or 1 / 0)
    found = compare(X, {"bad": Refuses(), "gaussian": EmpiricalGaussian()}, repeats=2, fits=3)
    assert (tried, found.failures) == ([120], {"bad": "ZeroDivisionError: division by zero"})


def test_a_row_of_density_zero_is_no_failure_and_makes_the_mean_infinite(X):
    found = compare(X, {"zero": Given(-np.inf), "gaussian": EmpiricalGaussian()}, repeats=30)
    assert found.methods == ["gaussian", "zero"]
    assert (found.failures, found.summaries()[1].n_zero) == ({}, 1)
    assert np.isneginf(found.samples("zero")).any()


def test_estimators_are_left_as_they_were(X):
    model = EmpiricalGaussian()
    compare(X, {"gaussian": model}, repeats=2)
    assert not hasattr(model, "density_")


def test_a_column_that_is_constant_in_the_training_rows_is_named(X):
    flat = X.copy()
    flat[:, 1] = 0.0
    flat[draw_rows(len(X))[0].samples[0, 0], 1] = 1.0
    with pytest.raises(InputError, match="'b' has the same value"):
        compare(Table(flat, tuple(NAMES)), build_methods(["gaussian"]))


def test_warnings_are_collected_by_text(X):
    tied = np.column_stack([X, np.round(X[:, 0])])
    found = compare(tied, build_methods(["gaussian", "bdcs"]), repeats=2)
    ((text, methods),) = found.warnings().items()
    assert text.startswith("Repeated values in 'x3'")
    assert methods == ["gaussian", "bdcs"]


# --- vine ------------------------------------------------------------------------------------------------------


def test_the_vine_is_a_density_with_its_margins():
    pytest.importorskip("pyvinecopulib.core")
    X, _ = make_structured([2], n_samples=400, random_state=0)
    model = vine.VineDensity().fit(X)
    grid = np.linspace(-4, 5, 181)
    points = np.column_stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
    assert np.exp(model.score_samples(points)).sum() * (grid[1] - grid[0]) ** 2 == pytest.approx(1, abs=0.02)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean(), abs=ROUNDING)
    assert np.isneginf(model.score_samples([[90.0, 0.0]])).all()


def test_the_vine_joins_the_comparison(data):
    pytest.importorskip("pyvinecopulib.core")
    found = result_of(data, "--methods", "gaussian", "--with", "vine", "--repeats", 2)
    assert [method["method"] for method in found["methods"]] == ["vine", "gaussian"]


def test_without_pyvinecopulib_one_sentence_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyvinecopulib.core", None)
    assert "pip install pyvinecopulib" in refusal(call(data, "--methods", "gaussian", "--with", "vine"))


# --- the command -----------------------------------------------------------------------------------------------


def test_json_csv_and_figure_hold_what_the_estimators_say(data, tmp_path, X):
    folder = tmp_path / "out"
    found = result_of(data, "--methods", FAST, "--repeats", 3, "--seed", 4, "-o", folder)
    assert {path.name for path in folder.iterdir()} == {"comparison.csv", "comparison.json", "comparison.png"}
    assert json.loads((folder / "comparison.json").read_text(encoding="utf-8")) == found
    (draw,) = draw_rows(len(X), repeats=3, random_state=4)
    values = {name: on_unit_scale(DIRECT[name](), X, draw) for name in FAST.split(",")}
    with open(folder / "comparison.csv", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["method"], row["repeat"]) for row in rows] == [(m, str(r)) for m in FAST.split(",") for r in range(3)]
    for row, record in zip(rows, found["records"], strict=True):
        mean = values[row["method"]][int(row["repeat"])].mean()
        assert float(row["mean_log_likelihood"]) == record["mean_log_likelihood"] == pytest.approx(mean, abs=1e-6)
        assert int(row["n_rows"]) == 60
    means = {name: values[name].mean() for name in values}
    assert [m["method"] for m in found["methods"]] == sorted(means, key=means.get, reverse=True)
    for method in found["methods"]:
        own, best = (values[name] for name in (method["method"], found["methods"][0]["method"]))
        assert method["difference"] == pytest.approx((own - best).mean(), abs=1e-6)
        assert method["sd"] == pytest.approx(own.mean(axis=1).std(ddof=1), abs=1e-6)
        assert method["fit_seconds"] > 0
    assert found["methods"][-1]["difference_standard_error"] > 0
    assert (found["n_rows"], found["train_rows"], found["validation_rows"]) == (240, 120, 60)
    assert found["to_data_units"] == pytest.approx([-np.log(np.ptp(X[draw.train], axis=0)).sum()])


def test_the_table_is_sorted_and_says_what_it_counts(data):
    answer = call(data, "--methods", FAST, "--repeats", 2, "--jobs", 1)
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert lines[0] == "240 rows of 3 columns: fitted on 120, 2 validation samples of 60 from the other 120"
    assert "columns rescaled to [0, 1] by the range of the training rows" in lines[1]
    assert "every row counted" in lines[2]
    assert "paper's way" in lines[2]
    assert lines[4].startswith("cvkde ")
    assert " best " in lines[4]
    values = [float(line.split()[1]) for line in lines[4:7]]
    assert values == sorted(values, reverse=True)
    assert "log-density below -745.13" in lines[7]
    assert "cvkde: fitting 120 rows" in answer.stderr
    assert call(data, "--methods", FAST, "--repeats", 2, "--jobs", 1, "--quiet").stderr == ""


def test_the_table_counts_the_rows_that_the_paper_drops_and_says_what_failed(data, tmp_path, monkeypatch):
    (tmp_path / "mine_for_isde.py").write_text(
        "class Refuses:\n"
        "    def fit(self, X): raise RuntimeError('no such luck')\n"
        "    def score_samples(self, X): pass\n"
        "class Zero:\n"
        "    def fit(self, X): return self\n"
        "    def score_samples(self, X): return [float('-inf')] + [-1000.0] + [0.0] * (len(X) - 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    options = ["--methods", "gaussian", "--estimator", "mine_for_isde:Refuses", "--estimator", "mine_for_isde:Zero"]
    answer = call(data, *options, "--repeats", 20, "--jobs", 1, "--quiet")
    assert answer.exit_code == 0, answer.output
    assert sys.path == path
    assert "Refuses: failed: RuntimeError: no such luck" in answer.stdout
    assert "Zero: density zero in 1 of 120 rows; its mean is -inf" in answer.stdout
    (line,) = [line.split() for line in answer.stdout.splitlines() if line.startswith("Zero ")]
    assert line[1] == "-inf"
    assert line[-4:] == ["0.000", "2", "of", "120"]
    found = result_of(data, *options)
    assert found["failures"] == [{"method": "Refuses", "message": "RuntimeError: no such luck"}]


def test_an_estimator_of_scikit_learn_is_fitted_to_the_rescaled_rows(data, X):
    found = result_of(data, "--methods", "gaussian", "--estimator", "sklearn.neighbors:KernelDensity", "--repeats", 2)
    (draw,) = draw_rows(len(X), repeats=2)
    low, width = X[draw.train].min(axis=0), np.ptp(X[draw.train], axis=0)
    model = KernelDensity().fit((X[draw.train] - low) / width)
    expected = [model.score_samples((X[rows] - low) / width).mean() for rows in draw.samples]
    records = [r["mean_log_likelihood"] for r in found["records"] if r["method"] == "KernelDensity"]
    assert records == pytest.approx(expected, abs=ROUNDING)


def test_functions_and_instances_of_a_module_in_the_current_folder_are_estimators(data, tmp_path, monkeypatch):
    (tmp_path / "more_for_isde.py").write_text(
        "from sklearn.mixture import GaussianMixture\n"
        "def two(): return GaussianMixture(2)\n"
        "one = GaussianMixture(1)\n"
        "def gaussian(): return one\n"
    )
    monkeypatch.chdir(tmp_path)
    specs = [f"more_for_isde:{name}" for name in ("two", "one", "gaussian")]
    options = [part for spec in specs for part in ("--estimator", spec)]
    found = result_of(data, "--methods", "gaussian", *options, "--repeats", 2)
    means = {method["method"]: method["mean_log_likelihood"] for method in found["methods"]}
    assert means.keys() == {"gaussian", "two", "one", "more_for_isde:gaussian"}
    assert means["one"] == pytest.approx(means["gaussian"], abs=1e-3)  # scikit-learn adds 1e-6 to the diagonal
    assert sys.modules["more_for_isde"].one.random_state == 0


BAD_OPTIONS = {
    "method": (["--methods", "isde,spline"], "no method 'spline': the methods are isde, "),
    "no method": (["--methods", ""], "no method ''"),
    "twice": (["--methods", "gm,gm"], "'gm' is named twice"),
    "with": (["--with", "nobody"], "'nobody'"),
    "form": (["--estimator", "KernelDensity"], "MODULE:NAME"),
    "module": (["--estimator", "no_such_module:A"], "cannot be imported (ModuleNotFoundError"),
    "class": (["--estimator", "sklearn.neighbors:Nothing"], "the module sklearn.neighbors has no Nothing"),
    "no density": (["--estimator", "sklearn.linear_model:LinearRegression"], "has no score_samples"),
    "no estimator": (["--estimator", "collections:OrderedDict"], "has no fit"),
    "arguments": (["--estimator", "sklearn.model_selection:GridSearchCV"], "cannot be made without arguments"),
    "given twice": (["--estimator", "sklearn.neighbors:KernelDensity"] * 3, "is given twice"),
    "train": (["--train-rows", 480], "--train-rows 480 leaves too few of 240 rows to validate on: give at most 238."),
    "validation": (["--validation-rows", 130], "120 training rows and 130 validation rows are more than the 240"),
    "repeats": (["--repeats", 0], "0"),
    "k": (["-k", 0], "0"),
    "columns": (["--columns", "a,omega"], "no column 'omega'"),
}


@pytest.mark.parametrize("kind", BAD_OPTIONS)
def test_a_bad_option_is_refused_and_nothing_is_written(data, tmp_path, kind):
    options, complaint = BAD_OPTIONS[kind]
    assert complaint in refusal(call(data, "--methods", "gaussian", "-o", tmp_path / "out", *options))
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_a_module_that_stumbles_while_it_is_imported_is_quoted(data, tmp_path, monkeypatch):
    (tmp_path / "stumbles_for_isde.py").write_text("import math\nmath.no_such_function\nclass Mine: pass\n")
    monkeypatch.chdir(tmp_path)
    complaint = refusal(call(data, "--methods", "gaussian", "--estimator", "stumbles_for_isde:Mine"))
    assert "cannot be imported (AttributeError: module 'math' has no attribute 'no_such_function')" in complaint


def test_a_table_of_few_rows_and_a_missing_value_are_refused(tmp_path, X):
    assert "7 rows are too few" in refusal(call(write_csv(tmp_path / "few.csv", X[:7])))
    holes = X.copy()
    holes[3, 1] = np.nan
    assert "'b' (1)" in refusal(call(write_csv(tmp_path / "holes.csv", holes)))


def test_a_folder_that_holds_anything_is_refused_before_any_work(data, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    assert call(data, "--methods", "gaussian", "-o", folder).exit_code == 0
    before = (folder / "comparison.csv").read_bytes()
    assert "holds other files" in refusal(call(tmp_path / "no.csv", "--methods", "gaussian", "-o", folder))
    assert (folder / "comparison.csv").read_bytes() == before
    assert "is a file" in refusal(call(data, "-o", data))


def test_writing_that_fails_leaves_nothing(data, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    answer = call(data, "--methods", "gaussian", "-o", tmp_path / "out", "--quiet")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (1, "", "Error: disk full\n")
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_when_every_method_fails_it_is_a_failure(data, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "gaussian", Method("refuses", Refuses))
    answer = call(data, "--methods", "gaussian", "-o", tmp_path / "out", "--quiet")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "Error: No method could be compared (gaussian: RuntimeError: no such luck).\n"
    assert not (tmp_path / "out").exists()


# --- the figure ------------------------------------------------------------------------------------------------


def test_the_figure_opens_and_has_a_box_for_each_method(data, tmp_path, monkeypatch):
    from matplotlib import image

    drawn = []
    draw = ComparisonDisplay.plot
    monkeypatch.setattr(ComparisonDisplay, "plot", lambda self, ax=None: drawn.append(draw(self, ax)) or drawn[-1])
    assert call(data, "--methods", FAST, "--repeats", 4, "-o", tmp_path / "out", "--jobs", 1).exit_code == 0
    pixels = image.imread(tmp_path / "out" / "comparison.png")
    assert pixels.shape[1] == 1200
    assert pixels.std() > 0.05
    (display,) = drawn
    assert len(display.boxes_["boxes"]) == 3
    assert display.figure_ is display.ax_.figure


def test_boxes_are_sorted_by_median_and_show_every_rows_mean():
    samples = {"low": np.array([1.0, 2, 9]), "high": np.array([4.0, 5, 6]), "zero": np.array([3.0, 3, -np.inf])}
    display = ComparisonDisplay(samples).plot(new_axes())
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["low", "zero\n(1 of 3 at −∞)", "high"]
    assert [line.get_xdata()[0] for line in display.boxes_["medians"]] == [2.0, 3.0, 5.0]
    assert {text.get_text() for text in display.ax_.texts} == {"2.00", "3.00", "5.00"}


def test_a_method_far_behind_is_left_of_the_axis_with_its_number():
    samples = {"a": np.array([4.0, 5, 6]), "b": np.array([3.0, 4, 5]), "far": np.array([-500.0, -400, -450])}
    display = ComparisonDisplay(samples).plot(new_axes())
    assert display.ax_.get_xlim() == pytest.approx((2.85, 6.15))
    assert "◂ −450.00" in {text.get_text() for text in display.ax_.texts}
    assert len(display.boxes_["boxes"]) == 3


def new_axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_without_an_axis_a_figure_is_made(X):
    from matplotlib import pyplot

    with pyplot.rc_context():
        pyplot.switch_backend("agg")
        display = ComparisonDisplay.from_comparison(compare(X, build_methods(["gaussian", "bdcs"]), repeats=3))
        assert len(display.boxes_["boxes"]) == 2
        pyplot.close(display.figure_)


def test_without_matplotlib_a_figure_is_refused_before_any_work(data, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("isde.plots.common.find_spec", lambda name: None if name == "matplotlib" else find(name))
    # Not even the file is looked for.
    message = refusal(call(tmp_path / "no.csv", "-o", tmp_path / "out"))
    assert 'pip install "isde[plot]", or do without the figure (--no-plot).' in message
    assert not (tmp_path / "out").exists()
    assert call(data, "--methods", "gaussian", "-o", tmp_path / "out", "--no-plot").exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"comparison.csv", "comparison.json"}
