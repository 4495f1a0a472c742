"""What is published holds what it should, and nothing that lies about in a checkout; `make dist` tries it for real."""

from __future__ import annotations

import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from try_release import VERSIONS, build, find_pythons, try_file

ROOT = Path(__file__).parents[2]
JUNK = [
    "demo.png", ".venv/bin/python", "bench/results/engines.json", "docs/_build/index.html", "docs/figures/fig1.png",
    "docs/commands/run.md", "notes.txt", "tests/__pycache__/conftest.cpython-311.pyc", "salary.txt",
]  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The names in the wheel and in the sdist, of a checkout in which somebody has worked."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("checkout", "dist"))
    leave = shutil.ignore_patterns(*".git .venv dist _build figures results __pycache__ .*_cache .hypothesis".split())
    shutil.copytree(ROOT, source, ignore=leave, dirs_exist_ok=True)
    for name in JUNK:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("junk")
    wheel, sdist = build(source, target)
    with zipfile.ZipFile(wheel) as one, tarfile.open(sdist) as other:
        inside = {name.partition("/")[2] for name in other.getnames()}
        return set(one.namelist()), inside


def test_the_wheel(built):
    names, _ = built
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if path.is_file()}
    source = {name for name in source if "__pycache__" not in name}
    assert {"midst/py.typed", "midst/explorer/static/vendor/uPlot.LICENSE"} <= source
    assert {name for name in names if name.startswith("midst/")} == source
    rest = {re.sub(r"^midst-[^/]*\.dist-info/", "", name) for name in names - source}
    assert rest == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_the_sdist_holds_what_its_pages_show_and_nothing_else(built):
    _, names = built
    assert names & set(JUNK) == set()
    for link in re.findall(r"\]\(([\w./-]+)\)", (ROOT / "README.md").read_text()):
        assert link in names, link
    for folder in ("src", "docs", "tests", "examples", "bench", "deploy"):
        shipped = {name for name in names if name.startswith(f"{folder}/")}
        there = {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.*") if path.is_file()}
        ignored = re.compile(r"__pycache__|/_build/|/figures/|docs/commands/|/results/|jupyter_execute|_cache/")
        assert {name for name in there if not ignored.search(name)} <= shipped
    others = {name for name in names if "/" not in name}
    assert others == {
        *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "PKG-INFO", "README.md"),
        *(".gitignore", "pyproject.toml", "requirements-dev.txt"),
    }


def test_whoever_tries_it_finds_pythons_and_says_what_fails(tmp_path):
    found = dict(find_pythons())
    assert set(found) <= set(VERSIONS)
    assert all(Path(python).exists() for python in found.values())
    problem = try_file(tmp_path / "midst-1.0-py3-none-any.whl", shutil.which("false") or "")
    assert problem is not None
    assert problem.startswith("false -m venv")
