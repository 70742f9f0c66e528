"""Files: every kind is read, and what cannot be read is refused in one sentence that names the culprit."""

import gzip
import io
import os
import subprocess
import sys
import zipfile
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fcs_files import write_fcs
from isde import ISDE
from isde.data.checks import FIRST_ROWS, check_columns, check_finite, check_input, check_numeric_frame
from isde.data.readers import READERS, read_batches, read_table
from isde.data.table import Table, columns_of_model, default_names, frame_names
from isde.errors import InputError, ISDEWarning, ResourceError

X = np.array([[0.1, 2.0, -3e-7], [1 / 3, 5e300, 4.0], [-1.0, 0.25, 1e-310], [7.0, 8.0, 9.0]])
NAMES = ("alpha", "beta gamma", "δ")


def text(X, separator=",", names=NAMES):
    lines = [separator.join(repr(float(value)) for value in row) for row in X]
    return "\n".join(([separator.join(names)] if names else []) + lines) + "\n"


def write_csv(path):
    path.write_text(text(X), encoding="utf-8")


def write_tsv(path):
    path.write_text(text(X, "\t"), encoding="utf-8")


def write_parquet(path):
    pq.write_table(pa.table({name: X[:, i] for i, name in enumerate(NAMES)}), path)


def write_npz(path):
    np.savez(path, X=X, columns=np.array(NAMES))


def write_cells(path):
    write_fcs(path, X, [f"channel{i}" for i in range(3)], NAMES, kind="D")


def write_npy(path):
    np.save(path, X)


NAMED = {".csv": write_csv, ".tsv": write_tsv, ".parquet": write_parquet, ".npz": write_npz, ".fcs": write_cells}
NAMED[".CSV"] = write_csv


def refusal(path, **options):
    """The one sentence with which a file is refused."""
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def outcome(path, **options):
    """The table, or the sentence with which the file is refused."""
    try:
        return repr(read_table(path, **options))
    except InputError as error:
        return str(error)


# --- what can be read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", NAMED)
def test_every_kind_of_file_gives_the_same_table(tmp_path, ending):
    NAMED[ending](tmp_path / f"data{ending}")
    table = read_table(tmp_path / f"data{ending}")
    assert table.names == NAMES
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X, X)


def test_an_npy_file_has_no_names(tmp_path):
    write_npy(tmp_path / "data.npy")
    table = read_table(tmp_path / "data.npy")
    assert table.names == ("x0", "x1", "x2")
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize("ending", NAMED)
def test_columns_are_kept_by_name_in_the_order_asked_for(tmp_path, ending):
    NAMED[ending](tmp_path / f"data{ending}")
    table = read_table(tmp_path / f"data{ending}", columns=["δ", "alpha"])
    assert table.names == ("δ", "alpha")
    np.testing.assert_array_equal(table.X, X[:, [2, 0]])


def test_floats_of_17_digits_come_back_bit_for_bit(tmp_path, rng):
    values = rng.normal(size=(200, 4)) * 10.0 ** rng.integers(-200, 200, size=(200, 4))
    (tmp_path / "data.csv").write_text(text(values, names=None), encoding="utf-8")
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv").X, values)


def test_a_file_without_header_gets_default_names(tmp_path):
    (tmp_path / "data.csv").write_text(text(X, names=None), encoding="utf-8")
    table = read_table(tmp_path / "data.csv")
    assert table.names == default_names(3)
    np.testing.assert_array_equal(table.X, X)


def test_a_header_of_numbers_is_one_when_told_so(tmp_path):
    (tmp_path / "data.csv").write_text("2019,2020\n1,2\n3,4\n", encoding="utf-8")
    assert len(read_table(tmp_path / "data.csv").X) == 3
    table = read_table(tmp_path / "data.csv", header=True)
    assert table.names == ("2019", "2020")
    assert table.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("0.5,NA,2.5", "holds numbers and gaps ('NA')"),
        ("null,1,2", "holds numbers and gaps ('null')"),
        ("1.5,,2", "holds numbers and gaps ('')"),
        ("NA,NA,N/A", "holds nothing but gaps ('NA')"),
        ("0,1,2", "just counts (0, 1, 2)"),
        ("1, 2, 3", "just counts (1, 2, 3)"),
        (",0,1", "holds numbers and gaps ('')"),
    ],
)
def test_a_first_row_that_may_be_names_or_data_is_refused_unless_told_which(tmp_path, first, found):
    path = tmp_path / "data.csv"
    path.write_text(f"{first}\n5,6,7\n8,9,10\n", encoding="utf-8")
    message = refusal(path)
    assert found in message
    assert "names or data with header=True or header=False." in message
    for header in (True, False):
        assert "first row" not in outcome(path, header=header)


