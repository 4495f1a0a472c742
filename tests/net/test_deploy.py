"""The files of `deploy/`: each is what it should be, and a network that is started from them finds its answer.

There is no systemd, no container engine and no cluster here. What they would do is done by hand: specifiers and
variables put in, files laid out as they lay them out, paths led to a scratch folder; the command lines are the files'.
"""

from __future__ import annotations

import http.server
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
from containerfile import Stage, read_stages, words_of
from parties import free_port
from processes import Network, Running, network, until

from midst.cli import main
from midst.graphs import complete

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MIDST = [sys.executable, "-m", "midst"]
SESSION = "pay-2026-11"


# Reading


def read_unit() -> dict[str, list[str]]:
    """Every setting of the unit, with its values."""
    text = (DEPLOY / "midst@.service").read_text().replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def read_image() -> Stage:
    """The last stage: what is run."""
    return read_stages(DEPLOY / "Containerfile")[-1]


def read_objects() -> dict[str, Any]:
    """The objects for Kubernetes, by kind."""
    found = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    objects = {one["kind"]: one for one in found}
    assert len(objects) == len(found)
    return objects


def read_pod() -> dict[str, Any]:
    pod: dict[str, Any] = read_objects()["Job"]["spec"]["template"]["spec"]
    return pod


def podman_run() -> tuple[list[str], list[str]]:
    """The example on the page: options of podman, and what the image is given."""
    page = (ROOT / "docs/deploy.md").read_text().replace("\\\n", " ")
    [line] = re.findall(r"^podman run (.*)$", page, re.MULTILINE)
    words = shlex.split(line)
    at = words.index("midst")
    return words[:at], words[at + 1 :]


def parse(arguments: list[str]) -> dict[str, Any]:
    """The parameters of a command line of `midst node`, parsed by the command itself."""
    assert arguments[0] == "node"
    command = main.get_command(click.Context(main), "node")
    assert command is not None
    return command.make_context("node", list(arguments[1:])).params


# What is in them


def test_the_unit_restarts_what_a_restart_can_help():
    unit = read_unit()
    assert unit["Restart"] == ["on-failure"]
    assert unit["RestartPreventExitStatus"] == ["2 3 4"]
    assert unit["SuccessExitStatus"] == ["143"]
    assert unit["LoadCredential"] == ["value:/etc/midst/%i/value"]
    assert "KillSignal" not in unit  # SIGTERM, which is a pause
    assert unit["User"] == ["midst"]


def test_systemd_reads_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    text = (DEPLOY / "midst@.service").read_text()
    (tmp_path / "midst@.service").write_text(text.replace("/opt/midst/bin/midst", sys.executable))
    asked = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "midst@.service")]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_image_holds_nothing_private_and_is_not_roots():
    first, last = read_stages(DEPLOY / "Containerfile")
    assert first.image == last.image
    for text in first.all("COPY"):
        *sources, _ = text.split()
        for source in sources:
            assert (ROOT / source).exists(), source
        assert "." not in sources, "no file of the checkout gets in that is not named"
    assert last.all("COPY") == ["--from=build /opt/midst /opt/midst"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last.one("USER"))
    assert set(last.environment) == {"PATH", "XDG_STATE_HOME", "PYTHONDONTWRITEBYTECODE"}
    assert last.one("VOLUME") == f"{last.environment['XDG_STATE_HOME']}/midst"
    assert (last.one("STOPSIGNAL"), last.one("ENTRYPOINT")) == ("SIGTERM", '["midst"]')
    assert not any(kind in ("ADD", "ARG", "EXPOSE") for kind, _ in (*first.steps, *last.steps))


@contextmanager
def serving(status: int | None) -> Iterator[int]:
    """A port that answers with a status, or takes a call and says nothing."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status or 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Not here."""

    if status is None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            yield silent.getsockname()[1]
        return
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (500, False), (None, False), ("nothing", True)])
def test_the_image_is_healthy_if_metrics_answer_or_are_not_asked_for(status, healthy):
    words = words_of(read_image().one("HEALTHCHECK").partition("CMD ")[2])

    def check(port: int) -> bool:
        code = words[2].replace("9464", str(port)).replace("timeout=4", "timeout=0.5")
        assert code.count(str(port)) == 1
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        return done.returncode == 0

    if status == "nothing":
        assert check(free_port()) == healthy
        return
    with serving(status) as port:
        assert check(port) == healthy


def test_the_example_of_podman_mounts_what_it_names():
    options, arguments = podman_run()
    given = parse(arguments)
    pairs = list(pairwise(options))
    targets = [value.split(":")[1] for option, value in pairs if option == "--volume"]
    assert "--read-only" in options
    assert read_image().one("VOLUME") in targets
    for path in (given["charter_file"], given["key_file"]):
        assert any(path.is_relative_to(target) for target in targets), path
    [told] = [value for option, value in pairs if option == "--secret"]
    secret = dict(part.partition("=")[::2] for part in told.split(","))
    assert given["value_file"] == Path("/run/secrets") / secret["target"]
    user, _, group = read_image().one("USER").partition(":")
    assert (secret["uid"], secret["gid"], secret["mode"]) == (user, group, "0400")
    assert f"keep-id:uid={user},gid={group}" in options


