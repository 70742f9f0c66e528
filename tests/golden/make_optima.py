"""Optimal partitions of score tables, found by solvers that isde does not use: facts that travel with every clone.

The tables are drawn from a seed, so that only their optima are stored, in `optima.json`. CBC, the solver of the paper,
and SCIP each solve the plain program over all subsets: every column in exactly one block. They must agree, on the
optimum and on the score of the best partition other than it. To make the file again, or to add a case to `CASES`, from
the root of the repository:

    python3 -m venv /tmp/optima
    /tmp/optima/bin/pip install numpy==2.4.6 pulp==3.3.2 pyscipopt==6.3.0
    /tmp/optima/bin/python tests/golden/make_optima.py

Cases that the file has are kept; delete it to solve all of them again, about twenty minutes on one core.
"""

import hashlib
import json
import time
from collections import Counter
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np

FACTS = Path(__file__).with_name("optima.json")

MILLION = 1_000_000
"""Scores are whole millionths of a nat: sums are exact in every solver, and equal means equal."""

CASES = [
    {"kind": kind, "d": d, "k": k, "seed": seed}
    for kind, d, k, seed in [
        ("planted", 12, 12, 1),
        ("weak", 12, 12, 2),
        ("planted", 13, 5, 3),
        ("weak", 13, 5, 4),
        ("uniform", 13, 5, 5),
        ("planted", 20, 4, 6),
        ("weak", 20, 4, 7),
        ("uniform", 20, 4, 8),
        ("large", 20, 4, 9),
        ("planted", 32, 3, 10),
        ("weak", 32, 3, 11),
        ("large", 32, 3, 12),
        ("planted", 50, 3, 13),
        ("weak", 50, 3, 14),
        ("uniform", 50, 3, 15),
        ("large", 32, 3, 16),
        ("large", 50, 3, 17),
        ("large", 32, 3, 9),
        ("large", 50, 3, 11),
        ("weak", 30, 5, 18),
        ("weak", 50, 4, 19),
    ]
]
"""Kind of table, columns, largest block and seed."""

GAIN = {"planted": 0.6, "weak": 0.12, "large": 0.6}
"""Nats that a column adds to a planted block, on average."""

BEYOND = {"planted": 0, "weak": 0, "large": 2}
"""Columns that the largest planted block may have more than the largest that may be chosen."""

NOISE = 0.03
"""Nats, for each column beyond the first: what scores on 2,000 rows move by from one split to the next."""

DIMENSION_COST = 0.02
"""Nats, times the squared number of columns beyond the first: what a kernel density loses with each dimension."""


def subsets_of(d, k):
    """All subsets of at most k of d columns, by size, then in the order of `itertools.combinations`."""
    return [subset for size in range(1, k + 1) for subset in combinations(range(d), size)]


def draw_table(kind, d, k, seed):
    """Scores of all subsets, in millionths of a nat: {subset: whole number}.

    "uniform" is what the author timed his selection on: uniform on [0, 1], no structure at all. The others look like
    scores of kernel densities: columns alone score anything, columns of a planted block gain together, more dimensions
    cost, and all is noisy. In "weak" tables gains are near the noise, and many partitions nearly as good as the best.
    In "large" ones planted blocks are larger than may be chosen, as in data: there are many ways to cut them, and the
    linear relaxation of the program is far from tight.
    """
    rng = np.random.default_rng(seed)
    subsets = subsets_of(d, k)
    if kind == "uniform":
        return dict(zip(subsets, rng.integers(MILLION + 1, size=len(subsets)).tolist(), strict=True))
    alone = rng.normal(size=d)
    block_of, gain_of = plant(d, min(k + BEYOND[kind], d), rng)
    noise = rng.normal(size=len(subsets))
    table = {}
    for subset, chance in zip(subsets, noise, strict=True):
        beyond = len(subset) - 1
        together = Counter(block_of[c] for c in subset)
        gain = sum((count - 1) * gain_of[block] for block, count in together.items())
        score = sum(alone[c] for c in subset) + GAIN[kind] * gain
        score += NOISE * beyond**0.5 * chance - DIMENSION_COST * beyond**2
        table[subset] = round(float(score) * MILLION)
    return table


def plant(d, largest, rng):
    """The block of each column, in no order, and what a column of each block gains, relative to the mean."""
    block_of, gains, order = [0] * d, [], rng.permutation(d).tolist()
    while order:
        size = int(rng.integers(1, largest + 1))
        for column in order[:size]:
            block_of[column] = len(gains)
        gains.append(float(rng.uniform(0.5, 1.5)))
        order = order[size:]
    return block_of, gains


