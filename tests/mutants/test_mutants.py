"""The patches can be read and name tests that exist, and the runner tells caught from survived."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

import pytest
from run_mutants import ROOT, apply, main, read_attacks

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patches")

PATCH = """Sums are off by one.

caught by tests/test_sums.py::test_sums

--- a/src/midst/sums.py
+++ b/src/midst/sums.py
@@ -1,3 +1,3 @@
 # Sums.
 def add(a, b):
-    return a + b
+    return {}
"""


@pytest.mark.filterwarnings("default")
def test_patches_change_something_and_name_tests_that_exist():
    """A patch that no longer applies is only warned about, since any change of a line may do that."""
    attacks = read_attacks(ROOT / "tests" / "mutants")
    assert len(attacks) >= 80
    stale = []
    for attack in attacks:
        for file, _, test in (each.partition("::") for each in attack.tests):
            assert f"def {test.partition('[')[0]}" in (ROOT / file).read_text(), f"{attack.name}: no {file}::{test}"
        lines = attack.path.read_text().partition("\n@@ ")[2].splitlines()[1:]
        before, after = ([each[1:] for each in lines if each[:1] != sign] for sign in "+-")
        assert before != after, f"{attack.name}: changes nothing"
        code, said = apply(attack, ROOT, "--check")
        assert code in (0, 1), f"{attack.name}: {said}"
        stale += [attack.name] * code
    if stale:
        warnings.warn(f"to be renewed, for `make mutants` fails: {', '.join(stale)} (see run_mutants.py)", stacklevel=1)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout of three lines, a test and an attack."""
    texts = {
        "pyproject.toml": "",
        "src/midst/__init__.py": "",
        "src/midst/sums.py": "# Sums.\ndef add(a, b):\n    return a + b\n",
        "tests/conftest.py": "from hypothesis import settings\nsettings.register_profile('mutants')\n",
        "tests/test_sums.py": "from midst.sums import add\n\ndef test_sums():\n    assert add(1, 2) == 3\n",
        "tests/mutants/wrong.patch": PATCH.format("a + b + 1"),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_an_attack_is_caught_when_a_test_fails_and_not_otherwise(small, capsys):
    """One that survives, breaks the code or does not apply fails the command; the checkout stays as it was."""
    for name, line in {"harmless": "b + a", "broken": "a +", "stale": "0"}.items():
        (small / f"tests/mutants/{name}.patch").write_text(PATCH.format(line))
    stale = small / "tests/mutants/stale.patch"
    stale.write_text(stale.read_text().replace("a + b", "sum(a, b)"))
    before = (small / "src/midst/sums.py").read_text()
    assert main(["--workers", "1"], small) == 1
    told = capsys.readouterr().out
    outcomes = {"wrong": "caught", "harmless": "survived", "broken": "no verdict", "stale": "no verdict"}
    for name, outcome in outcomes.items():
        assert re.search(f"^{outcome} .* {name}: Sums are off by one.$", told, re.MULTILINE)
    assert "no longer applies: error: patch failed: src/midst/sums.py:1" in told
    assert told.endswith("1 of 4 attacks caught\n")
    assert (small / "src/midst/sums.py").read_text() == before
    assert main(["of no such name"], small) == 1


def test_an_attack_is_planted_where_its_lines_have_moved_to(small, capsys):
    (small / "src/midst/sums.py").write_text("import math\n\n# Sums!\n\n\ndef add(a, b):\n    return a + b\n")
    assert main(["wrong"], small) == 0
    assert capsys.readouterr().out.endswith("1 of 1 attacks caught\n")


def test_tests_that_fail_anyway_prove_nothing(small, capsys):
    (small / "tests/test_sums.py").write_text("def test_sums():\n    assert False\n")
    assert main([], small) == 1
    assert "does not pass without an attack" in capsys.readouterr().out


def test_a_patch_without_tests_is_named(small):
    (small / "tests/mutants/wrong.patch").write_text(PATCH.format("a").replace("caught by", "see"))
    with pytest.raises(SystemExit, match=r"wrong\.patch: a patch needs a line 'caught by TEST'"):
        main([], small)
