"""A transport by its name, and the largest frame that it must carry."""

from __future__ import annotations