def test_a_first_row_that_counts_is_names_or_data_as_told(tmp_path):
    pd.DataFrame(X).to_csv(tmp_path / "data.csv", index=False)
    refusal(tmp_path / "data.csv")
    named, plain = (read_table(tmp_path / "data.csv", header=header) for header in (True, False))
    assert (named.names, plain.names) == (("0", "1", "2"), default_names(3))
    np.testing.assert_array_equal(named.X, X)
    np.testing.assert_array_equal(plain.X, np.vstack([[0, 1, 2], X]))


def test_a_first_row_with_the_names_asked_for_holds_names(tmp_path):
    (tmp_path / "data.csv").write_text("0,1,2\n5,6,7\n8,9,10\n", encoding="utf-8")
    assert read_table(tmp_path / "data.csv", columns=["2", "0"]).X.tolist() == [[7, 5], [10, 8]]


@pytest.mark.parametrize("first", ["0.0,1.0", "1,0", "1,3", "nan,2"])
def test_a_first_row_of_other_numbers_is_data_and_that_is_said_when_asked(tmp_path, capsys, first):
    (tmp_path / "data.csv").write_text(f"{first}\n3,4\n", encoding="utf-8")
    assert len(read_table(tmp_path / "data.csv").X) == 2
    assert capsys.readouterr().err == ""
    read_table(tmp_path / "data.csv", verbose=1)
    said = f"{tmp_path / 'data.csv'}: first row taken as data, columns named x0 to x1: header=True if it holds names.\n"
    assert capsys.readouterr().err == said
    read_table(tmp_path / "data.csv", verbose=1, header=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("first", ["country,2019,2020", "NA,a,b", "a,nan,null"])
def test_a_first_row_with_words_and_no_gaps_between_numbers_holds_names(tmp_path, first):
    (tmp_path / "data.csv").write_text(f"{first}\n5,6,7\n", encoding="utf-8")
    assert read_table(tmp_path / "data.csv").names == tuple(first.split(","))


def test_text_in_the_first_row_is_an_error_when_told_that_there_is_no_header(tmp_path):
    write_csv(tmp_path / "data.csv")
    assert "holds text" in refusal(tmp_path / "data.csv", header=False)


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffa,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4\r",
        "\n\na,b\n1,2\n\n3,4\n\n",
        '"a","b"\n"1","2"\n"3","4"',
        " a , b \n 1, 2\n3 ,4 \n",
    ],
    ids=["byte order mark", "windows", "old mac", "blank lines", "quotes", "spaces"],
)
def test_text_files_of_other_habits_are_read(tmp_path, content):
    (tmp_path / "data.csv").write_bytes(content.encode())
    table = read_table(tmp_path / "data.csv")
    assert table.names == ("a", "b")
    assert table.X.tolist() == [[1, 2], [3, 4]]


def test_a_name_may_hold_the_separator_and_a_line_break_in_quotes(tmp_path):
    (tmp_path / "data.csv").write_text('"a,\nb",c\n1,2\n3,4\n', encoding="utf-8")
    table = read_table(tmp_path / "data.csv")
    assert table.names == ("a,\nb", "c")
    assert table.X.tolist() == [[1, 2], [3, 4]]


def test_columns_are_found_below_a_header_of_several_lines(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b'"a\nb","c\rd",e\n1,2,3\n4,5,6\n')
    np.testing.assert_array_equal(read_table(path, columns=["e", "c\rd"]).X, [[3, 2], [6, 5]])


def test_another_separator_can_be_given(tmp_path):
    (tmp_path / "data.csv").write_text(text(X, ";"), encoding="utf-8")
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv", separator=";").X, X)


def test_a_single_column_is_a_table(tmp_path):
    (tmp_path / "data.csv").write_text("a\n1\n2\n", encoding="utf-8")
    assert read_table(tmp_path / "data.csv").X.tolist() == [[1], [2]]


def test_a_text_column_that_is_not_asked_for_does_no_harm(tmp_path):
    (tmp_path / "data.csv").write_text("id,a,b\nfoo,1,2\nbar,3,4\n", encoding="utf-8")
    assert read_table(tmp_path / "data.csv", columns=["b"]).X.tolist() == [[2], [4]]


