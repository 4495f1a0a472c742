"""Without Flower."""

from __future__ import annotations

import sys

import pytest

from midst.errors import MissingExtra


def test_what_to_install_is_said(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "flwr"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flwr", None)
    monkeypatch.delitem(sys.modules, "midst.federated.flower", raising=False)
    with pytest.raises(MissingExtra, match=r"Flower is not installed; try: .*flower"):
        import midst.federated.flower  # noqa: F401
