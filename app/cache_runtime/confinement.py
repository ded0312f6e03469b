"""Run a program that the kernel holds to some places of the file system (Landlock): `confinement.py SPEC PROGRAM …`.

Whoever owns a source owns the names of its objects, and whoever mounts the volume may put links into it. `juicefs sync`
joins such names to paths and follows such links. Also run as a script by itself, so it imports nothing of jobgate.
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
# Writing, removing and making; the two newer rights came one by one.
_WRITE: Final = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
_SINCE: Final = ((2, 1 << 13), (3, _TRUNCATE))
_OF_FILES: Final = _READ_FILE | _WRITE_FILE | _TRUNCATE


def version() -> int:
    """Of the kernel's Landlock; 0: it has none, or has it switched off."""
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def confined(arguments: list[str], *, reads: Iterable[str], writes: Iterable[str]) -> list[str]:
    """The command line that runs another one held to these places, of which some may not be there."""
    spec = json.dumps([[*reads], [*writes]])
    return [sys.executable, "-I", str(Path(__file__)), spec, *arguments]


def restrict(reads: Iterable[str], writes: Iterable[str]) -> None:
    """For this thread, for good, and for every program it becomes. Raises OSError."""
    known = version()
    handled = _READ | _WRITE | sum(right for since, right in _SINCE if known >= since)
    libc = _libc()
    ruleset = _checked(libc.syscall(_CREATE_RULESET, struct.pack("=Q", handled), ctypes.c_size_t(8), 0))
    for path in reads:
        _allow(libc, ruleset, path, _READ)
    for path in writes:
        _allow(libc, ruleset, path, handled)
    _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0))
    finally:
        os.close(place)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    reads, writes = json.loads(sys.argv[1])
    try:
        restrict(reads, writes)
        os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the argument list is the caller's
    except OSError as error:
        sys.exit(f"{sys.argv[2]} cannot be run and confined: {error.strerror}")
