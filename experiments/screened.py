"""Does a search by candidates find what scoring every subset finds, and blocks that no exhaustive search can reach?

    python experiments/screened.py agree [--seeds 0:20] [--columns 30] [--size 4] [--rows 2000] [--keep FOLDER]
    python experiments/screened.py planted [--columns 200] [--size 5] [--rows 5000] [--used 600] [--seed 0]

agree: for each seed a table with blocks of one to four columns (Gaussian with correlations of 0.1 to 0.7, rings, XOR
triples, mixtures), every seventh without any, is scored exhaustively (split "paper", default marginal), and the
candidates are grown from the same scores: the partition, and how much objective they miss, if any.

planted: ten blocks of five columns, of five kinds, among many columns, searched for by search="screened" on one split:
of the rows, so many fit and as many score. Seconds of the processor and peak memory until the partition is proved.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from isde import load, select_partition
from isde.partitions import canonical_partition
from isde.scoring import Scoring
from isde.screening import screen
from isde.synthetic import make_structured

KINDS = "equal", "chain", "factor", "xor chain", "mixture"


def gaussian(size: int, n_rows: int, rng, correlation: float):
    """Columns of which each two have the same correlation."""
    common = np.sqrt(correlation) * rng.standard_normal((n_rows, 1))
    return common + np.sqrt(1 - correlation) * rng.standard_normal((n_rows, size))


def block(kind: str, size: int, n_rows: int, rng):
    """Columns that depend on each other in one of several ways."""
    if kind == "equal":
        return gaussian(size, n_rows, rng, rng.uniform(0.3, 0.6))
    if kind == "chain":  # each column on the one before it
        X = rng.standard_normal((n_rows, size))
        for j in range(1, size):
            X[:, j] += X[:, j - 1]
        return X
    if kind == "factor":  # a common scale: no two are correlated
        return rng.standard_normal((n_rows, size)) * np.exp(0.8 * rng.standard_normal((n_rows, 1)))
    if kind == "xor chain":  # triples with a column in common; pairs are independent
        X = rng.integers(0, 2, size=(n_rows, size))
        for j in range(2, size, 2):
            X[:, j] = X[:, j - 2] ^ X[:, j - 1]
        return X + 0.25 * rng.standard_normal(X.shape)
    return make_structured([size], n_rows, random_state=rng.integers(2**31))[0]


def shuffled(parts, rng):
    """Columns side by side in a random order, and the block of each part."""
    X = np.hstack(parts)
    place, at, blocks = rng.permutation(X.shape[1]), 0, []
    for part in parts:
        blocks.append(tuple(sorted(place[at : at + part.shape[1]].tolist())))
        at += part.shape[1]
    mixed = np.empty_like(X)
    mixed[:, place] = X
    return mixed, blocks


def mixed_blocks(seed: int, n_columns: int, n_rows: int):
    """Blocks of one to four columns, weak and strong; of every seventh seed columns alone."""
    rng, parts, left = np.random.default_rng([seed, 16]), [], n_columns
    while left:
        size = 1 if seed % 7 == 6 else min(int(rng.choice([1, 2, 3, 4], p=[0.25, 0.25, 0.25, 0.25])), left)
        if size > 1 and rng.random() < 0.5:
            parts.append(gaussian(size, n_rows, rng, rng.uniform(0.1, 0.7)))
        else:
            parts.append(make_structured([size], n_rows, random_state=rng.integers(2**31))[0])
        left -= size
    return shuffled(parts, rng)


def agree(asked: argparse.Namespace) -> None:
    first, end = map(int, asked.seeds.split(":"))
    k, same = asked.size, 0
    print(f"{asked.columns} columns, {asked.rows:,} rows, blocks of at most {k}, split paper")
    print(f"{'seed':>5} {'same':<5} {'misses, nats':>12} {'scored':>8} {'of':>8} {'left out':>8} {'right':<6} seconds")
    for seed in range(first, end):
        X, blocks = mixed_blocks(seed, asked.columns, asked.rows)
        truth = canonical_partition(blocks, asked.columns)
        start = time.process_time()
        scores = scored(X, k, seed, asked)
        seconds = time.process_time() - start
        few = screen(scores.restrict(3), k, lambda new, whole, scores=scores: scores.only(whole))
        best, found = select_partition(scores), select_partition(few)
        same += best.partition == found.partition
        print(
            f"{seed:>5} {'yes' if best.partition == found.partition else 'NO':<5} "
            f"{best.objective - found.objective:>12.2g} {len(few):>8,} {len(scores):>8,} {few.left_out:>8,} "
            f"{'yes' if best.partition == truth else 'no':<6} {seconds:.1f}",
            flush=True,
        )
    print(f"the same partition for {same} of {end - first} seeds")


def scored(X, k: int, seed: int, asked: argparse.Namespace):
    """The table of all subsets, kept in a folder if there is one."""
    path = asked.keep and Path(asked.keep) / f"scores-{X.shape[1]}-{k}-{len(X)}-{seed}.isde"
    if path and path.exists():
        return load(path)
    scores = Scoring.of(k, split="paper", random_state=seed).score(X, columns=False)
    if path:
        scores.save(path)
    return scores


def planted(asked: argparse.Namespace) -> None:
    from sklearn.model_selection import ShuffleSplit

    rng, d, k = np.random.default_rng(asked.seed), asked.columns, asked.size
    kinds = [KINDS[i % len(KINDS)] for i in range(min(2 * len(KINDS), d // (2 * k)))]
    parts = [block(kind, k, asked.rows, rng) for kind in kinds]
    parts += [rng.standard_normal((asked.rows, 1)) for _ in range(d - k * len(kinds))]
    X, blocks = shuffled(parts, rng)
    split = ShuffleSplit(1, train_size=asked.used, test_size=asked.used, random_state=asked.seed)
    scoring = Scoring.of(k, search="screened", split=split, random_state=asked.seed, verbose=1)
    start = time.process_time()
    scores = scoring.score(X, columns=False)
    scored, found = time.process_time(), select_partition(scores)
    selected = time.process_time()
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    larger = set(blocks[: len(kinds)])
    print(f"d = {d}, k = {k}, {asked.rows:,} rows, of which {asked.used:,} fit and {asked.used:,} score")
    print(f"seconds of the processor: {scored - start:.0f} scoring, {selected - scored:.1f} selecting; {peak:,.0f} MB")
    for kind in KINDS:
        own = {block for block, its in zip(blocks, kinds, strict=False) if its == kind}
        print(f"  {kind}: {len(own & set(found.partition))} of {len(own)} planted blocks of {k} columns found")
    others = [b for b in found.partition if len(b) > 1 and b not in larger]
    print(f"other blocks: {others}; proved {found.is_optimal}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["agree", "planted"])
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--size", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--used", type=int, default=600)
    parser.add_argument("--keep", help="folder that keeps exhaustive tables")
    asked = parser.parse_args()
    defaults = (30, 4, 2000) if asked.what == "agree" else (200, 5, 5000)
    for name, value in zip(("columns", "size", "rows"), defaults, strict=True):
        if getattr(asked, name) is None:
            setattr(asked, name, value)
    agree(asked) if asked.what == "agree" else planted(asked)


if __name__ == "__main__":
    main()
