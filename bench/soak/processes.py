"""Reads memory and descriptors of the processes of a gateway, and of those that it uses, from the kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.measuring.processes import tree

SUPERVISOR: Final = "supervisor"
WORKER: Final = "worker"
CONTROLLER: Final = "controller"
POSTGRESQL: Final = "PostgreSQL"
_TCP: Final = Path("/proc/net/tcp")
_LISTEN, _ESTABLISHED = "0A", "01"
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A process of the gateway, or a tree of processes with the pid of its root, `at` seconds after the run began.

    `memory` is in MiB, without memory that processes share, such as the buffers of PostgreSQL, which fill up.
    `descriptors` are the open ones, without the `connections` of clients. A tree has the figures of its largest
    process, and the number of its processes as `connections`: PostgreSQL has one for each connection.
    """

    at: float
    role: str
    pid: int
    memory: float
    descriptors: int
    connections: int = 0


class _Port:
    """The sockets of a TCP port at this moment, by their inodes."""

    def __init__(self, port: int) -> None:
        ending = f":{port:04X}"
        rows = [line.split() for line in _TCP.read_text().splitlines()[1:]]
        self._states = {row[9]: row[3] for row in rows if row[1].endswith(ending)}

    def count(self, sockets: Sequence[str], state: str) -> int:
        return sum(self._states.get(inode) == state for inode in sockets)


def _links(pid: int) -> list[str]:
    """What the open descriptors of a process refer to."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


def _sockets(links: Sequence[str]) -> list[str]:
    return [link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")]


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssFile") if name in fields) / _KIB


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def of_gateway(supervisor: int, port: int, at: float) -> list[Sample]:
    """Sample the supervisor and its children. Only workers keep the listening socket, which the controller closes."""
    sockets = _Port(port)
    found = []
    for pid in (supervisor, *_children(supervisor)):
        try:
            links, memory = _links(pid), _memory(pid)
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ends now
            continue
        listens = sockets.count(_sockets(links), _LISTEN)
        role = SUPERVISOR if pid == supervisor else WORKER if listens else CONTROLLER
        connections = sockets.count(_sockets(links), _ESTABLISHED)
        descriptors = len(links) - connections
        found.append(Sample(at=at, role=role, pid=pid, memory=memory, descriptors=descriptors, connections=connections))
    return found


def of_trees(roots: Mapping[str, int], at: float) -> list[Sample]:
    """Sample trees of processes, by the pids of their roots."""
    return [_of_tree(role, root, at) for role, root in roots.items()]


def _of_tree(role: str, root: int, at: float) -> Sample:
    memory, descriptors = [0.0], [0]
    for pid in tree(root):
        try:
            memory.append(_memory(pid))
            descriptors.append(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    processes = len(memory) - 1
    return Sample(at=at, role=role, pid=root, memory=max(memory), descriptors=max(descriptors), connections=processes)
