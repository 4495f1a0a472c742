"""Decimal commas and whatever stands between thousands: the right number, or a refusal; never a wrong number."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from midst.columns import Dialect, parse_rows, read_columns, read_rows
from midst.errors import InputError

DECIMALS = st.decimals(-(10**9), 10**9, places=None, allow_nan=False, allow_infinity=False).map(
    lambda number: Decimal(f"{number:.6g}")
)
NUMBERS = st.one_of(DECIMALS, st.integers(-(10**7), 10**7).map(Decimal), st.decimals(0, 100, places=2))
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=5)
)
STYLES = {  # what stands between thousands, and for a point
    "plain": ("", "."),
    "plain, with a comma": ("", ","),
    "US": (",", "."),
    "German": (".", ","),
    "French": ("\u202f", ","),
    "French, as some write it": ("\u00a0", ","),
    "French, with a blank": (" ", ","),
    "Swiss": ("'", "."),
    "Swiss, as typeset": ("’", "."),
}
FORMS = {  # name of the file, what separates, and whether each cell is in quotes
    "semicolons": ("a.csv", ";", False),
    "semicolons, quoted": ("a.csv", ";", True),
    "tabs": ("a.tsv", "\t", False),
    "commas, quoted": ("a.csv", ",", True),
    "a text with semicolons": ("a.txt", ";", False),
    "a text with tabs": ("a.txt", "\t", False),
    "a text with commas": ("a.txt", ",", False),
}


def spell(number: Decimal, between: str, point: str) -> str:
    """A number with something between thousands, and for a point."""
    text = f"{number:,f}".replace(",", "T").replace(".", "P")
    return text.replace("T", between).replace("P", point)


def read(name: str, text: str, columns: Sequence[str], dialect: Dialect) -> np.ndarray | None:
    """What is read; None where it is refused, in words that repeat nothing of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        try:
            return read_columns(str(path), columns, dialect=dialect).values
        except InputError as error:
            told = str(error).replace(folder, "")
            assert "\n" not in told
            assert not any(cell in told for cell in text.split() if len(cell) > 4), told
            return None


def write(rows: list[list[Decimal]], form: str, style: str) -> str:
    name, separator, quoted = FORMS[form]
    cells = [[f'"{cell}"' if quoted else cell for cell in (spell(x, *STYLES[style]) for x in row)] for row in rows]
    head = [[f"c{k}" for k in range(len(rows[0]))]] if name.endswith("v") else []
    return "\n".join(separator.join(row) for row in head + cells) + "\n"


def names(form: str, chosen: Sequence[int]) -> list[str]:
    return [f"c{k}" for k in chosen] if FORMS[form][0].endswith("v") else []


@pytest.mark.parametrize("form", FORMS)
@given(style=st.sampled_from([*STYLES]), rows=TABLES, data=st.data())
def test_right_where_it_is_said(form: str, style: str, rows: list[list[Decimal]], data: st.DataObject) -> None:
    name, separator, quoted = FORMS[form]
    between, point = STYLES[style]
    if separator == "," and not quoted and "," in (between, point):
        return  # a number and what separates numbers cannot be told apart, by anybody
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows[0]))), min_size=1, unique=True))
    right = np.array([[float(number) for number in row] for row in rows])
    found = read(name, write(rows, form, style), names(form, chosen), Dialect(separator, point, between or None))
    assert found is not None
    np.testing.assert_array_equal(found, right[:, chosen] if name.endswith("v") else right)


@pytest.mark.parametrize("form", FORMS)
@given(style=st.sampled_from([*STYLES]), rows=TABLES, data=st.data())
@example(style="German", rows=[[Decimal("1234"), Decimal("2.5")]], data=None)
@example(style="German", rows=[[Decimal("1234"), Decimal("1.234")]], data=None)
@example(style="German", rows=[[Decimal("1234.5")]], data=None)
@example(style="plain, with a comma", rows=[[Decimal("1.234")]], data=None)
@example(style="French", rows=[[Decimal("1234"), Decimal("0.5")]], data=None)
@example(style="Swiss", rows=[[Decimal("1234.5")]], data=None)
def test_never_a_wrong_number(form: str, style: str, rows: list[list[Decimal]], data: st.DataObject | None) -> None:
    """Nothing is said, or all but what stands between thousands: the file is read right, or refused."""
    name, separator, quoted = FORMS[form]
    between, point = STYLES[style]
    if separator == "," and not quoted and "," in (between, point):
        return
    if between == " " and name.endswith(".txt"):
        return  # blanks separate
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows[0]))), min_size=1, unique=True)) if data else [0]
    right = np.array([[float(number) for number in row] for row in rows])
    for dialect in (Dialect(), Dialect(decimal=point), Dialect(separator, point)):
        if between == "." and dialect.decimal is None and all(x == x.to_integral() for row in rows for x in row):
            continue  # a point between thousands, and nothing else in the file to tell: 1.234 is what it is everywhere
        if name == "a.txt" and dialect.sep is None and "," in (between, point) and dialect.decimal == ".":
            continue  # whoever says so says that commas separate
        found = read(name, write(rows, form, style), names(form, chosen), dialect)
        if found is not None:
            np.testing.assert_array_equal(found, right[:, chosen] if name.endswith("v") else right)
        elif dialect.sep is not None:
            assert between  # and something stands there


