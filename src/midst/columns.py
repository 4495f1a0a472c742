"""Columns of numbers from a CSV, a Parquet file, a text, a data frame, an array or a list.

Rules:
- No error and no repr holds a private value: an error names the file, the line and the column, never what is written
  there, for it may be a value, mistyped. A column's name is shown where the caller asked for it or it begins as a word
  does: in a file without a header it is a value. No error is raised while another, which may hold the text, is being
  handled.
- Nothing is guessed. Anything but one finite number a cell is refused: text, infinities, true and false, dates, rows of
  other lengths, quotes that do not match. Missing numbers are refused too, unless the caller asks to drop them; then
  the whole row is left out, and counted.
- A `Dialect` says how numbers are written, and a cell that is written otherwise is refused. Where the caller gives
  none, a comma separates (in a .tsv a tab) and a point is the decimal; a file is then refused if its header has another
  separator, or if a number in any column, chosen or not, has a comma, for then a point may stand between thousands.
- Groups between thousands have three digits, and the first of a number begins with no zero: 2.5 never becomes 25, nor
  0.125 becomes 125.
- Written numbers are read as Python's `float` reads them, to the nearest float64. Whole numbers that come as such
  (arrays, Parquet) must fit exactly. Decimals become the nearest float64; in memory, where there is a public
  resolution, one that rounds to the same multiple of it as they do (`Read`).
- A text is a row of numbers a line, between blanks or commas; `#` starts a comment; blank lines are skipped. It must be
  clear that its commas separate: 1,2,3 and 1.5,2 are rows; 3,14 alone is refused, since it may be a number or two.
- A CSV has a header, but for a single column, where a blank line is a missing number, but for those at the end.
- No library of data frames is imported for what it made: each is asked by what it can do. Parquet needs pyarrow.
"""

from __future__ import annotations

import csv
import io
import math
import numbers
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError, closest, load_extra
from midst.files import check_alone
from midst.types import Array

Missing = Literal["refuse", "drop"]
Read = Callable[[Any], float]  # of a decimal or a fraction the float that stands for it; `Keys.nearest`

