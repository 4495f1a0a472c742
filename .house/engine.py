"""The machinery of rename.py: moves, imports, definitions, edits, words. Knows nothing of midst but its name."""

from __future__ import annotations

import ast
import fnmatch
import io
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

CODE = ("src", "tests", "bench", "docs", "examples")
IDENTIFIER = r"[^\W\d]\w*"


@dataclass
class Planted:
    """A planted bug of tests/mutants: pieces of code in strings, which follow the code."""

    file: str
    old: str
    new: str

    def rename(self, rename: Callable[[str, str], str]) -> None:
        self.old, self.new = (_rename_piece(piece, rename) for piece in (self.old, self.new))


def _rename_piece(piece: str, rename: Callable[[str, str], str]) -> str:
    def one(m: re.Match[str]) -> str:
        if m["quoted"] is not None:
            return m[0]
        before, after = piece[: m.start()], piece[m.end() :]
        owner = re.search(r"(?<![\w.])([^\W\d]\w*)\.$", before)
        if before.endswith("."):
            return rename(m[0], f"attr of {owner[1]}" if owner else "attr")
        keyword = re.match(r"=(?!=)", after) and re.search(r"[(,]\s*$", before)
        return rename(m[0], "keyword" if keyword else "bare")

    return re.sub(r"""(?P<quoted>(?<![fF\w])"[^"\n]*"|(?<![fF\w])'[^'\n]*')|[^\W\d]\w*""", one, piece)


@dataclass
class Tree:
    """A checkout, and what went wrong."""

    root: Path
    complaints: list[str] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.complaints.append(text)
        print("  !", text)

    def files(self, *endings: str, under: Iterable[str] = CODE) -> list[Path]:
        found = []
        for folder in under:
            for path in sorted((self.root / folder).rglob("*")):
                parts = path.relative_to(self.root).parts
                if path.suffix in endings and not {"_build", "figures", "__pycache__", "vendor", ".venv"} & set(parts):
                    found.append(path)
        return found

    def python(self) -> list[Path]:
        return self.files(".py", ".pyi")

    def pages(self) -> list[Path]:
        top = [self.root / name for name in ("README.md", "Makefile", "pyproject.toml", "CONTRIBUTING.md")]
        return [path for path in top if path.exists()] + self.files(".md", under=("docs",))

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def matching(self, globs: Iterable[str]) -> list[Path]:
        globs = list(globs)
        return [path for path in self.python() if any(fnmatch.fnmatch(self.name(path), glob) for glob in globs)]

    def module(self, path: Path) -> str:
        """The dotted name of a file below src."""
        parts = path.relative_to(self.root / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def file_of(self, module: str) -> Path:
        base = self.root / "src" / Path(*module.split("."))
        return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


# Moves


def move_files(tree: Tree, moves: Iterable[tuple[str, str]], optional: Iterable[tuple[str, str]] = ()) -> None:
    """git mv; a move that is already made is passed over."""
    optional = list(optional)
    for old, new in [*moves, *optional]:
        source, target = tree.root / old, tree.root / new
        if not source.exists():
            if not target.exists() and (old, new) not in optional:
                tree.say(f"move: {old} is not there (nor {new})")
            continue
        if target.exists():
            tree.say(f"move: {new} is there already; {old} stays")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "-C", str(tree.root), "mv", old, new], check=True)
    for folder in sorted((tree.root / "src").rglob("*"), reverse=True):
        if folder.is_dir() and folder.name != "__pycache__" and not any(
            path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        ):
            shutil.rmtree(folder)


def copy_new(tree: Tree, new: Path, *, over: Iterable[str] = ()) -> None:
    """Files that are written by hand; those not listed in `over` are only put where there is none yet."""
    for path in sorted(new.rglob("*")):
        if path.is_file():
            name = path.relative_to(new).as_posix()
            target = tree.root / name
            if not target.exists() or name in over:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(path.read_text())
                subprocess.run(["git", "-C", str(tree.root), "add", "-N", name], check=False)


# Planted bugs

BUGS = "tests/mutants/bugs.py"


def _bugs(text: str) -> list[ast.Call]:
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "Bug"]
    calls = [c for c in calls if len(c.args) >= 4 and all(isinstance(a, ast.Constant) for a in c.args[:4])]
    return sorted(calls, key=lambda call: call.lineno)


