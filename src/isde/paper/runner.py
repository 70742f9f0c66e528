"""Runs an item step by step: each finished repetition is on disk at once, and a rerun goes on where it stopped.

Files of a run, in the output folder:

- `<name>.csv`          the rows; the same command writes the same bytes (but for items that measure running times)
- `<name>.times.csv`    what each step took: times differ from run to run, and stand apart
- `<name>.json`         settings, input file, versions, machine
- `<name>.png`          the figure, where the paper has one
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import time
import warnings
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from isde import __version__
from isde.errors import InputError, ISDEWarning
from isde.files import whole_file
from isde.paper.item import Item, Results, Row, Settings, Step
from isde.progress import say

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def run_item(item: Item, settings: Settings, folder: Path, *, overwrite: bool = False, quiet: bool = False) -> Results:
    """Run what is not on disk yet, and return everything."""
    described = _fingerprint(item, settings)
    files = _Files(folder, item.file_name(settings))
    if overwrite:
        files.remove()
    files.check(described)
    finished = load_results(folder, files.name)
    if finished is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ISDEWarning)  # advice to an analyst; an experiment is what it is
            finished = _run_steps(item.steps(settings), files, described, quiet)
    draw_figure(item, finished, files.path("png"))
    return finished


def _run_steps(steps: Sequence[Step], files: _Files, described: Row, quiet: bool) -> Results:
    rows, times = read_rows(files.path("csv")), read_rows(files.path("times.csv"))
    if not rows:
        times = []
        files.write_about(described, is_complete=False)
    done = {_as_text(row, steps[0].key) for row in rows}
    for number, step in enumerate(steps, start=1):
        if _as_text(step.key, step.key) in done:
            continue
        start = time.perf_counter()
        outcome = step.run(rows)
        rows += [_rounded(step.key | row) for row in outcome.rows]
        times = _without(times, step.key)  # of a step that was stopped between the two files
        times += [_rounded(step.key | {"what": what, "seconds": s}) for what, s in outcome.seconds.items()]
        files.write(rows, times)
        if not quiet:
            label = ", ".join(f"{name} {value}" for name, value in step.key.items())
            say(f"{files.name}: {number} of {len(steps)}: {label} ({time.perf_counter() - start:.1f} s)")
    files.write_about(described, is_complete=True)
    return Results(files.name, described, rows, times)


def draw_figure(item: Item, results: Results, path: Path) -> None:
    """The item's figure, where it has one; a word where matplotlib is missing."""
    if item.draw is None:
        return
    try:
        from matplotlib.figure import Figure  # no pyplot: no window, no global state
    except ImportError:
        say(f'{path.stem}: no figure without matplotlib (pip install "isde[plot]")')
        return
    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    item.draw(results, figure)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=130, metadata={"Software": None})
    replace_file(path, image.getvalue())


def load_results(folder: Path, name: str) -> Results | None:
    """What is on disk of a complete run; None for one that is not there, or not finished."""
    files = _Files(folder, name)
    about, rows = files.about(), read_rows(files.path("csv"))
    if about is None or not about["is_complete"] or not rows:
        return None
    return Results(name, about["settings"], rows, read_rows(files.path("times.csv")))


def about_run(folder: Path, name: str) -> Row:
    """Settings, versions and machine of a run."""
    about = _Files(folder, name).about()
    if about is None:
        raise InputError(f"{folder / name}.json does not exist.")
    return about


def describe_machine() -> Row:
    """Processor, cores, memory and system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "isde": __version__,
    }


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file, numbers as numbers; none where there is no file."""
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as lines:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(lines)]


class _Files:
    """The files of one run."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def path(self, ending: str) -> Path:
        return self.folder / f"{self.name}.{ending}"

    def about(self) -> Row | None:
        if not self.path("json").is_file():
            return None
        try:
            about = json.loads(self.path("json").read_text(encoding="utf-8"))
        except ValueError:
            about = None
        if not isinstance(about, dict) or not {"settings", "is_complete", "machine"} <= about.keys():
            raise InputError(f"{self.path('json')} is damaged: delete it and {self.name}.csv, or overwrite=True.")
        about["settings"].setdefault("version", 1)
        return about

    def remove(self) -> None:
        for ending in ("csv", "times.csv", "json", "png"):
            self.path(ending).unlink(missing_ok=True)

    def check(self, settings: Row) -> None:
        """Raise, by name, where the rows on disk were made with other settings."""
        if not self.path("csv").is_file():
            return
        about = self.about()
        if about is None:
            raise InputError(f"{self.path('csv')} has no {self.name}.json beside it: move it away, or overwrite=True.")
        for key in dict.fromkeys([*settings, *about["settings"]]):
            asked, made = settings.get(key), about["settings"].get(key)
            if asked != made:
                raise InputError(
                    f"{self.path('csv')} was made with {key}={made!r}, not {asked!r}: give another output=, or "
                    "overwrite=True to replace it."
                )

    def write(self, rows: Sequence[Row], times: Sequence[Row]) -> None:
        if times:
            replace_file(self.path("times.csv"), _to_csv(times).encode())
        replace_file(self.path("csv"), _to_csv(rows).encode())  # last: a step is done once its rows are there

    def write_about(self, settings: Row, *, is_complete: bool) -> None:
        earlier = self.about() if is_complete else None  # the machine it was begun on
        machine = describe_machine() if earlier is None else earlier["machine"]
        about = {"settings": settings, "is_complete": is_complete, "machine": machine}
        replace_file(self.path("json"), f"{json.dumps(about, indent=2)}\n".encode())


def _fingerprint(item: Item, settings: Settings) -> Row:
    described = {"item": item.name, **item.describe(settings)}
    source = item.source(settings)
    if source is not None:
        if not source.is_file():
            raise InputError(f"{source} {'is a folder' if source.is_dir() else 'does not exist'}: give a file.")
        described |= {"file": source.name, "sha256": hashlib.sha256(source.read_bytes()).hexdigest()[:16]}
    return described


def _as_text(row: Row, key: Iterable[str]) -> tuple[str, ...]:
    return tuple(_text(row[name]) for name in key)


def _without(times: Sequence[Row], key: Row) -> list[Row]:
    return [row for row in times if _as_text(row, key) != _as_text(key, key)]


def _rounded(row: Row) -> Row:
    """The row as it will be read again: findings and figures are the same after a rerun."""
    return {name: _value(_text(value)) for name, value in row.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.12g}"
    return f"{text}.0" if text.lstrip("-").isdigit() else text  # a float when read again


def _value(text: str | None) -> Any:
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    return text


def _to_csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def replace_file(path: Path, content: bytes) -> None:
    """Write beside, then put in place: whoever stops the run, the file is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None
