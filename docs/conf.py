"""The settings of Sphinx. docs/website/build.py runs it on a copy of the pages."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "website"))

import docstrings
import mathml

import soda_tta

project = "soda-tta"
author = "The soda-tta authors"
copyright = "The soda-tta authors, Apache 2.0"
version = release = soda_tta.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 6  # the anchors of GitHub, which the links in the pages use
suppress_warnings = [
    "myst.header",  # some generated pages begin below the first level
    "ref.python",  # a type called `module` is no reference to one of three attributes
]
myst_fence_as_directive = ["math"]  # as GitHub writes equations
html_math_renderer = "mathml"
highlight_language = "none"  # most blocks without a language are commands and their output
pygments_style = "friendly"
pygments_dark_style = "monokai"

# Nothing comes from another place: the pages can be read without a network.
html_theme = "furo"
html_title = f"soda-tta {version}"
html_favicon = "website/static/logo.svg"
html_logo = "website/static/logo.svg"
html_static_path = ["website/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False

autodoc_preserve_defaults = True
autodoc_type_aliases = {"Array": "Array", "Listener": "Listener"}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
default_role = "code"  # the docstrings use `name` for code
napoleon_use_rtype = False
python_maximum_signature_line_length = 80


def setup(app: object) -> None:
    """Called by Sphinx."""
    docstrings.connect(app)
    mathml.connect(app)
