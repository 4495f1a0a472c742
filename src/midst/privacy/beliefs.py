"""What may be believed of each honest value after a run, from a view.

Of an iteration alone: the pieces that its branches leave (`posteriors`). Of a search: what its totals leave
(`search_beliefs.learn`). Of both, where the iteration told of each node by itself, the totals come on top.
"""

from __future__ import annotations

from midst.privacy.observations import Branches
from midst.privacy.posterior import single
from midst.privacy.priors import Prior
from midst.privacy.sealed import Mixture, sealed_posteriors
from midst.privacy.views import View


def posteriors(view: View, priors: list[Prior], method: str = "auto") -> dict[int, Mixture]:
    """The posterior of every honest node of which the view tells branches or offsets."""
    found = sealed_posteriors(view, priors, method)
    for observation in view.observations:
        if isinstance(observation, Branches):
            i = observation.node
            found[i] = Mixture(single(priors[i], f"node {view.public.graph.label(i)}", *observation.ends))
    return found


def has_totals(view: View) -> bool:
    """Whether a search told any totals."""
    return view.published is not None and bool(view.published.cells)


def are_apart(view: View) -> bool:
    """Whether the iteration told of each node by itself, whatever the others are."""
    return all(isinstance(observation, Branches) for observation in view.observations)
