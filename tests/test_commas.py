"""Decimal commas and whatever stands between thousands: the right number, or a refusal; never a wrong number."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from midst.columns import read_columns, read_rows
from midst.errors import InputError

DECIMALS = st.decimals(-(10**9), 10**9, places=None, allow_nan=False, allow_infinity=False).map(
    lambda number: Decimal(f"{number:.6g}")
)
NUMBERS = st.one_of(DECIMALS, st.integers(-(10**7), 10**7).map(Decimal), st.decimals(0, 100, places=2))
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=5)
)


def spell(number: Decimal, between: str, point: str) -> str:
    """A number with something between thousands, and for a point."""
    text = f"{number:,f}".replace(",", "T").replace(".", "P")
    return text.replace("T", between).replace("P", point)


def read(name: str, text: str, width: int) -> np.ndarray | None:
    """What is read; None where it is refused, in words that repeat nothing of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        names = [f"c{k}" for k in range(width)] if path.suffix in (".csv", ".tsv") else []
        try:
            return read_columns(str(path), names).values
        except InputError as error:
            told = str(error).replace(folder, "")
            assert not any(cell in told for cell in text.split() if len(cell) > 4), told
            return None


def table(rows: list[list[str]], between: str, header: bool) -> str:
    head = [between.join(f"c{k}" for k in range(len(rows[0])))] if header else []
    return "\n".join([*head, *(between.join(row) for row in rows)]) + "\n"


FORMS = {  # name of the file, what separates, and whether each cell is in quotes
    "semicolons": ("a.csv", ";", False),
    "semicolons, quoted": ("a.csv", ";", True),
    "tabs": ("a.tsv", "\t", False),
    "commas, quoted": ("a.csv", ",", True),
    "a text with semicolons": ("a.txt", ";", False),
    "a text with tabs": ("a.txt", "\t", False),
    "a text with commas": ("a.txt", ",", False),
}


@pytest.mark.parametrize("form", FORMS)
@given(
    rows=TABLES,
    between=st.sampled_from(["", "", ",", "'", "’", "\u00a0", "\u202f", "\u2009", "."]),
    comma=st.booleans(),
)
@example(rows=[[Decimal("1.234")]], between="", comma=True)
@example(rows=[[Decimal("1234.5")]], between=".", comma=True)
@example(rows=[[Decimal("1234"), Decimal("0.5")]], between="\u00a0", comma=True)
def test_never_a_wrong_number(form: str, rows: list[list[Decimal]], between: str, comma: bool) -> None:
    name, separator, quoted = FORMS[form]
    point = "," if comma else "."
    if between == point or (between == "." and all(number == number.to_integral() for row in rows for number in row)):
        return  # a point between thousands, and nothing else in the file to tell: 1.234 is what it is everywhere else
    if separator == "," and not quoted and "," in (between, point):
        return  # a number and what separates numbers cannot be told apart, by anybody
    spelt = [[spell(number, between, point) for number in row] for row in rows]
    cells = [[f'"{cell}"' if quoted else cell for cell in row] for row in spelt]
    found = read(name, table(cells, separator, name.endswith("v")), len(rows[0]))
    right = np.array([[float(number) for number in row] for row in rows])
    plain = all("," not in cell and cell.isascii() and "'" not in cell for row in spelt for cell in row)
    if plain and between != ".":
        assert found is not None or separator == ","
    if found is not None:
        np.testing.assert_array_equal(found, right)


@given(rows=TABLES, width=st.sampled_from([";", "\t"]), name=st.sampled_from(["a.txt", "a.csv"]))
def test_decimal_commas_are_read(rows: list[list[Decimal]], width: str, name: str) -> None:
    """Where one of them cannot stand between thousands."""
    rows = [*rows, [Decimal("0.25")] * len(rows[0])]
    name = "a.tsv" if (name, width) == ("a.csv", "\t") else name
    if len(rows[0]) == 1 and name != "a.tsv":
        return  # nothing shows what would separate
    spelt = [[spell(number, "", ",") for number in row] for row in rows]
    found = read(name, table(spelt, width, name.endswith("v")), len(rows[0]))
    assert found is not None
    np.testing.assert_array_equal(found, [[float(number) for number in row] for row in rows])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,2,3\n", [[1, 2, 3]]),
        ("1.5,2\n3,4\n", [[1.5, 2], [3, 4]]),
        ("1, 2\n3, 4\n", [[1, 2], [3, 4]]),
        ("1,-2\n", [[1, -2]]),
        ("1e3,2\n", [[1000, 2]]),
        ("3;4\n", [[3, 4]]),
        ("3.5;4.5\n", [[3.5, 4.5]]),
        ("3,14;2,71\n", [[3.14, 2.71]]),
        ("3,14\t2,71 # noted\n", [[3.14, 2.71]]),
        ("0,125;7\n", [[0.125, 7]]),
        ("1,234;0,5\n", [[1.234, 0.5]]),
    ],
)
def test_a_text(tmp_path: Path, text: str, rows: list[list[float]]) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert read_rows(str(tmp_path / "a.txt")) == rows


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3,14\n2,71\n", "line 1: the comma may be"),
        ("5\n3,14\n", "line 2: the comma may be"),
        ("3,14, 2,71\n", "line 1: the comma may be"),
        ("3,14 2,71\n", "line 1: the comma may be"),
        ("1,234\n", "line 1: the comma may be"),
        ("1,234,567\n", "line 1: the comma may be"),
        ("1,234.5\n", "line 1: the comma may be"),
        ("1.234,5\n", "line 1: the comma may be"),
        ("1,234;5,678\n", "line 1: the comma may be"),
        ("1,5;2.5\n", "line 1: a point, and decimal commas elsewhere"),
        ("1.234,5;2\n", "line 1: a point, and decimal commas elsewhere"),
        ("1\u00a0234,5\n", "line 1: something may stand between thousands"),
        ("1\u202f234\n", "line 1: something may stand between thousands"),
        ("1'234\n", "line 1: something may stand between thousands"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    for ragged in (False, True):
        with pytest.raises(InputError) as refused:
            read_rows(str(tmp_path / "a.txt"), ragged=ragged)
        assert told in str(refused.value)
        assert not any(
            word in str(refused.value) for word in text.strip().replace("\n", " ").split(" ") if len(word) > 1
        )


def test_a_column_and_its_gaps(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name;pay\nanna;3,14\nb;\nc;5\nd;n/a\ne;.\nf;1,234\n")
    found = read_columns(str(tmp_path / "a.csv"), ["pay"], missing="drop")
    assert found.values[:, 0].tolist() == [3.14, 5, 1.234]
    assert found.dropped == 3
