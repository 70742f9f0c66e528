"""The folder of a run: what it is a run of (`manifest.json`), and what of it is done (`scores.log`).

A folder goes on with the same data and the same parameters only; what differs is named. Two of them may grow: larger
blocks, and more splits, of which only those that are new are scored.
"""

from __future__ import annotations

import json
import platform
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_name  # numba compiles for it

from isde.arrays import Matrix
from isde.errors import CheckpointError, InputError, ResourceError, warn
from isde.files import whole_file
from isde.run.lock import LOCK_FILE, hold
from isde.run.log import AppendLog
from isde.run.store import LogStore

MANIFEST_FILE, LOG_FILE = "manifest.json", "scores.log"
STORE_FILES = frozenset({MANIFEST_FILE, LOG_FILE, LOCK_FILE})
FORMAT = 1
MANIFEST_BYTES_MAX = 1 << 26
WAY_OUT = "give another folder, or remove this one"

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
"""Whose versions may change the last digits of scores."""


@dataclass(frozen=True)
class Manifest:
    """What a run is a run of, as plain JSON."""

    facts: Mapping[str, Any]  # data and parameters: may not change
    sizes: tuple[int, ...]  # of the largest blocks, ascending: the table was scored for the first, then extended
    splits: tuple[str, ...]  # keys
    seed: int | None  # drawn where none was given
    machine: Mapping[str, str]  # versions and processor

    def to_json(self) -> dict[str, Any]:
        content = {
            "facts": dict(self.facts),
            "max_block_sizes": list(self.sizes),
            "splits": list(self.splits),
            "seed": self.seed,
            "machine": dict(self.machine),
        }
        return {"format": FORMAT, "sha256": _digest(content), **content}

    @classmethod
    def from_json(cls, saved: Any) -> Manifest:
        content = {name: saved[name] for name in ("facts", "max_block_sizes", "splits", "seed", "machine")}
        if saved["sha256"] != _digest(content):
            raise ValueError("it differs from its checksum")
        if saved["format"] != FORMAT:
            raise ValueError(f"its format is {saved['format']!r}, this isde knows {FORMAT}")
        _check_kinds(**content)
        sizes, splits = tuple(content["max_block_sizes"]), tuple(content["splits"])
        return cls(content["facts"], sizes, splits, content["seed"], content["machine"])


def _check_kinds(facts: Any, max_block_sizes: Any, splits: Any, seed: Any, machine: Any) -> None:
    """Raise ValueError unless each part is what it has to be: a checksum tells damage, not sense."""
    sound = {
        "facts": isinstance(facts, dict),
        "max_block_sizes": isinstance(max_block_sizes, list)
        and all(type(size) is int and size > 0 for size in max_block_sizes)
        and max_block_sizes == sorted(set(max_block_sizes)) != [],
        "splits": isinstance(splits, list) and all(isinstance(key, str) for key in splits),
        "seed": seed is None or (type(seed) is int and 0 <= seed < 1 << 32),
        "machine": isinstance(machine, dict) and all(isinstance(text, str) for text in machine.values()),
    }
    wrong = [name for name, is_sound in sound.items() if not is_sound]
    if wrong:
        raise ValueError(f"its {wrong[0]} cannot be")


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def data_facts(X: Matrix, names: Sequence[str]) -> dict[str, Any]:
    """What identifies a table: shape, names, and a digest of its numbers, however they lay in memory."""
    numbers = sha256(np.ascontiguousarray(X, dtype="<f8").data)
    return {"rows": X.shape[0], "columns": list(names), "data": numbers.hexdigest()}


def machine_facts() -> dict[str, str]:
    """What bits may depend on besides data and parameters."""
    return {
        "isde": version("isde"),
        **{name: version(name) for name in PACKAGES},
        "processor": f"{platform.machine()} {get_host_cpu_name()}",
    }


