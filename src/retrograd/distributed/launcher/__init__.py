"""``torch.distributed.launcher``: starts a program or a function in several processes, one for each rank.

``api.py`` has the public functions, ``agent.py`` the launcher of one node, ``nodes.py`` what launchers of several nodes
agree on, ``processes.py`` the processes, ``output.py`` their output, ``rank.py`` the first steps of a process.
"""

from ...compat.lazy_imports import module_getattr

__getattr__ = module_getattr(
    __name__, {"api": "api", "LaunchConfig": "api", "elastic_launch": "api", "launch_agent": "api"}
)
