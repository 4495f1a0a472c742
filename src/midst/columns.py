"""Columns of numbers as people have them: a CSV, a Parquet file, a text, a data frame, an array, a list.

Rules:
- A private value is in no error and no repr: an error names the file, the line and the column, never what is written
  there, for it may be a value, mistyped. Nor is a column's name shown where nobody asked for it and it does not begin
  as a word does: in a file without a header it is a value. No error is raised while another, which may hold the
  text, is being handled.
- What is not one finite number a cell is refused, never guessed: text, infinities, true and false, dates, rows of
  other lengths, quotes that do not match, anything between thousands. Missing numbers are refused too, unless they are
  asked to be dropped; then the whole row is left out, and counted.
- Written numbers are read as Python's `float` reads them, to the nearest float64, and all by `_read_number`. Whole
  numbers that come as such (arrays, Parquet) must fit exactly. Decimals become the nearest float64; in memory, where
  there is a public resolution, one that rounds to the same multiple of it as they do (`Read`).
- A text is a row of numbers a line, between blanks or commas; `#` starts a comment; blank lines are skipped. A CSV has
  a header, but for a single column; `;` separates where the first line has one. In a CSV of a single column a blank
  line is a missing number, but for those at the end.
- Decimal commas are read where something else separates, `;` or a tab, and one of them at least cannot stand between
  thousands, as that in 1,234 can; then nothing has a point. Where commas may separate, of one file, it must be clear
  that they do: 1,2,3 and 1.5,2 are rows; 3,14 alone is refused, since it may be a number or two.
- A CSV is read fast, and when anything at all is odd about it, again and with care, to say where. Both read the same.
- No library of data frames is imported for what it made: each is asked by what it can do. Parquet needs pyarrow.
"""

from __future__ import annotations

import csv
import io
import math
import numbers
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError, MissingExtra, closest
from midst.files import check_alone
from midst.types import Array, Bools

Missing = Literal["refuse", "drop"]
Read = Callable[[Any], float]  # of a decimal or a fraction the float that stands for it; `Keys.nearest`

