"""What a running participant tells whoever watches it."""

from __future__ import annotations
