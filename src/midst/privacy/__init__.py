"""Privacy: what a run gives away, computed from the adversary's own view.

| file            | one idea                                                                              |
|-----------------|---------------------------------------------------------------------------------------|
| adversaries     | who listens: `Adversary`                                                              |
| sights          | what is visible of one node                                                           |
| views, reading  | what that adversary sees of a trace: `View`, and nothing else                         |
| messages        | the same view, from the messages that it received                                     |
| tracking        | branches and plateaus, read from raw messages                                         |
| inversion       | what those between tell of nodes that are not heard                                   |
| priors          | what it believed before                                                               |
| posterior       | what it may believe of one node after; bounds, sides and bits of that                 |
| published       | what a search told an adversary: totals of cells, and the answer                      |
| searched        | the posterior after a search, alone or after an iteration                             |
| told            | what several runs told together: bounds intersect, totals count once                  |
| assignments     | who may be in which cell, given the totals                                            |
| floor, midpoint | what the answer alone gives away                                                      |
| exposure        | Theorem 1: who was ever inside, and when                                              |
| sealed          | the posterior when z(0) is a secret of its two ends: hypotheses of each node          |
| joint           | their joint weights, summed exactly                                                   |
| particles       | the same sum, sampled, where it has too many terms                                    |
| beliefs         | what may be believed of each node after a run                                         |
| audit           | `Leakage`: the report                                                                 |
| attack          | every attack there is, and `reconstruct`: the adversary's best estimates              |
| estimate        | the same mutual information by other means, to check the bits                         |
| dp              | noise on values, and what it is worth                                                 |
| ledger          | what all runs on one datum gave away, in a file, with a budget                        |
| repeats         | what the runs of a ledger told together                                               |
| expectation     | what to expect of both methods, by simulation                                         |
| planner         | which c and sigma, by simulation                                                      |
| plots           | pictures of the report                                                                |
"""
