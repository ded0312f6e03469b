"""What the workers of one pytest-xdist run share."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_directory(factory: pytest.TempPathFactory) -> Path:
    """The temporary directory of the run. Without xdist, the only process has it for itself."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def one_worker_at_a_time(factory: pytest.TempPathFactory, name: str) -> Iterator[None]:
    """Hold the lock `name`, which the workers of the run share. It ends with its process."""
    with (shared_directory(factory) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The directory `name` of the run, which the first worker that asks for it fills by `make`.

    The other workers wait meanwhile. If `make` raises, the next worker tries again in a new directory.
    """
    shared = shared_directory(factory)
    with one_worker_at_a_time(factory, name):
        link = shared / name
        if not link.is_symlink():
            directory = factory.mktemp(name)
            make(directory)
            link.symlink_to(directory)
    return link.resolve()
