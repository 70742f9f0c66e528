"""The report: every complete run at full settings, published and measured side by side, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from isde.errors import InputError
from isde.paper import ITEMS
from isde.paper.item import PROTOCOLS, Finding, Item, Results
from isde.paper.runner import about_run, load_results, replace_file

FREE_HEAD = ("item", "what", "published", "measured", "difference")
DEFAULTS = {"seed": 0, "max_block_size": None, "above": None, "seconds": None}
"""Settings of the paper: others are named where their results stand."""
PROTOCOL_HEAD = ("item", "what", "published", "measured, protocol paper", "measured, protocol clean", "difference")


def write_report(folder: Path, path: Path) -> list[str]:
    """Write the report of the results in `folder`; returns the items that have none."""
    if not folder.is_dir():
        raise InputError(f"{folder} does not exist: run some items first, or give their folder (output=).")
    runs = full_runs(folder)
    if not any(runs.values()):
        raise InputError(f"{folder} holds no complete run at full settings: a report has no quick rows.")
    replace_file(path, report_text(folder, runs).encode())
    return [name for name, found in runs.items() if not found]


def full_runs(folder: Path) -> dict[str, list[Results]]:
    """The complete runs at full settings by the code of today, by item, in order of their files' names."""
    names = sorted(path.stem for path in folder.glob("*.json"))
    found: dict[str, list[Results]] = {name: [] for name in ITEMS}
    for name in names:
        results = load_results(folder, name)
        if results is None or results.settings["size"] != "full":
            continue
        item = ITEMS.get(results.settings["item"])
        if item is not None and item.version == results.settings["version"]:
            found[item.name].append(results)
    return found


def report_text(folder: Path, runs: dict[str, list[Results]]) -> str:
    """The whole page."""
    free = [item for item in ITEMS.values() if not item.has_protocols]
    in_two = [item for item in ITEMS.values() if item.has_protocols]
    missing = [name for name, found in runs.items() if not found]
    parts = [
        "# The paper, reproduced",
        "Written by `isde reproduce --report`, from runs at full settings only. `isde reproduce --list` says what each "
        f"item is, `isde reproduce ITEM` runs it; the rows are in `{folder.as_posix()}`. Cells with several numbers "
        "follow the order named in the column *what*; in parentheses are standard deviations over repetitions, where "
        "*what* names nothing else.",
        *_machines(folder, runs),
        "## Summary: items without a protocol of data",
        _table(FREE_HEAD, _free_lines(free, runs)),
        "## Summary: items under two protocols",
        "\n".join(f"- `{name}`: {text}." for name, text in reversed(PROTOCOLS.items())),
        _table(PROTOCOL_HEAD, _protocol_lines(in_two, runs)),
        "## Notes: the paper's text, its code, and this package",
        *(_notes(item) for item in ITEMS.values() if item.notes),
    ]
    if missing:
        parts.append("Not run yet: " + ", ".join(f"`{name}`" for name in missing) + ".")
    return "\n\n".join(parts) + "\n"


def _machines(folder: Path, runs: dict[str, list[Results]]) -> list[str]:
    """The machines the runs were made on, each with its items."""
    by_machine: dict[str, list[str]] = {}
    for results in (results for found in runs.values() for results in found):
        m = about_run(folder, results.name)["machine"]
        text = (
            f"{m['processor']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}; Python {m['python']}, "
            f"numpy {m['numpy']}, scipy {m['scipy']}, scikit-learn {m['scikit-learn']}, numba {m['numba']}, "
            f"isde {m['isde']}"
        )
        by_machine.setdefault(text, []).append(results.name)
    lines = [
        f"- {text}" + (f" (`{'`, `'.join(names)}`)" if len(by_machine) > 1 else "")
        for text, names in by_machine.items()
    ]
    published = "- the paper's: Intel Xeon W-10885M at 2.40 GHz and Nvidia Quadro RTX 3000 Mobile, a laptop"
    return ["## Machine", "\n".join([*lines, published])]


def _free_lines(items: Sequence[Item], runs: dict[str, list[Results]]) -> Iterable[Sequence[str]]:
    for item in items:
        for results in runs[item.name]:
            for finding in _compared(item, results):
                yield item.name, finding.what, finding.published, finding.measured, finding.why


def _protocol_lines(items: Sequence[Item], runs: dict[str, list[Results]]) -> Iterable[Sequence[str]]:
    for item in items:
        for same in dict.fromkeys(map(_but_protocol, runs[item.name])):
            by_protocol = {
                results.settings["protocol"]: {finding.what: finding for finding in _compared(item, results)}
                for results in runs[item.name]
                if _but_protocol(results) == same
            }
            paper, clean = (by_protocol.get(name, {}) for name in ("paper", "clean"))
            for what in dict.fromkeys([*paper, *clean]):
                yield item.name, what, *_side_by_side(paper.get(what), clean.get(what))


def _compared(item: Item, results: Results) -> list[Finding]:
    """Its findings, settings that are not the paper's named with each."""
    other = [f"{k} {v}" for k, v in results.settings.items() if k in DEFAULTS and v != DEFAULTS[k]]
    named = f" ({', '.join(other)})" if other else ""
    return [replace(finding, what=finding.what + named) for finding in item.compare(results)]


def _but_protocol(results: Results) -> tuple[tuple[str, object], ...]:
    return tuple((name, value) for name, value in sorted(results.settings.items()) if name != "protocol")


def _side_by_side(paper: Finding | None, clean: Finding | None) -> tuple[str, str, str, str]:
    one = paper or clean
    assert one is not None
    whys = {name: found.why for name, found in (("paper", paper), ("clean", clean)) if found is not None}
    same = len(set(whys.values())) == 1
    why = one.why if same else " ".join(f"{name.capitalize()}: {text}" for name, text in whys.items())
    return (
        one.published,
        paper.measured if paper else "not run",
        clean.measured if clean else "not run",
        why,
    )


def _notes(item: Item) -> str:
    return f"`{item.name}` ({item.paper}):\n\n" + "\n".join(f"- {note}" for note in item.notes)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)
