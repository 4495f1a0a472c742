"""Clients as real processes over TLS: `midst node` with arrays, and `Client`, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from midst import graphs
from midst.dp import Budget, Ledger
from midst.errors import Aborted, InputError
from midst.federated import Client, array_files
from midst.net.local import make_party
from midst.privacy.priors import Normal

LIVE = """
import json, os, signal, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from midst.federated import Client
from midst.net import journal
from midst.net.identity.keys import load_identity

folder, name, rounds, fatal = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

class Mortal:
    "Kills this process at an operation of the journal's on the disk."
    done = 0
    def counted(self, operation):
        def operate(*args):
            if self.done == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            self.done += 1
            return operation(*args)
        return operate
    def __getattr__(self, name):
        found = getattr(os, name)
        return self.counted(found) if name in ("open", "write", "fsync", "replace") else found

journal.os = mortal = Mortal()
journal.sync_data, journal.sync_folder = map(mortal.counted, (journal.sync_data, journal.sync_folder))
own = load_identity(folder / name / f"{name}.key")
own = replace(own, trusted=tuple(p for p in folder.glob("*/*.crt") if p.stem != name))
updates = np.load(folder / f"{name}.npy")
with Client(folder / "charter.toml", name, own, state=folder / f"state-{name}") as client:
    print("up", flush=True)
    while client.rounds_done < rounds:
        k = client.rounds_done
        found = client.aggregate({"w": updates[k]}, k)
        np.save(folder / f"{name}-{k}.npy", found.value["w"])
        print(json.dumps({"round": k, "digest": found.digest.hex(), "sent": found.sent}), flush=True)
"""


def live(folder, name, rounds, fatal=-1):
    program = [sys.executable, "-c", LIVE, str(folder), name, str(rounds), str(fatal)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def arrays(size):
    return [{"name": "w", "shape": [size], "dtype": "float32"}]


def test_a_client_is_killed_in_the_middle_and_goes_on():
    n, size, rounds = 4, 200_000, 2
    rng = np.random.default_rng(1)
    updates = rng.standard_normal((n, rounds, size)).astype(np.float32)
    with make_party(graphs.complete(n), method="search", arrays=arrays(size), aggregates=rounds) as party:
        folder = party.folder
        (folder / "charter.toml").write_text(party.charter.to_toml())
        for i in range(n):
            np.save(folder / f"node{i}.npy", updates[i])
        running = {i: live(folder, f"node{i}", rounds) for i in range(n)}
        for victim in (1, 3):  # a relay, and a leaf
            journal = next(iter((folder / f"state-node{victim}").glob("*.journal")), None)
            while journal is None or journal.stat().st_size < 1_500_000 * (1 if victim == 1 else 0.5):
                journal = next(iter((folder / f"state-node{victim}").glob("*.journal")), None)
                assert running[victim].poll() is None or victim == 3
                if running[victim].poll() is not None:
                    break
            running[victim].kill()
            running[victim].communicate()
            running[victim] = live(folder, f"node{victim}", rounds)
        digests = []
        for process in running.values():
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            lines = [json.loads(line) for line in out.splitlines() if line != "up"]
            digests += [line["digest"] for line in lines if line["round"] == rounds - 1]
        assert len(set(digests)) == 1
        for k in range(rounds):
            right = np.sort(updates[:, k], axis=0)[(n - 1) // 2]
            for i in range(n):
                assert np.array_equal(np.load(folder / f"node{i}-{k}.npy"), right)


@pytest.mark.torture
@pytest.mark.timeout(600)
def test_a_client_that_offers_another_update_after_every_death_goes_on_with_the_first(tmp_path):
    """Killed at its own disk operations: at more of them in `make torture`."""
    n, victim, rounds, rng = 3, 1, 2, np.random.default_rng(1)
    name, others = f"node{victim}", [i for i in range(n) if i != victim]
    updates = rng.integers(-100, 100, (n, rounds, 20)).astype(np.float32)
    deaths = [int(rng.integers(8, 60)) for _ in range(40 if "MIDST_RUNS" in os.environ else 4)]
    offered, warned = [], ""
    with make_party(graphs.complete(n), method="search", arrays=arrays(20), aggregates=rounds) as party:
        folder = party.folder
        (folder / "charter.toml").write_text(party.charter.to_toml())
        for i in others:
            np.save(folder / f"node{i}.npy", updates[i])
        running = [live(folder, f"node{i}", rounds) for i in others]
        for fatal in [*deaths, -1]:
            offered.append(rng.integers(-100, 100, (rounds, 20)).astype(np.float32))
            np.save(folder / f"{name}.npy", offered[-1])
            process = live(folder, name, rounds, fatal)
            _, err = process.communicate(timeout=60)
            warned += err
            assert process.returncode in (-signal.SIGKILL, 0), err
        ends = [process.communicate(timeout=60) for process in running]
        assert [process.returncode for process in running] == [0] * 2, ends
        assert process.returncode == 0, err
        for k in range(rounds):
            assert {f"node{i}-{k}.npy" for i in others} <= {each.name for each in folder.iterdir()}
            (found,) = {np.load(file).tobytes() for file in folder.glob(f"*-{k}.npy")}
            right = [np.median([*updates[others, k], each[k]], axis=0).tobytes() for each in offered]
            assert found in right
    assert "this round had begun with another update of" in warned


def together(clients, updates):
    """Every client's round, each in a thread."""
    found: dict[int, object] = {}

    def one(i):
        try:
            found[i] = clients[i].aggregate(updates[i])
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(clients))]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    return [found[i] for i in range(len(clients))]


