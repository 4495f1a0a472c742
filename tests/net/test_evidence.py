"""Evidence as a file: whoever has the charter finds the same liar in it, and nobody once anything in it is changed."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from memory_network import MemoryNetwork
from simnet.liars import TwoFaces, WrongMasks
from simnet.notary import SimNotary, sim_certificate
from test_peer import charter_of

from midst.cli import main
from midst.errors import InputError
from midst.net import evidence as module
from midst.net.charter import Charter
from midst.net.evidence import EvidenceFile, evidence_json, verify_evidence
from midst.net.identity.certificates import fingerprint
from midst.net.results import ResultFile, read_result

LIAR = 1


@pytest.fixture(scope="module", params=["two statements", "no vote"])
def made(request: pytest.FixtureRequest) -> tuple[Charter, dict[str, Any]]:
    """The charter of a session in which ben lied, and what the file of the evidence holds."""
    people = [{"fingerprint": fingerprint(sim_certificate(i))} for i in range(5)]
    plain = charter_of(5, method="search", verify=request.param == "no vote")
    participants = tuple(
        msgspec.structs.replace(one, fingerprint=person["fingerprint"])
        for one, person in zip(plain.participants, people, strict=True)
    )
    charter = msgspec.structs.replace(plain, participants=participants)
    net = MemoryNetwork(charter, [1.0, 2.0, 3.0, 4.0, 5.0])
    liar = (WrongMasks if request.param == "no vote" else TwoFaces)(net.setups[LIAR], Random(3))
    liar.step, liar.quiet, liar.victims = 2, True, frozenset([2])
    liar.watch(net.peers[LIAR])

    def lie(i: int, j: int, frame: bytes) -> bytes | None:
        if i != LIAR:
            return frame
        [*told] = liar.frames(j, frame)
        return told[0] if told else None

    endings = net.run(change=lie)
    assert all(ending.evidence is not None for i, ending in enumerate(endings) if i != LIAR)
    ending = endings[3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "charter_verifier", simulated)
        return charter, json.loads(evidence_json(charter, ending.evidence))


def simulated(charter: Charter, number: int, certificate: bytes) -> Any:
    """Signatures in these sessions are the simulator's."""
    return SimNotary(0).verifier(number, certificate)


@pytest.fixture(autouse=True)
def _simulated_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "charter_verifier", simulated)


def check(charter: Charter, plain: dict[str, Any]) -> tuple[str, ...]:
    return verify_evidence(charter, msgspec.convert(plain, EvidenceFile))[0]


def test_it_convicts_the_liar_and_says_nothing_else_of_itself(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    assert check(charter, plain) == ("ben",)
    for name, other in {"about": ["cat"], "session": "other"}.items():
        with pytest.raises(InputError, match=name):
            check(charter, plain | {name: other})
    for name in ("midst", "added"):
        with pytest.raises(msgspec.ValidationError, match=name):
            check(charter, plain | {name: "9"})


def places(plain: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(plain, str | int):
        return [path]
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain)
    return [place for key, each in inner for place in places(each, (*path, key))]


def test_nothing_in_it_can_be_changed_to_convict_somebody_else(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    for place in places(plain):
        changed = copy.deepcopy(plain)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        old = inner[place[-1]]
        new = [old + 1] if isinstance(old, int) else ["", old[:-1] + ("0" if old[-1:] != "0" else "1"), old * 2, "é"]
        for each in new:
            inner[place[-1]] = each
            with suppress(InputError, msgspec.ValidationError):
                assert check(charter, changed) == ("ben",), place


def test_statements_left_out_show_nothing(made: tuple[Charter, dict[str, Any]]) -> None:
    charter, plain = made
    for k in range(len(plain["statements"])):
        rest = plain | {"statements": plain["statements"][:k] + plain["statements"][k + 1 :]}
        with pytest.raises(InputError, match="no evidence"):
            check(charter, rest)


def test_evidence_of_something_else(made: tuple[Charter, dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="compare both"):
        check(made[0], made[1] | {"charter": "00"})
    with pytest.raises(msgspec.ValidationError, match="midst_evidence"):
        check(made[0], made[1] | {"midst_evidence": 1})


def test_the_command_tells_evidence_from_a_result(made: tuple[Charter, dict[str, Any]], tmp_path: Path) -> None:
    charter, plain = made
    charter_file, file = tmp_path / "c.toml", tmp_path / "e.json"
    charter_file.write_text(charter.to_toml())
    file.write_text(json.dumps(plain))
    assert isinstance(read_result(file), EvidenceFile)
    done = CliRunner().invoke(main, ["verify", str(file), "--charter", str(charter_file)])
    assert done.exit_code == 0, done.output
    assert "evidence  ben signed" in done.output
    file.write_text(json.dumps({"midst_result": 2}))
    with pytest.raises(InputError, match="not a result"):
        read_result(file)
    assert not isinstance(plain, ResultFile)
