"""Rows as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """One line a row; the heads are the first row's names."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([shown(part) for part in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown(part: object) -> str:
    """A figure, short."""
    if part is None:
        return ""
    if isinstance(part, float):
        return f"{part:.3g}" if abs(part) < 1000 else f"{part:,.0f}"
    return f"{part:,}" if isinstance(part, int) else str(part)
