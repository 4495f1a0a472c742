"""What the documentation shows is so: its code runs, its links lead somewhere; its commands have `test_first_hour`.

- Pages with a kernelspec are notebooks. Their cells are run here as they are run at a build.
- ```python blocks are run in order: doctests where they have prompts, plain code where they have none.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import numpy as np
import pytest
from click.testing import CliRunner
from pages import COMMANDS, DOCS, DOTS, PAGES, ROOT, blocks, pages_with, prose

import midst
from midst.cli import main
from midst.net.wire import PROTOCOL

matplotlib = pytest.importorskip("matplotlib")


class Model:
    def state_dict(self) -> dict[str, Any]:
        return {"weight": np.arange(6.0).reshape(2, 3)}


GIVEN: dict[str, dict[str, Any]] = {  # names that a page leaves to its reader
    "README.md": {
        "values": np.linspace(20, 80, 15) ** 1.01,
        "updates": [Model().state_dict()] * 3,
        "sites": [[3.0, 5.0, 4.5], [2.0, 7.0], [6.5, 1.0, 9.0]],
    },
    "docs/federated.md": {"updates": [{"w": np.array([0.5, 0.25, -0.75])}] * 5},
    "docs/notebooks/federated.md": {"models": [Model()] * 3, "graph": "ring"},
}


def cells(path: str) -> list[str]:
    return [
        re.sub(r"^:\w+:.*\n", "", block.text, flags=re.MULTILINE)
        for block in blocks(path)
        if block.kind == "{code-cell}"
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    yield
    sys.modules["matplotlib.pyplot"].close("all") if "matplotlib.pyplot" in sys.modules else None


# Code


@pytest.mark.parametrize("path", pages_with("{code-cell}"))
def test_cells_run(path):
    names: dict[str, Any] = {"__name__": "__main__"}
    for k, cell in enumerate(cells(path)):
        exec(compile(cell, f"{path}, cell {k + 1}", "exec"), names)
    assert re.match(r"---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n", PAGES[path])


def test_every_notebook_shows_a_picture():
    notebooks = [path for path in PAGES if path.startswith("docs/notebooks/")]
    assert len(notebooks) >= 3
    for path in notebooks:
        assert re.search(r"plt\.subplots|\.plot\(\)", "".join(cells(path))), path


@pytest.mark.parametrize("path", pages_with("python"))
def test_python_blocks_run(path):
    names = dict(GIVEN.get(path, {}))
    runner = doctest.DocTestRunner(optionflags=DOTS)
    for k, block in enumerate(blocks(path)):
        if block.kind == "python" and ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, names, f"{path}, block {k + 1}", path, 0)
            runner.run(test, clear_globs=False)
            names = test.globs
        elif block.kind == "python":
            exec(compile(block.text, f"{path}, block {k + 1}", "exec"), names)
    assert runner.summarize(verbose=False).failed == 0


def modules_with_doctests() -> list[str]:
    source = Path(midst.__file__).parent
    paths = [path for path in source.rglob("*.py") if ">>> " in path.read_text()]
    return [".".join(("midst", *path.relative_to(source).with_suffix("").parts)) for path in paths]


@pytest.mark.parametrize("name", modules_with_doctests())
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=DOTS).failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert ast.get_docstring(ast.parse(path.read_text()))


# Pictures and links


def test_pictures_in_the_tree_are_small():
    for path in (DOCS / "pictures").iterdir():
        assert path.stat().st_size <= 200_000, path.name


def test_the_picture_on_the_first_page_is_that_of_the_demo():
    [command] = re.findall(r"\$\(BIN\)/midst (run .*)--plot demo.png", (ROOT / "Makefile").read_text())
    done = CliRunner().invoke(main, [*shlex.split(command), "--json"])
    results = json.loads(done.stdout)
    word = "none one two three four five six seven eight nine".split()[len(results["consensus"]["exposed"])]
    assert results["search"]["exposed"] == []
    assert results["search"]["value"] == results["consensus"]["value"]
    by = f"by consensus {word} of them send their own value, by a search nobody does"
    for path in ("README.md", "docs/index.md"):
        assert f"![Fifteen nodes find the median in two ways: {by}]" in PAGES[path]


def links(path: str) -> Iterator[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(path))
    yield from re.findall(r"\]\(<?([^)>\s]+)>?\)", text)
    yield from re.findall(r"<(https?:[^>]*)>", text)


def anchors(path: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^(```+).*?^\1$", "", PAGES[path], flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES)
def test_links(path):
    for link in links(path):
        if link.startswith(("http:", "https:")):
            url = urlsplit(link)
            assert url.scheme == "https", link
            assert re.fullmatch(r"(\w[\w-]*\.)+\w{2,}", url.hostname or ""), link
            continue
        name, _, anchor = link.partition("#")
        target = os.path.normpath(Path(path).parent / name) if name else path
        made = "figures" in Path(target).parts  # by `make docs`
        assert target in PAGES or (ROOT / target).exists() or made, f"{path}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{path}: {link}"


# The whole


def test_the_reference_is_complete():
    listed = set(re.findall(r"^\.\. auto\w+:: (\S+)", PAGES["docs/api.md"], re.MULTILINE))
    modules = {name.rsplit(".", 1)[-1] for name in listed}
    missing = {name for name in midst.__all__ if not name.startswith("_") and name not in modules}
    errors = {name for name in missing if getattr(midst, name).__module__ == "midst.errors"}  # by their module
    assert missing - errors == set()


def test_the_page_of_the_protocol_is_of_its_version():
    assert f"\nVersion {PROTOCOL}. " in PAGES["docs/protocol.md"]


def test_no_page_has_a_name_that_sphinx_needs():
    """Its own pages would be written over ours."""
    assert not {Path(path).stem for path in PAGES if path.count("/") == 1} & {"search", "genindex", "py-modindex"}


def test_every_page_is_in_the_contents():
    for path in PAGES:
        index = "docs/commands/index.md" if path.startswith("docs/commands/") else "docs/index.md"
        if path == "docs/commands/index.md":
            index = "docs/index.md"
        contents = "\n".join(block.text for block in blocks(index) if block.kind == "{toctree}")
        name = path.removeprefix(f"{Path(index).parent}/").removesuffix(".md")
        assert path in ("README.md", "docs/index.md") or re.search(rf"^{name}$", contents, re.MULTILINE), path


def test_every_command_has_its_page():
    """With what its help says: the pages are made from the commands, and nothing is lost on the way."""
    for command in COMMANDS["read_commands"]().all():
        _, *names = command.path.split()
        page = PAGES[f"docs/commands/{names[0] if names else 'index'}.md"]
        shown = CliRunner().invoke(main, [*names, "--help"]).output.partition("\nOptions:\n")[2]
        assert re.search(rf"^#+ {command.path}$", page, re.MULTILINE) or not names
        told = set(re.findall(r"^  (?:-h, )?(--[\w-]+)", shown, re.MULTILINE)) - ({"--help"} if names else set())
        own = page.partition(f"```{{program}} {command.path}\n")[2].partition("```{program}")[0]
        assert set(re.findall(r"^```{option} (?:-h, )?(--[\w-]+)", own, re.MULTILINE)) == told, command.path
        for _, code in command.examples:
            assert code in page
    assert "eps=1,delta=1e-6,colluders=2`" in PAGES["docs/commands/node.md"]  # as code, and no full stop in it
    assert "```{option} --method [search|consensus|paper|both]\n" in PAGES["docs/commands/run.md"]
    assert re.search(r"Default: `search`\.$", PAGES["docs/commands/up.md"], re.MULTILINE)
    assert "[`midst verify`](verify.md)" in PAGES["docs/commands/node.md"]


def test_what_is_hidden_stays_so_and_what_is_special_to_markdown_is_shown():
    @click.group()
    def midst() -> None:
        """A * star_ and [brackets]."""

    @midst.command(hidden=True)
    def secret() -> None:
        """Not told of."""

    @midst.command()
    @click.option("--seen", default=3, show_default=True, help="See --unseen=1, or <b>.")
    @click.option("--unseen", hidden=True)
    def run(seen: int, unseen: str) -> None:
        """Run."""

    found = COMMANDS["read_commands"](midst)
    assert [one.path for one in found.all()] == ["midst", "midst run"]
    assert found.commands[0].options == [("--seen INTEGER", "See --unseen=1, or <b>.", ["default: 3"])]
    text = "\n".join(COMMANDS["_sections"](found, 1))
    assert r"A \* star\_ and \[brackets\]." in text
    assert r"See `--unseen`=1, or \<b\>. Default: `3`." in text
    assert "secret" not in text


def test_build_without_warnings(tmp_path):
    """Everything but running the notebooks and making the paper's figures, which have tests of their own."""
    pytest.importorskip("sphinx")
    docs = tmp_path / "docs"
    shutil.copytree(DOCS, docs, ignore=shutil.ignore_patterns("_build", "figures", "commands", "jupyter_execute"))
    for shown in ("deploy", "examples"):
        shutil.copytree(ROOT / shown, tmp_path / shown)
    (docs / "figures").mkdir()
    for figure in re.findall(r"figures/[\w.]+", "".join(PAGES.values())):
        shutil.copy(DOCS / "pictures/run.png", docs / figure) if figure.endswith("png") else (docs / figure).touch()
    options = ["-D", "nb_execution_mode=off", "-D", "suppress_warnings=ref.python,myst-nb.lexer"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", *options, docs, tmp_path / "out"],
        capture_output=True, text=True, env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0
    for path in PAGES:
        assert path == "README.md" or (tmp_path / "out" / path.removeprefix("docs/")).with_suffix(".html").exists()
    live = [(path, block.text) for path in PAGES for block in blocks(path) if block.kind == "{live}"]
    assert live
    for path, command in live:
        [page] = re.findall(r"--page (\S+)", command)
        built = (tmp_path / "out" / path.removeprefix("docs/")).with_suffix(".html")
        assert f'<iframe src="pages/{page}"' in built.read_text()
        assert "default-src 'none'" in (built.parent / "pages" / page).read_text()
    assert 'id="cmdoption-midst-node-charter"' in (tmp_path / "out/commands/node.html").read_text()
