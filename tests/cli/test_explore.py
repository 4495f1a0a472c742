"""`midst explore`: what it serves, to whom, and how it ends."""

from __future__ import annotations

import re
import signal
import struct
import subprocess
import sys
import webbrowser
import zlib
from base64 import b64decode
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from click.testing import CliRunner

import midst
from midst.cli import explore, main


def start(*arguments: str | Path) -> tuple[subprocess.Popen[str], str]:
    """The command, and the address that it printed."""
    command = [sys.executable, "-m", "midst", "explore", "--no-open", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    midst.median([3.0, 1.0, 2.0], rng=1).trace.save(tmp_path / "run.npz")
    process, address = start(tmp_path / "run.npz", "--port", "0")
    try:
        parts = urlsplit(address)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", address)
        token = parts.fragment.removeprefix("token=")
        assert "midst explorer" in httpx.get(f"http://{parts.netloc}/").text
        said = httpx.get(f"http://{parts.netloc}/api/hello", headers={"x-midst-token": token}).json()
        assert said["file"] == "run.npz"
        arguments = Path(f"/proc/{process.pid}/cmdline")
        assert not arguments.exists() or token not in arguments.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert rest == ""
    assert "Ctrl-C" in errors
    assert token not in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.npz"], "none.npz: No such file"),
        (["--port", "99999"], "65535"),
        ([__file__], "not a midst trace"),
        (["--page", "run.html"], "--page is of a saved run"),
        ([__file__, "--page", "run.html"], "not a midst trace"),
        (["run.npz", "--page", "none/run.html"], "folder none does not exist"),
        (["run.npz", "--page", "run.npz"], "a page ends in .html"),
        (["run.npz", "--page", "run.html", "--prior", "flat"], "prior"),
        (["run.npz", "--page", "run.html", "--port", "1"], "--port is of a page that is served"),
        (["run.npz", "--show-values"], "--show-values is for --page"),
        (["--prior", "normal:0,1"], "--prior is for --page"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(main, ["explore", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_saved_run_becomes_a_page_and_nothing_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("midst.explorer.server.serving", None)
    run, page = tmp_path / "run.npz", tmp_path / "run.html"
    values = [31337.4242, 2.0, 5.0, 7.0, 9.0]
    arguments = ["explore", str(run), "--page", str(page)]
    midst.median(values, "complete", rng=7, keep_values=True).trace.save(run)
    for shown in ([], ["--show-values"]):
        assert CliRunner().invoke(main, [*arguments, *shown]).exit_code == 0
        [block] = re.findall(r'id="a.run">([^<]*)<', page.read_text())
        assert (struct.pack("<d", values[0]) in zlib.decompress(b64decode(block))) == bool(shown)
    midst.median(values, "complete", rng=7).trace.save(run)
    page.unlink()
    done = CliRunner().invoke(main, [*arguments, "--show-values"])
    assert (done.exit_code, page.exists()) == (2, False)
    assert "has no private values, one a node, to show" in done.stderr


def test_a_browser_is_pointed_there_without_the_token_among_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    seen: list[tuple[str, int]] = []

    def look(url: str) -> bool:
        opened.append(url)
        file = Path(unquote(urlsplit(url).path))
        seen.append((file.read_text(), file.parent.stat().st_mode & 0o777))
        return True

    monkeypatch.setattr(webbrowser, "open", look)
    with explore._pointing_to("http://127.0.0.1:1/#token=abc", True):
        pass
    assert "abc" not in opened[0]
    assert 'url=http://127.0.0.1:1/#token=abc"' in seen[0][0]
    assert seen[0][1] == 0o700
    assert not Path(unquote(urlsplit(opened[0]).path)).exists()
    with explore._pointing_to("http://127.0.0.1:1/#token=abc", False):
        assert len(opened) == 1
