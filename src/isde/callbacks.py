"""scikit-learn's callbacks (1.9 and later) hear of the work of a fit; before that version nothing changes.

An estimator inherits `CallbackSupport` and marks its `fit` with `heard_by_callbacks`: then
`set_callbacks(sklearn.callback.ProgressBar())` shows every piece of work as a bar, whatever `verbose` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from isde.progress import Advance, Reporter, current_reporter, reporting

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:
    HAS_CALLBACKS = False

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""
else:
    HAS_CALLBACKS = True

__all__ = ["HAS_CALLBACKS", "CallbackReporter", "CallbackSupport", "heard_by_callbacks"]

MOST_STEPS = 100
"""A callback hears of so many parts of a piece of work: each is an object that scikit-learn keeps until the end."""


def heard_by_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The callbacks set on an estimator hear of what its `fit` does."""
    if not HAS_CALLBACKS:
        return fit

    @with_callbacks
    @wraps(fit)
    def heard(self: Any, *args: Any, **kwargs: Any) -> Any:
        # How many pieces of work there are is known only when they come.
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)
        if getattr(self, "_skl_callbacks", None):
            with reporting(CallbackReporter(self, context, current_reporter())):
                found = fit(self, *args, **kwargs)
        else:
            found = fit(self, *args, **kwargs)
        context.call_on_fit_task_end(estimator=self)
        return found

    return heard


@dataclass(frozen=True)
class CallbackReporter:
    """Tells callbacks of work; what is said goes on to whoever shows it otherwise."""

    estimator: Any  # whose fit it is
    context: Any  # scikit-learn's CallbackContext of that fit
    talk: Reporter  # shows lines
    hears_all: bool = True

    def say(self, text: str) -> None:
        self.talk.say(text)

    @contextmanager
    def bar(self, total: int, label: str) -> Iterator[Advance]:
        steps = min(total, MOST_STEPS)
        task = self.context.subcontext(task_name=label, max_subtasks=steps)
        task.call_on_fit_task_begin(estimator=self.estimator)
        done = told = 0

        def advance(n: int) -> None:
            nonlocal done, told
            done += n
            while told < done * steps // total:
                part = task.subcontext(task_name="part")
                part.call_on_fit_task_begin(estimator=self.estimator)
                part.call_on_fit_task_end(estimator=self.estimator)
                told += 1

        yield advance
        task.call_on_fit_task_end(estimator=self.estimator)
