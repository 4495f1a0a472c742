"""The public surface, pinned: adding or removing a name is a decision."""

from __future__ import annotations

import subprocess
import sys

import pytest

import midst


def test_public_names():
    assert dir(midst) == sorted(midst.__all__)
    for name in midst.__all__:
        assert getattr(midst, name) is not None


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        midst.nothing  # noqa: B018


def test_import_is_light():
    code = "import midst, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
