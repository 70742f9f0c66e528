"""How loops are compiled: the options of every compiled function, and their reasons.

A machine that never ran isde compiles what it needs at the first call, and keeps it on disk. What keeps that short:

- `cache`: of a function called from Python, with all that it calls. numba notices edits of the function's own file, not
  of files that it imports from: compiled functions that call each other share a file, and whoever changes an option
  here clears the cache.
- `nogil`: other threads run meanwhile.
- `error_model="numpy"`: division by zero gives inf or nan, as in NumPy, and needs no code that raises.
- `_nrt=False`, but for `loop`: nothing is allocated, so that there are no references to count. `no_rewrites`: nor are
  there whole arrays in expressions; `array.shape[1]` is then a function to compile, `_, n = array.shape` is not.
- No wrapper for callers in C: there are none. None for callers in Python either where only compiled functions call:
  numba compiles a short function once more inside each of its wrappers.
- What a compiled function calls becomes a part of it. Without that the first run on a machine differed from all others
  in the last digits of stacks. (By elimination: LLVM seems to make two versions of a function, one of its own and one
  beside its caller, which add in another order, and the cache to decide which of them runs.)

The rest is in how functions are written. Arrays to write to come from the caller: each kind of np.zeros takes 0.1 s
of compilation. So does each assignment to, or reduction of, a whole array: loops do the same. How much is done at once
is the length of an array that comes from the caller, too: of a loop that ends at 512 or before, LLVM writes out all
steps. Arguments are of one type and layout, always: another one compiles all again. `tests/test_first_call.py` counts.
"""

from __future__ import annotations

import gc
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import config, njit, types
from numba.core import event
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from isde.errors import warn

# Sums may be reordered for vectors; no NaN and no infinity gets in, since data are checked and bounded before.
REORDERED = {"reassoc", "contract", "nsz", "nnan"}


def _keeps_code() -> bool:
    """Whether numba finds a place for compiled code; where a container lets it write nowhere, one is made."""

    def function() -> None:
        pass

    def found() -> bool:
        try:
            njit(cache=True)(function)
        except RuntimeError:
            return False
        return True

    if found():
        return True
    place = _private_folder()
    if place is not None:
        config.CACHE_DIR = str(place)
    kept = place is not None and found()
    where = f"it is kept in {place}" if kept else "every command compiles for some seconds"
    warn(f"No place for compiled code beside isde, nor at home: {where}; NUMBA_CACHE_DIR names one.")
    return kept


def _private_folder() -> Path | None:
    """A folder among temporary files that nobody else can write to: whoever can would have their code run."""
    if not hasattr(os, "getuid"):
        return None
    place = Path(tempfile.gettempdir()) / f"isde-compiled-{os.getuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        about = place.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
    return place if ours else None


CACHE = _keeps_code()

OF_ALL = {"error_model": "numpy", "no_cfunc_wrapper": True}
LEAN = OF_ALL | {"no_rewrites": True, "_nrt": False}
OF_PARTS = LEAN | {"forceinline": True, "no_cpython_wrapper": True}

loop = njit(cache=CACHE, nogil=True, **OF_ALL)
"""Called from Python; sums in the order written; may allocate."""

fast_loop = njit(cache=CACHE, nogil=True, fastmath=REORDERED, **LEAN)
"""Called from Python; sums reordered for vectors."""

part = njit(**OF_PARTS)
"""Called by compiled functions, and compiled before it becomes a part of them; sums in the order written."""

fast_part = njit(fastmath=REORDERED, **OF_PARTS)
"""The same; sums reordered."""

fast_inline = njit(inline="always", fastmath=REORDERED, **LEAN)
"""Called at one place, and written into the caller before that is compiled: half the cost of a part, where it has one
caller; more, where it has two."""


@intrinsic
def same_bits(_: Any, number: Any, kind: Any) -> Any:
    """The bits of a number read as another kind of number, inside compiled code.

    `number.view(kind)` is the same, and a function of numba's to compile for each pair of kinds; so are `max` and `min`
    of two numbers, which are `larger` and `smaller` here: instructions in place of nine functions.
    """

    def bitcast(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], context.get_value_type(signature.return_type))

    return kind.dtype(number, kind), bitcast


def _one_of_two(sign: str) -> Any:
    """Of two numbers of one kind, the second where it has the sign to the first."""

    def typed(_: Any, first: Any, second: Any) -> Any:
        kind = first if isinstance(first, types.Float) else types.intp

        def select(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compare = builder.fcmp_ordered if isinstance(kind, types.Float) else builder.icmp_signed
            return builder.select(compare(sign, values[1], values[0]), values[1], values[0])

        return kind(kind, kind), select

    return intrinsic(typed)


larger, smaller = _one_of_two(">"), _one_of_two("<")


class _WithoutCollector(event.Listener):  # type: ignore[misc]
    """Compilation makes millions of small objects, which the garbage collector would look at again and again: a tenth.

    It rests as long as something is compiled, in any thread, and goes on if it was on before.
    """

    def __init__(self) -> None:
        self.compiling, self.was_on = 0, False

    def on_start(self, event: Any) -> None:
        if self.compiling == 0:
            self.was_on = gc.isenabled()
            gc.disable()
        self.compiling += 1

    def on_end(self, event: Any) -> None:
        self.compiling -= 1
        if self.compiling == 0 and self.was_on:
            gc.enable()


event.register("numba:compile", _WithoutCollector())


def plain(function: Any) -> Callable[..., Any]:
    """A compiled function as Python runs it, with all that it calls: the same integers, and nothing to compile."""
    own = function.py_func
    names = {
        name: plain(value) if isinstance(value, Dispatcher) and value is not function else value
        for name, value in own.__globals__.items()
        if name in own.__code__.co_names
    }
    return FunctionType(own.__code__, names, own.__name__)
