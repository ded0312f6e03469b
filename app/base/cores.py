"""The cores that this process may use, and the default number of workers for them."""

import math
import os
from pathlib import Path
from typing import Final

# Each worker takes memory and database connections; more workers are the operator's choice.
MOST: Final = 4
_CPU_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")  # of the container, in version 2 of cgroups


def usable_cores() -> int:
    return cores_within(_affinity(), _read(_CPU_LIMIT))


def default_workers(cores: int) -> int:
    """Return the number of workers that leaves a core for the controller, PostgreSQL and clients on the same machine.

    More workers than free cores cost throughput: requests of different workers share no statement and no commit.
    """
    return max(1, min(cores - 1, MOST))


def cores_within(cores: int, cpu_limit: str) -> int:
    """Return the number of usable cores, at least 1, under the CPU limit of a cgroup.

    Args:
        cores: cores on which the process may run.
        cpu_limit: content of `cpu.max`, such as `150000 100000` for one and a half cores; `max …` or empty for none.
    """
    quota, _, period = cpu_limit.strip().partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
