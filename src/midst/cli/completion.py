"""`midst completion`: the script by which a shell completes commands, options, files and names.

Rules:
- It is printed, never installed: where it belongs is the user's to say.
- What is completed is asked of `midst` itself at every Tab, with `_MIDST_COMPLETE` in the environment; nothing heavy is
  imported for that.
"""

from __future__ import annotations

import click

_EXAMPLES = """\b
In ~/.bashrc, for bash 4.4 or later:
  source <(midst completion bash)
\b
In ~/.zshrc, after compinit:
  source <(midst completion zsh)
\b
Once, for fish:
  midst completion fish > ~/.config/fish/completions/midst.fish"""


@click.command(epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script by which a shell completes what you type.

    It completes commands, options and what they choose from, files, kinds of graphs, and after --name the participants
    of the charter that was given before it.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from midst.cli import main

    kind = get_completion_class(shell)
    assert kind is not None, "click has all three"
    click.echo(ShellComplete.source(kind(main, {}, "midst", "_MIDST_COMPLETE")))  # without looking for a shell here
