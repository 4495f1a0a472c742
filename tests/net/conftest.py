"""Three neighbours in a row, for the tests of transports."""

from __future__ import annotations

from pathlib import Path

import pytest
from parties import Party, make_party


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Party:
    """Their keys, which take a while to make."""
    return make_party(tmp_path_factory.mktemp("keys"), [(0, 1), (1, 2)])


@pytest.fixture
def party(keys: Party, tmp_path: Path) -> Party:
    """Alice, bob and carol, at new addresses; alice dials bob, and bob carol."""
    return make_party(tmp_path, [(0, 1), (1, 2)], identities=keys.identities)
