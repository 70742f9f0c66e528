"""All numbers of a page, as plain JSON: what `isde report --json` prints and what the page is written from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from isde import __version__
from isde.data.checks import as_table
from isde.data.table import columns_of_model
from isde.errors import ISDEError, ISDEWarning
from isde.fit_record import fingerprint, versions
from isde.inspection import (
    BlockShape,
    blame,
    block_gains,
    block_shapes,
    blocks_of,
    group_gains,
    held_out,
    hierarchy,
    is_tree,
    least_correlation,
    notes,
    pair_gains,
    plausibility,
    runners_up,
    torn_columns,
)
from isde.inspection.hierarchy import correlation_worth
from isde.inspection.shapes import MASSES, QUANTILES
from isde.partitions import count_partitions
from isde.screening import in_words_of_search
from isde.structure_estimator import StructureEstimator
from isde.tree_stability import TreeStability

MOST_PAIRS = 6
"""Pictures of a block: of more pairs, those that gain most."""

LOWEST_SHARE = 0.01
FEWEST_COUNTED = 3
"""Cells with fewer rows of the data than this are left out: a cell with one row is a row."""

DIGITS = 5
"""Significant digits of curves and surfaces, which a picture does not show."""


def report_numbers(
    model: StructureEstimator,
    X: Any = None,
    *,
    about: Mapping[str, Any] | None = None,
    stability: Any = None,
    comparison: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that a page says of a fitted model.

    With rows `X`: the data beside the density, in cells, which block makes rows unlikely, and the held-out comparison
    with independence. `about` is the summary of a run, `comparison` the result of `isde compare`.
    """
    known = dict(about or {})
    rows = None if X is None else columns_of_model(as_table(X, model.density_.names), model.density_.names, "X")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ISDEWarning)  # said when the model was fitted, and again on the page
        found = {
            "isde": __version__,
            "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "estimator": type(model).__name__,
            "structure": "tree" if is_tree(model) else "blocks",
            "data": known.get("data"),
            "columns": list(model.density_.names),
            "n_blocks": len(blocks_of(model)),
            "blocks": _blocks(model, rows),
            "groups": _groups(model),
            "hangs_on": _hangs_on(model),
            "pairs": _pairs(model),
            "proof": _proof(model),
            "runners_up": _runners_up(model),
            "plausibility": _plausibility(model),
            "least_correlation": least_correlation(model.subset_scores_),
            "held_out": _held_out(model, rows, known),
            "low_rows": None if rows is None else _low_rows(model, rows),
            "stability": None if stability is None else _stability(stability),
            "comparison": None if comparison is None else _comparison(comparison),
            "warnings": _warnings(model, known),
            "fit": _fit(model, rows, known),
        }
    return _as_json(found)


def _blocks(model: StructureEstimator, rows: Any) -> list[dict[str, Any]]:
    torn = torn_columns(model)
    shapes = block_shapes(model, rows, max_pairs=MOST_PAIRS)
    fitted = dict(zip(blocks_of(model), model.density_.blocks, strict=True))
    return [
        {
            "columns": list(gain.names),
            "positions": list(gain.columns),
            "score": gain.score,
            "gain": gain.gain,
            "error": gain.error,
            "chance": gain.chance,
            "family": fitted[gain.columns].kind,
            "bandwidth": float(fitted[gain.columns].bandwidth),
            "torn": [
                {"column": one.name, "loss": one.loss, "chance": one.chance}
                for one in torn
                if one.block == gain.columns
            ],
            "shape": _shape(shape),
        }
        for gain, shape in zip(block_gains(model), shapes, strict=True)
    ]


def _groups(model: StructureEstimator) -> list[dict[str, Any]]:
    """Columns that hang together: a block each, or, in a tree, cliques that share columns."""
    blocks = blocks_of(model)
    return [
        {
            "positions": list(group),
            "columns": [model.density_.names[c] for c in group],
            "gain": gain,
            "blocks": [i for i, block in enumerate(blocks) if set(block) <= set(group)],
        }
        for group, gain in zip(model.partition_, group_gains(model), strict=True)
    ]


