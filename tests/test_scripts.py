"""Benchmarks and experiments, whose commands stand in the docs: what they take from isde is there, and is called so."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for folder in ("benchmarks", "experiments", "docs") for path in (ROOT / folder).glob("*.py"))


def taken_from_isde(tree):
    """What a script imports from isde, by the name that it has there, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "isde":
            for alias in node.names:
                yield alias.asname or alias.name, node.module, alias.name, node.lineno


def wrong(tree):
    """Each line that asks isde for what is not there, or calls it as nobody can."""
    known = {}
    for name, module, own, line in taken_from_isde(tree):
        found = getattr(import_module(module), own, None)
        if found is None:
            try:
                found = import_module(f"{module}.{own}")
            except ImportError:
                yield f"line {line}: {module} has no {own}"
                continue
        known[name] = found
    for node in ast.walk(tree):
        module = module_of(node, known)
        if module is not None and not hasattr(module, node.attr):
            yield f"line {node.lineno}: {module.__name__} has no {node.attr}"
        if isinstance(node, ast.Call):
            yield from cannot_be_called(node, known)


def module_of(node, known):
    """The module that `module.name` asks; None for all else."""
    asks = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    found = known.get(node.value.id) if asks else None
    return found if inspect.ismodule(found) else None


def cannot_be_called(call, known):
    module = module_of(call.func, known)
    function = known.get(call.func.id) if isinstance(call.func, ast.Name) else None
    if module is not None:
        function = getattr(module, call.func.attr, None)
    unpacked = any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords)
    if function is None or unpacked:
        return
    try:
        inspect.signature(function).bind(*call.args, **{one.arg: one.value for one in call.keywords})
    except TypeError as error:
        yield f"line {call.lineno}: {ast.unparse(call.func)}: {error}"
    except ValueError:  # compiled: nothing says how it is called
        return


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_asks_isde_for_what_is_there(script):
    assert list(wrong(ast.parse(script.read_text(encoding="utf-8")))) == []
