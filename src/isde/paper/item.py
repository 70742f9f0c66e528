"""What an item of the paper is: steps that make rows, and findings that stand beside the published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from joblib import effective_n_jobs

from isde.errors import InputError

T = TypeVar("T")
Row = dict[str, Any]
Size = Literal["full", "quick", "tiny"]
Protocol = Literal["clean", "paper"]

PROTOCOLS: dict[str, str] = {
    "clean": "one scaler, the range of the training rows, for training and validation rows; no row dropped; the same "
    "rows for all methods",
    "paper": "as published, with its flaws: each sample is rescaled by its own minimum and maximum, so that training "
    "and validation rows are in different units; rows whose density underflows are silently dropped, other rows for "
    "each method",
}


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on."""

    size: Size = "full"
    protocol: Protocol = "clean"
    seed: int = 0
    jobs: int | None = -1
    data: Path | None = None  # a table of cells
    scores: Path | None = None  # a saved score table, in place of data
    max_block_size: int | None = None  # None: the paper's, 5 for up to 13 columns, 3 for more
    above: float | None = (
        None  # partitions that score more are listed; None: as far below the optimum as the paper's 14.6
    )
    seconds: float | None = None  # for one cell of a table of running times, before it is projected
    verbose: int = 0  # above 0, progress within a step goes to standard error
    cache: Path | None = None  # folder for score tables, which several items share; no result depends on it

    def pick(self, full: T, quick: T, tiny: T) -> T:
        """The value for the size of this run."""
        return {"full": full, "quick": quick, "tiny": tiny}[self.size]


@dataclass(frozen=True)
class Outcome:
    """What a step found: rows that are the same each time, and times that are not."""

    rows: list[Row]
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One repetition, written as soon as it is done; `key` names it, and stands in each of its rows."""

    key: Row
    run: Callable[[Sequence[Row]], Outcome]  # given the rows of the steps before


@dataclass(frozen=True)
class Results:
    """What is on disk of one run of an item."""

    name: str  # of its files
    settings: Row
    rows: list[Row]
    times: list[Row]  # what took how long, by step

    def where(self, **wanted: Any) -> list[Row]:
        """The rows with these values."""
        return select(self.rows, **wanted)

    def column(self, name: str, **wanted: Any) -> list[Any]:
        """One column of the rows with these values."""
        return [row[name] for row in self.where(**wanted)]

    @property
    def is_paper(self) -> bool:
        """Whether it was run under the paper's protocol."""
        return bool(self.settings.get("protocol") == "paper")

    @property
    def title(self) -> str:
        """What a figure of it says above."""
        return f"{self.settings['file']}, protocol {self.settings['protocol']}"

    def seconds(self, what: str, **wanted: Any) -> float:
        """Mean time of one part of the work; NaN where none is known."""
        found = [row["seconds"] for row in select(self.times, what=what, **wanted)]
        return float(np.mean(found)) if found else np.nan


@dataclass(frozen=True)
class Finding:
    """One published number beside the measured one."""

    what: str
    published: str
    measured: str
    why: str  # one sentence: that they agree, or what makes the difference


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper."""

    name: str
    paper: str  # what it is there
    steps: Callable[[Settings], list[Step]]
    findings: Callable[[Results], list[Finding]]
    draw: Callable[[Results, Any], None] | None = None  # on a matplotlib figure, where the paper has one
    needs: Literal["nothing", "data", "data or scores"] = "nothing"
    has_protocols: bool = False
    has_threshold: bool = False
    is_timing: bool = False  # its rows are running times: the same command twice does not give the same ones
    is_projected: bool = False  # cells that take longer than `seconds` are projected
    version: int = 1  # of its rows: raised when the code that makes them changes, older ones are not continued
    notes: tuple[str, ...] = ()  # where the paper's text is corrected, or its code differs

    def compare(self, results: Results) -> list[Finding]:
        """Its findings; at a smaller setting than the paper's no difference is explained."""
        found = self.findings(results)
        if results.settings["size"] == "full":
            return found
        return [replace(finding, why="A smaller setting than the paper's: try the full one.") for finding in found]

    def file_name(self, settings: Settings) -> str:
        """Name of its files without an ending: item, data, protocol, and `quick` or `tiny`."""
        source = self.source(settings)
        parts = [self.name, source.stem if source else None, settings.protocol if self.has_protocols else None]
        if settings.size != "full":
            parts.append(settings.size)
        return "-".join(part for part in parts if part)

    def source(self, settings: Settings) -> Path | None:
        """The file it reads; raises where none is given."""
        if self.needs == "nothing":
            return None
        if self.needs == "data or scores" and settings.scores is not None:
            return settings.scores
        if settings.data is None:
            also = ", or scores='FILE'" if self.needs == "data or scores" else ""
            raise InputError(f"{self.name} needs a table of cells: give data='FILE'{also}.")
        return settings.data

    def describe(self, settings: Settings) -> Row:
        """The settings that its rows depend on: rows made with others are not continued."""
        described: Row = {"version": self.version, "size": settings.size, "seed": settings.seed}
        if self.has_protocols:
            described["protocol"] = settings.protocol
        if self.needs != "nothing":
            described["max_block_size"] = settings.max_block_size
        if self.has_threshold:
            described["above"] = settings.above
        if self.is_timing:
            described["workers"] = effective_n_jobs(settings.jobs)
        if self.is_projected:
            described["seconds"] = settings.seconds
        return described


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def rng_for(seed: int, *place: int) -> np.random.Generator:
    """Independent draws for each place of an experiment, the same however many places there are."""
    return np.random.default_rng([seed, *place])


def seed_for(seed: int, *place: int) -> int:
    """The same as a number, for what takes one."""
    return int(rng_for(seed, *place).integers(2**31 - 1))
