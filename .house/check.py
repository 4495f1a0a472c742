"""Every module of the tree can be imported, and every name that is imported from one, or asked of one, is there."""
import ast, importlib, sys, traceback
from pathlib import Path
root = Path(sys.argv[1]).resolve()
src = root / "src"
bad = 0
for path in sorted(src.rglob("*.py")):
    parts = path.relative_to(src).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    if name.endswith("__main__") : continue
    try: importlib.import_module(name)
    except Exception as e:
        bad += 1; print("IMPORT", name, type(e).__name__, e)
for folder in ("src", "tests", "bench", "examples", "docs"):
    for path in sorted((root / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        bound = {}
        for n in ast.walk(tree):
            if isinstance(n, ast.ImportFrom) and n.module and n.module.split(".")[0] == "midst":
                try: m = importlib.import_module(n.module)
                except Exception as e:
                    bad += 1; print(path.relative_to(root), n.lineno, "no module", n.module, e); continue
                for a in n.names:
                    if not hasattr(m, a.name):
                        try: importlib.import_module(f"{n.module}.{a.name}")
                        except Exception:
                            bad += 1; print(path.relative_to(root), n.lineno, f"{n.module} has no {a.name}"); continue
                    v = getattr(m, a.name)
                    if type(v).__name__ == "module": bound[a.asname or a.name] = v
            elif isinstance(n, ast.Import):
                for a in n.names:
                    if a.name == "midst": bound["midst"] = importlib.import_module("midst")
        for n in ast.walk(tree):
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in bound:
                if not hasattr(bound[n.value.id], n.attr):
                    bad += 1; print(path.relative_to(root), n.lineno, f"{n.value.id} has no {n.attr}")
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "setattr" and len(n.args) >= 2:
                a, b = n.args[:2]
                if isinstance(a, ast.Name) and a.id in bound and isinstance(b, ast.Constant):
                    if not hasattr(bound[a.id], b.value): bad += 1; print(path.relative_to(root), n.lineno, f"setattr {a.id}.{b.value}")
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("midst.") and n.value.replace(".", "").replace("_", "").isalnum():
                try:
                    parts = n.value.split("."); o = importlib.import_module("midst")
                    for k, part in enumerate(parts[1:], 2):
                        if not hasattr(o, part): importlib.import_module(".".join(parts[:k]))
                        o = getattr(o, part)
                except Exception as e: print("?", path.relative_to(root), n.lineno, n.value)
print(bad, "bad")
