"""Privacy: what a run gives away, computed from the adversary's own view.

| file            | one idea                                                                              |
|-----------------|---------------------------------------------------------------------------------------|
| adversaries     | who listens: `Adversary`                                                              |
| observations    | what is visible of one node                                                           |
| views           | what that adversary sees of a trace: `View`, and nothing else                         |
| trace_reader    | what a trace has to say of each node, worked out again where it was not kept          |
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
| repeats         | what the runs of a ledger told together                                               |
"""
