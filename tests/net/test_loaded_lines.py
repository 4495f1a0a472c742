"""How much of midst a node needs, for whoever has to read all that runs with a private value."""

from __future__ import annotations

from pathlib import Path

from loaded_lines import loaded_lines

MOST = 13_000  # lines
ONLY_IF_ASKED_FOR = {
    "the iteration": ("net/iteration.py", "net/lockstep.py", "net/exact_finish.py", "system.py", "problems.py"),
    "arrays": ("net/tree_sums.py", "protocol/vectors/"),
    "noise": ("protocol/noise.py", "dp/"),
    "statistics": ("statistics.py",),
    "records of a run": ("trace.py", "cli/own_record.py", "privacy/"),
    "what only simulations need": ("engines/", "solving.py", "studies/", "plots/", "explorer/"),
}


def test_a_plain_search_loads_what_it_needs(tmp_path: Path) -> None:
    found = loaded_lines(tmp_path)
    assert "protocol/search.py" in found
    assert sum(found.values()) <= MOST, "python tests/net/loaded_lines.py lists them"
    for what, modules in ONLY_IF_ASKED_FOR.items():
        assert not [path for path in found if path.startswith(modules)], what
