"""A Containerfile, read as far as ours goes: instructions, comments, lines that go on."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """What one FROM begins: its name, its image, and the instructions after it."""

    name: str
    image: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """What follows every instruction of a kind."""
        return [text for kind, text in self.steps if kind == instruction]

    def one(self, instruction: str) -> str:
        """What follows the only instruction of a kind."""
        [text] = self.all(instruction)
        return text

    @property
    def environment(self) -> dict[str, str]:
        """Every variable that is set."""
        return dict(word.split("=", 1) for text in self.all("ENV") for word in shlex.split(text))


def read_stages(path: Path) -> list[Stage]:
    """The stages of a file, in order."""
    stages: list[Stage] = []
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        kind, _, text = line.partition(" ")
        if kind == "FROM":
            image, *named = text.split()
            stages.append(Stage(named[1] if named else "", image))
        else:
            stages[-1].steps.append((kind, text.strip()))
    return stages


def words_of(text: str) -> list[str]:
    """A command in its form as a list."""
    return [str(word) for word in json.loads(text)]
