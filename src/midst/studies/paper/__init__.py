"""The paper's results, reproduced and judged.

| file     | what                                                                                    |
|----------|-----------------------------------------------------------------------------------------|
| choices  | what the paper leaves open, what is chosen here, and the run that Figs. 1 and 2 show    |
| runs     | experiments by the hundred, the same for any number of processes                        |
| claims   | a sentence, what was measured for it, and whether that bears it out                     |
| fig1     | the condition of Theorem 1 can be met                                                   |
| fig2     | it need not be; what an offset on the values then does                                  |
| fig3     | denser graphs are safer                                                                 |
| fig4     | a larger c is safer, and what that costs                                                |
| beyond   | what the same runs give away by the exact audit: where "I = 0" does not hold            |
| drawing  | colours and axes that the pictures share                                                |
| gallery  | all of them by name; pictures, data and claims as files                                 |

Every figure is a module of four functions: `run(settings)` gives its numbers, `claims(data)` judges them, `draw(data)`
draws them and `rows(data)` puts them in a table. All values here are synthetic, drawn to be shown.
"""
