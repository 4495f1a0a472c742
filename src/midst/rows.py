"""Facts as rows for people, (what, how much): as text, and as HTML where a notebook asks for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape

Rows = Sequence[tuple[str, str]]

_NAMED = 12  # so many nodes are named


def as_text(rows: Rows) -> str:
    """In two columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:>{width}}  {text}" for name, text in rows)


def as_html(rows: Rows) -> str:
    """As a table."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{cells}</table>"


class Report(ABC):
    """What people read as lines, and as a table where a notebook shows it."""

    @abstractmethod
    def rows(self) -> list[tuple[str, str]]:
        """The report as lines for people: (what, how much)."""

    def __repr__(self) -> str:
        return as_text(self.rows())

    def _repr_html_(self) -> str:
        return as_html(self.rows())


def count_named(names: Iterable[str], of: int, what: str) -> str:
    """How many of all these are, and which; of many the first.

    >>> count_named(["3", "8"], 15, "nodes")
    '2 of 15 nodes: 3, 8'
    """
    names = list(names)
    who = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    return f"{len(names)} of {of} {what}" + (f": {who}" if names else "")
