"""Hosts on which a sync starts workers: juicefs hands each to ssh, which would take a dash for one of its flags."""

import re
from typing import Final

ACCEPTED: Final = "hosts or user@host, separated by commas"
_HOST: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9](?:[A-Za-z0-9_.:-]*)")


def wrong_hosts(workers: str) -> str | None:
    """What is wrong with them; None if nothing is."""
    if all(_HOST.fullmatch(host) for host in workers.split(",")):
        return None
    return "worker is no list of hosts"
