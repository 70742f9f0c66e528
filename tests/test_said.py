"""What a fit says of itself: chance, errors, the runner-up, held-out densities, and what a reader should know."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import isde
from isde import ISDE, best_partitions, fit_blocks
from isde.cli import main
from isde.cli.runs import _difference
from isde.data.readers import read_table
from isde.errors import ISDEWarning
from isde.inspection import held_out, least_correlation, notes, runner_up
from oracles import ROUNDING


@pytest.fixture(scope="module")
def table():
    """A dependent pair, a column that stands alone, and one of small whole numbers."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=200)
    return np.column_stack([np.exp(x), x + 0.5 * rng.normal(size=200), rng.normal(size=200), rng.poisson(1, size=200)])


@pytest.fixture(scope="module")
def model(table):
    return ISDE(2, split="paper", random_state=0).fit(table)


# --- numbers ---------------------------------------------------------------------------------------------------


def test_the_density_beside_independence_is_that_of_two_fits_without_the_rows(model, table):
    found = held_out(model, table)
    fit, score = train_test_split(table, test_size=0.2, random_state=0)
    with pytest.warns(ISDEWarning, match="Repeated values"):
        blocks, alone = (fit_blocks(fit, p).score_samples(score) for p in (model.partition_, [(c,) for c in range(4)]))
    assert (found.n_fitted, found.n_scored) == (160, 40)
    assert found.blocks == pytest.approx(blocks.mean(), abs=ROUNDING)
    assert found.independence == pytest.approx(alone.mean(), abs=ROUNDING)
    assert found.gain == pytest.approx((blocks - alone).mean(), abs=ROUNDING)
    assert found.error == pytest.approx((blocks - alone).std(ddof=1) / np.sqrt(40), abs=ROUNDING)
    assert found.gain > 3 * found.error


def test_the_runner_up_is_the_second_best_partition(model):
    assert runner_up(model.subset_scores_) == best_partitions(model.subset_scores_, 2)[1]
    assert runner_up(model.subset_scores_.restrict(1)) is None


def test_the_least_correlation_is_worth_what_a_pair_is_charged_and_as_much_for_fitting(model):
    rho = least_correlation(model.subset_scores_)
    assert -0.5 * np.log(1 - rho**2) == pytest.approx(2 * model.subset_scores_.charges.max(), rel=1e-9)
    assert least_correlation(model.subset_scores_.uncharged()) == 0


def test_every_gain_stands_with_its_error_and_what_chance_gives(model):
    frame = model.subset_scores_.to_frame()
    assert {"gain", "gain_error", "charge"} <= set(frame.columns)
    np.testing.assert_array_equal(frame["charge"], model.subset_scores_.charges)
    assert (frame["charge"][frame["size"] > 1] > 0).all()


# --- sentences -------------------------------------------------------------------------------------------------


def test_few_rows_and_ties_are_said_where_they_matter(model, table):
    _, tied = notes(model)
    assert "'x3' (" in tied
    assert not notes(ISDE(2, random_state=0).fit(table[:, :3]))  # twenty splits show more than one
    few = ISDE(2, split="paper", random_state=0).fit(table[:20, :3])
    (said,) = notes(few)
    assert f"correlation below about {least_correlation(few.subset_scores_):.2f} is missed" in said


def test_ties_are_warned_of_when_a_density_is_asked_for_and_not_before(table, tmp_path):
    model = ISDE(1, split="paper", random_state=0).fit(table)  # warnings are errors here
    model.save(tmp_path / "model.isde")
    for one in (model, isde.load(tmp_path / "model.isde")):
        with pytest.warns(ISDEWarning, match=r"Repeated values in 'x3' .* drawn at random to find the blocks"):
            one.score_samples(table)


def test_far_rows_are_warned_of_on_the_datas_own_scale_alone(rng):
    X = rng.normal(size=(150, 2))
    X[7, 1] = 1000.0
    with pytest.warns(ISDEWarning, match=r"far from all others in 'x1' \(\d+ spreads\).*copula"):
        ISDE(2, marginal="kde", split="paper", random_state=0).fit(X)
    assert ISDE(2, split="paper", random_state=0).fit(X).partition_ == ((0,), (1,))


# --- columns that are not continuous ---------------------------------------------------------------------------


def test_a_class_label_is_found_with_the_columns_that_it_shifts():
    iris = load_iris()
    X = np.column_stack([iris.data[:, [2]], iris.target, np.random.default_rng(0).normal(size=150)])
    assert ISDE(3, random_state=0).fit(X).partition_ == ((0, 1), (2,))


def test_every_column_of_iris_belongs_to_a_block_with_its_target():
    iris = load_iris()
    X = np.column_stack([iris.data, iris.target])
    partition = ISDE(5, split="paper", random_state=0).fit(X).partition_
    assert {2, 3, 4} <= set(max(partition, key=len))


