"""README and docs: snippets run, commands are understood, links lead somewhere."""

import argparse
import re
import runpy
import shlex
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import isde
from isde.cli import main

HERE = Path(__file__).parents[1]
PAGES = {path.relative_to(HERE).as_posix(): path.read_text(encoding="utf-8") for path in HERE.glob("docs/*.md")}
PAGES |= {name: (HERE / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")}


def fenced(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text, program):
    """What is typed after the name of a program, in blocks and within lines."""
    lines = [line for block in fenced(text, "sh") for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines += [" ".join(inline.split()) for inline in re.findall(r"`([^`]+)`", prose)]
    for line in lines:
        words = shlex.split(re.sub(r" [>#] ?.*| [>#]$", "", line)) if line.startswith(program + " ") else []
        if len(words) > 1:
            yield words[1:]


ISDE_COMMANDS = sorted({(page, *words) for page, text in PAGES.items() for words in commands(text, "isde")})
SCRIPTS = sorted({(page, *words) for page, text in PAGES.items() for words in commands(text, "python")})


# --- snippets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if page != "README.md" and "```python" in text])
@pytest.mark.filterwarnings("ignore::isde.errors.ISDEWarning")
def test_snippets_of_the_docs_run(page):
    X = np.random.default_rng(0).normal(size=(120, 6))
    for code in fenced(PAGES[page], "python"):
        exec(code, {"X": X})


def test_what_the_readme_calls_is_there():
    table = PAGES["README.md"].split("## In Python")[1].split("## At the terminal")[0]
    named = set(re.findall(r"`(?:with )?isde\.(\w+)\.(\w+)", table))
    assert {("inspection", "held_out"), ("inspection", "landscape")} <= named
    assert [name for module, name in named if not hasattr(getattr(isde, module), name)] == []
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", table, flags=re.DOTALL | re.MULTILINE))
    called = {name for code in inline for name in re.findall(r"(?<![\w.])([A-Za-z_]+)\(", code)}
    elsewhere = {"GaussianMixture", "ProgressBar", "lowest_rows", "plausibility", "print"}
    assert {"ISDE", "TreeISDE", "select_partition"} <= called
    assert [name for name in called - elsewhere if not hasattr(isde, name)] == []


# --- commands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ISDE_COMMANDS, ids=" ".join)
def test_isde_understands_its_commands(words):
    """Commands and options: no file is looked for."""
    _, name, *rest = words
    context = click.Context(main)
    command = main.get_command(context, name) if name != "--help" else main
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(list(rest))


class Understood(Exception):
    """A script has taken its arguments; what it would do takes long."""


@pytest.mark.parametrize("words", SCRIPTS, ids=" ".join)
def test_experiments_and_benchmarks_understand_their_commands(words, monkeypatch):
    _, script, *rest = words
    if script == "-m":
        assert rest[0] in ("isde", "tests.fault")
        return
    path, parse = HERE / script, argparse.ArgumentParser.parse_args

    def only_parse(self, *given):
        parse(self, *given)
        raise Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    monkeypatch.setattr(isde.splits, "PRESETS", dict(isde.splits.PRESETS))
    monkeypatch.setattr(sys, "argv", [str(path), *rest])
    monkeypatch.syspath_prepend(path.parent)
    if "ArgumentParser" not in path.read_text(encoding="utf-8"):
        assert rest == []
        return
    with pytest.raises(Understood):
        runpy.run_path(str(path), run_name="__main__")


def test_make_has_the_targets_that_are_named():
    makefile = (HERE / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {word for text in PAGES.values() for words in commands(text, "make") for word in words if "=" not in word}
    assert {"demo", "test", "fault"} <= named <= targets


# --- links -----------------------------------------------------------------------------------------------------


def anchors(text):
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", PAGES[page]):
        name, _, anchor = target.partition("#")
        path = (HERE / page).parent / name if name else HERE / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target


def test_the_readme_leads_to_every_page():
    linked = set(re.findall(r"\]\(([^)#\s]+)", PAGES["README.md"]))
    assert set(PAGES) - {"README.md"} <= linked
