"""What carries frames between neighbours.

    transport   what one is, and who listens to it
    tls         over mutual TLS 1.3, one connection a neighbour
    udp, zenoh  in datagrams, or by way of routers; sealed from end to end
    seal        the sealing
    making      a transport by its name

All but TLS are sealed, by the same code.
"""
