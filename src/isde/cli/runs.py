"""The folder of a run: written whole or not at all, and described in words."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from isde.artifacts import MODEL_FILE, load
from isde.errors import InputError
from isde.estimator import ISDE
from isde.scores import SubsetScores

SUMMARY_FILE = "summary.json"


def check_output(
    folder: Path, *, overwrite: bool, replaceable: frozenset[str] = frozenset({MODEL_FILE, SUMMARY_FILE})
) -> None:
    """Refuse, before any work, a folder that cannot be written, or holds what must not be replaced."""
    try:
        _check_place(folder)
        names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror or error}): write somewhere else.") from error
    if not names <= replaceable:
        raise InputError(f"{folder} exists and holds other files: give a folder that does not exist yet.")
    if names and not overwrite:
        raise InputError(f"{folder} holds an earlier run: give another folder, or --overwrite.")


def _check_place(folder: Path) -> None:
    if folder.is_file():
        raise InputError(f"{folder} is a file: give a folder that does not exist yet.")
    if folder.parent.is_file():
        raise InputError(f"{folder.parent} is a file, and no folder fits in it: write somewhere else.")
    if not folder.parent.is_dir():
        raise InputError(f"{folder.parent} does not exist: create it, or write somewhere else.")
    _staging(folder).rmdir()  # permissions alone do not tell: the disk may be read-only, the name too long


def _staging(folder: Path) -> Path:
    """A new folder beside `folder`, to take its place."""
    return Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))


def write_run(folder: Path, model: ISDE, summary: dict[str, Any]) -> None:
    """The folder of a fitted model."""

    def fill(staging: Path) -> None:
        model.save(staging / MODEL_FILE)
        write_json(staging / SUMMARY_FILE, summary)

    write_folder(folder, fill)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fill a new folder beside `folder`, then put it in its place."""
    staging = _staging(folder)
    try:
        fill(staging)
        staging.chmod(0o755)
        earlier = folder.with_name(f"{staging.name}.old")
        if folder.exists():
            os.replace(folder, earlier)
        try:
            os.replace(staging, folder)
        except BaseException:
            if earlier.exists():
                os.replace(earlier, folder)
            raise
        shutil.rmtree(earlier, ignore_errors=True)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def load_model(path: str) -> ISDE:
    model = load(path)
    if not isinstance(model, ISDE):
        raise InputError(f"{path} holds no fitted model: give a folder made by isde fit.")
    return model


def load_scores(path: str) -> SubsetScores:
    """The score table of a run, or one saved by itself."""
    found = load(path)
    if isinstance(found, SubsetScores):
        return found
    if isinstance(found, ISDE):
        return found.subset_scores_
    raise InputError(f"{path} holds no subset scores: give a folder made by isde fit, or a saved score table.")


def summarize(model: ISDE) -> dict[str, Any]:
    """What a run found, as plain JSON."""
    scores, selection = model.subset_scores_, model.selection_
    blocks = [
        {
            "columns": list(names),
            "score": scores[block],
            "gain": scores.gain(block),
            "bandwidth": None if math.isnan(h) else float(h),
        }
        for names, block, h in zip(model.block_names_, model.partition_, model.bandwidths_, strict=True)
    ]
    return {
        "blocks": blocks,
        "score": selection.score,
        "bound": selection.bound,
        "is_optimal": selection.is_optimal,
        "solver": selection.solver,
        "independence_score": math.fsum(scores[(c,)] for c in range(scores.n_columns)),
        "n_columns": scores.n_columns,
        "max_block_size": scores.max_block_size,
        "n_subsets": len(scores),
        "marginal": str(model.marginal),
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Blocks with gains, largest first, and the proof."""
    blocks = sorted(summary["blocks"], key=lambda block: -block["gain"])
    together = [block for block in blocks if len(block["columns"]) > 1]
    alone = [block["columns"][0] for block in blocks if len(block["columns"]) == 1]
    click.echo(
        f"{_several(len(blocks), 'block')} of {_several(summary['n_columns'], 'column')} "
        f"(largest allowed {summary['max_block_size']}, {summary['n_subsets']:,} subsets scored, marginal "
        f"{summary['marginal']})"
    )
    labels = [", ".join(block["columns"]) for block in together]
    width = max(map(len, labels), default=0)
    for block, label in zip(together, labels, strict=True):
        bandwidth = "" if block["bandwidth"] is None else f"   bandwidth {block['bandwidth']:.4g}"
        click.echo(f"  {label:<{width}}   gain {block['gain']:8.4f} nats{bandwidth}")
    if alone:
        click.echo(f"  alone: {', '.join(alone)}")
    proof = "proved optimal" if summary["is_optimal"] else "NOT proved optimal"
    click.echo(
        f"{proof}: score {summary['score']:.9f}, bound {summary['bound']:.9f} ({summary['solver']}); "
        f"independence {summary['independence_score']:.9f}"
    )


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
