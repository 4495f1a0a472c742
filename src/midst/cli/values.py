"""Numbers from a text file: one a line, or a row of them.

Rules:
- A row is m numbers between blanks or commas, the same m on every line. `#` starts a comment; blank lines are skipped.
- A file that holds one participant's own value may be asked to be readable by its owner alone, as a key is.
- An error names the file and the line, never what is written there: it may be a private value, mistyped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import click
import numpy as np

from midst.errors import InputError
from midst.files import check_alone
from midst.types import Array


def read_numbers(path: str, *, alone: bool = False) -> Array:
    """The numbers in a file ("-" for standard input): shape (n,), or (n, m) for rows of m > 1.

    Args:
        path: where they are.
        alone: refuse a file that others may read or write.

    Raises:
        InputError: the file cannot be read, has no numbers, or has a line that is not m finite numbers.
    """
    return _as_array(_read(path, alone=alone))


def parse_numbers(lines: Iterable[str], name: str) -> Array:
    """The numbers in some lines, as `read_numbers` gives them.

    Raises:
        InputError: there are none, or a line is not m finite numbers.
    """
    return _as_array(_parse(lines, name))


def read_lists(path: str) -> list[Array]:
    """The lists in a file ("-" for standard input), one a line, of any lengths.

    Raises:
        InputError: the file cannot be read, or a line is not finite numbers.
    """
    return [np.array(row) for row in _read(path, ragged=True)]


def read_values(path: str | None, pooled: bool, nodes: int | None) -> Array | list[Array] | None:
    """What --values and --pooled ask for: a number or a row a node, or a list a node; None where they are to be drawn.

    Raises:
        InputError: the file is not that.
    """
    from midst.problems import check_values

    if path is None and pooled:
        raise InputError("--pooled needs --values: a file with one participant's list a line")
    if path is None:
        return None
    return read_lists(path) if pooled else check_values(read_numbers(path), nodes)


def _read(path: str, ragged: bool = False, alone: bool = False) -> list[list[float]]:
    name = "standard input" if path == "-" else path
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            if alone and path != "-":
                check_alone(file.fileno(), path, "value")
            return _parse(file, name, ragged)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: not a text in UTF-8; write one number a line") from None


def _parse(lines: Iterable[str], name: str, ragged: bool = False) -> list[list[float]]:
    rows: list[list[float]] = []
    for line, text in enumerate(lines, start=1):
        if words := text.partition("#")[0].replace(",", " ").split():
            rows.append(_parse_row(words, f"{name}, line {line}"))
            if len(rows[-1]) != len(rows[0]) and not ragged:
                raise InputError(f"{name}, line {line}: {len(rows[-1])} in a row, but {len(rows[0])} before")
    if not rows:
        raise InputError(f"{name}: no numbers; write one a line")
    return rows


def _as_array(rows: list[list[float]]) -> Array:
    array = np.array(rows)
    return array[:, 0] if array.shape[1] == 1 else array


def _parse_row(words: list[str], where: str) -> list[float]:
    try:
        row = [float(word) for word in words]
    except ValueError:
        raise InputError(f"{where}: not a number") from None
    if not all(map(math.isfinite, row)):
        raise InputError(f"{where}: not a finite number")
    return row
