"""Dependencies point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import midst

ROOT = Path(midst.__file__).parent
ORDER = """
    _version errors machine types files workers rows frames progress columns graphs objectives robust protocol normals
    problems system methods algorithms statistics disclosure trace result recorder net privacy engines dp solving
    contracts describing federated baselines plots studies explorer cli __main__
""".split()
SIDEWAYS = {
    ("trace", "plots"),
    ("result", "plots"),
    ("privacy", "plots"),
    ("engines", "plots"),
    ("result", "explorer"),
    ("result", "privacy"),
    ("describing", "plots"),
    ("errors", "result"),
    ("plots", "studies"),
}  # on call, or for a type checker only


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "midst":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def test_every_module_imports_only_what_comes_before_it():
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        assert room in ORDER, f"{room} has no place in the order"
        for other in imports(path):
            ok = other == room or ORDER.index(other) < ORDER.index(room) or (room, other) in SIDEWAYS
            assert ok, f"{path.relative_to(ROOT)} imports {other}, which comes after it"


def test_the_picture_of_the_rooms_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT.parents[1] / "docs" / "rooms.py", "--check"])
    assert done.returncode == 0, "python docs/rooms.py draws it anew"