UMSATZ = "umsatz;preis\n1.234;2,5\n"
SEEN = [  # a file of a spreadsheet, the chosen column, what is said, and what is read: None where it is refused
    (UMSATZ, "umsatz", {}, None),
    (UMSATZ, "preis", {}, None),
    (UMSATZ, "umsatz", {"sep": ";", "decimal": ","}, None),
    (UMSATZ, "preis", {"sep": ";", "decimal": ","}, 2.5),
    (UMSATZ, "umsatz", {"sep": ";", "decimal": ",", "thousands": "."}, 1234),
    (UMSATZ, "umsatz", {"sep": ",", "decimal": ","}, None),
    ("umsatz;preis\n2.5;2,5\n", "umsatz", {"sep": ";", "decimal": ",", "thousands": "."}, None),
    ("umsatz;preis\n0.125;2,5\n", "umsatz", {"sep": ";", "decimal": ",", "thousands": "."}, None),
    ('umsatz,preis\n1.234,"2,5"\n', "umsatz", {}, None),  # of LibreOffice, in German
    ('umsatz,preis\n1.234,"2,5"\n', "preis", {"decimal": ","}, 2.5),
    ('umsatz,preis\n1.234,"2,5"\n', "umsatz", {"decimal": ","}, None),
    ('umsatz,preis\n1.234,"2,5"\n', "umsatz", {"decimal": ",", "thousands": "."}, 1234),
    ('number,codes\n1.234,"2,5"\n', "number", {"decimal": "."}, 1.234),
    ("Umsatz, netto;Preis\n1234,5;2\n", "Umsatz", {}, None),
    ("prix;autre\n1 234,5;2\n", "prix", {"sep": ";", "decimal": ","}, None),
    ("prix;autre\n1 234,5;2\n", "prix", {"sep": ";", "decimal": ",", "thousands": " "}, 1234.5),
    ("prix;autre\n1\u202f234,5;2\n", "prix", {"sep": ";", "decimal": ",", "thousands": " "}, 1234.5),
    ("prix;autre\n1\u00a0234,5;2\n", "prix", {"sep": ";", "decimal": ",", "thousands": "\u202f"}, 1234.5),
    ("Preis;Menge\n1'234.5;2\n", "Preis", {"sep": ";", "decimal": "."}, None),
    ("Preis;Menge\n1'234.5;2\n", "Preis", {"sep": ";", "decimal": ".", "thousands": "'"}, 1234.5),
    ("Preis;Menge\n1’234.5;2\n", "Preis", {"sep": ";", "decimal": ".", "thousands": "'"}, 1234.5),
    ('price,count\n"1,234.5",2\n', "price", {}, None),
    ('price,count\n"1,234",2\n', "price", {}, None),
    ('price,count\n"1,234.5",2\n', "price", {"decimal": "."}, None),
    ('price,count\n"1,234.5",2\n', "price", {"thousands": ","}, 1234.5),
    ('price,count\n"1,23.5",2\n', "price", {"thousands": ","}, None),
    ("price,count\n1,234.5,2\n", "price", {"thousands": ","}, None),
    ("x,y\n1,2\n", "x", {"sep": ";", "decimal": ","}, None),
]


@pytest.mark.parametrize(("text", "column", "said", "number"), SEEN)
def test_what_spreadsheets_give(text: str, column: str, said: dict[str, str], number: float | None) -> None:
    found = read("a.csv", text, [column], Dialect(**said))
    assert (None if found is None else found.tolist()) == (None if number is None else [[number]])


