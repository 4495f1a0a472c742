"""What a missing part says: a command that brings it, into this environment, from where midst itself came."""

from __future__ import annotations

import json
import os
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from midst.errors import MissingExtra

GIT = {"url": "https://example.org/midst.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
BRANCH = {"url": "https://example.org/m.git", "vcs_info": {"vcs": "git", "requested_revision": "v2", "commit_id": "c0"}}
WHEEL = {"url": "https://example.org/midst-1-py3-none-any.whl", "archive_info": {}}
FOLDER = {"url": "file:///home/a%20b/midst", "dir_info": {}}
EDITABLE = {"url": "file:///src/midst", "dir_info": {"editable": True}}


@pytest.fixture
def come_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Sets where midst was installed from, and puts a pip of this environment first on the path."""
    python, pip = tmp_path / "env/bin/python", tmp_path / "env/bin/pip"
    pip.parent.mkdir(parents=True)
    pip.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", f"{pip.parent}{os.pathsep}{os.defpath}")

    class Installed(Distribution):
        def __init__(self, origin: dict[str, Any] | None) -> None:
            self.origin = origin

        def read_text(self, filename: str) -> str | None:
            return json.dumps(self.origin) if filename == "direct_url.json" and self.origin else None

        def locate_file(self, path: Any) -> Any:
            raise NotImplementedError

    def come(origin: dict[str, Any] | None) -> None:
        monkeypatch.setattr("importlib.metadata.distribution", lambda name: {"midst": Installed(origin)}[name])

    return come


@pytest.mark.parametrize(
    ("origin", "arguments"),
    [
        pytest.param(None, ["midst[plot]"], id="an index"),
        pytest.param(EDITABLE, ["-e", "/src/midst[plot]"], id="a checkout"),
        pytest.param(FOLDER, ["/home/a b/midst[plot]"], id="a folder"),
        pytest.param(WHEEL, [f"midst[plot] @ {WHEEL['url']}"], id="a wheel"),
        pytest.param(GIT, ["midst[plot] @ git+https://example.org/midst.git@c0ffee"], id="a commit"),
        pytest.param(BRANCH, ["midst[plot] @ git+https://example.org/m.git@v2"], id="a branch"),
        pytest.param(
            GIT | {"subdirectory": "py"},
            ["midst[plot] @ git+https://example.org/midst.git@c0ffee#subdirectory=py"],
            id="a folder of a repository",
        ),
    ],
)
def test_it_is_brought_from_where_midst_came(come_from: Any, origin: dict[str, Any] | None, arguments: list[str]):
    come_from(origin)
    said = str(MissingExtra("matplotlib", "plot"))
    what, _, command = said.partition("; try: ")
    assert what == "matplotlib is not installed"
    assert shlex.split(command) == ["pip", "install", *arguments]
    assert "\n" not in said


def test_midst_that_was_never_installed(come_from: Any, monkeypatch: pytest.MonkeyPatch):
    def fail(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", fail)
    assert str(MissingExtra("JAX", "gpu")) == "JAX is not installed; try: pip install 'midst[gpu]'"


@pytest.mark.parametrize("other", [True, False])
def test_an_environment_that_was_not_activated(
    come_from: Any, other: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    come_from(None)
    (tmp_path / "bin").mkdir()
    if other:  # a pip that would install into another Python
        (tmp_path / "bin/pip").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    said = str(MissingExtra("matplotlib", "plot"))
    assert said.endswith(f"try: {shlex.quote(sys.executable)} -m pip install 'midst[plot]'")
