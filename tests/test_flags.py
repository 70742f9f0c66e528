"""The core names parameters; at the terminal the same messages name the flags of the command that runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import isde
from isde.cli import COMMANDS, main
from isde.cli.flags import in_flags
from isde.data.readers import read_table
from isde.errors import InputError, ISDEWarning


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def command(name):
    return main.get_command(None, name)


def write(path, X, header="a,b"):
    np.savetxt(path, X, delimiter=",", header=header, comments="", fmt="%.8g")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("try max_block_size=4.", "try --max-block-size 4."),
        ("try max_block_size=4, or less", "try --max-block-size 4, or less"),
        ("use marginal='copula+stack', or", "use --marginal copula+stack, or"),
        ("alpha=1e-12 is small: alpha=4.2e-07 or more", "--alpha 1e-12 is small: --alpha 4.2e-07 or more"),
        ("with header=True or header=False.", "with --header or --no-header."),
        ("say so (separator=';').", "say so (--separator ';')."),
        (r"say so (separator='\t').", r"say so (--separator '\t')."),
        ("leave it out (columns=) or", "leave it out (--columns) or"),
        ("leave it out with columns=, or (index=False).", "leave it out with --columns, or (index=False)."),
        ("Only 4 rows for cv=5 folds", "Only 4 rows for --folds 5 folds"),
        ("n_jobs=2 and random_state=0", "--jobs 2 and --seed 0"),
        ("fit_rows=5,000 rows", "--fit-rows 5000 rows"),
        ("bandwidths=[0.1, -1] must", "--bandwidths 0.1,-1 must"),
        ("alpha=None, scale=None, split=None", "--alpha none, --scale none, split=None"),
        ("pass bandwidths=.", "pass --bandwidths."),
        ("overwrite=True", "--overwrite"),
    ],
)
def test_parameters_become_flags(text, expected):
    assert in_flags(text, command("fit")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "pandas reads them with decimal=','",
        "split=ShuffleSplit(n_splits=1, random_state=0, train_size=3) leaves",
        "runs/alpha=0.05/data.csv does not exist",
        "alpha=0.05/data.csv does not exist",
        "seed=3.csv does not exist",
        "/tmp/seed=3 is a folder",
        "'seed=3' has the same value in every row",
        "\"it's seed=3\" and 'the seed=3' hold text",
        "the data's own scale, where alpha is 0.05",
        "train_rows=3 leaves too few rows",
        "overwrite=False",
    ],
)
def test_what_is_no_parameter_of_the_command_stays(text):
    assert in_flags(text, command("fit")) == text


def test_only_flags_that_the_command_has_are_named():
    text = "max_block_size=3 and train_rows=9, n=1 and n_null=0"
    assert in_flags(text, command("compare")) == "--max-block-size 3 and --train-rows 9, n=1 and n_null=0"
    assert in_flags(text, command("stability")) == "max_block_size=3 and train_rows=9, --resamples 1 and --null 0"
    assert in_flags(text, command("info")) == text
    assert in_flags(text) == text  # no command runs


def test_every_flag_named_is_one_that_the_command_takes():
    for name in COMMANDS:
        for option in command(name).params:
            said = in_flags(f"{option.name}=", command(name))
            assert said == f"{option.name}=" or said in [*option.opts, *option.secondary_opts]


# --- messages as they come -------------------------------------------------------------------------------------


def test_a_refusal_of_the_core_names_the_parameter_and_at_the_terminal_the_flag(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("0,1\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"names or data with header=True or header=False\.$"):
        read_table(data)
    assert call("fit", data).stderr.endswith("names or data with --header or --no-header.\n")


@pytest.mark.filterwarnings("always::isde.errors.ISDEWarning")
def test_warnings_are_translated(tmp_path, rng):
    X = rng.normal(size=(60, 2))
    X[3, 1] = 1e4
    with pytest.warns(ISDEWarning, match=r"use marginal='copula\+stack', or transform"):
        isde.ISDE(marginal="gaussian", random_state=0).fit(X)
    result = call("fit", write(tmp_path / "data.csv", X), "--marginal", "gaussian", "--jobs", 1)
    assert "can make or hide a block; use --marginal copula+stack, or transform such columns.\n" in result.stderr


def test_talk_is_translated(tmp_path, rng):
    data = tmp_path / "data.csv"
    np.savetxt(data, rng.normal(size=(60, 2)), delimiter=",")
    result = call("fit", data, "--marginal", "gaussian", "--jobs", 1)
    assert "first row taken as data, columns named x0 to x1: --header if it holds names." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "--penalty", "bic", "--marginal", "kde"], "--penalty bic needs a family with a fixed number"),
        (["fit", "--penalty", "bic", "--marginal", "kde"], "such as --marginal gaussian."),
        (["fit", "--alpha", "0.1", "--marginal", "kde"], "--alpha 0.1 needs scores on the copula scale, --marginal"),
        (["compare", "--train-rows", "59", "--methods", "gaussian"], "--train-rows 59 leaves too few of 60 rows"),
        (["fit", "--columns", "a,c"], "has no column 'c'; it has a, b."),
    ],
)
def test_errors_are_translated(tmp_path, rng, arguments, said):
    data = write(tmp_path / "data.csv", rng.normal(size=(60, 2)))
    result = call(arguments[0], data, *arguments[1:])
    assert result.exit_code == 2
    assert said in result.stderr


FLAG = re.compile(r"""["' (]--[a-z]|\(-k\b""")
SOURCES = Path(isde.__file__).parent


def test_nothing_below_the_command_line_imports_click_or_names_flags():
    below = [path for path in SOURCES.rglob("*.py") if "cli" not in path.relative_to(SOURCES).parts]
    assert len(below) > 50
    for path in below:
        text = path.read_text(encoding="utf-8")
        assert "import click" not in text, path
        calls = [line for line in text.splitlines() if FLAG.search(line) and "isde " not in line and "pip " not in line]
        assert calls == [], path