def test_an_unnamed_or_repeated_column_that_is_not_asked_for_does_no_harm(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.to_csv(tmp_path / "index.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "index.csv", columns=list("abc")).X, X)
    np.savez(tmp_path / "twice.npz", X=X, columns=["a", "b", "a"])
    assert read_table(tmp_path / "twice.npz", columns=["b"]).names == ("b",)
    columns = [pa.array(X[:, i]) for i in range(3)]
    pq.write_table(pa.Table.from_arrays(columns, names=["", "b", ""]), tmp_path / "unnamed.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "unnamed.parquet", columns=["b"]).X, X[:, [1]])


def test_a_column_without_name_cannot_be_asked_for(tmp_path):
    (tmp_path / "data.csv").write_text(",a\n0,1\n1,2\n", encoding="utf-8")
    assert "no column ''; it has a." in refusal(tmp_path / "data.csv", columns=["a", ""])


def test_integers_and_booleans_become_floats(tmp_path):
    pq.write_table(pa.table({"i": [1, 2], "b": [True, False]}), tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").X.tolist() == [[1, 1], [2, 0]]
    np.save(tmp_path / "data.npy", np.array([[1, 2]], dtype=np.int16))
    assert read_table(tmp_path / "data.npy").X.tolist() == [[1, 2]]


def test_the_only_matrix_of_an_npz_file_is_the_table(tmp_path):
    np.savez(tmp_path / "data.npz", values=X, weights=np.ones(4))
    np.testing.assert_array_equal(read_table(tmp_path / "data.npz").X, X)


# --- what cannot be read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_table, lambda path: list(read_batches(path))], ids=["at once", "in batches"])
def test_memory_that_a_file_does_not_find_is_no_damage(tmp_path, monkeypatch, read):
    """pyarrow's own error is a MemoryError: there is nothing wrong with the file."""

    def full(*_, **__):
        raise pa.ArrowMemoryError("malloc of size 99 failed")

    pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "data.parquet")
    monkeypatch.setattr(pq.ParquetFile, "read", full)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", full)
    with pytest.raises(MemoryError, match="malloc"):
        read(tmp_path / "data.parquet")


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".npy", ".npz", ".fcs"])
def test_an_empty_file_is_refused(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    path.touch()
    assert "is empty" in refusal(path)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".npy", ".npz", ".fcs"])
@pytest.mark.parametrize("seed", range(8))
def test_random_bytes_are_refused_whatever_they_are_called(tmp_path, ending, seed):
    path = tmp_path / f"data{ending}"
    path.write_bytes(np.random.default_rng(seed).bytes(10 ** (1 + seed % 4)))
    refusal(path)


WRITERS = {".csv": write_csv, ".parquet": write_parquet, ".npy": write_npy, ".npz": write_npz, ".fcs": write_cells}
SWAPS = [
    (real, said) for real in WRITERS for said in (*WRITERS, ".tsv") if real != said and (real, said) != (".csv", ".tsv")
]


@pytest.mark.parametrize(("real", "said"), SWAPS)
def test_a_file_that_is_not_what_its_ending_says_is_refused(tmp_path, real, said):
    WRITERS[real](tmp_path / f"data{real}")
    path = (tmp_path / f"data{real}").rename(tmp_path / f"wrong{said}")
    refusal(path)


@pytest.mark.parametrize("ending", [".parquet", ".npy", ".npz", ".fcs"])
def test_a_file_cut_short_anywhere_is_refused(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    WRITERS[ending](path)
    whole = path.read_bytes()
    for length in [1, 2, 7, 50, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 1]:
        path.write_bytes(whole[:length])
        refusal(path)


def flips(whole, first):
    """Copies with one bit changed: every bit of the bytes from `first` on, and one of each byte before."""
    for position in range(len(whole)):
        for bit in range(8) if position >= first else [position % 8]:
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            yield bytes(damaged)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_npz_file_is_refused_or_read_right(tmp_path, save):
    path = tmp_path / "data.npz"
    save(path, X=X, columns=np.array(NAMES))
    whole = path.read_bytes()
    for damaged in flips(whole, first=whole.index(b"PK\x01\x02")):
        path.write_bytes(damaged)
        try:
            table = read_table(path)
        except InputError:
            continue
        # A changed bit in a time stamp changes nothing, one in the name of 'columns' loses the names: numbers hold.
        np.testing.assert_array_equal(table.X, X)


def test_a_damaged_header_of_an_npy_file_is_refused_or_read_as_a_table(tmp_path):
    # An .npy file has no checksum: another shape or type may come out, but no other error.
    path = tmp_path / "data.npy"
    write_npy(path)
    whole = path.read_bytes()
    for damaged in flips(whole[:128], first=0):
        path.write_bytes(damaged + whole[128:])
        try:
            assert read_table(path).X.ndim == 2
        except InputError:
            continue


def test_a_damaged_header_of_an_fcs_file_is_refused_or_read_as_a_table(tmp_path):
    # No checksum here either.
    path = tmp_path / "data.fcs"
    write_cells(path)
    whole = path.read_bytes()
    for damaged in flips(whole, first=0):
        path.write_bytes(damaged)
        try:
            assert read_table(path).X.ndim == 2
        except InputError:
            continue


def test_channels_of_one_name_in_an_fcs_file_are_named_and_can_be_left_out(tmp_path):
    path = tmp_path / "data.fcs"
    write_fcs(path, X, ["a", "b", "c"], ["CD3", "CD4", "CD3"], kind="D")
    assert "more than one column named 'CD3'" in refusal(path)
    np.testing.assert_array_equal(read_table(path, columns=["CD4"]).X, X[:, [1]])


def npy_header(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def test_an_npz_member_that_declares_a_huge_shape_is_refused_before_memory_is_asked_for(tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy_header((10**9, 10**4)) + bytes(80))
    assert "X.npy declares more numbers than it holds" in refusal(path)


def test_an_npy_file_that_declares_a_huge_shape_is_refused(tmp_path):
    (tmp_path / "data.npy").write_bytes(npy_header((10**9, 10**4)) + bytes(80))
    refusal(tmp_path / "data.npy")


def test_pickled_arrays_are_not_opened(tmp_path):
    np.save(tmp_path / "data.npy", np.array([[{}, {}]], dtype=object), allow_pickle=True)
    assert "holds Python objects: save it as np.array(X, dtype=float)" in refusal(tmp_path / "data.npy")
    np.savez(tmp_path / "data.npz", X=np.array([[{}, {}]], dtype=object))
    assert "'X' in" in refusal(tmp_path / "data.npz")


def test_names_saved_as_python_objects_are_to_be_saved_as_text(tmp_path):
    names = pd.DataFrame(X, columns=NAMES).columns
    np.savez(tmp_path / "data.npz", X=X, columns=np.array(names, dtype=object))
    message = refusal(tmp_path / "data.npz")
    assert message.startswith("'columns' in ")
    assert message.endswith(" holds Python objects: save it as np.array(names, dtype=str).")
    np.savez(tmp_path / "data.npz", X=X, columns=np.array(names, dtype=str))
    assert read_table(tmp_path / "data.npz").names == NAMES


def test_objects_that_are_not_needed_do_no_harm(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, labels=np.array(["a", {}], dtype=object))
    np.testing.assert_array_equal(read_table(tmp_path / "data.npz").X, X)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_a_text_file_that_is_called_an_array_gets_no_advice_to_trust_it(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    write_csv(path)
    message = refusal(path)
    assert f"is no {ending} file" in message
    assert "pickle" not in message


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2, 2)), np.ones((2, 2), complex), np.array([["a"]])])
def test_what_is_no_matrix_of_numbers_is_refused(tmp_path, array):
    np.save(tmp_path / "data.npy", array)
    assert f"{array.ndim}-dimensional" in refusal(tmp_path / "data.npy")


