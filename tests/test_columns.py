"""Input as people have it: files, data frames, arrays, lists."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from midst.columns import Columns, Dialect, as_columns, parse_rows, read_columns, read_folder
from midst.errors import InputError, MissingExtra

SECRET = "48151623.42"  # must never be in a message
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TABLES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE)


def write(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def refused(call: Callable[[], Any]) -> str:
    """What an error says: one line, with no secret in it nor in any error behind it."""
    with pytest.raises(InputError) as caught:
        call()
    error: BaseException | None = caught.value
    while error is not None:
        assert "48151623" not in f"{error!r}{vars(error)}"
        assert "\n" not in str(error)
        error = error.__context__
    return str(caught.value)


def same_bits(left: Any, right: Any) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    return left.shape == right.shape and left.dtype == right.dtype == np.float64 and left.tobytes() == right.tobytes()


def outcome(call: Callable[[], Columns]) -> tuple[Any, ...]:
    try:
        found = call()
    except InputError as error:
        return (str(error),)
    return found.names, found.values.shape, found.values.tobytes(), found.dropped


# Round trips


def as_csv(values: np.ndarray, delimiter: str = ",", end: str = "\n") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(names(values))
    writer.writerows([repr(x) for x in row] for row in values.tolist())
    return text.getvalue()


def names(values: np.ndarray) -> list[str]:
    return [f"x{i}" for i in range(values.shape[1])]


FILES: dict[str, Callable[[str, np.ndarray], object]] = {
    "csv": lambda path, v: Path(path).write_text(as_csv(v)),
    "CSV": lambda path, v: Path(path).write_text("\ufeff" + as_csv(v, ";", "\r\n"), newline=""),
    "tsv": lambda path, v: Path(path).write_text(as_csv(v, "\t", "\r"), newline=""),
    "pandas.csv": lambda path, v: pd.DataFrame(v, columns=names(v)).to_csv(path),
    "polars.csv": lambda path, v: pl.DataFrame(v, schema=names(v)).write_csv(path),
    "parquet": lambda path, v: pq.write_table(pa.table(dict(zip(names(v), v.T, strict=True))), path),
    "pandas.parquet": lambda path, v: pd.DataFrame(v, columns=names(v)).to_parquet(path),
    "polars.parquet": lambda path, v: pl.DataFrame(v, schema=names(v)).write_parquet(path),
}
FRAMES: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas": lambda v: pd.DataFrame(v, columns=names(v)),
    "nullable pandas": lambda v: pd.DataFrame(v, columns=names(v)).astype("Float64"),
    "Arrow pandas": lambda v: pd.DataFrame(v, columns=names(v)).astype("float64[pyarrow]"),
    "polars": lambda v: pl.DataFrame(v, schema=names(v)),
    "Arrow table": lambda v: pa.table(dict(zip(names(v), v.T, strict=True))),
    "Arrow batch": lambda v: pa.record_batch(dict(zip(names(v), v.T, strict=True))),
    "Arrow stream": lambda v: pa.table(dict(zip(names(v), v.T, strict=True))).to_reader(),
    "capsules": lambda v: OnlyCapsules(pa.table(dict(zip(names(v), v.T, strict=True)))),
}
ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda v: v,
    "other order": np.asfortranarray,
    "other bytes": lambda v: v.astype(">f8"),
    "masked": np.ma.masked_invalid,
    "lists": np.ndarray.tolist,
    "tuples": lambda v: tuple(map(tuple, v.tolist())),
    "a list of arrays": list,
    "objects": lambda v: v.astype(object),
    "decimals": lambda v: [[Decimal(x) if x or not np.signbit(x) else x for x in row] for row in v.tolist()],
}


class OnlyCapsules:
    """What has the Arrow PyCapsule interface and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def choose(data: st.DataObject, values: np.ndarray) -> list[int]:
    return data.draw(st.lists(st.sampled_from(range(values.shape[1])), min_size=1, unique=True))


@pytest.mark.parametrize("kind", FILES)
@given(values=TABLES, data=st.data())
def test_files_round_trip(kind: str, values: np.ndarray, data: st.DataObject, tmp_path_factory: Any) -> None:
    path = str(tmp_path_factory.getbasetemp() / f"round_trip.{kind}")
    FILES[kind](path, values)
    chosen = choose(data, values)
    dialect = Dialect(";", ".") if kind == "CSV" else Dialect()
    found = read_columns(path, [f"x{i}" for i in chosen], dialect=dialect)
    assert same_bits(found.values, values[:, chosen])
    assert (found.names, found.dropped) == (tuple(f"x{i}" for i in chosen), 0)


