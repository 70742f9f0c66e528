"""The core names parameters, the command line names flags: the one place where the first become the second."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

import click

OTHER_NAMES = {
    "cv": "folds",
    "n": "resamples",
    "n_jobs": "jobs",
    "n_null": "null",
    "random_state": "seed",
}
"""Parameters of the core whose options have another name; those of the others are the parameters'."""

VALUE = r"'[^']*'|\[[^][]*\]|-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?|True|False|None|(?![\w([{'\"-])"
"""How messages write values: quoted text, lists, numbers, three words, or nothing at all, as in `columns=`."""

OPAQUE = r"(?<![\w=])(?:'[^']*'|\"[^\"]*\")|\b[A-Za-z_][\w.]*\([^()]*\)"
"""What stays as it is: names of columns, and calls such as ShuffleSplit(train_size=5), which are Python."""

PHRASE = re.compile(rf"{OPAQUE}|(?<![\w./\\-])(?P<name>[a-z_]+)=(?P<value>{VALUE})(?![\w/\\]|\.\w)")
"""A parameter with its value, unless it is part of a path: folders may be called alpha=0.05."""


def in_flags(text: str, command: click.Command | None = None) -> str:
    """A message of the core in the words of the running command; what it has no option for stays as it is."""
    if command is None:
        context = click.get_current_context(silent=True)
        command = None if context is None else context.command
    parameters = [] if command is None else command.params
    options = {option.name or "": option for option in parameters if isinstance(option, click.Option)}
    return PHRASE.sub(lambda found: _flag(found["name"], found["value"], options) or found[0], text)


def _flag(name: str | None, value: str, options: Mapping[str, click.Option]) -> str | None:
    """The option that a parameter means, with its value; None where there is none."""
    option = options.get(OTHER_NAMES.get(name or "", name or ""))
    if option is None:
        return None
    flag = max(option.opts, key=len)
    if option.is_flag:
        return {"True": flag, "": flag, "False": next(iter(option.secondary_opts), None)}.get(value)
    if value == "None" and "none" not in _words(option):
        return None
    return f"{flag} {_typed(value)}".rstrip()


def _words(option: click.Option) -> Iterable[str]:
    """The words that an option takes for values."""
    return option.type.choices if isinstance(option.type, click.Choice) else option.type.name.split("|")


def _typed(value: str) -> str:
    """A value as one types it.

    >>> [_typed(text) for text in ("'copula+stack'", "';'", "5,000", "[0.1, 0.2]", "None")]
    ['copula+stack', "';'", '5000', '0.1,0.2', 'none']
    """
    if value.startswith("'"):
        return shlex.quote(value[1:-1])
    if value.startswith("["):
        return shlex.quote(",".join(part.strip() for part in value[1:-1].split(",")))
    return "none" if value == "None" else value.replace(",", "")
