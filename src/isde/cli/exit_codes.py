"""What the exit code of a command says. The table of the docs is made of this one (docs/reliability.md)."""

from __future__ import annotations

import errno

from isde.errors import CheckpointError, ClusterError, ResourceError
from isde.files import NO_ROOM

PARTIAL = 3
STOPPED = INTERRUPTED, TERMINATED = 130, 143

EXIT_CODES = {
    0: ("done", ""),
    1: ("failure", "any other exception: ISDEError, UnprovedPartition, OSError"),
    2: ("misuse: a wrong option, unusable data", "ValueError, TypeError, InputError"),
    PARTIAL: ("done, but for subsets that end the process that scores them", "PartialWarning"),
    4: ("the run folder is another run's: other data, other parameters, in use, damaged", "CheckpointError"),
    5: (
        "no disk, no memory or no cluster; what was scored is kept",
        "ResourceError, ClusterError, MemoryError",
    ),
    INTERRUPTED: ("stopped by Ctrl-C; what was scored is kept", "KeyboardInterrupt"),
    TERMINATED: ("stopped by SIGTERM; what was scored is kept", "KeyboardInterrupt"),
}
"""What each means, and the errors and warnings of Python that stand for it."""

MACHINE = NO_ROOM | {errno.EROFS, errno.EIO}


def exit_code(error: Exception) -> int:
    """Of an error that ends a command."""
    if isinstance(error, CheckpointError):
        return 4
    if isinstance(error, ResourceError | ClusterError | MemoryError):
        return 5
    if isinstance(error, OSError) and error.errno in MACHINE:
        return 5
    return 2 if isinstance(error, ValueError | TypeError) else 1