def load_planted(tree: Tree) -> None:
    path = tree.root / BUGS
    if path.exists():
        tree.planted = [Planted(*(arg.value for arg in call.args[1:4])) for call in _bugs(path.read_text())]  # type: ignore


def save_planted(tree: Tree) -> None:
    """Write them back, and say which have no place any more."""
    path = tree.root / BUGS
    if not tree.planted:
        return
    text = path.read_text()
    calls = _bugs(text)
    assert len(calls) == len(tree.planted)
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for call, bug in sorted(zip(calls, tree.planted, strict=True), key=lambda pair: -pair[0].lineno):
        for arg, value in reversed(list(zip(call.args[1:4], (bug.file, bug.old, bug.new), strict=True))):
            if arg.value != value:  # type: ignore
                literal = '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
                if '"' in value and "'" not in value:
                    literal = "'" + value.replace("\\", "\\\\").replace("\n", "\\n") + "'"
                text = text[: at(arg.lineno, arg.col_offset)] + literal + text[at(arg.end_lineno, arg.end_col_offset) :]  # type: ignore
    path.write_text(text)
    tree.planted = []


def check_planted(tree: Tree) -> None:
    """Whether each stands once in its file; where a definition has moved, in which file it stands now."""
    load_planted(tree)
    for bug in tree.planted:
        file = tree.root / "src/midst" / bug.file
        if file.exists() and file.read_text().count(bug.old) == 1:
            continue
        others = [p for p in tree.files(".py", under=("src",)) if p.read_text().count(bug.old) == 1]
        if len(others) == 1:
            bug.file = others[0].relative_to(tree.root / "src/midst").as_posix()
        else:
            tree.say(f"planted bug: {bug.file} has not one {bug.old[:80]!r}")
    save_planted(tree)


def move_planted(tree: Tree, moves: Iterable[tuple[str, str]]) -> None:
    path = tree.root / BUGS
    if not path.exists():
        return
    load_planted(tree)
    files = {old.removeprefix("src/midst/"): new.removeprefix("src/midst/") for old, new in moves if old.startswith("src/")}
    for bug in tree.planted:
        folder = bug.file.split("/")[0]
        bug.file = files.get(bug.file) or (files[folder] + bug.file[len(folder) :] if folder in files else bug.file)
    save_planted(tree)
    text = path.read_text()
    for old, new in moves:
        if old.startswith("tests/"):
            text = text.replace(f'"{old}', f'"{new}')
    path.write_text(text)


# Imports


@dataclass
class Homes:
    """Where modules and names have gone.

    Attributes:
        modules: old dotted name -> new dotted name.
        names: (old module, name) -> (new module, new name); old modules by their old dotted names, or any as "*".
    """

    modules: dict[str, str]
    names: dict[tuple[str, str], tuple[str, str]]
    keep: frozenset[str] = frozenset()  # names that stay what they are called in a file, whatever they are at home

    def of(self, module: str, name: str) -> tuple[str, str]:
        """The module to import it from, and its name there."""
        whole = f"{module}.{name}"
        if whole in self.modules:
            parent, _, last = self.modules[whole].rpartition(".")
            return parent, last
        for key in ((module, name), ("*", name)):
            if key in self.names:
                return self.names[key]
        return self.modules.get(module, module), name

    def dotted(self, text: str) -> str:
        """A dotted name, rewritten by its longest known beginning."""
        parts = text.split(".")
        for k in range(len(parts), 0, -1):
            head = ".".join(parts[:k])
            if k < len(parts) and (head, parts[k]) in self.names:
                module, name = self.names[head, parts[k]]
                return ".".join([module, name, *parts[k + 1 :]])
            if head in self.modules:
                inner = self.modules[head], *parts[k:]
                if len(inner) > 1 and (self.modules[head], inner[1]) in self.names:
                    module, name = self.names[self.modules[head], inner[1]]
                    return ".".join([module, name, *inner[2:]])
                return ".".join(inner)
        return text


def rewrite_imports(tree: Tree, homes: Homes) -> None:
    for path in tree.python():
        text = path.read_text()
        after = _imports_of(tree, path, text, homes)
        if after != text:
            path.write_text(after)