_MISSING = {"", "na", "n/a", "nan", "null", "none", "."}
_SHOWN = 8  # names in an error, at most
_EXACT = 2**53  # whole numbers up to here fit into a float64
_ALIKE = (" \u00a0\u2007\u2009\u202f", "'’")  # of what may stand between thousands, all that looks the same
_UNCLEAR = "the comma may be a decimal comma, or stand between thousands or numbers; write points, and blanks between"
_SAY = "write it so, or for a file give --csv, as in --csv semicolon"
_SEPARATED = "say how the file is written, as in --csv semicolon or --csv decimal=."
_TEXT = "not a number"
_INFINITE = "not a finite number"
_LIKE_A_NUMBER = re.compile(r"[-+]?[.,]?\d[\d.,;'’\s]*(e[-+]?\d+)?", re.IGNORECASE)
_MAY_BE_ONE = re.compile(
    r"[-+]?(\d*,\d+|\d{1,3}(,\d{3})+\.?\d*|\d{1,3}([.'’]\d{3})+,\d+)(e[-+]?\d+)?,?", re.ASCII | re.IGNORECASE
)
_BOOL = "true or false is not a number; give 0 and 1 if that is meant"
_DATE = "a date or time is not a number; give the days or seconds since one"
_HUGE = "a whole number that a float64 cannot hold; give it as float64, rounded, if that will do"
_FINE = "more digits than a float64 holds at this resolution; give it as float64, rounded, if that will do"
_PLAIN = {int, float}
_NO_ARRAY = "cannot be turned into an array; cast it to float64 first"
_CELL = "each cell must be one number"
_KINDS = {"b": _BOOL, "M": _DATE, "m": _DATE, "c": "a complex number; give a real one", "V": _CELL}


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
class Dialect:
    r"""How a CSV or a text writes its numbers; the names are those of `pandas.read_csv`.

    Attributes:
        sep: what separates cells: a comma, a semicolon, a bar or a tab. None: a comma, or a tab in a .tsv; in a text
            blanks and commas.
        decimal: "." or ",". None: a point; a CSV that has a comma in a number is refused.
        thousands: what stands between groups of three digits: a point, a comma, an apostrophe or a blank of any kind.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        if self.sep not in (None, *",;|\t"):
            raise InputError("sep must be a comma, a semicolon, a bar or a tab")
        if self.decimal not in (None, *".,"):
            raise InputError("decimal must be a point or a comma")
        if self.thousands not in (None, *".,", *"".join(_ALIKE)) or self.thousands == (self.decimal or "."):
            raise InputError("thousands must be a point, a comma, an apostrophe or a blank, and not as the decimal")
        if self.sep == ";" and self.decimal is None:
            raise InputError("sep=; leaves open what the decimal is; add decimal=, or decimal=.")

    def read(self, word: str) -> float | None:
        """A written number; NaN where it is missing, and None where it is something else, or written otherwise."""
        word = word.strip()
        if word.lower() in _MISSING:
            return math.nan
        if self.thousands is not None and self._grouped.fullmatch(word):
            word = re.sub(rf"[^-+\d{self.decimal or '.'}]", "", word)
        if self.decimal == ",":
            if "." in word:
                return None
            word = word.replace(",", ".")
        try:
            return float(word)
        except ValueError:
            return None

    def describe(self) -> str:
        """What is said of a number that is written otherwise."""
        point = "comma" if self.decimal == "," else "point"
        between = "nothing" if self.thousands is None else repr(self.thousands)
        return f"not written with a decimal {point} and {between} between thousands"

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        """Numbers with something between thousands."""
        between = next((alike for alike in _ALIKE if self.thousands in [*alike]), self.thousands)
        return re.compile(rf"[-+]?[1-9]\d{{0,2}}([{between}]\d{{3}})+([{self.decimal or '.'}]\d*)?", re.ASCII)


_USUAL = Dialect()


@dataclass(frozen=True)
class _Source:
    """What is read: its name, what becomes of missing numbers, how numbers are written, and what errors advise.

    Where `missing` is None, a missing number is refused as any other that is not finite.
    """

    what: str
    missing: Missing | None = None
    dialect: Dialect = _USUAL
    choose: str = "--column"
    drop: str = "--missing drop"
    row: Callable[[int], str] = "row {} (counting from 0)".format

    def __post_init__(self) -> None:
        if self.missing not in ("refuse", "drop", None):
            raise InputError('missing must be "refuse" or "drop"')

    def at(self, *parts: str) -> str:
        return ", ".join(part for part in (self.what, *parts) if part)

    def gap(self, *parts: str) -> InputError:
        return InputError(f"{self.at(*parts)}: missing; fill it in, or leave such rows out with {self.drop}")

    def read_row(self, cells: Sequence[str], line: int, labels: Iterable[str] = repeat("")) -> list[float]:
        """The numbers in some cells of a line, NaN where one is missing and may be."""
        if self.dialect.decimal != "," and self.dialect.thousands is None:
            try:
                found = [*map(float, cells)]
            except ValueError:
                found = [math.nan]
            if math.isfinite(sum(found)):
                return found
        return [self._read_cell(cell, f"line {line}", label) for cell, label in zip(cells, labels, strict=False)]

    def _read_cell(self, cell: str, *where: str) -> float:
        number = self.dialect.read(cell)
        if number is None and _LIKE_A_NUMBER.fullmatch(cell.strip()):
            raise InputError(f"{self.at(*where)}: {self.dialect.describe()}; {_SAY}")
        if number is None:
            raise InputError(f"{self.at(*where)}: {_TEXT}")
        if math.isnan(number) and self.missing == "refuse":
            raise self.gap(*where)
        if math.isinf(number) or (math.isnan(number) and self.missing is None):
            raise InputError(f"{self.at(*where)}: {_INFINITE}")
        return number


@dataclass(frozen=True)
class _Pick:
    """A chosen column: where it is, what it is called, and what an error calls it."""

    index: int
    name: str
    label: str


def read_columns(
    path: str,
    columns: Sequence[str] = (),
    *,
    missing: Missing = "refuse",
    dialect: Dialect = _USUAL,
    alone: bool = False,
) -> Columns:
    """The columns of a file: `.csv`, `.tsv`, `.parquet`, or else a text with a number, or a row of them, a line.

    Args:
        path: where it is; "-" for a text on standard input.
        columns: which, by name; may be left out where there is one. A text has no names, and all of it is read.
        missing: what to do about a missing number: "refuse" the file, or "drop" the row.
        dialect: how numbers are written; not for Parquet.
        alone: refuse a file that others may read or write.

    Raises:
        InputError: the file cannot be read, has no such column, or has anything but finite numbers in it.
        MissingExtra: for Parquet without pyarrow.
    """
    source = _Source(_name(path), missing, dialect)
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(path, columns, alone, source)
    if suffix in (".csv", ".tsv"):
        return _read_csv(_load_text(path, alone, "file"), "\t" if suffix == ".tsv" else ",", columns, source)
    if columns:
        raise InputError(f"{source.what}: a text has no named columns; {source.choose} is for .csv, .tsv and .parquet")
    lines = _lines(_load_text(path, alone, "file"))
    return _finish(np.array(parse_rows(lines, source.what, missing=missing, dialect=dialect)), (), source)


def as_columns(
    data: Any, columns: Sequence[str] = (), *, missing: Missing = "refuse", what: str = "the data", read: Read = float
) -> Columns:
    """The columns of what is in memory already.

    A number, a list of numbers or of rows, an array (n,) or (n, m), a Series or data frame of pandas or polars, an
    Arrow array or table, or anything else with the Arrow PyCapsule interface, such as a relation of DuckDB (that, with
    pyarrow).

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
    source = _Source(what, missing, choose='columns=["…"]', drop='missing="drop"')
    data, table = _find_table(data, source)
    if table is not None:
        names, column = table
        return _join([(pick, column(pick.index)) for pick in _choose(names, columns, source)], source, read)
    found = _join([(_Pick(0, "", ""), data)], source, read)
    if columns and found.values.shape[1] != len(columns):
        raise InputError(f"{what}: {found.values.shape[1]} columns without names, for {len(columns)} names")
    return replace(found, names=tuple(columns))


