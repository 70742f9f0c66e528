"""The command line. One file per command: parse, call, print.

Results go to standard output, talk and progress to standard error. Exit codes are in `exit_codes`. Nothing heavy is
imported until a command runs: `isde --help` answers at once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from isde import __version__
from isde.cli.exit_codes import PARTIAL, STOPPED, exit_code
from isde.cli.flags import in_flags
from isde.cli.options import DEBUG, debug_option
from isde.cli.output import echo, write_utf8
from isde.cli.progress import BarReporter
from isde.cli.signals import leave_at_once, stopped_by_signals
from isde.errors import ISDEError, PartialWarning
from isde.files import NO_ROOM
from isde.progress import reporting

COMMANDS = {
    "fit": "Find the blocks of a table and fit its density.",
    "score": "Log-density of new rows under a fitted model.",
    "sample": "Draw rows from a fitted model.",
    "partitions": "The best and worst partitions of a run, also under constraints.",
    "stability": "How sure the blocks of a run are, by random parts of its rows.",
    "compare": "Compare density estimators on the same rows of a table.",
    "reproduce": "Run a table or figure of the paper, beside the published one.",
    "report": "One HTML page on a run, to send to a colleague.",
    "info": "What a run found: blocks, gains, proof.",
    "graph": "The graph of a run, for other programs or as a figure.",
    "export": "The score of every subset of a run, as csv or parquet.",
    "demo": "Fit built-in data and show the result.",
}


class LazyGroup(click.Group):
    """Loads a command's module only when that command runs; turns errors into one sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"isde.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> Any:
        if args is None:
            write_utf8()
        try:
            return super().main(args, *others, **options)
        except SystemExit as end:
            # Without arguments given, the command is all that this process does.
            if args is None and isinstance(end.code, int) and end.code in STOPPED:
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, ValueError):  # nobody reads it any more
                        stream.flush()
                leave_at_once(end.code)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        partial = False

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            nonlocal partial
            partial = partial or issubclass(category, PartialWarning)
            self._print("Warning", str(message), ctx)

        try:
            with warnings.catch_warnings(), reporting(BarReporter()), stopped_by_signals() as stopped:
                warnings.showwarning = show
                found = super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click's own, and a reader that has seen enough
        except Exception as error:
            if ctx.find_root().meta.get(DEBUG):
                raise
            self._print("Error", _sentence(error), ctx)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            echo("\nStopped.", err=True)
            ctx.exit(128 + stopped())
        if partial:
            ctx.exit(PARTIAL)
        return found

    def _print(self, kind: str, text: str, ctx: click.Context) -> None:
        """A message of the core, in the flags of the command that was running."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        echo(f"{kind}: {in_flags(text, command)}", err=True)


def _sentence(error: Exception) -> str:
    expected = isinstance(error, ISDEError | ValueError | TypeError | OSError)
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return f"There is not enough memory ({text}): use fewer columns, a smaller max_block_size= or fewer n_jobs=."
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        what = error.filename or "what is printed, or for a temporary file"
        return f"There is no room for {what} ({error.strerror}): make room, or write somewhere else."
    return text if expected else f"{type(error).__name__}: {text} (run again with --debug to see where)"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="isde")
@debug_option
def main() -> None:
    """Independence Structure Density Estimation: which columns move together, proved optimal, and their density."""
