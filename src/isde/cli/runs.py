"""The folder of a run: written whole or not at all, and described in words."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isde import __version__
from isde.artifacts import MODEL_FILE, load
from isde.cli.output import echo
from isde.cli.trees import tree_lines, tree_summary
from isde.data.checks import finite_batches
from isde.data.readers import read_batches, read_table
from isde.data.readers.request import source_name
from isde.data.table import Table, columns_of_model
from isde.data.words import in_braces, join_names, several
from isde.density_estimator import SCORES_FILE
from isde.errors import CheckpointError, InputError, ISDEError, ResourceError, warn
from isde.files import check_room, whole_file, whole_folder
from isde.fit_record import fingerprint
from isde.inspection import HeldOut, best_partition, held_out, least_correlation, notes, runner_up
from isde.inspection.sentences import FEW_ROWS_CORRELATION
from isde.marginals.bounds import RowsUsed
from isde.run.folder import MANIFEST_FILE, STORE_FILES, WAY_OUT, RunFolder
from isde.run.lock import LOCK_FILE
from isde.scores import SubsetScores
from isde.screening import in_words_of_search
from isde.splits import draw_splits, preset_for, resolve_split
from isde.structure_estimator import StructureEstimator
from isde.tree_estimator import TreeISDE

SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"

WIDEST_LABEL = 60
"""Letters up to which the names of blocks are filled with blanks, so that gains stand below each other."""

PROOFS = {
    "proved": "proved",
    "not checked again": "proved when it was fitted, not checked again",
    "not proved": "NOT proved",
}
"""How the proof of a selection stands, in the words of a summary."""


def check_output(
    folder: Path, *, overwrite: bool, replaceable: frozenset[str] = frozenset({MODEL_FILE, SUMMARY_FILE, REPORT_FILE})
) -> None:
    """Refuse, before any work, a folder that cannot be written, or holds what must not be replaced."""
    _check_names(folder, _names(folder), overwrite=overwrite, replaceable=replaceable)


def _names(folder: Path) -> set[str]:
    """What a folder holds that can be written."""
    try:
        _check_place(folder)
        return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror or error}): write somewhere else.") from error


def _check_names(folder: Path, names: set[str], *, overwrite: bool, replaceable: frozenset[str]) -> None:
    if not names <= replaceable:
        raise InputError(f"{folder} exists and holds other files: give a folder that does not exist yet.")
    if names and not overwrite:
        raise InputError(f"{folder} holds an earlier run: give another folder, or --overwrite.")


def _check_place(folder: Path) -> None:
    if folder.is_file():
        raise InputError(f"{folder} is a file: give a folder that does not exist yet.")
    blocked = next((parent for parent in folder.parents if parent.is_file()), None)
    if blocked is not None:
        raise InputError(f"{blocked} is a file, and no folder fits in it: write somewhere else.")
    check_room(folder)


def check_run(folder: Path, *, overwrite: bool) -> None:
    """The same for a folder that may hold a run to go on with, or one that has just begun: its lock says which."""
    kept = STORE_FILES | {MODEL_FILE, SUMMARY_FILE, SCORES_FILE, REPORT_FILE}
    names = {name for name in _names(folder) if name != LOCK_FILE and not _is_unfinished(name, kept)}
    # Asked for after them: the manifest is the first file of a run. False, too, for a name that no file can have.
    goes_on = os.path.isfile(folder / MANIFEST_FILE)
    _check_names(folder, names, overwrite=overwrite or goes_on, replaceable=kept)


def _is_unfinished(name: str, kept: frozenset[str]) -> bool:
    """Whether `files.whole_file` is at it, or was when it was killed."""
    return name.endswith(".part") and any(name.startswith(f".{whole}.") for whole in kept)


def fit_in_run(model: StructureEstimator, table: Table, run: RunFolder, *, overwrite: bool) -> ResourceError | None:
    """Fit with a run folder to keep scores in; an error of the disk that came after the fit is given back."""
    if overwrite:
        run.clear()
        for name in (MODEL_FILE, SUMMARY_FILE, SCORES_FILE, REPORT_FILE):
            (run.path / name).unlink(missing_ok=True)
    model.checkpoint = run.path
    try:
        model.fit(table)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(WAY_OUT, "give another folder, or --overwrite")) from error
    except ResourceError as error:
        if not hasattr(model, "density_"):
            raise
        return error
    return None


def write_summary(folder: Path, summary: dict[str, Any]) -> ResourceError | None:
    """The summary beside the model, or why it could not be written."""
    path = folder / SUMMARY_FILE
    try:
        with whole_file(path) as file:
            file.write(_json(summary).encode())
    except OSError as error:
        return ResourceError(
            f"{path} cannot be written ({error.strerror or error}): the model is, what it found is shown."
        )
    return None


def write_run(folder: Path, model: StructureEstimator, summary: dict[str, Any]) -> None:
    """The folder of a fitted model."""
    with whole_folder(folder) as staging:
        model.save(staging / MODEL_FILE)
        write_json(staging / SUMMARY_FILE, summary)


def write_json(path: Path, value: Any) -> None:
    path.write_text(_json(value), encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def provenance(model: StructureEstimator, table: Table, options: dict[str, Any]) -> dict[str, Any]:
    """Where a run comes from: version, rows, which of them fitted and scored in each split, options."""
    return {
        "version": __version__,
        "n_rows": len(table.X),
        "seed": options["seed"],
        "split": _split(model, table.X),
        "options": options,
        "fit": asdict(model.fit_record_) if model.fit_record_ is not None else None,
    }


def _split(model: StructureEstimator, X: NDArray[np.float64]) -> dict[str, Any]:
    """How rows were split, and how many fitted and scored each time; with a penalty all of them did both."""
    if model.penalty is not None:
        return {"splitter": None, "fit_rows": [len(X)], "score_rows": [len(X)]}
    splitter = resolve_split(preset_for(model.split, len(X)), model.random_state)
    parts = draw_splits(splitter, X, model.max_split_rows)
    return {
        "splitter": repr(splitter),
        "fit_rows": [len(fit) for fit, _ in parts],
        "score_rows": [len(score) for _, score in parts],
    }


def read_summary(run: str) -> dict[str, Any]:
    """What the summary of a run says; nothing for a model file by itself."""
    path = Path(run) / SUMMARY_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): fit again, or give the model file alone.") from None
    return found if isinstance(found, dict) else {}


def warn_other_rows(run: str, table: Table) -> None:
    """Warn where a table is not the one that a run was fitted on, as far as the run remembers."""
    fitted = (read_summary(run).get("fit") or {}).get("fingerprint")
    if fitted not in (None, fingerprint(table.X, table.names)):
        warn(
            f"These are other rows than those {run} was fitted on: what follows is about how its blocks stand in them. "
            "For how sure the blocks are, give the file that was fitted."
        )


def held_out_of(model: StructureEstimator, X: Any) -> dict[str, Any] | None:
    """The density beside that of its columns alone; None where there are too few rows to leave some out."""
    try:
        found: HeldOut = held_out(model, X)
    except (ValueError, ISDEError):  # or where the best blocks, beside a tree, cannot be proved
        return None
    if not math.isfinite(found.error):
        return None
    return {name: value for name, value in asdict(found).items() if value is not None}


def _check_finished(path: str) -> None:
    folder = Path(path)
    if (folder / MANIFEST_FILE).is_file() and not (folder / MODEL_FILE).is_file():
        raise InputError(f"{path} holds a run that has not ended: the same isde fit goes on with it.")


def load_model(path: str) -> StructureEstimator:
    _check_finished(path)
    model = load(path)
    if not isinstance(model, StructureEstimator):
        raise InputError(f"{path} holds no fitted model: give a folder made by isde fit.")
    return model


def read_for(model: StructureEstimator, data: Path, **options: Any) -> Table:
    """The columns of a model, in its order, from a file that may hold others."""
    names = model.density_.names
    table = read_table(data, preferred=names, **options)  # what else the file holds may be text, or missing
    return columns_of_model(table, names, source_name(data))


def batches_for(model: StructureEstimator, data: Path, **options: Any) -> Iterator[Table]:
    """`read_for`, some rows at a time, all of them finite numbers: the end tells of any that were not."""
    names = model.density_.names
    batches = read_batches(data, preferred=names, **options)
    return finite_batches(columns_of_model(table, names, source_name(data)) for table in batches)


def load_scores(path: str) -> SubsetScores:
    """The score table of a run, or one saved by itself."""
    own, model = Path(path) / SCORES_FILE, Path(path) / MODEL_FILE
    if own.is_file() and not model.is_file():
        return cast(SubsetScores, load(own))
    _check_finished(path)
    found = load(path)
    if isinstance(found, SubsetScores):
        return found
    if isinstance(found, StructureEstimator):
        return found.subset_scores_
    raise InputError(f"{path} holds no subset scores: give a folder made by isde fit, or a saved score table.")


def summarize(model: StructureEstimator) -> dict[str, Any]:
    """What a run found, as plain JSON."""
    scores, selection = model.selected_from_, model.selection_
    if isinstance(model, TreeISDE):
        found, rank, second, charged = tree_summary(model), 1, best_partition(scores), scores.charged_by_edge()
    else:
        found, rank, second, charged = {"blocks": _blocks(model)}, selection.rank, runner_up(scores), scores
    return found | {
        "structure": "tree" if isinstance(model, TreeISDE) else "blocks",
        "score": selection.score,
        "objective": selection.objective,
        "bound": _finite(selection.bound),
        "is_optimal": selection.is_optimal,
        "rank": rank,
        "proof": selection.proof,
        "solver": selection.solver,
        "independence_score": math.fsum(scores[(c,)] for c in range(scores.n_columns)),
        # Of partitions the next best; beside a tree the best partition.
        "runner_up": None
        if second is None
        else {
            "below": selection.objective - math.fsum(charged.objective(block) for block in second.partition),
            "blocks": [[scores.names[c] for c in block] for block in second.partition],
        },
        "n_columns": scores.n_columns,
        "max_block_size": scores.max_block_size,
        "n_subsets": len(scores),
        "n_not_scored": scores.subsets.n_missing,
        "search": None if scores.is_exhaustive else in_words_of_search(scores),
        "marginal": str(model.marginal),
        "alpha": model.alpha,
        "rows_used": None if model.rows_used_ is None else asdict(model.rows_used_),
        "least_correlation": least_correlation(scores),
        "notes": notes(model),
    }


def _blocks(model: StructureEstimator) -> list[dict[str, Any]]:
    scores = model.subset_scores_
    position = [scores.subsets.index(block) for block in model.partition_]
    return [
        {
            "columns": list(names),
            "score": scores[block],
            "gain": scores.gain(block),
            "gain_error": _number(scores.gain_errors[at]),
            "chance": float(scores.charges[at]),
            "bandwidth": _number(h),
        }
        for names, block, at, h in zip(model.block_names_, model.partition_, position, model.bandwidths_, strict=True)
    ]


def _finite(value: float) -> float | None:
    """JSON has no infinities."""
    return value if math.isfinite(value) else None


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else float(value)


def print_summary(summary: dict[str, Any]) -> None:
    """The structure with its gains, the proof, and what else to know."""
    is_tree = summary["structure"] == "tree"
    what = several(len(summary["cliques"]), "clique") if is_tree else several(len(summary["blocks"]), "block")
    echo(
        f"{what} of {several(summary['n_columns'], 'column')} (largest allowed {summary['max_block_size']}, "
        f"{several(summary['n_subsets'], 'subset')} scored, marginal {summary['marginal']})"
    )
    for line in tree_lines(summary) if is_tree else _block_lines(summary):
        echo(line)
    if 0 < summary["least_correlation"] <= FEW_ROWS_CORRELATION:  # where it is higher, a note says so
        echo(f"  a correlation below about {summary['least_correlation']:.2f} is missed more often than found")
    for line in (*_proof(summary), *_rows_used(summary), *_held_out(summary.get("held_out")), *summary["notes"]):
        echo(line)


def _block_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Blocks with gains, largest first."""
    blocks = sorted(summary["blocks"], key=lambda block: -block["gain"])
    together = [block for block in blocks if len(block["columns"]) > 1]
    alone = [block["columns"][0] for block in blocks if len(block["columns"]) == 1]
    labels = [join_names(block["columns"]) for block in together]
    width = min(max(map(len, labels), default=0), WIDEST_LABEL)
    for block, label in zip(together, labels, strict=True):
        yield f"  {label:<{width}}   {_gain(block)}"
    if alone:
        yield f"  alone: {join_names(alone)}"


