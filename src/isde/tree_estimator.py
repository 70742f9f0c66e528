"""Trees of blocks as a scikit-learn estimator beside `ISDE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, fsum
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isde.archive import Arrays, over, under
from isde.arrays import Matrix
from isde.callbacks import heard_by_callbacks
from isde.data.words import several
from isde.density import Scaling
from isde.density_estimator import kept_in_run
from isde.errors import warn
from isde.fit_record import recorded
from isde.marginals import DEFAULT_MARGINAL
from isde.marginals.bounds import MAX_CENTRES, MAX_FIT_ROWS, MAX_SPLIT_ROWS
from isde.marginals.marginal import BlockFitter, FittedBlock, fit_shuffled
from isde.partitions import RandomState
from isde.rearranging import LEAST_ROWS, Arranged, Rearrangement, rearranged, rearrangements_from_json
from isde.scores import SubsetScores
from isde.scoring import Scoring
from isde.solvers.registry import AUTO
from isde.splits import rows_at_most, shuffled
from isde.stability import Parts
from isde.structure_estimator import StructureEstimator
from isde.subsets import Subset
from isde.tree_density import TreeDensity, check_has_marginals, fit_cliques
from isde.tree_selection import TreeSelection
from isde.tree_solvers import certify_tree_again, check_tree_solver, select_tree
from isde.tree_stability import TreeStability, assess_tree
from isde.trees import Edge, Tree

PROVED_AT_ONCE = 16
"""Columns, at most, of a table whose best tree is found exactly in seconds."""

LOOKED_AT = 1000
"""Rows by which the density is compared with the table."""

FAR_BELOW = 0.6
"""Nats. Density and table differed by no more in trials up to k = 4; where one badly scored column was taken off again
and again, by 16."""


class TreeISDE(StructureEstimator):
    """Independence structure with overlaps: cliques of at most `max_block_size` columns along a tree.

    Where columns hang together more widely than k, disjoint blocks lose what lies between them. Here blocks may share
    columns, as the cliques of a decomposable model: two columns that share none are independent given the columns that
    stand between them. The tree is the one with the best held-out log-likelihood, the sum over cliques minus the sum
    over what they share, by the same table of scores that `ISDE` has. Where more columns hang together than a clique
    may have, and there are 2,000 rows or more, it is rearranged inside by better scores, if rows without a say in that
    bear it out (`rearrangements_`). The density is that of each clique given the columns it shares with the clique it
    hangs on, and integrates to one. Partitions are the trees whose cliques share nothing, forests those with
    `max_block_size=2`.

    Parameters
    ----------
    max_block_size : int, default=4
        Largest clique allowed. Larger than the number of columns means all columns.
    marginal : str or list, default="copula+stack"
        How subsets are scored and cliques described, as in `ISDE`; foreign estimators, of which no exact marginal
        densities are known, are refused.
    split, penalty, alpha, bandwidths, cv, max_split_rows, scale, max_fit_rows, max_centres
        As in `ISDE`.
    n_jobs, random_state, verbose, checkpoint
        As in `ISDE`. Edges are charged for what chance would give them, and have to gain more.
    solver : "auto" or the name of a solver of trees, default="auto"
        How the tree is found. Where it is not proved to be the best one, `selection_.gap` says how far it can be from
        that, and a warning too.

    Attributes
    ----------
    cliques_ : tuple of tuples of int
        The maximal cliques, each after the one it hangs on.
    separators_ : tuple of tuples of int
        What stands between cliques.
    edges_ : tuple of pairs of int
        All pairs of columns that share a clique.
    edge_gains_ : list of EdgeGain
        Each edge with what it gains, its error, and what chance gives.
    partition_ : tuple of tuples of int
        The connected components: columns that hang together, independent of all others.
    clique_names_, block_names_ : tuple of tuples of str
        Cliques and connected components by name.
    subset_scores_ : SubsetScores
        The score of every subset, in the units of the data, as `ISDE` has it.
    selected_from_ : SubsetScores
        The table that the tree is the best by: the same, but for columns that were rearranged, whose subsets are
        scored by stacks.
    selection_ : TreeSelection
        Tree, score, and the bound that no tree passes.
    rearrangements_ : tuple of Rearrangement, or None
        Of each component with more columns than a clique may have, whether its tree was rearranged by stacks
        (`isde.rearranging`), and by how much that is better on rows that had no say in it. None for a table that was
        given, and without charges for chance: there the tree is that of the table.
    density_ : TreeDensity
        The fitted density.
    tied_ : tuple of str
        Columns with many repeated values, which have no density.
    bandwidths_ : ndarray
        Bandwidth of each clique on the rescaled data; NaN where the family has none.
    rows_used_ : RowsUsed
        How many rows there were, how many of them cliques were learned from, and the centres of kernels at most.

    Examples
    --------
    >>> import numpy as np
    >>> from isde import TreeISDE
    >>> X = np.random.default_rng(0).normal(size=(500, 4)).cumsum(axis=1)
    >>> model = TreeISDE(max_block_size=3, random_state=0).fit(X)
    >>> model.cliques_, model.separators_
    (((0, 1), (1, 2), (2, 3)), ((1,), (2,)))
    """

    archive_kind = "tree"
    density_type = TreeDensity
    density_: TreeDensity
    rearrangements_: tuple[Rearrangement, ...] | None = None
    _by_stacks: SubsetScores | None = None  # the table, where components were rearranged

    def __init__(
        self,
        max_block_size: int = 4,
        *,
        marginal: Any = DEFAULT_MARGINAL,
        split: Any = None,
        penalty: str | None = None,
        alpha: float | str | None = "auto",
        bandwidths: Sequence[float] | None = None,
        cv: int = 5,
        max_split_rows: int | None = MAX_SPLIT_ROWS,
        scale: str | None = "minmax",
        max_fit_rows: int | None = MAX_FIT_ROWS,
        max_centres: int | None = MAX_CENTRES,
        solver: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.max_block_size = max_block_size
        self.marginal = marginal
        self.split = split
        self.penalty = penalty
        self.alpha = alpha
        self.bandwidths = bandwidths
        self.cv = cv
        self.max_split_rows = max_split_rows
        self.scale = scale
        self.max_fit_rows = max_fit_rows
        self.max_centres = max_centres
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @kept_in_run
    @recorded
    @heard_by_callbacks
    def fit(self, X: Any, y: Any = None, *, subset_scores: SubsetScores | None = None) -> TreeISDE:
        """Score every subset, select the best tree, fit its cliques, each once.

        With `subset_scores`, a table in the units of `X` (the `subset_scores_` of an `ISDE` model, or a file loaded),
        nothing is scored again: the tree is selected from the table.
        """
        X, scaling, scoring = self._score_rows(X, subset_scores)
        self.rearrangements_ = self._by_stacks = None
        if subset_scores is None and scoring.alpha is not None:
            found = self._arranged(X, self.subset_scores_, scoring.marginal, scaling, self.verbose)
            self.selection_, self.rearrangements_ = found.selection, found.rearrangements
            self._by_stacks = None if found.scores is self.subset_scores_ else found.scores
        else:
            self.selection_ = self._select(self.subset_scores_)
        self.partition_ = self.selection_.components
        self._warn_no_density("tree", self.selection_.score, self.cliques_)
        self._warn_unproved()
        bounds = self._bounds_for(X, scoring.marginal, several(len(self.cliques_), "clique"))
        tree, names = self.selection_.tree, self._names()
        self.density_ = fit_cliques(X, tree, scoring.marginal, scaling, names, n_jobs=self.n_jobs, bounds=bounds)
        self._warn_far_below_table(X)
        if subset_scores is None:
            self._warn_larger_blocks(scoring, X, self.cliques_, margin_over_trees)
        return self

    def _select(self, scores: SubsetScores) -> TreeSelection:
        return select_tree(scores, solver=self.solver)

    def _sketch(self, scores: SubsetScores) -> TreeSelection:
        """A good tree, where a proof would take long."""
        quick = self.solver != AUTO or scores.n_columns <= PROVED_AT_ONCE
        return self._select(scores) if quick else select_tree(scores, solver="annealing")

    def _arranged(
        self, X: Matrix, scores: SubsetScores, marginal: BlockFitter, scaling: Scaling, verbose: int = 0
    ) -> Arranged:
        """The best tree of a table, or a rearranged one whose density is better."""

        def fit(rows: Matrix, cliques: Sequence[Subset]) -> Sequence[FittedBlock]:
            return fit_shuffled(marginal, rows, cliques, n_jobs=self.n_jobs, bounds=self._bounds())

        return rearranged(
            X,
            scores,
            self._select,
            self._sketch,
            fit,
            scaling,
            most_rows=rows_at_most(min(len(X), MAX_SPLIT_ROWS), self.max_split_rows),
            n_jobs=self.n_jobs,
            verbose=verbose,
        )

    def _check_solver(self) -> None:
        check_tree_solver(self.solver)

    def _scoring(self) -> Scoring:
        scoring = super()._scoring()
        check_has_marginals(scoring.marginal)
        return scoring

    @property
    def cliques_(self) -> tuple[Subset, ...]:
        check_is_fitted(self, "selection_")
        return self.selection_.cliques

    @property
    def separators_(self) -> tuple[Subset, ...]:
        check_is_fitted(self, "selection_")
        return self.selection_.separators

    @property
    def edges_(self) -> tuple[Edge, ...]:
        check_is_fitted(self, "selection_")
        return self.selection_.edges

    @property
    def selected_from_(self) -> SubsetScores:
        check_is_fitted(self, "selection_")
        return self.subset_scores_ if self._by_stacks is None else self._by_stacks

    @property
    def clique_names_(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self._names()[c] for c in clique) for clique in self.cliques_)

    def stability(
        self, X: Any, n: int = 50, *, n_null: int = 20, share: float = 0.5, random_state: RandomState = None
    ) -> TreeStability:
        """How sure the tree is: the same analysis on `n` random parts of the rows, and on rows without structure.

        Each part holds a `share` of the rows of `X`. On `n_null` further parts every column is permuted by itself,
        which leaves no structure: edges found there are chance.
        """
        score, rows, table = self._parts_of(X)
        marginal = self._scoring().marginal

        def analyse(part: Matrix, seed: int) -> tuple[SubsetScores, Tree]:
            scores = score(part, seed)
            if self.rearrangements_ is None:
                return scores, self._select(scores).tree
            # Gains are compared with those of rows without structure, which have nothing to rearrange: by the table.
            return scores, self._arranged(part, scores, marginal, self.density_.scaling).selection.tree

        parts = Parts(n, n_null, share, random_state, self.verbose)
        n_rows = parts.rows_of(len(rows))
        if n_rows < LEAST_ROWS and any(one.is_taken for one in self.rearrangements_ or ()):
            least = ceil(100 * LEAST_ROWS / len(rows)) / 100
            warn(
                f"The tree was rearranged by stacks, for which parts of {n_rows:,} rows are too few ({LEAST_ROWS:,} it "
                "takes): theirs are trees of the table, and may differ for that reason alone; "
                f"{f'share={least}' if least < 1 else 'more rows'} would do."
            )
        return assess_tree(analyse, rows, table.names, self.selection_.tree, parts)

    def score_blocks(self, X: Any) -> Matrix:
        """Log-density of each row in each clique, shape (n rows, n cliques); adds up to `score_samples`.

        Of a clique that hangs on another one it is the log-density of its further columns given those they share.
        """
        return super().score_blocks(X)

    def _warn_unproved(self) -> None:
        found = self.selection_
        if found.proof == "not proved":
            known = np.isfinite(found.gap)
            gap = (
                f"none is better by more than {found.gap:.3g} nats" if known else "how far it is from that is not known"
            )
            warn(
                f"The tree found by solver={found.solver!r} is not proved to be the best: {gap}; "
                "a smaller max_block_size or fewer columns can be proved."
            )

    def _warn_far_below_table(self, X: Matrix) -> None:
        """Say so where the density does not give, even to rows it was fitted on, what the table promised."""
        rows = X[shuffled(len(X))[:LOOKED_AT]]
        log_density = self.density_.log_densities(rows, self.n_jobs).sum(axis=1)
        error = float(log_density.std(ddof=1) / np.sqrt(len(rows)))
        missing = self.selection_.score - float(log_density.mean())
        if missing > FAR_BELOW + 2 * error:
            column = self._most_taken_off()
            warn(
                f"The table promises {missing:.3g} nats more than the density gives the rows it was fitted on: "
                f"a column that is scored badly, most likely {column!r}, is taken off with each separator that holds "
                "it. Use marginal='copula+stack', several splits, or ISDE."
            )

    def _most_taken_off(self) -> str:
        """The column that stands in most separators."""
        counts = [sum(column in separator for separator in self.separators_) for column in range(self.n_features_in_)]
        return self._names()[int(np.argmax(counts))]

    def _extra_to_archive(self) -> tuple[dict[str, Any], Arrays]:
        header, arrays = super()._extra_to_archive()
        header["selection"] = self.selection_.to_archive()
        if self.rearrangements_ is not None:
            header["rearrangements"] = [one.to_json() for one in self.rearrangements_]
        if self._by_stacks is not None:
            header["by_stacks"], by_stacks = self._by_stacks.to_archive()
            arrays |= over("by_stacks.", by_stacks)
        return header, arrays

    def _extra_from_archive(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        super()._extra_from_archive(header, arrays)
        saved = TreeSelection.from_archive(self.n_features_in_, header["selection"])
        if saved.tree != self.density_.tree:
            raise ValueError("the tree selected is another one than that of the density")
        self._by_stacks = None
        if "by_stacks" in header:
            self._by_stacks = SubsetScores.from_archive(header["by_stacks"], under("by_stacks.", arrays))
        table = self.subset_scores_ if self._by_stacks is None else self._by_stacks
        self.selection_ = certify_tree_again(table, saved)
        self.partition_ = self.selection_.components
        found = header.get("rearrangements")  # files of earlier versions have none
        self.rearrangements_ = None if found is None else rearrangements_from_json(found, self.partition_)


def margin_over_trees(scores: SubsetScores) -> float:
    """What all columns of a table score together more than in their best tree of smaller cliques."""
    smaller = select_tree(scores, scores.max_block_size - 1)
    everything = tuple(range(scores.n_columns))
    return fsum((scores.objective(everything), -smaller.objective))
