"""Numbers from a text file: one a line, or a row of them; `midst.columns` says how a line is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import click
import numpy as np

from midst.cli.options import refuse_given
from midst.columns import Columns, Dialect, parse_rows, read_columns, read_folder, read_rows
from midst.errors import InputError
from midst.types import Array

_Part = TypeVar("_Part")
_USUAL = Dialect()
_SHORT = {"semicolon": "sep=; decimal=,"}
_NAMED = {"tab": "\t", "blank": " "}


def parse_dialect(text: str | None) -> Dialect:
    """The dialect that --csv names: semicolon, or words such as "sep=; decimal=, thousands=.".

    Raises:
        InputError: it is neither.
    """
    words = [] if text is None else _SHORT.get(text, text).split()
    said = {name: _NAMED.get(value, value) for name, _, value in (word.partition("=") for word in words)}
    if (text is not None and not said) or not said.keys() <= {"sep", "decimal", "thousands"}:
        raise InputError('--csv: give semicolon, or such words as "sep=; decimal=, thousands=."')
    try:
        return Dialect(**said)
    except InputError as error:
        raise InputError(f"--csv: {error}") from None


def read_numbers(path: str, *, alone: bool = False, dialect: Dialect = _USUAL) -> Array:
    """The numbers in a file ("-" for standard input): shape (n,), or (n, m) for rows of m > 1.

    Args:
        path: where they are.
        alone: refuse a file that others may read or write.
        dialect: how they are written.

    Raises:
        InputError: the file cannot be read, has no numbers, or has a line that is not m finite numbers.
    """
    return _as_array(read_rows(path, alone=alone, dialect=dialect))


def parse_numbers(lines: Iterable[str], name: str, dialect: Dialect) -> Array:
    """The numbers in some lines, as `read_numbers` gives them.

    Raises:
        InputError: there are none, or a line is not m finite numbers.
    """
    return _as_array(parse_rows(lines, name, dialect=dialect))


def read_values(path: str | None, pooled: bool, nodes: int | None, **reading: Any) -> Array | list[Array] | None:
    """What --values and --pooled ask for: a number or a row a node, or a list a node; None where they are to be drawn.

    Args:
        path: where they are, if anywhere.
        pooled: whether a line is a list.
        nodes: how many there must be.
        reading: how a table is read: `columns`, `missing` and `dialect` of `read_columns`.

    Raises:
        InputError: the file is not that.
    """
    from midst.problems import check_values

    if path is None and pooled:
        raise InputError("--pooled needs --values: a file with one participant's list a line")
    if path is None:
        refuse_given(("columns", "missing", "dialect"), "needs a file: give --values or --values-dir")
        return None
    if pooled:
        refuse_given(("columns", "missing"), "is of a table; with --pooled a line of --values is a list")
        rows = read_rows(path, ragged=True, dialect=reading.get("dialect", _USUAL))
        return _require_count([np.array(row) for row in rows], nodes, "lists")
    found = read_columns(path, **reading)
    tell_dropped(found.dropped)
    return check_values(_as_array(found.values), nodes)


def tell_dropped(rows: int) -> None:
    """Says on stderr how many rows were left out, if any."""
    if rows:
        missing = "row has a missing value and was" if rows == 1 else "rows have a missing value and were"
        click.echo(f"midst: {rows:,} {missing} left out", err=True)


def read_parties(
    values: str | None, folder: str | None, pooled: bool, nodes: int | None, **reading: Any
) -> list[Columns]:
    """Everybody's data, for statistics: a file each in a folder, or a number, a row or a list a line.

    Raises:
        InputError: there is none, or it is not that.
    """
    if (values is None) == (folder is None):
        raise InputError("whose values? give --values-dir, with a file a participant, or --values, with a line each")
    if folder is not None:
        refuse_given(("pooled",), "is of --values; every file of --values-dir is a list already")
        return _require_count(list(read_folder(folder, **reading).values()), nodes, "files")
    lines = read_values(values, pooled, nodes, **reading)
    assert lines is not None, "there is a file"
    rows = (np.reshape(line, (-1, 1) if pooled else (1, -1)) for line in lines)
    return [Columns(tuple(reading["columns"]), each, 0) for each in rows]


def _require_count(parts: list[_Part], nodes: int | None, what: str) -> list[_Part]:
    if nodes is not None and len(parts) != nodes:
        raise InputError(f"{len(parts)} {what} for {nodes} nodes; leave --nodes out, or give one a node")
    return parts


def _as_array(rows: list[list[float]] | Array) -> Array:
    array = np.array(rows)
    return array[:, 0] if array.shape[1] == 1 else array
