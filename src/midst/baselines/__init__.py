"""Other ways to a median, and what each gives away: what midst's own methods are compared with.

| file             | one idea                                                                                   |
|------------------|--------------------------------------------------------------------------------------------|
| outcome          | what a run on one problem cost and gave away                                               |
| grid             | values on a public grid, their prior, and how many bits were learnt of one                 |
| subgradient      | distributed subgradient steps (Nedić and Ozdaglar 2009)                                    |
| async_admm       | asynchronous ADMM, two variables a node (after AsylADMM, van Elst and others 2026)         |
| tree             | something that can be merged, gathered along a spanning tree and told to all               |
| local_noise      | everybody adds noise to its own value, and tells that to all                               |
| joint_noise      | a search whose totals have noise; what they tell                                           |
| curator          | one who sees all values and answers with noise (OpenDP)                                    |
| kll, tdigest     | sketches, merged on the way to everybody                                                   |
| secret_sharing   | MPyC, one process a party; `party.py` is what each runs                                    |

Rules:
- What was sent is kept, and what it gives away follows from that, and from nothing else.
- Who listens is `midst.Adversary()`: it hears every message that is not encrypted for one receiver.
- Nothing is estimated where it can be derived; where it is neither, there is no figure, and `why` says so.
"""