_MISSING = {"", "na", "n/a", "nan", "null", "none", "."}
_SHOWN = 8  # names in an error, at most
_BLOCK = 2**16  # bytes of a CSV at a time
_EXACT = 2**53  # whole numbers up to here fit into a float64
_COMMA = "a decimal comma where commas separate; write a point, as in 3.5"
_UNCLEAR = "the comma may be a decimal comma, or stand between thousands or numbers; write points, and blanks between"
_MIXED = "a point, and decimal commas elsewhere; write all numbers with a point, and nothing between thousands"
_THOUSANDS = "something may stand between thousands; leave that out, and write decimals with a point"
_TEXT = "not a number"
_SEPARATORS = re.compile(r"\s*;\s*|,?\s+")
_BLANK_BETWEEN = re.compile(r"\d[\u00a0\u2007\u2009\u202f]\d")  # as in French
_DECIMAL = re.compile(r"[-+]?(\d+(,\d+)?|,\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_THREE = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)  # may be thousands
_GROUPED = re.compile(r"[-+]?\d{1,3}([.,'’\s]\d{3})+([.,]\d*)?")
_MAY_BE_ONE = re.compile(
    r"[-+]?(\d*,\d+|\d{1,3}(,\d{3})+\.?\d*|\d{1,3}(\.\d{3})+,\d+)(e[-+]?\d+)?,?", re.ASCII | re.IGNORECASE
)
_BOOL = "true or false is not a number; give 0 and 1 if that is meant"
_DATE = "a date or time is not a number; give the days or seconds since one"
_HUGE = "a whole number that a float64 cannot hold; give it as float64, rounded, if that will do"
_FINE = "more digits than a float64 holds at this resolution; give it as float64, rounded, if that will do"
_PLAIN = {int, float}
_NO_ARRAY = "cannot be turned into an array; cast it to float64 first"
_CELL = "each cell must be one number"
_KINDS = {"b": _BOOL, "M": _DATE, "m": _DATE, "c": "a complex number; give a real one", "V": _CELL}
_NULLS = (("isna", "dropna"), ("is_null", "drop_nulls"), ("is_null", "drop_null"))  # pandas, polars, Arrow


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """One party's data.

    Attributes:
        names: one a column; () where there are none.
        values: (rows, m), finite, not to be written to.
        dropped: how many rows were left out because a number was missing.
    """

    names: tuple[str, ...]
    values: Array
    dropped: int


@dataclass(frozen=True)
class _Place:
    """How an error says where it is and what to try."""

    what: str
    choose: str = "--column"
    drop: str = "--missing drop"
    row: Callable[[int], str] = "row {} (counting from 0)".format

    def at(self, *parts: str) -> str:
        return ", ".join(part for part in (self.what, *parts) if part)

    def gap(self, *parts: str) -> InputError:
        return InputError(f"{self.at(*parts)}: missing; fill it in, or leave such rows out with {self.drop}")


@dataclass(frozen=True)
class _Pick:
    """A chosen column: where it is, what it is called, and what an error calls it."""

    index: int
    name: str
    label: str


@dataclass(frozen=True, eq=False, repr=False)
class _Table:
    """A CSV in memory. `names` is () where it has no header; `first` is the first line that is not blank."""

    data: bytes
    delimiter: str
    names: tuple[str, ...]
    width: int
    first: int
    place: _Place


def read_columns(
    path: str, columns: Sequence[str] = (), *, missing: Missing = "refuse", alone: bool = False
) -> Columns:
    """The columns of a file: `.csv`, `.tsv`, `.parquet`, or else a text with a number, or a row of them, a line.

    Args:
        path: where it is; "-" for a text on standard input.
        columns: which, by name; may be left out where there is one. A text has no names, and all of it is read.
        missing: what to do about a missing number: "refuse" the file, or "drop" the row.
        alone: refuse a file that others may read or write.

    Raises:
        InputError: the file cannot be read, has no such column, or has anything but finite numbers in it.
        MissingExtra: for Parquet without pyarrow.
    """
    _check_missing(missing)
    place = _Place(_name(path))
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(path, columns, missing, alone, place)
    if suffix in (".csv", ".tsv"):
        data = _load_text(path, alone, "file")
        return _read_csv(data, "\t" if suffix == ".tsv" else ",", columns, missing, place)
    if columns:
        raise InputError(f"{place.what}: a text has no named columns; {place.choose} is for .csv, .tsv and .parquet")
    rows = parse_rows(_lines(_load_text(path, alone, "file")), place.what, missing=missing)
    return _finish(np.array(rows), (), place)


def as_columns(
    data: Any, columns: Sequence[str] = (), *, missing: Missing = "refuse", what: str = "the data", read: Read = float
) -> Columns:
    """The columns of what is in memory already.

    A number, a list of numbers or of rows, an array (n,) or (n, m), a Series or data frame of pandas or polars, an
    Arrow array or table, or anything else with the Arrow PyCapsule interface (that, with pyarrow).

    Args:
        data: one of those.
        columns: which, by name; may be left out where there is one. Those that have no names are all taken, and are
            called so.
        missing: what to do about a missing number: "refuse" all, or "drop" the row.
        what: to call it in an error.
        read: gives the float for a decimal or a fraction.

    Raises:
        InputError: it is none of those, has no such column, or has anything but finite numbers in it.
        MissingExtra: for the PyCapsule interface without pyarrow.
    """
    _check_missing(missing)
    place = _Place(what, choose='columns=["…"]', drop='missing="drop"')
    table = _find_table(data)
    if table is None:
        data = _import_arrow(data, place)
        table = _find_table(data)
    if table is not None:
        names, column = table
        picks = _choose(names, columns, place, place.what)
        return _join([(pick, column(pick.index)) for pick in picks], missing, place, read)
    found = _join([(_Pick(0, "", ""), data)], missing, place, read)
    if columns and found.values.shape[1] != len(columns):
        raise InputError(f"{what}: {found.values.shape[1]} columns without names, for {len(columns)} names")
    return replace(found, names=tuple(columns))


def split_by_site(data: Any, site: str) -> dict[str, Any]:
    """The rows of every site in one data frame, by the name of the site, which a column holds; sorted by name."""
    place = _Place("the data", choose='site="…"')
    data = _import_arrow(data, place)
    table = _find_table(data) if hasattr(data, "columns") else None
    if table is None:
        raise InputError("site is the name of a column in one data frame for all; leave it out, or give such a frame")
    (pick,) = _choose(table[0], [site], place, place.what)
    sites, gaps = _find_present(table[1](pick.index), place.at(pick.label))
    if gaps.any():
        raise InputError(f"{place.at(pick.label, place.row(int(gaps.argmax())))}: missing; name the site of the row")
    labels, which = np.unique(sites.astype(str), return_inverse=True)
    take = data.take if hasattr(data, "take") else data.__getitem__  # polars
    return {str(name): take(np.flatnonzero(which == k)) for k, name in enumerate(labels)}


def as_numbers(data: Any, what: str, row: Callable[[int], str], read: Read = float) -> Array:
    """The numbers in an array, a list or a data frame, in one or two dimensions, NaN where one is missing.

    An error calls the data `what`, and its rows by `row`; see `as_columns`.
    """
    if type(data) is np.ndarray and data.ndim in (1, 2) and data.dtype in (np.float64, np.float32):
        return data.astype(np.float64)
    place = _Place(what, row=row)
    data = _import_arrow(data, place)
    table = _find_table(data) if hasattr(data, "columns") else None
    if table is None:
        return _as_floats(data, "", place, read)
    found = [_as_floats(table[1](i), f"column {i}", place, read) for i in range(len(table[0]))]
    return np.column_stack(found) if found else np.empty((0, 0))


def read_folder(folder: str, columns: Sequence[str] = (), *, missing: Missing = "refuse") -> dict[str, Columns]:
    """The columns of every participant: a file each, named after them; sorted by name. Hidden files are skipped.

    Raises:
        InputError: it cannot be read, has no files, two of one name, one that `read_columns` refuses, or files that
            do not have the same columns.
        MissingExtra: for Parquet without pyarrow.
    """
    parts: dict[str, Columns] = {}
    for path in _list_files(folder):
        if path.stem in parts:
            raise InputError(f"{folder}: two files are called {path.stem}; give one file a participant")
        part = parts[path.stem] = read_columns(str(path), columns, missing=missing)
        first_name, first = next(iter(parts.items()))
        if part.values.shape[1] != first.values.shape[1]:
            raise InputError(f"{path}: {part.values.shape[1]} columns, but {first.values.shape[1]} in {first_name}'s")
        if part.names != first.names and part.names and first.names:
            raise InputError(f"{path}: its column is not called as in {first_name}'s; give all files the same header")
    if not parts:
        raise InputError(f"{folder}: no files; give one a participant")
    return parts


def read_rows(path: str, *, ragged: bool = False, alone: bool = False) -> list[list[float]]:
    """The rows of numbers in a text ("-" for standard input); see `parse_rows`.

    Raises:
        InputError: it cannot be read, is for others to read or write (`alone`), or is not rows of finite numbers.
    """
    return parse_rows(_lines(_load_text(path, alone, "value")), _name(path), ragged=ragged)


def parse_rows(
    lines: Iterable[str], name: str, *, ragged: bool = False, missing: Missing | None = None
) -> list[list[float]]:
    """The rows of numbers in some lines.

    Args:
        lines: the text.
        name: to call it in an error.
        ragged: whether rows may have different lengths.
        missing: NaN where a number is missing, if it is "drop"; an error that says so, if it is "refuse"; None where
            a missing number is nothing to speak of.

    Raises:
        InputError: there are none, or a line is not m finite numbers.
    """
    place, rows = _Place(name), list[list[float]]()
    for line, words in _split_text([text.partition("#")[0] for text in lines], place):
        rows.append([_check_number(word, missing, place, f"line {line}") for word in words])
        if len(rows[-1]) != len(rows[0]) and not ragged:
            raise InputError(f"{name}, line {line}: {len(rows[-1])} in a row, but {len(rows[0])} before")
    if not rows:
        raise InputError(f"{name}: no numbers; write one a line")
    return rows


def _split_text(texts: list[str], place: _Place) -> Iterator[tuple[int, list[str]]]:
    """The words of every line that has some, with points for decimal commas."""
    lines = [(line, text) for line, text in enumerate(texts, start=1) if text and not text.isspace()]
    for line, text in lines:
        if not text.isascii() and _BLANK_BETWEEN.search(text):
            raise InputError(f"{place.at(f'line {line}')}: {_THOUSANDS}")
    if any(";" in text or ("," in text and "\t" in text.strip()) for _, text in lines):
        split = [(line, _SEPARATORS.split(text.strip())) for line, text in lines]
        if _check_commas(((word, (f"line {line}",)) for line, words in split for word in words), place):
            return ((line, [_with_point(word, place, f"line {line}") for word in words]) for line, words in split)
        return iter(split)
    commas = [(line, word) for line, text in lines if "," in text for word in text.split()]
    unclear = next((line for line, word in commas if _MAY_BE_ONE.fullmatch(word)), None)
    if unclear is not None and all("," not in word[:-1] or _MAY_BE_ONE.fullmatch(word) for _, word in commas):
        raise InputError(f"{place.at(f'line {unclear}')}: {_UNCLEAR}")
    return ((line, words) for line, text in lines if (words := text.replace(",", " ").split()))


# Numbers


def _read_number(word: str) -> float | None:
    """A written number; NaN where it is missing, and None where it is something else."""
    if word.strip().lower() in _MISSING:
        return math.nan
    try:
        return float(word)
    except ValueError:
        return None


def _check_number(word: str, missing: Missing | None, place: _Place, *where: str) -> float:
    number = _read_number(word)
    if number is None:
        why = _THOUSANDS if _GROUPED.fullmatch(word.strip()) else _COMMA if _has_decimal_comma(word) else _TEXT
        raise InputError(f"{place.at(*where)}: {why}")
    if math.isnan(number) and missing == "refuse":
        raise place.gap(*where)
    if not math.isfinite(number) and not (math.isnan(number) and missing):
        raise InputError(f"{place.at(*where)}: not a finite number")
    return number


def _check_commas(words: Iterable[tuple[str, tuple[str, ...]]], place: _Place) -> bool:
    """Whether commas in words, each with where it stands, are decimal commas, of which one at least must be for sure.

    Raises:
        InputError: each may stand between thousands.
    """
    first = None
    for word, where in words:
        if "," in word:
            if not _THREE.fullmatch(word.strip()):
                return True
            first = first or where
    if first is not None:
        raise InputError(f"{place.at(*first)}: {_UNCLEAR}")
    return False


def _with_point(word: str, place: _Place, *where: str) -> str:
    """A word with a point for its decimal comma, of a file that has such commas."""
    if _DECIMAL.fullmatch(word.strip()):
        return word.replace(",", ".")
    if "." in word and word.strip() not in _MISSING:
        raise InputError(f"{place.at(*where)}: {_MIXED}")
    return word


def _has_decimal_comma(word: str) -> bool:
    """Whether it would be a number, were a comma in it a point, or nothing (between thousands)."""
    return (
        "," in word and len(word) < 64 and re.fullmatch(r"[-+\s]*\d[\d.,'\s]*(e[-+]?\d+)?\s*", word, re.I) is not None
    )


def _finish(values: Array, names: Sequence[str], place: _Place) -> Columns:
    """The columns, without the rows in which one is NaN."""
    if values.size == 0:
        raise InputError(f"{place.what}: no rows")
    kept = ~np.isnan(values).any(axis=1)
    if not kept.any():
        raise InputError(f"{place.what}: a number is missing in every row")
    whole = values if kept.all() else values[kept]
    whole.setflags(write=False)
    return Columns(tuple(names), whole, len(values) - len(whole))


def _check_missing(missing: str) -> None:
    if missing not in ("refuse", "drop"):
        raise InputError('missing must be "refuse" or "drop"')


# Names


def _choose(names: Sequence[str], columns: Sequence[str], place: _Place, where: str) -> list[_Pick]:
    """The columns that are asked for, or the only one. Columns with an empty name cannot be asked for."""
    if isinstance(columns, str):
        raise InputError(f"{place.what}: columns must be a list of names; try [{_quote(columns)}]")
    if twice := _find_twice(names):
        shown = f" {_quote(twice)}" if _is_word(twice) else " the same"
        raise InputError(f"{where}: two columns are called{shown}; give each its own name")
    if twice := _find_twice(columns):
        raise InputError(f"{place.what}: column {_quote(twice)} is asked for twice; once is enough")
    if not columns and len(names) == 1:
        return [_Pick(0, names[0], f"column {_quote(names[0])}" if _is_word(names[0]) else "")]
    if not columns:
        raise InputError(f"{place.what}: {_list_names(names)}; say which with {place.choose}")
    unknown = next((name for name in columns if not name or name not in names), None)
    if unknown is not None:
        hint = closest(unknown, filter(_is_word, names)) or f"; there are {_list_names(names)}"
        raise InputError(f"{place.what}: no column {_quote(unknown)}{hint}")
    return [_Pick(names.index(name), name, f"column {_quote(name)}") for name in columns]


def _find_twice(names: Sequence[str]) -> str:
    return next((name for name, times in Counter(names).items() if name and times > 1), "")


def _is_word(name: str) -> bool:
    """Whether it may be shown: a name, and not a value in a file whose header is missing."""
    return name[:1].isalpha() or name[:1] == "_"


def _quote(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:39] + "…")


