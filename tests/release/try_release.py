"""Builds what is published, and tries it as a stranger would: a new environment, nothing of this checkout but the file.

    python tests/release/try_release.py     # what `make dist` does; leaves the files in dist/

Rules:
- Both files, on every Python that midst is for and that is found: on the path, of pyenv, of uv. Those not found are
  named.
- The sdist is built by pip in isolation, from what pyproject.toml says that it needs.
- The steps of deploy/Containerfile are taken too (`try_container.py`).
- Dependencies are the newest that pip finds, as whoever installs midst gets them: no constraints.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from try_container import try_container

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
LOOK = """
import sys
from pathlib import Path
from importlib.resources import files
package = files("midst")
assert "site-packages" in str(package), package
vendor = {one.name for one in (package / "explorer/static/vendor").iterdir()}
for path in ["py.typed", "__init__.pyi", "explorer/static/index.html", "explorer/static/main.js"]:
    assert (package / path).is_file(), path
libraries = {name.split(".")[0] for name in vendor if name.endswith(".js")}
assert libraries and {f"{name}.LICENSE" for name in libraries} <= vendor, vendor
assert (Path(sys.prefix) / "share/man/man1/midst-node.1").is_file()
"""


def main() -> int:
    """Builds, tries, and says how it went; 1 if anything failed."""
    built = build(ROOT, ROOT / "dist")
    found = dict(find_pythons())
    failed = False
    for version, python in found.items():
        for file in built:
            began = time.monotonic()
            problem = try_file(file, python)
            failed |= problem is not None
            told = problem or f"works ({time.monotonic() - began:.0f} s)"
            print(f"Python {version}, {file.name}: {told}", flush=True)
    if found:
        python = found.get("3.13") or next(iter(found.values()))
        problem = try_container(ROOT, python)
        failed |= problem is not None
        print(f"the steps of deploy/Containerfile: {problem or 'work'}", flush=True)
    missing = [version for version in VERSIONS if version not in found]
    if missing:
        print(f"not found, and not tried: Python {', '.join(missing)}")
    return 1 if failed or not found else 0


def build(source: Path, target: Path) -> list[Path]:
    """The wheel and the sdist of a checkout, in a folder that has no others then."""
    for old in target.glob("midst-*"):
        old.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    return [*target.glob("midst-*.whl"), *target.glob("midst-*.tar.gz")]


def find_pythons() -> Iterator[tuple[str, str]]:
    """Every version that midst is for, and where it is; those that cannot be found are left out."""
    for version in VERSIONS:
        for path in _places(version):
            told = subprocess.run([path, "--version"], capture_output=True, text=True)  # a shim may lead nowhere
            if told.returncode == 0 and told.stdout.startswith(f"Python {version}."):
                yield version, path
                break


def _places(version: str) -> Iterator[str]:
    if path := shutil.which(f"python{version}"):
        yield path
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True).stdout.strip()
        yield from map(str, Path(root).glob(f"versions/*/bin/python{version}"))
    if shutil.which("uv"):
        asked = ["uv", "python", "find", "--no-python-downloads", version]
        yield from subprocess.run(asked, capture_output=True, text=True).stdout.split()


def try_file(file: Path, python: str) -> str | None:
    """What is wrong with a file, installed on a Python by itself; None if nothing is."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

        def run(*command: str | Path, env: dict[str, str] = outside) -> str:
            done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=600)
            if done.returncode:
                asked = " ".join([Path(command[0]).name, *map(str, command[1:])])
                raise AssertionError(f"{asked}:\n{done.stderr[-2000:]}")
            return done.stdout

        try:
            run(python, "-m", "venv", place / "env")
            own, midst = place / "env/bin/python", place / "env/bin/midst"
            run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file)
            run(own, "-c", LOOK)
            version = run(midst, "--version").splitlines()[0]
            assert version == f"midst {_version_of(file)}", version
            both = json.loads(run(midst, *"run --graph ring --nodes 5 --method both --seed 1 --json".split()))
            assert both["search"]["value"] == both["consensus"]["value"], "the methods differ"
            run(midst, *"up --graph ring --nodes 3 --method search".split())
            asked = outside | {"_MIDST_COMPLETE": "bash_source"}
            assert "_MIDST_COMPLETE=bash_complete" in run(midst, env=asked)
        except AssertionError as error:
            return str(error)
    return None


def _version_of(file: Path) -> str:
    found = re.match(r"midst-(.*?)(?:-py3-none-any\.whl|\.tar\.gz)$", file.name)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    sys.exit(main())
