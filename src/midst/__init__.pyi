"""The public names, in one list; `__init__.py` reads it too."""

from midst import dp as dp
from midst import federated as federated
from midst import graphs as graphs
from midst._version import __version__ as __version__
from midst.describing import describe as describe
from midst.engines.ensemble import solve_ensemble as solve_ensemble
from midst.errors import Aborted as Aborted
from midst.errors import InputError as InputError
from midst.errors import MidstError as MidstError
from midst.errors import NotCertified as NotCertified
from midst.graphs import Graph as Graph
from midst.methods import After as After
from midst.methods import Certified as Certified
from midst.methods import Consensus as Consensus
from midst.methods import Exact as Exact
from midst.methods import Paper as Paper
from midst.methods import Search as Search
from midst.objectives import Mean as Mean
from midst.objectives import Quantile as Quantile
from midst.privacy import priors as priors
from midst.privacy.adversaries import Adversary as Adversary
from midst.privacy.audit import audit as audit
from midst.problems import Problem as Problem
from midst.result import Result as Result
from midst.solving import maximum, minimum
from midst.solving import mean as mean
from midst.solving import median as median
from midst.solving import quantile as quantile
from midst.solving import solve as solve
from midst.studies.compare import compare as compare
from midst.studies.information import information as information
from midst.trace import Trace as Trace

max = maximum
min = minimum
