"""Tables in text files, csv and tsv, plain or gzipped: NumPy reads what is sound, and what is not is explained."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, cast
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from isde.data.readers.request import GZIP_START, UTF_MARKS, Request
from isde.data.table import Table, default_names
from isde.data.words import some, unguarded
from isde.errors import InputError, first_line
from isde.memory import in_words
from isde.progress import say

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"})
"""How text files say that a value is missing, in lower case."""

SEPARATORS = ",;\t|"
"""Those that people use."""

MOST_UNPACKED, MOST_UNPACKED_BYTES = 200, 1 << 24
"""A gzip file becomes at most so many times as large, or so many bytes: numbers as text shrink to a fifth, not more."""

SAMPLE_BYTES = 1 << 16
NOT_IN_TEXT = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a"))
"""Bytes that no text of any encoding of one byte a letter has: a file with one of them in its sample is no text."""


def read_csv(request: Request) -> Table:
    return _read(TextFile(request, request.separator or ","))


def read_tsv(request: Request) -> Table:
    return _read(TextFile(request, request.separator or "\t"))


def stream_csv(request: Request, batch_rows: int) -> Iterator[Table]:
    return _batches(TextFile(request, request.separator or ","), batch_rows)


def stream_tsv(request: Request, batch_rows: int) -> Iterator[Table]:
    return _batches(TextFile(request, request.separator or "\t"), batch_rows)


def _read(text: TextFile) -> Table:
    [table] = _batches(text, None)
    return table


def _batches(text: TextFile, batch_rows: int | None) -> Iterator[Table]:
    """The rows of a file, so many at a time, or all at once."""
    request = text.request
    _check_separator(text.separator)
    first, second = text.first_rows()
    if request.separator is None and len(first) == 1:
        other = next((s for s in SEPARATORS if s in first[0]), None)
        if other:
            raise InputError(f"{request.where} looks separated by {other!r}: say so (separator={other!r}).")
    has_header = _has_header([field.strip() for field in first], request)
    if has_header and second is None:
        raise InputError(f"{request.where} has a header but no rows.")
    names = tuple(unguarded(field.strip()) for field in first) if has_header else default_names(len(first))
    keep = request.positions(names)
    before = text.lines_before_data() if has_header else 0
    try:
        for X in _numbers(text, before, len(names), keep, batch_rows):
            if X.shape[1] != len(keep):
                raise InputError(
                    f"{request.where} is ragged: {len(names)} names in the header, {X.shape[1]} values in each row."
                )
            yield Table(X, tuple(names[i] for i in keep))
    except InputError:
        raise
    except ValueError as error:
        raise _explain(text, names, keep, has_header, error) from None


def _numbers(
    text: TextFile, before: int, width: int, keep: Sequence[int], batch_rows: int | None
) -> Iterator[NDArray[np.float64]]:
    """Rows after so many lines, as NumPy reads them; it takes no line more than it needs."""
    in_file_order = keep == list(range(width))
    with text.lines() as stream:
        lines: Iterator[str] = islice(stream, before, None)
        if not in_file_order:
            lines = _of_width(lines, text.separator, width)
        while True:
            with catch_warnings():
                simplefilter("ignore", UserWarning)  # that nothing is left: an end like any other
                X = np.loadtxt(
                    lines,
                    np.float64,
                    delimiter=text.separator,
                    usecols=None if in_file_order else keep,
                    ndmin=2,
                    quotechar='"',
                    comments=None,
                    max_rows=batch_rows,
                )
            if X.size or batch_rows is None:
                yield X
            if batch_rows is None or len(X) < batch_rows:
                return


def _check_separator(separator: str) -> None:
    if len(separator) != 1 or separator in '"\r\n':
        raise InputError(f"separator={separator!r} cannot separate values: give one character, such as ';' or a tab.")


# --- the file as text ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextFile:
    """A text file that can be read again and again, unpacked and decoded, or refused as no text."""

    request: Request
    separator: str

    @contextmanager
    def unpacked(self) -> Iterator[IO[bytes]]:
        with self._stored() as stream:
            is_packed = stream.read(len(GZIP_START)) == GZIP_START
            stream.seek(0)
            if not is_packed:
                yield stream
                return
            size = stream.seek(0, io.SEEK_END)
            stream.seek(0)
            with _Unpacked(stream, max(MOST_UNPACKED * size, MOST_UNPACKED_BYTES), self.request.where) as unpacked:
                yield cast(IO[bytes], unpacked)  # it is one in all but name

    def _stored(self) -> IO[bytes]:
        content = self.request.content
        return open(self.request.path, "rb") if content is None else io.BytesIO(content)

    @contextmanager
    def lines(self) -> Iterator[IO[str]]:
        with self.unpacked() as stream:
            try:
                yield io.TextIOWrapper(stream, encoding=_codec(self.request.encoding), newline="")
            except UnicodeError as error:
                raise self._undecodable(error) from error
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise InputError(
                    f"{self.request.where} is no gzip file, or it is damaged ({first_line(error)})."
                ) from error

    def rows(self) -> Iterator[list[str]]:
        """Every row, as fields; blank lines are none."""
        with self.lines() as lines:
            try:
                yield from (row for row in csv.reader(lines, delimiter=self.separator) if row)
            except csv.Error as error:
                raise self._no_text(first_line(error)) from error

    def first_rows(self) -> tuple[list[str], list[str] | None]:
        rows = list(islice(self.rows(), 2))
        if not rows:
            raise InputError(f"{self.request.where} holds nothing but blank lines.")
        if any("\0" in field for row in rows for field in row):
            raise self._no_text("it holds bytes of zero")
        return rows[0], rows[1] if len(rows) == 2 else None

    def lines_before_data(self) -> int:
        """Physical lines up to and with the header, which may follow blank lines or hold a quoted line break."""
        with self.lines() as lines:
            reader = csv.reader(lines, delimiter=self.separator)
            next(row for row in reader if row)
            return reader.line_num

    def _undecodable(self, error: UnicodeError) -> InputError:
        """Which encoding it is not, and which one to try."""
        where, encoding = self.request.where, self.request.encoding
        if encoding is not None:
            return InputError(f"{where} cannot be read with encoding={encoding!r} ({first_line(error)}).")
        with self.unpacked() as stream:
            start = stream.read(SAMPLE_BYTES)
        for name, marks in UTF_MARKS.items():
            if start.startswith(marks):
                return InputError(f"{where} is {name} text: read it with encoding='{name.lower()}'.")
        if any(byte in NOT_IN_TEXT for byte in start):
            return self._no_text(first_line(error))
        return InputError(f"{where} is not UTF-8: read it with encoding='latin-1', or the one it was written in.")

    def _no_text(self, why: str) -> InputError:
        return InputError(f"{self.request.where} is no text file ({why}): is its ending right?")


class _Unpacked(gzip.GzipFile):
    """A gzip file that ends in an error where it unpacks to more than any table would."""

    def __init__(self, stream: IO[bytes], most: int, where: str) -> None:
        super().__init__(fileobj=stream, mode="rb")
        self.most, self.where = most, where

    def read(self, size: int | None = -1) -> bytes:
        return self._counted(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._counted(super().read1(size))

    def _counted(self, part: bytes) -> bytes:
        if self.tell() > self.most:
            raise InputError(f"{self.where} unpacks to more than {in_words(self.most)}: unpack it yourself, and look.")
        return part


def _codec(encoding: str | None) -> str:
    """What Python calls an encoding; a byte order mark at the start of UTF-8 is no letter."""
    try:
        "".encode(encoding or "utf-8")
    except LookupError:
        raise InputError(
            f"encoding={encoding!r} is unknown: give one that Python knows, such as 'latin-1', 'cp1252' or 'utf-16'."
        ) from None
    name = codecs.lookup(encoding or "utf-8").name
    return "utf-8-sig" if name == "utf-8" else name


def _of_width(lines: Iterable[str], separator: str, width: int) -> Iterator[str]:
    """The lines, as long as each has `width` fields: asked for some columns only, NumPy would not look."""
    for line in lines:
        plain = line.count(separator) == width - 1 or not line.strip()
        if not plain and len(next(csv.reader([line], delimiter=separator))) != width:
            raise ValueError("ragged")
        yield line


# --- names or data ---------------------------------------------------------------------------------------------


def _has_header(first: Sequence[str], request: Request) -> bool:
    """Whether the first row holds names: as told, else by what stands there; refused where it may be either."""
    if request.header is not None:
        return request.header
    asked = request.columns or request.preferred
    if asked and set(asked) <= set(map(unguarded, first)):
        return True
    doubt = _doubt(first)
    if doubt:
        raise InputError(
            f"The first row of {request.where} {doubt}: say whether it holds names or data with header=True or "
            "header=False."
        )
    if not all(_is_number(field) for field in first):
        return True
    if request.verbose:
        names = f"columns named x0 to x{len(first) - 1}"
        say(f"{request.where}: first row taken as data, {names}: header=True if it holds names.")
    return False


def _doubt(first: Sequence[str]) -> str | None:
    """Why a first row may be names or data: a wrong guess would lose a row, or invent one."""
    if list(first) in ([str(i + start) for i in range(len(first))] for start in (0, 1)):
        return f"just counts ({some(first, 3)}), as names written by pandas do"
    if all(_is_number(field) for field in first):
        return None
    gaps = [field for field in first if _is_missing(field)]
    if gaps and any(_is_number(field) and not _is_missing(field) for field in first):
        return f"holds numbers and gaps ({gaps[0]!r})"
    return f"holds nothing but gaps ({gaps[0]!r})" if len(gaps) == len(first) else None


# --- what is wrong ---------------------------------------------------------------------------------------------


def _explain(
    text: TextFile, names: Sequence[str], keep: Sequence[int], has_header: bool, error: Exception
) -> InputError:
    """Why NumPy could not read the file, in the file's own terms: ragged rows, or every column that is no numbers."""
    faults, where = Faults(), text.request.where
    for number, row in enumerate(text.rows()):
        if number == 0 and has_header:
            continue
        if len(row) != len(names):
            return InputError(
                f"{where} is ragged: row {number + 1 - has_header:,} has {len(row)} values, {len(names)} are expected."
            )
        for c in keep:
            faults.note(c, row[c])
    found = faults.sentences(names, where) or [f"{where} cannot be read as a table ({first_line(error)})"]
    return InputError("; ".join(found) + ".")


