"""The program that starts PostgreSQL: it drops root rights, and lets the kernel end PostgreSQL with its parent.

    python -I -S launcher.py PARENT_PID DEATH_SIGNAL IDENTITY PROGRAM [ARGUMENT...]

IDENTITY is `self`, `namespace` (a user namespace in which the same files belong to an ordinary user) or
`UID:GID`. The death signal is set last, because a change of credentials clears it. The program imports the standard
library only, because its interpreter has no site-packages.
"""

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
ORDINARY_ID = 1000
CANNOT_CHANGE_IDENTITY = 125


def main(arguments: list[str]) -> None:
    parent, signal, identity, *command = arguments
    try:
        become(identity)
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]} with identity {identity}: {error}\n")
        raise SystemExit(CANNOT_CHANGE_IDENTITY) from error
    if sys.platform == "linux":
        _call("prctl", PR_SET_PDEATHSIG, int(signal), 0, 0, 0)
    if os.getppid() != int(parent):  # the parent ended before the signal was requested
        raise SystemExit(1)
    os.execv(command[0], command)  # noqa: S606  replacing this process is the purpose


def become(identity: str) -> None:
    if identity == "self":
        return
    if identity == "namespace":
        enter_user_namespace()
        return
    uid, gid = (int(part) for part in identity.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def enter_user_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{ORDINARY_ID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{ORDINARY_ID} {gid} 1")


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{function}: {os.strerror(error)}")


if __name__ == "__main__":
    main(sys.argv[1:])
