"""The README's own example prints what the README says it does."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
NUMBER = re.compile(r"-?\d+\.\d+")


def test_the_example_prints_what_stands_below_it(all_tables):
    code, said = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    ).groups()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert NUMBER.sub("#", re.sub(r" +", " ", printed.getvalue())) == NUMBER.sub("#", re.sub(r" +", " ", said))
    numbers, expected = ([float(text) for text in NUMBER.findall(page)] for page in (printed.getvalue(), said))
    assert numbers == pytest.approx(expected, abs=0.011)  # a digit more or less, on another processor
