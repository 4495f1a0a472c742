"""Many runs, to learn something from them.

    plan         the search, or the iteration by which c: what they cost, and what they give away
    expectation  what to expect of both methods, before anybody takes part
    information  mutual information, by the audits of many runs
    sweep        the same experiment over a grid of settings
    paper        the paper's figures and claims

Each begins from a seed, and gives the same numbers for any number of processes.
"""
