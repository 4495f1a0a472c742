"""The command `midst`: one module a command, loaded only when it is called.

Rules:
- Nothing here imports NumPy, rich or a command: `midst --help` has to be instant.
- The answer goes to stdout. Everything else goes to stderr, and an error is one line there.
- An error never shows a private value: an exception nobody foresaw is reported by its type and place, not its message.
- Exit codes are those of `EXIT_CODES`; 1 also where midst has a bug.

A new command is one line in `COMMANDS` and a module with a click command named `command`.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from midst.errors import Aborted, MidstError, MidstWarning, NotCertified, closest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "run": ("midst.cli.run", "Find a median, a quantile or a mean over a graph."),
    "audit": ("midst.cli.audit", "Tell what a saved run gave away."),
    "attack": ("midst.cli.attack", "Estimate every value from what an adversary saw."),
    "plan": ("midst.cli.plan", "Compare search and consensus: rounds, exposure, bits."),
    "compare": ("midst.cli.compare", "Compare ways to a median, in one table."),
    "sweep": ("midst.cli.sweep", "Run the same experiment over a grid of settings."),
    "paper": ("midst.cli.paper", "Reproduce the paper's figures, and say which of its claims hold."),
    "ledger": ("midst.cli.ledger", "Keep account of what repeated runs give away about one datum."),
    "explore": ("midst.cli.explore", "Watch runs on a page: who is exposed, and when."),
    "up": ("midst.cli.up", "Start a whole network on this machine, over TLS, to see it work."),
    "node": ("midst.cli.node", "Take part in a run as one participant."),
    "verify": ("midst.cli.verify", "Check the result of a run, without a network."),
    "keys": ("midst.cli.keys", "Make keys and certificates, and say whom you trust."),
    "charter": ("midst.cli.charter", "Write, check and explain what the participants agree on."),
    "doctor": ("midst.cli.doctor", "Check whether a participant could take part now, and what to fix."),
}

EXIT_CODES = {
    0: "done",
    1: "the system failed, such as a full disk",
    2: "bad input; nothing was run or written",
    3: "the run ended without a proof of its answer",
    4: "a run between participants was aborted; says because of whom",
    130: "interrupted",
    143: "paused by SIGTERM; the same command goes on",
}
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {told}" for code, told in EXIT_CODES.items())


class Commands(click.Group):
    """The commands of the table, and the one place where an exception becomes an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, from the table, so that no command is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What a shell offers: from the table, so that no command is imported for it; and options."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=told) for name, (_, told) in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run a command and exit; without arguments, show the help."""
        extra |= {"prog_name": "midst", "standalone_mode": False}
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # an old code page has no σ, and that is no reason to fail
        _say_warnings()
        try:
            code = super().main(list(sys.argv[1:] if args is None else args) or ["--help"], **extra)
        except Exception as error:
            if os.environ.get("MIDST_DEBUG"):
                raise
            message, code = explain(error)
            click.echo(f"midst: {' '.join(message.split())}", err=True)
        sys.exit(code)


def explain(error: Exception) -> tuple[str, int]:
    """What to say about an exception, and the exit code."""
    match error:
        case click.Abort():
            return "interrupted", 130
        case NotCertified():
            return f"error: {error}", 3
        case Aborted(kind="paused"):
            return f"paused: {error}", 143
        case Aborted():
            return f"aborted: {error}", 4
        case MidstError():
            return f"error: {error}", 2
        case click.ClickException():
            asked = getattr(error, "ctx", None)
            path = asked.command_path if asked else "midst"
            message = error.format_message().rstrip(".")
            message += "" if "Did you mean" in message else _meant(error)
            if "unexpected extra argument" in message:  # it may be a private value, and click would repeat it
                message = "unexpected extra argument; a value is given by file, command or standard input"
            return f"error: {message} (see {path} --help)", 2
        case MemoryError():
            return "error: out of memory; try fewer nodes, or --record audit", 1
        case OSError(strerror=str(reason)):
            return f"error: {f'{error.filename}: ' if error.filename else ''}{reason}", 1
        case _:
            where = _place(error.__traceback__)
            return f"error: unexpected {type(error).__name__} at {where}; run with MIDST_DEBUG=1 for the traceback", 1


def _meant(error: click.ClickException) -> str:
    """The command or the choice that is nearest to what was given, or how to write it; of options click says it."""
    message, asked = getattr(error, "message", ""), getattr(error, "ctx", None)
    if found := re.fullmatch("No such command '(.+)'\\.?", message):
        assert asked is not None, "a command is looked for in a group"
        return closest(found[1], asked.command.list_commands(asked))
    kind = getattr(getattr(error, "param", None), "type", None)
    if isinstance(kind, click.Choice) and (found := re.match("'(.+)' is not one of", message)):
        return closest(found[1], map(str, kind.choices))
    return "; write a point, as in 0.5" if re.match("'[-+\\d]*,\\d+' is not a valid float", message) else ""


def _say_warnings() -> None:
    """From now on a warning of midst's is one line, as an error is; others are shown as ever."""
    show = warnings.showwarning

    def say(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, MidstWarning):
            click.echo(f"midst: warning: {message}", err=True)
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = say


def _place(trail: TracebackType | None) -> str:
    """File and line of the innermost frame that is midst's own."""
    package = os.path.dirname(os.path.dirname(__file__))
    place = "an unknown place"
    while trail is not None:
        file = trail.tb_frame.f_code.co_filename
        if file.startswith(package + os.sep):
            place = f"{os.path.relpath(file, os.path.dirname(package))}:{trail.tb_lineno}"
        trail = trail.tb_next
    return place


def _show_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from midst.cli.version import describe_version

        click.echo(describe_version())
        ctx.exit()


@click.group(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and which extras are there.",
)
def main() -> None:
    """The median from the midst of the network.

    Parties that only talk to their neighbours in a graph find the exact median of their private numbers, and are told
    who gave theirs away on the way.
    """