def test_rounds_in_one_process_with_a_ledger_and_bits(tmp_path):
    updates = np.random.default_rng(2).standard_normal((3, 50)).astype(np.float32)
    Ledger.new(tmp_path / "ledger", Budget(max_runs=2))
    with make_party(graphs.complete(3), method="search", arrays=arrays(50), aggregates=4) as party:
        options = [{"prior": Normal(), "ledger": tmp_path / "ledger"}, {}, {}]
        clients = [
            Client(party.charter, one.name, one, state=tmp_path / one.name, **more)
            for one, more in zip(party.identities, options, strict=True)
        ]
        try:
            for k in range(2):
                found = together(clients, [{"w": update + np.float32(k)} for update in updates])
                right = np.median(updates + np.float32(k), axis=0)
                assert all(np.array_equal(each.value["w"], right) for each in found), found
            leak = found[0].leakage
            assert leak is not None
            assert leak.bits > leak.floor > 0
            assert found[1].leakage is None
            with pytest.raises(InputError, match="past the budget"):
                clients[0].aggregate({"w": updates[0]})
            assert Ledger.open(tmp_path / "ledger").totals().runs == 2
            again = clients[1].aggregate({"w": updates[1]}, 1)
            assert np.array_equal(again.value["w"], right)
            assert again.digest == found[0].digest
            for wrong, words in (
                ({"v": updates[0]}, "has an array 'v', the charter has none"),
                ({"w": updates[0][:9]}, r"shape \(9,\)"),
                ({"w": updates[0].astype(float)}, "dtype float64"),
                ({"w": updates[0] * np.nan}, "not finite"),
            ):
                with pytest.raises(InputError, match=words):
                    clients[1].aggregate(wrong)
            with pytest.raises(InputError, match="of which 2 are over"):
                clients[1].aggregate({"w": updates[1]}, 3)
            with pytest.raises(TimeoutError):
                clients[1].aggregate({"w": updates[1]}, timeout=0.3)
        finally:
            for client in clients:
                client.close()


def test_a_client_that_leaves_is_named_and_the_round_can_be_repeated_without_it(tmp_path):
    updates = np.random.default_rng(3).standard_normal((4, 20)).astype(np.float32)
    with make_party(graphs.complete(4), method="search", arrays=arrays(20)) as party:
        folders = [tmp_path / one.name for one in party.identities]
        clients = [
            Client(party.charter, one.name, one, state=folder)
            for one, folder in zip(party.identities, folders, strict=True)
        ]
        clients[3]._loop.call_soon_threadsafe(clients[3]._driver.peer.stop)
        ends = together(clients[:3], [{"w": update} for update in updates])
        assert all(isinstance(end, Aborted) and "node3" in str(end) for end in ends), ends
        for client in clients:
            client.close()
        left = replace_charter(party.charter, 3)
        again = [
            Client(left, one.name, one, state=folder)
            for one, folder in zip(party.identities[:3], folders, strict=False)
        ]
        ends = together(again, [{"w": update} for update in updates])
        assert all(np.array_equal(end.value["w"], np.median(updates[:3], axis=0)) for end in ends), ends
        for client in again:
            client.close()