def _hangs_on(model: StructureEstimator) -> list[dict[str, Any]]:
    """In a tree, which clique hangs on which, and by which columns; blocks hang on nothing."""
    blocks, parents = blocks_of(model), model.density_.tree.parents if is_tree(model) else ()
    return [
        {
            "block": i,
            "on": parent,
            "columns": [model.density_.names[c] for c in blocks[i] if c in blocks[parent]],
        }
        for i, parent in enumerate(parents)
        if parent >= 0
    ]


def _shape(shape: BlockShape) -> dict[str, Any]:
    size = len(shape.block)
    return {
        "exact": shape.exact,
        "n_pairs": size * (size - 1) // 2,
        "quantiles": list(QUANTILES),
        "masses": list(MASSES),
        "columns": [
            {
                "column": one.name,
                "points": [one.points[0], one.points[-1]],
                "density": _rounded(one.density),
                "quantiles": _rounded(one.quantiles),
                "counts": _counted(one.counts),
                "n_outside": one.n_outside,
            }
            for one in shape.columns
        ],
        "pairs": [
            {
                "columns": list(one.names),
                "positions": list(one.columns),
                "x": [one.x[0], one.x[-1]],
                "y": [one.y[0], one.y[-1]],
                "density": _rounded(one.density),
                "levels": _rounded(one.levels),
                "fifths": _rounded(one.fifths),
                "correlation": one.correlation,
                "counts": _counted(one.counts),
                "n_outside": one.n_outside,
            }
            for one in shape.pairs
        ],
    }


def _counted(counts: Any) -> list[Any] | None:
    """Rows in cells; a cell with few of them counts as empty."""
    return None if counts is None else np.where(counts < FEWEST_COUNTED, 0, counts).astype(int).tolist()


def _pairs(model: StructureEstimator) -> dict[str, Any]:
    """Every pair once, the strongest first, and the order in which columns are drawn."""
    scores = model.subset_scores_
    pairs, tree = pair_gains(scores, blocks_of(model)), hierarchy(scores, model.partition_)
    group_of = {column: i for i, group in enumerate(model.partition_) for column in group}
    scored = scores.max_block_size > 1 and scores.n_columns > 1
    first, second = (side.tolist() for side in np.triu_indices(scores.n_columns if scored else 0, 1))
    listed = [
        {
            "positions": [i, j],
            "gain": pairs.gains[i, j],
            "error": pairs.errors[i, j],
            "chance": pairs.chances[i, j],
            "correlation": correlation_worth(pairs.gains[i, j]),
            "inside": bool(pairs.inside[i, j]),
            "apart": group_of[i] != group_of[j],  # in a tree, others hang together through columns between them
            "passes": bool(pairs.passes[i, j]),
        }
        for i, j in zip(first, second, strict=True)
    ]
    listed.sort(key=lambda pair: -np.nan_to_num(pair["gain"], nan=-np.inf))
    return {"order": list(tree.order), "merges": [asdict(merge) for merge in tree.merges], "listed": listed}


def _proof(model: StructureEstimator) -> dict[str, Any]:
    scores, found = model.selected_from_, model.selection_
    alone = math.fsum(scores[(c,)] for c in range(scores.n_columns))
    return {
        "score": found.score,
        "objective": found.objective,
        "bound": found.bound,
        "proof": found.proof,
        "rank": found.rank,
        "solver": found.solver,
        "independence": alone,
        "gain": math.fsum(group_gains(model)),
        "n_subsets": len(scores),
        "search": None if scores.is_exhaustive else in_words_of_search(scores),
        # A string: the number may be larger than any that a reader of JSON knows.
        "n_partitions": None if is_tree(model) else str(count_partitions(scores.n_columns, scores.max_block_size)),
    }


def _runners_up(model: StructureEstimator) -> list[dict[str, Any]]:
    names = model.density_.names
    return [
        {
            "rank": one.rank,
            "below": one.below,
            "edits": one.edits,
            "gone": [[names[c] for c in block] for block in one.gone],
            "new": [[names[c] for c in block] for block in one.new],
        }
        for one in runners_up(model)
    ]


def _plausibility(model: StructureEstimator) -> dict[str, Any]:
    found = plausibility(model)
    largest = found.largest_left
    return asdict(found) | {
        "largest_left": None if largest is None else asdict(largest) | {"correlation": correlation_worth(largest.gain)}
    }