def _gain(block: dict[str, Any]) -> str:
    error = "" if block["gain_error"] is None else f" +- {block['gain_error']:.4f}"
    chance = f", chance gives {block['chance']:.4f}" if block["chance"] else ""
    bandwidth = "" if block["bandwidth"] is None else f"   bandwidth {block['bandwidth']:.4g}"
    return f"gain {block['gain']:8.4f}{error} nats{chance}{bandwidth}"


def _proof(summary: dict[str, Any]) -> Iterator[str]:
    """Of what it is the best, and by how much."""
    charged = summary["objective"] != summary["score"]
    less = f", {summary['objective']:.6f} less what chance gives" if charged else ""
    bound = "" if summary["bound"] is None else f", bound {summary['bound']:.6f}"
    what = "tree" if summary["structure"] == "tree" else "partition"
    place = f"the best {what}" if summary["rank"] == 1 else f"number {summary['rank']} of the {what}s"
    if summary["proof"] == "not proved":
        place = f"the best {what} found"
    if summary["search"] is not None:
        yield f"not exhaustive: {summary['search']}"
        place += " into scored blocks"
    yield (
        f"{place} for these scores, {PROOFS[summary['proof']]}: score {summary['score']:.6f}{less}{bound} "
        f"({summary['solver']}); independence {summary['independence_score']:.6f}"
    )
    if summary["runner_up"] is not None and what == "tree":
        blocks = " ".join(in_braces(block) for block in summary["runner_up"]["blocks"] if len(block) > 1)
        below = f"{summary['runner_up']['below']:.6f}"
        how_far = "as good" if float(below) == 0 else f"{below} below"
        yield f"the best partition is {how_far}: {blocks or 'all columns alone'}"
    elif summary["runner_up"] is not None:
        yield f"the next best is {summary['runner_up']['below']:.6f} below: {_difference(summary)}"


