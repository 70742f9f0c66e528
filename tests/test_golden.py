"""Optima that other solvers found, CBC and SCIP (`golden/make_optima.py`): every clone can hold isde's against them."""

import json
from functools import cache
from math import comb

import pytest

from golden.make_optima import CASES, FACTS, MILLION, digest, draw_table
from isde import SubsetScores, best_partitions, select_partition
from isde.partitions import canonical_partition

OPTIMA = json.loads(FACTS.read_text(encoding="utf-8"))

MANY_SUBSETS = 100_000
LARGEST = {"auto": 50, "milp": 50, "dynamic": 20, "exhaustive": 12}
AT_ONCE = {"auto": 50, "milp": 50, "dynamic": 14, "exhaustive": 0}
"""Columns that a solver takes, and those it takes in no time."""


def label(fact):
    return "-".join(str(fact[name]) for name in ("kind", "d", "k", "seed"))


def n_subsets(fact):
    return sum(comb(fact["d"], size) for size in range(1, fact["k"] + 1))


def case(fact, solver="milp"):
    is_long = n_subsets(fact) > MANY_SUBSETS or fact["d"] > AT_ONCE[solver]
    return pytest.param(fact, solver, marks=[pytest.mark.slow] if is_long else [], id=f"{label(fact)}-{solver}")


@cache
def table_of(kind, d, k, seed):
    return draw_table(kind, d, k, seed)


def drawn(fact):
    """The table of a fact in nats, once it is the one that was solved."""
    table = table_of(*(fact[name] for name in ("kind", "d", "k", "seed")))
    assert digest(table) == fact["digest"], "numpy draws another table from this seed: the fact says nothing of it"
    return SubsetScores.from_dict({subset: score / MILLION for subset, score in table.items()})


def millionths(nats):
    return round(nats * MILLION)


def test_every_case_of_the_recipe_has_its_fact():
    assert sorted(map(label, CASES)) == sorted(map(label, OPTIMA))
    for fact in OPTIMA:
        assert sorted(column for block in fact["partition"] for column in block) == list(range(fact["d"]))
        assert fact["runner_up"] < fact["optimum"]
        assert set(fact["solvers"]) == {"CBC", "SCIP"}


@pytest.mark.parametrize(
    ("fact", "solver"), [case(fact, solver) for fact in OPTIMA for solver in LARGEST if fact["d"] <= LARGEST[solver]]
)
def test_the_optimum_is_the_one_that_other_solvers_found(fact, solver):
    found = select_partition(drawn(fact), solver=solver)
    assert found.partition == canonical_partition(fact["partition"])
    assert millionths(found.score) == fact["optimum"]
    assert found.is_optimal


@pytest.mark.parametrize(("fact", "solver"), [case(fact) for fact in OPTIMA])
def test_the_second_best_scores_what_other_solvers_found(fact, solver):
    best, second = best_partitions(drawn(fact), 2)
    assert best.partition == canonical_partition(fact["partition"])
    assert millionths(second.score) == fact["runner_up"]
