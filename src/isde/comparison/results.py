"""What is known of methods once they are fitted: log-densities of the same validation rows, and what they say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.comparison.draws import Draw
from isde.density import Scaling

LOWEST_LOG = -745.1332191019412
"""log(2**-1075), half the smallest number of float64: a density with this logarithm, or a lower one, is 0.0 there."""

SCALE_NOTE = "nats per row, columns rescaled to [0, 1] by the range of the training rows"


def underflows(log_density: ArrayLike) -> NDArray[np.bool_]:
    """Whether the density of a row is 0.0 in float64: the rows of extremely low density, which the paper drops.

    >>> underflows([-745.2, -745.1, -np.inf, 3.0]).tolist()
    [True, False, True, False]
    """
    return np.asarray(log_density) <= LOWEST_LOG


@dataclass(frozen=True, eq=False)
class MethodFit(FrozenArrays):
    """One method fitted to one draw."""

    log_densities: Vector  # of `Draw.rows`, every validation row once
    fit_seconds: float
    score_seconds: float  # for all of `Draw.rows`
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """One method on one validation sample."""

    method: str
    fit: int  # which draw of training rows
    repeat: int  # which validation sample of it
    mean_log_likelihood: float  # nats per row, every row counted; -inf where a row has density zero
    paper_mean_log_likelihood: float  # the rows that underflow dropped before averaging; NaN where none is left
    n_rows: int  # of the sample
    n_underflow: int  # rows of extremely low density: those that the paper's way drops
    n_zero: int  # of these, rows whose log-density is -inf
    fit_seconds: float
    score_seconds: float  # for all validation rows of this draw


@dataclass(frozen=True)
class Difference:
    """What one method has over another on the same rows."""

    mean: float  # nats per row
    standard_error: float


@dataclass(frozen=True)
class MethodSummary:
    """One method over all validation samples."""

    method: str
    mean_log_likelihood: float  # over samples, every row counted
    sd: float  # of a sample's mean log-likelihood, over samples
    difference: float  # to the best method, on the same rows; 0 for the best itself
    difference_standard_error: float  # see `Comparison.difference`
    paper_mean_log_likelihood: float
    n_rows: int  # distinct validation rows, added over fits
    n_underflow: int  # of these
    n_zero: int  # of these
    fit_seconds: float  # mean over fits
    score_seconds: float  # mean over fits, for all validation rows of a fit


@dataclass(frozen=True, eq=False)
class Comparison:
    """Log-densities of the same validation rows under several methods, and what they say."""

    draws: list[Draw]
    scalings: list[Scaling]  # of each draw: the range of its training rows
    fitted: dict[str, list[MethodFit]]  # one for each draw; methods in the order given
    failures: dict[str, str]  # methods that could not be compared, and why

    @property
    def methods(self) -> list[str]:
        """The methods compared, the best mean log-likelihood first."""
        return sorted(self.fitted, key=lambda method: -float(self.samples(method).mean()))

    def samples(self, method: str) -> Matrix:
        """Mean log-likelihood of each validation sample, every row counted, (fits, repeats)."""
        return np.array([values.mean(axis=1) for values in self._values(method)])

    def paper_samples(self, method: str) -> Matrix:
        """The same, with the rows whose density underflows dropped before averaging; NaN where none is left."""
        return np.array([[_mean_without_underflow(sample) for sample in values] for values in self._values(method)])

    def _values(self, method: str) -> list[Matrix]:
        """Log-densities of the rows of each sample, for each draw."""
        return [one.log_densities[draw.positions] for draw, one in self._pairs(method)]

    def _pairs(self, method: str) -> list[tuple[Draw, MethodFit]]:
        return list(zip(self.draws, self.fitted[method], strict=True))

    def difference(self, method: str, reference: str) -> Difference:
        """Mean over samples of what `method` has over `reference` on the same rows, with its standard error.

        After one fit, the standard error is that over validation rows, given the fits: the spread of the difference
        from row to row, divided by the root of the effective number of rows. Samples overlap, so that the spread over
        samples would promise too much: 20 samples of 2,000 from 26,721 rows count as 16,500 rows, not 40,000. After
        several fits it is the spread of the mean difference over fits, divided by the root of their number; this one
        holds for new training rows too, though the training rows of two fits overlap.
        """
        means = self.samples(method), self.samples(reference)
        with np.errstate(invalid="ignore"):  # -inf from -inf
            by_fit = (means[0] - means[1]).mean(axis=1)
            if len(self.draws) > 1:
                error = float(by_fit.std(ddof=1) / np.sqrt(len(by_fit)))
            else:
                own, other = (self.fitted[name][0].log_densities for name in (method, reference))
                error = _weighted_error(own - other, self.draws[0].shares)
        return Difference(float(by_fit.mean()), error)

    def records(self) -> list[Record]:
        """One record for each method, fit and repeat; methods in the order given."""
        return [record for method in self.fitted for record in self._records_of(method)]

    def _records_of(self, method: str) -> list[Record]:
        means, paper = self.samples(method), self.paper_samples(method)
        return [
            Record(
                method=method,
                fit=f,
                repeat=r,
                mean_log_likelihood=float(means[f, r]),
                paper_mean_log_likelihood=float(paper[f, r]),
                n_rows=len(sample),
                n_underflow=int(underflows(sample).sum()),
                n_zero=int(np.isneginf(sample).sum()),
                fit_seconds=self.fitted[method][f].fit_seconds,
                score_seconds=self.fitted[method][f].score_seconds,
            )
            for f, values in enumerate(self._values(method))
            for r, sample in enumerate(values)
        ]

    def summaries(self) -> list[MethodSummary]:
        """One summary for each method, the best first."""
        methods = self.methods
        return [self._summary(method, methods[0]) for method in methods]

    def _summary(self, method: str, best: str) -> MethodSummary:
        means, fits = self.samples(method), self.fitted[method]
        values = np.concatenate([one.log_densities for one in fits])
        with np.errstate(invalid="ignore"):
            sd = float(means.std(ddof=1)) if means.size > 1 else np.nan
        difference = Difference(0.0, 0.0) if method == best else self.difference(method, best)
        return MethodSummary(
            method=method,
            mean_log_likelihood=float(means.mean()),
            sd=sd,
            difference=difference.mean,
            difference_standard_error=difference.standard_error,
            paper_mean_log_likelihood=float(self.paper_samples(method).mean()),
            n_rows=len(values),
            n_underflow=int(underflows(values).sum()),
            n_zero=int(np.isneginf(values).sum()),
            fit_seconds=float(np.mean([one.fit_seconds for one in fits])),
            score_seconds=float(np.mean([one.score_seconds for one in fits])),
        )

    def warnings(self) -> dict[str, list[str]]:
        """What the methods warned of, each text with the methods that said it."""
        said: dict[str, list[str]] = {}
        for method, fits in self.fitted.items():
            for text in dict.fromkeys(text for one in fits for text in one.warnings):
                said.setdefault(text, []).append(method)
        return said

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON; numbers that are not finite become None."""
        repeats, validation_rows = self.draws[0].samples.shape
        return {
            "scale": SCALE_NOTE,
            "paper_way": f"rows whose density underflows to zero (log-density below {LOWEST_LOG:.2f}) are dropped",
            "fits": len(self.draws),
            "repeats": repeats,
            "train_rows": len(self.draws[0].train),
            "validation_rows": validation_rows,
            # Added to a log-likelihood here, it gives the one in the units of the data.
            "to_data_units": [float(scaling.log_jacobian.sum()) for scaling in self.scalings],
            "methods": [_as_json(summary) for summary in self.summaries()],
            "failures": [{"method": method, "message": text} for method, text in self.failures.items()],
            "warnings": [{"methods": methods, "message": text} for text, methods in self.warnings().items()],
            "records": [_as_json(record) for record in self.records()],
        }


def _mean_without_underflow(sample: Vector) -> float:
    left = sample[~underflows(sample)]
    return float(left.mean()) if left.size else np.nan


def _weighted_error(differences: Vector, shares: Vector) -> float:
    """Standard error of  sum_i shares_i * differences_i  for independent rows: their sd times root(sum shares^2)."""
    if len(differences) < 2:
        return np.nan
    return float(differences.std(ddof=1) * np.sqrt((shares**2).sum()))


def _as_json(result: Record | MethodSummary) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in asdict(result).items()
    }
