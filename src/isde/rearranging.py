"""Rearranging a tree by stacks, where more columns hang together than a clique may have: which to keep together.

Blocks, and the components of a tree, follow from kernels of one bandwidth, which see any dependence and are quick
enough for many splits. Inside a wide component a tree has to choose between columns that all depend on each other, and
there such kernels lose, in three and four columns, what clusters of many shapes say (docs/trees.md).

So the subsets of a wide component are scored again on their normal scores: kernels of several bandwidths and Gaussian
mixtures are learned from half of the rows, weighed and scored by a quarter, and a tree is selected by that. It takes
the place of the first one only if the density that would be fitted is better, by two standard errors, on the last
quarter, which had no say in it; in the first one it had. Components stay as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.density import Scaling, density_of_shared, log_conditional
from isde.engine.mixtures import Mixtures, grow_mixtures
from isde.engine.stacking import choose_weights, kernel_log_densities, mixture_log_densities
from isde.joined_tables import with_columns
from isde.marginals.bounds import MAX_SPLIT_ROWS
from isde.marginals.marginal import FittedBlock, of_columns
from isde.marginals.stack import SCORING_DOUBLINGS, SCORING_STEPS
from isde.normal_scores import normal_scores
from isde.partitions import Partition
from isde.progress import progress_bar
from isde.run.executors import workers
from isde.scores import SubsetScores
from isde.splits import shuffled
from isde.subsets import Subset, SubsetFamily
from isde.tree_selection import TreeSelection
from isde.trees import Tree

SURE = 2.0
"""Standard errors by which a tree has to be better on the rows that judge. Of 23 trees taken so whose edges are known,
one had a false edge more than the first, three had fewer (experiments/rearranging.py known)."""

EDGE_NATS = 10.0
"""What an edge has to gain, over all rows that choose, beyond the fewest that hold a component together: twice what 600
draws of independent columns gave one at most (experiments/rearranging.py chance)."""

LEAST_ROWS = 2000
"""With 1,000 the trees found so were worse than the first one on all parts of nilsson_rare that were tried."""

MOST_SUBSETS = 25_000
"""Of a component, all triples of 53 columns: with 32 they take as long as by kernels on all splits."""

BANDWIDTHS = 0.6 / 2 ** np.arange(4)
"""Of kernels on normal scores. Narrower clusters are the business of mixtures."""

SUBSETS_AT_ONCE = 16
"""For each worker: a twentieth of a second."""

Select = Callable[[SubsetScores], TreeSelection]
FitCliques = Callable[[Matrix, Sequence[Subset]], Sequence[FittedBlock]]
"""From rescaled rows to the densities of cliques."""


@dataclass(frozen=True)
class Rearrangement:
    """What the tree by stacks is worth in one component."""

    columns: Subset
    gain: float  # of the tree by stacks over the first one, nats a row: by densities, or, if not above 0, by stacks
    error: float  # standard error of the gain
    n_rows: int  # that told, none of which had a say in the tree by stacks
    is_taken: bool  # whether the tree by stacks took the other's place

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rearrangements_from_json(saved: Any, components: Partition) -> tuple[Rearrangement, ...]:
    """From a file, of which nothing is believed."""
    found = tuple(Rearrangement(**{**one, "columns": tuple(one["columns"])}) for one in saved)
    for one in found:
        finite = all(type(value) is float and isfinite(value) for value in (one.gain, one.error))
        rows = type(one.n_rows) is int and 0 < one.n_rows <= MAX_SPLIT_ROWS and type(one.is_taken) is bool
        if not (finite and one.error >= 0 and rows and one.columns in components):
            raise ValueError(f"{one} is no rearrangement of its tree")
    if len({one.columns for one in found}) < len(found):
        raise ValueError("a component was rearranged twice")
    return found


@dataclass(frozen=True)
class Arranged:
    """A table, the tree selected from it, and what stacks had to say in both."""

    scores: SubsetScores
    selection: TreeSelection
    rearrangements: tuple[Rearrangement, ...] = ()


def rearranged(
    X: Matrix,
    scores: SubsetScores,
    select: Select,
    sketch: Select,
    fit: FitCliques,
    scaling: Scaling,
    *,
    most_rows: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Arranged:
    """The tree that `select` finds in a table of dependence, with wide components rearranged where that is better.

    In the table returned, the subsets of a component that was rearranged have the scores by stacks. `most_rows` of the
    rows are looked at. `sketch` finds a good tree where `select` would take long to prove one; `fit` gives the
    densities that the tree is going to have.
    """
    first, rows = select(scores), X[shuffled(len(X))[:most_rows]]
    wide = [component for component in first.components if _is_wide(component, scores, len(rows))]
    if not wide:
        return Arranged(scores, first)
    by_stacks = {component: _ByStacks.of(component, rows, scores, n_jobs, verbose) for component in wide}
    bench = _Bench(*_parts(scaling.transform(rows)), first.tree, by_stacks, fit, n_jobs)

    def table(components: Iterable[Subset]) -> SubsetScores:
        new = scores
        for component in components:
            new = by_stacks[component].rescored(new)
        return new

    candidate = sketch(table(wide)).tree
    found = {component: bench.judged(candidate, component) for component in wide}
    taken = [component for component in wide if found[component].is_taken]
    while taken:  # the tree that is proved to be the best may be another than the sketch: it is judged itself
        new = table(taken)
        selection = select(new)
        found |= {component: bench.judged(selection.tree, component) for component in taken}
        kept = [component for component in taken if found[component].is_taken]
        if kept == taken:
            return Arranged(new, selection, tuple(found.values()))
        taken = kept
    return Arranged(scores, first, tuple(found.values()))


def _is_wide(component: Subset, scores: SubsetScores, n_rows: int) -> bool:
    """Whether a component is wider than a clique, with rows enough and few enough subsets to be scored by stacks."""
    largest = scores.max_block_size
    if not 1 < largest < len(component) or n_rows < LEAST_ROWS:
        return False
    inside = SubsetFamily(len(component), largest)
    return len(inside) <= MOST_SUBSETS and bool(np.isfinite(_gains_within(component, inside, scores)).all())


def _gains_within(component: Subset, inside: SubsetFamily, scores: SubsetScores) -> Vector:
    """The gains of the subsets of a component, by the places of their columns in it."""
    columns = np.array(component)
    at = [scores.subsets.find(columns[inside.members(size)]) for size in range(1, inside.max_size + 1)]
    gains: Vector = scores.gains[np.concatenate(at)]
    return gains


def _parts(rows: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The rows to learn from, to choose by and to judge by."""
    learn, choose, judge = np.split(rows, [len(rows) // 2, len(rows) * 3 // 4])
    return learn, choose, judge


@dataclass(frozen=True)
class _ByStacks(FrozenArrays):
    """The subsets of a component, scored by stacks."""

    component: Subset
    inside: SubsetFamily  # of places in the component
    more: Vector  # what each subset gains more than by the table
    errors: Vector  # of its gain
    learn: Matrix  # normal scores of the rows to learn from, and so on
    choose: Matrix
    judge: Matrix

    @classmethod
    def of(cls, component: Subset, rows: Matrix, scores: SubsetScores, n_jobs: int | None, verbose: int) -> _ByStacks:
        inside = SubsetFamily(len(component), scores.max_block_size)
        learn, choose, judge = _parts(of_columns(rows, component))
        Z, Z_others = normal_scores(learn, np.concatenate([choose, judge]))
        Z_choose, Z_judge = np.split(Z_others, [len(choose)])
        every = list(inside)
        tasks = ((Z, Z_choose, every[i : i + SUBSETS_AT_ONCE]) for i in range(0, len(every), SUBSETS_AT_ONCE))
        found: list[tuple[float, float]] = []
        show = progress_bar(len(every), f"Rearranging {len(component)} columns by stacks", show=verbose > 0)
        with threadpool_limits(1, "blas"), show as advance, workers(n_jobs) as run:
            for part in run(_scored, tasks):
                found += part
                advance(len(part))
        gains, errors = np.array(found).T
        more = gains - _gains_within(component, inside, scores)
        return cls(component, inside, more, errors, Z, Z_choose, Z_judge)

    def difference(self, tree: Tree, other: Tree) -> Vector:
        """How much better a tree of this component is than another one, of each row to judge by."""
        place_in = {column: place for place, column in enumerate(self.component)}
        signs = Counter[Subset]()
        for one, side in ((tree, 1), (other, -1)):
            for term, sign in one.terms:
                if set(term) <= set(self.component):
                    signs[tuple(place_in[column] for column in term)] += side * sign
        total = np.zeros(len(self.judge))
        for own, sign in signs.items():
            if sign:
                rows = (of_columns(Z, own) for Z in (self.learn, self.choose, self.judge))
                total += sign * log_copula(*rows)
        return total

    def rescored(self, scores: SubsetScores) -> SubsetScores:
        """The table with the gains, errors and charges by stacks: of a subset that is only partly inside, of this part.

        A pair is charged what it was: a tree that holds the component together has so many edges. More of them close a
        triple or a larger clique, which is charged for them.
        """
        place_in = {column: place for place, column in enumerate(self.component)}
        gains, errors, bandwidths = scores.gains.copy(), scores.gain_errors.copy(), scores.bandwidths.copy()
        charges = scores.charged_by_edge().charges.copy()
        for place, subset in enumerate(scores.subsets):
            part = tuple(place_in[column] for column in subset if column in place_in)
            if len(part) < 2:
                continue
            own, further_edges = self.inside.index(part), (len(part) - 1) * (len(part) - 2) // 2
            gains[place] += self.more[own]
            charges[place] += EDGE_NATS * further_edges / len(self.choose)
            if len(part) == len(subset):
                errors[place], bandwidths[place] = self.errors[own], np.nan
        new = replace(scores, scores=gains, gain_errors=errors, bandwidths=bandwidths, charges=charges, dependence=None)
        return new if scores.dependence is None else with_columns(new, scores.restrict(1))


def _scored(learn: Matrix, choose: Matrix, subsets: Sequence[Subset]) -> list[tuple[float, float]]:
    """What each subset gains by its stack, and the standard error of that."""
    return [_mean_and_error(log_copula(of_columns(learn, own), of_columns(choose, own))) for own in subsets]


def log_copula(learn: Matrix, choose: Matrix, rows: Matrix | None = None) -> Vector:
    """What a stack says beyond independence of normal scores, of those that weigh it where no others are given."""
    asked = choose if rows is None else rows
    if learn.shape[1] == 1:  # a single column is standard normal
        return np.zeros(len(asked))
    mixtures = grow_mixtures(learn, SCORING_DOUBLINGS, SCORING_STEPS)
    logs = _log_densities(mixtures, learn, choose)
    weights = choose_weights(logs, 0)
    used = weights > 0
    if rows is not None:
        logs = _log_densities(mixtures, learn, rows)
    return np.asarray(logsumexp(logs[used], b=weights[used, None], axis=0) - _log_independent(asked))


def _log_densities(mixtures: Mixtures, centres: Matrix, rows: Matrix) -> NDArray[np.float32]:
    """Of each row by each expert: mixtures, kernels, and independence."""
    one_fold, in_none = np.zeros(len(centres), dtype=np.int64), np.full(len(rows), -1)
    kernels = kernel_log_densities(centres, one_fold, rows, in_none, BANDWIDTHS)
    independent = _log_independent(rows)[None].astype(np.float32)
    return np.concatenate([mixture_log_densities(mixtures, rows), kernels, independent])


def _log_independent(rows: Matrix) -> Vector:
    return np.asarray(-0.5 * (rows**2 + np.log(2 * np.pi)).sum(axis=1))


@dataclass(frozen=True)
class _Bench(FrozenArrays):
    """Where trees are judged beside the first one: by the densities that they would have, on rows without a say."""

    learn: Matrix
    choose: Matrix
    judge: Matrix
    first: Tree
    by_stacks: Mapping[Subset, _ByStacks]
    fit: FitCliques
    n_jobs: int | None
    fitted: dict[Subset, FittedBlock] = field(default_factory=dict)

    def judged(self, tree: Tree, component: Subset) -> Rearrangement:
        """A tree beside the first one in a component, which it has to hold together.

        Where stacks themselves find it no better on these rows, no density is fitted.
        """
        own, other = (_conditionals(one, component) for one in (tree, self.first))
        if component not in tree.components or own == other:
            return Rearrangement(component, 0.0, 0.0, len(self.judge), is_taken=False)
        gain, error = _mean_and_error(self.by_stacks[component].difference(tree, self.first))
        if gain <= 0:
            return Rearrangement(component, gain, error, len(self.judge), is_taken=False)
        gain, error = _mean_and_error(self._log_density(own - other) - self._log_density(other - own))
        return Rearrangement(component, gain, error, len(self.judge), is_taken=gain > SURE * error)

    def _log_density(self, conditionals: set[tuple[Subset, Subset]]) -> Vector:
        """Of each row, by cliques given what they share."""
        new = sorted({clique for clique, _ in conditionals} - set(self.fitted))
        rows = np.concatenate([self.learn, self.choose])
        self.fitted.update(zip(new, self.fit(rows, new), strict=True))
        total = np.zeros(len(self.judge))
        for clique, shared in sorted(conditionals):
            block = self.fitted[clique]
            given = density_of_shared(block, clique, shared)
            total += log_conditional(self.judge, clique, block, shared, given, self.n_jobs)
        return total


def _conditionals(tree: Tree, component: Subset) -> set[tuple[Subset, Subset]]:
    """The cliques of a component, each with what it shares with the one it hangs on."""
    own = set(component)
    return {(clique, shared) for clique, shared in zip(tree.cliques, tree.shared, strict=True) if own & set(clique)}


def _mean_and_error(values: Vector) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
