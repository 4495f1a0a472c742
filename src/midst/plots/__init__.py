"""Pictures: of a result, of what it gave away, and of how a search closed in.

    results   a run: the network, what every node sent, or how a search closed in
    leakage   what a run gave away; and the choices of a plan
    funnel    a search as rows to draw; needs no matplotlib, so that the page in the browser draws the same
    style     colours and numbers for people; needs no matplotlib either
    picture   a figure that a notebook shows by itself

Importing `results` or `leakage` needs matplotlib; they are imported where a picture is asked for.
"""
