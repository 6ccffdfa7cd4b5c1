"""Configuration of Sphinx for the documentation site: ``python scripts/site.py`` builds it."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(DOCS / "extensions")]

from retrograd.version import OWN  # noqa: E402 - found on the path above

project = "retrograd"
author = copyright = "the retrograd authors"
version = release = OWN

extensions = [
    "myst_nb",  # MyST Markdown and notebooks
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "api_reference",
    "repository_pages",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
root_doc = "index"
language = "en"
default_role = "code"
suppress_warnings = ["ref.python"]  # a name of an annotation may mean several classes

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links to headings, as on the pages in the repository
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
viewcode_line_numbers = True
add_module_names = True
toc_object_entries = False  # a page's table of contents would list every function
python_maximum_signature_line_length = 100
copybutton_prompt_text = ">>> |... |$ "
copybutton_prompt_is_regexp = False
copybutton_only_copy_prompt_lines = True

pygments_dark_style = "github-dark"  # the default underlines names of modules, as if they were links
html_theme = "furo"
html_title = f"retrograd {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_search_scorer = str(DOCS / "extensions" / "search_order.js")
html_copy_source = False