class Faults:
    """What stands in place of numbers, by column."""

    def __init__(self) -> None:
        self.missing: Counter[int] = Counter()
        self.commas: dict[int, str] = {}  # the first of each column
        self.text: dict[int, str] = {}

    def note(self, column: int, field: str) -> None:
        if _is_missing(field):
            self.missing[column] += 1
        elif not _is_number(field):
            (self.commas if _has_decimal_comma(field) else self.text).setdefault(column, field)

    def sentences(self, names: Sequence[str], where: str) -> list[str]:
        """One for each kind; a column of text is to be left out, whatever else it holds."""
        missing = [f"{names[c]!r} ({count:,})" for c, count in sorted(self.missing.items()) if c not in self.text]
        commas = [_example(names[c], field) for c, field in sorted(self.commas.items()) if c not in self.text]
        text = [_example(names[c], field) for c, field in sorted(self.text.items())]
        told = (
            (missing, "Missing values in {} of {}: drop or fill those rows first, or leave the column out (columns=)"),
            (commas, "{} in {} is written with decimal commas: write points (pandas reads them with decimal=',')"),
            (text, "{} in {} holds text: leave it out (columns=) or encode it first"),
        )
        return [sentence.format(some(culprits, 12), where) for culprits, sentence in told if culprits]


def _example(name: str, field: str) -> str:
    return f"{name!r} (for example {field!r})"


def _is_missing(field: str) -> bool:
    return field.strip().lower() in MISSING


def _has_decimal_comma(field: str) -> bool:
    """Whether a number is written as in '0,5'.

    >>> _has_decimal_comma("-0,5e3"), _has_decimal_comma("0.5"), _has_decimal_comma("1,2,3")
    (True, False, False)
    """
    return "," in field and _is_number(field.replace(",", ".", 1))


def _is_number(field: str) -> bool:
    if "_" in field:  # Python reads 1_000 as a number, NumPy does not
        return False
    try:
        float(field)
    except ValueError:
        return False
    return True