def split_by_site(data: Any, site: str) -> dict[str, Any]:
    """The rows of every site in one data frame, by the name of the site, which a column holds; sorted by name."""
    source = _Source("the data", choose='site="…"')
    data, table = _find_table(data, source)
    if table is None or not hasattr(data, "columns"):
        raise InputError("site is the name of a column in one data frame for all; leave it out, or give such a frame")
    (pick,) = _choose(table[0], [site], source)
    sites = _as_cells(table[1](pick.index), source.at(pick.label))
    gap = next((row for row, name in enumerate(sites) if _is_missing(name) or name != name), None)
    if gap is not None:
        raise InputError(f"{source.at(pick.label, source.row(gap))}: missing; name the site of the row")
    labels, which = np.unique(sites.astype(str), return_inverse=True)
    take = data.take if hasattr(data, "take") else data.__getitem__  # polars
    return {str(name): take(np.flatnonzero(which == k)) for k, name in enumerate(labels)}


def as_numbers(data: Any, what: str, row: Callable[[int], str], read: Read = float) -> Array:
    """The numbers in an array, a list or a data frame, in one or two dimensions, NaN where one is missing.

    An error calls the data `what`, and its rows by `row`; see `as_columns`.
    """
    if type(data) is np.ndarray and data.ndim in (1, 2) and data.dtype in (np.float64, np.float32):
        return data.astype(np.float64)
    source = _Source(what, row=row)
    data, table = _find_table(data, source)
    if table is None or not hasattr(data, "columns"):
        return _as_floats(data, "", source, read)
    found = [_as_floats(table[1](i), f"column {i}", source, read) for i in range(len(table[0]))]
    return np.column_stack(found) if found else np.empty((0, 0))


def read_folder(
    folder: str, columns: Sequence[str] = (), *, missing: Missing = "refuse", dialect: Dialect = _USUAL
) -> dict[str, Columns]:
    """The columns of every participant: a file each, named after them; sorted by name. Hidden files are skipped.

    Raises:
        InputError: it cannot be read, has no files, two of one name, one that `read_columns` refuses, or files that
            do not have the same columns.
        MissingExtra: for Parquet without pyarrow.
    """
    parts: dict[str, Columns] = {}
    try:
        paths = [path for path in Path(folder).iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or 'cannot be read'}") from None
    for path in sorted(paths, key=lambda path: (path.stem, path.name)):
        if path.stem in parts:
            raise InputError(f"{folder}: two files are called {path.stem}; give one file a participant")
        part = parts[path.stem] = read_columns(str(path), columns, missing=missing, dialect=dialect)
        first_name, first = next(iter(parts.items()))
        if part.values.shape[1] != first.values.shape[1]:
            raise InputError(f"{path}: {part.values.shape[1]} columns, but {first.values.shape[1]} in {first_name}'s")
        if part.names != first.names and part.names and first.names:
            raise InputError(f"{path}: its column is not called as in {first_name}'s; give all files the same header")
    if not parts:
        raise InputError(f"{folder}: no files; give one a participant")
    return parts


