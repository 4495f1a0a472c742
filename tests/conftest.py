"""Settings and strategies shared by all tests."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, str(Path(__file__).parent))  # so that `from algorithm1 import …` works in every test folder

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a job in the background: not to be inherited
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("mutants", settings.get_profile("default"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("default")


if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has a core: threads of NumPy's own would wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers for two cores: a third of the time tests of networks wait for deadlines."""
    return (3 * (os.cpu_count() or 1) + 1) // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share a figure's numbers, half a minute's work, go to one process; others wherever there is room."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            figure = re.search(r"test_paper_figures\.py::.*(fig\d|beyond)", nodeid)
            return figure[1] if figure else nodeid

    return Scheduling(config, log)