def _imports_of(tree: Tree, path: Path, text: str, homes: Homes) -> str:
    module = ast.parse(text)
    lines = text.splitlines(keepends=True)
    renamed: dict[str, str] = {}
    changes: list[tuple[int, int, list[str]]] = []
    for node in ast.walk(module):
        if not (isinstance(node, ast.ImportFrom) and node.module and node.level == 0):
            continue
        if node.module.split(".")[0] != "midst":
            continue
        by_home: dict[str, list[str]] = {}
        for alias in node.names:
            home, name = homes.of(node.module, alias.name)
            bound = alias.asname or alias.name
            if name != alias.name and alias.asname is None:
                if bound in homes.keep:
                    alias = ast.alias(name, bound)
                elif _is_used(module, name):
                    tree.say(f"{tree.name(path)}: {name} is used already; kept as {bound}")
                    alias = ast.alias(name, bound)
                else:
                    renamed[bound] = name
                    alias = ast.alias(name)
            elif alias.asname == name:
                alias = ast.alias(name, name if path.suffix == ".pyi" else None)
            else:
                alias = ast.alias(name, alias.asname)
            by_home.setdefault(home, []).append(f"{alias.name} as {alias.asname}" if alias.asname else alias.name)
        if list(by_home) == [node.module] and by_home[node.module] == [
            f"{a.name} as {a.asname}" if a.asname else a.name for a in node.names
        ]:
            continue
        indent = " " * node.col_offset
        ending = lines[node.end_lineno - 1][len(lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode()) :]
        new = []
        own = None
        if path.is_relative_to(tree.root / "src"):
            own = tree.module(path)
        for home, names in by_home.items():
            if home != own:
                new.append(f"{indent}from {home} import {', '.join(sorted(names))}")
        new = [line + (ending if k == 0 else "\n") for k, line in enumerate(new)]
        changes.append((node.lineno - 1, node.end_lineno or node.lineno, new or [f"{indent}pass\n"] if indent else new))
    for start, stop, new in sorted(changes, reverse=True):
        lines[start:stop] = new
    after = "".join(lines)
    if renamed:
        after = rename_tokens(after, lambda name, place: renamed.get(name, name) if place == "bare" else name)
    return after


def _is_used(module: ast.Module, name: str) -> bool:
    bound = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    bound |= {node.arg for node in ast.walk(module) if isinstance(node, ast.arg)}
    bound |= {a.asname or a.name for n in ast.walk(module) if isinstance(n, ast.ImportFrom) for a in n.names}
    return name in bound


def rewrite_dotted(tree: Tree, homes: Homes, keep: Callable[[str], bool] = lambda name: False) -> None:
    """Dotted names in strings, comments, docstrings, pages and settings; not in statements."""
    pattern = re.compile(r"(?<![\w/.-])midst(?:\.[A-Za-z_]\w*)+")
    for path in [*tree.python(), *tree.pages()]:
        if keep(tree.name(path)):
            continue
        text = path.read_text()
        if path.suffix not in (".py", ".pyi"):
            after = pattern.sub(lambda m: homes.dotted(m[0]), text)
        else:
            after = map_strings(text, lambda s: pattern.sub(lambda m: homes.dotted(m[0]), s))
        if after != text:
            path.write_text(after)


# Definitions