# --- at the terminal -------------------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def run(model, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("said")
    np.savetxt(folder / "data.csv", table, delimiter=",", header="a,b,c,n", comments="")
    fitted = call("fit", folder / "data.csv", "-o", folder / "run", "-k", 2, "--split", "paper", "--jobs", 1)
    assert fitted.exit_code == 0, fitted.output
    return folder, fitted


def test_fit_says_what_chance_gives_what_is_proved_and_what_the_density_is_worth(run):
    _, fitted = run
    assert "chance gives 0.0" in fitted.stdout
    assert "the best partition for these scores, proved" in fitted.stdout
    assert "less what chance gives" in fitted.stdout
    assert "the next best is " in fitted.stdout
    assert "rows it was not fitted on" in fitted.stdout
    assert "a correlation below about 0." in fitted.stdout
    assert "Repeated values in 'n'" in fitted.stdout
    assert "Chance: measured on 4 tables of 200 rows" in fitted.stderr


@pytest.mark.parametrize(
    ("best", "second", "said"),
    [
        ([["a", "b"], ["c"]], [["a"], ["b"], ["c"]], "without {a, b}"),
        ([["a", "b"], ["c"]], [["a"], ["b", "c"]], "with {b, c}"),
        ([["a", "b"], ["c", "d"]], [["a", "b"], ["c"], ["d"]], "without {c, d}"),
    ],
)
def test_the_next_best_is_told_apart_by_the_blocks_that_it_has_or_has_not(best, second, said):
    summary = {"blocks": [{"columns": block} for block in best], "runner_up": {"blocks": second}}
    assert _difference(summary) == said


def test_what_few_rows_miss_is_said_once(run):
    folder, _ = run
    np.savetxt(folder / "few.csv", np.random.default_rng(0).normal(size=(40, 3)), delimiter=",")
    shown = call("fit", folder / "few.csv", "-k", 2, "--split", "paper", "--jobs", 1, "--quiet")
    assert "Few rows: a correlation below about" in shown.stdout
    assert shown.stdout.count("missed more often than found") == 1


def test_info_says_the_same_but_for_the_held_out_rows(run):
    folder, fitted = run
    shown = call("info", folder / "run")
    assert shown.exit_code == 0
    missing = set(fitted.stdout.splitlines()) - set(shown.stdout.splitlines())
    assert [line.split()[0] for line in missing] == ["density"]


def test_alpha_can_be_set_and_is_refused_by_name(run):
    folder, _ = run
    options = ["fit", folder / "data.csv", "-k", 2, "--split", "paper", "--jobs", 1, "--quiet", "--json"]
    charged, strict, free = (
        json.loads(call(*options, "-o", folder / name, "--alpha", alpha).stdout)["blocks"][0]["chance"]
        for name, alpha in (("a", "auto"), ("b", "0.001"), ("c", "none"))
    )
    assert strict > charged > free == 0
    for alpha, complaint in (("1.5", "no probability"), ("x", "no probability"), ("1e-12", "use --alpha ")):
        refused = call(*options, "-o", folder / "d", "--alpha", alpha)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert complaint in refused.stderr
    refused = call(*options, "-o", folder / "d", "--marginal", "kde", "--alpha", "0.1")
    assert "needs scores on the copula scale" in refused.stderr


def test_stability_is_that_of_the_model(run):
    folder, _ = run
    arguments = ["stability", folder / "run", folder / "data.csv", "-n", 3, "--null", 2, "--jobs", 1, "--quiet"]
    model = isde.load(folder / "run")
    expected = model.stability(read_table(folder / "data.csv"), 3, n_null=2, random_state=0)
    assert call(*arguments).stdout.strip() == str(expected)
    found = json.loads(call(*arguments, "--json").stdout)
    assert found["same_partition"] == expected.same_partition
    assert found["columns"] == ["a", "b", "c", "n"]
    np.testing.assert_array_equal(found["together"], expected.together)
    assert found["blocks"][0]["p_value"] == expected.block_p_values[0]


@pytest.mark.filterwarnings("always:These are other rows")
def test_stability_of_other_rows_is_said_to_be_that(run, tmp_path):
    folder, _ = run
    header, *lines = (folder / "data.csv").read_text().splitlines()
    (tmp_path / "fewer.csv").write_text("\n".join([header, *lines[1:]]) + "\n")
    for data, said in ((folder / "data.csv", False), (tmp_path / "fewer.csv", True)):
        told = call("stability", folder / "run", data, "-n", 2, "--null", 0, "--jobs", 1, "--quiet")
        assert told.exit_code == 0
        assert ("other rows than those" in told.stderr) is said


def test_few_independent_rows_are_not_said_to_show_weak_correlation(rng):
    """No pair gains by the models of correlation there: what is said must be what these are charged all the same."""
    model = ISDE(2, split="paper", random_state=0).fit(rng.normal(size=(30, 3)))
    assert least_correlation(model.subset_scores_) > 0.4
    assert any(note.startswith("Few rows") for note in notes(model))
