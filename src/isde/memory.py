"""What this machine can hold: tables that cannot be there are refused before memory is asked for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from isde.errors import ResourceError

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux keeps what a container may use; "max", or a number beyond all memory, is no limit."""


def memory_bytes() -> int | None:
    """Of the machine, of the container, or as `ulimit -v` says, whichever is least; None where nothing says it."""
    found = []
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in LIMITS:
        with suppress(ValueError, OSError):
            found.append(int(path.read_text()))
    with suppress(ImportError):  # Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            found.append(limit)
    return min(found, default=None)


def address_space_left() -> int | None:
    """Bytes that this process may still ask for under `ulimit -v`; None where there is no limit, or none is known."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_bytes().split()[0])
            return max(0, limit - pages * resource.getpagesize())
    return None


def resident_bytes() -> int:
    """What this process has in memory now; where nothing says that, nothing."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    return 0


def check_memory(n_bytes: int, what: str, way_out: str) -> None:
    """Raise `ResourceError` where `what`, of so many bytes, is more than all memory there is."""
    most = memory_bytes()
    if most is not None and n_bytes > most:
        raise ResourceError(f"{what} needs {in_words(n_bytes)} of memory, and there are {in_words(most)}: {way_out}.")


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
