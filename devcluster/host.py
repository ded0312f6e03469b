"""Services of the operating system: private files, and the end of this process with its parent."""

import argparse
import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically, with mode 0600. Readers see the old content or the new one, never a mixture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        Path(file.name).chmod(0o600)
        file.write(text)
        file.flush()
        # After a power failure, the new name must not refer to a file whose content has not reached the disk.
        os.fsync(file.fileno())
    # A rename within one directory is atomic.
    Path(file.name).replace(path)


def absolute_path(text: str) -> Path:
    """Return the path that an argument of a command names.

    It is absolute, because containers have working directories of their own, and other processes read the kubeconfig.
    """
    return Path(text).absolute()


def existing_file(text: str) -> Path:
    """Return the path that an argument of a command names. Raises ArgumentTypeError if there is no such file."""
    path = absolute_path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path


def program_path(text: str) -> Path:
    """Return the path of a program, or that of a name on PATH. It need not exist: a pod that needs it reports that."""
    return absolute_path(shutil.which(text) or text)


def end_with_parent(parent: int) -> None:
    """Let the kernel send this process SIGTERM when its parent ends. Has no effect on systems other than Linux.

    Raises:
        SystemExit: the parent ended before the kernel was asked.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one has ended")
