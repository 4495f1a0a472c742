"""Ledgers whose digests cost nothing."""

from __future__ import annotations

import pytest

from midst.dp import ledger as module


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    monkeypatch.setattr(module, "_WORK", 2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "salary.json"