@pytest.mark.parametrize("kind", FRAMES)
@given(values=TABLES, data=st.data())
def test_frames_round_trip(kind: str, values: np.ndarray, data: st.DataObject) -> None:
    chosen = choose(data, values)
    found = as_columns(FRAMES[kind](values), [f"x{i}" for i in chosen])
    assert same_bits(found.values, values[:, chosen])
    assert found.names == tuple(f"x{i}" for i in chosen)


@pytest.mark.parametrize("kind", ARRAYS)
@given(values=TABLES)
def test_arrays_round_trip(kind: str, values: np.ndarray) -> None:
    found = as_columns(ARRAYS[kind](values))
    assert same_bits(found.values, values)
    assert (found.names, found.dropped) == ((), 0)


@given(values=TABLES)
@example(values=np.array([[1.125, 1.125]]))  # "1.125, 1.125": a comma with a blank behind it is no decimal comma
def test_a_text_is_read_as_the_commands_read_it(values: np.ndarray, tmp_path_factory: Any) -> None:
    text = "# a comment\n\n" + "".join(", ".join(map(repr, row)) + " # more\n" for row in values.tolist())
    path = write(tmp_path_factory.getbasetemp(), "rows.txt", text)
    assert same_bits(read_columns(path).values, values)
    assert same_bits(np.array(parse_rows(text.splitlines(), "rows")), values)


def test_what_is_returned_is_ones_own() -> None:
    given_values = np.ones(3)
    found = as_columns(given_values)
    given_values[:] = 2
    assert found.values.tolist() == [[1], [1], [1]]
    assert not found.values.flags.writeable


def test_no_repr_shows_a_value() -> None:
    assert "48151623" not in repr(as_columns([float(SECRET)]))


# The fast way and the careful way

USUAL = st.one_of(FINITE.map(repr), st.integers().map(str), st.sampled_from(["NA", "", '"2.5"', " 1 ", "1_0", "nan"]))
ODD = st.sampled_from(
    ["inf", "-1e999", "x", '"3,5"', "3,5", '"', '"a\nb"', "a\nb", "\n", "é", "１", "\u2028", "0x1", "1,"]
)


