"""Draws the rooms of the package and what each imports, from the code's own import statements.

    python docs/rooms.py          # writes docs/pictures/rooms.svg
    python docs/rooms.py --check  # exit code 1 if that picture is out of date

Rooms are the packages and modules directly under src/midst, from those that import nothing, at the bottom, to the
commands, at the top. The order is that of tests/test_rooms.py, which refuses an arrow that points up, but for what it
lists: drawn dashed.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "midst"
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
SMALL = {
    *(
        "__init__",
        "__main__",
        "_version",
        "errors",
        "machine",
        "types",
        "files",
        "workers",
        "rows",
        "frames",
        "progress",
    )
}  # what everybody uses

_BOX, _GAP, _LEFT, _WIDTH = 22, 12, 20, 110


def find_rooms() -> dict[str, set[str]]:
    """Each room, and the rooms that it imports when it is loaded or when it runs; not those for a type checker only."""
    rooms: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room not in SMALL:
            tree = _without_type_checking(ast.parse(path.read_text(encoding="utf-8")))
            rooms.setdefault(room, set()).update(_imports(tree) - SMALL - {room})
    return rooms


def _imports(tree: ast.AST) -> set[str]:
    found = set()
    for line in ast.walk(tree):
        if isinstance(line, ast.ImportFrom) and line.module and line.module.split(".")[0] == "midst":
            parts = line.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in line.names}
    return found


def _without_type_checking(tree: ast.Module) -> ast.Module:
    tree.body = [
        line for line in tree.body if not (isinstance(line, ast.If) and "TYPE_CHECKING" in ast.unparse(line.test))
    ]
    return tree


def read_order() -> list[str]:
    """The order that the test enforces, lowest first."""
    tree = ast.parse((ROOT / "tests" / "test_rooms.py").read_text(encoding="utf-8"))
    for line in tree.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "ORDER":
            assert isinstance(line.value, ast.Call)
            assert isinstance(line.value.func, ast.Attribute)
            return str(ast.literal_eval(line.value.func.value)).split()
    raise SystemExit("tests/test_rooms.py has no ORDER")


def draw(rooms: dict[str, set[str]], order: list[str]) -> str:
    """A box a room, and an arc from each to those it imports; the longer, the further out."""
    shown = [room for room in reversed(order) if room in rooms]
    top = {room: 10 + k * (_BOX + _GAP) for k, room in enumerate(shown)}
    middle = {room: at + _BOX / 2 for room, at in top.items()}
    reach = 14 * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + reach + 20}" '
        f'height="{20 + len(shown) * (_BOX + _GAP)}" font-family="sans-serif" font-size="12">',
        "<title>The rooms of midst, and what each imports</title>",
        '<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#555"/></marker></defs>',
    ]
    right = _LEFT + _WIDTH
    for room in shown:
        for other in sorted(rooms[room] & set(shown), key=shown.index):
            out = right + 14 * abs(shown.index(room) - shown.index(other))
            style = 'stroke="#999"' if middle[other] > middle[room] else 'stroke="#d55e00" stroke-dasharray="4 3"'
            parts.append(
                f'<path d="M{right},{middle[room]:g} C{out},{middle[room]:g} {out},{middle[other]:g} '
                f'{right + 2},{middle[other]:g}" fill="none" {style} marker-end="url(#tip)"/>'
            )
    parts += [
        f'<rect x="{_LEFT}" y="{top[room]}" width="{_WIDTH}" height="{_BOX}" rx="4" fill="#e8f1f8" '
        f'stroke="#0072b2"/><text x="{_LEFT + _WIDTH / 2:g}" y="{top[room] + 15}" text-anchor="middle">{room}</text>'
        for room in shown
    ]
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str]) -> int:
    """Write the picture, or compare it."""
    rooms, order = find_rooms(), read_order()
    picture = draw(rooms, order)
    if "--check" in arguments:
        return int(not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture)
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