def _held_out(model: StructureEstimator, rows: Any, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """As the run has it, or from the rows; None where neither is there, or too few rows are."""
    if known.get("held_out") is not None:
        return dict(known["held_out"])
    if rows is None:
        return None
    try:
        return asdict(held_out(model, rows))
    except (ValueError, ISDEError):  # or where the best blocks, beside a tree, cannot be proved
        return None


def _low_rows(model: StructureEstimator, rows: Any) -> dict[str, Any]:
    names, counts = model.density_.names, blame(model, rows, LOWEST_SHARE)
    blocks = [{"columns": [names[c] for c in block], "rows": n} for block, n in counts.items()]
    return {"share": LOWEST_SHARE, "n_rows": sum(counts.values()), "blocks": blocks}


def _stability(found: Any) -> dict[str, Any]:
    """Of blocks; of a tree, how often two columns share a clique and how often the same tree comes again."""
    shared = {"n_resamples": len(found.gains), "n_null": len(found.noise), "together": _rounded(found.together)}
    if isinstance(found, TreeStability):
        names, cliques = found.names, zip(found.tree.cliques, found.clique_confidence, strict=True)
        blocks = [
            {"columns": [names[c] for c in clique], "in_resamples": share, "p_value": None} for clique, share in cliques
        ]
        nothing = {"simplest": [], "is_simplest": True, "simplest_error": None}
        return shared | nothing | {"same_partition": found.same_tree, "blocks": blocks}
    return shared | {
        "same_partition": found.same_partition,
        "blocks": [
            {
                "columns": [found.names[c] for c in block],
                "in_resamples": found.block_confidence[i],
                "p_value": found.block_p_values[i],
            }
            for i, block in enumerate(found.partition)
        ],
        "simplest": [[found.names[c] for c in block] for block in found.simplest],
        "is_simplest": found.simplest == found.partition,
        "simplest_error": found.simplest_error,
    }


def _comparison(result: Mapping[str, Any]) -> dict[str, Any]:
    """Of the result of `isde compare`, what is said of each method."""
    kept = ("method", "mean_log_likelihood", "sd", "difference", "difference_standard_error", "n_zero", "fit_seconds")
    return {
        "scale": result["scale"],
        "train_rows": result["train_rows"],
        "validation_rows": result["validation_rows"],
        "methods": [{name: method[name] for name in kept} for method in result["methods"]],
        "failures": [dict(failure) for failure in result["failures"]],
    }


def _warnings(model: StructureEstimator, known: Mapping[str, Any]) -> list[str]:
    """What the fit said, and what a reader should know; each once."""
    record = model.fit_record_
    said = record.warnings if record is not None else (known.get("fit") or {}).get("warnings", ())
    return list(dict.fromkeys([*said, *notes(model)]))


def _fit(model: StructureEstimator, rows: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """What was fitted and how: as remembered by the model, else by its run, else as far as it can be told."""
    record = model.fit_record_
    remembered = asdict(record) if record is not None else dict(known.get("fit") or {})
    found = {
        "n_rows": remembered.get("n_rows", known.get("n_rows")),
        "fingerprint": remembered.get("fingerprint"),
        "seconds": remembered.get("seconds"),
        "processor_seconds": remembered.get("processor_seconds"),
        "versions": remembered.get("versions"),
        "versions_now": versions(),
        "split": known.get("split"),
        "parameters": _parameters(model),
        "rows_given": None,
    }
    if rows is not None:
        given = fingerprint(rows.X, rows.names)
        same = None if found["fingerprint"] is None else given == found["fingerprint"]
        found["rows_given"] = {"n_rows": len(rows.X), "fingerprint": given, "same": same}
    return found


def _parameters(model: StructureEstimator) -> dict[str, Any]:
    """How the model was asked for, but for the folder it was kept in: a path of this machine is nobody's business."""
    params = model.get_params(deep=False).items()
    return {name: _parameter(value) for name, value in params if name != "checkpoint"}


def _parameter(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool | None) else repr(value)


def _rounded(values: Any) -> list[Any]:
    """Significant digits: a tail of a density is as well kept as its top."""
    if np.ndim(values) > 1:
        return [_rounded(row) for row in values]
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _as_json(value: Any) -> Any:
    """Plain JSON: no NumPy, and None for numbers that JSON has not."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
