"""Random steps over chordal graphs with cliques of at most k columns, from hot to cold, and the best graph met.

Three kinds of steps keep a graph chordal. An edge ab comes or goes, where the common neighbours S of a and b separate
them once it is gone, and are complete: then exactly the cliques S + a, S + b, S + a + b and the separator S change. A
column whose neighbours N are complete moves to another complete set T. Both change the gain by four terms of the table.
And a whole branch, what a separator S parts from the rest, hangs on a column e in place of a in S, where e and the rest
of S are complete: two chordal graphs that share a complete set are one. Its cliques and separators have e for a then.
With branches a run of 32 or 50 columns ends higher by 0.1 nats in the mean (on tables that fit no tree).

Neighbours are lists beside a matrix of yes and no: trees have few of them, and any number of columns will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop, part

REFUSED = -1e300
"""The change of a step that is not taken."""

BRANCHES = 64
"""Of 256 steps, those that move a branch."""


@part
def _random(state: int) -> Any:
    """The next of a run of numbers that look random (xorshift), in 63 bits."""
    state ^= (state << 13) & 0x7FFFFFFFFFFFFFFF
    state ^= state >> 7
    return state ^ ((state << 17) & 0x7FFFFFFFFFFFFFFF)


@part
def _place(members: NDArray[np.int64], size: int, offsets: NDArray[np.int64], terms: NDArray[np.int64]) -> Any:
    """Where a set of columns, in any order, stands in the table."""
    place = offsets[size]
    for i in range(size):
        rank = 1
        for j in range(size):
            if members[j] < members[i]:
                rank += 1
        place += terms[members[i], rank]
    return place


@part
def _change(
    members: NDArray[np.int64],
    size: int,
    sign: int,
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
    penalty: float,
) -> Any:
    """What one use more (sign 1) or less (-1) of a set of columns adds to the gain; -inf costs the penalty a use."""
    if size == 0:
        return 0.0
    place = _place(members, size, offsets, terms)
    if gains[place] == -np.inf:
        return -penalty * (abs(uses[place] + sign) - abs(uses[place]))
    return sign * gains[place]


@part
def _use(
    members: NDArray[np.int64],
    size: int,
    sign: int,
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
) -> None:
    if size > 0:
        uses[_place(members, size, offsets, terms)] += sign


@part
def _are_complete(joined: NDArray[np.bool_], members: NDArray[np.int64], size: int) -> Any:
    for i in range(size):
        for j in range(i):
            if not joined[members[i], members[j]]:
                return False
    return True


@part
def _are_separated(
    a: int,
    b: int,
    members: NDArray[np.int64],
    size: int,
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> Any:
    """Whether every path from a to b passes through the members."""
    for i in range(size):
        seen[members[i]] = stamp
    seen[a] = stamp
    queue[0] = a
    first, last = 0, 1
    while first < last:
        column = queue[first]
        first += 1
        for i in range(degrees[column]):
            other = neighbours[column, i]
            if seen[other] != stamp:
                if other == b:
                    return False
                seen[other] = stamp
                queue[last] = other
                last += 1
    return True


@part
def _join(a: int, b: int, joined: NDArray[np.bool_], neighbours: NDArray[np.int64], degrees: NDArray[np.int64]) -> None:
    joined[a, b] = joined[b, a] = True
    neighbours[a, degrees[a]] = b
    neighbours[b, degrees[b]] = a
    degrees[a] += 1
    degrees[b] += 1


@part
def _part_with(
    a: int, b: int, joined: NDArray[np.bool_], neighbours: NDArray[np.int64], degrees: NDArray[np.int64]
) -> None:
    joined[a, b] = joined[b, a] = False
    for one, other in ((a, b), (b, a)):
        degrees[one] -= 1
        for i in range(degrees[one]):
            if neighbours[one, i] == other:
                neighbours[one, i] = neighbours[one, degrees[one]]
                break


@part
def _toggle(
    a: int,
    b: int,
    least: float,
    k: int,
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
    penalty: float,
    joined: NDArray[np.bool_],
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    common: NDArray[np.int64],
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
) -> Any:
    """Let an edge come or go, and what that adds to the gain; REFUSED where it adds less than asked, or may not be."""
    few, many = (b, a) if degrees[b] < degrees[a] else (a, b)
    size = 0
    for i in range(degrees[few]):
        if joined[many, neighbours[few, i]]:
            if size < k - 1:
                common[size] = neighbours[few, i]
            size += 1
    if size > k - 2:
        return REFUSED
    sign = -1 if joined[a, b] else 1
    change = _change(common, size, sign, gains, offsets, terms, uses, penalty)
    common[size] = a
    change += _change(common, size + 1, -sign, gains, offsets, terms, uses, penalty)
    common[size + 1] = b
    change += _change(common, size + 2, sign, gains, offsets, terms, uses, penalty)
    common[size] = b
    change += _change(common, size + 1, -sign, gains, offsets, terms, uses, penalty)
    if change < least:
        return REFUSED
    if sign == -1:
        if not _are_complete(joined, common, size):
            return REFUSED
        _part_with(a, b, joined, neighbours, degrees)
    else:
        if not _are_separated(few, many, common, size, neighbours, degrees, queue, seen, stamp):
            return REFUSED
        _join(a, b, joined, neighbours, degrees)
    _use(common, size, sign, offsets, terms, uses)
    _use(common, size + 1, -sign, offsets, terms, uses)
    common[size] = a
    _use(common, size + 1, -sign, offsets, terms, uses)
    common[size + 1] = b
    _use(common, size + 2, sign, offsets, terms, uses)
    return change


@part
def _branch(
    a: int,
    first: int,
    k: int,
    joined: NDArray[np.bool_],
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    separator: NDArray[np.int64],  # out: a, then others
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],  # out: the stamp for columns of the branch
    stamp: int,
) -> Any:
    """A branch that hangs on a separator with a, by the first of a's neighbours in it: the separator's size.

    0 where it is most of the graph: then the rest would be the branch.
    """
    separator[0], size, n_columns = a, 1, len(joined)
    c = neighbours[a, first % degrees[a]]
    for i in range(degrees[a]):
        other = neighbours[a, (first + i) % degrees[a]]
        fits = size < k - 1 and joined[other, c]
        for j in range(1, size):
            fits = fits and joined[other, separator[j]]
        if fits:
            separator[size] = other
            size += 1
    for i in range(size):
        seen[separator[i]] = stamp - 1
    seen[c] = stamp
    queue[0] = c
    done, last = 0, 1
    while done < last:
        column = queue[done]
        done += 1
        for i in range(degrees[column]):
            other = neighbours[column, i]
            if seen[other] < stamp - 1:
                if 2 * last > n_columns:
                    return 0
                seen[other] = stamp
                queue[last] = other
                last += 1
    touched = 0
    for i in range(size):
        touches = False
        for j in range(degrees[separator[i]]):
            touches = touches or seen[neighbours[separator[i], j]] == stamp
        if touches:
            separator[touched] = separator[i]
            touched += 1
    return touched


@part
def _renamed(
    a: int,
    e: int,
    is_done: bool,
    k: int,
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
    joined: NDArray[np.bool_],
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
    members: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> Any:
    """What it adds to put e for a in all cliques and separators with a and a column of the branch; REFUSED at -inf.

    The uses are changed where it is done.
    """
    members[0] = a
    chosen[1] = -1
    size, change = 1, 0.0  # of the set that neighbours of a are tried for, one after another
    while size > 0:
        i = chosen[size] + 1
        while i < degrees[a]:
            fits = True
            for j in range(1, size):
                fits = fits and joined[neighbours[a, i], members[j]]
            if fits:
                break
            i += 1
        if i >= degrees[a]:
            size -= 1
            continue
        chosen[size] = i
        members[size] = neighbours[a, i]
        in_branch = False
        for j in range(1, size + 1):
            in_branch = in_branch or seen[members[j]] == stamp
        old = _place(members, size + 1, offsets, terms)
        if in_branch and uses[old] != 0:
            members[0] = e
            new = _place(members, size + 1, offsets, terms)
            members[0] = a
            if gains[old] == -np.inf or gains[new] == -np.inf:
                return REFUSED
            change += uses[old] * (gains[new] - gains[old])
            if is_done:
                uses[new] += uses[old]
                uses[old] = 0
        if size + 1 < k:
            size += 1
            chosen[size] = i
    return change


@part
def _rehang(
    e: int,
    size: int,
    least: float,
    k: int,
    gains: NDArray[np.float64],
    offsets: NDArray[np.int64],
    terms: NDArray[np.int64],
    uses: NDArray[np.int64],
    penalty: float,
    joined: NDArray[np.bool_],
    neighbours: NDArray[np.int64],
    degrees: NDArray[np.int64],
    separator: NDArray[np.int64],
    queue: NDArray[np.int64],
    seen: NDArray[np.int64],
    stamp: int,
    members: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> Any:
    """Let a branch hang on column e in place of the separator's first, and what that adds; REFUSED as in `_toggle`."""
    a = separator[0]
    fits = seen[e] != stamp and e != a
    for i in range(1, size):
        fits = fits and joined[e, separator[i]]
    if not fits:
        return REFUSED
    change = _change(separator, size, 1, gains, offsets, terms, uses, penalty)
    separator[0] = e
    change += _change(separator, size, -1, gains, offsets, terms, uses, penalty)
    what = k, gains, offsets, terms, uses, joined, neighbours, degrees, seen, stamp, members, chosen
    more = _renamed(a, e, False, *what)
    if more == REFUSED or change + more < least:
        return REFUSED
    _renamed(a, e, True, *what)
    _use(separator, size, -1, offsets, terms, uses)
    separator[0] = a
    _use(separator, size, 1, offsets, terms, uses)
    moved = 0
    for i in range(degrees[a]):
        if seen[neighbours[a, i]] == stamp:
            queue[moved] = neighbours[a, i]
            moved += 1
    for i in range(moved):
        _part_with(a, queue[i], joined, neighbours, degrees)
        _join(e, queue[i], joined, neighbours, degrees)
    return change + more


