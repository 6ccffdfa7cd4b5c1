"""Create the checkout's environment and run the tests in it with pytest, on up to 8 cores.

``python3 scripts/test.py [pytest arguments]``, for example ``python3 scripts/test.py tests/unit/test_cli.py -k info``.
"""

import os
import sys

from environment import ROOT, environment, run

if __name__ == "__main__":
    workers = str(min(os.cpu_count() or 1, 8))
    sys.exit(run(environment("dev"), ["-m", "pytest", "-n", workers, *sys.argv[1:]], ROOT))
