"""Column names that mean something to a terminal, a spreadsheet, a page or a file system do nothing there."""

import csv
import io
import os
import subprocess
import sys
import unicodedata
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from isde.cli import main
from isde.cli.output import echo, print_csv
from isde.data.readers import read_table
from isde.data.words import FORMULA_STARTS, guarded, in_braces, join_names, unguarded
from isde.errors import printable

PAYLOADS = (
    "\x1b[2J\x1b[1;31mred", "\x1b]0;title\x07", "\x9b31m", "a\rb", "a\nthe best partition, proved", "a\x08b", "\x7f",
    "\u202eabc", "\u2028x", "\x00null", "tab\there", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "' onload='alert(1)", "&lt;b&gt;", "=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "/dev/null",
    "../../etc/passwd", "C:\\con", "a;b", "a|b", "$(reboot)", "`reboot`", "%s%n", "{0}",
)  # fmt: skip


def call(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert "Traceback" not in result.output
    assert result.exit_code == 0, result.output
    return result


def harmless(text):
    """Lines of letters: nothing that moves a cursor, colours, or turns the line around."""
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A fitted model whose columns have all these names, and its data."""
    folder = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, len(PAYLOADS)))
    X[:, 1::2] += X[:, ::2]
    names = tuple(name.replace("\0", "no ") for name in PAYLOADS)
    np.savez(folder / "data.npz", X=X, columns=np.array(names))
    call("fit", folder / "data.npz", "-o", folder / "run", "-k", 2, "--marginal", "gaussian", "--jobs", 1)
    return folder, names


@pytest.mark.parametrize("command", ["info", "partitions"])
def test_what_is_printed_of_a_run_is_harmless(run, command):
    folder, _ = run
    result = call(command, folder / "run")
    assert harmless(result.stdout)
    assert harmless(result.stderr)
    assert "\\x1b[2J" in result.stdout
    assert "the best partition, proved" not in result.stdout.splitlines()  # no name makes a line of its own


def test_warnings_and_errors_are_harmless(run, tmp_path):
    folder, names = run
    Z = np.ones((20, len(names)))
    np.savez(tmp_path / "constant.npz", X=Z, columns=np.array(names))
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "constant.npz")])
    assert result.exit_code == 2
    assert harmless(result.output)
    result = CliRunner().invoke(main, ["score", str(folder / "run"), str(tmp_path / "\x1b[2Jnothing.csv")])
    assert result.exit_code == 2
    assert harmless(result.output)


def test_nothing_is_named_after_a_column(run):
    folder, _ = run
    kept = ["lock", "manifest.json", "model.isde", "scores.log", "summary.json"]
    assert sorted(path.name for path in (folder / "run").iterdir()) == kept


@pytest.mark.parametrize("kind", ["dot", "graphml", "svg"])
def test_no_code_reaches_a_graph_and_its_figure_is_xml(run, tmp_path, kind):
    folder, _ = run
    result = call("graph", folder / "run", "-o", tmp_path / f"graph.{kind}")
    text = (tmp_path / f"graph.{kind}").read_text(encoding="utf-8")
    assert not [letter for letter in text if unicodedata.category(letter) == "Cc" and letter not in "\t\n"]
    assert "Glyph" not in result.stderr  # no font has a code
    if kind != "dot":
        ElementTree.fromstring(text)


def test_rows_drawn_are_scored_under_the_same_names_and_no_cell_is_a_formula(run, tmp_path):
    folder, names = run
    drawn = call("sample", folder / "run", "-n", "5").stdout
    header = next(csv.reader(io.StringIO(drawn, newline="")))
    assert not any(cell.startswith(FORMULA_STARTS) for cell in header)
    (tmp_path / "drawn.csv").write_text(drawn, newline="")
    table = read_table(tmp_path / "drawn.csv", columns=[n for n in names if n == n.strip()])
    assert set(table.names) == {n for n in names if n == n.strip()}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_name_in_a_sentence_is_one_line_of_letters(name):
    for text in (printable(name), join_names([name, "b"]), in_braces([name]), join_names([name], " ")):
        assert text.isprintable()
    if name.isprintable():
        assert printable(name) == name
    assert unguarded(guarded(name)) == name


def test_a_terminal_gets_names_without_codes_and_a_file_gets_them_as_they_are(monkeypatch, capsys):
    for is_terminal, shown in ((True, "a\\x1b[2J"), (False, "a\x1b[2J")):
        monkeypatch.setattr(sys.stdout, "isatty", lambda answer=is_terminal: answer, raising=False)
        print_csv(["a\x1b[2J", "=b"], [[1.0, 2.0]])
        assert capsys.readouterr().out == f"{shown},'=b\n1.0,2.0\n"


def test_lines_of_ours_stay_lines(capsys):
    echo("one\ntwo \x1b[2J")
    assert capsys.readouterr().out == "one\ntwo \\x1b[2J\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="This system has no named pipes.")
@pytest.mark.parametrize("command", [("fit",), ("info",), ("score", "run")])
def test_a_named_pipe_ends_in_a_sentence(tmp_path, command):
    pipe = tmp_path / "data.csv"
    os.mkfifo(pipe)
    code = "import sys; from isde.cli import main; main(prog_name='isde')"
    if command == ("score", "run"):
        os.mkfifo(tmp_path / "run")
    result = subprocess.run(
        [sys.executable, "-c", code, *command, str(pipe)], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert result.returncode == 2
    assert "is a pipe, which may never end" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="This system has no endless devices.")
def test_an_endless_device_as_standard_input_ends_in_a_sentence():
    code = "import sys; from isde.cli import main; main(prog_name='isde')"
    with open("/dev/zero", "rb") as zeros:
        result = subprocess.run(
            [sys.executable, "-c", code, "fit", "-"], stdin=zeros, capture_output=True, text=True, timeout=300
        )
    assert result.returncode == 2
    assert "standard input is no text" in result.stderr
