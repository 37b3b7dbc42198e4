# Sphinx's configuration for the site that docs/site/make.py puts together.
import os
import re
import sys

sys.path.insert(0, os.environ["PARTITA_PYTHON_API"])

project = "Partita"
copyright = "Partita's authors; Apache-2.0 WITH LLVM-exception"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "Partita"
html_show_sphinx = False
exclude_patterns = ["_build"]
templates_path = []
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# mlir-tblgen begins pages at any depth, and says what language an example is in
# that nobody highlights.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
# A name that is said to be on a page has to be there.
nitpicky = True
# Types of C and Python that have no page here.
nitpick_ignore_regex = [("c:identifier", r"u?int\d+_t|size_t"), ("py:class", r".*")]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def list_parameters(app, what, name, obj, options, lines):
    """Docstrings have tables of parameters, with two spaces or more after the name."""
    for i, line in enumerate(lines):
        if found := re.fullmatch(r"(\w+) {2,}(\S.*)", line.strip()):
            lines[i] = f"* ``{found[1]}``: {found[2]}"


def setup(app):
    from pygments.lexers.special import TextLexer

    for language in ("mlir", "tablegen"):
        app.add_lexer(language, TextLexer)
    app.connect("autodoc-process-docstring", list_parameters)