def test_an_npz_file_with_two_matrices_needs_to_say_which(tmp_path):
    np.savez(tmp_path / "data.npz", first=X, second=X)
    assert "['first', 'second']" in refusal(tmp_path / "data.npz")


def test_an_npz_file_with_too_few_names_is_refused(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, columns=["a", "b"])
    assert "2 names in 'columns' for 3 columns" in refusal(tmp_path / "data.npz")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_a_table_without_rows_or_columns_is_refused(tmp_path, shape):
    np.save(tmp_path / "data.npy", np.empty(shape))
    assert f"{shape[0]} rows and {shape[1]} columns" in refusal(tmp_path / "data.npy")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a,b\n1,2\n3\n4,5\n", "ragged: row 2 has 1 values, 2 are expected"),
        ("a,b\n1,2\n3,4,5\n", "ragged: row 2 has 3 values, 2 are expected"),
        ("1.5,2\n3\n", "ragged: row 2 has 1 values"),
        ("a,b,c\n1,2\n3,4\n", "ragged: 3 names in the header, 2 values in each row"),
        ("a,b\n1,2,3\n3,4,5\n", "ragged"),
        ("a,b\n1,foo\n2,bar\n", "'b' (for example 'foo')"),
        ("a,b,c\n1,foo,x\n2,bar,y\n", "'b' (for example 'foo'), 'c' (for example 'x')"),
        ("a,b\n1,\n,4\n5,\n", "Missing values in 'a' (1), 'b' (2)"),
        ("a,b\n1,NA\nn/a,4\n5,null\nNaN,None\n", "Missing values in 'a' (2), 'b' (3)"),
        ("a,b\n1,NA\n2,3\n", "drop or fill those rows first, or leave the column out (columns=)"),
        ("a,b,c\n1,NA,x\n,3,NA\n", "'c' (for example 'x') in"),
        ("a,b,c\n1,NA,x\n,3,NA\n", "Missing values in 'a' (1), 'b' (1) of"),
        ('a,b\n1,"0,1257"\n2,3\n', "'b' (for example '0,1257') in"),
        ("a,b\n1_0,2\n", "'a' (for example '1_0')"),
        ("a;b\n1;2\n", "separated by ';'"),
        ("a\tb\n1\t2\n", "separated by '\\t'"),
        ("1;2\n3;4\n", "separated by ';'"),
        ("a,b,a\n1,2,3\n", "more than one column named 'a': rename"),
        ("a,b,a,b\n1,2,3,4\n", "more than one column named 'a', 'b'"),
        ("a,,c\n1,2,3\n", "no name for column 2:"),
        ("a,b,,\n1,2,3,4\n", "no name for column 3, 4:"),
        (",a,b\n0,1,2\n", "(a row index?): leave it out with columns=, or save the table without its index"),
        ("a,b\n", "header but no rows"),
        ("\n\n\n", "blank lines"),
    ],
)
def test_a_text_file_that_is_no_table_is_refused_by_what_is_wrong_with_it(tmp_path, content, complaint):
    (tmp_path / "data.csv").write_text(content, encoding="utf-8")
    assert complaint in refusal(tmp_path / "data.csv")


