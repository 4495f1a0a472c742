"""Settings and strategies shared by all tests."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, str(Path(__file__).parent))  # so that `from algorithm1 import …` works in every test folder

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a job in the background: not to be inherited
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("mutants", settings.get_profile("default"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("default")
