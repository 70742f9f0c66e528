"""How loops are compiled: the options of every compiled function, and their reasons.

A machine that never ran isde compiles what it needs at the first call, and keeps it on disk. What keeps that short:

- `cache`: of a function called from Python, with all that it calls. numba notices edits of the function's own file, not
  of files that it imports from: compiled functions that call each other share a file, and whoever changes an option
  here clears the cache.
- `nogil`: other threads run meanwhile.
- `error_model="numpy"`: division by zero gives inf or nan, as in NumPy, and needs no code that raises.
- No wrapper for callers in C: there are none. None for callers in Python either where only compiled functions call:
  numba compiles a short function once more inside each of its wrappers.
- What a compiled function calls becomes a part of it. Without that the first run on a machine differed from all others
  in the last digits of stacks. (By elimination: LLVM seems to make two versions of a function, one of its own and one
  beside its caller, which add in another order, and the cache to decide which of them runs.)

The rest is in how functions are written. Arrays to write to come from the caller: each kind of np.zeros takes 0.1 s
of compilation. So does each assignment to, or reduction of, a whole array: loops do the same. Arguments are of one
type and layout, always: another one compiles all again. `tests/test_first_call.py` counts.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import event
from numba.core.dispatcher import Dispatcher

# Sums may be reordered for vectors; no NaN and no infinity gets in, since data are checked and bounded before.
REORDERED = {"reassoc", "contract", "nsz", "nnan"}

loop = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
"""Called from Python; sums in the order written."""

fast_loop = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, fastmath=REORDERED)
"""Called from Python; sums reordered for vectors."""

part = njit(forceinline=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""Called by compiled functions, and compiled before it becomes a part of them; sums in the order written."""

fast_part = njit(
    forceinline=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True, fastmath=REORDERED
)
"""The same; sums reordered."""

fast_inline = njit(inline="always", error_model="numpy", fastmath=REORDERED)
"""Called at one place, and written into the caller before that is compiled: half the cost of a part, where it has one
caller; more, where it has two."""


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