@loop
def walk(
    k: int,
    gains: NDArray[np.float64],  # in: in the order of the table
    offsets: NDArray[np.int64],  # in: of the table, by size
    terms: NDArray[np.int64],  # in: binomials, which add up to a place in the table
    joined: NDArray[np.bool_],  # in and out: the graph
    neighbours: NDArray[np.int64],  # in and out: of each column, as many as its degree
    degrees: NDArray[np.int64],  # in and out
    uses: NDArray[np.int64],  # in and out: of each subset, as clique or, negative, as separator
    penalty: float,
    n_steps: int,
    hot: float,
    cold: float,
    seed: int,
    found: NDArray[np.bool_],  # out: the best graph met
    scratch: NDArray[np.int64],
) -> None:
    d = len(joined)
    common, target, queue, seen = scratch[0], scratch[1], scratch[2], scratch[3]
    members, chosen = scratch[4], scratch[5]
    state = 88172645463325252 ^ (seed * 2654435761)
    for _ in range(20):
        state = _random(state)
    now, most, stamp = 0.0, -1.0, 0
    temperature, cooling = hot, (cold / hot) ** (1000.0 / max(n_steps, 1))
    step, last_change, n_pairs = 0, n_steps, d * (d - 1) // 2
    a, b = 0, 0
    while True:
        if now > most:
            most = now
            for i in range(d):
                for j in range(d):
                    found[i, j] = joined[i, j]
        step += 1
        # In the end all pairs in turn, until none gains any more.
        is_greedy = step > n_steps
        if is_greedy and step - last_change > n_pairs:
            break
        if step % 1000 == 0:
            temperature *= cooling
        least = 1e-12  # of a change that is taken
        state = _random(state)
        if is_greedy:
            b += 1
            if b >= d:
                a = a + 1 if a < d - 2 else 0
                b = a + 1
        else:
            a = (state >> 20) % d
            b = (state >> 40) % d
            state = _random(state)
            least = temperature * np.log(((state >> 10) & 0xFFFFFFFF) * 2.0**-32 + 1e-300)
        if not is_greedy and (state >> 50) & 255 < BRANCHES:  # a branch that hangs on column a hangs on another one
            if degrees[a] == 0:
                continue
            stamp += 2
            size = _branch(a, state >> 20, k, joined, neighbours, degrees, common, queue, seen, stamp)
            state = _random(state)
            if size > 1:
                b = neighbours[common[1], (state >> 20) % degrees[common[1]]]
            if size > 0:
                change = _rehang(
                    b, size, least, k, gains, offsets, terms, uses, penalty,
                    joined, neighbours, degrees, common, queue, seen, stamp, members, chosen,
                )  # fmt: skip
                if change > REFUSED:
                    now += change
        elif is_greedy or state & 8:  # an edge comes or goes
            if a != b:
                stamp += 1
                change = _toggle(
                    a, b, least, k, gains, offsets, terms, uses, penalty,
                    joined, neighbours, degrees, common, queue, seen, stamp,
                )  # fmt: skip
                if change > REFUSED:
                    now += change
                    last_change = max(last_change, step)
        elif state & 4:  # an edge of column a goes to another column instead, near to the one it leaves
            if degrees[a] == 0:
                continue
            b = neighbours[a, (state >> 20) % degrees[a]]
            state = _random(state)
            through = b if state & 1 else neighbours[a, (state >> 20) % degrees[a]]
            c = neighbours[through, (state >> 40) % degrees[through]]
            if c == a or joined[a, c]:
                continue
            stamp += 2
            change = _toggle(
                a, b, REFUSED, k, gains, offsets, terms, uses, penalty,
                joined, neighbours, degrees, common, queue, seen, stamp - 1,
            )  # fmt: skip
            if change == REFUSED:
                continue
            more = _toggle(
                a, c, least - change, k, gains, offsets, terms, uses, penalty,
                joined, neighbours, degrees, common, queue, seen, stamp,
            )  # fmt: skip
            if more == REFUSED:
                stamp += 1
                _toggle(
                    a, b, REFUSED, k, gains, offsets, terms, uses, penalty,
                    joined, neighbours, degrees, common, queue, seen, stamp,
                )  # fmt: skip
            else:
                now += change + more
        else:  # column a moves to a complete set that holds b, or, where both are the same, to none
            size = degrees[a]
            if size > k - 1:
                continue
            for i in range(size):
                common[i] = neighbours[a, i]
            if not _are_complete(joined, common, size):
                continue
            new = 0
            if a != b:
                target[0] = b
                new = 1
                wanted = 1 + (state >> 4) % (k - 1)
                tries = 2 * k
                while new < wanted and tries > 0 and degrees[b] > 0:
                    tries -= 1
                    state = _random(state)
                    other = neighbours[b, (state >> 20) % degrees[b]]
                    fits = other != a
                    for i in range(new):
                        fits = fits and joined[other, target[i]]
                    if fits:
                        target[new] = other
                        new += 1
            same = new == size
            for i in range(new):
                same = same and joined[a, target[i]]
            if same:
                continue
            change = _change(common, size, 1, gains, offsets, terms, uses, penalty)
            change += _change(target, new, -1, gains, offsets, terms, uses, penalty)
            common[size] = a
            target[new] = a
            change += _change(common, size + 1, -1, gains, offsets, terms, uses, penalty)
            change += _change(target, new + 1, 1, gains, offsets, terms, uses, penalty)
            if change < least:
                continue
            _use(common, size, 1, offsets, terms, uses)
            _use(target, new, -1, offsets, terms, uses)
            _use(common, size + 1, -1, offsets, terms, uses)
            _use(target, new + 1, 1, offsets, terms, uses)
            for i in range(size):
                _part_with(a, common[i], joined, neighbours, degrees)
            for i in range(new):
                _join(a, target[i], joined, neighbours, degrees)
            now += change
