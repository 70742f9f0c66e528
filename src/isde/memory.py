"""What this machine can hold: tables that cannot be there are refused before memory is asked for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from isde.errors import InputError

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux keeps what a container may use; "max", or a number beyond all memory, is no limit."""


def memory_bytes() -> int | None:
    """The memory of the machine, or of the container; None where the system does not say."""
    found = []
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in LIMITS:
        with suppress(ValueError, OSError):
            found.append(int(path.read_text()))
    return min(found, default=None)


def check_memory(n_bytes: int, what: str, way_out: str) -> None:
    """Raise `InputError` where `what`, of so many bytes, is more than all memory there is."""
    most = memory_bytes()
    if most is not None and n_bytes > most:
        raise InputError(f"{what} needs {in_words(n_bytes)} of memory, and there are {in_words(most)}: {way_out}.")


def in_words(n_bytes: int) -> str:
    """
    >>> in_words(167 * 10**9), in_words(3_500_000)
    ('167 GB', '3.5 MB')
    """
    size, units = float(n_bytes), ["kB", "MB", "GB", "TB", "PB", "EB"]
    unit = "bytes"
    while size >= 1000 and units:
        size, unit = size / 1000, units.pop(0)
    return f"{size:.3g} {unit}"
