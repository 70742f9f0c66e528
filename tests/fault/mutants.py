"""Damaged copies of a file: bits flipped, bytes inserted, cut out, doubled, or overwritten with numbers that hurt."""

from __future__ import annotations

import numpy as np

LONGEST = 64
"""Bytes that one change inserts, cuts out or doubles, most of the time; now and then it is all the rest."""

HURTFUL = (
    b"\x00" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x00" * 6 + b"\xf0\x7f", b"99999999",
    b"-1", b"1e999", b"nan", b"\n", b"\r", b'"', b",", b"\x1b[2J", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"{}", b"[" * 64,
)  # fmt: skip
"""Sizes beyond all memory, infinities, ends of fields and rows, what no encoding knows."""


def mutant(sound: bytes, rng: np.random.Generator) -> bytes:
    """A copy with one to four changes."""
    data = bytearray(sound)
    for _ in range(int(rng.integers(1, 5))):
        _change(data, rng)
    return bytes(data)


def _change(data: bytearray, rng: np.random.Generator) -> None:
    at, kind = int(rng.integers(len(data) + 1)), int(rng.integers(7))
    length = int(rng.integers(1, LONGEST)) if rng.random() < 0.9 else len(data)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1 and at < len(data):
        data[at] = int(rng.integers(256))
    elif kind == 2:
        data[at:at] = rng.bytes(min(length, LONGEST))
    elif kind == 3:
        del data[at : at + length]
    elif kind == 4:
        data[at:at] = data[at : at + length]
    elif kind == 5:
        hurtful = HURTFUL[int(rng.integers(len(HURTFUL)))]
        data[at : at + len(hurtful)] = hurtful
    else:
        _change_digit(data, at)


def _change_digit(data: bytearray, at: int) -> None:
    """The next digit becomes a nine: numbers in headers are where sizes come from."""
    for place in range(at, len(data)):
        if data[place] in b"012345678":
            data[place] = ord("9")
            return
