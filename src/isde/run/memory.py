"""How much memory this process may have."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container says it, in the new way and in the old."""

UNKNOWN = 1 << 60


def memory_there() -> int:
    """Bytes: of the machine, of the container, or as `ulimit -v` says, whichever is least."""
    found = [UNKNOWN]
    with suppress(AttributeError, ValueError, OSError):  # Windows
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:
        with suppress(OSError, ValueError):  # none, or the word "max"
            found.append(int(Path(path).read_text()))
    with suppress(ImportError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            found.append(limit)
    return min(found)