def read_rows(path: str, *, ragged: bool = False, alone: bool = False, dialect: Dialect = _USUAL) -> list[list[float]]:
    """The rows of numbers in a text ("-" for standard input); see `parse_rows`.

    Raises:
        InputError: it cannot be read, is for others to read or write (`alone`), or is not rows of finite numbers.
    """
    return parse_rows(_lines(_load_text(path, alone, "value")), _name(path), ragged=ragged, dialect=dialect)


def parse_rows(
    lines: Iterable[str],
    name: str,
    *,
    ragged: bool = False,
    missing: Missing | None = None,
    dialect: Dialect = _USUAL,
) -> list[list[float]]:
    """The rows of numbers in some lines; `ragged` ones may have different lengths.

    Where a number is missing there is NaN if `missing` is "drop", an error that says so if it is "refuse", and the
    error for a number that is not finite if it is None.

    Raises:
        InputError: there are none, or a line is not m finite numbers.
    """
    source, rows = _Source(name, missing, dialect), list[list[float]]()
    for line, words in _split_text([text.partition("#")[0] for text in lines], source):
        rows.append(source.read_row(words, line))
        if len(rows[-1]) != len(rows[0]) and not ragged:
            raise InputError(f"{name}, line {line}: {len(rows[-1])} in a row, but {len(rows[0])} before")
    if not rows:
        raise InputError(f"{name}: no numbers; write one a line")
    return rows


def _split_text(texts: list[str], source: _Source) -> Iterator[tuple[int, list[str]]]:
    """The words of every line that has some."""
    dialect, inside = source.dialect, {source.dialect.decimal, source.dialect.thousands}
    if dialect.sep in inside - {None} or (dialect.sep is None and dialect.thousands in [*_ALIKE[0]]):
        raise InputError(f"{source.what}: a text has no quotes; give a sep that stands in no number, such as sep=;")
    lines = [(line, text.strip()) for line, text in enumerate(texts, start=1) if text and not text.isspace()]
    if dialect.sep is None and inside <= {None, *_ALIKE[1]}:
        commas = [(line, word) for line, text in lines if "," in text for word in text.split()]
        unclear = next((line for line, word in commas if _MAY_BE_ONE.fullmatch(word)), None)
        if unclear is not None and all("," not in word[:-1] or _MAY_BE_ONE.fullmatch(word) for _, word in commas):
            raise InputError(f"{source.at(f'line {unclear}')}: {_UNCLEAR}")
    if dialect.sep is not None:
        return ((line, text.split(dialect.sep)) for line, text in lines)
    between = re.compile(r"\s+" if "," in inside else r"[\s,]+", re.ASCII)  # no other blanks: thousands, in French
    return ((line, words) for line, text in lines if (words := [*filter(str.strip, between.split(text))]))


# CSV


def _read_csv(data: bytes, usual: str, columns: Sequence[str], source: _Source) -> Columns:
    sep = source.dialect.sep or usual
    records = _records(data.rstrip(b"\r\n"), sep, source)
    first, header = next(((line, row) for line, row in records if row), (1, []))
    if not header:
        raise InputError(f"{source.what}: no rows")
    names, width = [cell.strip() for cell in header], len(header)
    others = ",;|\t" if width == 1 else ";|\t" if source.dialect.sep is None else ""
    if any(other in cell for cell in header for other in others.replace(sep, "")):
        raise InputError(f"{source.at(f'line {first}')}: another separator in the header; {_SEPARATED}")
    if not all(source.dialect.read(name) is not None or _LIKE_A_NUMBER.fullmatch(name) for name in names):
        picks = _choose(names, columns, source, f"line {first}")
    elif columns or width > 1:
        raise InputError(f"{source.what}: no header, its first line is numbers; write a line of names above it")
    else:
        picks, records = [_Pick(0, "", "")], chain([(first, header)], records)
    indices, labels, values = [pick.index for pick in picks], [pick.label for pick in picks], array("d")
    unsaid = source.dialect.decimal is None and source.dialect.thousands != "," and (sep != "," or b'"' in data)
    for line, row in records:
        if len(row) != width and row:
            comma = f"; if commas are decimal, {_SEPARATED}" if sep == "," and len(row) > width else ""
            raise InputError(f"{source.at(f'line {line}')}: {len(row)} cells, but {width} in the first{comma}")
        if unsaid and "," in "".join(row):
            _refuse_commas(row, names, line, source)
        if row or width == 1:
            values.extend(source.read_row([row[i] for i in indices] if row else [""], line, labels))
    return _finish(np.array(values).reshape(-1, len(picks)), picks, source)