def _difference(summary: dict[str, Any]) -> str:
    """What tells the next best partition from the best: a block that it has, or else one that it has not."""
    found = [block["columns"] for block in summary["blocks"]]
    second = summary["runner_up"]["blocks"]
    other = [block for block in second if len(block) > 1 and block not in found]
    apart = [block for block in found if block not in second]
    return f"{'with' if other else 'without'} {' '.join(map(in_braces, other or apart))}"


def _rows_used(summary: dict[str, Any]) -> Iterator[str]:
    """Of many rows, those that made the density."""
    if summary["rows_used"] is not None:
        used = RowsUsed(**summary["rows_used"])
        if not used.is_all:
            yield f"densities learned from {used}"


def _held_out(found: dict[str, Any] | None) -> Iterator[str]:
    if found is not None:
        yield (
            f"density on {found['n_scored']:,} rows it was not fitted on: {found['blocks']:.4f} nats by blocks, "
            f"{found['independence']:.4f} by columns alone: {found['gain']:+.4f} +- {found['error']:.4f}"
        )
    if found is not None and "tree" in found:
        yield (
            f"by the tree {found['tree']:.4f} nats there, over the best blocks {found['tree_gain']:+.4f} +- "
            f"{found['tree_error']:.4f}: {_plausible(found)}"
        )


def _plausible(found: dict[str, Any]) -> str:
    """Whether blocks would do."""
    if found["tree_gain"] > 2 * found["tree_error"]:
        return "independent blocks lose what lies between them"
    return "independent blocks do as well"
