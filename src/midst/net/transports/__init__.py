"""What carries frames between neighbours.

    transport   what one is, and who listens to it
    tls         over mutual TLS 1.3, one connection a neighbour
    strangers   connections whose owner is not known yet

A transport of one's own is given to the `Driver`.
"""
