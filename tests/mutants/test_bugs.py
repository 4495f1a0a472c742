"""The list of planted bugs fits the code as it is, and whoever plants them tells caught from survived."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from bugs import BUGS, SOURCE, Bug
from run_mutants import main, misplaced

GOOD = Bug("sums are off by one", "sums.py", "a + b", "a + b + 1", ("tests/test_sums.py",))
HARMLESS = replace(GOOD, name="the other way about", new="b + a")
BROKEN = replace(GOOD, name="no Python", new="a +")


def test_every_bug_has_one_place_and_tests_that_exist():
    assert misplaced(BUGS) == []
    assert len(BUGS) >= 60


@pytest.fixture
def small(tmp_path):
    """A checkout of two lines and a test."""
    for folder in (SOURCE, "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / SOURCE / "__init__.py").write_text("")
    (tmp_path / SOURCE / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    profile = "from hypothesis import settings\nsettings.register_profile('mutants')\n"
    (tmp_path / "tests" / "conftest.py").write_text(profile)
    test = "from midst.sums import add\n\ndef test_sums():\n    assert add(1, 2) == 3\n"
    (tmp_path / "tests" / "test_sums.py").write_text(test)
    return tmp_path


def test_a_bug_is_caught_when_a_test_fails_and_not_otherwise(small, capsys):
    """One that survives, or of which nobody knows, fails the command; the checkout stays as it was."""
    before = (small / SOURCE / "sums.py").read_text()
    assert main(["--workers", "1"], [GOOD, HARMLESS, BROKEN], small) == 1
    told = capsys.readouterr().out
    for bug, outcome in ((GOOD, "caught"), (HARMLESS, "survived"), (BROKEN, "no verdict")):
        assert re.search(f"^{outcome} .*: {bug.name}$", told, re.MULTILINE)
    assert told.endswith("1 of 3 planted bugs caught\n")
    assert (small / SOURCE / "sums.py").read_text() == before


def test_to_plant_nothing_is_no_success(small):
    assert main(["of no such name"], [GOOD], small) == 1


def test_tests_that_fail_anyway_prove_nothing(small, capsys):
    (small / "tests" / "test_sums.py").write_text("def test_sums():\n    assert False\n")
    assert main([], [GOOD], small) == 1
    assert "does not pass without a bug" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"old": "a - b"}, "0 times in sums.py"),
        ({"old": "a"}, "3 times in sums.py"),
        ({"file": "gone.py"}, "0 times in gone.py"),
        ({"new": "a + b"}, "changes nothing"),
        ({"tests": ("tests/test_sums.py::test_products",)}, "there is no tests/test_sums.py::test_products"),
    ],
    ids=str,
)
def test_a_bug_that_no_longer_fits_is_named(small, change, match):
    (line,) = misplaced([replace(GOOD, **change)], small)
    assert line.startswith("sums are off by one: ")
    assert match in line
    assert misplaced([GOOD], small) == []
