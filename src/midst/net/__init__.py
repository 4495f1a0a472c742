"""A participant on a real network.

    charter       what all agree on                  identity/    one's own key; certificates: who is who
    setup         what one derives from it           wire         frames as bytes
    lockstep      the iteration, all together        gossip       the search: who is told what
    exact_finish  the iteration, and then the search exchange     what these three have in common
    session       begun, or taken up from a journal  peer         one participant of it, without I/O
    journal       what must not be forgotten         records      what it holds
    notary        who signs, and who is believed     answer       what came of it; results: as a file to verify
    driver        peer, transport and clock, joined  transports/  what carries frames: TLS
    events        what a watcher is told             metrics      numbers about it, for Prometheus
    local         a whole network on this machine    iteration    what one derives from it for the iteration

`docs/protocol.md` says what travels. `tests/simnet` drives the same `Peer` through faults.
"""
