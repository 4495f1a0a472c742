"""The web page: settings in, a run to watch; or a network to follow while it runs.

| file     | what                                                                                 |
|----------|--------------------------------------------------------------------------------------|
| fields   | what can be set, and what is refused, with the field to blame                        |
| presets  | the paper's figures as settings                                                      |
| simulate | settings in, a run out, as a user of the library would make it                       |
| knowledge | what an adversary knows of each node, over the iterations                            |
| replay   | a run as facts and arrays that a page can draw                                       |
| packing  | facts and arrays as bytes                                                            |
| page     | these bytes and the page as one file, for `midst run --page` and `Result.page`       |
| worker   | the process in which runs are made, so that one can be ended                         |
| runs     | those processes, and the runs that are kept                                          |
| gate     | who may ask: Host, Origin, token, sizes; and what every answer carries               |
| app      | the addresses                                                                        |
| server   | a thread that serves them on 127.0.0.1                                               |
| live     | events of a running network, bounded, and only those its owner may see               |
| static   | the page itself: plain ES modules; libraries of others, with their licences, in vendor |

Only `worker` (and what it calls) computes; `gate`, `app`, `server` and `live` never see a graph or a trace.
"""
