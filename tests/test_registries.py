"""What help, docs and docstrings say of families, solvers, methods and file formats is what the registries have."""

import importlib.util
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from isde import ISDE
from isde.cli import main
from isde.comparison import METHODS
from isde.data.readers import READERS, read_table
from isde.marginals import FAMILIES, FITTED_KINDS, Family
from isde.report import words
from isde.solvers.registry import SOLVER_NAMES
from isde.tree_solvers.registry import TREE_SOLVER_NAMES

HERE = Path(__file__).parents[1]


def registry_tables():
    found = importlib.util.spec_from_file_location("registry_tables", HERE / "docs" / "registry_tables.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def help_of(command):
    return CliRunner().invoke(main, [command, "--help"], terminal_width=120).output


def parameter(name, estimator=ISDE):
    """What a docstring says of a parameter."""
    return re.search(rf"\n    {name} : .*?(?=\n    \w+ : )", estimator.__doc__, re.DOTALL)[0]


@pytest.mark.parametrize("page", registry_tables().TABLES)
def test_the_tables_of_the_docs_are_those_of_the_registries(page):
    assert registry_tables().written(page) == (HERE / "docs" / page).read_text(encoding="utf-8"), "run make tables"


def test_a_family_that_comes_has_its_line_in_help_and_docs(monkeypatch):
    monkeypatch.setitem(FAMILIES, "another", Family("kernels again", ("kde:KDEMarginal",)))
    assert re.search(r"another +kernels again", help_of("fit"))
    assert "| `another` | kernels again |  |  |  | yes |" in registry_tables().marginals()


def test_help_lists_every_family_and_method_and_solver():
    for command, registry in (("fit", FAMILIES), ("compare", METHODS)):
        said = " ".join(help_of(command).split())
        assert [name for name, line in registry.items() if f"{name} {line.about}" not in said] == []
    said = " ".join(help_of("fit").split())
    assert f"with --structure tree one of {', '.join(TREE_SOLVER_NAMES)}" in said
    assert all(name in said for name in SOLVER_NAMES)


@pytest.mark.parametrize(("name", "registry"), [("marginal", FAMILIES), ("solver", SOLVER_NAMES)])
def test_the_docstring_names_what_there_is_and_nothing_else(name, registry):
    assert set(re.findall(r'"([^"]+)"', parameter(name))) == set(registry)


def test_formats_are_named_wherever_they_are_listed():
    """By their endings, those of packed text aside: both, also gzipped."""
    endings = {ending.removesuffix(".gz").lstrip(".") for ending in READERS}
    for said in (read_table.__doc__, help_of("fit"), (HERE / "README.md").read_text(encoding="utf-8")):
        assert [ending for ending in endings if not re.search(rf"\b{ending}\b", said)] == []


def test_a_page_has_words_for_every_kind_of_block():
    assert words.FAMILIES.keys() == FITTED_KINDS.keys()
