"""``python -m retrograd``: runs the command line of ``cli.py``."""

import sys

from retrograd.cli import main

if __name__ == "__main__":
    sys.exit(main())