def _list_names(names: Sequence[str]) -> str:
    if not names:
        return "no columns"
    words = [_quote(name) for name in names if _is_word(name)][:_SHOWN]
    more = f" and {len(names) - len(words)} more" if words and len(words) < len(names) else ""
    return f"{len(names)} columns" + (f" ({', '.join(words)}{more})" if words else "")


# Files


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


@contextmanager
def _open(path: str, alone: bool, holds: str) -> Iterator[BinaryIO]:
    reason = None
    try:
        if path == "-":
            yield getattr(sys.stdin, "buffer", io.BytesIO())  # there is none in a process without
        else:
            with open(path, "rb") as file:
                if alone:
                    check_alone(file.fileno(), path, holds)
                yield file
    except OSError as error:
        reason = error.strerror or "cannot be read"
    if reason is not None:
        raise InputError(f"{_name(path)}: {reason}")


def _load_text(path: str, alone: bool, holds: str) -> bytes:
    with _open(path, alone, holds) as file:
        data = file.read()
    try:
        data.decode()
    except UnicodeDecodeError:
        pass
    else:
        return data
    raise InputError(f"{_name(path)}: not a text in UTF-8; save it as one")


def _lines(data: bytes, newline: str | None = None) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=newline)


def _list_files(folder: str) -> list[Path]:
    reason = None
    try:
        paths = [path for path in Path(folder).iterdir() if not path.name.startswith(".")]
        return sorted(paths, key=lambda path: (path.stem, path.name))
    except OSError as error:
        reason = error.strerror or "cannot be read"
    raise InputError(f"{folder}: {reason}")


