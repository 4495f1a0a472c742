"""The value of a participant, from where it may come from.

Rules:
- It comes from a file, from the output of a command, or from standard input: never from an argument or the environment,
  which other users of the machine can read. Errors never repeat it.
- A file that others can read is refused, as a key is.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from midst.cli.values import parse_numbers, read_numbers
from midst.columns import Dialect, Missing, read_columns
from midst.errors import InputError
from midst.net.charter import Charter
from midst.types import Array

if TYPE_CHECKING:
    from midst.net.driver import Tell

_LONGEST_COMMAND = 60.0  # seconds
_TABLES = (".csv", ".tsv", ".parquet")


def read_value(
    charter: Charter,
    file: Path | None,
    shell: str | None,
    columns: tuple[str, ...],
    missing: Missing,
    dialect: Dialect,
    tell: Tell,
) -> Array:
    """The private value; of a table, the columns that the charter names, or those asked for in their place."""
    if file is None or file.suffix.lower() not in _TABLES:
        if columns or missing != "refuse":
            raise InputError("--column and --missing are of a .csv, .tsv or .parquet file; give one as --value-file")
        value = _read_plain(file, shell, dialect)
        return value if charter.columns else value.reshape(-1)
    if shell is not None:
        raise InputError("give --value-file or --value-command, not both")
    if not charter.has_lists:
        raise InputError(f"{file}: the charter is about one value of each; give a file with your own alone")
    wanted = columns or tuple(one.name for one in charter.columns)
    found = read_columns(str(file), wanted, missing=missing, dialect=dialect, alone=True)
    if found.dropped:
        tell("dropped", f"{found.dropped:,} of your rows have a missing value and were left out")
    return found.values


def _read_plain(file: Path | None, shell: str | None, dialect: Dialect) -> Array:
    """The private value, from where it may come from; errors never repeat it.

    Raises:
        InputError: it is not there, or not numbers.
    """
    if file is not None and shell is not None:
        raise InputError("give --value-file or --value-command, not both")
    if shell is not None:
        return parse_numbers(_output(shell).splitlines(), "--value-command", dialect)
    if file is None and sys.stdin.isatty():
        raise InputError("no value: give --value-file or --value-command, or pipe it in; never as an argument")
    return read_numbers("-" if file is None else str(file), alone=True, dialect=dialect)


def _output(shell: str) -> str:
    try:
        words = shlex.split(shell)
        done = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=_LONGEST_COMMAND)
        text = done.stdout.decode()
    except ValueError:
        raise InputError("--value-command: quotes do not match, or its output is not text") from None
    except (OSError, IndexError):
        raise InputError("--value-command: cannot be run; give a program and its arguments") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"--value-command: no end after {_LONGEST_COMMAND:.0f} s") from None
    if done.returncode != 0:
        raise InputError(f"--value-command: ended with code {done.returncode}")
    return text
