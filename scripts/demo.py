"""Create the checkout's environment and run the demo, which fits the Mauna Loa CO2 record.

``python3 scripts/demo.py`` runs ``retrograd run examples/keeling_curve.py``. Another program written for PyTorch may be
given instead: ``python3 scripts/demo.py examples/two_moons.py``.
"""

import sys

from environment import ROOT, environment, run

if __name__ == "__main__":
    program = sys.argv[1:] or [str(ROOT / "examples" / "keeling_curve.py")]
    sys.exit(run(environment(), ["-m", "retrograd", "run", *program]))
