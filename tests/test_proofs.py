"""Proofs looked at again: prices that hold, a verdict that is right whatever a file says, and honesty where it ends."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from isde import Constraints, Selection, SubsetScores, best_partitions, select_partition
from isde.errors import InputError, ISDEError
from isde.selection import PROOF_TOLERANCE, Witness
from isde.solvers import proofs, verify
from isde.solvers.proofs import certify_again
from isde.solvers.registry import SOLVER_NAMES
from isde.subsets import SubsetFamily
from oracles import ROUNDING
from test_many_partitions import constraints_of_six, levels
from test_selection import SOLVERS, random_table, tied_table, tied_tables

NO_LIMIT = 10**9


@pytest.fixture
def only_prices(monkeypatch):
    """No solver is asked again: what prices leave open is searched."""
    monkeypatch.setattr(proofs, "MOST_STEPS", 0)
    monkeypatch.setattr(proofs, "MOST_NODES", NO_LIMIT)


@pytest.fixture
def no_time(monkeypatch):
    """Every search takes too long."""
    monkeypatch.setattr(proofs, "MOST_STEPS", 0)
    monkeypatch.setattr(proofs, "MOST_PRICED", 0)
    monkeypatch.setattr(proofs, "MOST_NODES", 0)


def odd_cycle():
    """Any two of three columns are worth about 1: no prices are lower than 1.515, and the best partition has 1.02."""
    return SubsetScores.from_dict({(c,): 0.0 for c in range(3)} | {(0, 1): 1.0, (0, 2): 1.01, (1, 2): 1.02})


def triples(d):
    """Columns in threes that belong together, with prices that prove it by themselves."""
    family, rng = SubsetFamily(d, 3), np.random.default_rng(0)
    scores = np.where(family.sizes == 1, 0.0, rng.uniform(-1, 0, len(family)))
    scores[[family.index((c, c + 1, c + 2)) for c in range(0, d, 3)]] = rng.uniform(1, 2, d // 3)
    nothing = np.full(len(family), np.nan)
    return SubsetScores(family, scores, nothing, nothing, tuple(map(str, range(d))))


# --- the witness -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k", "seed"), [(8, 3, 0), (20, 3, 1), (30, 4, 2), (12, 12, 3)])
def test_no_subset_gains_more_than_the_prices_of_its_columns(d, k, seed):
    table = SubsetScores.from_dict(random_table(d, k, seed)) if d < 30 else noise(d, k, seed)
    witness = select_partition(table, solver="milp").witness
    in_nats = witness.prices * (witness.unit / (d + 1))
    gains = table.objectives - table.subsets.sum_over_members(table.scores[:d])
    assert (table.subsets.sum_over_members(in_nats) >= gains - ROUNDING).all()
    assert witness.fee == 0


def noise(d, k, seed):
    family = SubsetFamily(d, k)
    nothing = np.full(len(family), np.nan)
    scores = family.sizes + 0.01 * np.random.default_rng(seed).normal(size=len(family))
    return SubsetScores(family, scores, nothing, nothing, tuple(map(str, range(d))))


def test_where_blocks_are_limited_each_pays_a_fee():
    # Columns gain by being alone, so that each block more is worth something.
    scores = {s: 3.0 / len(s) + 0.1 * sum(s) for s in oracles.all_subsets(6, 4)}
    table, limit = SubsetScores.from_dict(scores), Constraints(max_blocks=3)
    found = select_partition(table, constraints=limit)
    witness = found.witness
    in_nats = witness.unit / 7
    gains = table.objectives - table.subsets.sum_over_members(table.scores[:6])
    assert witness.fee > 0
    assert (table.subsets.sum_over_members(witness.prices * in_nats) + witness.fee * in_nats >= gains - ROUNDING).all()
    assert verify(table, found, constraints=limit).outcome == "proved"


def test_a_witness_is_a_value():
    prices = np.array([1, 2, 3])
    witness = Witness(prices, 0, 1.0)
    prices[0] = 7
    assert witness.prices.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        witness.prices[0] = 7
    for wrong in [(np.ones(3), 0, 1.0), (np.ones((3, 1), int), 0, 1.0), (prices, -1, 1.0), (prices, 1 << 63, 1.0)]:
        with pytest.raises(ValueError, match="A witness has"):
            Witness(*wrong)
    for unit in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="A witness has"):
            Witness(prices, 0, unit)


def test_proofs_by_search_leave_no_witness():
    table = SubsetScores.from_dict(random_table(5, 3, 0))
    assert [select_partition(table, solver=name).witness is None for name in ("exhaustive", "dynamic", "milp")] == [
        True,
        True,
        False,
    ]


# --- rank ------------------------------------------------------------------------------------------------------


def test_a_runner_up_is_proved_and_does_not_call_itself_optimal():
    best, second = best_partitions(SubsetScores.from_dict(random_table(5, 3, 0)), 2)
    assert (best.rank, best.is_proved, best.is_optimal, best.proof) == (1, True, True, "proved")
    assert (second.rank, second.is_proved, second.is_optimal, second.proof) == (2, True, False, "proved")


def test_a_rank_counts_from_one():
    with pytest.raises(ValueError, match="rank=0"):
        Selection(((0,),), 0.0, 0.0, "oracle", rank=0)


def test_an_open_gap_is_not_proved_and_what_was_proved_once_says_so():
    open_gap = Selection(((0,),), 0.0, 0.5, "oracle")
    assert (open_gap.proof, open_gap.is_proved, open_gap.is_optimal) == ("not proved", False, False)
    assert replace(open_gap, was_proved=True).proof == "not checked again"


# --- what solvers prove is proved again ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("sense", ["max", "min"])
@given(tied_tables)
def test_what_a_solver_selects_is_proved_again(solver, sense, case):
    _, scores = case
    table = SubsetScores.from_dict(scores)
    found = select_partition(table, solver=solver, sense=sense)
    assert verify(table, found, sense=sense).gap == 0


@given(tied_tables, st.integers(2, 30))
def test_the_place_of_each_runner_up_is_proved_again(case, n):
    _, scores = case
    table = SubsetScores.from_dict(scores)
    for one in best_partitions(table, n):
        assert verify(table, one).outcome == "proved"
        assert verify(table, replace(one, witness=None)).outcome == "proved"


def test_a_runner_up_that_claims_a_better_place_is_found_out():
    table = SubsetScores.from_dict(random_table(7, 3, 1))
    third = best_partitions(table, 3)[2]
    for witness in (third.witness, None):
        assert verify(table, replace(third, rank=2, witness=witness)).outcome == "a better one exists"
        assert verify(table, replace(third, rank=1, witness=witness)).outcome == "a better one exists"


@pytest.mark.parametrize("demands", [Constraints(), Constraints(min_block_size=2)])
def test_places_far_below_independence_are_told_apart_beside_hopeless_scores(demands):
    scores = random_table(6, 3, 5) | {(0, 1): -30.0, (2, 3): -40.0, (4, 5): -1e15}
    table = SubsetScores.from_dict(scores)
    finite = [one for one in best_partitions(table, 200, constraints=demands) if one.score > -1e6]
    assert len(finite) > 5
    for one in finite:
        assert verify(table, one, constraints=demands).outcome == "proved"
        if one.rank > 1:
            claim = replace(one, rank=one.rank - 1)
            assert verify(table, claim, constraints=demands).outcome == "a better one exists"


@given(st.integers(0, 10**6), st.integers(2, 4), constraints_of_six)
def test_what_is_selected_under_constraints_is_proved_again_under_them(seed, k, constraints):
    table = SubsetScores.from_dict(tied_table(6, k, seed))
    try:
        found = best_partitions(table, 4, constraints=constraints)
    except InputError:
        assume(False)
    for one in found:
        assert verify(table, one, constraints=constraints).outcome == "proved"


def test_a_partition_that_breaks_the_constraints_is_refused():
    table = SubsetScores.from_dict(random_table(4, 2, 0))
    apart = Constraints(apart=[(0, 1)], max_blocks=3)
    for partition in (((0, 1), (2,), (3,)), ((0,), (1,), (2,), (3,))):
        with pytest.raises(InputError, match="does not meet the constraints"):
            verify(table, Selection(partition, 0.0, 0.0, "oracle"), constraints=apart)


def test_a_place_far_down_is_not_counted_to():
    table = SubsetScores.from_dict(random_table(7, 3, 1))
    last = best_partitions(table, 10**4)[-1]
    assert verify(table, last).outcome == "proved"
    assert verify(table, replace(last, rank=10**12)).outcome == "not checked again"


def test_where_highs_fails_nothing_is_known(monkeypatch):
    def fail(*_):
        raise ISDEError("HiGHS could not solve the linear relaxation")

    table = triples(18)
    found = replace(select_partition(table), witness=None)
    assert verify(table, found).outcome == "proved"
    monkeypatch.setattr(proofs, "price_columns", fail)
    assert verify(table, found).outcome == "not checked again"


def test_smaller_blocks_than_those_of_the_table_are_proved_again():
    table = SubsetScores.from_dict(random_table(6, 4, 0))
    found = select_partition(table, 2)
    assert verify(table, found, 2).outcome == "proved"
    assert verify(table, found).outcome == "a better one exists"


# --- whatever a file says, the verdict is right ----------------------------------------------------------------

any_price = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-1000, 1000), st.integers(2**59, 2**61))


@st.composite
def claims(draw):
    """A table, any partition of its columns, and anything for a witness."""
    d, scores = draw(tied_tables)
    table = SubsetScores.from_dict(scores)
    everything = oracles.all_partitions(d, table.max_block_size)
    prices = np.array(draw(st.lists(any_price, min_size=d, max_size=d)), dtype=np.int64)
    fee, unit = draw(st.integers(0, 2**62 - 1)), draw(st.sampled_from([1e-300, 1e-15, 0.25 / 120, 1.0, 1e300]))
    return scores, table, draw(st.sampled_from(everything)), Witness(prices, fee, unit)


@given(claims())
def test_no_witness_makes_a_partition_better_or_worse_than_it_is(case):
    scores, table, partition, witness = case
    _, best = oracles.best_partition(scores, table.n_columns)
    score = sum(scores.get(block, -np.inf) for block in partition)
    expected = "proved" if score >= best - PROOF_TOLERANCE else "a better one exists"
    claim = Selection(partition, 0.0, 0.0, "oracle", witness=witness)
    assert verify(table, claim).outcome == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proofs, "MOST_STEPS", 0)
        assert verify(table, claim).outcome in (expected, "not checked again")


@pytest.mark.parametrize("table", [odd_cycle(), SubsetScores.from_dict(random_table(20, 3, 0)), noise(30, 3, 0)])
@pytest.mark.parametrize("off", [-1, 1, -1000])
def test_prices_that_another_machine_rounded_are_mended(only_prices, table, off):
    found = select_partition(table, solver="milp")
    d = table.n_columns
    prices = found.witness.prices + off * np.random.default_rng(0).integers(0, 2, d)
    again = verify(table, replace(found, witness=replace(found.witness, prices=prices)))
    assert again.outcome == "proved"
    wrong = replace(found, partition=tuple((c,) for c in range(d)), witness=replace(found.witness, prices=prices))
    assert verify(table, wrong).outcome == "a better one exists"


def test_prices_in_another_unit_are_the_same_prices(no_time):
    table = triples(18)
    found = select_partition(table, solver="milp")
    coarser = Witness(found.witness.prices // 2, 0, found.witness.unit * 2)
    finer = Witness(found.witness.prices * 2, 0, found.witness.unit / 2)
    for witness in (found.witness, coarser, finer):
        assert verify(table, replace(found, witness=witness)).outcome == "proved"
    wrong = Witness(found.witness.prices * 2, 0, found.witness.unit)
    assert verify(table, replace(found, witness=wrong)).outcome == "not checked again"


def test_a_table_that_was_changed_by_rounding_is_still_proved(no_time):
    table = triples(18)
    found = select_partition(table, solver="milp")
    shaken = table.scores * (1 + 1e-15 * np.random.default_rng(0).choice([-1, 0, 1], len(table)))
    again = verify(replace(table, scores=shaken), found)
    assert again.outcome == "proved"
    assert again.gap < 1e-10


def test_fees_that_nobody_pays_prove_nothing(no_time):
    # With a fee for each block the prices may be lower, and without a limit no fee belongs to their sum.
    table = triples(9)
    found = select_partition(table, solver="milp")
    cheap = Witness(np.zeros(9, dtype=np.int64), 1 << 55, found.witness.unit)
    wrong = Selection(tuple((c,) for c in range(9)), 0.0, 0.0, "oracle", witness=cheap)
    assert verify(table, wrong).outcome == "not checked again"


@pytest.mark.parametrize("price", [-(2**62), -(2**63), 2**63 - 1])
def test_prices_whose_sums_leave_64_bits_prove_nothing(price, no_time):
    # Only triples are allowed: nothing but the sums over three columns holds a price.
    table, threes = SubsetScores.from_dict(random_table(6, 3, 0)), Constraints(min_block_size=3)
    worst = select_partition(table, sense="min", constraints=threes)
    unit = select_partition(table, solver="milp", constraints=threes).witness.unit
    huge = replace(worst, witness=Witness(np.full(6, price, dtype=np.int64), 0, unit))
    assert verify(table, huge, constraints=threes).outcome == "not checked again"


def test_prices_for_other_columns_are_no_witness(no_time):
    table = triples(9)
    found = select_partition(table, solver="milp")
    short = Witness(found.witness.prices[:-1], 0, found.witness.unit)
    assert verify(table, replace(found, witness=short)).outcome == "not checked again"


def test_among_many_equals_one_that_is_better_is_found_though_the_best_is_far():
    table = levels(31, 3, [0.0, 1.0, 1.0])
    found = select_partition(table)
    assert verify(table, found).outcome == "proved"
    alone = replace(found, partition=tuple((c,) for c in range(31)))
    assert verify(table, alone).outcome == "a better one exists"


# --- -inf ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_where_all_partitions_are_at_minus_infinity_none_is_better(solver):
    table = SubsetScores.from_dict({(0,): -np.inf, (1,): 0.0, (2,): 1.0, (0, 1): -np.inf, (1, 2): 2.0})
    found = select_partition(table, solver=solver)
    for partition in oracles.all_partitions(3, 2):
        assert verify(table, replace(found, partition=partition)).outcome == "proved"
    again = certify_again(table, found)
    assert (again.score, again.bound, again.proof) == (-np.inf, -np.inf, "proved")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_partition_at_minus_infinity_is_not_best_where_another_is_finite(solver, monkeypatch):
    scores = {(0,): -np.inf, (1,): 0.0, (2,): 0.0, (0, 1): -5.0, (0, 2): -7.0, (1, 2): 3.0}
    table = SubsetScores.from_dict(scores)
    found = select_partition(table, solver=solver)
    assert verify(table, found).outcome == "proved"
    worse = replace(found, partition=((0,), (1, 2)))
    assert verify(table, worse).better == ((0, 1), (2,))
    monkeypatch.setattr(proofs, "MOST_STEPS", 0)
    monkeypatch.setattr(proofs, "MOST_NODES", 0)
    unknown = certify_again(table, replace(worse, witness=None))
    assert (unknown.score, unknown.bound, unknown.proof) == (-np.inf, np.inf, "not checked again")


# --- a selection that was saved --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_saved_selection_comes_back_with_its_proof(solver):
    table = SubsetScores.from_dict(random_table(7, 3, 2))
    found = select_partition(table, solver=solver)
    saved = Selection.from_archive(found.partition, *found.to_archive())
    assert not saved.is_proved
    again = certify_again(table, saved)
    assert again == found
    assert (again.proof, again.is_optimal) == ("proved", True)


def test_a_saved_selection_that_is_not_the_best_is_refused():
    table = SubsetScores.from_dict(random_table(7, 3, 2))
    best, second = best_partitions(table, 2)
    with pytest.raises(InputError, match="not the best of its scores") as refused:
        certify_again(table, replace(best, partition=second.partition))
    assert str(best.partition) in str(refused.value)


def test_a_search_that_is_too_long_leaves_the_bound_that_is_known(no_time):
    table = odd_cycle()
    found = select_partition(table, solver="milp")
    again = certify_again(table, found)
    assert (again.proof, again.is_proved, again.is_optimal) == ("not checked again", False, False)
    assert again.objective == found.objective == 1.02
    assert again.bound == pytest.approx(1.515, abs=ROUNDING)
    nothing = certify_again(table, replace(found, witness=None))
    assert (nothing.proof, nothing.bound) == ("not checked again", np.inf)
