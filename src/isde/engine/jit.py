"""How loops are compiled: the options of every compiled function, and their reasons.

A fresh machine compiles what it needs at the first call and keeps it on disk; options and habits keep that short.

- `cache`: machine code is kept on disk. The cache notices edits of a function's own file, not those of a file it imports
  from: compiled functions that call each other share a file, and after an edit here caches (`__pycache__`) go.
- `nogil`: threads of other tasks run meanwhile.
- `error_model="numpy"`: a division by zero gives inf or nan, as in NumPy; no code to raise an exception.
- no wrapper for callers in C, of which there are none, and for a part of other loops none for callers in Python either:
  the body of a short function would be compiled a second and a third time inside its wrappers.

Habits, with the processor time they save: arrays to write to come from the caller (each kind of `np.zeros` takes 0.1 s);
loops instead of assignments and reductions of whole arrays (0.1 s each); one kind of array for each argument, contiguous
(a second kind compiles all again). `tests/test_first_call.py` counts.
"""

from __future__ import annotations

from numba import njit

# Sums may be reordered for vectors; no NaN and no infinity gets in, since data are checked and bounded before.
REORDERED = {"reassoc", "contract", "nsz", "nnan"}

loop = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
"""Called from Python; every sum in its order."""

part = njit(error_model="numpy", forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""Called by compiled functions only, and kept on disk as a part of these."""

fast_loop = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, fastmath=REORDERED)
fast_part = njit(error_model="numpy", forceinline=True, no_cfunc_wrapper=True, no_cpython_wrapper=True, fastmath=REORDERED)
