"""What `midst --version` says."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import midst
from midst.cli import main, version

METADATA = """Metadata-Version: 2.4
Name: {name}
Version: {version}
Requires-Dist: numpy>=1.26
Requires-Dist: {name}-old>=2.10; extra == 'old'
Requires-Dist: {name}-same>=2.10; extra == "same"
Requires-Dist: {name}-new[fast]>=2.9.1; (python_version >= '3') and extra == 'new'
Requires-Dist: {name}-any; extra == 'any'
Requires-Dist: {name}-none>=1; extra == 'any'
Requires-Dist: {name}-none>=1; extra == 'test'
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages that have metadata, and nothing that could be imported."""
    installed = {"": "1.0", "_old": "2.9.30", "_same": "2.10.0rc1", "_new": "2.10", "_any": "2026.1"}
    for end, number in installed.items():
        folder = tmp_path / f"thing{end}-{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(METADATA.format(name=f"thing{end}".replace("_", "-"), version=number))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_version_is_the_first_line_and_the_extras_follow() -> None:
    done = CliRunner().invoke(main, ["--version"])
    first, second, *rest = done.stdout.splitlines()
    assert (done.exit_code, first, second) == (0, f"midst {midst.__version__}", f"Python {platform.python_version()}")
    told = "\n".join(rest)
    for extra in ("plot", "networkx", "dp", "cluster", "parquet", "gpu", "explore"):
        assert extra in told
    assert "test" not in told
    assert "all" not in told.replace("installed", "")


def test_an_extra_is_there_if_all_it_asks_for_is_and_is_recent_enough(packages: Path) -> None:
    assert version.find_extras("thing") == {
        "old": ["thing-old 2.9.30 is older than 2.10"],
        "same": [],
        "new": [],
        "any": ["thing-none is not installed"],
    }


def test_what_is_missing_is_said(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = version.find_extras("thing")
    monkeypatch.setattr(version, "find_extras", lambda _: found)
    assert version.describe_version().splitlines()[2:] == [
        "extras: same, new",
        "without old: thing-old 2.9.30 is older than 2.10",
        "without any: thing-none is not installed",
    ]


def test_nothing_is_imported_and_nothing_needs_to_be_installed() -> None:
    """From the source alone: -S leaves out every package but click, which is put beside."""
    import click

    beside = Path(click.__file__).parents[1]
    code = (
        f"import sys; sys.path.append({str(beside)!r}); import click; sys.path.pop()\n"
        "from midst.cli import main\n"
        "try: main(['--version'])\n"
        "finally: assert not {'numpy', 'rich', 'matplotlib', 'midst.cli.run'} & set(sys.modules)\n"
    )
    source = {"PYTHONPATH": str(Path(midst.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=os.environ | source)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2:] == ["extras: not known, since midst is not installed as a package"]
