"""What several commands ask for in the same words: a graph, and public bounds; what a shell may offer for it.

Nothing is given in vain: what would be of no effect is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from midst.errors import InputError

if TYPE_CHECKING:
    from numpy.random import Generator

    from midst.graphs import Graph
    from midst.objectives import Definition
    from midst.plots.style import Width

# As in `graphs` and `objectives`, which take time to load (`tests/cli/test_run.py` compares them).
KINDS = ("ring", "complete", "path", "star", "tree", "grid", "rgg", "er", "ws", "ba", "regular")
GRAPH_HELP = f"""A kind ({", ".join(KINDS)}), with options as in
rgg:radius=0.4 or ws:k=4,p=0.1; or a file: a list of edges, .graphml, .npz."""
DEFINITIONS: tuple[Definition, ...] = ("inverted_cdf", "averaged_inverted_cdf", "inverted_cdf_high", "any")
DEFINITION_HELP = """Of two answers, the one that is meant: the low one (inverted_cdf, the default), their mean, the
high one, or any point between them, by the iteration."""
WIDTH_NAMES: tuple[Width, ...] = ("column", "page")  # as in `plots.style`
WIDTH_HELP = "Of the picture: one column of a journal of two (3.5 in), or its page (7.16 in). Default: for a screen."
MISSING_OPTION = click.option(
    "--missing",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="Of rows with a missing value: refuse the file, or drop them.",
)
CSV_OPTION = click.option(
    "--csv",
    "dialect",
    metavar="FORMAT",
    help="""Format of a CSV or a text: semicolon, which separates, with decimal commas; or such words as
"sep=tab decimal=, thousands=.". Default: commas separate, and points are the decimals.""",
)
_SWITCHES = {"true": True, "false": False}


def is_given(name: str) -> bool:
    """Whether an option of the command that runs was given, and not left to its default."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_given(names: Iterable[str], why: str) -> None:
    """Refuse options that would be of no effect.

    Args:
        names: as the command's function has them.
        why: what follows the option in the error: why, and what to try.

    Raises:
        InputError: one of them was given.
    """
    spelt = {option.name: option.opts[-1] for option in click.get_current_context().command.params}
    for name in names:
        if is_given(name):
            raise InputError(f"{spelt[name]} {why}")


def check_plot(path: Path | None, width: Width | None = None) -> None:
    """Refuse a picture that could not be written, and the width of none.

    Raises:
        InputError: it is so.
    """
    if path is None:
        if width is not None:
            raise InputError("--width is that of a picture; give --plot too")
        return
    from midst.plots.results import check_picture

    check_picture(path)


def parse_bounds(text: str | None) -> tuple[float, float] | None:
    """LO:HI as two numbers.

    Raises:
        InputError: it is not.
    """
    if text is None:
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        comma = ", and with points: 0.5:1.5" if "," in text else ""
        raise InputError(f"--bounds must be two numbers, LO:HI, such as 0:100{comma}") from None
    return low, high


def read_graph(spec: str, nodes: int | None, rng: Generator) -> Graph:
    """The graph of `KIND`, `KIND:name=number,…` or a file."""
    from midst import graphs

    kind, _, options = spec.partition(":")
    if kind not in KINDS and (Path(spec).exists() or "." in kind or "/" in kind):
        loaded = graphs.load(spec)
        if nodes is not None and nodes != loaded.n:
            raise InputError(f"{spec} has {loaded.n} nodes, not {nodes}; leave --nodes out, or give one value a node")
        return loaded
    if kind in KINDS and nodes is None:
        raise InputError(f"how many nodes has the {kind}? give --nodes or --values")
    return graphs.make(kind, nodes or 0, rng=rng, **_graph_options(kind, options))


def _graph_options(kind: str, text: str) -> dict[str, float]:
    options: dict[str, float] = {}
    for option in filter(None, text.split(",")):
        name, _, value = option.partition("=")
        try:
            options[name] = (
                _SWITCHES[value] if value in _SWITCHES else int(value) if value.isdecimal() else float(value)
            )
        except ValueError:
            raise InputError(f"--graph: {option!r} is not name=number; an example: rgg:radius=0.4") from None
        if name in ("kind", "n", "rng"):
            raise InputError(f"{kind} has no option {name!r}; use --nodes and --seed")
    return options


def offer_graphs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For the shell's completion: the kinds of graphs that begin so; files where none does."""
    found = [CompletionItem(kind) for kind in KINDS if kind.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def offer_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For the shell's completion: the participants of the charter given before; none if it cannot be read."""
    import tomllib

    charter = ctx.params.get("charter_file") or ctx.params.get("file") or next(iter(ctx.args), "")
    try:
        with open(Path(charter).expanduser(), "rb") as file:
            names = [str(one["name"]) for one in tomllib.load(file)["participants"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
