"""Privacy: what a run gives away, computed from the adversary's own view.

| file           | one idea                                                                                |
|----------------|-----------------------------------------------------------------------------------------|
| adversaries    | who listens: `Adversary`                                                                |
| observations   | what is visible of one node                                                             |
| views          | what that adversary sees of a trace: `View`, and nothing else                           |
| trace_reader   | what a trace has to say of each node, worked out again where it was not kept            |
| tracking       | branches and plateaus, read from raw messages                                           |
| inversion      | what those between tell of nodes that are not heard                                     |
| published      | what a search makes public, as the adversary sees it: totals of cells, and the answer   |
| exposure       | Theorem 1: who was ever inside, and when                                                |
| priors         | what it believed before                                                                 |
| posterior      | what it may believe of one value after; bounds, sides and bits of that                  |
| sealed         | the posteriors after an iteration; of a sealed z(0), by hypotheses of each node         |
| enumeration    | the joint weights of these hypotheses, summed one by one                                |
| particles      | the same sum, sampled, where it has too many terms                                      |
| search_beliefs | the posteriors after a search, alone or after an iteration                              |
| assignments    | who may be in which cell, given the totals                                              |
| floor          | what the answer alone gives away                                                        |
| midpoint_floor | the same where the answer is the midpoint of two values                                 |
| audit          | `Leakage`: the report                                                                   |
| attack         | every attack there is, and `reconstruct`: the adversary's best estimates                |
| disclosed      | what several runs disclosed together: bounds intersect, totals count once               |
| repeats        | the bits of all runs of a ledger, joined where they can be                              |
"""