def move_definitions(tree: Tree, old: str, names: Iterable[str], new: str) -> None:
    """Cut top-level definitions out of one module and put them at the end of another, with the imports they need."""
    source, target = tree.file_of(old), tree.file_of(new)
    if not source.exists() or not target.exists():
        tree.say(f"definitions: {old} or {new} is not there")
        return
    text, there = source.read_text(), target.read_text()
    module = ast.parse(text)
    lines = text.splitlines(keepends=True)
    wanted = {name: node for node in module.body for name in _defined(node)}
    cut: list[tuple[int, int]] = []
    pieces: list[str] = []
    needed: set[str] = set()
    for name in names:
        if name not in wanted:
            if not re.search(rf"^(def|class|async def) {name}\b|^{name} = ", there, re.MULTILINE):
                tree.say(f"definitions: {old} has no {name} (for {new})")
            continue
        node = wanted[name]
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        while start > 0 and lines[start - 1].startswith("#"):
            start -= 1
        stop = node.end_lineno or node.lineno
        cut.append((start, stop))
        pieces.append("".join(lines[start:stop]))
        needed |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        needed |= set(re.findall(IDENTIFIER, " ".join(_annotations(node))))
    if not cut:
        return
    moved = set(names)
    imports, local = [], []
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                if (alias.asname or alias.name) in needed:
                    imports.append(f"from {node.module} import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))
        elif isinstance(node, ast.Import):
            imports += [ast.unparse(ast.Import([a])) for a in node.names if (a.asname or a.name) in needed]
        else:
            local += [name for name in _defined(node) if name in needed - moved]
    imports += [f"from {old} import {name}" for name in local if f"from {old} import {name}" not in there]
    imports = [line for line in imports if not line.startswith(f"from {new} import")]
    for start, stop in sorted(cut, reverse=True):
        del lines[start:stop]
    rest = "".join(lines)
    used = [name for name in moved if re.search(rf"\b{name}\b", _code_only(rest))]
    source.write_text(_add_imports(rest, [f"from {new} import {name}" for name in used]))
    target.write_text(_add_imports(there.rstrip("\n") + "\n\n\n" + "\n\n".join(pieces), imports))


def _annotations(node: ast.AST) -> list[str]:
    found = [n.annotation for n in ast.walk(node) if isinstance(n, ast.arg | ast.AnnAssign) and n.annotation is not None]
    found += [n.returns for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.returns]
    return [ast.unparse(each) for each in found]


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _add_imports(text: str, imports: Iterable[str]) -> str:
    """After the last top-level import, or the docstring; isort puts them in order."""
    imports = [line for line in dict.fromkeys(imports) if not re.search(rf"^{re.escape(line)}$", text, re.MULTILINE)]
    if not imports:
        return text
    module = ast.parse(text)
    after = 0
    for k, node in enumerate(module.body):
        if isinstance(node, ast.Import | ast.ImportFrom) or (k == 0 and isinstance(node, ast.Expr)):
            after = node.end_lineno or node.lineno
    lines = text.splitlines(keepends=True)
    gap = "\n" if after and not isinstance(module.body[0], ast.Import | ast.ImportFrom) and len(module.body) > 0 else ""
    lines[after:after] = [gap, *(f"{line}\n" for line in imports)]
    return "".join(lines)


def _code_only(text: str) -> str:
    return map_strings(text, lambda s: "''" if not s.startswith("#") else "#", prefix=True)


def use_shared_aliases(tree: Tree, home: str, aliases: dict[str, str], synonyms: dict[str, str], only_defined: Iterable[str] = ()) -> None:
    """Delete local definitions of array aliases, spell them by their names, and import them from one place.

    Args:
        home: the module that defines them.
        aliases: name -> what it stands for.
        synonyms: other names of the same thing -> the name to use.
        only_defined: those whose meaning, spelled out, may be something else.
    """
    for path in tree.files(".py", under=("src",)):
        if tree.module(path) == home:
            continue
        text = before = path.read_text()
        for name, meaning in aliases.items():
            for each in [name, *(s for s, n in synonyms.items() if n == name)]:
                text = re.sub(rf"^{each} = {re.escape(meaning)}[^\n]*\n", "", text, flags=re.MULTILINE)
        text = rename_tokens(text, lambda name, place: synonyms.get(name, name) if place == "bare" else name)
        code = _code_only(text)
        for name, meaning in aliases.items():
            if name not in only_defined and re.search(rf"(?<!\w){re.escape(meaning)}", code):
                text = text.replace(meaning, name)
        code = _code_only(text)
        tree_of = ast.parse(text)
        bound = {a.asname or a.name for n in tree_of.body if isinstance(n, ast.ImportFrom) for a in n.names}
        bound |= {name for node in tree_of.body for name in _defined(node)}
        wanted = [n for n in aliases if re.search(rf"(?<![\w.]){n}\b", code) and n not in bound]
        text = _add_imports(text, [f"from {home} import {name}" for name in wanted])
        if text != before:
            path.write_text(text)


# Edits


def edit(tree: Tree, edits: Iterable[tuple[str, str, str]]) -> None:
    """Exact replacements: (path glob, old, new). Old may stand several times; it must stand once at least."""
    for glob, old, new in edits:
        found = False
        for bug in tree.planted:
            if fnmatch.fnmatch(f"src/midst/{bug.file}", glob):
                bug.old, bug.new = bug.old.replace(old, new), bug.new.replace(old, new)
        paths = [p for p in [*tree.python(), *tree.pages()] if fnmatch.fnmatch(tree.name(p), glob)]
        for path in paths:
            text = path.read_text()
            if old in text:
                found = True
                path.write_text(text.replace(old, new))
        if not found and not any(new and new in path.read_text() for path in paths):
            tree.say(f"edit: {glob} has no {old.strip().splitlines()[0][:70]!r}")


# Words


@dataclass(frozen=True)
class Rule:
    """One identifier for another.

    Attributes:
        old: whole identifier.
        new: whole identifier.
        where: path globs of Python files.
        place: "any", "attr" (after a dot, or a keyword's name), "dot", "keyword", "bare" (neither).
        text: also in comments and docstrings: None for between backticks and as an argument's name, "word" for every
            whole word.
        merge: the new name may stand there already.
        optional: it need not be there.
    """

    old: str
    new: str
    where: tuple[str, ...] = ("src/*", "tests/*", "bench/*", "examples/*", "docs/*")
    place: str = "any"
    text: str | None = None
    merge: bool = False
    optional: bool = False


def apply_words(tree: Tree, rules: Iterable[Rule]) -> None:
    for rule in rules:
        files = tree.matching(rule.where)
        texts = {path: path.read_text() for path in files}
        hits = {path: text for path, text in texts.items() if re.search(rf"\b{rule.old}\b", text)}
        clashes = [] if rule.merge else [p for p, text in hits.items() if rule.new in _names(text) and rule.old in _names(text)]
        if clashes:
            tree.say(f"word {rule.old} -> {rule.new}: {rule.new} is used already in {', '.join(map(tree.name, clashes))}")
            continue
        changed = False
        for bug in tree.planted:
            if any(fnmatch.fnmatch(f"src/midst/{bug.file}", glob) for glob in rule.where):
                bug.rename(_renamer(rule))
        for path, text in hits.items():
            after = _apply(text, rule)
            if after != text:
                path.write_text(after)
                changed = True
        if not changed and not rule.optional:
            tree.say(f"word {rule.old} -> {rule.new}: {rule.old} stands nowhere in {', '.join(rule.where)}")


def _renamer(rule: Rule) -> Callable[[str, str], str]:
    def one(name: str, place: str) -> str:
        place = "attr" if place.startswith("attr") else place
        fits = rule.place == "any" or place == rule.place or (rule.place == "dot" and place == "attr")
        fits = fits or (rule.place == "attr" and place == "keyword")
        return rule.new if name == rule.old and fits else name

    return one


def _apply(text: str, rule: Rule) -> str:
    one = _renamer(rule)
    after = rename_tokens(text, one)
    if rule.place in ("attr", "dot", "keyword") and rule.text is None:
        return after
    return _apply_text(after, rule.old, rule.new, rule.text)


def _apply_text(text: str, name: str, new: str, how: str | None) -> str:
    """In comments, docstrings and the list of what a module shows."""
    old = re.escape(name)
    listed = re.search(r"^__all__ = \[.*?\]", text, re.MULTILINE | re.DOTALL)
    if listed and re.search(rf"\b{new}\b", text[: listed.start()]):
        text = text[: listed.start()] + listed[0].replace(f'"{name}"', f'"{new}"') + text[listed.end() :]

    def in_text(s: str) -> str:
        is_comment, is_doc = s.startswith("#"), s.lstrip("rRbB").startswith('"""')
        if not (is_comment or is_doc):
            return s
        if how == "word":
            return re.sub(rf"\b{old}\b", new, s)
        if is_doc and ">>> " in s:
            s = re.sub(r"^ *(?:>>>|\.\.\.) .*$", lambda m: re.sub(rf"(?<![\w.'\"]){old}\b(?!['\"])", new, m[0]), s, flags=re.MULTILINE)
            s = re.sub(rf"^( *){old}\(", rf"\g<1>{new}(", s, flags=re.MULTILINE)  # what it prints
        s = re.sub(r"`[^`\n]+`", lambda m: re.sub(rf"(?<![\w]){old}(?![\w]|\.py)", new, m[0]), s)
        return re.sub(rf"^(\s+){old}(?=:( |$))", rf"\g<1>{new}", s, flags=re.MULTILINE) if is_doc else s

    return map_strings(text, in_text)


@dataclass(frozen=True)
class Symbol:
    """A class, function, constant or alias of a module, renamed wherever it is imported, by whatever name."""

    module: str
    old: str
    new: str


def apply_symbols(tree: Tree, symbols: Iterable[Symbol]) -> None:
    for symbol in symbols:
        home = tree.file_of(symbol.module)
        if not home.exists():
            tree.say(f"symbol {symbol.old} -> {symbol.new}: there is no {symbol.module}")
            continue
        defined = [name for node in ast.parse(home.read_text()).body for name in _defined(node)]
        if symbol.old not in defined:
            if symbol.new not in defined:
                tree.say(f"symbol {symbol.old} -> {symbol.new}: {symbol.module} has no {symbol.old}")
            continue
        exporters = {symbol.module}
        paths = [path for path in tree.python() if re.search(rf"\b{symbol.old}\b", path.read_text())]
        parsed = {path: ast.parse(path.read_text()) for path in paths}
        for path, module in parsed.items():  # packages that show it
            if path.name == "__init__.py" and path.is_relative_to(tree.root / "src") and any(
                isinstance(n, ast.ImportFrom) and n.module == symbol.module and any(a.name == symbol.old for a in n.names) for n in module.body
            ):
                exporters.add(tree.module(path))
        for path, module in parsed.items():
            own = path == home
            bare, owners = own, set()
            for node in ast.walk(module):
                if isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        if node.module in exporters and alias.name == symbol.old:
                            bare = True
                        if f"{node.module}.{alias.name}" in exporters:
                            owners.add(alias.asname or alias.name)
                elif isinstance(node, ast.Import):
                    owners |= {a.asname or a.name for a in node.names if a.name in exporters}
            text = path.read_text()
            if bare and symbol.new in _names(text):
                tree.say(f"symbol {symbol.old} -> {symbol.new}: {symbol.new} is used already in {tree.name(path)}")
                continue

            def one(name: str, place: str) -> str:
                fits = (bare and not place.startswith("attr") and place != "keyword") or place in {f"attr of {o}" for o in owners}
                return symbol.new if name == symbol.old and fits else name

            after = rename_tokens(text, one)
            for bug in tree.planted:
                if tree.root / "src/midst" / bug.file == path:
                    bug.rename(one)
            if bare:
                after = _apply_text(after, symbol.old, symbol.new, None)
                after = re.sub(rf'^{symbol.new} = (TypeVar|NewType)\("{symbol.old}"', rf'{symbol.new} = \1("{symbol.new}"', after, flags=re.MULTILINE)
                after = re.sub(rf"<{symbol.old}(?= |:)", f"<{symbol.old}", after)
            if after != text:
                path.write_text(after)
        dotted = re.compile("|".join(rf"(?<![\w.]){re.escape(e)}\.{symbol.old}\b" for e in exporters))
        homes = "|".join(map(re.escape, exporters))
        imported = re.compile(rf"from (?:{homes}) import [^\n]*\b{symbol.old}\b")
        members = re.compile(rf"automodule:: (?:{homes})\n(?: +:[^\n]*\n)*? +:members:[^\n]*")
        for path in [*paths, *tree.pages()]:
            text = before = path.read_text()
            if path.suffix == ".md":
                if imported.search(text):
                    fences = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
                    text = fences.sub(lambda m: _in_fence(m[0], symbol.old, symbol.new), text)
                text = members.sub(lambda m: re.sub(rf"\b{symbol.old}\b", symbol.new, m[0]), text)
                if text != before:
                    path.write_text(text)
            after = dotted.sub(lambda m: m[0][: -len(symbol.old)] + symbol.new, text)
            if after != text:
                path.write_text(after)


def _in_fence(block: str, old: str, new: str) -> str:
    """Code of a page: all of it, or where it has prompts the lines that begin with one."""
    prompts = ">>> " in block
    lines = block.split("\n")
    for k, line in enumerate(lines):
        if not prompts or line.startswith((">>> ", "... ")):
            lines[k] = re.sub(rf"(?<![\w.'\"]){old}\b(?!['\"])", new, line)
    return "\n".join(lines)


def _names(text: str) -> set[str]:
    found: set[str] = set()

    def note(name: str, place: str) -> str:
        found.add(name)
        return name

    rename_tokens(text, note)
    return found


def rename_tokens(text: str, rename: Callable[[str, str], str]) -> str:
    """Every identifier of the code, inside f-strings too, with its place: "attr", "keyword" or "bare"."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    changes: list[tuple[int, int, int, str]] = []
    depth: list[str] = []
    path = ""  # within a statement that imports: "from" before its names, "import" where names are paths
    for k, token in enumerate(tokens):
        if token.type == tokenize.NEWLINE:
            path = ""
        elif token.type == tokenize.NAME and not depth:
            starts = k == 0 or tokens[k - 1].type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENCODING) or tokens[k - 1].string in (";", ":")
            if token.string in ("from", "import") and starts:
                path = token.string
            elif token.string == "import" and path == "from":
                path = ""
        if token.type == tokenize.OP:
            if token.string in "([{":
                before = tokens[k - 1] if k else None
                call = token.string == "(" and before is not None and (before.type == tokenize.NAME or before.string in ")]")
                depth.append("call" if call else "other")
            elif token.string in ")]}" and depth:
                depth.pop()
        if token.type == tokenize.NAME and not path:
            before, after = tokens[k - 1] if k else None, tokens[k + 1]
            if before is not None and before.string == "." and not before.type == tokenize.STRING:
                place = "attr"
            elif depth and depth[-1] == "call" and after.string == "=" and before is not None and before.string in "(,\n":
                place = "keyword"
            elif depth and depth[-1] == "call" and after.string == "=" and before is not None and before.type in (tokenize.NL, tokenize.COMMENT):
                place = "keyword"
            else:
                place = "bare"
            owner = tokens[k - 2].string if place == "attr" and tokens[k - 2].type == tokenize.NAME and (k < 4 or tokens[k - 3].string != ".") else ""
            new = rename(token.string, f"attr of {owner}") if owner else rename(token.string, place)
            if new != token.string:
                changes.append((token.start[0] - 1, token.start[1], token.end[1], new))
        elif token.type == tokenize.STRING and re.match(r"[rR]?[fF][rR]?", token.string) and "{" in token.string:
            new = _rename_f_string(token.string, rename)
            if new != token.string:
                assert token.start[0] == token.end[0] or True
                changes.append((token.start[0] - 1, token.start[1], -1, "\0".join((token.string, new))))
    for line, start, stop, new in reversed(changes):
        if stop >= 0:
            lines[line] = lines[line][:start] + new + lines[line][stop:]
        else:
            old, new = new.split("\0")
            count = old.count("\n") + 1
            joined = "".join(lines[line : line + count])
            joined = joined[:start] + joined[start:].replace(old, new, 1)
            lines[line : line + count] = joined.splitlines(keepends=True)
    return "".join(lines)


def _rename_f_string(literal: str, rename: Callable[[str, str], str]) -> str:
    """The expressions of an f-string, renamed."""
    out: list[str] = []
    k = 0
    while k < len(literal):
        if literal.startswith(("{{", "}}"), k):
            out.append(literal[k : k + 2])
            k += 2
        elif literal[k] == "{":
            end = _closing(literal, k)
            out.append("{" + _rename_field(literal[k + 1 : end], rename) + "}")
            k = end + 1
        else:
            out.append(literal[k])
            k += 1
    return "".join(out)


def _closing(text: str, start: int) -> int:
    depth, k, quote = 0, start, ""
    while k < len(text):
        c = text[k]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"" and depth:
            quote = c
        elif c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
            if depth == 0:
                return k
        k += 1
    return len(text) - 1


def _rename_field(inner: str, rename: Callable[[str, str], str]) -> str:
    depth, quote, stop = 0, "", len(inner)
    for k, c in enumerate(inner):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c in ":!" and depth == 0 and not inner.startswith("!=", k):
            stop = k
            break
    expression, rest = inner[:stop], inner[stop:]
    tail = "= " if expression.rstrip().endswith("=") else ""
    try:
        fixed = rename_tokens(f"({expression})\n" if not tail else f"({expression.rstrip()[:-1]})\n", rename)[1:-2]
        fixed += expression[len(expression.rstrip()) - 1 :] if tail else ""
    except (tokenize.TokenError, IndentationError):
        fixed = expression
    rest = re.sub(r"\{([^{}]*)\}", lambda m: "{" + _rename_field(m[1], rename) + "}", rest)
    return fixed + rest


def map_strings(text: str, change: Callable[[str], str], prefix: bool = False) -> str:
    """Every comment and every string literal, as it is written, put through a function."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    out = text
    for token in reversed(tokens):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            new = change(token.string)
            if new != token.string:
                begin = starts[token.start[0] - 1] + token.start[1]
                out = out[:begin] + new + out[begin + len(token.string) :]
    return out


def apply_texts(tree: Tree, rules: Iterable[tuple[str, str, str]]) -> None:
    """Regular expressions over whole files: (path glob, pattern, replacement)."""
    for glob, pattern, replacement in rules:
        paths = [p for p in [*tree.python(), *tree.pages(), *tree.files(".js", ".html")] if fnmatch.fnmatch(tree.name(p), glob)]
        hits = 0
        for path in paths:
            text = path.read_text()
            after, n = re.subn(pattern, replacement, text)
            if n:
                hits += n
                path.write_text(after)
        if not hits:
            tree.say(f"text: {pattern!r} stands nowhere in {glob}")


WIDTH = 120


def push_down(text: str) -> str:
    """Prose of docstrings and comments that has become too wide: the last words go to the next line of the same block."""
    lines = text.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    prose: set[int] = set()
    for token in tokens:
        if token.type == tokenize.STRING and token.string.lstrip("rR").startswith('"""'):
            prose |= set(range(token.start[0], token.end[0]))  # not the first line: a summary is one line
        elif token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#"):
            prose.add(token.start[0] - 1)
    k = 0
    while k < len(lines):
        line = lines[k]
        if len(line) <= WIDTH or k not in prose or line.lstrip().startswith("|"):
            if len(line) > WIDTH and k in prose:
                lines[k] = re.sub(r" {2,}\|", " |", line)  # a row of a table: align it by hand
            k += 1
            continue
        head = re.match(r"(\s*#? ?)(- )?", line)
        assert head is not None
        indent = head[1] + ("  " if head[2] else "")
        following = lines[k + 1] if k + 1 < len(lines) and k + 1 in prose else ""
        if not head[2] and re.match(r"\s+[\w*]+: ", line) and (not following.strip() or len(following) - len(following.lstrip()) != len(head[1])):
            indent = head[1] + "    "
        cut = line.rfind(" ", len(head[0]), WIDTH + 1)
        if cut <= len(head[0]):
            k += 1
            continue
        rest = line[cut + 1 :]
        lines[k] = line[:cut]
        body = following[len(indent) :] if following.startswith(indent) else ""
        continues = body and body[0] != " " and not body.startswith(("- ", "|", '"""')) and not re.match(r"[\w*]+: ", body)
        if continues:
            lines[k + 1] = indent + rest + " " + body
        else:
            lines.insert(k + 1, indent + rest)
            prose = {n + (n > k) for n in prose} | {k + 1}
        k += 1
    return "\n".join(lines)


def tidy(tree: Tree) -> None:
    """Imports in order and none too many; formatted."""
    ruff = next((p for p in (Path(sys.executable).parent / "ruff", tree.root / ".venv/bin/ruff") if p.exists()), None)
    if ruff is None:
        tree.say("no ruff beside this Python: run ruff check --select I,F401,UP --fix and ruff format yourself")
        return
    subprocess.run([ruff, "check", "-q", "--select", "I,F401,RUF022", "--fix", "--exit-zero", "."], cwd=tree.root, check=False, capture_output=True)
    subprocess.run([ruff, "format", "-q", "."], cwd=tree.root, check=False)
    for path in tree.python():
        text = path.read_text()
        if any(len(line) > WIDTH for line in text.split("\n")):
            after = push_down(text)
            if after != text:
                path.write_text(after)
