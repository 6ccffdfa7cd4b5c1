"""Random programs, run by two engines that must agree.

A program is text: Python statements over the tensors ``t0, t1 …`` and the names of ``namespace.py``. A grammar is a module
with a function ``program(seed)``. Each program is executed by two processes (``worker.py``), and what ``execution.py``
observes of it is compared (``comparison.py``). A disagreement is reduced to few statements (``shrinking.py``) unless
``differences.py`` knows the heading of ``docs/differences.md`` that explains it.

    PYTHONPATH=src python -m tests.fuzz.programs --against <python with PyTorch> --count 1000

compares with PyTorch. Without ``--against`` the other engine is retrograd itself, with other settings (``--engine``).
"""