def digest(table):
    """Of the numbers in their order: tells a table that is drawn otherwise from one that is solved otherwise."""
    return hashlib.sha256(np.array(list(table.values()), dtype="<i8").tobytes()).hexdigest()[:16]


# --- solvers ---------------------------------------------------------------------------------------------------


def gains_of(table):
    """Scores less those of the columns alone: the same order of partitions, in smaller numbers."""
    return {subset: score - sum(table[(c,)] for c in subset) for subset, score in table.items()}


def solve_by_cbc(table, d, forbidden):
    """The blocks of the best partition, but for a forbidden one, by CBC's branch and bound."""
    import pulp

    gains = gains_of(table)
    program = pulp.LpProblem("partition", pulp.LpMaximize)
    chosen = {subset: pulp.LpVariable("x_" + "_".join(map(str, subset)), cat="Binary") for subset in table}
    program += pulp.lpSum(gains[subset] * x for subset, x in chosen.items())
    for column in range(d):
        program += pulp.lpSum(x for subset, x in chosen.items() if column in subset) == 1
    if forbidden:
        program += pulp.lpSum(chosen[block] for block in forbidden) <= len(forbidden) - 1
    program.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0, options=["integerTolerance 1e-9"]))
    assert pulp.LpStatus[program.status] == "Optimal", pulp.LpStatus[program.status]
    return sorted(subset for subset, x in chosen.items() if x.value() > 0.5)


def solve_by_scip(table, d, forbidden):
    """The same by SCIP."""
    from pyscipopt import Model, quicksum

    gains, program = gains_of(table), Model()
    program.hideOutput()
    program.setParams({"limits/gap": 0.0, "limits/absgap": 0.0})
    chosen = {subset: program.addVar(vtype="B") for subset in table}
    program.setObjective(quicksum(gains[subset] * x for subset, x in chosen.items()), "maximize")
    for column in range(d):
        program.addCons(quicksum(x for subset, x in chosen.items() if column in subset) == 1)
    if forbidden:
        program.addCons(quicksum(chosen[block] for block in forbidden) <= len(forbidden) - 1)
    program.optimize()
    assert program.getStatus() == "optimal", program.getStatus()
    return sorted(subset for subset, x in chosen.items() if program.getVal(x) > 0.5)


SOLVERS = {"CBC": solve_by_cbc, "SCIP": solve_by_scip}


def versions():
    """Of the solvers, as they say themselves."""
    import subprocess

    import pulp
    from pyscipopt import Model

    said = subprocess.run([pulp.PULP_CBC_CMD().path, "-quit"], capture_output=True, text=True, check=True).stdout
    cbc = next(line.split()[-1] for line in said.splitlines() if line.startswith("Version:"))
    scip = Model()
    return {"CBC": cbc, "SCIP": f"{scip.getMajorVersion()}.{scip.getMinorVersion()}.{scip.getTechVersion()}"}


def solve(case):
    """Optimum and runner-up of a case, which both solvers must find; stops with their names where they differ."""
    table, d = draw_table(**case), case["d"]
    assert len(table) == sum(comb(d, size) for size in range(1, case["k"] + 1))
    ranked = []
    for _ in range(2):  # the optimum, then the best partition other than it
        found = {name: solver(table, d, ranked[0] if ranked else None) for name, solver in SOLVERS.items()}
        for partition in found.values():
            assert sorted(c for block in partition for c in block) == list(range(d))
        totals = {name: sum(table[block] for block in partition) for name, partition in found.items()}
        assert len(set(totals.values())) == 1, totals
        ranked.append(found["CBC"])
    optimum, runner_up = (sum(table[block] for block in partition) for partition in ranked)
    assert runner_up < optimum, "The optimum is not unique: take another seed."
    return {
        **case,
        "digest": digest(table),
        "optimum": optimum,
        "partition": ranked[0],
        "runner_up": runner_up,
        "solvers": versions(),
    }


def main():
    known = json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.exists() else []
    for case in CASES:
        if any(case.items() <= fact.items() for fact in known):
            continue
        start = time.perf_counter()
        known.append(solve(case))
        print(case, f"{time.perf_counter() - start:.0f} s", flush=True)
        known.sort(key=lambda fact: (fact["d"], fact["k"], fact["seed"]))
        lines = ",\n".join(json.dumps(fact) for fact in known)
        FACTS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
