"""Many runs, to learn something from them.

    plan         which c and sigma: what they cost, and what they give away
    expectation  what to expect of both methods, before anybody takes part
    estimate     the audit's bits by other means, to check them
    sweep        the same experiment over a grid of settings
    paper        the paper's figures and claims

Each begins from a seed, and gives the same numbers for any number of processes.
"""