def _read_parquet(path: str, columns: Sequence[str], missing: Missing, alone: bool, place: _Place) -> Columns:
    pyarrow = _load_pyarrow()
    with _open(path, alone, "file") as file:
        try:
            source = pyarrow.parquet.ParquetFile(file)
            names = list(source.schema_arrow.names)
        except (pyarrow.ArrowException, OSError):
            names = None
        if names is not None:
            picks = _choose(names, columns, place, place.what)
            try:
                table = source.read(columns=[pick.name for pick in picks])
            except (pyarrow.ArrowException, OSError):
                names = None
    if names is None:
        raise InputError(f"{place.what}: not a Parquet file, or a damaged one")
    # By index: asked for "a", pyarrow also brings a column called "a.b".
    return _join([(pick, table.column(table.column_names.index(pick.name))) for pick in picks], missing, place)


def _load_pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    return pyarrow


# CSV


def _read_csv(data: bytes, delimiter: str, columns: Sequence[str], missing: Missing, place: _Place) -> Columns:
    table = _open_csv(data.rstrip(b"\r\n"), delimiter, place)
    if table.names:
        picks = _choose(table.names, columns, place, place.at(f"line {table.first}"))
    elif columns or table.width > 1:
        comma = f" ({_COMMA})" if table.width > 1 and table.delimiter == "," else ""
        raise InputError(f"{place.what}: no header, its first line is numbers; write a line of names above it{comma}")
    else:
        picks = [_Pick(0, "", "")]
    values = _read_fast(table, picks, missing)
    if values is None:
        values = _read_with_care(table, picks, missing)
    return _finish(values, [pick.name for pick in picks if pick.name], place)