def replace_charter(charter, count):
    """The charter of a new session of the first participants."""
    import msgspec

    names = charter.names[:count]
    edges = tuple(edge for edge in charter.edges if set(edge) <= set(names))
    return msgspec.structs.replace(charter, session="again", participants=charter.participants[:count], edges=edges)


def run(*words, cwd):
    program = [sys.executable, "-m", "midst", *map(str, words)]
    return subprocess.run(program, capture_output=True, text=True, cwd=cwd, timeout=60)


def midst(*words, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "midst", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )


def test_the_command_from_keys_to_an_aggregate(tmp_path):
    from parties import free_port

    names, rng = ("ann", "ben", "cat"), np.random.default_rng(4)
    updates = {
        name: {"layer.w": rng.standard_normal((3, 4)).astype(np.float16), "b": rng.standard_normal(2)} for name in names
    }
    kinds = {"ann": "npz", "ben": "safetensors", "cat": "npz"}
    for name in names:
        done = run("keys", "init", name, "--folder", tmp_path / name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        file = tmp_path / name / f"update.{kinds[name]}"
        array_files.write_arrays(file, updates[name])
    specs = [f"{name}/{name}.crt@127.0.0.1:{free_port()}" for name in names]
    made = run(
        "charter", "new", "--session", "train", "--method", "search", "--graph", "complete", "--arrays",
        "ann/update.npz", "--out", "c.toml", *specs, cwd=tmp_path,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "of 14 numbers in 2 arrays" in run("charter", "show", "c.toml", cwd=tmp_path).stdout
    for name in names:
        trusted = run("keys", "trust", "c.toml", "--folder", name, cwd=tmp_path)
        assert trusted.returncode == 0, trusted.stderr
    nodes = [
        midst(
            "node", "--charter", "c.toml", "--name", name, "--key", f"{name}/{name}.key", "--value-file",
            f"{name}/update.{kinds[name]}", "--state", f"{name}/state", "--out", f"{name}/found.{kinds[name]}",
            "--json",
            cwd=tmp_path,
        )
        for name in names
    ]  # fmt: skip
    for name, node in zip(names, nodes, strict=True):
        out, err = node.communicate(timeout=60)
        assert node.returncode == 0, err
        assert json.loads(out)["objective"] == "median"
        found = array_files.read_arrays(tmp_path / name / f"found.{kinds[name]}")
        for part in ("layer.w", "b"):
            right = np.median([updates[each][part] for each in names], axis=0)
            assert found[part].dtype == updates[name][part].dtype
            assert np.array_equal(found[part], right)
    again = run(
        "node", "--charter", "c.toml", "--name", "ann", "--key", "ann/ann.key", "--state", "ann/state", "--out",
        "ann/again.npz", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["over_before"]
    assert "no update was read" in again.stderr
    (tmp_path / "ann" / "update.npz").chmod(0o644)
    refused = run(
        "node", "--charter", "c.toml", "--name", "ben", "--key", "ben/ben.key", "--value-file", "ann/update.npz",
        "--state", "x", "--out", "y.npz", "--metrics", "127.0.0.1:1", cwd=tmp_path,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "--metrics is no option where the charter is about arrays" in refused.stderr


def test_files_that_are_none(tmp_path):
    for name, words in (
        ("x.txt", "read from .npz"),
        ("x.npz", "No such file"),
        ("bad.npz", "damaged"),
        ("bad.safetensors", "damaged"),
    ):
        if name.startswith("bad"):
            (tmp_path / name).write_bytes(b"31337.4242 nothing")
        with pytest.raises(InputError, match=words) as caught:
            array_files.read_arrays(tmp_path / name)
        assert "31337" not in str(caught.value)
    np.savez(tmp_path / "open.npz", w=np.ones(2))
    Path(tmp_path / "open.npz").chmod(0o644)
    with pytest.raises(InputError, match="others"):
        array_files.read_arrays(tmp_path / "open.npz", alone=True)
