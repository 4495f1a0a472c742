"""Types of arrays and tables, once: what numbers are kept in, by what they are for.

`Array` also stands for a float or a JAX array where a docstring says so (`protocol/step.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Branch = NDArray[np.int8]  # −1 where x < s, 0 where x = s was sent, +1 where x > s
Row = dict[str, Any]  # of a table: what a column is called, and what is in it
