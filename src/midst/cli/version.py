"""`midst --version`: the version on a line of its own, for programs; then Python, and which extras are there.

Rules:
- No extra is imported: what is installed is read off the metadata of the packages.
- An extra counts as there if all that it asks for is, and recent enough.
"""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

from midst._version import __version__

_WHOLE = ("all", "test")  # made up of others
_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[[\w,-]*\])?(?:>=([\d.]+))?.*\bextra == ['"]([\w-]+)['"]""")


def describe_version() -> str:
    """What to print, in lines."""
    lines = [f"midst {__version__}", f"Python {platform.python_version()}"]
    try:
        missing = find_extras("midst")
    except PackageNotFoundError:
        return "\n".join([*lines, "extras: not known, since midst is not installed as a package"])
    there = [name for name, what in missing.items() if not what]
    lines += [f"extras: {', '.join(there)}"] if there else []
    lines += [f"without {name}: {'; '.join(what)}" for name, what in missing.items() if what]
    return "\n".join(lines)


def find_extras(package: str) -> dict[str, list[str]]:
    """Every extra of a package that is installed, and what it misses, in words.

    Raises:
        PackageNotFoundError: the package is not installed.
    """
    missing: dict[str, list[str]] = {}
    for line in requires(package) or []:
        found = _REQUIREMENT.match(line)
        if found is None or found[3] in _WHOLE:
            continue
        name, least, extra = found.groups()
        missing.setdefault(extra, [])
        try:
            there = version(name)
        except PackageNotFoundError:
            missing[extra].append(f"{name} is not installed")
        else:
            if least is not None and _numbers(there) < _numbers(least):
                missing[extra].append(f"{name} {there} is older than {least}")
    return missing


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with, without zeros at its end."""
    found = re.match(r"[\d.]*", text)
    numbers = [int(one) for one in (found[0] if found else "").split(".") if one]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