def test_decimal_commas_are_named_as_such(tmp_path):
    (tmp_path / "data.csv").write_text("a;b;c\n0,1257;1;2,5\n-3,5e-2;2;x\n", encoding="utf-8")
    message = refusal(tmp_path / "data.csv", separator=";")
    assert "'a' (for example '0,1257') in" in message
    assert "is written with decimal commas: write points" in message
    assert "'c' (for example 'x') in" in message
    assert "'2,5'" not in message


def test_missing_values_in_the_first_row_are_counted_when_told_that_it_is_data(tmp_path):
    (tmp_path / "data.csv").write_text("NA,1\n2,3\n", encoding="utf-8")
    assert "Missing values in 'x0' (1)" in refusal(tmp_path / "data.csv", header=False)


def test_names_with_an_underscore_between_digits_are_names(tmp_path):
    (tmp_path / "data.csv").write_text("1_1,1_2\n2,3\n", encoding="utf-8")
    assert read_table(tmp_path / "data.csv").names == ("1_1", "1_2")


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("latin-1", "is not UTF-8: read it with encoding='latin-1'"),
        ("cp1252", "is not UTF-8: read it with encoding='latin-1'"),
        ("utf-16", "is UTF-16 text: read it with encoding='utf-16'."),
        ("utf-32", "is UTF-32 text: read it with encoding='utf-32'."),
    ],
)
def test_text_of_another_encoding_is_called_so_and_read_as_told(tmp_path, encoding, said):
    (tmp_path / "data.csv").write_bytes("größe,b\n1,2\n3,4\n".encode(encoding))
    assert said in refusal(tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv", encoding=encoding)
    assert table.names == ("größe", "b")
    assert table.X.tolist() == [[1, 2], [3, 4]]


def test_a_letter_far_down_the_file_is_noticed_too(tmp_path):
    rows = "1,2\n" * 100_000
    (tmp_path / "data.csv").write_bytes(f"a,b\n{rows}1,é\n".encode("latin-1"))
    assert "is not UTF-8" in refusal(tmp_path / "data.csv")
    assert "'b' (for example 'é')" in refusal(tmp_path / "data.csv", encoding="latin-1")


@pytest.mark.parametrize("content", [bytes(range(256)), "a,b\n1,2\n".encode("utf-16-le"), b"a,\x00\n1,2\n"])
def test_a_binary_file_is_no_text_of_any_encoding(tmp_path, content):
    (tmp_path / "data.csv").write_bytes(content)
    assert "is no text file (" in refusal(tmp_path / "data.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig"])
def test_a_byte_order_mark_is_no_letter_whatever_utf_8_is_called(tmp_path, encoding):
    (tmp_path / "data.csv").write_bytes("\ufeffa,b\n1,2\n".encode())
    assert read_table(tmp_path / "data.csv", encoding=encoding).names == ("a", "b")


