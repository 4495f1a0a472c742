"""A session taken up again from its journal."""

from __future__ import annotations

import pytest
from memory_network import MemoryNetwork, charter_of
from simnet.notary import SimNotary

from midst.errors import Aborted
from midst.net.journal import Journal
from midst.net.records import Broken, decode_record
from midst.protocol.statements import Statement, signed_bytes


@pytest.mark.parametrize("verify", [False, True])
def test_a_step_that_ended_the_session_ends_it_again(verify):
    """Killed after what somebody signed was on disk, and before it was written that this ended the session."""
    net = MemoryNetwork(charter_of(method="search", verify=verify), [1.0, 2.0, 3.0])
    before = {}

    def lie(i, j, frame):
        if i != 1 or frame[:1] != b"G":
            return frame
        said = [falsely(each) for each in net.setups[1].codec.decode_all(frame)]
        return net.setups[1].codec.encode(said)[0]

    def falsely(statement):
        if statement.kind != b"C" or statement.signer != 1 or statement.step != 1:
            return statement
        body = statement.body + bytes(32)  # too long
        return Statement(body, SimNotary(1).sign(signed_bytes(net.charter.digest, body)))

    peer = net.peers[0]
    keep = peer._keep

    def kept(record):
        if isinstance(record, Broken):
            before["killed"] = True
            return True
        return keep(record)

    peer._keep = kept
    net.run(change=lie)
    assert before == {"killed": True}
    for _ in range(2):
        with pytest.raises(Aborted, match=r"ben signed a .* of the wrong length; this session is over") as ended:
            net.start(0)
        assert (ended.value.kind, ended.value.about) == ("broken protocol", "ben")
    records = [decode_record(raw, "ann") for raw in Journal(net.files[0], "journal").records]
    assert [type(each) for each in records].count(Broken) == 1