def test_the_pod_is_locked_down_and_fits_together():
    job, pod = read_objects()["Job"], read_pod()
    user, _, group = read_image().one("USER").partition(":")
    about = pod["securityContext"]
    assert (about["runAsUser"], about["runAsGroup"], about["fsGroup"]) == (int(user), int(group), int(group))
    assert (about["runAsNonRoot"], about["fsGroupChangePolicy"]) == (True, "OnRootMismatch")
    assert pod["automountServiceAccountToken"] is False
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes["own"]["emptyDir"]["medium"] == "Memory"
    assert {volumes[name]["secret"]["defaultMode"] for name in ("key", "value")} == {0o400}
    for one in (*pod["initContainers"], *pod["containers"]):
        assert one["securityContext"]["readOnlyRootFilesystem"] is True
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "env" not in one
        assert {mount["name"] for mount in one["volumeMounts"]} <= set(volumes)
    [node] = pod["containers"]
    assert {mount["name"] for mount in node["volumeMounts"]} == {
        "charter",
        "own",
        "state",
    }  # not the secrets themselves
    given = parse(node["args"])
    mounted = [mount["mountPath"] for mount in node["volumeMounts"]]
    for name in ("charter_file", "key_file", "value_file", "state", "out"):
        assert any(given[name].is_relative_to(path) for path in mounted), name
    ports = {one["name"]: one["containerPort"] for one in node["ports"]}
    assert (given["listen"], given["metrics"]) == (f"0.0.0.0:{ports['peers']}", f"0.0.0.0:{ports['metrics']}")
    assert {node[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {"metrics"}
    rules = job["spec"]["podFailurePolicy"]["rules"]
    assert (rules[0]["action"], rules[0]["onExitCodes"]["values"]) == ("FailJob", [2, 3, 4])
    assert rules[0]["onExitCodes"]["containerName"] == node["name"]
    assert pod["restartPolicy"] == "Never"  # which podFailurePolicy asks for
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert read_objects()["Service"]["spec"]["selector"].items() <= labels.items()
    assert read_objects()["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert (
        volumes["state"]["persistentVolumeClaim"]["claimName"]
        == read_objects()["PersistentVolumeClaim"]["metadata"]["name"]
    )


def test_what_the_page_creates_is_what_the_pod_mounts():
    page = (ROOT / "docs/deploy.md").read_text()
    made = set(re.findall(r"^kubectl create (?:configmap|secret generic) (\S+)", page, re.MULTILINE))
    asked = {
        one.get("configMap", {}).get("name") or one.get("secret", {}).get("secretName") for one in read_pod()["volumes"]
    }
    assert made == asked - {None}


# What they do


def start(net: Network, name: str, command: list[str], paths: Mapping[str, Path], env: Mapping[str, str]) -> Running:
    """A process of the network, by a command line of a file, with its paths led elsewhere."""
    words = []
    for word in command:
        for path, there in paths.items():
            word = re.sub(rf"(^|=){re.escape(path)}(?=/|$)", rf"\g<1>{there}", word)
        words.append(word)
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )
    net.started.append(Running(name, process))
    return net.started[-1]


def own(path: Path, text: str, mode: int = 0o600) -> Path:
    """A file, and the folders that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=mode)
    path.write_text(text)
    return path


class Systemd:
    """What systemd does with the unit for a session."""

    def __init__(self, net: Network, name: str, folder: Path, metrics: int) -> None:
        self.net, self.name, self.folder = net, name, folder
        shutil.copytree(net.key(name).parent, folder / "etc/keys")
        own(folder / f"etc/{SESSION}/charter.toml", net.charter_file.read_text())
        shutil.copy2(net.value_file(name), folder / f"etc/{SESSION}/value")
        own(folder / "etc/node.env", f"NAME={name}\n")
        own(folder / f"etc/{SESSION}/node.env", f"OPTIONS=--metrics 127.0.0.1:{metrics} --json\n")

    def start(self) -> Running:
        unit = {name: [value.replace("%i", SESSION) for value in values] for name, values in read_unit().items()}
        paths = {"/etc/midst": self.folder / "etc"}
        variables: dict[str, str] = {}
        for file in unit["EnvironmentFile"]:
            text = (self.folder / file.removeprefix("-").replace("/etc/midst", "etc")).read_text()
            variables |= dict(line.split("=", 1) for line in text.splitlines())
        credential, _, source = unit["LoadCredential"][0].partition(":")
        credentials = self.folder / "credentials"
        credentials.mkdir(exist_ok=True)
        shutil.copy2(self.folder / source.replace("/etc/midst", "etc"), credentials / credential)
        line = unit["ExecStart"][0].replace("%d", str(credentials)).replace("%S", str(self.folder / "var/lib"))
        line = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], line)
        words = [
            part for word in shlex.split(line) for part in (variables[word[1:]].split() if word[0] == "$" else [word])
        ]
        (self.folder / "var/lib" / unit["StateDirectory"][0]).mkdir(parents=True, exist_ok=True)
        assert words[0] == "/opt/midst/bin/midst"
        return start(self.net, self.name, [*MIDST, *words[1:]], paths, {})


def start_container(net: Network, name: str, folder: Path, port: int) -> Running:
    """What podman does with the image and the example on the page."""
    _, arguments = podman_run()
    image = read_image()
    paths = {"/charter.toml": net.charter_file, "/keys": net.key(name).parent, "/run/secrets": folder / "secrets"}
    shutil.copy2(net.value_file(name), own(folder / "secrets/value", ""))
    (folder / "secrets/value").chmod(0o400)
    words = [
        word.replace("alice", name).replace("7001", str(port)).replace("9464", str(free_port())) for word in arguments
    ]
    env = {"XDG_STATE_HOME": f"{folder}{image.environment['XDG_STATE_HOME']}"}
    assert words_of(image.one("ENTRYPOINT")) == ["midst"]
    return start(net, name, [*MIDST, *words, "--json"], paths, env)


def lay_out(folder: Path, files: Mapping[str, Path], mode: int) -> None:
    """Files as Kubernetes mounts them: in a hidden folder, with a link to it, and a link to each through that."""
    hidden = folder / "..2026_11_16_13_00_00.123456789"
    hidden.mkdir(parents=True)
    (folder / "..data").symlink_to(hidden.name)
    for name, source in files.items():
        shutil.copyfile(source, hidden / name)
        (hidden / name).chmod(mode)
        (folder / name).symlink_to(f"..data/{name}")


def start_pod(net: Network, name: str, folder: Path, port: int) -> Running:
    """What Kubernetes does with the Job: the volumes, the container that comes first, and the node."""
    pod, key = read_pod(), net.key(name)
    group = 0o040 if "fsGroup" in pod["securityContext"] else 0
    lay_out(folder / "given/key", {path.name: path for path in (key, key.with_suffix(".crt"))}, 0o400 | group)
    lay_out(folder / "given/trusted", {path.name: path for path in key.parent.glob("trusted/*.crt")}, 0o644)
    lay_out(folder / "given/value", {"value": net.value_file(name)}, 0o400 | group)
    lay_out(folder / "charter", {"charter.toml": net.charter_file}, 0o644)
    (folder / "own").mkdir(mode=0o2777)
    paths = {"/given": folder / "given", "/own": folder / "own", "/charter": folder / "charter", "/var": folder / "var"}
    (folder / "var/lib/midst").mkdir(parents=True)
    [node] = pod["containers"]
    words = [
        word.replace("alice", name).replace("7001", str(port)).replace("9464", str(free_port()))
        for word in node["args"]
    ]

    plain = ["--key=/given/key/" + key.name if word.startswith("--key=") else word for word in words]
    refused = start(net, name, [*MIDST, *plain], {**paths, "/own": folder / "given/value"}, {}).wait()
    assert refused.code == 2  # as it is mounted, nothing will do
    assert "others may read or write this key" in refused.err

    [first] = pod["initContainers"]
    [script] = first["args"]
    script = re.sub(r"/(given|own)/", lambda found: f"{folder}/{found[1]}/", script)
    subprocess.run(["/bin/sh", *first["command"][1:], script], check=True)
    assert {path.stat().st_mode & 0o777 for path in (folder / "own/value", folder / f"own/keys/{key.name}")} == {0o400}
    return start(net, name, [*MIDST, *words, "--json"], paths, {})


def test_a_network_started_in_three_ways(tmp_path):
    """alice by systemd, who is stopped, started, killed and started; bob in a container; carol on Kubernetes."""
    with network(tmp_path, complete(3), [17.25, 42.5, 99.0], method="search", session=SESSION) as net:
        ports, metrics = net.listening, free_port()
        service = Systemd(net, "p0", tmp_path / "systemd", metrics)

        def waiting() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/healthz", timeout=5) as page:
                    return bool(page.read() == b"waiting for p1, p2\n")
            except OSError:
                return False

        for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)):
            alice = service.start()
            until(waiting)
            alice.signal(number)
            assert alice.wait().code == code
        alice = service.start()
        bob = start_container(net, "p1", tmp_path / "container", ports[1])
        carol = start_pod(net, "p2", tmp_path / "kubernetes", ports[2])
        answers = [one.wait().answer for one in (carol, bob, alice)]
        assert {one["value"] for one in answers} == {42.5}

        for place in ("systemd", "kubernetes"):
            result = tmp_path / place / f"var/lib/midst/{SESSION}.json"
            asked = [*MIDST, "verify", str(result), "--charter", str(net.charter_file)]
            assert subprocess.run(asked, capture_output=True).returncode == 0
        journals = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.journal")}
        assert journals == {"systemd", "container", "kubernetes"}
        assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*.journal")} == {0}
        lines = " ".join(str(word) for one in net.started for word in one.process.args)  # type: ignore[union-attr]
        assert not any(str(value) in lines for value in net.values)
        assert service.start().wait().answer["value"] == 42.5  # at the next boot, alone
