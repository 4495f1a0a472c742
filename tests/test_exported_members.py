"""The public surface, pinned: adding or removing a name is a decision."""

from __future__ import annotations

import subprocess
import sys

import pytest

import midst

NAMES = """
    Aborted Adversary After Certified Consensus Exact Graph InputError Mean MidstError NotCertified Paper Problem
    Quantile Result Search Trace __version__ audit compare describe dp federated graphs information max mean median
    min priors quantile solve solve_ensemble
""".split()


def test_public_names():
    assert midst.__all__ == dir(midst) == NAMES
    for name in NAMES:
        assert getattr(midst, name) is not None


def test_names_lead_to_what_they_say():
    assert midst.max([3.0, 1.0, 2.0], graph="complete", rng=7).value == 3.0
    assert midst.min([3.0, 1.0, 2.0], graph="complete", rng=7).value == 1.0
    assert midst.priors.__name__ == "midst.privacy.priors"
    assert midst.solve.__name__ == "solve"


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        midst.nothing  # noqa: B018


def test_import_is_light():
    code = "import midst, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
