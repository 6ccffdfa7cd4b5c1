"""The tests, from nothing: sets up the checkout's environment and runs pytest in it on a few cores.

``python3 scripts/test.py [pytest arguments]``, for example ``python3 scripts/test.py tests/test_cli.py -k info``.
"""

import os
import sys

from environment import ROOT, environment, run

if __name__ == "__main__":
    workers = str(min(os.cpu_count() or 1, 8))
    sys.exit(run(environment("dev"), ["-m", "pytest", "-n", workers, *sys.argv[1:]], ROOT))
