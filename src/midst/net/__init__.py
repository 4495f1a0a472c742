"""A participant on a real network.

    charter    what all agree on                    keys        one's own key; certificates: who is who
    seat       what one derives from it             wire        frames as bytes
    lockstep   the iteration, all together          tide        when it stops: maxima, told on
    gossip     the search: who is told what         exact       the iteration, and then the search
    notary     who signs, and who is believed       finding     what came of it; results: as a file to verify
    peer       a session without I/O                journal     what must not be forgotten; records: what it holds
    transport  what carries frames: tls, zenoh, udp; seal, where somebody is in between
    driver     peer, transport and clock, joined    metrics     numbers about it, for Prometheus
    local      a whole network on this machine

`docs/protocol.md` says what travels. `midst.simnet` drives the same `Peer` through faults.
"""
