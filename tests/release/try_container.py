"""Takes the steps of deploy/Containerfile one by one, in a folder that stands for the image, and runs its entry point.

Rules:
- COPY, RUN and ENV are those of the file; /opt and /var are led into the folder, and the user is whoever runs this.
- The node must write to the volume and nowhere else: then the image can be read-only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from containerfile import Stage, read_stages, words_of


def try_container(source: Path, python: str) -> str | None:
    """What is wrong with the steps of the Containerfile, or with the node that they lead to; None if nothing is."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            stages = read_stages(source / "deploy/Containerfile")
            image, env = make_image(stages, source, python, Path(scratch))
            before = _files(image)
            [entry] = words_of(stages[-1].one("ENTRYPOINT"))
            _run_node(shutil.which(entry, path=env["PATH"]) or "", image, env, Path(scratch) / "host")
            changed = {path for path, told in _files(image).items() if before.get(path) != told}
            assert changed, "the node has left no journal on the volume"
            beside = {path for path in changed if not path.startswith("var/lib/midst")}
            assert not beside, f"written beside the volume: {sorted(beside)[:5]}"
        except (AssertionError, subprocess.SubprocessError) as error:
            return str(error)
    return None


def make_image(stages: list[Stage], source: Path, python: str, scratch: Path) -> tuple[Path, dict[str, str]]:
    """A folder with what the image would hold, and the environment in it.

    Every stage is made in the same folder, so that paths within it stay right when a later one copies from it.
    """
    root, done, env = scratch / "root", {}, {}
    user = stages[-1].one("USER")
    (scratch / "bin").mkdir()
    (scratch / "bin/python").symlink_to(shutil.which(python) or python)
    for stage in stages:
        (root / "var/lib").mkdir(parents=True)
        place, env = root, {"PATH": f"{scratch}/bin:/usr/bin:/bin"} | _passed_on()
        for kind, text in stage.steps:
            match kind:
                case "WORKDIR":
                    place = root / text.lstrip("/")
                    place.mkdir(parents=True)
                case "COPY":
                    *names, target = text.split()
                    start = done[names.pop(0).removeprefix("--from=")] if names[0].startswith("--from=") else source
                    there = root / target.lstrip("/") if target.startswith("/") else place / target
                    _copy([start / name.lstrip("/") for name in names], there)
                case "RUN":
                    line = re.sub(r"(?<![\w./])/(?=(?:opt|var)/)", f"{root}/", text)
                    _check([*"/bin/sh -euc".split(), line.replace(user, f"{os.getuid()}:{os.getgid()}")], place, env)
                case "ENV":
                    for name, value in stage.environment.items():
                        led = re.sub(r"/(?=(?:opt|var)/)", f"{root}/", value)
                        env[name] = led.replace("$PATH", env["PATH"])
        done[stage.name] = root.rename(scratch / f"stage-{stage.name or 'last'}")
    return done[""].rename(root), env


def _passed_on() -> dict[str, str]:
    """What pip has to know of this machine."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name == "HOME"}


def _copy(sources: list[Path], there: Path) -> None:
    """As COPY does: a folder's content, or files into a folder."""
    for path in sources:
        if path.is_dir():
            shutil.copytree(path, there, symlinks=True, dirs_exist_ok=True)
        else:
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, there)


def _check(command: list[str], place: Path, env: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stderr[-2000:]}"


def _files(root: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in root.rglob("*")
        if not path.is_dir()
    }


def _run_node(midst: str, image: Path, env: dict[str, str], host: Path) -> None:
    """A node, until it has its journal and waits; then SIGTERM, which is a pause."""
    assert midst == f"{image}/opt/midst/bin/midst", midst
    host.mkdir()
    names = ("alice", "bob", "carol")
    for name in names:
        _check([midst, "keys", "init", name], host, env)
    _check([midst, "keys", "trust", "keys/bob.crt", "keys/carol.crt"], host, env)
    ends = [f"keys/{name}.crt@127.0.0.1:{7001 + k}" for k, name in enumerate(names)]
    new = "charter new --session s1 --method search --graph ring --bounds 0:100 --out charter.toml".split()
    _check([midst, *new, *ends], host, env)
    (host / "value").touch(mode=0o600)
    (host / "value").write_text("42\n")
    node = "node --charter charter.toml --name alice --key keys/alice.key --value-file value".split()
    process = subprocess.Popen([midst, *node], cwd=host, env=env, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(image.glob("var/lib/midst/*.journal")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 143, f"{process.returncode} and not 143 at SIGTERM: {told[-1000:]}"
