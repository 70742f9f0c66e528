"""What is done: chunks by key, with what was found."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from isde.run.work import ChunkScores


class Store(Protocol):
    """Keeps what was found; a key that it knows is not done again."""

    def finished(self) -> Collection[str]:
        """The keys of what is done."""
        ...

    def put(self, key: str, found: ChunkScores) -> None:
        """Keep what was found."""
        ...

    def get(self, key: str) -> ChunkScores:
        """What was found under a key."""
        ...


class MemoryStore:
    """Kept as long as the process lives."""

    def __init__(self) -> None:
        self._found: dict[str, ChunkScores] = {}

    def finished(self) -> Collection[str]:
        return self._found.keys()

    def put(self, key: str, found: ChunkScores) -> None:
        self._found[key] = found

    def get(self, key: str) -> ChunkScores:
        return self._found[key]
