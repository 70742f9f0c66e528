"""Item 1: how many subsets and partitions there are."""

from __future__ import annotations

from collections.abc import Sequence

from isde.paper.item import Finding, Item, Outcome, Results, Row, Settings, Step
from isde.paper.wording import joined
from isde.partitions import count_partitions
from isde.subsets import SubsetFamily

BELL = {10: 115_975, 11: 678_570, 12: 4_213_597, 13: 27_644_437, 14: 190_899_322, 15: 1_382_958_545}
SUBSETS_OF_THREE = {20: 1_350, 30: 4_525, 40: 10_700, 50: 20_875}
PAIRINGS = {20: "2.4e10", 30: "6.1e17", 40: "7.3e25", 50: "2.8e34"}


def steps(settings: Settings) -> list[Step]:
    """One step for each table of the paper."""
    return [
        Step({"table": "all block sizes"}, _all_sizes),
        Step({"table": "small blocks"}, _small_blocks),
        Step({"table": "in the text"}, _in_the_text),
    ]


def _row(symbol: str, d: int, k: int, count: int, published: object) -> Row:
    return {"symbol": symbol, "d": d, "k": k, "count": str(count), "published": str(published)}


def _all_sizes(_: Sequence[Row]) -> Outcome:
    rows = [_row("S_d", d, d, len(SubsetFamily(d, d)), 2**d - 1) for d in BELL]
    return Outcome(rows + [_row("B_d", d, d, count_partitions(d), published) for d, published in BELL.items()])


def _small_blocks(_: Sequence[Row]) -> Outcome:
    rows = [_row("S_d^3", d, 3, len(SubsetFamily(d, 3)), published) for d, published in SUBSETS_OF_THREE.items()]
    return Outcome(rows + [_row("B_d^2", d, 2, count_partitions(d, 2), published) for d, published in PAIRINGS.items()])


def _in_the_text(_: Sequence[Row]) -> Outcome:
    return Outcome(
        [
            _row("|Part_13^5|", 13, 5, count_partitions(13, 5), 25_719_630),
            _row("|Part_32^3|", 32, 3, count_partitions(32, 3), "more than 1e19"),
        ]
    )


def findings(results: Results) -> list[Finding]:
    """One line for each symbol."""
    found = []
    for symbol in dict.fromkeys(row["symbol"] for row in results.rows):
        rows = results.where(symbol=symbol)
        is_bound = isinstance(rows[0]["published"], str)
        # Exact where the paper is, or gives no more than a bound; else with its two digits.
        show = _rounded if isinstance(rows[0]["published"], float) else _grouped
        agreed = "Above that bound." if is_bound else "The same."
        found.append(
            Finding(
                f"{symbol}, d = {joined(row['d'] for row in rows)}",
                joined(row["published"] if is_bound else show(row["published"]) for row in rows),
                joined(show(row["count"]) for row in rows),
                agreed if all(map(_agrees, rows)) else "The published number is wrong.",
            )
        )
    return found


def _agrees(row: Row) -> bool:
    count, published = row["count"], row["published"]
    if isinstance(published, str):
        return bool(count > float(published.split()[-1]))
    # A float is published with two digits, a whole number with all of them.
    return f"{count:.1e}" == f"{published:.1e}" if isinstance(published, float) else bool(count == published)


def _grouped(number: int) -> str:
    return f"{number:,}"


def _rounded(number: float) -> str:
    """Two digits, as the paper prints large numbers.

    >>> _rounded(23758664096)
    '2.4e10'
    """
    return f"{number:.1e}".replace("e+", "e")


ITEM = Item(
    "table-counts",
    "Tables 1 and 2: numbers of subsets and partitions, S_d, B_d, S_d^3, B_d^2; |Part_13^5| and |Part_32^3|",
    steps,
    findings,
    notes=(
        "S_d^k is the sum over i = 1..k of C(d, i); the text has C(d, k), a slip of the pen: the table is right.",
        "The sum for B_d^2 starts at i = 0, as its expansion and its derivation do; the appendix writes i = 1.",
        "B_d^2 ~ d^(d/2) is wrong: at d = 20 it is 2.4e10 against 1.0e13; growth like (d/e)^(d/2) exp(sqrt(d) - 1/4) / "
        "sqrt(2) is right (the number of involutions).",
        "In the derivation of the Gaussian divergence the third term needs a minus; the final formula is right.",
    ),
)