@dataclass(frozen=True)
class RunFolder:
    """A folder that a process holds."""

    path: Path

    def seed(self) -> int:
        """The seed of a run that was given none: drawn once, then the one it began with."""
        manifest = self.manifest()
        return secrets.randbits(31) if manifest is None or manifest.seed is None else manifest.seed

    def manifest(self) -> Manifest | None:
        """What stands in the folder; None where nothing does."""
        path = self.path / MANIFEST_FILE
        try:
            if path.exists() and not path.is_file():
                raise ValueError("it is no file")
            if path.stat().st_size > MANIFEST_BYTES_MAX:
                raise ValueError(f"it is larger than {MANIFEST_BYTES_MAX >> 20} MB")
            return Manifest.from_json(json.loads(path.read_bytes()))
        except FileNotFoundError:
            if (self.path / LOG_FILE).exists():
                raise CheckpointError(
                    f"{self.path} holds {LOG_FILE} without {MANIFEST_FILE}, so that nobody knows of what: {WAY_OUT}."
                ) from None
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged, or not written by this isde ({error}): {WAY_OUT}.") from error

    @contextmanager
    def store(
        self, facts: Mapping[str, Any], max_block_size: int, splits: Sequence[str], seed: int | None
    ) -> Iterator[RunStore]:
        """What is done of this run; `CheckpointError`, naming the culprit, where the folder is another's."""
        asked = Manifest(facts, (max_block_size,), tuple(splits), seed, machine_facts())
        found = self.manifest()
        agreed = asked if found is None else _together(self.path, found, asked)
        if agreed != found:
            self._write(agreed)
        log = None
        try:
            with self._log() as log:
                if log.damaged:  # a torn end is what a killed process leaves
                    n = log.damaged
                    warn(f"{n:,} bytes of {log.path} are damaged: what stood there is scored again, not the rest.")
                yield RunStore(log, tuple(size for size in agreed.sizes if size <= max_block_size))
        except BaseException:
            if found is None and (log is None or not log.keys()):
                self.clear()  # a parameter that is wrong must not be held against the right one
            raise

    def _log(self) -> AppendLog:
        try:
            return AppendLog(self.path / LOG_FILE)
        except OSError as error:
            raise InputError(
                f"{self.path / LOG_FILE} cannot be written ({error.strerror or error}): {WAY_OUT}."
            ) from error

    def _write(self, manifest: Manifest) -> None:
        text = json.dumps(manifest.to_json(), indent=1) + "\n"
        try:
            with whole_file(self.path / MANIFEST_FILE) as file:
                file.write(text.encode())
        except OSError as error:
            raise ResourceError(
                f"{self.path / MANIFEST_FILE} cannot be written ({error.strerror or error}): nothing was scored."
            ) from error

    def clear(self) -> None:
        """Begin anew. The log goes first: one without a manifest is refused, a manifest without one is empty."""
        for name in (LOG_FILE, MANIFEST_FILE):
            (self.path / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class RunStore(LogStore):
    """The log of a run, and the block sizes for which its table was scored, one after the other."""

    sizes: tuple[int, ...]


@contextmanager
def run_folder(path: str | Path) -> Iterator[RunFolder]:
    """A folder for this process alone; what a killed one left half-written is removed."""
    with hold(Path(path)) as folder:
        for left in folder.glob(".*.part"):
            left.unlink(missing_ok=True)
        yield RunFolder(folder)


def _together(folder: Path, found: Manifest, asked: Manifest) -> Manifest:
    """The run that goes on, or grows."""
    for name in {**found.facts, **asked.facts}:
        if found.facts.get(name) != asked.facts.get(name):
            raise _refusal(folder, name, found.facts.get(name), asked.facts.get(name))
    if found.machine.get("isde") != asked.machine["isde"]:
        raise _refusal(folder, "the version of isde", found.machine.get("isde"), asked.machine["isde"])
    for name in PACKAGES:
        if _major(found.machine.get(name)) != _major(asked.machine[name]):
            raise _refusal(folder, f"the version of {name}", found.machine.get(name), asked.machine[name])
    others = [name for name, value in asked.machine.items() if found.machine.get(name) != value]
    if others:
        warn(
            f"{folder} was begun with {', '.join(f'{name} {found.machine.get(name)}' for name in others)}, and goes on "
            f"with {', '.join(asked.machine[name] for name in others)}: last digits of scores may differ."
        )
    if not set(found.splits) <= set(asked.splits):
        raise CheckpointError(
            f"{folder} was begun with other splits of the rows (split= or random_state=), and more of them may be "
            f"asked for, not others: {WAY_OUT}."
        )
    size = asked.sizes[-1]
    if size in found.sizes or size > found.sizes[-1]:
        sizes = found.sizes if size in found.sizes else (*found.sizes, size)
        return replace(found, sizes=sizes, splits=asked.splits)
    raise CheckpointError(
        f"{folder} was begun with max_block_size={found.sizes[-1]}, and max_block_size={size} is smaller, while only "
        f"larger ones may follow: fit from its subset_scores_, {WAY_OUT}."
    )


def _major(text: str | None) -> str | None:
    return text and text.split(".")[0]


def _refusal(folder: Path, name: str, found: Any, asked: Any) -> CheckpointError:
    if name == "data":
        what = "other data, of the same shape"
    elif name == "columns" and isinstance(found, list):
        new = [column for column in asked if column not in found] or [column for column in found if column not in asked]
        what = f"other columns ({', '.join(map(repr, new[:3]))})" if new else "its columns in another order"
    else:
        what = f"{name}={found!r}, not {asked!r}"
    return CheckpointError(f"{folder} was begun with {what}: {WAY_OUT}.")
