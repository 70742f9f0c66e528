"""Does a search by candidates find what scoring every subset finds, and blocks that no exhaustive search can reach?

    python experiments/screened.py agree [--seeds 0:20] [--columns 30] [--size 4] [--rows 2000] [--split paper]
                                         [--keep FOLDER] [--jobs 1]
    python experiments/screened.py planted [--columns 200] [--size 5] [--rows 5000] [--split paper] [--used 600]
                                           [--seed 0] [--jobs 1] [--write FILE]
    python experiments/screened.py look [--columns 200] [--size 5] [--rows 5000]

agree: for each seed a table with blocks of one to four columns (Gaussian with correlations of 0.1 to 0.7, rings, XOR
triples, mixtures), every seventh without any, is scored exhaustively (default marginal), and the candidates are grown
from the same scores: the partition, and how much objective they miss, if any.

planted: ten blocks of five columns, of five kinds, among many columns, searched for by search="screened"; or on one
split, of which so many rows fit and as many score. Seconds of the processor and peak memory until the partition is
proved.

look: triples of many kinds, from strong to weak, each scored as it would be among so many columns, beside what a first
look says of it: is any triple a link that would not be among those that are scored?
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from isde import load, select_partition
from isde.joined_tables import best_scores
from isde.partitions import canonical_partition
from isde.score_tables import How, score_models
from isde.score_tasks import SplitRows
from isde.scoring import Scoring
from isde.screening import screen
from isde.subsets import SubsetFamily
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
    print(f"{asked.columns} columns, {asked.rows:,} rows, blocks of at most {k}, split {asked.split or 'default'}")
    print(f"{'seed':>5} {'same':<5} {'misses, nats':>12} {'scored':>8} {'of':>8} {'left out':>8} {'right':<6} seconds")
    for seed in range(first, end):
        X, blocks = mixed_blocks(seed, asked.columns, asked.rows)
        truth = canonical_partition(blocks, asked.columns)
        start = time.process_time()
        scores = scored(X, k, seed, asked)
        seconds = time.process_time() - start
        few = screen(scores.restrict(3), k, lambda new, whole, scores=scores: scores.only(whole), look=not_needed)
        best, found = select_partition(scores), select_partition(few)
        same += best.partition == found.partition
        print(
            f"{seed:>5} {'yes' if best.partition == found.partition else 'NO':<5} "
            f"{best.objective - found.objective:>12.2g} {len(few):>8,} {len(scores):>8,} {few.left_out:>8,} "
            f"{'yes' if best.partition == truth else 'no':<6} {seconds:.1f}",
            flush=True,
        )
    print(f"the same partition for {same} of {end - first} seeds")


def not_needed():
    raise AssertionError("all triples of so few columns are scored: none is looked at")


def scored(X, k: int, seed: int, asked: argparse.Namespace):
    """The table of all subsets, kept in a folder if there is one."""
    path = asked.keep and Path(asked.keep) / f"scores-{X.shape[1]}-{k}-{len(X)}-{seed}.isde"
    if path and path.exists():
        return load(path)
    scores = Scoring.of(k, split=asked.split, random_state=seed, n_jobs=asked.jobs).score(X, columns=False)
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
    if asked.write:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({f"c{j:03d}": X[:, j] for j in range(d)}), asked.write)
        print("blocks:", [[f"c{j:03d}" for j in block] for block in blocks[: len(kinds)]])
        return
    split, used = asked.split, f"split {asked.split or 'default'}"
    if asked.used:
        split = ShuffleSplit(1, train_size=asked.used, test_size=asked.used, random_state=asked.seed)
        used = f"of which {asked.used:,} fit and {asked.used:,} score"
    scoring = Scoring.of(k, search="screened", split=split, random_state=asked.seed, verbose=1, n_jobs=asked.jobs)
    start = time.process_time()
    scores = scoring.score(X, columns=False)
    scored, found = time.process_time(), select_partition(scores)
    selected = time.process_time()
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    larger = set(blocks[: len(kinds)])
    print(f"d = {d}, k = {k}, {asked.rows:,} rows, {used}")
    print(f"seconds of the processor: {scored - start:.0f} scoring, {selected - scored:.1f} selecting; {peak:,.0f} MB")
    for kind in KINDS:
        own = {block for block, its in zip(blocks, kinds, strict=False) if its == kind}
        print(f"  {kind}: {len(own & set(found.partition))} of {len(own)} planted blocks of {k} columns found")
    others = [b for b in found.partition if len(b) > 1 and b not in larger]
    print(f"other blocks: {others}; proved {found.is_optimal}")


# --- a first look at triples -------------------------------------------------------------------------------------


def xor(n: int, rng, noise: float):
    bits = rng.integers(0, 2, (n, 3))
    bits[:, 2] = bits[:, 0] ^ bits[:, 1]
    return bits + noise * rng.standard_normal((n, 3))


def products(n: int, rng, strength: float, correlation: float = 0.0):
    """The third column follows the product of the others, which may be correlated."""
    X = rng.standard_normal((n, 3))
    X[:, 1] = correlation * X[:, 0] + np.sqrt(1 - correlation**2) * X[:, 1]
    X[:, 2] += strength * (X[:, 0] * X[:, 1] - correlation)
    return X


def remainders(n: int, rng, strength: float, cells: int):
    """A share of the rows has columns that add up to a multiple of 1 / cells."""
    U = rng.random((n, 3))
    third = ((-U[:, 0] - U[:, 1]) * cells % 1 + rng.integers(0, cells, n)) / cells
    U[:, 2] = np.where(rng.random(n) < strength, third, U[:, 2])
    return U


def checkers(n: int, rng, strength: float, cells: int):
    """A board of so many cells along each column, every other one preferred."""
    U = rng.random((4 * n, 3))
    sign = np.prod(1 - 2 * (np.floor(U * cells) % 2), axis=1)
    return U[rng.random(4 * n) < 0.5 * (1 + strength * sign)][:n]


def shell(n: int, rng, noise: float):
    X = rng.standard_normal((n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True) + noise * rng.standard_normal((n, 3))


def sines(n: int, rng, strength: float, periods: int):
    X = rng.random((n, 3))
    X[:, 2] += strength * np.sin(2 * np.pi * periods * X[:, 0]) * np.sin(2 * np.pi * periods * X[:, 1])
    return X


def triples_of_many_kinds(n: int, rng):
    """Name, strength and rows of triples."""
    weaker = (5000 / n) ** 0.25  # fewer rows tell stronger ones
    for name, draw, strengths in (
        ("xor, noise", xor, np.geomspace(0.5, 1.6, 10) / weaker),
        ("product", products, np.geomspace(0.05, 0.5, 10) * weaker),
        ("product of a pair, 0.5", lambda *a: products(*a, 0.5), np.geomspace(0.05, 0.5, 8) * weaker),
        ("product of a pair, 0.9", lambda *a: products(*a, 0.9), np.geomspace(0.05, 0.5, 8) * weaker),
        ("sum is whole", lambda *a: remainders(*a, 1), np.linspace(0.03, 0.5, 8)),
        ("sum is halves", lambda *a: remainders(*a, 2), np.linspace(0.1, 0.9, 8)),
        ("sum is thirds", lambda *a: remainders(*a, 3), np.linspace(0.2, 1, 6)),
        ("board of 2 cells", lambda *a: checkers(*a, 2), np.minimum(np.geomspace(0.06, 0.4, 8) * weaker, 1)),
        ("board of 3 cells", lambda *a: checkers(*a, 3), np.geomspace(0.1, 1, 8)),
        ("board of 4 cells", lambda *a: checkers(*a, 4), np.geomspace(0.2, 1, 6)),
        ("shell, noise", shell, np.geomspace(0.2, 2, 8)),
        ("equal correlations", lambda n, rng, r: gaussian(3, n, rng, r), np.geomspace(0.02, 0.2, 8) * weaker),
        ("sines of 1 period", lambda *a: sines(*a, 1), np.geomspace(0.03, 0.6, 8) * weaker),
        ("sines of 2 periods", lambda *a: sines(*a, 2), np.geomspace(0.1, 3, 8)),
    ):
        for strength in strengths.tolist():
            yield name, strength, draw(n, rng, strength)


def look(asked: argparse.Namespace) -> None:
    from isde.first_look import looks_of_triples
    from isde.screening import LOOKED, _margins

    n, d, rng = asked.rows, asked.columns, np.random.default_rng(11)
    alone, few = rng.standard_normal((n, 60)), SubsetFamily(3, 3)
    whole = Scoring.of(asked.size, search="screened", random_state=0)
    splits, of_three = whole._splits(alone), Scoring.of(3, alpha=None, random_state=0)
    chance = whole._chance(splits, SubsetFamily(d, 3), asked.size, n, None)
    charges = [own[[0, d, d + comb(d, 2)]][few.sizes - 1] for own in chance.charges(SubsetFamily(d, 3), n, whole.alpha)]
    with threadpool_limits(1, "blas"):
        nothing = looks_of_triples(alone, 1)
    least = float(np.quantile(nothing, 1 - LOOKED / comb(d - 1, 2)))
    print(
        f"{n:,} rows of {d} columns: a look of {n * least:.1f} nats is among {LOOKED} of {comb(d - 1, 2):,} by chance"
    )
    print(f"{'triple':<24} {'strength':>8} {'link, by nats':>13} {'pairs':>8} {'look':>8}")
    links, missed, weakest = 0, 0, np.inf
    for name, strength, X in triples_of_many_kinds(n, rng):
        with threadpool_limits(1, "blas"):
            models = score_models(SplitRows(of_three.marginal, X, splits), few, "abc", How(asked.jobs))
        table = best_scores([replace(own, charges=charge) for own, charge in zip(models, charges, strict=True)])
        with threadpool_limits(1, "blas"):
            seen = looks_of_triples(X, 1)[0]
        of_pairs = np.maximum(table.gains[3:6], 0)
        promised, margin = seen + of_pairs.sum() - of_pairs.max(), _margins(table)[-1]
        if margin > 0:
            links, missed, weakest = links + 1, missed + (promised < least), min(weakest, promised)
        numbers = f"{n * margin:>13.1f} {n * (promised - seen):>8.1f} {n * seen:>8.1f}"
        print(f"{name:<24} {strength:>8.2f} {numbers}  {'link' if margin > 0 else ''}", flush=True)
    beyond = int((nothing >= weakest).mean() * comb(d - 1, 2))
    print(
        f"{links} links, of which {missed} would not be scored; the weakest promised {n * weakest:.1f} nats: ", end=""
    )
    print(f"{beyond} of the triples of a column promise as much by chance")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["agree", "planted", "look"])
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--size", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--used", type=int, help="planted: one split, of which so many rows fit and as many score")
    parser.add_argument("--write", help="planted: the table as a parquet file, to call isde with by hand")
    parser.add_argument("--split", help="a preset; none: the default, twenty splits")
    parser.add_argument("--jobs", type=int, default=1, help="workers")
    parser.add_argument("--keep", help="folder that keeps exhaustive tables")
    asked = parser.parse_args()
    defaults = (30, 4, 2000) if asked.what == "agree" else (200, 5, 5000)
    for name, value in zip(("columns", "size", "rows"), defaults, strict=True):
        if getattr(asked, name) is None:
            setattr(asked, name, value)
    {"agree": agree, "planted": planted, "look": look}[asked.what](asked)


if __name__ == "__main__":
    main()
