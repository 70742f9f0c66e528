"""Proofs of trees checked again, as far as that takes seconds: what a file says of its tree is not believed."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from isde.errors import InputError
from isde.scores import SubsetScores
from isde.selection import PROOF_TOLERANCE
from isde.tree_selection import TreeSelection, certify_tree
from isde.tree_solvers import dynamic, forest
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.solver import TreeSolver
from isde.tree_solvers.witness import PricesTooLarge, verify
from isde.tree_solvers.witness_file import from_plain

MOST_STEPS = 1e9
"""Of a solver that is asked again: two seconds."""


def certify_tree_again(scores: SubsetScores, saved: TreeSelection) -> TreeSelection:
    """A selection that was saved, with the bound that is known now; `InputError` where a better tree exists.

    A witness is checked; without one a quick solver looks again. Where that would take long, the bound is inf, and
    `proof` says what the file said.
    """
    scores = scores.charged_by_edge()  # as `select_tree` takes it
    problem = TreeProblem(scores)
    solver = _quick_solver(problem.task)
    if solver is None:
        gap = _witnessed_gap(problem, saved)
        known = certify_tree(scores, saved.edges, gap, saved.solver, saved.witness)
        return replace(known, was_proved=saved.was_proved and not known.is_optimal)
    found = solver.best(problem)
    if found.edges is None:  # every tree is at -inf
        return certify_tree(scores, saved.edges, 0.0, saved.solver)
    gap = problem.gain(found.edges) - problem.gain(saved.edges)
    if saved.was_proved and gap > PROOF_TOLERANCE + found.gap:
        raise InputError(f"its tree is not the best of its scores: {list(found.edges)} is better by {gap:.3g} nats")
    return certify_tree(scores, saved.edges, max(gap, 0.0) + found.gap, saved.solver, saved.witness)


def _witnessed_gap(problem: TreeProblem, saved: TreeSelection) -> float:
    """What the witness of a file proves for the scores at hand; inf where it proves nothing, or is none."""
    if saved.witness is None:
        return inf
    weights = moebius_weights(problem.subsets, problem.gains)
    try:
        bound = verify(problem.subsets, weights, from_plain(saved.witness))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, PricesTooLarge):
        return inf  # a proof that was damaged is none
    return max(bound - problem.gain(saved.edges), 0.0)


def _quick_solver(task: TreeTask) -> TreeSolver | None:
    exact: tuple[TreeSolver, ...] = (forest, dynamic)
    return next((s for s in exact if s.refusal(task) is None and s.steps(task) <= MOST_STEPS), None)
