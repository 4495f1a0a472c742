"""A network, a clock and a disk that fail by a seed, driving the very peer code that runs on a wire.

- `faults`: what goes wrong, and how often.
- `disk`: a file that can be torn by a crash, or full.
- `notary`: signatures that replay.
- `world`: the clock, the links, and the participants on them.
- `trial`: one seed: a random charter run with and without faults, and what must hold.
- `states`: every state of a small search, without clock and links.
"""
