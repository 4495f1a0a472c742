from __future__ import annotations

import subprocess
import sys

import midst


def test_a_notebook_shows_a_result_without_pyplot():
    figure = midst.median([1.0, 2.0, 3.0], graph="ring", rng=1).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_pyplot_is_not_imported():
    draw = "midst.median([1.0, 2.0, 3.0], graph='ring', rng=1).plot()"
    code = f"import midst, sys; {draw}; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
