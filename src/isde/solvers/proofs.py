"""Proofs checked again, as far as that takes less than a second: what a file says of its partition is not believed.

Prices prove a bound by themselves: they are raised until they hold for every subset of the table at hand, and added
up. Where their sum does not meet the partition, or there are no prices, a search looks for a partition that is better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from isde.errors import InputError, ISDEError, UnprovedPartition
from isde.partitions import Partition, canonical_partition
from isde.scores import SubsetScores
from isde.selection import PROOF_TOLERANCE, Selection, Witness, certify
from isde.solvers import dynamic, milp
from isde.solvers.constraints import Constraints
from isde.solvers.cover import LARGEST_TOTAL, Search, SearchTooLong
from isde.solvers.dynamic import FEW_STEPS
from isde.solvers.prices import STEP, Prices, price_columns, witnessed
from isde.solvers.problem import Problem
from isde.solvers.solver import Task
from isde.solvers.weights import FORBIDDEN, Weights

MOST_STEPS = 3**17
"""Of a solver that is asked again (`Solver.steps`): the recursion over 17 columns takes 0.4 s."""

MOST_PRICED = 20_000
"""Subsets that a linear program is asked of first: a tenth of a second."""

MOST_NODES = 2_000_000
"""Blocks that a search tries: 0.1 to 0.3 s."""

MOST_RANK = 10_000
"""Partitions that a search keeps at most."""


@dataclass(frozen=True)
class Verdict:
    """What is known of a partition's place after looking again."""

    gap: float  # nats; no partition, but the rank - 1 before it, is better by more; inf: nothing is known
    better: Partition | None = None  # one too many that is better

    @property
    def outcome(self) -> Literal["proved", "a better one exists", "not checked again"]:
        if self.better is not None:
            return "a better one exists"
        return "proved" if self.gap <= PROOF_TOLERANCE else "not checked again"


def verify(
    scores: SubsetScores,
    selection: Selection,
    max_block_size: int | None = None,
    *,
    sense: str = "max",
    constraints: Constraints | None = None,
) -> Verdict:
    """Whether no partition, but the `rank - 1` before it, is better by more than 1e-9 nats than the one selected.

    `max_block_size`, `sense` and `constraints` are those that it was selected with. Bound, score and solver of the
    selection are not looked at, and its prices are mended where they do not hold.

    >>> from isde.solvers import select_partition
    >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (2,): 0.1, (0, 1): 1.9, (0, 2): 0.5, (1, 2): 0.4})
    >>> found = select_partition(table)
    >>> verify(table, found).outcome, verify(table, replace(found, partition=((0, 2), (1,)))).outcome
    ('proved', 'a better one exists')
    """
    problem = Problem(scores, max_block_size, sense, constraints)
    partition = canonical_partition(selection.partition, scores.n_columns)
    if not problem.meets_demands(partition):
        raise InputError(f"The partition {partition} does not meet the constraints it is held against.")
    claim = _Claim(partition, selection.rank, problem.task(selection.rank), _weights(problem, partition))
    verdict = _look_again(claim, selection.witness)
    if verdict.better is not None and problem.gain(verdict.better) == -inf:
        return Verdict(0.0)  # where every partition is at -inf, none is better
    return verdict


def certify_again(scores: SubsetScores, saved: Selection) -> Selection:
    """A selection that was saved, with the bound that is known now; `InputError` where a better partition exists."""
    verdict = verify(scores, saved)
    if verdict.better is not None:
        raise InputError(
            f"its partition is not the best of its scores: {verdict.better} is better by {verdict.gap:.3g} nats"
        )
    try:
        return certify(scores, saved.partition, verdict.gap, saved.solver, rank=saved.rank, witness=saved.witness)
    except UnprovedPartition as unproved:
        return replace(unproved.selection, was_proved=True)


@dataclass(frozen=True)
class _Claim:
    """No partition, but `rank - 1`, is heavier."""

    partition: Partition
    rank: int
    task: Task
    weights: Weights

    def against(self, found: list[Partition]) -> Verdict:
        """The verdict where these are the heaviest partitions, `rank` of them or all that are better."""
        if len(found) < self.rank:
            return Verdict(0.0)
        gap = self.gap(self.weights.of(found[-1]))
        return Verdict(gap, found[-1] if gap > PROOF_TOLERANCE else None)

    def gap(self, bound: int) -> float:
        return self.weights.nats(self.weights.of(self.partition), bound)


def _weights(problem: Problem, partition: Partition) -> Weights:
    """Weights that are exact for the partition and for better ones: the same that a solver had, whatever it found."""
    gain, floor = problem.gain(partition), problem.floor
    if gain == -inf:
        return problem.weights(None)
    return problem.weights(gain if floor is None else min(floor, gain))


def _look_again(claim: _Claim, witness: Witness | None) -> Verdict:
    prices = None if witness is None else witnessed(claim.weights, witness)
    verdict = _by_linear_program(claim) if prices is None else _by_prices(claim, prices)
    if verdict.outcome != "not checked again":
        return verdict
    if dynamic.refusal(claim.task) is None and dynamic.steps(claim.task) <= MOST_STEPS:
        return claim.against([one.partition for one in dynamic.best(claim.weights)])
    if prices is None and milp.steps(claim.task) <= MOST_STEPS:
        prices = _new_prices(claim)
        return verdict if prices is None else _by_prices(claim, prices)
    return verdict


def _by_linear_program(claim: _Claim) -> Verdict:
    """What new prices prove by themselves: most often all, and nothing has to be compiled for it."""
    subsets = claim.weights.subsets
    if claim.rank > 1 or not dynamic.steps(claim.task) > FEW_STEPS or len(subsets) > MOST_PRICED:
        return Verdict(inf)
    try:
        prices = price_columns(claim.weights, claim.weights.values != FORBIDDEN)
    except ISDEError:
        return Verdict(inf)  # where HiGHS fails nothing is known, and nothing is wrong with the claim
    return Verdict(inf if prices is None else claim.gap(prices.bound // STEP))


def _new_prices(claim: _Claim) -> Prices | None:
    try:
        return price_columns(claim.weights, milp.possible_blocks(claim.weights, claim.rank))
    except ISDEError:
        return None  # where HiGHS fails nothing is known, and nothing is wrong with the claim


def _by_prices(claim: _Claim, prices: Prices) -> Verdict:
    """The sum of the prices, or a search through what it leaves open."""
    weights = claim.weights
    gap = claim.gap(prices.bound // STEP)
    if gap <= PROOF_TOLERANCE:
        return Verdict(gap)
    most = prices.bound - STEP * weights.next_gain(weights.of(claim.partition))
    if claim.rank > MOST_RANK or most > LARGEST_TOTAL:
        return Verdict(gap)
    search = milp.search_within(weights, prices, milp.possible_blocks(weights, claim.rank), MOST_NODES)
    try:
        found = milp.search_outwards(weights, search, claim.rank, most)
    except SearchTooLong:
        found = _some_within(search, most)  # the best one may be far to seek, and many that are better near
        if len(found) < claim.rank:
            return Verdict(gap)
    return claim.against([partition for partition, _ in found])


def _some_within(search: Search, most: int) -> list[tuple[Partition, int]]:
    """The first partition that a search meets, or none where it meets none soon."""
    try:
        return search.several(1, most, first=True)
    except SearchTooLong:
        return []
