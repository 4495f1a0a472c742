"""Tables for pandas, which is imported when one is asked for.

Rules:
- Frames are tidy: a row an observation, a column a fact, named as the attribute it comes from.
- A private value is in a frame only where the object holds it already, in a column that says so: `private_value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midst.errors import MissingExtra

if TYPE_CHECKING:
    from pandas import DataFrame


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
