"""Participants that lie, as real processes over TLS, against honest ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import Outcome, network

from midst import graphs

VALUES = [4.25, 5.25, 6.25, 7.25, 8.25]
LIAR = 2
WITHIN = {"deadlines": {"start": 20, "wait": 3, "total": 60, "linger": 2}}


def against(strategy: str, folder: Path, **settings: object) -> list[Outcome]:
    """A ring of five, of whom one lies: how the honest ones ended."""
    how = {"method": "search", "bounds": [0, 60]} | WITHIN | settings
    with network(folder, graphs.ring(5), VALUES, **how) as net:
        script = str(Path(__file__).parent / "liar.py")
        started = [
            net.start(name, within=[sys.executable, script, strategy] if i == LIAR else [])
            for i, name in enumerate(net.charter.names)
        ]
        ends = [one.wait(90) for one in started]
    return [end for i, end in enumerate(ends) if i != LIAR]


@pytest.mark.parametrize("strategy", ["two keys", "two votes", "two balanced votes"])
def test_nobody_is_led_to_another_answer_than_somebody_else(strategy: str, tmp_path: Path) -> None:
    ends = against(strategy, tmp_path, verify=False)
    assert [end.code for end in ends] == [4, 4, 4, 4]
    named = [end.err for end in ends if "aborted: p2 signed two statements" in end.err]
    assert named
    for err in named:
        check_evidence(err, tmp_path, "p2")
    # Who has been told one of the two only, and has left before the other came, knows no more than that.
    assert all(end.err in named or "totals cannot be" in end.err for end in ends), [end.err for end in ends]


def test_who_tells_only_one_neighbour_holds_up_nobody(tmp_path: Path) -> None:
    ends = against("slow", tmp_path)
    assert [end.answer["value"] for end in ends] == [6.25] * 4
    assert not any(end.answer["exposed"] for end in ends)


def test_who_says_nothing_is_waited_for_by_name(tmp_path: Path) -> None:
    ends = against("silent", tmp_path)
    assert [end.code for end in ends] == [4] * 4
    assert any("waited" in end.err and "for p2" in end.err for end in ends), [end.err for end in ends]
    assert all("p2" in end.err for end in ends)


def test_hearsay_frames_nobody(tmp_path: Path) -> None:
    """That somebody has signed more than its journal knows is believed of its own signature, and of nobody's word."""
    ends = against("hearsay", tmp_path, deadlines={"start": 4, "wait": 3, "total": 60, "linger": 2})
    assert [end.code for end in ends] == [4] * 4
    assert not any("journal" in end.err for end in ends)
    assert any("waited" in end.err and "for p2" in end.err for end in ends)


@pytest.mark.parametrize("strategy", ["heavy vote", "false numbers"])
def test_who_is_held_to_its_vote_is_named_with_evidence(strategy: str, tmp_path: Path) -> None:
    """Votes are proved by default: what is none names its signer, for everybody by itself, and no answer is moved."""
    ends = against(strategy, tmp_path)
    assert [end.code for end in ends] == [4] * 4
    assert all("aborted: p2 " in end.err for end in ends), [end.err for end in ends]
    for end in ends:
        check_evidence(end.err, tmp_path, "p2")


def check_evidence(err: str, folder: Path, about: str) -> None:
    """A report says where the evidence is; anybody with the charter finds in it who it is, and nobody in less."""
    path = Path(re.search(r"the evidence is in (\S+), for midst verify", err).group(1))
    judged = [sys.executable, "-m", "midst", "verify", str(path), "--charter", str(folder / "charter.toml")]
    shown = subprocess.run([*judged, "--json"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["accused"] == [about]
    file = json.loads(path.read_text())
    file["statements"][-1]["signature"] = file["statements"][0]["signature"]
    path.write_text(json.dumps(file))
    refused = subprocess.run(judged, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert "no evidence: a signature in it is wrong" in refused.stderr


def test_without_proofs_one_liar_can_choose(tmp_path: Path) -> None:
    """Where nothing holds anybody to its vote, as the docs say, a vote that is not its own moves the answer for all."""
    ends = against("heavy", tmp_path, verify=False)
    assert len({end.code for end in ends}) == 1
    if ends[0].code == 0:
        assert len({end.answer["value"] for end in ends}) == 1
        assert ends[0].answer["value"] != 6.25
    else:
        assert all("totals cannot be" in end.err for end in ends)


def test_a_second_run_of_a_session_answers_nothing_new(tmp_path: Path) -> None:
    """Asked again, with another value, a participant signs nothing: the session is over."""
    with network(tmp_path, graphs.ring(5), VALUES, method="search", bounds=[0, 60], **WITHIN) as net:
        first = [one.wait(90).answer for one in net.start_all()]
        net.values = [*VALUES[:4], 50.0]
        again = net.start("p4").wait(60)
        assert json.loads(again.out)["value"] == first[0]["value"] == np.median(VALUES)
        assert again.answer["sent"] == 0
