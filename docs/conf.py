"""How the documentation site is built: ``make docs``.

The source folder is the repository, so that links between pages, notebooks and scripts are the
same on the site as in the repository. Nothing is loaded from elsewhere, neither when the site is
built nor when it is read.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "headroles"
author = "the headroles authors"
version = release = installed_version("headroles")

root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [
    "docs/studies",
    "docs/extensions",
    "docs/templates",
    ".venv",
    "build",
    "site",
    "**/.*",
]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "command_reference",
    "function_reference",
    "site_check",
]
nitpicky = True

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_excludepatterns = ["notebooks/*"]  # the tests run these
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_output_stderr = "remove"  # progress

autosummary_generate = True
autosummary_generate_overwrite = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    # How results are stored; not for users.
    "exclude-members": "hint, columns, facts_type, filename, form, kind, options_type, read_files, "
    "record, schema, write_files",
}
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]  # names in docstrings: a link where there is a page
templates_path = ["templates"]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "headroles"
html_baseurl = ""
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
html_extra_path = ["site_root"]
html_sidebars = {f"docs/{name}": [] for name in ("start", "gallery", "glossary")}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    "footer_end": [],
}
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
