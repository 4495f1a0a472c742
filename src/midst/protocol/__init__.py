"""The mathematics and the rules of both methods, without I/O: numbers and statements in, the same out.

The iteration:

- `step`: the paper's x and z updates.
- `node`: one participant of it, with its state.
- `certificate`: when a result is proved.
- `maxima`: how all come to know that they may stop.

The search:

- `keys`: numbers as whole numbers that sort alike, so that brackets and answers are exact to the last bit.
- `search`: which thresholds are asked about, as a function of the charter and of the totals so far; nothing else.
- `noisy_search`: the same for totals with noise, where the whole transcript is to be differentially private.
- `noise`: one participant's share of that noise.
- `masks`: what each pair of participants adds and subtracts, so that only totals can be read.
- `statements`: what participants sign, as bytes, and what ties one statement to all before it.
- `commitments`, `votes`: answers that hold whoever gives them to one value.
- `course`: how a search went, as everybody knows it; certificates and evidence are checked by it.
- `participant`: one participant's statements; words in, words out.
"""
