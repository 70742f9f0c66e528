"""`python -m tests.fault [fault ...]`: try every fault, or those named, many times, and print what became of them."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import FAULTS, fault, missing

SHOWN = 5
"""Losses of one fault, in words."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault", description=__doc__)
    parser.add_argument("files", nargs="*", help=f"faults to try, by file: {', '.join(FAULTS.values())}")
    parser.add_argument("--tries", type=int, help="of each fault, instead of its own number")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    unknown = set(asked.files) - set(FAULTS.values())
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    width = max(map(len, FAULTS))
    print(f"{'fault':<{width}} {'tries':>7} {'survived':>9} {'lost':>6} {'seconds':>9}", flush=True)
    all_lost = 0
    for name, file in FAULTS.items():
        if asked.files and file not in asked.files:
            continue
        needs = missing(fault(name))
        if needs is not None:
            print(f"{name:<{width}} not tried: {needs} is not installed", flush=True)
            continue
        tries, survived, lost, seconds, measured = _try(name, asked.tries, asked.seed)
        all_lost += len(lost)
        print(f"{name:<{width}} {tries:>7,} {survived:>9,} {len(lost):>6,} {seconds:>9.1f}", flush=True)
        if measured:
            print(f"    {measured}", flush=True)
        for text in lost[:SHOWN]:
            print(f"    {text}", file=sys.stderr, flush=True)
    return 1 if all_lost else 0


def _try(name: str, tries: int | None, seed: int) -> tuple[int, int, list[str], float, str | None]:
    begun, found = time.monotonic(), list[str | None]()
    with tempfile.TemporaryDirectory() as folder:
        module = fault(name)
        trying = module.run(tries or module.TRIES, Path(folder), np.random.default_rng(seed))
        while True:
            try:
                found.append(next(trying))
            except StopIteration as end:
                measured = end.value
                break
    lost = [text for text in found if text is not None]
    return len(found), len(found) - len(lost), lost, time.monotonic() - begun, measured


if __name__ == "__main__":
    sys.exit(main())