def _open_csv(data: bytes, delimiter: str, place: _Place) -> _Table:
    first = next((text for text in _lines(data) if text.strip()), "")
    if delimiter == "," and ";" in re.sub('"[^"]*"', "", first):
        delimiter = ";"
    table = _Table(data, delimiter, (), 0, 1, place)
    line, header = next(((line, row) for line, row in _records(table) if row), (1, []))
    if not header:
        raise InputError(f"{place.what}: no rows")
    is_data = all(_read_number(cell) is not None or _has_decimal_comma(cell) for cell in header)
    names = () if is_data else tuple(cell.strip() for cell in header)
    return _Table(data, delimiter, names, len(header), line, place)


def _open_rows(table: _Table) -> Any:
    return csv.reader(_lines(table.data, ""), delimiter=table.delimiter, strict=True, skipinitialspace=True)


def _read_fast(table: _Table, picks: Sequence[_Pick], missing: Missing) -> Array | None:
    """The chosen columns, NaN where a number may be missing; None where anything is odd."""
    indices = [pick.index for pick in picks]
    cells = _split_cells(table, indices) if b'"' not in table.data else _take_cells(table, indices)
    read: Callable[[Any], float] = float if missing == "refuse" else _read_or_raise
    try:
        values = np.fromiter(map(read, chain.from_iterable(cells)), np.float64).reshape(-1, len(picks))
    except (ValueError, csv.Error):
        return None
    odd = np.isinf(values) if missing == "drop" else ~np.isfinite(values)
    return None if odd.any() else values


