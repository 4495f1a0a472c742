"""Sphinx settings: MyST pages, the API from the docstrings."""

from midst import __version__

project = "midst"
author = "The midst authors"
copyright = "2026, the midst authors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "midst"
autodoc_typehints = "signature"
napoleon_attr_annotations = False  # the classes show them already
suppress_warnings = ["ref.python"]  # several classes have an x
autodoc_member_order = "bysource"
exclude_patterns = ["_build"]


def show_as_written(app, what, name, obj, options, lines):
    """Module docstrings are laid out for reading in the file: tables, formulas and lists stay as they are."""
    if what == "module":
        lines[:] = ["::", "", *(f"    {line}" for line in lines)]


def setup(app):
    app.connect("autodoc-process-docstring", show_as_written)
