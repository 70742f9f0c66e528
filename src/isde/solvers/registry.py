"""The solvers there are: a line for each, its name and its file; and what any registry of solvers does.

Nothing is imported before it is asked for: solvers bring compiled code or HiGHS with them, and the command line needs
no more than their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from isde.solvers import dynamic, exhaustive, milp
    from isde.solvers.solver import Solver, Task

    _KEEP_THE_CONTRACT: tuple[Solver, ...] = (exhaustive, dynamic, milp)

AUTO = "auto"
"""The cheapest solver that takes the task."""


class Chosen(Protocol):
    """What a solver is chosen by, whatever it solves."""

    def refusal(self, task: Any, /) -> str | None: ...

    def steps(self, task: Any, /) -> float: ...


AnySolver = TypeVar("AnySolver", bound=Chosen)
AnyTask = TypeVar("AnyTask")


@dataclass(frozen=True)
class Registry(Generic[AnySolver, AnyTask]):
    """Solvers by name; each is a module."""

    places: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return (AUTO, *self.places)

    def check(self, name: str) -> None:
        """Raise, naming the solvers there are, for a name that is none."""
        if name not in self.names:
            raise ValueError(f"solver={name!r} is unknown: use {', '.join(map(repr, self.names))}.")

    def named(self, name: str) -> AnySolver:
        """The solver behind a line of the registry."""
        return cast("AnySolver", import_module(self.places[name]))

    def choose(self, name: str, task: AnyTask) -> str:
        """The solver asked for by name, if it takes the task; for "auto" the cheapest one that does."""
        self.check(name)
        if name != AUTO and (reason := self.named(name).refusal(task)) is not None:
            raise ValueError(f"solver={name!r} {reason}: use solver={self._cheapest(task)!r}.")
        return self._cheapest(task) if name == AUTO else name

    def _cheapest(self, task: AnyTask) -> str:
        by_cost = sorted(self.places, key=lambda name: self.named(name).steps(task))
        return next(name for name in by_cost if self.named(name).refusal(task) is None)


SOLVERS = {
    "exhaustive": "isde.solvers.exhaustive",
    "dynamic": "isde.solvers.dynamic",
    "milp": "isde.solvers.milp",
}

_registry: Registry[Solver, Task] = Registry(SOLVERS)
SOLVER_NAMES, check_solver, solver_named, choose = _registry.names, _registry.check, _registry.named, _registry.choose
