"""The page: templates filled with numbers, everything escaped, and a policy that forbids what is not on it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isde.errors import InputError
from isde.files import whole_file
from isde.report.numbers import report_numbers
from isde.structure_estimator import StructureEstimator

MOST_PAIRS_LISTED = 1500
"""Pairs in the table beside the matrix; more would make the page heavy."""

UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, marks that turn the direction of what follows, and half characters."""


def require_jinja2() -> None:
    """Raise, in one sentence, where a package that pages need is missing."""
    missing = [name for name in ("jinja2", "contourpy") if find_spec(name) is None]
    if missing:
        raise InputError(f'Reports need {" and ".join(missing)}: pip install "isde[report]".')


def write_report(
    model: StructureEstimator,
    path: str | Path,
    X: Any = None,
    *,
    about: Mapping[str, Any] | None = None,
    stability: Any = None,
    comparison: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page of a fitted model to one file; see `report_numbers` for what may be given besides."""
    require_jinja2()
    check_target(Path(path))
    numbers = report_numbers(model, X, about=about, stability=stability, comparison=comparison)
    return save_page(numbers, path)


def save_page(numbers: Mapping[str, Any], path: str | Path) -> Path:
    """Write the page of some numbers to one file, whole or not at all."""
    target = Path(path)
    check_target(target)
    page = render(numbers)
    with whole_file(target) as file:
        file.write(page.encode("utf-8"))
    return target


def check_target(target: Path) -> None:
    """Refuse a place where no file can be."""
    if target.is_dir() or not target.absolute().parent.is_dir():
        reason = "is a folder" if target.is_dir() else f"cannot be written: {target.absolute().parent} is no folder"
        raise InputError(f"{target} {reason}: give the name of a file in a folder that exists.")


def render(numbers: Mapping[str, Any]) -> str:
    """The page, from the numbers of `report_numbers` and nothing else."""
    require_jinja2()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from isde.report import figures, words

    environment = Environment(
        loader=PackageLoader("isde.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= words.FILTERS | {"at": figures.number}
    shown = _printable(numbers)
    style, script = (_part(name) for name in ("style.css", "script.js"))
    page = environment.get_template("page.html").render(
        n=shown,
        style=style,
        script=script,
        policy=_policy(style, script),
        figures=figures,
        words=words,
        order=figures.block_order(shown["blocks"]),
        hue=figures.hues(shown),
        bars=figures.gain_bars(shown["blocks"]),
        listed=shown["pairs"]["listed"][:MOST_PAIRS_LISTED],
    )
    return "\n".join(line.strip() for line in page.splitlines() if line.strip()) + "\n"


def _part(name: str) -> str:
    """A file of ours that goes on the page as it is, in the form that its digest is taken of."""
    from markupsafe import Markup

    lines = files("isde.report").joinpath("templates", name).read_text(encoding="utf-8").splitlines()
    return Markup("\n".join(line.strip() for line in lines if line.strip()))


def _policy(style: str, script: str) -> str:
    """Our own style and script by their digests, and nothing else of any kind from anywhere."""
    own = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    """What a content security policy knows an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(f"\n{text}\n".encode()).digest()).decode()


def _printable(value: Any) -> Any:
    """The same numbers and texts, without characters that no page shows."""
    if isinstance(value, Mapping):
        return {name: _printable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    return UNPRINTABLE.sub("\ufffd", value) if isinstance(value, str) else value
