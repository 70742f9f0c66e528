"""What the two tables over structures share: a step for each repetition, and their rows beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from isde.paper.item import Finding, Outcome, Results, Row, Settings, Step, seed_for
from isde.paper.wording import agree, joined, label_of, mean_sd, short, where_they_differ

T = TypeVar("T")
Structure = tuple[int, ...]
Repetition = Callable[[Structure, int, Settings, Sequence[Row]], Outcome]


def structure_steps(
    structures: Sequence[Structure], repetitions: int, settings: Settings, run: Repetition
) -> list[Step]:
    """One step for each structure and repetition, each with a seed of its own."""
    return [
        Step(
            {"structure": _in_a_cell(structure), "repetition": r},
            partial(run, structure, seed_for(settings.seed, s, r), settings),
        )
        for s, structure in enumerate(structures)
        for r in range(repetitions)
    ]


def _in_a_cell(structure: Structure) -> str:
    return " ".join(map(str, structure))


@dataclass(frozen=True)
class StructureTable:
    """The structures of a published table that a run has rows of: one finding holds all of them."""

    results: Results
    structures: Sequence[Structure]  # the paper's, in its order

    @property
    def shown(self) -> list[Structure]:
        return [s for s in self.structures if self.results.where(structure=_in_a_cell(s))]

    @property
    def label(self) -> str:
        return joined(map(label_of, self.shown))

    def published(self, row: Sequence[T]) -> list[T]:
        """Of a published row, the cells of the structures shown."""
        return [row[self.structures.index(s)] for s in self.shown]

    def rows(self, method: str) -> dict[Structure, list[Row]]:
        """The repetitions of a method, by structure."""
        return {s: self.results.where(structure=_in_a_cell(s), method=method) for s in self.shown}

    def values(self, method: str, column: str) -> dict[Structure, list[float]]:
        """One number of each repetition."""
        return {s: [row[column] for row in rows] for s, rows in self.rows(method).items()}

    def agreements(self, agrees: Sequence[Any]) -> Mapping[str, bool]:
        """One answer for each structure shown, by its name."""
        return {label_of(s): bool(answer) for s, answer in zip(self.shown, agrees, strict=True)}

    def means(
        self, what: str, row: Sequence[tuple[float, float]], values: Mapping[Structure, list[float]], reason: str
    ) -> Finding:
        """Means and standard deviations beside a published row of them."""
        published = self.published(row)
        agrees = [agree(p, own) for p, own in zip(published, values.values(), strict=True)]
        return Finding(
            f"{self.label}: {what}",
            joined(f"{mean:.2f} ({sd:.2f})" for mean, sd in published),
            joined(map(mean_sd, values.values())),
            where_they_differ(self.agreements(agrees), reason, "Within three standard errors"),
        )

    def seconds(self, what: str, published: str, method: str, why: str) -> Finding:
        """Mean running times of a method."""
        measured = (self.results.seconds(method, structure=_in_a_cell(s)) for s in self.shown)
        return Finding(f"{self.label}: {what}", published, joined(map(short, measured)), why)