def _split_cells(table: _Table, indices: Sequence[int]) -> Iterator[Iterable[bytes]]:
    """The chosen cells where there are no quotes, some lines at a time: in half the time that rows take.

    Every end of a line is made a cell of its own. They must all come after `width` others, or a row has another length.
    """
    if table.data.count(b"\r") != table.data.count(b"\r\n"):
        raise ValueError("lines that end as they did long ago")
    file, between, step = io.BytesIO(table.data), table.delimiter.encode(), table.width + 1
    for _ in range(table.first if table.names else table.first - 1):
        file.readline()
    while block := file.read(_BLOCK):
        block = (block + file.readline()).replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
        lines, cells = block.count(b"\n"), block.replace(b"\n", between + b"\n" + between).split(between)
        if len(cells) != lines * step + 1 or cells[table.width :: step].count(b"\n") != lines:
            raise ValueError("a row of another length")
        if len(block) > csv.field_size_limit():
            raise ValueError("a cell may be too long")
        chosen = [cells[i:-1:step] for i in indices]
        yield chosen[0] if len(chosen) == 1 else chain.from_iterable(zip(*chosen, strict=True))


def _take_cells(table: _Table, indices: Sequence[int]) -> Iterator[Iterable[str]]:
    take = itemgetter(*indices)
    return map(take, _rows_of_width(table)) if len(indices) > 1 else ((take(row),) for row in _rows_of_width(table))


def _rows_of_width(table: _Table) -> Iterator[list[str]]:
    rows, width = _open_rows(table), table.width
    if table.names:
        next(row for row in rows if row)
    for row in rows:
        if len(row) == width:
            yield row
        elif row or width == 1:
            raise ValueError("a row of another length")


def _read_or_raise(word: str | bytes) -> float:
    number = _read_number(word if isinstance(word, str) else word.decode())
    if number is None:
        raise ValueError(_TEXT)
    return number


