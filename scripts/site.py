"""Build the documentation site: ``python3 scripts/site.py`` writes it to ``build/site/index.html``.

Sphinx runs in the checkout's environment (``environment.py``). A warning is an error, and so is a link between pages
that leads nowhere. ``--links`` requests the links to other sites instead. Without a network it prints ``NOT TESTED`` and ends
with status 77, which ``.ci/run`` reports.
"""

import argparse
import socket
import sys

from environment import ROOT, environment, run

#: The site of most links, and the status for ``.ci/run`` if it cannot be reached.
HOST = "docs.pytorch.org"
NOT_TESTED = 77


def reachable(host: str) -> bool:
    """Whether a connection to ``host`` can be opened."""
    try:
        socket.create_connection((host, 443), timeout=5).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--links", action="store_true", help="request the links to other sites instead of building")
    chosen = options.parse_args()
    if chosen.links and not reachable(HOST):
        print(f"NOT TESTED: the links to other sites, because {HOST} cannot be reached")
        sys.exit(NOT_TESTED)
    builder, folder = ("linkcheck", "build/links") if chosen.links else ("html", "build/site")
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-d", "build/doctrees", "-b", builder, "docs", folder]
    status = run(environment("docs"), command, ROOT)
    if not status:
        print(f"{folder}/{'output.txt' if chosen.links else 'index.html'} is written.")
    sys.exit(status)
