"""Pictures: of a result, of what it gave away, and of how a search closed in.

    results     a run: the network, what every node sent, or how a search closed in
    ensembles   many runs: their rounds, and whom they exposed
    sweeps      a sweep: every cell of its grid
    leakage     what a run gave away; and the choices of a plan
    comparison  ways to a median: bits against rounds
    funnel      a search as rows to draw; needs no matplotlib, so that the page in the browser draws the same
    style       colours, widths and numbers for people; needs no matplotlib either
    picture     a figure that a notebook shows by itself, of panels that also go into axes of others

All but `funnel` and `style` need matplotlib; they are imported where a picture is asked for.
"""