def _refuse_commas(row: Sequence[str], names: Sequence[str], line: int, source: _Source) -> None:
    """Refuse a number with a comma in any column, chosen or not: if that is a decimal one, 1.234 may mean 1234."""
    for cell, name in zip(row, names, strict=True):
        if "," in cell and _LIKE_A_NUMBER.fullmatch(cell.strip()):
            label = _label(name) if _is_word(name) else ""
            raise InputError(f"{source.at(f'line {line}', label)}: a comma in a number; {_SEPARATED}")


def _records(data: bytes, sep: str, source: _Source) -> Iterator[tuple[int, list[str]]]:
    """Every row, and the line in which it begins."""
    rows, line = csv.reader(_lines(data, ""), delimiter=sep, strict=True, skipinitialspace=True), 1
    with suppress(csv.Error):
        for row in rows:
            yield line, row
            line = rows.line_num + 1
        return
    limit = csv.field_size_limit()
    raise InputError(f"{source.at(f'line {line}')}: quotes do not match, or a cell has more than {limit} letters")


# Files


def _read_parquet(path: str, columns: Sequence[str], alone: bool, source: _Source) -> Columns:
    pyarrow, parquet, parts = load_extra("pyarrow", "parquet"), load_extra("pyarrow.parquet", "parquet"), None
    if source.dialect != _USUAL:
        raise InputError(f"{source.what}: a Parquet file needs no --csv; leave it out")
    data = _load(path, alone, "file")
    with suppress(pyarrow.ArrowException, OSError):
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        picks = _choose(list(file.schema_arrow.names), columns, source)
        table = file.read(columns=[pick.name for pick in picks])
        # By index: asked for "a", pyarrow also brings a column called "a.b".
        parts = [(pick, table.column(table.column_names.index(pick.name))) for pick in picks]
    if parts is None:
        raise InputError(f"{source.what}: not a Parquet file, or a damaged one")
    return _join(parts, source)


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _load(path: str, alone: bool, holds: str) -> bytes:
    try:
        if path == "-":
            data: bytes = getattr(sys.stdin, "buffer", io.BytesIO()).read()  # there is none in a process without
            return data
        with open(path, "rb") as file:
            if alone:
                check_alone(file.fileno(), path, holds)
            return file.read()
    except OSError as error:
        raise InputError(f"{_name(path)}: {error.strerror or 'cannot be read'}") from None


def _load_text(path: str, alone: bool, holds: str) -> bytes:
    data = _load(path, alone, holds)
    if data.decode(errors="ignore").encode() != data:
        raise InputError(f"{_name(path)}: not a text in UTF-8; save it as one")
    return data


def _lines(data: bytes, newline: str | None = None) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=newline)


# Names


def _choose(names: Sequence[str], columns: Sequence[str], source: _Source, where: str = "") -> list[_Pick]:
    """The columns that are asked for, or the only one. Columns with an empty name cannot be asked for."""
    if isinstance(columns, str):
        raise InputError(f"{source.what}: columns must be a list of names; try [{_quote(columns)}]")
    if twice := _find_twice(names):
        shown = f" {_quote(twice)}" if _is_word(twice) else " the same"
        raise InputError(f"{source.at(where)}: two columns are called{shown}; give each its own name")
    if twice := _find_twice(columns):
        raise InputError(f"{source.what}: column {_quote(twice)} is asked for twice; once is enough")
    if not columns and len(names) == 1:
        return [_Pick(0, names[0], _label(names[0]) if _is_word(names[0]) else "")]
    if not columns:
        raise InputError(f"{source.what}: {_list_names(names)}; say which with {source.choose}")
    unknown = next((name for name in columns if not name or name not in names), None)
    if unknown is not None:
        hint = closest(unknown, filter(_is_word, names)) or f"; there are {_list_names(names)}"
        raise InputError(f"{source.what}: no column {_quote(unknown)}{hint}")
    return [_Pick(names.index(name), name, _label(name)) for name in columns]


