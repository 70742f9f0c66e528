"""Tables of the docs that follow from registries: `make tables` writes them anew, a test compares.

python docs/registry_tables.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sklearn.mixture import GaussianMixture

from isde.data.readers import READERS, STREAMS
from isde.marginals import DEFAULT_MARGINAL, FAMILIES, resolve_marginal
from isde.marginals.marginal import Marginal

HERE = Path(__file__).parent


def marginals() -> list[str]:
    """Every family, what is said of it, and what it says of itself."""
    default = {DEFAULT_MARGINAL: " (the default)"}
    found = {
        f"`{name}`{default.get(name, '')}": (line.about, resolve_marginal(name)) for name, line in FAMILIES.items()
    }
    found["an estimator"] = "anything with `fit` and `score_samples`", resolve_marginal(GaussianMixture())
    head = (
        "`marginal=`",
        "",
        "by ranks: chance is charged",
        "zero has a meaning",
        "`penalty=`",
        "marginals are known: trees",
    )
    return _table(head, [(name, about, *_facts(family)) for name, (about, family) in found.items()])


def _facts(family: Marginal) -> tuple[str, ...]:
    traits = family.traits
    known = traits.by_ranks, traits.keeps_zero, family.n_parameters(2) is not None, traits.without_marginals is None
    return tuple("yes" if fact else "" for fact in known)


def readers() -> list[str]:
    """Every ending, and whether such files are read some rows at a time."""
    return _table(("ending", "some rows at a time"), [(f"`{e}`", "yes" if e in STREAMS else "") for e in READERS])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


TABLES = {"marginals.md": marginals, "files.md": readers}


def written(page: str) -> str:
    """A page with its table as the registry has it."""
    begin, end = "<!-- written by docs/registry_tables.py -->", "<!-- end of what is written -->"
    text = (HERE / page).read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{page} has no place for its table: a line {begin!r}, and behind it a line {end!r}.")
    own = "\n".join([begin, *TABLES[page](), end])
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: own, text, flags=re.DOTALL)


def main() -> None:
    for page in TABLES:
        (HERE / page).write_text(written(page), encoding="utf-8")


if __name__ == "__main__":
    main()
