"""The public surface, pinned: adding or removing a name is a decision."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import midst

PUBLIC = """
    Adversary After Certificate Certified Consensus Density EnsembleResult Exact Graph InputError Laplace Leakage Ledger
    Mean MidstError MissingExtra Normal NotCertified Problem Quantile Reconstruction Result Samples Search Trace
    TraceError Uniform View __version__ audit federated graphs load_trace maximum mean median minimum priors quantile
    reconstruct solve solve_ensemble view
""".split()


def test_public_names():
    assert sorted(midst.__all__) == PUBLIC
    assert dir(midst) == PUBLIC
    for name in PUBLIC:
        assert getattr(midst, name) is not None


def test_type_checkers_see_the_names_that_there_are():
    """Names are loaded when first used, so a type checker reads them from a list of its own."""
    (block,) = (node for node in ast.parse(Path(midst.__file__).read_text()).body if isinstance(node, ast.If))
    seen = [alias.asname or alias.name for line in block.body for alias in line.names]
    assert sorted([*seen, "__version__"]) == PUBLIC


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        midst.nothing  # noqa: B018


def test_import_is_light():
    code = "import midst, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
