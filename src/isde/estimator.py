"""ISDE as a scikit-learn estimator: its `fit` reads like the algorithm box of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isde.archive import Arrays, over, under
from isde.callbacks import heard_by_callbacks
from isde.data.words import several
from isde.density import ProductDensity, fit_product
from isde.density_estimator import kept_in_run
from isde.fit_record import recorded
from isde.marginals import DEFAULT_MARGINAL
from isde.marginals.bounds import MAX_CENTRES, MAX_FIT_ROWS, MAX_SPLIT_ROWS
from isde.partitions import RandomState
from isde.scores import SubsetScores
from isde.selection import Selection
from isde.solvers import check_solver, select_partition
from isde.solvers.proofs import certify_again
from isde.stability import Parts, Stability, assess
from isde.structure_estimator import StructureEstimator


class ISDE(StructureEstimator):
    """Independence Structure Density Estimation.

    Finds the partition of the columns into independent blocks of at most `max_block_size` that maximises the held-out
    log-likelihood, and the density that is the product of the block densities.

    Parameters
    ----------
    max_block_size : int, default=3
        Largest block allowed, the paper's k. Larger than the number of columns means all columns.
    marginal : str, estimator or list, default="copula+stack"
        How subsets are scored and blocks described. "copula+stack": subsets by dependence alone, on the copula scale,
        where skew, heavy tails, outliers and units have no influence; the blocks that are kept by stacks, of the data
        as they are and of their normal scores. "copula": the same, blocks by their normal scores alone. On the data's
        own scale: "kde" (Gaussian kernels, bandwidth by cross-validation, the paper's); "stack" (kernels of several
        bandwidths and Gaussian mixtures, combined by held-out likelihood); "kde+stack" (subsets by the first, blocks by
        the second); "gaussian", "gaussian-zero-mean" (as in the paper); or any estimator with `fit` and
        `score_samples`, cloned per subset. Of a list, each block takes the family that scores best.
    split : str, float, splitter or None, default=None
        Which rows fit the marginals and which score them; scores are averaged over splits. "structure" keeps
        independent blocks apart, `ShuffleSplit(20, train_size=0.45)`; from 2,500 rows on it means "turned", twenty
        splits that cost less, `TurnedFolds(5, 4, train_size=0.45)`. "density" keeps weak dependence, `KFold(5,
        shuffle=True)`; "paper" is the fastest, `ShuffleSplit(1, train_size=0.5)`. Or a share of rows to fit on, or any
        scikit-learn splitter that needs neither y nor groups. None is "structure".
    penalty : "bic", "slope" or None, default=None
        In place of a split, for families with a fixed number of parameters ("gaussian"): all rows are fitted and
        scored, and each parameter is charged log(n) / 2, or twice what the slope heuristic finds.
    alpha : float, "auto" or None, default="auto"
        Probability of any block among independent columns. Subsets are charged for what chance would give them, and
        blocks have to gain more (`subset_scores_.charges`). "auto" is 0.05 on the copula scale, and None elsewhere:
        nothing is charged.
    bandwidths : sequence of float or None, default=None
        Grid for kernels on the rescaled data. None is the paper's 30 values from 0.01 to 1, growing by the same ratio
        where the best one is an end; a grid given is used as it is.
    cv : int, default=5
        Folds that choose a bandwidth, or the weights of a stack.
    max_split_rows : int or None, default=10_000
        A split of a table with more rows is as large as that of a table with so many, drawn anew for each split.
        Beyond the bound scoring costs no more, and further rows make splits more different. None: no bound
        (docs/many_rows.md).
    scale : "minmax", "standard" or None, default="minmax"
        Rescaling of each column before anything else. Results are in the units of the data given, whatever it is.
    max_fit_rows : int or None, default=200_000
        Rows that the densities of blocks are learned from at most: mixtures, weights, splines. Where there are more, a
        random part, the same in each fit (`rows_used_`). Gaussians and foreign estimators take all rows. None: all.
    max_centres : int or None, default=5_000
        Centres of kernels in a block at most, a random part of these rows; a bandwidth is chosen, and a kernel density
        weighed, for the centres that it has. Log-densities cost rows times centres. None: all.
    solver : "auto", "exhaustive", "dynamic" or "milp", default="auto"
        How the best partition is found; all are exact.
    search : "exhaustive" or "screened", default="exhaustive"
        Which subsets are scored. "exhaustive": all of at most `max_block_size` columns. "screened", where these are too
        many: all pairs, all triples (of more than 46 columns those that a first look chooses), and larger candidates
        connected by pairs and triples that gain more than chance gives. The partition is then proved to be the best
        into scored blocks, and `subset_scores_.subsets.n_missing` is how many subsets were not scored.
    n_jobs : int or None, default=None
        Workers, as in joblib. The result does not depend on it, nor on scikit-learn's `working_memory`
        (`sklearn.config_context`), which bounds what scoring needs beyond data and results: 1,024 MiB unless set.
    random_state : int, RandomState or None, default=None
        Draws the splits.
    verbose : int, default=0
        Above 0, progress goes to standard error.
    checkpoint : str, Path or None, default=None
        A folder that keeps scores as they come, and the model at the end (`isde.load`). The same call goes on from
        there after a crash, a signal or a full disk; with a larger `max_block_size` or more splits it scores only what
        is new. Other data or parameters are refused.

    Attributes
    ----------
    partition_ : tuple of tuples of int
        The blocks.
    block_names_ : tuple of tuples of str
        The blocks by name.
    subset_scores_ : SubsetScores
        The score of every subset, in the units of the data.
    selection_ : Selection
        Partition, score, and the bound that proves it optimal among all partitions into scored blocks.
    density_ : ProductDensity
        The fitted density.
    tied_ : tuple of str
        Columns with many repeated values, which have no density: blocks can be trusted, log-densities mean little.
    bandwidths_ : ndarray
        Bandwidth of each block on the rescaled data; NaN where the family has none.
    rows_used_ : RowsUsed
        How many rows there were, how many of them blocks were learned from, and the centres of kernels at most.
    fit_record_ : FitRecord
        Rows, fingerprint of the data, seconds, versions and warnings of the fit; a model read from a file has none.

    Examples
    --------
    >>> from isde import ISDE
    >>> from isde.synthetic import make_structured
    >>> X, truth = make_structured([3, 1], n_samples=600, random_state=0)
    >>> model = ISDE(max_block_size=4, random_state=0).fit(X)
    >>> model.partition_ == truth
    True
    """

    archive_kind = "model"
    density_: ProductDensity

    def __init__(
        self,
        max_block_size: int = 3,
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
        search: str = "exhaustive",
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
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @kept_in_run
    @recorded
    @heard_by_callbacks
    def fit(self, X: Any, y: Any = None, *, subset_scores: SubsetScores | None = None) -> ISDE:
        """Score every subset, select the best partition, fit its blocks.

        With `subset_scores`, a table in the units of `X` (another model's `subset_scores_`, or a file loaded), nothing
        is scored again: the partition is selected from the table.
        """
        X, scaling, scoring = self._score_rows(X, subset_scores)
        self.selection_ = select_partition(self.subset_scores_, solver=self.solver)
        self.partition_ = self.selection_.partition
        self._warn_no_density("partition", self.selection_.score, self.partition_)
        bounds = self._bounds_for(X, scoring.marginal, several(len(self.partition_), "block"))
        self.density_ = fit_product(
            X, self.partition_, scoring.marginal, scaling, self._names(), n_jobs=self.n_jobs, bounds=bounds
        )
        if subset_scores is None:
            self._warn_larger_blocks(scoring, X, self.partition_)
        return self

    def _check_solver(self) -> None:
        check_solver(self.solver)

    def stability(
        self, X: Any, n: int = 50, *, n_null: int = 20, share: float = 0.5, random_state: RandomState = None
    ) -> Stability:
        """How sure the partition is: the same analysis on `n` random parts of the rows, and on rows without structure.

        Each part holds a `share` of the rows of `X`. On `n_null` further parts every column is permuted by itself,
        which leaves no structure: what subsets score there above their best division is noise. With `share=0.5` and
        kernels, a part costs about a quarter of `fit`.
        """
        score, rows, table = self._parts_of(X)
        return assess(score, rows, table, self.partition_, Parts(n, n_null, share, random_state, self.verbose))

    def _extra_to_archive(self) -> tuple[dict[str, Any], Arrays]:
        header, arrays = super()._extra_to_archive()
        selection, proof = self.selection_.to_archive()
        return header | selection, arrays | over("witness.", proof)

    def _extra_from_archive(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        super()._extra_from_archive(header, arrays)
        self.partition_ = self.density_.partition
        saved = Selection.from_archive(self.partition_, header, under("witness.", arrays))
        self.selection_ = certify_again(self.subset_scores_, saved)
