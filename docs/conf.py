"""Sphinx settings: MyST pages, some of them executed; the API from the docstrings."""

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

from docutils.nodes import SkipNode, literal_block, raw
from docutils.parsers.rst import Directive
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.inspect import TypeAliasForwardRef

from midst import __version__

sys.path.insert(0, str(Path(__file__).parent))
from commands import write_pages

project = "midst"
author = "The midst authors"
copyright = "2026, the midst authors"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "figures"]
html_theme = "furo"
html_title = "midst"
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# Pages that begin with a kernelspec are run at every build, and an error in one is an error of the build.
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["flwr"]  # in an environment of its own
autodoc_type_aliases = {
    name: name
    for name in "Array ArrayLike Bools Bounds Branch DTypeLike DrawValues Engine EnsemblePanel FigureKind Found Inbox "
    "Init Ints Keys LeakagePanel Measure Message Method MethodLike MethodName NDArray Numbers Objective "
    "Outbox Prior Priors Progress RNG Record ResultPanel Seed Shown Side Spacing Stop SweepPanel TaskProgress "
    "TraceRows Update Values Width Words".split()
}
TypeAliasForwardRef.__repr__ = lambda self: self.name  # else it stands in signatures (Sphinx 9.0)
napoleon_attr_annotations = False  # the classes show them already
napoleon_use_rtype = False  # "x, and the branch: …" is a sentence and no type

# Every reference must lead somewhere, but for what is not ours.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|scipy|matplotlib|networkx|nx|sparse|collections|pathlib|fractions|os|typing|click)\..*"),
    (r"py:.*", r"flwr\..*|AggregationError|ArrayRecord|Message|MetricRecord"),  # Flower's
    (r"py:class", "|".join(autodoc_type_aliases)),
    (r"py:class", r"Axes|DataFrame|Figure|Fraction|Path|Mechanism|optional|tuple\[.*|.*\._\w+|.*\.algorithms\.State"),
]
suppress_warnings = ["ref.python"]  # several classes have an x

linkcheck_timeout = 20
linkcheck_anchors = False


def show_as_written(app, what, name, obj, options, lines):
    """Module docstrings are laid out for reading in the file: tables, formulas and lists stay as they are."""
    if what == "module":
        lines[:] = ["::", "", *(f"    {line}" for line in lines)]


def keep_sentences(app, what, name, obj, options, lines):
    """What stands before a colon in the docstring of a property is no type, as Napoleon takes it to be."""
    if what == "property":
        lines[:] = [*(inspect.getdoc(obj) or "").splitlines(), ""]


def show_formula(writer, node):
    """Formulas as MathML, which browsers read by themselves: no script, and no other host is asked for one."""
    writer.body.append(tex2mathml(node.astext(), as_block=node.tagname == "math_block"))
    raise SkipNode


class Live(Directive):
    """A command that writes a page, and under it that page, to be played with.

    The block has the command alone; elsewhere than in HTML, and where nothing is built, that is what is shown.
    """

    required_arguments, final_argument_whitespace, has_content = (
        1,
        True,
        True,
    )  # what is to be seen, for a screen reader

    def run(self):
        [command] = self.content
        up = "../" * self.state.document.settings.env.docname.count("/")
        [page] = re.findall(r"--page (\S+)", command)
        frame = (
            f'<iframe src="{up}pages/{page}" title="{self.arguments[0]}" loading="lazy" '
            'style="width: 100%; height: 820px; border: 1px solid var(--color-background-border, #ccc)"></iframe>'
            f'<p><a href="{up}pages/{page}">This page by itself</a></p>'
        )
        return [literal_block(command, command, language="sh"), raw("", frame, format="html")]


def make_live_pages(app):
    """Run the commands of all such blocks, in the folder that the blocks show them from."""
    folder = Path(app.outdir) / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    for path in Path(app.srcdir).glob("**/*.md"):
        for command in re.findall(r"^```{live} [^\n]*\nmidst ([^\n]*)\n```$", path.read_text(), re.MULTILINE):
            line = [sys.executable, "-m", "midst", *shlex.split(command)]
            subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def setup(app):
    app.add_directive("live", Live)
    app.connect("builder-inited", make_live_pages)
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "commands"))
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
    app.connect("autodoc-process-docstring", show_as_written)
    app.connect("autodoc-process-docstring", keep_sentences, priority=900)  # after Napoleon
