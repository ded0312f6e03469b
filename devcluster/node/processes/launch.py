"""The program that becomes the process of a container: it sets up namespaces and mounts, and executes the command.

It runs as `python -I -S launch.py <spec> <status fd>` and therefore uses the standard library only. An error before the
exec is written to the status descriptor, which the exec closes. The program avoids pathlib, json, typing and signal,
whose import would triple the start time of each container.

    agent ─fork─▶ launch.py ─unshare, mount, pivot_root─▶ exec the command (same pid)
"""

# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH110, PTH112, PTH115, PTH116, PTH120, PTH123, PTH211

import ctypes
import marshal
import os
import sys
from os.path import exists, isdir, realpath

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
SIGKILL, SIGPIPE = 9, 13
# The numbers of a system call for which libc has no function.
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
# Flags that statvfs reports and that a read-only remount in a user namespace must repeat.
KEPT_FLAGS = os.ST_NOSUID | getattr(os, "ST_NODEV", 0) | getattr(os, "ST_NOEXEC", 0)
# The entries of /dev in a container. A host has hundreds.
DEVICES = frozenset({"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "mqueue"})

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    encoded = kind.encode() if kind else None
    done = libc.mount(os.fsencode(source), os.fsencode(target), encoded, ctypes.c_ulong(flags), None)
    check(done, f"mount {source} on {target}")


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def enter_namespaces(hostname: str) -> None:
    """Enter new mount and UTS namespaces. Without privileges, this needs a new user namespace too."""
    user, group = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWUTS
    if user != 0:
        flags |= CLONE_NEWUSER
    check(libc.unshare(flags), "unshare")
    if user != 0:
        # The kernel requires this before a process without privileges maps its group.
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"0 {user} 1")
        write("/proc/self/gid_map", f"0 {group} 1")
    # No mount of the container may propagate to the host.
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    name = os.fsencode(hostname)
    check(libc.sethostname(name, len(name)), "sethostname")


def join_namespaces(pid: int) -> None:
    """Enter the namespaces of a running container, for probes and hooks."""
    # The user namespace comes first: it grants the right to enter the others.
    kinds = ["mnt", "uts"] if os.geteuid() == 0 else ["user", "mnt", "uts"]
    opened = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for descriptor in opened:
        check(libc.setns(descriptor, 0), "setns")
        os.close(descriptor)


class Mounts:
    """Mounts volumes at their paths, and creates missing mount points without changing the host.

    If a directory of the host lacks an entry, a private tmpfs covers the directory. All present entries are
    bind-mounted into the tmpfs, and the missing entry is created there. Below that, and inside volumes, mkdir suffices.
    """

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._covers = 0
        self._ours: list[str] = []

    def bind(self, source: str, target: str, *, read_only: bool) -> None:
        target = self.make(target, folder=isdir(source))
        mount(source, target, None, MS_BIND | MS_REC)
        if read_only:
            kept = os.statvfs(target).f_flag & KEPT_FLAGS
            mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)
        else:
            self._ours.append(target)

    def make(self, wanted: str, *, folder: bool) -> str:
        """Return the real path of `wanted`, which is created if it is missing."""
        path = realpath(wanted)
        if exists(path):
            return path
        parent = os.path.dirname(path)
        while not exists(parent):
            parent = os.path.dirname(parent)
        if not self._is_ours(parent):
            self._cover(parent)
        made = path if folder else os.path.dirname(path)
        os.makedirs(made, exist_ok=True)
        if not folder:
            write(path, "")
        self._ours.append(made)
        return path

    def _is_ours(self, path: str) -> bool:
        # After a cover of /, the directories in it are those of the host.
        return any(path == own or (own != "/" and path.startswith(own + "/")) for own in self._ours)

    def _cover(self, folder: str) -> None:
        self._covers += 1
        stage = f"{self._stage}/{self._covers}"
        os.makedirs(stage, exist_ok=True)
        mount("tmpfs", stage, "tmpfs", 0)
        # The cover gets the mode of what it covers, such as the sticky bit of /tmp.
        os.chmod(stage, os.stat(folder).st_mode & 0o7777)
        with os.scandir(folder) as entries:
            for entry in entries:
                if folder != "/dev" or entry.name in DEVICES or entry.is_symlink():
                    self._carry_over(entry, f"{stage}/{entry.name}")
        if folder == "/":
            self._pivot(stage)
        else:
            mount(stage, folder, None, MS_BIND | MS_REC)
        self._ours.append(folder)

    def _carry_over(self, entry: "os.DirEntry[str]", target: str) -> None:
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
            return
        if entry.is_dir():
            os.mkdir(target)
        else:
            write(target, "")
        mount(entry.path, target, None, MS_BIND | MS_REC)

    def _pivot(self, stage: str) -> None:
        number = PIVOT_ROOT.get(os.uname().machine)
        if number is None:
            os.chroot(stage)
        else:
            # The new root is stacked on the old one, which is then unmounted from below it.
            os.chdir(stage)
            check(libc.syscall(number, b".", b"."), "pivot_root")
            check(libc.umount2(b".", MNT_DETACH), "umount of the old root")
        os.chdir("/")