def _find_twice(names: Sequence[str]) -> str:
    return next((name for name, times in Counter(names).items() if name and times > 1), "")


def _is_word(name: str) -> bool:
    """Whether it may be shown: a name, and not a value in a file whose header is missing."""
    return name[:1].isalpha() or name[:1] == "_"


def _label(name: str) -> str:
    return f"column {_quote(name)}"


def _quote(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:39] + "…")


def _list_names(names: Sequence[str]) -> str:
    if not names:
        return "no columns"
    words = [_quote(name) for name in names if _is_word(name)][:_SHOWN]
    more = f" and {len(names) - len(words)} more" if words and len(words) < len(names) else ""
    return f"{len(names)} columns" + (f" ({', '.join(words)}{more})" if words else "")


# Arrays and data frames


def _find_table(data: Any, source: _Source) -> tuple[Any, tuple[list[str], Callable[[int], Any]] | None]:
    """The data, and if its columns have names those and what gives the i-th column.

    What only the Arrow PyCapsule interface can get at becomes an Arrow array or table; all else stays as it is.
    """
    if hasattr(data, "collect"):
        raise InputError(f"{source.what}: a query, and not its result; give what collect() returns")
    if not hasattr(data, "to_numpy") and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        data = _import_arrow(data, source)
    if hasattr(data, "column_names") and hasattr(data, "column"):  # Arrow
        return data, (list(data.column_names), data.column)
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):  # pandas has iloc, polars has not
        cells = getattr(data, "iloc", data)
        return data, ([str(name) for name in data.columns], lambda i: cells[:, i])
    name = getattr(data, "name", None) if hasattr(data, "to_numpy") else None
    return data, None if name is None or name == "" else ([str(name)], lambda _: data)


def _import_arrow(data: Any, source: _Source) -> Any:
    pyarrow = load_extra("pyarrow", "parquet")
    with suppress(Exception):  # of whatever library it is
        made = pyarrow.chunked_array(data if hasattr(data, "__arrow_c_stream__") else [pyarrow.array(data)])
        return pyarrow.Table.from_struct_array(made) if pyarrow.types.is_struct(made.type) else made
    raise InputError(f"{source.what}: {_NO_ARRAY}")


def _join(parts: Sequence[tuple[_Pick, Any]], source: _Source, read: Read = float) -> Columns:
    """Columns side by side, or one array that is all of them."""
    values = [_as_floats(part, pick.label, source, read) for pick, part in parts]
    joined = np.column_stack(values)
    gaps = np.argwhere(np.isnan(joined))
    if len(gaps) and source.missing == "refuse":
        row, column = gaps[0]
        label = parts[column][0].label if values[0].ndim == 1 else f"column {column}"
        raise source.gap(label, source.row(row))
    return _finish(joined, [pick for pick, _ in parts], source)


def _finish(values: Array, picks: Sequence[_Pick], source: _Source) -> Columns:
    """The columns, without the rows in which one is NaN."""
    if values.size == 0:
        raise InputError(f"{source.what}: no rows")
    kept = ~np.isnan(values).any(axis=1)
    if not kept.any():
        raise InputError(f"{source.what}: a number is missing in every row")
    whole = values if kept.all() else values[kept]
    whole.setflags(write=False)
    return Columns(tuple(pick.name for pick in picks if pick.name), whole, len(values) - len(whole))


def _as_floats(data: Any, label: str, source: _Source, read: Read) -> Array:
    """The numbers in an array of one or two dimensions, NaN where they are missing."""
    found = _as_cells(data, source.at(label))
    if found.ndim not in (1, 2):
        raise InputError(f"{source.at(label)}: give a number, a list, an array (n,) or (n, m), or a data frame")
    result = _convert(found.reshape(-1), read)
    if isinstance(result, tuple):
        k, why = result
        row, *column = (int(i) for i in np.unravel_index(k, found.shape))
        raise InputError(f"{source.at(label or ''.join(f'column {i}' for i in column), source.row(row))}: {why}")
    return result.reshape(found.shape)


