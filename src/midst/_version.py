"""The version, alone, so that the build and the command can read it without importing anything."""

__version__ = "0.1.0.dev0"
