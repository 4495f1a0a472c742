"""The masked search, without I/O: what is asked, what is answered, what hides an answer, and how it ends.

- `keys`: numbers as whole numbers that sort alike, so that brackets and answers are exact to the last bit.
- `search`: which thresholds are asked about, as a function of the charter and of the totals so far; nothing else.
- `masks`: what each pair of participants adds and subtracts, so that only totals can be read.
- `participant`: one participant's announcements, contributions and signatures; words in, words out.
"""