def _read_with_care(table: _Table, picks: Sequence[_Pick], missing: Missing) -> Array:
    """The same as `_read_fast`, or an error that says where."""
    place, rows = table.place, list[tuple[int, list[str]]]()
    for line, row in _records(table):
        if line < table.first or (line == table.first and table.names) or (not row and table.width > 1):
            continue
        cells = row or [""]
        if len(cells) != table.width:
            comma = f" ({_COMMA})" if table.delimiter == "," and len(cells) > table.width else ""
            raise InputError(f"{place.at(f'line {line}')}: {len(cells)} cells, but {table.width} in the first{comma}")
        rows.append((line, [cells[p.index] for p in picks]))
    words = [(cell, (f"line {line}", pick.label)) for line, row in rows for cell, pick in zip(row, picks, strict=True)]
    if table.delimiter != "," and _check_commas(words, place):
        words = [(_with_point(word, place, *where), where) for word, where in words]
    values = [_check_number(word, missing, place, *where) for word, where in words]
    return np.array(values, dtype=np.float64).reshape(-1, len(picks))


def _records(table: _Table) -> Iterator[tuple[int, list[str]]]:
    """Every row, and the line in which it begins."""
    rows, line = _open_rows(table), 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            break
        if row is None:
            return
        yield line, row
        line = rows.line_num + 1
    limit = csv.field_size_limit()
    raise InputError(f"{table.place.at(f'line {line}')}: quotes do not match, or a cell has more than {limit} letters")


# Arrays and data frames


def _import_arrow(data: Any, place: _Place) -> Any:
    """What only the Arrow PyCapsule interface can get at, as an Arrow array or table; all else as it is."""
    if hasattr(data, "collect"):
        raise InputError(f"{place.what}: a query, and not its result; give what collect() returns")
    stream, array = hasattr(data, "__arrow_c_stream__"), hasattr(data, "__arrow_c_array__")
    if hasattr(data, "to_numpy") or not (stream or array):
        return data
    pyarrow = _load_pyarrow()
    try:
        made = pyarrow.chunked_array(data if stream else [pyarrow.array(data)])
        return pyarrow.Table.from_struct_array(made) if pyarrow.types.is_struct(made.type) else made
    except Exception:  # of whatever library it is
        pass
    raise InputError(f"{place.what}: {_NO_ARRAY}")


def _find_table(data: Any) -> tuple[list[str], Callable[[int], Any]] | None:
    """The names of a table's columns, and what gives the i-th; None where they have no names."""
    if hasattr(data, "column_names") and hasattr(data, "column"):  # Arrow
        return list(data.column_names), data.column
    if hasattr(data, "to_series") and hasattr(data, "columns"):  # polars
        return list(data.columns), data.to_series
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        return [str(name) for name in data.columns], lambda i: data.iloc[:, i]
    name = getattr(data, "name", None) if hasattr(data, "to_numpy") else None
    return None if name is None or name == "" else ([str(name)], lambda _: data)


def _join(parts: Sequence[tuple[_Pick, Any]], missing: Missing, place: _Place, read: Read = float) -> Columns:
    """Columns side by side, or one array that is all of them."""
    values = [_as_floats(part, pick.label, place, read) for pick, part in parts]
    joined = np.column_stack(values)
    gaps = np.argwhere(np.isnan(joined))
    if len(gaps) and missing == "refuse":
        row, column = gaps[0]
        label = parts[column][0].label if values[0].ndim == 1 else f"column {column}"
        raise place.gap(label, place.row(row))
    return _finish(joined, [pick.name for pick, _ in parts if pick.name], place)


def _as_floats(data: Any, label: str, place: _Place, read: Read) -> Array:
    """The numbers in an array of one or two dimensions, NaN where they are missing."""
    found, gaps = _find_present(data, place.at(label))
    if gaps.ndim not in (1, 2):
        raise InputError(f"{place.at(label)}: give a number, a list, an array (n,) or (n, m), or a data frame")
    if found.shape != (np.count_nonzero(~gaps),):
        raise InputError(f"{place.at(label)}: {_CELL}")
    result = _convert(found, read)
    if isinstance(result, tuple):
        k, why = result
        at = np.argwhere(~gaps)[k].tolist()
        at_row = place.row(at[0])
        raise InputError(f"{place.at(label or ''.join(f'column {i}' for i in at[1:]), at_row)}: {why}")
    values = np.full(gaps.shape, np.nan)
    values[~gaps] = result
    return values


