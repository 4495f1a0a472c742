"""Rooms and words: `python rename.py TREE [step …]`, or `--table` for the changelog; steps are rooms, words, surface (all of them if none is named).

Runs on any checkout of midst. Prints, with a `!`, every rule that found nothing and every collision that it refused,
and goes on; the last line counts them. Nothing is committed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from engine import (
    Homes,
    Rule,
    Tree,
    apply_symbols,
    apply_texts,
    apply_words,
    check_planted,
    copy_new,
    edit,
    load_planted,
    move_definitions,
    move_files,
    move_planted,
    rewrite_dotted,
    rewrite_imports,
    save_planted,
    tidy,
    use_shared_aliases,
)
from rules_rooms import *  # noqa: F403
from rules_words import *  # noqa: F403

HERE = Path(__file__).parent
STEPS = ("rooms", "words", "surface")


def rooms(tree: Tree) -> None:
    if not any((tree.root / old).exists() for old, _ in MOVES if old != "src/midst/plots.py"):
        tree.say("rooms: everything has moved already")  # `midst.plots` was a module and is a room now: not twice
        return
    move_files(tree, MOVES, OPTIONAL_MOVES)
    move_planted(tree, [*MOVES, *OPTIONAL_MOVES])
    copy_new(tree, HERE / "new", over=OVERWRITTEN)
    homes = Homes(module_map(tree), {**NAMES, **definition_map()})
    rewrite_imports(tree, homes)
    for old, names, new in DEFINITIONS:
        move_definitions(tree, old, names, new)
    rewrite_imports(tree, Homes({}, definition_map()))  # imports that moved along with a definition
    rewrite_dotted(tree, homes, keep=lambda name: name == "CHANGELOG.md")
    load_planted(tree)
    edit(tree, ROOM_EDITS)
    save_planted(tree)
    use_shared_aliases(tree, "midst.types", ALIASES, SYNONYMS, only_defined=["Branch"])
    rewrite_imports(tree, Homes({}, NAMES))
    tidy(tree)
    fill_init(tree)
    tidy(tree)
    check_planted(tree)


def words(tree: Tree) -> None:
    load_planted(tree)
    edit(tree, WORD_EDITS_BEFORE)
    apply_symbols(tree, SYMBOLS)
    apply_words(tree, WORDS)
    apply_texts(tree, TEXTS)
    edit(tree, WORD_EDITS)
    save_planted(tree)
    tidy(tree)
    check_planted(tree)


def surface(tree: Tree) -> None:
    copy_new(tree, HERE / "new", over=["tests/test_exported_members.py"])
    rewrite_surface(tree)
    tidy(tree)
    load_planted(tree)
    for bug in tree.planted:
        if bug.file == "__init__.py":  # a public name is missing
            bug.file, bug.old, bug.new = "__init__.pyi", "from midst.methods import Exact as Exact\n", ""
    save_planted(tree)
    check_planted(tree)


def table() -> None:
    """Old and new names, for the changelog."""
    print("| was | is |\n|---|---|")
    for old, new in [*MOVES, *OPTIONAL_MOVES]:
        if old.startswith("src/"):
            print(f"| `{old.removeprefix('src/midst/')}` | `{new.removeprefix('src/midst/')}` |")
    for old, names, new in DEFINITIONS:
        for name in names:
            print(f"| `{old}.{name}` | `{new}.{name}` |")
    for symbol in SYMBOLS:
        print(f"| `{symbol.module}.{symbol.old}` | `{symbol.new}` |")
    for rule in WORDS:
        where = ", ".join(path.removeprefix("src/midst/") for path in rule.where if path.startswith("src/"))
        print(f"| `{rule.old}` in {where or 'tests'} | `{rule.new}` |")
    for name, home in ONE_LEVEL_DOWN.items():
        print(f"| `midst.{name}` | `{home.replace(':', '.')}{'' if ':' in home else '.' + name}` |")
    print("| `midst.maximum`, `midst.minimum` | `midst.max`, `midst.min` |")


def main() -> int:
    if sys.argv[1:] == ["--table"]:
        table()
        return 0
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    tree = Tree(Path(sys.argv[1]).resolve())
    for name in sys.argv[2:] or STEPS:
        print(f"== {name}")
        globals()[name](tree)
    print(f"{len(tree.complaints)} complaints")
    return 1 if tree.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