def hide(folder: str) -> None:
    """Unmount the mounts of the node below this folder. The volumes of the container are bound elsewhere already."""
    with open("/proc/self/mountinfo") as table:
        points = [line.split(" ")[4] for line in table]
    # Inner mounts before those around them.
    for point in reversed(points):
        if point.startswith(folder + "/"):
            libc.umount2(os.fsencode(point), MNT_DETACH)


def die_with_parent(parent: int, number: int) -> None:
    """Request a signal at the end of the parent. Must follow the namespaces: a gain of capabilities clears this."""
    if not sys.platform.startswith("linux"):
        return
    libc.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), SIGKILL)


def prepare(
    folder: str,
    join: "int | None",
    own_mounts: bool,  # noqa: FBT001
    hostname: str,
    stage: str,
    mounts: list[tuple[str, str, bool]],
    hidden: str,
) -> None:
    """Set up namespaces and mounts, then change to the working directory, which may be in a volume."""
    if join:
        join_namespaces(join)
    elif own_mounts:
        enter_namespaces(hostname)
        table = Mounts(stage)
        for source, target, read_only in mounts:
            table.bind(source, target, read_only=read_only)
        if hidden:
            hide(hidden)
        table.make(folder, folder=True)
    os.chdir(folder)


def execute(argv: list[str], env: dict[str, str]) -> None:
    """Execute the command, found on the PATH of the container. Error messages are those of runc."""
    try:
        os.execvpe(argv[0], argv, env)  # noqa: S606
    except FileNotFoundError:
        where = "no such file or directory" if "/" in argv[0] else "executable file not found in $PATH"
    except PermissionError:
        where = "permission denied"
    except OSError as error:
        where = (error.strerror or str(error)).lower()
    prefix = f'exec: "{argv[0]}": ' if where != "permission denied" or "/" not in argv[0] else f"exec {argv[0]}: "
    raise RuntimeError(f"error during container init: {prefix}{where}")


def main() -> None:
    status = int(sys.argv[2])
    try:
        with open(sys.argv[1], "rb") as file:
            spec = marshal.load(file)  # noqa: S302
        # The file contains the environment, which includes secrets.
        os.unlink(sys.argv[1])
        os.set_inheritable(status, False)  # noqa: FBT003
        prepare(*spec["surroundings"])
        die_with_parent(*spec["parent"])
        # Python ignores SIGPIPE, and the command would inherit that.
        libc.signal(SIGPIPE, None)
        execute(spec["argv"], spec["env"])
    except (OSError, RuntimeError, ValueError) as error:
        os.write(status, str(error).encode(errors="replace")[:4000])
    os._exit(128)


if __name__ == "__main__":
    main()
