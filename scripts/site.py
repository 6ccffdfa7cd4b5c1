"""Build the documentation site: ``python3 scripts/site.py`` writes it to ``build/site/index.html``.

Sphinx runs in the checkout's environment (``environment.py``). A warning is an error, and so is a link between pages
that leads nowhere. With ``--links`` the links to other sites are requested as well, which needs a network.
"""

import argparse
import sys

from environment import ROOT, environment, run

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--links", action="store_true", help="request the links to other sites instead of building")
    chosen = options.parse_args()
    builder, folder = ("linkcheck", "build/links") if chosen.links else ("html", "build/site")
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "docs", folder]
    status = run(environment("docs"), command, ROOT)
    if not status:
        print(f"{folder}/{'output.txt' if chosen.links else 'index.html'} is written.")
    sys.exit(status)
