"""Tables: as CSV, and for pandas, which is imported when a frame is asked for.

Rules:
- Frames are tidy: a row an observation, a column a fact, named as the attribute it comes from.
- A private value is in a frame only where the object holds it already, in a column that says so: `private_value`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midst.errors import MissingExtra

if TYPE_CHECKING:
    from pandas import DataFrame


def as_csv(rows: Sequence[Mapping[str, object]], line_end: str = "\n") -> str:
    """Rows with the same columns as CSV; what is missing is empty."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, list(rows[0]), lineterminator=line_end)
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def make_frame(columns: Mapping[str, Any]) -> DataFrame:
    """A frame of columns of one length.

    Raises:
        MissingExtra: pandas is not installed.
    """
    return _pandas().DataFrame(dict(columns))


def read_frame(path: Path, types: Mapping[str, str]) -> DataFrame:
    """A frame from a CSV file, some of its columns of given types.

    Raises:
        MissingExtra: pandas is not installed.
    """
    return _pandas().read_csv(path, dtype=dict(types))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", "pandas") from None
    return pandas
