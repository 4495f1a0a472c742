"""The lines of midst that one `midst node` loads for a plain search: three nodes over TLS, with --out.

python tests/net/loaded_lines.py   # the figure, and each module with its lines
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from processes import network

import midst
from midst import graphs

AT_EXIT = """
import atexit, os, sys
from pathlib import Path

def note():
    found = (getattr(one, "__file__", None) for name, one in list(sys.modules.items()) if name.startswith("midst"))
    Path(os.environ["LOADED"]).write_text("\\n".join(sorted({path for path in found if path})))

atexit.register(note)
"""


def loaded_lines(folder: Path) -> dict[str, int]:
    """The modules that a node has loaded when it ends, by their paths in midst, and the lines of each."""
    (folder / "sitecustomize.py").write_text(AT_EXIT)
    noted = folder / "loaded"
    ring = graphs.make("ring", 3, rng=np.random.default_rng(0))
    with network(folder, ring, [1.0, 2.0, 3.0], method="search", resolution=0.01) as net:
        one = net.start(
            "p0", "--out", str(folder / "result.json"), env={"PYTHONPATH": str(folder), "LOADED": str(noted)}
        )
        others = [net.start(name) for name in ("p1", "p2")]
        assert [each.wait().answer["value"] for each in (one, *others)] == [2.0] * 3
    root = Path(midst.__file__).parent
    paths = map(Path, noted.read_text().splitlines())
    return {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in paths}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = loaded_lines(Path(place))
    for module, lines in sorted(found.items(), key=lambda pair: -pair[1]):
        print(f"{lines:6,}  {module}")
    print(f"{sum(found.values()):6,}  lines in {len(found)} modules")
