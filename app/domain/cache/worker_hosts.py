"""The hosts on which a sync starts workers.

juicefs passes each host to ssh as an argument. A host that begins with a dash would be an option of ssh.
"""

import re
from typing import Final

from app.domain.cache.source_limits import without_port

ACCEPTED: Final = "hosts or user@host, separated by commas"
_HOST: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9](?:[A-Za-z0-9_.:-]*)")


def wrong_hosts(workers: str) -> str | None:
    """Return what is wrong with a list of hosts, or None."""
    if all(_HOST.fullmatch(host) for host in workers.split(",")):
        return None
    return "worker is not a list of hosts"


def worker_hosts(listed: str) -> list[str]:
    """Return the hosts of a list, without users and ports."""
    return [without_port(host.rpartition("@")[2]) for host in listed.split(",") if host]
