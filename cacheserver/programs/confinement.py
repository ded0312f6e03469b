"""Runs a program that the kernel confines to parts of the file system (Landlock): `confinement.py SPEC PROGRAM …`.

The owner of a source chooses the names of its objects, and every pod that mounts the volume can put links into it.
`juicefs sync` joins such names to paths and follows such links. The module also runs as a script by itself, so it
imports nothing of jobgate.
"""

import ctypes
import json
import os
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# System call numbers and constants of linux/landlock.h and linux/prctl.h.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVS: Final = 38

_READ_FILE: Final = 1 << 2
_READ: Final = _READ_FILE | 1 << 3
_WRITE_FILE: Final = 1 << 1
_TRUNCATE: Final = 1 << 14
# The rights to write, remove and create. Later versions of Landlock added the rights to rename and to truncate.
_WRITE: Final = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
_SINCE: Final = ((2, 1 << 13), (3, _TRUNCATE))
_OF_FILES: Final = _READ_FILE | _WRITE_FILE | _TRUNCATE


def version() -> int:
    """Return the kernel's version of Landlock, or 0 if the kernel has none or has disabled it."""
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def confine(arguments: list[str], *, reads: Iterable[str], writes: Iterable[str]) -> list[str]:
    """Return the command line that runs another one confined to these paths. Paths that do not exist are ignored."""
    spec = json.dumps([[*reads], [*writes]])
    # -I: neither variables nor the current directory can add modules.
    return [sys.executable, "-I", str(Path(__file__)), spec, *arguments]


def restrict(reads: Iterable[str], writes: Iterable[str]) -> None:
    """Restrict this thread, and every program that it executes, to these paths (Landlock). This cannot be undone.

    Raises:
        OSError: the kernel refuses.
    """
    known = version()
    handled = _READ | _WRITE | sum(right for since, right in _SINCE if known >= since)
    libc = _libc()
    # struct landlock_ruleset_attr has 8 bytes in the first version, which all later versions accept.
    ruleset = _check(libc.syscall(_CREATE_RULESET, struct.pack("=Q", handled), ctypes.c_size_t(8), 0))
    for path in reads:
        _allow(libc, ruleset, path, _READ)
    for path in writes:
        _allow(libc, ruleset, path, handled)
    # Required by Landlock: otherwise a setuid program could be confused by its confinement.
    _check(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES  # the kernel refuses rights of directories for a file
        # struct landlock_path_beneath_attr, which is packed.
        _check(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0))
    finally:
        os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    reads, writes = json.loads(sys.argv[1])
    try:
        restrict(reads, writes)
        os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the caller checks the arguments
    except OSError as error:
        sys.exit(f"{sys.argv[2]} cannot be run and confined: {error.strerror}")
