"""Puts the man pages into the wheel, made from the commands as they are then; click is all they need for that."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Manuals(BuildHookInterface):
    """Writes the man pages before a build, for where man looks beside the command, and takes them away after."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Of every kind of wheel, also of one that is installed from a working tree."""
        sys.path[:0] = [str(Path(self.root, folder)) for folder in ("src", "docs")]
        from commands import make_manuals

        self.made = TemporaryDirectory()
        for name, text in make_manuals().items():
            path = Path(self.made.name, name)
            path.write_text(text, encoding="ascii")
            build_data["shared_data"][str(path)] = f"share/man/man1/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Nothing is left behind in the working tree."""
        self.made.cleanup()