def _as_cells(data: Any, where: str) -> NDArray[Any]:
    """What is given as an array, without making one type of all that is in it, as NumPy would."""
    if isinstance(data, str | bytes | bytearray):
        raise InputError(f"{where}: text is not a number")
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind not in _KINDS:
        data = data.tolist()
    if isinstance(data, bool | np.generic | numbers.Number | Decimal):
        data = [data]
    if isinstance(data, Sequence):
        return _from_list(data, where)
    if isinstance(dtype := getattr(data, "dtype", None), np.dtype) and dtype.kind in "fiu":
        return np.atleast_1d(np.asarray(data))
    with suppress(Exception):  # of whatever library made it, and with who knows what in its message
        for name in ("to_pylist", "to_list"):  # of Arrow, polars and pandas, with every digit, and None or NA for gaps
            if hasattr(data, name):
                things = getattr(data, name)()
                return np.fromiter(things, dtype=object, count=len(things))
        found = np.asarray(data)
        return found.reshape(1) if found.ndim == 0 and hasattr(data, "__array__") else found
    raise InputError(f"{where}: {_NO_ARRAY}")


def _from_list(data: Sequence[Any], where: str) -> NDArray[Any]:
    """A list of numbers, or of rows of them, without making one type of them all, as NumPy would."""
    things = list(data) if {*map(type, data)} <= _PLAIN else [_listed(thing) for thing in data]
    lengths = {len(thing) if isinstance(thing, list | tuple) else None for thing in things}
    if len(lengths) > 1:
        raise InputError(f"{where}: the rows of a list must have the same length")
    rows = lengths not in (set(), {None})
    flat = list(chain.from_iterable(things)) if rows else things
    found = np.fromiter(flat, dtype=object, count=len(flat))
    return found.reshape(len(things), -1) if rows and flat else found


def _listed(thing: Any) -> Any:
    """An array as a list; all else as it is."""
    is_date = getattr(getattr(thing, "dtype", None), "kind", "") in ("m", "M")  # NumPy may list them as whole numbers
    return thing.tolist() if hasattr(thing, "tolist") and not is_date else thing


def _convert(found: NDArray[Any], read: Read) -> Array | tuple[int, str]:
    """Finite float64, NaN where missing; or which one cannot be that, and why."""
    kind = found.dtype.kind
    if found.size and kind in _KINDS:
        return 0, _KINDS[kind]
    types = {*map(type, found)} if kind == "O" else set()
    whole = kind in "iu" or types == {int}  # the lowest int64 has no absolute value, but a float64 holds it
    if kind == "f" or (types and types <= {float, type(None)}) or (whole and np.all(abs(found) < _EXACT)):
        with np.errstate(over="ignore"):
            values = found.astype(np.float64)
        infinite = np.flatnonzero(np.isinf(values))
        return (int(infinite[0]), _INFINITE) if len(infinite) else values
    values = np.empty(len(found))
    for k, thing in enumerate(found):
        number = _convert_one(thing, read)
        if isinstance(number, str):
            return k, number
        values[k] = number
    return values


def _is_missing(thing: Any) -> bool:
    if isinstance(thing, Decimal):
        return thing.is_nan()
    return thing is None or type(thing).__name__ == "NAType" or (isinstance(thing, float) and math.isnan(thing))


def _convert_one(thing: Any, read: Read) -> float | str:
    """A number as a float, NaN where it is missing; or why it is none."""
    if _is_missing(thing):
        return math.nan
    if isinstance(thing, bool | np.bool_):
        return _BOOL
    if isinstance(thing, date | time | timedelta | np.datetime64 | np.timedelta64):
        return _DATE
    if not isinstance(thing, numbers.Real | Decimal):
        return _TEXT
    try:
        number = read(thing) if isinstance(thing, Decimal | Fraction) else float(thing)
    except OverflowError:
        number = math.inf
    except ValueError:
        return _FINE
    if isinstance(thing, numbers.Integral) and (math.isinf(number) or int(number) != int(thing)):
        return _HUGE
    return _INFINITE if math.isinf(number) else number