def _find_present(data: Any, where: str) -> tuple[NDArray[Any], Bools]:
    """What is there, in one dimension, and where there is nothing."""
    if isinstance(data, np.ma.MaskedArray):
        gaps = np.ma.getmaskarray(data)
        return np.asarray(data.data)[~gaps], gaps
    for ask, drop in _NULLS:
        if hasattr(data, ask) and hasattr(data, drop):
            gaps = np.asarray(getattr(data, ask)(), dtype=np.bool_)
            return _as_numpy(getattr(data, drop)(), where), gaps
    if isinstance(data, bool | np.generic | numbers.Number | Decimal):
        data = [data]
    array = _from_list(data, where) if isinstance(data, Sequence) else _as_numpy(data, where)
    if array.ndim == 0 and hasattr(data, "__array__"):
        array = array.reshape(1)
    return array.reshape(-1), np.zeros(array.shape, dtype=np.bool_)


def _as_numpy(data: Any, where: str) -> NDArray[Any]:
    try:
        return np.asarray(data)
    except Exception:  # of whatever library made it, and with who knows what in its message
        pass
    raise InputError(f"{where}: {_NO_ARRAY}")


def _from_list(data: Sequence[Any], where: str) -> NDArray[Any]:
    """A list of numbers, or of rows of them, without making one type of them all, as NumPy would."""
    if isinstance(data, str | bytes | bytearray):
        raise InputError(f"{where}: text is not a number")
    things = list(data) if {*map(type, data)} <= _PLAIN else [_listed(thing) for thing in data]
    lengths = {len(thing) if isinstance(thing, list | tuple) else None for thing in things}
    if len(lengths) > 1:
        raise InputError(f"{where}: the rows of a list must have the same length")
    rows = lengths not in (set(), {None})
    flat = list(chain.from_iterable(things)) if rows else things
    array = np.array(flat) if set(map(type, flat)) == {float} else np.fromiter(flat, dtype=object, count=len(flat))
    return array.reshape(len(things), -1) if rows and flat else array


def _listed(thing: Any) -> Any:
    """An array as a list; all else as it is."""
    is_date = getattr(getattr(thing, "dtype", None), "kind", "") in ("m", "M")  # NumPy may list them as whole numbers
    return thing.tolist() if hasattr(thing, "tolist") and not is_date else thing


def _convert(found: NDArray[Any], read: Read) -> Array | tuple[int, str]:
    """Finite float64, NaN where missing; or which one cannot be that, and why."""
    kind = found.dtype.kind
    if kind == "O":
        return _convert_objects(found, read)
    if found.size == 0:
        return np.empty(0)
    if kind not in "fiu":
        return 0, _KINDS.get(kind, _TEXT)
    with np.errstate(over="ignore"):
        values = found.astype(np.float64)
    if kind != "f":
        for k in np.flatnonzero((found > _EXACT) | (found < -_EXACT)):
            if int(found[k]) != int(values[k]):
                return int(k), _HUGE
    infinite = np.flatnonzero(np.isinf(values))
    return (int(infinite[0]), "not a finite number") if len(infinite) else values


def _convert_objects(found: NDArray[Any], read: Read) -> Array | tuple[int, str]:
    values = np.empty(len(found))
    if {*map(type, found)} <= _PLAIN and all(-_EXACT < thing < _EXACT for thing in found):
        return found.astype(np.float64)
    for k, thing in enumerate(found):
        number = _convert_one(thing, read)
        if isinstance(number, str):
            return k, number
        if math.isinf(number):
            return k, "not a finite number"
        values[k] = number
    return values


def _convert_one(thing: Any, read: Read) -> float | str:
    """A number as a float, NaN where it is missing; or why it is none."""
    if thing is None or type(thing).__name__ == "NAType":  # of pandas
        return math.nan
    if isinstance(thing, bool | np.bool_):
        return _BOOL
    if isinstance(thing, date | time | timedelta | np.datetime64 | np.timedelta64):
        return _DATE
    if isinstance(thing, Decimal) and thing.is_nan():
        return math.nan
    if not isinstance(thing, numbers.Real | Decimal):
        return _TEXT
    try:
        number = read(thing) if isinstance(thing, Decimal | Fraction) else float(thing)
    except OverflowError:
        number = math.inf
    except ValueError:
        return _FINE
    fits = not isinstance(thing, numbers.Integral) or (math.isfinite(number) and int(number) == int(thing))
    return number if fits else _HUGE