@st.composite
def csv_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A CSV that is all right, or all right but for a cell or two; and columns of it."""
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(USUAL, min_size=width, max_size=width), min_size=1, max_size=6))
    for _ in range(draw(st.integers(0, 2))):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, width - 1))] = draw(ODD)
    header = draw(st.sampled_from([[list("abc"[:width])], [list("abc"[:width])], []]))
    wanted = draw(st.lists(st.sampled_from("abc"[:width]), min_size=width > 1, unique=True)) if header else []
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n", "\r"]))
    return draw(st.sampled_from(["", "\n", "\ufeff"])) + end.join(",".join(row) for row in header + rows), wanted


@settings(max_examples=500)
@given(case=csv_texts(), missing=st.sampled_from(["refuse", "drop"]))
def test_both_ways_read_the_same(case: tuple[str, list[str]], missing: Any, tmp_path_factory: Any) -> None:
    """By rows where a point is the decimal, and by cells where something may stand between thousands."""
    text, wanted = case
    path = write(tmp_path_factory.getbasetemp(), "both.csv", text)
    fast, careful = (
        outcome(lambda dialect=dialect: read_columns(path, wanted, missing=missing, dialect=dialect))
        for dialect in (Dialect(decimal="."), Dialect(decimal=".", thousands="'"))
    )
    assert [str(each).partition(": not written")[0] for each in fast] == [
        str(each).partition(": not written")[0] for each in careful
    ]


def test_a_csv_has_quotes_and_blank_lines(tmp_path: Path) -> None:
    text = 'name,x,"a, b"\r\n"one\nline",1.5,2\r\n\r\nb,"-2",7\r\n\r\n'
    path = write(tmp_path, "plain.csv", text)
    assert read_columns(path, ["x"]).values.tolist() == [[1.5], [-2]]
    assert read_columns(path, ["a, b", "x"]).values.tolist() == [[2, 1.5], [7, -2]]
    path = write(tmp_path, "gaps.csv", "x,y\r\n1,\r\nNA,2\r\n3,4\r\n")
    assert read_columns(write(tmp_path, "long.csv", "x,y\n" + "1,2\n" * 50_000), ["y"]).values.sum() == 100_000
    found = read_columns(path, ["x", "y"], missing="drop")
    assert (found.values.tolist(), found.dropped) == ([[3, 4]], 2)


# What a CSV may look like


@pytest.mark.parametrize("form", ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", ".", " ", '""', "-nan"])
def test_missing_forms(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, "gaps.csv", f"x,y\n1,2\n{form},3\n4,NA\n")
    told = f"{path}, line 3, column 'x': missing; fill it in, or leave such rows out with --missing drop"
    assert refused(lambda: read_columns(path, ["x"])) == told
    found = read_columns(path, ["x"], missing="drop")
    assert (found.values.tolist(), found.dropped) == ([[1], [4]], 1)
    assert read_columns(path, ["y", "x"], missing="drop").dropped == 2


def test_one_column_needs_no_name(tmp_path: Path) -> None:
    for text, names in (("x\n1\n2\n", ("x",)), ("1\n2\n\n\n", ()), ("\n\n1\n2", ()), ('"x"\n"1"\n"2"\n', ("x",))):
        found = read_columns(write(tmp_path, "one.csv", text))
        assert (found.names, found.values.tolist(), found.dropped) == (names, [[1], [2]], 0)


def test_a_blank_line_in_one_column_is_missing(tmp_path: Path) -> None:
    for text, line in (("x\n1\n\n2\n\n", 3), ("x\n\n1\n2\n", 2), ("1\n\n2\n", 2), ('x\n1\n2\n""\n', 4)):
        path = write(tmp_path, "one.csv", text)
        assert f"one.csv, line {line}" in refused(lambda path=path: read_columns(path))
        assert read_columns(path, missing="drop").dropped == 1


def test_a_text_with_gaps(tmp_path: Path) -> None:
    path = write(tmp_path, "gaps.txt", "1 2\nNA 3\n4 5\n")
    assert "gaps.txt, line 2: missing" in refused(lambda: read_columns(path))
    found = read_columns(path, missing="drop")
    assert (found.values.tolist(), found.dropped) == ([[1, 2], [4, 5]], 1)


def test_standard_input_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n2\n")))
    assert read_columns("-", alone=True).values.tolist() == [[1], [2]]
    monkeypatch.setattr(sys, "stdin", None)
    assert refused(lambda: read_columns("-")) == "standard input: no numbers; write one a line"


def test_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "a.parquet")
    for path in (write(tmp_path, "a.csv", "x\n1\n"), write(tmp_path, "a.txt", "1\n"), str(tmp_path / "a.parquet")):
        os.chmod(path, 0o644)
        assert "others may read or write this file; try: chmod 600" in refused(
            lambda p=path: read_columns(p, alone=True)
        )
        os.chmod(path, 0o600)
        assert read_columns(path, alone=True).values.tolist() == [[1]]


# What is refused, and how

HEADER = "no header, its first line is numbers; write a line of names above it"
SAY = "say how the file is written, as in --csv semicolon or --csv decimal=."
COMMAS = f"; if commas are decimal, {SAY}"
OTHER = f"a.csv, line 1: another separator in the header; {SAY}"
COMMA = f"a comma in a number; {SAY}"
REFUSALS: dict[str, tuple[str, str | bytes, tuple[str, ...], str]] = {
    "several": ("a.csv", "x,y\n1,2\n", (), "a.csv: 2 columns ('x', 'y'); say which with --column"),
    "many": ("a.csv", ",".join(f"x{i}" for i in range(20)), (), "'x6', 'x7' and 12 more); say"),
    "no such name": ("a.csv", "income,age\n1,2\n", ("incme",), "a.csv: no column 'incme'; did you mean income?"),
    "no name": ("a.csv", ",age\n1,2\n", ("",), "a.csv: no column ''"),
    "header twice": ("a.csv", "\nx,y,x\n1,2,3\n", ("y",), "a.csv, line 2: two columns are called 'x'"),
    "asked twice": ("a.csv", "x,y\n1,2\n", ("x", "x"), "a.csv: column 'x' is asked for twice"),
    "ragged": ("a.csv", f"x,y\n1,2\n{SECRET}\n", ("x",), "a.csv, line 3: 1 cells, but 2 in the first"),
    "short and long": ("a.csv", "x,y\n5\n2,3,4\n6,7\n", ("x",), "a.csv, line 2: 1 cells, but 2 in the first"),
    "too many": ("a.csv", f"x,y\n1,2,{SECRET}\n", ("x",), f"a.csv, line 2: 3 cells, but 2 in the first{COMMAS}"),
    "text": ("a.csv", f"x,y\n1,a\n\n{SECRET}x,b\n", ("x",), "a.csv, line 4, column 'x': not a number"),
    "after two lines": ("a.csv", f'x,y\n1,"a\nb"\n{SECRET}x,"c\nd"\n', ("x",), "line 4, column 'x': not a number"),
    "infinite": ("a.csv", "x\n1\n-inf\n", (), "a.csv, line 3, column 'x': not a finite number"),
    "overflow": ("a.tsv", "x\ty\n1\t1\n1e999\t2\n", ("x",), "a.tsv, line 3, column 'x': not a finite number"),
    "no rows": ("a.csv", "x\n", (), "a.csv: no rows"),
    "nothing": ("a.csv", "\n\n", (), "a.csv: no rows"),
    "only a mark": ("a.csv", b"\xef\xbb\xbf", (), "a.csv: no rows"),
    "no header": ("a.csv", f"{SECRET},1\n2,3\n", (), f"a.csv: {HEADER}"),
    "no header, asked for": ("a.csv", f"{SECRET}\n2\n", ("x",), f"a.csv: {HEADER}"),
    "half a header": ("a.csv", f"alice,{SECRET}\nbob,3\n", (), "a.csv: 2 columns ('alice' and 1 more); say"),
    "mistyped first line": ("a.csv", f"{SECRET}x\n{SECRET}y\n", (), "a.csv, line 2: not a number"),
    "mistyped, twice": ("a.csv", f"{SECRET}x,{SECRET}x\n1,2\n", ("y",), "line 1: two columns are called the same"),
    "mistyped, near": ("a.csv", f"{SECRET}x,{SECRET}\n1,2\n", (SECRET[-3:],), "a.csv: no column '.42'"),
    "decimal comma, quoted": ("a.csv", 'x,y\n1,2\n"48151623,42",2\n', ("x",), f"a.csv, line 3, column 'x': {COMMA}"),
    "decimal comma, elsewhere": ("a.csv", 'x,y\n1,2\n2,"48151623,42"\n', ("x",), f"line 3, column 'y': {COMMA}"),
    "decimal comma, no word": ("a.csv", '481,x\n"48151623,42",1\n', ("x",), f"a.csv, line 2: {COMMA}"),
    "thousands and a comma": ("a.tsv", "x\ty\n1.048.151,42\t2\n", ("x",), f"a.tsv, line 2, column 'x': {COMMA}"),
    "thousands": ("a.csv", "x,y\n48'151'623.42,2\n", ("x",), "line 2, column 'x': not written with a decimal point"),
    "semicolons": ("a.csv", "x;y\n5;2\n481,516;2\n", ("x",), OTHER),
    "semicolons, one column": ("a.csv", "x;y\n5;2\n481,516;2\n", (), OTHER),
    "tabs": ("a.csv", "x\ty\n5\t48151623,42\n", ("x",), OTHER),
    "decimal comma, one column": ("a.csv", "x\n48151623,42\n", (), COMMAS),
    "decimal comma, no header": ("a.csv", "48151623,42\n", (), HEADER),
    "decimal comma, nothing else": ("a.csv", '"48151623,42"\n"1,5"\n', (), f"a.csv, line 1: {COMMA}"),
    "no header, semicolon": ("a.csv", "48151623,42;3,5\n", (), OTHER),
    "open quote": ("a.csv", f'x,y\n1,2\n{SECRET},"a\n3,4\n', ("x",), "a.csv, line 3: quotes do not match"),
    "open quote above": ("a.csv", f'"x,y\n{SECRET},2\n', ("x",), "a.csv, line 1: quotes do not match"),
    "all missing": ("a.csv", "x,y\n1,NA\n,2\n", ("x", "y"), "a.csv, line 2, column 'y': missing"),
    "not text": ("a.csv", f"x\n{SECRET}\xff\n".encode("latin-1"), (), "a.csv: not a text in UTF-8"),
    "UTF-16": ("a.tsv", f"x\n{SECRET}\n".encode("utf-16"), (), "a.tsv: not a text in UTF-8"),
    "not Parquet": ("a.parquet", f"x\n{SECRET}\n", (), "a.parquet: not a Parquet file, or a damaged one"),
    "text with names": ("a.txt", "1\n", ("x",), "a text has no named columns; --column is for .csv, .tsv and .p"),
    "text of text": ("a.txt", f"1\n{SECRET}x\n", (), "a.txt, line 2: not a number"),
    "text, not text": ("a.dat", f"{SECRET}\xff".encode("latin-1"), (), "a.dat: not a text in UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_files_are_refused(tmp_path: Path, case: str) -> None:
    name, content, wanted, told = REFUSALS[case]
    path = write(tmp_path, name, content)
    message = refused(lambda: read_columns(path, wanted))
    assert message.startswith(path)
    assert told in message
    if "missing" not in told:
        assert refused(lambda: read_columns(path, wanted, missing="drop")) == message


def test_other_refusals(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "x,y\nNA,1\n1,\n")
    told = f"{path}: a number is missing in every row"
    assert refused(lambda: read_columns(path, ["x", "y"], missing="drop")) == told
    assert 'missing must be "refuse" or "drop"' in refused(lambda: read_columns(path, missing="ignore"))  # type: ignore
    assert "columns must be a list of names; try ['x']" in refused(lambda: read_columns(path, "x"))
    for name in ("none.csv", "none.txt", "none.parquet"):
        assert f"{name}: No such file" in refused(lambda name=name: read_columns(str(tmp_path / name)))
    (tmp_path / "folder.csv").mkdir()
    assert "folder.csv: Is a directory" in refused(lambda: read_columns(str(tmp_path / "folder.csv")))


def test_long_and_strange_names_stay_on_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", f'"x\ny",{"z" * 1000}\n1,2\n')
    assert len(refused(lambda: read_columns(path))) < len(path) + 120


def test_a_parquet_file_that_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.arange(1000.0)}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "not a Parquet file, or a damaged one" in refused(lambda: read_columns(str(path)))
    path.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    assert "not a Parquet file, or a damaged one" in refused(lambda: read_columns(str(path)))


def test_parquet(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    table = pa.table({"a": [1, None, 3], "a.b": [float(SECRET), 2.0, 3.0], "c": ["x", "y", "z"]})
    pq.write_table(table, path)
    message = refused(lambda: read_columns(path, ["a"]))
    assert "a.parquet, column 'a', row 1 (counting from 0): missing; " in message
    assert message.endswith("--missing drop")
    found = read_columns(path, ["a.b", "a"], missing="drop")
    assert (found.values.tolist(), found.dropped) == ([[float(SECRET), 1], [3, 3]], 1)
    assert "a.parquet, column 'c', row 0 (counting from 0): not a number" in refused(lambda: read_columns(path, ["c"]))
    assert "3 columns ('a', 'a.b', 'c'); say which with --column" in refused(lambda: read_columns(path))
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["x", "x"]), path)
    assert "two columns are called 'x'" in refused(lambda: read_columns(path))


def test_parquet_is_written_in_one_way(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "a.parquet")
    told = f"{tmp_path}/a.parquet: a Parquet file needs no --csv; leave it out"
    assert refused(lambda: read_columns(str(tmp_path / "a.parquet"), dialect=Dialect(decimal=","))) == told


def test_missing_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capsules = OnlyCapsules(pa.table({"x": [1.0]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for call in (lambda: read_columns(str(tmp_path / "a.parquet")), lambda: as_columns(capsules)):
        with pytest.raises(MissingExtra, match=r"pyarrow is not installed; try: .*pip install .*\[parquet\]'$"):
            call()


# What is in memory

NUMBERS: dict[str, tuple[Any, list[float]]] = {
    "an int": (3, [3]),
    "a float": (2.5, [2.5]),
    "of NumPy": (np.float32(0.1), [float(np.float32(0.1))]),
    "of no dimension": (np.array(4), [4]),
    "a decimal": (Decimal("0.1"), [0.1]),
    "a range": (range(3), [0, 1, 2]),
    "a mixed list": ([1, 0.5, Decimal("0.1"), Fraction(1, 4), np.int8(7)], [1, 0.5, 0.1, 0.25, 7]),
    "large and held": ([2**60, -(2**53)], [2.0**60, -(2.0**53)]),
    "uint64": (np.array([2**63], dtype=np.uint64), [2.0**63]),
    "int8": (np.array([-128, 127], dtype=np.int8), [-128, 127]),
    "float16": (np.array([0.1], dtype=np.float16), [float(np.float16(0.1))]),
    "pandas Int64": (pd.Series([1, 2], dtype="Int64"), [1, 2]),
    "pandas categories": (pd.Series([3, 1], dtype="category"), [3, 1]),
    "pandas sparse": (pd.Series([3.0, 1.0], dtype="Sparse[float]"), [3, 1]),
    "pandas decimals": (pd.Series([Decimal("0.10")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))), [0.1]),
    "pandas, another index": (pd.Series([1.0, 2.0], index=[7, 7]), [1, 2]),
    "pandas Index": (pd.Index([1.5, 2.5]), [1.5, 2.5]),
    "polars": (pl.Series([1.5, 2.5]), [1.5, 2.5]),
    "polars decimals": (pl.Series([Decimal("0.10")]), [0.1]),
    "polars UInt64": (pl.Series([2**63], dtype=pl.UInt64), [2.0**63]),
    "Arrow": (pa.array([1, 2]), [1, 2]),
    "Arrow chunks": (pa.chunked_array([[1.5], [], [2.5]]), [1.5, 2.5]),
    "Arrow decimals": (pa.array([Decimal("0.10")]), [0.1]),
    "Arrow dictionary": (pa.array([5.5, 6.5, 5.5]).dictionary_encode(), [5.5, 6.5, 5.5]),
    "capsules of an array": (OnlyCapsules(pa.chunked_array([[1.5], [2.5]])), [1.5, 2.5]),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_in_memory(case: str) -> None:
    data, numbers = NUMBERS[case]
    assert same_bits(as_columns(data).values, np.array(numbers, dtype=np.float64)[:, None])


GAPS: dict[str, Any] = {
    "a list": [1, None, 3],
    "a list of NaN": [1.0, float("nan"), 3.0],
    "a list of NA": [1, pd.NA, 3],
    "a decimal NaN": [Decimal(1), Decimal("sNaN"), 3],
    "an array": np.array([1, np.nan, 3]),
    "objects": np.array([1, None, 3], dtype=object),
    "masked": np.ma.masked_array([1, 2, 3], [False, True, False]),
    "pandas": pd.Series([1, None, 3]),
    "pandas Int64": pd.Series([1, None, 3], dtype="Int64"),
    "pandas Float64": pd.Series([1, None, 3], dtype="Float64"),
    "pandas of Arrow": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "pandas of Arrow NaN": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1, float("nan"), 3]))),
    "pandas objects": pd.Series([1, pd.NA, 3], dtype=object),
    "polars": pl.Series([1, None, 3]),
    "polars NaN": pl.Series([1.0, float("nan"), 3.0]),
    "polars decimals": pl.Series([Decimal(1), None, Decimal(3)]),
    "Arrow": pa.array([1, None, 3]),
    "Arrow NaN": pa.array([1, float("nan"), 3]),
    "Arrow chunks": pa.chunked_array([[1], [None, 3]]),
}


@pytest.mark.parametrize("case", GAPS)
def test_gaps_in_memory(case: str) -> None:
    told = 'bob, row 1 (counting from 0): missing; fill it in, or leave such rows out with missing="drop"'
    assert refused(lambda: as_columns(GAPS[case], what="bob")) == told
    found = as_columns(GAPS[case], missing="drop")
    assert (found.values.tolist(), found.dropped) == ([[1], [3]], 1)


def test_a_relation_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select * from (values (1, 2.5), (null, 3), ({2**53 + 1}, 4)) as t(x, y)")
    assert as_columns(relation, ["y"]).values.tolist() == [[2.5], [3], [4]]
    told = "the data, column 'x', row 2 (counting from 0): a whole number that a float64 cannot hold"
    assert refused(lambda: as_columns(relation, ["x"], missing="drop")).startswith(told)


def test_whole_rows_are_dropped() -> None:
    mask = [[0, 0], [1, 0], [0, 0]]
    for data in ([[1, 2], [None, 3], [4, 5]], np.ma.masked_array([[1, 2], [0, 3], [4, 5]], mask)):
        found = as_columns(data, missing="drop")
        assert (found.values.tolist(), found.dropped) == ([[1, 2], [4, 5]], 1)
        assert "the data, column 0, row 1 (counting from 0): missing" in refused(lambda data=data: as_columns(data))


def test_names_in_memory() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [3.5, 4.5], 7: [5, 6]})
    assert as_columns(frame, ["7", "x"]).values.tolist() == [[5, 1], [6, 2]]
    assert as_columns(frame["y"]).names == ("y",)
    assert as_columns(pl.Series("y", [1.0]), ["y"]).names == ("y",)
    assert as_columns(pl.DataFrame({"x": [1]})).names == ("x",)
    assert as_columns(pl.Series([1.0])).names == as_columns(pd.Series([1.0])).names == ()
    told = "the data: 3 columns ('x', 'y' and 1 more); say which with columns=[\"…\"]"
    assert refused(lambda: as_columns(frame)) == told
    assert "no column 'xx'; did you mean x?" in refused(lambda: as_columns(frame, ["xx"]))
    assert "two columns are called 'x'" in refused(
        lambda: as_columns(pd.DataFrame([[1, 2]], columns=["x", "x"]), ["x"])
    )
    assert as_columns([[1, 2], [3, 4]], ["x", "y"]).names == ("x", "y")
    assert "1 columns without names, for 2 names" in refused(lambda: as_columns([1, 2], ["x", "y"]))
    assert refused(lambda: as_columns(pd.DataFrame())) == 'the data: no columns; say which with columns=["…"]'


SECRETS = [float(SECRET), float(SECRET)]
IN_MEMORY: dict[str, tuple[Any, str]] = {
    "nothing": ([], "the data: no rows"),
    "empty array": (np.empty((0, 2)), "the data: no rows"),
    "no columns": (np.empty((2, 0)), "the data: no rows"),
    "empty rows": ([[], []], "the data: no rows"),
    "no rows": (pl.DataFrame({"x": [1.0]}).clear(), "the data: no rows"),
    "all missing": (pl.Series([None, None]), "the data, row 0 (counting from 0): missing"),
    "text": (SECRET, "the data: text is not a number"),
    "a list of text": ([1, SECRET], "the data, row 1 (counting from 0): not a number"),
    "an array of text": (np.array([SECRET]), "the data, row 0 (counting from 0): not a number"),
    "polars text": (pl.Series("x", [None, SECRET]), "the data, column 'x', row 1 (counting from 0): not a number"),
    "pandas text": (pd.Series([1.0, SECRET], dtype=object), "the data, row 1 (counting from 0): not a number"),
    "Arrow text": (pa.array([SECRET]), "the data, row 0 (counting from 0): not a number"),
    "infinite": ([1.0, float("inf")], "the data, row 1 (counting from 0): not a finite number"),
    "infinite in a table": (
        np.array([[1, 2], [3, -np.inf]]),
        "the data, column 1, row 1 (counting from 0): not a finite",
    ),
    "an infinite decimal": ([Decimal("1e999")], "not a finite number"),
    "a huge fraction": ([Fraction(10**400)], "not a finite number"),
    "a long double": (np.array([np.finfo(np.longdouble).max]), "not a finite number"),
    "a complex": (np.array([1j]), "a complex number"),
    "huge": ([48151623 * 10**30 + 1], "a whole number that a float64 cannot hold"),
    "beyond all": ([10**400], "a whole number that a float64 cannot hold"),
    "int64": (np.array([1, 2**53 + 1]), "the data, row 1 (counting from 0): a whole number that a float64 cannot hold"),
    "largest int64": (np.array([2**63 - 1]), "a whole number that a float64 cannot hold"),
    "largest uint64": (np.array([2**64 - 1], dtype=np.uint64), "a whole number that a float64 cannot hold"),
    "Arrow int64": (
        pa.array([None, -(2**53) - 1]),
        "row 1 (counting from 0): a whole number that a float64 cannot hold",
    ),
    "polars Int128": (pl.Series([2**100 + 1], dtype=pl.Int128), "a whole number that a float64 cannot hold"),
    "true": (True, "true or false is not a number"),
    "a list of truths": ([1, True], "row 1 (counting from 0): true or false is not a number"),
    "NumPy's truth": ([np.True_], "true or false is not a number"),
    "pandas truths": (
        pd.Series([None, True], dtype="boolean"),
        "row 1 (counting from 0): true or false is not a number",
    ),
    "polars truths": (pl.Series([True]), "true or false is not a number"),
    "Arrow truths": (pa.array([True]), "true or false is not a number"),
    "dates": ([date(2020, 1, 1)], "a date or time is not a number"),
    "NumPy dates": (np.array(["2020-01-01"], dtype="M8[D]"), "a date or time is not a number"),
    "pandas dates": (pd.Series(pd.to_datetime(["2020-01-01"])), "a date or time is not a number"),
    "pandas dates of a zone": (pd.Series(pd.to_datetime(["2020-01-01"], utc=True)), "a date or time is not a number"),
    "polars dates": (pl.Series([datetime(2020, 1, 1)]), "a date or time is not a number"),
    "Arrow spans": (pa.array([timedelta(1)]), "a date or time is not a number"),
    "ragged": ([SECRETS, [1.0]], "the data: the rows of a list must have the same length"),
    "rows and numbers": ([1.0, SECRETS], "the data: the rows of a list must have the same length"),
    "too deep": ([[SECRETS]], "the data, column 0, row 0 (counting from 0): not a number"),
    "too many dimensions": (np.zeros((1, 1, 1)), "the data: give a number, a list, an array (n,) or (n, m)"),
    "polars lists": (pl.Series([SECRETS]), "row 0 (counting from 0): not a number"),
    "polars arrays": (pl.Series([SECRETS], dtype=pl.Array(pl.Float64, 2)), "row 0 (counting from 0): not a number"),
    "Arrow structs": (pa.table({"x": [{"a": float(SECRET)}]}), "not a number"),
    "records": (np.array([(1, 2.0)], dtype="i4,f8"), "each cell must be one number"),
    "None": (None, "the data: give a number, a list, an array (n,) or (n, m), or a data frame"),
    "a dictionary": ({"x": SECRETS}, "the data: give a number, a list, an array (n,) or (n, m), or a data frame"),
    "a set": (set(SECRETS), "the data: give a number, a list, an array (n,) or (n, m), or a data frame"),
    "a query": (pl.DataFrame({"x": SECRETS}).lazy(), "the data: a query, and not its result; give what collect()"),
}


@pytest.mark.parametrize("case", IN_MEMORY)
def test_what_is_in_memory_is_refused(case: str) -> None:
    data, told = IN_MEMORY[case]
    assert told in refused(lambda: as_columns(data))


@given(st.integers(-(2**70), 2**70))
def test_whole_numbers_are_held_or_refused(whole: int) -> None:
    forms: list[Any] = [[whole], np.array([whole], dtype=object)]
    forms += [np.array([whole]), pa.array([whole]), pl.Series([whole])] if abs(whole) < 2**63 else []
    for data in forms:
        if int(float(whole)) == whole:
            assert as_columns(data).values.tolist() == [[whole]]
        else:
            assert "cannot hold" in refused(lambda data=data: as_columns(data))


def test_no_library_of_data_frames_is_imported() -> None:
    script = """
