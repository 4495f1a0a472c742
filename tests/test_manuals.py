"""The man pages: one for every command, made from its help, and right as roff."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = runpy.run_path(str(ROOT / "docs/commands.py"))
MANUALS: dict[str, str] = COMMANDS["make_manuals"]()


def shown(text: str) -> str:
    """What stands in a manual, without the marks of roff."""
    text = re.sub(r"\\\[u([0-9A-F]{4})\]", lambda found: chr(int(found[1], 16)), text)
    return text.replace(r"\&", "").replace(r"\-", "-").replace(r"\e", "\\")


def test_every_command_has_one_with_all_that_its_help_says():
    commands = {one.path.replace(" ", "-"): one for one in COMMANDS["read_commands"]().all()}
    assert {"midst.1", "midst-run.1", "midst-keys-init.1"} <= set(MANUALS) == {f"{name}.1" for name in commands}
    for name, command in commands.items():
        text = shown(MANUALS[f"{name}.1"])
        assert text.startswith(f".TH {name.upper()} 1 ")
        sections = re.findall(r'^\.SH "?([A-Z ]+)"?$', text, re.MULTILINE)
        assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
        assert "EXIT STATUS" in sections
        assert f"\n{name} - {command.summary.rstrip('.')}\n" in text
        for paragraph in command.text:
            assert f"\n{paragraph}\n" in text
        assert len(re.findall(r"^\.BI? ?\"?-", text, re.MULTILINE)) == len(command.options)
        for option in command.options:
            assert option.text in text
        for _, code in command.examples:
            assert code in text


def test_nothing_in_a_text_is_taken_for_a_request_or_an_escape():
    for text in MANUALS.values():
        assert text.isascii()
        for line in text.splitlines():
            assert not line.startswith("'")
            assert re.match(r"\.(TH|SH|B|BI|BR|TP|PP|RS|RE|nf|fi)\b", line) or not line.startswith("."), line
            assert re.fullmatch(r"(?:[^\\]|\\(?:[-e&]|\[u[0-9A-F]{4,6}\]))*", line), line
    roff = COMMANDS["_roff"]
    assert roff(".csv is \\n and …") == r"\&.csv is \en and \[u2026]"
    assert roff("'tis --so") == r"\&'tis \-\-so"


@pytest.mark.parametrize("reader", ["mandoc", "groff"])
def test_those_who_read_them_find_nothing_wrong(tmp_path, reader):
    if shutil.which(reader) is None:
        pytest.skip(f"no {reader} here")
    for name, text in MANUALS.items():
        (tmp_path / name).write_text(text)
    lint = ["mandoc", "-Tlint", "-Wwarning"] if reader == "mandoc" else ["groff", "-man", "-Tutf8", "-ww", "-z"]
    done = subprocess.run([*lint, *sorted(MANUALS)], cwd=tmp_path, capture_output=True, text=True)
    found = (done.stdout + done.stderr).splitlines()
    assert [line for line in found if "missing date" not in line] == []  # one that is always the same
    read = ["mandoc", "-Tascii"] if reader == "mandoc" else ["groff", "-man", "-Tascii", "-P-cbou"]
    text = subprocess.run([*read, "midst-node.1"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "--value-file FILE" in re.sub(".\x08", "", text)
