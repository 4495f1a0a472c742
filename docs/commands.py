"""What the commands say of themselves, read from click: the pages of the documentation.

Rules:
- Nothing is kept here by hand: names, usage, text, options, examples and exit codes are those of `midst … --help`.
- Hidden options and commands stay hidden. `--help`, which all have, is told of once.
- Commands are loaded, never run, and loading them needs click alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from midst.cli import COMMANDS, EXIT_CODES, main


class Option(NamedTuple):
    """An option: its names and what follows them, what it does, and what click adds, such as its default."""

    names: str
    text: str
    extra: list[str]


class Command(NamedTuple):
    """A command as its help describes it; examples are blocks of lines under a head."""

    path: str
    summary: str
    usage: str
    text: list[str]
    options: list[Option]
    examples: list[tuple[str, str]]
    commands: list[Command]

    def all(self) -> Iterator[Command]:
        """It and every command below it."""
        yield self
        for one in self.commands:
            yield from one.all()


def read_commands(command: click.Command = main, name: str = "midst", parent: click.Context | None = None) -> Command:
    """A command and every command below it."""
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    text = [" ".join(one.split()) for one in re.split(r"\n\s*\n", (command.help or "").strip())]
    below: list[Command] = []
    if isinstance(command, click.Group):
        found = ((each, command.get_command(context, each)) for each in command.list_commands(context))
        below = [read_commands(one, each, context) for each, one in found if one is not None and not one.hidden]
    return Command(
        context.command_path,
        COMMANDS[name][1] if parent is not None and parent.parent is None else text[0],
        " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        text,
        list(_options(command, context)),
        [] if parent is None else list(_examples(command.epilog or "")),  # the first one's is about exit codes
        below,
    )


def _options(command: click.Command, context: click.Context) -> Iterator[Option]:
    for one in command.get_params(context):
        record = one.get_help_record(context) if isinstance(one, click.Option) else None
        if record is None or (context.parent is not None and "--help" in one.opts):
            continue
        told = re.fullmatch(r"(.*?)(?: *\[((?:default|required|x|\d|-).*)\])?", record[1], re.DOTALL)
        assert told is not None
        yield Option(record[0].replace(" RANGE", ""), " ".join(told[1].split()), told[2].split("; ") if told[2] else [])


def _examples(epilog: str) -> Iterator[tuple[str, str]]:
    """Lines that are indented, under the line that is not."""
    for head, block in re.findall(r"^(\S.*):\n((?: .*(?:\n|$))+)", epilog.replace("\b\n", ""), re.MULTILINE):
        lines = (re.sub(r"^ {12,}", "# ", line[2:]) for line in block.splitlines())
        yield head, "\n".join(re.sub(r"(?<=\S) {3,}(?=\S)", "  # ", line) for line in lines)


# Markdown

_WORDS = re.compile(  # those that are shown as code: a command, an option, a setting, a path, a file or its ending
    rf"(\bmidst (?:{'|'.join(COMMANDS)})\b(?: (?:{'|'.join(COMMANDS)}|--?[a-z]\S*\w))?"
    r"|(?<![\w-])--?[a-z][\w-]*|(?<!\S)[A-Za-z][\w/]*[:=](?:[\w.][\w.,:=+-]*)?\w|(?<![\w/])[$~.]?\w*/(?:[\w./]*[\w/])?|(?<!\w)\w*\.(?:crt|csv|graphml|json|key|npz|parquet|toml|tsv)\b)"
)


def write_pages(folder: Path) -> None:
    """The pages of all commands, into a folder of their own; what is there and has not changed is left alone."""
    folder.mkdir(exist_ok=True)
    pages = make_pages()
    for path in set(folder.glob("*.md")) - {folder / name for name in pages}:
        path.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


def make_pages() -> dict[str, str]:
    """Every page by its file name: an index, and one for each command and the commands below it."""
    whole = read_commands()
    names = [one.path.split()[-1] for one in whole.commands]
    rows = "\n".join(f"| {_words(one.path)} | {_words(one.summary)} |" for one in whole.commands)
    codes = "\n".join(f"| {code} | {_words(told)} |" for code, told in EXIT_CODES.items())
    contents = "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```"
    index = [
        "# The commands",
        *map(_words, whole.text),
        f"```text\n{whole.usage}\n```",
        f"| command | |\n|---|---|\n{rows}",
        "## Options",
        *_option_blocks(whole),
        f"## Exit codes\n\n| code | |\n|---|---|\n{codes}",
        contents,
    ]
    pages = {f"{name}.md": _page(one) for name, one in zip(names, whole.commands, strict=True)}
    return {"index.md": "\n\n".join(index) + "\n"} | pages


def _page(command: Command) -> str:
    end = "Exit codes are [those of all commands](index.md#exit-codes)."
    return "\n\n".join([*_sections(command, 1), end]) + "\n"


def _sections(command: Command, level: int) -> Iterator[str]:
    yield f"{'#' * level} {command.path}"
    yield from map(_words, command.text)
    if not command.commands:
        yield f"```text\n{command.usage}\n```"
    if command.options:
        yield f"{'#' * (level + 1)} Options" if level == 1 else "**Options**"
        yield from _option_blocks(command)
    if command.examples:
        yield "## Examples"
    for head, code in command.examples:
        if not head.startswith("Example"):
            yield f"{_words(head)}:"
        yield f"```{'sh' if 'midst ' in code else 'toml'}\n{code}\n```"
    for one in command.commands:
        yield from _sections(one, level + 1)


def _option_blocks(command: Command) -> Iterator[str]:
    yield f"```{{program}} {command.path}\n```"
    for one in command.options:
        told = [_words(one.text)] if one.text else []
        for extra in one.extra:
            what, _, value = extra.partition(": ")
            told.append(f"Default: `{value}`." if value else "**Required.**" if what == "required" else f"`{what}`.")
        yield f"```{{option}} {one.names.replace(' / ', ', ')}\n{' '.join(told)}\n```"


def _words(text: str) -> str:
    """A text of the help as Markdown."""
    parts = (_code(part) if k % 2 else _escape(part) for k, part in enumerate(_WORDS.split(text)))
    return "".join(parts)


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>$|])", r"\\\1", text)


def _code(word: str) -> str:
    match word.split():
        case ["midst", name, *_]:
            return f"[`{word}`]({name}.md)"
    return f"`{word}`"