import sys
from midst.columns import as_columns
as_columns([1, None, 2.5], missing="drop")
assert not {"pandas", "polars", "pyarrow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# Folders


def test_a_folder_is_a_file_a_participant(tmp_path: Path) -> None:
    write(tmp_path, "bob.csv", "id,x\n1,2.5\n2,\n")
    write(tmp_path, "alice-b.tsv", "x\n1\n3\n")
    pq.write_table(pa.table({"x": [7], "y": [True]}), tmp_path / "alice.parquet")
    write(tmp_path, ".hidden", SECRET)
    found = read_folder(str(tmp_path), ["x"], missing="drop")
    assert {name: part.values.tolist() for name, part in found.items()} == {
        "alice": [[7]], "alice-b": [[1], [3]], "bob": [[2.5]]
    }  # fmt: skip
    assert list(found) == ["alice", "alice-b", "bob"]
    assert found["bob"].dropped == 1


def test_folders_are_refused(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert refused(lambda: read_folder(folder)) == f"{folder}: no files; give one a participant"
    assert "none: No such file" in refused(lambda: read_folder(f"{folder}/none"))
    alice = write(tmp_path, "alice.txt", f"{SECRET}\n")
    assert "alice.txt: Not a directory" in refused(lambda: read_folder(alice))
    bob = write(tmp_path, "bob.txt", "1 2\n")
    assert refused(lambda: read_folder(folder)) == f"{bob}: 2 columns, but 1 in alice's"
    Path(bob).unlink()
    other = write(tmp_path, "alice.csv", "x\n1\n")
    assert refused(lambda: read_folder(folder)).startswith(f"{folder}: two files are called alice")
    Path(alice).rename(tmp_path / "carol.txt")
    assert list(read_folder(folder)) == ["alice", "carol"]
    write(tmp_path, "dave.csv", "y\n1\n")
    assert "dave.csv: its column is not called as in alice's" in refused(lambda: read_folder(folder))
    Path(other).write_text(f"x\n{SECRET}x\n")
    assert f"{other}, line 2, column 'x': not a number" in refused(lambda: read_folder(folder))