def test_a_wrong_or_unknown_encoding_is_refused_by_its_name(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes("größe,b\n1,2\n".encode())
    assert "cannot be read with encoding='ascii' (" in refusal(path, encoding="ascii")
    assert "cannot be read with encoding='utf-16' (" in refusal(path, encoding="utf-16")
    for unknown in ("klingon", "hex"):
        with pytest.raises(InputError, match=f"encoding='{unknown}' is unknown: give one that Python knows"):
            read_table(path, encoding=unknown)


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n"])
def test_what_cannot_separate_is_refused(tmp_path, separator):
    write_csv(tmp_path / "data.csv")
    if separator:
        with pytest.raises(InputError, match="cannot separate values"):
            read_table(tmp_path / "data.csv", separator=separator)
    else:
        assert read_table(tmp_path / "data.csv", separator=separator).names == NAMES


@pytest.mark.parametrize(("ending", "separator"), [(".csv.gz", ","), (".tsv.gz", "\t"), (".CSV.GZ", ",")])
def test_gzipped_text_is_read_as_it_is(tmp_path, ending, separator):
    path = tmp_path / f"data{ending}"
    path.write_bytes(gzip.compress(text(X, separator).encode()))
    assert read_table(path).names == NAMES
    np.testing.assert_array_equal(read_table(path, columns=["δ", "alpha"]).X, X[:, [2, 0]])


def test_damaged_gzip_is_refused(tmp_path, rng):
    path = tmp_path / "data.csv.gz"
    whole = gzip.compress(text(rng.normal(size=(2000, 3))).encode())
    for damaged in (whole[:-4], whole[: len(whole) // 2], whole[:-8] + b"\0\0\0\0" + whole[-4:], whole[:2] + b"x"):
        path.write_bytes(damaged)
        assert "is no gzip file, or it is damaged (" in refusal(path)
    path.write_bytes(whole[:3000] + b"\0\0\0\0" + whole[3004:])  # text comes out, but no table
    refusal(path)


class Input:
    """Standard input that holds some bytes."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def test_a_dash_reads_csv_from_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", Input(text(X).encode()))
    table = read_table("-")
    assert table.names == NAMES
    np.testing.assert_array_equal(table.X, X)
    monkeypatch.setattr("sys.stdin", Input(text(X, ";", names=("ä", "b", "c")).encode("latin-1")))
    table = read_table("-", separator=";", encoding="latin-1", columns=["c", "ä"])
    np.testing.assert_array_equal(table.X, X[:, [2, 0]])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", "is empty"), (b"a,b\n1,x\n", "'b' (for example 'x')"), (b"\xff\xfea", "is UTF-16 text")],
)
def test_standard_input_is_named_so(monkeypatch, content, complaint):
    monkeypatch.setattr("sys.stdin", Input(content))
    with pytest.raises(InputError, match="standard input") as caught:
        read_table("-")
    assert complaint in str(caught.value)


def test_every_ending_has_a_reader_of_its_own_that_is_imported_when_asked_for():
    for place in READERS.values():
        module, function = place.split(":")
        assert callable(getattr(import_module(f"isde.data.readers.{module}"), function))
    code = "import sys, isde.data.readers; sys.exit(any(m.startswith('isde.data.readers.t') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_lines_before_the_data_are_counted_by_the_separator_given(tmp_path):
    (tmp_path / "data.csv").write_text('a;"b\nc"\n1;2\n', encoding="utf-8")
    table = read_table(tmp_path / "data.csv", separator=";")
    assert table.names == ("a", "b\nc")
    assert table.X.tolist() == [[1, 2]]


def test_ragged_rows_are_refused_also_where_only_some_columns_are_asked_for(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4,5\n", encoding="utf-8")
    assert "ragged" in refusal(tmp_path / "data.csv", columns=["a"])


@pytest.mark.parametrize("ending", NAMED)
def test_preferred_columns_are_kept_where_all_are_there_and_columns_go_first(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    NAMED[ending](path)
    assert read_table(path, preferred=["δ", "alpha"]).names == ("δ", "alpha")
    assert read_table(path, preferred=["δ", "omega"]).names == NAMES
    assert read_table(path, preferred=["δ"], columns=["alpha"]).names == ("alpha",)


@pytest.mark.parametrize("ending", NAMED)
def test_a_column_that_is_not_there_is_named_beside_those_that_are(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    NAMED[ending](path)
    message = refusal(path, columns=["alpha", "omega"])
    assert "no column 'omega'" in message
    assert "beta gamma" in message


@pytest.mark.parametrize("ending", NAMED)
def test_a_column_asked_for_twice_is_refused(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    NAMED[ending](path)
    with pytest.raises(InputError, match="alpha"):
        read_table(path, columns=["alpha", "alpha"])


def test_a_text_column_in_a_parquet_file_is_named(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0], "label": ["x", "y"]}), tmp_path / "data.parquet")
    assert "'label'" in refusal(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("names", "culprit"), [(["a", "a"], "more than one column named 'a'"), (["a", ""], "no name for column 2")]
)
def test_a_parquet_file_with_repeated_or_empty_names_is_refused(tmp_path, names, culprit):
    pq.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, names=names), tmp_path / "data.parquet")
    assert culprit in refusal(tmp_path / "data.parquet")


def test_an_unknown_ending_is_refused_with_those_that_are_known(tmp_path):
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    message = refusal(tmp_path / "data.xlsx")
    assert "'.xlsx'" in message
    assert ".parquet" in message


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert "does not exist" in refusal(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in refusal(tmp_path / "folder.csv")


# --- files that never end, or become much ----------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="This system has no named pipes.")
@pytest.mark.parametrize("ending", READERS)
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe{ending}")
    assert "is a pipe, which may never end" in refusal(tmp_path / f"pipe{ending}")
    (tmp_path / f"zeros{ending}").symlink_to("/dev/zero")
    assert "is a device, which may never end" in refusal(tmp_path / f"zeros{ending}")


class Endless(io.RawIOBase):
    """The same bytes again and again."""

    def __init__(self, content):
        self.content = content

    def read(self, size=-1):
        assert size >= 0, "all of it was asked for"
        return (self.content * (size // len(self.content) + 1))[:size]


@pytest.mark.parametrize(("content", "complaint"), [(b"\0", "is no text"), (b"1,2\n", "does not end")])
def test_standard_input_without_an_end_is_refused(monkeypatch, content, complaint):
    endless = Input(b"")
    endless.buffer = Endless(content)
    monkeypatch.setattr("sys.stdin", endless)
    monkeypatch.setattr("isde.data.readers.request.MOST_INPUT_BYTES", 1 << 20)
    with pytest.raises(InputError, match=f"standard input .*{complaint}"):
        read_table("-")


def test_a_gzip_file_that_becomes_a_thousand_times_as_large_is_refused(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"0,0\n" * (10 << 20)))
    assert path.stat().st_size < 50_000
    assert "unpacks to more than 16.8 MB" in refusal(path, header=False)


def test_tables_beyond_all_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("isde.memory.memory_bytes", lambda: 1000)
    Z = np.zeros((100, 3))
    np.save(tmp_path / "a.npy", Z)
    np.savez_compressed(tmp_path / "a.npz", X=Z)
    pq.write_table(pa.table({"a": Z[:, 0], "b": Z[:, 1]}), tmp_path / "a.parquet")
    write_fcs(tmp_path / "a.fcs", Z, ["a", "b", "c"], [""] * 3)
    for name, size in (("a.npy", "2.4 kB"), ("a.npz", "2.4 kB"), ("a.parquet", "1.6 kB"), ("a.fcs", "kB")):
        with pytest.raises(ResourceError) as refused:
            read_table(tmp_path / name)
        message = str(refused.value)
        assert f"needs {size}" in message or "a.fcs" in message
        assert "of memory, and there are 1 kB" in message


def test_an_npz_member_that_is_packed_closer_than_deflate_can_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", npy_header((1 << 21, 1)) + bytes(8 << 21))
    assert "declares more numbers than it holds" in refusal(path)


def test_an_npy_file_that_declares_a_long_header_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "data.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr'")
    assert "its header is too long" in refusal(tmp_path / "data.npy")


def test_numbers_in_an_fcs_file_that_contradict_each_other_are_refused(tmp_path):
    path = tmp_path / "data.fcs"
    write_cells(path)
    whole = path.read_bytes()
    for old, new in (
        (b"$TOT|4|", b"$TOT|2|"),
        (b"$PAR|3|", b"$PAR|2|"),
        (b"$P2B|64|", b"$P2B|32|"),
        (b"$DATATYPE|D|", b"$DATATYPE|F|"),
        (b"$TOT|4|", b"$TOT|-4|"),
        (b"$BYTEORD|4,3", b"$BYTEORD|3,4"),
    ):
        assert old in whole
        path.write_bytes(whole.replace(old, new))
        refusal(path)
    start = int(whole[26:34])
    path.write_bytes(whole[:26] + f"{start - 8:8d}".encode() + whole[34:])
    assert "4 events of 3 channels, and 104 bytes for them" in refusal(path)


def test_an_fcs_file_whose_data_end_a_byte_late_is_read(tmp_path):
    path = tmp_path / "data.fcs"
    write_cells(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:34] + f"{int(whole[34:42]) + 1:8d}".encode() + whole[42:])
    np.testing.assert_array_equal(read_table(path).X, X)


# --- the columns of a model ------------------------------------------------------------------------------------


def test_the_columns_of_a_model_are_found_by_name_or_by_position_or_missed_by_name():
    table = Table(X, NAMES)
    found = columns_of_model(table, ["δ", "alpha"], "data.csv")
    assert found.names == ("δ", "alpha")
    np.testing.assert_array_equal(found.X, X[:, [2, 0]])
    plain = columns_of_model(Table(X, default_names(3)), ["a", "b", "c"], "data.csv")
    assert plain.names == ("a", "b", "c")
    np.testing.assert_array_equal(plain.X, X)
    with pytest.raises(InputError, match=r"data\.csv has no column 'omega', which the model needs"):
        columns_of_model(table, ["alpha", "omega"], "data.csv")


# --- frames and hygiene ----------------------------------------------------------------------------------------

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_bring_their_names(library):
    assert frame_names(FRAMES[library]({"a": [1.0], "b": [2.0]})) == ("a", "b")


def test_arrays_and_lists_bring_no_names():
    assert frame_names(X) is None
    assert frame_names([[1.0]]) is None


@pytest.mark.parametrize("library", FRAMES)
def test_text_in_a_frame_is_named(library):
    frame = FRAMES[library]({"a": [1.0, 2.0], "label": ["x", "y"]})
    with pytest.raises(InputError, match="'label' in the table holds no numbers"):
        check_numeric_frame(frame)
    check_numeric_frame(FRAMES[library]({"a": [1.0, 2.0], "flag": [True, False], "count": [1, 2]}))


def test_a_lazy_frame_is_to_be_collected(rows):
    with pytest.raises(InputError, match=r"LazyFrame holds no rows yet: call \.collect\(\) first"):
        ISDE().fit(pl.LazyFrame(rows))


def test_an_anndata_object_is_to_give_its_frame(rows):
    # Known by its name, as `isde` does not import anndata; a class of the same name is no such object.
    cells = type("AnnData", (), {"__module__": "anndata._core.anndata"})
    with pytest.raises(InputError, match=r"give adata\.to_df\(\)"):
        ISDE().fit(type("View", (cells,), {})())
    other = type("AnnData", (np.ndarray,), {})
    check_numeric_frame(rows.view(other))


NO_TABLES = {
    "nothing": (None, "None is no table: give rows"),
    "a file's name": ("data.csv", "'data.csv' is no table: give rows"),
    "a dictionary": ({"a": [1.0]}, "dict is no table: give rows"),
    "a pandas series": (pd.Series([1.0, 2.0]), r"call \.to_frame\(\) first"),
    "a polars series": (pl.Series([1.0, 2.0]), r"call \.to_frame\(\) first"),
    "a list of rows": ([[1.0, 2.0], [3.0]], "rows of the table have different numbers of values"),
    "one dimension": (np.arange(400.0), r"this array has one\. Reshape your data: X\.reshape"),
    "three dimensions": (np.zeros((2, 2, 2)), "and this has 3"),
    "complex numbers": (np.zeros((2, 2), dtype=complex), "Complex data not supported: give real"),
    "dates": (np.zeros((2, 2), dtype="M8[s]"), "holds dates: give them as numbers"),
    "spans": (np.zeros((2, 2), dtype="m8[s]"), "holds spans of time"),
    "records": (np.zeros(2, dtype=[("a", float)]), "make a data frame of it"),
    "a mask": (np.ma.masked_greater(X, 5.0), "4 values of the table are masked: drop or fill"),
    "sparse columns": (
        pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])}),
        r"'a' in the table is sparse: give X\.ast",
    ),
    "names twice": (pd.DataFrame(X, columns=["a", "b", "a"]), "more than one column named 'a': rename"),
    "names twice in pyarrow": (pa.table([[1.0], [2.0]], names=["a", "a"]), "more than one column named 'a': rename"),
}


@pytest.mark.parametrize("what", NO_TABLES)
def test_what_is_no_table_is_refused_in_one_short_sentence_with_the_way_out(what):
    given, complaint = NO_TABLES[what]
    with pytest.raises(InputError, match=complaint) as refused:
        check_input(given)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_what_is_said_of_sparse_columns_helps():
    check_input(pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])}).astype(float))


def test_a_mask_that_hides_nothing_is_no_obstacle():
    check_input(np.ma.masked_greater(X, np.inf))


def test_missing_and_infinite_values_are_counted_by_column():
    bad = np.array([[1.0, np.nan, np.inf], [2.0, np.nan, 1.0], [3.0, 1.0, 1.0]])
    with pytest.raises(InputError, match=r"'b' \(2\), 'c' \(1\) of 4 rows, first in row 2"):
        check_finite(np.vstack([np.ones(3), bad]), ["a", "b", "c"])


def test_many_culprits_are_counted_and_not_listed():
    with pytest.raises(InputError, match=r"'x4' .* and 95 more"):
        check_finite(np.full((2, 100), np.nan), default_names(100))


def test_a_constant_column_is_named():
    with pytest.raises(InputError, match="'b' has the same value"):
        check_columns(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]), ["a", "b"])


def test_ties_above_five_percent_get_a_warning_with_their_share(rng):
    columns = rng.normal(size=(101, 2))
    columns[:11, 1] = 0.5  # 10 of 100 differences are zero
    with pytest.warns(ISDEWarning, match=r"'b' \(10%\)"):
        check_columns(columns, ["a", "b"])


def test_ties_up_to_five_percent_get_no_warning(rng):
    columns = rng.normal(size=(101, 2))
    columns[:6, 1] = 0.5
    check_columns(columns, ["a", "b"])


def test_two_equal_columns_get_a_warning(rng):
    columns = rng.normal(size=(20, 3))
    columns[:, 2] = columns[:, 0]
    with pytest.warns(ISDEWarning, match="'a' and 'c' are the same column"):
        check_columns(columns, ["a", "b", "c"])


@pytest.mark.parametrize("made", [lambda a: 1.8 * a + 32, np.negative, np.exp])
def test_a_column_that_follows_from_another_gets_a_warning(rng, made):
    columns = rng.normal(size=(2 * FIRST_ROWS, 3))
    columns[:, 2] = made(columns[:, 0])
    with pytest.warns(
        ISDEWarning, match="'a' and 'c' order the rows alike: if each follows from the other, their joint density"
    ):
        check_columns(columns, ["a", "b", "c"])


def test_columns_in_the_same_order_for_a_while_or_by_chance_get_none(rng):
    columns = np.sort(rng.normal(size=(2 * FIRST_ROWS, 2)), axis=0)
    columns[FIRST_ROWS:, 1] = [*columns[:FIRST_ROWS:-1, 1].tolist(), 9.0]
    check_columns(columns, ["a", "b"])
    check_columns(np.sort(rng.normal(size=(6, 2)), axis=0), ["a", "b"])


def test_a_folder_is_called_one_and_a_file_without_ending_too(tmp_path):
    with pytest.raises(InputError, match="is a folder: give a file"):
        read_table(tmp_path)
    (tmp_path / "data").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="data has no ending: isde reads"):
        read_table(tmp_path / "data")