def test_a_file_of_one_column_that_was_not_meant_to_be_one() -> None:
    assert read("a.csv", "x,y\n1,2\n", [], Dialect(";", ",")) is None
    assert read("a.csv", "x\n3,14\n", [], Dialect()) is None
    assert read("a.csv", "x\n3,14\n", [], Dialect(";", ",")).tolist() == [[3.14]]  # type: ignore[union-attr]
    assert read("a.csv", "1.234.567\n2\n", [], Dialect()) is None  # no name, but a number


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"sep": ";"}, "sep=; leaves open what the decimal is; add decimal=, or decimal=."),
        ({"sep": ":"}, "sep must be"),
        ({"sep": ""}, "sep must be"),
        ({"decimal": ";"}, "decimal must be"),
        ({"thousands": "_"}, "thousands must be"),
        ({"thousands": ""}, "thousands must be"),
        ({"thousands": "."}, "not as the decimal"),
        ({"decimal": ",", "thousands": ","}, "not as the decimal"),
    ],
)
def test_dialects_are_refused(said: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Dialect(**said)


@pytest.mark.parametrize(
    ("text", "rows", "said"),
    [
        ("1,2,3\n", [[1, 2, 3]], {}),
        ("1.5,2\n3,4\n", [[1.5, 2], [3, 4]], {}),
        ("1, 2\n3, 4\n", [[1, 2], [3, 4]], {}),
        ("1,-2\n", [[1, -2]], {}),
        ("1e3,2\n", [[1000, 2]], {}),
        ("3,4\n", [[3, 4]], {"sep": ","}),
        ("3,14\n2,71\n", [[3.14], [2.71]], {"decimal": ","}),
        ("3,14\n2,71\n", [[3.14], [2.71]], {"sep": ";", "decimal": ","}),
        ("3,14 2,71\n", [[3.14, 2.71]], {"decimal": ","}),
        ("3;4\n", [[3, 4]], {"sep": ";", "decimal": "."}),
        ("3,14; 2,71 # noted\n", [[3.14, 2.71]], {"sep": ";", "decimal": ","}),
        ("3,14\t2,71\n", [[3.14, 2.71]], {"decimal": ","}),
        ("1.234,5 2\n", [[1234.5, 2]], {"decimal": ",", "thousands": "."}),
        ("1,234.5 2\n", [[1234.5, 2]], {"thousands": ","}),
        ("1'234, 2\n", [[1234, 2]], {"thousands": "'"}),
        ("1 234,5; 2\n", [[1234.5, 2]], {"sep": ";", "decimal": ",", "thousands": " "}),
        ("0,125e2;7\n", [[12.5, 7]], {"sep": ";", "decimal": ","}),
    ],
)
def test_a_text(tmp_path: Path, text: str, rows: list[list[float]], said: dict[str, str]) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert read_rows(str(tmp_path / "a.txt"), dialect=Dialect(**said)) == rows


@pytest.mark.parametrize(
    ("text", "told", "said"),
    [
        ("3,14\n2,71\n", "line 1: the comma may be", {}),
        ("5\n3,14\n", "line 2: the comma may be", {}),
        ("3,14, 2,71\n", "line 1: the comma may be", {}),
        ("3,14 2,71\n", "line 1: the comma may be", {}),
        ("3,14\t2,71\n", "line 1: the comma may be", {}),
        ("1,234\n", "line 1: the comma may be", {}),
        ("1,234,567\n", "line 1: the comma may be", {}),
        ("1,234.5\n", "line 1: the comma may be", {}),
        ("1.234,5\n", "line 1: the comma may be", {}),
        ("1'234,5\n", "line 1: the comma may be", {"thousands": "'"}),
        ("1 234,5\n", "line 1: the comma may be", {}),
        (
            "3;4\n",
            "line 1: not written with a decimal point and nothing between thousands; write it so, or for a file",
            {},
        ),
        ("1,5;2.5\n", "line 1: not written with a decimal point", {}),
        ("1,5;2.5\n", "line 1: not written with a decimal comma", {"sep": ";", "decimal": ","}),
        ("1.234,5;2\n", "line 1: not written with a decimal comma", {"sep": ";", "decimal": ","}),
        ("1\u00a0234,5\n", "line 1: not written with a decimal comma and nothing between", {"decimal": ","}),
        ("1\u202f234\n", "line 1: not written with a decimal point and nothing between thousands", {}),
        ("1'234\n", "line 1: not written with a decimal point and nothing between thousands", {}),
        ("12.34\n", "line 1: not written with a decimal comma and '.' between", {"decimal": ",", "thousands": "."}),
        ("1 234\n", "give a sep that stands in no number", {"thousands": " "}),
        ("3,14\n", "give a sep that stands in no number", {"sep": ",", "decimal": ","}),
    ],
)
def test_what_is_not_as_said_is_refused(tmp_path: Path, text: str, told: str, said: dict[str, str]) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    for ragged in (False, True):
        with pytest.raises(InputError) as refused:
            read_rows(str(tmp_path / "a.txt"), ragged=ragged, dialect=Dialect(**said))
        assert told in str(refused.value)
        assert not any(
            word in str(refused.value) for word in text.strip().replace("\n", " ").split(" ") if len(word) > 1
        )


def test_lines_are_read_as_files_are() -> None:
    assert parse_rows(["3,14 # noted", "", "2"], "lines", dialect=Dialect(decimal=",")) == [[3.14], [2]]


def test_a_column_and_its_gaps(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name;pay\nanna;3,14\nb;\nc;5\nd;n/a\ne;.\nf;1,234\n")
    found = read_columns(str(tmp_path / "a.csv"), ["pay"], missing="drop", dialect=Dialect(";", ","))
    assert found.values[:, 0].tolist() == [3.14, 5, 1.234]
    assert found.dropped == 3
