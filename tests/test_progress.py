"""Progress: work is told to whoever reports it, and to nobody where nobody asked."""

import subprocess
import sys
from contextlib import contextmanager
from itertools import count

import pytest

from isde import ISDE, TreeISDE
from isde.callbacks import HAS_CALLBACKS, MOST_STEPS, CallbackSupport, heard_by_callbacks
from isde.errors import ISDEWarning
from isde.progress import Lines, current_reporter, progress_bar, reporting, say


class Notes:
    """A reporter that writes down what it hears."""

    def __init__(self, hears_all=False):
        self.hears_all, self.heard = hears_all, []

    def say(self, text):
        self.heard.append(text)

    @contextmanager
    def bar(self, total, label):
        self.heard.append((label, total))
        yield self.heard.append
        self.heard.append("done")


def work(show, steps=(1, 2)):
    with progress_bar(3, "Working", show=show) as advance:
        for n in steps:
            advance(n)


def test_a_reporter_hears_of_work_that_is_to_be_shown():
    notes = Notes()
    with reporting(notes):
        say("hello")
        work(show=False)
        work(show=True)
    assert notes.heard == ["hello", ("Working", 3), 1, 2, "done"]


def test_a_reporter_may_hear_of_everything():
    notes = Notes(hears_all=True)
    with reporting(notes):
        work(show=False)
    assert notes.heard == [("Working", 3), 1, 2, "done"]


def test_reporters_are_put_back_whatever_happens():
    before = current_reporter()
    outer = Notes()

    def fail():
        with reporting(Notes()):
            raise RuntimeError

    with reporting(outer):
        with pytest.raises(RuntimeError):
            fail()
        assert current_reporter() is outer
    assert current_reporter() is before


def test_lines_go_to_standard_error_and_short_work_is_one(capsys):
    say("hello")
    work(show=True)
    work(show=False)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "hello\nWorking\n")


def test_long_work_says_now_and_then_how_far_it_is(capsys):
    """By a clock that goes by four seconds each time it is looked at, 0.5 % of the work done between."""
    ticks = count(step=4)
    with reporting(Lines(clock=lambda: float(next(ticks)))), progress_bar(1000, "Scoring", show=True) as advance:
        for _ in range(200):
            advance(5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["Scoring", "Scoring: 2%, 0:13:04 left"]  # 2 % comes later than ten seconds
    assert lines[-1] == "Scoring: 100%, 0:00:00 left"
    assert len(lines) == 51
    ticks = count(step=1)
    with reporting(Lines(clock=lambda: float(next(ticks)))), progress_bar(30, "Scoring", show=True) as advance:
        for _ in range(30):
            advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Scoring",
        "Scoring: 33%, 0:00:20 left",
        "Scoring: 67%, 0:00:10 left",
        "Scoring: 100%, 0:00:00 left",
    ]


def test_the_core_needs_no_click():
    code = """
import sys
sys.modules["click"] = None
from isde import ISDE, load, synthetic, inspection, plots, partitions
import isde.comparison, isde.paper, isde.data.readers
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


# --- scikit-learn's callbacks ----------------------------------------------------------------------------------


class Fitted(CallbackSupport):
    """An estimator in whose fit there are two pieces of work."""

    def __init__(self, fails=False):
        self.fails = fails

    @heard_by_callbacks
    def fit(self, X, verbose=0):
        """Documented."""
        if verbose:
            say("fitting")
        with progress_bar(1000, "Scoring", show=verbose > 0) as advance:
            for _ in range(10):
                advance(100)
        if self.fails:
            raise RuntimeError("no luck")
        with progress_bar(3, "Blocks", show=False) as advance:
            advance(3)
        return self


def test_warnings_point_at_the_line_that_called_isde(rng):
    with pytest.warns(ISDEWarning, match="Repeated values") as caught:
        ISDE(marginal="gaussian", split="paper").fit(rng.normal(size=(60, 2)).round())
    assert {warning.filename for warning in caught} == {__file__}


class Callback:
    """Writes down which task began, which one ended, and how many parts it had."""

    def __init__(self):
        self.heard = []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def on_fit_task_begin(self, estimator, context):
        if context.task_name != "part":
            self.heard.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        if context.task_name != "part":
            parts = [child.task_name for child in context if child.task_name == "part"]
            self.heard.append(("end", context.task_name, len(parts)))

    def teardown(self, estimator, context):
        self.heard.append("teardown")


def test_an_estimator_without_callbacks_fits_as_ever(capsys):
    estimator = Fitted()
    assert estimator.fit([[0.0]], verbose=1) is estimator
    assert capsys.readouterr().err == "fitting\nScoring\n"
    assert vars(estimator) == {"fails": False}
    assert Fitted.fit.__doc__ == "Documented."


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has callbacks from 1.9 on.")
@pytest.mark.parametrize("verbose", [0, 1])
def test_callbacks_hear_of_every_piece_of_work(capsys, verbose):
    callback = Callback()
    Fitted().set_callbacks(callback).fit([[0.0]], verbose=verbose)
    assert callback.heard == [
        "setup",
        ("begin", "fit", None),
        ("begin", "Scoring", MOST_STEPS),
        ("end", "Scoring", MOST_STEPS),
        ("begin", "Blocks", 3),
        ("end", "Blocks", 3),
        ("end", "fit", MOST_STEPS + 3),
        "teardown",
    ]
    assert capsys.readouterr().err == "fitting\n" * verbose  # bars are the callbacks', talk is not


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has callbacks from 1.9 on.")
@pytest.mark.parametrize("estimator", [ISDE, TreeISDE])
def test_callbacks_hear_how_far_the_scoring_of_a_table_is(rng, estimator):
    callback = Callback()
    estimator(2, marginal="gaussian", random_state=0).set_callbacks(callback).fit(rng.normal(size=(60, 3)))
    assert callback.heard[:3] == ["setup", ("begin", "fit", None), ("begin", "Scoring 6 subsets on 20 splits", 100)]
    assert ("end", "Scoring 6 subsets on 20 splits", 100) in callback.heard
    assert callback.heard[-1] == "teardown"


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has callbacks from 1.9 on.")
def test_callbacks_are_let_go_where_a_fit_fails():
    callback, estimator, before = Callback(), Fitted(fails=True), current_reporter()
    with pytest.raises(RuntimeError, match="no luck"):
        estimator.set_callbacks(callback).fit([[0.0]])
    assert callback.heard[-1] == "teardown"
    assert current_reporter() is before
    assert vars(estimator).keys() == {"fails", "_skl_callbacks"}
