"""The default number of workers: one for each core that this process may use, up to a limit."""

import math
import os
from pathlib import Path
from typing import Final

# Each worker takes memory and database connections; more workers are the operator's choice.
MOST: Final = 4
_CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")  # of the container, in version 2 of cgroups


def default_workers() -> int:
    return workers_for(_affinity(), _read(_CPU_LIMIT))


def workers_for(cores: int, cpu_limit: str) -> int:
    """Return the number of workers for this many cores and this CPU limit of a cgroup.

    Args:
        cores: cores on which the process may run.
        cpu_limit: content of `cpu.max`, such as `150000 100000` for one and a half cores; `max …` or empty for none.
    """
    quota, _, period = cpu_limit.strip().partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, min(cores, MOST))


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
