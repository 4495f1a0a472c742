"""What shells offer: real bash, zsh and fish ask the real command, as they do at a Tab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from midst.cli import COMMANDS, main, options
from midst.graphs import KINDS

CHARTER = '[[participants]]\nname = "alice"\n[[participants]]\nname = "bob"\n'
BASH = """
source <(_MIDST_COMPLETE=bash_source midst)
compopt() { echo "files"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_midst_completion midst
printf '%s\\n' "${COMPREPLY[@]}"
"""  # compopt works at a Tab only
ZSH = """
compdef() { }
source <(_MIDST_COMPLETE=zsh_source midst)
compadd() { print -l -- $completions }
_describe() { print -l -- ${completions_with_descriptions%%:*} }
_path_files() { print files }
words=("$@"); CURRENT=$#
_midst_completion
"""  # what these do works at a Tab only
FISH = '_MIDST_COMPLETE=fish_source midst | source; complete --do-complete "$argv"'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a charter, and the command on the path."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin/midst"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m midst "$@"\n')
    command.chmod(0o755)
    (tmp_path / "pay.toml").write_text(CHARTER)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(shell: str, line: str) -> list[str]:
    """What a shell offers at the end of a line; "files" where it would look for them itself."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    words = [*line.split(), *([""] if line.endswith(" ") else [])]
    match shell:
        case "bash":
            asked = ["bash", "--norc", "-c", BASH, "bash", *words]
        case "zsh":
            asked = ["zsh", "-f", "-c", ZSH, "zsh", *words]
        case _:
            asked = ["fish", "--no-config", "-c", FISH, line]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return [one.split("\t")[0] for one in done.stdout.splitlines() if one]  # fish says what each is for


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_offer_what_may_follow(place: Path, shell: str) -> None:
    assert sorted(offered(shell, "midst ")) == sorted(COMMANDS)
    assert offered(shell, "midst no") == ["node"]
    assert offered(shell, "midst node --ch") == ["--charter"]
    assert offered(shell, "midst node --charter pay.toml --name ") == ["alice", "bob"]
    files = offered(shell, "midst node --charter pa")
    assert files == (["pay.toml"] if shell == "fish" else ["files"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("midst run --graph ", list(KINDS)),
        ("midst up --graph r", ["ring", "rgg", "regular"]),
        ("midst charter new --graph edges", ["files"]),
        ("midst charter check pay.toml --name b", ["bob"]),
        ("midst doctor --charter ~/pay.toml --name=a", ["alice"]),
        ("midst node --charter none.toml --name ", []),
        ("midst node --charter bin --name ", []),
        ("midst keys i", ["init"]),
        ("midst run --method ", ["search", "consensus", "paper", "both"]),
        ("midst run --values ", ["files"]),
        ("midst ledger show ", ["files"]),
        ("midst run --nonsense ", []),
    ],
)
def test_what_is_offered(place: Path, line: str, words: list[str]) -> None:
    answer = CliRunner().invoke(
        main, env={"_MIDST_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    )
    assert (answer.exit_code, answer.stderr) == (0, "")
    kinds = [one.partition(",") for one in answer.stdout.split()]
    assert [value if kind == "plain" else "files" for kind, _, value in kinds] == words


@pytest.mark.parametrize("text", ["", "participants = 3", "[[participants]]\nname = 'x", "[[participants]]\n"])
def test_a_charter_that_is_none_offers_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.toml").write_text(text)
    context = click.Context(click.Command("node"))
    context.params["charter_file"] = tmp_path / "broken.toml"
    assert options.offer_names(context, click.Option(["--name"]), "") == []


def test_a_tab_imports_nothing_heavy() -> None:
    tell = "import atexit, sys; atexit.register(lambda: print(sorted(sys.modules), file=sys.stderr))"
    asked = {"_MIDST_COMPLETE": "bash_complete", "COMP_WORDS": "midst node --charter x --name ", "COMP_CWORD": "5"}
    done = subprocess.run(
        [sys.executable, "-c", f"{tell}\nfrom midst.cli import main\nmain()"],
        capture_output=True, text=True, timeout=30, env=os.environ | asked,
    )  # fmt: skip
    assert done.returncode == 0
    assert "'midst.cli.node'" in done.stderr
    for name in ("numpy", "rich", "cryptography", "midst.cli.run"):
        assert f"'{name}'" not in done.stderr


def test_every_file_is_offered_as_one() -> None:
    """An option or argument that says FILE, FOLDER or DIR is completed by the shell's own files."""

    def every(command: click.Command) -> list[click.Parameter]:
        context = click.Context(command)
        if not isinstance(command, click.Group):
            return list(command.params)
        names = command.list_commands(context)
        return [one for name in names for one in every(command.get_command(context, name))]  # type: ignore[arg-type]

    found = [one for one in every(main) if any(word in (one.metavar or "") for word in ("FILE", "FOLDER", "DIR"))]
    assert len(found) > 30
    for one in found:
        [item, *rest] = one.shell_complete(click.Context(main), "zzz")
        assert (item.type, rest) == ("file" if item.type != "dir" else "dir", []), one.name
