"""The mathematics and the rules of both methods, without I/O: numbers and statements in, the same out.

The iteration:

- `step`: the paper's x and z updates.
- `node`: one participant of it, with its state.
- `certificate`: when a result is proved.
- `maxima`: how all come to know that they may stop.

The search:

- `keys`: numbers as whole numbers that sort alike, so that brackets and answers are exact to the last bit.
- `search`: which thresholds are asked about, as a function of the charter and of the totals so far; nothing else.
- `masks`: what each pair of participants adds and subtracts, so that only totals can be read.
- `participant`: one participant's announcements, contributions and signatures; words in, words out.
"""
